//! The wait-for graph over all objects of all doors.
//!
//! Each object of ours (an *owner*) contributes edges: what it waits for, and what it produces. From them the graph
//! answers who is in a cycle, in which order things can go, who waits for something, and what the root causes of a
//! wait are. [`explain`] turns those answers into sentences.
//!
//! Two readings of the same edges, both as arcs from what comes later to what must come first:
//! - *blocking*: unmet waits, and products not written yet (product → producer). Cycles and causes are about these;
//! - *order*: all waits and all products. Levels and impact are about these.
//!
//! What a node, or a batch of it, produces and it also waits for is one step after the other, not a cycle: that wait leads
//! to nobody else.
//!
//! The graph may hold cycles (people write them) and finds them when they appear: [`Graph::set`] looks only at what
//! the changed arcs can reach, or are reached from, whichever is less. It is a plain value: no clock, no I/O, no
//! recursion, and the same contributions give the same answers whatever the order they came in.

mod cause;
mod component;
mod cycle;
pub mod explain;
mod node;
mod order;
mod store;
#[cfg(test)]
mod tests;

pub use cause::{Causes, Chain, ChainEnd, ChainLink, Dependent, Hop};
pub use node::{Cycle, CyclePath, Edge, Node, Relation, Wait, WaitState, is_in_line};

use std::collections::BTreeSet;

use cycle::Cyclic;
use store::GraphStore;

/// All contributions of all owners, and the cycles among them.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    store: GraphStore,
    cyclic: Cyclic,
}

impl Graph {
    /// A graph of nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Replaces what `owner` contributes. Returns, sorted, the nodes that came into a cycle, left one, or
    /// are in one that changed.
    pub fn set(&mut self, owner: &Node, edges: impl AsRef<[Edge]>) -> Vec<Node> {
        match self.store.replace(owner, Some(edges.as_ref())) {
            Some(change) => self.cyclic.update(&mut self.store, change),
            None => Vec::new(),
        }
    }

    /// Forgets what `owner` contributes. Returns what [`Graph::set`] returns.
    pub fn remove(&mut self, owner: &Node) -> Vec<Node> {
        match self.store.replace(owner, None) {
            Some(change) => self.cyclic.update(&mut self.store, change),
            None => Vec::new(),
        }
    }

    /// Every node that some contribution names, sorted.
    pub fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.store.ids().map(|(node, _)| node)
    }

    /// Whether some contribution names this node.
    pub fn contains(&self, node: &Node) -> bool {
        self.store.id(node).is_some()
    }

    /// Every owner, sorted.
    pub fn owners(&self) -> Vec<&Node> {
        self.store.owners()
    }

    /// Every edge, sorted; an edge that two owners contribute is listed once.
    pub fn edges(&self) -> Vec<Edge> {
        let mut edges: Vec<Edge> = self.store.ids().flat_map(|(_, id)| self.store.edges_from(id)).collect();
        edges.sort_unstable();
        edges.dedup();
        edges
    }

    /// The edges that start at `node`, sorted.
    pub fn edges_from(&self, node: &Node) -> Vec<Edge> {
        let mut edges: Vec<Edge> =
            self.store.id(node).map(|id| self.store.edges_from(id).collect()).unwrap_or_default();
        edges.sort_unstable();
        edges.dedup();
        edges
    }

    /// Every cycle of blocking arcs, one for each set of nodes that wait for each other, smallest node first.
    ///
    /// The path is the shortest way round that a fixed amount of work finds: exact for sets of some dozen nodes,
    /// and always one of the shortest through the smallest member.
    pub fn cycles(&self) -> Vec<Cycle> {
        self.cyclic.cycles(&self.store)
    }

    /// The shortest cycle through `node`, or none when it is in no cycle.
    pub fn cycle_of(&self, node: &Node) -> Option<CyclePath> {
        self.cyclic.cycle_of(&self.store, self.store.id(node)?)
    }

    /// What an owner waits for that gives way, because it would close a circle: sorted.
    pub fn broken_of_owner(&self, owner: &Node) -> Vec<Node> {
        let parts = self.store.parts_of(owner);
        let mut broken: Vec<Node> =
            self.cyclic.broken_of(&parts).map(|id| self.store.node(id).clone()).collect();
        broken.sort_unstable();
        broken
    }

    /// Another number whenever something else is joined with something, whatever is said of it.
    pub fn shape(&self) -> u64 {
        self.store.shape
    }

    /// All that must come before a node, directly or through others, over waits and what makes them: sorted. What `passes`
    /// says no to is not gone through.
    pub fn behind(&self, node: &Node, passes: impl Fn(&Node) -> bool) -> Vec<Node> {
        let Some(start) = self.store.id(node) else { return Vec::new() };
        let mut seen = BTreeSet::from([start]);
        let mut open = vec![start];
        while let Some(id) = open.pop() {
            let parts = self.store.parts_of(&self.store.node(id).whole());
            let next: Vec<_> = self.store.before(id, store::ArcFilter::Order).chain(parts).collect();
            open.extend(next.into_iter().filter(|next| passes(self.store.node(*next)) && seen.insert(*next)));
        }
        seen.remove(&start);
        let mut nodes: Vec<Node> = seen.into_iter().map(|id| self.store.node(id).clone()).collect();
        nodes.sort_unstable();
        nodes
    }

    /// Who makes an object: sorted.
    pub fn makers(&self, node: &Node) -> Vec<Node> {
        let Some(id) = self.store.id(node) else { return Vec::new() };
        let mut makers: Vec<Node> = self.store.makers(id).map(|id| self.store.node(id).whole()).collect();
        makers.sort_unstable();
        makers.dedup();
        makers
    }

    /// How many owners wait for a node, and how many of them without having it.
    pub fn waiting_for(&self, node: &Node) -> (usize, usize) {
        let Some(id) = self.store.id(node) else { return (0, 0) };
        let waits: Vec<(Node, bool)> =
            self.store.waits_for(id).map(|(from, met)| (self.store.node(from).whole(), met)).collect();
        let all: BTreeSet<&Node> = waits.iter().map(|(from, _)| from).collect();
        let held: BTreeSet<&Node> = waits.iter().filter(|(_, met)| !met).map(|(from, _)| from).collect();
        (all.len(), held.len())
    }

    /// The shortest cycle through an owner, or else through the first part of it that is in one.
    pub fn cycle_of_owner(&self, owner: &Node) -> Option<CyclePath> {
        if self.cyclic.is_empty() {
            return None;
        }
        let parts = self.store.parts_of(owner);
        let found = parts.into_iter().find(|id| self.cyclic.component(*id).is_some())?;
        self.cyclic.cycle_of(&self.store, found)
    }
}
