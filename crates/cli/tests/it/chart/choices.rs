//! What a value of the chart changes, and what it leaves alone.

use serde_json::{Value, json};

use super::{chart, documents, helm, rendered, rendered_as, text};

#[test]
fn a_door_that_is_closed_has_no_definition_no_right_and_no_webhook_in_the_chart() {
    let more = "policy.requireUse=true,watchNamespaces={default},tenancy.mode=Cluster";
    for (door, plurals) in [
        ("resourceDependency", &["resourcedependencies", "dependencygroups"][..]),
        ("appBundle", &["appbundles", "bundlerevisions"]),
        ("sync", &["syncs", "globaldependencies", "capabilities"]),
        ("bootDependency", &["bootdependencies"]),
    ] {
        for open in [true, false] {
            let all = documents(&rendered(&["--set", more, "--set", &format!("doors.{door}={open}")]));
            for plural in plurals {
                let is_ruled = |one: &Value| {
                    let spec = if one["kind"] == "ValidatingAdmissionPolicy" {
                        &one["spec"]["matchConstraints"]["resourceRules"]
                    } else {
                        &one["rules"]
                    };
                    let words = spec.as_array().into_iter().flatten();
                    let words = words.flat_map(|rule| rule["resources"].as_array().unwrap());
                    words.into_iter().any(|word| word.as_str().unwrap().split('/').next() == Some(plural))
                };
                let named: Vec<&Value> = all
                    .iter()
                    .filter(|one| {
                        is_ruled(one)
                            || one["kind"] == "CustomResourceDefinition"
                                && one["spec"]["names"]["plural"] == *plural
                    })
                    .map(|one| &one["metadata"]["name"])
                    .collect();
                assert_eq!(!named.is_empty(), open, "{door} {open}: {plural} in {named:?}");
            }
            let webhooks = all.iter().any(|one| one["kind"] == "MutatingWebhookConfiguration");
            assert_eq!(webhooks, open || door != "bootDependency");
        }
    }
}

/// The specs of all Pods that a release with everything in it makes.
fn pods(values: &[&str]) -> Vec<Value> {
    let consist = ["consist.enabled=true,consist.adapters={demo},consist.allNamespaces=true"];
    let set: Vec<&str> = consist.iter().chain(values).flat_map(|value| ["--set", value]).collect();
    let all = documents(&rendered(&set)).into_iter();
    let pods: Vec<Value> = all
        .filter_map(|mut one| match one["kind"].as_str()? {
            "Pod" => Some(one["spec"].take()),
            "Deployment" | "Job" => Some(one["spec"]["template"]["spec"].take()),
            _ => None,
        })
        .collect();
    assert_eq!(pods.len(), 4);
    pods
}

/// Otherwise a test on a cluster whose nodes are all tainted waits for a node until it fails, and consist does for ever.
#[test]
fn every_pod_of_the_release_runs_on_the_nodes_that_are_chosen() {
    let chosen = "nodeSelector.pool=system,tolerations[0].key=system,tolerations[0].operator=Exists";
    for pod in pods(&[chosen]) {
        assert_eq!(pod["nodeSelector"], json!({"pool": "system"}), "{pod:#}");
        assert_eq!(pod["tolerations"], json!([{"key": "system", "operator": "Exists"}]), "{pod:#}");
    }
}

/// A quota refuses Pods that do not.
#[test]
fn every_container_of_the_release_says_what_it_needs() {
    for pod in pods(&["resources.limits.memory=1Gi"]) {
        let expected = json!({"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"memory": "1Gi"}});
        assert_eq!(pod["containers"][0]["resources"], expected, "{pod:#}");
    }
}

/// The webhooks of a release are about the namespaces whose objects it serves.
#[test]
fn where_some_namespaces_are_watched_the_webhooks_are_asked_about_those_alone() {
    let selectors = |values: &[&str]| -> Vec<Value> {
        let all = documents(&rendered(&[&["--show-only", "templates/webhooks.yaml"], values].concat()));
        let webhooks = all.iter().filter_map(|one| one["webhooks"].as_array()).flatten();
        webhooks.map(|one| one["namespaceSelector"].clone()).collect()
    };
    let watched = json!({"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["shop"]});
    let some = selectors(&["--set", "watchNamespaces={shop}"]);
    assert_eq!(some.len(), 3);
    for selector in some {
        assert!(selector["matchExpressions"].as_array().unwrap().contains(&watched), "{selector}");
    }
    assert!(selectors(&[]).iter().all(|selector| !selector.to_string().contains("\"In\"")));
}

#[test]
fn a_network_policy_without_addresses_of_api_servers_lets_only_questions_for_names_out() {
    let egress = |addresses: &str| {
        let show = [
            "--show-only",
            "templates/networkpolicy.yaml",
            "--set",
            "networkPolicy.enabled=true",
            "--set-json",
        ];
        let policy = documents(&rendered(&[&show[..], &[addresses]].concat())).remove(0);
        policy["spec"]["egress"].clone()
    };
    let names = json!({"ports": [{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}]});
    assert_eq!(egress("networkPolicy.apiServerCIDRs=[]"), json!([names]));
    let there = json!({"to": [{"ipBlock": {"cidr": "10.0.0.1/32"}}]});
    assert_eq!(egress(r#"networkPolicy.apiServerCIDRs=["10.0.0.1/32"]"#), json!([names, there]));
}

/// Without quotes YAML reads them as numbers, and the API server refuses the object.
#[test]
fn names_that_are_digits_stay_texts() {
    fn has_number(value: &Value) -> bool {
        match value {
            Value::Object(fields) => fields.values().any(has_number),
            Value::Array(items) => items.iter().any(has_number),
            other => *other == 2024,
        }
    }
    let names = "watchNamespaces={2024},tenancy.namespaces={2024},consist.namespaces={2024},consist.adapters={demo},\
                 networkPolicy.flux.namespace=2024";
    let on = "consist.enabled=true,networkPolicy.enabled=true,networkPolicy.flux.enabled=true,policy.requireUse=true";
    let rendered = rendered_as("2024", "2024", &["--set-string", names, "--set", on]);
    for document in documents(&rendered) {
        assert!(!has_number(&document), "{document:#}");
    }
}

#[test]
fn who_installs_an_image_that_no_registry_has_is_told_so() {
    let notes = |image: &str| {
        let cluster = ["install", "linchpin", "--dry-run=client", "-n", "linchpin-system", "--set", image];
        let chart = chart();
        let output = helm(None, &[&cluster[..], &[chart.to_str().unwrap()]].concat());
        text(&output.stdout)
    };
    let said = "which a node has only if somebody put it there: set image.repository";
    assert!(notes("image.tag=v1").contains(said), "{}", notes("image.tag=v1"));
    assert!(!notes("image.repository=registry.example.com/linchpin").contains(said));
}
