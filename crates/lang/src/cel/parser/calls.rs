//! Calls: functions, `has`, and the loops, which bring a variable of their own.

use super::{Parsed, Parser, RESERVED, node, refuse};
use crate::cel::functions::{self, Function};
use crate::cel::lexer::Token;
use crate::cel::node::{Each, Kind, Node, Walk};
use crate::cel::{CompileProblem, MAX_LIST_NESTED, MAX_LIST_SINGLE, MAX_NESTED_LOOPS};
use crate::pattern::Pattern;
use linchpin_words::limits;

impl Parser<'_> {
    /// `.name` or `.name(…)`, the dot taken.
    pub(super) fn selection(&mut self, of: Node) -> Parsed<Node> {
        let at = self.at();
        let escaped = matches!(self.peek(), Token::EscapedName(_));
        let name = self.field_name()?;
        if escaped || !self.take("(") {
            return node(at, Kind::Field(Box::new(of), name));
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
    pub(super) fn global(&mut self, at: usize, name: &str) -> Parsed<Node> {
        let mut arguments = Vec::new();
        self.items(")", |parser| {
            arguments.push(parser.expression()?);
            Ok(())
        })?;
        if name == "has" && arguments.len() == 1 {
            return match arguments.pop().map(|argument| argument.kind) {
                Some(Kind::Field(of, field)) => node(at, Kind::Has(of, field)),
                _ => refuse(at, CompileProblem::Syntax("has() needs a field: has(x.field)".to_owned())),
            };
        }
        self.call(at, name, false, arguments)
    }

    /// Whether a name and a comma follow.
    fn is_loop_head(&self) -> bool {
        let comma = self.lexemes.get(self.next + 1).is_some_and(|lexeme| lexeme.token == Token::Symbol(","));
        matches!(self.peek(), Token::Name(_)) && comma
    }

    /// A loop over `range`; its name and opening parenthesis are taken, a variable and a comma follow.
    fn each(&mut self, at: usize, name: &str, range: Node) -> Parsed<Node> {
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
                let element = node(at, Kind::Local(self.locals.len(), variable))?;
                Walk::Map(Some(test), element)
            }
            ("map", Some(made), None, _) => Walk::Map(None, made),
            ("map", Some(test), Some(made), None) => Walk::Map(Some(test), made),
            _ => return refuse(at, functions::unknown(name, true, arguments)),
        };
        let limit = if nested == 1 { MAX_LIST_SINGLE } else { MAX_LIST_NESTED };
        node(at, Kind::Each(Box::new(Each { range, limit, walk })))
    }
}

impl Parser<'_> {
    /// A call of a known function with as many arguments as it takes.
    fn call(&mut self, at: usize, name: &str, member: bool, mut arguments: Vec<Node>) -> Parsed<Node> {
        let Some(function) = functions::find(name, member, arguments.len()) else {
            return refuse(at, functions::unknown(name, member, arguments.len() - usize::from(member)));
        };
        if function != Function::Matches {
            return node(at, Kind::Call(function, arguments));
        }
        let Some(Kind::String(pattern)) = arguments.pop().map(|argument| argument.kind) else {
            return refuse(at, CompileProblem::Pattern("this one is computed".to_owned()));
        };
        let pattern =
            Pattern::compile(&pattern).or_else(|problem| refuse(at, CompileProblem::Pattern(problem)))?;
        self.patterns += pattern.size();
        if self.patterns > limits::PATTERN_COMPILED >> 10 {
            let problem = "all patterns together are too large once compiled; split the expression";
            return refuse(at, CompileProblem::Pattern(problem.to_owned()));
        }
        match arguments.pop() {
            Some(text) => node(at, Kind::Matches(Box::new(text), Box::new(pattern))),
            None => refuse(at, functions::unknown(name, member, 0)),
        }
    }
}
