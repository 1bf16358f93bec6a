//! What the operators do with values. Numbers of different kinds compare by their value, and do not mix in
//! arithmetic; nothing wraps around.

use std::cmp::Ordering;

use jiff::SignedDuration;
use serde_json::Value as Json;

use super::EvaluateProblem;
use super::meter::{Fault, Meter, types};
use super::node::Binary;
use super::value::{CelList, CelText, CelValue, Map, compare_numbers};

/// How deep two values may be nested to be compared. Deeper than JSON as the API server accepts it.
const MAX_COMPARED_DEPTH: usize = 128;

/// Applies a binary operator.
pub(super) fn binary<'a>(
    meter: &mut Meter,
    operator: Binary,
    left: &CelValue<'a>,
    right: &CelValue<'a>,
) -> Result<CelValue<'a>, Fault> {
    let ordered = |meter: &mut Meter, wanted: &[Ordering]| {
        let ordering = compare(meter, operator, left, right)?;
        Ok(CelValue::Bool(ordering.is_some_and(|ordering| wanted.contains(&ordering))))
    };
    match operator {
        Binary::Equal => equal(meter, left, right).map(CelValue::Bool),
        Binary::NotEqual => equal(meter, left, right).map(|same| CelValue::Bool(!same)),
        Binary::Less => ordered(meter, &[Ordering::Less]),
        Binary::LessOrEqual => ordered(meter, &[Ordering::Less, Ordering::Equal]),
        Binary::Greater => ordered(meter, &[Ordering::Greater]),
        Binary::GreaterOrEqual => ordered(meter, &[Ordering::Greater, Ordering::Equal]),
        Binary::In => contains(meter, left, right).map(CelValue::Bool),
        Binary::Add | Binary::Subtract | Binary::Multiply | Binary::Divide | Binary::Remainder => {
            arithmetic(meter, operator, left, right)
        }
    }
}

/// Whether two values are the same. Values of different types are not.
pub(super) fn equal(meter: &mut Meter, left: &CelValue<'_>, right: &CelValue<'_>) -> Result<bool, Fault> {
    equal_at(meter, left, right, 0)
}

