//! The binary `linchpin`: see [`cli`] for its commands.

mod check;
mod cli;
mod completion;
mod crds;
mod demo;
mod examples;
mod explain;
mod live;
mod local;
mod manifests;
mod operator;
mod rbac;
mod tree;
mod version;

use std::{panic, process::ExitCode};

use tikv_jemallocator::Jemalloc;

/// An operator's turn makes and drops thousands of small values.
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

fn main() -> ExitCode {
    panic::set_hook(Box::new(|found| {
        let message = found.payload_as_str().unwrap_or("no message");
        let place = found.location().map(ToString::to_string).unwrap_or_default();
        eprintln!("{}: internal error: {message} at {place}; please report it", cli::program());
    }));
    let outcome = panic::catch_unwind(cli::run).unwrap_or(Ok(ExitCode::FAILURE));
    outcome.unwrap_or_else(|error| {
        eprintln!("{}: {error:#}", cli::program());
        ExitCode::FAILURE
    })
}
