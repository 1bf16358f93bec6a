//! Capability: what the platform says that the cluster is able to do.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube_core::CustomResourceExt;
use kube_derive::CustomResource;
use linchpin_words::limits;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{
    common::{self, Common},
    ours::{Account, OurStatus, Ours},
    schema,
    status::CommonStatus,
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
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CapabilityStatus {
    /// What every kind says.
    #[serde(flatten)]
    pub common: CommonStatus,
    /// Each dependency.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dependencies: Vec<SyncDependencyStatus>,
    /// Its version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

impl OurStatus for CapabilityStatus {
    fn common(&self) -> &CommonStatus {
        &self.common
    }

    fn common_mut(&mut self) -> &mut CommonStatus {
        &mut self.common
    }

    fn entry_reasons(&self) -> Vec<&str> {
        self.dependencies.iter().filter(|entry| !entry.met).map(|entry| entry.reason.as_str()).collect()
    }
}

/// What is said of a kind that only waits.
pub(crate) const BEGAN: (&str, &str) = ("startTime", "When it was first looked at.");
pub(crate) const WAITS: (&str, &str) =
    ("edges", "What it waits for, for `linchpin tree` and `explain`. Not for people.");

/// Fields of a Sync's dependency that mean something only where there is something to apply.
const NOT_HERE: [&str; 6] = ["neededFor", "gates", "strength", "patience", "latch", "guard"];

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
            let words = [("phase", "How far it is: Pending, Waiting, Ready or Failed."), BEGAN, WAITS];
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
