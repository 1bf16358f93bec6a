//! Running a parsed template over data.
//!
//! Follows Go's `text/template/exec.go` step by step; the differences are those this module's parent lists. The
//! evaluator keeps where it is (`at`), so an error raised anywhere gets the place of the node being evaluated.

mod call;

use serde_json::Value as Json;

use super::error::Cause;
use super::limits;
use super::moment;
use super::node::{Branches, NodeKind, Number, Operand, OperandKind, Pipeline, TemplateNode, Tree};
use super::store::Store;
use super::value::{Evaluated, PathId, TemplateText, Value};

/// How a list of nodes ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flow {
    Next,
    Break,
    Continue,
}

/// One rendering in progress.
pub(crate) struct Evaluator<'d> {
    pub(crate) store: Store<'d>,
    pub(crate) output: String,
    /// The offset in the source of the node being evaluated.
    pub(crate) at: usize,
    tree: &'d Tree,
    variables: Vec<(&'d str, Value<'d>)>,
    /// Where the variables of the running template start: a called template sees none of its caller's.
    visible: usize,
    depth: usize,
    calls: usize,
}

impl<'d> Evaluator<'d> {
    /// A rendering of about `expected` bytes.
    pub(crate) fn new(tree: &'d Tree, data: &'d Json, store: Store<'d>, expected: usize) -> Self {
        Self {
            store,
            output: String::with_capacity(expected),
            at: 0,
            tree,
            variables: vec![("$", Value::of(data, PathId::ROOT))],
            visible: 0,
            depth: 0,
            calls: 0,
        }
    }

    /// Renders the whole template into `output`.
    pub(crate) fn run(&mut self) -> Result<(), Cause> {
        let dot = self.variables[0].1.clone();
        self.walk(&dot, &self.tree.main)?;
        Ok(())
    }

