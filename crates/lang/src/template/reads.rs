//! Which data a template reads, found without running it.
//!
//! Used to draw data-flow edges and to say what a template waits for before anything is there. The answer errs on
//! the side of too much: a value given to a function counts as read as a whole. What is spelled as in the
//! template; the keys a rendering really used are in [`super::Rendered::reads`].

use std::collections::BTreeSet;

use super::limits;
use super::node::{Branches, NodeKind, Operand, OperandKind, Pipeline, TemplateNode, Tree};
use super::path::DataPath;

/// What a template reads, as far as its source shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StaticReads {
    /// The paths that are spelled out in the template.
    pub paths: BTreeSet<DataPath>,
    /// Whether it also reads places that are known only when it is rendered: `index .Dependencies $name`, `toJson .`.
    pub dynamic: bool,
}

/// How deep `template` calls are followed, and how many nodes are looked at, before the whole data counts as read.
const CALLS: usize = 8;
const NODES: usize = 20_000;

pub(crate) fn of(tree: &Tree) -> StaticReads {
    let mut finder = Finder {
        tree,
        reads: StaticReads::default(),
        variables: vec![("$", KnownValue::Path(DataPath::default()))],
        visible: 0,
        calls: Vec::new(),
        nodes: 0,
    };
    finder.walk(&KnownValue::Path(DataPath::default()), &tree.main);
    finder.reads
}

/// What is known about a value.
#[derive(Clone, PartialEq, Eq)]
enum KnownValue {
    /// It is the data at this path.
    Path(DataPath),
    /// It is made by the template, or below something that already counts as read.
    Covered,
}

