//! Whom a status names: nobody that its own identity may not `get`, and as the maker of an object nobody that may not make it.

use super::{applied, between::authority, maps};
use crate::{eventually, seconds, world::scenario};
use linchpin_testkit::{Scenario, condition};
use serde_json::{Value, json};

/// A namespace beside that of a scenario, with a ServiceAccount `actor` that may do this in it.
fn beside(scenario: &Scenario, namespace: &str, labels: &Value, rules: &str) {
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": "actor", "namespace": namespace},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "actor"},
        "subjects": [{"kind": "ServiceAccount", "name": "actor", "namespace": namespace}]});
    scenario.apply(&format!(
        "{{apiVersion: v1, kind: Namespace, metadata: {{name: {namespace}, labels: {labels}}}}}
---
{{apiVersion: v1, kind: ServiceAccount, metadata: {{name: actor, namespace: {namespace}}}}}
---
{{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {{name: actor, namespace: {namespace}}}, rules: {rules}}}
---
{binding}"
    ));
}

/// A Sync of any namespace.
fn sync(scenario: &Scenario, namespace: &str, name: &str, spec: &Value) {
    let mut spec = spec.clone();
    spec["serviceAccountName"] = json!("actor");
    let sync = json!({"apiVersion": "linchpin.dev/v1alpha1", "kind": "Sync",
        "metadata": {"name": name, "namespace": namespace}, "spec": spec});
    scenario.apply(&sync.to_string());
}

fn workload(name: &str, namespace: Option<&str>) -> Value {
    let mut object = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "c", "image": "none"}]}}}});
    if let Some(namespace) = namespace {
        object["metadata"]["namespace"] = json!(namespace);
    }
    object
}

fn service(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
        "spec": {"selector": {"app": name}, "ports": [{"port": 443}]}})
}

/// A configuration of a webhook that this Service answers.
fn configuration(name: &str, namespace: &str, service: &str) -> Value {
    json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": name}, "webhooks": [{"name": "a.example.com", "admissionReviewVersions": ["v1"],
            "sideEffects": "None", "failurePolicy": "Ignore", "timeoutSeconds": 1,
            "objectSelector": {"matchLabels": {"asked": name}},
            "clientConfig": {"caBundle": authority(), "service": {"namespace": namespace, "name": service, "port": 443}},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]}]})
}

#[test]
fn a_sync_that_was_refused_an_object_is_not_named_as_its_maker() {
    let scenario = scenario("sync-refused-maker");
    scenario.config_map("token", "theirs");
    let needs = json!([{"name": "token", "object": {"resource": "configmap/token"}, "readyExpr": "dep.data.value == 'ours'"}]);
    applied(&scenario, "user", &json!({"source": maps(&["app"], "1"), "dependencies": needs}));
    let row = |object: &Value| object["status"]["dependencies"][0].clone();
    // While it waits it is to make it; once it has tried, it is not.
    let on = json!([{"name": "late", "object": {"resource": "configmap/late"}}]);
    applied(&scenario, "vault", &json!({"source": maps(&["token"], "1"), "dependencies": on}));
    scenario.until("is told who is to make it", "Sync", "user", |object| {
        row(object)["providedBy"] == "Sync sync-refused-maker/vault"
    });
    scenario.config_map("late", "");
    scenario.until("is refused", "Sync", "vault", |object| {
        object["status"]["resources"][0]["reason"] == "AlreadyExists"
    });
    let user = scenario.until("names nobody", "Sync", "user", |object| {
        row(object)["name"] == "token" && row(object).get("providedBy").is_none()
    });
    assert_eq!(condition(&user, "Linked")["status"], "True", "it is there: {:#}", user["status"]);
    assert_eq!(user["status"]["waitingOn"], json!(["ConfigMap sync-refused-maker/token"]));
}

