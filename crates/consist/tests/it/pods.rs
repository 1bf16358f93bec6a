//! Pods for tests.

use std::sync::Arc;

use linchpin_consist::PodView;
use serde_json::{Value, json};

pub(crate) const GATE: &str = "pod.kusionstack.io/service-ready";
pub(crate) const AVAILABLE: &str = "podopslifecycle.kusionstack.io/service-available";

/// A ready, controlled pod with an open gate, changed as the test wants.
pub(crate) fn pod(change: impl FnOnce(&mut Value)) -> PodView {
    let mut object = json!({
        "metadata": {"namespace": "shop", "name": "web-1", "uid": "uid-web-1", "resourceVersion": "7",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"kusionstack.io/control": "true", "app": "web"}, "annotations": {}, "finalizers": []},
        "spec": {"nodeName": "n", "readinessGates": [{"conditionType": GATE}]},
        "status": {"phase": "Running", "podIP": "10.0.0.7", "conditions": [
            {"type": "Ready", "status": "True"},
            {"type": GATE, "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}]},
    });
    change(&mut object);
    PodView::of(&Arc::new(object))
}

/// The label of an operation.
pub(crate) fn label(prefix: &str, id: &str) -> String {
    format!("{prefix}.podopslifecycle.kusionstack.io/{id}")
}

pub(crate) fn set_label(object: &mut Value, key: &str, value: &str) {
    object["metadata"]["labels"][key] = json!(value);
}

pub(crate) fn set_gate(object: &mut Value, open: bool) {
    let conditions = object["status"]["conditions"].as_array_mut().unwrap();
    conditions.retain(|condition| condition["type"] != GATE);
    let status = if open { "True" } else { "False" };
    conditions.push(json!({"type": GATE, "status": status, "lastTransitionTime": "2026-01-01T00:00:00Z"}));
}
