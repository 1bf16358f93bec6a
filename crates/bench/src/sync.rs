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
    hop::PAUSE,
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
    operator.settle("Waiting", sizes.hops).await?;
    let plain = tokio::spawn(plain_client(arena.sync_api("sync-floor"), arena.config_maps("sync-floor")));
    let mut floor = hops(arena, "sync-floor", sizes.hops).await?;
    plain.abort();

    arena.namespace("sync-hop").await?;
    arena.syncs("sync-hop", &causes("sync-hop")).await?;
    let needs = |number| json!([{"name": "cause", "sync": {"name": format!("cause-{number}")}}]);
    let effects: Vec<Value> =
        (0..sizes.hops).map(|number| sync("sync-hop", &format!("effect-{number}"), &needs(number))).collect();
    arena.syncs("sync-hop", &effects).await?;
    operator.settle("Waiting", 2 * sizes.hops).await?;
    let before = operator.processor_time()?;
    let mut ours = hops(arena, "sync-hop", sizes.hops).await?;
    let used = operator.processor_time()?.saturating_sub(before);
    table.hops("hop between Syncs", &mut floor, &mut ours);
    table.processor_time("per hop between Syncs, both with status and events", used, sizes.hops);
    Ok(())
}

/// A Sync of one ConfigMap of its own name.
fn sync(namespace: &str, name: &str, needs: &Value) -> Value {
    let object =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"k": "v"}});
    json!({"apiVersion": "linchpin.dev/v1alpha1", "kind": "Sync", "metadata": {"name": name, "namespace": namespace},
        "spec": {"serviceAccountName": "builder", "source": {"objects": [object]}, "dependencies": needs}})
}

async fn hops(arena: &Arena, namespace: &str, count: usize) -> Result<Vec<Duration>> {
    let statuses = Sightings::watching(arena.sync_api(namespace), is_ready).await?;
    let objects = Sightings::of(arena, namespace).await?;
    tokio::time::sleep(Duration::from_millis(500)).await;
    let mut times = Vec::new();
    for number in 0..count {
        arena.write(namespace, &format!("go-{number}")).await?;
        let ready = statuses.when(&format!("cause-{number}")).await?;
        let seen = objects.when(&format!("effect-{number}")).await?;
        times.push(seen.saturating_duration_since(ready));
        tokio::time::sleep(PAUSE).await;
    }
    Ok(times)
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
