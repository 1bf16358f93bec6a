//! The shipped examples, each with the rights it brings and no more, on simulated nodes.

use crate::world::scenario;
use linchpin_testkit::{condition, porch::Porch};
use serde_json::{Value, json};
use std::{fs, path::Path};

/// The bundles of one example, as namespace and name.
fn bundles(text: &str) -> Vec<(String, String)> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text).unwrap();
    let ours = documents.iter().filter(|document| document["kind"] == "AppBundle");
    let word = |value: &Value| value.as_str().unwrap().to_owned();
    ours.map(|one| (word(&one["metadata"]["namespace"]), word(&one["metadata"]["name"]))).collect()
}

#[test]
fn every_example_comes_up_with_its_own_rights_and_goes_down_again() {
    let scenario = scenario("bundle-examples");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/appbundle");
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let texts: Vec<String> = files.iter().map(|file| fs::read_to_string(file).unwrap()).collect();
    for text in &texts {
        scenario.apply(text);
    }
    let porch = packages();
    let all: Vec<(String, String)> = texts.iter().flat_map(|text| bundles(text)).collect();
    assert!(all.len() >= 6, "{all:?}");
    for (namespace, name) in &all {
        let mut last = Value::Null;
        crate::eventually(&format!("{namespace}/{name} is ready: {last:#}"), crate::seconds(90), || {
            last = scenario.api.get("AppBundle", namespace, name).unwrap_or_default();
            condition(&last, "Ready")["status"] == "True"
        });
        assert_eq!(last["status"]["phase"], "Deployed", "{namespace}/{name}");
    }
    for (namespace, name) in &all {
        scenario.api.delete("AppBundle", namespace, name);
    }
    for (namespace, name) in &all {
        crate::eventually(&format!("{namespace}/{name} is gone"), crate::seconds(90), || {
            scenario.api.get("AppBundle", namespace, name).is_none()
        });
    }
    assert!(porch.variants().is_empty());
    assert!(scenario.api.get("Namespace", "", "sample-app").is_none());
    assert!(scenario.api.get("PriorityClass", "", "bundled").is_none());
    assert!(scenario.api.get("ConfigMap", "multi-namespace", "notes").is_none());
}

/// What the example with packages expects of Porch, which is played here.
fn packages() -> Porch {
    let porch = super::porch::play(&crate::world::world().api, "porch-demo");
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
