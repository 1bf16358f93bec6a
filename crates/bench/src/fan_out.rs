//! Fan-out: many plans wait for one object; when is the last of them written? The floor writes as many in parallel.

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

/// Each side is measured so often, in turns, and the middle one counts.
const REPETITIONS: usize = 3;

pub(crate) async fn measure(Stage { arena, operator, sizes, table }: Stage<'_>) -> Result<()> {
    let names: Vec<String> = (0..sizes.size).map(|number| format!("leaf-{number}")).collect();
    let (mut floors, mut ours) = (Vec::new(), Vec::new());
    for repetition in 0..REPETITIONS {
        say(&format!("fan-out 1 → {}, {} of {REPETITIONS} …", sizes.size, repetition + 1));
        floors.push(plainly(arena, &format!("fan-floor-{repetition}"), &names).await?);
        ours.push(linchpin(arena, operator, &format!("fan-{repetition}"), &names).await?);
    }
    let (floor, our) = (percentile(&mut floors, 50), percentile(&mut ours, 50));
    table.ratio(&format!("fan-out 1 → {}, last written", sizes.size), floor, our, 2.0);
    Ok(())
}

async fn plainly(arena: &Arena, namespace: &str, names: &[String]) -> Result<Duration> {
    arena.namespace(namespace).await?;
    let sightings = Sightings::of(arena, namespace).await?;
    let begun = Instant::now();
    arena.write_all(namespace, names).await?;
    Ok(sightings.when_all(names).await?.saturating_duration_since(begun))
}

async fn linchpin(
    arena: &Arena,
    operator: &OperatorProcess,
    namespace: &str,
    names: &[String],
) -> Result<Duration> {
    arena.namespace(namespace).await?;
    let plan = |name: &String| BenchWait {
        name: name.clone(),
        waits_for: "root".to_owned(),
        creates: name.clone(),
        on_content: false,
    };
    arena.plans(namespace, &names.iter().map(plan).collect::<Vec<_>>()).await?;
    operator.settle("Waiting", names.len()).await?;
    let sightings = Sightings::of(arena, namespace).await?;
    arena.write(namespace, "root").await?;
    let begun = Instant::now();
    let last = sightings.when_all(names).await?.saturating_duration_since(begun);
    operator.settle("Completed", names.len()).await?;
    Ok(last)
}
