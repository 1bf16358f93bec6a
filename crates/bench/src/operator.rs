//! The operator as a process: started, asked for its metrics and its memory, stopped.

use anyhow::{Context as _, Result, bail};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use std::{
    fs::{self, File, OpenOptions},
    net::{SocketAddr, TcpListener},
    process::Stdio,
    time::{Duration, Instant},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    process::{Child, Command},
};

use crate::arena::Arena;

const PATIENCE: Duration = Duration::from_mins(2);

/// How long a kubelet waits for an answer by default.
const PROBE: Duration = Duration::from_secs(1);

/// A running operator that leads.
pub(crate) struct OperatorProcess {
    process: Child,
    pid: i32,
    metrics: SocketAddr,
    health: SocketAddr,
    /// When it was seen to lead.
    pub(crate) led: Instant,
}

impl OperatorProcess {
    /// Starts it and waits until it leads.
    pub(crate) async fn start(arena: &Arena, program: &str) -> Result<Self> {
        Self::start_with(arena, program, &[]).await
    }

    /// The same with further flags.
    pub(crate) async fn start_with(arena: &Arena, program: &str, flags: &[&str]) -> Result<Self> {
        Self::start_as(arena, program, &[&["operator"], flags].concat()).await
    }

    /// The same for whichever process of the program.
    pub(crate) async fn start_as(arena: &Arena, program: &str, words: &[&str]) -> Result<Self> {
        let metrics = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let health = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let log: File = OpenOptions::new().create(true).append(true).open(arena.operator_log())?;
        let process = Command::new(program)
            .args(words)
            .arg("--kubeconfig")
            .arg(arena.operator_kubeconfig())
            .arg("--log-format=text")
            .arg(format!("--health-probe-bind-address={health}"))
            .arg(format!("--metrics-bind-address={metrics}"))
            .stdout(Stdio::from(log.try_clone()?))
            .stderr(Stdio::from(log))
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("starting {program}"))?;
        let pid = i32::try_from(process.id().context("the operator ended at once")?)?;
        let mut operator = Self { process, pid, metrics, health, led: Instant::now() };
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            if operator.metric("linchpin_leader").await.is_ok_and(|leads| leads > 0.0) {
                operator.led = Instant::now();
                return Ok(operator);
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        bail!("the operator does not lead after {PATIENCE:?}; see its log")
    }

    /// Asks it to stop, and waits.
    pub(crate) async fn stop(&mut self) -> Result<()> {
        kill(Pid::from_raw(self.pid), Signal::SIGTERM)?;
        self.process.wait().await?;
        Ok(())
    }

    /// The sum of a metric over its labels; a label may be part of the name.
    pub(crate) async fn metric(&self, name: &str) -> Result<f64> {
        let mut stream = TcpStream::connect(self.metrics).await?;
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n\r\n").await?;
        let mut text = String::new();
        stream.read_to_string(&mut text).await?;
        let values = text.lines().filter_map(|line| {
            let rest = line.strip_prefix(name)?;
            (rest.starts_with(' ') || rest.starts_with('{'))
                .then(|| rest.rsplit(' ').next()?.parse::<f64>().ok())?
        });
        Ok(values.sum())
    }

    /// Whether `/livez` is green, and says so as soon as a kubelet asks it to.
    pub(crate) async fn is_alive(&self) -> bool {
        let asked = async {
            let mut stream = TcpStream::connect(self.health).await?;
            stream.write_all(b"GET /livez HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n\r\n").await?;
            let mut text = String::new();
            stream.read_to_string(&mut text).await?;
            anyhow::Ok(text.starts_with("HTTP/1.1 200"))
        };
        matches!(tokio::time::timeout(PROBE, asked).await, Ok(Ok(true)))
    }

    /// Waits until at least so many objects wait, or are in the phase said, and nothing is written any more.
    pub(crate) async fn settle(&self, phase: &str, objects: usize) -> Result<()> {
        self.settle_at(&format!("linchpin_objects_by_phase{{phase=\"{phase}\"}}"), objects).await
    }

    /// Waits until a metric is at least so much, and nothing is written any more.
    pub(crate) async fn settle_at(&self, name: &str, objects: usize) -> Result<()> {
        let begun = Instant::now();
        let mut quiet = (Instant::now(), -1.0);
        let wanted = u32::try_from(objects).map(f64::from)?;
        while begun.elapsed() < PATIENCE {
            let writes = self.metric("linchpin_status_writes_total").await?;
            let there = self.metric(name).await?;
            if there < wanted || (writes - quiet.1).abs() > 0.5 {
                quiet = (Instant::now(), writes);
            } else if quiet.0.elapsed() > Duration::from_millis(2500) {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        bail!("{name} is {} after {PATIENCE:?}, not {objects}", self.metric(name).await?)
    }

    /// The processor time it has used.
    pub(crate) fn processor_time(&self) -> Result<Duration> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid))?;
        // The name in parentheses may contain anything; user and system time are the 12th and 13th field after it.
        let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
        let ticks: u64 = fields.skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
        Ok(Duration::from_millis(ticks * 10))
    }

    /// Its resident memory in megabytes, and the most it ever had.
    pub(crate) fn memory(&self) -> Result<(f64, f64)> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid))?;
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_whitespace().next()?.parse::<f64>().ok()
        };
        let (now, most) = (field("VmRSS:"), field("VmHWM:"));
        let (now, most) = now.zip(most).context("the kernel does not show the operator's memory")?;
        Ok((now / 1024.0, most / 1024.0))
    }
}
