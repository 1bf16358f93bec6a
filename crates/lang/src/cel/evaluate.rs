//! Walks a checked tree over the data. The tree is at most `MAX_DEPTH` deep, so the recursion is bounded; everything
//! else is paid from the meter.

use std::rc::Rc;

use serde_json::Value as Json;

use super::EvaluateProblem;
use super::functions;
use super::meter::{Fault, Meter, types};
use super::node::{Each, Item, Kind, Node, Walk};
use super::operators;
use super::value::{List, Map, Text, Value, same_scalar};
use crate::answer::{Answer, NotYet};

/// A fault and the part of the expression that met it.
struct Stop<'a> {
    node: &'a Node,
    fault: Fault,
}

type Outcome<'a, T = Value<'a>> = Result<T, Stop<'a>>;

/// Judges the expression over the values of its variables.
pub(super) fn answer(root: &Node, roots: Vec<Option<&Json>>) -> Result<Answer, (usize, EvaluateProblem)> {
    let mut machine = Machine { roots, locals: Vec::new(), meter: Meter::new() };
    match machine.run(root) {
        Ok(Value::Bool(holds)) => Ok(holds.into()),
        // `self.?status.?ready`, without the `.orValue(…)`: an absent answer is an answer that is not there yet.
        Ok(Value::Optional(None)) => Ok(Answer::NotYet(NotYet::Missing { path: root.spell() })),
        Ok(Value::Optional(Some(inner))) if matches!(*inner, Value::Bool(_)) => {
            Ok(matches!(*inner, Value::Bool(true)).into())
        }
        Ok(other) => Err((root.at, EvaluateProblem::NotBool(other.type_name()))),
        Err(Stop { node, fault: Fault::Missing }) => {
            Ok(Answer::NotYet(NotYet::Missing { path: node.spell() }))
        }
        Err(Stop { fault: Fault::TooLarge(what), .. }) => Ok(Answer::NotYet(NotYet::TooLarge { what })),
        Err(Stop { node, fault: Fault::Wrong(problem) }) => Err((node.at, problem)),
    }
}

struct Machine<'a> {
    roots: Vec<Option<&'a Json>>,
    locals: Vec<Value<'a>>,
    meter: Meter,
}

impl<'a> Machine<'a> {
    fn run(&mut self, node: &'a Node) -> Outcome<'a> {
        let stop = |fault| Stop { node, fault };
        self.meter.steps(1).map_err(stop)?;
        match &node.kind {
            Kind::Null => Ok(Value::Null),
            Kind::Bool(value) => Ok(Value::Bool(*value)),
            Kind::Int(value) => Ok(Value::Int(*value)),
            Kind::Uint(value) => Ok(Value::Uint(*value)),
            Kind::Double(value) => Ok(Value::Double(*value)),
            Kind::String(value) => Ok(Value::String(Text::Given(value))),
            Kind::Type(name) => Ok(Value::Type(name)),
            Kind::Variable(index, _) => {
                let json = self.roots.get(*index).copied().flatten();
                json.map(Value::from).ok_or_else(|| stop(Fault::Missing))
            }
            Kind::Local(index, _) => self.locals.get(*index).cloned().ok_or_else(|| stop(Fault::Missing)),
            Kind::Field(of, name) => {
                let of = self.run(of)?;
                field(&of, name).map_err(stop)
            }
            Kind::Has(of, name) => {
                let of = self.run(of)?;
                has(&of, name).map_err(stop)
            }
            Kind::OptionalField(of, name) => {
                let of = self.run(of)?;
                let name = Value::String(Text::Given(name));
                optional_index(&mut self.meter, &of, &name).map_err(stop)
            }
            Kind::Index(of, index) => {
                let of = self.run(of)?;
                let index = self.run(index)?;
                match &of {
                    Value::Optional(_) => optional_index(&mut self.meter, &of, &index),
                    _ => at(&of, &index),
                }
                .map_err(stop)
            }
            Kind::OptionalIndex(of, index) => {
                let of = self.run(of)?;
                let index = self.run(index)?;
                optional_index(&mut self.meter, &of, &index).map_err(stop)
            }
            Kind::Not(of) => self.truth(of).map(|value| Value::Bool(!value)),
            Kind::Negate(of) => {
                let value = self.run(of)?;
                operators::negate(&value).map_err(stop)
            }
            Kind::And(left, right) => self.both(left, right, false),
            Kind::Or(left, right) => self.both(left, right, true),
            Kind::Conditional(test, yes, no) => {
                let branch = if self.truth(test)? { yes } else { no };
                self.run(branch)
            }
            Kind::Binary(operator, left, right) => {
                let left = self.run(left)?;
                let right = self.run(right)?;
                operators::binary(&mut self.meter, *operator, &left, &right).map_err(stop)
            }
            Kind::List(items) => self.list(node, items),
            Kind::Map(entries) => self.map(node, entries),
            Kind::Each(each) => self.each(node, each),
            Kind::Call(function, arguments) => {
                let arguments =
                    arguments.iter().map(|argument| self.run(argument)).collect::<Outcome<'_, Vec<_>>>()?;
                functions::call(&mut self.meter, *function, &arguments).map_err(stop)
            }
            Kind::Matches(of, pattern) => {
                let value = self.run(of)?;
                let Value::String(text) = &value else {
                    return Err(stop(types("matches", &[&value])));
                };
                let text = text.as_str();
                self.meter.steps(pattern.price(text)).map_err(stop)?;
                Ok(Value::Bool(pattern.is_found(text)))
            }
        }
    }

    fn truth(&mut self, node: &'a Node) -> Outcome<'a, bool> {
        match self.run(node)? {
            Value::Bool(value) => Ok(value),
            other => Err(Stop { node, fault: types("a true-or-false operator", &[&other]) }),
        }
    }

    /// `&&` and `||`: the deciding value on either side decides, whatever is wrong or missing on the other.
    fn both(&mut self, left: &'a Node, right: &'a Node, deciding: bool) -> Outcome<'a> {
        let mut verdict = Verdict::new(deciding);
        if verdict.hear(self.truth(left))? || verdict.hear(self.truth(right))? {
            return Ok(Value::Bool(deciding));
        }
        verdict.give()
    }

    fn list(&mut self, node: &'a Node, items: &'a [Item]) -> Outcome<'a> {
        let mut values = Vec::with_capacity(items.len());
        for item in items {
            values.extend(self.item(item)?);
        }
        self.meter.list(values).map_err(|fault| Stop { node, fault })
    }

