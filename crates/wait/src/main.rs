//! `linchpin-wait`: waits until hosts answer, then ends. Put into init containers; also for people and Compose files.
//!
//! No shell, no configuration file, no async runtime: everything is in the arguments (`arguments.rs`), and probes are those
//! of the operator (`linchpin-probe`). It has no list of forbidden addresses: it acts in the user's own pod, where
//! `localhost` may be a sidecar. Exit codes: 0 ready, 1 timed out, 2 the command line makes no sense.

mod arguments;
mod wait;

use std::{
    env, fs,
    io::{self, Write},
    process::ExitCode,
    thread,
};

use nix::sys::signal::{SigSet, Signal};

use self::arguments::{Command, ValueSources};

const TIMED_OUT: u8 = 1;
const USAGE: u8 = 2;
/// What a process has that was ended by SIGTERM.
const TERMINATED: i32 = 143;

fn main() -> ExitCode {
    end_on_signals();
    let given: Result<Vec<String>, _> = env::args_os().skip(1).map(std::ffi::OsString::into_string).collect();
    let sources = ValueSources {
        variable: &|name| env::var(name).ok(),
        file: &|path| fs::read_to_string(path).map_err(|error| error.to_string()),
    };
    let command = match given {
        Ok(given) => arguments::parse(&given, &sources),
        Err(_) => Err("an argument is not UTF-8".to_owned()),
    };
    match command {
        Ok(Command::Help) => say(arguments::HELP),
        Ok(Command::Version) => say(concat!("linchpin-wait ", env!("CARGO_PKG_VERSION"))),
        Ok(Command::Wait(targets)) => {
            return if wait::all(targets, say) { ExitCode::SUCCESS } else { ExitCode::from(TIMED_OUT) };
        }
        Err(error) => {
            let _ =
                writeln!(io::stderr(), "linchpin-wait: {error}; linchpin-wait --help shows how it is used");
            return ExitCode::from(USAGE);
        }
    }
    ExitCode::SUCCESS
}

/// One line for people. Whether anybody reads it changes nothing.
fn say(line: &str) {
    let _ = writeln!(io::stdout(), "{line}");
}

/// Ends the process at once when it is asked to: the first process of a container is not ended by itself.
fn end_on_signals() {
    let signals = SigSet::from_iter([Signal::SIGTERM, Signal::SIGINT]);
    if signals.thread_block().is_ok() {
        let waits = move || {
            if signals.wait().is_ok() {
                std::process::exit(TERMINATED);
            }
        };
        // Without a thread to wait for them signals do what they always do.
        if thread::Builder::new().stack_size(64 << 10).spawn(waits).is_err() {
            let _ = signals.thread_unblock();
        }
    }
}
