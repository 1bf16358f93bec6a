//! What is to be written besides effects, in the order in which it may be written. Pure: the time is given.
//!
//! Each thing has two moments: from when on it may be written while nothing else happens, and from when on it is
//! written although effects are under way. What effects themselves wait for yields to nobody and has a line of its own.
//! In every line namespaces take turns, so that one whose statuses change all the time delays those of another by one
//! write at most. Within a namespace what is awaited by other objects goes first, and then the earliest: a thousand
//! statuses that only people read must not come between two objects of which one waits for the other. Looking for what
//! is next costs the same however much is waiting.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Bound,
    sync::Arc,
    time::Instant,
};

use super::pace::AWAITED_IN_A_ROW;

/// When something may be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Due {
    /// From when on, while no effects are under way.
    pub(crate) quiet: Instant,
    /// From when on, whatever happens.
    pub(crate) busy: Instant,
    /// Whether effects, or the end of the object, wait for it.
    pub(crate) waited_for: bool,
    /// Whether other objects may wait for it: it goes before what only people read.
    pub(crate) awaited: bool,
}

/// Namespaces whose turn it is not: they have as much under way as they may. Never many.
pub(crate) type Full = Vec<Arc<str>>;

/// Keys of what is to be written.
#[derive(Debug)]
pub(crate) struct Backlog<K: Ord + Copy> {
    places: BTreeMap<K, (Arc<str>, Due)>,
    waited_for: Line<K>,
    quiet: Line<K>,
    busy: Line<K>,
}

/// Keys of one namespace by time.
#[derive(Debug)]
struct Share<K> {
    awaited: BTreeSet<(Instant, K)>,
    others: BTreeSet<(Instant, K)>,
    /// How many awaited ones were taken since one of the others was.
    in_a_row: u32,
}

impl<K: Ord + Copy> Share<K> {
    fn side(&mut self, awaited: bool) -> &mut BTreeSet<(Instant, K)> {
        if awaited { &mut self.awaited } else { &mut self.others }
    }

    /// The earliest time.
    fn first(&self) -> Option<Instant> {
        [&self.awaited, &self.others].into_iter().filter_map(|side| Some(side.first()?.0)).min()
    }

    /// The next one, of those whose time has come, and whether it is awaited.
    fn next(&self, now: Instant) -> Option<(K, bool)> {
        let due =
            |side: &BTreeSet<(Instant, K)>| side.first().filter(|(at, _)| *at <= now).map(|(_, key)| *key);
        let awaited = due(&self.awaited).map(|key| (key, true));
        let other = due(&self.others).map(|key| (key, false));
        if self.in_a_row < AWAITED_IN_A_ROW { awaited.or(other) } else { other.or(awaited) }
    }
}

/// Keys by time, for every namespace.
#[derive(Debug)]
struct Line<K> {
    all: BTreeSet<(Instant, K)>,
    namespaces: BTreeMap<Arc<str>, Share<K>>,
    /// Whose turn it was last.
    last: Option<Arc<str>>,
}

impl<K> Default for Line<K> {
    fn default() -> Self {
        Self { all: BTreeSet::new(), namespaces: BTreeMap::new(), last: None }
    }
}

impl<K: Ord + Copy> Line<K> {
    fn insert(&mut self, namespace: &Arc<str>, at: Instant, awaited: bool, key: K) {
        self.all.insert((at, key));
        let none = || Share { awaited: BTreeSet::new(), others: BTreeSet::new(), in_a_row: 0 };
        self.namespaces.entry(Arc::clone(namespace)).or_insert_with(none).side(awaited).insert((at, key));
    }

    fn remove(&mut self, namespace: &Arc<str>, at: Instant, awaited: bool, key: K) {
        self.all.remove(&(at, key));
        if let Some(share) = self.namespaces.get_mut(namespace) {
            share.side(awaited).remove(&(at, key));
            if share.first().is_none() {
                self.namespaces.remove(namespace);
            }
        }
    }

