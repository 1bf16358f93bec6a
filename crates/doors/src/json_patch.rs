//! A JSON patch, an operation at a time: what webhooks answer.
//!
//! Only what is ours is named in it: what users and other mutators wrote never passes through, so nothing of it can be
//! lost or written differently.

use serde::Serialize;
use serde_json::{Value, json};

/// One operation of RFC 6902.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "op", rename_all = "lowercase")]
pub enum PatchOperation {
    /// Puts a value there: into a list before that index, into an object under that key.
    Add {
        /// Where.
        path: String,
        /// What.
        value: Value,
    },
    /// Takes away what is there.
    Remove {
        /// Where.
        path: String,
    },
    /// Puts a value in the place of another.
    Replace {
        /// Where.
        path: String,
        /// What.
        value: Value,
    },
}

impl PatchOperation {
    /// Puts a value there.
    pub(crate) fn add(path: impl Into<String>, value: Value) -> Self {
        Self::Add { path: path.into(), value }
    }

    /// Takes away what is there.
    pub(crate) fn remove(path: impl Into<String>) -> Self {
        Self::Remove { path: path.into() }
    }
}

/// The operations that make an entry of a map of texts (labels, annotations) what it should be. `map` is the path of the
/// map, `current` the map as it is; the map above it must exist.
pub(crate) fn set_text(
    operations: &mut Vec<PatchOperation>,
    map: &str,
    current: &Value,
    wanted: &[(&str, Option<&str>)],
) {
    let mut exists = current.is_object();
    for (key, value) in wanted {
        let path = format!("{map}/{}", escaped(key));
        match (current.get(*key).and_then(Value::as_str), value) {
            (Some(is), Some(should)) if is == *should => (),
            (_, Some(should)) => {
                if !exists {
                    operations.push(PatchOperation::add(map, json!({})));
                    exists = true;
                }
                operations.push(PatchOperation::add(path, json!(should)));
            }
            (Some(_), None) => operations.push(PatchOperation::remove(path)),
            (None, None) => (),
        }
    }
}

/// A key as a part of a JSON pointer.
fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}
