//! The identity of a step's text.
//!
//! A new generation keeps the record of every step whose text did not change, so the text is hashed as the user
//! wrote it, without defaulted fields. The hash names its version: an operator that hashes differently must not run
//! anything again, so hashes of different versions count as equal.

use linchpin_words::hash::sha256_hex;
use serde_json::Value;

const VERSION: &str = "1:";

/// The definition of a step whose text is not known now, because a value of it is missing: it counts as unchanged.
pub const UNKNOWN_DEFINITION: &str = "?:";

/// The definition of a step from the user's fragment and the values it reads.
pub fn definition(fragment: &Value, values: &Value) -> String {
    let mut text = String::new();
    canonical(fragment, &mut text);
    text.push('\n');
    canonical(values, &mut text);
    let mut hash = sha256_hex(text.as_bytes());
    hash.truncate(16);
    format!("{VERSION}{hash}")
}

/// A value as JSON with sorted keys: equal values are equal texts.
pub fn canonical_text(value: &Value) -> String {
    let mut text = String::new();
    canonical(value, &mut text);
    text
}

/// Whether two definitions are of the same text, as far as they can be compared.
pub fn same_definition(one: &str, other: &str) -> bool {
    one == other || version_of(one) != version_of(other)
}

/// Whether a definition can be compared with those made later.
pub(crate) fn is_comparable(definition: &str) -> bool {
    definition.starts_with(VERSION)
}

fn version_of(definition: &str) -> &str {
    definition.split(':').next().unwrap_or_default()
}

/// JSON with sorted keys. The API server bounds the nesting of what it stores, so recursion is bounded too.
fn canonical(value: &Value, text: &mut String) {
    match value {
        Value::Object(map) => {
            let mut keys: Vec<&String> = map.keys().collect();
            keys.sort();
            text.push('{');
            for key in keys {
                text.push_str(&Value::String(key.clone()).to_string());
                text.push(':');
                canonical(&map[key], text);
                text.push(',');
            }
            text.push('}');
        }
        Value::Array(items) => {
            text.push('[');
            for item in items {
                canonical(item, text);
                text.push(',');
            }
            text.push(']');
        }
        plain => text.push_str(&plain.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_order_of_keys_does_not_matter_but_values_do() {
        let one = definition(&json!({"a": 1, "b": [1, 2]}), &Value::Null);
        assert_eq!(one, definition(&json!({"b": [1, 2], "a": 1}), &Value::Null));
        assert_ne!(one, definition(&json!({"b": [2, 1], "a": 1}), &Value::Null));
        assert_ne!(one, definition(&json!({"a": 1, "b": [1, 2]}), &json!({"x": 1})));
    }

    #[test]
    fn another_hash_version_never_counts_as_a_change() {
        assert!(same_definition("1:aaaa", "2:bbbb"));
        assert!(!same_definition("1:aaaa", "1:bbbb"));
        assert!(same_definition("1:aaaa", UNKNOWN_DEFINITION) && !is_comparable(UNKNOWN_DEFINITION));
    }
}
