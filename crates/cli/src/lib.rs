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
mod output;
mod plan;
mod progress;
mod rbac;
mod tree;
mod version;

use std::{
    panic::{self, AssertUnwindSafe, Location},
    process::{self, ExitCode},
};

use linchpin_doors::Registry;

/// How the standard library begins to say that standard output takes nothing more.
const UNHEARD: &str = "failed printing to stdout: ";

/// What is told of a defect of the program itself.
fn internal_error(message: &str, place: Option<&Location<'_>>) -> String {
    let place = place.map(|place| format!("{}:{}", place.file(), place.line())).unwrap_or_default();
    format!("internal error: {message} at {place}; please report it")
}

/// Does what the command line says, for these kinds.
pub fn main(kinds: &Registry) -> ExitCode {
    panic::set_hook(Box::new(|found| {
        let message = found.payload_as_str().unwrap_or("no message");
        match message.strip_prefix(UNHEARD) {
            // The reader of the pipe has gone.
            Some(why) if why.starts_with("Broken pipe") => process::exit(0),
            Some(why) => {
                output::note_of_program(&format!("writing to standard output: {why}"));
                process::exit(1);
            }
            None => output::note_of_program(&internal_error(message, found.location())),
        }
    }));
    let run = AssertUnwindSafe(|| cli::run(kinds));
    let outcome = panic::catch_unwind(run).unwrap_or(Ok(ExitCode::FAILURE));
    outcome.unwrap_or_else(|error| {
        output::note_of_program(&cli::failure_line(&output::words_of(&error)));
        ExitCode::FAILURE
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_defect_is_told_with_its_file_and_line() {
        let place = Location::caller();
        let told = format!("internal error: no at {}:{}; please report it", place.file(), place.line());
        assert_eq!(internal_error("no", Some(place)), told);
    }
}
