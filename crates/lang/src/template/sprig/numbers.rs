//! Arithmetic and conversions: sprig computes in `int64` and takes text, floats and booleans for numbers.

use crate::template::functions::{Function, Parameter, failure};
use crate::template::literal;
use crate::template::value::Value;

use Parameter::{Any, Float, Int, Text};

pub(crate) const FUNCTIONS: &[Function] = &[
    Function::new("int", &[Any], |_, a| Ok(Value::Int(to_integer(&a[0])))),
    Function::new("int64", &[Any], |_, a| Ok(Value::Int64(to_integer(&a[0])))),
    Function::new("float64", &[Any], |_, a| Ok(Value::Float(to_float(&a[0])))),
    Function::new("atoi", &[Text], |_, a| Ok(Value::Int(a[0].as_text().parse().unwrap_or(0)))),
    Function::variadic("add", &[], Any, |_, a| {
        Ok(Value::Int64(a.iter().fold(0, |sum, value| i64::wrapping_add(sum, to_integer(value)))))
    }),
    Function::new("add1", &[Any], |_, a| Ok(Value::Int64(to_integer(&a[0]).wrapping_add(1)))),
    Function::new("sub", &[Any, Any], |_, a| {
        Ok(Value::Int64(to_integer(&a[0]).wrapping_sub(to_integer(&a[1]))))
    }),
    Function::variadic("mul", &[Any], Any, |_, a| {
        Ok(Value::Int64(a.iter().fold(1, |product, value| i64::wrapping_mul(product, to_integer(value)))))
    }),
    Function::new("div", &[Any, Any], |_, a| match to_integer(&a[1]) {
        0 => failure("div", "division by zero"),
        divisor => Ok(Value::Int64(to_integer(&a[0]).wrapping_div(divisor))),
    }),
    Function::new("mod", &[Any, Any], |_, a| match to_integer(&a[1]) {
        0 => failure("mod", "division by zero"),
        divisor => Ok(Value::Int64(to_integer(&a[0]).wrapping_rem(divisor))),
    }),
    Function::variadic("max", &[Any], Any, |_, a| Ok(Value::Int64(most(a)))),
    Function::variadic("biggest", &[Any], Any, |_, a| Ok(Value::Int64(most(a)))),
    Function::variadic("min", &[Any], Any, |_, a| {
        Ok(Value::Int64(a.iter().map(to_integer).min().unwrap_or(0)))
    }),
    Function::new("ceil", &[Any], |_, a| Ok(Value::Float(to_float(&a[0]).ceil()))),
    Function::new("floor", &[Any], |_, a| Ok(Value::Float(to_float(&a[0]).floor()))),
    Function::variadic("round", &[Any, Int], Float, |_, a| Ok(Value::Float(round(a)))),
];

fn most(values: &[Value<'_>]) -> i64 {
    values.iter().map(to_integer).max().unwrap_or(0)
}

fn round(a: &[Value<'_>]) -> f64 {
    let threshold = match a.get(2) {
        Some(Value::Float(threshold)) => *threshold,
        _ => 0.5,
    };
    let power = 10f64.powi(i32::try_from(a[1].as_int()).unwrap_or(i32::MAX));
    let scaled = power * to_float(&a[0]);
    let rounded = if scaled.fract() >= threshold { scaled.ceil() } else { scaled.floor() };
    rounded / power
}

/// What sprig takes a value for where it wants an integer; what is no number at all counts as 0.
pub(crate) fn to_integer(value: &Value<'_>) -> i64 {
    match value {
        Value::Int(number) | Value::Int64(number) => *number,
        Value::Byte(number) => i64::from(*number),
        Value::Float(number) => truncate(*number),
        Value::Bool(value) => i64::from(*value),
        Value::Text(text) => literal::integer(without_zero_fraction(text)).unwrap_or(0),
        _ => 0,
    }
}

/// Go's conversion on the usual machines: everything out of range is the smallest integer.
#[allow(clippy::cast_possible_truncation, reason = "the range is checked")]
fn truncate(number: f64) -> i64 {
    if (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&number) {
        number as i64
    } else {
        i64::MIN
    }
}

#[allow(clippy::cast_precision_loss, reason = "Go loses the same bits")]
fn to_float(value: &Value<'_>) -> f64 {
    match value {
        Value::Float(number) => *number,
        Value::Text(text) => literal::float(text).unwrap_or(0.0),
        other => to_integer(other) as f64,
    }
}

/// `12.00` counts as `12`; any other fraction makes the text no integer.
fn without_zero_fraction(text: &str) -> &str {
    match text.split_once('.') {
        Some((whole, zeros)) if !zeros.is_empty() && zeros.bytes().all(|byte| byte == b'0') => whole,
        _ => text,
    }
}
