//! Edges of a growing graph that know at once what comes before what: a source has a thousand objects and, if its author
//! means it badly, hundreds of thousands of edges. Made and asked by the order of a Sync's objects alone.

use std::collections::BTreeMap;

use super::AwaitedState;

/// A set of nodes.
#[derive(Clone)]
struct Nodes(Vec<u64>);

impl Nodes {
    fn none_of(count: usize) -> Self {
        Self(vec![0; count.div_ceil(64)])
    }

    fn has(&self, node: usize) -> bool {
        self.0[node / 64] >> (node % 64) & 1 == 1
    }

    fn with(mut self, node: usize) -> Self {
        self.0[node / 64] |= 1 << (node % 64);
        self
    }

    fn add_all(&mut self, others: &Self) {
        for (own, other) in self.0.iter_mut().zip(&others.0) {
            *own |= other;
        }
    }

    fn each(&self) -> impl Iterator<Item = usize> {
        let of_word = |(word, bits): (usize, &u64)| {
            let bits = *bits;
            (0..64).filter(move |bit| bits >> bit & 1 == 1).map(move |bit| word * 64 + bit)
        };
        self.0.iter().enumerate().filter(|(_, bits)| **bits != 0).flat_map(of_word)
    }
}

/// Which nodes come before which, and all that follows from that.
#[derive(Clone)]
pub(super) struct Edges {
    /// For each node, what comes before it.
    pub before: Vec<BTreeMap<usize, AwaitedState>>,
    /// For each node, all that comes before it over others too.
    above: Vec<Nodes>,
    /// For each node, all that comes after it.
    below: Vec<Nodes>,
}

impl Edges {
    pub(super) fn new(count: usize) -> Self {
        let none = vec![Nodes::none_of(count); count];
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
        let above = self.above[earlier].clone().with(earlier);
        let below = self.below[later].clone().with(later);
        for node in below.each() {
            self.above[node].add_all(&above);
        }
        for node in above.each() {
            self.below[node].add_all(&below);
        }
    }

    /// Whether one comes before another, over whatever lies between.
    pub(super) fn comes_before(&self, earlier: usize, later: usize) -> bool {
        self.above[later].has(earlier)
    }

    /// Adds an edge unless it would close a circle.
    pub(super) fn add_if_open(&mut self, earlier: usize, later: usize, awaits: AwaitedState) {
        if earlier != later && !self.comes_before(later, earlier) {
            self.add(earlier, later, awaits);
        }
    }
}
