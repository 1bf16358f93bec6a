//! History: what an object of ours was, written down beside it.
//!
//! Nothing waits for it, and it costs the API server more than an effect does: it is kept from the moment on at which
//! there was nothing better to do for the object. Nothing is lost by that: what an object was and has not been written
//! down when it changes is owed, and written down before what it is now.

use std::collections::VecDeque;

use linchpin_engine::contract::World;
use linchpin_words::limits;

use crate::door::{HistoryInput, HistoryRecord, HistoryStep, SideRecords};

/// The history of one object, as far as it is not written down.
pub(super) struct History<O> {
    kept: bool,
    /// The present input.
    present: Option<HistoryInput>,
    /// What it was, with the input of that time, the oldest first.
    owed: VecDeque<(O, HistoryInput)>,
}

impl<O> Default for History<O> {
    fn default() -> Self {
        Self { kept: false, present: None, owed: VecDeque::new() }
    }
}

impl<O> History<O> {
    /// Whether it is kept.
    pub(super) fn is_kept(&self) -> bool {
        self.kept
    }

    /// It is kept from now on, if there is nothing better to do.
    pub(super) fn keep_if(&mut self, idle: bool) {
        self.kept |= idle;
    }

    /// This is the input now; none where there is nothing to be deployed.
    pub(super) fn note(&mut self, present: Option<HistoryInput>) {
        if present.is_some() {
            self.present = present;
        }
    }

    /// The object has become another one.
    pub(super) fn owe(&mut self, old: O) {
        if let Some(present) = self.present.take() {
            self.owed.push_back((old, present));
        }
        if self.owed.len() > limits::REVISIONS {
            self.owed.pop_front();
        }
    }

    /// How it goes on now.
    pub(super) fn next(
        &mut self,
        beside: &dyn SideRecords<O>,
        object: &O,
        kept: Option<&[HistoryRecord]>,
        world: &World,
    ) -> HistoryStep {
        let Some(kept) = kept.filter(|_| self.kept) else { return HistoryStep::default() };
        while let Some((old, input)) = self.owed.front() {
            let step = beside.history(old, input, kept, world);
            if step != HistoryStep::default() {
                return step;
            }
            self.owed.pop_front();
        }
        let present = self.present.as_ref();
        present.map(|input| beside.history(object, input, kept, world)).unwrap_or_default()
    }
}
