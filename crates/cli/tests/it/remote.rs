//! Other clusters: waited for, looked at and acted in through a kubeconfig that the object's own identity may read.

use crate::{eventually, seconds, shared, world::scenario};
use linchpin_testkit::{Api, Scenario, entry};
use serde_json::{Value, json};
use std::{fs, sync::OnceLock};

/// The other cluster's client.
pub(crate) fn other() -> &'static Api {
    static API: OnceLock<Api> = OnceLock::new();
    API.get_or_init(|| Api::connect(&shared().kubeconfig()))
}

/// The same namespace in the other cluster.
pub(crate) fn beyond(name: &str) {
    other().apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})).unwrap();
}

pub(crate) fn make_beyond(namespace: &str, name: &str, value: &str) {
    let metadata = json!({"name": name, "namespace": namespace});
    let map =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"value": value}});
    other().apply(&map).unwrap();
}

pub(crate) fn kubeconfig() -> String {
    fs::read_to_string(shared().kubeconfig()).unwrap()
}

/// A Secret with a text under a key.
pub(crate) fn secret(scenario: &Scenario, namespace: &str, name: &str, key: &str, text: &str) {
    let metadata = json!({"name": name, "namespace": namespace});
    let secret =
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {key: text}});
    scenario.apply(&secret.to_string());
}

#[test]
fn a_dependency_is_looked_at_and_an_action_done_in_the_cluster_of_a_kubeconfig() {
    let scenario = scenario("remote");
    beyond("remote");
    scenario.resource_dependency(
        "rd",
        "
        dependencies:
        - {name: here, resource: configmap/here}
        - {name: there, resource: configmap/there, cluster: {kubeconfigSecretRef: {name: edge, key: value}}}
        actions:
        - {name: out, priority: 1, type: create, cluster: {kubeconfigSecretRef: {name: edge, key: value}},
           resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: from-here}, data: {value: '{{ .Dependencies.here.Object.data.value }}'}}}
        - {name: back, priority: 2, type: template, template: '{apiVersion: v1, kind: ConfigMap, metadata: {name: from-there}, data: {value: {{ .Dependencies.there.Object.data.value | quote }}}}'}
        ",
    );
    scenario.config_map("here", "local");
    let pending = scenario.blocked("rd", "ClusterPending");
    assert_eq!(pending["status"]["phase"], "Waiting");
    // An empty key is a kubeconfig that is not there yet.
    secret(&scenario, "remote", "edge", "value", "");
    scenario.blocked("rd", "ClusterPending");
    secret(&scenario, "remote", "edge", "value", &kubeconfig());
    scenario.blocked("rd", "NotFound");
    make_beyond("remote", "there", "distant");
    let done = scenario.completed("rd");
    assert_eq!(scenario.data("from-there", "value").unwrap(), "distant");
    assert_eq!(other().get("ConfigMap", "remote", "from-here").unwrap()["data"]["value"], "local");
    assert!(scenario.get("ConfigMap", "from-here").is_none());
    assert_eq!(entry(&done, "dependencies", "there")["state"], "Ready");
    assert!(!done.to_string().contains("client-key"), "nothing of the credential is shown");
}

#[test]
fn a_kubeconfig_is_followed_when_it_changes_and_one_that_reaches_too_far_is_refused() {
    let scenario = scenario("rotation");
    beyond("rotation");
    let dead = kubeconfig().replace(&shared().server(), "https://127.0.0.1:1");
    secret(&scenario, "rotation", "edge", "kubeconfig", &dead);
    scenario.resource_dependency(
        "rd",
        "
        cluster: {kubeconfigSecretRef: {name: edge}}
        dependencies: [{name: there, resource: configmap/there}]
        ",
    );
    scenario.blocked("rd", "ClusterUnreachable");
    let program = "apiVersion: v1\nkind: Config\nclusters: [{name: a, cluster: {server: 'https://127.0.0.1:1'}}]\n\
        users: [{name: a, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: /bin/true}}}]\n\
        contexts: [{name: a, context: {cluster: a, user: a}}]\ncurrent-context: a\n";
    secret(&scenario, "rotation", "edge", "kubeconfig", program);
    scenario.until("refuses a program", "ResourceDependency", "rd", |object| {
        object["status"]["message"].as_str().is_some_and(|message| message.contains("exec"))
    });
    secret(&scenario, "rotation", "edge", "kubeconfig", &kubeconfig());
    scenario.blocked("rd", "NotFound");
    make_beyond("rotation", "there", "");
    scenario.completed("rd");
}

