//! What somebody may try who can write objects of ours in a namespace of theirs, and nothing else.

mod belief;

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
    scenario.passes("meanwhile");
    assert!(scenario.api.get("ClusterRoleBinding", "", "climber").is_none());
    assert!(scenario.api.get("ClusterRole", "", "climber").is_none());
    let done = scenario.audit.user_writes("").into_iter().filter(|event| event.code < 300);
    let mine = done.filter(|event| {
        event.acting_as.as_deref() == Some(scenario.actor().as_str()) && event.name != "meanwhile"
    });
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
fn a_phase_that_somebody_else_writes_is_put_right_and_believed_by_nobody() {
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
    // Its edges too: as if it made what it waits for, and waited for what makes it wait.
    let edges = r#"[{"to":{"kind":"ConfigMap","namespace":"spoof","name":"trust me"},"made":false}]"#;
    let lie = json!({"status": {"phase": "Completed", "message": "trust me", "conditions": [ready], "edges": edges}});
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
    // An owner that is there: the garbage collector has no reason to take away what it owns.
    scenario.config_map("parent", "");
    let parent = scenario.get("ConfigMap", "parent").unwrap()["metadata"]["uid"].clone();
    scenario.resource_dependency(
        "rd",
        &format!(
            "
        actions:
        - {{name: a, type: create, resource: {{apiVersion: v1, kind: ConfigMap, metadata: {{name: a, uid: 11111111-1111-1111-1111-111111111111,
            resourceVersion: '1', annotations: {{linchpin.dev/created-by: somebody}}, ownerReferences: [
            {{apiVersion: v1, kind: ConfigMap, name: parent, uid: {parent}, blockOwnerDeletion: true}}]}}}}}}
        - {{name: b, type: apply, apply: {{apiVersion: v1, kind: ConfigMap, metadata: {{name: b, ownerReferences: [
            {{apiVersion: v1, kind: ConfigMap, name: parent, uid: {parent}}}]}}}}}}
        "
        ),
    );
    let seen = scenario.completed("rd");
    for name in ["a", "b"] {
        let made = scenario.get("ConfigMap", name).unwrap();
        assert_ne!(made["metadata"]["uid"], "11111111-1111-1111-1111-111111111111");
        assert!(made["metadata"].get("ownerReferences").is_none(), "{made:#}");
        assert_eq!(made["metadata"]["annotations"]["linchpin.dev/created-by"], seen["metadata"]["uid"]);
    }
}

#[test]
fn a_dependency_that_flaps_makes_no_storm_of_writes() {
    let scenario = scenario("flapping");
    let flips = |value: &str| scenario.config_map("flips", value);
    flips("off");
    // What it would write reads what is not there: it is Running whenever its dependency holds, Waiting whenever it does
    // not, and never done. Each flip of the dependency is one of the phase.
    scenario.resource_dependency(
        "rd",
        "
        dependencies: [{name: flips, resource: configmap/flips, conditions: [{jsonPath: .data.value, value: 'on'}]}]
        actions: [{name: reads, type: create, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: never},
          data: {a: '{{ .Dependencies.flips.Object.data.nothing }}'}}}]
        ",
    );
    scenario.phase("ResourceDependency", "rd", "Waiting");
    flips("on");
    scenario.phase("ResourceDependency", "rd", "Running");
    let storm = Audit::from_now(&world().cluster.audit_log());
    let begun = std::time::Instant::now();
    for _ in 0..100 {
        flips("off");
        flips("on");
    }
    flips("off");
    scenario.phase("ResourceDependency", "rd", "Waiting");
    let took = begun.elapsed().as_secs();
    scenario.passes("meanwhile");
    let (events, statuses): (Vec<_>, Vec<_>) = storm
        .events()
        .into_iter()
        .filter(|event| {
            event.is_by_operator()
                && event.is_write()
                && event.namespace == "flapping"
                && (event.resource == "events" || event.name == "rd" && event.subresource == "status")
        })
        .partition(|event| event.resource == "events");
    // It follows, and is not dragged along: the world changed two hundred times.
    let limit = usize::try_from(took).unwrap() * 2 + 20;
    assert!((1..=limit).contains(&statuses.len()), "{} status writes in {took} s", statuses.len());
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