    /// The first of the namespace whose turn it is, of those whose time has come.
    fn next(&mut self, now: Instant, full: &Full) -> Option<K> {
        if self.first(full)? > now {
            return None;
        }
        let after = self.last.clone().map_or(Bound::Unbounded, Bound::Excluded);
        let upto = self.last.clone().map_or(Bound::Unbounded, Bound::Included);
        let later = self.namespaces.range((after, Bound::Unbounded));
        let mut turns = later.chain(self.namespaces.range((Bound::Unbounded, upto)));
        let (namespace, (key, awaited)) = turns.find_map(|(namespace, share)| {
            let next = share.next(now)?;
            (!full.contains(namespace)).then(|| (Arc::clone(namespace), next))
        })?;
        if let Some(share) = self.namespaces.get_mut(&namespace) {
            share.in_a_row = if awaited { share.in_a_row + 1 } else { 0 };
        }
        self.last = Some(namespace);
        Some(key)
    }

    /// The earliest time of those whose turn it may be.
    fn first(&self, full: &Full) -> Option<Instant> {
        if full.is_empty() {
            return self.all.first().map(|(at, _)| *at);
        }
        let others = self.namespaces.iter().filter(|(namespace, _)| !full.contains(namespace));
        others.filter_map(|(_, share)| share.first()).min()
    }
}

impl<K: Ord + Copy> Default for Backlog<K> {
    fn default() -> Self {
        Self {
            places: BTreeMap::new(),
            waited_for: Line::default(),
            quiet: Line::default(),
            busy: Line::default(),
        }
    }
}

impl<K: Ord + Copy> Backlog<K> {
    /// Puts a key of a namespace in its place, or moves it there.
    pub(crate) fn put(&mut self, namespace: &str, key: K, due: Due) {
        if self.places.get(&key).is_some_and(|(known, place)| &**known == namespace && *place == due) {
            return;
        }
        self.remove(key);
        let namespace: Arc<str> = namespace.into();
        if due.waited_for {
            self.waited_for.insert(&namespace, due.quiet, due.awaited, key);
        } else {
            self.quiet.insert(&namespace, due.quiet, due.awaited, key);
            self.busy.insert(&namespace, due.busy, due.awaited, key);
        }
        self.places.insert(key, (namespace, due));
    }

