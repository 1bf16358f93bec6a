//! Errors of a spec, always with the field they are in and never with a value.
//!
//! Languages and parsers say what is wrong in their own ways; here it becomes a field path and a sentence.

use std::fmt::Display;

use linchpin_api::common::DurationText;
use linchpin_engine::plan::{FieldPath, SpecError};
use linchpin_lang::{cel, compare::ConditionError, template};
use std::time::Duration;

/// Something is wrong at a field.
pub(crate) fn at(field: impl Into<FieldPath>, problem: impl Display) -> SpecError {
    SpecError::new(field, problem.to_string())
}

/// A fact that compiling needs was not looked at yet.
pub(crate) fn not_yet(field: &str) -> SpecError {
    at(field, "it was not looked at yet").unready()
}

/// A text that is no template, with line and column.
pub(crate) fn template(error: &template::ParseError) -> SpecError {
    let (line, column) = error.position();
    let (message, snippet) = (error.message(), error.snippet());
    at(error.field(), format!("not a template at line {line} column {column}: {message} (near {snippet:?})"))
}

/// A text that is no expression, with line and column.
pub(crate) fn expression(error: &cel::CompileError) -> SpecError {
    let place =
        error.position.map_or_else(String::new, |at| format!("line {} column {}: ", at.line, at.column));
    at(&error.field, format!("{place}{}", error.problem))
}

/// A comparison that cannot be made.
pub(crate) fn comparison(error: &ConditionError) -> SpecError {
    at(error.field(), error.problem())
}

/// The length of time a field says, where it says one.
pub(crate) fn duration(text: Option<&DurationText>, field: &str) -> Result<Option<Duration>, SpecError> {
    text.map(|text| text.period().map(linchpin_words::Period::length).map_err(|error| at(field, error)))
        .transpose()
}

/// Refuses a list that is too long, for objects that came past the schema.
pub(crate) fn bounded(length: usize, limit: usize, field: &str, what: &str) -> Result<(), SpecError> {
    if length <= limit {
        return Ok(());
    }
    Err(at(field, format!("there are {length} {what}; {limit} are allowed")))
}
