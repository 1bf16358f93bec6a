//! Fan-out: many plans wait for one object; when is the last of them written? The floor writes as many in parallel.

use anyhow::Result;
use std::time::Instant;

use crate::{
    Sizes,
    arena::{Arena, Plan},
    operator::Operator,
    say,
    sightings::Sightings,
    table::Table,
};

pub(crate) async fn measure(
    arena: &Arena,
    operator: &Operator,
    sizes: Sizes,
    table: &mut Table,
) -> Result<()> {
    say(&format!("fan-out 1 → {} …", sizes.size));
    let names: Vec<String> = (0..sizes.size).map(|number| format!("leaf-{number}")).collect();
    arena.namespace("fan-floor").await?;
    let sightings = Sightings::of(arena, "fan-floor").await?;
    let begun = Instant::now();
    arena.write_all("fan-floor", &names).await?;
    let floor = sightings.when_all(&names).await?.saturating_duration_since(begun);

    arena.namespace("fan").await?;
    let plan = |name: &String| Plan {
        name: name.clone(),
        waits_for: "root".to_owned(),
        creates: name.clone(),
        on_content: false,
    };
    arena.plans("fan", &names.iter().map(plan).collect::<Vec<_>>()).await?;
    operator.settle("Waiting", sizes.size).await?;
    let sightings = Sightings::of(arena, "fan").await?;
    arena.write("fan", "root").await?;
    let begun = Instant::now();
    let ours = sightings.when_all(&names).await?.saturating_duration_since(begun);
    table.ratio(&format!("fan-out 1 → {}, last written", sizes.size), floor, ours, 2.0);
    Ok(())
}
