//! Many bundles at once: each of many independent objects; when is the last object written? The floor applies the same
//! objects in parallel: with the labels and annotations that bundles put on them, and with an owner. A second floor
//! applies their bare templates.

use anyhow::Result;
use linchpin_words::keys;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

use crate::{
    Stage,
    arena::{Arena, config_map},
    operator::OperatorProcess,
    say,
    sightings::Sightings,
    table::percentile,
};

/// Objects in each bundle.
const OBJECTS: usize = 40;
/// Each side is measured so often, in turns, and the middle one counts.
const REPETITIONS: usize = 5;

pub(crate) async fn measure(Stage { arena, operator, sizes, table }: Stage<'_>) -> Result<()> {
    let bundles = sizes.size.div_ceil(20);
    let (mut same, mut bare, mut ours) = (Vec::new(), Vec::new(), Vec::new());
    for repetition in 0..REPETITIONS {
        say(&format!("{bundles} bundles of {OBJECTS} objects, {} of {REPETITIONS} …", repetition + 1));
        bare.push(plainly(arena, &format!("bare-{repetition}"), bundles, false).await?);
        same.push(plainly(arena, &format!("objects-{repetition}"), bundles, true).await?);
        ours.push(linchpin(arena, operator, &format!("bundles-{repetition}"), bundles).await?);
    }
    let (same, bare) = (percentile(&mut same, 50), percentile(&mut bare, 50));
    let (our, figure) =
        (percentile(&mut ours, 50), format!("{bundles} bundles of {OBJECTS} objects, last written"));
    table.ratio(&format!("{figure}, to the same objects"), same, our, 2.0);
    table.ratio(&format!("{figure}, to the bare templates"), bare, our, 2.0);
    Ok(())
}

/// A plain client: with the objects as bundles write them, or with their bare templates.
async fn plainly(arena: &Arena, namespace: &str, bundles: usize, as_written: bool) -> Result<Duration> {
    arena.namespace(namespace).await?;
    let names = all_names(bundles);
    let owner = arena.config_maps(namespace).get("warm-0").await?.metadata.uid.unwrap_or_default();
    let body = |name: &String| if as_written { marked(name, &owner) } else { config_map(name) };
    let bodies: Vec<Value> = names.iter().map(body).collect();
    let sightings = Sightings::of(arena, namespace).await?;
    let begun = Instant::now();
    arena.apply_all(namespace, &bodies).await?;
    Ok(sightings.when_all(&names).await?.saturating_duration_since(begun))
}

/// An object as a bundle writes it.
fn marked(name: &str, owner: &str) -> Value {
    let mut body = config_map(name);
    body["metadata"]["labels"] = json!({keys::APP_BUNDLE: "bundle-0", keys::APP_BUNDLE_GROUP: "all", keys::APP_BUNDLE_COMPONENT: "object-0"});
    body["metadata"]["annotations"] = json!({keys::SYNC_WAVE: "101", keys::CREATED_BY: owner});
    body["metadata"]["ownerReferences"] = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "warm-0",
        "uid": owner}]);
    body
}

/// Writing the bundles themselves is part of it: a user has nothing before that.
async fn linchpin(
    arena: &Arena,
    operator: &OperatorProcess,
    namespace: &str,
    bundles: usize,
) -> Result<Duration> {
    arena.namespace(namespace).await?;
    let bodies: Vec<Value> = (0..bundles).map(|bundle| body(namespace, bundle)).collect();
    let sightings = Sightings::of(arena, namespace).await?;
    let begun = Instant::now();
    arena.bundles(namespace, &bodies).await?;
    let last = sightings.when_all(&all_names(bundles)).await?.saturating_duration_since(begun);
    operator.settle("Completed", bundles).await?;
    Ok(last)
}

fn all_names(bundles: usize) -> Vec<String> {
    (0..bundles).flat_map(|bundle| (0..OBJECTS).map(move |object| name(bundle, object))).collect()
}

fn name(bundle: usize, object: usize) -> String {
    format!("bundle-{bundle}-{object}")
}

/// Equal orders: nothing waits for anything else.
fn body(namespace: &str, bundle: usize) -> Value {
    let component = |object: usize| {
        json!({"name": format!("object-{object}"), "order": 1, "template": {
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name(bundle, object)},
            "data": {"go": "yes"},
        }})
    };
    let components: Vec<Value> = (0..OBJECTS).map(component).collect();
    json!({
        "apiVersion": "app.example.com/v1alpha1",
        "kind": "AppBundle",
        "metadata": {"name": format!("bundle-{bundle}"), "namespace": namespace},
        "spec": {
            "serviceAccountName": "builder",
            "groups": [{"name": "all", "order": 1, "components": components}],
        },
    })
}
