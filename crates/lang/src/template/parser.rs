//! Tokens to a tree, with Go's grammar and Go's refusals.
//!
//! Called by [`super::Template::parse`]. Unknown functions and undefined variables are found here, so a template
//! that parses fails later only because of its data.

mod pipeline;

use std::collections::BTreeMap;

use super::lexer::{self, TemplateToken, TokenKind};
use super::limits;
use super::literal;
use super::node::{Branches, NodeKind, NodeList, TemplateNode, Tree};

/// A place in the source that is not a template, and why.
pub(crate) struct ParseProblem {
    pub(crate) offset: usize,
    pub(crate) message: String,
}

type Parsed<T> = Result<T, ParseProblem>;

/// Parses a whole source.
pub(crate) fn parse(source: &str) -> Parsed<Tree> {
    if source.len() > limits::SOURCE_BYTES {
        return problem(0, format!("a template may have at most {} bytes", limits::SOURCE_BYTES));
    }
    let tokens = lexer::tokens(source)
        .map_err(|error| ParseProblem { offset: error.offset, message: error.message })?;
    let mut parser =
        Parser { tokens, next: 0, variables: vec!["$".into()], ranges: 0, depth: 0, named: BTreeMap::new() };
    let main = parser.main()?;
    Ok(Tree { main, named: parser.named })
}

fn problem<T>(offset: usize, message: impl Into<String>) -> Parsed<T> {
    Err(ParseProblem { offset, message: message.into() })
}

struct Parser<'s> {
    tokens: Vec<TemplateToken<'s>>,
    next: usize,
    variables: Vec<Box<str>>,
    ranges: usize,
    depth: usize,
    named: BTreeMap<Box<str>, NodeList>,
}

/// What ends a list of nodes.
enum Stop {
    End,
    Else(usize),
}

/// What an action turned out to be.
enum Item {
    Node(TemplateNode),
    Nothing,
    Stop(Stop, usize),
}

impl<'s> Parser<'s> {
    fn peek(&self) -> TemplateToken<'s> {
        self.tokens[self.next.min(self.tokens.len() - 1)]
    }

    fn take(&mut self) -> TemplateToken<'s> {
        let token = self.peek();
        self.next += 1;
        token
    }

    fn skip_space(&mut self) {
        while self.peek().kind == TokenKind::Space {
            self.next += 1;
        }
    }

    fn take_word(&mut self) -> TemplateToken<'s> {
        self.skip_space();
        self.take()
    }

    fn unexpected<T>(token: TemplateToken<'s>, context: &str) -> Parsed<T> {
        if token.kind == TokenKind::Eof {
            return problem(token.offset, format!("the template ends inside {context}"));
        }
        let shown: String = token.text.chars().take(20).collect();
        problem(token.offset, format!("{shown:?} is not expected in {context}"))
    }

    fn expect_close(&mut self, context: &str) -> Parsed<()> {
        let token = self.take_word();
        if token.kind == TokenKind::RightDelimiter { Ok(()) } else { Self::unexpected(token, context) }
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

    fn main(&mut self) -> Parsed<NodeList> {
        let mut nodes = NodeList::new();
        while self.peek().kind != TokenKind::Eof {
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

    fn list(&mut self, opened: usize, context: &str) -> Parsed<(NodeList, Stop, usize)> {
        let mut nodes = NodeList::new();
        loop {
            if self.peek().kind == TokenKind::Eof {
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
            TokenKind::Text => {
                Ok(Item::Node(TemplateNode { offset: token.offset, kind: NodeKind::Text(token.text.into()) }))
            }
            TokenKind::LeftDelimiter => self.action(token.offset, top),
            _ => Self::unexpected(token, "the template"),
        }
    }

    fn action(&mut self, offset: usize, top: bool) -> Parsed<Item> {
        self.skip_space();
        let token = self.peek();
        let keyword = token.kind;
        if !matches!(
            keyword,
            TokenKind::Block
                | TokenKind::Break
                | TokenKind::Continue
                | TokenKind::Define
                | TokenKind::Else
                | TokenKind::End
                | TokenKind::If
                | TokenKind::Range
                | TokenKind::Template
                | TokenKind::With
        ) {
            let pipeline = self.pipeline("an action", TokenKind::RightDelimiter)?;
            return Ok(Item::Node(TemplateNode { offset, kind: NodeKind::Action(pipeline) }));
        }
        self.take();
        let kind = match keyword {
            TokenKind::Define if top => {
                self.define(offset)?;
                return Ok(Item::Nothing);
            }
            TokenKind::Define => {
                return problem(offset, "{{define}} is allowed only outside of other blocks");
            }
            TokenKind::Block => self.block(offset)?,
            TokenKind::Template => self.template()?,
            TokenKind::Break | TokenKind::Continue => {
                self.expect_close("{{break}} or {{continue}}")?;
                if self.ranges == 0 {
                    return problem(offset, "{{break}} and {{continue}} are allowed only inside {{range}}");
                }
                if keyword == TokenKind::Break { NodeKind::Break } else { NodeKind::Continue }
            }
            TokenKind::End => {
                self.expect_close("{{end}}")?;
                return Ok(Item::Stop(Stop::End, offset));
            }
            TokenKind::Else => {
                self.skip_space();
                let after = self.next;
                if !matches!(self.peek().kind, TokenKind::If | TokenKind::With) {
                    self.expect_close("{{else}}")?;
                }
                return Ok(Item::Stop(Stop::Else(after), offset));
            }
            TokenKind::Range => self.nested(offset, |parser| parser.range(offset))?,
            TokenKind::If => {
                NodeKind::If(self.nested(offset, |parser| parser.branches(offset, TokenKind::If))?)
            }
            _ => NodeKind::With(self.nested(offset, |parser| parser.branches(offset, TokenKind::With))?),
        };
        Ok(Item::Node(TemplateNode { offset, kind }))
    }

    fn branches(&mut self, offset: usize, keyword: TokenKind) -> Parsed<Branches> {
        let context = if keyword == TokenKind::If { "{{if}}" } else { "{{with}}" };
        let visible = self.variables.len();
        let mut tests = Vec::new();
        let mut otherwise = NodeList::new();
        loop {
            let test = self.pipeline(context, TokenKind::RightDelimiter)?;
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
        let over = self.pipeline("range", TokenKind::RightDelimiter)?;
        self.ranges += 1;
        let (body, stop, _) = self.list(offset, "{{range}}")?;
        self.ranges -= 1;
        let mut otherwise = NodeList::new();
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
            TokenKind::Quoted | TokenKind::RawText => match literal::text(token.text) {
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
        let argument = self.pipeline("{{block}}", TokenKind::RightDelimiter)?;
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
        if self.peek().kind == TokenKind::RightDelimiter {
            self.take();
            return Ok(NodeKind::Template { name, argument: None });
        }
        let argument = self.pipeline("{{template}}", TokenKind::RightDelimiter)?;
        Ok(NodeKind::Template { name, argument: Some(argument) })
    }
}

fn is_empty(nodes: &NodeList) -> bool {
    nodes.iter().all(|node| matches!(&node.kind, NodeKind::Text(text) if text.trim().is_empty()))
}
