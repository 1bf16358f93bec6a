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
    operator::OperatorProcess,
    say,
    sightings::Sightings,
};

/// Between two hops, so that each is one of its own.
pub(crate) const PAUSE: Duration = Duration::from_millis(60);

pub(crate) async fn measure(Stage { arena, operator, sizes, table }: Stage<'_>) -> Result<()> {
    say(&format!("{} hops …", sizes.hops));
    arena.namespace("hop-floor").await?;
    let plain = tokio::spawn(plain_client(arena.config_maps("hop-floor")));
    arena.namespace("hop").await?;
    let plans: Vec<BenchWait> = (0..sizes.hops).map(BenchWait::hop).collect();
    arena.plans("hop", &plans).await?;
    operator.settle("Waiting", sizes.hops).await?;
    let (floor, ours) = (Track::of(arena, "hop-floor").await?, Track::of(arena, "hop").await?);
    let times = in_turns(
        operator,
        sizes.hops,
        async |number| floor.hop(number).await,
        async |number| ours.hop(number).await,
    );
    let mut times = times.await?;
    plain.abort();
    table.hops("hop", &mut times.floor, &mut times.ours);
    table.processor_time("per hop with its status and events", times.used, sizes.hops);
    Ok(())
}

/// The times of hops that were made in turns.
pub(crate) struct InTurns {
    pub(crate) floor: Vec<Duration>,
    pub(crate) ours: Vec<Duration>,
    /// The processor time that the operator used for its own.
    pub(crate) used: Duration,
}

/// Makes hops of a plain client and of the operator in turns: a machine that others use too is as slow for the one as for
/// the other.
pub(crate) async fn in_turns(
    operator: &OperatorProcess,
    hops: usize,
    floor: impl AsyncFn(usize) -> Result<Duration>,
    ours: impl AsyncFn(usize) -> Result<Duration>,
) -> Result<InTurns> {
    let mut times = InTurns { floor: Vec::new(), ours: Vec::new(), used: Duration::ZERO };
    for number in 0..hops {
        times.floor.push(floor(number).await?);
        tokio::time::sleep(PAUSE).await;
        let before = operator.processor_time()?;
        times.ours.push(ours(number).await?);
        tokio::time::sleep(PAUSE).await;
        times.used += operator.processor_time()?.saturating_sub(before);
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
