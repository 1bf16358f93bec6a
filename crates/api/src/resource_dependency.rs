//! ResourceDependency: wait for objects, then act.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube_core::CustomResourceExt;
use kube_derive::CustomResource;
use linchpin_words::limits;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    action::Action,
    common::{Cluster, Common},
    dependency::Dependency,
    ours::Ours,
    schema,
    status::Status,
};

/// Waits until objects are there and in the required state, then acts, in order.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[kube(
    group = "tools.kubestellar.io",
    version = "v1",
    kind = "ResourceDependency",
    plural = "resourcedependencies",
    singular = "resourcedependency",
    shortname = "resdep",
    shortname = "rd",
    category = "linchpin",
    namespaced,
    status = "Status",
    doc = "Waits until objects are there and in the required state, then acts, in order.",
    derive = "PartialEq",
    derive = "Default",
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].status"#
    ),
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "Message", type_ = "string", json_path = ".status.message"),
    printcolumn(
        name = "Waiting-For",
        type_ = "string",
        json_path = ".status.blockedBy[*].step",
        priority = 1
    ),
    crates(kube_core = "::kube_core")
)]
pub struct ResourceDependencySpec {
    /// What every kind has.
    #[serde(flatten)]
    pub common: Common,
    /// Keep watching after completion: Ready follows the dependencies, and actions with runOnChanges run again.
    #[serde(default, skip_serializing_if = "schema::is_false")]
    pub watch_mode: bool,
    /// What must be there first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = limits::DEPENDENCIES),
        extend("x-kubernetes-list-type" = "atomic"),
        extend("x-kubernetes-validations" = schema::names_are_unique("dependencies"))
    )]
    pub dependencies: Vec<Dependency>,
    /// What to do then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = limits::ACTIONS),
        extend("x-kubernetes-list-type" = "atomic"),
        extend("x-kubernetes-validations" = schema::names_are_unique("actions"))
    )]
    pub actions: Vec<Action>,
}

impl Ours for ResourceDependency {
    fn definitions() -> Vec<CustomResourceDefinition> {
        let definition = schema::finish(Self::crd(), |schema| {
            schema::plain_policy(schema);
            schema::status(schema, &[], &["groups"]);
        });
        vec![definition]
    }

    fn common(&self) -> &Common {
        &self.spec.common
    }

    fn clusters(&self) -> Vec<&Cluster> {
        let actions = self.spec.actions.iter().map(|action| &action.cluster);
        std::iter::once(&self.spec.common.cluster).chain(actions).flatten().collect()
    }
}
