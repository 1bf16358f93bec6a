//! The functions that Go's templates have without sprig.

use std::fmt::Write;

use serde_json::Value as Json;

use super::compare;
use super::error::Cause;
use super::format::Writer;
use super::functions::{Function, FunctionAction, Parameter, failure};
use super::printf;
use super::quote;
use super::store::Store;
use super::value::{Evaluated, TemplateText, Value};

use Parameter::{Any, Text as TextParameter};

pub(crate) const FUNCTIONS: &[Function] = &[
    Function::special("and", &[Any], Some(Any), FunctionAction::And),
    Function::special("or", &[Any], Some(Any), FunctionAction::Or),
    Function::new("not", &[Any], |store, arguments| Ok(Value::Bool(!store.is_true(&arguments[0])))),
    Function::new("len", &[Any], len),
    Function::variadic("index", &[Any], Any, index),
    Function::variadic("slice", &[Any], Any, slice),
    Function::variadic("print", &[], Any, |store, arguments| {
        let mut writer = Writer::new(store);
        writer.print(arguments)?;
        let text = writer.text;
        store.text(text)
    }),
    Function::variadic("println", &[], Any, |store, arguments| {
        let mut writer = Writer::new(store);
        writer.print_line(arguments)?;
        let text = writer.text;
        store.text(text)
    }),
    Function::variadic("printf", &[TextParameter], Any, |store, arguments| {
        let text = printf::printf(store, arguments[0].as_text(), &arguments[1..])?;
        store.text(text)
    }),
    Function::variadic("html", &[], Any, |store, arguments| escaped(store, arguments, html)),
    Function::variadic("js", &[], Any, |store, arguments| escaped(store, arguments, javascript)),
    Function::variadic("urlquery", &[], Any, |store, arguments| escaped(store, arguments, url_query)),
    Function::variadic("eq", &[Any], Any, |store, arguments| {
        Ok(Value::Bool(compare::equal(store, "eq", &arguments[0], &arguments[1..])?))
    }),
    Function::new("ne", &[Any, Any], |store, arguments| {
        Ok(Value::Bool(!compare::equal(store, "ne", &arguments[0], &arguments[1..])?))
    }),
    Function::new("lt", &[Any, Any], |store, arguments| {
        Ok(Value::Bool(compare::less(store, "lt", &arguments[0], &arguments[1])?))
    }),
    Function::new("ge", &[Any, Any], |store, arguments| {
        Ok(Value::Bool(!compare::less(store, "ge", &arguments[0], &arguments[1])?))
    }),
    Function::new("le", &[Any, Any], |store, arguments| Ok(Value::Bool(at_most(store, "le", arguments)?))),
    Function::new("gt", &[Any, Any], |store, arguments| Ok(Value::Bool(!at_most(store, "gt", arguments)?))),
];

fn at_most<'d>(store: &Store<'d>, function: &'static str, arguments: &[Value<'d>]) -> Result<bool, Cause> {
    Ok(compare::less(store, function, &arguments[0], &arguments[1])?
        || compare::equal(store, function, &arguments[0], &arguments[1..])?)
}

fn len<'d>(store: &mut Store<'d>, arguments: &[Value<'d>]) -> Evaluated<'d> {
    match store.length(&arguments[0]) {
        Some(length) => Ok(Value::count(length)),
        None => failure("len", format!("a value of type {} has no length", store.type_name(&arguments[0]))),
    }
}

/// A position in something of this length; the end itself counts as inside, as in Go.
fn position<'d>(
    store: &Store<'d>,
    function: &'static str,
    value: &Value<'d>,
    length: usize,
) -> Result<usize, Cause> {
    let number = match value {
        Value::Int(number) | Value::Int64(number) => *number,
        Value::Byte(number) => i64::from(*number),
        _ => {
            return failure(function, format!("a position cannot be of type {}", store.type_name(value)));
        }
    };
    match usize::try_from(number).ok().filter(|position| *position <= length) {
        Some(position) => Ok(position),
        None => failure(function, "the position is out of range"),
    }
}

