//! Functions on lists.

use crate::template::compare;
use crate::template::error::Cause;
use crate::template::functions::{Function, Parameter, failure};
use crate::template::store::Store;
use crate::template::value::{Element, Evaluated, Value};

use Parameter::{Any, Int};

pub(crate) const FUNCTIONS: &[Function] = &[
    Function::variadic("list", &[], Any, |store, a| store.list(Element::Any, a.to_vec())),
    Function::variadic("tuple", &[], Any, |store, a| store.list(Element::Any, a.to_vec())),
    Function::new("first", &[Any], |store, a| {
        Ok(items(store, "first", &a[0])?.into_iter().next().unwrap_or(Value::NIL))
    }),
    Function::new("last", &[Any], |store, a| Ok(items(store, "last", &a[0])?.pop().unwrap_or(Value::NIL))),
    Function::new("rest", &[Any], |store, a| {
        let items = items(store, "rest", &a[0])?.into_iter().skip(1).collect();
        store.list(Element::Any, items)
    }),
    Function::new("initial", &[Any], |store, a| {
        let mut items = items(store, "initial", &a[0])?;
        items.pop();
        store.list(Element::Any, items)
    }),
    Function::new("append", &[Any, Any], |store, a| append(store, "append", a)),
    Function::new("push", &[Any, Any], |store, a| append(store, "push", a)),
    Function::new("prepend", &[Any, Any], |store, a| {
        let mut all = items(store, "prepend", &a[0])?;
        all.insert(0, a[1].clone());
        store.list(Element::Any, all)
    }),
    Function::variadic("concat", &[], Any, |store, a| {
        let mut all = Vec::new();
        for list in a {
            let more = items(store, "concat", list)?;
            store.charge(more.len() * size_of::<Value<'_>>())?;
            all.extend(more);
        }
        store.list(Element::Any, all)
    }),
    Function::new("reverse", &[Any], |store, a| {
        let mut all = items(store, "reverse", &a[0])?;
        all.reverse();
        store.list(Element::Any, all)
    }),
    Function::new("compact", &[Any], |store, a| {
        let mut all = items(store, "compact", &a[0])?;
        all.retain(|item| store.is_true(item));
        store.list(Element::Any, all)
    }),
    Function::new("uniq", &[Any], |store, a| {
        let mut kept: Vec<Value<'_>> = Vec::new();
        for item in items(store, "uniq", &a[0])? {
            if !holds(store, &kept, &item)? {
                kept.push(item);
            }
        }
        store.list(Element::Any, kept)
    }),
    Function::variadic("without", &[Any], Any, |store, a| {
        let mut kept = Vec::new();
        for item in items(store, "without", &a[0])? {
            if !holds(store, &a[1..], &item)? {
                kept.push(item);
            }
        }
        store.list(Element::Any, kept)
    }),
    Function::new("has", &[Any, Any], |store, a| {
        if a[1].is_nil() {
            return Ok(Value::Bool(false));
        }
        let all = items(store, "has", &a[1])?;
        Ok(Value::Bool(holds(store, &all, &a[0])?))
    }),
    Function::new("sortAlpha", &[Any], |store, a| {
        let mut texts = match store.items(&a[0])? {
            Some(_) => store.display_items(&a[0])?,
            None => vec![store.display(&a[0])?],
        };
        texts.sort();
        store.texts(texts)
    }),
    Function::new("until", &[Int], |store, a| {
        let count = a[0].as_int();
        let numbers = steps(store, 0, count, if count < 0 { -1 } else { 1 })?;
        store.list(Element::Int, numbers)
    }),
    Function::new("untilStep", &[Int, Int, Int], |store, a| {
        let numbers = steps(store, a[0].as_int(), a[1].as_int(), a[2].as_int())?;
        store.list(Element::Int, numbers)
    }),
    Function::variadic("seq", &[], Int, seq),
];

fn items<'d>(store: &Store<'d>, function: &'static str, value: &Value<'d>) -> Result<Vec<Value<'d>>, Cause> {
    match store.items(value)? {
        Some(items) => Ok(items),
        None => failure(function, format!("wants a list, got a value of type {}", store.type_name(value))),
    }
}

fn append<'d>(store: &mut Store<'d>, function: &'static str, a: &[Value<'d>]) -> Evaluated<'d> {
    let mut all = items(store, function, &a[0])?;
    all.push(a[1].clone());
    store.list(Element::Any, all)
}

fn holds<'d>(store: &Store<'d>, items: &[Value<'d>], wanted: &Value<'d>) -> Result<bool, Cause> {
    for item in items {
        if compare::deep_equal(store, wanted, item, 0)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The numbers from `start` up or down to `end`, paid for before they are made.
fn steps<'d>(store: &Store<'d>, start: i64, end: i64, step: i64) -> Result<Vec<Value<'d>>, Cause> {
    let distance = end.abs_diff(start);
    let towards = if end < start { step < 0 } else { step > 0 };
    if !towards {
        return Ok(Vec::new());
    }
    let count = distance.div_ceil(step.unsigned_abs());
    store.step(count)?;
    let mut numbers = Vec::new();
    let mut number = start;
    for _ in 0..count {
        numbers.push(Value::Int(number));
        number = number.wrapping_add(step);
    }
    Ok(numbers)
}

fn seq<'d>(store: &mut Store<'d>, a: &[Value<'d>]) -> Evaluated<'d> {
    let toward = |start: i64, end: i64| if end < start { -1 } else { 1 };
    let numbers = match a {
        [end] => {
            let step = toward(1, end.as_int());
            steps(store, 1, end.as_int().saturating_add(step), step)?
        }
        [start, end] => {
            let step = toward(start.as_int(), end.as_int());
            steps(store, start.as_int(), end.as_int().saturating_add(step), step)?
        }
        [start, step, end] => {
            let increment = toward(start.as_int(), end.as_int());
            if increment < 0 && step.as_int() > 0 {
                Vec::new()
            } else {
                steps(store, start.as_int(), end.as_int().saturating_add(increment), step.as_int())?
            }
        }
        _ => Vec::new(),
    };
    let texts: Vec<String> = numbers.iter().map(|number| number.as_int().to_string()).collect();
    store.text(texts.join(" "))
}
