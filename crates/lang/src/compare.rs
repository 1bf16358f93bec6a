//! `conditions[]`: a path, an operator and a value, judged by rules that know numbers, quantities and versions.
//!
//! `{jsonPath: .status.minor, operator: gte, value: "24"}` holds for `"28+"`. The rules are in `docs/conditions.md`;
//! its tables are run as tests. What is not there yet is [`Answer::NotYet`]; what cannot be compared at all is an
//! error that names types, never values. A path that finds several values asks the question of every one of them.
//!
//! Callers: readiness and doors, wherever a spec has `conditions`.

mod quantity;
mod rules;
mod version;

use linchpin_words::{CompareOperator, hash::Fnv, limits};
use serde_json::Value as Json;

use crate::answer::{Answer, NotYet};
use crate::jsonpath::{JsonPath, PathError};
use crate::pattern::PricedPattern;
use crate::quote::{brief, quoted, shown};
use crate::reads::Reads;

pub(crate) use rules::{same_number, whole_and_real};

/// The longest pattern of `matches`, in bytes.
pub const MAX_PATTERN_BYTES: usize = limits::PATTERN;
/// The most values of `in` and `notIn`.
pub const MAX_CHOICES: usize = limits::CHOICES;
/// The largest value, counted in scalars, lists and objects.
pub const MAX_VALUE_NODES: usize = limits::VALUE_PARTS;

/// The longest list of choices that is quoted, in characters.
const LONGEST_NEED: usize = 160;

/// Which of two versions is greater, by rule 4; none where one of them is no version.
pub fn order_versions(left: &str, right: &str) -> Option<std::cmp::Ordering> {
    Some(version::Version::parse(left)?.cmp(&version::Version::parse(right)?))
}

/// A checked condition.
#[derive(Debug)]
pub struct FieldCondition {
    field: String,
    path: JsonPath,
    operator: CompareOperator,
    expected: Expected,
    fingerprint: u64,
}

#[derive(Debug)]
enum Expected {
    Nothing,
    Value(Json),
    Choices(Vec<Json>),
    Pattern(PricedPattern),
}

impl FieldCondition {
    /// Checks the condition that is in the spec at `field` (such as `conditions[1]`). Without an operator it is
    /// `eq`, or `exists` when there is no value either.
    pub fn compile(
        field: &str,
        json_path: &str,
        operator: Option<&str>,
        value: Option<&Json>,
    ) -> Result<Self, ConditionError> {
        let path = JsonPath::compile(&format!("{field}.jsonPath"), json_path)?;
        let operator = match operator {
            None if value.is_none() => CompareOperator::Exists,
            None => CompareOperator::Eq,
            Some(name) => CompareOperator::parse(name).ok_or_else(|| ConditionError::Operator {
                field: field.to_owned(),
                name: name.chars().take(64).collect(),
                known: CompareOperator::ALL.map(CompareOperator::as_str).join(", "),
            })?,
        };
        let expected = expected(operator, value).map_err(|problem| ConditionError::Value {
            field: field.to_owned(),
            operator: operator.as_str(),
            problem,
        })?;
        let value = value.map_or_else(String::new, Json::to_string);
        let fingerprint = Fnv::of(format!("{json_path}\n{}\n{value}", operator.as_str()).as_bytes());
        Ok(FieldCondition { field: field.to_owned(), path, operator, expected, fingerprint })
    }

    /// Says why the condition does not hold: what is there and what is needed, as `.minor is 36, needs ≥ 999`. Without
    /// `values` neither is named. Adds the steps that this took to `spent`.
    pub fn explain(&self, object: &Json, values: bool, spent: &mut u64) -> String {
        let path = self.path.source();
        match self.operator {
            CompareOperator::Exists => return format!("{path} is not there, and must be"),
            CompareOperator::Absent => return format!("{path} is there, and must not be"),
            operator if !values => return format!("{path} is not as {} needs it", operator.as_str()),
            _ => {}
        }
        let found = self.path.find_counted(object, spent).unwrap_or_default();
        let mut steps = limits::CEL_STEPS;
        let mut wrong = found.into_iter().filter(|actual| !actual.is_null());
        let wrong = wrong.find(|actual| matches!(self.judge(actual, &mut steps), Ok(Answer::False)));
        *spent = spent.saturating_add(limits::CEL_STEPS - steps);
        let wrong = wrong.map_or_else(|| "another".to_owned(), shown);
        format!("{path} is {wrong}, needs {}", self.needs())
    }

