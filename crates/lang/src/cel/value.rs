//! The values an expression works with: views of the JSON it was given wherever possible, so that copying one is
//! always cheap and nothing is converted that is not looked at.

use std::cmp::Ordering;
use std::rc::Rc;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value as Json;

use crate::compare::whole_and_real;

/// A value of the expression language.
#[derive(Clone, Debug)]
pub(super) enum Value<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(Text<'a>),
    List(List<'a>),
    Map(Map<'a>),
    Timestamp(Timestamp),
    Duration(SignedDuration),
    Type(&'static str),
    Optional(Option<Rc<Value<'a>>>),
}

/// A string: part of the data or the expression, or made on the way.
#[derive(Clone, Debug)]
pub(super) enum Text<'a> {
    Given(&'a str),
    Made(Rc<str>),
}

/// A list: part of the data, or made on the way.
#[derive(Clone, Debug)]
pub(super) enum List<'a> {
    Given(&'a [Json]),
    Made(Rc<[Value<'a>]>),
}

/// A map: part of the data, or a literal of the expression (a few entries, so looked through in order).
#[derive(Clone, Debug)]
pub(super) enum Map<'a> {
    Given(&'a serde_json::Map<String, Json>),
    Made(Rc<[(Value<'a>, Value<'a>)]>),
}

impl<'a> From<&'a Json> for Value<'a> {
    fn from(json: &'a Json) -> Self {
        match json {
            Json::Null => Value::Null,
            Json::Bool(value) => Value::Bool(*value),
            Json::Number(number) => match (number.as_i64(), number.as_u64()) {
                (Some(value), _) => Value::Int(value),
                (None, Some(value)) => Value::Uint(value),
                (None, None) => Value::Double(number.as_f64().unwrap_or(f64::NAN)),
            },
            Json::String(value) => Value::String(Text::Given(value)),
            Json::Array(items) => Value::List(List::Given(items)),
            Json::Object(fields) => Value::Map(Map::Given(fields)),
        }
    }
}

impl Value<'_> {
    /// The name of the value's type, as `type()` gives it. All that an error may say about a value.
    pub(super) fn type_name(&self) -> &'static str {
        match self {
            Value::Null => "null_type",
            Value::Bool(_) => "bool",
            Value::Int(_) => "int",
            Value::Uint(_) => "uint",
            Value::Double(_) => "double",
            Value::String(_) => "string",
            Value::List(_) => "list",
            Value::Map(_) => "map",
            Value::Timestamp(_) => "google.protobuf.Timestamp",
            Value::Duration(_) => "google.protobuf.Duration",
            Value::Type(_) => "type",
            Value::Optional(_) => "optional_type",
        }
    }

    pub(super) fn made(text: &str) -> Self {
        Value::String(Text::Made(text.into()))
    }
}

impl Text<'_> {
    pub(super) fn as_str(&self) -> &str {
        match self {
            Text::Given(text) => text,
            Text::Made(text) => text,
        }
    }
}

impl<'a> List<'a> {
    pub(super) fn len(&self) -> usize {
        match self {
            List::Given(items) => items.len(),
            List::Made(items) => items.len(),
        }
    }

    pub(super) fn get(&self, index: usize) -> Option<Value<'a>> {
        match self {
            List::Given(items) => items.get(index).map(Value::from),
            List::Made(items) => items.get(index).cloned(),
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Value<'a>> + '_ {
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

    pub(super) fn get(&self, key: &str) -> Option<Value<'a>> {
        match self {
            Map::Given(fields) => fields.get(key).map(Value::from),
            Map::Made(entries) => entries.iter().find_map(|(known, value)| match known {
                Value::String(text) if text.as_str() == key => Some(value.clone()),
                _ => None,
            }),
        }
    }

    /// The value under a key that need not be a string.
    pub(super) fn get_by(&self, key: &Value<'_>) -> Option<Value<'a>> {
        match (self, key) {
            (_, Value::String(text)) => self.get(text.as_str()),
            (Map::Given(_), _) => None,
            (Map::Made(entries), _) => {
                entries.iter().find(|(known, _)| same_scalar(known, key)).map(|(_, value)| value.clone())
            }
        }
    }

    pub(super) fn keys(&self) -> List<'a> {
        match self {
            Map::Given(fields) => {
                List::Made(fields.keys().map(|key| Value::String(Text::Given(key))).collect())
            }
            Map::Made(entries) => List::Made(entries.iter().map(|(key, _)| key.clone()).collect()),
        }
    }
}

/// Equality of what may be a map key: strings, booleans and numbers of any kind.
pub(super) fn same_scalar(left: &Value<'_>, right: &Value<'_>) -> bool {
    match (left, right) {
        (Value::String(left), Value::String(right)) => left.as_str() == right.as_str(),
        (Value::Bool(left), Value::Bool(right)) => left == right,
        _ => compare_numbers(left, right) == Some(Some(Ordering::Equal)),
    }
}

/// Compares numbers of any kind by what they stand for, without rounding. The outer `None`: not two numbers; the
/// inner one: not ordered (NaN).
#[allow(clippy::option_option)]
pub(super) fn compare_numbers(left: &Value<'_>, right: &Value<'_>) -> Option<Option<Ordering>> {
    enum Number {
        Whole(i128),
        Real(f64),
    }
    let number = |value: &Value<'_>| match value {
        Value::Int(value) => Some(Number::Whole(i128::from(*value))),
        Value::Uint(value) => Some(Number::Whole(i128::from(*value))),
        Value::Double(value) => Some(Number::Real(*value)),
        _ => None,
    };
    Some(match (number(left)?, number(right)?) {
        (Number::Whole(left), Number::Whole(right)) => Some(left.cmp(&right)),
        (Number::Real(left), Number::Real(right)) => left.partial_cmp(&right),
        (Number::Whole(left), Number::Real(right)) => whole_and_real(left, right),
        (Number::Real(left), Number::Whole(right)) => whole_and_real(right, left).map(Ordering::reverse),
    })
}
