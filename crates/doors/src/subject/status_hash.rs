//! What a status says, in eight bytes: enough to know whether another one says the same. Pure.
//!
//! A status is made when it may be written and is not kept: of what the API server has only the hash is remembered. The
//! order of keys does not count.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::Value;

/// The hash of a status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatusHash(u64);

impl StatusHash {
    /// The hash of a value.
    pub fn of(value: &Value) -> Self {
        let mut hasher = DefaultHasher::new();
        feed(value, &mut hasher);
        Self(hasher.finish())
    }
}

fn feed(value: &Value, hasher: &mut DefaultHasher) {
    std::mem::discriminant(value).hash(hasher);
    match value {
        Value::Null => {}
        Value::Bool(flag) => flag.hash(hasher),
        Value::Number(number) => number.hash(hasher),
        Value::String(text) => text.hash(hasher),
        Value::Array(items) => {
            items.len().hash(hasher);
            for item in items {
                feed(item, hasher);
            }
        }
        Value::Object(fields) => {
            let mut fields: Vec<(&String, &Value)> = fields.iter().collect();
            fields.sort_unstable_by_key(|(name, _)| *name);
            fields.len().hash(hasher);
            for (name, value) in fields {
                name.hash(hasher);
                feed(value, hasher);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_says_the_same_has_the_same_print() {
        let read = |text: &str| StatusHash::of(&serde_json::from_str(text).unwrap());
        assert_eq!(
            read(r#"{"a": 1, "b": [{"x": "y", "z": null}]}"#),
            read(r#"{"b": [{"z": null, "x": "y"}], "a": 1}"#)
        );
    }

    #[test]
    fn what_says_something_else_has_another_print() {
        let values = [
            json!(null),
            json!({}),
            json!([]),
            json!(""),
            json!("a"),
            json!(["a"]),
            json!([["a"]]),
            json!(["a", "b"]),
            json!(["ab"]),
            json!({"a": "b"}),
            json!({"ab": ""}),
            json!({"a": {"b": 1}}),
            json!({"a": {}, "b": 1}),
            json!(1),
            json!(1.0),
            json!("1"),
            json!(true),
        ];
        for (index, one) in values.iter().enumerate() {
            for other in &values[index + 1..] {
                assert_ne!(StatusHash::of(one), StatusHash::of(other), "{one} {other}");
            }
        }
    }
}
