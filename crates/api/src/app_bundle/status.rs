//! What an AppBundle says about itself.
//!
//! Phases, messages and entries per group and component are the document's; reasons, readiness, blockers and objects
//! beside the first are added. Everything but the journal is a view, never read back but for moments.

use linchpin_words::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    ours::{FailedPart, OurStatus},
    schema,
    status::{CommonStatus, DependencyStatus},
};

/// The status of an AppBundle.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppBundleStatus {
    /// What every kind says.
    #[serde(flatten)]
    pub common: CommonStatus,
    /// Each group, those whose turn has not come included.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub group_statuses: Vec<BundleGroupStatus>,
    /// Each entry of the bundle's own requires.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requires: Vec<DependencyStatus>,
    /// What there is in the Porch Repositories that components take packages from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub porch_repositories: Vec<RepositoryStatus>,
}

impl AppBundleStatus {
    /// All components, with their groups.
    fn components(&self) -> impl Iterator<Item = (&str, &ComponentStatus)> {
        self.group_statuses
            .iter()
            .flat_map(|group| group.component_statuses.iter().map(|one| (group.name.as_str(), one)))
    }
}

impl OurStatus for AppBundleStatus {
    fn common(&self) -> &CommonStatus {
        &self.common
    }

    fn common_mut(&mut self) -> &mut CommonStatus {
        &mut self.common
    }

    fn troubles(&self) -> Vec<FailedPart<'_>> {
        let failed = self.components().filter(|(_, one)| one.phase == "Failed");
        failed
            .map(|(group, one)| FailedPart {
                what: format!("component {group}/{}", one.name),
                state: &one.phase,
                reason: &one.reason,
                message: &one.message,
                since: one.since,
            })
            .collect()
    }

    fn entry_reasons(&self) -> Vec<&str> {
        let unready = self.components().map(|(_, one)| one).filter(|one| !one.ready);
        let groups = self.group_statuses.iter().flat_map(|group| &group.requires);
        let own = self.components().flat_map(|(_, one)| &one.requires);
        let waits = self.requires.iter().chain(groups).chain(own).filter(|entry| !entry.met);
        unready.map(|one| &one.reason).chain(waits.map(|entry| &entry.reason)).map(String::as_str).collect()
    }
}

/// A group as far as it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BundleGroupStatus {
    /// Its name.
    pub name: String,
    /// How far it is: Pending, Deploying, Deployed or Failed.
    pub phase: String,
    /// How far it is, in one line.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Each of its components.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub component_statuses: Vec<ComponentStatus>,
    /// Each entry of the group's own requires.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requires: Vec<DependencyStatus>,
}

/// A component as far as it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ComponentStatus {
    /// Its name.
    pub name: String,
    /// How far it is: Pending, Deploying, Deployed or Failed.
    pub phase: String,
    /// How far it is, in one line.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Its object; the first where it has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_ref: Option<ResourceRef>,
    /// Why, in one word.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Whether it is applied and all its objects are ready now.
    #[serde(default)]
    pub ready: bool,
    /// Since when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::moment")]
    pub since: Option<Timestamp>,
    /// Each object, where it has several: of a Porch package its variant, and all that it contains.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<ResourceStatus>,
    /// The Porch package it comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub package: Option<PackageStatus>,
    /// Each entry of the component's own requires.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requires: Vec<DependencyStatus>,
}

/// An object that a component made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceRef {
    /// Its API version.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Its namespace; none for cluster-scoped kinds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// One of several objects of a component.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceStatus {
    /// The object.
    pub resource_ref: ResourceRef,
    /// Whether it is ready.
    pub ready: bool,
    /// Why, in one word.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Why, in one line.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// A Porch package that a component comes from, as far as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PackageStatus {
    /// The Repository object it is in.
    pub repository: String,
    /// The package.
    pub name: String,
    /// The revision of it that is asked for now: a number, or a branch.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub revision: String,
    /// The newest revision of it that is published.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub latest_revision: String,
    /// The published PackageRevision that Porch made of it, whose objects are waited for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub package_revision: String,
}

/// A Repository of Porch, and the packages in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RepositoryStatus {
    /// Its name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// Whether Porch says that it is ready.
    #[serde(default)]
    pub ready: bool,
    /// Why not, in one line.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The packages in it, by their names; the first ones where there are many.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub packages: Vec<RepositoryPackage>,
    /// How many packages there are.
    #[serde(default)]
    pub package_count: i64,
}

/// A package in a Repository.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RepositoryPackage {
    /// Its name.
    pub name: String,
    /// Its published revisions, the newest first; no more than a few.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub revisions: Vec<String>,
}
