//! AppBundle, judged by what the engine does with its plans: order, marks, sources, values, policies, status.

mod circles;
mod policies;
pub(crate) mod porch;
mod refused;
mod status;
mod templates;

use linchpin_doors::AppBundleDoor;
use linchpin_engine::plan::{Plan, PlannedAction};
use serde_json::{Value, json};

use crate::{
    stage::Stage,
    things::{config_map, deployment, namespace},
};

/// A bundle named `shop` in the namespace `own`.
pub(crate) fn stage(spec: &str) -> Stage<AppBundleDoor> {
    Stage::new(&format!(
        "{{apiVersion: app.example.com/v1alpha1, kind: AppBundle, metadata: {{name: shop}}, spec: {spec}}}"
    ))
}

/// A component that is a ConfigMap.
pub(crate) fn map(name: &str, more: &str) -> String {
    format!(
        "{{name: {name}, template: {{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}}}}}{more}}}"
    )
}

/// A component that is a Deployment.
pub(crate) fn workload(name: &str, more: &str) -> String {
    format!(
        "{{name: {name}, template: {{apiVersion: apps/v1, kind: Deployment, metadata: {{name: {name}}}, \
         spec: {{replicas: 1}}}}{more}}}"
    )
}

fn after(plan: &Plan, step: &str) -> Vec<String> {
    let position = plan.position(&step.into()).expect("a step");
    plan.steps()[position].after.iter().map(|after| after.step.to_string()).collect()
}

fn action<'p>(plan: &'p Plan, step: &str) -> &'p PlannedAction {
    let position = plan.position(&step.into()).expect("a step");
    plan.steps()[position].action().expect("an action")
}

#[test]
fn a_group_begins_when_the_one_before_it_is_ready_and_not_when_it_is_merely_created() {
    let mut stage = stage(&format!(
        "{{groups: [{{name: db, order: 0, components: [{}]}}, {{name: app, order: 1, components: [{}]}}]}}",
        workload("db", ""),
        map("web", "")
    ));
    stage.settle();
    assert_eq!(stage.done(), ["apply Deployment own/db"]);
    stage.put(deployment("own", "db", 1)).settle();
    assert_eq!(stage.done(), ["apply ConfigMap own/web"]);
    assert!(stage.report().ready);
    assert_eq!(after(stage.plan(), "app/web"), ["db/db:ready"]);
    assert_eq!(after(stage.plan(), "db/db:ready"), ["db/db"]);
}

#[test]
fn p28_what_does_not_depend_on_each_other_runs_side_by_side() {
    let mut stage = stage(&format!(
        "{{groups: [{{name: a, order: 0, components: [{}, {}]}}, {{name: b, order: 0, components: [{}]}}]}}",
        workload("x", ", order: 0"),
        workload("why", ", order: 0"),
        workload("z", "")
    ));
    stage.settle();
    let mut done = stage.done();
    done.sort();
    assert_eq!(done, ["apply Deployment own/why", "apply Deployment own/x", "apply Deployment own/z"]);
}

#[test]
fn p11_the_sync_wave_and_three_labels_are_on_the_objects_own_metadata_and_win() {
    let mut stage = stage(
        "{groups: [{name: app, order: 10, components: [{name: web, order: 1, template: {apiVersion: apps/v1,
           kind: Deployment, metadata: {name: web, labels: {app.example.com/group: mine, tier: x},
           annotations: {argocd.argoproj.io/sync-wave: '7'}}, spec: {template: {metadata: {labels: {app: web}}}}}}]}]}",
    );
    stage.settle();
    let body = &stage.bodies[0];
    assert_eq!(
        body["metadata"]["labels"],
        json!({"app.example.com/appbundle": "shop", "app.example.com/group": "app",
            "app.example.com/component": "web", "tier": "x"})
    );
    assert_eq!(body["metadata"]["annotations"], json!({"argocd.argoproj.io/sync-wave": "1001"}));
    assert_eq!(
        body["spec"]["template"]["metadata"]["labels"],
        json!({"app": "web"}),
        "p26: selectors and pods keep their labels"
    );
}

