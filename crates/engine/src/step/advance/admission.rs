//! Admitting a transition as a whole, and remembering how far it came.

use super::Pass;
use crate::plan::Lane;

impl Pass<'_> {
    /// Whether nothing may start because the transition has not been admitted.
    pub(super) fn is_held(&self) -> bool {
        self.memory.journal.is_held(self.plan)
    }

    /// Whether a requirement is a gate that has done its work.
    pub(super) fn is_spent(&self, position: usize) -> bool {
        self.memory.journal.is_spent(self.plan, position)
    }

    /// Admits the transition if all its gates are seen to hold at this very moment. Effects rely on it, so it is saved
    /// before them.
    pub(super) fn admit(&mut self) {
        let Some(admission) = &self.plan.admission else { return };
        if !self.is_held() || self.memory.journal.halt.is_some() {
            return;
        }
        let gates = || {
            let positions = 0..self.records.len();
            positions.filter(|position| self.plan.gates(*position).is_some() && !self.is_spent(*position))
        };
        if !gates().all(|position| self.holds_now(position)) {
            return;
        }
        // An order to pass a gate is used up by the admission that it helped.
        let steps = self.plan.steps();
        let ordered = |position: &usize| {
            self.records[*position].proceeded && self.plan.terms.orders.proceed.contains(&steps[*position].id)
        };
        let used: Vec<_> = gates().filter(ordered).map(|position| steps[position].id.clone()).collect();
        self.memory.journal.orders.used.extend(used);
        self.memory.journal.editions.admitted = Some(admission.edition.clone());
        self.memory.critical += 1;
        for position in 0..self.records.len() {
            self.gate(position);
            self.passages[position] = self.passage(position);
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
        self.is_held() && self.steps()[position].lane == Lane::Main && self.records[position].repairing
    }
}
