//! The binary `linchpin`.

use std::process::ExitCode;

use tikv_jemallocator::Jemalloc;

/// An operator's turn makes and drops thousands of small values.
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

fn main() -> ExitCode {
    linchpin_cli::main(&linchpin_doors::registry())
}