    /// Evaluates the one pipeline of a template that is nothing else.
    pub(crate) fn run_pipeline(&mut self, pipeline: &'d Pipeline) -> Evaluated<'d> {
        let dot = self.variables[0].1.clone();
        self.pipeline(&dot, pipeline)
    }

    fn deeper<T>(&mut self, inner: impl FnOnce(&mut Self) -> Result<T, Cause>) -> Result<T, Cause> {
        if self.depth >= limits::EVALUATION_DEPTH {
            return Err(Cause::Limit { what: "nested steps", limit: limits::EVALUATION_DEPTH });
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    fn write(&mut self, text: &str) -> Result<(), Cause> {
        if self.output.len() + text.len() > limits::OUTPUT_BYTES {
            return Err(Cause::Limit { what: "bytes of output", limit: limits::OUTPUT_BYTES });
        }
        self.output.push_str(text);
        Ok(())
    }

    fn walk(&mut self, dot: &Value<'d>, nodes: &'d [TemplateNode]) -> Result<Flow, Cause> {
        for node in nodes {
            self.store.step(1)?;
            self.at = node.offset;
            let flow = match &node.kind {
                NodeKind::Text(text) => {
                    self.write(text)?;
                    Flow::Next
                }
                NodeKind::Action(pipeline) => {
                    let value = self.pipeline(dot, pipeline)?;
                    if pipeline.variables.is_empty() {
                        self.at = node.offset;
                        self.print(&value)?;
                    }
                    Flow::Next
                }
                NodeKind::If(branches) => self.deeper(|this| this.branches(dot, branches, false))?,
                NodeKind::With(branches) => self.deeper(|this| this.branches(dot, branches, true))?,
                NodeKind::Range { over, body, otherwise } => {
                    self.deeper(|this| this.range(dot, over, body, otherwise))?
                }
                NodeKind::Template { name, argument } => {
                    self.deeper(|this| this.call_template(dot, name, argument.as_ref()))?;
                    Flow::Next
                }
                NodeKind::Break => Flow::Break,
                NodeKind::Continue => Flow::Continue,
            };
            if flow != Flow::Next {
                return Ok(flow);
            }
        }
        Ok(Flow::Next)
    }

    fn print(&mut self, value: &Value<'d>) -> Result<(), Cause> {
        match value {
            Value::Nil(_) => self.write("<no value>"),
            Value::Text(text) => self.write(text),
            _ => {
                let text = self.store.display(value)?;
                self.write(&text)
            }
        }
    }

    fn branches(&mut self, dot: &Value<'d>, branches: &'d Branches, sets_dot: bool) -> Result<Flow, Cause> {
        let mark = self.variables.len();
        for (test, body) in &branches.tests {
            let value = self.pipeline(dot, test)?;
            if self.store.is_true(&value) {
                let flow = self.walk(if sets_dot { &value } else { dot }, body);
                self.variables.truncate(mark);
                return flow;
            }
        }
        let flow = self.walk(dot, &branches.otherwise);
        self.variables.truncate(mark);
        flow
    }

    fn range(
        &mut self,
        dot: &Value<'d>,
        over: &'d Pipeline,
        body: &'d [TemplateNode],
        otherwise: &'d [TemplateNode],
    ) -> Result<Flow, Cause> {
        let mark = self.variables.len();
        let flow = self.iterate(dot, over, body, otherwise);
        self.variables.truncate(mark);
        flow
    }

    fn iterate(
        &mut self,
        dot: &Value<'d>,
        over: &'d Pipeline,
        body: &'d [TemplateNode],
        otherwise: &'d [TemplateNode],
    ) -> Result<Flow, Cause> {
        let value = self.pipeline(dot, over)?;
        let mut ran = false;
        let number = |number: i64| match &value {
            Value::Int64(_) => Value::Int64(number),
            Value::Byte(_) => Value::Byte(u8::try_from(number).unwrap_or(u8::MAX)),
            _ => Value::Int(number),
        };
        match &value {
            Value::Int(_) | Value::Int64(_) | Value::Byte(_) if over.variables.len() > 1 => {
                return Err(Cause::Type("a range over a number has one variable only".to_owned()));
            }
            Value::Int(count) | Value::Int64(count) => {
                for index in 0..*count {
                    ran = true;
                    if self.iteration(over, body, Value::NIL, &number(index))? == Flow::Break {
                        break;
                    }
                }
            }
            Value::Byte(count) => {
                for index in 0..*count {
                    ran = true;
                    if self.iteration(over, body, Value::NIL, &number(i64::from(index)))? == Flow::Break {
                        break;
                    }
                }
            }
            Value::Nil(_) => {}
            _ => {
                if let Some(items) = self.store.items(&value)? {
                    for (index, item) in items.into_iter().enumerate() {
                        ran = true;
                        if self.iteration(over, body, Value::count(index), &item)? == Flow::Break {
                            break;
                        }
                    }
                } else if let Some(entries) = self.store.entries(&value)? {
                    for (key, item) in entries {
                        ran = true;
                        if self.iteration(over, body, Value::Text(key), &item)? == Flow::Break {
                            break;
                        }
                    }
                } else {
                    return Err(Cause::Type(format!(
                        "range can't iterate over a value of type {}",
                        self.store.type_name(&value)
                    )));
                }
            }
        }
        if ran { Ok(Flow::Next) } else { self.walk(dot, otherwise) }
    }

    fn iteration(
        &mut self,
        over: &'d Pipeline,
        body: &'d [TemplateNode],
        index: Value<'d>,
        item: &Value<'d>,
    ) -> Result<Flow, Cause> {
        self.store.step(1)?;
        let mark = self.variables.len();
        match over.variables.as_slice() {
            [] => {}
            [one] if over.assigns => self.assign(one, item)?,
            [first, second] if over.assigns => {
                self.assign(first, &index)?;
                self.assign(second, item)?;
            }
            names => {
                if names.len() > 1 {
                    self.variables[mark - 2].1 = index;
                }
                self.variables[mark - 1].1 = item.clone();
            }
        }
        let flow = self.walk(item, body);
        self.variables.truncate(mark);
        flow
    }

    fn call_template(
        &mut self,
        dot: &Value<'d>,
        name: &str,
        argument: Option<&'d Pipeline>,
    ) -> Result<(), Cause> {
        let Some(body) = self.tree.named.get(name) else {
            return Err(Cause::Type(format!("the template {name:?} is not defined")));
        };
        if self.calls >= limits::TEMPLATE_DEPTH {
            return Err(Cause::Limit { what: "nested template calls", limit: limits::TEMPLATE_DEPTH });
        }
        let dot = match argument {
            Some(argument) => self.pipeline(dot, argument)?,
            None => Value::NIL,
        };
        let outer = std::mem::replace(&mut self.visible, self.variables.len());
        self.variables.push(("$", dot.clone()));
        self.calls += 1;
        let result = self.walk(&dot, body);
        self.calls -= 1;
        self.variables.truncate(self.visible);
        self.visible = outer;
        result.map(|_| ())
    }

    fn assign(&mut self, name: &str, value: &Value<'d>) -> Result<(), Cause> {
        let visible = &mut self.variables[self.visible..];
        match visible.iter_mut().rev().find(|(known, _)| *known == name) {
            Some((_, slot)) => {
                *slot = value.clone();
                Ok(())
            }
            None => Err(Cause::Type(format!("the variable {name} is not declared"))),
        }
    }

    fn variable(&self, name: &str) -> Evaluated<'d> {
        match self.variables[self.visible..].iter().rev().find(|(known, _)| *known == name) {
            Some((_, value)) => Ok(value.clone()),
            None => Err(Cause::Type(format!("the variable {name} is not declared"))),
        }
    }

    fn pipeline(&mut self, dot: &Value<'d>, pipeline: &'d Pipeline) -> Evaluated<'d> {
        self.at = pipeline.offset;
        let mut value = None;
        for command in &pipeline.commands {
            value = Some(self.command(dot, command, value)?);
        }
        let value = value.unwrap_or(Value::NIL);
        for name in &pipeline.variables {
            if pipeline.assigns {
                self.assign(name, &value)?;
            } else {
                self.variables.push((name, value.clone()));
            }
        }
        Ok(value)
    }

    fn command(&mut self, dot: &Value<'d>, words: &'d [Operand], last: Option<Value<'d>>) -> Evaluated<'d> {
        self.store.step(1)?;
        let first = &words[0];
        self.at = first.offset;
        if let OperandKind::Function(function) = &first.kind {
            return self.call(dot, function, &words[1..], last);
        }
        if words.len() > 1 || last.is_some() {
            return self.method(dot, words, last);
        }
        if matches!(first.kind, OperandKind::Nil) {
            return Err(Cause::Type("nil alone is not a value to print".to_owned()));
        }
        self.operand(dot, first)
    }

    /// The value of one word that means a value.
    fn operand(&mut self, dot: &Value<'d>, operand: &'d Operand) -> Evaluated<'d> {
        self.at = operand.offset;
        match &operand.kind {
            OperandKind::Bool(value) => Ok(Value::Bool(*value)),
            OperandKind::Number(number) => constant(*number),
            OperandKind::Text(text) => Ok(Value::literal(text)),
            OperandKind::Nil => Ok(Value::NIL),
            OperandKind::Dot => Ok(dot.clone()),
            OperandKind::Field(names) => self.fields(dot.clone(), names),
            OperandKind::Variable(name, names) => {
                let value = self.variable(name)?;
                self.fields(value, names)
            }
            OperandKind::Function(function) => self.call(dot, function, &[], None),
            OperandKind::Pipeline(pipeline) => self.deeper(|this| this.pipeline(dot, pipeline)),
            OperandKind::Chain(base, names) => {
                if matches!(base.kind, OperandKind::Nil) {
                    return Err(Cause::Type("nil has no fields".to_owned()));
                }
                let value = self.operand(dot, base)?;
                self.at = operand.offset;
                self.fields(value, names)
            }
        }
    }

    fn fields(&mut self, mut value: Value<'d>, names: &'d [Box<str>]) -> Evaluated<'d> {
        for name in names {
            value = self.field(&value, name)?;
        }
        Ok(value)
    }

