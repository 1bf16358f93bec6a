//! The rights of the consist process: a scenario that needs each of them, and nothing beyond.

use std::net::TcpListener;

use linchpin_operator::rights::consist::ConsistInstallation;
use serde_json::{Value, json};

use super::{AVAILABLE, CONTROL, Shop, USER, label, ready, service};
use crate::{bare, needed, operator::linchpin};

#[test]
fn every_right_of_the_process_is_used_and_no_other_is_asked_for() {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (bind, url) =
        (format!("--webhook-bind-address={address}"), format!("--webhook-url=https://{address}"));
    let mut shop = Shop::open(&bare(), &["needs"], &[&bind, &url, "--drain-timeout=8s"]);
    let scenario = shop.scenario("needs");
    scenario.apply(
        "
{apiVersion: apps.kusionstack.io/v1alpha1, kind: PodTransitionRule, metadata: {name: slowly}, spec: {selector: {matchLabels: {app: web}}, rules: [{name: one, availablePolicy: {maxUnavailableValue: 2}}]}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: linchpin-consist, namespace: default}, spec: {replicas: 0, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: a}]}}}}
",
    );
    service(&scenario, "web");
    for number in 1..=2 {
        let name = format!("web-{number}");
        scenario.apply(&format!(
            "{{apiVersion: v1, kind: Pod, metadata: {{name: {name}, labels: {{app: web, {CONTROL}: 'true'}}}}, spec: {{nodeName: node-1, \
             readinessGates: [{{conditionType: pod.kusionstack.io/service-ready}}], containers: [{{name: app, image: app}}]}}}}"
        ));
        ready(&scenario, &name, &format!("10.0.9.{number}"));
        shop.until("it is available", || label(&scenario.get("Pod", &name).unwrap(), AVAILABLE).is_some());
    }
    let is_going = |name: &str| {
        scenario.get("Pod", name).is_none_or(|pod| !pod["metadata"]["deletionTimestamp"].is_null())
    };
    // An eviction that the process carries out once the pod is drained.
    let evict = json!({"metadata": {"annotations": {"linchpin.dev/evict-requested": "1900000000000000000"}}});
    scenario.merge("Pod", "web-1", &evict);
    shop.until("it is evicted", || is_going("web-1"));
    // A deletion that a controller asked for, which does not ask again.
    let by = "system:serviceaccount:kube-system:taint-eviction-controller";
    let asked = json!({"metadata": {"labels": {"collaset.kusionstack.io/to-delete": "1900000000000000000"},
        "annotations": {"linchpin.dev/delete-requested-by": by}}});
    scenario.merge("Pod", "web-2", &asked);
    shop.until("it is deleted", || is_going("web-2"));
    shop.process = None;
    let disabled = linchpin()
        .args(["consist", "disable", "demo", "--provider", &shop.provider.url(), "--watch-namespaces=needs"])
        .args([
            "--lease-namespace=default",
            "--webhook-config-name=linchpin-consist",
            "--scale-down=default/linchpin-consist",
            "--kubeconfig",
        ])
        .arg(&shop.kubeconfig)
        .output()
        .unwrap();
    assert!(disabled.status.success(), "{}", String::from_utf8_lossy(&disabled.stderr));
    let requests: Vec<_> = scenario.audit.events().into_iter().filter(|event| event.user == USER).collect();
    let refused: Vec<_> = requests.iter().filter(|event| event.code == 403).collect();
    assert!(refused.is_empty(), "it asked for what it may not: {refused:#?}");
    let manifests = ConsistInstallation::default().manifests();
    let rules: Vec<Value> =
        manifests.iter().flat_map(|one| one["rules"].as_array().cloned().unwrap_or_default()).collect();
    let unused = needed::unused(&requests, rules);
    assert!(unused.is_empty(), "rights that nothing needed: {unused:#?}");
}
