//! The binary `linchpin`: see [`cli`] for its commands.

mod cli;
mod local;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::run().unwrap_or_else(|error| {
        eprintln!("linchpin: {error:#}");
        ExitCode::FAILURE
    })
}
