//! The commands of `linchpin`, one variant each; what a command does is in the module of its name.

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::local;

/// Holds every change until what it depends on is really there.
#[derive(Debug, Parser)]
#[command(name = "linchpin", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Local(local::LocalCommand),
}

/// Parses the command line and does what it says.
pub(crate) fn run() -> Result<ExitCode> {
    match Cli::parse().command {
        Command::Local(command) => local::run(command),
    }
}
