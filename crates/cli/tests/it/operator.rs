//! A `linchpin operator` process under test: started with free ports, asked over HTTP, ended with the test. At its end
//! it is judged from the audit log of its cluster.

use crate::{eventually, seconds};
use linchpin_testkit::audit::Audit;
use nix::{
    sys::{
        ptrace,
        signal::{Signal, kill},
        wait::{WaitPidFlag, waitpid},
    },
    unistd::Pid,
};
use std::{
    fs::{self, File},
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};
use tempfile::TempDir;

pub(crate) struct Operator {
    name: String,
    child: Child,
    /// Ends the operator, and removes its directory, when the test process ends without a word, as it does with what is
    /// in a static.
    keeper: Child,
    log: PathBuf,
    health: SocketAddr,
    metrics: SocketAddr,
    /// What the API server says that it did.
    audit: Audit,
    _directory: TempDir,
}

/// The program with everything in the environment that would change its settings taken out.
pub(crate) fn linchpin() -> Command {
    without_settings(Command::new(env!("CARGO_BIN_EXE_linchpin")))
}

/// A program with everything in the environment that would change its settings taken out.
pub(crate) fn without_settings(mut command: Command) -> Command {
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("LINCHPIN_")) {
        command.env_remove(name);
    }
    command.env_remove("KUBECONFIG");
    command
}

/// The flag of the namespace in which operators keep what is theirs.
const HOME: &str = "--lease-namespace=";

impl Operator {
    /// Starts one and waits until it listens.
    pub(crate) fn start(name: &str, kubeconfig: &Path, flags: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("log");
        let child = linchpin()
            .args([
                "operator",
                "--metrics-bind-address=127.0.0.1:0",
                "--health-probe-bind-address=127.0.0.1:0",
            ])
            .args(flags.iter().all(|flag| !flag.starts_with(HOME)).then(|| format!("{HOME}default")))
            .args(["--identity", name, "--kubeconfig"])
            .arg(kubeconfig)
            .args(flags)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&log).unwrap())
            .spawn()
            .unwrap();
        let keeper = Command::new("sh")
            .args(["-c", &format!("read -r _; kill -9 {}; rm -rf \"$0\"", child.id())])
            .arg(directory.path())
            .stdin(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let nowhere = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut operator = Self {
            name: name.to_owned(),
            child,
            keeper,
            log,
            health: nowhere,
            metrics: nowhere,
            // The local cluster keeps its kubeconfigs and its audit log in one directory.
            audit: Audit::from_the_beginning(&kubeconfig.with_file_name("audit.log")),
            _directory: directory,
        };
        eventually("the operator listens", seconds(20), || {
            assert!(operator.is_running(), "{name} ended:\n{}", operator.log());
            match (operator.listening_for("health"), operator.listening_for("metrics")) {
                (Some(health), Some(metrics)) => {
                    (operator.health, operator.metrics) = (health, metrics);
                    true
                }
                _ => false,
            }
        });
        operator
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.readiness().0
    }

    /// Whether it is ready, and what it says about it.
    pub(crate) fn readiness(&self) -> (bool, String) {
        get(self.health, "/readyz").map_or((false, String::new()), |(status, text)| (status == 200, text))
    }

    pub(crate) fn is_live(&self) -> bool {
        get(self.health, "/livez").is_some_and(|(status, _)| status == 200)
    }

    pub(crate) fn page(&self, path: &str) -> (u16, String) {
        get(self.health, path).expect("an answer")
    }

    pub(crate) fn metrics(&self) -> String {
        get(self.metrics, "/metrics").expect("metrics").1
    }

    /// The term it would write in at this moment, if it answers and leads.
    pub(crate) fn term(&self) -> Option<u64> {
        let (_, text) = get(self.metrics, "/metrics")?;
        let value = |name: &str| {
            let line = text.lines().find(|line| line.split(' ').next() == Some(name))?;
            line.split(' ').nth(1)?.parse::<i64>().ok()
        };
        if value("linchpin_leader")? == 1 { u64::try_from(value("linchpin_lease_epoch")?).ok() } else { None }
    }

    pub(crate) fn leads(&self) -> bool {
        self.term().is_some()
    }

    /// True if `holder` in a Lease is this process.
    pub(crate) fn is(&self, holder: &str) -> bool {
        holder.starts_with(&format!("{}_", self.name))
    }

    /// Stops the one thread of that name until what is returned is told to go on, as if it computed all the time; the
    /// other threads run.
    pub(crate) fn freeze(&self, thread: &str) -> Frozen {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap();
        let named = tasks
            .map(|task| task.unwrap().path())
            .find(|task| fs::read_to_string(task.join("comm")).is_ok_and(|name| name.trim() == thread));
        let task = named.unwrap_or_else(|| panic!("no thread {thread}"));
        Frozen::of(Pid::from_raw(task.file_name().unwrap().to_str().unwrap().parse().unwrap()))
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id().try_into().unwrap()), signal).unwrap();
    }

    /// Waits for its end.
    pub(crate) fn ended_within(&mut self, limit: Duration) -> ExitStatus {
        let mut status = None;
        eventually("the operator ends", limit, || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap()
    }

    fn listening_for(&self, purpose: &str) -> Option<SocketAddr> {
        let log = self.log();
        let line = log.lines().find(|line| line.contains(&format!(r#""purpose":"{purpose}""#)))?;
        line.split_once(r#""address":""#)?.1.split('"').next()?.parse().ok()
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        let _ = self.keeper.kill();
        let _ = self.keeper.wait();
        let _ = self.child.kill();
        let _ = self.child.wait();
        if thread::panicking() {
            eprintln!("--- log of {}\n{}", self.name, self.log());
        }
        self.audit.assert_no_overreach();
    }
}

/// A GET, by hand: status and body, or nothing if the process does not answer within half a second.
pub(crate) fn get(address: SocketAddr, path: &str) -> Option<(u16, String)> {
    let limit = Duration::from_millis(500);
    let mut stream = TcpStream::connect_timeout(&address, limit).ok()?;
    stream.set_read_timeout(Some(limit)).ok()?;
    stream
        .write_all(format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").as_bytes())
        .ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    Some((head.split(' ').nth(1)?.parse().ok()?, body.to_owned()))
}

/// A thread that is stopped. Only the thread that stopped it may let it go on, so that one waits for the word.
pub(crate) struct Frozen {
    go_on: mpsc::Sender<()>,
    holder: thread::JoinHandle<()>,
}

impl Frozen {
    fn of(thread: Pid) -> Self {
        let (go_on, told) = mpsc::channel::<()>();
        let (stopped, is_stopped) = mpsc::channel();
        let holder = thread::spawn(move || {
            ptrace::seize(thread, ptrace::Options::empty()).unwrap();
            ptrace::interrupt(thread).unwrap();
            waitpid(thread, Some(WaitPidFlag::__WALL)).unwrap();
            stopped.send(()).unwrap();
            let _ = told.recv();
            ptrace::detach(thread, None).unwrap();
        });
        is_stopped.recv().expect("the thread is stopped");
        Self { go_on, holder }
    }

    pub(crate) fn go_on(self) {
        drop(self.go_on);
        self.holder.join().unwrap();
    }
}
