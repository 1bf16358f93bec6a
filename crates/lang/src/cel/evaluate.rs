//! Walks a checked tree over the data. The tree is at most `MAX_DEPTH` deep, so the recursion is bounded; everything
//! else is paid from the meter.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use super::functions;
use super::meter::{Fault, Meter, Open, types};
use super::node::{Binary, CelNode, CelNodeKind, Each, LiteralEntry, Walk};
use super::operators;
use super::select::Selection;
use super::value::{CelList, CelText, CelValue, Map, same_scalar};
use super::{EvaluateProblem, Unknown};
use crate::answer::{Answer, NotYet};

/// A fault and the part of the expression that met it.
pub(super) struct CelStop<'a> {
    pub(super) node: &'a CelNode,
    pub(super) fault: Fault,
}

pub(super) type CelResult<'a, T = CelValue<'a>> = Result<T, CelStop<'a>>;

/// Judges the expression over the values of its variables, and adds the steps that this took to `spent`.
pub(super) fn answer(
    root: &CelNode,
    roots: Vec<Option<&Json>>,
    unknowns: Vec<Option<&BTreeMap<String, Unknown>>>,
    spent: &mut u64,
) -> Result<Answer, (usize, EvaluateProblem)> {
    let mut machine = CelMachine { unknowns, ..CelMachine::new(roots) };
    let outcome = machine.run(root);
    *spent = spent.saturating_add(machine.spent());
    match outcome {
        Ok(CelValue::Bool(holds)) => Ok(holds.into()),
        // `self.?status.?ready`, without the `.orValue(…)`: an absent answer is an answer that is not there yet.
        Ok(CelValue::Optional(None)) => Ok(Answer::NotYet(NotYet::Missing { path: root.spell() })),
        Ok(CelValue::Optional(Some(inner))) if matches!(*inner, CelValue::Bool(_)) => {
            Ok(matches!(*inner, CelValue::Bool(true)).into())
        }
        Ok(other) => Err((root.at, EvaluateProblem::NotBool(other.type_name()))),
        Err(CelStop { node, fault: Fault::Missing }) => {
            Ok(Answer::NotYet(NotYet::Missing { path: node.spell() }))
        }
        Err(CelStop { node, fault: Fault::Unknown(Open { why, field, .. }) }) => {
            let path = field.map_or_else(|| node.spell(), |field| format!("{}.{field}", node.spell()));
            Ok(Answer::NotYet(NotYet::Unknown { path, why }))
        }
        Err(CelStop { fault: Fault::TooLarge(what), .. }) => Ok(Answer::NotYet(NotYet::TooLarge { what })),
        Err(CelStop { node, fault: Fault::Wrong(problem) }) => Err((node.at, problem)),
    }
}

pub(super) struct CelMachine<'a> {
    roots: Vec<Option<&'a Json>>,
    /// For each variable, what of it cannot be seen.
    pub(super) unknowns: Vec<Option<&'a BTreeMap<String, Unknown>>>,
    locals: Vec<CelValue<'a>>,
    pub(super) meter: Meter,
}

impl<'a> CelMachine<'a> {
    pub(super) fn new(roots: Vec<Option<&'a Json>>) -> Self {
        Self { roots, unknowns: Vec::new(), locals: Vec::new(), meter: Meter::new() }
    }

    /// The steps taken so far.
    pub(super) fn spent(&self) -> u64 {
        self.meter.spent()
    }

