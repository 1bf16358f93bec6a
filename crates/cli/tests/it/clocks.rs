//! Time: what times out, what restarts a clock, and what stops it.

use crate::{seconds, told, world::scenario};
use linchpin_testkit::entry;
use serde_json::json;
use std::thread;

const DONE: &str = "actions: [{name: done, type: create, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: done}}}]";

#[test]
fn the_whole_object_has_a_time_limit_and_a_recovered_run_a_fresh_one() {
    let scenario = scenario("global-timeout");
    scenario.resource_dependency(
        "rd",
        &format!("{{globalTimeout: 1s, dependencies: [{{resource: configmap/late}}], {DONE}}}"),
    );
    let failed = scenario.phase("ResourceDependency", "rd", "Failed");
    assert!(failed["status"].to_string().contains("GlobalTimeout"), "{:#}", failed["status"]);
    assert!(!scenario.has("done"));
    scenario.config_map("late", "");
    let done = scenario.completed("rd");
    assert!(scenario.has("done"));
    told(&scenario, "rd", "GlobalTimeout");
    assert!(done["status"].get("blockedBy").is_none());
}

#[test]
fn the_clock_of_a_tier_starts_when_the_tier_below_is_met() {
    let scenario = scenario("tier-clocks");
    scenario.resource_dependency(
        "rd",
        &format!(
            "{{dependencies: [{{name: first, resource: configmap/first, priority: 1}}, \
             {{name: second, resource: configmap/second, priority: 2, timeout: 2s}}], {DONE}}}"
        ),
    );
    scenario.blocked("rd", "NotFound");
    thread::sleep(seconds(3));
    let waiting = scenario.get("ResourceDependency", "rd").unwrap();
    assert_eq!(waiting["status"]["phase"], "Waiting", "{:#}", waiting["status"]);
    scenario.config_map("first", "");
    let failed = scenario.phase("ResourceDependency", "rd", "Failed");
    assert_eq!(entry(&failed, "dependencies", "second")["state"], "TimedOut");
    assert_eq!(entry(&failed, "dependencies", "first")["state"], "Ready");
    scenario.config_map("second", "");
    scenario.completed("rd");
}

#[test]
fn progress_restarts_its_own_clock_and_standing_still_does_not() {
    let scenario = scenario("progress");
    scenario.apply(
        "{apiVersion: batch/v1, kind: Job, metadata: {name: import}, spec: {completions: 9, managedBy: example.com/hand, \
         template: {spec: {restartPolicy: Never, containers: [{name: a, image: a}]}}}}",
    );
    scenario.resource_dependency(
        "rd",
        &format!("{{dependencies: [{{name: job, resource: job/import, state: Completed, progressTimeout: 4s}}], {DONE}}}"),
    );
    for done in 0..4 {
        let status = json!({"status": {"startTime": "2026-01-01T00:00:00Z", "active": 1, "succeeded": done}});
        scenario.api.merge("Job", "progress", "import", "/status", &status).unwrap();
        thread::sleep(seconds(2));
        let seen = scenario.get("ResourceDependency", "rd").unwrap();
        assert_eq!(seen["status"]["phase"], "Waiting", "{:#}", seen["status"]);
    }
    let failed = scenario.phase("ResourceDependency", "rd", "Failed");
    let job = entry(&failed, "dependencies", "job");
    assert_eq!((&job["state"], &job["reason"]), (&json!("TimedOut"), &json!("ProgressTimeout")));
    let complete = json!({"status": {"active": 0, "succeeded": 9, "completionTime": "2026-01-01T00:00:01Z",
        "conditions": [{"type": "SuccessCriteriaMet", "status": "True"}, {"type": "Complete", "status": "True"}]}});
    scenario.api.merge("Job", "progress", "import", "/status", &complete).unwrap();
    scenario.completed("rd");
}

#[test]
fn clocks_stand_while_an_object_is_suspended() {
    let scenario = scenario("suspended-clocks");
    scenario.resource_dependency(
        "rd",
        &format!("{{dependencies: [{{resource: configmap/late, timeout: 3s}}], globalTimeout: 20s, {DONE}}}"),
    );
    scenario.blocked("rd", "NotFound");
    scenario.merge("ResourceDependency", "rd", &json!({"spec": {"suspend": true}}));
    scenario.phase("ResourceDependency", "rd", "Suspended");
    thread::sleep(seconds(4));
    scenario.phase("ResourceDependency", "rd", "Suspended");
    scenario.merge("ResourceDependency", "rd", &json!({"spec": {"suspend": false}}));
    scenario.phase("ResourceDependency", "rd", "Waiting");
    scenario.config_map("late", "");
    scenario.completed("rd");
    let events = scenario.events("rd");
    assert!(!events.iter().any(|(reason, _)| reason == "TimedOut"), "{events:?}");
}

#[test]
fn an_action_is_tried_no_longer_than_its_own_timeout() {
    let scenario = scenario("action-timeout");
    scenario.resource_dependency(
        "rd",
        "
        actions:
        - {name: late, timeout: 1s, type: patch, patch: {target: {kind: ConfigMap, name: target}, patchType: merge, patch: '{\"data\": {\"a\": \"b\"}}'}}
        ",
    );
    let failed = scenario.phase("ResourceDependency", "rd", "Failed");
    assert_eq!(entry(&failed, "actions", "late")["state"], "Failed", "{:#}", failed["status"]);
    scenario.config_map("target", "");
    scenario.completed("rd");
    assert_eq!(scenario.data("target", "a").unwrap(), "b");
}
