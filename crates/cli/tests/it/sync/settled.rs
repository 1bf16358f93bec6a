//! What the page settles and only a real cluster can show: rules that give way, other clusters, the order of webhooks, aggregated
//! APIs and waves, and an object that only says who made it.

use super::{applied, maps};
use crate::{eventually, remote, seconds, world::scenario};
use linchpin_testkit::{
    Scenario,
    audit::{Event, assert_finished_before},
    condition,
};
use serde_json::{Value, json};
use std::{thread, time::Duration};

/// A Deployment as a source has it.
fn deployment(name: &str, annotations: &Value) -> Value {
    let labels = json!({"app": name});
    let pod = json!({"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "annotations": annotations},
        "spec": {"selector": {"matchLabels": labels}, "template": pod}})
}

fn pods(name: &str) -> Value {
    json!({"objects": [deployment(name, &json!({}))]})
}

/// The operator's first write of an object.
fn first(scenario: &Scenario, resource: &str, name: &str) -> Event {
    let events = scenario.audit.user_writes("");
    let mut found = events.into_iter();
    let found =
        found.find(|event| event.resource == resource && event.name == name && event.is_by_operator());
    found.unwrap_or_else(|| panic!("no write of {resource} {name}"))
}

fn rule(scenario: &Scenario, name: &str, more: &str) {
    scenario.apply("{apiVersion: v1, kind: Namespace, metadata: {name: $NS, labels: {rule: $NS}}}");
    scenario.apply(&format!(
        "{{apiVersion: linchpin.dev/v1alpha1, kind: GlobalDependency, metadata: {{name: {name}}}, spec: {{
           serviceAccount: {{namespace: $NS, name: actor}},
           dependency: {{object: {{resource: deployment/never, namespace: $NS}}}},
           subjects: {{namespaceSelector: {{matchLabels: {{rule: $NS}}}}}}{more}}}}}"
    ));
    scenario.until("is judged", "GlobalDependency", name, |object| {
        condition(object, "Ready")["status"] == "False"
    });
}

#[test]
fn a_soft_rule_gives_way_when_its_patience_is_over_and_a_suspended_one_holds_nobody() {
    let scenario = scenario("sync-soft-rule");
    rule(&scenario, "sync-soft-rule", ", strength: Soft, patience: 4s");
    applied(&scenario, "app", &json!({"source": pods("app")}));
    let held = scenario.until("is held by the rule", "Sync", "app", |object| {
        object["status"]["dependencies"][0]["name"] == "global:sync-soft-rule"
            && object["status"]["phase"] == "Waiting"
    });
    assert_eq!(held["status"]["dependencies"][0]["strength"], "Soft");
    let done = scenario.until("goes on without it", "Sync", "app", |object| {
        object["status"]["brokenSoft"] == json!(["global:sync-soft-rule"])
    });
    assert_eq!(condition(&done, "DependenciesReady")["reason"], "SoftBroken");
    scenario.synced("app");
    let told = scenario.events("app");
    let told = told.iter().any(|(reason, note)| {
        reason == "SoftBroken"
            && note == "goes on without GlobalDependency sync-soft-rule (soft): not Available within 4s"
    });
    assert!(told, "{:?}", scenario.events("app"));
    let softly = json!([{"name": "db", "sync": {"name": "db"}, "state": "Defined", "strength": "Soft", "patience": "1s"}]);
    applied(&scenario, "softly", &json!({"source": maps(&["softly"], "1"), "dependencies": softly}));
    scenario.synced("softly");
    eventually("the event has the state that was asked for", seconds(30), || {
        let told = "goes on without Sync sync-soft-rule/db (soft): not Defined within 1s";
        scenario.events("softly").iter().any(|(_, note)| note == told)
    });
    scenario.merge(
        "GlobalDependency",
        "sync-soft-rule",
        &json!({"spec": {"strength": "Hard", "patience": null}}),
    );
    applied(&scenario, "next", &json!({"source": pods("next")}));
    scenario.until("is held for good", "Sync", "next", |object| {
        object["status"]["dependencies"][0]["strength"] == "Hard" && object["status"]["phase"] == "Waiting"
    });
    scenario.merge("GlobalDependency", "sync-soft-rule", &json!({"spec": {"suspend": true}}));
    scenario.synced("next");
    scenario.delete("GlobalDependency", "sync-soft-rule");
}

#[test]
fn who_only_says_that_a_subject_made_it_is_no_subject() {
    let scenario = scenario("sync-forged");
    rule(&scenario, "sync-forged", "");
    applied(&scenario, "maker", &json!({"source": maps(&["made"], "1")}));
    let maker = scenario.synced("maker");
    scenario.apply(&format!(
        "{{apiVersion: v1, kind: Namespace, metadata: {{name: sync-forged-else}}}}
---
{{apiVersion: v1, kind: ServiceAccount, metadata: {{name: actor, namespace: sync-forged-else}}}}
---
{{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {{name: actor, namespace: sync-forged-else}}, rules: [
  {{apiGroups: [apps], resources: [deployments], verbs: ['*']}}]}}
---
{{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {{name: actor, namespace: sync-forged-else}},
  roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: Role, name: actor}},
  subjects: [{{kind: ServiceAccount, name: actor, namespace: sync-forged-else}}]}}
---
{{apiVersion: linchpin.dev/v1alpha1, kind: Sync, metadata: {{name: forged, namespace: sync-forged-else,
  annotations: {{linchpin.dev/created-by: {}}}}}, spec: {{serviceAccountName: actor, source: {}}}}}",
        maker["metadata"]["uid"],
        pods("forged")
    ));
    eventually("whoever forges a maker is applied as anybody", seconds(60), || {
        let forged = scenario.api.get("Sync", "sync-forged-else", "forged").unwrap_or_default();
        assert_eq!(forged["status"]["dependencies"].get(0), None, "it is no subject: {forged:#}");
        forged["status"]["phase"] == "Synced"
    });
    scenario.delete("GlobalDependency", "sync-forged");
}

