//! Comparisons with Go's rules: only values of one kind compare, and asking otherwise is an error.

use super::error::Cause;
use super::functions::failure;
use super::limits;
use super::store::Store;
use super::value::{BasicKind, Value};

/// `eq a b c…`: whether `a` equals one of the others.
pub(crate) fn equal<'d>(
    store: &Store<'d>,
    function: &'static str,
    first: &Value<'d>,
    others: &[Value<'d>],
) -> Result<bool, Cause> {
    if others.is_empty() {
        return failure(function, "missing argument for comparison");
    }
    for other in others {
        if equal_pair(store, function, first, other)? {
            return Ok(true);
        }
    }
    Ok(false)
}

#[allow(clippy::float_cmp, reason = "Go compares floating-point numbers exactly")]
fn equal_pair<'d>(
    store: &Store<'d>,
    function: &'static str,
    left: &Value<'d>,
    right: &Value<'d>,
) -> Result<bool, Cause> {
    Ok(match (left, right) {
        (Value::Bool(left), Value::Bool(right)) => left == right,
        (Value::Float(left), Value::Float(right)) => left == right,
        (Value::Text(left), Value::Text(right)) => left == right,
        (Value::Moment(left), Value::Moment(right)) => left == right,
        (Value::Nil(_), Value::Nil(_)) => true,
        // A nil equals nothing that is there; Go says so without looking at the other's type.
        (Value::Nil(_), _) | (_, Value::Nil(_)) => false,
        _ => match (as_integer(left), as_integer(right)) {
            (Some(left), Some(right)) => left == right,
            _ if Store::basic_kind(left) == BasicKind::Other
                && Store::basic_kind(right) == BasicKind::Other =>
            {
                return failure(
                    function,
                    format!(
                        "{} and {} cannot be compared; compare fields of them or use toJson",
                        store.type_name(left),
                        store.type_name(right)
                    ),
                );
            }
            _ => return incompatible(store, function, left, right),
        },
    })
}

fn incompatible<'d, T>(
    store: &Store<'d>,
    function: &'static str,
    left: &Value<'d>,
    right: &Value<'d>,
) -> Result<T, Cause> {
    failure(
        function,
        format!(
            "incompatible types for comparison: {} and {}",
            store.type_name(left),
            store.type_name(right)
        ),
    )
}

fn as_integer(value: &Value<'_>) -> Option<i64> {
    match value {
        Value::Int(number) | Value::Int64(number) => Some(*number),
        Value::Byte(number) => Some(i64::from(*number)),
        _ => None,
    }
}

/// `lt a b`.
pub(crate) fn less<'d>(
    store: &Store<'d>,
    function: &'static str,
    left: &Value<'d>,
    right: &Value<'d>,
) -> Result<bool, Cause> {
    match (left, right) {
        (Value::Float(left), Value::Float(right)) => Ok(left < right),
        (Value::Text(left), Value::Text(right)) => Ok(left < right),
        _ => {
            if let (Some(left), Some(right)) = (as_integer(left), as_integer(right)) {
                return Ok(left < right);
            }
            let basic = |value| !matches!(Store::basic_kind(value), BasicKind::Other | BasicKind::Bool);
            if basic(left) && basic(right) {
                return incompatible(store, function, left, right);
            }
            let (left, right) = (store.type_name(left), store.type_name(right));
            failure(function, format!("{left} and {right} have no order"))
        }
    }
}

/// Go's `reflect.DeepEqual`: same types, same contents.
pub(crate) fn deep_equal<'d>(
    store: &Store<'d>,
    left: &Value<'d>,
    right: &Value<'d>,
    depth: usize,
) -> Result<bool, Cause> {
    store.step(1)?;
    if depth > limits::VALUE_DEPTH {
        return Err(Cause::Limit { what: "levels in a value", limit: limits::VALUE_DEPTH });
    }
    let (left, right) = (&store.whole(left), &store.whole(right));
    if let (Value::Data(left, _), Value::Data(right, _)) = (left, right)
        && std::ptr::eq(*left, *right)
    {
        return Ok(true);
    }
    if store.type_name(left) != store.type_name(right) {
        return Ok(false);
    }
    if let (Some(left), Some(right)) = (store.items(left)?, store.items(right)?) {
        if left.len() != right.len() {
            return Ok(false);
        }
        for (left, right) in left.iter().zip(&right) {
            if !deep_equal(store, left, right, depth + 1)? {
                return Ok(false);
            }
        }
        return Ok(true);
    }
    if let (Some(left), Some(right)) = (store.entries(left)?, store.entries(right)?) {
        if left.len() != right.len() {
            return Ok(false);
        }
        for ((left_key, left), (right_key, right)) in left.iter().zip(&right) {
            if left_key != right_key || !deep_equal(store, left, right, depth + 1)? {
                return Ok(false);
            }
        }
        return Ok(true);
    }
    equal_pair(store, "deepEqual", left, right)
}
