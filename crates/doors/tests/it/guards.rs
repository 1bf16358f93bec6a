//! Conditions on actions.

use linchpin_doors::ResourceDependencyDoor;
use linchpin_engine::{journal::StepState, step::Phase};
use serde_json::json;

use crate::{
    stage::Stage,
    things::{config_map, deployment},
};

fn stage(condition: &str) -> Stage<ResourceDependencyDoor> {
    Stage::new(&format!(
        "{{apiVersion: tools.kubestellar.io/v1, kind: ResourceDependency, metadata: {{name: x}}, spec: {{\
         values: {{on: true}}, dependencies: [{{name: my-db, resource: deployment/db, optional: true, timeout: 1m}}], \
         actions: [{{name: a, type: create, condition: {condition}, \
         resource: {{apiVersion: v1, kind: ConfigMap, metadata: {{name: c}}}}}}]}}}}"
    ))
}

fn outcome(condition: &str, available: Option<i64>) -> StepState {
    let mut stage = stage(condition);
    if let Some(available) = available {
        stage.put(deployment("own", "db", available));
    }
    stage.settle();
    stage.memory.journal.steps[&"a".into()].state
}

#[test]
fn a_state_decides_when_it_has_settled() {
    use StepState::{Done, Skipped, Waiting};
    for (condition, absent, starting, ready) in [
        ("{type: dependency, dependency: my-db, state: NotFound}", Done, Skipped, Skipped),
        ("{dependency: my-db, state: Exists}", Skipped, Done, Done),
        ("{dependency: my-db, state: Ready}", Skipped, Waiting, Done),
        ("{dependency: my-db, state: Ready, negate: true}", Done, Waiting, Skipped),
        ("{dependency: my-db}", Skipped, Waiting, Done),
        ("{dependency: deployment/db, state: Failed}", Skipped, Waiting, Skipped),
        ("{type: cel, expression: \"dependencies['my-db'].state == 'Ready'\"}", Skipped, Waiting, Done),
        ("{expression: \"dependencies.my_db.state == 'NotFound' && values.on\"}", Done, Waiting, Skipped),
        ("{expression: \"dependencies.deployment_db.spec.replicas == 1\"}", Waiting, Done, Done),
    ] {
        assert_eq!(outcome(condition, None), absent, "{condition}, absent");
        assert_eq!(outcome(condition, Some(0)), starting, "{condition}, starting");
        assert_eq!(outcome(condition, Some(1)), ready, "{condition}, ready");
    }
}

#[test]
fn a_guard_waits_no_longer_than_its_dependency_may_take() {
    let mut stage = stage("{dependency: my-db, state: Ready}");
    stage.put(deployment("own", "db", 0)).settle().pass(59).settle();
    assert_eq!(stage.report().phase, Phase::Running);
    stage.pass(2).settle();
    assert_eq!(stage.report().phase, Phase::Failed);
    assert_eq!(stage.report().steps[1].reason, "GuardTimedOut");
    stage.put(deployment("own", "db", 1)).settle();
    assert_eq!(stage.done(), ["create ConfigMap own/c"], "it recovers like any failure");
}

#[test]
fn a_guard_sees_what_was_written_before_its_turn() {
    let mut stage = Stage::<ResourceDependencyDoor>::new(
        "{apiVersion: tools.kubestellar.io/v1, kind: ResourceDependency, metadata: {name: x}, spec: {\
         dependencies: [{name: flag, resource: configmap/flag, optional: true}], actions: [\
         {name: make, type: create, condition: {dependency: flag, state: NotFound}, \
         resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: flag}}}, \
         {name: then, priority: 1, type: create, condition: {dependency: flag, state: Exists}, \
         resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: then}}}]}}",
    );
    stage.settle();
    assert_eq!(stage.done(), ["create ConfigMap own/flag", "create ConfigMap own/then"]);
    let mut again =
        Stage::<ResourceDependencyDoor>::new(&serde_json::to_string(&stage.object).expect("JSON"));
    again.put(config_map("own", "flag", &json!({}))).settle();
    assert_eq!(again.done(), ["create ConfigMap own/then"]);
}