    fn field(&self, receiver: &Value<'d>, name: &'d str) -> Evaluated<'d> {
        match receiver {
            Value::Data(Json::Object(entries), path) => {
                if let Some((key, item)) = entries.get_key_value(name) {
                    return Ok(self.store.at_key(item, *path, key));
                }
                if let Some(key) = super::lookup::fallback(&self.store, entries, name)? {
                    return Ok(self.store.at_key(&entries[key], *path, key));
                }
                let child = self.store.child(*path, &TemplateText::Literal(name));
                if *path == PathId::ROOT && name == "Now" {
                    self.store.read(child);
                    return self.store.text(moment::format(self.store.now, moment::RFC3339));
                }
                Err(self.absent(child, name))
            }
            Value::Nil(path) => Err(self.absent(self.store.child(*path, &TemplateText::Literal(name)), name)),
            Value::Dict(_) => match self.store.entry(receiver, &TemplateText::Literal(name)) {
                Some(value) => Ok(value),
                None => Err(self.absent(PathId::NONE, name)),
            },
            Value::Moment(moment) => match moment::part(*moment, name) {
                Some(number) => Ok(number),
                None => Err(Cause::Type(format!("a time has no field {name}"))),
            },
            _ => Err(Cause::Type(format!(
                "can't look up the field {name} in a value of type {}",
                self.store.type_name(receiver)
            ))),
        }
    }

    fn absent(&self, path: PathId, name: &str) -> Cause {
        self.store
            .missing(path)
            .unwrap_or_else(|| Cause::Type(format!("a value made by the template has no entry {name:?}")))
    }
}

fn constant<'d>(number: Number) -> Evaluated<'d> {
    match number.integer {
        _ if number.looks_like_float => Ok(Value::Float(number.float)),
        Some(integer) => Ok(Value::Int(integer)),
        None => Err(Cause::Type("this number does not fit into an int".to_owned())),
    }
}
