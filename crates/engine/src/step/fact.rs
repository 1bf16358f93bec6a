//! What judging says of each step: all that [`advance`](super::advance) needs to know of the world.
//!
//! Facts are abstract on purpose. They are few and small, so every combination of them can be explored.

use std::collections::BTreeMap;

use crate::{contract::StepId, journal::Trigger};

/// What is known of one step's part of the world at this moment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Fact {
    /// For a requirement: whether it holds, as far as what comes after it is concerned.
    pub holds: Holds,
    /// For a requirement whose gate is less than what is asked for readiness: whether that holds too.
    pub strictly: Option<Holds>,
    /// Whether the view is live, so that a deadline may be declared on it.
    pub live: bool,
    /// For a requirement: moves when the object makes progress.
    pub progress: u64,
    /// For a requirement that counts for ever once completed: the incarnation that completed.
    pub latch: Option<String>,
    /// For an action: its guard.
    pub guard: GuardAnswer,
    /// For an action: whether nothing is known to be missing, neither rights nor values.
    pub supplied: bool,
    /// For an action that awaits something: whether it was seen.
    pub awaited: bool,
    /// For an action that runs again on changes: what it would read now, by dependency. Unknown ones are left out.
    pub triggers: BTreeMap<StepId, Trigger>,
    /// For an action that repairs drift: whether what it wrote is no longer as written.
    pub drifted: bool,
    /// For an action that an update changes which is not admitted: whether what it wrote before is no longer as written.
    pub drift_held: bool,
    /// For an action of what was never admitted: whether our manager holds anything of its objects; none where one of them
    /// was not looked at.
    pub written: Option<bool>,
}

impl Default for Fact {
    /// Nothing is known of the world, and nothing holds an action up.
    fn default() -> Self {
        Self {
            holds: Holds::Unknown { passing: true },
            strictly: None,
            live: false,
            progress: 0,
            latch: None,
            guard: GuardAnswer::Yes,
            supplied: true,
            awaited: false,
            triggers: BTreeMap::new(),
            drifted: false,
            drift_held: false,
            written: None,
        }
    }
}

/// Whether a requirement holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Holds {
    /// It was observed to hold.
    Met,
    /// It was observed not to hold.
    Unmet,
    /// It was observed that it will not hold without somebody's help.
    Failed,
    /// Nothing was observed.
    Unknown {
        /// Whether a moment of waiting will show it (a watch that has not listed yet).
        passing: bool,
    },
}

/// What a guard says of its action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GuardAnswer {
    /// True.
    Yes,
    /// False.
    No,
    /// Not known yet.
    Undecided,
}

impl GuardAnswer {
    /// The opposite; undecided stays undecided.
    #[must_use]
    pub fn negated(self) -> Self {
        match self {
            Self::Yes => Self::No,
            Self::No => Self::Yes,
            Self::Undecided => Self::Undecided,
        }
    }
}
