//! The journal in an object's status: one text.
//!
//! Written out as an object it would be most of what is to be decoded, copied, compared and validated whenever anybody
//! writes to the object, field by field and several times over; as a text it costs the API server next to nothing.
//! Journals that were written as objects are still read.
//!
//! Where many objects begin at once, the first one is written with the finalizer, as an annotation: one write instead of
//! two before the first effect. As soon as there is one in the status, that is the one that counts.

use linchpin_engine::{journal::Journal, plan::SpecError};
use linchpin_words::keys;
use serde_json::{Value, json};

use crate::errors::at;

/// The field that holds the text.
const TEXT: &str = "text";
const UNREADABLE: &str = "it cannot be read, so what was done is not known; remove it to begin anew";

/// The first journal in an annotation, of the object with this uid; none where it is another object's.
///
/// # Errors
/// One that cannot be read, as in a status.
pub fn read_first(text: &str, uid: &str) -> Result<Option<Journal>, SpecError> {
    let journal: Result<Journal, _> = serde_json::from_str(text);
    let field = format!("metadata.annotations[{}]", keys::FIRST_JOURNAL);
    let journal = journal.map_err(|_| at(&field, UNREADABLE))?;
    Ok((journal.uid == uid).then_some(journal))
}

/// The first journal as an annotation holds it.
pub fn write_first(journal: &Journal) -> Option<String> {
    serde_json::to_string(journal).ok()
}

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
    let journal = journal.map_err(|_| at("status.journal", UNREADABLE))?;
    Ok((journal.uid == uid).then_some(journal))
}

/// The journal as a status holds it.
pub(crate) fn write(journal: &Journal) -> Option<Value> {
    write_first(journal).map(|text| json!({ TEXT: text }))
}