    /// The value of a part, if it has one.
    pub(super) fn value(&mut self, node: &'a CelNode) -> Option<CelValue<'a>> {
        self.run(node).ok()
    }

    pub(super) fn run(&mut self, node: &'a CelNode) -> CelResult<'a> {
        let stop = |fault| CelStop { node, fault };
        self.meter.steps(1).map_err(stop)?;
        match &node.kind {
            CelNodeKind::Null => Ok(CelValue::Null),
            CelNodeKind::Bool(value) => Ok(CelValue::Bool(*value)),
            CelNodeKind::Int(value) => Ok(CelValue::Int(*value)),
            CelNodeKind::Uint(value) => Ok(CelValue::Uint(*value)),
            CelNodeKind::Double(value) => Ok(CelValue::Double(*value)),
            CelNodeKind::String(value) => Ok(CelValue::String(CelText::Given(value))),
            CelNodeKind::Type(name) => Ok(CelValue::Type(name)),
            CelNodeKind::Variable(index, _) => match self.unknown(*index) {
                // All of it is read, and not all of it can be seen.
                Some(unknown) => Err(stop(unknown.fault(None))),
                None => self.variable(*index).map_err(stop),
            },
            CelNodeKind::Local(index, _) => {
                self.locals.get(*index).cloned().ok_or_else(|| stop(Fault::Missing))
            }
            CelNodeKind::Field(..)
            | CelNodeKind::Has(..)
            | CelNodeKind::OptionalField(..)
            | CelNodeKind::Index(..)
            | CelNodeKind::OptionalIndex(..) => self.selection(node, Selection::All),
            CelNodeKind::Not(of) => self.truth(of).map(|value| CelValue::Bool(!value)),
            CelNodeKind::Negate(of) => {
                let value = self.run(of)?;
                operators::negate(&value).map_err(stop)
            }
            CelNodeKind::And(left, right) => self.both(left, right, false),
            CelNodeKind::Or(left, right) => self.both(left, right, true),
            CelNodeKind::Conditional(test, yes, no) => {
                let branch = if self.truth(test)? { yes } else { no };
                self.run(branch)
            }
            CelNodeKind::Binary(operator, left, right) => self.binary(node, *operator, left, right),
            CelNodeKind::List(items) => self.list(node, items),
            CelNodeKind::Map(entries) => self.map(node, entries),
            CelNodeKind::Each(each) => self.each(node, each),
            CelNodeKind::Call(function, arguments) => {
                let arguments =
                    arguments.iter().map(|argument| self.run(argument)).collect::<CelResult<'_, Vec<_>>>()?;
                functions::call(&mut self.meter, *function, &arguments).map_err(stop)
            }
            CelNodeKind::Matches(of, pattern) => {
                let value = self.run(of)?;
                let CelValue::String(text) = &value else {
                    return Err(stop(types("matches", &[&value])));
                };
                let text = text.as_str();
                self.meter.steps(pattern.price(text)).map_err(stop)?;
                Ok(CelValue::Bool(pattern.is_found(text)))
            }
        }
    }

    pub(super) fn variable(&self, index: usize) -> Result<CelValue<'a>, Fault> {
        self.roots.get(index).copied().flatten().map(CelValue::from).ok_or(Fault::Missing)
    }

    /// Applies an operator. A side of which only some words are possible decides where all of them give the same answer.
    fn binary(
        &mut self,
        node: &'a CelNode,
        operator: Binary,
        left: &'a CelNode,
        right: &'a CelNode,
    ) -> CelResult<'a> {
        let stop = |fault| CelStop { node, fault };
        let (open, words, known, open_is_left) = match self.run(left) {
            Ok(known) => match self.run(right) {
                Ok(right) => {
                    return operators::binary(&mut self.meter, operator, &known, &right).map_err(stop);
                }
                Err(side) => {
                    let words = side.words_of(right);
                    (side, words, known, false)
                }
            },
            Err(side) => match side.words_of(left) {
                None => return Err(side),
                words => (side, words, self.run(right)?, true),
            },
        };
        let Some(words) = words else { return Err(open) };
        let mut agreed = None;
        for word in words {
            let word = CelValue::String(CelText::Given(word));
            let (left, right) = if open_is_left { (&word, &known) } else { (&known, &word) };
            match operators::binary(&mut self.meter, operator, left, right).map_err(stop)? {
                CelValue::Bool(answer) if agreed.is_none_or(|agreed| agreed == answer) => {
                    agreed = Some(answer);
                }
                _ => return Err(open),
            }
        }
        agreed.map(CelValue::Bool).ok_or(open)
    }

    fn truth(&mut self, node: &'a CelNode) -> CelResult<'a, bool> {
        match self.run(node)? {
            CelValue::Bool(value) => Ok(value),
            other => Err(CelStop { node, fault: types("a true-or-false operator", &[&other]) }),
        }
    }

    /// `&&` and `||`: the deciding value on either side decides, whatever is wrong or missing on the other.
    fn both(&mut self, left: &'a CelNode, right: &'a CelNode, deciding: bool) -> CelResult<'a> {
        let mut chain = BooleanChain::new(deciding);
        if chain.hear(self.truth(left))? || chain.hear(self.truth(right))? {
            return Ok(CelValue::Bool(deciding));
        }
        chain.give()
    }