#[test]
fn who_may_not_make_what_a_rule_needs_is_neither_left_alone_by_it_nor_named_as_its_maker() {
    let scenario = scenario("sync-presumed");
    let elsewhere = "sync-presumed-else";
    let rules = "[{apiGroups: [apps], resources: [deployments], verbs: ['*']}, {apiGroups: [''], resources: [services], verbs: ['*']}]";
    beside(&scenario, elsewhere, &json!({"presumed": "on"}), rules);
    scenario.apply("{apiVersion: v1, kind: Namespace, metadata: {name: $NS, labels: {presumed: 'on'}}}");
    scenario.grant(
        "sync-presumed",
        r#"[{apiGroups: [admissionregistration.k8s.io], resources: [mutatingwebhookconfigurations], verbs: ["*"]}]"#,
    );
    let rule = |name: &str, dependency: Value| {
        let rule = json!({"apiVersion": "linchpin.dev/v1alpha1", "kind": "GlobalDependency", "metadata": {"name": name},
            "spec": {"serviceAccount": {"namespace": "sync-presumed", "name": "actor"}, "dependency": dependency,
                "subjects": {"namespaceSelector": {"matchLabels": {"presumed": "on"}}}}});
        scenario.apply(&rule.to_string());
        scenario.until("is judged", "GlobalDependency", name, |object| {
            condition(object, "Ready")["status"] == "False"
        });
    };
    let kind =
        json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration"});
    let mut hook = kind;
    hook["name"] = json!("sync-presumed");
    rule("sync-presumed-hook", json!({"object": hook}));
    rule(
        "sync-presumed-mesh",
        json!({"object": {"resource": "deployment/mesh", "namespace": "sync-presumed"}}),
    );
    // Each writes down what is the mesh's, and may not make it.
    let forged = [
        ("copy", json!([workload("own", None), workload("mesh", Some("sync-presumed"))])),
        (
            "hook",
            json!([
                workload("trap", None),
                service("trap"),
                configuration("sync-presumed", elsewhere, "trap")
            ]),
        ),
    ];
    for (name, objects) in forged {
        sync(&scenario, elsewhere, name, &json!({"source": {"objects": objects}}));
        eventually("it is held by both rules", seconds(60), || {
            let object = scenario.api.get("Sync", elsewhere, name).unwrap_or_default();
            object["status"]["dependencies"].as_array().is_some_and(|rows| rows.len() == 2)
                && object["status"]["phase"] == "Waiting"
        });
    }
    let needs = json!([{"name": "mesh", "object": {"resource": "deployment/mesh"}}]);
    applied(&scenario, "user", &json!({"source": maps(&["app"], "1"), "dependencies": needs}));
    let told =
        "says it depends on Deployment sync-presumed/mesh, which isn't present, and no Sync provides it";
    let user =
        scenario.until("says what is missing", "Sync", "user", |object| object["status"]["message"] == told);
    assert_eq!(condition(&user, "Linked")["reason"], "NothingProvides");
    // Whoever may make it is left alone, and nobody else.
    let objects = json!([
        workload("mesh", None),
        service("mesh"),
        configuration("sync-presumed", "sync-presumed", "mesh")
    ]);
    applied(&scenario, "mesh", &json!({"source": {"objects": objects}}));
    for name in ["sync-presumed-hook", "sync-presumed-mesh"] {
        scenario.until("leaves alone who makes it", "GlobalDependency", name, |object| {
            object["status"]["exempt"] == json!(["Sync sync-presumed/mesh"])
                && condition(object, "Ready")["status"] == "True"
        });
    }
    scenario.synced("mesh");
    scenario.synced("user");
    for name in ["sync-presumed-hook", "sync-presumed-mesh"] {
        scenario.delete("GlobalDependency", name);
    }
    scenario.delete("Sync", "mesh");
    scenario.gone("Sync", "mesh");
}

