//! One hop: from the answer to the dependency's write until the dependent's write is seen.

use anyhow::Result;
use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api,
    runtime::watcher::{self, Event},
};
use std::time::{Duration, Instant};

use crate::{
    Stage,
    arena::{self, Arena, BenchWait},
    say,
    sightings::Sightings,
};

/// Between two hops, so that each is one of its own.
pub(crate) const PAUSE: Duration = Duration::from_millis(60);

pub(crate) async fn measure(Stage { arena, operator, sizes, table }: Stage<'_>) -> Result<()> {
    say(&format!("{} hops …", sizes.hops));
    arena.namespace("hop-floor").await?;
    let plain = tokio::spawn(plain_client(arena.config_maps("hop-floor")));
    let mut floor = hops(arena, "hop-floor", sizes.hops).await?;
    plain.abort();

    arena.namespace("hop").await?;
    let plans: Vec<BenchWait> = (0..sizes.hops).map(BenchWait::hop).collect();
    arena.plans("hop", &plans).await?;
    operator.settle("Waiting", sizes.hops).await?;
    let before = operator.processor_time()?;
    let mut ours = hops(arena, "hop", sizes.hops).await?;
    let used = operator.processor_time()?.saturating_sub(before);
    table.hops("hop", &mut floor, &mut ours);
    table.processor_time("per hop with its status and events", used, sizes.hops);
    Ok(())
}

async fn hops(arena: &Arena, namespace: &str, count: usize) -> Result<Vec<Duration>> {
    let track = Track::of(arena, namespace).await?;
    let mut times = Vec::new();
    for number in 0..count {
        times.push(track.hop(number).await?);
        tokio::time::sleep(PAUSE).await;
    }
    Ok(times)
}

/// A namespace in which somebody answers each `cause-n` with an `effect-n`, and the observer who times that.
pub(crate) struct Track {
    causes: Api<ConfigMap>,
    sightings: Sightings,
}

impl Track {
    pub(crate) async fn of(arena: &Arena, namespace: &str) -> Result<Self> {
        let sightings = Sightings::of(arena, namespace).await?;
        // The first hop finds connections and caches cold on either side.
        tokio::time::sleep(Duration::from_millis(500)).await;
        Ok(Self { causes: arena.config_maps(namespace), sightings })
    }

    /// One hop.
    pub(crate) async fn hop(&self, number: usize) -> Result<Duration> {
        arena::write(&self.causes, &format!("cause-{number}")).await?;
        let answered = Instant::now();
        let seen = self.sightings.when(&format!("effect-{number}")).await?;
        Ok(seen.saturating_duration_since(answered))
    }
}

/// What somebody would write by hand: a watch, and a write for each event.
pub(crate) async fn plain_client(api: Api<ConfigMap>) -> Result<()> {
    let mut events = watcher::watcher(api.clone(), watcher::Config::default()).boxed();
    while let Some(event) = events.next().await {
        if let Ok(Event::Apply(object)) = event
            && let Some(number) = object.metadata.name.as_deref().and_then(|name| name.strip_prefix("cause-"))
        {
            arena::write(&api, &format!("effect-{number}")).await?;
        }
    }
    Ok(())
}
