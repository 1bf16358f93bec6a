//! Values as text, as Go's `fmt` prints them.
//!
//! `{{ value }}`, `print`, `println` and every `%v` come through here. A value may hold itself (`set $d "me" $d`),
//! so depth and work are counted; what is printed counts as read.

use super::error::Cause;
use super::float;
use super::limits;
use super::printf::{self, Directive};
use super::store::Store;
use super::value::Value;

/// Text being written, up to the limit of an output.
pub(crate) struct Writer<'s, 'd> {
    pub(crate) store: &'s Store<'d>,
    pub(crate) text: String,
}

impl<'s, 'd> Writer<'s, 'd> {
    pub(crate) fn new(store: &'s Store<'d>) -> Self {
        Self { store, text: String::new() }
    }

    pub(crate) fn push(&mut self, text: &str) -> Result<(), Cause> {
        if self.text.len() + text.len() > limits::OUTPUT_BYTES {
            return Err(Cause::Limit { what: "bytes of output", limit: limits::OUTPUT_BYTES });
        }
        self.text.push_str(text);
        Ok(())
    }

    /// Counts a container of this size with this many around it.
    pub(crate) fn enter(&self, depth: usize, length: usize) -> Result<(), Cause> {
        if depth >= limits::VALUE_DEPTH {
            return Err(Cause::Limit { what: "levels in a value", limit: limits::VALUE_DEPTH });
        }
        self.store.step(1 + length as u64 / 8)
    }

    /// `%v` of a value on its own.
    pub(crate) fn value(&mut self, value: &Value<'d>) -> Result<(), Cause> {
        self.directive(&Directive::PLAIN, value, 0)
    }

    /// One value under one directive; elements of lists and maps come through here again.
    pub(crate) fn directive(
        &mut self,
        directive: &Directive,
        value: &Value<'d>,
        depth: usize,
    ) -> Result<(), Cause> {
        if depth > 0 && value.is_nil() {
            return self.push(if directive.go_syntax() { "interface {}(nil)" } else { "<nil>" });
        }
        if directive.takes_whole() {
            let shown = printf::scalar(self.store, directive, value)?;
            return self.push(&shown);
        }
        let value = &self.store.whole(value);
        if let Some(items) = self.store.items(value)? {
            return self.list(directive, value, &items, depth);
        }
        if let Some(entries) = self.store.entries(value)? {
            self.enter(depth, entries.len())?;
            let go = directive.go_syntax();
            if go {
                let name = self.store.type_name(value);
                self.push(name.0)?;
            }
            self.push(if go { "{" } else { "map[" })?;
            for (index, (key, item)) in entries.iter().enumerate() {
                if index > 0 {
                    self.push(if go { ", " } else { " " })?;
                }
                self.directive(directive, &Value::Text(key.clone()), depth + 1)?;
                self.push(":")?;
                self.directive(directive, item, depth + 1)?;
            }
            return self.push(if go { "}" } else { "]" });
        }
        let scalar = printf::scalar(self.store, directive, value)?;
        self.push(&scalar)
    }

    fn list(
        &mut self,
        directive: &Directive,
        value: &Value<'d>,
        items: &[Value<'d>],
        depth: usize,
    ) -> Result<(), Cause> {
        self.enter(depth, items.len())?;
        let go = directive.go_syntax();
        if go {
            let name = self.store.type_name(value);
            self.push(name.0)?;
        }
        self.push(if go { "{" } else { "[" })?;
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                self.push(if go { ", " } else { " " })?;
            }
            self.directive(directive, item, depth + 1)?;
        }
        self.push(if go { "}" } else { "]" })
    }

    /// `fmt.Sprint`: a space between two operands when neither is text.
    pub(crate) fn print(&mut self, values: &[Value<'d>]) -> Result<(), Cause> {
        for (index, value) in values.iter().enumerate() {
            let text = |value: &Value<'d>| matches!(value, Value::Text(_));
            if index > 0 && !text(value) && !text(&values[index - 1]) {
                self.push(" ")?;
            }
            self.value(value)?;
        }
        Ok(())
    }

    /// `fmt.Sprintln`: a space between all operands and a newline behind them.
    pub(crate) fn print_line(&mut self, values: &[Value<'d>]) -> Result<(), Cause> {
        for (index, value) in values.iter().enumerate() {
            if index > 0 {
                self.push(" ")?;
            }
            self.value(value)?;
        }
        self.push("\n")
    }
}

impl<'d> Store<'d> {
    /// `%v` of a value.
    pub(crate) fn display(&self, value: &Value<'d>) -> Result<String, Cause> {
        match value {
            Value::Text(text) => Ok(text.to_string()),
            Value::Int(number) | Value::Int64(number) => Ok(number.to_string()),
            Value::Float(number) => Ok(float::shortest(*number)),
            _ => {
                let mut writer = Writer::new(self);
                writer.value(value)?;
                Ok(writer.text)
            }
        }
    }

    /// The items of any list as text, nil left out, as sprig's `toStrings` does it.
    pub(crate) fn display_items(&self, value: &Value<'d>) -> Result<Vec<String>, Cause> {
        let Some(items) = self.items(value)? else {
            return if value.is_nil() { Ok(Vec::new()) } else { Ok(vec![self.display(value)?]) };
        };
        let mut texts = Vec::new();
        let mut size = 0;
        for item in items.iter().filter(|item| !item.is_nil()) {
            let text = self.display(item)?;
            size += text.len();
            if size > limits::INTERMEDIATE_BYTES {
                self.charge(size)?;
            }
            texts.push(text);
        }
        Ok(texts)
    }
}
