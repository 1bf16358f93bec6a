//! The three-valued answer that every condition gives: yes, no, or not yet.
//!
//! "Not yet" is what keeps a wait honest. A field that is not there may appear, so it must neither satisfy nor
//! disprove anything; data beyond the published bounds is left undecided rather than judged on a part of it.
//! Both `cel` and `compare` answer with this type; the engine turns it into a verdict.

use std::fmt;

/// What a condition says about the data it was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The condition holds.
    True,
    /// The condition is disproved.
    False,
    /// The data does not decide it.
    NotYet(NotYet),
}

impl Answer {
    /// Whether the condition holds.
    pub fn is_true(&self) -> bool {
        matches!(self, Answer::True)
    }
}

impl From<bool> for Answer {
    fn from(holds: bool) -> Self {
        if holds { Answer::True } else { Answer::False }
    }
}

/// Why a condition is undecided. It carries words of the condition's own text, never a value of the data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotYet {
    /// Something the condition reads is not there.
    Missing {
        /// The path as the condition spells it.
        path: String,
    },
    /// Something the condition reads cannot be seen: it may be there or not.
    Unknown {
        /// The path as the condition spells it.
        path: String,
        /// Why it cannot be seen.
        why: String,
    },
    /// The data is beyond what may be judged.
    TooLarge {
        /// What is too large, and the bound.
        what: String,
    },
}

impl fmt::Display for NotYet {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotYet::Missing { path } => write!(formatter, "{path} is not there yet"),
            NotYet::Unknown { path, why } => write!(formatter, "{path} is not known: {why}"),
            NotYet::TooLarge { what } => write!(formatter, "too large to judge: {what}"),
        }
    }
}
