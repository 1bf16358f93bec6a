//! Where in the data something is.
//!
//! Paths go into errors, statuses and trigger hashes, so they have one spelling: `.Dependencies.db.Status`, with
//! quotes only around segments that are not plain names (`.Dependencies["my-db"].Items[0]`).

use std::fmt;

/// The segment in place of a key that must not be shown.
pub(crate) const HIDDEN: &str = "…";

/// A place in the template's data, from its root.
///
/// A segment `…` replaces a key that the template computed: it may be a value, and values are not shown.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DataPath(Vec<String>);

impl DataPath {
    /// The path made of these segments; list positions are decimal numbers.
    pub fn new<S: Into<String>>(segments: impl IntoIterator<Item = S>) -> Self {
        Self(segments.into_iter().map(Into::into).collect())
    }

    /// The segments from the root down.
    pub fn segments(&self) -> &[String] {
        &self.0
    }

    /// Whether this is the root itself.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether `self` is `prefix` or lies below it.
    pub fn starts_with(&self, prefix: &DataPath) -> bool {
        self.0.starts_with(&prefix.0)
    }

    /// Goes one segment further down.
    pub(crate) fn push(&mut self, segment: String) {
        self.0.push(segment);
    }
}

impl fmt::Display for DataPath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return formatter.write_str(".");
        }
        for segment in &self.0 {
            if segment == HIDDEN {
                formatter.write_str("[…]")?;
            } else if !segment.is_empty() && segment.bytes().all(|byte| byte.is_ascii_digit()) {
                write!(formatter, "[{segment}]")?;
            } else if is_name(segment) {
                write!(formatter, ".{segment}")?;
            } else {
                write!(formatter, "[{segment:?}]")?;
            }
        }
        Ok(())
    }
}

fn is_name(segment: &str) -> bool {
    !segment.is_empty() && segment.chars().all(|letter| letter == '_' || letter.is_alphanumeric())
}
