//! The commands of `linchpin`, one variant each; what a command does is in the module of its name.
//!
//! Exit codes: 0 done, 1 failed, 2 the command line makes no sense. Either failure is one line on standard error.

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand, error::ErrorKind};

use crate::{crds, demo, explain, local, operator, rbac, tree, version};

/// The exit code for a command line that makes no sense.
const USAGE: u8 = 2;

/// Holds every change until what it depends on is really there.
#[derive(Debug, Parser)]
#[command(name = "linchpin", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Operator(Box<operator::OperatorCommand>),
    /// Print the custom resource definitions as YAML.
    Crds,
    Tree(tree::TreeCommand),
    Explain(explain::ExplainCommand),
    Rbac(rbac::RbacCommand),
    Local(local::LocalCommand),
    /// Start a local Kubernetes with the operator and watch a shop open, one dependency after another.
    Demo,
    /// Print the version.
    Version,
}

/// A command line that parses but cannot be meant.
#[derive(Debug)]
pub(crate) struct Usage(pub(crate) String);

/// Parses the command line and does what it says.
pub(crate) fn run() -> Result<ExitCode> {
    let command = match Cli::try_parse() {
        Ok(cli) => cli.command,
        Err(error) => return Ok(not_understood(&error)),
    };
    match command {
        Command::Operator(command) => match operator::settings(*command) {
            Ok(settings) => operator::run(settings),
            Err(Usage(reason)) => Ok(refuse(&reason, "linchpin operator --help")),
        },
        Command::Crds => crds::run(),
        Command::Tree(command) => tree::run(&command),
        Command::Explain(command) => match explain::reference(&command) {
            Ok(reference) => explain::run(&command, &reference),
            Err(Usage(reason)) => Ok(refuse(&reason, "linchpin explain --help")),
        },
        Command::Rbac(command) => rbac::run(&command),
        Command::Local(command) => local::run(command),
        Command::Demo => demo::run(),
        Command::Version => {
            version::run();
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Help and version are answers and printed as they are; a mistake is reported in one line.
fn not_understood(error: &clap::Error) -> ExitCode {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            let _ = error.print();
            ExitCode::SUCCESS
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = error.print();
            ExitCode::from(USAGE)
        }
        _ => refuse(&first_paragraph(&error.to_string()), "linchpin --help"),
    }
}

fn refuse(reason: &str, help: &str) -> ExitCode {
    eprintln!("linchpin: {reason} (see {help})");
    ExitCode::from(USAGE)
}

/// clap's messages go on with usage and hints after an empty line.
fn first_paragraph(message: &str) -> String {
    let lines = message.lines().take_while(|line| !line.is_empty()).map(str::trim);
    let text = lines.collect::<Vec<_>>().join(" ");
    text.strip_prefix("error: ").unwrap_or(&text).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        <Cli as clap::CommandFactory>::command().debug_assert();
    }

    #[test]
    fn a_mistake_is_told_in_one_line() {
        let error = Cli::try_parse_from(["linchpin", "operator", "--no-such-flag"]).unwrap_err();
        assert_eq!(first_paragraph(&error.to_string()), "unexpected argument '--no-such-flag' found");
        let error = Cli::try_parse_from(["linchpin", "operator", "--concurrency=none"]).unwrap_err();
        assert!(!first_paragraph(&error.to_string()).contains('\n'));
    }
}
