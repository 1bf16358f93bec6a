//! ReadinessProfile: what being ready means for a kind that nobody taught us.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube_core::CustomResourceExt;
use kube_derive::CustomResource;
use linchpin_words::limits;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    common::{self, Common},
    dependency::Comparison,
    ours::{OurStatus, Ours},
    schema,
    status::CommonStatus,
};

/// Says, for the whole cluster, when objects of a kind are ready and when they have failed.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[kube(
    group = "linchpin.dev",
    version = "v1alpha1",
    kind = "ReadinessProfile",
    plural = "readinessprofiles",
    singular = "readinessprofile",
    shortname = "rprof",
    category = "linchpin",
    status = "ReadinessProfileStatus",
    doc = "Says, for the whole cluster, when objects of a kind are ready and when they have failed.",
    derive = "PartialEq",
    derive = "Default",
    printcolumn(name = "Kind", type_ = "string", json_path = ".spec.kind"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].status"#
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "Message", type_ = "string", json_path = ".status.message"),
    crates(kube_core = "::kube_core")
)]
#[schemars(extend("x-kubernetes-validations" = schema::rules(&[
    ("!(has(self.apiVersion) && has(self.group))", "give the group once: in group, or as part of apiVersion"),
    ("has(self.readyWhen) || has(self.failedWhen)", "give readyWhen, failedWhen or both"),
])))]
pub struct ReadinessProfileSpec {
    /// The kind's API version, such as `example.com/v1`; its version does not matter, all are meant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = limits::NAME))]
    pub api_version: Option<String>,
    /// The kind's API group, instead of apiVersion; the core group if both are omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = limits::GROUP_NAME))]
    pub group: Option<String>,
    /// The kind.
    #[schemars(length(min = 1, max = limits::LABEL))]
    pub kind: String,
    /// An object is ready when all of this holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_when: Option<ObjectTest>,
    /// An object has failed when all of this holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_when: Option<ObjectTest>,
}

impl ReadinessProfileSpec {
    /// The API group that is meant.
    pub fn api_group(&self) -> &str {
        let from_version =
            self.api_version.as_deref().and_then(|version| version.split_once('/')).map(|(group, _)| group);
        self.group.as_deref().or(from_version).unwrap_or_default()
    }
}

/// A test on an object: all that is given must hold.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = schema::rules(&[(
    "has(self.cel) || (has(self.conditions) && self.conditions.size() > 0)", "give cel, conditions or both",
)])))]
pub struct ObjectTest {
    /// A CEL expression on the object, `self`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = limits::CEL))]
    pub cel: Option<String>,
    /// Comparisons of fields.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = limits::CONDITIONS), extend("x-kubernetes-list-type" = "atomic"))]
    pub conditions: Vec<Comparison>,
}

/// Whether a profile is understood.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReadinessProfileStatus {
    /// What every kind says.
    #[serde(flatten)]
    pub common: CommonStatus,
}

impl OurStatus for ReadinessProfileStatus {
    fn common(&self) -> &CommonStatus {
        &self.common
    }

    fn common_mut(&mut self) -> &mut CommonStatus {
        &mut self.common
    }
}

impl Ours for ReadinessProfile {
    const WAITS: bool = false;

    fn definitions() -> Vec<CustomResourceDefinition> {
        let words = [
            (
                "observedGeneration",
                "The generation that this is about; -1 until the object has been looked at.",
            ),
            ("message", "What is wrong with it, if anything."),
            ("conditions", "Ready and Stalled."),
        ];
        let unsaid = ["phase", "blockedBy", "startTime", "completionTime", "edges", "journal"];
        vec![schema::finish(Self::crd(), |schema| schema::status(schema, &words, &unsaid))]
    }

    fn common(&self) -> &Common {
        &common::NOTHING
    }
}
