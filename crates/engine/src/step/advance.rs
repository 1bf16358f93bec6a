//! Moving the journal forward: from abstract facts and outcomes to what starts now.
//!
//! This is the part of the engine that is model-checked. It knows steps, edges, clocks and records; it knows no
//! object, no text and no API. Promises: no action starts before all its requirements hold together; an effect that
//! must not happen twice is ordered once per token; a record of a good end never changes but by a rule that says so.

mod admission;
mod halting;
mod passage;
mod requirements;
mod starting;

use linchpin_words::{Reason, Shared, Timestamp};

use self::passage::Passage;
use super::{align::align, fact::Fact, outcome};
use crate::{
    contract::Outcome,
    journal::{Journal, Memory, StepRecord, StepState},
    plan::{Plan, PlanLane, Step},
};

/// What has been decided, before anything is rendered.
#[derive(Clone, Debug)]
pub struct Advanced {
    /// The new memory. Steps in `start` are `Running` in it already.
    pub memory: Memory,
    /// Positions of the actions that start now.
    pub start: Vec<usize>,
    /// When to look again, if nothing happens before.
    pub wake_at: Option<Timestamp>,
    /// For each step, whether its turn has come.
    pub open: Vec<bool>,
    /// Whether all requirements that can be judged now hold, as far as is known, also strictly.
    pub all_hold: bool,
    /// Whether they are seen to hold at this moment.
    pub all_hold_now: bool,
    /// Whether every action of the plan proper has come to a good end.
    pub all_done: bool,
    /// Whether the plan has failed and nothing of it can go on by itself.
    pub failing: bool,
}

/// One pass over a plan.
struct Pass<'a> {
    plan: &'a Plan,
    facts: &'a [Fact],
    memory: Memory,
    /// In the plan's order. Changing one makes a copy: ask first whether it changes.
    records: Vec<Shared<StepRecord>>,
    now: Timestamp,
    wake_at: Option<Timestamp>,
    /// What each step lets through to those after it.
    passages: Vec<Passage>,
    /// Whether each step's edges are satisfied.
    open: Vec<bool>,
    /// Whether every requirement above each step holds.
    supported: Vec<bool>,
    /// Whether something that each step needs has failed.
    doomed: Vec<bool>,
    start: Vec<usize>,
}

/// Moves `memory` forward. `facts` has one entry per step, in the plan's order.
pub fn advance(
    plan: &Plan,
    memory: Memory,
    facts: &[Fact],
    outcomes: &[Outcome],
    now: Timestamp,
) -> Advanced {
    let (memory, records) = align(plan, memory, now);
    let count = records.len();
    let mut pass = Pass {
        plan,
        facts,
        memory,
        records,
        now,
        wake_at: None,
        passages: vec![Passage::default(); count],
        open: vec![false; count],
        supported: vec![false; count],
        doomed: vec![false; count],
        start: Vec::new(),
    };
    outcome::settle(plan, &mut pass.memory, &mut pass.records, outcomes, now);
    let keeps = |outcome: &Outcome| {
        let step = plan.position(&outcome.ticket.step).map(|position| &plan.steps()[position]);
        step.and_then(Step::action).is_some_and(|action| action.drift().is_some())
    };
    if outcomes.iter().any(keeps) {
        // What is seen now was judged before it was known that it had been written: it is looked at once more, because
        // no event may come that asks for it.
        pass.wake(now);
    }
    if plan.terms.suspended {
        return pass.finish(false);
    }
    pass.recall_admission();
    pass.move_running();
    let failures = pass.judge_requirements();
    pass.halt_or_recover(failures);
    pass.admit();
    pass.rerun_changed();
    if pass.memory.journal.halt.is_none() || pass.is_held() {
        pass.start_ready();
    }
    pass.pledge();
    pass.complete();
    let failing = pass.has_failed();
    if failing {
        pass.start_on_failure();
    }
    pass.finish(failing)
}

/// A requirement that failed or ran out of time.
struct Broken {
    position: usize,
    reason: Reason,
}

