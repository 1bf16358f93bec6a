//! Bundles that cannot be carried out: which field, which group, which component, and why.

use serde_json::json;

use super::{map, stage};
use crate::things::config_map;

#[track_caller]
fn refused(spec: &str, expected: &[&str]) {
    let mut stage = stage(spec);
    stage.settle();
    let error = stage.wrong.as_ref().map(ToString::to_string).unwrap_or_default();
    for part in expected {
        assert!(error.contains(part), "expected {part:?} in {error:?}");
    }
    assert!(stage.done().is_empty(), "nothing is touched");
    let status = stage.status();
    assert_eq!(status.common.phase.as_deref(), Some("Failed"));
    assert!(
        status.common.conditions.iter().any(|one| one.kind == "Stalled" && one.reason == "DeploymentFailed")
    );
}

#[test]
fn p19_two_components_that_name_one_object_are_refused_naming_both() {
    refused(
        &format!(
            "{{groups: [{{name: a, components: [{}]}}, {{name: b, components: [
               {{name: why, template: {{apiVersion: v1, kind: ConfigMap, metadata: {{name: x, namespace: own}}}}}}]}}]}}",
            map("x", "")
        ),
        &["spec.groups[1].components[0].template", "ConfigMap own/x", "component b/why", "component a/x"],
    );
}

#[test]
fn p19_a_namespace_is_no_part_of_a_cluster_scoped_name() {
    refused(
        "{groups: [{name: a, components: [
           {name: x, template: {apiVersion: v1, kind: Namespace, metadata: {name: space}}},
           {name: why, template: {apiVersion: v1, kind: Namespace, metadata: {name: space, namespace: odd}}}]}]}",
        &["Namespace space", "component a/why", "component a/x"],
    );
}

#[test]
fn p18_a_body_that_is_no_object_names_group_and_component() {
    for (template, expected) in [
        ("{kind: ConfigMap, metadata: {name: x}}", "it has no apiVersion"),
        ("{apiVersion: v1, metadata: {name: x}}", "it has no kind"),
        ("{apiVersion: v1, kind: ConfigMap}", "it has no metadata.name"),
        ("{apiVersion: v1, kind: ConfigMap, metadata: {name: x, labels: 7}}", "metadata.labels is not a map"),
    ] {
        refused(
            &format!("{{groups: [{{name: infra, components: [{{name: web, template: {template}}}]}}]}}"),
            &["spec.groups[0].components[0].template", "group infra component web", expected],
        );
    }
    for sources in
        ["", ", template: {}, templates: [{}]", ", template: {}, source: {configMapRef: {name: c}}"]
    {
        refused(
            &format!("{{groups: [{{name: infra, components: [{{name: web{sources}}}]}}]}}"),
            &[
                "group infra component web",
                "Component must have either template or porchPackageRef specified",
                "exactly one of them",
            ],
        );
    }
}

#[test]
fn p22_nothing_is_taken_from_porch_unless_that_is_turned_on() {
    let spec = |head: &str| {
        format!(
            "{{{head}groups: [{{name: a, components: [{{name: x, porchPackageRef: {{packageName: p, repository: r}}}}]}}]}}"
        )
    };
    refused(&spec(""), &["group a component x", "spec.porchIntegration.enabled is not true"]);
    refused(&spec("porchIntegration: {enabled: false}, "), &["spec.porchIntegration.enabled is not true"]);
}

#[test]
fn the_component_with_the_mistake_is_shown_as_failed_and_the_others_as_waiting() {
    let mut stage = stage(&format!(
        "{{groups: [{{name: a, components: [{}]}}, {{name: b, components: [{{name: bad, template: {{kind: X}}}}]}}]}}",
        map("x", "")
    ));
    stage.settle();
    let status = stage.status();
    let phases: Vec<&str> = status.group_statuses.iter().map(|group| group.phase.as_str()).collect();
    assert_eq!(phases, ["Pending", "Failed"]);
    let bad = &status.group_statuses[1].component_statuses[0];
    assert!(bad.message.starts_with("Failed to parse template: "), "{}", bad.message);
    assert!(status.group_statuses[1].message.starts_with("Failed to deploy component bad: "));
}

#[test]
fn a_circle_is_stalled_and_spelled_out() {
    refused(
        &format!(
            "{{groups: [{{name: a, components: [{}, {}]}}]}}",
            map("x", ", dependsOn: [why]"),
            map("why", ", dependsOn: [x]")
        ),
        &["components wait for each other: a/x → a/why → a/x"],
    );
}

#[test]
fn a_bad_expression_is_told_with_its_place() {
    refused(
        &format!("{{groups: [{{name: a, components: [{}]}}]}}", map("x", ", readyWhen: {cel: 'self.'}")),
        &["spec.groups[0].components[0].readyWhen.cel", "group a component x"],
    );
}

#[test]
fn a_name_may_read_values_only() {
    refused(
        "{templating: true, groups: [{name: a, components: [{name: x, template: {apiVersion: v1, kind: ConfigMap,
           metadata: {name: '{{ .Now }}'}}}]}]}",
        &["metadata.name", "read .Values here only"],
    );
}

#[test]
fn bad_documents_in_a_source_are_told_and_looked_at_again() {
    let mut stage = stage(
        "{groups: [{name: a, components: [{name: x, source: {configMapRef: {name: texts, key: all.yaml}}}]}]}",
    );
    stage.put(config_map("own", "texts", &json!({"all.yaml": "kind: [\n"}))).settle();
    let error = stage.wrong.as_ref().map(ToString::to_string).unwrap_or_default();
    assert!(
        error.contains("configMapRef (key all.yaml)") && error.contains("group a component x"),
        "{error}"
    );
    let good = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: made}\n";
    stage.put(config_map("own", "texts", &json!({"all.yaml": good}))).settle();
    assert_eq!(stage.done(), ["apply ConfigMap own/made"]);
}
