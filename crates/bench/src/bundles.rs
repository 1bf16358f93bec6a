//! Many bundles at once: each of many independent objects; when is the last object written? The floor applies as many
//! objects in parallel.

use anyhow::Result;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

use crate::{
    Sizes,
    arena::Arena,
    operator::Operator,
    say,
    sightings::Sightings,
    table::{Table, percentile},
};

/// Objects in each bundle.
const OBJECTS: usize = 40;
/// Each side is measured so often, in turns, and the middle one counts.
const REPETITIONS: usize = 3;

pub(crate) async fn measure(
    arena: &Arena,
    operator: &Operator,
    sizes: Sizes,
    table: &mut Table,
) -> Result<()> {
    let bundles = sizes.size.div_ceil(20);
    let (mut floors, mut ours) = (Vec::new(), Vec::new());
    for repetition in 0..REPETITIONS {
        say(&format!("{bundles} bundles of {OBJECTS} objects, {} of {REPETITIONS} …", repetition + 1));
        floors.push(plainly(arena, &format!("objects-{repetition}"), bundles).await?);
        ours.push(linchpin(arena, operator, &format!("bundles-{repetition}"), bundles).await?);
    }
    let (floor, our) = (percentile(&mut floors, 50), percentile(&mut ours, 50));
    table.ratio(&format!("{bundles} bundles of {OBJECTS} objects, last written"), floor, our, 2.0);
    Ok(())
}

async fn plainly(arena: &Arena, namespace: &str, bundles: usize) -> Result<Duration> {
    arena.namespace(namespace).await?;
    let names = all_names(bundles);
    let sightings = Sightings::of(arena, namespace).await?;
    let begun = Instant::now();
    arena.write_all(namespace, &names).await?;
    Ok(sightings.when_all(&names).await?.saturating_duration_since(begun))
}

/// Writing the bundles themselves is part of it: a user has nothing before that.
async fn linchpin(arena: &Arena, operator: &Operator, namespace: &str, bundles: usize) -> Result<Duration> {
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
