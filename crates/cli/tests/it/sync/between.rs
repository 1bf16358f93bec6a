//! Between Syncs: circles, soft and hard, rules for all, capabilities, deletion in reverse.

use super::{applied, maps, writes};
use crate::{
    eventually,
    operator::linchpin,
    seconds,
    world::{self, scenario},
};
use linchpin_testkit::{audit::assert_finished_before, condition, entry};
use serde_json::{Value, json};

/// A source of a Deployment.
fn workload(name: &str) -> Value {
    json!({"objects": [{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "c", "image": "none"}]}}}}]})
}

#[test]
fn a_circle_is_named_in_its_members_soft_arcs_give_way_and_nobody_else_is_held() {
    let scenario = scenario("sync-circles");
    let on =
        |name: &str, strength: &str| json!([{"name": name, "sync": {"name": name}, "strength": strength}]);
    for (name, other) in [("a", "b"), ("b", "a")] {
        applied(&scenario, name, &json!({"source": maps(&[name], "1"), "dependencies": on(other, "Hard")}));
    }
    applied(&scenario, "behind", &json!({"source": maps(&["behind"], "1"), "dependencies": on("a", "Hard")}));
    applied(&scenario, "free", &json!({"source": maps(&["free"], "1")}));
    let told = "waits for itself: Sync sync-circles/a → Sync sync-circles/b → Sync sync-circles/a";
    for name in ["a", "b"] {
        let seen = scenario.condition("Sync", name, "DependencyCycle", "True");
        assert_eq!((&seen["status"]["phase"], &seen["status"]["message"]), (&json!("Waiting"), &json!(told)));
        assert_eq!(condition(&seen, "Stalled")["status"], "False", "waiting is not failing");
    }
    scenario.until("is blocked by the circle", "Sync", "behind", |object| {
        condition(object, "DependenciesReady")["reason"] == "BlockedByCycle"
            && condition(object, "DependencyCycle").is_null()
    });
    // "if a Sync sees its own name in that list, there's a cycle".
    for (name, listed) in [("a", ["b", "a"]), ("b", ["a", "b"]), ("behind", ["a", "b"])] {
        let listed = listed.map(|name| format!("Sync sync-circles/{name}"));
        scenario.until("records the dependence path", "Sync", name, |object| {
            object["status"]["waitingOn"] == json!(listed)
        });
    }
    scenario.synced("free");
    applied(&scenario, "b", &json!({"source": maps(&["b"], "1"), "dependencies": on("a", "Soft")}));
    let b = scenario.synced("b");
    assert_eq!(condition(&b, "DependencyCycle"), &Value::Null);
    scenario.synced("a");
    scenario.synced("behind");
    scenario.in_order(&["b", "a", "behind"]);
    eventually("the soft arc is told", seconds(30), || {
        scenario.events("b").iter().any(|(reason, note)| {
            reason == "SoftBroken" && note.starts_with("goes on without Sync sync-circles/a (soft)")
        })
    });
}

