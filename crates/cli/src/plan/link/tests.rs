//! Links from manifests alone.

use serde_json::json;

use super::*;

fn sync(name: &str, dependencies: &Value, objects: &Value) -> Value {
    json!({"apiVersion": "linchpin.dev/v1alpha1", "kind": "Sync", "metadata": {"name": name, "namespace": "shop"},
            "spec": {"source": {"objects": objects}, "dependencies": dependencies}})
}

fn shown(documents: Vec<Value>) -> String {
    let given = PlanManifests::new(documents, "shop").unwrap();
    given.shown(&given.links())
}

#[test]
fn for_a_given_configuration_you_can_tell_whether_all_requirements_are_met() {
    let secret = json!([{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key"}}]);
    let needs = json!([{"name": "db", "sync": {"name": "db"}}, {"name": "key", "object": {"resource": "secret/key"}},
            {"name": "token", "object": {"resource": "secret/token"}}, {"name": "gone", "sync": {"name": "gone"}},
            {"name": "jobs", "capability": {"api": {"group": "batch", "kind": "Job"}}},
            {"name": "tekton", "capability": {"name": "tekton"}}]);
    let text = shown(vec![sync("web", &needs, &json!([])), sync("db", &json!([]), &secret)]);
    let expected = "ok   shop/web  db  Sync shop/db (given)
ok   shop/web  key  Secret shop/key (Sync shop/db makes it)
none shop/web  token  Secret shop/token
none shop/web  gone  Sync shop/gone
ok   shop/web  jobs  kind Job.batch (Kubernetes' own)
none shop/web  tekton  Capability tekton
layer 1: shop/db, shop/gone
layer 2: shop/web
";
    assert_eq!(text, expected);
}

#[test]
fn an_object_of_a_kind_that_is_given_too_is_known_by_every_name_of_the_kind() {
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"}, "spec": {"group": "example.com", "scope": "Namespaced",
        "names": {"kind": "Widget", "plural": "widgets", "shortNames": ["wi"]}}});
    let objects =
        json!([definition, {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}]);
    for word in ["widget", "widgets.example.com", "wi"] {
        let needs = json!([{"name": "w", "object": {"resource": format!("{word}/w")}}]);
        let text = shown(vec![sync("web", &needs, &json!([])), sync("db", &json!([]), &objects)]);
        let expected = "ok   shop/web  w  Widget.example.com shop/w (Sync shop/db makes it)";
        assert!(text.starts_with(expected), "{word}: {text}");
    }
}

#[test]
fn circles_are_told_with_the_soft_arcs_that_give_way() {
    let on = |name: &str, soft: bool| {
        let strength = if soft { "Soft" } else { "Hard" };
        json!([{"name": name, "sync": {"name": name}, "strength": strength}])
    };
    let hard = shown(vec![sync("a", &on("b", false), &json!([])), sync("b", &on("a", false), &json!([]))]);
    assert!(hard.contains("circle: Sync shop/a → Sync shop/b → Sync shop/a (hard"), "{hard}");
    let soft = shown(vec![sync("a", &on("b", false), &json!([])), sync("b", &on("a", true), &json!([]))]);
    assert!(soft.contains("circle: Sync shop/b → Sync shop/a gives way (soft)"), "{soft}");
    assert!(!soft.contains("hard"), "{soft}");
}

#[test]
fn objects_by_labels_are_given_by_those_that_have_the_labels_and_by_what_makes_pods_with_them() {
    let labelled = |kind: &str, api: &str, labels: Value, pods: Value| {
        json!({"apiVersion": api, "kind": kind, "metadata": {"name": "pg", "labels": labels},
            "spec": {"template": {"metadata": {"labels": pods}}}})
    };
    let none = json!({});
    let db = labelled("Deployment", "apps/v1", json!({"tier": "db"}), json!({"app": "pg"}));
    let by = |name: &str, kind: &str, selector: Value| json!({"name": name, "objects": {"kind": kind, "selector": selector}});
    let needs = json!([
        by("pods", "Pod", json!({"matchLabels": {"app": "pg"}})),
        by("db", "Deployment", json!({"matchExpressions": [{"key": "tier", "operator": "In", "values": ["db"]}]})),
        by("other", "Pod", json!({"matchLabels": {"app": "other"}})),
        {"name": "few", "objects": {"kind": "Pod", "selector": {"matchLabels": {"app": "x"}}, "expect": {"atLeast": 0}}},
    ]);
    let map = json!([labelled("ConfigMap", "v1", json!({"app": "pg"}), none)]);
    let text = shown(vec![sync("web", &needs, &map), sync("db", &json!([]), &json!([db]))]);
    let expected = "ok   shop/web  pods  Pod shop/[app=pg] (Sync shop/db makes it)
ok   shop/web  db  Deployment shop/[tier in (db)] (Sync shop/db makes it)
none shop/web  other  Pod shop/[app=other]
ok   shop/web  few  Pod shop/[app=x] (none will do)
layer 1: shop/db
layer 2: shop/web
";
    assert_eq!(text, expected);
}

#[test]
fn kinds_are_called_as_the_status_calls_them_and_an_absence_needs_nobody() {
    let needs = json!([
        {"name": "one", "object": {"apiVersion": "tekton.dev/v1", "kind": "Pipeline", "name": "build"}},
        {"name": "other", "object": {"resource": "pipeline.tekton.dev/test"}},
        {"name": "old", "object": {"resource": "configmap/old"}, "state": "Absent"},
    ]);
    let text = shown(vec![sync("web", &needs, &json!([]))]);
    let expected = "none shop/web  one  Pipeline.tekton.dev shop/build
none shop/web  other  Pipeline.tekton.dev shop/test
ok   shop/web  old  ConfigMap shop/old (is to be absent)
layer 1: shop/web
";
    assert_eq!(text, expected);
}
