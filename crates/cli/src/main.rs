//! The binary `linchpin`: see [`cli`] for its commands.

mod cli;
mod crds;
mod demo;
mod local;
mod operator;
mod version;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::run().unwrap_or_else(|error| {
        eprintln!("linchpin: {error:#}");
        ExitCode::FAILURE
    })
}