struct Finder<'t> {
    tree: &'t Tree,
    reads: StaticReads,
    variables: Vec<(&'t str, KnownValue)>,
    visible: usize,
    calls: Vec<(&'t str, KnownValue)>,
    nodes: usize,
}

impl<'t> Finder<'t> {
    /// Notes that a value is used as a whole.
    fn consume(&mut self, value: &KnownValue) {
        if let KnownValue::Path(path) = value {
            self.reads.dynamic |= path.is_root();
            self.reads.paths.insert(path.clone());
        }
    }

    fn walk(&mut self, dot: &KnownValue, nodes: &'t [TemplateNode]) {
        for node in nodes {
            self.nodes += 1;
            if self.nodes > NODES {
                self.consume(&KnownValue::Path(DataPath::default()));
                return;
            }
            let mark = self.variables.len();
            match &node.kind {
                NodeKind::Text(_) | NodeKind::Break | NodeKind::Continue => {}
                NodeKind::Action(pipeline) => {
                    let value = self.pipeline(dot, pipeline);
                    if pipeline.variables.is_empty() {
                        self.consume(&value);
                    }
                    continue;
                }
                NodeKind::If(branches) => self.branches(dot, branches, false),
                NodeKind::With(branches) => self.branches(dot, branches, true),
                NodeKind::Range { over, body, otherwise } => {
                    let value = self.pipeline(dot, over);
                    self.consume(&value);
                    for (_, known) in &mut self.variables[mark..] {
                        *known = KnownValue::Covered;
                    }
                    self.walk(&KnownValue::Covered, body);
                    self.walk(dot, otherwise);
                }
                NodeKind::Template { name, argument } => self.call(dot, name, argument.as_ref()),
            }
            self.variables.truncate(mark);
        }
    }

    fn branches(&mut self, dot: &KnownValue, branches: &'t Branches, sets_dot: bool) {
        for (test, body) in &branches.tests {
            let value = self.pipeline(dot, test);
            self.consume(&value);
            self.walk(if sets_dot { &value } else { dot }, body);
        }
        self.walk(dot, &branches.otherwise);
    }

    fn call(&mut self, dot: &KnownValue, name: &'t str, argument: Option<&'t Pipeline>) {
        let dot = argument.map_or(KnownValue::Covered, |argument| self.pipeline(dot, argument));
        let Some(body) = self.tree.named.get(name) else {
            return;
        };
        let call = (name, dot.clone());
        if self.calls.contains(&call) {
            return;
        }
        if self.calls.len() >= CALLS {
            self.consume(&dot);
            self.reads.dynamic = true;
            return;
        }
        self.calls.push(call);
        let outer = std::mem::replace(&mut self.visible, self.variables.len());
        self.variables.push(("$", dot.clone()));
        self.walk(&dot, body);
        self.variables.truncate(self.visible);
        self.visible = outer;
        self.calls.pop();
    }

    fn pipeline(&mut self, dot: &KnownValue, pipeline: &'t Pipeline) -> KnownValue {
        let mut value = None;
        for command in &pipeline.commands {
            value = Some(self.command(dot, command, value));
        }
        let value = value.unwrap_or(KnownValue::Covered);
        for name in &pipeline.variables {
            if pipeline.assigns {
                // Which of the assignments a later use sees depends on the run: count all as read.
                self.consume(&value);
                let known =
                    self.variables[self.visible..].iter_mut().rev().find(|(known, _)| **known == **name);
                if let Some((_, slot)) = known {
                    let before = std::mem::replace(slot, KnownValue::Covered);
                    self.consume(&before);
                }
            } else {
                self.variables.push((name, value.clone()));
            }
        }
        value
    }

    fn command(&mut self, dot: &KnownValue, words: &'t [Operand], last: Option<KnownValue>) -> KnownValue {
        let OperandKind::Function(function) = &words[0].kind else {
            return self.operand(dot, &words[0]);
        };
        let arguments = &words[1..];
        match function.name {
            "index" if last.is_none() => {
                if let Some((base, keys)) = arguments.split_first() {
                    return self.descend(dot, base, keys);
                }
            }
            "get" | "hasKey" if arguments.len() == 2 => {
                return self.descend(dot, &arguments[0], &arguments[1..]);
            }
            "dig" => {
                if let (None, [keys @ .., default, base]) = (&last, arguments) {
                    let default = self.operand(dot, default);
                    self.consume(&default);
                    return self.descend(dot, base, keys);
                }
            }
            _ => {}
        }
        for argument in arguments {
            let value = self.operand(dot, argument);
            self.consume(&value);
        }
        if let Some(value) = last {
            self.consume(&value);
        }
        KnownValue::Covered
    }

    /// A value reached with keys instead of fields; only literal ones can be followed.
    fn descend(&mut self, dot: &KnownValue, base: &'t Operand, keys: &'t [Operand]) -> KnownValue {
        let mut value = self.operand(dot, base);
        for key in keys {
            let literal = match &key.kind {
                OperandKind::Text(text) => Some(text.to_string()),
                OperandKind::Number(number) => number.integer.map(|number| number.to_string()),
                _ => None,
            };
            match (literal, &value) {
                (Some(key), KnownValue::Path(path)) => value = self.below(path.clone(), [key]),
                (Some(_), KnownValue::Covered) => {}
                (None, _) => {
                    let key = self.operand(dot, key);
                    self.consume(&key);
                    self.reads.dynamic |= value != KnownValue::Covered;
                    self.consume(&value);
                    value = KnownValue::Covered;
                }
            }
        }
        value
    }

    fn operand(&mut self, dot: &KnownValue, operand: &'t Operand) -> KnownValue {
        let (base, names) = match &operand.kind {
            OperandKind::Dot => return dot.clone(),
            OperandKind::Field(names) => (dot.clone(), names.as_slice()),
            OperandKind::Variable(name, names) => {
                let known = self.variables[self.visible..].iter().rev().find(|(known, _)| **known == **name);
                (known.map_or(KnownValue::Covered, |(_, known)| known.clone()), names.as_slice())
            }
            OperandKind::Pipeline(pipeline) => return self.pipeline(dot, pipeline),
            OperandKind::Chain(base, names) => (self.operand(dot, base), names.as_slice()),
            _ => return KnownValue::Covered,
        };
        match base {
            KnownValue::Path(path) => self.below(path, names.iter().map(|name| String::from(&**name))),
            KnownValue::Covered => KnownValue::Covered,
        }
    }

    /// The place these segments below a path; very far down, the place above it counts as read instead. Nested
    /// blocks would otherwise add up to paths whose number and length multiply.
    fn below(&mut self, mut path: DataPath, segments: impl IntoIterator<Item = String>) -> KnownValue {
        for segment in segments {
            if path.segments().len() >= limits::FIELDS {
                self.consume(&KnownValue::Path(path));
                return KnownValue::Covered;
            }
            path.push(segment);
        }
        KnownValue::Path(path)
    }
}