#[test]
fn p07_a_cluster_scoped_object_gets_no_namespace() {
    let mut stage = stage(
        "{groups: [{name: a, components: [
           {name: space, template: {apiVersion: v1, kind: Namespace, metadata: {name: other}}},
           {name: map, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: m, namespace: other}}}]}]}",
    );
    stage.settle();
    stage.put(namespace("other")).settle();
    assert_eq!(stage.done(), ["apply Namespace other", "apply ConfigMap other/m"]);
    let status = stage.status();
    let reference = |index: usize| {
        let component: &linchpin_api::app_bundle::status::ComponentStatus =
            &status.group_statuses[0].component_statuses[index];
        serde_json::to_value(&component.resource_ref).expect("a reference")
    };
    assert_eq!(reference(0), json!({"apiVersion": "v1", "kind": "Namespace", "name": "other"}));
    assert_eq!(
        reference(1),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "m", "namespace": "other"})
    );
}

#[test]
fn a_service_comes_before_its_deployment_and_counts_for_readiness_only_with_it() {
    let mut stage = stage(&format!(
        "{{groups: [{{name: db, components: [
           {{name: service, order: 1, template: {{apiVersion: v1, kind: Service, metadata: {{name: db}},
             spec: {{selector: {{app: db}}}}}}}}, {}]}}]}}",
        workload("db", ", order: 2")
    ));
    stage.settle();
    assert_eq!(stage.done(), ["apply Service own/db", "apply Deployment own/db"]);
    stage.put(deployment("own", "db", 1)).settle();
    assert!(!stage.report().ready, "nobody stands behind the Service");
    stage.put(json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {"name": "db-1", "namespace": "own", "labels": {"kubernetes.io/service-name": "db"}},
        "endpoints": [{"conditions": {"ready": true}}]}));
    stage.settle();
    assert!(stage.report().ready);
}

#[test]
fn a_component_that_is_no_gate_holds_nothing_up_but_readiness() {
    let mut stage = stage(&format!(
        "{{groups: [{{name: a, components: [{}, {}]}}]}}",
        workload("slow", ", gate: false"),
        map("next", "")
    ));
    stage.settle();
    assert_eq!(stage.done().len(), 2);
    assert!(!stage.report().ready);
    stage.put(deployment("own", "slow", 1)).settle();
    assert!(stage.report().ready);
}

#[test]
fn requirements_of_bundle_group_and_component_hold_what_they_are_written_for() {
    let mut stage = stage(&format!(
        "{{requires: [{{resource: configmap/one}}], groups: [
           {{name: a, order: 0, components: [{}]}},
           {{name: b, order: 1, requires: [{{name: two, resource: configmap/two}}], components: [{}, {}]}}]}}",
        map("first", ""),
        map("second", ", order: 0"),
        map("third", ", order: 0, requires: [{resource: configmap/three}]")
    ));
    let given = |name: &str| config_map("own", name, &json!({}));
    stage.settle();
    assert!(stage.done().is_empty());
    assert_eq!(stage.status().common.phase.as_deref(), Some("Pending"));
    stage.put(given("one")).settle();
    assert_eq!(stage.done(), ["apply ConfigMap own/first"]);
    let status = stage.status();
    assert!(status.requires[0].met && status.requires[0].name == "configmap/one");
    assert!(!status.group_statuses[1].requires[0].met);
    stage.put(given("two")).settle();
    assert_eq!(stage.done(), ["apply ConfigMap own/second"]);
    stage.put(given("three")).settle();
    assert_eq!(stage.done(), ["apply ConfigMap own/third"]);
}

#[test]
fn a_bundle_may_wait_for_another_bundle() {
    let mut stage = stage(&format!(
        "{{requires: [{{resource: appbundle.app.example.com/db}}], groups: [{{name: a, components: [{}]}}]}}",
        map("web", "")
    ));
    stage.customs.push(crate::stage::Custom {
        kind: linchpin_words::Gvk::new("app.example.com", "v1alpha1", "AppBundle"),
        plural: "appbundles",
        namespaced: true,
    });
    let bundle = |ready: &str| {
        json!({"apiVersion": "app.example.com/v1alpha1", "kind": "AppBundle",
            "metadata": {"name": "db", "namespace": "own", "generation": 1},
            "status": {"observedGeneration": 1, "conditions": [
                {"type": "Ready", "status": ready, "reason": "x", "observedGeneration": 1}]}})
    };
    stage.put(bundle("False")).settle();
    assert!(stage.done().is_empty());
    stage.put(bundle("True")).settle();
    assert_eq!(stage.done(), ["apply ConfigMap own/web"]);
}

