//! What to do then: one entry of `actions`, in every kind.

use linchpin_words::limits;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::{
    common::{Cluster, DurationText, Target},
    schema,
};

/// A change to make once everything it needs is there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(
    extend("x-kubernetes-validations" = schema::rules(&[
        ("self.type == 'create' ? has(self.resource) : self.type == 'template' ? has(self.template) : \
          self.type == 'patch' ? has(self.patch) : self.type == 'delete' ? has(self.delete) : \
          self.type == 'wait' ? has(self.wait) : self.type == 'exec' ? has(self.exec) : true",
         "the body must fit the type: create needs resource, template needs template, apply needs apply, patch needs \
          patch, delete needs delete, wait needs wait, exec needs exec"),
        ("(has(self.resource) ? 1 : 0) + (has(self.template) ? 1 : 0) + (has(self.patch) ? 1 : 0) + \
          (has(self.delete) ? 1 : 0) + (has(self.wait) ? 1 : 0) + (has(self.exec) ? 1 : 0) <= 1",
         "an action has one body: give only the one that fits its type"),
        ("self.type != 'apply' || !(has(self.template) || has(self.patch) || has(self.delete) || has(self.wait) || \
          has(self.exec))",
         "type apply takes its objects from apply, or one object from resource"),
        ("!has(self.onExisting) || self.type == 'create'", "onExisting goes with type create only"),
        ("!has(self.adopt) || self.type in ['template', 'apply']", "adopt goes with types template and apply only"),
        ("!has(self.after) || !has(self.name) || !(self.name in self.after)", "an action cannot come after itself"),
    ])),
)]
pub struct Action {
    /// What status, other actions and annotations call it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = limits::LABEL), pattern(schema::NAME_PATTERN))]
    pub name: Option<String>,
    /// What to do.
    #[serde(rename = "type")]
    pub kind: ActionType,
    /// Its place: lower ones first, equal ones side by side.
    #[serde(default, skip_serializing_if = "schema::is_zero")]
    pub priority: i32,
    /// The actions it comes after, by name. Given, also as an empty list, it replaces the order by priority.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(max = limits::AFTER),
        inner(length(min = 1, max = limits::LABEL)),
        extend("x-kubernetes-list-type" = "set")
    )]
    pub after: Option<Vec<String>>,
    /// Do it only if this is true when its turn comes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<Guard>,
    /// If it fails, nothing new starts.
    #[serde(default, skip_serializing_if = "schema::is_false")]
    pub fail_fast: bool,
    /// How long to pause after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_after: Option<DurationText>,
    /// With watchMode: do it again whenever what it reads has changed.
    #[serde(default, skip_serializing_if = "schema::is_false")]
    pub run_on_changes: bool,
    /// How long it may be tried. No limit if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<DurationText>,
    /// Take its texts as they are: `{{ }}` in them is no template.
    #[serde(default, skip_serializing_if = "schema::is_false")]
    pub raw: bool,
    /// Where to act. Here if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<Cluster>,
    /// For create: what to do if the object is there already. Skip (the default) leaves it, Adopt updates it, Fail
    /// fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "OnExisting")]
    pub on_existing: Option<OnExisting>,
    /// For template and apply: whether an object that somebody else created is taken over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Adopt")]
    pub adopt: Option<Adopt>,
    /// For create (and apply): the object. Every string in it may be a template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::whole_object")]
    pub resource: Option<Map<String, Value>>,
    /// For template: a Go template of one or more YAML documents, applied server-side.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = limits::TEMPLATE_SOURCE))]
    pub template: Option<String>,
    /// For apply: an object, a list of objects, or a text of YAML documents, applied server-side. Strings may be
    /// templates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::anything")]
    pub apply: Option<Value>,
    /// For patch: which object and how.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch: Option<Patch>,
    /// For delete: which object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delete: Option<Delete>,
    /// For wait: how long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<DurationText>,
    /// For exec: what to run and where.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exec: Option<Exec>,
}

/// Schema rules cannot see `apply`, which is of any type, so what concerns it is said with alternatives.
pub(crate) fn body_needed() -> Value {
    let is_apply = json!({"required": ["type"], "properties": {"type": {"enum": ["apply"]}}});
    json!([
        {"anyOf": [{"required": ["apply"]}, {"required": ["resource"]}, {"not": is_apply}]},
        {"anyOf": [{"not": {"required": ["apply"]}}, is_apply]},
        {"not": {"required": ["apply", "resource"]}},
    ])
}

