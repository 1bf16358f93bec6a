//! Processes: how they are started, recognised, signalled and looked at when they fail.
//!
//! A process is known by its id *and* its start time, so that one with a recycled id is never taken for ours. Every
//! process carries the cluster's directory in an environment variable, by which the keeper finds all that belong to
//! a cluster, by whatever process they were started.

use std::{
    collections::VecDeque,
    fs::{self, File},
    io::{BufRead, BufReader, Seek, SeekFrom},
    net::{Ipv4Addr, TcpListener},
    os::{fd::OwnedFd, unix::process::CommandExt},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use nix::{
    sys::signal::{self, Signal},
    unistd::Pid,
};
use serde::{Deserialize, Serialize};

use crate::{
    Component,
    error::{Error, Result},
    paths::Directory,
};

/// The variable that marks a cluster's processes; the keeper knows it too.
pub(crate) const MARKER: &str = "LINCHPIN_LOCAL_DIR";
const TAIL: usize = 20;
/// How Go words two failures that are not the component's own.
pub(crate) const PORT_TAKEN: &str = "address already in use";
pub(crate) const DISK_FULL: &str = "no space left on device";

/// Where a process runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ProcessScope {
    /// Among the processes of the host.
    Host,
    /// In the cluster's network namespace.
    Network,
    /// On the real node: its network, mount and process namespaces.
    Node,
}

/// How to start a component; kept in the cluster's state, so that it can be started again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Launch {
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<String>,
    pub(crate) place: ProcessScope,
    /// A port of the host on which a listener is handed over as standard input.
    pub(crate) listen: Option<u16>,
    /// Whether the program does its work in a child that has a process namespace below its own, which is then what is killed
    /// and looked at.
    pub(crate) forks: bool,
}

/// The processes whose namespaces others are started in.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Holders {
    pub(crate) network: Option<ProcessIdentity>,
    pub(crate) node: Option<ProcessIdentity>,
}

/// A process that may run: its id and when it started, in clock ticks since boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ProcessIdentity {
    pid: i32,
    started: u64,
}

/// A process that was started just now, and where its log begins.
pub(crate) struct Started {
    pub(crate) child: Child,
    pub(crate) identity: ProcessIdentity,
    pub(crate) log_from: u64,
}

impl ProcessIdentity {
    /// The process that has this id now.
    pub(crate) fn of(pid: i32) -> Option<Self> {
        let stat = Stat::read(pid)?;
        stat.lives().then_some(Self { pid, started: stat.started })
    }

    pub(crate) fn pid(self) -> i32 {
        self.pid
    }

    /// Whether every thread of it is stopped.
    pub(crate) fn is_stopped(self) -> bool {
        let Ok(threads) = fs::read_dir(format!("/proc/{}/task", self.pid)) else { return false };
        let stats =
            threads.flatten().filter_map(|thread| fs::read_to_string(thread.path().join("stat")).ok());
        stats.filter_map(|text| Stat::parse(&text)).all(|stat| matches!(stat.state, 'T' | 't' | 'Z' | 'X'))
    }

    pub(crate) fn is_alive(self) -> bool {
        Self::of(self.pid) == Some(self)
    }

    /// Sends a signal, unless the process is gone.
    pub(crate) fn signal(self, signal: Signal) -> bool {
        self.is_alive() && signal::kill(Pid::from_raw(self.pid), signal).is_ok()
    }
}

impl Launch {
    pub(crate) fn on_host(program: impl Into<PathBuf>, arguments: Vec<String>) -> Self {
        Self { program: program.into(), arguments, place: ProcessScope::Host, listen: None, forks: false }
    }

    pub(crate) fn at(mut self, place: ProcessScope) -> Self {
        // A process that enters a process namespace must fork to be in it.
        self.forks |= place == ProcessScope::Node;
        self.place = place;
        self
    }

