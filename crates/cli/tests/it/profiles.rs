//! What administrators teach about foreign kinds, for everybody.

use crate::{forms::definition, world::scenario};
use serde_json::json;

#[test]
fn a_profile_teaches_what_ready_means_and_a_change_of_it_is_followed() {
    let scenario = scenario("profiles");
    scenario.apply(&definition("profiles.example.com", "Engine"));
    scenario.allow(
        "engines",
        "[{apiGroups: [profiles.example.com], resources: [engines], verbs: [get, list, watch]}]",
    );
    let profile = |ready: &str| {
        scenario.apply(&format!(
            "{{apiVersion: linchpin.dev/v1alpha1, kind: ReadinessProfile, metadata: {{name: engines}}, spec: {{apiVersion: profiles.example.com/v1, \
             kind: Engine, readyWhen: {{cel: \"self.status.power {ready}\"}}, failedWhen: {{conditions: [{{jsonPath: .status.smoke, value: true}}]}}}}}}"
        ));
    };
    profile("> 100");
    scenario.condition("ReadinessProfile", "engines", "Ready", "True");
    for name in ["one", "two"] {
        scenario.apply(&format!(
            "{{apiVersion: profiles.example.com/v1, kind: Engine, metadata: {{name: {name}}}}}"
        ));
        // The state may be omitted: a kind that was taught is a kind whose readiness is known.
        scenario.resource_dependency(
            name,
            &format!("dependencies: [{{resource: engine.profiles.example.com/{name}}}]"),
        );
    }
    scenario.phase("ResourceDependency", "one", "Waiting");
    let status = |name: &str, status: serde_json::Value| {
        let status = json!({"status": status});
        scenario.api.merge("Engine.profiles.example.com", "profiles", name, "/status", &status).unwrap();
    };
    status("two", json!({"power": 60}));
    status("one", json!({"power": 120}));
    scenario.completed("one");
    scenario.phase("ResourceDependency", "two", "Waiting");
    profile("> 50");
    scenario.completed("two");

    scenario.resource_dependency(
        "three",
        "dependencies: [{resource: engine.profiles.example.com/three, state: Ready}]",
    );
    scenario.apply("{apiVersion: profiles.example.com/v1, kind: Engine, metadata: {name: three}}");
    status("three", json!({"smoke": true, "power": 0}));
    scenario.phase("ResourceDependency", "three", "Failed");
    status("three", json!({"smoke": false, "power": 70}));
    scenario.completed("three");

    // Untaught again, it is there or not.
    scenario.apply("{apiVersion: profiles.example.com/v1, kind: Engine, metadata: {name: four}}");
    scenario.resource_dependency("four", "dependencies: [{resource: engine.profiles.example.com/four}]");
    scenario.phase("ResourceDependency", "four", "Waiting");
    scenario.api.delete("ReadinessProfile", "", "engines");
    scenario.completed("four");
}

#[test]
fn a_profile_with_a_mistake_says_which_and_teaches_nothing() {
    let scenario = scenario("profile-mistakes");
    let profile = |cel: &str| {
        scenario.apply(&format!(
            "{{apiVersion: linchpin.dev/v1alpha1, kind: ReadinessProfile, metadata: {{name: mistaken}}, \
             spec: {{group: nowhere.example.com, kind: Nothing, readyWhen: {{cel: '{cel}'}}}}}}"
        ));
    };
    profile("self.a. >");
    let message = scenario.stalled("ReadinessProfile", "mistaken");
    assert!(message.contains("spec.readyWhen.cel"), "{message}");
    profile("self.a > 1");
    let mended = scenario.condition("ReadinessProfile", "mistaken", "Ready", "True");
    assert_eq!(mended["status"]["observedGeneration"], mended["metadata"]["generation"]);
    let refused = scenario.refused(
        "{apiVersion: linchpin.dev/v1alpha1, kind: ReadinessProfile, metadata: {name: empty}, spec: {kind: Nothing}}",
    );
    assert!(refused.contains("readyWhen"), "{refused}");
}
