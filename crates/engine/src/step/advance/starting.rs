//! Starting actions: turns, guards, retries, reruns.

use std::{collections::BTreeMap, time::Duration};

use linchpin_words::{Reason, Timestamp};

use super::{Pass, add, token};
use crate::{
    contract::StepId,
    journal::{StepRecord, StepState, Trigger},
    plan::{ActionBody, PlanLane, Recovery, Rerun, WatchEvents},
    step::{
        align::{begin_run, forget},
        backoff::{self, FailureClass},
        fact::GuardAnswer,
    },
};

/// Repairs that may follow each other at once. Somebody who undoes more of them is another controller, and a fight at
/// full speed helps nobody.
const QUICK_REPAIRS: u32 = 3;
/// What stayed as written for so long was put right for good.
const LASTING: Duration = Duration::from_mins(5);

/// What an action wrote is no longer so: it is to be written again, ever more slowly if that does not last.
fn repair(record: &mut StepRecord, uid: &str, step: &StepId, now: Timestamp) {
    let lasted = add(record.since, LASTING) <= now;
    let repairs = if lasted { 1 } else { record.repairs.saturating_add(1) };
    let attempt = record.attempt;
    forget(record, now);
    // The run goes on, so its attempts do: no ticket is used twice.
    record.attempt = attempt;
    record.repairs = repairs;
    record.repairing = true;
    record.reason = Some(Reason::Drifted);
    record.retry_at = repairs
        .checked_sub(QUICK_REPAIRS)
        .filter(|beyond| *beyond > 0)
        .map(|beyond| add(now, backoff::delay(FailureClass::Refused, uid, step, beyond)));
}

/// Whether what happened to a dependency, or to a selection of objects, is one of the events that count.
fn counts(before: &Trigger, seen: &Trigger, wanted: WatchEvents) -> bool {
    if before.uid == seen.uid {
        return wanted.update && seen.uid.is_some();
    }
    let (before, seen) = (before.incarnations(), seen.incarnations());
    wanted.create && !seen.is_subset(&before) || wanted.delete && !before.is_subset(&seen)
}

