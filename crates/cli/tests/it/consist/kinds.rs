//! Employers and employees of any kind, definitions of users among them; names that are recorded on the employer; an adapter
//! that does not follow PodOpsLifecycle. Three adapters of one process, for kinds that come to be served after it began.

use std::{fs, path::Path};

use linchpin_testkit::{Api, Scenario};
use serde_json::{Value, json};

use super::{CONTROL, ENTRIES, Provider, Shop, USER, annotation, finalizers, pod};
use crate::bare;

const PROT: &str = "prot.podopslifecycle.kusionstack.io/a185279aa0adcf93";
const ADDED: &str = "resource-consist.kusionstack.io/employees-expected-finalizer-added";
const RECORDED: &str = "resource-consist.kusionstack.io/employees-lifecycle-finalizer-recorded";

/// Defines kinds of `example.com`, and lets the process read all of them and mark the employers.
fn define(api: &Api, kinds: &[&str], employers: &[&str]) {
    for kind in kinds {
        let (word, plural) = (kind.to_lowercase(), format!("{}s", kind.to_lowercase()));
        let schema = json!({"type": "object", "properties": {"spec":
            {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}});
        let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.example.com")},
            "spec": {"group": "example.com", "scope": "Namespaced",
                "names": {"kind": kind, "plural": plural, "singular": word},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]}});
        api.apply(&definition).unwrap();
    }
    let plurals =
        |kinds: &[&str]| kinds.iter().map(|kind| format!("{}s", kind.to_lowercase())).collect::<Vec<_>>();
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "kinds"},
        "rules": [{"apiGroups": ["example.com"], "resources": plurals(kinds), "verbs": ["get", "list", "watch"]},
            {"apiGroups": ["example.com"], "resources": plurals(employers), "verbs": ["patch"]}]});
    let bound = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": "kinds"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "kinds"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": USER}]});
    api.apply(&role).unwrap();
    api.apply(&bound).unwrap();
}

/// An object of `example.com`, as soon as its kind is served.
fn make(shop: &Shop, scenario: &Scenario, kind: &str, name: &str, labels: &Value, spec: &Value) {
    let object = json!({"apiVersion": "example.com/v1", "kind": kind,
        "metadata": {"name": name, "namespace": scenario.namespace, "labels": labels}, "spec": spec});
    shop.until(&format!("{kind} is served"), || scenario.api.apply(&object).is_ok());
}

/// What the provider has at a place, of the employer or of its employees.
fn at(shop: &Shop, side: &str, scope: &str) -> Value {
    shop.provider.state()[side].get(scope).cloned().unwrap_or_default()
}

#[test]
fn employers_and_employees_may_be_of_any_kind_and_are_marked_as_their_adapter_says() {
    let file = |provider: &Provider, directory: &Path| {
        let url = provider.url();
        let config = format!(
            "kind: ConsistConfig
lifecycle: {{engine: own}}
adapters:
- {{name: gates, adapter: http, provider: '{url}', employer: example.com/v1/Router, needRecordEmployees: true, resync: 1s}}
- {{name: fleets, adapter: http, provider: '{url}', employer: example.com/v1/Fleet, employee: example.com/v1/Ship, selectorPath: .spec.crew.selector, resync: 1s}}
- {{name: plain, adapter: demo, provider: '{url}', followPodOpsLifecycle: false, resync: 1s}}
"
        );
        let path = directory.join("config.yaml");
        fs::write(&path, config).unwrap();
        vec!["--config".to_owned(), path.display().to_string()]
    };
    let shop = Shop::open_with(&bare(), &["any"], &[], file);
    let scenario = shop.scenario("any");
    // Who is there serves while others wait for their kinds.
    pod(&scenario, "web-1", "web", "10.0.0.1", false);
    scenario.apply(&format!(
        "{{apiVersion: v1, kind: Service, metadata: {{name: web, labels: {{{CONTROL}: 'true', linchpin.dev/adapter: plain}}}}, spec: {{selector: {{app: web}}, ports: [{{port: 80}}]}}}}"
    ));
    shop.until("the Service is kept", || shop.provider.serves(&scenario, "web", "web-1"));
    let bare_pod = scenario.get("Pod", "web-1").unwrap();
    assert!(finalizers(&bare_pod).is_empty() && annotation(&bare_pod, ENTRIES).is_none(), "{bare_pod}");
    let binding = scenario.get("ConsistBinding", "service-web").unwrap();
    assert_eq!(binding["spec"]["followPodOpsLifecycle"], false);
    assert!(binding["spec"]["finalizer"].is_null(), "{binding}");

    define(&shop.api, &["Router", "Fleet", "Ship"], &["Router", "Fleet"]);
    let control = json!({CONTROL: "true"});
    let gate = json!({"selector": {"app": "web"}, "host": "shop.example"});
    make(&shop, &scenario, "Router", "front", &control, &gate);
    make(&shop, &scenario, "Ship", "one", &json!({"fleet": "north"}), &json!({"guns": 3}));
    make(&shop, &scenario, "Ship", "two", &json!({"fleet": "south"}), &json!({"guns": 4}));
    let fleet = json!({"crew": {"selector": {"fleet": "north"}}});
    make(&shop, &scenario, "Fleet", "north", &control, &fleet);
    routers(&shop, &scenario, &gate);
    fleets(&shop, &scenario, &fleet);

    // Everything goes, and nothing remains.
    for (kind, name) in [("Router.example.com", "front"), ("Fleet.example.com", "north"), ("Service", "web")]
    {
        scenario.delete(kind, name);
        shop.until(&format!("{kind} {name} is gone"), || scenario.get(kind, name).is_none());
    }
    let free = scenario.get("Pod", "web-1").unwrap();
    assert!(finalizers(&free).is_empty() && annotation(&free, ENTRIES) == Some("{}"), "{free}");
    assert_eq!(shop.provider.state(), json!({"employers": {}, "employees": {}}));
    assert!(scenario.api.list("ConsistBinding", "any").is_empty());
    shop.judge(&["any"]);
}

