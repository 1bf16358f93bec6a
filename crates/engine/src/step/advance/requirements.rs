//! Requirements and gates: what holds, what is open, what is broken.

use std::time::Duration;

use linchpin_words::{Reason, Timestamp};

use super::{Broken, Pass, add};
use crate::{
    journal::{Progress, StepState},
    plan::{ActionBody, PlanLane, Step, StepKind},
    step::fact::Holds,
};

impl Pass<'_> {
    /// Actions that are under way without an effect in flight: pauses end, awaited things arrive.
    pub(super) fn move_running(&mut self) {
        for position in 0..self.records.len() {
            let Some(action) = self.steps()[position].action() else {
                continue;
            };
            if self.records[position].state != StepState::Running {
                continue;
            }
            if let ActionBody::Wait(pause) = &action.body {
                let until = add(self.records[position].since, *pause);
                if until <= self.now {
                    self.records[position].become_state(StepState::Done, None, self.now);
                } else {
                    self.wake(until);
                }
            } else if self.records[position].awaits.is_some() && self.facts[position].awaited {
                let record = &mut self.records[position];
                record.awaits = None;
                if record.recreate.take().is_some() {
                    record.become_state(StepState::Waiting, Some(Reason::Recreating), self.now);
                } else {
                    record.become_state(StepState::Done, None, self.now);
                }
            }
        }
    }

    /// Opens what may be opened, moves requirements, and names those that are broken.
    pub(super) fn judge_requirements(&mut self) -> Vec<Broken> {
        let mut broken = Vec::new();
        for position in 0..self.records.len() {
            self.gate(position);
            if matches!(self.steps()[position].kind, StepKind::Require(_))
                && let Some(reason) = self.judge_requirement(position)
            {
                broken.push(Broken { position, reason });
            }
            self.passages[position] = self.passage(position);
        }
        broken
    }

    /// Whether a requirement is seen to hold at this moment, as opposed to when it was last looked at.
    pub(super) fn holds_now(&self, position: usize) -> bool {
        let record = &self.records[position];
        let counts = record.proceeded || self.lasts(position) || self.facts[position].holds == Holds::Met;
        record.state == StepState::Met && counts
    }

    /// Whether a requirement was met once, and that is enough.
    fn lasts(&self, position: usize) -> bool {
        let requirement = self.steps()[position].requirement();
        let lasting = requirement.is_some_and(|requirement| requirement.lasts.lasts());
        lasting && self.records[position].latch.is_some()
    }

    /// Remembers that a requirement was met, where that matters later.
    fn remember_met(&mut self, position: usize) {
        let fact = &self.facts[position];
        let known = self.records[position].latch.is_some();
        if fact.latch.is_some() && self.records[position].latch != fact.latch {
            self.records[position].latch.clone_from(&fact.latch);
        }
        let requirement = self.steps()[position].requirement();
        let lasting = requirement.is_some_and(|requirement| requirement.lasts.lasts());
        if lasting && fact.holds == Holds::Met && self.records[position].latch.is_none() {
            self.records[position].latch = Some(String::new());
        }
        if lasting && !known && self.records[position].latch.is_some() {
            // What it lets pass relies on it for good.
            self.memory.critical += 1;
        }
    }

    /// A gate that has done its work is only looked at: nothing fails by it, and no clock of it runs.
    fn look_at_spent(&mut self, position: usize) {
        let holds = self.facts[position].holds;
        let met = holds == Holds::Met || self.records[position].proceeded || self.lasts(position);
        let unlooked = holds == (Holds::Unknown { passing: true });
        self.set_clocks(position, None, None);
        if met {
            self.remember_met(position);
            let reason = self.passed_by(position);
            self.become_state(position, StepState::Met, reason);
            if reason.is_none()
                && self.steps()[position].patience.is_some()
                && self.records[position].proceeded
            {
                // It was gone past until it was there. From now on it can be lost like any other.
                self.records[position].proceeded = false;
            }
        } else if !unlooked {
            self.become_state(position, StepState::Waiting, Some(Reason::DependencyLost));
        }
    }

    /// Why a requirement counts as met although it is not seen to hold.
    fn passed_by(&self, position: usize) -> Option<Reason> {
        let aside = self.facts[position].holds != Holds::Met && !self.lasts(position);
        let reason = match self.steps()[position].patience {
            Some(_) => Reason::SoftBroken,
            None => Reason::Proceeded,
        };
        aside.then_some(reason)
    }

    /// A requirement that is waited for with patience: passed by when that is over, or when waiting is pointless.
    fn wait_patiently(&mut self, position: usize, patience: Duration, clock: Timestamp) {
        let fact = &self.facts[position];
        let deadline = add(clock, patience);
        if fact.holds == Holds::Failed || deadline <= self.now && fact.live {
            self.records[position].proceeded = true;
            self.become_state(position, StepState::Met, Some(Reason::SoftBroken));
            self.set_clocks(position, None, None);
            return;
        }
        if deadline > self.now {
            self.wake(deadline);
        }
        self.become_state(position, StepState::Waiting, None);
    }

    /// Whether anything has been observed of an optional requirement; an obstacle that will not pass counts.
    pub(super) fn observed(&self, position: usize) -> bool {
        self.open[position] && self.facts[position].holds != Holds::Unknown { passing: true }
    }

    pub(super) fn judge_requirement(&mut self, position: usize) -> Option<Reason> {
        let step = &self.steps()[position];
        let fact = &self.facts[position];
        let now = self.now;
        if !self.open[position] {
            self.become_state(position, StepState::Waiting, None);
            self.set_clocks(position, None, None);
            return None;
        }
        if self.is_spent(position) {
            self.look_at_spent(position);
            return None;
        }
        if fact.holds == Holds::Met || self.records[position].proceeded || self.lasts(position) {
            self.remember_met(position);
            let reason = self.passed_by(position);
            self.become_state(position, StepState::Met, reason);
            self.set_clocks(position, None, None);
            return None;
        }
        let record = &self.records[position];
        // Not looked at yet, after a start or our own write: what was seen is neither proved nor disproved by that. No
        // clock begins anew, and nothing starts on it either.
        if fact.holds == (Holds::Unknown { passing: true }) && record.state == StepState::Met {
            return None;
        }
        let clock = record.clock.unwrap_or(now);
        let moved = match record.progress {
            Some(progress) if progress.marker == fact.progress => progress.moved,
            _ => now,
        };
        let progress = step.progress_timeout.map(|_| Progress { marker: fact.progress, moved });
        self.set_clocks(position, Some(clock), progress);
        if step.optional {
            self.become_state(position, StepState::Waiting, None);
            return None;
        }
        if let Some(patience) = step.patience {
            self.wait_patiently(position, patience, clock);
            return None;
        }
        // What gates no transition as a whole holds what comes after it, and no more.
        let contained = is_contained(step) || self.gates_every_write(position);
        if fact.holds == Holds::Failed {
            self.become_state(position, StepState::Failed, Some(Reason::DependencyFailed));
            return (!contained).then_some(Reason::DependencyFailed);
        }
        if self.memory.journal.completed.is_some() {
            // What is complete has no time to run out of.
            self.become_state(position, StepState::Waiting, None);
            return None;
        }
        let deadlines = [
            (step.timeout.map(|timeout| add(clock, timeout)), Reason::TimedOut),
            (step.progress_timeout.map(|timeout| add(moved, timeout)), Reason::ProgressTimeout),
        ];
        for (deadline, reason) in deadlines {
            let Some(deadline) = deadline else { continue };
            if deadline > now {
                self.wake(deadline);
            } else if fact.live {
                self.become_state(position, StepState::Failed, Some(reason));
                return (!contained).then_some(reason);
            }
        }
        self.become_state(position, StepState::Waiting, None);
        None
    }

    /// Whether a requirement gates no transition as a whole, but each write that comes after it.
    pub(super) fn gates_every_write(&self, position: usize) -> bool {
        let step = &self.steps()[position];
        let is_foreign = step.requirement().is_some() && !is_contained(step);
        self.plan.admission.is_some() && is_foreign && self.plan.gates(position).is_none()
    }

    /// Sets when a requirement began to be waited for and when it last moved, if that is news.
    fn set_clocks(&mut self, position: usize, clock: Option<Timestamp>, progress: Option<Progress>) {
        let record = &mut self.records[position];
        if (record.clock, record.progress) != (clock, progress) {
            record.clock = clock;
            record.progress = progress;
        }
    }

    /// Whether every requirement whose turn has come holds, as far as is known, and everything that they are strictly
    /// asked for readiness.
    pub(super) fn all_hold(&self) -> bool {
        self.each_holds(|position| {
            let strictly = self.facts[position].strictly;
            // What is only waited for before writing says nothing of what was written.
            self.gates_every_write(position)
                || self.records[position].state == StepState::Met
                    && (self.records[position].proceeded
                        || matches!(strictly, None | Some(Holds::Met | Holds::Unknown { passing: true })))
        })
    }

    /// Whether every requirement that is not a matter of our own actions is seen to hold at this moment.
    pub(super) fn all_others_hold_now(&self) -> bool {
        self.each_holds(|position| is_contained(&self.steps()[position]) || self.holds_now(position))
    }

    /// Whether every requirement whose turn has come is seen to hold at this moment.
    pub(super) fn all_hold_now(&self) -> bool {
        self.each_holds(|position| self.holds_now(position))
    }

    fn each_holds(&self, holds: impl Fn(usize) -> bool) -> bool {
        (0..self.records.len()).all(|position| {
            let step = &self.steps()[position];
            !matches!(step.kind, StepKind::Require(_))
                || step.optional
                || self.is_spent(position)
                || !self.open[position] && self.waits_for_action(position)
                || holds(position)
        })
    }

    /// Whether every action of the plan proper has come to a good end.
    pub(super) fn all_done(&self) -> bool {
        let mut acts = self.steps().iter().zip(&self.records);
        acts.all(|(step, record)| {
            step.lane != PlanLane::Main || step.action().is_none() || record.is_successful()
        })
    }

    /// Whether a closed requirement is closed by an action that has not run, and by nothing else.
    pub(super) fn waits_for_action(&self, position: usize) -> bool {
        self.plan.before(position).iter().any(|earlier| {
            matches!(self.steps()[*earlier].kind, StepKind::Act(_)) && !self.records[*earlier].is_successful()
        })
    }
}

/// Whether a requirement is about what an action of the plan wrote: its failure stops what comes after it, and no more.
pub(super) fn is_contained(step: &Step) -> bool {
    step.requirement().is_some_and(|requirement| requirement.floor.is_some())
}
