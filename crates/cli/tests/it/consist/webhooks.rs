//! Pods that are created get their gate and entries at once; deletions and evictions are refused until they are drained.

use std::net::TcpListener;

use linchpin_testkit::{Refused, Scenario};
use serde_json::{Value, json};

use super::{AVAILABLE, CONTROL, ENTRIES, Shop, annotation, finalizers, label, ready, service};
use crate::bare;

/// A pod without anything of ours but the label.
fn plain(scenario: &Scenario, name: &str) {
    scenario.apply(&format!(
        "{{apiVersion: v1, kind: Pod, metadata: {{name: {name}, labels: {{app: web, {CONTROL}: 'true'}}}}, spec: {{nodeName: node-1, containers: [{{name: app, image: app}}]}}}}"
    ));
}

fn path(scenario: &Scenario, pod: &str) -> String {
    format!("/api/v1/namespaces/{}/pods/{pod}", scenario.namespace)
}

/// Asks for a deletion, with options.
fn delete(scenario: &Scenario, pod: &str, options: &Value) -> Result<Value, Refused> {
    scenario.api.request(&http::Method::DELETE, &path(scenario, pod), "application/json", Some(options))
}

fn evict(scenario: &Scenario, pod: &str) -> Result<Value, Refused> {
    let body = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": scenario.namespace}});
    let path = format!("{}/eviction", path(scenario, pod));
    scenario.api.request(&http::Method::POST, &path, "application/json", Some(&body))
}

/// What a request about a pod was refused with, with 429, as the API server's own log says.
fn refusal(shop: &Shop, scenario: &Scenario, verb: &str, pod: &str) -> String {
    let mut told = String::new();
    shop.until(&format!("{verb} of {pod} is refused with 429"), || {
        let events = scenario.audit.events();
        let refused =
            events.iter().find(|event| event.verb == verb && event.name == pod && event.code == 429);
        told = refused.map(|event| event.message.clone()).unwrap_or_default();
        refused.is_some()
    });
    told
}

fn is_terminating(scenario: &Scenario, pod: &str) -> bool {
    scenario.get("Pod", pod).is_none_or(|pod| !pod["metadata"]["deletionTimestamp"].is_null())
}

#[test]
fn pods_are_drained_before_a_deletion_or_an_eviction_is_let_through() {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let bind = format!("--webhook-bind-address={address}");
    let url = format!("--webhook-url=https://{address}");
    let mut shop = Shop::open(&bare(), &["guarded"], &[&bind, &url, "--drain-timeout=8s", "--resync=2s"]);
    let scenario = shop.scenario("guarded");
    service(&scenario, "web");
    shop.until("webhooks are called", || {
        plain(&scenario, "probe");
        let called = annotation(&scenario.get("Pod", "probe").unwrap(), ENTRIES).is_some();
        let _ = delete(&scenario, "probe", &json!({"gracePeriodSeconds": 0}));
        scenario.gone("Pod", "probe");
        called
    });

    // At creation: the gate and the entry, before anybody could call the pod available.
    for (number, name) in ["web-1", "web-2", "web-3", "web-4"].into_iter().enumerate() {
        plain(&scenario, name);
        let made = scenario.get("Pod", name).unwrap();
        assert_eq!(made["spec"]["readinessGates"][0]["conditionType"], "pod.kusionstack.io/service-ready");
        assert!(annotation(&made, ENTRIES).unwrap().contains("Service/guarded/web"), "{made}");
        ready(&scenario, name, &format!("10.0.0.{}", number + 1));
        shop.until("it is available", || label(&scenario.get("Pod", name).unwrap(), AVAILABLE).is_some());
    }

    // A person deletes: refused with 429 until it is drained, then let through.
    let dry = delete(&scenario, "web-1", &json!({"dryRun": ["All"]}));
    assert!(
        dry.is_ok()
            && label(&scenario.get("Pod", "web-1").unwrap(), "collaset.kusionstack.io/to-delete").is_none()
    );
    // Clients repeat by themselves what is refused so, and so does the one of this test.
    shop.until("it is let through", || delete(&scenario, "web-1", &json!({})).is_ok());
    let told = refusal(&shop, &scenario, "delete", "web-1");
    assert!(
        told.contains("pod deletion process is underway: it is in traffic of Service/guarded/web"),
        "{told}"
    );
    assert!(!shop.provider.serves(&scenario, "web", "web-1"), "it left traffic before");
    assert!(is_terminating(&scenario, "web-1"));

    // A controller gets 403, and nobody is held by a deletion by force.
    let mut kubectl = shop.cluster.kubectl();
    let asked = kubectl
        .args(["delete", "pod", "web-2", "-n", "guarded", "--wait=false"])
        .args(["--as", "system:serviceaccount:kube-system:replicaset-controller"])
        .args(["--as-group", "system:masters"])
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&asked.stderr).into_owned();
    assert!(told.contains("Forbidden") && told.contains("pod deletion process is underway"), "{told}");
    delete(&scenario, "web-2", &json!({"gracePeriodSeconds": 0})).unwrap();

    // An eviction: 429 until drained; then we evict it ourselves.
    let _ = evict(&scenario, "web-3");
    refusal(&shop, &scenario, "create", "web-3");
    shop.until("it is evicted", || is_terminating(&scenario, "web-3"));
    assert!(!shop.provider.serves(&scenario, "web", "web-3"));

    // A provider that does not answer holds a deletion for as long as drains may take.
    shop.provider.process.kill();
    shop.until("the drain is given up", || delete(&scenario, "web-4", &json!({})).is_ok());
    refusal(&shop, &scenario, "delete", "web-4");
    shop.until("and that is said", || {
        scenario
            .events("web-4")
            .iter()
            .any(|(reason, note)| reason == "PodDeletion" && note.starts_with("drain given up after 8s: "))
    });
    // A pod that is being deleted never hangs on us.
    shop.until("its finalizer goes", || {
        scenario.get("Pod", "web-4").is_none_or(|pod| finalizers(&pod).is_empty())
    });

    // Without us pods come and go as ever.
    shop.process = None;
    plain(&scenario, "web-5");
    delete(&scenario, "web-5", &json!({})).unwrap();
    shop.judge(&["guarded"]);
}