    /// Takes a key out.
    pub(crate) fn remove(&mut self, key: K) {
        if let Some((namespace, due)) = self.places.remove(&key) {
            self.waited_for.remove(&namespace, due.quiet, due.awaited, key);
            self.quiet.remove(&namespace, due.quiet, due.awaited, key);
            self.busy.remove(&namespace, due.busy, due.awaited, key);
        }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    /// Takes out the next one that effects wait for, if its time has come.
    pub(crate) fn pop_waited_for(&mut self, now: Instant) -> Option<K> {
        let key = self.waited_for.next(now, &Full::new())?;
        self.remove(key);
        Some(key)
    }

    /// Takes out the next of the others, if its time has come, and not of these namespaces.
    pub(crate) fn pop(&mut self, now: Instant, busy: bool, full: &Full) -> Option<K> {
        let line = if busy { &mut self.busy } else { &mut self.quiet };
        let key = line.next(now, full)?;
        self.remove(key);
        Some(key)
    }

    /// When the next time comes: of those that effects wait for, and of the others, but for these namespaces.
    pub(crate) fn next(&self, busy: bool, full: &Full) -> [Option<Instant>; 2] {
        let line = if busy { &self.busy } else { &self.quiet };
        [self.waited_for.first(&Full::new()), line.first(full)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn due(from: Instant, quiet: u64, busy: u64) -> Due {
        let at = |milliseconds| from + Duration::from_millis(milliseconds);
        Due { quiet: at(quiet), busy: at(busy), waited_for: false, awaited: false }
    }

    #[test]
    fn nothing_is_taken_before_its_time() {
        let begun = Instant::now();
        let at = |milliseconds| begun + Duration::from_millis(milliseconds);
        let mut backlog = Backlog::default();
        backlog.put("a", 1, due(begun, 5, 1000));
        backlog.put("a", 2, due(begun, 0, 1500));
        assert_eq!(backlog.next(false, &Full::new()), [None, Some(begun)]);
        assert_eq!(backlog.next(true, &Full::new()), [None, Some(at(1000))]);
        assert_eq!(backlog.pop(at(999), true, &Full::new()), None);
        assert_eq!(backlog.pop(at(4), false, &Full::new()), Some(2));
        assert_eq!(backlog.pop(at(4), false, &Full::new()), None);
        assert_eq!(backlog.pop(at(1000), true, &Full::new()), Some(1));
        assert_eq!(backlog.next(false, &Full::new()), [None, None]);
    }

    #[test]
    fn a_key_has_one_place_and_the_last_one_counts() {
        let begun = Instant::now();
        let mut backlog = Backlog::default();
        backlog.put("a", 1, due(begun, 0, 0));
        backlog.put("a", 1, due(begun, 7, 9));
        assert_eq!(backlog.pop(begun, false, &Full::new()), None);
        assert_eq!(backlog.pop(begun, true, &Full::new()), None);
        backlog.put("a", 1, Due { waited_for: true, ..due(begun, 0, 0) });
        assert_eq!(
            backlog.pop(begun + Duration::from_secs(1), true, &Full::new()),
            None,
            "it is in the other line"
        );
        assert_eq!(backlog.pop_waited_for(begun), Some(1));
        assert_eq!(backlog.pop_waited_for(begun), None);
        backlog.put("a", 2, due(begun, 0, 0));
        backlog.remove(2);
        assert_eq!(backlog.pop(begun, false, &Full::new()), None);
        assert!(backlog.quiet.namespaces.is_empty() && backlog.busy.namespaces.is_empty());
    }

    #[test]
    fn a_thousand_statuses_of_one_namespace_delay_anothers_by_one() {
        let begun = Instant::now();
        for waited_for in [false, true] {
            let mut backlog = Backlog::default();
            for number in 0..1000 {
                backlog.put("crowd", number, Due { waited_for, ..due(begun, number, number) });
            }
            backlog.put("alone", 5000, Due { waited_for, ..due(begun, 1500, 1500) });
            backlog.put("zeta", 6000, Due { waited_for, ..due(begun, 1500, 1500) });
            let now = begun + Duration::from_secs(2);
            let mut next = || {
                if waited_for { backlog.pop_waited_for(now) } else { backlog.pop(now, true, &Full::new()) }
            };
            let first: Vec<u64> = std::iter::from_fn(&mut next).take(5).collect();
            assert_eq!(first, [5000, 0, 6000, 1, 2]);
        }
    }

    #[test]
    fn what_others_wait_for_goes_before_a_thousand_statuses_of_its_namespace_and_never_keeps_them_all_waiting()
     {
        let begun = Instant::now();
        let mut backlog = Backlog::default();
        for number in 0..1000 {
            backlog.put("crowd", number, due(begun, number, number));
        }
        let now = begun + Duration::from_secs(2);
        backlog.put("crowd", 5000, Due { awaited: true, ..due(begun, 1900, 2100) });
        assert_eq!(backlog.pop(now, true, &Full::new()), Some(0), "its time has not come beside effects");
        assert_eq!(backlog.pop(now, false, &Full::new()), Some(5000));
        assert_eq!(backlog.pop(now, false, &Full::new()), Some(1));
        for number in 6000..6020 {
            backlog.put("crowd", number, Due { awaited: true, ..due(begun, 1900, 1900) });
        }
        let taken: Vec<u64> = std::iter::from_fn(|| backlog.pop(now, false, &Full::new())).take(20).collect();
        let others = taken.iter().filter(|number| **number < 1000).count();
        assert_eq!((taken[0], others), (6000, 2), "{taken:?}");
    }

    #[test]
    fn a_namespace_with_all_that_it_may_have_under_way_keeps_nobody_else_waiting_and_is_not_woken_for() {
        let begun = Instant::now();
        let mut backlog = Backlog::default();
        backlog.put("crowd", 1, due(begun, 0, 0));
        backlog.put("alone", 2, due(begun, 7, 7));
        let full: Full = vec!["crowd".into()];
        let later = begun + Duration::from_millis(7);
        assert_eq!(backlog.next(false, &full), [None, Some(later)]);
        assert_eq!(backlog.pop(begun, false, &full), None);
        assert_eq!(backlog.pop(later, false, &full), Some(2));
        assert_eq!(backlog.next(true, &full), [None, None]);
        assert_eq!(backlog.pop(later, true, &Full::new()), Some(1));
    }
}
