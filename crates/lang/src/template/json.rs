//! Values to and from JSON, as Go's `encoding/json` writes and reads them.
//!
//! Keys are sorted, `<`, `>` and `&` are escaped, numbers read are floating-point: `fromJson "1"` is a `float64`.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::{Map, Number, Value as Json};

use super::error::Cause;
use super::float;
use super::format::Writer;
use super::limits;
use super::moment;
use super::store::Store;
use super::value::{Element, TemplateText, Value};

/// How JSON is laid out.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum JsonLayout {
    Compact,
    /// Compact, with `<`, `>` and `&` as they are.
    Raw,
    Pretty,
}

/// A value as JSON text.
pub(crate) fn encode<'d>(store: &Store<'d>, value: &Value<'d>, layout: JsonLayout) -> Result<String, Cause> {
    let mut encoder = Encoder { writer: Writer::new(store), layout };
    encoder.value(value, 0)?;
    Ok(encoder.writer.text)
}

struct Encoder<'s, 'd> {
    writer: Writer<'s, 'd>,
    layout: JsonLayout,
}

impl<'d> Encoder<'_, 'd> {
    fn value(&mut self, value: &Value<'d>, depth: usize) -> Result<(), Cause> {
        let value = &self.writer.store.whole(value);
        if let Some(items) = self.writer.store.items(value)? {
            self.writer.enter(depth, items.len())?;
            self.writer.push("[")?;
            for (index, item) in items.iter().enumerate() {
                self.separate(index, depth + 1)?;
                self.value(item, depth + 1)?;
            }
            return self.close(items.len(), depth, "]");
        }
        if let Some(entries) = self.writer.store.entries(value)? {
            self.writer.enter(depth, entries.len())?;
            self.writer.push("{")?;
            for (index, (key, item)) in entries.iter().enumerate() {
                self.separate(index, depth + 1)?;
                self.text(key)?;
                self.writer.push(if self.layout == JsonLayout::Pretty { ": " } else { ":" })?;
                self.value(item, depth + 1)?;
            }
            return self.close(entries.len(), depth, "}");
        }
        match value {
            Value::Bool(value) => self.writer.push(if *value { "true" } else { "false" }),
            Value::Int(number) | Value::Int64(number) => self.writer.push(&number.to_string()),
            Value::Byte(number) => self.writer.push(&number.to_string()),
            Value::Float(number) if number.is_finite() => self.writer.push(&float::json(*number)),
            Value::Float(_) => {
                Err(Cause::Type("an infinite number or NaN cannot be written as JSON".to_owned()))
            }
            Value::Text(text) => self.text(text),
            Value::Moment(moment) => {
                let shown = moment::format(*moment, "2006-01-02T15:04:05.999999999Z07:00");
                self.text(&shown)
            }
            Value::Nil(_) | Value::Data(..) | Value::List(_) | Value::Dict(_) => self.writer.push("null"),
        }
    }

    fn separate(&mut self, index: usize, depth: usize) -> Result<(), Cause> {
        if index > 0 {
            self.writer.push(",")?;
        }
        self.line(depth)
    }

    fn line(&mut self, depth: usize) -> Result<(), Cause> {
        if self.layout != JsonLayout::Pretty {
            return Ok(());
        }
        self.writer.push("\n")?;
        self.writer.push(&"  ".repeat(depth))
    }

    fn close(&mut self, length: usize, depth: usize, bracket: &str) -> Result<(), Cause> {
        if length > 0 {
            self.line(depth)?;
        }
        self.writer.push(bracket)
    }

    fn text(&mut self, text: &str) -> Result<(), Cause> {
        let mut out = String::with_capacity(text.len() + 2);
        out.push('"');
        for letter in text.chars() {
            match letter {
                '"' => out.push_str("\\\""),
                '\\' => out.push_str("\\\\"),
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\t' => out.push_str("\\t"),
                '\x08' => out.push_str("\\b"),
                '\x0c' => out.push_str("\\f"),
                '<' | '>' | '&' if self.layout != JsonLayout::Raw => {
                    let _ = write!(out, "\\u{:04x}", u32::from(letter));
                }
                '\u{2028}' | '\u{2029}' | '\0'..='\x1f' => {
                    let _ = write!(out, "\\u{:04x}", u32::from(letter));
                }
                _ => out.push(letter),
            }
        }
        out.push('"');
        self.writer.push(&out)
    }
}

/// Makes JSON a value of the store; all numbers become `float64`, as Go reads them.
pub(crate) fn adopt<'d>(store: &mut Store<'d>, json: &Json) -> Result<Value<'d>, Cause> {
    Ok(match json {
        Json::Null => Value::NIL,
        Json::Bool(value) => Value::Bool(*value),
        Json::Number(number) => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
        Json::String(text) => store.text(text.clone())?,
        Json::Array(items) => {
            let mut values = Vec::with_capacity(items.len());
            for item in items {
                values.push(adopt(store, item)?);
            }
            store.list(Element::Any, values)?
        }
        Json::Object(entries) => {
            let mut values = BTreeMap::new();
            for (key, item) in entries {
                store.charge(key.len())?;
                values.insert(TemplateText::Shared(key.as_str().into()), adopt(store, item)?);
            }
            store.dict(Element::Any, values)?
        }
    })
}

/// About how many bytes a copy of this takes.
fn size(json: &Json) -> Result<usize, Cause> {
    let mut open = vec![(json, 0)];
    let mut bytes = 0;
    while let Some((json, depth)) = open.pop() {
        if depth > limits::VALUE_DEPTH {
            return Err(Cause::Limit { what: "levels in a value", limit: limits::VALUE_DEPTH });
        }
        bytes += size_of::<Json>();
        match json {
            Json::String(text) => bytes += text.len(),
            Json::Array(items) => open.extend(items.iter().map(|item| (item, depth + 1))),
            Json::Object(entries) => {
                bytes += entries.keys().map(|key| key.len() + size_of::<Json>()).sum::<usize>();
                open.extend(entries.values().map(|item| (item, depth + 1)));
            }
            _ => {}
        }
    }
    Ok(bytes)
}

/// A value as JSON data, for results that keep their type.
pub(crate) fn to_json<'d>(store: &Store<'d>, value: &Value<'d>, depth: usize) -> Result<Json, Cause> {
    let counter = Writer::new(store);
    if let Value::Data(json, path) = value {
        store.read(*path);
        store.charge(size(json)?)?;
        return Ok((*json).clone());
    }
    if let Some(items) = store.items(value)? {
        counter.enter(depth, items.len())?;
        let items: Result<Vec<Json>, Cause> =
            items.iter().map(|item| to_json(store, item, depth + 1)).collect();
        return items.map(Json::Array);
    }
    if let Some(entries) = store.entries(value)? {
        counter.enter(depth, entries.len())?;
        let mut object = Map::new();
        for (key, item) in entries {
            object.insert(key.to_string(), to_json(store, &item, depth + 1)?);
        }
        return Ok(Json::Object(object));
    }
    Ok(match value {
        Value::Bool(value) => Json::Bool(*value),
        Value::Int(number) | Value::Int64(number) => Json::from(*number),
        Value::Byte(number) => Json::from(*number),
        Value::Float(number) => Number::from_f64(*number)
            .map(Json::Number)
            .ok_or_else(|| Cause::Type("an infinite number or NaN cannot be a field's value".to_owned()))?,
        Value::Text(text) => Json::String(text.to_string()),
        Value::Moment(moment) => Json::String(moment::format(*moment, moment::RFC3339)),
        Value::Nil(_) | Value::Data(..) | Value::List(_) | Value::Dict(_) => Json::Null,
    })
}