    /// Starts the component; its output is appended to its log.
    pub(crate) fn start(&self, component: Component, dir: &Directory, holders: Holders) -> Result<Started> {
        let log_path = dir.log(component);
        let log = File::options().create(true).append(true).open(&log_path);
        let log = log.map_err(Error::io("opening", &log_path))?;
        let log_from = log.metadata().map_err(Error::io("reading", &log_path))?.len();
        let errors = log.try_clone().map_err(Error::io("opening", &log_path))?;
        let mut command = self.command(holders)?;
        command.args(&self.arguments).stdout(log).stderr(errors).stdin(self.input()?);
        // A group of its own: a Ctrl-C in the terminal is not meant for the cluster.
        command.env(MARKER, dir.path()).current_dir(dir.path()).process_group(0);
        // A small control plane has little live memory, so it would collect garbage all the time: let it grow first. The
        // limit is for machines with little memory; a tighter one makes a large cluster slower with each object in it.
        command.env("GOGC", "400").env("GOMEMLIMIT", "2GiB");
        let mut child = command.spawn().map_err(Error::io("starting", &self.program))?;
        let pid = child.id().cast_signed();
        let identity = if self.forks { child_below(pid) } else { ProcessIdentity::of(pid) };
        let Some(identity) = identity else {
            let status = child.wait().map_or_else(|error| error.to_string(), |status| status.to_string());
            return Err(Error::died(component, status, tail(&log_path, log_from), dir.path()));
        };
        Ok(Started { child, identity, log_from })
    }

    fn command(&self, holders: Holders) -> Result<Command> {
        let (holder, component) = match self.place {
            ProcessScope::Host => return Ok(Command::new(&self.program)),
            ProcessScope::Network => (holders.network, Component::Network),
            ProcessScope::Node => (holders.node, Component::Node),
        };
        let holder =
            holder.filter(|identity| identity.is_alive()).ok_or(Error::ComponentDown { component })?;
        let mut command = Command::new("nsenter");
        command.arg(format!("--target={}", holder.pid)).arg("--net");
        if self.place == ProcessScope::Node {
            command.args(["--mount", "--pid"]);
        }
        command.arg("--").arg(&self.program);
        Ok(command)
    }

    fn input(&self) -> Result<Stdio> {
        let Some(port) = self.listen else {
            return Ok(Stdio::null());
        };
        let listener =
            TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(|_| Error::PortTaken { port })?;
        Ok(Stdio::from(OwnedFd::from(listener)))
    }
}

/// The last lines of a log, from an offset on, after the line that says most, should that be an earlier one.
pub(crate) fn tail(path: &Path, from: u64) -> String {
    let Ok(mut file) = File::open(path) else {
        return String::new();
    };
    if file.seek(SeekFrom::Start(from)).is_err() {
        return String::new();
    }
    let mut lines = VecDeque::new();
    let mut reason = None;
    let mut reader = BufReader::new(file);
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
        if lines.len() == TAIL {
            // A program that panics buries its reason under a trace.
            reason = reason.or(lines
                .pop_front()
                .filter(|line: &String| [PORT_TAKEN, DISK_FULL].iter().any(|phrase| line.contains(phrase))));
        }
        lines.push_back(format!("  {}", String::from_utf8_lossy(&line).trim_end()));
        line.clear();
    }
    reason.into_iter().chain(lines).collect::<Vec<_>>().join("\n")
}

