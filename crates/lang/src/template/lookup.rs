//! Finding a field under the name a Go struct would have.
//!
//! Templates written against Go types say `.Status.Endpoint`; the same object in JSON says `status.endpoint`.
//! After the exact key come the key with a small first letter and then the only key that differs in case alone.

use serde_json::{Map, Value as Json};

use super::error::Cause;
use super::store::Store;

/// The key of `entries` that `name` means, when there is no such key exactly.
pub(crate) fn fallback<'d>(
    store: &Store<'d>,
    entries: &'d Map<String, Json>,
    name: &str,
) -> Result<Option<&'d str>, Cause> {
    store.step(entries.len() as u64 / 8)?;
    let mut letters = name.chars();
    if let Some(first) = letters.next() {
        let lower: String = first.to_lowercase().chain(letters).collect();
        if let Some((key, _)) = entries.get_key_value(&lower) {
            return Ok(Some(key));
        }
    }
    let mut matching = entries.keys().filter(|key| key.len() == name.len() && key.eq_ignore_ascii_case(name));
    let Some(key) = matching.next() else {
        return Ok(None);
    };
    match matching.next() {
        None => Ok(Some(key)),
        Some(other) => {
            Err(Cause::Type(format!("the field {name} could be {key:?} or {other:?}; spell it exactly")))
        }
    }
}
