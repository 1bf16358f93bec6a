//! Admitting a transition as a whole, and remembering how far it came.

use super::Pass;
use crate::{
    contract::StepId,
    plan::{ActionBody, PlanLane},
};

impl Pass<'_> {
    /// Whether nothing may start because the transition has not been admitted.
    pub(super) fn is_held(&self) -> bool {
        self.memory.journal.is_held(self.plan)
    }

    /// Whether a requirement is a gate that has done its work.
    pub(super) fn is_spent(&self, position: usize) -> bool {
        self.memory.journal.is_spent(self.plan, position)
    }

    /// Whether nothing was ever admitted, as far as the journal knows.
    fn is_first(&self) -> bool {
        self.plan.admission.is_some() && self.memory.journal.editions.admitted.is_none()
    }

    /// What a pledged edition wrote proves that it was admitted, by a process that did not live to save it.
    pub(super) fn recall_admission(&mut self) {
        let written = || self.facts.iter().any(|fact| fact.written == Some(true));
        if !self.is_first() || self.memory.journal.editions.pledged.is_none() || !written() {
            return;
        }
        let editions = &mut self.memory.journal.editions;
        editions.admitted = editions.pledged.take();
        self.memory.critical += 1;
        let halted = self.memory.journal.halt.as_ref().and_then(|halt| halt.step.as_ref());
        if halted.and_then(|step| self.plan.gates(self.plan.position(step)?)).is_some() {
            // Gates of what was admitted fail nothing.
            self.memory.journal.halt = None;
        }
    }

    /// Admits the transition if all its gates are seen to hold at this very moment. Effects rely on it, so it is saved
    /// before them, unless they are what proves it.
    pub(super) fn admit(&mut self) {
        let Some(admission) = &self.plan.admission else { return };
        if !self.is_held() || self.memory.journal.halt.is_some() {
            return;
        }
        let gates: Vec<usize> = (0..self.records.len())
            .filter(|position| self.plan.gates(*position).is_some() && !self.is_spent(*position))
            .collect();
        if !gates.iter().all(|position| self.holds_now(*position)) {
            return;
        }
        // An order to pass a gate is used up by the admission that it helped.
        let steps = self.plan.steps();
        let ordered = |position: &usize| {
            self.records[*position].proceeded && self.plan.terms.orders.proceed.contains(&steps[*position].id)
        };
        let used: Vec<StepId> =
            gates.iter().copied().filter(ordered).map(|position| steps[position].id.clone()).collect();
        let proved = self.is_proved_by_effects(&gates);
        self.memory.journal.orders.used.extend(used);
        let editions = &mut self.memory.journal.editions;
        editions.pledged = None;
        editions.admitted = Some(admission.edition.clone());
        if !proved {
            self.memory.critical += 1;
        }
        for position in 0..self.records.len() {
            self.gate(position);
            self.passages[position] = self.passage(position);
        }
    }

    /// Whether all that an admission now would leave behind is known without being saved: the pledge is saved, so
    /// whatever is written proves it, and no gate was passed by otherwise than by holding.
    fn is_proved_by_effects(&self, gates: &[usize]) -> bool {
        let Some(admission) = &self.plan.admission else { return false };
        let pledged = self.memory.journal.editions.pledged.as_ref();
        self.is_first()
            && pledged.is_some_and(|pledged| pledged.is(&admission.edition))
            && self.memory.critical <= self.memory.saved
            && !gates.iter().any(|position| self.records[*position].proceeded)
    }

    /// While the first edition waits and nothing of it is written, pledges that whatever will be is of this one.
    pub(super) fn pledge(&mut self) {
        let Some(admission) = &self.plan.admission else { return };
        if !self.is_first() || self.memory.journal.editions.pledged.is_some() {
            return;
        }
        let unwritten = self.steps().iter().zip(self.facts).all(|(step, fact)| match step.action() {
            Some(action) if step.lane == PlanLane::Main => {
                matches!(action.body, ActionBody::Wait(_))
                    || matches!(action.body, ActionBody::Apply { .. }) && fact.written == Some(false)
            }
            _ => true,
        });
        if unwritten {
            self.memory.journal.editions.pledged = Some(admission.edition.clone());
            self.memory.critical += 1;
        }
    }

    /// Remembers that all of an admitted transition was written, and that all of it was ready.
    pub(super) fn note_editions(&mut self, all_done: bool, all_hold: bool) {
        let Some(admission) = &self.plan.admission else { return };
        if self.is_held() || !all_done {
            return;
        }
        let editions = &mut self.memory.journal.editions;
        if !editions.applied.as_ref().is_some_and(|applied| applied.is(&admission.edition)) {
            editions.applied = Some(admission.edition.clone());
        }
        let ready = all_hold && self.memory.journal.completed.is_some();
        let editions = &mut self.memory.journal.editions;
        if ready && !editions.ready.as_ref().is_some_and(|known| known.is(&admission.edition)) {
            editions.ready = Some(admission.edition.clone());
        }
    }

    /// Whether an action puts right what an earlier edition wrote and the one that is held does not change.
    pub(super) fn repairs_while_held(&self, position: usize) -> bool {
        self.is_held() && self.steps()[position].lane == PlanLane::Main && self.records[position].repairing
    }
}
