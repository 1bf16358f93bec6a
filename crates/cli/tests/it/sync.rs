//! Sync on a real API server: gates, order, sources, updates, prune, deletion; judged from the audit log.

mod between;
mod examples;
mod fetched;
mod flux;
mod plan;
mod random;
mod registry;
mod rfc;
mod scale;
mod settled;
mod visible;

use crate::{eventually, seconds, world::scenario};
use linchpin_testkit::{Scenario, audit::assert_before, condition, entry};
use serde_json::{Value, json};
use std::{thread, time::Duration};

/// A Sync's source of ConfigMaps.
fn maps(names: &[&str], value: &str) -> Value {
    let map = |name: &&str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"value": value}});
    json!({"objects": names.iter().map(map).collect::<Vec<_>>()})
}

fn applied(scenario: &Scenario, name: &str, spec: &Value) {
    scenario.sync(name, &spec.to_string());
}

/// How often the operator wrote something for users.
fn writes(scenario: &Scenario) -> usize {
    scenario.audit.user_writes(&scenario.namespace).len()
}

#[test]
fn syncs_are_applied_in_dependency_first_order_and_deleted_in_reverse() {
    let scenario = scenario("sync-order");
    let needs = |name: &str| json!([{"name": name, "sync": {"name": name}}]);
    applied(&scenario, "c", &json!({"source": maps(&["c"], "1"), "dependencies": needs("b")}));
    applied(&scenario, "b", &json!({"source": maps(&["b"], "1"), "dependencies": needs("a")}));
    let waiting = scenario.phase("Sync", "c", "Waiting");
    assert_eq!(entry(&waiting, "dependencies", "b")["met"], false);
    let lost = scenario.until("says what is missing", "Sync", "b", |object| {
        object["status"]["message"] == "says it depends on Sync sync-order/a, which isn't present"
    });
    assert_eq!(condition(&lost, "Linked")["reason"], "NothingProvides");
    assert_eq!(writes(&scenario), 0);
    applied(&scenario, "a", &json!({"source": maps(&["a"], "1")}));
    let done = scenario.synced("c");
    scenario.in_order(&["a", "b", "c"]);
    assert_eq!(condition(&done, "DependenciesReady")["reason"], "Met");
    let before = writes(&scenario);
    thread::sleep(Duration::from_secs(3));
    assert_eq!(writes(&scenario), before, "an unchanged revision writes nothing");
    // One object is changed: one is written. Drift is put right.
    applied(&scenario, "a", &json!({"source": maps(&["a"], "2")}));
    eventually("the update is applied", seconds(60), || scenario.data("a", "value").as_deref() == Some("2"));
    scenario.synced("a");
    scenario.merge("ConfigMap", "b", &json!({"data": {"value": "drift"}}));
    eventually("drift is repaired", seconds(60), || scenario.data("b", "value").as_deref() == Some("1"));
    assert_eq!(scenario.audit.overreach(), []);
}

#[test]
fn a_source_is_followed_ordered_inside_pruned_and_taken_away_in_reverse() {
    let scenario = scenario("sync-source");
    scenario.grant(
        "sync-source",
        r#"[{apiGroups: [""], resources: [namespaces, configmaps], verbs: ["*"]},
            {apiGroups: [apiextensions.k8s.io], resources: [customresourcedefinitions], verbs: ["*"]},
            {apiGroups: [sync.example.com], resources: ["*"], verbs: ["*"]}]"#,
    );
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "gears.sync.example.com"},
        "spec": {"group": "sync.example.com", "scope": "Namespaced",
            "names": {"kind": "Gear", "plural": "gears", "singular": "gear"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}});
    let gear = json!({"apiVersion": "sync.example.com/v1", "kind": "Gear",
        "metadata": {"name": "g", "namespace": "sync-source-made"}});
    let space = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "sync-source-made"}});
    let inner = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "inner", "namespace": "sync-source-made"}});
    applied(&scenario, "app", &json!({"source": {"configMapRef": {"name": "app"}}}));
    scenario.until("waits for its source", "Sync", "app", |object| {
        object["status"]["phase"] == "Waiting"
            && condition(object, "SourceReady")["reason"] == "SourceNotFound"
    });
    let source = |documents: &[&Value]| {
        let text: Vec<String> = documents.iter().map(ToString::to_string).collect();
        json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "app", "labels": {"app.kubernetes.io/version": "1.0.0"}},
            "data": {"all.yaml": text.join("\n---\n")}})
        .to_string()
    };
    scenario.apply(&source(&[&gear, &inner, &space, &definition]));
    let done = scenario.synced("app");
    assert_eq!(done["status"]["version"], "1.0.0");
    assert_eq!(done["status"]["progress"]["layers"], 2);
    let events = scenario.audit.user_writes("");
    let first = |resource: &str| {
        let found = events.iter().find(|event| event.resource == resource && event.is_by_operator());
        found.unwrap_or_else(|| panic!("no write of {resource}")).clone()
    };
    assert_before(&first("namespaces"), &first("gears"));
    assert_before(&first("customresourcedefinitions"), &first("gears"));
    scenario.apply(&source(&[&gear, &space, &definition]));
    eventually("what left the source is pruned", seconds(60), || {
        scenario.api.get("ConfigMap", "sync-source-made", "inner").is_none()
    });
    scenario.synced("app");
    scenario.delete("Sync", "app");
    scenario.gone("Sync", "app");
    assert!(scenario.api.get("CustomResourceDefinition", "", "gears.sync.example.com").is_none());
    assert!(
        scenario.api.get("Namespace", "", "sync-source-made").is_none(),
        "what it made is gone when it is gone"
    );
}

