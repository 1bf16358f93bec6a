//! From tokens to a checked tree: the grammar of CEL, with names, functions and loops resolved on the way, so that
//! everything that can be refused before there is data is refused here, at its place.
//!
//! The parser recurses only into brackets, arguments and branches, and counts how deep; chains of operators and
//! selections are loops. Each node knows its height, so the tree that comes out is never deeper than allowed either.

mod calls;

use super::lexer::{self, CelToken, Lexeme};
use super::node::{Binary, CelNode, CelNodeKind, LiteralEntry};
use super::{CompileProblem, MAX_BRACKETS, MAX_DEPTH, MAX_SOURCE_BYTES};

/// The names of types, as `type(x) == string` compares them.
const TYPES: [&str; 9] = ["bool", "double", "int", "list", "map", "null_type", "string", "type", "uint"];
/// Words that CEL keeps for itself; a field may have such a name, a variable may not.
const RESERVED: [&str; 17] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];
/// Binary operators, those that bind least first.
const OPERATORS: [&[(&str, Binary)]; 3] = [
    &[
        ("==", Binary::Equal),
        ("!=", Binary::NotEqual),
        ("<", Binary::Less),
        ("<=", Binary::LessOrEqual),
        (">", Binary::Greater),
        (">=", Binary::GreaterOrEqual),
    ],
    &[("+", Binary::Add), ("-", Binary::Subtract)],
    &[("*", Binary::Multiply), ("/", Binary::Divide), ("%", Binary::Remainder)],
];

/// A refusal, and the character it is about.
#[derive(Debug)]
pub(super) struct CelRefusal {
    pub(super) at: Option<usize>,
    pub(super) problem: CompileProblem,
}

type Parsed<T> = Result<T, CelRefusal>;

/// Compiles a text that may use `variables`. Beside it: the KiB that its patterns take once compiled.
pub(super) fn parse(source: &str, variables: &[&str]) -> Parsed<(CelNode, usize)> {
    if source.len() > MAX_SOURCE_BYTES {
        return Err(CelRefusal { at: None, problem: CompileProblem::TooLong { bytes: source.len() } });
    }
    let lexemes = lexer::read(source)?;
    let mut parser =
        Parser { lexemes, next: 0, depth: 0, variables, locals: Vec::new(), deepest_loop: 0, patterns: 0 };
    let root = parser.expression()?;
    match parser.peek() {
        CelToken::End => Ok((root, parser.patterns)),
        _ => Err(parser.expected("an operator or the end")),
    }
}

struct Parser<'s> {
    lexemes: Vec<Lexeme>,
    next: usize,
    depth: usize,
    variables: &'s [&'s str],
    /// The variables of the loops around the current place.
    locals: Vec<String>,
    /// The deepest nesting of loops seen since this was last set.
    deepest_loop: usize,
    /// The KiB that the patterns so far take once compiled.
    patterns: usize,
}

fn refuse<T>(at: usize, problem: CompileProblem) -> Parsed<T> {
    Err(CelRefusal { at: Some(at), problem })
}

fn node(at: usize, kind: CelNodeKind) -> Parsed<CelNode> {
    let mut height = 0;
    kind.for_each_child(&mut |child| height = child.height.max(height));
    if height == MAX_DEPTH {
        return refuse(at, CompileProblem::TooDeep);
    }
    Ok(CelNode { at, span: (at, at), height: height + 1, kind })
}

