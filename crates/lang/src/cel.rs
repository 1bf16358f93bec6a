//! CEL, the expression language of Kubernetes, within fixed bounds: `self.status.phase == 'Running'`.
//!
//! Parser and evaluator are our own; the `cel` crate serves as the reference that tests compare them with. A verdict
//! must be total and deterministic on any input, and that crate is neither: measured on a 2 MiB stack, its parser
//! overflows at some twenty nested brackets when built without optimisation, and its evaluator at long sums; it has no
//! limits on time or memory, says which key is missing but not where, and puts values into its errors. Ours
//!
//! - refuses at compile time what can be known then: undeclared names, unknown functions, patterns that are not
//!   literal or do not compile, too much text, depth or nesting of loops;
//! - answers [`Answer::NotYet`] when something it reads is missing, unknown, or beyond the bounds below, and never
//!   guesses;
//! - counts steps and bytes instead of time, so that the same data always gives the same answer;
//! - borrows from the JSON it is given and copies only what an operator makes;
//! - names types, positions and the expression's own words in errors, never a value.
//!
//! Left out: byte strings, messages, `cel.bind`, leading dots, the getters of timestamps.
//!
//! There is no clock: no `now()`. Timestamps and durations (to compare two fields, to add one to the other) come
//! from `jiff`, which is in the binary anyway.
//!
//! Callers: guards and `cel` conditions in `engine`, specs in `doors`.

mod evaluate;
mod explain;
mod functions;
mod lexer;
mod meter;
mod node;
mod operators;
mod parser;
mod select;
mod trace;
mod value;

use std::collections::BTreeMap;

use linchpin_words::{hash::Fnv, limits};
use serde_json::Value as Json;

use crate::answer::Answer;
use crate::reads::Reads;

/// The longest expression, in bytes.
pub const MAX_SOURCE_BYTES: usize = limits::CEL;
/// The deepest tree of operators, calls and selections.
pub const MAX_DEPTH: usize = limits::NESTING;
/// How deep brackets, arguments and branches may be nested; the parser uses the stack for each.
pub const MAX_BRACKETS: usize = limits::NESTING / 2;
/// How many loops (`all`, `exists`, `exists_one`, `map`, `filter`) may be nested.
pub const MAX_NESTED_LOOPS: usize = limits::CEL_LOOPS;
/// The longest list or map that a loop without a loop around it or in it may walk.
pub const MAX_LIST_SINGLE: usize = limits::CEL_LIST;
/// The longest list or map that a loop inside another, or around another, may walk.
pub const MAX_LIST_NESTED: usize = limits::CEL_LIST_NESTED;
/// The most steps one evaluation may take; a step is an operator, or sixteen bytes compared or searched.
pub const MAX_STEPS: u64 = limits::CEL_STEPS;
/// The most bytes of new values one evaluation may make, whether or not it keeps them.
pub const MAX_MADE_BYTES: u64 = limits::CEL_BYTES;

/// A compiled expression: checked once, evaluated as often as its data changes.
#[derive(Debug)]
pub struct Expression {
    field: String,
    source: String,
    variables: Vec<String>,
    root: node::CelNode,
    reads: BTreeMap<String, Reads>,
    fingerprint: u64,
    patterns: usize,
}

/// The values of an expression's variables, by name.
pub type Bindings<'a> = BTreeMap<&'a str, &'a Json>;

/// What of an entry of a variable is not known: neither there nor missing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unknown {
    /// Why.
    pub why: String,
    /// The fields that are not known, with the words that each may turn out to be (none: it may be anything). Without any
    /// field nothing of the entry is known.
    pub fields: BTreeMap<&'static str, &'static [&'static str]>,
}

/// Entries of a variable of which something is not known. Whatever reads that is undecided, unless the other side of `&&`
/// or `||` decides or every word that it may be gives the same answer; so is whatever reads all entries of the variable.
pub type Unknowns<'a> = BTreeMap<&'a str, &'a BTreeMap<String, Unknown>>;

impl Expression {
    /// Checks `source`, which is in the spec at `field`, against the names it may use.
    pub fn compile(field: &str, source: &str, variables: &[&str]) -> Result<Self, CompileError> {
        let (root, patterns) = parser::parse(source, variables).map_err(|refusal| CompileError {
            field: field.to_owned(),
            position: refusal.at.map(|at| Position::of(source, at)),
            problem: refusal.problem,
        })?;
        let reads = trace::reads(&root, variables);
        Ok(Expression {
            field: field.to_owned(),
            source: source.to_owned(),
            variables: variables.iter().map(|&name| name.to_owned()).collect(),
            root,
            reads,
            patterns,
            fingerprint: Fnv::of(source.as_bytes()),
        })
    }

    /// Judges the expression. A variable without a binding is data that is missing, not an error.
    pub fn evaluate(&self, bindings: &Bindings<'_>) -> Result<Answer, EvaluateError> {
        self.evaluate_counted(bindings, &mut 0)
    }

    /// Judges the expression, and adds the steps that this took to `spent`.
    pub fn evaluate_counted(
        &self,
        bindings: &Bindings<'_>,
        spent: &mut u64,
    ) -> Result<Answer, EvaluateError> {
        self.evaluate_among(bindings, &Unknowns::new(), spent)
    }

