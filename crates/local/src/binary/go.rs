//! Runs `go`, says how long it has been at it, and words its failures.
//!
//! Progress goes to standard error itself, not through the print macros, which a test harness would swallow: a first
//! build in a test must not look like a hang.

use std::{
    collections::VecDeque,
    io::{self, BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

use crate::error::{Error, Result};

/// The oldest Go that Kubernetes 1.36 can be built with.
const MINIMUM: &str = "1.26";
const MINIMUM_NUMBERS: (u32, u32) = (1, 26);
const TAIL: usize = 30;

/// One run of `go build` or `go install`.
pub(super) struct Build<'a> {
    pub(super) what: &'a str,
    pub(super) expect: &'a str,
    pub(super) dir: &'a Path,
    pub(super) arguments: &'a [&'a str],
    /// Given after the arguments: where `go build -o` writes to.
    pub(super) target: Option<&'a Path>,
    /// Where `go install` writes to.
    pub(super) bin: Option<&'a Path>,
}

/// Go's version, if it is new enough.
pub(super) fn version() -> Result<String> {
    let output = Command::new("go").args(["env", "GOVERSION"]).env("GOTOOLCHAIN", "local").output();
    let output = output.map_err(missing)?;
    let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if is_new_enough(&version) {
        Ok(version)
    } else {
        Err(Error::GoTooOld { found: version, minimum: MINIMUM })
    }
}

/// The directory into which `go` unpacked a module.
pub(super) fn module_directory(module: &str) -> Result<PathBuf> {
    let output = Command::new("go").args(["mod", "download", "-json", module]).output().map_err(missing)?;
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    answer.get("Dir").and_then(|dir| dir.as_str()).map(PathBuf::from).ok_or_else(|| Error::Build {
        what: module.to_owned(),
        output: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}

impl Build<'_> {
    pub(super) fn run(&self) -> Result<()> {
        let mut command = Command::new("go");
        command.args(self.arguments).args(self.target).current_dir(self.dir);
        command.env("CGO_ENABLED", "0").env("GOWORK", "off").env("GOFLAGS", "-mod=readonly -buildvcs=false");
        // Cross-compiling settings of the user would make programs that do not run here.
        command.env_remove("GOOS").env_remove("GOARCH");
        if let Some(bin) = self.bin {
            command.env("GOBIN", bin);
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        say(&format!("building {} ({})", self.what, self.expect));
        let begun = Instant::now();
        let mut child = command.spawn().map_err(missing)?;
        let output = Output::default();
        let reader = child.stderr.take().map(|stderr| {
            let output = output.clone();
            thread::spawn(move || output.read(BufReader::new(stderr)))
        });
        let mut next = Duration::from_secs(10);
        let status = loop {
            if let Some(status) = child.try_wait().map_err(Error::io("waiting for", "go"))? {
                break status;
            }
            if begun.elapsed() >= next {
                next += Duration::from_secs(15);
                let packages = output.lock().count;
                say(&format!(
                    "  {}: {} so far, {packages} packages compiled",
                    self.what,
                    clock(begun.elapsed())
                ));
            }
            thread::sleep(Duration::from_millis(100));
        };
        if let Some(reader) = reader {
            let _ = reader.join();
        }
        if status.success() {
            say(&format!("built {} in {}", self.what, clock(begun.elapsed())));
            return Ok(());
        }
        let output = output.lock().tail.make_contiguous().join("\n");
        if output.contains("no space left on device") {
            return Err(Error::DiskFull {
                what: format!("building {}", self.what),
                path: self.dir.to_owned(),
            });
        }
        Err(Error::Build { what: self.what.to_owned(), output })
    }
}

/// What `go` has printed: the packages it named, counted, and everything else.
#[derive(Clone, Default)]
struct Output(Arc<Mutex<Printed>>);

#[derive(Default)]
struct Printed {
    count: usize,
    tail: VecDeque<String>,
}

impl Output {
    fn lock(&self) -> std::sync::MutexGuard<'_, Printed> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read(&self, lines: impl BufRead) {
        for line in lines.lines().map_while(io::Result::ok) {
            let mut printed = self.lock();
            // With -v, go prints a package's path and nothing else on a line.
            if !line.contains(' ') && !line.starts_with('#') {
                printed.count += 1;
                continue;
            }
            if printed.tail.len() == TAIL {
                printed.tail.pop_front();
            }
            printed.tail.push_back(line);
        }
    }
}

fn is_new_enough(version: &str) -> bool {
    let mut numbers = version.trim_start_matches("go").split(|character: char| !character.is_ascii_digit());
    let mut number = || numbers.next().and_then(|text| text.parse::<u32>().ok()).unwrap_or_default();
    (number(), number()) >= MINIMUM_NUMBERS
}

fn missing(source: io::Error) -> Error {
    match source.kind() {
        io::ErrorKind::NotFound => Error::GoMissing { minimum: MINIMUM },
        _ => Error::io("running", "go")(source),
    }
}

fn say(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

fn clock(elapsed: Duration) -> String {
    match (elapsed.as_secs() / 60, elapsed.as_secs() % 60) {
        (0, seconds) => format!("{seconds} s"),
        (minutes, seconds) => format!("{minutes} min {seconds:02} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn go_versions_are_compared_by_number() {
        for new in ["go1.26", "go1.26.8", "go1.27rc1", "go2.0", "go1.100.1"] {
            assert!(is_new_enough(new), "{new}");
        }
        for old in ["go1.25.9", "go1.3", "", "devel"] {
            assert!(!is_new_enough(old), "{old}");
        }
    }

    #[test]
    fn packages_are_counted_and_errors_kept() {
        let output = Output::default();
        output.read(
            "k8s.io/api\nk8s.io/client-go\n# linchpin.dev/kubernetes\n./main.go:3:1: no space left\n"
                .as_bytes(),
        );
        assert_eq!(output.lock().count, 2);
        assert_eq!(output.lock().tail, ["# linchpin.dev/kubernetes", "./main.go:3:1: no space left"]);
    }

    #[test]
    fn elapsed_time_reads_well() {
        assert_eq!(clock(Duration::from_secs(9)), "9 s");
        assert_eq!(clock(Duration::from_secs(125)), "2 min 05 s");
    }
}