    fn map(&mut self, node: &'a Node, items: &'a [(Node, Item)]) -> Outcome<'a> {
        let mut entries: Vec<(Value<'a>, Value<'a>)> = Vec::with_capacity(items.len());
        for (key_node, item) in items {
            let key = self.run(key_node)?;
            if !matches!(key, Value::String(_) | Value::Bool(_) | Value::Int(_) | Value::Uint(_)) {
                return Err(Stop { node: key_node, fault: types("a map key", &[&key]) });
            }
            if entries.iter().any(|(known, _)| same_scalar(known, &key)) {
                return Err(Stop { node: key_node, fault: EvaluateProblem::DuplicateKey.into() });
            }
            if let Some(value) = self.item(item)? {
                entries.push((key, value));
            }
        }
        self.meter.make_list(entries.len() * 2).map_err(|fault| Stop { node, fault })?;
        Ok(Value::Map(Map::Made(entries.into())))
    }

    fn item(&mut self, item: &'a Item) -> Outcome<'a, Option<Value<'a>>> {
        let value = self.run(&item.node)?;
        if !item.optional {
            return Ok(Some(value));
        }
        match value {
            Value::Optional(inner) => Ok(inner.map(|inner| inner.as_ref().clone())),
            other => Err(Stop { node: &item.node, fault: types("an optional entry", &[&other]) }),
        }
    }

    fn each(&mut self, node: &'a Node, each: &'a Each) -> Outcome<'a> {
        let stop = |fault| Stop { node, fault };
        let range = self.run(&each.range)?;
        let length = match &range {
            Value::List(list) => list.len(),
            Value::Map(map) => map.len(),
            other => return Err(stop(types("a loop", &[other]))),
        };
        if length > each.limit {
            let what = format!("{} has more than {} elements", each.range.spell(), each.limit);
            return Err(stop(Fault::TooLarge(what)));
        }
        let items = match range {
            Value::List(list) => list,
            Value::Map(map) => {
                self.meter.make_list(length).map_err(stop)?;
                map.keys()
            }
            _ => List::Given(&[]),
        };
        match &each.walk {
            Walk::All(test) => self.quantify(&items, test, false),
            Walk::Exists(test) => self.quantify(&items, test, true),
            Walk::ExistsOne(test) => {
                let mut found = 0_usize;
                for item in items.iter() {
                    found += usize::from(self.with(item, |machine| machine.truth(test))?);
                }
                Ok(Value::Bool(found == 1))
            }
            Walk::Map(filter, made) => {
                let mut values = Vec::new();
                for item in items.iter() {
                    let value = self.with(item, |machine| match filter {
                        Some(filter) if !machine.truth(filter)? => Ok(None),
                        _ => machine.run(made).map(Some),
                    })?;
                    values.extend(value);
                }
                self.meter.list(values).map_err(stop)
            }
        }
    }

    /// `all` and `exists`: one deciding element is enough, whatever is wrong or missing in others.
    fn quantify(&mut self, items: &List<'a>, test: &'a Node, deciding: bool) -> Outcome<'a> {
        let mut verdict = Verdict::new(deciding);
        for item in items.iter() {
            if verdict.hear(self.with(item, |machine| machine.truth(test)))? {
                return Ok(Value::Bool(deciding));
            }
        }
        verdict.give()
    }

    fn with<T>(&mut self, item: Value<'a>, body: impl FnOnce(&mut Self) -> Outcome<'a, T>) -> Outcome<'a, T> {
        self.locals.push(item);
        let outcome = body(self);
        self.locals.pop();
        outcome
    }
}

