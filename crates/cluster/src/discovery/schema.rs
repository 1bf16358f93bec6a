//! What the schema of a `CustomResourceDefinition` promises about status. Pure.

use serde_json::Value;
use std::collections::BTreeMap;

/// By version of the kind: whether its status declares conditions or an observed generation. Versions without a
/// schema are left out.
pub(super) fn promises(definition: &Value) -> BTreeMap<String, bool> {
    let versions = definition.pointer("/spec/versions").and_then(Value::as_array);
    let promise = |version: &Value| {
        let name = version.get("name")?.as_str()?.to_owned();
        let properties = version.pointer("/schema/openAPIV3Schema/properties")?;
        let declares = |field: &str| properties.pointer(&format!("/status/properties/{field}")).is_some();
        Some((name, declares("conditions") || declares("observedGeneration")))
    };
    versions.into_iter().flatten().filter_map(promise).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_schema_promises_status_by_declaring_conditions_or_an_observed_generation() {
        let schema = |status: Value| json!({"openAPIV3Schema": {"properties": {"status": status}}});
        let definition = json!({"spec": {"versions": [
            {"name": "v1", "schema": schema(json!({"properties": {"conditions": {}}}))},
            {"name": "v2", "schema": schema(json!({"properties": {"observedGeneration": {}}}))},
            {"name": "v3", "schema": schema(json!({"properties": {"phase": {}}}))},
            {"name": "v4", "schema": {"openAPIV3Schema": {"type": "object"}}},
        ]}});
        let expected = [("v1", true), ("v2", true), ("v3", false)];
        assert_eq!(promises(&definition), expected.map(|(name, promise)| (name.to_owned(), promise)).into());
    }
}
