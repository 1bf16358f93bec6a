//! Shapes that appear in several kinds, the same in each.

mod cluster;
mod duration_text;
mod reference;
mod selector;
mod values;

use linchpin_words::limits;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use self::{
    cluster::{Cluster, ControlPlaneRef, Impersonate, KubeconfigSecretRef},
    duration_text::DurationText,
    reference::{KindRef, Target},
    selector::{Expect, LabelRequirement, LabelSelector, SelectorOperator},
    values::{ValuesFrom, ValuesSource},
};
use crate::schema;

/// What every kind of ours has in its spec.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Common {
    /// Which objects of a namespace are looked after first; lower comes first.
    #[serde(default, skip_serializing_if = "schema::is_zero")]
    pub priority: i32,
    /// How long everything may take, counted from the last change of the spec. No limit if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub global_timeout: Option<DurationText>,
    /// The ServiceAccount, in the object's own namespace, that everything is read and written as.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = limits::NAME))]
    pub service_account_name: Option<String>,
    /// While true nothing starts and no clock runs.
    #[serde(default, skip_serializing_if = "schema::is_false")]
    pub suspend: bool,
    /// What happens to the objects that were created when this one is deleted: kept (Retain, the default) or deleted
    /// in reverse order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "DeletionPolicy")]
    pub deletion_policy: Option<DeletionPolicy>,
    /// Whether a failed object begins again by itself once the cause is gone (Automatic, the default) or waits for a
    /// change of the spec or a fresh `linchpin.dev/requested-at`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Recovery")]
    pub recovery: Option<Recovery>,
    /// Values for templates, as `.Values`; they win over those of valuesFrom.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::free_object")]
    pub values: Option<Map<String, Value>>,
    /// ConfigMaps and Secrets whose keys are values for templates; later ones win.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = limits::VALUES_FROM), extend("x-kubernetes-list-type" = "atomic"))]
    pub values_from: Vec<ValuesFrom>,
    /// Where to look and act, unless an entry says otherwise. Here if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<Cluster>,
    /// What to do once when it fails.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = limits::ON_FAILURE), extend("x-kubernetes-list-type" = "atomic"))]
    pub on_failure: Vec<OnFailure>,
}

/// The common part of a kind that leaves all of it out.
pub(crate) static NOTHING: Common = Common {
    priority: 0,
    global_timeout: None,
    service_account_name: None,
    suspend: false,
    deletion_policy: None,
    recovery: None,
    values: None,
    values_from: Vec::new(),
    cluster: None,
    on_failure: Vec::new(),
};

/// What happens to created objects when their creator is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum DeletionPolicy {
    /// They are kept.
    Retain,
    /// They are deleted in reverse order.
    Delete,
    /// They are kept: the word for it in an AppBundle.
    Orphan,
}

impl DeletionPolicy {
    /// The words that kinds with things of their own take; a bundle takes Orphan too.
    pub(crate) const PLAIN: [&'static str; 2] = ["Retain", "Delete"];
}

/// How a failed object begins again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Recovery {
    /// By itself, once the cause is gone.
    Automatic,
    /// When the spec changes or a fresh look is asked for.
    Manual,
}

/// A reaction to a failure, once per generation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = schema::rules(&[
    ("self.type == 'event' ? has(self.message) : (has(self.phase) || has(self.message))",
     "an event needs a message, a status needs a phase or a message"),
    ("self.type == 'status' || !has(self.phase)", "phase goes with type status only"),
])))]
pub struct OnFailure {
    /// An Event on the object, or a word and message in its status.
    #[serde(rename = "type")]
    pub kind: OnFailureType,
    /// The message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = limits::USER_MESSAGE))]
    pub message: Option<String>,
    /// The word shown as phase while failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = limits::STATE))]
    pub phase: Option<String>,
}

/// How a failure is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum OnFailureType {
    /// As an Event.
    Event,
    /// In status.
    Status,
}
