//! What a Sync relies on: the state of a dependency ← the transition of the dependent.

use linchpin_words::limits;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    common::{DurationText, Expect, LabelSelector},
    schema,
    sync::SUBDOMAIN,
};

/// What a range of versions must look like, as far as a rule can check: the parser knows all of it.
const RANGE_RULES: [(&str, &str); 6] = [
    ("!self.contains('|')", "a version range has no |: write comparators such as >=14 <16"),
    ("!self.contains('^')", "a version range has no ^: write comparators such as >=14 <16"),
    ("!self.contains('~')", "a version range has no ~: write comparators such as >=14 <16"),
    ("!self.contains('*')", "a version range has no *: write comparators such as >=14 <15"),
    (
        "!self.matches('(^|[ ,.<>=!])v?[xX]([ ,.]|$)')",
        "a version range has no x: write comparators such as >=14 <15",
    ),
    (
        "self.matches('^[ ,]*(>=|<=|!=|==|=|>|<)?[ ]*[^ ,<>=!]+([ ,]+(>=|<=|!=|==|=|>|<)?[ ]*[^ ,<>=!]+){0,7}[ ,]*$')",
        "write a version range as comparators such as >=14 <16, at most 8 of = != > >= < <= with a version each",
    ),
];

/// Something that a Sync relies on: exactly one of sync, object, objects and capability.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = schema::rules(&[
    ("(has(self.sync) ? 1 : 0) + (has(self.object) ? 1 : 0) + (has(self.objects) ? 1 : 0) + \
      (has(self.capability) ? 1 : 0) == 1", "give exactly one of sync, object, objects and capability"),
    ("!has(self.capability) || (!has(self.state) && !has(self.requiredStatus))",
     "a capability is there or not: it has no state"),
    ("!(has(self.state) && has(self.requiredStatus))", "give one of state and requiredStatus"),
    ("!has(self.sync) || !has(self.state) || self.state in ['Defined', 'Available', 'Completed']",
     "the state of a Sync is Defined, Available or Completed"),
    ("!has(self.export) || has(self.sync)", "export goes with sync"),
    ("!has(self.export) || !has(self.sync) || !has(self.sync.export)", "name the export once: beside sync or in it"),
    ("!has(self.versionPath) || has(self.version)", "versionPath goes with version"),
    ("!has(self.versionPath) || has(self.object) || has(self.objects)", "versionPath goes with object and objects"),
    ("!has(self.guard) || has(self.version)", "guard goes with version"),
    ("!has(self.patience) || (has(self.strength) ? self.strength == 'Soft' : (has(self.neededFor) && \
      self.neededFor == 'Available' && (!has(self.state) || self.state.lowerAscii() in ['available', 'ready', 'current']) && \
      (!has(self.requiredStatus) || self.requiredStatus == 'Current')))",
     "patience goes with strength Soft: a Hard dependency has a timeout"),
    ("!has(self.timeout) || (has(self.strength) ? self.strength == 'Hard' : !(has(self.neededFor) && \
      self.neededFor == 'Available' && (!has(self.state) || self.state.lowerAscii() in ['available', 'ready', 'current']) && \
      (!has(self.requiredStatus) || self.requiredStatus == 'Current')))",
     "timeout goes with strength Hard: a Soft dependency has patience"),
    ("!has(self.patience) || (duration(self.patience) >= duration('1s') && duration(self.patience) <= duration('24h'))",
     "patience is between 1s and 24h"),
])))]
pub struct SyncDependency {
    /// What status and orders call it.
    #[serde(default)]
    #[schemars(length(min = 1, max = limits::LABEL), pattern(schema::NAME_PATTERN))]
    pub name: String,
    /// Another Sync, as a whole or one export of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sync: Option<SyncRef>,
    /// One export of the Sync, instead of the whole; the same as `sync.export`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = limits::LABEL))]
    pub export: Option<String>,
    /// One object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<ObjectRef>,
    /// Several objects of one kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objects: Option<ObjectsRef>,
    /// Something that the cluster must be able to do. It is never installed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capability: Option<CapabilityRef>,
    /// The state it must be in. Of a Sync: Defined (applied), Available (the default) or Completed (it was Available
    /// with this revision once). Of objects: Defined, Available, Completed, or the name of a condition or phase; if
    /// omitted Available for kinds whose readiness is known, otherwise Defined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = limits::STATE))]
    pub state: Option<String>,
    /// Starling's word for state: Current is Available, InProgress is Defined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "RequiredStatus")]
    pub required_status: Option<RequiredStatus>,
    /// Which transition of this Sync relies on it: Defined (the default) or Available.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "NeededFor")]
    pub needed_for: Option<NeededFor>,
    /// Which transitions it holds: Create and Update if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 4), extend("x-kubernetes-list-type" = "set"))]
    pub gates: Option<Vec<Gate>>,
    /// Whether it is waited for in any case (Hard), or as long as patience lasts (Soft). If omitted: Soft where
    /// Available is needed for Available, else Hard.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Strength")]
    pub strength: Option<Strength>,
    /// How long a Soft dependency is waited for: 1s to 24h, 5m if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patience: Option<DurationText>,
    /// How long a Hard dependency may take before the Sync fails. No limit if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<DurationText>,
    /// Whether being met once is enough: never (None), for good (Once), or until there is something else to apply
    /// (PerRevision). If omitted: Once for Completed, else None.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Latch")]
    pub latch: Option<Latch>,
    /// The versions it must have: comparators such as >=14 <16, all of which hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = limits::RANGE), extend("x-kubernetes-validations" = schema::rules(&RANGE_RULES)))]
    pub version: Option<String>,
    /// Where an object says its version, in kubectl's JSONPath; its label app.kubernetes.io/version if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = limits::JSON_PATH))]
    pub version_path: Option<String>,
    /// Whether the version also holds the dependency's own update. It does not yet: only false is taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-validations" = schema::rules(&[(
        "!self", "a dependency's own update is not held yet: leave guard out, or set it to false",
    )])))]
    pub guard: Option<bool>,
    /// A CEL expression on the dependency, dep, and this Sync, self, that must be true beside everything else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = limits::CEL))]
    pub ready_expr: Option<String>,
}

