//! What is behind a blocker: told in status as far as the waiting object's own identity may look.

use crate::{forms::definition, world::scenario};
use serde_json::json;

const LAST: &str = "{dependencies: [{resource: configmap/go}]}";

#[test]
fn a_status_tells_the_chain_to_the_root_cause() {
    let scenario = scenario("causes");
    scenario.resource_dependency("last", LAST);
    scenario.resource_dependency("middle", "{dependencies: [{resource: rd/last}]}");
    scenario.resource_dependency("first", "{dependencies: [{resource: rd/middle}]}");
    let chain = json!([
        "waits for ResourceDependency causes/last: it is not ready: Waiting",
        "waits for ConfigMap causes/go: it does not exist, NotFound",
    ]);
    let told = scenario.until("tells the chain", "ResourceDependency", "first", |object| {
        object["status"]["blockedBy"][0]["chain"] == chain
    });
    let line = "waiting for rd/middle: it is not ready: Waiting; root cause: ConfigMap causes/go: it does not exist, NotFound";
    assert_eq!(told["status"]["message"], line);

    scenario.config_map("go", "");
    scenario.completed("first");
}

#[test]
fn a_chain_ends_where_the_identity_may_not_look() {
    let scenario = scenario("hidden-causes");
    scenario.apply(
        "
        {apiVersion: v1, kind: ServiceAccount, metadata: {name: short-sighted}}
---
        {apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: short-sighted}, rules: [
          {apiGroups: [tools.kubestellar.io], resources: [resourcedependencies], resourceNames: [last], verbs: [get, list, watch]}]}
---
        {apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: short-sighted},
         roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: short-sighted},
         subjects: [{kind: ServiceAccount, name: short-sighted, namespace: $NS}]}
        ",
    );
    scenario.resource_dependency("last", LAST);
    scenario.resource_dependency(
        "first",
        "{serviceAccountName: short-sighted, dependencies: [{resource: rd/last}]}",
    );
    let told = scenario.until("tells that there is more", "ResourceDependency", "first", |object| {
        object["status"]["blockedBy"][0]["chain"] == json!(["waits for (not visible)"])
    });
    assert!(!told["status"].to_string().contains("ConfigMap"), "{:#}", told["status"]);
}

#[test]
fn a_leaf_of_a_custom_kind_is_named() {
    let scenario = scenario("custom-causes");
    scenario.apply(&definition("causes.example.com", "Engine"));
    scenario.allow("all", "[{apiGroups: ['*'], resources: ['*'], verbs: ['*']}]");
    scenario.app_bundle(
        "shop",
        "groups: [{name: g, components: [{name: engine, template: {apiVersion: causes.example.com/v1, kind: Engine, \
         metadata: {name: engine}}, readyWhen: {cel: 'self.status.power > 1'}}]}]",
    );
    scenario.resource_dependency("first", "{dependencies: [{resource: appbundle/shop, state: Ready}]}");
    scenario.until("names the leaf", "ResourceDependency", "first", |object| {
        let chain = object["status"]["blockedBy"][0]["chain"].to_string();
        chain.contains("Engine custom-causes/engine") && !chain.contains("not visible")
    });
}

#[test]
fn what_may_not_be_looked_at_is_told_alike_whether_it_exists_or_not() {
    let scenario = scenario("blind-causes");
    scenario.apply("{apiVersion: v1, kind: ServiceAccount, metadata: {name: blind}}");
    scenario.resource_dependency("there", LAST);
    scenario.phase("ResourceDependency", "there", "Waiting");
    let told = ["there", "nowhere"].map(|name| {
        let waiting = format!("waits-for-{name}");
        let spec = format!("{{serviceAccountName: blind, dependencies: [{{resource: rd/{name}}}]}}");
        scenario.resource_dependency(&waiting, &spec);
        let chained = |object: &serde_json::Value| object["status"]["blockedBy"][0]["chain"][0].is_string();
        let object = scenario.until("has looked behind it", "ResourceDependency", &waiting, chained);
        let blocker = &object["status"]["blockedBy"][0];
        assert_eq!(blocker["reason"], "Forbidden", "{blocker:#}");
        (blocker["chain"].to_string(), object["status"]["message"].to_string().replace(name, "it"))
    });
    assert_eq!(told[0], told[1]);
    assert_eq!(told[0].0, json!(["(not visible)"]).to_string());
}
