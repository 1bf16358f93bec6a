//! What runs again, and what does not.

use linchpin_doors::ResourceDependencyDoor;
use linchpin_engine::{
    plan::{ActionBody, Rerun},
    step::Phase,
};
use serde_json::json;

use crate::{stage::Stage, things::config_map};

fn stage(spec: &str) -> Stage<ResourceDependencyDoor> {
    Stage::new(&format!(
        "{{apiVersion: tools.kubestellar.io/v1, kind: ResourceDependency, metadata: {{name: x}}, spec: {spec}}}"
    ))
}

const COPY: &str = r#"{watchMode: true, dependencies: [
    {name: read, resource: configmap/read}, {name: other, resource: configmap/other}],
  actions: [{name: copy, type: template, runOnChanges: true, template: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: out}\ndata: {v: '{{ .Dependencies.read.Object.data.v }}'}"}]}"#;

#[test]
fn an_action_runs_again_for_what_it_reads_and_for_nothing_else() {
    let mut stage = stage(COPY);
    stage.put(config_map("own", "read", &json!({"v": "1"}))).put(config_map(
        "own",
        "other",
        &json!({"v": "1"}),
    ));
    stage.settle();
    assert_eq!(stage.done().len(), 1);
    stage.put(config_map("own", "other", &json!({"v": "2"}))).settle();
    stage.put(config_map("own", "read", &json!({"v": "1", "w": "2"}))).settle();
    assert!(stage.done().is_empty());
    stage.put(config_map("own", "read", &json!({"v": "2"}))).settle();
    assert_eq!(stage.done().len(), 1);
    stage.take(&config_map("own", "read", &json!({}))).settle();
    assert!(stage.done().is_empty(), "it runs once all requirements hold");
    stage.put(config_map("own", "read", &json!({"v": "2"}))).settle();
    assert_eq!(stage.done().len(), 1, "a new incarnation is an event of its own");
}

#[test]
fn an_action_that_does_not_ask_for_it_runs_once() {
    let mut stage = stage(&COPY.replace("runOnChanges: true, ", ""));
    stage.put(config_map("own", "read", &json!({"v": "1"}))).put(config_map("own", "other", &json!({})));
    stage.settle();
    assert_eq!(stage.done().len(), 1);
    stage.put(config_map("own", "read", &json!({"v": "2"}))).settle();
    assert!(stage.done().is_empty());
}

#[test]
fn events_that_do_not_count_start_nothing() {
    let mut stage =
        stage(&COPY.replace("resource: configmap/read}", "resource: configmap/read, watchEvents: [create]}"));
    stage.put(config_map("own", "read", &json!({"v": "1"}))).put(config_map("own", "other", &json!({})));
    stage.settle();
    assert_eq!(stage.done().len(), 1);
    stage.put(config_map("own", "read", &json!({"v": "2"}))).settle();
    assert!(stage.done().is_empty(), "an update is not watched for");
    stage.take(&config_map("own", "read", &json!({}))).settle();
    stage.put(config_map("own", "read", &json!({"v": "3"}))).settle();
    assert_eq!(stage.done().len(), 1);
}

#[test]
fn of_a_selection_one_more_is_created_and_one_less_is_deleted() {
    for (events, on_more, on_less) in [("create", 1, 0), ("delete", 0, 1), ("update", 0, 0)] {
        let mut stage = stage(&format!(
            "{{watchMode: true, dependencies: [{{name: all, resource: configmap, selector: {{matchLabels: {{app: a}}}}, \
             watchEvents: [{events}]}}], \
             actions: [{{name: x, type: exec, runOnChanges: true, exec: {{target: {{kind: Pod, name: p}}, command: [x]}}}}]}}"
        ));
        let labelled = |name: &str| {
            let mut one = config_map("own", name, &json!({}));
            one["metadata"]["labels"] = json!({"app": "a"});
            one
        };
        stage.put(labelled("a")).settle();
        assert_eq!(stage.done().len(), 1, "{events}");
        stage.put(labelled("b")).settle();
        assert_eq!(stage.done().len(), on_more, "{events}: one more");
        stage.take(&labelled("b")).settle();
        assert_eq!(stage.done().len(), on_less, "{events}: one less");
    }
}

#[test]
fn an_action_that_reads_nothing_looks_at_all_dependencies() {
    let mut stage = stage(
        "{watchMode: true, dependencies: [{name: a, resource: configmap/a}, {name: b, resource: configmap/b}], \
         actions: [{name: x, type: wait, wait: 0s, runOnChanges: true}]}",
    );
    stage.settle();
    let position = stage.plan().position(&"x".into()).expect("a step");
    match &stage.plan().steps()[position].action().expect("an action").rerun {
        Rerun::OnReads(events) => assert_eq!(events.len(), 2),
        other => panic!("{other:?}"),
    }
}

#[test]
fn without_watch_mode_a_completed_object_is_done() {
    let mut stage = stage(&COPY.replace("watchMode: true, ", ""));
    stage.put(config_map("own", "read", &json!({"v": "1"}))).put(config_map("own", "other", &json!({})));
    stage.settle();
    assert!(stage.decision.as_ref().expect("a decision").wants.is_empty(), "nothing is watched");
    stage.put(config_map("own", "read", &json!({"v": "2"}))).settle();
    assert_eq!(stage.done().len(), 1);
}

#[test]
fn what_is_watched_only_from_now_on_has_not_changed() {
    let mut one = stage(&COPY.replace("watchMode: true, ", ""));
    one.put(config_map("own", "read", &json!({"v": "1"}))).put(config_map("own", "other", &json!({})));
    one.settle();
    assert_eq!(one.done().len(), 1);
    one.edit(|object| object["spec"]["watchMode"] = json!(true)).settle();
    assert!(one.done().is_empty(), "law 7: nothing of the action has changed");
    one.put(config_map("own", "read", &json!({"v": "2"}))).settle();
    assert_eq!(one.done().len(), 1);

    let mut two = stage(
        "{watchMode: true, dependencies: [{name: a, resource: configmap/a}], \
         actions: [{name: x, type: exec, runOnChanges: true, exec: {target: {kind: Pod, name: p}, command: [x]}}]}",
    );
    two.put(config_map("own", "a", &json!({}))).put(config_map("own", "b", &json!({}))).settle();
    assert_eq!(two.done(), ["exec own/p: x"]);
    let b = json!({"name": "b", "resource": "configmap/b"});
    two.edit(|object| object["spec"]["dependencies"].as_array_mut().expect("a list").push(b)).settle();
    assert!(two.done().is_empty(), "a dependency that is asked for from now on is no event of it");
    two.take(&config_map("own", "b", &json!({}))).settle();
    two.put(config_map("own", "b", &json!({}))).settle();
    assert_eq!(two.done(), ["exec own/p: x"], "its next incarnation is one");
}

#[test]
fn a_dependency_that_is_added_to_a_completed_object_is_waited_for() {
    let made = "{name: x, type: create, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: made}}}";
    let mut stage = stage(&format!("{{dependencies: [{{resource: configmap/a}}], actions: [{made}]}}"));
    stage.put(config_map("own", "a", &json!({}))).settle();
    assert_eq!(stage.report().phase, Phase::Completed);
    stage.take(&config_map("own", "a", &json!({})));
    stage.edit(|object| object["spec"]["priority"] = json!(1)).settle();
    assert_eq!(stage.report().phase, Phase::Completed, "it was met before");
    let later = json!({"resource": "configmap/later", "timeout": "1m"});
    stage.edit(|object| object["spec"]["dependencies"][0] = later).settle();
    assert_eq!((stage.report().phase, stage.report().ready), (Phase::Waiting, false));
    assert_eq!(stage.report().message, "waiting for configmap/later: it does not exist");
    stage.pass(61).settle();
    assert_eq!(stage.report().phase, Phase::Failed);
    stage.done();
    stage.put(config_map("own", "later", &json!({}))).settle();
    assert_eq!((stage.report().phase, stage.report().ready), (Phase::Completed, true));
    assert!(stage.done().is_empty(), "nothing runs again");
}

#[test]
fn what_could_not_be_seen_when_an_action_ran_is_new_when_it_appears() {
    let mut stage = stage(
        "{watchMode: true, dependencies: [{name: a, resource: configmap/a, optional: true}], \
         actions: [{name: x, type: exec, runOnChanges: true, condition: {dependency: a, state: Exists}, \
         exec: {target: {kind: Pod, name: p}, command: [x]}}]}",
    );
    stage.settle();
    assert!(stage.done().is_empty(), "it was left out");
    stage.put(config_map("own", "a", &json!({}))).settle();
    assert_eq!(stage.done(), ["exec own/p: x"]);
}

const TWO: &str = r#"{values: {a: one, b: two}, actions: [
    {name: reads-a, type: create, onExisting: Adopt, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {v: "{{ .Values.a }}"}}},
    {name: ran, type: exec, exec: {target: {kind: Pod, name: p}, command: [migrate, "{{ .Values.b }}"]}}]}"#;

