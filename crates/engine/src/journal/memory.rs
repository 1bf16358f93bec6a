//! What the engine remembers between two steps: the journal, and what a crash may take.

use std::collections::{BTreeMap, BTreeSet};

use linchpin_words::Timestamp;

use super::{Awaits, Journal};
use crate::{
    contract::{EffectTarget, Failure, Outcome, StepId, Ticket, Verb},
    graph::Node,
    plan::Plan,
    step::Verdicts,
};

/// What the engine remembers between two steps.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Memory {
    /// The durable part.
    pub journal: Journal,
    /// Effects that were ordered and have not come back. Volatile: a crash drops it.
    pub flight: BTreeSet<Ticket>,
    /// Outcomes that came back while there was no plan to file them under: they are filed with the next one. Volatile.
    pub late: Vec<Outcome>,
    /// Attempts that are under way. Volatile, like the effects in flight.
    pub attempts: BTreeMap<StepId, Attempt>,
    /// Why an action failed or waits, for people. Volatile: the journal holds no texts.
    pub messages: BTreeMap<StepId, String>,
    /// Counts changes of the journal that effects rely on (intents, the start of a run).
    pub critical: u64,
    /// The count that is known to be saved: the driver sets it after a successful write.
    pub saved: u64,
    /// The mark of the plan whose objects the inventory has rows for. Volatile: they are looked through once more.
    pub intended: Option<u64>,
    /// What need not be evaluated again. Volatile: a crash makes it be.
    pub verdicts: Verdicts,
}

/// One attempt of an action that is under way: a step may write several documents, some after others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Attempt {
    /// What is still to be ordered, wave by wave, last wave first.
    pub waves: Vec<Vec<Verb>>,
    /// How many parts have been ordered.
    pub ordered: u32,
    /// The worst that came back so far.
    pub worst: Option<Failure>,
    /// Whether anything was changed, as opposed to found as it should be.
    pub changed: bool,
    /// Whether some of it was made by this very step before.
    pub made_before: bool,
    /// What deletions still wait for.
    pub awaits: Option<Awaits>,
    /// The objects it writes.
    pub targets: Vec<EffectTarget>,
    /// Fields that were left to others, for people.
    pub yielded: Vec<String>,
    /// Whether something in it stems from a Secret.
    pub discreet: bool,
}

impl Memory {
    /// Memory after a start: what the status holds, and nothing in flight.
    pub fn recovered(journal: Journal) -> Self {
        Self {
            journal,
            flight: BTreeSet::new(),
            late: Vec::new(),
            attempts: BTreeMap::new(),
            messages: BTreeMap::new(),
            critical: 0,
            saved: 0,
            intended: None,
            verdicts: Verdicts::default(),
        }
    }

    /// Memory of an object seen for the first time: even its first run is not saved yet.
    pub fn fresh(uid: impl Into<String>, generation: i64, now: Timestamp) -> Self {
        Self { critical: 1, ..Self::recovered(Journal::new(uid, generation, now)) }
    }

    /// Lets soft requirements pass whose wait would close a circle: these are what they wait for.
    pub fn give_way(&mut self, plan: &Plan, broken: &[Node]) {
        for (position, step) in plan.steps().iter().enumerate().filter(|(_, step)| step.patience.is_some()) {
            let outline = plan.outline(position);
            let targets = outline.waits_for.iter().chain(outline.target.iter());
            let gives = targets.into_iter().any(|object| broken.contains(&outline.node(object)));
            let unknown = self.journal.steps.get(&step.id).is_none_or(|record| record.proceeded);
            if gives
                && !unknown
                && let Some(record) = self.journal.steps.get_mut(&step.id)
            {
                record.proceeded = true;
            }
        }
    }

    /// To be called when the journal has been saved as it is now.
    pub fn mark_saved(&mut self, critical: u64) {
        self.saved = self.saved.max(critical);
    }
}
