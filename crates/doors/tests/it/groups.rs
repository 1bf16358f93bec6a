//! DependencyGroup: order, actions, clocks, teardown, and depending on one group.

use linchpin_api::{Ours as _, common::DeletionPolicy};
use linchpin_doors::{DependencyGroupDoor, ResourceDependencyDoor};
use linchpin_engine::{
    plan::{Plan, Removal},
    step::Phase,
};
use serde_json::{Value, json};

use crate::{stage::Stage, things::config_map};

fn stage(spec: &str) -> Stage<DependencyGroupDoor> {
    Stage::new(&format!(
        "{{apiVersion: tools.kubestellar.io/v1, kind: DependencyGroup, metadata: {{name: x}}, spec: {spec}}}"
    ))
}

fn make(name: &str) -> String {
    format!(
        "actions: [{{name: make, type: create, resource: {{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}}}}}}}]"
    )
}

fn after(plan: &Plan, step: &str) -> Vec<String> {
    let position = plan.position(&step.into()).expect("a step");
    plan.steps()[position].after.iter().map(|after| after.step.to_string()).collect()
}

fn present(name: &str) -> Value {
    config_map("own", name, &json!({}))
}

#[test]
fn a_group_begins_when_the_groups_before_it_are_met_and_done() {
    let mut stage = stage(&format!(
        "{{groups: [{{name: first, dependencies: [{{name: a, resource: configmap/a}}], {}}}, \
         {{name: second, dependsOn: [first], dependencies: [{{name: b, resource: configmap/b}}], {}}}]}}",
        make("one"),
        make("two")
    ));
    stage.put(present("b")).settle();
    assert!(stage.done().is_empty());
    let status = stage.status();
    assert_eq!(status.groups[1].phase, "Pending");
    assert_eq!(status.groups[1].reason, "WaitingForGroup");
    assert_eq!(status.groups[1].message, "waits for first");
    stage.put(present("a")).settle();
    assert_eq!(stage.done(), ["create ConfigMap own/one", "create ConfigMap own/two"]);
    assert_eq!(after(stage.plan(), "second/b"), ["first/a", "first/make"]);
    assert_eq!(after(stage.plan(), "second/make"), ["second/b"]);
    assert!(stage.report().ready);
    stage.take(&present("a")).settle();
    let status = stage.status();
    assert_eq!(
        (status.groups[0].phase.as_str(), status.groups[0].reason.as_str()),
        ("Waiting", "DependencyLost")
    );
    assert!(!status.groups[0].ready && !status.groups[1].ready, "states follow the world");
    assert_eq!(status.common.phase.as_deref(), Some("Completed"));
    stage.put(present("a")).settle();
    assert!(stage.done().is_empty(), "actions run once");
    assert!(stage.status().groups[1].ready);
}

#[test]
fn only_depends_on_orders_groups_and_priority_orders_what_starts_in_one_moment() {
    let mut stage = stage(&format!(
        "{{groups: [{{name: a, priority: 2, {}}}, {{name: b, priority: 1, {}}}, {{name: c, {}}}]}}",
        make("a"),
        make("b"),
        make("c")
    ));
    stage.settle();
    assert_eq!(stage.done(), ["create ConfigMap own/c", "create ConfigMap own/b", "create ConfigMap own/a"]);
    assert!(after(stage.plan(), "a/make").is_empty());
}

#[test]
fn a_group_without_entries_passes_on_what_it_waits_for() {
    let mut stage = stage(
        "{groups: [{name: a, dependencies: [{name: x, resource: configmap/x}]}, {name: empty, dependsOn: [a]}, \
         {name: b, dependsOn: [empty], dependencies: [{name: z, resource: configmap/z}]}]}",
    );
    stage.put(present("z")).settle();
    assert_eq!(after(stage.plan(), "b/z"), ["a/x"]);
    let phases: Vec<String> = stage.status().groups.iter().map(|group| group.phase.clone()).collect();
    assert_eq!(phases, ["Waiting", "Pending", "Pending"]);
}

#[test]
fn what_has_failed_before_its_turn_does_not_fail_its_group() {
    let mut stage = stage(
        "{groups: [{name: a, dependencies: [{name: x, resource: configmap/x}]}, \
         {name: b, dependsOn: [a], dependencies: [{name: pod, resource: pod/p}]}]}",
    );
    let failed = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "own", "name": "p"},
        "status": {"phase": "Failed"}});
    stage.put(failed).settle();
    let group = stage.status().groups[1].clone();
    assert_eq!((group.phase.as_str(), group.reason.as_str()), ("Pending", "WaitingForGroup"));
    stage.put(present("x")).settle();
    assert_eq!(stage.status().groups[1].phase, "Failed");
}