#[test]
fn objects_are_applied_and_looked_for_in_another_cluster_and_syncs_in_this_one() {
    let scenario = scenario("sync-beyond");
    remote::beyond("sync-beyond");
    remote::secret(&scenario, "sync-beyond", "edge", "value", &remote::kubeconfig());
    let there = |name: &str| remote::other().get("ConfigMap", "sync-beyond", name);
    let cluster = json!({"kubeconfigSecretRef": {"name": "edge", "key": "value"}});
    let needs = json!([{"name": "go", "object": {"resource": "configmap/go"}}, {"name": "base", "sync": {"name": "base"}}]);
    applied(
        &scenario,
        "app",
        &json!({"cluster": cluster, "source": maps(&["app"], "1"), "dependencies": needs}),
    );
    scenario.until("waits for both", "Sync", "app", |object| {
        object["status"]["waitingOn"].as_array().is_some_and(|all| all.len() == 2)
    });
    scenario.config_map("go", "here");
    applied(&scenario, "base", &json!({"source": maps(&["base"], "1")}));
    scenario.synced("base");
    scenario.until("looks for objects over there", "Sync", "app", |object| {
        let row = &object["status"]["dependencies"][0];
        object["status"]["dependencies"][1]["met"] == true && row["met"] == false && row["state"] == "Absent"
    });
    remote::make_beyond("sync-beyond", "go", "there");
    scenario.synced("app");
    assert!(there("app").is_some() && !scenario.has("app"));
    let made = there("app").unwrap();
    assert_eq!(made["metadata"].get("ownerReferences"), None, "owners only here");
    scenario.delete("Sync", "app");
    scenario.gone("Sync", "app");
    eventually("what it made over there is gone", seconds(60), || there("app").is_none());
}

#[test]
fn webhooks_aggregated_apis_and_waves_order_the_objects_of_one_sync() {
    let scenario = scenario("sync-inside");
    scenario.grant(
        "sync-inside",
        r#"[{apiGroups: [admissionregistration.k8s.io], resources: [validatingwebhookconfigurations], verbs: ["*"]},
            {apiGroups: [apiregistration.k8s.io], resources: [apiservices], verbs: ["*"]},
            {apiGroups: [sync-inside.example.com], resources: ["*"], verbs: ["*"]}]"#,
    );
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "hook"},
        "spec": {"selector": {"app": "hook"}, "ports": [{"port": 443}]}});
    let hook = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "sync-inside"}, "webhooks": [{"name": "a.example.com", "admissionReviewVersions": ["v1"],
            "sideEffects": "None", "failurePolicy": "Ignore", "timeoutSeconds": 1,
            "objectSelector": {"matchLabels": {"sync-inside": "asked"}},
            "clientConfig": {"caBundle": super::between::authority(),
                "service": {"namespace": "sync-inside", "name": "hook", "port": 443}},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}]}]});
    let map = |name: &str, annotations: Value| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "annotations": annotations}});
    // Written in the worst order.
    let objects = json!([map("asked", json!({})), hook, service, deployment("hook", &json!({}))]);
    applied(&scenario, "hooked", &json!({"source": {"objects": objects}}));
    let done = scenario.synced("hooked");
    assert_eq!(done["status"]["progress"]["layers"], 3, "{:#}", done["status"]);
    let configuration = first(&scenario, "validatingwebhookconfigurations", "sync-inside");
    for (resource, name) in [("services", "hook"), ("deployments", "hook")] {
        assert_finished_before(&first(&scenario, resource, name), &configuration);
    }
    assert_finished_before(&configuration, &first(&scenario, "configmaps", "asked"));
    scenario.delete("Sync", "hooked");
    scenario.gone("Sync", "hooked");

    let wave = |number: i32| json!({"argocd.argoproj.io/sync-wave": number.to_string()});
    let objects = json!([map("third", wave(1)), map("second", json!({})), deployment("early", &wave(-5))]);
    applied(&scenario, "waves", &json!({"source": {"objects": objects}}));
    let done = scenario.synced("waves");
    assert_eq!(done["status"]["progress"]["layers"], 3);
    assert_finished_before(
        &first(&scenario, "deployments", "early"),
        &first(&scenario, "configmaps", "second"),
    );
    assert_finished_before(
        &first(&scenario, "configmaps", "second"),
        &first(&scenario, "configmaps", "third"),
    );

    let api = json!({"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
        "metadata": {"name": "v1.sync-inside.example.com"},
        "spec": {"group": "sync-inside.example.com", "version": "v1", "groupPriorityMinimum": 10, "versionPriority": 10,
            "insecureSkipTLSVerify": true, "service": {"namespace": "sync-inside", "name": "nobody"}}});
    let served =
        json!({"apiVersion": "sync-inside.example.com/v1", "kind": "Thing", "metadata": {"name": "t"}});
    applied(&scenario, "aggregated", &json!({"source": {"objects": [served, api, map("free", json!({}))]}}));
    let waiting = scenario.until("waits for the API that nobody answers", "Sync", "aggregated", |object| {
        object["status"]["phase"] == "Applying" && object["status"]["progress"]["applied"] == 2
    });
    assert!(scenario.has("free"), "what is independent goes on");
    thread::sleep(Duration::from_secs(2));
    let events = scenario.audit.user_writes("");
    assert!(!events.iter().any(|event| event.resource == "things"), "{:#}", waiting["status"]);
    scenario.delete("Sync", "aggregated");
    scenario.gone("Sync", "aggregated");
}
