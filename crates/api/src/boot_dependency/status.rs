//! What a BootDependency says about itself.

use linchpin_words::{Condition, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    journal::Journal,
    ours::OurStatus,
    schema,
    status::{self, Blocker},
};

/// The status of a BootDependency.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BootDependencyStatus {
    /// The generation that all of this is about; -1 until the object has been looked at.
    #[serde(default = "status::never_observed")]
    pub observed_generation: i64,
    /// How far it is, in one word: Pending, Waiting, Ready, Suspended, Failed or Deleting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// How far it is, in one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// How many entries hold, of how many: `1/3`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved_dependencies: Option<String>,
    /// Ready, Reconciling and Stalled.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
    /// What is not there yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocked_by: Vec<Blocker>,
    /// Each entry of dependsOn, in its order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub entries: Vec<EntryStatus>,
    /// Each workload whose pods are held or carry our containers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workloads: Vec<WorkloadStatus>,
    /// What it waits for and makes, as `linchpin tree` and `linchpin explain` read it. Not for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edges: Option<String>,
    /// What the operator must remember. Not for people, and not to be edited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::whole_object")]
    pub journal: Option<Journal>,
}

impl Default for BootDependencyStatus {
    fn default() -> Self {
        Self {
            observed_generation: status::never_observed(),
            phase: None,
            message: None,
            resolved_dependencies: None,
            conditions: Vec::new(),
            blocked_by: Vec::new(),
            entries: Vec::new(),
            workloads: Vec::new(),
            edges: None,
            journal: None,
        }
    }
}

impl OurStatus for BootDependencyStatus {
    fn phase(&self) -> Option<&str> {
        self.phase.as_deref()
    }

    fn message(&self) -> Option<&str> {
        self.message.as_deref()
    }

    fn conditions(&self) -> &[Condition] {
        &self.conditions
    }

    fn journal(&self) -> Option<&Journal> {
        self.journal.as_ref()
    }

    fn set_journal(&mut self, journal: Option<Journal>) {
        self.journal = journal;
    }

    fn blocked_by(&self) -> &[Blocker] {
        &self.blocked_by
    }

    fn edges(&self) -> Option<&str> {
        self.edges.as_deref()
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
