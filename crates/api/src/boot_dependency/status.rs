//! What a BootDependency says about itself.

use linchpin_words::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ours::OurStatus, schema, status::CommonStatus};

/// The status of a BootDependency.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BootDependencyStatus {
    /// What every kind says.
    #[serde(flatten)]
    pub common: CommonStatus,
    /// How many entries hold, of how many: `1/3`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved_dependencies: Option<String>,
    /// Each entry of dependsOn, in its order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub entries: Vec<EntryStatus>,
    /// Each workload whose pods are held or carry our containers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workloads: Vec<WorkloadStatus>,
}

impl OurStatus for BootDependencyStatus {
    fn common(&self) -> &CommonStatus {
        &self.common
    }

    fn common_mut(&mut self) -> &mut CommonStatus {
        &mut self.common
    }

    fn entry_reasons(&self) -> Vec<&str> {
        let unmet = self.entries.iter().filter(|entry| !entry.met);
        unmet.map(|entry| entry.reason.as_str()).collect()
    }
}

/// An entry as it was seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EntryStatus {
    /// Its name, or its target and port, or its resource.
    pub name: String,
    /// NotFound, NotReady, Ready, Completed, Failed or Unknown.
    pub state: String,
    /// Whether it holds.
    pub met: bool,
    /// Why, in one word.
    pub reason: String,
    /// Why, in one line.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Since when it is in this state.
    #[schemars(schema_with = "schema::moment")]
    pub since: Timestamp,
    /// When its reason changed last.
    #[schemars(schema_with = "schema::moment")]
    pub last_change: Timestamp,
    /// Where it was seen from: API (what the API server says) or Operator (a connection from where the operator runs).
    pub observed_from: String,
}

/// A workload as it was seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadStatus {
    /// Its API version.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Current, Outdated, Missed, Absent, Skipped, NotOptedIn or Refused.
    pub state: String,
    /// How many of its pods are held by a scheduling gate of ours.
    pub held: i64,
    /// Since when it is in this state.
    #[schemars(schema_with = "schema::moment")]
    pub since: Timestamp,
    /// More about it, in one line.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}
