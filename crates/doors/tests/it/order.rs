//! Tiers, priorities, and names.

use linchpin_doors::ResourceDependencyDoor;
use linchpin_engine::{journal::StepState, plan::Plan, step::Phase};
use serde_json::json;

use crate::{stage::Stage, things::config_map};

fn stage(spec: &str) -> Stage<ResourceDependencyDoor> {
    Stage::new(&format!(
        "{{apiVersion: tools.kubestellar.io/v1, kind: ResourceDependency, metadata: {{name: x}}, spec: {spec}}}"
    ))
}

/// What a step comes after; `~` marks those whose end is enough.
fn after(plan: &Plan, step: &str) -> Vec<String> {
    let position = plan.position(&step.into()).expect("a step");
    let edges = plan.steps()[position].after.iter();
    edges.map(|after| format!("{}{}", if after.settled_is_enough { "~" } else { "" }, after.step)).collect()
}

#[test]
fn a_tier_comes_after_the_whole_tier_below_it() {
    let mut stage = stage(
        "{dependencies: [{name: c, resource: pod/c, priority: 7}, {name: a, resource: pod/a}, \
         {name: b, resource: pod/b, optional: true}], actions: [{name: x, type: wait, wait: 1s}]}",
    );
    stage.settle();
    assert_eq!(after(stage.plan(), "a"), Vec::<String>::new());
    assert_eq!(after(stage.plan(), "c"), ["a", "b"], "optional ones too: they pass once observed");
    assert_eq!(after(stage.plan(), "x"), ["c"]);
}

#[test]
fn the_clock_of_a_tier_starts_when_the_one_below_is_met() {
    let mut stage = stage(
        "{dependencies: [{resource: configmap/a}, {resource: configmap/b, priority: 1, timeout: 10s}], actions: []}",
    );
    stage.settle().pass(60).settle();
    assert_eq!(stage.report().phase, Phase::Waiting, "the second tier has not begun");
    stage.put(config_map("own", "a", &json!({}))).settle().pass(11).settle();
    assert_eq!(stage.report().phase, Phase::Failed);
}

#[test]
fn an_optional_dependency_delays_nothing_once_it_was_looked_at() {
    let mut stage = stage(
        "{dependencies: [{resource: configmap/a, optional: true, timeout: 1h}, {resource: configmap/b, priority: 1}], \
         actions: [{name: x, type: create, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: c}}}]}",
    );
    stage.put(config_map("own", "b", &json!({}))).settle();
    assert_eq!(stage.done(), ["create ConfigMap own/c"]);
    assert!(stage.report().ready);
}

#[test]
fn actions_wait_for_the_end_of_lower_priorities_and_for_the_good_end_of_those_they_name() {
    let mut stage = stage(
        "{actions: [{name: a, type: wait, wait: 1s}, {name: b, type: wait, wait: 1s, priority: 2}, \
         {name: c, type: wait, wait: 1s, priority: 2}, {name: d, type: wait, wait: 1s, priority: 9}, \
         {name: e, type: wait, wait: 1s, priority: 9, after: [a]}, {name: f, type: wait, wait: 1s, priority: 9, after: []}]}",
    );
    stage.settle();
    assert_eq!(after(stage.plan(), "b"), ["~a"]);
    assert_eq!(after(stage.plan(), "d"), ["~b", "~c"]);
    assert_eq!(after(stage.plan(), "e"), ["a"]);
    assert_eq!(after(stage.plan(), "f"), Vec::<String>::new());
}

#[test]
fn where_after_and_priority_contradict_each_other_after_wins() {
    let mut stage = stage(
        "{actions: [{name: a, type: wait, wait: 1s, priority: 1}, {name: b, type: wait, wait: 1s, priority: 2}, \
         {name: last, type: wait, wait: 1s, after: [middle]}, {name: middle, type: wait, wait: 1s, after: [b]}, \
         {name: between, type: wait, wait: 1s, after: [a]}, {name: c, type: wait, wait: 1s, priority: 3}]}",
    );
    stage.settle();
    assert_eq!(after(stage.plan(), "a"), Vec::<String>::new());
    assert_eq!(after(stage.plan(), "b"), ["~a"]);
    assert_eq!(after(stage.plan(), "last"), ["middle"]);
    assert_eq!(after(stage.plan(), "c"), ["~b"]);
}