#[test]
fn dependents_go_first_whatever_the_order_of_two_deletions_and_protection_holds() {
    let scenario = scenario("sync-deletion");
    let needs = json!([{"name": "db", "sync": {"name": "db"}}]);
    for round in ["one", "two"] {
        applied(&scenario, "db", &json!({"source": maps(&["db"], "1")}));
        applied(&scenario, "web", &json!({"source": maps(&["web"], "1"), "dependencies": needs}));
        scenario.synced("web");
        let pair = if round == "one" { ["db", "web"] } else { ["web", "db"] };
        for name in pair {
            scenario.delete("Sync", name);
        }
        scenario.gone("Sync", "db");
        scenario.gone("Sync", "web");
        let writes = scenario.audit.user_writes("sync-deletion");
        let deleted = |name: &str| {
            let mut found = writes.iter().filter(|event| event.verb == "delete" && event.name == name);
            found.next_back().unwrap_or_else(|| panic!("no deletion of {name}")).clone()
        };
        assert_finished_before(&deleted("web"), &deleted("db"));
    }
    let protected = |names: &[&str]| json!({"source": maps(names, "1"), "dependents": {"protect": true}});
    applied(&scenario, "db", &protected(&["db", "old"]));
    applied(&scenario, "web", &json!({"source": maps(&["web"], "1"), "dependencies": needs}));
    scenario.synced("web");
    // Somebody else keeps what is pruned: that it is being deleted is no deletion of the rest.
    scenario.merge("ConfigMap", "old", &json!({"metadata": {"finalizers": ["example.com/kept"]}}));
    applied(&scenario, "db", &protected(&["db"]));
    scenario.until("is being deleted", "ConfigMap", "old", |map| {
        map["metadata"]["deletionTimestamp"].is_string()
    });
    scenario.delete("Sync", "db");
    let held = scenario.condition("Sync", "db", "DeletionBlocked", "True");
    assert_eq!(condition(&held, "DeletionBlocked")["reason"], "InUse");
    assert_eq!(held["status"]["heldBy"], json!(["Sync sync-deletion/web"]));
    assert_eq!(held["status"]["message"], "is in use by Sync sync-deletion/web");
    assert!(scenario.has("db"), "it touches nothing");
    scenario.merge("ConfigMap", "old", &json!({"metadata": {"finalizers": []}}));
    scenario.delete("Sync", "web");
    scenario.gone("Sync", "db");
    assert!(!scenario.has("db"));
    // What gates the deletion alone holds neither creation nor update, and has to be there before anything is deleted.
    let needs = json!([{"name": "op", "object": {"resource": "configmap/op"}, "gates": ["Delete"],
        "readyExpr": "dep.data.value == 'on'"}]);
    scenario.config_map("op", "off");
    applied(&scenario, "app", &json!({"source": maps(&["app"], "1"), "dependencies": needs}));
    scenario.synced("app");
    scenario.delete("Sync", "app");
    let held = scenario.condition("Sync", "app", "DeletionBlocked", "True");
    assert_eq!(condition(&held, "DeletionBlocked")["reason"], "DependencyNotReady");
    assert_eq!(held["status"]["phase"], "Deleting");
    assert_eq!(held["status"]["heldBy"], json!(["ConfigMap sync-deletion/op"]));
    assert!(scenario.has("app"), "it touches nothing");
    scenario.config_map("op", "on");
    scenario.gone("Sync", "app");
    assert!(!scenario.has("app"));
}

#[test]
fn members_of_one_circle_do_not_hold_each_others_deletion() {
    let scenario = scenario("sync-round");
    let on = |name: &str| json!([{"name": name, "sync": {"name": name}}]);
    let round = [("a", "b"), ("b", "c"), ("c", "a")];
    for (name, _) in round {
        applied(&scenario, name, &json!({"source": maps(&[name], "1")}));
        scenario.synced(name);
    }
    for (name, other) in round {
        applied(&scenario, name, &json!({"source": maps(&[name], "1"), "dependencies": on(other)}));
    }
    for (name, other) in round {
        scenario.until("relies on the next", "Sync", name, |object| {
            object["status"]["dependencies"][0]["dependsOn"] == format!("Sync sync-round/{other}")
        });
    }
    for (name, _) in round {
        scenario.delete("Sync", name);
    }
    // Whoever waited for the others would wait for five minutes.
    for (name, _) in round {
        scenario.gone("Sync", name);
        assert!(!scenario.has(name));
    }
}

