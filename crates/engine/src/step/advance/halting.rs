//! Halting when a requirement fails or time runs out, and coming back.

use linchpin_words::{Reason, Timestamp};

use super::{Broken, Pass, add, requirements::is_contained};
use crate::{
    contract::StepId,
    journal::{Halt, StepState},
    plan::{PlanLane, Recovery, StepKind},
    step::{
        align::{begin_run, forget},
        backoff::{self, FailureClass},
        fact::Holds,
    },
};

impl Pass<'_> {
    pub(super) fn halt_or_recover(&mut self, broken: Vec<Broken>) {
        let all_hold = self.all_others_hold_now();
        if let Some(halt) = self.memory.journal.halt.clone() {
            let early = halt.until.filter(|until| *until > self.now);
            if let Some(until) = early {
                self.wake(until);
            }
            if self.plan.terms.recovery == Recovery::Automatic && early.is_none() {
                if all_hold {
                    self.recover();
                } else if self.is_not_failed_any_more(&halt) {
                    match broken.into_iter().next() {
                        Some(next) => self.halt_at(&next),
                        None => self.recover(),
                    }
                }
            }
            return;
        }
        if self.memory.journal.completed.is_some() {
            return;
        }
        if let Some(first) = broken.into_iter().next() {
            self.halt_at(&first);
            return;
        }
        let Some(limit) = self.plan.terms.global_timeout else {
            return;
        };
        let deadline = add(self.memory.journal.run.clock, limit);
        if deadline > self.now {
            self.wake(deadline);
        } else if self.view_is_live() {
            // With nothing left to wait for, an immediate recovery would hide the failure: it is shown for a while.
            let until = all_hold.then(|| {
                let step = StepId::new("global timeout");
                add(self.now, backoff::delay(FailureClass::Refused, &self.plan.uid, &step, 5))
            });
            if let Some(until) = until {
                self.wake(until);
            }
            self.halt(Reason::GlobalTimeout, None, until);
        }
    }

    /// Whether something that is not admitted yet halts at a dependency that failed and is passed by hand, or seen not to be
    /// failed now: it is merely waited for then. What ran out of time is different: nothing goes on before all holds.
    fn is_not_failed_any_more(&self, halt: &Halt) -> bool {
        let Some(step) = halt.step.as_ref().filter(|_| halt.reason == Reason::DependencyFailed) else {
            return false;
        };
        let position = self.steps().iter().position(|one| one.id == *step);
        let failed_or_unseen = |position: usize| {
            let looked = matches!(self.facts[position].holds, Holds::Failed | Holds::Unknown { .. });
            looked && self.records[position].state != StepState::Met
        };
        self.is_held() && !position.is_some_and(failed_or_unseen)
    }

    fn halt_at(&mut self, broken: &Broken) {
        let step = self.steps()[broken.position].id.clone();
        self.halt(broken.reason, Some(step), None);
    }

    /// Whether every requirement that is not met was looked at live, so that lateness is theirs and not the view's.
    pub(super) fn view_is_live(&self) -> bool {
        (0..self.records.len()).all(|position| {
            let step = &self.steps()[position];
            !matches!(step.kind, StepKind::Require(_))
                || step.optional
                || self.is_spent(position)
                || is_contained(step)
                || !self.open[position]
                || self.holds_now(position)
                || self.facts[position].live
        })
    }

    pub(super) fn halt(&mut self, reason: Reason, step: Option<StepId>, until: Option<Timestamp>) {
        self.memory.journal.halt = Some(Halt { reason, step, since: self.now, until });
    }

    /// The cause went away: a new run, and a new chance for actions that failed.
    pub(super) fn recover(&mut self) {
        self.memory.journal.halt = None;
        begin_run(&mut self.memory, self.now);
        for (step, record) in self.plan.steps().iter().zip(&mut self.records) {
            if step.lane == PlanLane::Main && step.action().is_some() && record.state == StepState::Failed {
                forget(record, self.now);
            }
        }
    }
}