/// The kinds of action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ActionType {
    /// Create an object if it is missing.
    Create,
    /// Render a template and apply what it says.
    Template,
    /// Apply objects.
    Apply,
    /// Patch an object.
    Patch,
    /// Delete an object and wait until it is gone.
    Delete,
    /// Let time pass.
    Wait,
    /// Run a command in a container.
    Exec,
}

impl ActionType {
    /// The word as written in a spec.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Template => "template",
            Self::Apply => "apply",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::Wait => "wait",
            Self::Exec => "exec",
        }
    }
}

/// When an action is done at all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = schema::rules(&[
    ("has(self.dependency) != has(self.expression)", "give exactly one of dependency and expression"),
    ("!has(self.type) || (self.type == 'dependency') == has(self.dependency)",
     "type dependency needs dependency, type cel needs expression"),
    ("!has(self.state) || has(self.dependency)", "state is that of a dependency; an expression has none"),
])))]
pub struct Guard {
    /// On a dependency's state, or on a CEL expression; decided by the other fields if omitted.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "GuardType")]
    pub kind: Option<GuardType>,
    /// The dependency, by its name or exactly as its resource is written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = limits::REFERENCE))]
    pub dependency: Option<String>,
    /// The state the dependency must be in; the one it is required in if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = limits::STATE))]
    pub state: Option<String>,
    /// Do it only if the rest is false.
    #[serde(default, skip_serializing_if = "schema::is_false")]
    pub negate: bool,
    /// A CEL expression on `dependencies` and `values`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = limits::CEL))]
    pub expression: Option<String>,
}

/// What a guard looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum GuardType {
    /// A dependency's state.
    Dependency,
    /// A CEL expression.
    Cel,
}

/// What create does with an object that is there already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum OnExisting {
    /// Leaves it as it is.
    #[default]
    Skip,
    /// Updates it; it stays somebody else's and is never deleted by us.
    Adopt,
    /// Fails.
    Fail,
}

/// Whether an object that somebody else created is taken over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Adopt {
    /// No; it is reported.
    Never,
    /// It is updated, and never deleted by us.
    Adopt,
}

/// A change to an object that is there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Patch {
    /// Which object.
    pub target: Target,
    /// How the patch is written; strategic if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "PatchType")]
    pub patch_type: Option<PatchType>,
    /// The patch as JSON or YAML text; it may be a template.
    #[schemars(length(min = 1, max = limits::PATCH_SOURCE))]
    pub patch: String,
}

/// How a patch is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum PatchType {
    /// Strategic merge patch, for Kubernetes' own kinds.
    #[default]
    Strategic,
    /// JSON merge patch.
    Merge,
    /// JSON patch: a list of operations.
    Json,
    /// Server-side apply of the fields given.
    Apply,
}

/// A deletion.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Delete {
    /// Which object.
    pub target: Target,
    /// What happens to what it owns; Background if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Propagation")]
    pub propagation: Option<Propagation>,
}

/// What happens to what a deleted object owns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Propagation {
    /// It is deleted after it.
    #[default]
    Background,
    /// It is deleted before it.
    Foreground,
    /// It is kept.
    Orphan,
}

/// A command in a container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = schema::rules(&[
    ("self.target.kind.lowerAscii() in ['pod', 'pods', 'po']", "a command runs in a Pod: target.kind must be Pod"),
    (&format!("!has(self.timeout) || duration(self.timeout) <= duration('{}s')", limits::EXEC_SECONDS),
     "a command may run for an hour at most: what takes longer belongs in a Job"),
])))]
pub struct Exec {
    /// The Pod.
    pub target: Target,
    /// The container; the Pod's default one if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = limits::LABEL))]
    pub container: Option<String>,
    /// Program and arguments; no shell. Each may be a template.
    #[schemars(
        length(min = 1, max = limits::COMMAND),
        inner(length(max = limits::COMMAND_WORD)),
        extend("x-kubernetes-list-type" = "atomic")
    )]
    pub command: Vec<String>,
    /// How long it may run: five minutes if omitted, an hour at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<DurationText>,
    /// What to do when it cannot be known whether it ran: leave it (AtMostOnce, the default) or run it again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Delivery")]
    pub delivery: Option<Delivery>,
}

/// How often a command may run when an outcome is lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Delivery {
    /// Once, or not at all.
    #[default]
    AtMostOnce,
    /// Once or more.
    AtLeastOnce,
}