#[test]
fn what_makes_no_sense_is_refused_at_admission() {
    let scenario = scenario("sync-refused");
    let with = |dependency: Value| {
        let mut spec = json!({"source": {"objects": []}, "dependencies": [{"name": "d"}]});
        for (key, value) in dependency.as_object().unwrap() {
            spec["dependencies"][0][key] = value.clone();
        }
        spec
    };
    for (spec, told) in [
        (json!({"source": {}}), "exactly one of objects"),
        (json!({"source": {"objects": [], "configMapRef": {"name": "a"}}}), "exactly one of objects"),
        (with(json!({})), "exactly one of sync"),
        (with(json!({"sync": {"name": "a"}, "object": {"resource": "secret/a"}})), "exactly one of sync"),
        (with(json!({"capability": {"name": "a"}, "state": "Available"})), "it has no state"),
        (
            with(json!({"sync": {"name": "a"}, "state": "Available", "requiredStatus": "Current"})),
            "one of state",
        ),
        (with(json!({"sync": {"name": "a"}, "requiredStatus": "Failed"})), "requiredStatus"),
        (with(json!({"sync": {"name": "a"}, "gates": []})), "gates"),
        (with(json!({"sync": {"name": "a"}, "patience": "1m"})), "patience goes with strength Soft"),
        (
            with(json!({"sync": {"name": "a"}, "strength": "Soft", "timeout": "1m"})),
            "timeout goes with strength Hard",
        ),
        (
            with(json!({"object": {"resource": "secret/a"}, "versionPath": ".a"})),
            "versionPath goes with version",
        ),
        (with(json!({"sync": {"name": "a"}, "guard": false})), "guard goes with version"),
        (with(json!({"sync": {"name": "odd"}})), "cannot depend on itself"),
        (with(json!({"object": {"resource": "secret/a"}, "export": "e"})), "export goes with sync"),
        (with(json!({"sync": {"name": "a", "export": "e"}, "export": "e"})), "name the export once"),
        (with(json!({"sync": {"name": "a"}, "version": "^1.2"})), "has no ^"),
        (with(json!({"sync": {"name": "a"}, "version": "~1.2"})), "has no ~"),
        (with(json!({"sync": {"name": "a"}, "version": "1 || 2"})), "has no |"),
        (with(json!({"sync": {"name": "a"}, "version": "1.x"})), "has no x"),
        (with(json!({"sync": {"name": "a"}, "version": "1.*"})), "has no *"),
        (with(json!({"sync": {"name": "a"}, "version": ">="})), "write a version range"),
        (with(json!({"sync": {"name": "a"}, "version": "1 2 3 4 5 6 7 8 9"})), "at most 8"),
        (
            with(
                json!({"object": {"resource": "pod/a"}, "state": "Ready", "neededFor": "Available", "timeout": "1m"}),
            ),
            "timeout goes with strength Hard",
        ),
        (json!({"source": {"oci": {"url": "oci://a/b"}}}), "exactly one of tag and digest"),
        (json!({"source": {"oci": {"url": "https://a/b", "tag": "1"}}}), "oci://"),
        (json!({"source": {"http": {"url": "https://u:p@a/b"}}}), "no user"),
        (json!({"source": {"http": {"url": "https://a/b", "digest": "sha256:12"}}}), "digest"),
        (json!({"source": {"http": {"url": "https://a/b"}, "paths": ["/etc"]}}), "not absolute"),
        (json!({"source": {"http": {"url": "https://a/b"}, "paths": ["a/../b"]}}), "no .."),
        (json!({"source": {"http": {"url": "https://a/b"}, "interval": "1s"}}), "between 10s and 24h"),
    ] {
        let refused = scenario.refused_sync("odd", &spec.to_string());
        assert!(refused.contains(told), "{spec}: {refused}");
    }
    for entry in [
        json!({"object": {"resource": "pod/a"}, "state": "Ready", "neededFor": "Available", "patience": "1m"}),
        json!({"sync": {"name": "a"}, "version": ">=14 <16"}),
        json!({"sync": {"name": "a"}, "version": ">= 1.2.0-rc.1, != v1.3, < 2", "export": "e"}),
        json!({"sync": {"name": "a"}, "version": "main"}),
        json!({"sync": {"name": "a"}, "version": "=linux"}),
    ] {
        let mut taken = with(entry);
        taken["suspend"] = json!(true);
        scenario.sync("even", &taken.to_string());
    }
    let rule = |more: &str| {
        scenario.refused(&format!(
            "{{apiVersion: linchpin.dev/v1alpha1, kind: GlobalDependency, metadata: {{name: sync-refused}}, spec: {{{more}}}}}"
        ))
    };
    let mesh = "dependency: {object: {resource: deployment/m, namespace: mesh}}";
    let account = "serviceAccount: {namespace: mesh, name: viewer}";
    assert!(rule(mesh).contains("name the serviceAccount"));
    for patience in ["500ms", "25h"] {
        let told = rule(&format!("{mesh}, {account}, strength: Soft, patience: {patience}"));
        assert!(told.contains("patience is between 1s and 24h"), "{told}");
    }
    for enforcement in ["Assert", "Probe", "Repair"] {
        let told = rule(&format!("{mesh}, {account}, enforcement: {enforcement}"));
        assert!(told.contains("enforcement"), "{told}");
    }
    assert!(rule(&format!("dependency: {{sync: {{name: m}}}}, {account}")).contains("name the namespace"));
    let long = "n".repeat(64);
    assert!(scenario.refused_sync(&long, r#"{"source": {"objects": []}}"#).contains("63 characters"));
}
