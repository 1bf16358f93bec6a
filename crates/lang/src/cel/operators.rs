//! What the operators do with values. Numbers of different kinds compare by what they stand for, and do not mix in
//! arithmetic; nothing wraps around.

use std::cmp::Ordering;

use jiff::SignedDuration;
use serde_json::Value as Json;

use super::EvaluateProblem;
use super::meter::{Fault, Meter, types};
use super::node::Binary;
use super::value::{List, Map, Text, Value, compare_numbers};

/// How deep two values may be nested to be compared. Deeper than JSON as the API server accepts it.
const MAX_COMPARED_DEPTH: usize = 128;

/// Applies a binary operator.
pub(super) fn binary<'a>(
    meter: &mut Meter,
    operator: Binary,
    left: &Value<'a>,
    right: &Value<'a>,
) -> Result<Value<'a>, Fault> {
    let ordered = |meter: &mut Meter, wanted: &[Ordering]| {
        let ordering = compare(meter, operator, left, right)?;
        Ok(Value::Bool(ordering.is_some_and(|ordering| wanted.contains(&ordering))))
    };
    match operator {
        Binary::Equal => equal(meter, left, right).map(Value::Bool),
        Binary::NotEqual => equal(meter, left, right).map(|same| Value::Bool(!same)),
        Binary::Less => ordered(meter, &[Ordering::Less]),
        Binary::LessOrEqual => ordered(meter, &[Ordering::Less, Ordering::Equal]),
        Binary::Greater => ordered(meter, &[Ordering::Greater]),
        Binary::GreaterOrEqual => ordered(meter, &[Ordering::Greater, Ordering::Equal]),
        Binary::In => contains(meter, left, right).map(Value::Bool),
        Binary::Add | Binary::Subtract | Binary::Multiply | Binary::Divide | Binary::Remainder => {
            arithmetic(meter, operator, left, right)
        }
    }
}

/// Whether two values are the same. Values of different types are not.
pub(super) fn equal(meter: &mut Meter, left: &Value<'_>, right: &Value<'_>) -> Result<bool, Fault> {
    equal_at(meter, left, right, 0)
}

fn equal_at(meter: &mut Meter, left: &Value<'_>, right: &Value<'_>, depth: usize) -> Result<bool, Fault> {
    meter.steps(1)?;
    if depth > MAX_COMPARED_DEPTH {
        return Err(Fault::TooLarge(format!(
            "values nested more than {MAX_COMPARED_DEPTH} deep are compared"
        )));
    }
    Ok(match (left, right) {
        (Value::Null, Value::Null) => true,
        (Value::Bool(left), Value::Bool(right)) => left == right,
        (Value::String(left), Value::String(right)) => {
            let (left, right) = (left.as_str(), right.as_str());
            if left.len() == right.len() {
                meter.text(left.len())?;
            }
            left == right
        }
        (Value::Timestamp(left), Value::Timestamp(right)) => left == right,
        (Value::Duration(left), Value::Duration(right)) => left == right,
        (Value::Type(left), Value::Type(right)) => left == right,
        (Value::Optional(left), Value::Optional(right)) => match (left, right) {
            (None, None) => true,
            (Some(left), Some(right)) => equal_at(meter, left, right, depth + 1)?,
            _ => false,
        },
        (Value::List(left), Value::List(right)) => {
            if left.len() != right.len() {
                return Ok(false);
            }
            for (left, right) in left.iter().zip(right.iter()) {
                if !equal_at(meter, &left, &right, depth + 1)? {
                    return Ok(false);
                }
            }
            true
        }
        (Value::Map(left), Value::Map(right)) => same_map(meter, left, right, depth)?,
        _ => compare_numbers(left, right) == Some(Some(Ordering::Equal)),
    })
}

fn same_map(meter: &mut Meter, left: &Map<'_>, right: &Map<'_>, depth: usize) -> Result<bool, Fault> {
    if left.len() != right.len() {
        return Ok(false);
    }
    let mut same = |key: &Value<'_>, value: &Value<'_>| {
        meter.steps(1 + if matches!(right, Map::Made(_)) { right.len() } else { 0 })?;
        match right.get_by(key) {
            Some(other) => equal_at(meter, value, &other, depth + 1),
            None => Ok(false),
        }
    };
    match left {
        Map::Given(fields) => {
            for (key, value) in *fields {
                if !same(&Value::String(Text::Given(key)), &Value::from(value))? {
                    return Ok(false);
                }
            }
        }
        Map::Made(entries) => {
            for (key, value) in entries.iter() {
                if !same(key, value)? {
                    return Ok(false);
                }
            }
        }
    }
    Ok(true)
}

/// The order of two values, `None` for what has none (NaN).
pub(super) fn compare(
    meter: &mut Meter,
    operator: Binary,
    left: &Value<'_>,
    right: &Value<'_>,
) -> Result<Option<Ordering>, Fault> {
    if let Some(ordering) = compare_numbers(left, right) {
        return Ok(ordering);
    }
    match (left, right) {
        (Value::Bool(left), Value::Bool(right)) => Ok(Some(left.cmp(right))),
        (Value::String(left), Value::String(right)) => {
            meter.text(left.as_str().len().min(right.as_str().len()))?;
            Ok(Some(left.as_str().cmp(right.as_str())))
        }
        (Value::Timestamp(left), Value::Timestamp(right)) => Ok(Some(left.cmp(right))),
        (Value::Duration(left), Value::Duration(right)) => Ok(Some(left.cmp(right))),
        _ => Err(types(operator.symbol(), &[left, right])),
    }
}

