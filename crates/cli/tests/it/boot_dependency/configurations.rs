//! What the API server is told of the webhooks.

use serde_json::{Value, json};

use super::world;

#[test]
fn b14_the_configurations_say_what_is_promised() {
    let api = &world().api;
    let read = |which: &str| {
        let path =
            format!("/apis/admissionregistration.k8s.io/v1/{which}webhookconfigurations/linchpin-{which}");
        let stored = api.read(&path).unwrap();
        stored["webhooks"].as_array().unwrap().clone()
    };
    let (mutating, validating) = (read("mutating"), read("validating"));
    let shown = |webhook: &Value| {
        let url = webhook["clientConfig"]["url"].as_str().unwrap();
        let path = format!("/{}", url.splitn(4, '/').nth(3).unwrap());
        let rule = &webhook["rules"][0];
        json!([
            webhook["name"],
            path,
            rule["apiGroups"][0],
            rule["apiVersions"][0],
            rule["resources"][0],
            rule["operations"],
            webhook["timeoutSeconds"],
            webhook["matchConditions"][0]["expression"],
        ])
    };
    assert_eq!(
        json!([shown(&mutating[0]), shown(&mutating[1]), shown(&validating[0])]),
        json!([
            [
                "mdeployment-v1.kb.io",
                "/mutate-apps-v1-deployment",
                "apps",
                "v1",
                "deployments",
                ["CREATE", "UPDATE"],
                2,
                "request.operation == 'CREATE' || object.spec.template != oldObject.spec.template",
            ],
            [
                "mpod-v1.linchpin.dev",
                "/mutate-v1-pod",
                "",
                "v1",
                "pods",
                ["CREATE"],
                2,
                "!has(object.metadata.annotations) || !('kubernetes.io/config.mirror' in object.metadata.annotations)",
            ],
            [
                "vbootdependency-v1alpha1.kb.io",
                "/validate-core-bootchain-operator-ruicoelho-dev-v1alpha1-bootdependency",
                "core.bootchain-operator.ruicoelho.dev",
                "v1alpha1",
                "bootdependencies",
                ["CREATE", "UPDATE"],
                3,
                "request.operation == 'CREATE' || (object.spec != oldObject.spec && !has(object.metadata.deletionTimestamp))",
            ],
        ])
    );
    for webhook in mutating.iter().chain(&validating) {
        let policies = [&webhook["failurePolicy"], &webhook["matchPolicy"], &webhook["sideEffects"]];
        assert_eq!(policies, ["Ignore", "Equivalent", "None"], "{}", webhook["name"]);
        assert_eq!(webhook["admissionReviewVersions"], json!(["v1"]));
    }
    for webhook in &mutating {
        assert_eq!(webhook["reinvocationPolicy"], "IfNeeded");
        assert_eq!(
            webhook["namespaceSelector"]["matchExpressions"],
            json!([
                {"key": "linchpin.dev/boot", "operator": "In", "values": ["enabled"]},
                {"key": "kubernetes.io/metadata.name", "operator": "NotIn",
                 "values": ["kube-system", "kube-public", "kube-node-lease"]},
            ])
        );
    }
    assert_eq!(validating[0]["namespaceSelector"], json!({}));
}
