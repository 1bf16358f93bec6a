//! The one queue: fair between namespaces, by priority within one, each key once.
//!
//! Namespaces take turns, so a thousand objects of one tenant do not keep the only object of another waiting. Within
//! a namespace a lower priority goes first, then who came first. A key that is queued already is not queued twice.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A fair queue of things that belong to namespaces.
#[derive(Debug)]
pub(crate) struct FairQueue<T> {
    lanes: BTreeMap<String, BTreeMap<(i32, u64), T>>,
    turns: VecDeque<String>,
    arrivals: u64,
    length: usize,
}

impl<T> Default for FairQueue<T> {
    fn default() -> Self {
        Self { lanes: BTreeMap::new(), turns: VecDeque::new(), arrivals: 0, length: 0 }
    }
}

impl<T> FairQueue<T> {
    /// Adds something at the end of its namespace's lane, behind what has the same priority.
    pub(crate) fn push(&mut self, namespace: &str, priority: i32, thing: T) {
        if !self.lanes.contains_key(namespace) {
            self.turns.push_back(namespace.to_owned());
        }
        self.arrivals += 1;
        self.length += 1;
        self.lanes.entry(namespace.to_owned()).or_default().insert((priority, self.arrivals), thing);
    }

    /// Takes what is next: the first of the namespace whose turn it is.
    pub(crate) fn pop(&mut self) -> Option<T> {
        let namespace = self.turns.pop_front()?;
        let lane = self.lanes.get_mut(&namespace)?;
        let (_, thing) = lane.pop_first()?;
        if lane.is_empty() {
            self.lanes.remove(&namespace);
        } else {
            self.turns.push_back(namespace);
        }
        self.length -= 1;
        Some(thing)
    }

    /// How much is waiting.
    pub(crate) fn len(&self) -> usize {
        self.length
    }
}

/// A fair queue of keys, each at most once.
#[derive(Debug)]
pub(crate) struct KeyQueue<K: Ord + Clone> {
    queue: FairQueue<K>,
    queued: BTreeSet<K>,
}

impl<K: Ord + Clone> Default for KeyQueue<K> {
    fn default() -> Self {
        Self { queue: FairQueue::default(), queued: BTreeSet::new() }
    }
}

impl<K: Ord + Clone> KeyQueue<K> {
    /// Adds a key, unless it is queued.
    pub(crate) fn push(&mut self, namespace: &str, priority: i32, key: K) {
        if self.queued.insert(key.clone()) {
            self.queue.push(namespace, priority, key);
        }
    }

    /// Takes the next key.
    pub(crate) fn pop(&mut self) -> Option<K> {
        let key = self.queue.pop()?;
        self.queued.remove(&key);
        Some(key)
    }

    /// How many keys are waiting.
    pub(crate) fn len(&self) -> usize {
        self.queue.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_tenants_thousand_objects_do_not_keep_anothers_only_one_waiting() {
        let mut queue = KeyQueue::default();
        for number in 0..1000 {
            queue.push("crowd", 0, number);
        }
        queue.push("alone", 0, 5000);
        assert_eq!(queue.pop(), Some(0));
        assert_eq!(queue.pop(), Some(5000));
        assert_eq!(queue.pop(), Some(1));
    }

    #[test]
    fn lower_priorities_go_first_within_a_namespace_only() {
        let mut queue = KeyQueue::default();
        queue.push("a", 9, "late");
        queue.push("a", 1, "early");
        queue.push("b", 5, "other");
        let order: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
        assert_eq!(order, ["early", "other", "late"]);
    }

    #[test]
    fn a_key_is_queued_once_however_often_it_is_asked_for() {
        let mut queue = KeyQueue::default();
        queue.push("a", 0, 1);
        queue.push("a", 0, 1);
        assert_eq!((queue.pop(), queue.pop(), queue.len()), (Some(1), None, 0));
        queue.push("a", 0, 1);
        assert_eq!(queue.pop(), Some(1));
    }
}
