//! Tokens to a tree, with Go's grammar and Go's refusals.
//!
//! Called by [`super::Template::parse`]. Unknown functions and undefined variables are found here, so a template
//! that parses fails later only because of its data.

use std::collections::BTreeMap;

use super::functions;
use super::lexer::{self, Kind, Token};
use super::limits;
use super::literal;
use super::node::{Branches, List, Node, NodeKind, Number, Operand, OperandKind, Pipeline, Tree};

/// A place in the source that is not a template, and why.
pub(crate) struct Problem {
    pub(crate) offset: usize,
    pub(crate) message: String,
}

type Parsed<T> = Result<T, Problem>;

/// Parses a whole source.
pub(crate) fn parse(source: &str) -> Parsed<Tree> {
    if source.len() > limits::SOURCE_BYTES {
        return problem(0, format!("a template may have at most {} bytes", limits::SOURCE_BYTES));
    }
    let tokens =
        lexer::tokens(source).map_err(|error| Problem { offset: error.offset, message: error.message })?;
    let mut parser =
        Parser { tokens, next: 0, variables: vec!["$".into()], ranges: 0, depth: 0, named: BTreeMap::new() };
    let main = parser.main()?;
    Ok(Tree { main, named: parser.named })
}

fn problem<T>(offset: usize, message: impl Into<String>) -> Parsed<T> {
    Err(Problem { offset, message: message.into() })
}

struct Parser<'s> {
    tokens: Vec<Token<'s>>,
    next: usize,
    variables: Vec<Box<str>>,
    ranges: usize,
    depth: usize,
    named: BTreeMap<Box<str>, List>,
}

/// What ends a list of nodes.
enum Stop {
    End,
    Else(usize),
}

/// What an action turned out to be.
enum Item {
    Node(Node),
    Nothing,
    Stop(Stop, usize),
}

