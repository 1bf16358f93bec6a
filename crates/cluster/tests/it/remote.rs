//! Other clusters, reached with what the object's own identity may read.

use crate::stage::{Stage, config_map, items};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use linchpin_engine::contract::{
    Actor, ClusterRef, ControlPlaneSelect, Question, ReadSet, RemoteUser, Scope, Seen, Via, Want,
};
use linchpin_words::{KindWord, Reason};
use serde_json::{Value, json};
use std::fs;

/// What is told of a server that is not reached, whatever the reason.
const UNREACHABLE: &str =
    "the server cannot be reached, or does not answer as an API server does (the operator's log says more)";

fn secret(stage: &Stage, name: &str, data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": stage.namespace}, "data": data})
}

/// The other cluster is the same one, entered by another door.
fn kubeconfig(stage: &Stage) -> String {
    STANDARD.encode(fs::read(stage.cluster.kubeconfig()).unwrap())
}

fn via(stage: &Stage, secret: &str, impersonate: Option<RemoteUser>) -> Via {
    let cluster = ClusterRef::Kubeconfig {
        namespace: stage.namespace.clone(),
        name: secret.to_owned(),
        key: "value".to_owned(),
        impersonate,
    };
    Via {
        cluster,
        actor: Actor::ServiceAccount { namespace: stage.namespace.clone(), name: "builder".into() },
    }
}

