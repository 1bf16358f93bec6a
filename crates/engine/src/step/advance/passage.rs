//! What a step lets through to those that come after it.
//!
//! A step has many edges and moves seldom: what it means for the others is computed once and read once per edge. It is
//! computed anew whenever its record, or what is known of what comes before it, may have changed.

use super::{Pass, add};
use crate::{journal::StepState, plan::StepKind};

/// What one step means for those that come after it.
#[derive(Clone, Copy, Default)]
pub(super) struct Passage {
    /// Whether what needs its good end may go on.
    success: bool,
    /// Whether what needs its end, good or bad, may go on.
    settled: bool,
    /// Whether it and all requirements above it are seen to hold.
    supported: bool,
    /// Whether what needs its good end will not run by itself.
    dooms: bool,
    /// Whether it keeps even those from running that need its end only.
    dooms_all: bool,
    /// Whether its delay may have to pass first.
    delays: bool,
}

impl Pass<'_> {
    /// What a step means for others, as things are now.
    pub(super) fn passage(&self, position: usize) -> Passage {
        let step = &self.steps()[position];
        let record = &self.records[position];
        match step.kind {
            StepKind::Require(_) => {
                let passes = step.optional && self.observed(position) || self.is_spent(position);
                let open = passes || record.state == StepState::Met;
                let dooms = !passes && (self.doomed[position] || record.state == StepState::Failed);
                Passage {
                    success: open,
                    settled: open,
                    supported: (passes || self.holds_now(position)) && self.supported[position],
                    dooms,
                    dooms_all: dooms,
                    delays: false,
                }
            }
            StepKind::Act(_) => {
                let hopeless = self.doomed[position] && record.state == StepState::Waiting;
                Passage {
                    success: record.is_successful(),
                    settled: record.is_settled() || hopeless,
                    supported: self.supported[position],
                    dooms: hopeless || matches!(record.state, StepState::Failed | StepState::Unknown),
                    dooms_all: false,
                    delays: step.delay_after.is_some(),
                }
            }
        }
    }

    /// Judges whether all that a step comes after is there, whether all requirements above it are seen to hold, and
    /// whether something it needs has failed, so that it will not run by itself.
    pub(super) fn gate(&mut self, position: usize) {
        let (mut open, mut supported, mut doomed) = (true, true, false);
        let plan = self.plan;
        for (earlier, after) in plan.before(position).iter().zip(&plan.steps()[position].after) {
            let passage = self.passages[*earlier];
            let (ended, dooms) = if after.settled_is_enough {
                (passage.settled, passage.dooms_all)
            } else {
                (passage.success, passage.dooms)
            };
            open &= ended && !(passage.delays && self.is_delayed(*earlier));
            supported &= passage.supported;
            doomed |= dooms;
        }
        self.open[position] = open;
        self.supported[position] = supported;
        self.doomed[position] = doomed;
    }

    /// Judges whether what was written in its turn may be put right while an update is held: nothing that is held comes before
    /// it again, but what every write waits for does.
    pub(super) fn gate_repair(&mut self, position: usize) {
        let each_time = |earlier: &&usize| self.gates_every_write(**earlier);
        let may = self.plan.before(position).iter().filter(each_time).all(|earlier| {
            let Passage { success, supported, .. } = self.passages[*earlier];
            success && supported
        });
        (self.open[position], self.supported[position]) = (may, may);
    }

    /// Whether the delay after an action that has ended is not over yet; it is looked at again when it is.
    fn is_delayed(&mut self, position: usize) -> bool {
        let delay = self.steps()[position].delay_after;
        let over = delay.map(|delay| add(self.records[position].since, delay)).filter(|at| *at > self.now);
        if let Some(at) = over {
            self.wake(at);
        }
        over.is_some()
    }
}
