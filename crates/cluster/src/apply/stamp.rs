//! What a write left behind: the stamp that later observations are measured against. Pure.

use linchpin_engine::contract::Stamp;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use std::fmt::Write as _;

/// The stamp of an object as the server returned it, with a fingerprint of the fields that `declared` declares.
pub(super) fn stamp(returned: &Value, declared: Option<&Value>) -> Option<Stamp> {
    let metadata = returned.get("metadata")?;
    let text = |name: &str| metadata.get(name).and_then(Value::as_str).unwrap_or_default();
    let uid = text("uid").to_owned();
    if uid.is_empty() {
        return None;
    }
    let version = text("resourceVersion");
    let fingerprint = match declared {
        None => String::new(),
        // A hash of a short secret can be guessed: its version says as much and gives nothing away.
        Some(_) if returned.get("kind").and_then(Value::as_str) == Some("Secret") => {
            format!("{uid}@{version}")
        }
        Some(declared) => fingerprint(declared, returned),
    };
    Some(Stamp {
        generation: metadata.get("generation").and_then(Value::as_i64).unwrap_or(0),
        version: version.parse().unwrap_or(0),
        uid,
        fingerprint,
    })
}

/// A hash over the fields of `returned` that `declared` declares. Lists are taken whole; the order of keys is none.
fn fingerprint(declared: &Value, returned: &Value) -> String {
    let mut masked = masked(declared, returned);
    // Which object a write was meant for is no part of what it declares.
    if let Some(metadata) = masked.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("uid");
        metadata.remove("resourceVersion");
    }
    let mut hash = Sha256::new();
    hash.update(masked.to_string());
    hash.finalize()[..16].iter().fold(String::new(), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn masked(declared: &Value, returned: &Value) -> Value {
    match (declared, returned) {
        (Value::Object(declared), Value::Object(returned)) => {
            let mut names: Vec<&String> = declared.keys().collect();
            names.sort_unstable();
            let field = |name: &String| {
                returned.get(name).map(|value| (name.clone(), masked(&declared[name], value)))
            };
            Value::Object(names.into_iter().filter_map(field).collect::<Map<_, _>>())
        }
        (_, returned) => sorted(returned),
    }
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut names: Vec<&String> = fields.keys().collect();
            names.sort_unstable();
            Value::Object(names.into_iter().map(|name| (name.clone(), sorted(&fields[name]))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(sorted).collect()),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_declared_fields_count() {
        let declared = json!({"spec": {"replicas": 1}});
        let print = |returned: Value| fingerprint(&declared, &returned);
        let one = print(json!({"spec": {"replicas": 1}, "status": {"x": 1}}));
        assert_eq!(one, print(json!({"status": {"x": 2}, "spec": {"paused": true, "replicas": 1}})));
        assert_ne!(one, print(json!({"spec": {"replicas": 2}})));
        assert_ne!(one, print(json!({"spec": {}})));
    }

    #[test]
    fn which_object_was_meant_does_not_count() {
        let returned = json!({"metadata": {"name": "a", "uid": "u", "resourceVersion": "7"}});
        let plain = fingerprint(&json!({"metadata": {"name": "a"}}), &returned);
        for meant in [json!({"name": "a", "uid": "u"}), json!({"name": "a", "resourceVersion": "1"})] {
            assert_eq!(fingerprint(&json!({"metadata": meant}), &returned), plain);
        }
    }

    #[test]
    fn the_order_of_keys_does_not_matter() {
        let (one, two) = (json!({"a": [{"x": 1, "y": 2}]}), json!({"a": [{"y": 2, "x": 1}]}));
        assert_eq!(fingerprint(&one, &one), fingerprint(&one, &two));
    }

    #[test]
    fn a_secret_is_stamped_by_its_version() {
        let secret = json!({"kind": "Secret", "metadata": {"uid": "u", "resourceVersion": "7"}, "data": {"a": "eA=="}});
        let stamp = stamp(&secret, Some(&json!({"data": {"a": "eA=="}}))).unwrap();
        assert_eq!((stamp.fingerprint.as_str(), stamp.version), ("u@7", 7));
    }
}
