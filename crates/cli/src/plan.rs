//! `linchpin plan -f FILE|DIR|-`: whether everything that Syncs depend on is provided by something, before anything is
//! applied.
//!
//! One line for each dependency, then the order in which the Syncs go, then circles. Without a cluster only what is given
//! counts; with one, what is there counts too. Exit 0 if all is linked, 1 if not.

mod fetch;
mod link;
mod live;
mod show;

use std::{path::PathBuf, process::ExitCode};

use anyhow::{Result, anyhow, bail};
use clap::Args;
use linchpin_lang::template::parse_documents;
use linchpin_words::KindWord;
use serde_json::Value;

use self::{
    link::{DependencyLink, LinkVerdict, PlanManifests, UnseenSync},
    live::LiveCluster,
};
use crate::{files, live::Connection, operator::awaited, output, progress};

/// Say what the Syncs in these manifests depend on, who provides it, and in which order they go.
#[derive(Debug, Args)]
pub(crate) struct PlanCommand {
    /// A file or directory with manifests, or - for standard input; may be repeated, or separated by commas.
    #[arg(short, long = "filename", required = true, num_args = 1.., value_delimiter = ',', value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Read the directories below those of -f too.
    #[arg(short = 'R', long)]
    recursive: bool,
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
    let mut given = PlanManifests::new(documents(command)?, &command.namespace)?;
    if given.is_empty() {
        bail!("there is no Sync in what was given with -f");
    }
    let asked = command.connection.kubeconfig.is_some() || command.connection.context.is_some();
    let links = if asked || command.fetch {
        awaited(progress::shown("looking at clusters and sources", look(command, &mut given, asked)))??
    } else {
        given.links()
    };
    print!("{}", given.shown(&links));
    match links.iter().filter(|link| link.verdict == LinkVerdict::None).count() {
        0 => Ok(ExitCode::SUCCESS),
        unlinked => bail!("dependencies that nothing provides: {unlinked}"),
    }
}

/// Reads the sources that were not given, from the cluster and from servers, and links with what the cluster has.
async fn look(command: &PlanCommand, given: &mut PlanManifests, asked: bool) -> Result<Vec<DependencyLink>> {
    let live = if asked {
        let (client, _) = command.connection.open().await?;
        Some(LiveCluster::open(client).await?)
    } else {
        None
    };
    for unseen in given.unseen() {
        let kept = match (&unseen.kept, &live) {
            (Some((kind, name)), Some(live)) => got(live, kind, &unseen, name).await,
            _ => None,
        };
        if let Some(kept) = kept {
            given.supply_kept(&unseen, &kept);
        } else if unseen.kept.is_none() && command.fetch {
            let secret = match &unseen.secret {
                Some(name) => match (given.secret(&unseen.namespace, name), &live) {
                    (None, Some(live)) => got(live, "secret", &unseen, name).await,
                    (known, _) => known,
                },
                None => None,
            };
            match fetch::objects(&unseen.source, secret.as_ref()).await {
                Ok(objects) => given.supply(&unseen, &objects),
                Err(problem) => not_read(&unseen, &problem),
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

/// What the source of a Sync is in, or opened with; says on standard error where it cannot be seen.
async fn got(live: &LiveCluster, kind: &str, unseen: &UnseenSync, name: &str) -> Option<Value> {
    let found = live.get(&KindWord::new(kind), &unseen.namespace, name).await;
    found.unwrap_or_else(|problem| {
        not_read(unseen, &problem);
        None
    })
}

/// Says that a source cannot be read.
fn not_read(unseen: &UnseenSync, problem: &str) {
    output::note(&format!("{}: its source cannot be read: {problem}", unseen.sync));
}

/// The documents of all files.
fn documents(command: &PlanCommand) -> Result<Vec<Value>> {
    let mut documents = Vec::new();
    for (label, text) in files::read(&command.files, command.recursive)? {
        let found = parse_documents(&label, &text).map_err(|error| {
            let (line, column) = error.position();
            anyhow!("{label}: at line {line} column {column}: {}", error.message())
        })?;
        documents.extend(found);
    }
    Ok(documents)
}
