//! `linchpin check`: may Linchpin be installed here, is it installed and well, may it go?
//!
//! Everything is read with the caller's rights ([`facts`]) and judged by pure functions ([`judge`]). What could not be read is
//! `skipped`, with the reason; only what was seen to be wrong fails.

mod facts;
mod judge;
mod report;

use std::{
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use linchpin_doors::Registry;
use linchpin_operator::rights::NAMESPACE;
use linchpin_words::Period;

use crate::{asked::namespace, live::Connection, operator::awaited, progress};
use report::{Category, document, failures, text_of};

/// How often it is looked again with --wait.
const PAUSE: Duration = Duration::from_secs(2);

/// Say whether Linchpin is installed and well; before, whether it may be installed; after, whether it may go.
#[derive(Debug, Args)]
pub(crate) struct CheckCommand {
    /// Before it is installed: may it be, and by you?
    #[arg(long, conflicts_with = "pre_uninstall")]
    pre: bool,
    /// Before it is uninstalled: what would hang without an operator?
    #[arg(long)]
    pre_uninstall: bool,
    /// The namespace of the operator.
    #[arg(short, long, default_value = NAMESPACE, value_parser = namespace)]
    namespace: String,
    /// How it is printed: text; json; short, only what is not well.
    #[arg(short, long, value_enum, default_value = "text")]
    output: Output,
    /// Look again until nothing fails, for so long.
    #[arg(long, value_name = "DURATION", default_value = "0s")]
    wait: Period,
    /// Use the ServiceAccount of the pod that this runs in.
    #[arg(long, conflicts_with_all = ["kubeconfig", "context", "user", "groups", "request_timeout"])]
    in_cluster: bool,
    #[command(flatten)]
    connection: Connection,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    Text,
    Json,
    Short,
}

/// What is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CheckMode {
    /// Whether it may be installed.
    Pre,
    /// Whether it is installed and well.
    Installed,
    /// Whether it may be uninstalled.
    PreUninstall,
}

/// Looks, prints, and fails if a check fails.
pub(crate) fn run(command: &CheckCommand, kinds: &Registry) -> Result<ExitCode> {
    let mode = match (command.pre, command.pre_uninstall) {
        (true, _) => CheckMode::Pre,
        (false, true) => CheckMode::PreUninstall,
        (false, false) => CheckMode::Installed,
    };
    let categories = awaited(progress::shown("looking at the cluster", look(command, mode, kinds)))?;
    match command.output {
        Output::Json => println!("{}", serde_json::to_string_pretty(&document(&categories))?),
        Output::Text => print!("{}", text_of(&categories, false)),
        Output::Short => print!("{}", text_of(&categories, true)),
    }
    match failures(&categories).as_slice() {
        [] => Ok(ExitCode::SUCCESS),
        [one] => bail!("{one} failed"),
        several => bail!("{} checks failed: {}", several.len(), several.join(", ")),
    }
}

async fn look(command: &CheckCommand, mode: CheckMode, kinds: &Registry) -> Vec<Category> {
    let until = Instant::now() + Duration::from(command.wait);
    loop {
        let facts = facts::read(command, mode, kinds.definitions()).await;
        let categories = judge::judge(mode, &command.namespace, &facts);
        if failures(&categories).is_empty() || Instant::now() + PAUSE > until {
            return categories;
        }
        tokio::time::sleep(PAUSE).await;
    }
}
