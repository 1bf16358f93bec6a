//! PodOpsLifecycle with our own engine: operations, rules, and the gate.

use linchpin_testkit::Scenario;
use serde_json::{Value, json};

use super::{AVAILABLE, Shop, annotation, finalizers, label, pod, service};
use crate::bare;

fn stage(prefix: &str, id: &str) -> String {
    format!("{prefix}.podopslifecycle.kusionstack.io/{id}")
}

fn gate(pod: &Value) -> Option<&str> {
    let conditions = pod["status"]["conditions"].as_array()?;
    let gate = conditions.iter().find(|one| one["type"] == "pod.kusionstack.io/service-ready")?;
    gate["status"].as_str()
}

fn set_labels(scenario: &Scenario, pod: &str, labels: &Value) {
    scenario.merge("Pod", pod, &json!({"metadata": {"labels": labels}}));
}

#[test]
fn an_operation_waits_until_the_pod_is_out_of_traffic_and_completes_when_it_is_back() {
    let namespaces = ["lifecycle-a", "lifecycle-b"];
    let shop = Shop::open(&bare(), &namespaces, &["--resync=2s"]);
    let scenario = shop.scenario("lifecycle-a");
    service(&scenario, "web");
    pod(&scenario, "web-1", "web", "10.0.0.1", true);
    let get = || scenario.get("Pod", "web-1").unwrap();
    shop.until("web-1 is available", || {
        let pod = get();
        gate(&pod) == Some("True") && label(&pod, AVAILABLE).is_some() && !finalizers(&pod).is_empty()
    });
    // The operation controller begins.
    set_labels(
        &scenario,
        "web-1",
        &json!({stage("operating", "upgrade"): "1", stage("operation-type", "upgrade"): "update"}),
    );
    shop.until("the permission is given, out of traffic", || {
        let pod = get();
        label(&pod, &stage("operate", "upgrade")).is_some()
    });
    let operated = get();
    assert!(finalizers(&operated).is_empty() && gate(&operated) == Some("False"), "{operated}");
    assert!(label(&operated, AVAILABLE).is_none());
    assert!(label(&operated, "operation-permission.podopslifecycle.kusionstack.io/update").is_some());
    assert!(!shop.provider.serves(&scenario, "web", "web-1"));
    // It finishes.
    set_labels(&scenario, "web-1", &json!({stage("operating", "upgrade"): null}));
    shop.until("web-1 is available again", || {
        let pod = get();
        label(&pod, AVAILABLE).is_some() && !finalizers(&pod).is_empty()
    });
    let back = get();
    let leftover =
        back["metadata"]["labels"].as_object().unwrap().keys().any(|key| key.ends_with("/upgrade"));
    assert!(!leftover && gate(&back) == Some("True"), "{back}");
    assert!(shop.provider.serves(&scenario, "web", "web-1"));
    rules(&shop);
    shop.judge(&namespaces);
}

/// A rule lets one pod go at a time, says why the other waits, and takes its words off again.
fn rules(shop: &Shop) {
    let scenario = shop.scenario("lifecycle-b");
    scenario.apply(
        "{apiVersion: apps.kusionstack.io/v1alpha1, kind: PodTransitionRule, metadata: {name: slowly}, spec: {selector: {matchLabels: {app: web}}, rules: [{name: one, availablePolicy: {maxUnavailableValue: 1}}]}}",
    );
    let refused = scenario.refused(
        "{apiVersion: apps.kusionstack.io/v1alpha1, kind: PodTransitionRule, metadata: {name: asks}, spec: {selector: {matchLabels: {app: web}}, rules: [{name: one, webhook: {clientConfig: {url: 'http://x'}}}]}}",
    );
    assert!(refused.contains("webhook is not served"), "{refused}");
    for amount in ["x%", "-1", "'-1'", "1.5", "''"] {
        let refused = scenario.refused(&format!(
            "{{apiVersion: apps.kusionstack.io/v1alpha1, kind: PodTransitionRule, metadata: {{name: odd}}, spec: {{selector: {{matchLabels: {{app: web}}}}, rules: [{{name: one, availablePolicy: {{minAvailableValue: {amount}}}}}]}}}}",
        ));
        assert!(refused.contains("minAvailableValue"), "{amount}: {refused}");
    }
    service(&scenario, "web");
    for number in 1..=2 {
        pod(&scenario, &format!("web-{number}"), "web", &format!("10.0.1.{number}"), true);
    }
    let get = |number: usize| scenario.get("Pod", &format!("web-{number}")).unwrap();
    shop.until("both are available", || (1..=2).all(|number| label(&get(number), AVAILABLE).is_some()));
    for number in 1..=2 {
        let begin = json!({stage("operating", "up"): "1", stage("operation-type", "up"): "update"});
        set_labels(&scenario, &format!("web-{number}"), &begin);
    }
    let may = |number: usize| label(&get(number), &stage("operate", "up")).is_some();
    shop.until("one may be operated on", || may(1) || may(2));
    let (first, second) = if may(1) { (1, 2) } else { (2, 1) };
    let detail = "detail.podtransitionrule.kusionstack.io/slowly";
    shop.until("the other is told why it waits", || {
        annotation(&get(second), detail).is_some_and(|text| text.contains("1 of 2 pods are unavailable"))
    });
    assert!(!may(second));
    shop.until("the rule says so too", || {
        let rule = scenario.get("PodTransitionRule", "slowly").unwrap();
        rule["status"]["targets"] == json!(["web-1", "web-2"])
            && rule["status"]["details"].as_array().is_some_and(|details| {
                details.iter().any(|one| one["passed"] == false && one["name"] == format!("web-{second}"))
            })
    });
    set_labels(&scenario, &format!("web-{first}"), &json!({stage("operating", "up"): null}));
    shop.until("then the other may", || may(second));
    set_labels(&scenario, &format!("web-{second}"), &json!({stage("operating", "up"): null}));
    shop.until("both are available, and nothing is said of them", || {
        (1..=2).all(|number| {
            let pod = get(number);
            label(&pod, AVAILABLE).is_some() && annotation(&pod, detail).is_none()
        })
    });
}
