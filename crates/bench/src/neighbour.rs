//! Noisy neighbours: what one namespace's hops cost while another one does its worst.
//!
//! For each attack the hops of a namespace are measured before it, beside it and after it, so that quiet and attacked
//! hops come from the same minute. After every hop of the operator's a plain client makes one of its own, in a
//! namespace of its own: what the API server, the observer and the two cores themselves lose to the attack is its
//! ratio, and no operator can be better. Reported are p50 and p99 of both, the operator's memory, and whether `/livez`
//! stayed green.

mod attacks;

use anyhow::{Result, bail};
use std::{
    env,
    ops::Range,
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use crate::{
    arena::{Arena, BenchWait},
    hop::{self, Track},
    operator::OperatorProcess,
    say,
    table::{Table, percentile},
};
use attacks::Attack;

/// How often `/livez` is asked.
const PULSE: Duration = Duration::from_millis(250);
/// Between two hops: what the one before left to be written is mostly written by then.
const PAUSE: Duration = Duration::from_millis(25);
/// How long an attack goes on before hops beside it count: what a start costs is reported elsewhere.
const START: Duration = Duration::from_secs(3);
/// How long what an attack left behind may take to go away.
const PATIENCE: Duration = Duration::from_mins(1);

pub(crate) async fn measure(arena: &Arena, program: &str, hops: usize, table: &mut Table) -> Result<()> {
    let chosen = env::var("BENCH_ATTACKS").unwrap_or_default();
    let wanted = |name: &str| chosen.is_empty() || chosen.split(',').any(|one| one.trim() == name);
    let mut operator = OperatorProcess::start_with(arena, program, &["--allow-loopback-clusters"]).await?;
    for attack in attacks::ALL.into_iter().filter(|name| wanted(name)) {
        say(&format!("{hops} hops while a neighbour does its worst, and as many without: {attack} …"));
        let mut seen = beside(arena, &operator, hops, attack).await?;
        for (name, hundredths) in [("p50", 50), ("p99", 99)] {
            let take = |times: &mut Vec<Duration>| percentile(times, hundredths);
            let (quiet, noisy) = (take(&mut seen.quiet.ours), take(&mut seen.noisy.ours));
            let figure = format!("hop beside a neighbour, {attack}, {name}, to the quiet one");
            table.ratio(&figure, quiet, noisy, 3.0);
            let (quiet, noisy) = (take(&mut seen.quiet.plain), take(&mut seen.noisy.plain));
            table.comparison(&format!("a plain client's hop beside it, {attack}, {name}"), quiet, noisy);
        }
        let health = match seen.failed {
            0 => "green".to_owned(),
            failed => format!("{failed} of {} failed", seen.asked),
        };
        let figure = format!("{attack}: most memory, /livez");
        table.plain(&figure, &format!("{:.0} MB, {health}", seen.memory), "green");
    }
    operator.stop().await
}

/// What was seen before, beside and after an attack.
struct AttackFigures {
    quiet: Hops,
    noisy: Hops,
    memory: f64,
    asked: usize,
    failed: usize,
}

/// Times of hops.
#[derive(Default)]
struct Hops {
    ours: Vec<Duration>,
    plain: Vec<Duration>,
}

/// Where the two sides hop.
struct Course {
    ours: Track,
    plain: Track,
}

impl Course {
    /// Hops of both sides in turn, while something goes on.
    async fn run(&self, numbers: Range<usize>, hops: &mut Hops, attack: &mut Attack) -> Result<()> {
        let all = async {
            for number in numbers {
                hops.ours.push(self.ours.hop(number).await?);
                tokio::time::sleep(PAUSE).await;
                hops.plain.push(self.plain.hop(number).await?);
                tokio::time::sleep(PAUSE).await;
            }
            anyhow::Ok(())
        };
        tokio::select! {
            ended = all => ended,
            ended = attack => bail!("the neighbour stopped: {:?}", ended.err()),
        }
    }
}

/// Measures hops before, beside and after an attack.
async fn beside(
    arena: &Arena,
    operator: &OperatorProcess,
    count: usize,
    name: &str,
) -> Result<AttackFigures> {
    let [noisy, ours, floor] = ["noisy", "neighbour", "floor"].map(|what| format!("{what}-{name}"));
    for namespace in [&noisy, &ours, &floor] {
        arena.namespace(namespace).await?;
    }
    let plans: Vec<BenchWait> = (0..2 * count).map(BenchWait::hop).collect();
    arena.plans(&ours, &plans).await?;
    operator.settle("Waiting", plans.len()).await?;
    let client = tokio::spawn(hop::plain_client(arena.config_maps(&floor)));
    let course = Course { ours: Track::of(arena, &ours).await?, plain: Track::of(arena, &floor).await? };
    let (mut quiet, mut beside) = (Hops::default(), Hops::default());
    let [first, last] = [count / 2, count / 2 + count];

    let (asked, failed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let mut memory: f64 = 0.0;
    let watch = async {
        loop {
            asked.fetch_add(1, Ordering::Relaxed);
            if !operator.is_alive().await {
                failed.fetch_add(1, Ordering::Relaxed);
            }
            memory = memory.max(operator.memory()?.0);
            tokio::time::sleep(PULSE).await;
        }
    };
    let story = async {
        course.run(0..first, &mut quiet, &mut attacks::none()).await?;
        let mut attack = attacks::begin(arena, operator, name, &noisy).await?;
        tokio::select! {
            () = tokio::time::sleep(START) => {}
            ended = &mut attack => bail!("the neighbour stopped: {:?}", ended.err()),
        }
        course.run(first..last, &mut beside, &mut attack).await?;
        drop(attack);
        arena.remove_plans(&noisy).await?;
        until_gone(operator, plans.len()).await?;
        course.run(last..plans.len(), &mut quiet, &mut attacks::none()).await
    };
    let ended: Result<()> = tokio::select! {
        ended = story => ended,
        ended = watch => ended,
    };
    client.abort();
    ended?;
    arena.remove_plans(&ours).await?;
    until_gone(operator, 0).await?;
    Ok(AttackFigures { quiet, noisy: beside, memory, asked: asked.into_inner(), failed: failed.into_inner() })
}

/// Waits until no more than so many objects are served.
async fn until_gone(operator: &OperatorProcess, count: usize) -> Result<()> {
    let (begun, left) = (Instant::now(), u32::try_from(count).map(f64::from)?);
    while operator.metric("linchpin_objects").await? > left {
        anyhow::ensure!(begun.elapsed() < PATIENCE, "what the neighbour made does not go away");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    Ok(())
}
