//! History: what an object of ours was, written down beside it.
//!
//! Nothing waits for it, and it costs the API server more than an effect does: it is kept from the moment on at which
//! there was nothing better to do for the object. Nothing is lost by that: what an object was and has not been written
//! down when it changes is owed, and written down before what it is now.

use std::collections::{BTreeSet, VecDeque};

use linchpin_engine::contract::{Want, World};
use linchpin_words::limits;

use crate::door::{Beside, HistoryInput, SideWrite};

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

    /// What must be observed for it.
    pub(super) fn wants(&self, beside: &dyn Beside<O>, object: &O) -> BTreeSet<Want> {
        if self.kept { beside.history_wants(object) } else { BTreeSet::new() }
    }

    /// What is to be written down or deleted now.
    pub(super) fn due(&mut self, beside: &dyn Beside<O>, object: &O, world: &World) -> Vec<SideWrite> {
        if !self.kept {
            return Vec::new();
        }
        while let Some((old, input)) = self.owed.front() {
            match beside.history(old, input, world) {
                Some(records) if records.is_empty() => drop(self.owed.pop_front()),
                records => return records.unwrap_or_default(),
            }
        }
        self.present.as_ref().and_then(|input| beside.history(object, input, world)).unwrap_or_default()
    }
}
