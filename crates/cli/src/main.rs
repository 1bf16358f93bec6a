//! The binary `linchpin`: see [`cli`] for its commands.

mod cli;
mod crds;
mod demo;
mod explain;
mod live;
mod local;
mod operator;
mod rbac;
mod tree;
mod version;

use std::process::ExitCode;

use tikv_jemallocator::Jemalloc;

/// An operator's turn makes and drops thousands of small values.
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

fn main() -> ExitCode {
    cli::run().unwrap_or_else(|error| {
        eprintln!("linchpin: {error:#}");
        ExitCode::FAILURE
    })
}
