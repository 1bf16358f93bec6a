//! The custom resources, one file per kind, and their definitions for the API server.
//!
//! Types and schema only, no behaviour: what a field means is decided where the object is compiled to a plan. A
//! field that the API server cannot check completely (durations, references, expressions) is text here, so that an
//! object with a mistake in it can still be read and its error reported. Field names are the documents' own and are
//! never renamed. No spec field has a default in the schema (but a BootDependency's `timeout`,
//! whose document has one): what the user wrote is what is compared.

#![allow(
    clippy::doc_markdown,
    reason = "doc comments become the schema's descriptions, which people read with kubectl explain"
)]
#![allow(clippy::duplicated_attributes, reason = "columns of a definition may well have the same type")]

pub mod action;
pub mod app_bundle;
pub mod boot_dependency;
pub mod bundle_revision;
pub mod capability;
pub mod common;
pub mod consist_binding;
pub mod dependency;
pub mod dependency_group;
pub mod global_dependency;
pub mod journal;
pub mod ours;
pub mod pod_transition_rule;
pub mod readiness_profile;
pub mod resource_dependency;
pub mod status;
pub mod sync;

mod schema;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use linchpin_words::{hash::sha256_hex, keys};

pub use self::{
    action::Action,
    app_bundle::{AppBundle, AppBundleSpec, AppBundleStatus, BundleGroup, Component},
    boot_dependency::{BootDependency, BootDependencySpec, BootDependencyStatus, BootEntry},
    bundle_revision::{BundleRevision, BundleRevisionSpec},
    capability::{Capability, CapabilitySpec, CapabilityStatus},
    common::Common,
    consist_binding::{ConsistBinding, ConsistBindingSpec, ConsistBindingStatus},
    dependency::Dependency,
    dependency_group::{DependencyGroup, DependencyGroupSpec, Group},
    global_dependency::{GlobalDependency, GlobalDependencySpec, GlobalDependencyStatus},
    journal::JournalText,
    ours::{Account, FailedPart, OurStatus, Ours},
    pod_transition_rule::{PodTransitionRule, PodTransitionRuleSpec, PodTransitionRuleStatus},
    readiness_profile::{ReadinessProfile, ReadinessProfileSpec},
    resource_dependency::{ResourceDependency, ResourceDependencySpec},
    status::{CommonStatus, Status},
    sync::{Sync, SyncDependency, SyncSpec, SyncStatus},
};

/// Says on a definition whose it is and which schema.
pub fn mark(definition: &mut CustomResourceDefinition) {
    // A definition is made of texts and numbers, which are always written.
    let spec = serde_json::to_vec(&definition.spec).unwrap_or_default();
    let mut hash = sha256_hex(&spec);
    hash.truncate(16);
    definition.metadata.annotations.get_or_insert_default().insert(keys::SCHEMA_HASH.to_owned(), hash);
    let part_of = ("app.kubernetes.io/part-of".to_owned(), "linchpin".to_owned());
    definition.metadata.labels.get_or_insert_default().extend([part_of]);
}

/// A definition as a YAML manifest, the form it is committed and shipped in.
pub fn to_yaml(definition: &CustomResourceDefinition) -> Result<String, serde_saphyr::ser::Error> {
    serde_saphyr::to_string(definition)
}