impl Pass<'_> {
    /// Finished actions that must run again, by their rule.
    pub(super) fn rerun_changed(&mut self) {
        let all_hold = self.all_hold_now();
        let mut renewed = false;
        for position in 0..self.records.len() {
            let Some(action) = self.steps()[position].action() else {
                continue;
            };
            let fact = &self.facts[position];
            let record = &mut self.records[position];
            if !record.is_successful() {
                continue;
            }
            match &action.rerun {
                Rerun::Never => {}
                Rerun::OnDrift(_) => {
                    if fact.drifted && record.state == StepState::Done {
                        repair(record, &self.plan.uid, &self.plan.steps()[position].id, self.now);
                    }
                }
                Rerun::OnReads(events) => {
                    for (dependency, wanted) in events {
                        let Some(seen) = fact.triggers.get(dependency) else {
                            continue;
                        };
                        let Some(before) = record.triggers.get(dependency) else {
                            // It was not watched when the action ended: what is seen now is what it was then.
                            record.triggers.insert(dependency.clone(), seen.clone());
                            continue;
                        };
                        if before == seen {
                            continue;
                        }
                        let happened = counts(before, seen, *wanted);
                        record.rerun_pending |= happened;
                        record.triggers.insert(dependency.clone(), seen.clone());
                    }
                    if record.rerun_pending && all_hold && self.supported[position] {
                        forget(record, self.now);
                        renewed = true;
                    }
                }
            }
        }
        if renewed {
            self.memory.journal.completed = None;
            begin_run(&mut self.memory, self.now);
        }
    }

    pub(super) fn start_ready(&mut self) {
        // Records may have been moved since the gates were judged, by a recovery or a rerun.
        for position in 0..self.records.len() {
            self.passages[position] = self.passage(position);
        }
        let held = self.is_held();
        let frozen: Vec<usize> = (0..self.records.len())
            .filter(|position| {
                let record = &self.records[*position];
                self.steps()[*position].fail_fast
                    && (matches!(record.state, StepState::Failed | StepState::Unknown) || record.is_retried())
            })
            .collect();
        for position in 0..self.records.len() {
            let step = &self.steps()[position];
            if step.lane != PlanLane::Main || step.action().is_none() {
                continue;
            }
            if !matches!(self.records[position].state, StepState::Waiting | StepState::Failed) {
                continue;
            }
            // Earlier actions of this very pass may have moved since the gate was judged.
            self.gate(position);
            let repairs = self.repairs_while_held(position);
            if repairs {
                self.gate_repair(position);
            }
            let (open, supported) = (self.open[position], self.supported[position] && (repairs || !held));
            let fact = &self.facts[position];
            let stopped = !frozen.is_empty() && !frozen.contains(&position);
            // An effect of the step's former text may still land: the new one must come after it.
            let landing = self.memory.flight.iter().any(|ticket| ticket.step == step.id);
            if !open || !supported || stopped || landing {
                if self.records[position].clock.is_some() {
                    self.records[position].clock = None;
                }
            } else if fact.supplied {
                self.take_turn(position);
            } else {
                self.await_supply(position);
            }
            self.passages[position] = self.passage(position);
        }
    }

    /// An action whose turn has come and that lacks a right, a value or a way to its cluster: its own time runs.
    fn await_supply(&mut self, position: usize) {
        let clock = self.records[position].clock.unwrap_or(self.now);
        if self.records[position].clock.is_none() && self.steps()[position].timeout.is_some() {
            self.records[position].clock = Some(clock);
        }
        if self.is_late(position, clock) && self.facts[position].live {
            self.run_out(position);
        }
    }

    /// An action has no time left to wait for what it lacks. That is watched: once it is there, the action goes on.
    fn run_out(&mut self, position: usize) {
        let automatic = self.plan.terms.recovery == Recovery::Automatic;
        let record = &mut self.records[position];
        record.become_state(StepState::Failed, Some(Reason::TimedOut), self.now);
        record.retry_at = automatic.then_some(self.now);
    }

    /// Whether an action that waits has no time left; it is looked at again when that is so.
    fn is_late(&mut self, position: usize, clock: Timestamp) -> bool {
        let Some(deadline) = self.steps()[position].timeout.map(|timeout| add(clock, timeout)) else {
            return false;
        };
        if deadline > self.now {
            self.wake(deadline);
        }
        deadline <= self.now && self.records[position].state == StepState::Waiting
    }

    /// An action whose turn has come: ask its guard, respect its clocks, start it.
    pub(super) fn take_turn(&mut self, position: usize) {
        let fact = &self.facts[position];
        let now = self.now;
        let clock = self.records[position].clock.unwrap_or(now);
        if self.records[position].clock.is_none() {
            self.records[position].clock = Some(now);
        }
        match fact.guard {
            GuardAnswer::No => {
                self.note_triggers(position);
                self.records[position].become_state(StepState::Skipped, Some(Reason::GuardFalse), now);
                return;
            }
            GuardAnswer::Undecided => return self.await_guard(position, clock),
            GuardAnswer::Yes => {}
        }
        let guard_had_failed = self.records[position].reason == Some(Reason::GuardTimedOut);
        if let Some(at) = self.records[position].retry_at.filter(|at| *at > now)
            && !fact.awaited
            && !guard_had_failed
        {
            self.wake(at);
            if self.is_late(position, clock) {
                self.records[position].become_state(StepState::Failed, Some(Reason::TimedOut), now);
            }
            return;
        }
        let never = self.records[position].state == StepState::Failed
            && self.records[position].retry_at.is_none()
            && !guard_had_failed;
        if never {
            return;
        }
        let lacks_a_value = self.records[position].reason == Some(Reason::ValueMissing);
        if self.is_late(position, clock) && lacks_a_value {
            self.run_out(position);
        } else {
            self.begin(position);
        }
    }

    pub(super) fn await_guard(&mut self, position: usize, clock: Timestamp) {
        let step = &self.steps()[position];
        let now = self.now;
        let limit = step.when.as_ref().and_then(|guard| guard.timeout(self.plan));
        if let Some(deadline) = limit.map(|limit| add(clock, limit)) {
            if deadline > now {
                self.wake(deadline);
            } else if self.facts[position].live {
                self.records[position].become_state(StepState::Failed, Some(Reason::GuardTimedOut), now);
                return;
            }
        }
        if self.records[position].state == StepState::Waiting {
            self.become_state(position, StepState::Waiting, Some(Reason::GuardUndecided));
        }
    }

    /// Remembers what an action that runs again on changes has seen. What it could not see is not there, so far.
    fn note_triggers(&mut self, position: usize) {
        let seen = &self.facts[position].triggers;
        let noted = |id: &StepId| seen.get(id).cloned().unwrap_or_default();
        let triggers = match self.steps()[position].action().map(|action| &action.rerun) {
            Some(Rerun::OnReads(events)) => events.keys().map(|id| (id.clone(), noted(id))).collect(),
            _ => BTreeMap::new(),
        };
        if self.records[position].triggers != triggers {
            self.records[position].triggers = triggers;
        }
    }

    pub(super) fn begin(&mut self, position: usize) {
        let Some(action) = self.steps()[position].action() else {
            return;
        };
        self.note_triggers(position);
        let run = self.memory.journal.run.id;
        let record = &mut self.records[position];
        record.attempt = if record.run == run { record.attempt.saturating_add(1) } else { 1 };
        record.run = run;
        record.retry_at = None;
        record.awaits = None;
        record.rerun_pending = false;
        // A command may run for long, and a condition that was decided after all is no failure: these begin anew.
        let again = record.state == StepState::Failed && action.delivery().is_none();
        let reason = record.reason.filter(|reason| again && *reason != Reason::GuardTimedOut);
        record.become_state(StepState::Running, reason, self.now);
        if action.delivery().is_some() {
            record.token = Some(token(self.plan, &self.plan.steps()[position], run));
            self.memory.critical += 1;
        }
        if let ActionBody::Wait(pause) = &action.body {
            let until = add(self.now, *pause);
            if until <= self.now {
                self.records[position].become_state(StepState::Done, None, self.now);
            } else {
                self.wake(until);
            }
        } else {
            self.start.push(position);
        }
    }

    pub(super) fn start_on_failure(&mut self) {
        for position in 0..self.records.len() {
            let step = &self.steps()[position];
            let due = self.records[position].retry_at.is_none_or(|at| at <= self.now);
            if step.lane == PlanLane::OnFailure && self.records[position].state == StepState::Waiting && due {
                self.begin(position);
            }
        }
    }
}
