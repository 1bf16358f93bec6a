//! Going away: prune, deletion, and what is not ours.

use super::{map, maps, names, written};
use crate::world::scenario;
use linchpin_testkit::audit::assert_before;
use serde_json::json;
use std::{thread, time::Duration};

#[test]
fn p05_a_removed_component_is_pruned_in_reverse_after_the_rest_is_ready() {
    let scenario = scenario("prune");
    scenario.app_bundle("shop", &maps(&[&["keep"], &["old-a", "old-b"], &["old-c"]]));
    scenario.deployed("shop");
    let count = written(&scenario).len();
    scenario.app_bundle("shop", &maps(&[&["keep", "new"]]));
    scenario.deployed("shop");
    for name in ["old-a", "old-b", "old-c"] {
        scenario.gone("ConfigMap", name);
    }
    let writes = written(&scenario).split_off(count);
    assert_eq!(names(&writes, "delete"), ["old-c", "old-b", "old-a"]);
    let new = writes.iter().position(|event| event.name == "new").unwrap();
    assert_eq!(new, 0, "prune begins when every component of the new spec is ready: {writes:#?}");
    assert!(scenario.has("keep") && scenario.has("new"));
}

#[test]
fn p05_prune_false_keeps_and_a_moved_object_stays_the_same() {
    let scenario = scenario("prune-not");
    scenario.app_bundle(
        "shop",
        &format!(
            "{{groups: [{{name: a, components: [{}, {}, {}]}}]}}",
            map("stays", ", prune: false"),
            map("moves", ""),
            map("rest", "")
        ),
    );
    scenario.deployed("shop");
    let uid = scenario.get("ConfigMap", "moves").unwrap()["metadata"]["uid"].clone();
    scenario.app_bundle(
        "shop",
        &format!(
            "{{groups: [{{name: a, components: [{}]}}, {{name: b, components: [{}]}}]}}",
            map("rest", ""),
            map("moves", "")
        ),
    );
    scenario.deployed("shop");
    thread::sleep(Duration::from_secs(2));
    assert!(scenario.has("stays"), "it was said so");
    let moved = scenario.get("ConfigMap", "moves").unwrap();
    assert_eq!(moved["metadata"]["uid"], uid, "an object that only moved is kept");
    assert_eq!(moved["metadata"]["labels"]["app.example.com/group"], "b");
}

#[test]
fn p06_deletion_goes_in_reverse_and_waits_for_absence() {
    let scenario = scenario("reverse-bundle");
    let held =
        map("c", "").replace("metadata: {name: c}", "metadata: {name: c, finalizers: [example.com/hold]}");
    scenario.app_bundle(
        "shop",
        &format!("{{groups: [{{name: x, components: [{}, {}, {held}]}}]}}", map("a", ""), map("b", "")),
    );
    scenario.deployed("shop");
    scenario.delete("AppBundle", "shop");
    scenario.until("goes", "ConfigMap", "c", |object| object["metadata"].get("deletionTimestamp").is_some());
    let waiting = scenario.until("says what it waits for", "AppBundle", "shop", |object| {
        object["status"]["message"].as_str().is_some_and(|text| text.contains("example.com/hold"))
    });
    assert_eq!(waiting["status"]["phase"], "Deleting");
    scenario.merge("ConfigMap", "c", &json!({"metadata": {"finalizers": null}}));
    scenario.gone("AppBundle", "shop");
    let writes = written(&scenario);
    let deleted = names(&writes, "delete");
    let place = |name: &str| deleted.iter().position(|one| *one == name).unwrap();
    assert!(place("c") < place("b") && place("b") < place("a"), "{deleted:?}");
    // What came earlier waits until what came later is gone.
    let released = scenario.audit.last_by_others("configmaps", "reverse-bundle", "c");
    let next = writes.iter().find(|event| event.verb == "delete" && event.name == "b").unwrap();
    assert_before(&released, next);
}

