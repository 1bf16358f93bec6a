//! The process that watches: starts a worker, notices when it dies or hangs, saves the input that did it, goes on.

use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use crate::Options;
use crate::mutate::Corpus;
use crate::targets::Target;

/// How long a worker may stay at one input before it is taken for hanging; a slow one is told by the worker itself.
const MAX_SILENCE: Duration = Duration::from_secs(20);
/// After so many dead workers it is time to look at what they left.
const MAX_DEATHS: usize = 10;

/// Keeps workers busy until the time is over; false when an input failed.
pub(crate) fn watch(options: &Options) -> Result<bool, String> {
    let target = options.target;
    let corpus = Corpus::read(target)?;
    std::fs::create_dir_all(&options.failures)
        .map_err(|error| format!("cannot make the failures folder: {error}"))?;
    let progress = options.failures.join(format!("{}-{}.progress", target.name, std::process::id()));
    let start = Instant::now();
    let end = start + Duration::from_secs(options.seconds);
    let (mut clean, mut deaths, mut next) = (true, 0, 0_u64);
    while Instant::now() < end && deaths < MAX_DEATHS {
        std::fs::write(&progress, next.to_le_bytes()).map_err(|error| error.to_string())?;
        let seconds = (end - Instant::now()).as_secs().max(1);
        let mut worker = Command::new(std::env::current_exe().map_err(|error| error.to_string())?)
            .args(["--target", target.name, "--seconds", &seconds.to_string()])
            .args(["--seed", &options.seed.to_string(), "--failures"])
            .arg(&options.failures)
            .args(["--worker", &format!("{next}:{}", progress.display())])
            .spawn()
            .map_err(|error| format!("cannot start a worker: {error}"))?;
        let status = attend(&mut worker, &progress)?;
        next = reached(&progress);
        match status.and_then(|status| status.code()) {
            Some(0) => {}
            Some(1) => clean = false,
            Some(code) => return Err(format!("the worker ended with {code}")),
            None => {
                let problem = if status.is_some() { "killed the process" } else { "never came back" };
                save(
                    target,
                    &options.failures,
                    &corpus.input(options.seed, next),
                    &format!("input {next}: {problem}"),
                )?;
                (clean, deaths, next) = (false, deaths + 1, next + 1);
            }
        }
    }
    let _ = std::fs::remove_file(&progress);
    let verdict = if clean { "clean" } else { "FAILED" };
    println!(
        "{}: {verdict}: {next} inputs in {} s, seed {}",
        target.name,
        start.elapsed().as_secs(),
        options.seed
    );
    Ok(clean)
}

/// Waits for a worker; `None` when it hung and was ended.
fn attend(worker: &mut Child, progress: &Path) -> Result<Option<ExitStatus>, String> {
    let (mut at, mut since) = (0, Instant::now());
    loop {
        if let Some(status) = worker.try_wait().map_err(|error| error.to_string())? {
            return Ok(Some(status));
        }
        let now = reached(progress);
        if now != at {
            (at, since) = (now, Instant::now());
        }
        if since.elapsed() > MAX_SILENCE {
            worker.kill().and_then(|()| worker.wait()).map_err(|error| error.to_string())?;
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// The number of the input that a worker is at.
fn reached(progress: &Path) -> u64 {
    let bytes = std::fs::read(progress).ok().and_then(|bytes| <[u8; 8]>::try_from(bytes).ok());
    bytes.map_or(0, u64::from_le_bytes)
}

/// Keeps an input that failed, and says how to run it again.
pub(crate) fn save(target: &Target, folder: &Path, input: &str, problem: &str) -> Result<(), String> {
    let hash = input.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let file = folder.join(format!("{}-{hash:016x}", target.name));
    std::fs::write(&file, input).map_err(|error| format!("cannot save an input: {error}"))?;
    println!("{}: {problem}", target.name);
    println!(
        "  cargo run --profile fast -p linchpin-lang --example fuzz -- --target {} --replay {}",
        target.name,
        file.display()
    );
    Ok(())
}