#[test]
fn a_new_generation_runs_only_what_changed() {
    let mut stage = stage(TWO);
    stage.settle();
    assert_eq!(stage.done(), ["create ConfigMap own/a", "exec own/p: migrate two"]);
    stage.edit(|object| object["spec"]["globalTimeout"] = json!("1h")).settle();
    assert!(stage.done().is_empty(), "nothing of these actions changed");
    stage.edit(|object| object["spec"]["actions"][0]["priority"] = json!(0)).settle();
    assert!(stage.done().is_empty(), "a default that is written out is no change");
    stage.edit(|object| object["spec"]["values"]["c"] = json!("three")).settle();
    assert!(stage.done().is_empty(), "nobody reads this value");
    stage.edit(|object| object["spec"]["values"]["a"] = json!("other")).settle();
    assert_eq!(stage.done(), ["create ConfigMap own/a"], "only what reads the value");
    stage
        .edit(|object| object["spec"]["actions"][1]["exec"]["command"] = json!(["migrate", "again"]))
        .settle();
    assert_eq!(stage.done(), ["exec own/p: migrate again"]);
}

#[test]
fn raw_texts_are_taken_as_they_are() {
    let mut stage = stage(
        r#"{actions: [
            {name: a, type: create, raw: true, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {v: "{{ x }}"}}},
            {name: b, priority: 1, type: template, raw: true, template: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\ndata: {v: '{{ $labels.x }} {{ if'}"},
            {name: c, priority: 2, type: exec, raw: true, exec: {target: {kind: Pod, name: p}, command: ["{{ y }}"]}}]}"#,
    );
    stage.settle();
    assert_eq!(stage.bodies[0]["data"]["v"], "{{ x }}");
    assert_eq!(stage.bodies[1]["data"]["v"], "{{ $labels.x }} {{ if");
    assert_eq!(stage.done()[2], "exec own/p: {{ y }}");
}

#[test]
fn what_must_be_deleted_one_day_is_remembered_and_nothing_else() {
    let tracked = |spec: &str| -> Vec<bool> {
        let mut stage = stage(spec);
        stage.settle();
        stage.plan().steps().iter().filter_map(|step| step.action()).map(|action| action.tracked).collect()
    };
    let actions = "actions: [{type: create, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}}, \
        {type: patch, patch: {target: {kind: Deployment, name: d}, patch: '{}'}}]";
    assert_eq!(tracked(&format!("{{{actions}}}")), [false, false]);
    assert_eq!(tracked(&format!("{{deletionPolicy: Delete, {actions}}}")), [true, false]);
}

#[test]
fn field_managers_name_the_object_and_the_step() {
    let mut stage = stage(TWO);
    stage.settle();
    let position = stage.plan().position(&"reads-a".into()).expect("a step");
    let action = stage.plan().steps()[position].action().expect("an action");
    assert_eq!(action.manager, "linchpin:ResourceDependency:own/x:reads-a");
    assert!(matches!(action.body, ActionBody::Create { .. }));
}
