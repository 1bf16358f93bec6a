//! The shipped examples, each with the rights it brings and no more, on simulated nodes.

use crate::{eventually, examples::examples, seconds, world::scenario};
use linchpin_testkit::{Api, condition, porch::Porch};
use serde_json::{Value, json};
use std::fs;

fn documents(text: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(text).unwrap()
}

/// The bundles of one example, as namespace and name.
fn bundles(text: &str) -> Vec<(String, String)> {
    let documents = documents(text);
    let ours = documents.iter().filter(|document| document["kind"] == "AppBundle");
    let word = |value: &Value| value.as_str().unwrap().to_owned();
    ours.map(|one| (word(&one["metadata"]["namespace"]), word(&one["metadata"]["name"]))).collect()
}

#[test]
fn every_example_comes_up_with_its_own_rights_and_goes_down_again() {
    let scenario = scenario("bundle-examples");
    come_and_go(&scenario.api, || super::porch::play(&scenario.api, PORCH));
}

/// Where the example with packages lies.
pub(crate) const PORCH: &str = "porch-demo";

/// Applies all examples, waits until they are up, deletes them, and waits until nothing of them is left. Porch is begun
/// when its namespace is there.
pub(crate) fn come_and_go(api: &Api, porch: impl FnOnce() -> Porch) {
    let mut files: Vec<_> =
        fs::read_dir(examples().join("appbundle")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let texts: Vec<String> = files.iter().map(|file| fs::read_to_string(file).unwrap()).collect();
    for document in texts.iter().flat_map(|text| documents(text)).filter(|document| !document.is_null()) {
        if let Err(refused) = api.apply(&document) {
            panic!("applying {document}: {refused:?}");
        }
    }
    let porch = publish(porch());
    let all: Vec<(String, String)> = texts.iter().flat_map(|text| bundles(text)).collect();
    assert!(all.len() >= 6, "{all:?}");
    for (namespace, name) in &all {
        let mut last = Value::Null;
        eventually(&format!("{namespace}/{name} is ready"), seconds(90), || {
            last = api.get("AppBundle", namespace, name).unwrap_or_default();
            condition(&last, "Ready")["status"] == "True"
        });
        assert_eq!(last["status"]["phase"], "Deployed", "{namespace}/{name}");
    }
    for (namespace, name) in &all {
        api.delete("AppBundle", namespace, name);
    }
    for (namespace, name) in &all {
        eventually(&format!("{namespace}/{name} is gone"), seconds(90), || {
            api.get("AppBundle", namespace, name).is_none()
        });
    }
    assert!(porch.variants().is_empty());
    assert!(api.get("Namespace", "", "sample-app").is_none());
    assert!(api.get("PriorityClass", "", "bundled").is_none());
    assert!(api.get("ConfigMap", "multi-namespace", "notes").is_none());
}

/// What the example with packages expects of Porch, which is played here.
fn publish(porch: Porch) -> Porch {
    porch.repository("blueprints");
    for name in ["db", "web"] {
        let workload = format!(
            "{{apiVersion: apps/v1, kind: Deployment, metadata: {{name: {name}, namespace: porch-demo}}, spec: {{replicas: 1, \
             selector: {{matchLabels: {{app: {name}}}}}, template: {{metadata: {{labels: {{app: {name}}}}}, spec: \
             {{containers: [{{name: c, image: none}}]}}}}}}}}"
        );
        porch.publish("blueprints", name, 1, &json!({"all.yaml": workload}));
    }
    porch
}