    /// What a value must be, in a few words.
    fn needs(&self) -> String {
        let sign = match self.operator {
            CompareOperator::Ne => "≠ ",
            CompareOperator::Gt => "> ",
            CompareOperator::Gte => "≥ ",
            CompareOperator::Lt => "< ",
            CompareOperator::Lte => "≤ ",
            CompareOperator::In => "one of ",
            CompareOperator::NotIn => "none of ",
            CompareOperator::Matches => "a match of ",
            CompareOperator::Eq | CompareOperator::Exists | CompareOperator::Absent => "",
        };
        let what = match &self.expected {
            Expected::Nothing => String::new(),
            Expected::Value(value) => shown(value),
            Expected::Choices(choices) => {
                brief(&choices.iter().map(shown).collect::<Vec<_>>().join(", "), LONGEST_NEED)
            }
            Expected::Pattern(pattern) => quoted(pattern.source()),
        };
        format!("{sign}{what}")
    }

    /// Judges the condition over an object.
    pub fn evaluate(&self, object: &Json) -> Result<Answer, CompareError> {
        self.evaluate_counted(object, &mut 0)
    }

    /// Judges the condition over an object, and adds the steps that this took to `spent`.
    pub fn evaluate_counted(&self, object: &Json, spent: &mut u64) -> Result<Answer, CompareError> {
        let mut found = match self.path.find_counted(object, spent) {
            Ok(found) => found,
            Err(too_large) => {
                return Ok(Answer::NotYet(NotYet::TooLarge { what: too_large.to_string() }));
            }
        };
        // The API server writes null for what is not set.
        found.retain(|value| !value.is_null());
        match self.operator {
            CompareOperator::Exists => return Ok((!found.is_empty()).into()),
            CompareOperator::Absent => return Ok(found.is_empty().into()),
            _ if found.is_empty() => {
                return Ok(Answer::NotYet(NotYet::Missing { path: self.path.source().to_owned() }));
            }
            _ => {}
        }
        let mut undecided = None;
        let mut steps = limits::CEL_STEPS;
        let mut disproved = false;
        for actual in found {
            match self.judge(actual, &mut steps) {
                Ok(Answer::True) => {}
                Ok(Answer::False) => disproved = true,
                other => undecided = undecided.or(Some(other)),
            }
            if disproved || steps == 0 {
                break;
            }
        }
        *spent = spent.saturating_add(limits::CEL_STEPS - steps);
        if disproved { Ok(Answer::False) } else { undecided.unwrap_or(Ok(Answer::True)) }
    }

    fn judge(&self, actual: &Json, steps: &mut u64) -> Result<Answer, CompareError> {
        *steps = steps.saturating_sub(self.price(actual));
        if *steps == 0 {
            let what = format!("{} finds more than can be compared", self.path.source());
            return Ok(Answer::NotYet(NotYet::TooLarge { what }));
        }
        match &self.expected {
            Expected::Nothing => Ok(Answer::True),
            Expected::Choices(choices) => {
                let one_of = choices.iter().any(|choice| rules::same(actual, choice));
                Ok((one_of == (self.operator == CompareOperator::In)).into())
            }
            Expected::Pattern(pattern) => match actual {
                Json::String(text) => {
                    *steps = steps.saturating_sub(pattern.price(text) as u64);
                    if *steps == 0 {
                        let what = format!("{} finds too much text for this pattern", self.path.source());
                        return Ok(Answer::NotYet(NotYet::TooLarge { what }));
                    }
                    Ok(pattern.is_found(text).into())
                }
                other => Err(self.incomparable(other, "a pattern")),
            },
            Expected::Value(value) => match self.operator {
                CompareOperator::Eq => Ok(rules::same(actual, value).into()),
                CompareOperator::Ne => Ok((!rules::same(actual, value)).into()),
                operator => {
                    let ordering = rules::order(actual, value)
                        .ok_or_else(|| self.incomparable(actual, rules::kind_of(value)))?;
                    let holds = match operator {
                        CompareOperator::Gt => ordering.is_gt(),
                        CompareOperator::Gte => ordering.is_ge(),
                        CompareOperator::Lt => ordering.is_lt(),
                        _ => ordering.is_le(),
                    };
                    Ok(holds.into())
                }
            },
        }
    }

    /// What comparing a value takes: a look at each part of what it is compared with, and its own text.
    fn price(&self, actual: &Json) -> u64 {
        let parts = match &self.expected {
            Expected::Nothing | Expected::Pattern(_) => 1,
            Expected::Value(value) => rules::nodes(value, MAX_VALUE_NODES).unwrap_or(MAX_VALUE_NODES),
            Expected::Choices(choices) => choices.len(),
        };
        (parts + actual.as_str().map_or(0, |text| text.len() / 16)) as u64
    }

    fn incomparable(&self, actual: &Json, expected: &'static str) -> CompareError {
        CompareError {
            field: self.field.clone(),
            path: self.path.source().to_owned(),
            operator: self.operator.as_str(),
            actual: rules::kind_of(actual),
            expected,
        }
    }

