//! What an object says about itself: the same for every kind of ours.
//!
//! Everything but the journal is a view for people and other tools, written by the operator and never read back.

use linchpin_words::{Condition, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    journal::JournalText,
    ours::{FailedPart, OurStatus},
    schema,
};

/// The part of a status that every kind has. What a kind says in other words, or does not say, its definition has so
/// (`schema::status`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommonStatus {
    /// The generation that all of this is about; -1 until the object has been looked at.
    #[serde(default = "never_observed")]
    pub observed_generation: i64,
    /// How far it is, in one word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// How far it is, in one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Ready, Reconciling and Stalled.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
    /// What it waits for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocked_by: Vec<Blocker>,
    /// When the current run began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::moment")]
    pub start_time: Option<Timestamp>,
    /// When it was done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::moment")]
    pub completion_time: Option<Timestamp>,
    /// What it waits for and makes, for `linchpin tree` and `explain`. Not for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edges: Option<String>,
    /// What the operator must remember. Not for people, and not to be edited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::whole_object")]
    pub journal: Option<JournalText>,
}

/// What an object that was never looked at says.
pub(crate) const fn never_observed() -> i64 {
    -1
}

impl Default for CommonStatus {
    fn default() -> Self {
        Self {
            observed_generation: never_observed(),
            phase: None,
            message: None,
            conditions: Vec::new(),
            blocked_by: Vec::new(),
            start_time: None,
            completion_time: None,
            edges: None,
            journal: None,
        }
    }
}

impl CommonStatus {
    /// Whether something has been said about this generation.
    pub fn speaks_of(&self, generation: i64) -> bool {
        self.observed_generation == generation && self.phase.is_some()
    }
}

/// The status of a ResourceDependency or DependencyGroup.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// What every kind says.
    #[serde(flatten)]
    pub common: CommonStatus,
    /// Each dependency. In a DependencyGroup they are listed with their group.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dependencies: Vec<DependencyStatus>,
    /// Each action. In a DependencyGroup they are listed with their group.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub actions: Vec<ActionStatus>,
    /// Each group of a DependencyGroup.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<GroupStatus>,
}

impl Status {
    fn every_action(&self) -> impl Iterator<Item = &ActionStatus> {
        self.actions.iter().chain(self.groups.iter().flat_map(|group| &group.actions))
    }

    fn every_dependency(&self) -> impl Iterator<Item = &DependencyStatus> {
        self.dependencies.iter().chain(self.groups.iter().flat_map(|group| &group.dependencies))
    }
}

impl OurStatus for Status {
    fn common(&self) -> &CommonStatus {
        &self.common
    }

    fn common_mut(&mut self) -> &mut CommonStatus {
        &mut self.common
    }

    fn troubles(&self) -> Vec<FailedPart<'_>> {
        let bad = self
            .every_action()
            .filter(|action| ["Failed", "Unknown", "Running"].contains(&action.state.as_str()));
        bad.map(|action| FailedPart {
            what: format!("action {}", action.name),
            state: &action.state,
            reason: &action.reason,
            message: &action.message,
            since: Some(action.since),
        })
        .collect()
    }

    fn entry_reasons(&self) -> Vec<&str> {
        let actions = self.every_action().map(|action| &action.reason);
        let waits = self.every_dependency().filter(|entry| !entry.met).map(|entry| &entry.reason);
        actions.chain(waits).map(String::as_str).collect()
    }
}

/// An object that a status speaks of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ObjectName {
    /// Its API version, as discovery resolved it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    /// Its kind.
    pub kind: String,
    /// Its namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Its name; none for a selection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// Something that is waited for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Blocker {
    /// Why, in one word: ours, or the one that the object's own controller gave.
    pub reason: String,
    /// Why, in one line.
    pub message: String,
    /// The object that is waited for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<ObjectName>,
    /// The dependency or action that waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// Since when.
    #[schemars(schema_with = "schema::moment")]
    pub since: Timestamp,
    /// What that object waits for in turn, down to the root cause, one line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chain: Vec<String>,
}

/// A dependency as it was seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DependencyStatus {
    /// Its name, or its resource where it has none.
    pub name: String,
    /// What it refers to, as written.
    pub resource: String,
    /// NotFound, NotReady, Ready, Completed, Failed, TimedOut, Error or Unknown.
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
    /// What the reference was resolved to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved: Option<ObjectName>,
    /// How many objects a selector found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matched: Option<i64>,
}

/// An action as far as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ActionStatus {
    /// Its name, or its type and target where it has none.
    pub name: String,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Waiting, Running, Completed, Skipped, Failed or Unknown.
    pub state: String,
    /// Why, in one word: ours, or the one that the object's own controller gave.
    pub reason: String,
    /// Why, in one line.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Since when.
    #[schemars(schema_with = "schema::moment")]
    pub since: Timestamp,
    /// How often it was tried in this run.
    #[serde(default, skip_serializing_if = "no_attempts")]
    #[schemars(with = "i64")]
    pub attempts: u32,
}

/// Whether an action was never tried, for leaving the number out.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn no_attempts(attempts: &u32) -> bool {
    *attempts == 0
}

/// A group as far as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GroupStatus {
    /// Its name.
    pub name: String,
    /// How far it is: Pending, Waiting, Running, Ready, Completed or Failed.
    pub phase: String,
    /// Whether all its dependencies are met and its actions done.
    pub ready: bool,
    /// Why, in one word: ours, or the one that the object's own controller gave.
    pub reason: String,
    /// Why, in one line.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Since when.
    #[schemars(schema_with = "schema::moment")]
    pub since: Timestamp,
    /// Each of its dependencies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dependencies: Vec<DependencyStatus>,
    /// Each of its actions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub actions: Vec<ActionStatus>,
}