fn equal_at(
    meter: &mut Meter,
    left: &CelValue<'_>,
    right: &CelValue<'_>,
    depth: usize,
) -> Result<bool, Fault> {
    meter.steps(1)?;
    if depth > MAX_COMPARED_DEPTH {
        return Err(Fault::TooLarge(format!(
            "values nested more than {MAX_COMPARED_DEPTH} deep are compared"
        )));
    }
    Ok(match (left, right) {
        (CelValue::Null, CelValue::Null) => true,
        (CelValue::Bool(left), CelValue::Bool(right)) => left == right,
        (CelValue::String(left), CelValue::String(right)) => {
            let (left, right) = (left.as_str(), right.as_str());
            if left.len() == right.len() {
                meter.text(left.len())?;
            }
            left == right
        }
        (CelValue::Timestamp(left), CelValue::Timestamp(right)) => left == right,
        (CelValue::Duration(left), CelValue::Duration(right)) => left == right,
        (CelValue::Type(left), CelValue::Type(right)) => left == right,
        (CelValue::Optional(left), CelValue::Optional(right)) => match (left, right) {
            (None, None) => true,
            (Some(left), Some(right)) => equal_at(meter, left, right, depth + 1)?,
            _ => false,
        },
        (CelValue::List(left), CelValue::List(right)) => {
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
        (CelValue::Map(left), CelValue::Map(right)) => same_map(meter, left, right, depth)?,
        _ => compare_numbers(left, right) == Some(Some(Ordering::Equal)),
    })
}

fn same_map(meter: &mut Meter, left: &Map<'_>, right: &Map<'_>, depth: usize) -> Result<bool, Fault> {
    if left.len() != right.len() {
        return Ok(false);
    }
    let mut same = |key: &CelValue<'_>, value: &CelValue<'_>| {
        meter.steps(1 + if matches!(right, Map::Made(_)) { right.len() } else { 0 })?;
        match right.get_by(key) {
            Some(other) => equal_at(meter, value, &other, depth + 1),
            None => Ok(false),
        }
    };
    match left {
        Map::Given(fields) => {
            for (key, value) in *fields {
                if !same(&CelValue::String(CelText::Given(key)), &CelValue::from(value))? {
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
    left: &CelValue<'_>,
    right: &CelValue<'_>,
) -> Result<Option<Ordering>, Fault> {
    if let Some(ordering) = compare_numbers(left, right) {
        return Ok(ordering);
    }
    match (left, right) {
        (CelValue::Bool(left), CelValue::Bool(right)) => Ok(Some(left.cmp(right))),
        (CelValue::String(left), CelValue::String(right)) => {
            meter.text(left.as_str().len().min(right.as_str().len()))?;
            Ok(Some(left.as_str().cmp(right.as_str())))
        }
        (CelValue::Timestamp(left), CelValue::Timestamp(right)) => Ok(Some(left.cmp(right))),
        (CelValue::Duration(left), CelValue::Duration(right)) => Ok(Some(left.cmp(right))),
        _ => Err(types(operator.symbol(), &[left, right])),
    }
}

fn contains(meter: &mut Meter, needle: &CelValue<'_>, within: &CelValue<'_>) -> Result<bool, Fault> {
    match within {
        CelValue::List(CelList::Given(items)) if matches!(needle, CelValue::String(_)) => {
            meter.steps(items.len())?;
            let CelValue::String(needle) = needle else {
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
        CelValue::List(items) => {
            for item in items.iter() {
                if equal(meter, needle, &item)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        CelValue::Map(map)
            if matches!(
                needle,
                CelValue::String(_)
                    | CelValue::Bool(_)
                    | CelValue::Int(_)
                    | CelValue::Uint(_)
                    | CelValue::Double(_)
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
    left: &CelValue<'a>,
    right: &CelValue<'a>,
) -> Result<CelValue<'a>, Fault> {
    use Binary::{Add, Divide, Multiply, Remainder, Subtract};
    let overflow = || Fault::Wrong(EvaluateProblem::Overflow(operator.symbol()));
    macro_rules! whole_numbers {
        ($kind:ident, $left:expr, $right:expr) => {
            match operator {
                Divide | Remainder if $right == 0 => return Err(EvaluateProblem::DivisionByZero.into()),
                Add => $left.checked_add($right),
                Subtract => $left.checked_sub($right),
                Multiply => $left.checked_mul($right),
                Divide => $left.checked_div($right),
                _ => $left.checked_rem($right),
            }
            .map(CelValue::$kind)
            .ok_or_else(overflow)
        };
    }
    match (left, right) {
        (CelValue::Int(left), CelValue::Int(right)) => whole_numbers!(Int, *left, *right),
        (CelValue::Uint(left), CelValue::Uint(right)) => whole_numbers!(Uint, *left, *right),
        (CelValue::Double(left), CelValue::Double(right)) => match operator {
            Add => Ok(CelValue::Double(left + right)),
            Subtract => Ok(CelValue::Double(left - right)),
            Multiply => Ok(CelValue::Double(left * right)),
            Divide => Ok(CelValue::Double(left / right)),
            _ => Err(types("%", &[&CelValue::Double(*left), &CelValue::Double(*right)])),
        },
        (CelValue::String(left), CelValue::String(right)) if operator == Add => {
            let (left, right) = (left.as_str(), right.as_str());
            meter.make(left.len().saturating_add(right.len()))?;
            Ok(CelValue::made(&format!("{left}{right}")))
        }
        (CelValue::List(left), CelValue::List(right)) if operator == Add => {
            meter.make_list(left.len().saturating_add(right.len()))?;
            Ok(CelValue::List(CelList::Made(left.iter().chain(right.iter()).collect())))
        }
        _ => times(operator, left, right)
            .ok_or_else(|| types(operator.symbol(), &[left, right]))?
            .ok_or_else(overflow),
    }
}

/// Arithmetic on times. The outer `None`: not times; the inner one: out of range.
#[allow(clippy::option_option)]
fn times<'a>(operator: Binary, left: &CelValue<'a>, right: &CelValue<'a>) -> Option<Option<CelValue<'a>>> {
    Some(match (operator, left, right) {
        (Binary::Add, CelValue::Timestamp(time), CelValue::Duration(span))
        | (Binary::Add, CelValue::Duration(span), CelValue::Timestamp(time)) => {
            time.checked_add(*span).ok().map(CelValue::Timestamp)
        }
        (Binary::Subtract, CelValue::Timestamp(time), CelValue::Duration(span)) => {
            time.checked_sub(*span).ok().map(CelValue::Timestamp)
        }
        (Binary::Subtract, CelValue::Timestamp(left), CelValue::Timestamp(right)) => {
            Some(CelValue::Duration(left.duration_since(*right)))
        }
        (Binary::Add, CelValue::Duration(left), CelValue::Duration(right)) => {
            left.checked_add(*right).map(CelValue::Duration)
        }
        (Binary::Subtract, CelValue::Duration(left), CelValue::Duration(right)) => {
            left.checked_sub(*right).map(CelValue::Duration)
        }
        _ => return None,
    })
}

/// The negative of a number or duration.
pub(super) fn negate<'a>(value: &CelValue<'a>) -> Result<CelValue<'a>, Fault> {
    let overflow = || Fault::Wrong(EvaluateProblem::Overflow("-"));
    match value {
        CelValue::Int(value) => value.checked_neg().map(CelValue::Int).ok_or_else(overflow),
        CelValue::Double(value) => Ok(CelValue::Double(-value)),
        CelValue::Duration(value) => {
            SignedDuration::ZERO.checked_sub(*value).map(CelValue::Duration).ok_or_else(overflow)
        }
        _ => Err(types("-", &[value])),
    }
}
