//! What people and other tools get: phase, one line, blockers, an entry per step, and the edges of the
//! wait-for graph. Derived from the decision; nothing is ever read back from it.

mod edges;
mod entry;
mod headline;

use linchpin_words::{ObjectRef, Reason, Shared, Text, Timestamp};

use super::{
    advance::Advanced,
    fact::Fact,
    judge::{LACKING, RequirementView},
};
use crate::{
    contract::{Objects, StepId},
    graph::{CyclePath, Edge},
    journal::{Journal, Memory, StepRecord, StepState},
    plan::{FieldPath, Plan},
};
use edges::edges;
use entry::{StepContext, step_report};
use headline::{headline, phase};

/// Where the object is, in the document's words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// Nothing has been observed yet.
    #[default]
    Pending,
    /// Requirements do not hold yet.
    Waiting,
    /// Actions are under way.
    Running,
    /// Everything is done.
    Completed,
    /// Something failed and nothing goes on by itself.
    Failed,
    /// Suspended.
    Suspended,
    /// Being deleted.
    Deleting,
}

impl Phase {
    /// The word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Waiting => "Waiting",
            Self::Running => "Running",
            Self::Completed => "Completed",
            Self::Failed => "Failed",
            Self::Suspended => "Suspended",
            Self::Deleting => "Deleting",
        }
    }
}

/// What is said about an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Where it is.
    pub phase: Phase,
    /// Whether everything it asks for is done and holds.
    pub ready: bool,
    /// Why, as one word.
    pub reason: Option<Reason>,
    /// Why, in one line.
    pub message: String,
    /// What it is held by, the most direct first.
    pub blocked: Vec<StepBlocker>,
    /// One entry per step, in the plan's order.
    pub steps: Vec<StepReport>,
    /// What could not be deleted and stays.
    pub left: Vec<String>,
    /// Whether the spec cannot be carried out.
    pub invalid: bool,
    /// Where it is wrong then.
    pub field: FieldPath,
    /// What it waits for and makes: its part of the wait-for graph.
    pub edges: Vec<Edge>,
    /// What is wrong with orders by annotation.
    pub problems: Vec<String>,
    /// Those that hold its deletion, for people.
    pub held_by: Vec<String>,
    /// The circle that it waits in.
    pub cycle: Option<CyclePath>,
}

/// Something that holds the object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepBlocker {
    /// The step that is held; none where the object as a whole is.
    pub step: Option<StepId>,
    /// Why, as one word.
    pub reason: Text,
    /// Why, in words for a person.
    pub message: Text,
    /// The object it is about.
    pub object: Option<Shared<ObjectRef>>,
    /// Since when.
    pub since: Timestamp,
}

/// Where one step is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepReport {
    /// The step.
    pub id: StepId,
    /// Its state in the journal.
    pub state: StepState,
    /// The document's word: for a requirement what was found, for an action how far it is.
    pub word: &'static str,
    /// Why, as one word.
    pub reason: Text,
    /// Why, in words for a person.
    pub message: Text,
    /// The same without what the step is called.
    pub detail: Text,
    /// Since when.
    pub since: Timestamp,
    /// Attempts in the current run.
    pub attempts: u32,
    /// The objects that a selector found; none where the plan itself names the object.
    pub selected: Option<Objects>,
    /// For a requirement: whether what it is about was looked for and is not there.
    pub absent: bool,
    /// Whether it is what holds the plan now.
    pub blocking: bool,
    /// Whether it is all that is asked of it: an action that is done, a requirement that holds also strictly.
    pub ready: bool,
}

impl Report {
    pub(super) fn invalid(error: &crate::plan::SpecError) -> Self {
        Self {
            phase: if error.waits { Phase::Waiting } else { Phase::Failed },
            reason: Some(error.reason.unwrap_or(Reason::SpecInvalid)),
            // Where the spec itself is not what is wrong, the field says nothing to people.
            message: if error.reason.is_some() { error.message.clone() } else { error.to_string() },
            invalid: true,
            field: error.field.clone(),
            ..Self::default()
        }
    }

