//! Sync: one source, applied as one transition when the states it relies on are observed together.
//!
//! [`source`] is where the objects come from, [`dependency`] what the Sync relies on, [`status`] what it says about itself.

pub mod dependency;
pub mod source;
pub mod status;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube_core::CustomResourceExt;
use kube_derive::CustomResource;
use linchpin_words::limits;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

pub use self::{
    dependency::{Gate, Latch, NeededFor, Strength, SyncDependency},
    source::SyncSource,
    status::SyncStatus,
};
use crate::{
    action::Adopt,
    app_bundle::component::Immutable,
    common::{Common, DeletionPolicy, DurationText, Target},
    ours::Ours,
    readiness_profile::ObjectTest,
    schema,
};

/// A source of objects, applied as one when what it depends on is there.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[kube(
    group = "linchpin.dev",
    version = "v1alpha1",
    kind = "Sync",
    plural = "syncs",
    singular = "sync",
    category = "linchpin",
    namespaced,
    status = "SyncStatus",
    doc = "A source of objects, applied as one when what it depends on is there.",
    derive = "PartialEq",
    derive = "Default",
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].status"#
    ),
    printcolumn(name = "Revision", type_ = "string", json_path = ".status.lastAppliedRevision"),
    printcolumn(name = "Message", type_ = "string", json_path = ".status.message"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    crates(kube_core = "::kube_core")
)]
pub struct SyncSpec {
    /// What every kind has.
    #[serde(flatten)]
    pub common: Common,
    /// Where the objects come from.
    pub source: SyncSource,
    /// What this revision is called, for those who depend on a version. If omitted: the tag of an OCI artifact, the
    /// part of a Flux revision before @, or the label app.kubernetes.io/version of the ConfigMap or Secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = limits::VERSION))]
    pub version: Option<String>,
    /// Whether objects that leave the source are deleted. True if omitted, except for Namespaces,
    /// CustomResourceDefinitions, PersistentVolumes and their claims.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prune: Option<bool>,
    /// Whether a source without objects is meant: everything is then deleted.
    #[serde(default, skip_serializing_if = "schema::is_false")]
    pub allow_empty: bool,
    /// Whether objects that somebody else made are taken over: they are reported (Never, the default), or updated and
    /// never deleted (Adopt).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Adopt")]
    pub adopt: Option<Adopt>,
    /// What happens when a field is changed that cannot be: it fails (Fail, the default), the object is deleted and
    /// made anew (Recreate), or it stays as it is (Ignore).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Immutable")]
    pub immutable: Option<Immutable>,
    /// How long one object may take to become ready once it is applied. No limit if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<DurationText>,
    /// The states of others that this Sync relies on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = limits::SYNC_DEPENDENCIES),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    pub dependencies: Vec<SyncDependency>,
    /// Objects of this Sync that others may depend on by a name that stays.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = limits::SYNC_EXPORTS),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    pub exports: Vec<SyncExport>,
    /// Capabilities that are there, for Syncs of this namespace, while this Sync is Ready.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = limits::SYNC_PROVIDES),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["capability"])
    )]
    pub provides: Vec<ProvidedCapability>,
    /// What those who depend on this Sync may hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dependents: Option<Dependents>,
}

/// An object of a Sync under a name that stays.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SyncExport {
    /// What others call it.
    #[schemars(length(min = 1, max = limits::LABEL), pattern(schema::NAME_PATTERN))]
    pub name: String,
    /// The object, one of those that this Sync applies.
    pub object: Target,
    /// When it is ready, instead of what its kind says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_when: Option<ObjectTest>,
}

/// A capability that a Sync brings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProvidedCapability {
    /// Its name: a DNS subdomain.
    #[schemars(length(min = 1, max = limits::NAME), pattern(SUBDOMAIN))]
    pub capability: String,
    /// Its version; the Sync's own if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = limits::VERSION))]
    pub version: Option<String>,
}

/// A DNS subdomain.
pub(crate) const SUBDOMAIN: &str = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";

/// What dependents may do to a Sync.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Dependents {
    /// Whether this Sync stays, when it is deleted, as long as Syncs that are applied depend on it. False if omitted.
    #[serde(default, skip_serializing_if = "schema::is_false")]
    pub protect: bool,
}

/// Fields of every other kind that would mean nothing here: a source is taken as it is.
const NOT_HERE: [&str; 2] = ["values", "valuesFrom"];

impl Ours for Sync {
    const DELETION_POLICY: DeletionPolicy = DeletionPolicy::Delete;

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
    schema::finish(Sync::crd(), |schema| {
        for meaningless in NOT_HERE {
            schema::without(schema, SPEC, meaningless);
        }
        let policy = format!("{SPEC}/deletionPolicy");
        schema::set(schema, &policy, "enum", json!(["Delete", "Orphan", "Retain"]));
        let meaning = "What happens to the objects that were created when the Sync is deleted: deleted in reverse order \
                       (Delete, the default) or kept (Orphan; Retain means the same).";
        schema::set(schema, &policy, "description", json!(meaning));
        schema::set(schema, &format!("{SPEC}/dependencies/items"), "required", json!(["name"]));
        let rules = schema::rules(&[
            (
                "self.metadata.name.size() <= 63",
                "the name of a Sync is the value of a label: it may have 63 characters",
            ),
            (
                "!has(self.spec.dependencies) || self.spec.dependencies.all(d, !has(d.sync) || has(d.sync.__namespace__) \
                 || d.sync.name != self.metadata.name)",
                "a Sync cannot depend on itself",
            ),
        ]);
        schema::set(schema, "", "x-kubernetes-validations", rules);
        let words = [
            (
                "phase",
                "How far it is: Pending, Waiting, Applying, Synced or Failed; Suspended or Deleting while it is that.",
            ),
            (
                "conditions",
                "Ready, Reconciling and Stalled; DependenciesReady, SourceReady, Linked, and others while they hold.",
            ),
            ("completionTime", "When all of the revision was ready for the first time."),
        ];
        schema::status(schema, &words, &[]);
    })
}