/// A Router of pods: marked as a Service is, and the names of its pods are recorded on it.
fn routers(shop: &Shop, scenario: &Scenario, spec: &Value) {
    let router = || scenario.get("Router.example.com", "front").unwrap();
    shop.until("its pod is protected", || finalizers(&scenario.get("Pod", "web-1").unwrap()) == [PROT]);
    let entry = format!(r#"{{"expectedFinalizers":{{"Router/any/front":"{PROT}"}}}}"#);
    assert_eq!(annotation(&scenario.get("Pod", "web-1").unwrap(), ENTRIES), Some(entry.as_str()));
    let there = at(shop, "employers", "Router/any/front");
    assert_eq!(there, json!([{"id": "front", "statuses": {"spec": spec}}]));
    assert_eq!(at(shop, "employees", "Router/any/front")[0]["statuses"]["ip"], "10.0.0.1");
    assert_eq!(finalizers(&router()), ["resource-consist.kusionstack.io/clean-front"]);
    shop.until("its pods are recorded on it", || {
        let found = router();
        annotation(&found, ADDED) == Some("web-1") && annotation(&found, RECORDED) == Some("web-1")
    });
    let binding = scenario.get("ConsistBinding", "router.example.com-front").unwrap();
    assert_eq!(binding["spec"]["employer"]["apiVersion"], "example.com/v1");
    // A Service's pods are recorded where that is asked for alone.
    assert!(annotation(&scenario.get("Service", "web").unwrap(), ADDED).is_none());
    // Somebody else's finalizer on it is kept, and what is recorded goes with the last pod.
    let mut both = finalizers(&router());
    both.push("example.com/mine".to_owned());
    scenario.merge("Router.example.com", "front", &json!({"metadata": {"finalizers": both}}));
    scenario.merge("Router.example.com", "front", &json!({"metadata": {"labels": {CONTROL: null}}}));
    shop.until("it is released while it lives", || {
        let found = router();
        finalizers(&found) == ["example.com/mine"]
            && annotation(&found, ADDED).is_none()
            && annotation(&found, RECORDED).is_none()
    });
    assert!(finalizers(&scenario.get("Pod", "web-1").unwrap()).is_empty());
    scenario.merge("Router.example.com", "front", &json!({"metadata": {"finalizers": null}}));
}

/// Employees that are no pods: kept at the provider by their spec, and never marked.
fn fleets(shop: &Shop, scenario: &Scenario, spec: &Value) {
    let vessel = |guns: i64| json!([{"id": "one", "name": "one", "statuses": {"spec": {"guns": guns}}}]);
    shop.until("the fleet is kept", || at(shop, "employees", "Fleet/any/north") == vessel(3));
    assert_eq!(
        at(shop, "employers", "Fleet/any/north"),
        json!([{"id": "north", "statuses": {"spec": spec}}])
    );
    scenario.merge("Ship.example.com", "one", &json!({"spec": {"guns": 5}}));
    shop.until("a change is told", || at(shop, "employees", "Fleet/any/north") == vessel(5));
    let found = scenario.get("Ship.example.com", "one").unwrap();
    assert!(finalizers(&found).is_empty() && annotation(&found, ENTRIES).is_none(), "{found}");
    assert!(shop.log().contains("its employees are no pods, so that it does not follow PodOpsLifecycle"));
    shop.until("its binding says so", || {
        let binding = scenario.get("ConsistBinding", "fleet.example.com-north").unwrap();
        binding["status"]["phase"] == "Synced" && binding["status"]["attached"] == "1/1"
    });
}
