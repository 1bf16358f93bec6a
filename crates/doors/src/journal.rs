//! The journal in an object's status.

use linchpin_engine::{journal::Journal, plan::SpecError};
use serde_json::Value;

use crate::errors::at;

/// The journal in a status, of the object with this uid; none where there is none, or another object's.
///
/// One that cannot be read is an error and not none: forgetting what was done could do it twice.
pub(crate) fn read(journal: Option<&Value>, uid: &str) -> Result<Option<Journal>, SpecError> {
    let Some(value) = journal else {
        return Ok(None);
    };
    let journal: Journal = serde_json::from_value(value.clone()).map_err(|_| {
        at("status.journal", "it cannot be read, so what was done is not known; remove it to begin anew")
    })?;
    Ok((journal.uid == uid).then_some(journal))
}

/// The journal as a status holds it.
pub(crate) fn write(journal: &Journal) -> Option<Value> {
    serde_json::to_value(journal).ok()
}
