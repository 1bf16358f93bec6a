//! Values, templates and sources.

use serde_json::json;

use super::{map, stage};
use crate::things::{config_map, deployment};

#[test]
fn strings_are_templates_only_where_values_are_given_or_it_is_said() {
    let body = |spec: &str| {
        let mut stage = stage(spec);
        stage.settle();
        stage.bodies[0]["data"]["k"].clone()
    };
    let with = |head: &str, more: &str| {
        format!(
            "{{{head}groups: [{{name: a, components: [{{name: x, template: {{apiVersion: v1, kind: ConfigMap,
               metadata: {{name: x}}, data: {{k: '{{{{ print 1 }}}}'}}}}{more}}}]}}]}}"
        )
    };
    assert_eq!(body(&with("", "")), json!("{{ print 1 }}"), "alert rules have braces of their own");
    assert_eq!(body(&with("templating: true, ", "")), json!("1"));
    assert_eq!(body(&with("values: {a: 1}, ", "")), json!("1"));
    assert_eq!(body(&with("values: {a: 1}, ", ", raw: true")), json!("{{ print 1 }}"));
}

#[test]
fn values_keep_their_type_and_may_name_objects() {
    let mut stage = stage(
        "{values: {replicas: 3, name: web}, groups: [{name: a, components: [{name: x, template: {apiVersion: apps/v1,
           kind: Deployment, metadata: {name: '{{ .Values.name }}-app'}, spec: {replicas: '{{ .Values.replicas }}'}}}]}]}",
    );
    stage.settle();
    assert_eq!(stage.done(), ["apply Deployment own/web-app"]);
    assert_eq!(stage.bodies[0]["spec"]["replicas"], json!(3));
    stage.edit(|object| object["spec"]["values"]["other"] = json!(1)).settle();
    assert_eq!(stage.done(), Vec::<String>::new(), "a value that nobody reads changes nothing");
    stage.edit(|object| object["spec"]["values"]["replicas"] = json!(4)).settle();
    assert_eq!(stage.done(), ["apply Deployment own/web-app"]);
}

#[test]
fn a_source_of_values_is_followed() {
    let mut stage = stage(
        "{valuesFrom: [{configMapRef: {name: settings}}], groups: [{name: a, components: [
           {name: x, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: x}, data: {k: '{{ .Values.k }}'}}},
           {name: why, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: why}}}]}]}",
    );
    stage.settle();
    assert_eq!(stage.done(), Vec::<String>::new());
    assert!(stage.status().common.message.expect("a message").contains("settings"));
    stage.put(config_map("own", "settings", &json!({"k": "1"}))).settle();
    assert_eq!(stage.done(), ["apply ConfigMap own/x", "apply ConfigMap own/why"]);
    stage.put(config_map("own", "settings", &json!({"k": "2"}))).settle();
    assert_eq!(stage.done(), ["apply ConfigMap own/x"]);
    stage.take(&config_map("own", "settings", &json!({}))).settle();
    assert_eq!(stage.done(), Vec::<String>::new());
    assert!(stage.report().ready, "what was deployed stays deployed");
}

#[test]
fn a_component_that_reads_another_comes_after_it_and_sees_it() {
    let mut stage = stage(
        "{templating: true, groups: [{name: a, components: [
           {name: reader, order: 0, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: r},
             data: {port: '{{ .Components.db.Status.port }}'}}},
           {name: db, order: 0, template: {apiVersion: apps/v1, kind: Deployment, metadata: {name: db}}}]}]}",
    );
    stage.settle();
    assert_eq!(stage.done(), ["apply Deployment own/db"]);
    let mut ready = deployment("own", "db", 1);
    ready["status"]["port"] = json!(5432);
    stage.put(ready).settle();
    assert_eq!(stage.done(), ["apply ConfigMap own/r"]);
    assert_eq!(stage.bodies[1]["data"]["port"], json!("5432"));
}

#[test]
fn several_objects_may_be_one_component() {
    let mut stage = stage(&format!(
        "{{groups: [{{name: a, components: [{{name: many, templates: [
           {{apiVersion: apps/v1, kind: Deployment, metadata: {{name: one}}}},
           {{apiVersion: v1, kind: ConfigMap, metadata: {{name: two}}}}]}}, {}]}}]}}",
        map("next", "")
    ));
    stage.settle();
    assert_eq!(stage.done(), ["apply Deployment own/one", "apply ConfigMap own/two"]);
    let status = stage.status();
    let many = &status.group_statuses[0].component_statuses[0];
    let ready: Vec<(&str, bool)> =
        many.resources.iter().map(|one| (one.resource_ref.name.as_str(), one.ready)).collect();
    assert_eq!(ready, [("two", true), ("one", false)]);
    stage.put(deployment("own", "one", 1)).settle();
    assert_eq!(stage.done(), ["apply ConfigMap own/next"]);
}

#[test]
fn p20_objects_may_be_kept_in_a_config_map() {
    let mut stage = stage(&format!(
        "{{groups: [{{name: a, components: [{{name: x, source: {{configMapRef: {{name: texts}}}}}}, {}]}}]}}",
        map("next", "")
    ));
    stage.settle();
    assert_eq!(stage.done(), Vec::<String>::new());
    let status = stage.status();
    assert_eq!(status.group_statuses[0].component_statuses[0].phase, "Pending");
    assert!(status.group_statuses[0].component_statuses[0].message.contains("configmap/texts"));
    let text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: b}\n";
    stage.put(config_map("own", "texts", &json!({"all": text}))).settle();
    assert_eq!(stage.done(), ["apply ConfigMap own/a", "apply Secret own/b", "apply ConfigMap own/next"]);
    assert_eq!(stage.bodies[0]["metadata"]["labels"]["app.example.com/component"], json!("x"));
}
