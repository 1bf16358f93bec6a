//! The values an expression works with: views of the JSON it was given wherever possible, so that copying one is
//! always cheap and nothing is converted that is not looked at.

use std::cmp::Ordering;
use std::rc::Rc;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value as Json;

use crate::compare::whole_and_real;

/// A value of the expression language.
#[derive(Clone, Debug)]
pub(super) enum CelValue<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(CelText<'a>),
    List(CelList<'a>),
    Map(Map<'a>),
    Timestamp(Timestamp),
    Duration(SignedDuration),
    Type(&'static str),
    Optional(Option<Rc<CelValue<'a>>>),
}

/// A string: part of the data or the expression, or made on the way.
#[derive(Clone, Debug)]
pub(super) enum CelText<'a> {
    Given(&'a str),
    Made(Rc<str>),
}

/// A list: part of the data, or made on the way.
#[derive(Clone, Debug)]
pub(super) enum CelList<'a> {
    Given(&'a [Json]),
    Made(Rc<[CelValue<'a>]>),
}

/// A map: part of the data, or a literal of the expression (a few entries, so looked through in order).
#[derive(Clone, Debug)]
pub(super) enum Map<'a> {
    Given(&'a serde_json::Map<String, Json>),
    Made(Rc<[(CelValue<'a>, CelValue<'a>)]>),
}

impl<'a> From<&'a Json> for CelValue<'a> {
    fn from(json: &'a Json) -> Self {
        match json {
            Json::Null => CelValue::Null,
            Json::Bool(value) => CelValue::Bool(*value),
            Json::Number(number) => match (number.as_i64(), number.as_u64()) {
                (Some(value), _) => CelValue::Int(value),
                (None, Some(value)) => CelValue::Uint(value),
                (None, None) => CelValue::Double(number.as_f64().unwrap_or(f64::NAN)),
            },
            Json::String(value) => CelValue::String(CelText::Given(value)),
            Json::Array(items) => CelValue::List(CelList::Given(items)),
            Json::Object(fields) => CelValue::Map(Map::Given(fields)),
        }
    }
}

impl CelValue<'_> {
    /// The name of the value's type, as `type()` gives it. All that an error may say about a value.
    pub(super) fn type_name(&self) -> &'static str {
        match self {
            CelValue::Null => "null_type",
            CelValue::Bool(_) => "bool",
            CelValue::Int(_) => "int",
            CelValue::Uint(_) => "uint",
            CelValue::Double(_) => "double",
            CelValue::String(_) => "string",
            CelValue::List(_) => "list",
            CelValue::Map(_) => "map",
            CelValue::Timestamp(_) => "google.protobuf.Timestamp",
            CelValue::Duration(_) => "google.protobuf.Duration",
            CelValue::Type(_) => "type",
            CelValue::Optional(_) => "optional_type",
        }
    }

    pub(super) fn made(text: &str) -> Self {
        CelValue::String(CelText::Made(text.into()))
    }
}

impl CelText<'_> {
    pub(super) fn as_str(&self) -> &str {
        match self {
            CelText::Given(text) => text,
            CelText::Made(text) => text,
        }
    }
}

impl<'a> CelList<'a> {
    pub(super) fn len(&self) -> usize {
        match self {
            CelList::Given(items) => items.len(),
            CelList::Made(items) => items.len(),
        }
    }

    pub(super) fn get(&self, index: usize) -> Option<CelValue<'a>> {
        match self {
            CelList::Given(items) => items.get(index).map(CelValue::from),
            CelList::Made(items) => items.get(index).cloned(),
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = CelValue<'a>> + '_ {
        (0..self.len()).filter_map(|index| self.get(index))
    }
}

impl<'a> Map<'a> {
    pub(super) fn len(&self) -> usize {
        match self {
            Map::Given(fields) => fields.len(),
            Map::Made(entries) => entries.len(),
        }
    }

    pub(super) fn get(&self, key: &str) -> Option<CelValue<'a>> {
        match self {
            Map::Given(fields) => fields.get(key).map(CelValue::from),
            Map::Made(entries) => entries.iter().find_map(|(known, value)| match known {
                CelValue::String(text) if text.as_str() == key => Some(value.clone()),
                _ => None,
            }),
        }
    }

    /// The value under a key that need not be a string.
    pub(super) fn get_by(&self, key: &CelValue<'_>) -> Option<CelValue<'a>> {
        match (self, key) {
            (_, CelValue::String(text)) => self.get(text.as_str()),
            (Map::Given(_), _) => None,
            (Map::Made(entries), _) => {
                entries.iter().find(|(known, _)| same_scalar(known, key)).map(|(_, value)| value.clone())
            }
        }
    }

    pub(super) fn keys(&self) -> CelList<'a> {
        match self {
            Map::Given(fields) => {
                CelList::Made(fields.keys().map(|key| CelValue::String(CelText::Given(key))).collect())
            }
            Map::Made(entries) => CelList::Made(entries.iter().map(|(key, _)| key.clone()).collect()),
        }
    }
}

/// Equality of what may be a map key: strings, booleans and numbers of any kind.
pub(super) fn same_scalar(left: &CelValue<'_>, right: &CelValue<'_>) -> bool {
    match (left, right) {
        (CelValue::String(left), CelValue::String(right)) => left.as_str() == right.as_str(),
        (CelValue::Bool(left), CelValue::Bool(right)) => left == right,
        _ => compare_numbers(left, right) == Some(Some(Ordering::Equal)),
    }
}

/// Compares numbers of any kind by their value, without rounding. The outer `None`: not two numbers; the
/// inner one: not ordered (NaN).
#[allow(clippy::option_option)]
pub(super) fn compare_numbers(left: &CelValue<'_>, right: &CelValue<'_>) -> Option<Option<Ordering>> {
    enum Number {
        Whole(i128),
        Real(f64),
    }
    let number = |value: &CelValue<'_>| match value {
        CelValue::Int(value) => Some(Number::Whole(i128::from(*value))),
        CelValue::Uint(value) => Some(Number::Whole(i128::from(*value))),
        CelValue::Double(value) => Some(Number::Real(*value)),
        _ => None,
    };
    Some(match (number(left)?, number(right)?) {
        (Number::Whole(left), Number::Whole(right)) => Some(left.cmp(&right)),
        (Number::Real(left), Number::Real(right)) => left.partial_cmp(&right),
        (Number::Whole(left), Number::Real(right)) => whole_and_real(left, right),
        (Number::Real(left), Number::Whole(right)) => whole_and_real(right, left).map(Ordering::reverse),
    })
}
