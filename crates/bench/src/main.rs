//! Linchpin against a plain client, in one run on one local cluster, printed as ratios. `make bench` runs it.
//!
//! Milliseconds belong to a machine; what Linchpin adds to the writes it makes is a ratio. So every figure is taken
//! twice: by a plain client that knows what to do, which is the floor, and by the operator, started as a process of
//! its own (`LINCHPIN_BIN`). Both are timed by the same observer, a watch.
//!
//! `BENCH_SIZE` (1000) is the size of long chains, fan-outs and crowds; `BENCH_HOPS` (100) the number of single hops;
//! `BENCH_IDLE` (60) the seconds for which silence is listened to; `BENCH_ONLY` a comma-separated choice of
//! `crowd`, `hop`, `chain`, `fan-out`, `bundles` (a twentieth of `BENCH_SIZE`, of 40 objects each), `sync`, `boot`,
//! `consist`, `neighbour`.
//! `sync` measures the same hop of Flux beside ours where `LINCHPIN_FLUX` names its controller (`make flux` builds it).
//! `boot` sends `BENCH_REVIEWS` (5000) AdmissionReviews, 500 a second, and releases `BENCH_HOPS` held pods.
//! `consist` serves `BENCH_EMPLOYERS` (500) Services of ten pods each and changes `BENCH_HOPS` pods, one by one.
//! `BENCH_NEIGHBOUR_HOPS` (300) hops are measured beside each of `BENCH_ATTACKS` (all): `cel`, `hanging`, `endless`,
//! `budget`, `flapping`. With `BENCH_CHECK`, a factor, the run fails if a ratio exceeds its goal by more than that.

mod arena;
mod boot;
mod bundles;
mod chain;
mod consist;
mod crowd;
mod fan_out;
mod flux;
mod foreign;
mod hop;
mod neighbour;
mod operator;
mod sightings;
mod sync;
mod table;

use anyhow::{Context as _, Result, ensure};
use std::{env, str::FromStr};

use crate::{arena::Arena, operator::OperatorProcess, table::Table};

/// How much is measured.
#[derive(Debug, Clone, Copy)]
struct Sizes {
    size: usize,
    hops: usize,
    idle_seconds: u64,
}

/// What is measured with, and where the figures go.
struct Stage<'a> {
    arena: &'a Arena,
    operator: &'a OperatorProcess,
    sizes: Sizes,
    table: &'a mut Table,
}

impl Stage<'_> {
    fn lend(&mut self) -> Stage<'_> {
        Stage { table: self.table, ..*self }
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    // Fails only if a provider is installed already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let sizes = Sizes {
        size: setting("BENCH_SIZE", 1000)?,
        hops: setting("BENCH_HOPS", 100)?,
        idle_seconds: setting("BENCH_IDLE", 60)?,
    };
    let chosen = env::var("BENCH_ONLY").unwrap_or_default();
    let wanted = |name: &str| chosen.is_empty() || chosen.split(',').any(|one| one.trim() == name);
    let program = env::var("LINCHPIN_BIN").context("LINCHPIN_BIN must name the linchpin program")?;

    say("starting Kubernetes …");
    let arena = Arena::start().await?;
    let mut table = Table::default();
    // The crowd first: memory is measured of a process that did nothing else before.
    if wanted("crowd") {
        crowd::measure(&arena, &program, sizes, &mut table).await?;
    }
    let mut operator = OperatorProcess::start(&arena, &program).await?;
    let mut stage = Stage { arena: &arena, operator: &operator, sizes, table: &mut table };
    if wanted("hop") {
        hop::measure(stage.lend()).await?;
    }
    if wanted("chain") {
        chain::measure(stage.lend()).await?;
    }
    if wanted("fan-out") {
        fan_out::measure(stage.lend()).await?;
    }
    if wanted("bundles") {
        bundles::measure(stage.lend()).await?;
    }
    if wanted("sync") {
        sync::measure(stage.lend()).await?;
        flux::measure(stage.lend()).await?;
    }
    operator.stop().await?;
    // With an operator of its own, which serves webhooks.
    if wanted("boot") {
        boot::measure(&arena, &program, sizes, setting("BENCH_REVIEWS", 5000)?, &mut table).await?;
    }
    // With a process of its own.
    if wanted("consist") {
        consist::measure(&arena, &program, sizes, setting("BENCH_EMPLOYERS", 500)?, &mut table).await?;
    }
    // With an operator of its own, which may reach loopback addresses.
    if wanted("neighbour") {
        neighbour::measure(&arena, &program, setting("BENCH_NEIGHBOUR_HOPS", 300)?, &mut table).await?;
    }
    arena.stop().await?;
    println!("\n{table}");
    match env::var_os("BENCH_CHECK") {
        Some(_) => judge(&table, setting("BENCH_CHECK", 1.0)?),
        None => Ok(()),
    }
}

/// Fails if a ratio exceeds its goal by more than this factor.
fn judge(table: &Table, factor: f64) -> Result<()> {
    let missed = table.missed(factor);
    ensure!(missed.is_empty(), "more than {factor} times the goal: {}", missed.join("; "));
    Ok(())
}

fn setting<T: FromStr>(name: &str, usual: T) -> Result<T>
where
    T::Err: std::error::Error + Send + Sync + 'static,
{
    match env::var(name) {
        Ok(text) => text.parse().with_context(|| format!("reading {name}={text}")),
        Err(_) => Ok(usual),
    }
}

/// Reports what goes on; the table comes last and alone on standard output.
fn say(text: &str) {
    eprintln!("bench: {text}");
}