    /// Judges the expression where something of its variables is not known, and adds the steps that this took to
    /// `spent`.
    pub fn evaluate_among(
        &self,
        bindings: &Bindings<'_>,
        unknowns: &Unknowns<'_>,
        spent: &mut u64,
    ) -> Result<Answer, EvaluateError> {
        let unknown =
            |name: &String| unknowns.get(name.as_str()).copied().filter(|entries| !entries.is_empty());
        let unknowns = self.variables.iter().map(unknown).collect();
        let answer = evaluate::answer(&self.root, self.roots(bindings), unknowns, spent);
        answer.map_err(|(at, problem)| EvaluateError {
            field: self.field.clone(),
            position: Position::of(&self.source, at),
            problem,
        })
    }

    /// Says which part of an expression is false, and what is there instead: `self.spec.replicas >= 3 is false:
    /// self.spec.replicas is 1`. Without `values` no value of the data is named. Adds the steps that this took to `spent`.
    pub fn explain(&self, bindings: &Bindings<'_>, values: bool, spent: &mut u64) -> String {
        explain::explain(&self.root, &self.source, self.roots(bindings), values, spent)
    }

    fn roots<'a>(&self, bindings: &Bindings<'a>) -> Vec<Option<&'a Json>> {
        self.variables.iter().map(|name| bindings.get(name.as_str()).copied()).collect()
    }

    /// The text as it was written.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The KiB that its patterns take once compiled.
    pub fn patterns(&self) -> usize {
        self.patterns
    }

    /// A number that represents the text.
    pub fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// What the expression can look at, for each variable that it names.
    pub fn reads(&self) -> &BTreeMap<String, Reads> {
        &self.reads
    }
}

/// A place in an expression's text, both counted from 1, in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
}

impl Position {
    fn of(source: &str, characters: usize) -> Self {
        let mut position = Position { line: 1, column: 1 };
        for character in source.chars().take(characters) {
            if character == '\n' {
                position = Position { line: position.line + 1, column: 1 };
            } else {
                position.column += 1;
            }
        }
        position
    }
}

impl std::fmt::Display for Position {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}:{}", self.line, self.column)
    }
}

/// Why a text is not an expression that may run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {}{problem}", position.map_or_else(String::new, |position| format!("at {position}: ")))]
pub struct CompileError {
    /// The field of the spec that holds the expression.
    pub field: String,
    /// Where in the text, if it is at one place.
    pub position: Option<Position>,
    /// What is wrong.
    pub problem: CompileProblem,
}

/// What is wrong with an expression's text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompileProblem {
    /// The text is longer than [`MAX_SOURCE_BYTES`].
    #[error("the expression has {bytes} bytes; {MAX_SOURCE_BYTES} are allowed")]
    TooLong {
        /// Its length.
        bytes: usize,
    },
    /// The text is not CEL.
    #[error("not a CEL expression: {0}")]
    Syntax(String),
    /// The tree is deeper than [`MAX_DEPTH`].
    #[error(
        "the expression is nested too deeply; {MAX_DEPTH} levels are allowed: split it into several conditions"
    )]
    TooDeep,
    /// Brackets are deeper than [`MAX_BRACKETS`].
    #[error("brackets and branches are nested too deeply; {MAX_BRACKETS} levels are allowed")]
    TooManyBrackets,
    /// Loops inside loops inside loops.
    #[error("loops inside loops may be {MAX_NESTED_LOOPS} deep")]
    TooManyLoops,
    /// A name that is neither a variable nor a type.
    #[error("unknown name {name:?}; use {known}{hint}")]
    UnknownName {
        /// The name.
        name: String,
        /// The names there are.
        known: String,
        /// What was probably meant, or nothing.
        hint: &'static str,
    },
    /// A function that does not exist in this form.
    #[error("unknown function {call}{hint}")]
    UnknownFunction {
        /// The call, as `name()` or `.name()` with the number of arguments.
        call: String,
        /// What to use instead, or nothing.
        hint: String,
    },
    /// The second argument of `matches` is not a literal pattern that compiles.
    #[error("matches() needs a literal pattern: {0}")]
    Pattern(String),
    /// Part of CEL that has no meaning here.
    #[error("{0} are not supported here")]
    Unsupported(&'static str),
}

/// Why an expression has no answer for the data it was given, although nothing was missing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: at {position}: {problem}")]
pub struct EvaluateError {
    /// The field of the spec that holds the expression.
    pub field: String,
    /// Where in the text.
    pub position: Position,
    /// What is wrong.
    pub problem: EvaluateProblem,
}

/// What an expression cannot do with the data it was given. Types only: a value may be a secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EvaluateProblem {
    /// The expression is not a yes-or-no question.
    #[error("the expression gives a value of type {0}; it must give true or false")]
    NotBool(&'static str),
    /// An operator or function does not apply to values of these types.
    #[error("{operation} does not apply to {types}")]
    Types {
        /// The operator or function.
        operation: &'static str,
        /// The types, in order.
        types: String,
    },
    /// Division or remainder by zero.
    #[error("division by zero")]
    DivisionByZero,
    /// A result that does not fit its type.
    #[error("the result of {0} does not fit its type")]
    Overflow(&'static str),
    /// A text that cannot be read as what the function makes of it.
    #[error("{function}() cannot read this {from}")]
    Conversion {
        /// The function.
        function: &'static str,
        /// The type it was given.
        from: &'static str,
    },
    /// A map literal with the same key twice.
    #[error("a map literal has the same key twice")]
    DuplicateKey,
}
