//! One component of an AppBundle: what is applied, when it is ready, and what becomes of it.

use linchpin_words::limits;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::DEPENDS_ON_PATTERN;
use crate::{
    action::Adopt,
    common::{Cluster, DeletionPolicy, DurationText},
    dependency::Dependency,
    readiness_profile::ObjectTest,
    schema,
};

/// What is wrong with a component that has no source, or several.
pub const ONE_SOURCE: &str = "Component must have either template or porchPackageRef specified, or templates or source: \
                              exactly one of them";

/// One part of an application: usually one object. It has one writer: the API server does not keep who wrote which of
/// its fields.
//
// The rule does not distinguish a template from a template with templates or a source beside it, which is reported when the bundle
// is compiled: there may be thousands of components, and whenever a rule asks for a field the API server copies the
// schema of all twenty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-map-type" = "atomic", "x-kubernetes-validations" = schema::rules(&[
    ("has(self.template) ? !has(self.porchPackageRef) : (has(self.porchPackageRef) ? 1 : 0) + \
      (has(self.templates) ? 1 : 0) + (has(self.source) ? 1 : 0) == 1",
     ONE_SOURCE),
])))]
pub struct Component {
    /// Its name; the value of the label app.example.com/component.
    #[schemars(length(min = 1, max = limits::LABEL), pattern(schema::NAME_PATTERN))]
    pub name: String,
    /// Components of a lower order come first, those of the same order side by side. Where no component of the group
    /// has an order, they come one after another as they are listed; where some have one, a missing order is 0: such a
    /// component comes first, and closes a circle if its dependsOn names a component of a higher order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = limits::COMPONENT_ORDER))]
    pub order: Option<i32>,
    /// The components of this group, or of another as group/component, that come before this one, instead of those
    /// of a lower order. Empty means none; what its group comes after always comes before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(max = limits::AFTER),
        inner(length(min = 1, max = limits::COMPONENT_PATH), pattern(DEPENDS_ON_PATTERN)),
        extend("x-kubernetes-list-type" = "set")
    )]
    pub depends_on: Option<Vec<String>>,
    /// What must be there before it is applied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = limits::COMPONENT_REQUIRES), extend("x-kubernetes-list-type" = "atomic"))]
    pub requires: Vec<Dependency>,
    /// The object. Its namespace is the bundle's if it names none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::whole_object")]
    pub template: Option<Map<String, Value>>,
    /// Several objects that are one component.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "templates")]
    pub templates: Option<Vec<Map<String, Value>>>,
    /// Objects that are kept elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<ComponentSource>,
    /// A Porch package.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub porch_package_ref: Option<PorchPackageRef>,
    /// When an object of it is ready, instead of what its kind says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_when: Option<ObjectTest>,
    /// When an object of it has failed, beside what its kind says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_when: Option<ObjectTest>,
    /// How long it may take to become ready once it is applied. No limit if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<DurationText>,
    /// False: what comes after it does not wait for it; it still counts for the bundle's own readiness.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<bool>,
    /// Whether its objects are deleted when it leaves the bundle. True if omitted, except for Namespaces,
    /// CustomResourceDefinitions, PersistentVolumes and their claims.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prune: Option<bool>,
    /// What happens to its objects when it or the bundle goes: deleted (Delete, the default) or kept (Orphan).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ComponentDeletion")]
    pub deletion_policy: Option<DeletionPolicy>,
    /// What happens when a field is changed that cannot be: it fails (Fail, the default), the object is deleted and
    /// made anew (Recreate), or it stays as it is (Ignore).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Immutable")]
    pub immutable: Option<Immutable>,
    /// Whether its end is final: an object that has succeeded and is gone is not made again. True if omitted for Jobs
    /// and Pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_once: Option<bool>,
    /// Whether an object that somebody else made is taken over: it is reported (Never, the default), or updated and
    /// never deleted (Adopt).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Adopt")]
    pub adopt: Option<Adopt>,
    /// Fields that others may change, as JSON pointers such as /spec/replicas: they are written once and never taken
    /// back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = limits::IGNORE_FIELDS),
        inner(length(min = 1, max = limits::JSON_PATH)),
        extend("x-kubernetes-list-type" = "set")
    )]
    pub ignore_fields: Vec<String>,
    /// Take all strings as they are, even if the bundle's are templates.
    #[serde(default, skip_serializing_if = "schema::is_false")]
    pub raw: bool,
    /// Where to apply it. Here if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<Cluster>,
}

/// Where objects are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ComponentSource {
    /// A ConfigMap of the bundle's namespace whose values are YAML documents.
    pub config_map_ref: SourceRef,
}

/// A ConfigMap, or one key of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SourceRef {
    /// Its name.
    #[schemars(length(min = 1, max = limits::NAME))]
    pub name: String,
    /// One key; all of them, in the order of their names, if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = limits::NAME))]
    pub key: Option<String>,
}

/// A package in a Repository that Porch knows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PorchPackageRef {
    /// The package.
    #[schemars(length(min = 1, max = limits::NAME))]
    pub package_name: String,
    /// The Repository object it is in.
    #[schemars(length(min = 1, max = limits::NAME))]
    pub repository: String,
    /// The namespace of the package variant; default if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = limits::LABEL))]
    pub namespace: Option<String>,
    /// The revision: v1 or 1, a branch such as main (the default), or latest to follow what is published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = limits::NAME))]
    pub revision: Option<String>,
}

/// What happens when a field is changed that cannot be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Immutable {
    /// The component fails and says so.
    #[default]
    Fail,
    /// The object is deleted and made anew.
    Recreate,
    /// The object stays as it is.
    Ignore,
}

/// The words of a component's deletion policy.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "it only gives its schema")]
enum ComponentDeletion {
    Delete,
    Orphan,
}

/// Several objects, each free.
fn templates(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "array",
        "minItems": 1,
        "maxItems": limits::TEMPLATES,
        "x-kubernetes-list-type": "atomic",
        "items": schema::whole_object(generator)
    })
}