#[test]
fn a_rule_holds_all_that_make_pods_but_what_it_needs_itself_and_a_capability_is_never_installed() {
    let scenario = scenario("sync-rules");
    scenario.apply("{apiVersion: v1, kind: Namespace, metadata: {name: $NS, labels: {sync-rules: 'on'}}}");
    scenario.apply(
        "{apiVersion: linchpin.dev/v1alpha1, kind: GlobalDependency, metadata: {name: sync-rules}, spec: {
           serviceAccount: {namespace: $NS, name: actor},
           dependency: {object: {resource: deployment/mesh, namespace: $NS}, state: Available},
           subjects: {namespaceSelector: {matchLabels: {sync-rules: 'on'}}}}}",
    );
    scenario.until("is judged", "GlobalDependency", "sync-rules", |object| {
        condition(object, "Ready")["status"] == "False"
    });
    applied(&scenario, "app", &json!({"source": workload("app")}));
    let held = scenario.until("is held by the rule", "Sync", "app", |object| {
        object["status"]["phase"] == "Waiting"
            && object["status"]["dependencies"][0]["name"] == "global:sync-rules"
    });
    assert_eq!(entry(&held, "dependencies", "global:sync-rules")["dependsOn"], "GlobalDependency sync-rules");
    assert_eq!(writes(&scenario), 0);
    applied(&scenario, "settings", &json!({"source": maps(&["settings"], "1")}));
    scenario.synced("settings");
    // "before any pods": what a subject makes is one too, wherever it is, and the subject itself makes no pods.
    scenario.apply(
        "{apiVersion: v1, kind: Namespace, metadata: {name: sync-rules-else}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: actor, namespace: sync-rules-else}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: actor, namespace: sync-rules-else}, rules: [
  {apiGroups: [linchpin.dev], resources: [syncs], verbs: ['*']}, {apiGroups: [apps], resources: [deployments], verbs: ['*']}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: actor, namespace: sync-rules-else},
  roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: actor},
  subjects: [{kind: ServiceAccount, name: actor, namespace: sync-rules-else}, {kind: ServiceAccount, name: actor, namespace: $NS}]}",
    );
    let child = json!({"apiVersion": "linchpin.dev/v1alpha1", "kind": "Sync",
        "metadata": {"name": "child", "namespace": "sync-rules-else"},
        "spec": {"serviceAccountName": "actor", "source": workload("child")}});
    applied(&scenario, "parent", &json!({"source": {"objects": [child]}}));
    let child = || scenario.api.get("Sync", "sync-rules-else", "child").unwrap_or_default();
    eventually("the child of a subject is held too", seconds(60), || {
        child()["status"]["dependencies"][0]["name"] == "global:sync-rules"
            && child()["status"]["phase"] == "Waiting"
    });
    applied(&scenario, "mesh", &json!({"source": workload("mesh")}));
    scenario.synced("mesh");
    scenario.synced("app");
    scenario.synced("parent");
    assert_eq!(child()["status"]["phase"], "Synced");
    let rule = scenario.until("shows whom it leaves alone", "GlobalDependency", "sync-rules", |object| {
        object["status"]["exempt"] == json!(["Sync sync-rules/mesh"])
            && condition(object, "Ready")["status"] == "True"
    });
    assert_eq!(rule["status"]["exemptCount"], 1);

    let needs = json!([{"name": "ci", "capability": {"name": "ci.sync-rules.example"}, "version": ">=2"}]);
    applied(&scenario, "pipelines", &json!({"source": maps(&["pipelines"], "1"), "dependencies": needs}));
    let missing = scenario.condition("Sync", "pipelines", "EnvironmentReady", "False");
    assert_eq!(condition(&missing, "EnvironmentReady")["reason"], "CapabilityMissing");
    let capability = |version: &str| {
        scenario.apply(&format!(
            "{{apiVersion: linchpin.dev/v1alpha1, kind: Capability, metadata: {{name: ci.sync-rules.example}}, spec: {{
               version: {version:?}, serviceAccount: {{namespace: $NS, name: actor}},
               dependencies: [{{name: mesh, sync: {{name: mesh, namespace: $NS}}}}]}}}}"
        ));
    };
    capability("1.0");
    scenario.until("has the wrong version", "Sync", "pipelines", |object| {
        object["status"]["message"] == "Capability ci.sync-rules.example is at 1.0, needs >=2"
    });
    capability("2.1");
    let done = scenario.synced("pipelines");
    assert_eq!(condition(&done, "EnvironmentReady")["status"], "True");
    scenario.delete("GlobalDependency", "sync-rules");
    scenario.delete("Capability", "ci.sync-rules.example");
}

/// The certificate of an authority, as the example of a global rule has it.
pub(super) fn authority() -> String {
    let text = include_str!("../../../../../examples/sync/global.yaml");
    let line = text.lines().find_map(|line| line.trim().strip_prefix("caBundle: ")).unwrap();
    line.to_owned()
}

