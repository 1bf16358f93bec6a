//! The values a running template works with.
//!
//! Data stays borrowed: an object or list of the data is a pointer and the path it was found at, so nothing is
//! copied to look at it and every read can be named. What the template builds itself (`list`, `dict`, …) lives in
//! the [`super::store::Store`] and is referred to by number: dropping it needs no recursion and a dict that holds
//! itself leaks nothing. Go's `int` and `int64` are kept apart because Go's functions do.

use std::fmt;
use std::ops::Deref;
use std::rc::Rc;

use jiff::Timestamp;
use serde_json::Value as Json;

use super::error::Cause;

/// A text written in the template, found in the data, or made by a function.
///
/// Only a literal may be shown in an error: the others may be secret.
#[derive(Clone)]
pub(crate) enum TemplateText<'d> {
    Literal(&'d str),
    Borrowed(&'d str),
    Shared(Rc<str>),
}

impl Deref for TemplateText<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Self::Literal(text) | Self::Borrowed(text) => text,
            Self::Shared(text) => text,
        }
    }
}

impl PartialEq for TemplateText<'_> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for TemplateText<'_> {}

impl PartialOrd for TemplateText<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for TemplateText<'_> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (**self).cmp(&**other)
    }
}

impl std::borrow::Borrow<str> for TemplateText<'_> {
    fn borrow(&self) -> &str {
        self
    }
}

/// The number of a path in the store; [`PathId::NONE`] for values that are not from the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct PathId(pub(crate) u32);

impl PathId {
    pub(crate) const NONE: PathId = PathId(u32::MAX);
    pub(crate) const ROOT: PathId = PathId(0);
}

/// The number of a list in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ListId(pub(crate) usize);

/// The number of a dict in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DictId(pub(crate) usize);

/// What evaluating gives.
pub(crate) type Evaluated<'d> = Result<Value<'d>, Cause>;

/// One value.
#[derive(Clone)]
pub(crate) enum Value<'d> {
    /// Go's nil, and where in the data it was found.
    Nil(PathId),
    Bool(bool),
    Int(i64),
    Int64(i64),
    Byte(u8),
    Float(f64),
    Text(TemplateText<'d>),
    Moment(Timestamp),
    /// A list or object of the data; scalars of the data become the variants above.
    Data(&'d Json, PathId),
    List(ListId),
    Dict(DictId),
}

impl<'d> Value<'d> {
    pub(crate) const NIL: Value<'static> = Value::Nil(PathId::NONE);

    pub(crate) fn text(text: impl Into<Rc<str>>) -> Self {
        Self::Text(TemplateText::Shared(text.into()))
    }

    pub(crate) fn borrowed(text: &'d str) -> Self {
        Self::Text(TemplateText::Borrowed(text))
    }

    pub(crate) fn literal(text: &'d str) -> Self {
        Self::Text(TemplateText::Literal(text))
    }

    /// A length or position, which Go counts in `int`.
    pub(crate) fn count(count: usize) -> Self {
        Self::Int(i64::try_from(count).unwrap_or(i64::MAX))
    }

    /// The value of a piece of data.
    pub(crate) fn of(json: &'d Json, path: PathId) -> Self {
        match json {
            Json::Null => Self::Nil(path),
            Json::Bool(value) => Self::Bool(*value),
            Json::Number(number) => match number.as_i64() {
                Some(integer) => Self::Int64(integer),
                None => Self::Float(number.as_f64().unwrap_or(f64::NAN)),
            },
            Json::String(text) => Self::borrowed(text),
            Json::Array(_) | Json::Object(_) => Self::Data(json, path),
        }
    }

    pub(crate) fn is_nil(&self) -> bool {
        matches!(self, Self::Nil(_))
    }

    /// The text of a text; arguments of functions that ask for text are checked before.
    pub(crate) fn as_text(&self) -> &str {
        match self {
            Self::Text(text) => text,
            _ => "",
        }
    }

    /// The number of an `int`; arguments of functions that ask for one are checked before.
    pub(crate) fn as_int(&self) -> i64 {
        match self {
            Self::Int(number) => *number,
            _ => 0,
        }
    }
}

/// What a list may hold, which Go makes part of its type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Element {
    Any,
    Text,
    Int,
}

/// Go's kinds of basic values, for comparisons.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BasicKind {
    Other,
    Bool,
    Int,
    Uint,
    Float,
    Text,
}

/// A type by its Go name: what errors show instead of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TypeName(pub(crate) &'static str);

impl fmt::Display for TypeName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.0)
    }
}