    pub(super) fn deleting(
        memory: &Memory,
        waiting: &[(StepId, Reason, String)],
        left: Vec<String>,
        now: Timestamp,
    ) -> Self {
        let blocked = removal_blockers(&memory.journal, waiting, now);
        let message = blocked
            .first()
            .map_or_else(|| "deleting what it made".to_owned(), |first| first.message.to_string());
        Self {
            phase: Phase::Deleting,
            reason: Some(Reason::Deleting),
            message,
            blocked,
            left,
            ..Self::default()
        }
    }
}

/// What holds a removal up.
pub(super) fn removal_blockers(
    journal: &Journal,
    waiting: &[(StepId, Reason, String)],
    since: Timestamp,
) -> Vec<StepBlocker> {
    let item = |step: &StepId| journal.inventory.iter().find(|item| item.step == *step);
    let say = |step: &StepId, reason: &Reason| {
        item(step).map_or_else(|| reason.in_words(), |item| format!("deleting {}", item.target))
    };
    let blocker = |(step, reason, message): &(StepId, Reason, String)| StepBlocker {
        step: Some(step.clone()),
        reason: reason.as_str().into(),
        message: Text::from(if message.is_empty() { say(step, reason) } else { message.clone() }),
        object: None,
        since,
    };
    waiting.iter().map(blocker).collect()
}

/// The report on a plan that is being carried out.
pub(super) fn converging(
    plan: &Plan,
    advanced: &Advanced,
    records: &[Option<&Shared<StepRecord>>],
    views: &[RequirementView],
    facts: &[Fact],
    cycle: Option<&CyclePath>,
    now: Timestamp,
) -> Report {
    let phase = phase(plan, advanced, records, views);
    let mut steps = Vec::with_capacity(plan.steps().len());
    let mut blocked = Vec::new();
    let mut scratch = String::new();
    for (position, (step, view)) in plan.steps().iter().zip(views).enumerate() {
        let Some(record) = records[position] else {
            continue;
        };
        let place = StepContext { plan, advanced, records, fact: &facts[position], position };
        let report = step_report(&place, step, record, view, &mut scratch);
        if report.blocking {
            blocked.push(StepBlocker {
                step: Some(step.id.clone()),
                reason: report.reason.clone(),
                message: report.message.clone(),
                object: report
                    .selected
                    .as_ref()
                    .unwrap_or(&plan.outline(position).waits_for)
                    .first()
                    .cloned(),
                since: record.clock.unwrap_or(record.since),
            });
        }
        steps.push(report);
    }
    let ready = phase == Phase::Completed && advanced.all_hold && advanced.all_done;
    let (reason, mut message) = headline(plan, advanced, phase, ready, &steps, &blocked);
    let mut reason = Some(reason);
    if let Some(closed) = views.iter().find(|view| view.reason == Reason::NotATenant.as_str())
        && !ready
        && phase != Phase::Suspended
    {
        // Nobody may act for the object at all: no step of it says more.
        reason = Some(Reason::NotATenant);
        message = closed.message.to_string();
    }
    if let Some(cycle) = cycle.filter(|_| !ready) {
        reason = Some(Reason::Cycle);
        message = format!("waits for itself: {cycle}");
        blocked.insert(
            0,
            StepBlocker {
                step: None,
                reason: Reason::Cycle.as_str().into(),
                message: Text::new(&message),
                object: None,
                since: now,
            },
        );
    }
    let edges = edges(plan, &advanced.memory.journal, records, views, &steps);
    let problems = plan.terms.orders.problems.clone();
    let cycle = cycle.filter(|_| !ready).cloned();
    Report { phase, ready, reason, message, blocked, steps, edges, problems, cycle, ..Report::default() }
}
