//! What a Sync says about itself. Everything but the journal is a view, never read back but for moments.

use linchpin_words::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    app_bundle::status::ResourceRef,
    ours::{FailedPart, OurStatus},
    schema,
    status::CommonStatus,
};

/// The status of a Sync.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SyncStatus {
    /// What every kind says.
    #[serde(flatten)]
    pub common: CommonStatus,
    /// The newest revision that was read of the source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_revision: Option<String>,
    /// The last revision that was admitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_attempted_revision: Option<String>,
    /// The last revision of which every object was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_applied_revision: Option<String>,
    /// The last revision of which every object was ready once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_ready_revision: Option<String>,
    /// The version of the last applied revision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The source as it was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<SourceStatus>,
    /// Each dependency.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dependencies: Vec<SyncDependencyStatus>,
    /// The soft dependencies that the last admission went past.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub broken_soft: Vec<String>,
    /// What it waits for, directly and through others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting_on: Vec<String>,
    /// Those that hold its deletion.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held_by: Vec<String>,
    /// How far the revision is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<SyncProgress>,
    /// Its objects, those that are not settled first; no more than 200.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<SyncResource>,
    /// How many objects are not listed.
    #[serde(default, skip_serializing_if = "is_none_left")]
    pub more_resources: i64,
    /// Each export.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exports: Vec<ExportStatus>,
}

/// Whether nothing is left out of a list, for leaving the number out.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_none_left(number: &i64) -> bool {
    *number == 0
}

impl OurStatus for SyncStatus {
    fn common(&self) -> &CommonStatus {
        &self.common
    }

    fn common_mut(&mut self) -> &mut CommonStatus {
        &mut self.common
    }

    fn troubles(&self) -> Vec<FailedPart<'_>> {
        let failed = self.resources.iter().filter(|one| one.state == "Failed");
        failed
            .map(|one| FailedPart {
                what: match &one.object.namespace {
                    Some(namespace) => format!("{} {namespace}/{}", one.object.kind, one.object.name),
                    None => format!("{} {}", one.object.kind, one.object.name),
                },
                state: &one.state,
                reason: &one.reason,
                message: &one.message,
                since: None,
            })
            .collect()
    }

    fn entry_reasons(&self) -> Vec<&str> {
        let waits = self.dependencies.iter().filter(|entry| !entry.met).map(|entry| &entry.reason);
        let unready = self.resources.iter().filter(|one| one.state != "Ready").map(|one| &one.reason);
        waits.chain(unready).map(String::as_str).collect()
    }
}

/// A source as it was read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SourceStatus {
    /// Its revision.
    pub revision: String,
    /// The digest of what was downloaded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Its size in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<i64>,
    /// When this revision was first seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::moment")]
    pub fetched_at: Option<Timestamp>,
}

/// A dependency as it was seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SyncDependencyStatus {
    /// Its name.
    pub name: String,
    /// What it is, such as Sync data/db.
    pub depends_on: String,
    /// The state of it, and the transition that relies on it: Available ← Defined.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub relation: String,
    /// Hard or Soft.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub strength: String,
    /// Absent, Defined, Available, Completed, Failed, TimedOut, Error or Unknown.
    pub state: String,
    /// Whether it is met.
    pub met: bool,
    /// Why, in one word: ours, or the one that the object's own controller gave.
    pub reason: String,
    /// Why, in one line.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Since when.
    #[schemars(schema_with = "schema::moment")]
    pub since: Timestamp,
    /// The revision of it that was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_revision: Option<String>,
    /// The version of it that was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_version: Option<String>,
    /// When it was met once and for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::moment")]
    pub latched_at: Option<Timestamp>,
    /// Whether the last admission went past it.
    #[serde(default, skip_serializing_if = "schema::is_false")]
    pub broken: bool,
    /// The Sync that makes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provided_by: Option<String>,
}

/// How far a revision is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SyncProgress {
    /// How many layers its objects have.
    pub layers: i64,
    /// The layer that is under way, counted from 1.
    pub layer: i64,
    /// How many objects there are.
    pub objects: i64,
    /// How many of them are written.
    pub applied: i64,
    /// How many of them are ready.
    pub ready: i64,
}

/// An object of a Sync.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SyncResource {
    /// The object.
    #[serde(flatten)]
    pub object: ResourceRef,
    /// Its layer: the longest way to it, counted from 1.
    pub layer: i64,
    /// Waiting, Applied, Ready or Failed.
    pub state: String,
    /// Why, in one word.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Why, in one line.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// An export as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExportStatus {
    /// Its name.
    pub name: String,
    /// The object.
    pub object: ResourceRef,
    /// Absent, Defined, Available, Completed, Failed or Unknown.
    pub state: String,
    /// Why, in one word.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}
