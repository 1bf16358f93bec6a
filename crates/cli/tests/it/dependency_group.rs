//! Groups of dependencies, in the order of `dependsOn`.

use crate::world::scenario;
use linchpin_testkit::{Scenario, audit::assert_before, entry};

const THREE: &str = "
    teardown: Reverse
    groups:
    - name: base
      dependencies: [{name: root, resource: configmap/root}]
      actions: [{name: a, type: create, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: made-base}}}]
    - name: operators
      dependsOn: [base]
      dependencies: [{name: op, resource: configmap/op}]
      actions: [{name: a, type: create, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: made-operators}}}]
    - name: apps
      dependsOn: [operators]
      dependencies: [{name: app, resource: configmap/app}]
      actions: [{name: a, type: create, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: made-apps}}}]
";

fn is_ready(scenario: &Scenario, name: &str) -> serde_json::Value {
    scenario.until("is ready", "DependencyGroup", name, |object| {
        object["status"]["conditions"].as_array().is_some_and(|conditions| {
            conditions.iter().any(|c| c["type"] == "Ready" && c["status"] == "True")
        })
    })
}

#[test]
fn groups_follow_one_another_and_are_taken_down_in_reverse() {
    let scenario = scenario("groups");
    scenario.config_map("app", "");
    scenario.config_map("op", "");
    scenario.dependency_group("all", THREE);
    scenario.resource_dependency(
        "on-one",
        "dependencies: [{resource: dependencygroup/all, group: base, state: Ready}]",
    );
    scenario.resource_dependency("on-all", "dependencies: [{resource: dependencygroup/all, state: Ready}]");
    let waiting = scenario.until("waits", "DependencyGroup", "all", |object| {
        object["status"]["groups"].as_array().is_some_and(|groups| groups.len() == 3)
    });
    assert_eq!(entry(&waiting, "groups", "apps")["ready"], false);
    assert_eq!(entry(&waiting, "groups", "operators")["reason"], "WaitingForGroup");
    scenario.config_map("root", "");
    is_ready(&scenario, "all");
    scenario.completed("on-one");
    scenario.completed("on-all");
    scenario.in_order(&["root", "made-base", "made-operators", "made-apps"]);

    scenario.delete("DependencyGroup", "all");
    scenario.gone("DependencyGroup", "all");
    assert!(!scenario.has("made-base") && !scenario.has("made-operators") && !scenario.has("made-apps"));
    assert!(scenario.has("root"), "what others made is kept");
    let writes = scenario.audit.user_writes("groups");
    let deletions: Vec<_> = writes.iter().filter(|event| event.verb == "delete").collect();
    assert_eq!(
        deletions.iter().map(|event| event.name.as_str()).collect::<Vec<_>>(),
        ["made-apps", "made-operators", "made-base"]
    );
    for pair in deletions.windows(2) {
        assert_before(pair[0], pair[1]);
    }
}

#[test]
fn one_group_can_be_waited_for_and_readiness_follows_the_world() {
    let scenario = scenario("one-group");
    scenario.config_map("root", "");
    scenario.dependency_group("all", THREE);
    scenario.resource_dependency(
        "on-base",
        "dependencies: [{resource: dependencygroup/all, group: base, state: Ready}]",
    );
    scenario.resource_dependency(
        "on-operators",
        "dependencies: [{resource: dependencygroup/all, group: operators, state: Ready}]",
    );
    scenario.completed("on-base");
    scenario.phase("ResourceDependency", "on-operators", "Waiting");
    scenario.config_map("op", "");
    scenario.completed("on-operators");
    scenario.config_map("app", "");
    is_ready(&scenario, "all");
    scenario.delete("ConfigMap", "op");
    scenario.until("notices the loss", "DependencyGroup", "all", |object| {
        object["status"]["groups"]
            .as_array()
            .unwrap()
            .iter()
            .any(|g| g["name"] == "operators" && g["ready"] == false)
    });
    scenario.config_map("op", "");
    is_ready(&scenario, "all");
    let made =
        scenario.audit.user_writes("one-group").iter().filter(|event| event.name == "made-operators").count();
    assert_eq!(made, 1, "a group's actions run once");
}

#[test]
fn without_teardown_what_was_made_is_kept() {
    let scenario = scenario("keep");
    scenario.dependency_group(
        "all",
        "groups: [{name: g, actions: [{name: a, type: create, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: made}}}]}]",
    );
    is_ready(&scenario, "all");
    scenario.delete("DependencyGroup", "all");
    scenario.gone("DependencyGroup", "all");
    assert!(scenario.has("made"));
}

#[test]
fn what_is_ready_at_the_same_moment_goes_by_priority_groups_of_an_object_and_objects_of_a_namespace() {
    let scenario = scenario("peers");
    for round in 0..5 {
        let then = |name: &str| {
            let map = format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}-{round}}}}}");
            format!("actions: [{{name: a, type: create, resource: {map}}}]")
        };
        let group = |name: &str, priority: i32| {
            let go = format!("[{{name: go, resource: configmap/go-{round}}}]");
            format!("{{name: {name}, priority: {priority}, dependencies: {go}, {}}}", then(name))
        };
        let groups = [group("third", 3), group("first", -1), group("second", 2)].join(", ");
        scenario.dependency_group(&format!("all-{round}"), &format!("{{priority: 9, groups: [{groups}]}}"));
        for (name, priority) in [("b", 2), ("a", 1)] {
            let go = format!("dependencies: [{{resource: configmap/go-{round}}}]");
            let spec = format!("{{priority: {priority}, {go}, {}}}", then(name));
            scenario.resource_dependency(&format!("{name}-{round}"), &spec);
            scenario.blocked(&format!("{name}-{round}"), "NotFound");
        }
        scenario.phase("DependencyGroup", &format!("all-{round}"), "Waiting");
        // An object rests for a moment after its own turn: the one that was looked at last would come later than its peers.
        std::thread::sleep(std::time::Duration::from_millis(300));
        scenario.config_map(&format!("go-{round}"), "");
        is_ready(&scenario, &format!("all-{round}"));
        scenario.completed(&format!("b-{round}"));
        let order = ["a", "b", "first", "second", "third"].map(|name| format!("{name}-{round}"));
        scenario.in_order(&order.each_ref().map(String::as_str));
    }
}