#[test]
fn a_sync_that_is_in_use_names_only_those_that_its_own_identity_may_get() {
    let scenario = scenario("sync-held-by");
    scenario.apply(
        "{apiVersion: v1, kind: ServiceAccount, metadata: {name: blind}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: blind}, rules: [
  {apiGroups: [''], resources: [configmaps], verbs: ['*']},
  {apiGroups: [linchpin.dev], resources: [syncs], resourceNames: [friend], verbs: [get]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: blind},
  roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: blind},
  subjects: [{kind: ServiceAccount, name: blind, namespace: $NS}]}",
    );
    let spec = json!({"source": maps(&["base"], "1"), "dependents": {"protect": true}, "serviceAccountName": "blind"});
    applied(&scenario, "base", &spec);
    scenario.synced("base");
    for name in ["stranger", "friend"] {
        let needs = json!([{"name": "base", "sync": {"name": "base"}}]);
        applied(&scenario, name, &json!({"source": maps(&[name], "1"), "dependencies": needs}));
        scenario.synced(name);
    }
    scenario.delete("Sync", "base");
    let held = scenario.until("is held", "Sync", "base", |object| {
        object["status"]["heldBy"] == json!(["Sync sync-held-by/friend", "Sync (not visible)"])
    });
    let told = "is in use by Sync sync-held-by/friend (and 1 more)";
    assert_eq!(held["status"]["message"], told);
    assert_eq!(condition(&held, "DeletionBlocked")["message"], told);
    scenario.delete("Sync", "friend");
    let held = scenario.until("is held by the other", "Sync", "base", |object| {
        object["status"]["heldBy"] == json!(["Sync (not visible)"])
    });
    assert_eq!(held["status"]["message"], "is in use by Sync (not visible)");
    let events = format!("{:?}", scenario.events("base"));
    assert!(!events.contains("stranger") && !events.contains("held-by/friend (not"), "{events}");
    scenario.delete("Sync", "stranger");
    scenario.gone("Sync", "base");
}

#[test]
fn a_circle_is_spelled_out_as_far_as_its_member_may_see_it() {
    let scenario = scenario("sync-round-a");
    let of = |name: &str| {
        format!(
            "[{{apiGroups: [linchpin.dev], resources: [syncs], resourceNames: [{name}], verbs: [get, list, watch]}}]"
        )
    };
    let places = ["sync-round-a", "sync-round-b", "sync-round-c"];
    for namespace in &places[1..] {
        beside(
            &scenario,
            namespace,
            &json!({}),
            "[{apiGroups: [''], resources: [configmaps], verbs: ['*']}]",
        );
    }
    scenario.apply("{apiVersion: v1, kind: ServiceAccount, metadata: {name: narrow}}");
    for (index, namespace) in places.iter().enumerate() {
        let next = (index + 1) % 3;
        let (there, name) = (places[next], ["a", "b", "c"][next]);
        let account = if index == 0 { "narrow" } else { "actor" };
        scenario.apply(&format!(
            "{{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {{name: from-{index}, namespace: {there}}}, rules: {}}}
---
{{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {{name: from-{index}, namespace: {there}}},
  roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: Role, name: from-{index}}},
  subjects: [{{kind: ServiceAccount, name: {account}, namespace: {namespace}}}]}}",
            of(name)
        ));
        let needs = json!([{"name": "next", "sync": {"name": name, "namespace": there}}]);
        let own = ["a", "b", "c"][index];
        let spec = json!({"source": maps(&[own], "1"), "dependencies": needs, "serviceAccountName": account});
        let sync = json!({"apiVersion": "linchpin.dev/v1alpha1", "kind": "Sync",
            "metadata": {"name": own, "namespace": namespace}, "spec": spec});
        scenario.apply(&sync.to_string());
    }
    let told = "waits for itself: Sync sync-round-a/a → Sync sync-round-b/b → Sync (not visible) → Sync sync-round-a/a";
    let a = scenario.condition("Sync", "a", "DependencyCycle", "True");
    assert_eq!(
        (&a["status"]["message"], &condition(&a, "DependenciesReady")["message"]),
        (&json!(told), &json!(told))
    );
    assert!(!a["status"].to_string().contains("round-c"), "{:#}", a["status"]);
}
