//! What a write left behind: the stamp that later observations are measured against. Pure.

use linchpin_engine::contract::{Stamp, held_fields};
use serde_json::Value;

/// The stamp of an object as the server returned it, with a fingerprint of the fields that `manager` holds.
pub(super) fn stamp(returned: &Value, manager: Option<&str>) -> Option<Stamp> {
    let metadata = returned.get("metadata")?;
    let text = |name: &str| metadata.get(name).and_then(Value::as_str).unwrap_or_default();
    let uid = text("uid").to_owned();
    if uid.is_empty() {
        return None;
    }
    Some(Stamp {
        generation: metadata.get("generation").and_then(Value::as_i64).unwrap_or(0),
        version: text("resourceVersion").parse().unwrap_or(0),
        uid,
        fingerprint: manager.and_then(|manager| held_fields(returned, manager)).unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_stamp_says_which_fields_are_ours_and_nothing_of_their_values() {
        let secret = |value: &str| {
            json!({"kind": "Secret", "data": {"a": value}, "metadata": {"uid": "u", "resourceVersion": "7", "managedFields": [
                {"manager": "us", "operation": "Apply", "fieldsV1": {"f:data": {"f:a": {}}}}]}})
        };
        let one = stamp(&secret("eA=="), Some("us")).unwrap();
        assert_eq!((one.uid.as_str(), one.version), ("u", 7));
        assert!(!one.fingerprint.is_empty());
        assert_eq!(one, stamp(&secret("eQ=="), Some("us")).unwrap());
        assert_eq!(stamp(&secret("eA=="), Some("them")).unwrap().fingerprint, "");
    }
}