impl<'s> Parser<'s> {
    fn peek(&self) -> Token<'s> {
        self.tokens[self.next.min(self.tokens.len() - 1)]
    }

    fn take(&mut self) -> Token<'s> {
        let token = self.peek();
        self.next += 1;
        token
    }

    fn skip_space(&mut self) {
        while self.peek().kind == Kind::Space {
            self.next += 1;
        }
    }

    fn take_word(&mut self) -> Token<'s> {
        self.skip_space();
        self.take()
    }

    fn unexpected<T>(token: Token<'s>, context: &str) -> Parsed<T> {
        if token.kind == Kind::Eof {
            return problem(token.offset, format!("the template ends inside {context}"));
        }
        let shown: String = token.text.chars().take(20).collect();
        problem(token.offset, format!("{shown:?} is not expected in {context}"))
    }

    fn expect_close(&mut self, context: &str) -> Parsed<()> {
        let token = self.take_word();
        if token.kind == Kind::RightDelimiter { Ok(()) } else { Self::unexpected(token, context) }
    }

    fn nested<T>(&mut self, offset: usize, inner: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth >= limits::NESTING {
            return problem(
                offset,
                format!("blocks and parentheses may be nested at most {} deep", limits::NESTING),
            );
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    fn main(&mut self) -> Parsed<List> {
        let mut nodes = List::new();
        while self.peek().kind != Kind::Eof {
            match self.item(true)? {
                Item::Node(node) => nodes.push(node),
                Item::Nothing => {}
                Item::Stop(Stop::End, offset) => return problem(offset, "this {{end}} closes nothing"),
                Item::Stop(Stop::Else(_), offset) => {
                    return problem(offset, "this {{else}} belongs to nothing");
                }
            }
        }
        Ok(nodes)
    }

    fn list(&mut self, opened: usize, context: &str) -> Parsed<(List, Stop, usize)> {
        let mut nodes = List::new();
        loop {
            if self.peek().kind == Kind::Eof {
                return problem(opened, format!("this {context} is not closed with {{{{end}}}}"));
            }
            match self.item(false)? {
                Item::Node(node) => nodes.push(node),
                Item::Nothing => {}
                Item::Stop(stop, offset) => return Ok((nodes, stop, offset)),
            }
        }
    }

    fn item(&mut self, top: bool) -> Parsed<Item> {
        let token = self.take_word();
        match token.kind {
            Kind::Text => {
                Ok(Item::Node(Node { offset: token.offset, kind: NodeKind::Text(token.text.into()) }))
            }
            Kind::LeftDelimiter => self.action(token.offset, top),
            _ => Self::unexpected(token, "the template"),
        }
    }

    fn action(&mut self, offset: usize, top: bool) -> Parsed<Item> {
        self.skip_space();
        let token = self.peek();
        let keyword = token.kind;
        if !matches!(
            keyword,
            Kind::Block
                | Kind::Break
                | Kind::Continue
                | Kind::Define
                | Kind::Else
                | Kind::End
                | Kind::If
                | Kind::Range
                | Kind::Template
                | Kind::With
        ) {
            let pipeline = self.pipeline("an action", Kind::RightDelimiter)?;
            return Ok(Item::Node(Node { offset, kind: NodeKind::Action(pipeline) }));
        }
        self.take();
        let kind = match keyword {
            Kind::Define if top => {
                self.define(offset)?;
                return Ok(Item::Nothing);
            }
            Kind::Define => return problem(offset, "{{define}} is allowed only outside of other blocks"),
            Kind::Block => self.block(offset)?,
            Kind::Template => self.template()?,
            Kind::Break | Kind::Continue => {
                self.expect_close("{{break}} or {{continue}}")?;
                if self.ranges == 0 {
                    return problem(offset, "{{break}} and {{continue}} are allowed only inside {{range}}");
                }
                if keyword == Kind::Break { NodeKind::Break } else { NodeKind::Continue }
            }
            Kind::End => {
                self.expect_close("{{end}}")?;
                return Ok(Item::Stop(Stop::End, offset));
            }
            Kind::Else => {
                self.skip_space();
                let after = self.next;
                if !matches!(self.peek().kind, Kind::If | Kind::With) {
                    self.expect_close("{{else}}")?;
                }
                return Ok(Item::Stop(Stop::Else(after), offset));
            }
            Kind::Range => self.nested(offset, |parser| parser.range(offset))?,
            Kind::If => NodeKind::If(self.nested(offset, |parser| parser.branches(offset, Kind::If))?),
            _ => NodeKind::With(self.nested(offset, |parser| parser.branches(offset, Kind::With))?),
        };
        Ok(Item::Node(Node { offset, kind }))
    }

    fn branches(&mut self, offset: usize, keyword: Kind) -> Parsed<Branches> {
        let context = if keyword == Kind::If { "{{if}}" } else { "{{with}}" };
        let visible = self.variables.len();
        let mut tests = Vec::new();
        let mut otherwise = List::new();
        loop {
            let test = self.pipeline(context, Kind::RightDelimiter)?;
            let (body, stop, _) = self.list(offset, context)?;
            tests.push((test, body));
            let Stop::Else(after) = stop else { break };
            if self.next == after {
                let token = self.take();
                if token.kind != keyword {
                    return Self::unexpected(token, context);
                }
                continue;
            }
            let (body, stop, stopped) = self.list(offset, context)?;
            if matches!(stop, Stop::Else(_)) {
                return problem(stopped, "expected {{end}}, there was an {{else}} already");
            }
            otherwise = body;
            break;
        }
        self.variables.truncate(visible);
        Ok(Branches { tests, otherwise })
    }

    fn range(&mut self, offset: usize) -> Parsed<NodeKind> {
        let visible = self.variables.len();
        let over = self.pipeline("range", Kind::RightDelimiter)?;
        self.ranges += 1;
        let (body, stop, _) = self.list(offset, "{{range}}")?;
        self.ranges -= 1;
        let mut otherwise = List::new();
        if let Stop::Else(after) = stop {
            if self.next == after {
                return Self::unexpected(self.peek(), "the {{else}} of a {{range}}");
            }
            let (body, stop, stopped) = self.list(offset, "{{range}}")?;
            if matches!(stop, Stop::Else(_)) {
                return problem(stopped, "expected {{end}}, there was an {{else}} already");
            }
            otherwise = body;
        }
        self.variables.truncate(visible);
        Ok(NodeKind::Range { over, body, otherwise })
    }

    fn template_name(&mut self, context: &str) -> Parsed<(Box<str>, usize)> {
        let token = self.take_word();
        match token.kind {
            Kind::Quoted | Kind::RawText => match literal::text(token.text) {
                Ok(name) => Ok((name.into(), token.offset)),
                Err(message) => problem(token.offset, message),
            },
            _ => Self::unexpected(token, context),
        }
    }

    fn define(&mut self, offset: usize) -> Parsed<()> {
        let (name, _) = self.template_name("{{define}}")?;
        self.expect_close("{{define}}")?;
        self.definition(offset, name, "{{define}}")
    }

    fn block(&mut self, offset: usize) -> Parsed<NodeKind> {
        let (name, _) = self.template_name("{{block}}")?;
        let argument = self.pipeline("{{block}}", Kind::RightDelimiter)?;
        self.definition(offset, name.clone(), "{{block}}")?;
        Ok(NodeKind::Template { name, argument: Some(argument) })
    }

    /// The body of a named template: it sees none of the variables around it.
    fn definition(&mut self, offset: usize, name: Box<str>, context: &str) -> Parsed<()> {
        let outer_variables = std::mem::replace(&mut self.variables, vec!["$".into()]);
        let outer_ranges = std::mem::take(&mut self.ranges);
        let (body, stop, stopped) = self.nested(offset, |parser| parser.list(offset, context))?;
        if matches!(stop, Stop::Else(_)) {
            return problem(stopped, format!("{{{{else}}}} is not expected in {context}"));
        }
        self.variables = outer_variables;
        self.ranges = outer_ranges;
        let replaces = self.named.get(&name).is_none_or(is_empty);
        if !replaces && !is_empty(&body) {
            return problem(offset, format!("the template {name:?} is defined twice"));
        }
        if replaces {
            self.named.insert(name, body);
        }
        Ok(())
    }

    fn template(&mut self) -> Parsed<NodeKind> {
        let (name, _) = self.template_name("{{template}}")?;
        self.skip_space();
        if self.peek().kind == Kind::RightDelimiter {
            self.take();
            return Ok(NodeKind::Template { name, argument: None });
        }
        let argument = self.pipeline("{{template}}", Kind::RightDelimiter)?;
        Ok(NodeKind::Template { name, argument: Some(argument) })
    }

    fn pipeline(&mut self, context: &str, end: Kind) -> Parsed<Pipeline> {
        self.skip_space();
        let offset = self.peek().offset;
        let mut pipeline = Pipeline { offset, variables: Vec::new(), assigns: false, commands: Vec::new() };
        self.declarations(context, &mut pipeline)?;
        loop {
            let token = self.take_word();
            match token.kind {
                _ if token.kind == end => break,
                Kind::Bool
                | Kind::Character
                | Kind::Dot
                | Kind::Field
                | Kind::Identifier
                | Kind::Number
                | Kind::Nil
                | Kind::RawText
                | Kind::Quoted
                | Kind::Variable
                | Kind::LeftParenthesis => {
                    self.next -= 1;
                    let command = self.command()?;
                    pipeline.commands.push(command);
                }
                _ => return Self::unexpected(token, context),
            }
        }
        if pipeline.commands.is_empty() {
            return problem(offset, format!("a value is missing in {context}"));
        }
        for command in &pipeline.commands[1..] {
            let first = &command[0];
            if matches!(
                first.kind,
                OperandKind::Bool(_)
                    | OperandKind::Dot
                    | OperandKind::Nil
                    | OperandKind::Number(_)
                    | OperandKind::Text(_)
            ) {
                return problem(first.offset, "only a function can stand behind a |");
            }
        }
        Ok(pipeline)
    }

    fn declarations(&mut self, context: &str, pipeline: &mut Pipeline) -> Parsed<()> {
        loop {
            self.skip_space();
            let variable = self.peek();
            if variable.kind != Kind::Variable {
                return Ok(());
            }
            let start = self.next;
            self.take();
            self.skip_space();
            let next = self.peek();
            match next.kind {
                Kind::Assign | Kind::Declare => {
                    pipeline.assigns = next.kind == Kind::Assign;
                    self.take();
                    pipeline.variables.push(variable.text.into());
                    self.variables.push(variable.text.into());
                    return Ok(());
                }
                Kind::Comma => {
                    self.take();
                    pipeline.variables.push(variable.text.into());
                    self.variables.push(variable.text.into());
                    if context != "range" || pipeline.variables.len() > 1 {
                        return problem(next.offset, format!("too many variables are declared in {context}"));
                    }
                    self.skip_space();
                    if self.peek().kind != Kind::Variable {
                        return problem(next.offset, "a range declares variables only");
                    }
                }
                _ => {
                    self.next = start;
                    return Ok(());
                }
            }
        }
    }

    fn command(&mut self) -> Parsed<Vec<Operand>> {
        let mut words = Vec::new();
        loop {
            self.skip_space();
            if let Some(operand) = self.operand()? {
                words.push(operand);
            }
            let token = self.peek();
            match token.kind {
                Kind::Space => continue,
                Kind::RightDelimiter | Kind::RightParenthesis => {}
                Kind::Pipe => {
                    self.take();
                }
                _ => return Self::unexpected(token, "a command"),
            }
            if words.is_empty() {
                return problem(token.offset, "this command is empty");
            }
            return Ok(words);
        }
    }

    fn operand(&mut self) -> Parsed<Option<Operand>> {
        let Some(mut operand) = self.term()? else {
            return Ok(None);
        };
        let mut fields: Vec<Box<str>> = Vec::new();
        while self.peek().kind == Kind::Field {
            fields.push(self.take().text[1..].into());
        }
        if fields.is_empty() {
            return Ok(Some(operand));
        }
        operand.kind = match operand.kind {
            OperandKind::Field(mut names) => {
                names.append(&mut fields);
                OperandKind::Field(names)
            }
            OperandKind::Variable(name, mut names) => {
                names.append(&mut fields);
                OperandKind::Variable(name, names)
            }
            OperandKind::Bool(_)
            | OperandKind::Text(_)
            | OperandKind::Number(_)
            | OperandKind::Nil
            | OperandKind::Dot => return problem(operand.offset, "a field cannot follow this value"),
            kind => OperandKind::Chain(Box::new(Operand { offset: operand.offset, kind }), fields),
        };
        Ok(Some(operand))
    }

    fn term(&mut self) -> Parsed<Option<Operand>> {
        let token = self.peek();
        let offset = token.offset;
        let literal_problem = |message: &'static str| Problem { offset, message: message.to_owned() };
        let kind = match token.kind {
            Kind::Identifier => match functions::find(token.text) {
                Ok(function) => OperandKind::Function(function),
                Err(message) => return problem(offset, message),
            },
            Kind::Dot => OperandKind::Dot,
            Kind::Nil => OperandKind::Nil,
            Kind::Variable => {
                if !self.variables.iter().any(|name| **name == *token.text) {
                    return problem(offset, format!("the variable {} is not declared", token.text));
                }
                OperandKind::Variable(token.text.into(), Vec::new())
            }
            Kind::Field => OperandKind::Field(vec![token.text[1..].into()]),
            Kind::Bool => OperandKind::Bool(token.text == "true"),
            Kind::Character => {
                let value = literal::character(token.text).map_err(literal_problem)?;
                OperandKind::Number(Number {
                    integer: Some(i64::from(value)),
                    float: f64::from(value),
                    looks_like_float: false,
                })
            }
            Kind::Number => OperandKind::Number(number(token.text).map_err(literal_problem)?),
            Kind::Quoted | Kind::RawText => {
                OperandKind::Text(literal::text(token.text).map_err(literal_problem)?.into())
            }
            Kind::LeftParenthesis => {
                self.take();
                let inner =
                    self.nested(offset, |parser| parser.pipeline("parentheses", Kind::RightParenthesis))?;
                return Ok(Some(Operand { offset, kind: OperandKind::Pipeline(Box::new(inner)) }));
            }
            _ => return Ok(None),
        };
        self.take();
        Ok(Some(Operand { offset, kind }))
    }
}

fn is_empty(nodes: &List) -> bool {
    nodes.iter().all(|node| matches!(&node.kind, NodeKind::Text(text) if text.trim().is_empty()))
}

#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::float_cmp)]
fn number(text: &str) -> Result<Number, &'static str> {
    let hexadecimal = text.starts_with("0x") || text.starts_with("0X");
    let looks_like_float =
        if hexadecimal { text.contains(['p', 'P']) } else { text.contains(['.', 'e', 'E', 'p', 'P']) };
    if let Some(integer) = literal::integer(text) {
        return Ok(Number { integer: Some(integer), float: integer as f64, looks_like_float });
    }
    let float = literal::float(text).ok_or("this is not a number")?;
    if !looks_like_float {
        return Err("this integer is too large");
    }
    let integer = (float as i64 as f64 == float).then_some(float as i64);
    Ok(Number { integer, float, looks_like_float })
}
