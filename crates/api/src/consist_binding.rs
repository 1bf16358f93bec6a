//! ConsistBinding: which adapter serves an employer, and how far that is.
//!
//! Made and kept by the consist process, one for each employer that is served; it is the claim that no other adapter
//! serves the same employer. It owns nothing and has no finalizer: it goes before the employer's clean finalizer does.

use std::collections::BTreeMap;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube_core::CustomResourceExt;
use kube_derive::CustomResource;
use linchpin_words::{Timestamp, limits};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{schema, status::CommonStatus};

/// Kind, namespace and name with slashes between them.
const KEY: usize = 2 * limits::LABEL + limits::NAME + 2;

/// Which adapter serves an employer, and how far that is. Written by linchpin consist; not to be edited.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[kube(
    group = "linchpin.dev",
    version = "v1alpha1",
    kind = "ConsistBinding",
    plural = "consistbindings",
    singular = "consistbinding",
    shortname = "cb",
    category = "linchpin",
    namespaced,
    status = "ConsistBindingStatus",
    doc = "Which adapter serves an employer, and how far that is. Written by linchpin consist; not to be edited.",
    derive = "PartialEq",
    derive = "Default",
    printcolumn(name = "Adapter", type_ = "string", json_path = ".spec.adapter"),
    printcolumn(name = "Employer", type_ = "string", json_path = ".spec.key"),
    printcolumn(name = "Attached", type_ = "string", json_path = ".status.attached"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].status"#
    ),
    printcolumn(name = "Message", type_ = "string", json_path = ".status.message"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    crates(kube_core = "::kube_core")
)]
pub struct ConsistBindingSpec {
    /// The adapter that serves the employer, by the name it is enabled under.
    #[schemars(length(min = 1, max = limits::NAME))]
    pub adapter: String,
    /// The employer.
    pub employer: EmployerName,
    /// The kind of its employees.
    pub employee: EmployeeKind,
    /// The labels that select its employees.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "labels")]
    pub selector: BTreeMap<String, String>,
    /// Whether pods are marked and held by their lifecycle.
    #[serde(default)]
    pub follow_pod_ops_lifecycle: bool,
    /// The employer's key in the entries of pods: Kind/namespace/name.
    #[schemars(length(max = KEY))]
    pub key: String,
    /// The finalizer that protects its pods.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = limits::NAME))]
    pub finalizer: String,
}

/// An employer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EmployerName {
    /// Its API version.
    #[schemars(length(max = limits::NAME))]
    pub api_version: String,
    /// Its kind.
    #[schemars(length(max = limits::LABEL))]
    pub kind: String,
    /// Its name.
    #[schemars(length(max = limits::NAME))]
    pub name: String,
    /// Which incarnation of that name.
    #[schemars(length(max = limits::LABEL))]
    pub uid: String,
}

/// The kind of employees.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EmployeeKind {
    /// Its API version.
    #[schemars(length(max = limits::NAME))]
    pub api_version: String,
    /// The kind.
    #[schemars(length(max = limits::LABEL))]
    pub kind: String,
}

/// How far an employment is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConsistBindingStatus {
    /// What every kind says.
    #[serde(flatten)]
    pub common: CommonStatus,
    /// How many employees are attached, of how many that are selected: 2/3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attached: Option<String>,
    /// What is known of the provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<ProviderStatus>,
    /// The employer's own items at the provider.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub employer: Vec<EmployerItem>,
    /// How many employees are in which state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counts: Option<EmployeeCounts>,
    /// The first two hundred employees, those that are not settled first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub employees: Vec<EmployeeItem>,
}

/// What is known of the provider.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProviderStatus {
    /// Whether it answered last time.
    #[serde(default)]
    pub reachable: bool,
    /// When what it last answered was asked; written when something else is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::moment")]
    pub last_answer: Option<Timestamp>,
    /// Why it did not answer.
    #[serde(default)]
    pub message: String,
}

/// One of the employer's own items at the provider.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EmployerItem {
    /// Its id.
    pub id: String,
    /// Attached, Attaching, Draining, Detached, Failed or Unknown.
    pub state: String,
    /// Since when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::moment")]
    pub since: Option<Timestamp>,
    /// Why it is not as it should be.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// How many employees are in which state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct EmployeeCounts {
    /// Selected by the employer.
    pub selected: i64,
    /// In traffic.
    pub attached: i64,
    /// Leaving traffic.
    pub draining: i64,
    /// Out of traffic, as they should be.
    pub detached: i64,
    /// Refused by the provider.
    pub failed: i64,
    /// Of which nothing is known.
    pub unknown: i64,
}

/// One employee.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EmployeeItem {
    /// Its name.
    pub name: String,
    /// Its id at the provider.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub id: String,
    /// Attached, Attaching, Draining, Detached, Failed or Unknown.
    pub state: String,
    /// Why it is not as it should be.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Since when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::moment")]
    pub since: Option<Timestamp>,
    /// Whether it carries the protection finalizer.
    #[serde(default)]
    pub protected: bool,
    /// The operations that are under way on it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub operations: Vec<OperationItem>,
}

/// An operation on a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OperationItem {
    /// Its id.
    pub id: String,
    /// Its type.
    #[serde(rename = "type", default, skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// How far it is: PreCheck, Preparing, Operate, PostCheck or Completing.
    pub stage: String,
    /// Since when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::moment")]
    pub since: Option<Timestamp>,
}

/// Labels that an employer selects by.
fn labels(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "object",
        "x-kubernetes-map-type": "atomic",
        "additionalProperties": {"type": "string", "maxLength": limits::LABEL}
    })
}

/// The definition for the API server.
pub fn definition() -> CustomResourceDefinition {
    let words = [
        (
            "observedGeneration",
            "The generation of the binding that this is about; -1 until it has been looked at.",
        ),
        ("phase", "Synced, Syncing, Degraded or Deleting."),
    ];
    let unsaid = ["startTime", "completionTime", "edges", "journal"];
    schema::finish(ConsistBinding::crd(), |schema| schema::status(schema, &words, &unsaid))
}