fn index<'d>(store: &mut Store<'d>, arguments: &[Value<'d>]) -> Evaluated<'d> {
    let mut item = arguments[0].clone();
    if let Value::Nil(path) = &item {
        return match store.missing(*path) {
            Some(missing) => Err(missing),
            None => failure("index", "there is nothing to index"),
        };
    }
    for key in &arguments[1..] {
        item = match &item {
            Value::Data(Json::Array(items), path) => {
                let position = position(store, "index", key, items.len())?;
                let Some(item) = items.get(position) else {
                    return failure("index", "the position is out of range");
                };
                store.at_index(item, *path, position)
            }
            Value::List(id) => {
                let items = &store.list_of(*id).items;
                match items.get(position(store, "index", key, items.len())?) {
                    Some(item) => item.clone(),
                    None => return failure("index", "the position is out of range"),
                }
            }
            Value::Text(text) => match text.as_bytes().get(position(store, "index", key, text.len())?) {
                Some(byte) => Value::Byte(*byte),
                None => return failure("index", "the position is out of range"),
            },
            Value::Data(_, path) => {
                let key = key_text(store, key)?;
                store.entry(&item, &key).unwrap_or_else(|| Value::Nil(store.child(*path, &key)))
            }
            Value::Dict(id) => {
                let key = key_text(store, key)?;
                let texts = store.dict_of(*id).element == super::value::Element::Text;
                store.entry(&item, &key).unwrap_or(if texts { Value::borrowed("") } else { Value::NIL })
            }
            Value::Nil(path) => {
                return match store.missing(*path) {
                    Some(missing) => Err(missing),
                    None => failure("index", "there is nothing to index"),
                };
            }
            other => {
                return failure("index", format!("a value of type {} has no items", store.type_name(other)));
            }
        };
    }
    Ok(item)
}

fn key_text<'d>(store: &Store<'d>, key: &Value<'d>) -> Result<TemplateText<'d>, Cause> {
    match key {
        Value::Text(text) => Ok(text.clone()),
        _ => failure("index", format!("a key must be text, not of type {}", store.type_name(key))),
    }
}

fn slice<'d>(store: &mut Store<'d>, arguments: &[Value<'d>]) -> Evaluated<'d> {
    let item = &arguments[0];
    let bounds = &arguments[1..];
    let is_text = matches!(item, Value::Text(_));
    let items = store.items(item)?;
    let length = match (&items, item) {
        (Some(items), _) => items.len(),
        (None, Value::Text(text)) => text.len(),
        _ => {
            return failure("slice", format!("a value of type {} has no parts", store.type_name(item)));
        }
    };
    if bounds.len() > 3 || (bounds.len() == 3 && is_text) {
        return failure("slice", "too many positions");
    }
    let mut ends = [0, length, length];
    for (end, bound) in ends.iter_mut().zip(bounds) {
        *end = position(store, "slice", bound, length)?;
    }
    let [start, end, capacity] = ends;
    if start > end || end > capacity {
        return failure("slice", "the positions are in the wrong order");
    }
    match items {
        Some(items) => {
            let element = match item {
                Value::List(id) => store.list_of(*id).element,
                _ => super::value::Element::Any,
            };
            store.list(element, items[start..end].to_vec())
        }
        None => match item.as_text().get(start..end) {
            Some(part) => store.text(part.to_owned()),
            None => failure("slice", "the position is inside of a character"),
        },
    }
}

fn escaped<'d>(store: &mut Store<'d>, arguments: &[Value<'d>], escape: fn(&str) -> String) -> Evaluated<'d> {
    let mut writer = Writer::new(store);
    let shown: Vec<Value<'d>> = arguments
        .iter()
        .map(|value| if value.is_nil() { Value::borrowed("<no value>") } else { value.clone() })
        .collect();
    writer.print(&shown)?;
    let text = escape(&writer.text);
    store.text(text)
}

fn html(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\0' => out.push('\u{fffd}'),
            '"' => out.push_str("&#34;"),
            '\'' => out.push_str("&#39;"),
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            _ => out.push(letter),
        }
    }
    out
}

fn javascript(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\\' | '\'' | '"' => {
                out.push('\\');
                out.push(letter);
            }
            '<' | '>' | '&' | '=' | '\0'..='\x1f' => push_code(&mut out, letter),
            _ if letter.is_ascii() || quote::is_printable(letter) => out.push(letter),
            _ => push_code(&mut out, letter),
        }
    }
    out
}

/// A character by its number.
fn push_code(out: &mut String, letter: char) {
    let _ = write!(out, "\\u{:04X}", u32::from(letter));
}

fn url_query(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b' ' => out.push('+'),
            b'-' | b'_' | b'.' | b'~' => out.push(char::from(byte)),
            _ if byte.is_ascii_alphanumeric() => out.push(char::from(byte)),
            _ => {
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
    out
}
