//! The journal in an object's status: one text.
//!
//! Written out as an object it would be most of what is to be decoded, copied, compared and validated whenever anybody
//! writes to the object, field by field and several times over; as a text it costs the API server next to nothing.
//! Journals that were written as objects are still read.

use linchpin_engine::{journal::Journal, plan::SpecError};
use serde_json::{Value, json};

use crate::errors::at;

/// The field that holds the text.
const TEXT: &str = "text";

/// The journal in a status, of the object with this uid; none where there is none, or another object's.
///
/// One that cannot be read is an error and not none: forgetting what was done could do it twice.
pub(crate) fn read(journal: Option<&Value>, uid: &str) -> Result<Option<Journal>, SpecError> {
    let Some(value) = journal else {
        return Ok(None);
    };
    let journal: Result<Journal, _> = match value.get(TEXT) {
        Some(Value::String(text)) => serde_json::from_str(text),
        _ => serde_json::from_value(value.clone()),
    };
    let journal = journal.map_err(|_| {
        at("status.journal", "it cannot be read, so what was done is not known; remove it to begin anew")
    })?;
    Ok((journal.uid == uid).then_some(journal))
}

/// The journal as a status holds it.
pub(crate) fn write(journal: &Journal) -> Option<Value> {
    serde_json::to_string(journal).ok().map(|text| json!({ TEXT: text }))
}