impl SyncDependency {
    /// The Sync that is meant, with the export wherever it is written.
    pub fn on_sync(&self) -> Option<SyncRef> {
        let sync = self.sync.clone()?;
        let export = sync.export.clone().or_else(|| self.export.clone());
        Some(SyncRef { export, ..sync })
    }
}

/// Another Sync.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SyncRef {
    /// Its name.
    #[schemars(length(min = 1, max = limits::LABEL))]
    pub name: String,
    /// Its namespace; this Sync's own if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = limits::LABEL))]
    pub namespace: Option<String>,
    /// One export of it, instead of the whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = limits::LABEL))]
    pub export: Option<String>,
}

/// One object: resource, or kind and name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = schema::rules(&[
    ("has(self.resource) ? (!has(self.kind) && !has(self.name) && !has(self.apiVersion)) : (has(self.kind) && has(self.name))",
     "give resource, or kind and name"),
])))]
pub struct ObjectRef {
    /// The object as `kind/name`, `kind.group/name` or `plural.group/name`; short names do too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = limits::REFERENCE), pattern(schema::REFERENCE_PATTERN))]
    pub resource: Option<String>,
    /// API version, such as `apps/v1`; found by discovery if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = limits::NAME))]
    pub api_version: Option<String>,
    /// Kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = limits::LABEL))]
    pub kind: Option<String>,
    /// Name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = limits::NAME))]
    pub name: Option<String>,
    /// Namespace; this Sync's own if omitted, ignored for cluster-scoped kinds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = limits::LABEL))]
    pub namespace: Option<String>,
}

/// Several objects of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ObjectsRef {
    /// API version, such as `v1`; found by discovery if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = limits::NAME))]
    pub api_version: Option<String>,
    /// Kind.
    #[schemars(length(min = 1, max = limits::LABEL))]
    pub kind: String,
    /// Namespace; this Sync's own if omitted, ignored for cluster-scoped kinds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = limits::LABEL))]
    pub namespace: Option<String>,
    /// Their labels.
    pub selector: LabelSelector,
    /// How many of them must be in the state; at least one if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect: Option<Expect>,
}

/// Something that the cluster must be able to do: name, or api.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = schema::rules(&[
    ("has(self.name) != has(self.api)", "give exactly one of name and api"),
])))]
pub struct CapabilityRef {
    /// The name of a Capability object, or of what a Sync of the same namespace provides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = limits::NAME), pattern(SUBDOMAIN))]
    pub name: Option<String>,
    /// A kind that must be served.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api: Option<ApiRef>,
}

/// A kind that must be served.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApiRef {
    /// Its group; the core group if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = limits::GROUP_NAME))]
    pub group: Option<String>,
    /// Its version; any if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = limits::LABEL))]
    pub version: Option<String>,
    /// Its kind.
    #[schemars(length(min = 1, max = limits::LABEL))]
    pub kind: String,
}

/// Starling's words for states.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum RequiredStatus {
    /// Available.
    Current,
    /// Defined.
    InProgress,
}

/// The transition of a Sync that relies on something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum NeededFor {
    /// To be applied at all.
    #[default]
    Defined,
    /// To become ready.
    Available,
}

impl NeededFor {
    /// The word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Defined => "Defined",
            Self::Available => "Available",
        }
    }
}

/// The transitions of a Sync.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Gate {
    /// The first one.
    Create,
    /// Every later one.
    Update,
    /// Every write, also those that put right what drifted.
    Reapply,
    /// The deletion of the Sync.
    Delete,
}

/// How firmly a dependency is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Strength {
    /// In any case.
    Hard,
    /// As long as patience lasts.
    Soft,
}

impl Strength {
    /// The word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Hard => "Hard",
            Self::Soft => "Soft",
        }
    }
}

/// For how long being met once is enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Latch {
    /// Not at all.
    None,
    /// For good.
    Once,
    /// Until there is something else to apply.
    PerRevision,
}
