//! What the waiter costs: the size of the program, its memory while it waits, and how soon it notices.
//!
//! `make bench-wait` builds the program that goes into images and names it in `LINCHPIN_WAIT_BIN`; without that the one
//! that Cargo has built for benchmarks is measured, whose size says nothing.

#![allow(missing_docs)]

use std::{
    env, fs, io,
    net::{SocketAddr, TcpListener},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

/// How often a reaction is measured.
const RUNS: u32 = 30;

fn main() -> io::Result<()> {
    let program = env::var_os("LINCHPIN_WAIT_BIN")
        .map_or_else(|| PathBuf::from(env!("CARGO_BIN_EXE_linchpin-wait")), PathBuf::from);
    println!("program                          {:>8.0} KB", kilobytes(fs::metadata(&program)?.len()));
    println!("memory, a port                   {:>8.0} KB", memory(&program, false)?);
    println!("memory, https                    {:>8.0} KB", memory(&program, true)?);
    // The port opens while pauses are still short, as when both containers start together, and once they are long.
    for (name, after, spread) in [("first quarter of a second", 20, 8), ("fourth second", 3000, 33)] {
        let mut taken: Vec<Duration> = Vec::new();
        for run in 0..RUNS {
            taken.push(reaction(&program, Duration::from_millis(after + u64::from(run * spread)))?);
        }
        taken.sort();
        let at =
            |share: usize| taken.get(taken.len() * share / 100).map_or(0.0, |one| one.as_secs_f64() * 1e3);
        println!("reaction, {name:<25} p50 {:.0} ms, p90 {:.0} ms, p99 {:.0} ms", at(50), at(90), at(99));
    }
    Ok(())
}

fn kilobytes(bytes: u64) -> f64 {
    Duration::from_micros(bytes).as_secs_f64() * 1e3
}

/// An address at which nobody listens.
fn closed() -> io::Result<SocketAddr> {
    TcpListener::bind("127.0.0.1:0")?.local_addr()
}

fn start(program: &Path, arguments: &str) -> io::Result<Child> {
    let mut command = Command::new(program);
    command.args(arguments.split(' ')).env_clear().stdout(Stdio::null()).spawn()
}

/// The most memory that was resident while it waited, in kilobytes: for a port that is closed, or for a server that takes
/// connections and hangs up, so that TLS is set up.
fn memory(program: &Path, over_tls: bool) -> io::Result<f64> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let mut child = if over_tls {
        let child = start(program, &format!("http https://{address}/"))?;
        drop(listener.accept()?);
        child
    } else {
        drop(listener);
        start(program, &format!("tcp {address}"))?
    };
    thread::sleep(Duration::from_secs(2));
    let status = fs::read_to_string(format!("/proc/{}/status", child.id()))?;
    child.kill()?;
    child.wait()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|line| line.trim().trim_end_matches(" kB").trim().parse().ok());
    Ok(number.unwrap_or_default())
}

/// How long after its port opened the program has ended.
fn reaction(program: &Path, after: Duration) -> io::Result<Duration> {
    let address = closed()?;
    let mut child = start(program, &format!("tcp {address}"))?;
    thread::sleep(after);
    let listener = TcpListener::bind(address)?;
    let opened = Instant::now();
    child.wait()?;
    let taken = opened.elapsed();
    drop(listener);
    Ok(taken)
}
