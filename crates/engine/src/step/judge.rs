//! Judging: from what was observed to facts.
//!
//! Every judgement is of the object's own latest generation and of no view older than our own writes. What is not
//! known stays unknown: it satisfies nothing and disproves nothing. Related objects that a verdict asks for become
//! wants like any other.

mod action;
mod clauses;
mod drift;
mod fresh_world;
mod guard;
mod many;
mod needs_reapply;
mod reach;
mod related;
mod requirement;

use linchpin_words::{Shared, Text};

use super::{align::latch, fact::Fact};
use crate::{
    contract::{Objects, Question, Scope, Want},
    journal::{Journal, StepRecord, StepState, WrittenObject},
    plan::{Plan, Requirement, StepKind},
};
use action::{ActionContext, judge_action};
pub(super) use action::{LACKING, ask_for_awaited, mark, mark_values};
use drift::{has_drifted, is_written};
pub(super) use fresh_world::FreshWorld;
use needs_reapply::needs_reapply;
use requirement::{RequirementContext, judge_whole};

/// What was found of one requirement, for status, messages and templates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequirementView {
    /// The word that status shows: `NotFound`, `NotReady`, `Ready`, `Completed`, `Failed`, `Unknown`, `Error`.
    pub state: &'static str,
    /// Why, as one word.
    pub reason: Text,
    /// Why, in words for a person.
    pub message: Text,
    /// The objects that a selector found; none where the plan itself names the object.
    pub selected: Option<Objects>,
    /// Whether all parts of the state have settled, so that a guard may decide on it.
    pub settled: bool,
    /// Of an action that has not begun: whether a right that it needs is not known to be there.
    pub denied: bool,
    /// Of a deletion, the incarnation that is there; empty where nothing is, none while that cannot be seen.
    pub doomed: Option<String>,
}

/// Facts, views, and what was asked on the way.
pub(super) struct JudgedPlan {
    pub facts: Vec<Fact>,
    pub views: Vec<RequirementView>,
    /// Positions of the actions whose rights were asked for.
    pub asking: Vec<usize>,
    /// What was asked besides, in no order.
    pub asked: Vec<Want>,
}

/// Judges every step of a plan.
pub(super) fn judge(plan: &Plan, journal: &Journal, fresh_world: &FreshWorld<'_>) -> JudgedPlan {
    let mut facts = Vec::with_capacity(plan.steps().len());
    let mut views = Vec::with_capacity(plan.steps().len());
    let mut asking = Vec::new();
    let records = journal.in_order_of(plan);
    for (position, (step, record)) in plan.steps().iter().zip(&records).enumerate() {
        let (fact, view) = match &step.kind {
            StepKind::Require(requirement) => {
                let latch = record.and_then(|record| latch(plan, journal, step, record));
                let written = latch.and_then(|_| written(plan, requirement, &records));
                let subject = RequirementContext { requirement, outline: plan.outline(position) };
                judge_whole(&subject, latch, written, fresh_world)
            }
            StepKind::Act(_) => (Fact::default(), RequirementView::default()),
        };
        facts.push(fact);
        views.push(view);
    }
    let needs_reapply = needs_reapply(plan, journal, &records);
    let held = journal.is_held(plan);
    let first = held && journal.editions.admitted.is_none();
    for (position, step) in plan.steps().iter().enumerate() {
        if let Some(action) = step.action() {
            let place = ActionContext {
                plan,
                position,
                step,
                action,
                record: records[position].map(|record| &**record),
            };
            let (mut fact, view) = judge_action(&place, &facts, &views, fresh_world);
            if !place.has_begun() && !action.rights.is_empty() {
                asking.push(position);
            }
            if let Some(drift) = action.drift() {
                let done = place.record.is_some_and(|record| record.state == StepState::Done);
                fact.drifted =
                    done && (needs_reapply[position] || has_drifted(&place, drift, &records, fresh_world));
                // What a held update changes is left as it is: its old body is no longer at hand.
                let left = |record: &StepRecord| {
                    record.state == StepState::Waiting && !record.repairing && !record.wrote.is_empty()
                };
                fact.drift_held = held
                    && place.record.is_some_and(left)
                    && has_drifted(&place, drift, &records, fresh_world);
                fact.written = first.then(|| is_written(&place, drift, fresh_world)).flatten();
            }
            facts[position] = fact;
            views[position] = view;
        }
    }
    JudgedPlan { facts, views, asking, asked: fresh_world.asked() }
}

/// The incarnation that the floor of a requirement wrote last, where it is one object.
fn written<'a>(
    plan: &Plan,
    requirement: &Requirement,
    records: &[Option<&'a Shared<StepRecord>>],
) -> Option<&'a str> {
    let position = plan.position(requirement.floor.as_ref()?)?;
    let Question::Objects { kind, scope: Scope::Name { name, .. }, .. } = requirement.want.question() else {
        return None;
    };
    let about = |wrote: &&WrittenObject| {
        wrote.target.name == *name && wrote.target.kind.word.eq_ignore_ascii_case(&kind.kind)
    };
    Some(&records[position]?.wrote.iter().find(about)?.stamp.uid)
}