#[test]
fn the_clock_of_a_group_starts_when_its_turn_comes() {
    let mut stage = stage(
        "{groups: [{name: a, dependencies: [{name: x, resource: configmap/x}]}, \
         {name: b, dependsOn: [a], timeout: 10s, dependencies: [{name: z, resource: configmap/z, timeout: 1h}]}]}",
    );
    stage.settle().pass(60).settle();
    assert_eq!(stage.report().phase, Phase::Waiting);
    stage.put(present("x")).settle().pass(11).settle();
    let status = stage.status();
    assert_eq!(status.common.phase.as_deref(), Some("Failed"));
    assert_eq!((status.groups[1].phase.as_str(), status.groups[1].reason.as_str()), ("Failed", "TimedOut"));
    assert_eq!(status.groups[0].phase, "Ready");
}

#[test]
fn teardown_and_deletion_policy_say_what_becomes_of_what_was_made() {
    let policy = |spec: &str| stage(spec).object.deletion_policy();
    assert_eq!(policy("{groups: []}"), DeletionPolicy::Retain);
    assert_eq!(policy("{groups: [], teardown: Reverse}"), DeletionPolicy::Delete);
    assert_eq!(policy("{groups: [], deletionPolicy: Delete}"), DeletionPolicy::Delete);
}

#[test]
fn what_a_group_made_is_taken_away_in_reverse() {
    let mut stage = stage(&format!(
        "{{teardown: Reverse, groups: [{{name: a, {}}}, {{name: b, dependsOn: [a], {}}}]}}",
        make("one"),
        make("two")
    ));
    stage.settle();
    let rows: Vec<(String, usize)> = stage
        .memory
        .journal
        .inventory
        .iter()
        .map(|item| (item.target.name.clone(), item.after.len()))
        .collect();
    assert_eq!(rows, [("one".to_owned(), 0), ("two".to_owned(), 1)]);
    assert!(stage.memory.journal.has_belongings(Removal::Delete));
}

#[test]
fn others_may_wait_for_one_group_only() {
    let mut waiting = Stage::<ResourceDependencyDoor>::new(
        "{apiVersion: tools.kubestellar.io/v1, kind: ResourceDependency, metadata: {name: waiting}, spec: {\
         dependencies: [{resource: dependencygroup/x, group: operators}]}}",
    )
    .with_kubestellar();
    let platform = |observed: i64, ready: bool, phase: &str| {
        json!({"apiVersion": "tools.kubestellar.io/v1", "kind": "DependencyGroup",
            "metadata": {"namespace": "own", "name": "x", "generation": 2},
            "status": {"observedGeneration": observed, "groups": [
                {"name": "others", "ready": !ready, "phase": "Waiting"},
                {"name": "operators", "ready": ready, "phase": phase, "message": "one of them is slow"}]}})
    };
    waiting.put(platform(1, true, "Ready")).settle();
    assert_eq!(waiting.report().phase, Phase::Waiting, "what is said of an older generation does not count");
    waiting.put(platform(2, false, "Waiting")).settle();
    assert!(waiting.report().message.ends_with("one of them is slow"), "in the group's own words");
    waiting.put(platform(2, false, "Failed")).settle();
    assert_eq!(waiting.report().phase, Phase::Failed);
    waiting.put(platform(2, true, "Ready")).settle();
    assert_eq!(waiting.report().phase, Phase::Completed);
    let requirement = waiting.plan().steps()[0].requirement().expect("a requirement");
    assert_eq!(requirement.part.as_deref(), Some("operators"));
}

#[test]
fn templates_find_a_dependency_by_its_name_or_by_group_and_name() {
    let mut stage = stage(
        r#"{groups: [{name: one, dependencies: [{name: a, resource: configmap/a}]},
          {name: two, dependsOn: [one], dependencies: [{name: a, resource: configmap/b}], actions: [
            {name: out, type: create, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: out},
              data: {x: "{{ .Dependencies.one_a.Name }} {{ .Dependencies.two_a.Name }} {{ .Dependencies.configmap_b.Name }}"}}}]}]}"#,
    );
    stage.put(present("a")).put(present("b")).settle();
    assert_eq!(stage.bodies[0]["data"]["x"], "a b b");
}
