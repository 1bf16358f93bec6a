//! Rendered text to objects: YAML with several documents, read with Kubernetes' habits.
//!
//! `yes` is true, `0644` is 420, merge keys are merged, duplicate keys are refused. Errors name line and column
//! and never the text around them, because rendered text may hold secrets.

use serde_json::Value as Json;
use serde_saphyr::{Error as YamlError, Options};

use super::limits;

/// A text that is not YAML.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}:{line}:{column}: {message}")]
pub struct DocumentError {
    field: String,
    line: usize,
    column: usize,
    message: &'static str,
}

impl DocumentError {
    /// Line and column in the rendered text, both from 1; 0 when the library does not say.
    pub fn position(&self) -> (usize, usize) {
        (self.line, self.column)
    }

    /// Whether there is more than is read.
    pub fn is_too_large(&self) -> bool {
        [TOO_LONG, TOO_LARGE].contains(&self.message)
    }

    /// What is wrong, without the place.
    pub fn message(&self) -> &str {
        self.message
    }
}

const TOO_LONG: &str = "the text is too long";
const TOO_LARGE: &str = "the text is too large or too deeply nested";

/// Reads all documents of a text; empty ones are left out.
pub fn parse_documents(field: &str, text: &str) -> Result<Vec<Json>, DocumentError> {
    let refused = |message| DocumentError { field: field.to_owned(), line: 1, column: 1, message };
    if text.len() > limits::DOCUMENT_BYTES {
        return Err(refused(TOO_LONG));
    }
    let documents: Vec<Json> =
        serde_saphyr::from_multiple_with_options(text, options()).map_err(|error| explain(field, &error))?;
    if documents.len() > limits::DOCUMENTS {
        return Err(refused("there are too many documents"));
    }
    Ok(documents.into_iter().filter(|document| !document.is_null()).collect())
}

/// Reads one document.
pub(crate) fn parse_one(text: &str) -> Result<Json, DocumentError> {
    if text.trim().is_empty() {
        return Ok(Json::Null);
    }
    serde_saphyr::from_str_with_options(text, options()).map_err(|error| explain("", &error))
}

fn options() -> Options {
    let budget = serde_saphyr::budget! {
        max_depth: limits::DOCUMENT_DEPTH,
        max_nodes: limits::DOCUMENT_NODES,
        max_events: 4 * limits::DOCUMENT_NODES,
        max_documents: limits::DOCUMENTS,
        max_total_scalar_bytes: limits::DOCUMENT_BYTES,
    };
    let aliases = serde_saphyr::alias_limits! {
        max_total_replayed_events: limits::DOCUMENT_NODES,
    };
    serde_saphyr::options! {
        alias_limits: aliases,
        legacy_octal_numbers: true,
        with_snippet: false,
        budget: budget,
    }
}

fn explain(field: &str, error: &YamlError) -> DocumentError {
    let (line, column) = error.location().map_or((0, 0), |location| {
        let number = |number: u64| usize::try_from(number).unwrap_or(0);
        (number(location.line()), number(location.column()))
    });
    let mut cause = error;
    while let YamlError::AliasError { error, .. } = cause {
        cause = error;
    }
    let message = match cause {
        YamlError::DuplicateMappingKey { .. } => "this key is there twice",
        YamlError::Budget { .. } => TOO_LARGE,
        YamlError::AliasReplayLimitExceeded { .. } | YamlError::AliasExpansionLimitExceeded { .. } => {
            "the aliases expand to too much"
        }
        YamlError::UnknownAnchor { .. } => "this alias names no anchor",
        YamlError::Eof { .. } => "the text ends too early",
        YamlError::NonFiniteFloat { .. } => "this number cannot be written as JSON",
        _ => "this is not valid YAML; a template in it needs quotes or a block (key: \"{{ … }}\")",
    };
    DocumentError { field: field.to_owned(), line, column, message }
}
