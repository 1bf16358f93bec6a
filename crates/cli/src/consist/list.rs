//! `linchpin consist list`: the adapters that there are, and the employers that are served.

use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::Args;
use http::Request;
use linchpin_adapters::NAMES;
use serde_json::Value;

use crate::{live::Connection, operator::awaited, output};

/// List the adapters that there are, and the employers that are served.
#[derive(Debug, Args)]
pub(super) struct ListCommand {
    #[command(flatten)]
    connection: Connection,
    /// The namespace of the employers [default: all].
    #[arg(short, long)]
    namespace: Option<String>,
    /// Employers of all namespaces; what is meant where no namespace is given.
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    all_namespaces: bool,
}

/// Prints both.
pub(super) fn run(command: &ListCommand) -> Result<ExitCode> {
    let adapters = NAMES.map(|(name, what)| vec![name.to_owned(), what.to_owned()]);
    print(&["ADAPTER", "FOR"], &adapters);
    let bindings = awaited(read(command))?;
    let bindings = match bindings {
        Ok(bindings) => bindings,
        Err(error) => {
            return Err(error.context("the employers that are served cannot be read"));
        }
    };
    println!();
    if bindings.is_empty() {
        println!(
            "No employer is served: linchpin consist enable serves Services with the label kusionstack.io/control=true."
        );
        return Ok(ExitCode::SUCCESS);
    }
    print(&["EMPLOYER", "ADAPTER", "ATTACHED", "READY", "MESSAGE"], &bindings);
    Ok(ExitCode::SUCCESS)
}

async fn read(command: &ListCommand) -> Result<Vec<Vec<String>>> {
    let (client, _) = command.connection.open().await?;
    let path = match &command.namespace {
        Some(namespace) => format!("/apis/linchpin.dev/v1alpha1/namespaces/{namespace}/consistbindings"),
        None => "/apis/linchpin.dev/v1alpha1/consistbindings".to_owned(),
    };
    let request = Request::get(path).body(Vec::new()).context("asking for ConsistBindings")?;
    let list: Value = client.request(request).await.context("asking for ConsistBindings")?;
    let rows = list["items"].as_array().into_iter().flatten().map(|binding| {
        let text = |path: &str| binding.pointer(path).and_then(Value::as_str).unwrap_or("-").to_owned();
        let conditions = binding.pointer("/status/conditions").and_then(Value::as_array);
        let ready = conditions.into_iter().flatten().find(|condition| condition["type"] == "Ready");
        let ready = ready.and_then(|ready| ready["status"].as_str()).unwrap_or("Unknown").to_owned();
        vec![
            text("/spec/key"),
            text("/spec/adapter"),
            text("/status/attached"),
            ready,
            text("/status/message"),
        ]
    });
    Ok(rows.collect())
}

/// A table whose columns are as wide as they must be.
fn print(head: &[&str], rows: &[Vec<String>]) {
    let head: Vec<String> = head.iter().map(|word| (*word).to_owned()).collect();
    let width = |column: usize| {
        let lengths = std::iter::once(&head).chain(rows).map(|row| row[column].chars().count());
        lengths.max().unwrap_or_default()
    };
    for row in std::iter::once(&head).chain(rows) {
        let cells =
            row.iter().enumerate().map(|(column, cell)| format!("{cell:<width$}", width = width(column)));
        println!("{}", output::harmless(cells.collect::<Vec<_>>().join("  ").trim_end()));
    }
}
