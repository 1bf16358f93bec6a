//! Times at which objects are called: one for each, however often it is set. Pure.

use std::collections::{BTreeMap, BTreeSet};

/// When who is called.
#[derive(Debug)]
pub(crate) struct Timers<T, K> {
    at: BTreeMap<K, T>,
    order: BTreeSet<(T, K)>,
}

impl<T, K> Default for Timers<T, K> {
    fn default() -> Self {
        Self { at: BTreeMap::new(), order: BTreeSet::new() }
    }
}

impl<T: Ord + Copy, K: Ord + Clone> Timers<T, K> {
    /// Sets the time of a key, instead of the one it had; none takes it out.
    pub(crate) fn set(&mut self, key: K, at: Option<T>) {
        let old = match at {
            Some(at) => self.at.insert(key.clone(), at),
            None => self.at.remove(&key),
        };
        if let Some(old) = old {
            self.order.remove(&(old, key.clone()));
        }
        if let Some(at) = at {
            self.order.insert((at, key));
        }
    }

    /// Sets the time of a key, unless it has an earlier one.
    pub(crate) fn set_earlier(&mut self, key: K, at: T) {
        if self.at.get(&key).is_none_or(|known| at < *known) {
            self.set(key, Some(at));
        }
    }

    /// How many keys have a time.
    pub(crate) fn len(&self) -> usize {
        self.at.len()
    }

    /// The next time.
    pub(crate) fn next(&self) -> Option<T> {
        self.order.first().map(|(at, _)| *at)
    }

    /// Takes out a key whose time has come.
    pub(crate) fn pop(&mut self, now: T) -> Option<K> {
        self.next().filter(|at| *at <= now)?;
        self.pop_first().map(|(_, key)| key)
    }

    /// Takes out the key with the next time, whether that has come or not.
    pub(crate) fn pop_first(&mut self) -> Option<(T, K)> {
        let (at, key) = self.order.first().cloned()?;
        self.set(key.clone(), None);
        Some((at, key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_one_time_however_often_it_is_set() {
        let mut timers = Timers::default();
        for at in 0..10_000 {
            timers.set("a", Some(at));
        }
        assert_eq!((timers.len(), timers.order.len(), timers.next()), (1, 1, Some(9_999)));
        timers.set("a", None);
        assert_eq!((timers.len(), timers.next()), (0, None));
    }

    #[test]
    fn keys_are_called_once_in_the_order_of_time_and_not_before() {
        let mut timers = Timers::default();
        timers.set("late", Some(2));
        timers.set_earlier("early", 3);
        timers.set_earlier("early", 1);
        timers.set_earlier("early", 5);
        assert_eq!(timers.pop(0), None);
        assert_eq!(timers.pop(2), Some("early"));
        assert_eq!(timers.pop(2), Some("late"));
        assert_eq!(timers.pop(9), None);
    }
}
