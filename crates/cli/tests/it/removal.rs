//! The end of an object: in reverse, by policy, and never stuck.

use crate::{eventually, seconds, world::scenario};
use linchpin_testkit::{Scenario, audit::assert_before};
use serde_json::{Value, json};

const FIVE: &str = "
    deletionPolicy: Delete
    dependencies: [{name: gate, resource: configmap/gate}]
    actions:
    - {name: a, priority: 1, type: create, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}}
    - {name: b, priority: 2, type: create, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: b}}}
    - {name: pause, priority: 3, type: wait, wait: 1h}
    - {name: c, priority: 4, type: create, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: c}}}
";

/// An object in the middle of its plan: two of three ConfigMaps are made.
fn midway(name: &str) -> Scenario {
    let scenario = scenario(name);
    scenario.config_map("gate", "");
    scenario.resource_dependency("rd", FIVE);
    scenario.until("is midway", "ResourceDependency", "rd", |object| {
        object["status"]["blockedBy"][0]["step"] == "pause"
    });
    scenario
}

#[test]
fn policy_delete_removes_in_reverse_what_was_made_and_nothing_else() {
    let scenario = scenario("reverse");
    scenario.config_map("b", "theirs");
    scenario.resource_dependency(
        "rd",
        "
        deletionPolicy: Delete
        actions:
        - {name: a, priority: 1, type: create, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}}
        - {name: b, priority: 2, type: create, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: b}}}
        - {name: c, priority: 3, type: create, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: c, finalizers: [example.com/hold]}}}
        ",
    );
    scenario.completed("rd");
    scenario.delete("ResourceDependency", "rd");
    scenario.until("goes", "ConfigMap", "c", |object| object["metadata"].get("deletionTimestamp").is_some());
    scenario.passes("meanwhile");
    scenario.merge("ConfigMap", "c", &json!({"metadata": {"finalizers": null}}));
    scenario.gone("ResourceDependency", "rd");
    assert!(!scenario.has("a") && scenario.has("b") && !scenario.has("c"));
    let writes = scenario.audit.user_writes("reverse");
    let deleted =
        |name: &str| writes.iter().find(|event| event.verb == "delete" && event.name == name).unwrap();
    assert_before(deleted("c"), deleted("a"));
    // It waits until what came later is gone.
    assert_before(&scenario.audit.last_by_others("configmaps", "reverse", "c"), deleted("a"));
}

#[test]
fn policy_retain_keeps_everything_and_goes_at_once() {
    let scenario = scenario("retain");
    scenario.resource_dependency(
        "rd",
        "actions: [{type: create, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}}]",
    );
    let done = scenario.completed("rd");
    assert!(done["metadata"].get("finalizers").is_none());
    scenario.delete("ResourceDependency", "rd");
    assert!(scenario.get("ResourceDependency", "rd").is_none());
    assert!(scenario.has("a"));
}

#[test]
fn a_foreign_finalizer_is_named_and_another_policy_releases_at_once() {
    let scenario = scenario("held-up");
    scenario.resource_dependency(
        "rd",
        "
        deletionPolicy: Delete
        actions: [{name: a, type: create, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: a, finalizers: [example.com/hold]}}}]
        ",
    );
    let done = scenario.completed("rd");
    assert_eq!(done["metadata"]["finalizers"][0], "linchpin.dev/teardown");
    scenario.delete("ResourceDependency", "rd");
    let held = scenario.until("says what holds it up", "ResourceDependency", "rd", |object| {
        object["status"].to_string().contains("example.com/hold")
    });
    assert_eq!(held["status"]["phase"], "Deleting");
    scenario.merge("ResourceDependency", "rd", &json!({"spec": {"deletionPolicy": "Retain"}}));
    scenario.gone("ResourceDependency", "rd");
    assert!(scenario.has("a"), "it waits for its own finalizer");
}

#[test]
fn a_finalizer_is_there_only_while_something_must_be_deleted() {
    let scenario = scenario("finalizers");
    scenario.resource_dependency(
        "rd",
        "
        deletionPolicy: Delete
        actions: [{name: a, type: create, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}}]
        ",
    );
    let has_none = |object: &Value| object["metadata"].get("finalizers").is_none();
    assert!(!has_none(&scenario.completed("rd")));
    scenario.merge("ResourceDependency", "rd", &json!({"spec": {"deletionPolicy": "Retain"}}));
    scenario.until("has no finalizer", "ResourceDependency", "rd", has_none);
    scenario.merge("ResourceDependency", "rd", &json!({"spec": {"deletionPolicy": "Delete"}}));
    scenario.completed("rd");
    scenario.delete("ResourceDependency", "rd");
    scenario.gone("ResourceDependency", "rd");
}

#[test]
fn an_object_deleted_midway_takes_its_things_down() {
    let scenario = midway("midway");
    scenario.delete("ResourceDependency", "rd");
    scenario.gone("ResourceDependency", "rd");
    assert!(!scenario.has("a") && !scenario.has("b") && !scenario.has("c"));
}

#[test]
fn a_namespace_deleted_midway_goes() {
    let scenario = midway("namespace-goes");
    scenario.api.delete("Namespace", "", "namespace-goes");
    let gone = |seen: &Value| seen.is_null();
    scenario.until("is gone", "Namespace", "namespace-goes", gone);
}

#[test]
fn a_service_account_deleted_midway_holds_nothing_up() {
    let scenario = midway("account-goes");
    scenario.delete("ServiceAccount", "actor");
    scenario.until("says so", "ResourceDependency", "rd", |object| {
        object["status"].to_string().contains("IdentityGone")
    });
    scenario.delete("ResourceDependency", "rd");
    scenario.gone("ResourceDependency", "rd");
    assert!(scenario.has("a") && scenario.has("b"), "nobody may delete them");
    let told = || {
        let list = scenario.api.read("/apis/events.k8s.io/v1/namespaces/default/events").unwrap();
        let events = list["items"].as_array().cloned().unwrap_or_default();
        let ours = events.into_iter().filter(|event| event["reason"] == "LeftBehind");
        ours.filter(|event| event["note"].as_str().is_some_and(|note| note.contains("account-goes"))).count()
    };
    eventually("what is left is told in the operator's namespace", seconds(20), || told() >= 2);
}
