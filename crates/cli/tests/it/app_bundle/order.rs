//! Coming up in order.

use super::{component, map, maps, names, workload, written};
use crate::{eventually, seconds, world::scenario};
use linchpin_testkit::{audit::assert_before, condition, entry};
use serde_json::json;
use std::{thread, time::Duration};

/// The namespace that the three tiers live in.
const APP: &str = "three-tiers-app";

#[test]
fn the_documents_three_tiers_come_up_in_order_and_go_down_in_reverse() {
    let scenario = scenario("three-tiers");
    scenario.grant(
        "three-tiers",
        r#"[{apiGroups: ["", apps], resources: [namespaces, configmaps, secrets, services, deployments], verbs: ["*"]},
            {apiGroups: [discovery.k8s.io], resources: [endpointslices], verbs: [get, list, watch]}]"#,
    );
    // An example makes a namespace of the document's name in the same cluster.
    let manifest =
        include_str!("../../../../api/tests/it/manifests/three-tier.yaml").replace("sample-app", APP);
    scenario.apply(&manifest.replace("spec:\n  groups:", "spec:\n  serviceAccountName: actor\n  groups:"));
    let done = scenario.deployed("three-tier");
    assert_eq!(done["status"]["message"], "All groups deployed successfully");
    assert_eq!(condition(&done, "Ready")["reason"], "DeploymentComplete");
    let finalizers = &done["metadata"]["finalizers"];
    assert_eq!(*finalizers, json!(["app.example.com/finalizer"]));
    let web = scenario.api.get("Deployment", APP, "web").unwrap();
    assert_eq!(web["metadata"]["annotations"]["argocd.argoproj.io/sync-wave"], "200");
    assert_eq!(
        (
            &web["metadata"]["labels"]["app.example.com/appbundle"],
            &web["metadata"]["labels"]["app.example.com/group"]
        ),
        (&json!("three-tier"), &json!("app"))
    );
    assert_eq!(web["spec"]["template"]["metadata"]["labels"], json!({"app": "web"}));
    assert!(web["metadata"].get("ownerReferences").is_none(), "p08: an owner lives in the same namespace");
    let line = [
        ("namespaces", APP),
        ("configmaps", "settings"),
        ("secrets", "password"),
        ("services", "db"),
        ("deployments", "db"),
        ("deployments", "web"),
        ("services", "web"),
    ];
    let events = scenario.audit.user_writes("");
    let in_it = |event: &&linchpin_testkit::audit::Event| event.namespace == APP;
    assert!(events.iter().filter(in_it).all(|event| event.resource != "jobs"), "p25: nothing waits in Jobs");
    let first = |resource: &str, name: &str, verb: &str| {
        let wanted = |event: &&linchpin_testkit::audit::Event| {
            event.resource == resource
                && event.name == name
                && event.verb == verb
                && (event.namespace == APP || resource == "namespaces")
        };
        events.iter().find(wanted).unwrap_or_else(|| panic!("no {verb} of {resource} {name}")).clone()
    };
    for pair in line.windows(2) {
        assert_before(&first(pair[0].0, pair[0].1, "patch"), &first(pair[1].0, pair[1].1, "patch"));
    }
    scenario.delete("AppBundle", "three-tier");
    scenario.gone("AppBundle", "three-tier");
    let events = scenario.audit.user_writes("");
    let deletion = |resource: &str, name: &str| {
        let found = events.iter().find(|event| {
            event.verb == "delete"
                && event.resource == resource
                && event.name == name
                && event.namespace == APP
        });
        found.unwrap_or_else(|| panic!("no deletion of {resource} {name}")).clone()
    };
    for pair in line[1..].windows(2) {
        assert_before(&deletion(pair[1].0, pair[1].1), &deletion(pair[0].0, pair[0].1));
    }
    assert!(scenario.api.get("Namespace", "", APP).is_none(), "what it made is gone when it is gone");
}

