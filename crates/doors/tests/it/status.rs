//! Statuses as people and tools read them.

use linchpin_api::Status;
use linchpin_doors::{ResourceDependencyDoor, journal, registry};
use linchpin_engine::contract::Via;
use serde_json::{Value, json};

use crate::{
    stage::Stage,
    things::{config_map, control_plane, deployment},
};

const SPEC: &str =
    "{apiVersion: tools.kubestellar.io/v1, kind: ResourceDependency, metadata: {name: x}, spec: {
    onFailure: [{type: event, message: oh}, {type: status, phase: Broken, message: call us}],
    dependencies: [{name: db, resource: deployment/db, namespace: data, timeout: 1m},
      {resource: pod, selector: {matchLabels: {app: db}}, expect: {atLeast: 2}, optional: true}],
    actions: [{name: go, type: create, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: c}}},
      {type: create, priority: 1, condition: {dependency: db, state: NotFound},
       resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: d}}}]}}";

/// The status without its journal and its edges, whose form is the engine's.
fn shown(status: &Status) -> Value {
    let mut value = serde_json::to_value(status).expect("JSON");
    value.as_object_mut().expect("an object").remove("journal");
    value.as_object_mut().expect("an object").remove("edges");
    value
}

fn condition(kind: &str, status: &str, reason: &str, message: &str, since: &str) -> Value {
    json!({"type": kind, "status": status, "reason": reason, "message": message, "observedGeneration": 1,
        "lastTransitionTime": since})
}

