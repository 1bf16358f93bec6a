//! DependencyGroup: groups of dependencies, in an order.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube_core::CustomResourceExt;
use kube_derive::CustomResource;
use linchpin_words::limits;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{
    action::Action,
    common::{Cluster, Common, DeletionPolicy, DurationText},
    dependency::Dependency,
    ours::Ours,
    schema,
    status::Status,
};

/// Waits for groups of objects, each after those it depends on, and acts group by group.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[kube(
    group = "tools.kubestellar.io",
    version = "v1",
    kind = "DependencyGroup",
    plural = "dependencygroups",
    singular = "dependencygroup",
    shortname = "depgroup",
    shortname = "dg",
    category = "linchpin",
    namespaced,
    status = "Status",
    doc = "Waits for groups of objects, each after those it depends on, and acts group by group.",
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
#[schemars(extend("x-kubernetes-validations" = schema::rules(&[(
    "!has(self.teardown) || !has(self.deletionPolicy) || self.deletionPolicy == 'Delete'",
    "teardown: Reverse deletes what was created; it cannot go with deletionPolicy: Retain",
)])))]
pub struct DependencyGroupSpec {
    /// What every kind has.
    #[serde(flatten)]
    pub common: Common,
    /// Reverse: when this object is deleted, what its actions created is deleted too, last group first, each waiting
    /// until it is gone. Kept if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Teardown")]
    pub teardown: Option<Teardown>,
    /// The groups.
    #[schemars(
        length(max = limits::GROUPS),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]),
        extend("x-kubernetes-validations" = schema::rules(&[(
            "self.all(group, !has(group.dependsOn) || group.dependsOn.all(name, self.exists(other, other.name == name)))",
            "dependsOn names a group that is not there",
        )]))
    )]
    pub groups: Vec<Group>,
}

/// What happens to created objects when the group is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Teardown {
    /// They are deleted in reverse order.
    Reverse,
}

/// One group: dependencies that are waited for side by side, then actions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = schema::rules(&[(
    "!has(self.dependsOn) || !(self.name in self.dependsOn)", "a group cannot depend on itself",
)])))]
pub struct Group {
    /// Its name.
    #[schemars(length(min = 1, max = limits::LABEL), pattern(schema::NAME_PATTERN))]
    pub name: String,
    /// Which group's actions come first when several are ready at the same moment; lower comes first.
    #[serde(default, skip_serializing_if = "schema::is_zero")]
    pub priority: i32,
    /// The groups that must be ready before this one begins.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = limits::GROUPS),
        inner(length(min = 1, max = limits::LABEL)),
        extend("x-kubernetes-list-type" = "set")
    )]
    pub depends_on: Vec<String>,
    /// What must be there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = limits::GROUP_DEPENDENCIES),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    pub dependencies: Vec<Dependency>,
    /// What to do then, once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = limits::GROUP_ACTIONS),
        extend("x-kubernetes-list-type" = "atomic"),
        extend("x-kubernetes-validations" = schema::names_are_unique("actions of this group"))
    )]
    pub actions: Vec<Action>,
    /// How long the group may take, counted from when the groups before it are ready. No limit if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<DurationText>,
}

impl Ours for DependencyGroup {
    fn definitions() -> Vec<CustomResourceDefinition> {
        const DEPENDENCY: &str = "/properties/spec/properties/groups/items/properties/dependencies/items";
        let definition = schema::finish(Self::crd(), |schema| {
            schema::plain_policy(schema);
            schema::status(schema, &[], &["dependencies", "actions"]);
            schema::set(schema, DEPENDENCY, "required", json!(["name"]));
        });
        vec![definition]
    }

    fn common(&self) -> &Common {
        &self.spec.common
    }

    fn parts(&self) -> Vec<&str> {
        self.spec.groups.iter().map(|group| group.name.as_str()).collect()
    }

    fn clusters(&self) -> Vec<&Cluster> {
        let actions = self.spec.groups.iter().flat_map(|group| &group.actions);
        let clusters = actions.map(|action| &action.cluster);
        std::iter::once(&self.spec.common.cluster).chain(clusters).flatten().collect()
    }

    fn deletion_policy(&self) -> DeletionPolicy {
        let teardown = self.spec.teardown.is_some().then_some(DeletionPolicy::Delete);
        teardown.or(self.spec.common.deletion_policy).unwrap_or(Self::DELETION_POLICY)
    }
}
