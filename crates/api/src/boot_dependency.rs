//! BootDependency: pods start when what they need is there.

mod entry;
mod status;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube_core::CustomResourceExt;
use kube_derive::CustomResource;
use linchpin_words::limits;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

pub use self::{
    entry::{BootEntry, CaBundleRef, HttpHeader, HttpScheme, KeyRef, ValueFrom},
    status::{BootDependencyStatus, EntryStatus, WorkloadStatus},
};
use crate::{
    common::{Common, LabelSelector},
    ours::Ours,
    schema,
};

/// Holds the pods of a workload until what they need is there.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[kube(
    group = "core.bootchain-operator.ruicoelho.dev",
    version = "v1alpha1",
    kind = "BootDependency",
    plural = "bootdependencies",
    singular = "bootdependency",
    category = "linchpin",
    namespaced,
    status = "BootDependencyStatus",
    doc = "Holds the pods of a workload until what they need is there.",
    derive = "PartialEq",
    derive = "Default",
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Ready')].status"
    ),
    printcolumn(name = "Resolved", type_ = "string", json_path = ".status.resolvedDependencies"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase", priority = 1),
    printcolumn(name = "Message", type_ = "string", json_path = ".status.message", priority = 1),
    crates(kube_core = "::kube_core")
)]
#[schemars(extend("x-kubernetes-validations" = schema::rules(&[
    ("!(has(self.targetRef) && has(self.selector))", "give one of targetRef and selector"),
])))]
pub struct BootDependencySpec {
    /// What every kind has; here no more of it than serviceAccountName and suspend.
    #[serde(flatten)]
    pub common: Common,
    /// Whose pods are held: an object of any kind, in the same namespace, that makes pods. If this and selector are
    /// omitted: the Deployment of the BootDependency's own name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_ref: Option<WorkloadRef>,
    /// Which pods are held, by their labels, whoever made them; instead of targetRef.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<LabelSelector>,
    /// How pods are held: by an init container for each entry (InitContainer, the default), or by a scheduling gate
    /// that is taken away when all entries hold (SchedulingGate).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Strategy")]
    pub strategy: Option<Strategy>,
    /// When a change reaches workloads that exist: when their template changes next (OnNextRollout, the default), or at
    /// once (Immediate).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Rollout")]
    pub rollout: Option<Rollout>,
    /// What happens to a pod that has waited for an entry for its timeout: it does not start (Fail, the default), or it
    /// starts without (Proceed).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "OnTimeout")]
    pub on_timeout: Option<OnTimeout>,
    /// What must be there first.
    #[schemars(
        length(min = 1, max = limits::BOOT_ENTRIES),
        extend("x-kubernetes-list-type" = "atomic"),
        extend("x-kubernetes-validations" = schema::names_are_unique("entries of dependsOn"))
    )]
    pub depends_on: Vec<BootEntry>,
}

/// An object that makes pods.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadRef {
    /// Its API version, such as `apps/v1`; its version does not matter. If omitted: that of Kubernetes' own kind, for a
    /// kind of somebody else any group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = limits::NAME))]
    pub api_version: Option<String>,
    /// Its kind.
    #[schemars(length(min = 1, max = limits::LABEL))]
    pub kind: String,
    /// Its name.
    #[schemars(length(min = 1, max = limits::NAME))]
    pub name: String,
}

/// How pods are held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Strategy {
    /// By init containers.
    #[default]
    InitContainer,
    /// By a scheduling gate.
    SchedulingGate,
}

/// When a change reaches workloads that exist.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Rollout {
    /// When their template changes next.
    #[default]
    OnNextRollout,
    /// At once.
    Immediate,
}

/// What happens to a pod that has waited long enough.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum OnTimeout {
    /// It does not start.
    #[default]
    Fail,
    /// It starts without.
    Proceed,
}

/// Fields of every other kind that would mean nothing here.
const NOT_HERE: [&str; 8] = [
    "priority",
    "globalTimeout",
    "deletionPolicy",
    "recovery",
    "values",
    "valuesFrom",
    "cluster",
    "onFailure",
];

impl Ours for BootDependency {
    fn definitions() -> Vec<CustomResourceDefinition> {
        vec![definition()]
    }

    fn common(&self) -> &Common {
        &self.spec.common
    }
}

/// The definition for the API server.
fn definition() -> CustomResourceDefinition {
    const SPEC: &str = "/properties/spec/properties";
    const ENTRY: &str = "/properties/spec/properties/dependsOn/items/properties";
    schema::finish(BootDependency::crd(), |schema| {
        for meaningless in NOT_HERE {
            schema::without(schema, SPEC, meaningless);
        }
        let account = "The ServiceAccount, in the object's own namespace, that the objects, Secrets and ConfigMaps of \
                       entries are read as.";
        schema::set(schema, &format!("{SPEC}/serviceAccountName"), "description", json!(account));
        let suspend =
            "While true nothing is looked at, changed or released, and no clock runs. Pods are still held.";
        schema::set(schema, &format!("{SPEC}/suspend"), "description", json!(suspend));
        // The one default in a spec of ours: the document has it.
        schema::set(schema, &format!("{ENTRY}/timeout"), "default", json!(entry::DEFAULT_TIMEOUT));
        for (field, words) in entry::OBJECT {
            schema::set(schema, &format!("{ENTRY}/{field}"), "description", json!(words));
        }
        for (field, later) in entry::not_served() {
            schema::set(schema, ENTRY, field, later);
        }
        let words = [
            ("phase", "How far it is, in one word: Pending, Waiting, Ready, Suspended, Failed or Deleting."),
            ("blockedBy", "What is not there yet."),
            (
                "edges",
                "What it waits for and makes, as `linchpin tree` and `linchpin explain` read it. Not for people.",
            ),
        ];
        schema::status(schema, &words, &["startTime", "completionTime"]);
    })
}