#[test]
fn a_secret_that_the_identity_may_not_read_leads_nowhere() {
    let vault = scenario("remote-vault");
    let thief = scenario("remote-thief");
    secret(&vault, "remote-vault", "admin", "kubeconfig", &kubeconfig());
    thief.resource_dependency(
        "rd",
        "dependencies: [{resource: configmap/there, cluster: {kubeconfigSecretRef: {namespace: remote-vault, name: admin}}}]",
    );
    let refused = thief.until("is refused", "ResourceDependency", "rd", |object| {
        let blockers = object["status"]["blockedBy"].to_string();
        blockers.contains("Forbidden") || blockers.contains("MissingRights")
    });
    assert!(refused["status"]["message"].as_str().unwrap().contains("secrets"), "{:#}", refused["status"]);
    let read = vault.audit.events().into_iter().filter(|event| {
        event.is_by_operator()
            && event.namespace == "remote-vault"
            && event.resource == "secrets"
            && event.code < 300
    });
    assert_eq!(read.collect::<Vec<_>>(), []);
}

#[test]
fn what_moves_to_another_cluster_leaves_nothing_behind_in_the_first() {
    let scenario = scenario("moves");
    beyond("moves");
    secret(&scenario, "moves", "edge", "kubeconfig", &kubeconfig());
    let spec = |cluster: &str| {
        format!(
            "{{deletionPolicy: Delete, actions: [{{name: a, type: apply{cluster}, \
             apply: {{apiVersion: v1, kind: ConfigMap, metadata: {{name: a}}}}}}]}}"
        )
    };
    let there = || other().get("ConfigMap", "moves", "a").is_some();
    scenario.resource_dependency("rd", &spec(", cluster: {kubeconfigSecretRef: {name: edge}}"));
    scenario.completed("rd");
    assert!(there() && !scenario.has("a"));
    scenario.resource_dependency("rd", &spec(""));
    scenario.completed("rd");
    eventually("the first one goes", seconds(30), || !there());
    assert!(scenario.has("a"));
    scenario.delete("ResourceDependency", "rd");
    scenario.gone("ResourceDependency", "rd");
    assert!(!scenario.has("a"));
}

#[test]
fn what_was_made_in_a_cluster_that_cannot_be_reached_is_waited_for_and_not_forgotten() {
    let scenario = scenario("cut-off");
    beyond("cut-off");
    secret(&scenario, "cut-off", "edge", "kubeconfig", &kubeconfig());
    scenario.resource_dependency(
        "rd",
        "{deletionPolicy: Delete, cluster: {kubeconfigSecretRef: {name: edge}}, \
         actions: [{name: a, type: create, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}}]}",
    );
    scenario.completed("rd");
    scenario.delete("Secret", "edge");
    scenario.delete("ResourceDependency", "rd");
    let waiting = scenario.until("says what it waits for", "ResourceDependency", "rd", |object| {
        object["status"].to_string().contains("Secret cut-off/edge")
    });
    assert_eq!(waiting["status"]["phase"], "Deleting");
    secret(&scenario, "cut-off", "edge", "kubeconfig", &kubeconfig());
    scenario.gone("ResourceDependency", "rd");
    assert!(other().get("ConfigMap", "cut-off", "a").is_none(), "it was forgotten");
}

