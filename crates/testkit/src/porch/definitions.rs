//! Porch's kinds as definitions: the fields that the real ones have, as far as anybody here looks at them.
//!
//! PackageRevision and PackageRevisionResources are served by Porch's own API server in reality; here they are
//! definitions of the same group, version and fields.

use std::{thread, time::Duration};

use serde_json::{Value, json};

use crate::Api;

/// Where Porch's kinds are served.
const PLACES: [(&str, &str); 4] = [
    ("config.porch.kpt.dev", "packagevariants"),
    ("config.porch.kpt.dev", "repositories"),
    ("porch.kpt.dev", "packagerevisions"),
    ("porch.kpt.dev", "packagerevisionresources"),
];

/// What `upstream.revision` of a PackageVariant, and `revision` of a PackageRevision, is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RevisionShape {
    /// A text such as `v1` or `main`: until the spring of 2025.
    Text,
    /// A number, with branches in `workspaceName`: since then.
    Number,
}

impl RevisionShape {
    fn schema(self) -> Value {
        json!({"type": match self { Self::Text => "string", Self::Number => "integer" }})
    }
}

/// Installs Porch's kinds, or changes their shape, and waits until they are served.
pub fn install(api: &Api, shape: RevisionShape) {
    let text = || json!({"type": "string"});
    let texts = || json!({"type": "object", "additionalProperties": {"type": "string"}});
    let object = |properties: Value| json!({"type": "object", "properties": properties});
    let condition = object(json!({"type": text(), "status": text(), "reason": text(), "message": text(),
        "lastTransitionTime": text(), "observedGeneration": {"type": "integer"}}));
    let conditions = json!({"type": "array", "items": condition});
    let mut upstream = json!({"repo": text(), "package": text(), "revision": shape.schema()});
    if shape == RevisionShape::Number {
        upstream["workspaceName"] = text();
    }
    let variant = object(json!({
        "upstream": object(upstream),
        "downstream": object(json!({"repo": text(), "package": text()})),
        "adoptionPolicy": text(), "deletionPolicy": text(), "labels": texts(), "annotations": texts(),
        "packageContext": object(json!({"data": texts()})),
        "pipeline": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
    }));
    let target = object(json!({"name": text()}));
    let variant_status =
        object(json!({"conditions": conditions, "downstreamTargets": {"type": "array", "items": target}}));
    let git = object(json!({"repo": text(), "directory": text(), "ref": text(), "commit": text()}));
    let free = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let revision = object(json!({
        "packageName": text(), "repository": text(), "workspaceName": text(), "revision": shape.schema(),
        "lifecycle": text(), "tasks": {"type": "array", "items": free},
    }));
    let revision_status = object(json!({"upstreamLock": object(json!({"type": text(), "git": git})),
        "deployment": {"type": "boolean"}, "conditions": conditions}));
    let resources = object(json!({"packageName": text(), "repository": text(), "workspaceName": text(),
        "revision": shape.schema(), "resources": texts()}));
    let repository = object(json!({"type": text(), "deployment": {"type": "boolean"}, "git": free}));
    let repository_status = object(json!({"conditions": conditions}));
    let kinds = [
        ("config.porch.kpt.dev", "PackageVariant", "packagevariants", variant, variant_status),
        ("config.porch.kpt.dev", "Repository", "repositories", repository, repository_status),
        ("porch.kpt.dev", "PackageRevision", "packagerevisions", revision, revision_status),
        (
            "porch.kpt.dev",
            "PackageRevisionResources",
            "packagerevisionresources",
            resources,
            object(json!({})),
        ),
    ];
    for (group, kind, plural, spec, status) in kinds {
        let schema = object(json!({"spec": spec, "status": status}));
        let version = json!({"name": "v1alpha1", "served": true, "storage": true,
            "schema": {"openAPIV3Schema": schema}, "subresources": {"status": {}}});
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.{group}")},
            "spec": {"group": group, "scope": "Namespaced", "versions": [version],
                "names": {"kind": kind, "listKind": format!("{kind}List"), "plural": plural,
                    "singular": kind.to_lowercase()}},
        });
        api.apply(&definition).unwrap();
    }
    for (group, plural) in PLACES {
        while api.read(&format!("/apis/{group}/v1alpha1/{plural}")).is_none() {
            thread::sleep(Duration::from_millis(50));
        }
    }
}

/// Removes Porch's kinds with all their objects, and waits until they are gone. The player of Porch must go on until
/// then: variants have a finalizer.
pub fn remove(api: &Api) {
    for (group, plural) in PLACES {
        api.delete("CustomResourceDefinition", "", &format!("{plural}.{group}"));
    }
    for (group, plural) in PLACES {
        while api.get("CustomResourceDefinition", "", &format!("{plural}.{group}")).is_some() {
            thread::sleep(Duration::from_millis(50));
        }
    }
}
