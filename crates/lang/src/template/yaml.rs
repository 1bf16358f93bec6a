//! Values as YAML, byte for byte as Helm's `toYaml` writes them (Kubernetes' own YAML library).
//!
//! Lists are not indented below their key, keys are in natural order (`a2` before `a10`), and text is quoted only
//! where YAML 1.1 would read something else.

mod scalar;

use std::cmp::Ordering;

use scalar::Scalar;

use super::error::Cause;
use super::float;
use super::format::Writer;
use super::moment;
use super::store::{KeyedValues, Store};
use super::value::Value;

/// A value as YAML text without the last line break.
pub(crate) fn encode<'d>(store: &Store<'d>, value: &Value<'d>) -> Result<String, Cause> {
    let mut encoder = Encoder { writer: Writer::new(store) };
    encoder.value(value, 0, 0, Position::Top)?;
    let text = encoder.writer.text;
    Ok(text.strip_suffix('\n').map_or(text.clone(), str::to_owned))
}

/// Longest key that is written as `key:`.
const LONGEST_SIMPLE_KEY: usize = 128;

/// Where a value is, which decides about the line it starts on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Position {
    Top,
    AfterKey,
    AfterDash,
}

struct Encoder<'s, 'd> {
    writer: Writer<'s, 'd>,
}

impl<'d> Encoder<'_, 'd> {
    fn value(
        &mut self,
        value: &Value<'d>,
        indent: usize,
        depth: usize,
        position: Position,
    ) -> Result<(), Cause> {
        let value = &self.writer.store.whole(value);
        if let Some(items) = self.writer.store.items(value)? {
            return self.list(&items, indent, depth, position);
        }
        if let Some(entries) = self.writer.store.entries(value)? {
            return self.map(entries, indent, depth, position);
        }
        if position != Position::Top {
            self.writer.push(" ")?;
        }
        let indent = if position == Position::Top { 2 } else { indent };
        let text = match value {
            Value::Text(text) => Scalar { indent, column: self.column(), folds: true }.text(text),
            Value::Moment(moment) => {
                let shown = moment::format(*moment, "2006-01-02T15:04:05.999999999Z07:00");
                Scalar { indent, column: self.column(), folds: true }.text(&shown)
            }
            Value::Float(number) => {
                // The number goes through JSON, where 1.0 is written 1 and so becomes an integer.
                let json = float::json(*number);
                if json.contains(['.', 'e']) { float::shortest(*number) } else { json }
            }
            Value::Nil(_) => "null".to_owned(),
            _ => self.writer.store.display(value)?,
        };
        self.writer.push(&text)?;
        self.writer.push("\n")
    }

    /// How many characters the current line has.
    fn column(&self) -> usize {
        let text = &self.writer.text;
        text[text.rfind('\n').map_or(0, |newline| newline + 1)..].chars().count()
    }

    fn list(
        &mut self,
        items: &[Value<'d>],
        indent: usize,
        depth: usize,
        position: Position,
    ) -> Result<(), Cause> {
        self.writer.enter(depth, items.len())?;
        if items.is_empty() {
            return self.writer.push(if position == Position::Top { "[]\n" } else { " []\n" });
        }
        if position == Position::AfterKey {
            self.writer.push("\n")?;
        }
        for (index, item) in items.iter().enumerate() {
            if position == Position::AfterDash && index == 0 {
                self.writer.push(" ")?;
            } else {
                self.writer.push(&" ".repeat(indent))?;
            }
            self.writer.push("-")?;
            self.value(item, indent + 2, depth + 1, Position::AfterDash)?;
        }
        Ok(())
    }

    fn map(
        &mut self,
        mut entries: KeyedValues<'d>,
        indent: usize,
        depth: usize,
        position: Position,
    ) -> Result<(), Cause> {
        self.writer.enter(depth, entries.len())?;
        if entries.is_empty() {
            return self.writer.push(if position == Position::Top { "{}\n" } else { " {}\n" });
        }
        entries.sort_by(|(left, _), (right, _)| natural_order(left, right));
        if position == Position::AfterKey {
            self.writer.push("\n")?;
        }
        for (index, (key, item)) in entries.iter().enumerate() {
            if position == Position::AfterDash && index == 0 {
                self.writer.push(" ")?;
            } else {
                self.writer.push(&" ".repeat(indent))?;
            }
            if key.len() > LONGEST_SIMPLE_KEY || key.contains('\n') {
                let scalar = Scalar { indent: indent + 2, column: indent + 2, folds: true };
                self.writer.push(&format!("? {}\n{}:", scalar.text(key), " ".repeat(indent)))?;
            } else {
                let scalar = Scalar { indent, column: indent, folds: false };
                self.writer.push(&format!("{}:", scalar.text(key)))?;
            }
            let is_list = self.writer.store.type_name(item).0.starts_with("[]");
            self.value(item, if is_list { indent } else { indent + 2 }, depth + 1, Position::AfterKey)?;
        }
        Ok(())
    }
}

/// The order of Go's YAML library: letters by code, other characters before letters, digits as numbers.
fn natural_order(left: &str, right: &str) -> Ordering {
    let (left, right): (Vec<char>, Vec<char>) = (left.chars().collect(), right.chars().collect());
    let Some(at) = left.iter().zip(&right).position(|(left, right)| left != right) else {
        return left.len().cmp(&right.len());
    };
    let (one, two) = (left[at], right[at]);
    match (one.is_alphabetic(), two.is_alphabetic()) {
        (true, true) => return one.cmp(&two),
        (true, false) => return Ordering::Greater,
        (false, true) => return Ordering::Less,
        (false, false) => {}
    }
    let start = if one == '0' || two == '0' {
        let before = left[..at].iter().rev().take_while(|letter| letter.is_ascii_digit());
        u64::from(before.into_iter().any(|letter| *letter != '0'))
    } else {
        0
    };
    let number = |letters: &[char]| {
        let digits: Vec<u64> =
            letters[at..].iter().map_while(|letter| letter.to_digit(10).map(u64::from)).collect();
        let value = digits.iter().fold(start, |value, digit| value.wrapping_mul(10).wrapping_add(*digit));
        (value, digits.len())
    };
    number(&left).cmp(&number(&right)).then(one.cmp(&two))
}
