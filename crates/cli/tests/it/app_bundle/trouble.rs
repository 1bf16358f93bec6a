//! What goes wrong is told with group and component, later groups are untouched, and the fix recovers.

use super::{component, map};
use crate::{eventually, seconds, world::scenario};
use linchpin_testkit::{Scenario, condition};
use serde_json::Value;

/// A bundle whose middle group has this component between two good ones.
fn around(bad: &str) -> String {
    format!(
        "{{groups: [{{name: before, components: [{}]}}, {{name: middle, components: [{bad}]}}, {{name: after, \
         components: [{}]}}]}}",
        map("first", ""),
        map("last", "")
    )
}

/// Waits for the failure of `middle/bad`, told in all places.
#[track_caller]
fn fails(scenario: &Scenario, expected: &str) -> Value {
    let failed = scenario.until("has failed", "AppBundle", "shop", |object| {
        object["status"]["phase"] == "Failed"
            && object["status"]["observedGeneration"] == object["metadata"]["generation"]
    });
    let told = failed["status"]["message"].as_str().unwrap();
    assert!(told.contains("middle") && told.contains("bad") && told.contains(expected), "{told}");
    let bad = component(&failed, "middle", "bad");
    assert_eq!(bad["phase"], "Failed", "{bad:#}");
    assert!(bad["message"].as_str().unwrap().contains(expected), "{bad:#}");
    assert_eq!(component(&failed, "after", "last")["phase"], "Pending");
    assert_eq!(condition(&failed, "Ready")["reason"], "DeploymentFailed");
    assert_eq!(condition(&failed, "Stalled")["status"], "True");
    assert!(!scenario.has("last"), "later groups are untouched");
    failed
}

#[test]
fn p18_a_body_that_the_server_refuses() {
    let scenario = scenario("bad-body");
    let bad = map("bad", "").replace("data: {value: one}", "data: {value: [1, 2]}");
    scenario.app_bundle("shop", &around(&bad));
    fails(&scenario, "Failed to create resource: ");
    assert!(scenario.has("first"));
    scenario.app_bundle("shop", &around(&map("bad", "")));
    scenario.deployed("shop");
    assert!(scenario.has("last"));
}

#[test]
fn p16_an_object_that_is_not_allowed() {
    let scenario = scenario("forbidden-object");
    let bad = "{name: bad, template: {apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: bad}, \
               spec: {podSelector: {}}}}";
    scenario.app_bundle("shop", &around(bad));
    // A right that is missing is waited for: somebody can give it.
    let waiting = scenario.until("waits for the right", "AppBundle", "shop", |object| {
        object["status"]["message"].as_str().unwrap_or_default().contains("networkpolicies")
    });
    assert_ne!(waiting["status"]["phase"], "Failed", "{:#}", waiting["status"]);
    scenario.apply(
        "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: more},
           rules: [{apiGroups: [networking.k8s.io], resources: [networkpolicies], verbs: ['*']}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: more},
  roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: more},
  subjects: [{kind: ServiceAccount, name: actor, namespace: $NS}]}",
    );
    scenario.annotate("AppBundle", "shop", "linchpin.dev/requested-at", "now");
    scenario.deployed("shop");
}

#[test]
fn p19_two_components_with_one_object() {
    let scenario = scenario("twice");
    let bad = map("bad", "").replace("metadata: {name: bad}", "metadata: {name: first}");
    scenario.app_bundle("shop", &around(&bad));
    let failed = fails(&scenario, "component before/first");
    assert!(failed["status"]["message"].as_str().unwrap().contains("component middle/bad"));
    assert!(!scenario.has("first"), "nothing is touched while it cannot be told who owns what");
    scenario.app_bundle("shop", &around(&map("bad", "")));
    scenario.deployed("shop");
}

#[test]
fn a_template_that_is_none() {
    let scenario = scenario("bad-template");
    let bad = map("bad", "").replace("value: one", "value: '{{ .Values.missing }'");
    let spec = around(&bad).replacen('{', "{values: {a: 1}, ", 1);
    scenario.app_bundle("shop", &spec);
    fails(&scenario, "not a template");
    scenario.app_bundle("shop", &spec.replace("'{{ .Values.missing }'", "'{{ .Values.a }}'"));
    scenario.deployed("shop");
    assert_eq!(scenario.data("bad", "value").as_deref(), Some("1"));
}

#[test]
fn p10_order_100_is_refused_at_admission() {
    let scenario = scenario("order-100");
    let said = scenario.refused_app_bundle(
        "shop",
        &format!("{{groups: [{{name: a, components: [{}]}}]}}", map("x", ", order: 100")),
    );
    assert!(said.contains("less than or equal to 99"), "{said}");
}

#[test]
fn a_template_of_a_megabyte() {
    let scenario = scenario("megabyte");
    let bad = map("bad", "").replace("value: one", &format!("value: {}", "x".repeat(1 << 20)));
    scenario.app_bundle("shop", &around(&bad));
    fails(&scenario, "larger than");
    scenario.app_bundle("shop", &around(&map("bad", "")));
    scenario.deployed("shop");
}

#[test]
fn p14_a_component_that_takes_too_long_fails_and_recovers() {
    let scenario = scenario("too-long");
    let bad = map(
        "bad",
        ", timeout: 1s, readyWhen: {conditions: [{jsonPath: .metadata.annotations.done, operator: exists}]}",
    );
    scenario.app_bundle("shop", &around(&bad));
    fails(&scenario, "Resource not ready: ");
    scenario.annotate("ConfigMap", "bad", "done", "yes");
    scenario.deployed("shop");
    assert!(scenario.has("last"));
}

#[test]
fn p17_no_value_of_a_secret_is_told_when_the_server_refuses_it() {
    let scenario = scenario("secret-told");
    scenario.app_bundle(
        "shop",
        &around(
            "{name: bad, template: {apiVersion: v1, kind: Secret, metadata: {name: bad}, type: kubernetes.io/tls,
               stringData: {tls.crt: hunter2, password: hunter2}}}",
        ),
    );
    let failed = scenario.phase("AppBundle", "shop", "Failed");
    assert!(!failed["status"].to_string().contains("hunter2"), "{:#}", failed["status"]);
}

#[test]
fn a_bundle_that_was_deployed_before_it_was_ready_tells_when_it_is() {
    let scenario = scenario("ready-later");
    scenario.app_bundle(
        "shop",
        "groups: [{name: g, components: [{name: web, template: {apiVersion: v1, kind: Service, metadata: {name: web}, \
         spec: {selector: {app: web}, ports: [{port: 80}]}}}]}]",
    );
    scenario.until("is there, without a pod", "AppBundle", "shop", |object| {
        object["status"]["phase"] == "Deployed" && condition(object, "Ready")["status"] == "False"
    });
    let told = |reason: &str| scenario.events("shop").iter().filter(|event| event.0 == reason).count();
    eventually("it is told", seconds(20), || told("NotReady") == 1);
    assert_eq!(told("Deployed"), 0);
    scenario.apply(
        "{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: web-1, labels: \
         {kubernetes.io/service-name: web}}, addressType: IPv4, endpoints: [{addresses: [10.0.0.9], conditions: {ready: true}}], \
         ports: [{port: 80}]}",
    );
    scenario.deployed("shop");
    eventually("it is told", seconds(20), || told("Deployed") == 1);
}
