//! Chains: each plan waits for what the one before it wrote. The floor is the same writes, one after another.

use anyhow::Result;
use std::time::{Duration, Instant};

use crate::{
    Stage,
    arena::{Arena, BenchWait},
    operator::OperatorProcess,
    say,
    sightings::Sightings,
    table::percentile,
};

/// Short chains are repeated, and the middle one counts.
const REPETITIONS: usize = 7;
const SHORT: usize = 10;

pub(crate) async fn measure(Stage { arena, operator, sizes, table }: Stage<'_>) -> Result<()> {
    let mut waiting = 0;
    let (mut floors, mut ours) = (Vec::new(), Vec::new());
    for repetition in 0..REPETITIONS {
        say(&format!("chain of {SHORT}, {} of {REPETITIONS} …", repetition + 1));
        let namespace = format!("chain-short-{repetition}");
        let (floor, our) = one(arena, operator, &namespace, SHORT, &mut waiting).await?;
        floors.push(floor);
        ours.push(our);
    }
    let (floor, our) = (percentile(&mut floors, 50), percentile(&mut ours, 50));
    table.ratio(&format!("chain of {SHORT} (goal also < 100 ms)"), floor, our, 1.5);
    say(&format!("chain of {} …", sizes.size));
    let (floor, our) = one(arena, operator, "chain-long", sizes.size, &mut waiting).await?;
    table.ratio(&format!("chain of {}", sizes.size), floor, our, 1.5);
    Ok(())
}

async fn one(
    arena: &Arena,
    operator: &OperatorProcess,
    namespace: &str,
    length: usize,
    waiting: &mut usize,
) -> Result<(Duration, Duration)> {
    let floor_namespace = format!("{namespace}-floor");
    arena.namespace(&floor_namespace).await?;
    let begun = Instant::now();
    for number in 1..=length {
        arena.write(&floor_namespace, &format!("link-{number}")).await?;
    }
    let floor = begun.elapsed();

    arena.namespace(namespace).await?;
    let plans: Vec<BenchWait> = (1..=length)
        .map(|number| BenchWait {
            name: format!("link-{number}"),
            waits_for: format!("link-{}", number - 1),
            creates: format!("link-{number}"),
            on_content: false,
        })
        .collect();
    arena.plans(namespace, &plans).await?;
    operator.settle("Waiting", length).await?;
    let sightings = Sightings::of(arena, namespace).await?;
    arena.write(namespace, "link-0").await?;
    let begun = Instant::now();
    let last = sightings.when(&format!("link-{length}")).await?;
    let ours = last.saturating_duration_since(begun);
    *waiting += length;
    operator.settle("Completed", *waiting).await?;
    Ok((floor, ours))
}
