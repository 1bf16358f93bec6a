//! The process that does the work: runs input after input on a thread with a 2 MiB stack and checks each.

use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use peak_alloc::PeakAlloc;

use crate::Options;
use crate::mutate::Corpus;
use crate::targets::Target;
use crate::watch::save;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

const STACK: usize = 2 << 20;
const MAX_TIME: Duration = Duration::from_secs(1);
const MAX_MEMORY: usize = 64 << 20;

/// Runs inputs from `first` on until the time is over; false when one of them failed.
pub(crate) fn work(options: &Options, progress: &Path, first: u64) -> Result<bool, String> {
    let corpus = Corpus::read(options.target)?;
    let progress = std::fs::OpenOptions::new()
        .write(true)
        .open(progress)
        .map_err(|error| format!("cannot write the progress file: {error}"))?;
    let (target, seed, failures) = (options.target, options.seed, options.failures.clone());
    let end = Instant::now() + Duration::from_secs(options.seconds);
    on_a_small_stack(move || {
        let mut clean = true;
        let mut number = first;
        while Instant::now() < end {
            progress.write_all_at(&number.to_le_bytes(), 0).map_err(|error| error.to_string())?;
            let input = corpus.input(seed, number);
            if let Err(problem) = check(target, &input) {
                save(target, &failures, &input, &format!("input {number}: {problem}"))?;
                clean = false;
            }
            number += 1;
        }
        progress.write_all_at(&number.to_le_bytes(), 0).map_err(|error| error.to_string())?;
        Ok(clean)
    })
}

/// Runs one saved input and tells what came out.
pub(crate) fn replay(options: &Options, file: &Path) -> Result<bool, String> {
    let input =
        std::fs::read_to_string(file).map_err(|error| format!("cannot read {}: {error}", file.display()))?;
    let target = options.target;
    on_a_small_stack(move || match check(target, &input) {
        Ok(result) => {
            println!("{}: fine: {result}", target.name);
            Ok(true)
        }
        Err(problem) => {
            println!("{}: {problem}", target.name);
            Ok(false)
        }
    })
}

fn on_a_small_stack(body: impl FnOnce() -> Result<bool, String> + Send + 'static) -> Result<bool, String> {
    // The panics looked for are told by what is saved; their messages would only be noise.
    std::panic::set_hook(Box::new(|_| ()));
    let thread =
        std::thread::Builder::new().stack_size(STACK).spawn(body).map_err(|error| error.to_string())?;
    thread.join().unwrap_or_else(|_| Err("the worker's own thread panicked".to_owned()))
}

/// The time this thread has been at work: the machine may be busy with other things, and that is no fault of an input.
/// Where the system does not tell, the time that went by.
fn used_time() -> Duration {
    static START: OnceLock<Instant> = OnceLock::new();
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    match told.and_then(|told| told.split(' ').next()?.parse().ok()) {
        Some(nanoseconds) => Duration::from_nanos(nanoseconds),
        None => START.get_or_init(Instant::now).elapsed(),
    }
}

/// Runs an input twice and checks all that is promised; gives the result.
fn check(target: &Target, input: &str) -> Result<String, String> {
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    let mut start = used_time();
    let run = || {
        catch_unwind(AssertUnwindSafe(|| (target.run)(input))).map_err(|panic| {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|&text| text.to_owned()));
            format!("panicked: {}", text.unwrap_or_default())
        })
    };
    let first = run()?;
    let used = MEMORY.peak_usage().saturating_sub(before);
    if used > MAX_MEMORY {
        return Err(format!("took {} MiB", used >> 20));
    }
    let mut took = used_time().saturating_sub(start);
    for _ in 0..2 {
        // Caches may be cold: only an input that is slow again and again is slow.
        if took > MAX_TIME {
            start = used_time();
            run()?;
            took = took.min(used_time().saturating_sub(start));
        }
    }
    if took > MAX_TIME {
        return Err(format!("took {} ms", took.as_millis()));
    }
    if run()? != first {
        return Err("gave two results for the same input".to_owned());
    }
    Ok(first)
}
