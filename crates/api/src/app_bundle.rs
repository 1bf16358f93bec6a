//! AppBundle: a whole application, put up in order and taken down in reverse.
//!
//! Groups and components, their order and their templates are the document's own; everything beside them is added.
//! [`component`] is one entry, [`status`] what the object says about itself.

pub mod component;
pub mod status;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube_core::CustomResourceExt;
use kube_derive::CustomResource;
use linchpin_words::{keys, limits};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

pub use self::{component::Component, status::AppBundleStatus};
use crate::{
    bundle_revision,
    common::{Cluster, Common, DeletionPolicy},
    dependency::Dependency,
    ours::Ours,
    schema,
};

/// A name, or a group's and a component's with a slash between them.
const DEPENDS_ON_PATTERN: &str =
    "^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?(/[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?)?$";

/// A whole application: groups of components, each applied when what comes before it is ready.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[kube(
    group = "app.example.com",
    version = "v1alpha1",
    kind = "AppBundle",
    plural = "appbundles",
    singular = "appbundle",
    shortname = "ab",
    category = "linchpin",
    namespaced,
    status = "AppBundleStatus",
    doc = "A whole application: groups of components, each applied when what comes before it is ready.",
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
pub struct AppBundleSpec {
    /// What every kind has.
    #[serde(flatten)]
    pub common: Common,
    /// Whether the strings of all components are templates. They are, too, where values or valuesFrom are given.
    #[serde(default, skip_serializing_if = "schema::is_false")]
    pub templating: bool,
    /// One after another: also components and groups of the same order wait for each other, as they are listed.
    #[serde(default, skip_serializing_if = "schema::is_false")]
    pub strict: bool,
    /// While set, what revision n (see BundleRevision) had is deployed instead of what is written here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub rollback: Option<i64>,
    /// What must be there before anything is applied: any object, another AppBundle included.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = limits::BUNDLE_REQUIRES),
        extend("x-kubernetes-list-type" = "atomic"),
        extend("x-kubernetes-validations" = schema::names_are_unique("entries of requires"))
    )]
    pub requires: Vec<Dependency>,
    /// The groups.
    #[schemars(
        length(min = 1, max = limits::GROUPS),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    pub groups: Vec<BundleGroup>,
    /// Whether components may come from Porch packages, and where their variants go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub porch_integration: Option<PorchIntegration>,
}

/// Components that belong together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BundleGroup {
    /// Its name; the value of the label app.example.com/group.
    #[schemars(length(min = 1, max = limits::LABEL), pattern(schema::NAME_PATTERN))]
    pub name: String,
    /// Groups of a lower order come first, those of the same order side by side. Where no group has an order, they
    /// come one after another as they are listed; where some have one, a missing order is 0: such a group comes first,
    /// and closes a circle if its dependsOn names a group of a higher order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = limits::GROUP_ORDER))]
    pub order: Option<i32>,
    /// The groups, or components as group/component, that come before this one, instead of those of a lower order.
    /// Empty means none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(max = limits::AFTER),
        inner(length(min = 1, max = limits::COMPONENT_PATH), pattern(DEPENDS_ON_PATTERN)),
        extend("x-kubernetes-list-type" = "set")
    )]
    pub depends_on: Option<Vec<String>>,
    /// What must be there before any of its components is applied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = limits::GROUP_REQUIRES), extend("x-kubernetes-list-type" = "atomic"))]
    pub requires: Vec<Dependency>,
    /// Its components.
    #[schemars(
        length(min = 1, max = limits::COMPONENTS),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    pub components: Vec<Component>,
}

/// Where Porch comes in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PorchIntegration {
    /// Whether components may come from Porch packages.
    #[serde(default, skip_serializing_if = "schema::is_false")]
    pub enabled: bool,
    /// The Repository object that package variants are written to; mgmt if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = limits::NAME))]
    pub repository: Option<String>,
}

impl Ours for AppBundle {
    const FINALIZER: &'static str = keys::APP_BUNDLE_FINALIZER;
    const DELETION_POLICY: DeletionPolicy = DeletionPolicy::Delete;

    fn definitions() -> Vec<CustomResourceDefinition> {
        vec![definition(), bundle_revision::definition()]
    }

    fn common(&self) -> &Common {
        &self.spec.common
    }

    fn parts(&self) -> Vec<&str> {
        self.spec.groups.iter().map(|group| group.name.as_str()).collect()
    }

    fn clusters(&self) -> Vec<&Cluster> {
        let components = self.spec.groups.iter().flat_map(|group| &group.components);
        let clusters = components.map(|component| &component.cluster);
        std::iter::once(&self.spec.common.cluster).chain(clusters).flatten().collect()
    }
}

/// The definition for the API server.
fn definition() -> CustomResourceDefinition {
    const POLICY: &str = "/properties/spec/properties/deletionPolicy";
    const GROUP: &str = "/properties/spec/properties/groups/items/properties";
    const SELECTORS: [&str; 2] = ["selector", "cluster/properties/controlPlaneRef/properties/selector"];
    schema::finish(AppBundle::crd(), |schema| {
        schema::set(schema, POLICY, "enum", json!(["Delete", "Orphan", "Retain"]));
        let meaning = "What happens to the objects that were created when the bundle is deleted: deleted in reverse \
                       order (Delete, the default) or kept (Orphan; Retain means the same).";
        schema::set(schema, POLICY, "description", json!(meaning));
        // There may be thousands of components: what selectors look like is checked when they are compiled, or all
        // rules together would cost the API server more than it allows.
        for (selector, list) in
            SELECTORS.iter().flat_map(|one| [(one, ""), (one, "/components/items/properties")])
        {
            let entry = format!("{GROUP}{list}/requires/items/properties/{selector}");
            let expression = format!("{entry}/properties/matchExpressions/items");
            schema::without(schema, &expression, "x-kubernetes-validations");
        }
        let short_enough = schema::rules(&[(
            "self.metadata.name.size() <= 63",
            "the name of a bundle is the value of a label: it may have 63 characters",
        )]);
        schema::set(schema, "", "x-kubernetes-validations", short_enough);
        let phases =
            "How far it is: Pending, Deploying, Deployed or Failed; Suspended or Deleting while it is that.";
        let words = [("phase", phases), ("completionTime", "When everything was deployed.")];
        schema::status(schema, &words, &[]);
    })
}
