//! The hop between two Syncs: from the status that says that the dependency is ready until the dependent's first object is
//! seen. The floor is a plain client that watches the same statuses and writes an object for each.

use anyhow::Result;
use futures::StreamExt;
use kube::{
    Api,
    runtime::watcher::{self, Event},
};
use linchpin_api::Sync;
use serde_json::{Value, json};
use std::time::Duration;

use crate::{
    Stage,
    arena::{self, Arena},
    hop::in_turns,
    say,
    sightings::Sightings,
};

pub(crate) async fn measure(Stage { arena, operator, sizes, table }: Stage<'_>) -> Result<()> {
    say(&format!("{} hops between Syncs …", sizes.hops));
    let causes = |namespace: &str| -> Vec<Value> {
        let needs =
            |number| json!([{"name": "go", "object": {"resource": format!("configmap/go-{number}")}}]);
        let sync = |number| sync(namespace, &format!("cause-{number}"), &needs(number));
        (0..sizes.hops).map(sync).collect()
    };
    arena.namespace("sync-floor").await?;
    arena.syncs("sync-floor", &causes("sync-floor")).await?;
    arena.namespace("sync-hop").await?;
    arena.syncs("sync-hop", &causes("sync-hop")).await?;
    let needs = |number| json!([{"name": "cause", "sync": {"name": format!("cause-{number}")}}]);
    let effects: Vec<Value> =
        (0..sizes.hops).map(|number| sync("sync-hop", &format!("effect-{number}"), &needs(number))).collect();
    arena.syncs("sync-hop", &effects).await?;
    operator.settle("Waiting", 3 * sizes.hops).await?;
    let plain = tokio::spawn(plain_client(arena.sync_api("sync-floor"), arena.config_maps("sync-floor")));
    let (floor, ours) = (Track::of(arena, "sync-floor").await?, Track::of(arena, "sync-hop").await?);
    let times = in_turns(
        operator,
        sizes.hops,
        async |number| floor.hop(number).await,
        async |number| ours.hop(number).await,
    );
    let mut times = times.await?;
    plain.abort();
    table.hops("hop between Syncs", &mut times.floor, &mut times.ours);
    table.processor_time("per hop between Syncs, both with status and events", times.used, sizes.hops);
    Ok(())
}

/// A Sync of one ConfigMap of its own name.
fn sync(namespace: &str, name: &str, needs: &Value) -> Value {
    let object =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"k": "v"}});
    json!({"apiVersion": "linchpin.dev/v1alpha1", "kind": "Sync", "metadata": {"name": name, "namespace": namespace},
        "spec": {"serviceAccountName": "builder", "source": {"objects": [object]}, "dependencies": needs}})
}

/// A namespace in which somebody makes `effect-n` once the Sync `cause-n` is ready, and the observers who time that.
struct Track<'a> {
    arena: &'a Arena,
    namespace: &'static str,
    statuses: Sightings,
    objects: Sightings,
}

impl<'a> Track<'a> {
    async fn of(arena: &'a Arena, namespace: &'static str) -> Result<Self> {
        let statuses = Sightings::watching(arena.sync_api(namespace), is_ready).await?;
        let objects = Sightings::of(arena, namespace).await?;
        // The first hop finds connections and caches cold on either side.
        tokio::time::sleep(Duration::from_millis(500)).await;
        Ok(Self { arena, namespace, statuses, objects })
    }

    /// One hop.
    async fn hop(&self, number: usize) -> Result<Duration> {
        self.arena.write(self.namespace, &format!("go-{number}")).await?;
        let ready = self.statuses.when(&format!("cause-{number}")).await?;
        let seen = self.objects.when(&format!("effect-{number}")).await?;
        Ok(seen.saturating_duration_since(ready))
    }
}

fn is_ready(sync: &Sync) -> bool {
    let conditions =
        sync.status.as_ref().map(|status| status.common.conditions.as_slice()).unwrap_or_default();
    let is = |text: &Value| text["type"] == "Ready" && text["status"] == "True";
    conditions.iter().any(|condition| serde_json::to_value(condition).is_ok_and(|text| is(&text)))
}

/// What somebody would write by hand: a watch on statuses, and a write for each that is ready.
async fn plain_client(syncs: Api<Sync>, maps: Api<k8s_openapi::api::core::v1::ConfigMap>) -> Result<()> {
    let mut events = watcher::watcher(syncs, watcher::Config::default()).boxed();
    let mut done = std::collections::BTreeSet::new();
    while let Some(event) = events.next().await {
        if let Ok(Event::Apply(object)) = event
            && is_ready(&object)
            && let Some(number) = object.metadata.name.as_deref().and_then(|name| name.strip_prefix("cause-"))
            && done.insert(number.to_owned())
        {
            arena::write(&maps, &format!("effect-{number}")).await?;
        }
    }
    Ok(())
}
