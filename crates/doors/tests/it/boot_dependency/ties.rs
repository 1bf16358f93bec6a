//! What stands behind the Services that a BootDependency waits for, as the wait-for graph is told it.

use linchpin_engine::graph::Relation;
use serde_json::{Value, json};

use super::workloads::{Things, deployment, look, object, world};

/// The waits that begin at the Service, and whether the object waits for it.
fn behind(things: &Things) -> (bool, Vec<String>) {
    let edges = look(&object(&json!({})), things, "").0.edges.expect("edges");
    let waits = edges.iter().filter(|edge| matches!(edge.relation, Relation::WaitsFor(_)));
    let mut reached = false;
    let mut ends = Vec::new();
    for edge in waits {
        let (from, to) = (edge.from.object.to_string(), edge.to.object.to_string());
        reached |= from.contains("BootDependency") && to.contains("Service") && to.contains("db");
        if from.contains("Service") {
            ends.push(to);
        }
    }
    (reached, ends)
}

fn is_only(ends: &[String], kind: &str, name: &str) -> bool {
    matches!(ends, [end] if end.contains(kind) && end.contains(name))
}

fn service(spec: &Value) -> (&'static str, &'static str, Value) {
    ("Service", "db", json!({"spec": spec}))
}

fn pod(phase: &str, gates: &Value) -> Value {
    json!({
        "metadata": {
            "creationTimestamp": "2026-01-01T00:00:06Z", "labels": {"app": "db", "linchpin.dev/boot-gate": "held"},
            "annotations": {"linchpin.dev/boot": "db"},
        },
        "spec": {"schedulingGates": gates},
        "status": {"phase": phase},
    })
}

fn things() -> Things {
    world(deployment("2026-01-01T00:00:04Z", 0, &json!({})))
}

#[test]
fn b6_a_service_leads_to_the_workloads_whose_templates_it_selects_though_they_have_no_pod() {
    let mut things = things();
    let mut other = deployment("2026-01-01T00:00:04Z", 0, &json!({}));
    other["spec"]["template"]["metadata"]["labels"] = json!({"app": "database"});
    things.push(("BootDependency", "store", json!({"spec": {"targetRef": {"kind": "Deployment", "name": "store"}, "dependsOn": []}, "metadata": {}})));
    things.push(("Deployment", "store", other));
    things.push(service(&json!({"selector": {"app": "database"}, "ports": [{"port": 5432}]})));
    let (reached, ends) = behind(&things);
    assert!(reached && is_only(&ends, "Deployment", "store"), "{ends:?}");
    // A workload that nobody holds starts by itself.
    things.retain(|(kind, name, _)| (*kind, *name) != ("BootDependency", "store"));
    assert_eq!(behind(&things).1, Vec::<String>::new());
}

#[test]
fn b6_a_service_leads_to_who_holds_the_pods_that_it_selects() {
    let mut things = things();
    things.push(service(&json!({"selector": {"app": "db"}, "ports": [{"port": 5432}]})));
    things.push(("Pod", "db-0", pod("Pending", &json!([{"name": "linchpin.dev/boot"}]))));
    let (reached, ends) = behind(&things);
    assert!(reached && is_only(&ends, "BootDependency", "db"), "{ends:?}");
    things.pop();
    things.push(("Pod", "db-0", pod("Pending", &json!([{"name": "example.com/theirs"}]))));
    assert_eq!(behind(&things).1, Vec::<String>::new(), "it is not we who hold it");
}

#[test]
fn b6_a_service_leads_to_who_is_waited_for_in_pods_that_no_template_tells_of() {
    let labels = json!({"selector": {"matchLabels": {"app": "db"}}});
    let rollout =
        json!({"targetRef": {"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "name": "db"}});
    for (of, phase, strategy, leads) in [
        (&labels, "Pending", None, true),
        (&rollout, "Pending", Some("InitContainer"), true),
        // What runs waits for nothing any more; and who is held by the gate is found by the gate.
        (&labels, "Running", None, false),
        (&labels, "Pending", Some("SchedulingGate"), false),
    ] {
        let mut spec = of.clone();
        spec["dependsOn"] = json!([]);
        spec["strategy"] = json!(strategy);
        let mut things = things();
        things.push(service(&json!({"selector": {"app": "db"}, "ports": [{"port": 5432}]})));
        things.push(("BootDependency", "db", json!({"spec": spec, "metadata": {}})));
        things.push(("Pod", "db-0", pod(phase, &Value::Null)));
        let (reached, ends) = behind(&things);
        assert!(reached, "{of} {phase}");
        assert_eq!(is_only(&ends, "BootDependency", "db"), leads, "{of} {phase}: {ends:?}");
        // Of other labels none is behind the Service.
        let selects = things.iter_mut().find(|(kind, ..)| *kind == "Service").unwrap();
        selects.2["spec"]["selector"] = json!({"app": "other"});
        assert_eq!(behind(&things).1, Vec::<String>::new(), "{of} {phase}");
        assert!(leads || ends.is_empty(), "{of} {phase}: {ends:?}");
    }
}

#[test]
fn a_service_without_a_selector_leads_to_who_holds_the_pods_that_its_slices_name() {
    let slice = |target: Value| {
        let endpoint = json!({"addresses": ["192.0.2.7"], "targetRef": target});
        ("EndpointSlice", "db-1", json!({"ports": [{"port": 5432}], "endpoints": [endpoint]}))
    };
    let named = json!({"kind": "Pod", "namespace": "shop", "name": "db-0"});
    let mut things = things();
    things.push(service(&json!({"ports": [{"port": 5432}]})));
    things.push(slice(named.clone()));
    assert_eq!(behind(&things), (true, Vec::new()), "there is no such pod");
    things.push(("Pod", "db-0", pod("Pending", &Value::Null)));
    let (reached, ends) = behind(&things);
    assert!(reached && is_only(&ends, "BootDependency", "db"), "{ends:?}");
    things.pop();
    things.push(("Pod", "db-0", pod("Running", &Value::Null)));
    assert_eq!(behind(&things).1, Vec::<String>::new(), "what runs waits for nothing any more");
    for (key, value) in [("kind", "Node"), ("namespace", "elsewhere")] {
        let mut other = named.clone();
        other[key] = json!(value);
        let mut things = self::things();
        things.push(service(&json!({"ports": [{"port": 5432}]})));
        things.push(slice(other));
        things.push(("Pod", "db-0", pod("Pending", &Value::Null)));
        assert_eq!(behind(&things).1, Vec::<String>::new(), "{key}");
    }
}
