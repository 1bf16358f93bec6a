//! What can go wrong, always with a place in the template and never with a value of the data.
//!
//! Rendered data may hold secrets and errors end in statuses, events and logs. So a message is built from the
//! template's own source, from names of types and functions, and from paths; [`Cause::Missing`] is a type of its
//! own because the engine waits for a missing path and fails on everything else.

use std::collections::BTreeSet;
use std::fmt;

use super::path::DataPath;

/// Longest part of the source shown in an error, in characters.
const SNIPPET_LENGTH: usize = 80;

/// Where in a template something is, and what is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TemplatePosition {
    field: String,
    line: usize,
    column: usize,
    snippet: String,
}

impl TemplatePosition {
    /// The place `offset` bytes into `source`; the snippet is the whole action around it, cut to one short line.
    pub(crate) fn find(field: &str, source: &str, offset: usize) -> Self {
        let mut offset = offset.min(source.len());
        while !source.is_char_boundary(offset) {
            offset -= 1;
        }
        let before = &source[..offset];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let opened = if source[offset..].starts_with("{{") {
            Some(offset)
        } else {
            before.rfind("{{").filter(|start| !source[*start..offset].contains("}}"))
        };
        let start = opened.unwrap_or(line_start);
        let end = match opened {
            Some(_) => source[offset..].find("}}").map_or(source.len(), |length| offset + length + 2),
            None => source[offset..].find('\n').map_or(source.len(), |length| offset + length),
        };
        Self {
            field: field.to_owned(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            snippet: shorten(&source[start..end]),
        }
    }
}

fn shorten(text: &str) -> String {
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= SNIPPET_LENGTH {
        return line;
    }
    let mut cut: String = line.chars().take(SNIPPET_LENGTH - 1).collect();
    cut.push('…');
    cut
}

impl fmt::Display for TemplatePosition {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}:{}", self.field, self.line, self.column)
    }
}

/// A source that is not a template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {message} (near {:?})", .place.snippet)]
pub struct ParseError {
    place: Box<TemplatePosition>,
    message: String,
}

impl ParseError {
    pub(crate) fn new(place: TemplatePosition, message: String) -> Self {
        Self { place: Box::new(place), message }
    }

    /// Line and column, both from 1, the column in characters.
    pub fn position(&self) -> (usize, usize) {
        (self.place.line, self.place.column)
    }

    /// The part of the source the error is about.
    pub fn snippet(&self) -> &str {
        &self.place.snippet
    }

    /// What is wrong, without the place.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The name or field path the template was parsed under.
    pub fn field(&self) -> &str {
        &self.place.field
    }
}

/// Why a rendering stopped.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Cause {
    /// The data has nothing at this path (yet).
    #[error("no value at {path}")]
    Missing {
        /// The path that was asked for.
        path: DataPath,
    },
    /// The template cost more than a template may.
    #[error("the template needs more than {limit} {what}; make it smaller or split it")]
    Limit {
        /// What ran out.
        what: &'static str,
        /// How much there was.
        limit: usize,
    },
    /// A value has the wrong type for what the template does with it.
    #[error("{0}")]
    Type(String),
    /// A function could not work with its arguments.
    #[error("{function}: {message}")]
    Function {
        /// The function's name.
        function: &'static str,
        /// What it could not do.
        message: String,
    },
    /// The template itself gave up with `fail` or `required`.
    #[error("the template refused: {message}")]
    Refused {
        /// The literal message of the template.
        message: String,
    },
}

/// A template that could not be rendered with this data.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {} (near {:?})", .0.place, .0.cause, .0.place.snippet)]
pub struct RenderError(Box<RenderFailure>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct RenderFailure {
    place: TemplatePosition,
    cause: Cause,
    reads: BTreeSet<DataPath>,
    shapes: BTreeSet<DataPath>,
}

impl RenderError {
    pub(crate) fn new(
        place: TemplatePosition,
        cause: Cause,
        reads: BTreeSet<DataPath>,
        shapes: BTreeSet<DataPath>,
    ) -> Self {
        Self(Box::new(RenderFailure { place, cause, reads, shapes }))
    }

    /// The same error, with what other parts of the same value had read before.
    pub(crate) fn with_reads(mut self, reads: &BTreeSet<DataPath>, shapes: &BTreeSet<DataPath>) -> Self {
        self.0.reads.extend(reads.iter().cloned());
        self.0.shapes.extend(shapes.iter().cloned());
        self
    }

    /// Why the rendering stopped.
    pub fn cause(&self) -> &Cause {
        &self.0.cause
    }

    /// The path to wait for, if that is all that was wrong.
    pub fn missing(&self) -> Option<&DataPath> {
        match &self.0.cause {
            Cause::Missing { path } => Some(path),
            _ => None,
        }
    }

    /// Line and column, both from 1, the column in characters.
    pub fn position(&self) -> (usize, usize) {
        (self.0.place.line, self.0.place.column)
    }

    /// The part of the source the error is about.
    pub fn snippet(&self) -> &str {
        &self.0.place.snippet
    }

    /// The name or field path the template was parsed under.
    pub fn field(&self) -> &str {
        &self.0.place.field
    }

    /// What was read until then, the missing path included: when none of it changes, rendering again is useless.
    pub fn reads(&self) -> &BTreeSet<DataPath> {
        &self.0.reads
    }

    /// The containers of which only keys or length were read until then.
    pub fn shapes(&self) -> &BTreeSet<DataPath> {
        &self.0.shapes
    }
}
