//! What people do by hand: suspend, pass a gate, run again, ask for a fresh look.

use crate::{seconds, told, world::scenario};
use linchpin_testkit::entry;
use serde_json::json;
use std::thread;

#[test]
fn a_suspended_object_starts_nothing() {
    let scenario = scenario("suspend");
    scenario.config_map("there", "");
    scenario.resource_dependency(
        "rd",
        "
        suspend: true
        dependencies: [{resource: configmap/there}]
        actions: [{type: create, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: done}}}]
        ",
    );
    scenario.phase("ResourceDependency", "rd", "Suspended");
    thread::sleep(seconds(1));
    assert!(!scenario.has("done"));
    scenario.merge("ResourceDependency", "rd", &json!({"spec": {"suspend": false}}));
    scenario.completed("rd");
    assert!(scenario.has("done"));
}

#[test]
fn a_gate_is_passed_by_hand_for_one_generation() {
    let scenario = scenario("proceed");
    scenario.resource_dependency(
        "rd",
        "
        dependencies: [{name: gate, resource: configmap/never}]
        actions: [{type: create, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: done}}}]
        ",
    );
    scenario.blocked("rd", "NotFound");
    scenario.annotate("ResourceDependency", "rd", "linchpin.dev/proceed", "gate@7");
    thread::sleep(seconds(1));
    assert!(!scenario.has("done"), "that was for another generation");
    scenario.annotate("ResourceDependency", "rd", "linchpin.dev/proceed", "gate@1");
    let done = scenario.completed("rd");
    assert_eq!(entry(&done, "dependencies", "gate")["reason"], "Proceeded");
    told(&scenario, "rd", "Proceeded");
}

#[test]
fn an_action_runs_again_on_request_and_once_per_request() {
    let scenario = scenario("rerun");
    scenario.resource_dependency(
        "rd",
        "
        actions:
        - {name: one, type: apply, apply: {apiVersion: v1, kind: ConfigMap, metadata: {name: one}, data: {now: '{{ .Now }}'}}}
        - {name: two, type: apply, apply: {apiVersion: v1, kind: ConfigMap, metadata: {name: two}, data: {now: '{{ .Now }}'}}}
        ",
    );
    scenario.completed("rd");
    let (one, two) = (scenario.data("one", "now").unwrap(), scenario.data("two", "now").unwrap());
    thread::sleep(seconds(1));
    scenario.annotate("ResourceDependency", "rd", "linchpin.dev/rerun", "one@a");
    scenario.until("was written again", "ConfigMap", "one", |object| object["data"]["now"] != one.as_str());
    scenario.completed("rd");
    assert_eq!(scenario.data("two", "now").unwrap(), two);
    thread::sleep(seconds(1));
    let writes = scenario.audit.user_writes("rerun");
    assert_eq!(writes.iter().filter(|event| event.name == "one").count(), 2, "{writes:#?}");
    assert_eq!(writes.iter().filter(|event| event.name == "two").count(), 1, "{writes:#?}");
}

#[test]
fn an_order_that_names_nothing_is_reported_and_not_ignored() {
    let scenario = scenario("wrong-orders");
    scenario.resource_dependency(
        "rd",
        "
        dependencies: [{name: gate, resource: configmap/never}]
        actions: [{name: seed, type: create, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: done}}}]
        ",
    );
    scenario.app_bundle(
        "bundle",
        "requires: [{name: gate, resource: configmap/never}]
groups: [{name: app, components: [{name: web, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: made}}}]}]",
    );
    for (kind, name, key, value, problem) in [
        ("ResourceDependency", "rd", "rerun", "al", "there is no action \"al\"; did you mean all?"),
        ("ResourceDependency", "rd", "rerun", "sede@1", "there is no action \"sede\"; did you mean seed?"),
        ("ResourceDependency", "rd", "proceed", "gate", "\"gate\" names no generation; write DEPENDENCY@1"),
        (
            "ResourceDependency",
            "rd",
            "proceed",
            "gaet@1",
            "there is no dependency \"gaet\"; did you mean gate?",
        ),
        (
            "AppBundle",
            "bundle",
            "rerun",
            "app/wbe@1",
            "there is no action \"app/wbe\"; did you mean app/web?",
        ),
        ("AppBundle", "bundle", "proceed", "gaet@1", "there is no dependency \"gaet\"; did you mean gate?"),
    ] {
        let key = format!("linchpin.dev/{key}");
        scenario.annotate(kind, name, &key, value);
        let expected = format!("; annotation {key}: {problem}");
        scenario.until(&format!("says{expected}"), kind, name, |object| {
            object["status"]["message"].as_str().is_some_and(|message| message.ends_with(&expected))
        });
        scenario.merge(kind, name, &json!({"metadata": {"annotations": {key.as_str(): null}}}));
        scenario.until("says no more of it", kind, name, |object| {
            object["status"]["message"].as_str().is_some_and(|message| !message.contains("annotation"))
        });
    }
}

#[test]
fn manual_recovery_waits_to_be_asked() {
    let scenario = scenario("manual");
    scenario.resource_dependency(
        "rd",
        "
        recovery: Manual
        dependencies: [{resource: configmap/slow, timeout: 1s}]
        actions: [{type: create, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: done}}}]
        ",
    );
    scenario.phase("ResourceDependency", "rd", "Failed");
    scenario.config_map("slow", "");
    thread::sleep(seconds(1));
    assert!(!scenario.has("done"));
    scenario.phase("ResourceDependency", "rd", "Failed");
    scenario.annotate("ResourceDependency", "rd", "linchpin.dev/requested-at", "now");
    scenario.completed("rd");
    assert!(scenario.has("done"));
}

#[test]
fn a_new_generation_runs_only_what_has_changed() {
    let scenario = scenario("generations");
    let spec = |second: &str| {
        format!(
            "
            actions:
            - {{name: one, type: apply, apply: {{apiVersion: v1, kind: ConfigMap, metadata: {{name: one}}, data: {{value: same}}}}}}
            - {{name: two, type: apply, apply: {{apiVersion: v1, kind: ConfigMap, metadata: {{name: two}}, data: {{value: {second}}}}}}}
            "
        )
    };
    scenario.resource_dependency("rd", &spec("first"));
    scenario.completed("rd");
    scenario.resource_dependency("rd", &spec("second"));
    scenario.until("is changed", "ConfigMap", "two", |object| object["data"]["value"] == "second");
    scenario.completed("rd");
    let ones = scenario.audit.user_writes("generations").iter().filter(|event| event.name == "one").count();
    assert_eq!(ones, 1);
}
