//! `linchpin plan -f FILE|DIR|-`: whether everything that Syncs depend on is provided by something, before anything is
//! applied.
//!
//! One line for each dependency, then the order in which the Syncs go, then circles. Without a cluster only what is given
//! counts; with one, what is there counts too. Exit 0 if all is linked, 1 if not.

mod fetch;
mod link;
mod live;

use std::{
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use linchpin_lang::template::parse_documents;
use linchpin_words::KindWord;
use serde_json::Value;

use self::{
    link::{Given, Link, Verdict},
    live::Live,
};
use crate::{live::Connection, operator::awaited};

/// Say what the Syncs in these manifests depend on, who provides it, and in which order they go.
#[derive(Debug, Args)]
pub(crate) struct PlanCommand {
    /// A file or a directory with manifests, or - for standard input; may be repeated.
    #[arg(short, long = "filename", required = true, num_args = 1.., value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The namespace of objects that name none.
    #[arg(short, long, default_value = "default")]
    namespace: String,
    /// Fetch the sources that are neither written in a Sync nor given: http and oci, as you, from this machine.
    #[arg(long)]
    fetch: bool,
    #[command(flatten)]
    connection: Connection,
}

/// Reads, links and prints.
pub(crate) fn run(command: &PlanCommand) -> Result<ExitCode> {
    let mut documents = Vec::new();
    for file in &command.files {
        read(file, &mut documents)?;
    }
    let mut given = Given::new(documents, &command.namespace)?;
    if given.is_empty() {
        bail!("there is no Sync in what was given with -f");
    }
    let asked = command.connection.kubeconfig.is_some() || command.connection.context.is_some();
    let links =
        if asked || command.fetch { awaited(look(command, &mut given, asked))?? } else { given.links() };
    print!("{}", given.shown(&links));
    let linked = links.iter().all(|link| link.verdict != Verdict::None);
    Ok(if linked { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Reads the sources that were not given, from the cluster and from servers, and links with what the cluster has.
async fn look(command: &PlanCommand, given: &mut Given, asked: bool) -> Result<Vec<Link>> {
    let live = if asked {
        let (client, _) = command.connection.open().await?;
        Some(Live::open(client).await?)
    } else {
        None
    };
    for unseen in given.unseen() {
        let kept = match (&unseen.kept, &live) {
            (Some((kind, name)), Some(live)) => live.get(&KindWord::new(kind), &unseen.namespace, name).await,
            _ => None,
        };
        if let Some(kept) = kept {
            given.supply_kept(&unseen, &kept);
        } else if unseen.kept.is_none() && command.fetch {
            let secret = match &unseen.secret {
                Some(name) => match (given.secret(&unseen.namespace, name), &live) {
                    (None, Some(live)) => live.get(&KindWord::new("secret"), &unseen.namespace, name).await,
                    (known, _) => known,
                },
                None => None,
            };
            match fetch::objects(&unseen.source, secret.as_ref()).await {
                Ok(objects) => given.supply(&unseen, &objects),
                Err(problem) => eprintln!("{}: its source cannot be read: {problem}", unseen.sync),
            }
        }
    }
    let mut links = given.links();
    if let Some(live) = &live {
        for link in &mut links {
            live.look(link).await;
        }
    }
    Ok(links)
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
