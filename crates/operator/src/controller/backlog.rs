//! What is to be written besides effects, in the order in which it may be written. Pure: the time is given.
//!
//! Each thing has two moments: from when on it may be written while nothing else happens, and from when on it is
//! written although effects are under way. What effects themselves wait for yields to nobody and has a line of its own.
//! Looking for what is next costs the same however much is waiting.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Instant,
};

/// When something may be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Due {
    /// From when on, while no effects are under way.
    pub(crate) quiet: Instant,
    /// From when on, whatever happens.
    pub(crate) busy: Instant,
    /// Whether effects, or the end of the object, wait for it.
    pub(crate) waited_for: bool,
}

/// Keys of what is to be written.
#[derive(Debug)]
pub(crate) struct Backlog<K: Ord + Copy> {
    places: BTreeMap<K, Due>,
    waited_for: BTreeSet<(Instant, K)>,
    quiet: BTreeSet<(Instant, K)>,
    busy: BTreeSet<(Instant, K)>,
}

impl<K: Ord + Copy> Default for Backlog<K> {
    fn default() -> Self {
        Self {
            places: BTreeMap::new(),
            waited_for: BTreeSet::new(),
            quiet: BTreeSet::new(),
            busy: BTreeSet::new(),
        }
    }
}

impl<K: Ord + Copy> Backlog<K> {
    /// Puts a key in its place, or moves it there.
    pub(crate) fn put(&mut self, key: K, due: Due) {
        if self.places.get(&key) == Some(&due) {
            return;
        }
        self.remove(key);
        self.places.insert(key, due);
        if due.waited_for {
            self.waited_for.insert((due.quiet, key));
        } else {
            self.quiet.insert((due.quiet, key));
            self.busy.insert((due.busy, key));
        }
    }

    /// Takes a key out.
    pub(crate) fn remove(&mut self, key: K) {
        if let Some(due) = self.places.remove(&key) {
            self.waited_for.remove(&(due.quiet, key));
            self.quiet.remove(&(due.quiet, key));
            self.busy.remove(&(due.busy, key));
        }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    /// Takes out the next one that effects wait for, if its time has come.
    pub(crate) fn pop_waited_for(&mut self, now: Instant) -> Option<K> {
        let (at, key) = self.waited_for.first().copied()?;
        self.take(at, key, now)
    }

    /// Takes out the next of the others, if its time has come.
    pub(crate) fn pop(&mut self, now: Instant, busy: bool) -> Option<K> {
        let (at, key) = self.line(busy).first().copied()?;
        self.take(at, key, now)
    }

    fn take(&mut self, at: Instant, key: K, now: Instant) -> Option<K> {
        if at > now {
            return None;
        }
        self.remove(key);
        Some(key)
    }

    /// When the next time comes: of those that effects wait for, and of the others.
    pub(crate) fn next(&self, busy: bool) -> [Option<Instant>; 2] {
        [&self.waited_for, self.line(busy)].map(|line| line.first().map(|(at, _)| *at))
    }

    fn line(&self, busy: bool) -> &BTreeSet<(Instant, K)> {
        if busy { &self.busy } else { &self.quiet }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn due(from: Instant, quiet: u64, busy: u64) -> Due {
        let at = |milliseconds| from + Duration::from_millis(milliseconds);
        Due { quiet: at(quiet), busy: at(busy), waited_for: false }
    }

    #[test]
    fn nothing_is_taken_before_its_time() {
        let begun = Instant::now();
        let at = |milliseconds| begun + Duration::from_millis(milliseconds);
        let mut backlog = Backlog::default();
        backlog.put(1, due(begun, 5, 1000));
        backlog.put(2, due(begun, 0, 1500));
        assert_eq!(backlog.next(false), [None, Some(begun)]);
        assert_eq!(backlog.next(true), [None, Some(at(1000))]);
        assert_eq!(backlog.pop(at(999), true), None);
        assert_eq!(backlog.pop(at(4), false), Some(2));
        assert_eq!(backlog.pop(at(4), false), None);
        assert_eq!(backlog.pop(at(1000), true), Some(1));
        assert_eq!(backlog.next(false), [None, None]);
    }

    #[test]
    fn a_key_has_one_place_and_the_last_one_counts() {
        let begun = Instant::now();
        let mut backlog = Backlog::default();
        backlog.put(1, due(begun, 0, 0));
        backlog.put(1, due(begun, 7, 9));
        assert_eq!(backlog.pop(begun, false), None);
        assert_eq!(backlog.pop(begun, true), None);
        backlog.put(1, Due { waited_for: true, ..due(begun, 0, 0) });
        assert_eq!(backlog.pop(begun + Duration::from_secs(1), true), None, "it stands in the other line");
        assert_eq!(backlog.pop_waited_for(begun), Some(1));
        assert_eq!(backlog.pop_waited_for(begun), None);
        backlog.put(2, due(begun, 0, 0));
        backlog.remove(2);
        assert_eq!(backlog.pop(begun, false), None);
    }
}
