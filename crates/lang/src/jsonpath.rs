//! kubectl's dialect of JSONPath: `.status.phase`, `{.spec.containers[*].image}`,
//! `.status.conditions[?(@.type=="Ready")].status`.
//!
//! The evaluator is our own. The dialect is small, libraries for the RFC read another one (they need a leading `$`,
//! know no `\.` and no braces, so every text would be rewritten first and every error would point into the rewritten
//! one), and none of them bounds its work. Here nothing can panic or recurse over the data, and each evaluation has a
//! budget; what a path does not find is an empty result, never an error.
//!
//! Not supported, and refused with a hint: `{range}`, several pairs of braces, text around them, scripts `[(…)]`,
//! `&&` and `||` in filters.
//!
//! Callers: `compare`, and through it `conditions[]` everywhere.

mod evaluate;
mod parse;

use linchpin_words::limits;
use serde_json::Value as Json;

use crate::reads::Reads;

/// The longest path, in bytes.
pub const MAX_SOURCE_BYTES: usize = limits::JSON_PATH;
/// The most steps of a path, the ones in its filters included.
pub const MAX_STEPS: usize = limits::PATH_STEPS;
/// The largest index or slice bound, counted from either end.
pub const MAX_INDEX: i64 = limits::PATH_INDEX;
/// The most entries of a union `[0,2,5]`.
pub const MAX_UNION: usize = limits::PATH_UNION;
/// How deep filters may be nested.
pub const MAX_NESTED_FILTERS: usize = 2;
/// The most values a path may find, between any two steps.
pub const MAX_RESULTS: usize = limits::PATH_RESULTS;
/// The most values one evaluation may look at.
pub const MAX_VISITS: usize = limits::PATH_VISITS;

/// A compiled path.
#[derive(Debug)]
pub struct JsonPath {
    source: String,
    steps: Vec<Step>,
}

#[derive(Debug, PartialEq)]
enum Step {
    Field(String),
    Index(i64),
    Slice {
        start: Option<i64>,
        end: Option<i64>,
        every: usize,
    },
    Wildcard,
    Union(Vec<Step>),
    /// `..`: the value itself and everything below it.
    Descend,
    Filter(Filter),
}

/// `[?(left operator right)]`, or `[?(left)]`: it is there.
#[derive(Debug, PartialEq)]
struct Filter {
    left: Operand,
    comparison: Option<(Comparison, Operand)>,
}

#[derive(Debug, PartialEq)]
enum Operand {
    /// A path from the element, `@.x`.
    Element(Vec<Step>),
    /// A path from the root, `$.x`.
    Root(Vec<Step>),
    Literal(Json),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl JsonPath {
    /// Checks `source`, which is in the spec at `field`.
    pub fn compile(field: &str, source: &str) -> Result<Self, PathError> {
        let mut steps = parse::parse(source).map_err(|refusal| PathError {
            field: field.to_owned(),
            column: source.get(..refusal.at).map_or(1, |before| before.chars().count() + 1),
            problem: refusal.problem,
        })?;
        // Paths are kept for as long as the object that uses them waits.
        steps.shrink_to_fit();
        Ok(JsonPath { source: source.to_owned(), steps })
    }

    /// All values at this path, in the order of the data; none when there is nothing there.
    pub fn find<'v>(&self, root: &'v Json) -> Result<Vec<&'v Json>, PathTooLarge> {
        self.find_counted(root, &mut 0)
    }

    /// All values at this path; how many were looked at is added to `spent`.
    pub fn find_counted<'v>(&self, root: &'v Json, spent: &mut u64) -> Result<Vec<&'v Json>, PathTooLarge> {
        evaluate::find(&self.steps, root, spent)
    }

    /// The text as it was written.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// What the path can look at.
    pub fn reads(&self) -> Reads {
        let mut reads = Reads::default();
        note(&self.steps, &mut reads);
        reads
    }
}

/// Notes the fields a path from the root names before it becomes unknowable.
fn note(steps: &[Step], reads: &mut Reads) {
    let named = steps.iter().map_while(|step| match step {
        Step::Field(name) => Some(name.clone()),
        _ => None,
    });
    reads.add(named.collect());
    note_filters(steps, reads);
}

/// Notes what filters read from the root; what they read from an element lies below what is already noted.
fn note_filters(steps: &[Step], reads: &mut Reads) {
    for step in steps {
        let Step::Filter(filter) = step else { continue };
        let right = filter.comparison.as_ref().map(|(_, operand)| operand);
        for operand in [Some(&filter.left), right].into_iter().flatten() {
            match operand {
                Operand::Root(steps) => note(steps, reads),
                Operand::Element(steps) => note_filters(steps, reads),
                Operand::Literal(_) => {}
            }
        }
    }
}

/// Why a text is not a path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: at character {column}: {problem}")]
pub struct PathError {
    /// The field of the spec that holds the path.
    pub field: String,
    /// Where in the text, in characters from 1.
    pub column: usize,
    /// What is wrong.
    pub problem: PathProblem,
}

impl PathError {
    /// What is wrong, and where in the text.
    pub fn problem(&self) -> String {
        format!("at character {}: {}", self.column, self.problem)
    }
}

/// What is wrong with a path's text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathProblem {
    /// There is no text.
    #[error("the path is empty; write .status.phase, or . for the whole object")]
    Empty,
    /// A bound of this module.
    #[error("the path is too large: {0}")]
    TooLarge(String),
    /// Something else is where a part of the path must.
    #[error("expected {expected}, found {found}")]
    Expected {
        /// What can be there.
        expected: &'static str,
        /// What is there.
        found: String,
    },
    /// Part of kubectl's templates that has no meaning in a condition.
    #[error("{what} is not supported; {instead}")]
    Unsupported {
        /// The part.
        what: &'static str,
        /// What to write.
        instead: &'static str,
    },
}

/// A path found more than may be judged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the path finds more than {MAX_RESULTS} values or looks at more than {MAX_VISITS}")]
pub struct PathTooLarge;