fn want(stage: &Stage, via: Via) -> Want {
    Want::object(via, config_map(), Some(stage.namespace.clone()), "there", ReadSet::dotted(["data"]))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_is_reached_when_its_kubeconfig_comes_and_left_when_it_goes() {
    let stage = Stage::new().await;
    stage.put(stage.map("there", json!({"x": "1"}))).await;
    let mut audience = stage.audience().await;
    let via = via(&stage, "k", None);
    let want = want(&stage, via.clone());
    let kind = Want::new(Question::Kind { via, word: KindWord::new("cm") });
    audience.ask([want.clone(), kind.clone()]);
    audience.until_unknown(&want, Reason::Forbidden).await;
    stage.allow("builder", &["list", "watch"], "secrets", &["k"]).await;
    let message = audience.until_unknown(&want, Reason::ClusterPending).await;
    assert!(message.contains("does not exist"), "{message}");
    stage.put(secret(&stage, "k", json!({"value": ""}))).await;
    audience
        .until(
            &want,
            "an empty key",
            |seen| matches!(seen, Seen::Unknown(why) if why.message.contains("no kubeconfig in value")),
        )
        .await;
    stage.put(secret(&stage, "k", json!({"value": kubeconfig(&stage)}))).await;
    audience.until_data(&want, json!({"x": "1"})).await;
    audience.until(&kind, "the kind", |seen| matches!(seen, Seen::Kind(_))).await;
    stage.put(stage.map("there", json!({"x": "2"}))).await;
    audience.until_data(&want, json!({"x": "2"})).await;

    stage.put(secret(&stage, "k", json!({"value": STANDARD.encode("hunter2: [")}))).await;
    let message = audience.until_unknown(&want, Reason::ClusterPending).await;
    assert!(message.contains("no kubeconfig") && !message.contains("hunter2"), "{message}");
    stage.put(secret(&stage, "k", json!({"value": kubeconfig(&stage)}))).await;
    audience.until_data(&want, json!({"x": "2"})).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_that_does_not_answer_is_unreachable() {
    let stage = Stage::new().await;
    stage.allow("builder", &["list", "watch"], "secrets", &["k"]).await;
    let nobody = kubeconfig_at(&stage, "https://127.0.0.1:1");
    stage.put(secret(&stage, "k", json!({"value": nobody}))).await;
    let mut audience = stage.audience().await;
    let want = want(&stage, via(&stage, "k", None));
    audience.ask([want.clone()]);
    let message = audience.until_unknown(&want, Reason::ClusterUnreachable).await;
    assert!(message.ends_with(UNREACHABLE), "{message}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kubeconfig_cannot_lead_to_the_node() {
    let stage = Stage::new().await;
    stage.allow("builder", &["list", "watch"], "secrets", &["k"]).await;
    let metadata = kubeconfig_at(&stage, "https://169.254.169.254");
    stage.put(secret(&stage, "k", json!({"value": metadata}))).await;
    let mut audience = stage.audience().await;
    let want = want(&stage, via(&stage, "k", None));
    audience.ask([want.clone()]);
    let message = audience.until_unknown(&want, Reason::ClusterUnreachable).await;
    // The same words as for any other server that is not reached: what there is at an address is nobody's business.
    assert!(message.ends_with(UNREACHABLE), "{message}");
}

fn kubeconfig_at(stage: &Stage, server: &str) -> String {
    let text = fs::read_to_string(stage.cluster.kubeconfig()).unwrap();
    STANDARD.encode(text.replace(&stage.cluster.server(), server))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn further_impersonation_narrows_what_is_seen() {
    let stage = Stage::new().await;
    stage.allow("builder", &["list", "watch"], "secrets", &["k"]).await;
    stage.put(secret(&stage, "k", json!({"value": kubeconfig(&stage)}))).await;
    let mut audience = stage.audience().await;
    let alice = RemoteUser { user: "alice".into(), groups: vec!["tenants".into()] };
    let want = want(&stage, via(&stage, "k", Some(alice)));
    audience.ask([want.clone()]);
    audience.until_unknown(&want, Reason::Forbidden).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_control_plane_leads_to_its_cluster() {
    let stage = Stage::new().await;
    let plane = |status: Value| {
        json!({"apiVersion": "tenancy.kflex.kubestellar.org/v1alpha1", "kind": "ControlPlane",
            "metadata": {"name": "its1", "labels": {"cptype": "its"}}, "status": status})
    };
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    stage
        .put(json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "controlplanes.tenancy.kflex.kubestellar.org"},
            "spec": {"group": "tenancy.kflex.kubestellar.org", "scope": "Cluster",
                "names": {"plural": "controlplanes", "kind": "ControlPlane"},
                "versions": [{"name": "v1alpha1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]}}))
        .await;
    let rbac = "rbac.authorization.k8s.io/v1";
    let name = format!("planes-{}", stage.namespace);
    let rule = json!({"apiGroups": ["tenancy.kflex.kubestellar.org"], "resources": ["controlplanes"], "verbs": ["list", "watch"]});
    stage
        .put(json!({"apiVersion": rbac, "kind": "ClusterRole", "metadata": {"name": name}, "rules": [rule]}))
        .await;
    stage
        .put(json!({"apiVersion": rbac, "kind": "ClusterRoleBinding", "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": "builder", "namespace": stage.namespace}]}))
        .await;
    stage.allow("builder", &["list", "watch"], "secrets", &["vc"]).await;
    stage.put(stage.map("there", json!({"x": "1"}))).await;
    stage.put(secret(&stage, "vc", json!({"config": kubeconfig(&stage)}))).await;
    // The definition is served a moment later.
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;

    let mut audience = stage.audience().await;
    let selector = linchpin_engine::contract::Selector::requirements(vec!["cptype=its".into()]);
    let actor = Actor::ServiceAccount { namespace: stage.namespace.clone(), name: "builder".into() };
    let cluster = ClusterRef::ControlPlane {
        select: ControlPlaneSelect::Labels(selector),
        require_ready: true,
        impersonate: None,
    };
    let want = want(&stage, Via { cluster, actor });
    audience.ask([want.clone()]);
    let message = audience.until_unknown(&want, Reason::ClusterPending).await;
    assert!(message.contains("does not exist"), "{message}");
    stage.put(plane(json!({}))).await;
    let pending =
        |seen: &Seen| matches!(seen, Seen::Unknown(why) if why.message.contains("its1 is not ready"));
    audience.until(&want, "a plane that is not ready", pending).await;
    let reference = json!({"namespace": stage.namespace, "name": "vc", "key": "config", "inClusterKey": "config-incluster"});
    stage
        .put(plane(json!({"conditions": [{"type": "Ready", "status": "True"}], "secretRef": reference})))
        .await;
    let seen = audience.until_data(&want, json!({"x": "1"})).await;
    assert_eq!(items(&seen).len(), 1);
    assert!(matches!(want.question(), Question::Objects { scope: Scope::Name { .. }, .. }));
}
