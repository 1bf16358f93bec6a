//! How long one verdict takes. The promise is 5 µs; the aim is below 1 µs.
#![allow(missing_docs)]

use linchpin_engine::readiness::{Nothing, ReadinessOptions, Verdict, verdict};
use linchpin_words::GroupKind;
use serde_json::{Value, json};

fn main() {
    divan::main();
}

fn run(bencher: divan::Bencher<'_, '_>, kind: &GroupKind, object: &Value) {
    bencher.bench(|| -> Verdict {
        let options = ReadinessOptions { status_declared: Some(true), ..ReadinessOptions::default() };
        verdict(divan::black_box(kind), divan::black_box(object), &options, &Nothing)
    });
}

fn condition(kind: &str, status: &str, reason: &str) -> Value {
    json!({
        "type": kind, "status": status, "reason": reason, "message": "as the controller explains in a few words",
        "observedGeneration": 4, "lastTransitionTime": "2026-03-02T09:13:10Z",
    })
}

#[divan::bench]
fn deployment(bencher: divan::Bencher<'_, '_>) {
    let object = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop", "generation": 4},
        "spec": {"replicas": 3},
        "status": {
            "observedGeneration": 4, "replicas": 3, "updatedReplicas": 3, "readyReplicas": 2, "availableReplicas": 2,
            "conditions": [
                condition("Available", "True", "MinimumReplicasAvailable"),
                condition("Progressing", "True", "ReplicaSetUpdated"),
            ],
        },
    });
    run(bencher, &GroupKind::new("apps", "Deployment"), &object);
}

#[divan::bench]
fn pod(bencher: divan::Bencher<'_, '_>) {
    let waiting = json!({
        "name": "app", "ready": false, "started": false, "restartCount": 7,
        "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 5m0s restarting failed container"}},
        "lastState": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}},
    });
    let object = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web-1", "namespace": "shop", "generation": 1},
        "status": {
            "phase": "Running", "containerStatuses": [waiting],
            "conditions": [
                condition("PodReadyToStartContainers", "True", ""), condition("Initialized", "True", ""),
                condition("Ready", "False", "ContainersNotReady"),
                condition("ContainersReady", "False", "ContainersNotReady"), condition("PodScheduled", "True", ""),
            ],
        },
    });
    run(bencher, &GroupKind::new("", "Pod"), &object);
}

#[divan::bench]
fn job(bencher: divan::Bencher<'_, '_>) {
    let object = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "migrate", "namespace": "db", "generation": 1},
        "spec": {"completions": 1},
        "status": {
            "failed": 7,
            "conditions": [
                condition("FailureTarget", "True", "BackoffLimitExceeded"),
                condition("Failed", "True", "BackoffLimitExceeded"),
            ],
        },
    });
    run(bencher, &GroupKind::new("batch", "Job"), &object);
}

#[divan::bench]
fn custom_resource(bencher: divan::Bencher<'_, '_>) {
    let object = json!({
        "apiVersion": "example.org/v1", "kind": "Widget",
        "metadata": {"name": "one", "namespace": "shop", "generation": 4},
        "status": {
            "observedGeneration": 4, "phase": "Running",
            "conditions": [condition("Linked", "True", "Linked"), condition("Ready", "False", "Waiting")],
        },
    });
    run(bencher, &GroupKind::new("example.org", "Widget"), &object);
}
