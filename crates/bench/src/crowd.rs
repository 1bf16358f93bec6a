//! A crowd that waits: what it costs in memory and in requests, and how soon it is served after a restart.

use anyhow::{Context as _, Result};
use serde_json::Value;
use std::{
    collections::BTreeMap,
    fs::File,
    io::{BufRead, BufReader, Seek, SeekFrom},
    time::{Duration, Instant},
};

use crate::{
    Sizes,
    arena::{Arena, BenchWait, OPERATOR},
    operator::OperatorProcess,
    say,
    sightings::Sightings,
    table::{Table, time},
};

const NAMESPACE: &str = "crowd";

pub(crate) async fn measure(arena: &Arena, program: &str, sizes: Sizes, table: &mut Table) -> Result<()> {
    let count = sizes.size;
    let mut operator = OperatorProcess::start(arena, program).await?;
    tokio::time::sleep(Duration::from_secs(3)).await;
    let (idle, _) = operator.memory()?;
    table.plain("RSS, idle", &format!("{idle:.1} MB"), "≤ 20 MB");

    say(&format!("{count} plans wait for {count} objects …"));
    arena.namespace(NAMESPACE).await?;
    let causes: Vec<String> = (0..count).map(|number| format!("cause-{number}")).collect();
    arena.write_all(NAMESPACE, &causes).await?;
    let plans: Vec<BenchWait> =
        (0..count).map(|number| BenchWait { on_content: true, ..BenchWait::hop(number) }).collect();
    arena.plans(NAMESPACE, &plans).await?;
    operator.settle("Waiting", count).await?;
    let (now, most) = operator.memory()?;
    let figure = format!("RSS, {count} waits on {count} objects, just made");
    table.plain(&figure, &format!("{now:.1} MB (peak {most:.1})"), "–");

    say(&format!("listening to silence for {} s …", sizes.idle_seconds));
    let from = std::fs::metadata(arena.audit_log())?.len();
    tokio::time::sleep(Duration::from_secs(sizes.idle_seconds)).await;
    let requests = requests(arena, from)?;
    let (now, _) = operator.memory()?;
    let figure = format!("RSS, {count} waits after {} s at rest", sizes.idle_seconds);
    table.plain(&figure, &format!("{now:.1} MB"), "≤ 40 MB");
    let total: usize = requests.values().sum();
    let figure = format!("requests in {} s, {count} waits (without watches, lease)", sizes.idle_seconds);
    table.plain(&figure, &format!("{total} {requests:?}"), "0");

    say("restart …");
    operator.stop().await?;
    let mut operator = OperatorProcess::start(arena, program).await?;
    let sightings = Sightings::of(arena, NAMESPACE).await?;
    let last = count - 1;
    release(arena, last).await?;
    sightings.when(&format!("effect-{last}")).await?;
    let one = operator.led.elapsed();
    let wanted = u32::try_from(count - 1).map(f64::from)?;
    while operator.metric("linchpin_objects_by_phase{phase=\"Waiting\"}").await? < wanted {
        tokio::time::sleep(Duration::from_millis(5)).await;
        anyhow::ensure!(
            operator.led.elapsed() < Duration::from_mins(1),
            "not all plans wait after a restart"
        );
    }
    let all = operator.led.elapsed();
    let used = operator.processor_time()?;
    table.plain(&format!("restart with {count} plans: one released"), &time(one), "≤ 3 s");
    table.plain(&format!("restart with {count} plans: all decided"), &time(all), "≤ 3 s");
    table.processor_time(&format!("restart with {count} plans"), used, 1);
    operator.settle("Waiting", count - 1).await?;
    let (now, most) = operator.memory()?;
    table.plain("RSS after the restart", &format!("{now:.1} MB (peak {most:.1})"), "≤ 40 MB");
    arena.remove_plans(NAMESPACE).await?;
    let begun = Instant::now();
    while operator.metric("linchpin_objects").await? > 0.5 {
        anyhow::ensure!(begun.elapsed() < Duration::from_mins(2), "the plans do not go away");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    operator.stop().await
}

/// Makes true what one plan waits for.
async fn release(arena: &Arena, number: usize) -> Result<()> {
    let patch = serde_json::json!({"data": {"released": "yes"}});
    let patch = kube::api::Patch::Merge(&patch);
    let api = arena.config_maps(NAMESPACE);
    api.patch(&format!("cause-{number}"), &kube::api::PatchParams::default(), &patch).await?;
    Ok(())
}

/// The operator's requests since then, by what they were.
pub(crate) fn requests(arena: &Arena, from: u64) -> Result<BTreeMap<String, usize>> {
    let mut file = File::open(arena.audit_log()).context("opening the audit log")?;
    file.seek(SeekFrom::Start(from))?;
    let mut counts = BTreeMap::new();
    for line in BufReader::new(file).lines() {
        // The last line may be half written.
        let Ok(event) = serde_json::from_str::<Value>(&line?) else { continue };
        let text = |pointer: &str| event.pointer(pointer).and_then(Value::as_str).unwrap_or("-");
        let (verb, resource) = (text("/verb"), text("/objectRef/resource"));
        if text("/user/username") == OPERATOR && verb != "watch" && resource != "leases" {
            *counts.entry(format!("{verb} {resource}")).or_default() += 1;
        }
    }
    Ok(counts)
}
