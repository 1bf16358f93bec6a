//! Mistakes in specs: refused at once where the definition can tell, otherwise shown with the field; and mended.

use crate::world::scenario;
use serde_json::Value;

#[test]
fn what_the_definition_can_tell_is_refused_at_once() {
    let scenario = scenario("refused");
    let many: Vec<String> = (0..257).map(|n| format!("{{resource: configmap/c{n}}}")).collect();
    for (spec, words) in [
        ("dependencies: [{resource: 'not a reference'}]", "spec.dependencies[0].resource"),
        ("dependencies: [{resource: configmap/a, timeout: soon}]", "spec.dependencies[0].timeout"),
        ("globalTimeout: never", "spec.globalTimeout"),
        (
            "dependencies: [{name: a, resource: configmap/a}, {name: a, resource: configmap/b}]",
            "spec.dependencies",
        ),
        ("actions: [{name: a, type: wait, wait: 1s}, {name: a, type: wait, wait: 1s}]", "spec.actions"),
        ("actions: [{type: create}]", "the body must fit the type"),
        ("actions: [{type: dance}]", "spec.actions[0].type"),
        (&format!("dependencies: [{}]", many.join(", ")), "must have at most 256 items"),
    ] {
        let message = scenario.refused_resource_dependency("bad", spec);
        assert!(message.contains(words), "{spec}: {message}");
    }
}

#[test]
fn what_it_cannot_tell_is_shown_with_the_field_and_mending_it_recovers() {
    let scenario = scenario("stalled");
    let wait = "{name: ok, type: wait, wait: 1ms}";
    for (name, spec, field) in [
        ("template", "actions: [{type: template, template: '{{ .Values.a'}]", "spec.actions[0].template"),
        (
            "body",
            "actions: [{type: create, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: '{{ end }}'}}}]",
            "spec.actions[0].resource",
        ),
        (
            "patch",
            "actions: [{type: patch, patch: {target: {kind: ConfigMap, name: a}, patchType: merge, patch: '{\"a\": 1'}}]",
            "spec.actions[0].patch.patch",
        ),
        ("cel", "dependencies: [{resource: configmap/a, cel: 'self.data. >'}]", "spec.dependencies[0].cel"),
        (
            "path",
            "dependencies: [{resource: configmap/a, conditions: [{jsonPath: '.a[', value: 1}]}]",
            "spec.dependencies[0].conditions[0].jsonPath",
        ),
        (
            "guard",
            "actions: [{type: wait, wait: 1s, condition: {dependency: nobody}}]",
            "spec.actions[0].condition",
        ),
        ("after", "actions: [{name: a, type: wait, wait: 1s, after: [nobody]}]", "spec.actions[0].after"),
        (
            "circle",
            "actions: [{name: a, type: wait, wait: 1s, after: [b]}, {name: b, type: wait, wait: 1s, after: [a]}]",
            "spec.actions[0]: these steps wait for each other: a → b → a",
        ),
    ] {
        scenario.resource_dependency(name, spec);
        let message = scenario.stalled("ResourceDependency", name);
        assert!(message.contains(field), "{name}: {message}");
        scenario.apply(&format!(
            "{{apiVersion: tools.kubestellar.io/v1, kind: ResourceDependency, metadata: {{name: {name}}}, \
             spec: {{serviceAccountName: actor, actions: [{wait}]}}}}"
        ));
        let done = scenario.completed(name);
        assert!(!is_stalled(&done), "{name}");
    }
    assert_eq!(scenario.audit.user_writes("stalled"), []);
}

#[test]
fn groups_that_cannot_be_ordered_are_told_and_mended() {
    let scenario = scenario("bad-groups");
    let duplicate = "{groups: [{name: a, dependencies: []}, {name: a, dependencies: []}]}";
    let nameless = "{groups: [{name: a, dependencies: [{resource: configmap/a}]}]}";
    let unknown = "{groups: [{name: a, dependsOn: [nobody]}]}";
    for (spec, words) in
        [(duplicate, "spec.groups"), (nameless, "\"name\""), (unknown, "a group that is not there")]
    {
        let manifest = format!(
            "{{apiVersion: tools.kubestellar.io/v1, kind: DependencyGroup, metadata: {{name: bad}}, spec: {spec}}}"
        );
        let message = scenario.refused(&manifest);
        assert!(message.contains(words), "{spec}: {message}");
    }
    scenario.dependency_group("circle", "groups: [{name: a, dependsOn: [b]}, {name: b, dependsOn: [a]}]");
    let message = scenario.stalled("DependencyGroup", "circle");
    assert!(message.contains("spec.groups[0].dependsOn") && message.contains("a → b → a"), "{message}");
    scenario.dependency_group("circle", "groups: [{name: a}]");
    let mended = scenario.condition("DependencyGroup", "circle", "Ready", "True");
    assert!(!is_stalled(&mended));
}

fn is_stalled(object: &Value) -> bool {
    let conditions = object["status"]["conditions"].as_array();
    conditions.is_some_and(|conditions| {
        conditions
            .iter()
            .any(|c| c["type"] == "Stalled" && c["status"] == "True" && c["reason"] == "SpecInvalid")
    })
}
