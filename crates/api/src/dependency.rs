//! What must be there first: one entry of `dependencies`, in every kind.

use linchpin_words::{CompareOperator, limits};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    common::{Cluster, DurationText, Expect, KindRef, LabelSelector},
    schema,
};

/// An object, or a selection of objects, and the state it must be in.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = schema::rules(&[
    ("has(self.resource) != has(self.ref)", "give exactly one of resource and ref"),
    ("!has(self.resource) || self.resource.contains('/') != has(self.selector)",
     "resource is kind/name, for example deployment/web; with a selector it is the kind only"),
    ("!has(self.ref) || has(self.ref.name) != has(self.selector)", "ref needs a name, or a selector instead of it"),
    ("!has(self.ref) || !has(self.ref.__namespace__) || !has(self.__namespace__)",
     "give the namespace once, in ref or beside it"),
    ("!has(self.expect) || has(self.selector)", "expect counts what a selector finds; it needs a selector"),
])))]
pub struct Dependency {
    /// What templates, conditions and status call it. Optional, except in a DependencyGroup.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = limits::LABEL), pattern(schema::NAME_PATTERN))]
    pub name: Option<String>,
    /// Which object, and in which state.
    #[serde(flatten)]
    pub object: RequiredObject,
    /// The object's namespace; this object's own if omitted, ignored for cluster-scoped kinds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = limits::LABEL))]
    pub namespace: Option<String>,
    /// False: do not ask for readiness, existence and the conditions given here are enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub require_ready: Option<bool>,
    /// How long it may take, counted from the start of its tier. No limit if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<DurationText>,
    /// How long it may go without making progress. No limit if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress_timeout: Option<DurationText>,
    /// The tier: the next higher one begins when all of this one are met.
    #[serde(default, skip_serializing_if = "schema::is_zero")]
    pub priority: i32,
    /// Whether to go on without it; its state is still known to conditions and templates.
    #[serde(default, skip_serializing_if = "schema::is_false")]
    pub optional: bool,
    /// Which of its events start actions with runOnChanges again; all if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 3), extend("x-kubernetes-list-type" = "set"))]
    pub watch_events: Option<Vec<WatchEvent>>,
}

/// An object, or a selection of objects, and the state it must be in, as every kind that waits says it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RequiredObject {
    /// The object as `kind/name`, `kind.group/name` or `plural.group/name`; short names do too. With a selector, the
    /// kind only. `version/kubernetes` is the server's version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = limits::REFERENCE), pattern(schema::REFERENCE_PATTERN))]
    pub resource: Option<String>,
    /// The object field by field, instead of resource.
    #[serde(default, rename = "ref", skip_serializing_if = "Option::is_none")]
    pub reference: Option<KindRef>,
    /// Objects by their labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<LabelSelector>,
    /// How many of the selected objects must be in the state; at least one if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect: Option<Expect>,
    /// One group of a DependencyGroup.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = limits::LABEL))]
    pub group: Option<String>,
    /// Where to look. Here if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<Cluster>,
    /// The state it must be in: Exists, Absent, Ready, Completed, Failed, or the name of a condition or phase. If
    /// omitted: Exists with cel or conditions, otherwise Ready for kinds whose readiness is known, otherwise Exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = limits::STATE))]
    pub state: Option<String>,
    /// A workload with so many available replicas is ready enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub min_replicas: Option<i32>,
    /// Comparisons that must hold, all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = limits::CONDITIONS), extend("x-kubernetes-list-type" = "atomic"))]
    pub conditions: Vec<Comparison>,
    /// A CEL expression on the object, `self`, that must be true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = limits::CEL))]
    pub cel: Option<String>,
}

/// What happens to a watched object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum WatchEvent {
    /// It appears.
    Create,
    /// It changes.
    Update,
    /// It goes.
    Delete,
}

/// A comparison of a field with a value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Comparison {
    /// Where the field is, in kubectl's JSONPath.
    #[schemars(length(min = 1, max = limits::JSON_PATH))]
    pub json_path: String,
    /// How it is compared; eq if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::compare_operator")]
    pub operator: Option<CompareOperator>,
    /// What it is compared with; a list for in and notIn, nothing for exists and absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::anything")]
    pub value: Option<Value>,
}

/// Schema rules cannot see a field of any type, so this is said with alternatives.
pub(crate) fn value_needed() -> Value {
    // Naming the operators that need a value, not those that need none, makes the answer "value: Required value".
    let comparing: Vec<_> =
        CompareOperator::ALL.into_iter().filter(|operator| operator.takes_value()).collect();
    json!([{"anyOf": [
        {"required": ["value"]},
        {"not": {"properties": {"operator": {"enum": comparing}}}},
    ]}])
}
