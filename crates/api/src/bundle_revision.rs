//! BundleRevision: what an AppBundle was, what changed, and how that went.
//!
//! A record written by the operator and owned by the bundle; the last ten are kept. It has no status of its own: the
//! result is part of the record. `spec.rollback` of the bundle names one by its number.

use std::collections::BTreeMap;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube_core::CustomResourceExt;
use kube_derive::CustomResource;
use linchpin_words::{Timestamp, limits};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::schema;

/// One revision of an AppBundle. Written by the operator; not to be edited.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[kube(
    group = "app.example.com",
    version = "v1alpha1",
    kind = "BundleRevision",
    plural = "bundlerevisions",
    singular = "bundlerevision",
    shortname = "abrev",
    category = "linchpin",
    namespaced,
    doc = "One revision of an AppBundle. Written by the operator; not to be edited.",
    derive = "PartialEq",
    printcolumn(name = "Bundle", type_ = "string", json_path = ".spec.bundle"),
    printcolumn(name = "Revision", type_ = "integer", json_path = ".spec.revision"),
    printcolumn(name = "Result", type_ = "string", json_path = ".spec.result"),
    printcolumn(name = "Changes", type_ = "string", json_path = ".spec.changes"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    crates(kube_core = "::kube_core")
)]
pub struct BundleRevisionSpec {
    /// The bundle, in the same namespace.
    #[schemars(length(min = 1, max = limits::NAME))]
    pub bundle: String,
    /// Its number, counted up from 1: what spec.rollback names.
    #[schemars(range(min = 1))]
    pub revision: i64,
    /// The generation of the bundle it was taken of.
    pub generation: i64,
    /// When it was first seen.
    #[schemars(schema_with = "bounded_moment")]
    pub changed_at: Timestamp,
    /// What is different from the revision before: components as group/component, other fields by their path.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = limits::CHANGES),
        inner(length(max = limits::NAME)),
        extend("x-kubernetes-list-type" = "atomic")
    )]
    pub changes: Vec<String>,
    /// How it went: Deploying, Deployed, Failed, or Superseded by a later one before it was deployed.
    #[schemars(length(max = limits::STATE))]
    pub result: String,
    /// The result in one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = limits::MESSAGE))]
    pub message: Option<String>,
    /// A fingerprint of the snapshot.
    #[schemars(length(max = limits::LABEL))]
    pub digest: String,
    /// A fingerprint of each component and of each other field, from which the changes of the next revision are known.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "fingerprints")]
    pub parts: BTreeMap<String, String>,
    /// What it deployed, with a digest in the place of the data of Secrets.
    #[schemars(schema_with = "schema::whole_object")]
    pub snapshot: Map<String, Value>,
}

/// Short texts by name.
fn fingerprints(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "object",
        "x-kubernetes-map-type": "atomic",
        "additionalProperties": {"type": "string", "maxLength": limits::LABEL}
    })
}

/// A moment, of bounded length.
fn bounded_moment(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"type": "string", "format": "date-time", "maxLength": 40})
}

/// The definition for the API server.
pub(crate) fn definition() -> CustomResourceDefinition {
    schema::finish(BundleRevision::crd(), |_| ())
}