fn contains(meter: &mut Meter, needle: &Value<'_>, within: &Value<'_>) -> Result<bool, Fault> {
    match within {
        Value::List(List::Given(items)) if matches!(needle, Value::String(_)) => {
            meter.steps(items.len())?;
            let Value::String(needle) = needle else {
                return Ok(false);
            };
            let needle = needle.as_str();
            for item in *items {
                if let Json::String(item) = item
                    && item.len() == needle.len()
                {
                    meter.text(needle.len())?;
                    if item == needle {
                        return Ok(true);
                    }
                }
            }
            Ok(false)
        }
        Value::List(items) => {
            for item in items.iter() {
                if equal(meter, needle, &item)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        Value::Map(map)
            if matches!(
                needle,
                Value::String(_) | Value::Bool(_) | Value::Int(_) | Value::Uint(_) | Value::Double(_)
            ) =>
        {
            meter.steps(if matches!(map, Map::Made(_)) { map.len() } else { 1 })?;
            Ok(map.get_by(needle).is_some())
        }
        _ => Err(types("in", &[needle, within])),
    }
}

fn arithmetic<'a>(
    meter: &mut Meter,
    operator: Binary,
    left: &Value<'a>,
    right: &Value<'a>,
) -> Result<Value<'a>, Fault> {
    use Binary::{Add, Divide, Multiply, Remainder, Subtract};
    let overflow = || Fault::Wrong(EvaluateProblem::Overflow(operator.symbol()));
    match (left, right) {
        (Value::Int(left), Value::Int(right)) => {
            let (left, right) = (*left, *right);
            if right == 0 && matches!(operator, Divide | Remainder) {
                return Err(EvaluateProblem::DivisionByZero.into());
            }
            match operator {
                Add => left.checked_add(right),
                Subtract => left.checked_sub(right),
                Multiply => left.checked_mul(right),
                Divide => left.checked_div(right),
                _ => left.checked_rem(right),
            }
            .map(Value::Int)
            .ok_or_else(overflow)
        }
        (Value::Uint(left), Value::Uint(right)) => {
            let (left, right) = (*left, *right);
            if right == 0 && matches!(operator, Divide | Remainder) {
                return Err(EvaluateProblem::DivisionByZero.into());
            }
            match operator {
                Add => left.checked_add(right),
                Subtract => left.checked_sub(right),
                Multiply => left.checked_mul(right),
                Divide => left.checked_div(right),
                _ => left.checked_rem(right),
            }
            .map(Value::Uint)
            .ok_or_else(overflow)
        }
        (Value::Double(left), Value::Double(right)) => match operator {
            Add => Ok(Value::Double(left + right)),
            Subtract => Ok(Value::Double(left - right)),
            Multiply => Ok(Value::Double(left * right)),
            Divide => Ok(Value::Double(left / right)),
            _ => Err(types("%", &[&Value::Double(*left), &Value::Double(*right)])),
        },
        (Value::String(left), Value::String(right)) if operator == Add => {
            let (left, right) = (left.as_str(), right.as_str());
            meter.make(left.len().saturating_add(right.len()))?;
            Ok(Value::made(&format!("{left}{right}")))
        }
        (Value::List(left), Value::List(right)) if operator == Add => {
            meter.make_list(left.len().saturating_add(right.len()))?;
            Ok(Value::List(List::Made(left.iter().chain(right.iter()).collect())))
        }
        _ => times(operator, left, right)
            .ok_or_else(|| types(operator.symbol(), &[left, right]))?
            .ok_or_else(overflow),
    }
}

/// Arithmetic on times. The outer `None`: not times; the inner one: out of range.
#[allow(clippy::option_option)]
fn times<'a>(operator: Binary, left: &Value<'a>, right: &Value<'a>) -> Option<Option<Value<'a>>> {
    Some(match (operator, left, right) {
        (Binary::Add, Value::Timestamp(time), Value::Duration(span))
        | (Binary::Add, Value::Duration(span), Value::Timestamp(time)) => {
            time.checked_add(*span).ok().map(Value::Timestamp)
        }
        (Binary::Subtract, Value::Timestamp(time), Value::Duration(span)) => {
            time.checked_sub(*span).ok().map(Value::Timestamp)
        }
        (Binary::Subtract, Value::Timestamp(left), Value::Timestamp(right)) => {
            Some(Value::Duration(left.duration_since(*right)))
        }
        (Binary::Add, Value::Duration(left), Value::Duration(right)) => {
            left.checked_add(*right).map(Value::Duration)
        }
        (Binary::Subtract, Value::Duration(left), Value::Duration(right)) => {
            left.checked_sub(*right).map(Value::Duration)
        }
        _ => return None,
    })
}

/// The negative of a number or duration.
pub(super) fn negate<'a>(value: &Value<'a>) -> Result<Value<'a>, Fault> {
    let overflow = || Fault::Wrong(EvaluateProblem::Overflow("-"));
    match value {
        Value::Int(value) => value.checked_neg().map(Value::Int).ok_or_else(overflow),
        Value::Double(value) => Ok(Value::Double(-value)),
        Value::Duration(value) => {
            SignedDuration::ZERO.checked_sub(*value).map(Value::Duration).ok_or_else(overflow)
        }
        _ => Err(types("-", &[value])),
    }
}
