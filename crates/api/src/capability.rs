//! Capability: what the platform says that the cluster is able to do.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube_core::CustomResourceExt;
use kube_derive::CustomResource;
use linchpin_words::{Condition, Timestamp, limits};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{
    common::{self, Common},
    journal::Journal,
    ours::{Account, OurStatus, Ours},
    schema,
    status::{self, Blocker},
    sync::{SyncDependency, status::SyncDependencyStatus},
};

/// Says that the cluster is able to do something, while what that takes is there.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[kube(
    group = "linchpin.dev",
    version = "v1alpha1",
    kind = "Capability",
    plural = "capabilities",
    singular = "capability",
    shortname = "cap",
    category = "linchpin",
    status = "CapabilityStatus",
    doc = "Says that the cluster is able to do something, while what that takes is there. Its name is the capability's.",
    derive = "PartialEq",
    derive = "Default",
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].status"#
    ),
    printcolumn(name = "Version", type_ = "string", json_path = ".status.version"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "Message", type_ = "string", json_path = ".status.message"),
    crates(kube_core = "::kube_core")
)]
#[schemars(extend("x-kubernetes-validations" = schema::rules(&[
    ("!has(self.dependencies) || self.dependencies.size() == 0 || has(self.serviceAccount)",
     "name the serviceAccount that the dependencies are looked at as"),
    ("!has(self.dependencies) || self.dependencies.all(d, !has(d.sync) || has(d.sync.__namespace__))",
     "name the namespace of each sync: a Capability has none"),
])))]
pub struct CapabilitySpec {
    /// Its version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = limits::VERSION))]
    pub version: Option<String>,
    /// As whom the dependencies are looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account: Option<AccountRef>,
    /// What it takes; none: that this object is there is enough.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = limits::SYNC_DEPENDENCIES),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    pub dependencies: Vec<SyncDependency>,
}

/// A ServiceAccount of any namespace that is served.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AccountRef {
    /// Its namespace.
    #[schemars(length(min = 1, max = limits::LABEL))]
    pub namespace: String,
    /// Its name.
    #[schemars(length(min = 1, max = limits::NAME))]
    pub name: String,
}

/// The status of a Capability.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CapabilityStatus {
    /// The generation that all of this is about; -1 until the object has been looked at.
    #[serde(default = "status::never_observed")]
    pub observed_generation: i64,
    /// How far it is: Pending, Waiting, Ready or Failed.
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
    /// Each dependency.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dependencies: Vec<SyncDependencyStatus>,
    /// Its version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// When it was first looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::moment")]
    pub start_time: Option<Timestamp>,
    /// What it waits for, for `linchpin tree` and `explain`. Not for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edges: Option<String>,
    /// What the operator must remember. Not for people, and not to be edited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::whole_object")]
    pub journal: Option<Journal>,
}

impl Default for CapabilityStatus {
    fn default() -> Self {
        Self {
            observed_generation: status::never_observed(),
            phase: None,
            message: None,
            conditions: Vec::new(),
            blocked_by: Vec::new(),
            dependencies: Vec::new(),
            version: None,
            start_time: None,
            edges: None,
            journal: None,
        }
    }
}

impl OurStatus for CapabilityStatus {
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

    fn edges(&self) -> Option<&str> {
        self.edges.as_deref()
    }

    fn blocked_by(&self) -> &[Blocker] {
        &self.blocked_by
    }

    fn entry_reasons(&self) -> Vec<&str> {
        self.dependencies.iter().filter(|entry| !entry.met).map(|entry| entry.reason.as_str()).collect()
    }
}

/// Fields of a Sync's dependency that mean something only where there is something to apply.
const NOT_HERE: [&str; 7] = ["neededFor", "gates", "strength", "patience", "timeout", "latch", "guard"];

/// Takes away what only a Sync's own dependencies have.
pub(crate) fn plain_dependency(schema: &mut serde_json::Value, path: &str) {
    for meaningless in NOT_HERE {
        schema::without(schema, &format!("{path}/properties"), meaningless);
    }
    let kept = ["neededFor", "guard", "patience", "timeout", "strength"];
    let rules = schema.pointer(&format!("{path}/x-kubernetes-validations")).cloned().unwrap_or(json!([]));
    let speaks = |rule: &serde_json::Value| {
        let text = rule["rule"].as_str().unwrap_or_default();
        kept.iter().any(|field| text.contains(&format!("self.{field}")))
    };
    let rules: Vec<_> =
        rules.as_array().into_iter().flatten().filter(|rule| !speaks(rule)).cloned().collect();
    schema::set(schema, path, "x-kubernetes-validations", json!(rules));
}

impl Ours for Capability {
    fn definitions() -> Vec<CustomResourceDefinition> {
        vec![schema::finish(Self::crd(), |schema| {
            let entry = "/properties/spec/properties/dependencies/items";
            plain_dependency(schema, entry);
            schema::set(schema, entry, "required", json!(["name"]));
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