#[test]
fn an_action_that_gave_up_its_priority_does_not_stand_for_those_below_it() {
    let mut stage = stage(
        "{actions: [{name: a, type: wait, wait: 1s}, {name: b, type: wait, wait: 1s, priority: 1, after: []}, \
         {name: c, type: wait, wait: 1s, priority: 2}]}",
    );
    stage.settle();
    assert_eq!(after(stage.plan(), "c"), ["~b", "~a"]);
}

#[test]
fn steps_without_a_name_are_called_by_what_they_are_about_and_never_by_position() {
    let names = |spec: &str| -> Vec<String> {
        let mut stage = stage(spec);
        stage.settle();
        let mut steps: Vec<(String, String)> =
            stage.plan().steps().iter().map(|step| (step.field.clone(), step.id.to_string())).collect();
        steps.sort();
        steps.into_iter().map(|(_, id)| id).collect()
    };
    assert_eq!(
        names(
            r#"{actions: [
                {type: create, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: other}}},
                {type: template, template: "apiVersion: v1\nkind: Secret\nmetadata: {name: 's-{{ .Now }}'}"},
                {type: template, template: "{{ if true }}{{ end }}"},
                {type: template, template: "{{ if true }}{{ end }} "},
                {type: apply, apply: [{apiVersion: v1, kind: ConfigMap, metadata: {name: b}}]},
                {type: patch, patch: {target: {kind: Deployment, name: d}, patch: "{}"}},
                {type: delete, delete: {target: {apiVersion: v1, kind: ConfigMap, name: e, namespace: other}}},
                {type: exec, exec: {target: {kind: Pod, name: p}, command: [x]}},
                {type: wait, wait: 10s}, {type: wait, wait: 10s}]}"#
        ),
        [
            "create:ConfigMap/other/a",
            "template:Secret/s-*",
            "template:documents",
            "template:documents#2",
            "apply:ConfigMap/b",
            "patch:Deployment/d",
            "delete:ConfigMap/other/e",
            "exec:Pod/p",
            "wait:10s",
            "wait:10s#2"
        ]
    );
    assert_eq!(
        names(
            "{dependencies: [{resource: pod/a}, {resource: pod/a, namespace: other}, {name: b, resource: pod/a}, \
             {resource: pod, selector: {matchLabels: {app: db}}}, {ref: {apiVersion: apps/v1, kind: Deployment, name: d}}, \
             {resource: pod/a, namespace: other}]}"
        ),
        ["pod/a", "pod/a in other", "b", "pod[app=db]", "deployment.v1.apps/d", "pod/a in other#2"]
    );
}

#[test]
fn an_action_keeps_its_name_when_a_dependency_has_the_same() {
    let mut stage = stage(
        "{dependencies: [{name: db, resource: configmap/a}], actions: [{name: db, type: wait, wait: 1s}]}",
    );
    stage.settle();
    assert_eq!(after(stage.plan(), "db"), ["dependency:db"]);
    let status = stage.status();
    assert_eq!((status.dependencies[0].name.as_str(), status.actions[0].name.as_str()), ("db", "db"));
}

#[test]
fn a_failed_action_lets_higher_priorities_run_but_not_those_that_name_it() {
    let create = |name: &str, more: &str| {
        format!(
            "{{name: {name}, type: create, resource: {{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}}}, \
             data: {{v: \"{{{{ .Values.{} }}}}\"}}}}{more}}}",
            if name == "bad" { "missing" } else { "there" }
        )
    };
    let spec = |more: &str| {
        format!(
            "{{values: {{there: x}}, actions: [{}, {}, {}]}}",
            create("bad", more),
            create("next", ", priority: 1"),
            create("named", ", after: [bad]")
        )
    };
    let mut first = stage(&spec(""));
    first.settle();
    assert_eq!(first.done(), ["create ConfigMap own/next"]);
    assert_eq!(first.report().phase, Phase::Failed);
    let states: Vec<StepState> = first.report().steps.iter().map(|step| step.state).collect();
    assert_eq!(states.iter().filter(|state| **state == StepState::Waiting).count(), 1);
    let mut second = stage(&spec(", failFast: true"));
    second.settle();
    assert!(second.done().is_empty(), "with failFast nothing new starts");
}

#[test]
fn what_comes_after_waits_for_the_delay() {
    let mut stage = stage(
        "{actions: [{name: a, type: wait, wait: 0s, delayAfter: 5s}, {name: b, priority: 1, type: create, \
         resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: c}}}]}",
    );
    stage.settle();
    assert!(stage.done().is_empty());
    stage.pass(5).settle();
    assert_eq!(stage.done(), ["create ConfigMap own/c"]);
}
