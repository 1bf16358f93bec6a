//! Says why an expression is false: its smallest part that is, and the values that were compared there.
//!
//! Only what a person can act on: of a conjunction the first side that is false, of a comparison the values of the sides
//! that are not written out. Every text has a bound.

use serde_json::Value as Json;

use super::evaluate::CelMachine;
use super::node::{Binary, CelNode, CelNodeKind};
use super::value::CelValue;
use crate::quote::{brief, quoted};

/// The longest part of an expression that is quoted, in characters.
const LONGEST_PART: usize = 160;

/// Why the expression is false. Without `values` no value of the data is named. Adds the steps that this took to `spent`.
pub(super) fn explain(
    root: &CelNode,
    source: &str,
    roots: Vec<Option<&Json>>,
    values: bool,
    spent: &mut u64,
) -> String {
    let mut machine = CelMachine::new(roots);
    let part = smallest(&mut machine, root);
    let text = |node: &CelNode| {
        let (from, to) = node.span;
        let part: String = source.chars().skip(from).take(to.saturating_sub(from)).collect();
        brief(part.trim(), LONGEST_PART)
    };
    // The whole expression has no side that quotes it.
    let said = if std::ptr::eq(part, root) { brief(source.trim(), LONGEST_PART) } else { text(part) };
    let mut sentence = format!("{said} is false");
    if let (CelNodeKind::Binary(operator, left, right), true) = (&part.kind, values)
        && compares(*operator)
    {
        let sides = [left, right].into_iter().filter(|side| !is_written_out(side));
        let values_of_sides =
            sides.filter_map(|side| Some(format!("{} is {}", text(side), show(&machine.value(side)?)?)));
        let values_of_sides: Vec<String> = values_of_sides.collect();
        if !values_of_sides.is_empty() {
            sentence.push_str(": ");
            sentence.push_str(&values_of_sides.join(", "));
        }
    }
    *spent = spent.saturating_add(machine.spent());
    sentence
}

/// The smallest part of a conjunction that is false by itself.
fn smallest<'a>(machine: &mut CelMachine<'a>, mut node: &'a CelNode) -> &'a CelNode {
    while let CelNodeKind::And(left, right) = &node.kind {
        let mut is_false = |side: &'a CelNode| matches!(machine.value(side), Some(CelValue::Bool(false)));
        node = if is_false(left) {
            left
        } else if is_false(right) {
            right
        } else {
            return node;
        };
    }
    node
}

fn compares(operator: Binary) -> bool {
    use Binary::{Equal, Greater, GreaterOrEqual, In, Less, LessOrEqual, NotEqual};
    matches!(operator, Equal | NotEqual | Less | LessOrEqual | Greater | GreaterOrEqual | In)
}

/// Whether a part says itself what its value is.
fn is_written_out(node: &CelNode) -> bool {
    let mut open = matches!(node.kind, CelNodeKind::Variable(..) | CelNodeKind::Local(..));
    node.kind.for_each_child(&mut |child| open |= !is_written_out(child));
    !open
}

/// A value in a few words.
fn show(value: &CelValue<'_>) -> Option<String> {
    Some(match value {
        CelValue::Null => "null".to_owned(),
        CelValue::Bool(value) => value.to_string(),
        CelValue::Int(value) => value.to_string(),
        CelValue::Uint(value) => value.to_string(),
        CelValue::Double(value) => value.to_string(),
        CelValue::String(text) => quoted(text.as_str()),
        CelValue::List(list) => format!("a list of {}", list.len()),
        CelValue::Map(map) => format!("a map of {}", map.len()),
        CelValue::Optional(None) => "not there".to_owned(),
        CelValue::Optional(Some(inner)) => show(inner)?,
        CelValue::Timestamp(time) => time.to_string(),
        CelValue::Duration(duration) => duration.to_string(),
        CelValue::Type(name) => (*name).to_owned(),
    })
}
