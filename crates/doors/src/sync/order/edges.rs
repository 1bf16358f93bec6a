//! Edges of a growing graph that know at once what comes before what: a source has a thousand objects and, if its author
//! means it badly, hundreds of thousands of edges. Made and asked by the order of a Sync's objects alone.

use std::collections::BTreeMap;

use linchpin_engine::sequence::PositionSet;

use super::AwaitedState;

/// Which nodes come before which, and all that follows from that.
#[derive(Clone)]
pub(super) struct Edges {
    /// For each node, what comes before it.
    pub before: Vec<BTreeMap<usize, AwaitedState>>,
    /// For each node, all that comes before it over others too.
    above: Vec<PositionSet>,
    /// For each node, all that comes after it.
    below: Vec<PositionSet>,
}

impl Edges {
    pub(super) fn new(count: usize) -> Self {
        let none = vec![PositionSet::default(); count];
        Self { before: vec![BTreeMap::new(); count], above: none.clone(), below: none }
    }

    /// The same edges, with so many more nodes.
    pub(super) fn with_more(&self, count: usize) -> Self {
        let mut more = Self::new(self.before.len() + count);
        for (later, before) in self.before.iter().enumerate() {
            for (earlier, awaits) in before {
                more.add(*earlier, later, *awaits);
            }
        }
        more
    }

    pub(super) fn add(&mut self, earlier: usize, later: usize, awaits: AwaitedState) {
        let known = self.before[later].entry(earlier).or_insert(awaits);
        *known = (*known).min(awaits);
        if self.comes_before(earlier, later) {
            return;
        }
        let (mut above, mut below) = (self.above[earlier].clone(), self.below[later].clone());
        above.insert(earlier);
        below.insert(later);
        for node in below.members() {
            self.above[node].merge(&above);
        }
        for node in above.members() {
            self.below[node].merge(&below);
        }
    }

    /// Whether one comes before another, over whatever lies between.
    pub(super) fn comes_before(&self, earlier: usize, later: usize) -> bool {
        self.above[later].contains(earlier)
    }

    /// Adds an edge unless it would close a circle.
    pub(super) fn add_if_open(&mut self, earlier: usize, later: usize, awaits: AwaitedState) {
        if earlier != later && !self.comes_before(later, earlier) {
            self.add(earlier, later, awaits);
        }
    }
}
