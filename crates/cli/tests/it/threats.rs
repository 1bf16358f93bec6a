//! What somebody may try who can write objects of ours in a namespace of theirs, and nothing else.

use crate::{
    seconds,
    world::{scenario, world},
};
use linchpin_testkit::{audit::Audit, entry};
use serde_json::json;
use std::thread;

#[test]
fn nobody_becomes_more_than_their_service_account() {
    let scenario = scenario("climber");
    scenario.resource_dependency(
        "admin",
        "
        actions:
        - {name: bind, type: create, resource: {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: climber},
            roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin},
            subjects: [{kind: ServiceAccount, name: actor, namespace: climber}]}}
        ",
    );
    // A namespace in the manifest makes no namespaced object of it.
    scenario.resource_dependency(
        "disguised",
        "
        actions:
        - {name: bind, type: template, template: '{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: climber, namespace: climber}, rules: []}'}
        ",
    );
    scenario.resource_dependency(
        "lease",
        "
        actions:
        - {name: steal, type: patch, patch: {target: {apiVersion: coordination.k8s.io/v1, kind: Lease, name: linchpin, namespace: default},
            patchType: merge, patch: '{\"spec\": {\"holderIdentity\": \"me\"}}'}}
        ",
    );
    for name in ["admin", "disguised", "lease"] {
        scenario.until("is refused", "ResourceDependency", name, |object| {
            let status = object["status"].to_string();
            status.contains("MissingRights") || status.contains("Forbidden")
        });
    }
    thread::sleep(seconds(1));
    assert!(scenario.api.get("ClusterRoleBinding", "", "climber").is_none());
    assert!(scenario.api.get("ClusterRole", "", "climber").is_none());
    let done = scenario.audit.user_writes("").into_iter().filter(|event| event.code < 300);
    let mine = done.filter(|event| event.acting_as.as_deref() == Some(scenario.actor().as_str()));
    assert_eq!(mine.collect::<Vec<_>>(), []);
}

#[test]
fn an_account_is_a_name_in_the_objects_own_namespace_and_nothing_else() {
    let scenario = scenario("names");
    for account in ["''", "' '", "system:serviceaccount:kube-system:admin", "../default", "a/b", "'*'"] {
        let spec = format!(
            "{{serviceAccountName: {account}, actions: [{{name: a, type: create, resource: {{apiVersion: v1, kind: ConfigMap, metadata: {{name: a}}}}}}]}}"
        );
        let manifest = format!(
            "{{apiVersion: tools.kubestellar.io/v1, kind: ResourceDependency, metadata: {{name: rd}}, spec: {spec}}}"
        );
        let document: serde_json::Value = serde_saphyr::from_str(&manifest).unwrap();
        let mut document = document;
        document["metadata"]["namespace"] = json!("names");
        if scenario.api.apply(&document).is_ok() {
            scenario.until("goes no further", "ResourceDependency", "rd", |object| {
                let phase = object["status"]["phase"].as_str().unwrap_or_default();
                ["Waiting", "Failed", "Running"].contains(&phase)
            });
            thread::sleep(seconds(1));
        }
        assert!(!scenario.has("a"), "{account}");
    }
    let everything = Audit::from_the_beginning(&world().cluster.audit_log());
    assert_eq!(everything.overreach(), []);
}

#[test]
fn a_status_that_somebody_else_writes_is_put_right_and_believed_by_nobody() {
    let scenario = scenario("spoof");
    scenario.resource_dependency(
        "rd",
        "
        dependencies: [{name: gate, resource: configmap/gate}]
        actions: [{name: a, type: create, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}}]
        ",
    );
    scenario.blocked("rd", "NotFound");
    let at = "2026-01-01T00:00:00Z";
    let ready = json!({"type": "Ready", "status": "True", "reason": "Completed", "message": "trust me",
        "observedGeneration": 1, "lastTransitionTime": at});
    let lie = json!({"status": {"phase": "Completed", "message": "trust me", "conditions": [ready]}});
    scenario.api.merge("ResourceDependency", "spoof", "rd", "/status", &lie).unwrap();
    let mended = scenario.until("is put right", "ResourceDependency", "rd", |object| {
        object["status"]["phase"] == "Waiting" && !object["status"].to_string().contains("trust me")
    });
    assert_eq!(entry(&mended, "dependencies", "gate")["met"], false);
    assert!(!scenario.has("a"));
    scenario.config_map("gate", "");
    scenario.completed("rd");
}

