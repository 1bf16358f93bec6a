//! Requirements and gates: what holds, what is open, what is broken.

use linchpin_words::Reason;

use super::{Broken, Pass, add};
use crate::{
    journal::{Progress, StepState},
    plan::{Body, Lane, Step, StepKind},
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
            if let Body::Wait(pause) = &action.body {
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
        }
        broken
    }

    /// Judges whether all that a step comes after is there, whether all requirements above it are seen to hold, and
    /// whether something it needs has failed, so that it will not run by itself.
    pub(super) fn gate(&mut self, position: usize) {
        let (mut open, mut supported, mut doomed) = (true, true, false);
        let plan = self.plan;
        for (earlier, after) in plan.before(position).iter().zip(&plan.steps()[position].after) {
            let step = &plan.steps()[*earlier];
            let record = &self.records[*earlier];
            match step.kind {
                StepKind::Require(_) => {
                    let passes = step.optional && self.observed(*earlier);
                    open &= passes || record.state == StepState::Met;
                    supported &= (passes || self.holds_now(*earlier)) && self.supported[*earlier];
                    doomed |= !passes && (self.doomed[*earlier] || record.state == StepState::Failed);
                }
                StepKind::Act(_) => {
                    let hopeless = self.doomed[*earlier] && record.state == StepState::Waiting;
                    let bad = hopeless || matches!(record.state, StepState::Failed | StepState::Unknown);
                    doomed |= bad && !after.settled_is_enough;
                    let ended = if after.settled_is_enough {
                        record.is_settled() || hopeless
                    } else {
                        record.is_successful()
                    };
                    let released = step.delay_after.map(|delay| add(record.since, delay));
                    if ended && let Some(at) = released.filter(|at| *at > self.now) {
                        open = false;
                        self.wake(at);
                    }
                    open &= ended;
                    supported &= self.supported[*earlier];
                }
            }
        }
        self.open[position] = open;
        self.supported[position] = supported;
        self.doomed[position] = doomed;
    }

    /// Whether a requirement is seen to hold at this moment, as opposed to when it was last looked at.
    pub(super) fn holds_now(&self, position: usize) -> bool {
        let record = &self.records[position];
        record.state == StepState::Met && (record.proceeded || self.facts[position].holds == Holds::Met)
    }

    /// Whether anything has been observed of an optional requirement; an obstacle that will not pass counts.
    pub(super) fn observed(&self, position: usize) -> bool {
        self.open[position] && self.facts[position].holds != Holds::Unknown { passing: true }
    }

    pub(super) fn judge_requirement(&mut self, position: usize) -> Option<Reason> {
        let step = &self.steps()[position];
        let fact = &self.facts[position];
        let now = self.now;
        let record = &mut self.records[position];
        if !self.open[position] {
            record.become_state(StepState::Waiting, None, now);
            record.clock = None;
            record.progress = None;
            return None;
        }
        if fact.holds == Holds::Met || record.proceeded {
            if fact.latch.is_some() {
                record.latch.clone_from(&fact.latch);
            }
            let reason = (fact.holds != Holds::Met).then_some(Reason::Proceeded);
            record.become_state(StepState::Met, reason, now);
            record.clock = None;
            record.progress = None;
            return None;
        }
        // Not looked at yet, after a start or our own write: what was seen is neither proved nor disproved by that. No
        // clock begins anew, and nothing starts on it either.
        if fact.holds == (Holds::Unknown { passing: true }) && record.state == StepState::Met {
            return None;
        }
        let clock = *record.clock.get_or_insert(now);
        let moved = match record.progress {
            Some(progress) if progress.marker == fact.progress => progress.moved,
            _ => now,
        };
        record.progress = step.progress_timeout.map(|_| Progress { marker: fact.progress, moved });
        if step.optional {
            record.become_state(StepState::Waiting, None, now);
            return None;
        }
        let contained = is_contained(step);
        if fact.holds == Holds::Failed {
            record.become_state(StepState::Failed, Some(Reason::DependencyFailed), now);
            return (!contained).then_some(Reason::DependencyFailed);
        }
        if self.memory.journal.completed.is_some() {
            // What is complete has no time to run out of.
            record.become_state(StepState::Waiting, None, now);
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
                self.records[position].become_state(StepState::Failed, Some(reason), now);
                return (!contained).then_some(reason);
            }
        }
        self.records[position].become_state(StepState::Waiting, None, now);
        None
    }

    /// Whether every requirement whose turn has come holds, as far as is known, and everything that they are strictly
    /// asked for readiness.
    pub(super) fn all_hold(&self) -> bool {
        self.each_holds(|position| {
            let strictly = self.facts[position].strictly;
            self.records[position].state == StepState::Met
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
                || !self.open[position] && self.waits_for_action(position)
                || holds(position)
        })
    }

    /// Whether every action of the plan proper has come to a good end.
    pub(super) fn all_done(&self) -> bool {
        let mut acts = self.steps().iter().zip(&self.records);
        acts.all(|(step, record)| {
            step.lane != Lane::Main || step.action().is_none() || record.is_successful()
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
