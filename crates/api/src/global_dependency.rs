//! GlobalDependency: what every Sync relies on, imposed from outside.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube_core::CustomResourceExt;
use kube_derive::CustomResource;
use linchpin_words::limits;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    capability::{AccountRef, BEGAN, WAITS, plain_dependency},
    common::{self, Common, DurationText, LabelSelector},
    ours::{Account, OurStatus, Ours},
    schema,
    status::CommonStatus,
    sync::{Strength, SyncDependency, status::SyncDependencyStatus},
};

/// Something that must be there before any Sync it is about is applied.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[kube(
    group = "linchpin.dev",
    version = "v1alpha1",
    kind = "GlobalDependency",
    plural = "globaldependencies",
    singular = "globaldependency",
    shortname = "gdep",
    category = "linchpin",
    status = "GlobalDependencyStatus",
    doc = "Something that must be there before any Sync it is about is applied.",
    derive = "PartialEq",
    derive = "Default",
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].status"#
    ),
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "Held", type_ = "integer", json_path = ".status.subjects.held"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "Message", type_ = "string", json_path = ".status.message"),
    crates(kube_core = "::kube_core")
)]
#[schemars(extend("x-kubernetes-validations" = schema::rules(&[
    ("has(self.serviceAccount) || (has(self.dependency.capability) && has(self.dependency.capability.name))",
     "name the serviceAccount that the dependency is looked at as"),
    ("!has(self.dependency.sync) || has(self.dependency.sync.__namespace__)",
     "name the namespace of the sync: a GlobalDependency has none"),
    ("!has(self.patience) || (has(self.strength) && self.strength == 'Soft')", "patience goes with strength Soft"),
    ("!has(self.dependency.timeout) || !has(self.strength) || self.strength != 'Soft'",
     "dependency.timeout goes with strength Hard; Soft has patience"),
    ("!has(self.patience) || (duration(self.patience) >= duration('1s') && duration(self.patience) <= duration('24h'))",
     "patience is between 1s and 24h"),
])))]
pub struct GlobalDependencySpec {
    /// As whom the dependency is looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account: Option<AccountRef>,
    /// What must be there.
    pub dependency: SyncDependency,
    /// Which Syncs wait for it. All that make pods if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subjects: Option<Subjects>,
    /// Which Syncs do not wait, beside all that the dependency itself needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exemptions: Option<Exemptions>,
    /// Which transitions are held: Create and Update if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 2), extend("x-kubernetes-list-type" = "set"))]
    pub gates: Option<Vec<GlobalGate>>,
    /// Whether it is waited for in any case (Hard, the default), or as long as patience lasts (Soft).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Strength")]
    pub strength: Option<Strength>,
    /// How long it is waited for, where it is Soft: 1s to 24h, 5m if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patience: Option<DurationText>,
    /// What is done: transitions are held (Gate).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Enforcement")]
    pub enforcement: Option<Enforcement>,
    /// While true nobody is held.
    #[serde(default, skip_serializing_if = "schema::is_false")]
    pub suspend: bool,
}

/// Which Syncs a rule is about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Subjects {
    /// Labels of their namespaces; all namespaces if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace_selector: Option<LabelSelector>,
    /// Their own labels; all Syncs if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<LabelSelector>,
    /// What they apply: something that makes pods (Pods, the default), or Anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Contains")]
    pub contains: Option<Contains>,
}

/// What the subjects of a rule apply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Contains {
    /// Something that makes pods.
    #[default]
    Pods,
    /// Anything.
    Anything,
}

/// Which Syncs a rule leaves alone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Exemptions {
    /// Those of these namespaces.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = limits::GLOBAL_EXEMPTIONS),
        inner(length(min = 1, max = limits::LABEL)),
        extend("x-kubernetes-list-type" = "set")
    )]
    pub namespaces: Vec<String>,
    /// Those with these labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<LabelSelector>,
    /// These.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = limits::GLOBAL_EXEMPTIONS), extend("x-kubernetes-list-type" = "atomic"))]
    pub syncs: Vec<SyncName>,
}

/// A Sync by its name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SyncName {
    /// Its namespace.
    #[schemars(length(min = 1, max = limits::LABEL))]
    pub namespace: String,
    /// Its name.
    #[schemars(length(min = 1, max = limits::LABEL))]
    pub name: String,
}

/// The transitions that a rule may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum GlobalGate {
    /// The first one.
    Create,
    /// Every later one.
    Update,
}

/// What a rule does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Enforcement {
    /// It holds transitions.
    #[default]
    Gate,
}

/// The status of a GlobalDependency.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GlobalDependencyStatus {
    /// What every kind says.
    #[serde(flatten)]
    pub common: CommonStatus,
    /// The dependency as it was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dependency: Option<SyncDependencyStatus>,
    /// How many Syncs it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subjects: Option<SubjectCount>,
    /// Syncs that it leaves alone because its dependency needs them; no more than 64.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exempt: Vec<String>,
    /// How many those are.
    #[serde(default)]
    pub exempt_count: i64,
}

/// How many Syncs a rule is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SubjectCount {
    /// All of them.
    pub total: i64,
    /// Those that wait for it now.
    pub held: i64,
}

impl OurStatus for GlobalDependencyStatus {
    fn common(&self) -> &CommonStatus {
        &self.common
    }

    fn common_mut(&mut self) -> &mut CommonStatus {
        &mut self.common
    }

    fn entry_reasons(&self) -> Vec<&str> {
        self.dependency.iter().filter(|entry| !entry.met).map(|entry| entry.reason.as_str()).collect()
    }
}

impl Ours for GlobalDependency {
    fn definitions() -> Vec<CustomResourceDefinition> {
        vec![schema::finish(Self::crd(), |schema| {
            let dependency = "/properties/spec/properties/dependency";
            plain_dependency(schema, dependency);
            schema::without(schema, &format!("{dependency}/properties"), "name");
            schema::without(schema, dependency, "required");
            let words =
                [("phase", "How far it is: Pending, Waiting, Ready, Failed or Suspended."), BEGAN, WAITS];
            schema::status(schema, &words, &["completionTime"]);
        })]
    }

    fn common(&self) -> &Common {
        &common::NOTHING
    }

    fn account(&self) -> Option<Account<'_>> {
        let account = self.spec.service_account.as_ref();
        Some(account.map_or(Account { namespace: "", name: "" }, |account| Account {
            namespace: &account.namespace,
            name: &account.name,
        }))
    }
}