#[test]
fn what_only_the_server_or_an_owner_may_set_is_not_taken_from_a_template() {
    let scenario = scenario("owners");
    scenario.resource_dependency(
        "rd",
        "
        actions:
        - {name: a, type: create, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: a, uid: 11111111-1111-1111-1111-111111111111,
            resourceVersion: '1', annotations: {linchpin.dev/created-by: somebody}, ownerReferences: [
            {apiVersion: v1, kind: Namespace, name: kube-system, uid: 22222222-2222-2222-2222-222222222222, blockOwnerDeletion: true}]}}}
        ",
    );
    let seen = scenario.until("is looked at", "ResourceDependency", "rd", |object| {
        ["Completed", "Failed"].iter().any(|phase| object["status"]["phase"] == *phase)
    });
    if let Some(made) = scenario.get("ConfigMap", "a") {
        assert_ne!(made["metadata"]["uid"], "11111111-1111-1111-1111-111111111111");
        assert!(made["metadata"].get("ownerReferences").is_none(), "{made:#}");
        assert_eq!(made["metadata"]["annotations"]["linchpin.dev/created-by"], seen["metadata"]["uid"]);
    }
}

#[test]
fn a_dependency_that_flaps_makes_no_storm_of_writes() {
    let scenario = scenario("flapping");
    scenario.resource_dependency(
        "rd",
        "
        dependencies: [{name: flag, resource: configmap/flag, conditions: [{jsonPath: .data.value, value: 'never'}]},
          {name: flips, resource: configmap/flips}]
        ",
    );
    scenario.blocked("rd", "NotFound");
    thread::sleep(seconds(2));
    let quiet = Audit::from_now(&world().cluster.audit_log());
    let begun = std::time::Instant::now();
    for round in 0..60 {
        scenario.config_map("flag", &format!("{round}"));
        scenario.config_map("flips", "");
        scenario.delete("ConfigMap", "flips");
        scenario.delete("ConfigMap", "flag");
    }
    let took = begun.elapsed().as_secs();
    thread::sleep(seconds(2));
    let written = quiet
        .events()
        .into_iter()
        .filter(|event| event.is_by_operator() && event.is_write() && event.namespace == "flapping");
    let (events, statuses): (Vec<_>, Vec<_>) = written.partition(|event| event.resource == "events");
    let limit = usize::try_from(took).unwrap() + 5;
    assert!(statuses.len() <= limit, "{} status writes in {took} s", statuses.len());
    assert!(events.len() <= limit, "{} events in {took} s", events.len());
}

#[test]
fn a_successor_of_the_same_name_is_another_object() {
    let scenario = scenario("successor");
    scenario.config_map("source", "one");
    scenario.resource_dependency(
        "rd",
        "
        watchMode: true
        dependencies: [{name: source, resource: configmap/source}]
        actions:
        - {name: note, runOnChanges: true, type: apply, apply: {apiVersion: v1, kind: ConfigMap, metadata: {name: note}, data: {value: '{{ .Dependencies.source.Object.metadata.uid }}'}}}
        ",
    );
    scenario.completed("rd");
    let first = scenario.data("note", "value").unwrap();
    scenario.delete("ConfigMap", "source");
    scenario.config_map("source", "one");
    scenario.until("tells the successor", "ConfigMap", "note", |object| {
        object["data"]["value"] != first.as_str()
    });
}
