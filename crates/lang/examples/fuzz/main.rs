//! Throws broken input at everything that reads text from a spec, on the stable toolchain.
//!
//! `cargo run --profile fast -p linchpin-lang --example fuzz -- --target cel --seconds 60 [--seed 1]` mutates the
//! committed corpus. For each input it checks: no panic, no stack overflow on 2 MiB, no run over a second, no more
//! than 64 MiB allocated, and the same result twice. Input number n of a seed is always the same, so a worker process
//! that dies (a stack overflow kills it) or hangs is noticed by the process that watches it, which saves the input and
//! goes on with the next. `--replay FILE` runs one saved input. The target `broken` checks the runner: all five of its
//! faults must be found.

mod mutate;
mod targets;
mod watch;
mod worker;

use std::path::PathBuf;
use std::process::ExitCode;

use targets::Target;

/// What was asked for on the command line.
struct Options {
    target: &'static Target,
    seconds: u64,
    seed: u64,
    failures: PathBuf,
    replay: Option<PathBuf>,
    /// Set for the process that does the work: where it says which input it is at, and the first one.
    worker: Option<(PathBuf, u64)>,
}

fn main() -> ExitCode {
    let outcome = options().and_then(|options| {
        if let Some(file) = &options.replay {
            return worker::replay(&options, file);
        }
        match &options.worker {
            Some((progress, first)) => worker::work(&options, progress, *first),
            None => watch::watch(&options),
        }
    });
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(problem) => {
            eprintln!("fuzz: {problem}");
            ExitCode::from(2)
        }
    }
}

fn options() -> Result<Options, String> {
    let mut arguments = std::env::args().skip(1);
    let mut options = Options {
        target: &targets::TARGETS[0],
        seconds: 60,
        seed: 1,
        failures: std::env::temp_dir().join("linchpin-fuzz"),
        replay: None,
        worker: None,
    };
    let mut chosen = false;
    while let Some(name) = arguments.next() {
        let value = arguments.next().ok_or_else(|| format!("{name} needs a value"))?;
        let number = || value.parse::<u64>().map_err(|_| format!("{name} needs a number, not {value:?}"));
        match name.as_str() {
            "--target" => {
                let known = || targets::TARGETS.map(|target| target.name).join(", ");
                options.target = targets::TARGETS
                    .iter()
                    .find(|target| target.name == value)
                    .ok_or_else(|| format!("unknown target {value:?}; use one of {}", known()))?;
                chosen = true;
            }
            "--seconds" => options.seconds = number()?,
            "--seed" => options.seed = number()?,
            "--failures" => options.failures = PathBuf::from(value),
            "--replay" => options.replay = Some(PathBuf::from(value)),
            "--worker" => {
                let (first, progress) = value.split_once(':').ok_or("--worker needs FIRST:FILE")?;
                let first = first.parse().map_err(|_| "--worker needs FIRST:FILE".to_owned())?;
                options.worker = Some((PathBuf::from(progress), first));
            }
            _ => {
                return Err(format!(
                    "unknown option {name}; use --target, --seconds, --seed, --failures, --replay"
                ));
            }
        }
    }
    if chosen { Ok(options) } else { Err("--target is needed".to_owned()) }
}
