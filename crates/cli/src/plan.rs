//! `linchpin plan -f FILE|DIR|-`: whether everything that Syncs depend on is provided by something, before anything is
//! applied.
//!
//! One line for each dependency, then the order in which the Syncs go, then circles. Without a cluster only what is given
//! counts; with one, what is there counts too. Exit 0 if all is linked, 1 if not.

mod link;

use std::{
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use kube::Client;
use linchpin_lang::template::parse_documents;
use linchpin_words::reference::built_in;
use serde_json::Value;

use self::link::{Given, Link, Verdict};
use crate::{live::Connection, operator::block_on};

/// Say what the Syncs in these manifests depend on, who provides it, and in which order they go.
#[derive(Debug, Args)]
pub(crate) struct PlanCommand {
    /// A file or a directory with manifests, or - for standard input; may be repeated.
    #[arg(short, long = "filename", required = true, num_args = 1.., value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The namespace of objects that name none.
    #[arg(short, long, default_value = "default")]
    namespace: String,
    #[command(flatten)]
    connection: Connection,
}

/// Reads, links and prints.
pub(crate) fn run(command: &PlanCommand) -> Result<ExitCode> {
    let mut documents = Vec::new();
    for file in &command.files {
        read(file, &mut documents)?;
    }
    let given = Given::new(documents, &command.namespace)?;
    if given.is_empty() {
        bail!("there is no Sync in what was given with -f");
    }
    let mut links = given.links();
    if command.connection.kubeconfig.is_some() || command.connection.context.is_some() {
        block_on(async {
            let (client, _) = command.connection.open().await?;
            for link in links.iter_mut().filter(|link| link.verdict == Verdict::None) {
                if is_live(&client, link).await {
                    link.verdict = Verdict::Ok("in the cluster".to_owned());
                }
            }
            Ok::<(), anyhow::Error>(())
        })??;
    }
    print!("{}", given.shown(&links));
    let linked = links.iter().all(|link| link.verdict != Verdict::None);
    Ok(if linked { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Whether the cluster has what a dependency names.
async fn is_live(client: &Client, link: &Link) -> bool {
    let Some((word, namespace, name)) = &link.object else { return false };
    let path = match built_in(word) {
        Some(known) => {
            let gvk = known.gvk();
            let root = if gvk.group.is_empty() { "/api" } else { "/apis" };
            let place = if known.namespaced { format!("/namespaces/{namespace}") } else { String::new() };
            format!("{root}/{}{place}/{}/{name}", gvk.api_version(), known.plural)
        }
        None if word.word == "sync" => {
            format!("/apis/linchpin.dev/v1alpha1/namespaces/{namespace}/syncs/{name}")
        }
        None if word.word == "capability" => format!("/apis/linchpin.dev/v1alpha1/capabilities/{name}"),
        None => return false,
    };
    let Ok(request) = http::Request::get(path).body(Vec::new()) else { return false };
    client.request::<Value>(request).await.is_ok()
}

/// Reads a file, a directory or standard input.
fn read(path: &Path, documents: &mut Vec<Value>) -> Result<()> {
    let label = path.display().to_string();
    if path.is_dir() {
        let entries = fs::read_dir(path).with_context(|| format!("reading {label}"))?;
        let mut entries: Vec<PathBuf> =
            entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, io::Error>>()?;
        entries.sort();
        for entry in entries {
            let manifest = entry.extension().and_then(|word| word.to_str());
            if entry.is_dir() || manifest.is_some_and(|word| ["yaml", "yml", "json"].contains(&word)) {
                read(&entry, documents)?;
            }
        }
        return Ok(());
    }
    let text = if path == Path::new("-") {
        let mut text = String::new();
        io::stdin().read_to_string(&mut text).context("reading standard input")?;
        text
    } else {
        fs::read_to_string(path).with_context(|| format!("reading {label}"))?
    };
    let found = parse_documents(&label, &text).map_err(|error| {
        let (line, column) = error.position();
        anyhow!("{label}: at line {line} column {column}: {}", error.message())
    })?;
    documents.extend(found);
    Ok(())
}