const DEFINITION: &str = "
    apiVersion: apiextensions.k8s.io/v1
    kind: CustomResourceDefinition
    metadata: {name: controlplanes.tenancy.kflex.kubestellar.org}
    spec:
      group: tenancy.kflex.kubestellar.org
      scope: Cluster
      names: {kind: ControlPlane, plural: controlplanes, singular: controlplane, shortNames: [cp]}
      versions:
      - {name: v1alpha1, served: true, storage: true, subresources: {status: {}}, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
";

/// What KubeFlex says of a control plane whose kubeconfig is in this Secret.
fn plane_status(namespace: &str, secret: &str, key: &str, in_cluster_key: &str, ready: &str) -> Value {
    let at = "2026-01-01T00:00:00Z";
    let condition = |kind: &str, status: &str| json!({"type": kind, "status": status, "reason": "Because", "lastTransitionTime": at, "lastUpdateTime": at});
    json!({"status": {"observedGeneration": 1, "conditions": [condition("Ready", ready), condition("Synced", "True")],
        "secretRef": {"namespace": namespace, "name": secret, "key": key, "inClusterKey": in_cluster_key}}})
}

#[test]
fn control_planes_of_every_type_lead_to_their_clusters_by_name_or_by_label() {
    let scenario = scenario("planes");
    beyond("planes");
    scenario.apply(DEFINITION);
    scenario.allow_everywhere(
        "planes",
        "[{apiGroups: [tenancy.kflex.kubestellar.org], resources: [controlplanes], verbs: [get, list, watch]}]",
    );
    // Type, Secret, key for use from outside, key for use from inside.
    let types = [
        ("k8s", "admin-kubeconfig", "kubeconfig", "kubeconfig-incluster"),
        ("vcluster", "vc-vcluster", "config", "config-incluster"),
        ("k3s", "k3s-config", "config", "config-incluster"),
        ("host", "host-kubeconfig", "", "kubeconfig-incluster"),
        ("external", "external-kubeconfig", "", "kubeconfig-incluster"),
        ("ocm", "multicluster-controlplane-kubeconfig", "kubeconfig", ""),
    ];
    let status = |kind: &str, name: &str, key: &str, inside: &str, ready: &str| {
        let status = plane_status("planes", name, key, inside, ready);
        scenario.api.merge("ControlPlane", "", &format!("planes-{kind}"), "/status", &status).unwrap();
    };
    for (kind, ..) in types {
        scenario.resource_dependency(
            kind,
            &format!(
                "
                dependencies:
                - {{name: plane, resource: controlplanes.tenancy.kflex.kubestellar.org/planes-{kind}, state: Ready}}
                - {{name: there, resource: configmap/there-{kind}, cluster: {{controlPlaneRef: {{name: planes-{kind}}}}}}}
                "
            ),
        );
    }
    scenario.resource_dependency(
        "by-label",
        "dependencies: [{resource: configmap/there-vcluster, cluster: {controlPlaneRef: {selector: {matchLabels: {kflex.kubestellar.io/cptype: planes-its}}}}}]",
    );
    for (kind, name, key, inside) in types {
        let label = if kind == "vcluster" { "planes-its" } else { "planes-wds" };
        scenario.apply(&format!(
            "{{apiVersion: tenancy.kflex.kubestellar.org/v1alpha1, kind: ControlPlane, metadata: {{name: planes-{kind}, \
             labels: {{kflex.kubestellar.io/cptype: {label}}}}}, spec: {{type: {kind}}}}}"
        ));
        status(kind, name, key, inside, "False");
    }
    scenario.phase("ResourceDependency", "by-label", "Waiting");
    for (kind, name, key, inside) in types {
        scenario.phase("ResourceDependency", kind, "Waiting");
        status(kind, name, key, inside, "True");
        scenario.blocked(kind, "ClusterPending");
        // The trap of types host and external: a key is named that the Secret does not have.
        let key = if key.is_empty() { inside } else { key };
        secret(&scenario, "planes", name, key, &kubeconfig());
        make_beyond("planes", &format!("there-{kind}"), "");
        scenario.completed(kind);
    }
    scenario.completed("by-label");
}