#[test]
fn p06_an_existing_namespace_is_used_and_never_deleted() {
    let scenario = scenario("existing-space");
    scenario
        .grant("existing-space", r#"[{apiGroups: [""], resources: [namespaces, configmaps], verbs: ["*"]}]"#);
    scenario.apply("{apiVersion: v1, kind: Namespace, metadata: {name: there-before}}");
    scenario.app_bundle(
        "shop",
        "{groups: [{name: a, components: [
           {name: space, template: {apiVersion: v1, kind: Namespace, metadata: {name: there-before}}},
           {name: made, template: {apiVersion: v1, kind: Namespace, metadata: {name: made-by-bundle}}},
           {name: map, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: m, namespace: there-before}}}]}]}",
    );
    let done = scenario.deployed("shop");
    let told = super::component(&done, "a", "space")["message"].as_str().unwrap();
    assert_eq!(told, "Resource exists already and is left as it is");
    scenario.delete("AppBundle", "shop");
    scenario.gone("AppBundle", "shop");
    assert!(scenario.api.get("Namespace", "", "there-before").is_some());
    assert!(scenario.api.get("Namespace", "", "made-by-bundle").is_none());
    assert!(scenario.api.get("ConfigMap", "there-before", "m").is_none());
}

#[test]
fn p07_cluster_scoped_objects_get_no_owner_and_go_with_the_bundle() {
    let scenario = scenario("cluster-scoped");
    scenario.grant(
        "cluster-scoped",
        "[{apiGroups: [scheduling.k8s.io], resources: [priorityclasses], verbs: ['*']}]",
    );
    scenario.app_bundle(
        "shop",
        &format!(
            "{{groups: [{{name: a, components: [{}, {{name: class, template: {{apiVersion: scheduling.k8s.io/v1,
               kind: PriorityClass, metadata: {{name: linchpin-test}}, value: 7}}}}]}}]}}",
            map("beside", "")
        ),
    );
    let done = scenario.deployed("shop");
    let class = scenario.api.get("PriorityClass", "", "linchpin-test").unwrap();
    assert!(class["metadata"].get("ownerReferences").is_none());
    let reference = &super::component(&done, "a", "class")["resourceRef"];
    assert!(reference.get("namespace").is_none(), "{reference}");
    let beside = scenario.get("ConfigMap", "beside").unwrap();
    let owner = &beside["metadata"]["ownerReferences"][0];
    assert_eq!((&owner["kind"], &owner["name"]), (&json!("AppBundle"), &json!("shop")));
    assert_eq!(owner["blockOwnerDeletion"], false);
    scenario.delete("AppBundle", "shop");
    scenario.gone("AppBundle", "shop");
    assert!(scenario.api.get("PriorityClass", "", "linchpin-test").is_none());
}

#[test]
fn p08_a_bundle_may_spread_over_namespaces() {
    let scenario = scenario("spread");
    for other in ["spread-one", "spread-two"] {
        scenario.apply(&format!("{{apiVersion: v1, kind: Namespace, metadata: {{name: {other}}}}}"));
        scenario.apply(&format!(
            "{{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {{name: actor, namespace: {other}}},
               rules: [{{apiGroups: [''], resources: [configmaps], verbs: ['*']}}]}}\n---\n\
             {{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {{name: actor, namespace: {other}}},
               roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: Role, name: actor}},
               subjects: [{{kind: ServiceAccount, name: actor, namespace: spread}}]}}"
        ));
    }
    scenario.app_bundle(
        "shop",
        "{groups: [{name: a, components: [
           {name: one, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: m, namespace: spread-one}}},
           {name: two, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: m, namespace: spread-two}}}]}]}",
    );
    scenario.deployed("shop");
    let one = scenario.api.get("ConfigMap", "spread-one", "m").unwrap();
    assert!(one["metadata"].get("ownerReferences").is_none());
    scenario.delete("AppBundle", "shop");
    scenario.gone("AppBundle", "shop");
    assert!(scenario.api.get("ConfigMap", "spread-one", "m").is_none());
    assert!(scenario.api.get("ConfigMap", "spread-two", "m").is_none());
}