#[test]
fn p12_a_custom_resource_waits_for_its_definition() {
    let spec = "{groups: [{name: a, components: [
        {name: crd, template: {apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition,
          metadata: {name: things.example.com}}},
        {name: thing, template: {apiVersion: example.com/v1, kind: Thing, metadata: {name: t}}}]}]}";
    let mut stage = stage(spec);
    stage.settle();
    assert_eq!(stage.done(), ["apply CustomResourceDefinition things.example.com"]);
    stage.customs.push(crate::stage::Custom {
        kind: linchpin_words::Gvk::new("example.com", "v1", "Thing"),
        plural: "things",
        namespaced: true,
    });
    stage.put(crate::things::definition("example.com", "things", "Thing")).settle();
    assert_eq!(stage.done(), ["apply Thing own/t"]);
}

#[test]
fn editing_one_component_touches_that_one() {
    let mut stage = stage(&format!(
        "{{groups: [{{name: a, components: [{}, {}, {}]}}]}}",
        map("x", ""),
        map("why", ""),
        map("z", "")
    ));
    stage.settle();
    assert_eq!(stage.done().len(), 3);
    stage
        .edit(|object| object["spec"]["groups"][0]["components"][1]["template"]["data"] = json!({"k": "v"}))
        .settle();
    assert_eq!(stage.done(), ["apply ConfigMap own/why"]);
    stage.edit(|object| object["spec"]["groups"][0]["components"][2]["timeout"] = json!("5m")).settle();
    assert_eq!(stage.done(), Vec::<String>::new(), "when is not what");
    assert!(stage.report().ready);
}

#[test]
fn a_changed_component_waits_until_what_it_depends_on_is_ready_now() {
    let mut stage = stage(&format!(
        "{{groups: [{{name: a, components: [{}, {}, {}]}}]}}",
        workload("db", ""),
        map("web", ""),
        map("rest", "")
    ));
    stage.settle();
    stage.put(deployment("own", "db", 1)).settle();
    assert_eq!(stage.done().len(), 3);
    stage.put(deployment("own", "db", 0)).settle();
    stage
        .edit(|object| object["spec"]["groups"][0]["components"][1]["template"]["data"] = json!({"k": "v"}))
        .settle();
    assert_eq!(stage.done(), Vec::<String>::new());
    stage.put(deployment("own", "db", 1)).settle();
    assert_eq!(stage.done(), ["apply ConfigMap own/web"]);
}

#[test]
fn failed_when_alone_leaves_readiness_to_the_kind() {
    let mut stage = stage(&format!(
        "{{groups: [{{name: a, components: [{}, {}]}}]}}",
        workload("db", ", failedWhen: {cel: 'self.status.broken == true'}"),
        map("web", "")
    ));
    stage.settle();
    assert_eq!(stage.done(), ["apply Deployment own/db"]);
    let mut broken = deployment("own", "db", 0);
    broken["status"]["broken"] = Value::Bool(true);
    stage.put(broken).settle();
    let status = stage.status();
    assert_eq!(status.common.phase.as_deref(), Some("Failed"), "{status:?}");
    stage.put(deployment("own", "db", 1)).settle();
    assert_eq!(stage.done(), ["apply ConfigMap own/web"]);
}

#[test]
fn ready_when_replaces_what_the_kind_says() {
    let mut stage = stage(&format!(
        "{{groups: [{{name: a, components: [
           {{name: m, template: {{apiVersion: v1, kind: ConfigMap, metadata: {{name: m}}}},
             readyWhen: {{conditions: [{{jsonPath: .data.done, value: 'yes'}}]}}}}, {}]}}]}}",
        map("next", "")
    ));
    stage.settle();
    assert_eq!(stage.done(), ["apply ConfigMap own/m"]);
    stage.put(config_map("own", "m", &json!({"done": "yes"}))).settle();
    assert_eq!(stage.done(), ["apply ConfigMap own/next"]);
}