#[test]
fn a_phase_that_the_author_chose_is_one_line() {
    let mut stage = Stage::<ResourceDependencyDoor>::new(&SPEC.replace("Broken", r#""Up\nDown""#));
    stage.settle().pass(61).settle();
    assert_eq!(stage.status().common.phase.as_deref(), Some(r"Up\nDown"));
}

#[test]
fn a_waiting_object_says_what_it_waits_for() {
    let mut stage = Stage::<ResourceDependencyDoor>::new(SPEC);
    stage.put(deployment("data", "db", 0)).settle();
    let status = stage.status();
    let at = "1970-01-01T00:16:40Z";
    let why = status.dependencies[0].message.clone();
    let message = format!("waiting for deployment/db in namespace data: {why}");
    assert_eq!(
        shown(&status),
        json!({
            "observedGeneration": 1,
            "phase": "Waiting",
            "message": message,
            "conditions": [
                condition("Ready", "False", "Waiting", &message, at),
                condition("Reconciling", "True", "Waiting", &message, at),
                condition("Stalled", "False", "Waiting", &message, at)
            ],
            "blockedBy": [{
                "reason": status.dependencies[0].reason, "message": format!("deployment/db in namespace data: {why}"), "step": "db",
                "object": {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "data", "name": "db"},
                "since": at
            }],
            "dependencies": [
                {"name": "db", "resource": "deployment/db", "state": "NotReady", "met": false,
                    "reason": status.dependencies[0].reason, "message": why, "since": at,
                    "resolved": {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "data", "name": "db"}},
                {"name": "pod[app=db]", "resource": "pod", "state": "NotFound", "met": false, "reason": "CountNotMet",
                    "message": "0 of 0 matching objects are Ready, at least 2 wanted", "since": at,
                    "resolved": {"apiVersion": "v1", "kind": "Pod", "namespace": "own"}, "matched": 0}
            ],
            "actions": [
                {"name": "go", "type": "create", "state": "Waiting", "reason": "WaitingForStep",
                    "message": "waits for deployment/db in namespace data", "since": at},
                {"name": "create:ConfigMap/d", "type": "create", "state": "Waiting", "reason": "WaitingForStep",
                    "message": "waits for deployment/db in namespace data, go", "since": at}
            ],
            "startTime": at
        })
    );
}

#[test]
fn a_completed_object_says_so_and_says_it_once() {
    let mut stage = Stage::<ResourceDependencyDoor>::new(SPEC);
    stage.put(deployment("data", "db", 0)).settle();
    stage.status();
    stage.pass(7).put(deployment("data", "db", 1)).settle();
    let status = stage.status();
    let (before, at) = ("1970-01-01T00:16:40Z", "1970-01-01T00:16:47Z");
    let message = "all 2 actions are done";
    let view = shown(&status);
    assert_eq!(view["phase"], "Completed");
    assert_eq!(
        view["conditions"],
        json!([
            condition("Ready", "True", "Completed", message, at),
            condition("Reconciling", "False", "Completed", message, at),
            condition("Stalled", "False", "Completed", message, before)
        ])
    );
    assert_eq!(view.get("blockedBy"), None);
    assert_eq!((&view["startTime"], &view["completionTime"]), (&json!(before), &json!(at)));
    assert_eq!(
        view["actions"],
        json!([
            {"name": "go", "type": "create", "state": "Completed", "reason": "Completed", "since": at, "attempts": 1},
            {"name": "create:ConfigMap/d", "type": "create", "state": "Skipped", "reason": "GuardFalse",
             "message": "the action's condition is false", "since": at}
        ])
    );
    stage.pass(100).settle();
    assert_eq!(stage.status(), status, "nothing changed, so nothing is to be written");
}

#[test]
fn a_failed_object_is_stalled_and_shows_the_words_the_user_chose() {
    let mut stage = Stage::<ResourceDependencyDoor>::new(SPEC);
    stage.settle().pass(61).settle();
    assert_eq!(stage.done(), ["notice oh"]);
    let status = stage.status();
    assert_eq!(status.common.phase.as_deref(), Some("Broken"));
    let message = status.common.message.as_deref().expect("a message");
    assert_eq!(
        message,
        "call us: timed out after 1m0s: deployment/db in namespace data: namespace data does not exist"
    );
    assert_eq!(status.dependencies[0].state, "TimedOut");
    let told: Vec<(&str, &str)> =
        status.common.conditions.iter().map(|one| (one.kind.as_str(), one.reason.as_str())).collect();
    assert_eq!(told, [("Ready", "TimedOut"), ("Reconciling", "TimedOut"), ("Stalled", "TimedOut")]);
    assert_eq!(status.common.conditions[1].status, linchpin_words::ConditionStatus::False);
    assert_eq!(status.common.conditions[2].status, linchpin_words::ConditionStatus::True);
    stage.pass(30).put(deployment("data", "db", 1)).settle();
    assert_eq!(
        stage.done(),
        ["create ConfigMap own/c"],
        "it recovers by itself, and the failure is not told again"
    );
    assert_eq!(stage.status().common.phase.as_deref(), Some("Completed"));
}

#[test]
fn a_wrong_spec_is_stalled_with_its_field_and_recovers_when_it_is_mended() {
    let mut stage = Stage::<ResourceDependencyDoor>::new(SPEC);
    stage.edit(|object| object["spec"]["dependencies"][0]["timeout"] = json!("later")).settle();
    let status = stage.status();
    assert_eq!(
        status.common.phase.as_deref(),
        Some("Failed"),
        "the user's word is for failures, not for mistakes"
    );
    assert_eq!(status.common.observed_generation, 2);
    assert!(
        status.common.message.as_deref().expect("a message").starts_with("spec.dependencies[0].timeout: ")
    );
    assert_eq!(status.common.conditions[2].reason, "SpecInvalid");
    stage.edit(|object| object["spec"]["dependencies"][0]["timeout"] = json!("1m"));
    stage.put(deployment("data", "db", 1)).settle();
    assert_eq!(stage.status().common.phase.as_deref(), Some("Completed"));
}

#[test]
fn a_suspended_object_waits_without_a_clock() {
    let mut stage = Stage::<ResourceDependencyDoor>::new(SPEC);
    stage.edit(|object| object["spec"]["suspend"] = json!(true));
    stage.settle().pass(1000).put(deployment("data", "db", 1)).settle();
    assert!(stage.done().is_empty());
    let status = stage.status();
    assert_eq!(status.common.phase.as_deref(), Some("Suspended"));
    assert_eq!(
        status.common.conditions[1].status,
        linchpin_words::ConditionStatus::True,
        "it is still reconciling"
    );
}

#[test]
fn a_blocker_keeps_its_beginning_and_the_chain_that_was_found_for_it() {
    let mut stage = Stage::<ResourceDependencyDoor>::new(SPEC);
    stage.put(deployment("data", "db", 0)).settle();
    let first = stage.status();
    let chain = vec!["Deployment data/db waits for nobody".to_owned()];
    if let Some(status) = &mut stage.object.status {
        status.common.blocked_by[0].chain.clone_from(&chain);
        status.common.blocked_by[0].since = linchpin_words::Timestamp::from_second(7);
    }
    stage.pass(9).settle();
    let second = stage.status();
    assert_eq!(second.common.blocked_by[0].since, linchpin_words::Timestamp::from_second(7));
    assert_eq!(second.common.blocked_by[0].chain, chain);
    assert_eq!(second.common.blocked_by[0].step, first.common.blocked_by[0].step);
}

#[test]
fn a_start_of_the_operator_is_no_news() {
    let spec = "{apiVersion: tools.kubestellar.io/v1, kind: ResourceDependency, metadata: {name: x}, spec: {\
        watchMode: true, dependencies: [{resource: controlplane/its1}, {resource: configmap/a, priority: 1}], \
        actions: [{name: go, type: create, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: c}}}]}}";
    let mut stage = Stage::<ResourceDependencyDoor>::new(spec).with_kubestellar();
    stage.put(control_plane("its1", &json!({}))).settle();
    let waiting = stage.status();
    assert_eq!(stage.pass(60).start_anew().status(), waiting);
    stage.settle();
    assert_eq!(stage.status(), waiting);
    stage.put(config_map("own", "a", &json!({}))).settle();
    let completed = stage.status();
    assert_eq!(completed.common.phase.as_deref(), Some("Completed"));
    assert_eq!(stage.pass(60).start_anew().status(), completed);
    stage.settle();
    assert_eq!(stage.status(), completed);
}

#[test]
fn the_journal_is_read_back_and_that_of_another_object_is_not_believed() {
    let mut stage = Stage::<ResourceDependencyDoor>::new(SPEC);
    stage.put(config_map("own", "c", &json!({}))).settle();
    stage.status();
    let journal = journal::of(&stage.object).expect("readable").expect("a journal");
    assert_eq!(journal, stage.memory.journal);
    stage.object.metadata.uid = Some("another".to_owned());
    assert_eq!(journal::of(&stage.object).expect("readable"), None);
}

#[test]
fn the_journal_is_one_text_and_one_that_was_written_as_an_object_is_read_too() {
    let mut stage = Stage::<ResourceDependencyDoor>::new(SPEC);
    stage.put(config_map("own", "c", &json!({}))).settle();
    let written = stage.status().common.journal.expect("a journal");
    let text = written["text"].as_str().expect("a text");
    assert_eq!(written, json!({ "text": text }));
    let status = stage.object.status.as_mut().expect("a status");
    status.common.journal = Some(serde_json::from_str(text).expect("a journal"));
    let journal = journal::of(&stage.object).expect("readable").expect("a journal");
    assert_eq!(journal, stage.memory.journal);
}

#[test]
fn the_controller_learns_all_it_needs_of_a_kind() {
    let registry = registry();
    let kind = registry.of_manifest("tools.kubestellar.io/v1", "ResourceDependency").expect("registered");
    let names = kind.names();
    assert_eq!(names.gvk.to_string(), "tools.kubestellar.io/v1, Kind=ResourceDependency");
    assert_eq!((names.plural.as_str(), names.namespaced), ("resourcedependencies", true));
    assert_eq!(names.short, ["resdep", "rd"]);
    assert_eq!(kind.finalizer(), Some("linchpin.dev/teardown"));
    let text = r#"{"metadata": {"namespace": "own", "name": "x", "uid": "u"}, "spec": {}}"#;
    let subject = kind.subject(text, &"builder".into()).expect("readable");
    assert_eq!(subject.key().object_ref().to_string(), "ResourceDependency own/x");
    assert_eq!(subject.via(), Some(Via::service_account("own", "builder")));
    assert_eq!(subject.priority(), 0);
    let profile = registry.of_manifest("linchpin.dev/v1alpha1", "ReadinessProfile").expect("registered");
    assert!(!profile.names().namespaced && !profile.waits());
}

#[test]
fn a_dependency_that_failed_is_named_once() {
    let mut stage = Stage::<ResourceDependencyDoor>::new(
        "{apiVersion: tools.kubestellar.io/v1, kind: ResourceDependency, metadata: {name: rd, namespace: shop, uid: u, \
         generation: 1}, spec: {dependencies: [{resource: job/doomed}]}}",
    );
    stage.put(
        json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"namespace": "shop", "name": "doomed"},
        "status": {"conditions": [{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}]}}),
    );
    stage.settle();
    let message = stage.status().common.message.expect("a message");
    assert_eq!(message, "job/doomed: job failed: BackoffLimitExceeded");
}