/// The process that a forking program started in a process namespace below its own, as the host sees it. Go's library makes a
/// child beside it for a moment, to learn what the kernel can do.
fn child_below(parent: i32) -> Option<ProcessIdentity> {
    let deadline = Instant::now() + Duration::from_secs(5);
    let depth =
        |pid: i32| fs::read_to_string(format!("/proc/{pid}/status")).map_or(0, |status| namespaces(&status));
    loop {
        let all = fs::read_dir("/proc").ok()?.flatten();
        let mut pids = all.filter_map(|entry| entry.file_name().to_string_lossy().parse::<i32>().ok());
        let is_child = |pid: i32| Stat::read(pid).is_some_and(|stat| stat.parent == parent && stat.lives());
        let child = pids.find(|pid| is_child(*pid) && depth(*pid) > depth(parent));
        if let Some(identity) = child.and_then(ProcessIdentity::of) {
            return Some(identity);
        }
        if Instant::now() > deadline || ProcessIdentity::of(parent).is_none() {
            return None;
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// How many process namespaces a process is in, one below the other: it has an id in each.
fn namespaces(status: &str) -> usize {
    let ids = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    ids.map_or(0, |ids| ids.split_whitespace().count())
}

/// What the kernel says of a process.
struct Stat {
    state: char,
    parent: i32,
    threads: u32,
    started: u64,
}

impl Stat {
    fn read(pid: i32) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    fn parse(text: &str) -> Option<Self> {
        // The second field is the program's name in parentheses and may contain anything, parentheses too.
        let (_, rest) = text.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        Some(Self {
            state: fields.first()?.chars().next()?,
            parent: fields.get(1)?.parse().ok()?,
            threads: fields.get(17)?.parse().ok()?,
            started: fields.get(19)?.parse().ok()?,
        })
    }

    /// Whether any of it still runs: the first thread of a killed process may be dead while another one still holds
    /// its ports and files.
    fn lives(&self) -> bool {
        !matches!(self.state, 'Z' | 'X') || self.threads > 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_name_with_parentheses_does_not_confuse() {
        let stat = Stat::parse("7 (a) b (c) S 3 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4242 1 1").unwrap();
        assert_eq!((stat.state, stat.parent, stat.started), ('S', 3, 4242));
    }

    #[test]
    fn a_process_with_a_recycled_id_is_not_ours_and_is_not_signalled() {
        let own = ProcessIdentity::of(std::process::id().cast_signed()).unwrap();
        assert!(own.is_alive());
        let other = ProcessIdentity { started: own.started + 1, ..own };
        assert!(!other.is_alive());
        assert!(!other.signal(Signal::SIGKILL));
    }

    #[test]
    fn a_process_below_another_one_has_one_more_id() {
        assert_eq!(namespaces("Name:\ta\nNStgid:\t7\nNSpid:\t7\t1\nNSpgid:\t7\t1\n"), 2);
        assert_eq!(namespaces("Name:\ta\n"), 0);
    }

    #[test]
    fn a_process_lives_as_long_as_any_of_its_threads() {
        let dying = |threads: u32| {
            let line = format!("7 (a) Z 3 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 {threads} 0 4242 1 1");
            Stat::parse(&line).unwrap().lives()
        };
        assert!(dying(2));
        assert!(!dying(1));
    }

    #[test]
    fn a_zombie_is_not_alive() {
        let mut child = Command::new("true").spawn().unwrap();
        let pid = child.id().cast_signed();
        while Stat::read(pid).is_some_and(|stat| stat.lives()) {
            thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(ProcessIdentity::of(pid), None);
        child.wait().unwrap();
    }

    #[test]
    fn a_tail_begins_at_its_offset_is_short_and_keeps_the_reason() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let lines: Vec<String> = (0..50).map(|line| format!("line {line}")).collect();
        fs::write(&path, lines.join("\n")).unwrap();
        let all = tail(&path, 0);
        assert_eq!(all.lines().count(), TAIL);
        assert!(all.ends_with("line 49"));
        assert_eq!(tail(&path, fs::metadata(&path).unwrap().len()), "");
        fs::write(&path, format!("panic: write x: {DISK_FULL}\n{}", lines.join("\n"))).unwrap();
        let buried = tail(&path, 0);
        assert_eq!(buried.lines().count(), TAIL + 1);
        assert!(buried.starts_with("  panic: write x"), "{buried}");
    }
}
