//! Objects for small worlds.

use linchpin_engine::contract::{EffectTarget, Projection, Scope};
use linchpin_words::Gvk;
use serde_json::{Map, Value, json};

/// A namespace that is there.
pub(crate) fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}, "status": {"phase": "Active"}})
}

/// A ConfigMap.
pub(crate) fn config_map(namespace: &str, name: &str, data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": namespace, "name": name}, "data": data})
}

/// A Deployment with so many of one replica available.
pub(crate) fn deployment(namespace: &str, name: &str, available: i64) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"namespace": namespace, "name": name, "generation": 1},
        "spec": {"replicas": 1},
        "status": {"observedGeneration": 1, "replicas": 1, "updatedReplicas": available, "readyReplicas": available,
            "availableReplicas": available}
    })
}

/// A definition that is established.
pub(crate) fn definition(group: &str, plural: &str, kind: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {"group": group, "names": {"kind": kind}, "versions": [{"name": "v1", "served": true}]},
        "status": {"conditions": [
            {"type": "Established", "status": "True"}, {"type": "NamesAccepted", "status": "True"}]}
    })
}

/// One of the document's control planes.
pub(crate) fn control_plane(name: &str, status: &Value) -> Value {
    json!({"apiVersion": "kubeflex.kubestellar.io/v1", "kind": "ControlPlane", "metadata": {"name": name}, "status": status})
}

pub(crate) fn shown(target: &EffectTarget) -> String {
    let namespace = target.namespace.as_ref().map_or_else(String::new, |namespace| format!("{namespace}/"));
    format!("{} {namespace}{}", target.kind.word, target.name)
}

pub(crate) fn key(object: &Value) -> (String, String, String, String) {
    let text = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
    let group = text("/apiVersion").split_once('/').map_or_else(String::new, |(group, _)| group.to_owned());
    (group, text("/kind"), text("/metadata/namespace"), text("/metadata/name"))
}

pub(crate) fn is_kind(object: &Value, kind: &Gvk) -> bool {
    let (group, name, _, _) = key(object);
    group == kind.group && name == kind.kind
}

pub(crate) fn matches(object: &Value, scope: &Scope) -> bool {
    let (_, _, namespace, name) = key(object);
    match scope {
        Scope::Name { namespace: wanted, name: wanted_name } => {
            wanted.as_deref().unwrap_or_default() == namespace && *wanted_name == name
        }
        Scope::Labels { namespace: wanted, selector } => {
            let empty = Map::new();
            let labels = object.pointer("/metadata/labels").and_then(Value::as_object).unwrap_or(&empty);
            let has = |one: &str| {
                one.split_once('=')
                    .is_some_and(|(key, value)| labels.get(key).and_then(Value::as_str) == Some(value))
            };
            wanted.as_deref().unwrap_or_default() == namespace
                && selector.as_str().split(',').filter(|one| !one.is_empty()).all(has)
        }
    }
}

pub(crate) fn project(object: &Value, kind: &Gvk, content: Value) -> Projection {
    let (_, _, namespace, name) = key(object);
    let metadata = &object["metadata"];
    Projection {
        kind: kind.clone(),
        namespace: (!namespace.is_empty()).then_some(namespace),
        name,
        uid: metadata["uid"].as_str().unwrap_or_default().to_owned(),
        generation: metadata["generation"].as_i64().unwrap_or(0),
        version: metadata["resourceVersion"].as_str().unwrap_or_default().parse().unwrap_or(0),
        deleting: metadata.get("deletionTimestamp").is_some(),
        content,
    }
}