impl<'a> Pass<'a> {
    fn steps(&self) -> &'a [Step] {
        self.plan.steps()
    }

    fn wake(&mut self, at: Timestamp) {
        self.wake_at = Some(self.wake_at.map_or(at, |earlier| earlier.min(at)));
    }

    /// All actions ended well, and every requirement that no action represents holds: done, once per generation. What was
    /// never met represents itself: it may have come into the plan after its actions had ended.
    fn complete(&mut self) {
        let steps = self.steps();
        if self.memory.journal.completed.is_some() {
            // What is put right again was done before: that does not take back that all was done.
            let undone = steps.iter().zip(&self.records).any(|(step, record)| {
                step.lane == PlanLane::Main
                    && step.action().is_some()
                    && !record.is_successful()
                    && !record.repairing
            });
            if undone {
                self.memory.journal.completed = None;
            }
            return;
        }
        if self.memory.journal.halt.is_some() || self.is_held() || !self.all_done() {
            return;
        }
        let mut has_later_action = vec![false; steps.len()];
        for position in (0..steps.len()).rev() {
            let acts = steps[position].action().is_some() && steps[position].lane == PlanLane::Main;
            if acts || has_later_action[position] {
                for earlier in self.plan.before(position) {
                    has_later_action[*earlier] = true;
                }
            }
        }
        let leaves_hold = (0..steps.len()).all(|position| {
            let record = &self.records[position];
            let was_met = record.state == StepState::Met || record.lost;
            steps[position].action().is_some()
                || has_later_action[position] && was_met && !requirements::is_contained(&steps[position])
                // All that it gates was written before it came into the plan.
                || has_later_action[position] && self.gates_every_write(position)
                || steps[position].optional && self.observed(position)
                || self.is_spent(position)
                || self.holds_now(position)
        });
        if leaves_hold {
            self.memory.journal.completed = Some(self.now);
        }
    }

    /// Whether the plan has failed and nothing of it can go on by itself.
    fn has_failed(&self) -> bool {
        if self.memory.journal.halt.is_some() {
            return true;
        }
        if self.memory.journal.completed.is_some() {
            return false;
        }
        let mut failed = false;
        let mut stopped = false;
        let mut going = false;
        for (position, (step, record)) in self.steps().iter().zip(&self.records).enumerate() {
            if step.lane != PlanLane::Main {
                continue;
            }
            let is_action = step.action().is_some();
            match record.state {
                StepState::Failed | StepState::Unknown if is_action => {
                    failed = true;
                    stopped |= step.fail_fast;
                }
                // What failed and is tried again has not recovered by that.
                StepState::Running if record.is_retried() => {
                    failed = true;
                    stopped |= step.fail_fast;
                }
                StepState::Failed if requirements::is_contained(step) => return true,
                StepState::Running => return false,
                StepState::Waiting if is_action => going |= self.open[position] && self.supported[position],
                StepState::Waiting => {
                    going |= self.open[position] && !step.optional && !self.is_spent(position);
                }
                _ => {}
            }
        }
        failed && (stopped || !going)
    }

    fn finish(mut self, failing: bool) -> Advanced {
        let (all_hold, all_hold_now, all_done) = (self.all_hold(), self.all_hold_now(), self.all_done());
        self.note_editions(all_done, all_hold);
        let retries: Vec<Timestamp> = self
            .records
            .iter()
            .zip(self.plan.steps())
            .filter(|(_, step)| step.lane == PlanLane::OnFailure)
            .filter_map(|(record, _)| record.retry_at.filter(|at| *at > self.now))
            .collect();
        for at in retries {
            self.wake(at);
        }
        self.write_down();
        Advanced {
            memory: self.memory,
            start: self.start,
            wake_at: self.wake_at,
            open: self.open,
            all_hold,
            all_hold_now,
            all_done,
            failing,
        }
    }
}

impl Pass<'_> {
    /// Puts the records into the journal, which stays the one it was if none has changed.
    fn write_down(&mut self) {
        let plan = self.plan;
        let known = self.memory.journal.in_order_of(plan);
        let differs =
            |position: &usize| !known[*position].is_some_and(|known| known.is_same(&self.records[*position]));
        let changed: Vec<usize> = (0..self.records.len()).filter(differs).collect();
        let steps = &mut self.memory.journal.steps;
        for position in changed {
            steps.insert(plan.steps()[position].id.clone(), self.records[position].clone());
        }
        if steps.len() != self.records.len() {
            steps.retain(|id, _| plan.position(id).is_some());
        }
    }

    /// Moves a record to a state, if it is not there already.
    fn become_state(&mut self, position: usize, state: StepState, reason: Option<Reason>) {
        let record = &mut self.records[position];
        if (record.state, record.reason) != (state, reason) {
            record.become_state(state, reason, self.now);
        }
    }
}

/// The token of one execution: the object, the step, its text and the run.
fn token(plan: &Plan, step: &Step, run: u64) -> String {
    let mut hash = linchpin_words::hash::sha256_hex(
        format!("{}\n{}\n{}\n{run}", plan.uid, step.id, step.definition).as_bytes(),
    );
    hash.truncate(32);
    hash
}

/// A later time.
pub(super) fn add(time: Timestamp, duration: std::time::Duration) -> Timestamp {
    time.plus_duration(duration)
}

impl Journal {
    /// Whether this object is done and, without watching, has nothing more to look at.
    pub fn is_at_rest(&self, plan: &Plan) -> bool {
        self.uid == plan.uid
            && self.generation == plan.generation
            && self.completed.is_some()
            && !plan.terms.watch
            && self.orders.requested_at == plan.terms.orders.requested_at
            && plan
                .terms
                .orders
                .rerun
                .as_ref()
                .is_none_or(|order| self.orders.rerun.as_ref() == Some(&order.value))
    }
}
