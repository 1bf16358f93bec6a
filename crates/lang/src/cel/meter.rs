//! What one evaluation may use, counted in steps and bytes so that the count is the same everywhere.

use super::value::{CelList, CelValue};
use super::{EvaluateProblem, MAX_MADE_BYTES, MAX_STEPS};

/// Why a value could not be had.
#[derive(Debug)]
pub(super) enum Fault {
    /// Something that was selected is not there.
    Missing,
    /// Something that was selected is not known.
    Unknown(Open),
    /// A bound was reached; says which.
    TooLarge(String),
    /// The data is not what the expression takes it for.
    Wrong(EvaluateProblem),
}

/// Something that is not known.
#[derive(Debug)]
pub(super) struct Open {
    /// Why.
    pub(super) why: String,
    /// The field of what was selected that is not known; none if all of it is not.
    pub(super) field: Option<String>,
    /// The words that it may turn out to be; none if it may be anything.
    pub(super) words: &'static [&'static str],
}

impl From<EvaluateProblem> for Fault {
    fn from(problem: EvaluateProblem) -> Self {
        Fault::Wrong(problem)
    }
}

/// An operator or function met types that it does not take.
pub(super) fn types(operation: &'static str, values: &[&CelValue<'_>]) -> Fault {
    let types: Vec<&str> = values.iter().map(|value| value.type_name()).collect();
    Fault::Wrong(EvaluateProblem::Types { operation, types: types.join(" and ") })
}

/// What is left to use.
pub(super) struct Meter {
    steps: u64,
    bytes: u64,
}

impl Meter {
    pub(super) fn new() -> Self {
        Meter { steps: MAX_STEPS, bytes: MAX_MADE_BYTES }
    }

    /// The steps taken so far. One that was refused took all there were.
    pub(super) fn spent(&self) -> u64 {
        MAX_STEPS - self.steps
    }

    pub(super) fn steps(&mut self, steps: usize) -> Result<(), Fault> {
        let left = self.steps.checked_sub(steps as u64);
        self.steps = left.unwrap_or(0);
        let too_large = || Fault::TooLarge(format!("the condition takes more than {MAX_STEPS} steps"));
        left.map(|_| ()).ok_or_else(too_large)
    }

    /// Looks through a text.
    pub(super) fn text(&mut self, bytes: usize) -> Result<(), Fault> {
        self.steps(1 + bytes / 16)
    }

    /// Makes a value of this size. Paid in steps too, as it has to be written.
    pub(super) fn make(&mut self, bytes: usize) -> Result<(), Fault> {
        self.text(bytes)?;
        match self.bytes.checked_sub(bytes as u64) {
            Some(left) => {
                self.bytes = left;
                Ok(())
            }
            None => Err(Fault::TooLarge(format!("the condition makes more than {MAX_MADE_BYTES} bytes"))),
        }
    }

    /// Makes a list of this many elements; what they hold is shared or was paid for when it was made.
    pub(super) fn make_list(&mut self, length: usize) -> Result<(), Fault> {
        self.make(length.saturating_mul(size_of::<CelValue<'_>>()))
    }

    /// Makes a text.
    pub(super) fn string<'a>(&mut self, text: &str) -> Result<CelValue<'a>, Fault> {
        self.make(text.len())?;
        Ok(CelValue::made(text))
    }

    /// Makes a list of values that exist.
    pub(super) fn list<'a>(&mut self, values: Vec<CelValue<'a>>) -> Result<CelValue<'a>, Fault> {
        self.make_list(values.len())?;
        Ok(CelValue::List(CelList::Made(values.into())))
    }
}
