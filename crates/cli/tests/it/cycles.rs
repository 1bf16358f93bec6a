//! Objects that wait for each other in a circle: named in each of them, and nobody else is held up.

use crate::world::scenario;
use linchpin_testkit::Scenario;
use serde_json::Value;

fn is_in_a_circle(object: &Value) -> bool {
    let blockers = object["status"]["blockedBy"].as_array();
    blockers.into_iter().flatten().any(|blocker| blocker["reason"] == "Cycle")
}

/// Waits until an object says that it is in a circle, and returns its one line.
fn circle(scenario: &Scenario, kind: &str, name: &str) -> String {
    let seen = scenario.until("names the circle", kind, name, is_in_a_circle);
    seen["status"]["message"].as_str().unwrap().to_owned()
}

/// Somebody who has nothing to do with it is served meanwhile.
fn others_go_on(scenario: &Scenario) {
    scenario.resource_dependency(
        "bystander",
        "
        dependencies: [{resource: configmap/other}]
        actions: [{name: a, type: create, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: bystander}}}]
        ",
    );
    scenario.config_map("other", "");
    scenario.completed("bystander");
}

#[test]
fn two_that_wait_for_each_other_are_named_in_both_and_others_go_on() {
    let scenario = scenario("cycle");
    for (name, other) in [("chicken", "egg"), ("egg", "chicken")] {
        scenario.resource_dependency(
            name,
            &format!("dependencies: [{{resource: resourcedependency/{other}, state: Ready}}]"),
        );
    }
    for name in ["chicken", "egg"] {
        let message = circle(&scenario, "ResourceDependency", name);
        assert!(message.contains("chicken") && message.contains("egg") && message.contains('→'), "{message}");
    }
    others_go_on(&scenario);
    scenario.resource_dependency("egg", "dependencies: []");
    scenario.completed("egg");
    scenario.completed("chicken");
}

#[test]
fn a_circle_across_kinds_and_through_what_is_made_is_named_in_all() {
    let scenario = scenario("cycle-kinds");
    scenario.dependency_group(
        "plan",
        "groups: [{name: base, dependencies: [{name: made, resource: configmap/made}]}]",
    );
    scenario.resource_dependency(
        "maker",
        "
        dependencies: [{resource: dependencygroup/plan, state: Ready}]
        actions: [{name: make, type: create, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: made}}}]
        ",
    );
    for (kind, name) in [("DependencyGroup", "plan"), ("ResourceDependency", "maker")] {
        let message = circle(&scenario, kind, name);
        for word in ["plan", "maker", "made", "→"] {
            assert!(message.contains(word), "{kind}: {message}");
        }
    }
    others_go_on(&scenario);
    assert!(!scenario.has("made"));
    scenario.resource_dependency(
        "maker",
        "actions: [{name: make, type: create, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: made}}}]",
    );
    scenario.completed("maker");
    scenario.condition("DependencyGroup", "plan", "Ready", "True");
}

#[test]
fn bundles_that_wait_for_what_the_other_makes_are_told_so_until_it_is_there() {
    let scenario = scenario("cycle-bundles");
    let map = |name: &str| {
        format!("{{name: {name}, template: {{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}}}}}}}")
    };
    scenario.app_bundle(
        "left",
        &format!(
            "groups: [{{name: first, requires: [{{resource: cm/right}}], components: [{}]}}, {{name: second, components: [{}]}}]",
            map("early"),
            map("left")
        ),
    );
    scenario.app_bundle(
        "right",
        &format!(
            "requires: [{{resource: cm/left}}]\ngroups: [{{name: only, components: [{}]}}]",
            map("right")
        ),
    );
    for name in ["left", "right"] {
        let message = circle(&scenario, "AppBundle", name);
        for word in ["left[second]", "right[only]", "→"] {
            assert!(message.contains(word), "{name}: {message}");
        }
    }
    others_go_on(&scenario);
    scenario.config_map("left", "");
    scenario.deployed("right");
    scenario.until("is in no circle any more", "AppBundle", "left", |object| !is_in_a_circle(object));
}

#[test]
fn one_that_waits_for_itself_is_a_circle_too() {
    let scenario = scenario("cycle-self");
    scenario.resource_dependency("me", "dependencies: [{resource: rd/me, state: Ready}]");
    let message = circle(&scenario, "ResourceDependency", "me");
    assert!(message.contains("me") && message.contains('→'), "{message}");
    scenario.resource_dependency("me", "dependencies: []");
    scenario.completed("me");
}
