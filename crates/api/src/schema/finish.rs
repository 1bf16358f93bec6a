//! The corrections to a generated definition.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Value, json};

use super::DURATION_PATTERN;
use crate::{action, common::DeletionPolicy, dependency};

/// What validation rules cannot say because they do not see fields of any type: alternatives for the objects that
/// have this property. They are put in last, since kube's rewriter would mistake them for a tagged enum.
fn alternatives() -> [(&'static str, Value); 2] {
    [("jsonPath", dependency::value_needed()), ("onExisting", action::body_needed())]
}

/// Makes a generated definition one that the API server takes, and that treats users as we want:
///
/// - nothing is nullable: a null, which Helm charts produce easily, is dropped by the server and means "not given";
/// - nothing in the spec has a default, so that what is stored is what the user wrote;
/// - descriptions are one paragraph, whatever lines the source has;
/// - where a duration is wanted a number is refused by our rule, with what to write instead, not by its type;
/// - alternatives that validation rules cannot express are added;
/// - `status` starts as `{observedGeneration: -1}`, so that a fresh object never looks ready to kstatus;
/// - `edit` makes corrections of one kind, on its `openAPIV3Schema`.
pub(crate) fn finish(
    definition: CustomResourceDefinition,
    edit: impl Fn(&mut Value),
) -> CustomResourceDefinition {
    let Ok(mut value) = serde_json::to_value(&definition) else {
        return definition;
    };
    let versions = value.pointer_mut("/spec/versions").and_then(Value::as_array_mut);
    for version in versions.into_iter().flatten() {
        let Some(schema) = version.pointer_mut("/schema/openAPIV3Schema") else {
            continue;
        };
        tidy(schema);
        if let Some(status) = schema.pointer_mut("/properties/status").and_then(Value::as_object_mut) {
            status.insert("default".to_owned(), json!({"observedGeneration": -1}));
        }
        edit(schema);
    }
    serde_json::from_value(value).unwrap_or(definition)
}

fn tidy(schema: &mut Value) {
    let Some(object) = schema.as_object_mut() else {
        return;
    };
    object.remove("nullable");
    object.remove("default");
    if let Some(Value::String(description)) = object.get_mut("description") {
        *description = description.split_whitespace().collect::<Vec<_>>().join(" ");
    }
    if object.get("pattern").and_then(Value::as_str) == Some(DURATION_PATTERN) {
        object.remove("type");
        object.insert("x-kubernetes-int-or-string".to_owned(), json!(true));
    }
    if let Some(properties) = object.get_mut("properties").and_then(Value::as_object_mut) {
        properties.values_mut().for_each(tidy);
        let chosen = alternatives().into_iter().find(|(property, _)| properties.contains_key(*property));
        if let Some((_, chosen)) = chosen {
            object.insert("allOf".to_owned(), chosen);
        }
    }
    for part in ["items", "additionalProperties"] {
        if let Some(part) = object.get_mut(part) {
            tidy(part);
        }
    }
}

/// Takes a property away from an object's schema.
pub(crate) fn without(schema: &mut Value, path: &str, property: &str) {
    if let Some(properties) = schema.pointer_mut(path).and_then(Value::as_object_mut) {
        properties.remove(property);
    }
}

/// Sets one keyword of a schema.
pub(crate) fn set(schema: &mut Value, path: &str, keyword: &str, value: Value) {
    if let Some(object) = schema.pointer_mut(path).and_then(Value::as_object_mut) {
        object.insert(keyword.to_owned(), value);
    }
}

/// What a kind's status says in other words than `CommonStatus`, and what it does not say.
pub(crate) fn status(schema: &mut Value, words: &[(&str, &str)], unsaid: &[&str]) {
    const FIELDS: &str = "/properties/status/properties";
    for (field, description) in words {
        set(schema, &format!("{FIELDS}/{field}"), "description", json!(description));
    }
    for field in unsaid {
        without(schema, FIELDS, field);
    }
}

/// Leaves the words of `deletionPolicy` that every kind knows.
pub(crate) fn plain_policy(schema: &mut Value) {
    set(schema, "/properties/spec/properties/deletionPolicy", "enum", json!(DeletionPolicy::PLAIN));
}