impl Parser<'_> {
    fn peek(&self) -> &CelToken {
        self.lexemes.get(self.next).map_or(&CelToken::End, |lexeme| &lexeme.token)
    }

    /// Where the next token begins.
    fn at(&self) -> usize {
        self.lexemes.get(self.next).or(self.lexemes.last()).map_or(0, |lexeme| lexeme.at)
    }

    fn is(&self, symbol: &str) -> bool {
        matches!(self.peek(), CelToken::Symbol(next) if *next == symbol)
    }

    fn take(&mut self, symbol: &str) -> bool {
        let found = self.is(symbol);
        self.next += usize::from(found);
        found
    }

    fn must(&mut self, symbol: &'static str) -> Parsed<()> {
        if self.take(symbol) { Ok(()) } else { Err(self.expected(symbol)) }
    }

    fn expected(&self, what: &str) -> CelRefusal {
        let found = match self.peek() {
            CelToken::Name(name) | CelToken::EscapedName(name) => name.chars().take(64).collect(),
            CelToken::Int(_) | CelToken::Uint(_) | CelToken::Double(_) => "a number".to_owned(),
            CelToken::String(_) => "a string".to_owned(),
            CelToken::Symbol(symbol) => (*symbol).to_owned(),
            CelToken::End => "the end".to_owned(),
        };
        CelRefusal {
            at: Some(self.at()),
            problem: CompileProblem::Syntax(format!("expected {what}, found {found}")),
        }
    }

    /// `test ? yes : no`, or what binds closer.
    fn expression(&mut self) -> Parsed<CelNode> {
        self.depth += 1;
        if self.depth > MAX_BRACKETS {
            return refuse(self.at(), CompileProblem::TooManyBrackets);
        }
        let from = self.at();
        let mut result = self.chain("||")?;
        result.span = (from, self.at());
        let at = self.at();
        if self.take("?") {
            let yes = self.chain("||")?;
            self.must(":")?;
            let no = self.expression()?;
            result = node(at, CelNodeKind::Conditional(Box::new(result), Box::new(yes), Box::new(no)))?;
            result.span = (from, self.at());
        }
        self.depth -= 1;
        Ok(result)
    }

    /// Terms joined by `||` or `&&`. They make a balanced tree: either side may decide, so their grouping does not
    /// matter, and a long chain stays shallow.
    fn chain(&mut self, symbol: &'static str) -> Parsed<CelNode> {
        let term = |parser: &mut Self| -> Parsed<CelNode> {
            let from = parser.at();
            let mut term = if symbol == "||" { parser.chain("&&")? } else { parser.binary(0)? };
            term.span = (from, parser.at());
            Ok(term)
        };
        let mut terms = vec![term(self)?];
        let mut places = Vec::new();
        loop {
            let at = self.at();
            if !self.take(symbol) {
                return balance(symbol, terms, &places);
            }
            places.push(at);
            terms.push(term(self)?);
        }
    }

    /// Comparison, then addition, then multiplication: left to right on each level.
    fn binary(&mut self, level: usize) -> Parsed<CelNode> {
        let Some(operators) = OPERATORS.get(level) else {
            return self.unary();
        };
        let from = self.at();
        let mut left = self.binary(level + 1)?;
        loop {
            let at = self.at();
            left.span = (from, at);
            let operator = match self.peek() {
                CelToken::Symbol(symbol) => {
                    operators.iter().find(|(known, _)| known == symbol).map(|found| found.1)
                }
                CelToken::Name(name) if name == "in" && level == 0 => Some(Binary::In),
                _ => None,
            };
            let Some(operator) = operator else { return Ok(left) };
            self.next += 1;
            let from = self.at();
            let mut right = self.binary(level + 1)?;
            right.span = (from, self.at());
            left = node(at, CelNodeKind::Binary(operator, Box::new(left), Box::new(right)))?;
        }
    }

    /// `!` or `-`, any number of one of them. Two cancel each other.
    fn unary(&mut self) -> Parsed<CelNode> {
        let at = self.at();
        let symbol = if self.is("!") { "!" } else { "-" };
        let mut count = 0_usize;
        while self.take(symbol) {
            count += 1;
        }
        // The smallest whole number has no positive counterpart: its sign is part of it.
        if symbol == "-" && count % 2 == 1 && matches!(self.peek(), CelToken::Int(_) | CelToken::Double(_)) {
            return self.member(true);
        }
        let of = self.member(false)?;
        match (symbol, count % 2) {
            (_, 0) => Ok(of),
            ("!", _) => node(at, CelNodeKind::Not(Box::new(of))),
            _ => node(at, CelNodeKind::Negate(Box::new(of))),
        }
    }

    /// A value and the selections, indexes and calls that follow it.
    fn member(&mut self, negative: bool) -> Parsed<CelNode> {
        let mut of = self.primary(negative)?;
        loop {
            let at = self.at();
            if self.take(".") {
                of = if self.take("?") {
                    let at = self.at();
                    let name = self.field_name()?;
                    node(at, CelNodeKind::OptionalField(Box::new(of), name))?
                } else {
                    self.selection(of)?
                };
            } else if self.take("[") {
                let optional = self.take("?");
                let index = Box::new(self.expression()?);
                self.must("]")?;
                let of_box = Box::new(of);
                of = node(
                    at,
                    if optional {
                        CelNodeKind::OptionalIndex(of_box, index)
                    } else {
                        CelNodeKind::Index(of_box, index)
                    },
                )?;
            } else if self.is("{") {
                return refuse(at, CompileProblem::Unsupported("messages"));
            } else {
                return Ok(of);
            }
        }
    }

    fn field_name(&mut self) -> Parsed<String> {
        let name = match self.peek() {
            CelToken::Name(name) if !matches!(name.as_str(), "in" | "true" | "false" | "null") => {
                name.clone()
            }
            CelToken::EscapedName(name) => name.clone(),
            _ => return Err(self.expected("a field name (write an unusual one in brackets: x['a-b'])")),
        };
        self.next += 1;
        Ok(name)
    }

    /// Entries with commas between them up to the closing bracket; literals may have one after the last entry.
    fn items(&mut self, close: &'static str, mut item: impl FnMut(&mut Self) -> Parsed<()>) -> Parsed<()> {
        while !self.take(close) {
            item(self)?;
            let more = self.take(",");
            if more && close == ")" && self.is(close) {
                return Err(self.expected("an argument"));
            }
            if !more && !self.is(close) {
                return Err(self.expected(&format!(", or {close}")));
            }
        }
        Ok(())
    }

    fn primary(&mut self, negative: bool) -> Parsed<CelNode> {
        let at = self.at();
        let token = self.peek().clone();
        let kind = match token {
            CelToken::Symbol("(") => {
                self.next += 1;
                let inner = self.expression()?;
                self.must(")")?;
                return Ok(inner);
            }
            CelToken::Symbol("[") => {
                self.next += 1;
                let mut items = Vec::new();
                self.items("]", |parser| {
                    let optional = parser.take("?");
                    items.push(LiteralEntry { node: parser.expression()?, optional });
                    Ok(())
                })?;
                return node(at, CelNodeKind::List(items));
            }
            CelToken::Symbol("{") => {
                self.next += 1;
                let mut entries = Vec::new();
                self.items("}", |parser| {
                    let optional = parser.take("?");
                    let key = parser.expression()?;
                    parser.must(":")?;
                    entries.push((key, LiteralEntry { node: parser.expression()?, optional }));
                    Ok(())
                })?;
                return node(at, CelNodeKind::Map(entries));
            }
            CelToken::Name(name) => {
                self.next += 1;
                return self.named(at, &name);
            }
            CelToken::Int(magnitude) => {
                let signed = i128::from(magnitude) * if negative { -1 } else { 1 };
                let Ok(value) = i64::try_from(signed) else {
                    return refuse(at, CompileProblem::Syntax("this number is too large".to_owned()));
                };
                CelNodeKind::Int(value)
            }
            CelToken::Uint(value) => CelNodeKind::Uint(value),
            CelToken::Double(value) => CelNodeKind::Double(if negative { -value } else { value }),
            CelToken::String(value) => CelNodeKind::String(value),
            CelToken::Symbol(_) | CelToken::EscapedName(_) | CelToken::End => {
                return Err(self.expected("a value"));
            }
        };
        self.next += 1;
        node(at, kind)
    }

    /// A name, already taken: a constant, a variable, a type or a function.
    fn named(&mut self, at: usize, name: &str) -> Parsed<CelNode> {
        match name {
            "true" | "false" => return node(at, CelNodeKind::Bool(name == "true")),
            "null" => return node(at, CelNodeKind::Null),
            "in" => {
                return refuse(at, CompileProblem::Syntax("expected a value, found in".to_owned()));
            }
            _ => {}
        }
        let declared = self.variables.contains(&name) || self.locals.iter().any(|local| local == name);
        if name == "optional" && !declared && self.take(".") {
            let at = self.at();
            let function = format!("optional.{}", self.field_name()?);
            self.must("(")?;
            return self.global(at, &function);
        }
        if self.take("(") {
            return self.global(at, name);
        }
        if self.is("{") {
            return refuse(at, CompileProblem::Unsupported("messages"));
        }
        let kind = if let Some(index) = self.locals.iter().rposition(|local| local == name) {
            CelNodeKind::Local(index, name.to_owned())
        } else if let Some(index) = self.variables.iter().position(|&variable| variable == name) {
            CelNodeKind::Variable(index, name.to_owned())
        } else if let Some(name) = TYPES.iter().find(|&&known| known == name) {
            CelNodeKind::Type(name)
        } else {
            return refuse(at, self.unknown_name(name));
        };
        node(at, kind)
    }

    fn unknown_name(&self, name: &str) -> CompileProblem {
        let known: Vec<&str> =
            self.variables.iter().copied().chain(self.locals.iter().map(String::as_str)).collect();
        let before = self.next.checked_sub(2).and_then(|index| self.lexemes.get(index));
        let after_dash = before.is_some_and(|lexeme| lexeme.token == CelToken::Symbol("-"));
        let hint = match after_dash {
            true => " (a name with a dash is written in brackets: x['a-b'])",
            false if RESERVED.contains(&name) => " (this word is reserved)",
            false if name == "object" => " (the object is called self)",
            false => "",
        };
        CompileProblem::UnknownName { name: name.chars().take(64).collect(), known: known.join(", "), hint }
    }
}

/// Joins terms into a balanced tree.
fn balance(symbol: &'static str, mut terms: Vec<CelNode>, places: &[usize]) -> Parsed<CelNode> {
    let mut places = places.to_vec();
    while terms.len() > 1 {
        let (mut joined, mut between) = (Vec::new(), Vec::new());
        let mut rest = terms.into_iter();
        let mut gaps = places.into_iter();
        while let Some(left) = rest.next() {
            let gap = gaps.next();
            match (rest.next(), gap) {
                (Some(right), Some(at)) => {
                    let (left, right) = (Box::new(left), Box::new(right));
                    let kind = if symbol == "||" {
                        CelNodeKind::Or(left, right)
                    } else {
                        CelNodeKind::And(left, right)
                    };
                    joined.push(node(at, kind)?);
                    between.extend(gaps.next());
                }
                _ => joined.push(left),
            }
        }
        (terms, places) = (joined, between);
    }
    terms.pop().ok_or(CelRefusal { at: None, problem: CompileProblem::Syntax("expected a value".to_owned()) })
}