    /// A number that represents path, operator and value.
    pub fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// The KiB that its pattern takes once compiled.
    pub fn patterns(&self) -> usize {
        match &self.expected {
            Expected::Pattern(pattern) => pattern.size(),
            _ => 0,
        }
    }

    /// The path it looks at.
    pub fn path(&self) -> &JsonPath {
        &self.path
    }

    /// The operator it applies.
    pub fn operator(&self) -> CompareOperator {
        self.operator
    }

    /// What it can look at.
    pub fn reads(&self) -> Reads {
        self.path.reads()
    }
}

/// Checks the value that an operator needs.
fn expected(operator: CompareOperator, value: Option<&Json>) -> Result<Expected, ValueProblem> {
    match (operator, value.filter(|value| !value.is_null())) {
        (CompareOperator::Exists | CompareOperator::Absent, None) => Ok(Expected::Nothing),
        (CompareOperator::Exists | CompareOperator::Absent, Some(_)) => Err(ValueProblem::NotUsed),
        (_, None) => Err(ValueProblem::Missing),
        (_, Some(value)) if rules::nodes(value, MAX_VALUE_NODES).is_none() => Err(ValueProblem::TooLarge),
        (CompareOperator::In | CompareOperator::NotIn, Some(Json::Array(choices))) => match choices.len() {
            1..=MAX_CHOICES => Ok(Expected::Choices(choices.clone())),
            _ => Err(ValueProblem::Choices),
        },
        (CompareOperator::In | CompareOperator::NotIn, Some(_)) => Err(ValueProblem::Choices),
        (CompareOperator::Matches, Some(Json::String(pattern))) if pattern.len() <= MAX_PATTERN_BYTES => {
            PricedPattern::compile(pattern).map(Expected::Pattern).map_err(ValueProblem::BadPattern)
        }
        (CompareOperator::Matches, Some(_)) => Err(ValueProblem::Pattern),
        (CompareOperator::Eq | CompareOperator::Ne, Some(value)) => Ok(Expected::Value(value.clone())),
        (_, Some(value)) if matches!(value, Json::String(_) | Json::Number(_)) => {
            Ok(Expected::Value(value.clone()))
        }
        (_, Some(value)) => Err(ValueProblem::NoOrder(rules::kind_of(value))),
    }
}

/// Why a condition in a spec is not one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConditionError {
    /// Its path.
    #[error(transparent)]
    Path(#[from] PathError),
    /// Its operator.
    #[error("{field}.operator: unknown operator {name:?}; use one of {known}")]
    Operator {
        /// The condition in the spec.
        field: String,
        /// What was written.
        name: String,
        /// The operators there are.
        known: String,
    },
    /// Its value.
    #[error("{field}.value: operator {operator} {problem}")]
    Value {
        /// The condition in the spec.
        field: String,
        /// The operator.
        operator: &'static str,
        /// What is wrong.
        problem: ValueProblem,
    },
}

impl ConditionError {
    /// The field of the spec that is wrong.
    pub fn field(&self) -> String {
        match self {
            Self::Path(error) => error.field.clone(),
            Self::Operator { field, .. } => format!("{field}.operator"),
            Self::Value { field, .. } => format!("{field}.value"),
        }
    }

    /// What is wrong with it.
    pub fn problem(&self) -> String {
        match self {
            Self::Path(error) => error.problem(),
            Self::Operator { name, known, .. } => format!("unknown operator {name:?}; use one of {known}"),
            Self::Value { operator, problem, .. } => format!("operator {operator} {problem}"),
        }
    }
}

/// What is wrong with the value of a condition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ValueProblem {
    /// There is none.
    #[error("needs a value (to test whether a field is set, use exists or absent)")]
    Missing,
    /// There is one.
    #[error("takes no value")]
    NotUsed,
    /// It is not a list of choices.
    #[error("needs a list of 1 to {MAX_CHOICES} values")]
    Choices,
    /// It is not a pattern.
    #[error("needs a pattern of at most {MAX_PATTERN_BYTES} bytes")]
    Pattern,
    /// It is a pattern that does not compile.
    #[error("cannot use this pattern: {0}")]
    BadPattern(String),
    /// Values of its type are not greater or smaller.
    #[error("needs a number, quantity, version or text, not {0}")]
    NoOrder(&'static str),
    /// It is too large.
    #[error("takes a value of at most {MAX_VALUE_NODES} parts")]
    TooLarge,
}

/// What a condition found cannot be compared with its value. Types only: a value may be a secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {path} is {actual}, which operator {operator} cannot compare with {expected}")]
pub struct CompareError {
    /// The condition in the spec.
    pub field: String,
    /// Its path.
    pub path: String,
    /// Its operator.
    pub operator: &'static str,
    /// The type found.
    pub actual: &'static str,
    /// The type it was compared with.
    pub expected: &'static str,
}
