//! History: what an object of ours was, written down beside it.
//!
//! Nothing waits for it, and it costs the API server more than an effect does: it is kept from the moment on at which
//! there was nothing better to do for the object. Nothing is lost by that: what an object was and has not been written
//! down when it changes is owed, and written down before what it is now.

use std::collections::{BTreeSet, VecDeque};

use linchpin_doors::{HistoryInput, SideWrite};
use linchpin_engine::contract::{Want, World};
use linchpin_words::limits;

use super::subject::Subject;

/// The history of one object, as far as it is not written down.
#[derive(Default)]
pub(crate) struct History {
    kept: bool,
    /// The present input.
    standing: Option<HistoryInput>,
    /// What it was, with the input of that time, the oldest first.
    owed: VecDeque<(Box<dyn Subject>, HistoryInput)>,
}

impl History {
    /// Whether it is kept from now on.
    pub(crate) fn keep_if(&mut self, nothing_better_to_do: bool) {
        self.kept |= nothing_better_to_do;
    }

    /// Whether it will be kept, but is not yet.
    pub(crate) fn is_put_off(&self, subject: &dyn Subject) -> bool {
        !self.kept && !subject.history_wants().is_empty()
    }

    /// This is the input now; none where there is nothing to be deployed.
    pub(crate) fn stands(&mut self, standing: Option<HistoryInput>) {
        if standing.is_some() {
            self.standing = standing;
        }
    }

    /// The object has become another one.
    pub(crate) fn owe(&mut self, old: Box<dyn Subject>) {
        if let Some(standing) = self.standing.take().filter(|_| !old.history_wants().is_empty()) {
            self.owed.push_back((old, standing));
        }
        if self.owed.len() > limits::REVISIONS {
            self.owed.pop_front();
        }
    }

    /// What must be observed for it.
    pub(crate) fn wants(&self, subject: &dyn Subject) -> BTreeSet<Want> {
        if self.kept { subject.history_wants() } else { BTreeSet::new() }
    }

    /// What is to be written down or deleted now.
    pub(crate) fn due(&mut self, subject: &dyn Subject, world: &World) -> Vec<SideWrite> {
        if !self.kept {
            return Vec::new();
        }
        while let Some((old, standing)) = self.owed.front() {
            match old.history(standing, world) {
                Some(records) if records.is_empty() => drop(self.owed.pop_front()),
                records => return records.unwrap_or_default(),
            }
        }
        self.standing.as_ref().and_then(|standing| subject.history(standing, world)).unwrap_or_default()
    }
}
