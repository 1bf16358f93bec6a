//! When two values are the same, and which one is greater. The rules are tried in the order of `docs/conditions.md`:
//! booleans, numbers, quantities, versions, plain texts; lists and objects are only the same or not.

use std::cmp::Ordering;

use serde_json::{Number, Value as Json};

use super::quantity::Quantity;
use super::version::Version;

/// Whether two values are the same under the first rule that knows both.
pub(super) fn same(actual: &Json, expected: &Json) -> bool {
    match (actual, expected) {
        (Json::Bool(left), right) | (right, Json::Bool(left)) => as_bool(right) == Some(*left),
        (Json::Array(_) | Json::Object(_), _) | (_, Json::Array(_) | Json::Object(_)) => {
            same_deep(actual, expected)
        }
        (Json::Null, _) | (_, Json::Null) => actual == expected,
        _ => match scalar_order(actual, expected) {
            Some(ordering) => ordering == Ordering::Equal,
            None => actual == expected,
        },
    }
}

/// Which of two values is greater; `None` when they have no common order.
pub(super) fn order(actual: &Json, expected: &Json) -> Option<Ordering> {
    let typed = |value: &Json| match value {
        Json::Number(_) => true,
        Json::String(text) => Quantity::parse(text).is_some() || Version::parse(text).is_some(),
        _ => false,
    };
    scalar_order(actual, expected).or_else(|| match (actual, expected) {
        // Two texts have the order of the alphabet, unless only one of them means a number: that order would lie.
        (Json::String(left), Json::String(right)) if !typed(actual) && !typed(expected) => {
            Some(left.cmp(right))
        }
        _ => None,
    })
}

/// Numbers, quantities, versions: the order of two scalars that both mean one.
fn scalar_order(left: &Json, right: &Json) -> Option<Ordering> {
    match (left, right) {
        (Json::Number(left), Json::Number(right)) => same_number(left, right),
        (Json::Number(number), Json::String(text)) => number_and_text(number, text),
        (Json::String(text), Json::Number(number)) => number_and_text(number, text).map(Ordering::reverse),
        (Json::String(left), Json::String(right)) => {
            let quantities = Quantity::parse(left).zip(Quantity::parse(right));
            let versions = Version::parse(left).zip(Version::parse(right));
            match (quantities, versions) {
                // Without a suffix a text with dots is a version: "1.9" is before "1.24".
                (Some((left, right)), versions) if left.suffixed || right.suffixed || versions.is_none() => {
                    Some(left.cmp_value(&right))
                }
                (_, versions) => versions.map(|(left, right)| left.cmp(&right)),
            }
        }
        _ => None,
    }
}

fn number_and_text(number: &Number, text: &str) -> Option<Ordering> {
    let written = number.to_string();
    match (Quantity::parse(&written), Quantity::parse(text)) {
        (Some(number), Some(text)) => Some(number.cmp_value(&text)),
        _ => Some(Version::parse(&written)?.cmp(&Version::parse(text)?)),
    }
}

fn as_bool(value: &Json) -> Option<bool> {
    match value {
        Json::Bool(value) => Some(*value),
        Json::String(text) if text.eq_ignore_ascii_case("true") => Some(true),
        Json::String(text) if text.eq_ignore_ascii_case("false") => Some(false),
        _ => None,
    }
}

/// The order of two JSON numbers by their value, without rounding.
pub(crate) fn same_number(left: &Number, right: &Number) -> Option<Ordering> {
    let whole = |number: &Number| number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from));
    match (whole(left), whole(right)) {
        (Some(left), Some(right)) => Some(left.cmp(&right)),
        (Some(left), None) => whole_and_real(left, right.as_f64()?),
        (None, Some(right)) => whole_and_real(right, left.as_f64()?).map(Ordering::reverse),
        (None, None) => left.as_f64()?.partial_cmp(&right.as_f64()?),
    }
}

/// Compares a whole number of at most 64 bits with a real one.
pub(crate) fn whole_and_real(whole: i128, real: f64) -> Option<Ordering> {
    if real.is_nan() {
        return None;
    }
    // The cast saturates, far outside the 64 bits that `whole` can have: the order stays right for infinities too.
    #[allow(clippy::cast_possible_truncation)]
    let floor = real.floor() as i128;
    Some(whole.cmp(&floor).then(if real > real.floor() { Ordering::Less } else { Ordering::Equal }))
}

/// Lists and objects, with numbers compared by their value. Walks both at once with a stack of its own; the
/// expected value is small, so the walk is.
fn same_deep(left: &Json, right: &Json) -> bool {
    let mut pairs = vec![(left, right)];
    while let Some(pair) = pairs.pop() {
        let same = match pair {
            (Json::Array(left), Json::Array(right)) if left.len() == right.len() => {
                pairs.extend(left.iter().zip(right));
                true
            }
            (Json::Object(left), Json::Object(right)) if left.len() == right.len() => {
                left.iter().all(|(key, value)| {
                    let other = right.get(key);
                    pairs.extend(other.map(|other| (value, other)));
                    other.is_some()
                })
            }
            (Json::Number(left), Json::Number(right)) => same_number(left, right) == Some(Ordering::Equal),
            (Json::Array(_) | Json::Object(_), _) | (_, Json::Array(_) | Json::Object(_)) => false,
            (left, right) => left == right,
        };
        if !same {
            return false;
        }
    }
    true
}

/// How many parts a value has, unless more than `most`.
pub(super) fn nodes(value: &Json, most: usize) -> Option<usize> {
    let mut stack = vec![value];
    let mut count = 0;
    while let Some(value) = stack.pop() {
        count += 1;
        match value {
            Json::Array(items) => stack.extend(items.iter().take(most + 1)),
            Json::Object(fields) => stack.extend(fields.values().take(most + 1)),
            _ => {}
        }
        if count + stack.len() > most {
            return None;
        }
    }
    Some(count)
}

/// What an error calls a value.
pub(super) fn kind_of(value: &Json) -> &'static str {
    match value {
        Json::Null => "null",
        Json::Bool(_) => "a boolean",
        Json::Number(_) => "a number",
        Json::String(text) if Quantity::parse(text).is_some() => "a text that is a number or quantity",
        Json::String(text) if Version::parse(text).is_some() => "a text that is a version",
        Json::String(_) => "a text",
        Json::Array(_) => "a list",
        Json::Object(_) => "an object",
    }
}
