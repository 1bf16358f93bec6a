//! Orders that people give by annotation.

use linchpin_doors::{DependencyGroupDoor, ResourceDependencyDoor};
use linchpin_engine::step::Phase;
use linchpin_words::keys;
use serde_json::json;

use crate::{stage::Stage, things::config_map};

const SPEC: &str = "{apiVersion: tools.kubestellar.io/v1, kind: ResourceDependency, metadata: {name: x}, spec: {\
    recovery: Manual, dependencies: [{name: gate, resource: configmap/gate, timeout: 10s}], actions: [\
    {name: a, type: apply, apply: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}}, \
    {name: b, type: apply, apply: {apiVersion: v1, kind: ConfigMap, metadata: {name: b}}}]}}";

#[test]
fn a_gate_is_passed_by_hand_for_one_generation() {
    let mut stage = Stage::<ResourceDependencyDoor>::new(SPEC);
    stage.annotate(keys::PROCEED, "gate@2").settle();
    assert!(stage.done().is_empty(), "the order is for another generation");
    stage.annotate(keys::PROCEED, "configmap/gate@1").settle();
    assert_eq!(stage.done().len(), 2);
    let status = stage.status();
    assert!(status.dependencies[0].met);
    assert_eq!(status.dependencies[0].state, "NotFound", "what was found is still told");
    assert_eq!(status.dependencies[0].reason, "Proceeded");
}

#[test]
fn one_action_or_all_run_again_once_per_order() {
    let mut stage = Stage::<ResourceDependencyDoor>::new(SPEC);
    stage.put(config_map("own", "gate", &json!({}))).settle();
    assert_eq!(stage.done(), ["apply ConfigMap own/a", "apply ConfigMap own/b"]);
    stage.annotate(keys::RERUN, "b@1").settle();
    assert_eq!(stage.done(), ["apply ConfigMap own/b"]);
    stage.settle();
    assert!(stage.done().is_empty(), "the same order is not a new one");
    stage.annotate(keys::RERUN, "all@2").settle();
    assert_eq!(stage.done(), ["apply ConfigMap own/a", "apply ConfigMap own/b"]);
    stage.annotate(keys::RERUN, "nobody@3").settle();
    assert!(stage.done().is_empty(), "an order that names nothing is no order");
}

#[test]
fn a_failed_object_whose_recovery_is_by_hand_waits_for_a_fresh_look() {
    let mut stage = Stage::<ResourceDependencyDoor>::new(SPEC);
    stage.settle().pass(11).settle();
    assert_eq!(stage.report().phase, Phase::Failed);
    stage.put(config_map("own", "gate", &json!({}))).settle();
    assert!(stage.done().is_empty());
    stage.annotate(keys::REQUESTED_AT, "now").settle();
    assert_eq!(stage.done(), ["apply ConfigMap own/a", "apply ConfigMap own/b"]);
}

#[test]
fn in_a_group_a_dependency_is_named_with_its_group_or_alone_where_that_is_clear() {
    let spec = "{apiVersion: tools.kubestellar.io/v1, kind: DependencyGroup, metadata: {name: x}, spec: {groups: [\
        {name: one, dependencies: [{name: a, resource: configmap/a}, {name: only, resource: configmap/o}]}, \
        {name: two, dependencies: [{name: a, resource: configmap/a}]}]}}";
    let mut stage = Stage::<DependencyGroupDoor>::new(spec);
    stage.annotate(keys::PROCEED, "a@1").settle();
    let met = |stage: &Stage<DependencyGroupDoor>| -> Vec<String> {
        let steps = stage.report().steps.iter().filter(|step| step.reason == "Proceeded" || !step.blocking);
        steps.map(|step| step.id.to_string()).collect()
    };
    assert!(met(&stage).is_empty(), "two are called so");
    stage.annotate(keys::PROCEED, "two/a@1, only@1").settle();
    assert_eq!(met(&stage), ["one/only", "two/a"]);
}
