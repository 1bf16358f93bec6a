//! `linchpin` with two further kinds, to show what adding one takes; `tests/it/fourth_door.rs` runs it.
//!
//! A door is a file of types ([`types`]), a folder that compiles objects and makes their status ([`greeting`]) and a line
//! where it is registered. A kind that decides by a function of its own ([`visitors`]) is a subject and a line.

mod greeting;
mod types;
mod visitors;

use std::{process::ExitCode, sync::Arc};

use linchpin_doors::registry::door;

fn main() -> ExitCode {
    let kinds =
        linchpin_doors::registry().with(door::<greeting::GreetingDoor>()).with(Arc::new(visitors::Visitors));
    linchpin_cli::main(&kinds)
}