#[test]
fn a_rule_on_a_webhook_leaves_alone_who_answers_it_in_whichever_sync_that_is() {
    let scenario = scenario("sync-closure");
    scenario.apply("{apiVersion: v1, kind: Namespace, metadata: {name: $NS, labels: {sync-closure: 'on'}}}");
    scenario.grant(
        "sync-closure",
        r#"[{apiGroups: [admissionregistration.k8s.io], resources: [mutatingwebhookconfigurations], verbs: ["*"]}]"#,
    );
    scenario.apply(
        "{apiVersion: linchpin.dev/v1alpha1, kind: GlobalDependency, metadata: {name: sync-closure}, spec: {
           serviceAccount: {namespace: $NS, name: actor},
           dependency: {object: {apiVersion: admissionregistration.k8s.io/v1, kind: MutatingWebhookConfiguration,
             name: sync-closure}, state: Available},
           subjects: {namespaceSelector: {matchLabels: {sync-closure: 'on'}}}}}",
    );
    scenario.until("is judged", "GlobalDependency", "sync-closure", |object| {
        condition(object, "Ready")["status"] == "False"
    });
    applied(&scenario, "app", &json!({"source": workload("app")}));
    let mut control = workload("control");
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "control"},
        "spec": {"selector": {"app": "control"}, "ports": [{"port": 443}]}});
    control["objects"].as_array_mut().unwrap().push(service);
    applied(&scenario, "control", &json!({"source": control}));
    scenario.until("is held as everybody is", "Sync", "control", |object| {
        object["status"]["dependencies"][0]["name"] == "global:sync-closure"
    });
    // A set that is not applied yet counts: from the configuration to the Service to the pods that answer.
    let configuration = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "sync-closure"},
        "webhooks": [{"name": "a.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None",
            "failurePolicy": "Ignore", "timeoutSeconds": 1,
            "objectSelector": {"matchLabels": {"sync-closure": "asked"}},
            "clientConfig": {"caBundle": authority(),
                "service": {"namespace": "sync-closure", "name": "control", "port": 443}},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]}]});
    applied(&scenario, "configuration", &json!({"source": {"objects": [configuration]}}));
    scenario.synced("control");
    scenario.until("leaves alone what answers its webhook", "GlobalDependency", "sync-closure", |object| {
        object["status"]["exempt"] == json!(["Sync sync-closure/configuration", "Sync sync-closure/control"])
            && condition(object, "Ready")["status"] == "True"
    });
    scenario.synced("app");
    scenario.delete("GlobalDependency", "sync-closure");
    scenario.delete("Sync", "configuration");
    scenario.gone("Sync", "configuration");
}

#[test]
fn what_a_sync_is_to_make_is_followed_to_the_cause_by_syncs_and_capabilities() {
    let scenario = scenario("sync-makers");
    scenario.allow("makers", "[{apiGroups: [linchpin.dev], resources: [syncs], verbs: [get, list, watch]}]");
    let on = |name: &str| json!([{"name": "it", "object": {"resource": format!("configmap/{name}")}}]);
    applied(&scenario, "vault", &json!({"source": maps(&["token"], "1"), "dependencies": on("go")}));
    applied(&scenario, "user", &json!({"source": maps(&["app"], "1"), "dependencies": on("token")}));
    scenario.apply(
        "{apiVersion: linchpin.dev/v1alpha1, kind: Capability, metadata: {name: token.sync-makers.example}, spec: {
          serviceAccount: {namespace: sync-makers, name: actor},
          dependencies: [{name: token, object: {resource: configmap/token, namespace: sync-makers}}]}}",
    );
    let sentence = "waits for ConfigMap sync-makers/token, which Sync sync-makers/vault is to make";
    let user = scenario.until("names the maker and the cause", "Sync", "user", |object| {
        object["status"]["message"].as_str().is_some_and(|text| {
            text.starts_with(sentence) && text.contains("root cause: ConfigMap sync-makers/go")
        })
    });
    let chain = user["status"]["blockedBy"][0]["chain"].as_array().cloned().unwrap_or_default();
    let last = chain.last().and_then(Value::as_str).unwrap_or_default();
    assert!(last.starts_with("waits for ConfigMap sync-makers/go"), "{chain:?}");
    let capability = scenario.until("names the maker", "Capability", "token.sync-makers.example", |object| {
        object["status"]["dependencies"][0]["message"] == sentence
    });
    assert_eq!(capability["status"]["dependencies"][0]["providedBy"], "Sync sync-makers/vault");
    let explained = |name: &str| {
        let kubeconfig = world::world().cluster.kubeconfig();
        let output = linchpin().env("KUBECONFIG", kubeconfig).args(["explain", name]).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let (code, text, error) = explained("cap/token.sync-makers.example");
    assert_eq!(code, Some(0), "{error}");
    assert!(text.starts_with("Capability token.sync-makers.example"), "{text}");
    let (code, _, error) = explained("cap/tokn.sync-makers.example");
    assert_eq!(code, Some(1));
    assert!(error.contains("there is no Capability tokn.sync-makers.example"), "{error}");
    scenario.delete("Capability", "token.sync-makers.example");
}