/// What is known so far of a chain of `&&` or `||`.
struct Verdict<'a> {
    deciding: bool,
    pending: Option<Stop<'a>>,
}

impl<'a> Verdict<'a> {
    fn new(deciding: bool) -> Self {
        Verdict { deciding, pending: None }
    }

    /// Takes in one part; true when it decides. A bound that was reached ends everything: going on would cost more.
    fn hear(&mut self, part: Outcome<'a, bool>) -> Outcome<'a, bool> {
        match part {
            Ok(value) => return Ok(value == self.deciding),
            Err(stop) if matches!(stop.fault, Fault::TooLarge(_)) => return Err(stop),
            // What is missing may still come and decide; what is wrong only counts when nothing is missing.
            Err(stop) if matches!(stop.fault, Fault::Missing) => {
                if !matches!(&self.pending, Some(Stop { fault: Fault::Missing, .. })) {
                    self.pending = Some(stop);
                }
            }
            Err(stop) => {
                self.pending.get_or_insert(stop);
            }
        }
        Ok(false)
    }

    fn give(self) -> Outcome<'a> {
        self.pending.map_or(Ok(Value::Bool(!self.deciding)), Err)
    }
}

fn field<'a>(of: &Value<'a>, name: &str) -> Result<Value<'a>, Fault> {
    match of {
        Value::Map(map) => map.get(name).ok_or(Fault::Missing),
        // The API server writes null for what is not set.
        Value::Null => Err(Fault::Missing),
        Value::Optional(None) => Ok(Value::Optional(None)),
        Value::Optional(Some(inner)) => match field(inner, name) {
            Ok(value) => Ok(Value::Optional(Some(Rc::new(value)))),
            Err(Fault::Missing) => Ok(Value::Optional(None)),
            Err(fault) => Err(fault),
        },
        other => Err(types("selecting a field", &[other])),
    }
}

fn has<'a>(of: &Value<'a>, name: &str) -> Result<Value<'a>, Fault> {
    match of {
        Value::Optional(None) => Ok(Value::Bool(false)),
        Value::Optional(Some(inner)) => has(inner, name),
        Value::Null => Err(Fault::Missing),
        _ => match field(of, name) {
            Ok(_) => Ok(Value::Bool(true)),
            Err(Fault::Missing) => Ok(Value::Bool(false)),
            Err(fault) => Err(fault),
        },
    }
}

fn at<'a>(of: &Value<'a>, index: &Value<'a>) -> Result<Value<'a>, Fault> {
    match (of, index) {
        (
            Value::Map(map),
            Value::String(_) | Value::Bool(_) | Value::Int(_) | Value::Uint(_) | Value::Double(_),
        ) => map.get_by(index).ok_or(Fault::Missing),
        (Value::List(list), Value::Int(_) | Value::Uint(_)) => {
            let place = match index {
                Value::Int(place) => usize::try_from(*place).ok(),
                Value::Uint(place) => usize::try_from(*place).ok(),
                _ => None,
            };
            place.and_then(|place| list.get(place)).ok_or(Fault::Missing)
        }
        (Value::Null, _) => Err(Fault::Missing),
        _ => Err(types("[]", &[of, index])),
    }
}

/// Selection that gives `optional.none()` for what is not there.
fn optional_index<'a>(meter: &mut Meter, of: &Value<'a>, index: &Value<'a>) -> Result<Value<'a>, Fault> {
    meter.make_list(1)?;
    let of = match of {
        Value::Optional(None) => return Ok(Value::Optional(None)),
        Value::Optional(Some(inner)) => inner,
        other => other,
    };
    match at(of, index) {
        Ok(value) => Ok(Value::Optional(Some(Rc::new(value)))),
        Err(Fault::Missing) => Ok(Value::Optional(None)),
        Err(fault) => Err(fault),
    }
}
