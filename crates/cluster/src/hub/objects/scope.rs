//! Who reads what of which name in one watch. The watch's task looks here while it works, without the hub's lock; the
//! hub changes it under its lock only.

use crate::watch::{
    WatchSelect,
    interest::{Interest, reads_metadata},
};
use linchpin_engine::contract::Want;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// All interest in one watch.
#[derive(Debug)]
pub(in crate::hub) struct Scope {
    by_label: bool,
    asked: Mutex<Asked>,
}

#[derive(Debug, Default)]
struct Asked {
    /// The highest revision of any interest so far, also of those that have ended.
    revision: u64,
    /// Whether more than metadata was ever read.
    more_than_metadata: bool,
    /// Who reads, by name; under the empty name for a selector.
    names: BTreeMap<Box<str>, Arc<Interest>>,
}

impl Scope {
    pub(in crate::hub) fn new(select: &WatchSelect) -> Self {
        Self { by_label: matches!(select, WatchSelect::Labels(_)), asked: Mutex::default() }
    }

    fn asked(&self) -> MutexGuard<'_, Asked> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a reader of `name` (empty for a selector); the revision of the interest that covers it.
    pub(in crate::hub) fn add(&self, name: &str, want: &Want) -> u64 {
        let asked = &mut *self.asked();
        asked.more_than_metadata |= !reads_metadata(want);
        let interest = asked.names.entry(name.into()).or_default();
        if interest.wants.contains(want) {
            return interest.revision;
        }
        let grows = interest.wants.is_empty() || interest.grows_with(want);
        let interest = Arc::make_mut(interest);
        interest.wants.insert(want.clone());
        if grows {
            asked.revision += 1;
            interest.revision = asked.revision;
        }
        interest.revision
    }

    /// Takes a reader away; whether nobody reads `name` any more.
    pub(super) fn remove(&self, name: &str, want: &Want) -> bool {
        let asked = &mut *self.asked();
        let Some(interest) = asked.names.get_mut(name) else { return true };
        Arc::make_mut(interest).wants.remove(want);
        let ended = interest.wants.is_empty();
        if ended {
            asked.names.remove(name);
        }
        ended
    }

    pub(super) fn is_empty(&self) -> bool {
        self.asked().names.is_empty()
    }

    /// Whether nothing but metadata is read of any object.
    pub(super) fn is_metadata(&self) -> bool {
        !self.asked().more_than_metadata
    }

    /// What is read of an object of this name; none if it is of no interest.
    pub(super) fn interest(&self, name: &str) -> Option<Arc<Interest>> {
        let key = if self.by_label { "" } else { name };
        self.asked().names.get(key).cloned()
    }

    /// The revision of the interest in a name; none if it is of no interest.
    pub(super) fn revision(&self, name: &str) -> Option<u64> {
        self.interest(name).map(|interest| interest.revision)
    }

    /// Who reads an object of this name.
    pub(super) fn readers(&self, name: &str) -> BTreeSet<Want> {
        self.interest(name).map(|interest| interest.wants.iter().cloned().collect()).unwrap_or_default()
    }

    /// All who read.
    pub(super) fn everybody(&self) -> BTreeSet<Want> {
        self.asked().names.values().flat_map(|interest| interest.wants.iter().cloned()).collect()
    }

    /// The names that are read, each with the revision of the interest in it, as far as `choose` says so.
    pub(super) fn names(&self, choose: impl Fn(&str, u64) -> bool) -> Vec<Box<str>> {
        let asked = self.asked();
        let chosen = asked.names.iter().filter(|(name, interest)| choose(name, interest.revision));
        chosen.map(|(name, _)| name.clone()).collect()
    }
}
