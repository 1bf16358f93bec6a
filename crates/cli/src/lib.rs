//! The command `linchpin`: see `cli` for its commands.
//!
//! A library, so that a program with further kinds is one line: [`main`] with its own registry.

mod asked;
mod check;
mod cli;
mod cluster_reader;
mod completion;
mod consist;
mod crds;
#[cfg(feature = "local")]
mod demo;
mod examples;
mod explain;
mod files;
mod live;
#[cfg(feature = "local")]
mod local;
mod manifests;
mod operator;
mod orders;
mod plan;
mod progress;
mod rbac;
mod tree;
mod version;

use std::{
    panic::{self, AssertUnwindSafe},
    process::{self, ExitCode},
};

use linchpin_doors::Registry;

/// How the standard library says that standard output is closed.
const UNHEARD: &str = "failed printing to stdout: Broken pipe";

/// Does what the command line says, for these kinds.
pub fn main(kinds: &Registry) -> ExitCode {
    panic::set_hook(Box::new(|found| {
        let message = found.payload_as_str().unwrap_or("no message");
        if message.starts_with(UNHEARD) {
            // The reader of the pipe has gone.
            process::exit(0);
        }
        let place = found.location().map(ToString::to_string).unwrap_or_default();
        eprintln!("{}: internal error: {message} at {place}; please report it", cli::program());
    }));
    let run = AssertUnwindSafe(|| cli::run(kinds));
    let outcome = panic::catch_unwind(run).unwrap_or(Ok(ExitCode::FAILURE));
    outcome.unwrap_or_else(|error| {
        eprintln!("{}: {}", cli::program(), cli::failure_line(&format!("{error:#}")));
        ExitCode::FAILURE
    })
}
