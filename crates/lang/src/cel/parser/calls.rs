//! Calls: functions, `has`, and the loops, which bring a variable of their own.

use super::{Parsed, Parser, RESERVED, node, refuse};
use crate::cel::functions::{self, CelFunction};
use crate::cel::lexer::CelToken;
use crate::cel::node::{CelNode, CelNodeKind, Each, Walk};
use crate::cel::{CompileProblem, MAX_LIST_NESTED, MAX_LIST_SINGLE, MAX_NESTED_LOOPS};
use crate::pattern::PricedPattern;
use linchpin_words::limits;

impl Parser<'_> {
    /// `.name` or `.name(…)`, the dot taken.
    pub(super) fn selection(&mut self, of: CelNode) -> Parsed<CelNode> {
        let at = self.at();
        let escaped = matches!(self.peek(), CelToken::EscapedName(_));
        let name = self.field_name()?;
        if escaped || !self.take("(") {
            return node(at, CelNodeKind::Field(Box::new(of), name));
        }
        if let Some(form) = functions::loop_form(&name) {
            if !self.is_loop_head() {
                return refuse(at, CompileProblem::Syntax(format!("expected {form}")));
            }
            return self.each(at, &name, of);
        }
        let mut arguments = vec![of];
        self.items(")", |parser| {
            arguments.push(parser.expression()?);
            Ok(())
        })?;
        self.call(at, &name, true, arguments)
    }

    /// A call of a function by its name alone, the opening parenthesis taken.
    pub(super) fn global(&mut self, at: usize, name: &str) -> Parsed<CelNode> {
        let mut arguments = Vec::new();
        self.items(")", |parser| {
            arguments.push(parser.expression()?);
            Ok(())
        })?;
        if name == "has" && arguments.len() == 1 {
            return match arguments.pop().map(|argument| argument.kind) {
                Some(CelNodeKind::Field(of, field)) => node(at, CelNodeKind::Has(of, field)),
                _ => refuse(at, CompileProblem::Syntax("has() needs a field: has(x.field)".to_owned())),
            };
        }
        self.call(at, name, false, arguments)
    }

    /// Whether a name and a comma follow.
    fn is_loop_head(&self) -> bool {
        let comma =
            self.lexemes.get(self.next + 1).is_some_and(|lexeme| lexeme.token == CelToken::Symbol(","));
        matches!(self.peek(), CelToken::Name(_)) && comma
    }

    /// A loop over `range`; its name and opening parenthesis are taken, a variable and a comma follow.
    fn each(&mut self, at: usize, name: &str, range: CelNode) -> Parsed<CelNode> {
        let variable = self.field_name()?;
        if RESERVED.contains(&variable.as_str()) {
            return refuse(self.at(), CompileProblem::Syntax(format!("the name {variable} is reserved")));
        }
        self.must(",")?;
        self.locals.push(variable.clone());
        let outer = std::mem::replace(&mut self.deepest_loop, self.locals.len());
        let mut parts = Vec::new();
        self.items(")", |parser| {
            parts.push(parser.expression()?);
            Ok(())
        })?;
        self.locals.pop();
        let nested = self.deepest_loop;
        self.deepest_loop = nested.max(outer);
        if nested > MAX_NESTED_LOOPS {
            return refuse(at, CompileProblem::TooManyLoops);
        }
        let arguments = parts.len() + 1;
        let mut parts = parts.into_iter();
        let walk = match (name, parts.next(), parts.next(), parts.next()) {
            ("all", Some(test), None, _) => Walk::All(test),
            ("exists", Some(test), None, _) => Walk::Exists(test),
            ("exists_one" | "existsOne", Some(test), None, _) => Walk::ExistsOne(test),
            ("filter", Some(test), None, _) => {
                let element = node(at, CelNodeKind::Local(self.locals.len(), variable))?;
                Walk::Map(Some(test), element)
            }
            ("map", Some(made), None, _) => Walk::Map(None, made),
            ("map", Some(test), Some(made), None) => Walk::Map(Some(test), made),
            _ => return refuse(at, functions::unknown(name, true, arguments)),
        };
        let limit = if nested == 1 { MAX_LIST_SINGLE } else { MAX_LIST_NESTED };
        node(at, CelNodeKind::Each(Box::new(Each { range, limit, walk })))
    }
}

impl Parser<'_> {
    /// A call of a known function with as many arguments as it takes.
    fn call(&mut self, at: usize, name: &str, member: bool, mut arguments: Vec<CelNode>) -> Parsed<CelNode> {
        let Some(function) = functions::find(name, member, arguments.len()) else {
            return refuse(at, functions::unknown(name, member, arguments.len() - usize::from(member)));
        };
        if function != CelFunction::Matches {
            return node(at, CelNodeKind::Call(function, arguments));
        }
        let Some(CelNodeKind::String(pattern)) = arguments.pop().map(|argument| argument.kind) else {
            return refuse(at, CompileProblem::Pattern("this one is computed".to_owned()));
        };
        let pattern = PricedPattern::compile(&pattern)
            .or_else(|problem| refuse(at, CompileProblem::Pattern(problem)))?;
        self.patterns += pattern.size();
        if self.patterns > limits::PATTERN_COMPILED >> 10 {
            let problem = "all patterns together are too large once compiled; split the expression";
            return refuse(at, CompileProblem::Pattern(problem.to_owned()));
        }
        match arguments.pop() {
            Some(text) => node(at, CelNodeKind::Matches(Box::new(text), Box::new(pattern))),
            None => refuse(at, functions::unknown(name, member, 0)),
        }
    }
}