#[test]
fn p09_a_bundle_that_is_already_going_gets_no_finalizer() {
    let scenario = scenario("going");
    scenario.apply(
        "{apiVersion: app.example.com/v1alpha1, kind: AppBundle, metadata: {name: shop, finalizers: [example.com/other]},
           spec: {serviceAccountName: actor, suspend: true, groups: [{name: a, components: [{name: x, template: {apiVersion: v1,
           kind: ConfigMap, metadata: {name: x}}}]}]}}",
    );
    scenario.delete("AppBundle", "shop");
    thread::sleep(Duration::from_secs(1));
    let going = scenario.get("AppBundle", "shop").unwrap();
    assert_eq!(going["metadata"]["finalizers"], json!(["example.com/other"]));
    scenario.merge("AppBundle", "shop", &json!({"metadata": {"finalizers": null}}));
    scenario.gone("AppBundle", "shop");
    assert!(!scenario.has("x"));
}

#[test]
fn orphan_keeps_everything_and_goes_at_once() {
    let scenario = scenario("orphan");
    let spec = maps(&[&["a"], &["b"]]);
    scenario.app_bundle("shop", &spec.replacen('{', "{deletionPolicy: Orphan, ", 1));
    scenario.deployed("shop");
    scenario.delete("AppBundle", "shop");
    scenario.gone("AppBundle", "shop");
    thread::sleep(Duration::from_secs(2));
    assert!(scenario.has("a") && scenario.has("b"));
}

#[test]
fn another_deletion_policy_changes_whose_the_objects_are() {
    let scenario = scenario("orphan-or-not");
    let bundle = |policy: &str, of_b: &str| {
        let components = [map("a", ""), map("b", of_b)].join(", ");
        scenario
            .app_bundle("shop", &format!("{{{policy}groups: [{{name: g, components: [{components}]}}]}}"));
    };
    let owned = |name: &str, owned: bool| {
        scenario.until(&format!("is owned: {owned}"), "ConfigMap", name, |object| {
            !object.is_null() && object["metadata"].get("ownerReferences").is_some() == owned
        });
    };
    bundle("deletionPolicy: Orphan, ", "");
    scenario.deployed("shop");
    owned("a", false);
    bundle("", "");
    owned("a", true);
    owned("b", true);
    bundle("", ", deletionPolicy: Orphan");
    owned("b", false);
    bundle("", "");
    owned("b", true);
    scenario.deployed("shop");
    bundle("", ", deletionPolicy: Orphan");
    owned("b", false);
    scenario.deployed("shop");
    let count = written(&scenario).len();
    thread::sleep(Duration::from_secs(1));
    assert_eq!(written(&scenario).len(), count, "and then nothing is written any more");
    scenario.delete("AppBundle", "shop");
    scenario.gone("AppBundle", "shop");
    scenario.gone("ConfigMap", "a");
    thread::sleep(Duration::from_secs(1));
    assert!(scenario.has("b"), "what is to stay stays");
}

#[test]
fn a_gone_service_account_or_namespace_holds_nothing_up() {
    let scenario = scenario("account-gone");
    scenario.app_bundle("shop", &maps(&[&["a"], &["b"]]));
    scenario.deployed("shop");
    scenario.delete("ServiceAccount", "actor");
    scenario.delete("AppBundle", "shop");
    scenario.gone("AppBundle", "shop");
    let other = crate::world::scenario("space-gone");
    other.app_bundle("shop", &maps(&[&["a"], &["b"]]));
    other.deployed("shop");
    other.api.delete("Namespace", "", "space-gone");
    other.until("is gone", "Namespace", "space-gone", serde_json::Value::is_null);
}