    fn list(&mut self, node: &'a CelNode, items: &'a [LiteralEntry]) -> CelResult<'a> {
        let mut values = Vec::with_capacity(items.len());
        for item in items {
            values.extend(self.item(item)?);
        }
        self.meter.list(values).map_err(|fault| CelStop { node, fault })
    }

    fn map(&mut self, node: &'a CelNode, items: &'a [(CelNode, LiteralEntry)]) -> CelResult<'a> {
        let mut entries: Vec<(CelValue<'a>, CelValue<'a>)> = Vec::with_capacity(items.len());
        for (key_node, item) in items {
            let key = self.run(key_node)?;
            if !matches!(key, CelValue::String(_) | CelValue::Bool(_) | CelValue::Int(_) | CelValue::Uint(_))
            {
                return Err(CelStop { node: key_node, fault: types("a map key", &[&key]) });
            }
            if entries.iter().any(|(known, _)| same_scalar(known, &key)) {
                return Err(CelStop { node: key_node, fault: EvaluateProblem::DuplicateKey.into() });
            }
            if let Some(value) = self.item(item)? {
                entries.push((key, value));
            }
        }
        self.meter.make_list(entries.len() * 2).map_err(|fault| CelStop { node, fault })?;
        Ok(CelValue::Map(Map::Made(entries.into())))
    }

    fn item(&mut self, item: &'a LiteralEntry) -> CelResult<'a, Option<CelValue<'a>>> {
        let value = self.run(&item.node)?;
        if !item.optional {
            return Ok(Some(value));
        }
        match value {
            CelValue::Optional(inner) => Ok(inner.map(|inner| inner.as_ref().clone())),
            other => Err(CelStop { node: &item.node, fault: types("an optional entry", &[&other]) }),
        }
    }

    fn each(&mut self, node: &'a CelNode, each: &'a Each) -> CelResult<'a> {
        let stop = |fault| CelStop { node, fault };
        let range = self.run(&each.range)?;
        let length = match &range {
            CelValue::List(list) => list.len(),
            CelValue::Map(map) => map.len(),
            other => return Err(stop(types("a loop", &[other]))),
        };
        if length > each.limit {
            let what = format!("{} has more than {} elements", each.range.spell(), each.limit);
            return Err(stop(Fault::TooLarge(what)));
        }
        let items = match range {
            CelValue::List(list) => list,
            CelValue::Map(map) => {
                self.meter.make_list(length).map_err(stop)?;
                map.keys()
            }
            _ => CelList::Given(&[]),
        };
        match &each.walk {
            Walk::All(test) => self.quantify(&items, test, false),
            Walk::Exists(test) => self.quantify(&items, test, true),
            Walk::ExistsOne(test) => {
                let mut found = 0_usize;
                for item in items.iter() {
                    found += usize::from(self.with(item, |machine| machine.truth(test))?);
                }
                Ok(CelValue::Bool(found == 1))
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
    fn quantify(&mut self, items: &CelList<'a>, test: &'a CelNode, deciding: bool) -> CelResult<'a> {
        let mut chain = BooleanChain::new(deciding);
        for item in items.iter() {
            if chain.hear(self.with(item, |machine| machine.truth(test)))? {
                return Ok(CelValue::Bool(deciding));
            }
        }
        chain.give()
    }

    fn with<T>(
        &mut self,
        item: CelValue<'a>,
        body: impl FnOnce(&mut Self) -> CelResult<'a, T>,
    ) -> CelResult<'a, T> {
        self.locals.push(item);
        let outcome = body(self);
        self.locals.pop();
        outcome
    }
}

/// What is known so far of a chain of `&&` or `||`.
struct BooleanChain<'a> {
    deciding: bool,
    pending: Option<CelStop<'a>>,
}

impl<'a> BooleanChain<'a> {
    fn new(deciding: bool) -> Self {
        BooleanChain { deciding, pending: None }
    }

    /// Takes in one part; true when it decides. A bound that was reached ends everything: going on would cost more.
    fn hear(&mut self, part: CelResult<'a, bool>) -> CelResult<'a, bool> {
        match part {
            Ok(value) => return Ok(value == self.deciding),
            Err(stop) if matches!(stop.fault, Fault::TooLarge(_)) => return Err(stop),
            // What is missing may still come and decide; what is wrong only counts when nothing is missing.
            Err(stop) if is_open(&stop.fault) => {
                if !self.pending.as_ref().is_some_and(|pending| is_open(&pending.fault)) {
                    self.pending = Some(stop);
                }
            }
            Err(stop) => {
                self.pending.get_or_insert(stop);
            }
        }
        Ok(false)
    }

    fn give(self) -> CelResult<'a> {
        self.pending.map_or(Ok(CelValue::Bool(!self.deciding)), Err)
    }
}

/// Whether a value may still be had, with other data.
fn is_open(fault: &Fault) -> bool {
    matches!(fault, Fault::Missing | Fault::Unknown(_))
}
