//! Pods with labels, annotations and finalizers by the thousand: nobody else waits for them, and they can go.

use serde_json::{Map, Value, json};

use super::{AVAILABLE, CONTROL, ENTRIES, Shop, finalizers, label, pod, ready, service};
use crate::bare;

const MANY: usize = 4_000;

/// A pod that opted in, with what a tenant may put on it.
fn crowded(scenario: &linchpin_testkit::Scenario, name: &str, finalizers: usize) {
    let mut labels = Map::from_iter([("app".to_owned(), json!("web")), (CONTROL.to_owned(), json!("true"))]);
    for number in 0..MANY {
        labels.insert(format!("operating.podopslifecycle.kusionstack.io/a{number}"), json!("1"));
        labels.insert(format!("operate.podopslifecycle.kusionstack.io/b{number}"), json!("1"));
        labels.insert(format!("example.com/c{number}"), json!("1"));
    }
    let finalizers: Vec<Value> = (0..finalizers)
        .map(|number| json!(format!("prot.podopslifecycle.kusionstack.io/{number:016x}")))
        .collect();
    let annotations = json!({ENTRIES: "[".repeat(100_000), "example.com/large": "x".repeat(100_000)});
    let body = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": scenario.namespace,
        "labels": labels, "annotations": annotations, "finalizers": finalizers},
        "spec": {"nodeName": "node-1", "terminationGracePeriodSeconds": 0,
            "readinessGates": [{"conditionType": "pod.kusionstack.io/service-ready"}],
            "containers": [{"name": "app", "image": "app"}]}});
    let path = format!("/api/v1/namespaces/{}/pods", scenario.namespace);
    scenario.api.request(&http::Method::POST, &path, "application/json", Some(&body)).unwrap();
    ready(scenario, name, "10.0.0.9");
}

#[test]
fn pods_with_thousands_of_labels_hold_nobody_else_and_go_when_they_are_deleted() {
    let namespaces = ["crowded", "calm"];
    let shop = Shop::open(&bare(), &namespaces, &["--resync=2s", "--drain-timeout=5s"]);
    let (hostile, calm) = (shop.scenario("crowded"), shop.scenario("calm"));
    service(&hostile, "web");
    service(&calm, "web");
    crowded(&hostile, "web-1", 0);
    crowded(&hostile, "web-2", 2_000);
    pod(&hostile, "web-3", "web", "10.0.0.3", true);
    for number in 1..=5 {
        // They change all the time.
        hostile.annotate("Pod", "web-1", "example.com/beat", &number.to_string());
        hostile.annotate("Pod", "web-2", "example.com/beat", &number.to_string());
        let name = format!("web-{number}");
        pod(&calm, &name, "web", &format!("10.0.1.{number}"), true);
        shop.until("another namespace is served meanwhile", || {
            let pod = calm.get("Pod", &name).unwrap();
            label(&pod, AVAILABLE).is_some() && !finalizers(&pod).is_empty()
        });
    }
    shop.until("and their neighbours", || label(&hostile.get("Pod", "web-3").unwrap(), AVAILABLE).is_some());
    // What is written for them is bounded.
    let binding = hostile.get("ConsistBinding", "service-web").unwrap().to_string();
    assert!(binding.len() < 100_000, "{} bytes", binding.len());
    hostile.delete("Pod", "web-1");
    hostile.gone("Pod", "web-1");
    // The finalizers of others hold it, not ours.
    hostile.delete("Pod", "web-2");
    shop.until("it is out of traffic", || !shop.provider.serves(&hostile, "web", "web-2"));
    hostile.merge("Pod", "web-2", &json!({"metadata": {"finalizers": null}}));
    hostile.gone("Pod", "web-2");
    shop.judge(&namespaces);
}