#[test]
fn p01_a_bundle_that_is_stuck_delays_no_other() {
    let scenario = scenario("stuck");
    for number in 0..5 {
        scenario.app_bundle(
            &format!("stuck-{number}"),
            &format!(
                "{{groups: [{{name: a, components: [{}, {}]}}]}}",
                map(&format!("s{number}"), ", readyWhen: {cel: 'self.data.never == \"\"'}"),
                map(&format!("t{number}"), "")
            ),
        );
    }
    scenario.app_bundle("free", &maps(&[&["x"], &["z"]]));
    scenario.deployed("free");
    let stuck = scenario.until("is under way", "AppBundle", "stuck-0", |object| {
        let begun = !object["status"]["groupStatuses"].is_null();
        begun && component(object, "a", "s0")["phase"] == "Deploying"
    });
    assert_eq!(stuck["status"]["phase"], "Deploying");
    assert_eq!(component(&stuck, "a", "t0")["phase"], "Pending");
    assert!(!scenario.has("t0"));
    scenario.delete("AppBundle", "stuck-0");
    scenario.gone("AppBundle", "stuck-0");
    assert!(!scenario.has("s0"));
}

#[test]
fn p02_status_is_live_and_lists_what_is_not_reached() {
    let scenario = scenario("live");
    scenario.app_bundle(
        "shop",
        &format!(
            "{{groups: [{{name: a, components: [{}]}}, {{name: b, components: [{}]}}]}}",
            map("x", ", requires: [{resource: configmap/gate}]"),
            map("z", "")
        ),
    );
    let waiting = scenario.phase("AppBundle", "shop", "Pending");
    assert_eq!(component(&waiting, "b", "z")["phase"], "Pending");
    assert_eq!(component(&waiting, "a", "x")["requires"][0]["met"], false);
    assert_eq!(condition(&waiting, "Ready")["status"], "False");
    assert_eq!(condition(&waiting, "Reconciling")["status"], "True");
    scenario.config_map("gate", "");
    let done = scenario.deployed("shop");
    assert_eq!(
        component(&done, "b", "z")["resourceRef"],
        json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "z", "namespace": "live"})
    );
    eventually("p27: transitions are told as events", seconds(5), || !scenario.events("shop").is_empty());
}

#[test]
fn p12_nothing_goes_on_before_a_rollout_is_seen_and_done() {
    let scenario = scenario("rollout");
    let spec = |replicas: usize, value: &str| {
        format!(
            "{{groups: [{{name: db, components: [{}]}}, {{name: app, components: [{}]}}]}}",
            workload("db", replicas, ""),
            map("web", "").replace("value: one", &format!("value: {value}"))
        )
    };
    scenario.app_bundle("shop", &spec(1, "one"));
    scenario.deployed("shop");
    let before = written(&scenario).len();
    scenario.app_bundle("shop", &spec(3, "two"));
    let done = scenario.deployed("shop");
    assert_eq!(entry(&done, "groupStatuses", "app")["phase"], "Deployed");
    let writes = written(&scenario);
    assert_eq!(writes.len(), before + 1);
    let events = scenario.audit.events();
    let rolled_out = events.iter().rfind(|event| {
        event.resource == "deployments"
            && event.namespace == scenario.namespace
            && event.name == "db"
            && event.subresource == "status"
            && event.is_write()
    });
    assert_before(rolled_out.unwrap(), writes.last().unwrap());
}

#[test]
fn an_unchanged_bundle_makes_no_write_and_an_edit_touches_one_object() {
    let scenario = scenario("quiet");
    scenario.app_bundle("shop", &maps(&[&["a", "b"], &["c", "d"]]));
    scenario.deployed("shop");
    thread::sleep(Duration::from_secs(3));
    let before = scenario.audit.requests_for("quiet").iter().filter(|event| event.is_write()).count();
    thread::sleep(Duration::from_secs(5));
    let after = scenario.audit.requests_for("quiet").iter().filter(|event| event.is_write()).count();
    assert_eq!(before, after, "stillness");
    let count = written(&scenario).len();
    let edited = maps(&[&["a", "b"], &["c", "d"]]).replacen(
        "name: c}, data: {value: one}",
        "name: c}, data: {value: two}",
        1,
    );
    scenario.app_bundle("shop", &edited);
    scenario.deployed("shop");
    assert_eq!(names(&written(&scenario)[count..], "patch"), ["c"]);
    assert_eq!(scenario.data("c", "value").as_deref(), Some("two"));
    assert_eq!(scenario.audit.overreach(), []);
}
