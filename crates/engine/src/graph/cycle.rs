//! Which nodes wait for each other, kept up to date change by change.
//!
//! A new cycle must pass through a new arc, and a broken one through a lost arc. So only two regions are looked at
//! again: the closed set around the starts of new arcs, and the known cycles that lost an arc.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::component::{closed_set, components};
use super::node::{Cycle, CyclePath, Node};
use super::store::{ArcFilter, GraphChange, GraphStore, NodeId};

/// How many arcs [`Graph::cycles`](super::Graph::cycles) follows in search of a shorter way round.
const SEARCH_BUDGET: usize = 20_000;

/// The components of the blocking reading that hold a cycle.
#[derive(Clone, Debug, Default)]
pub(super) struct Cyclic {
    members: BTreeMap<u64, Vec<NodeId>>,
    /// The component of each node by id; nodes beyond the end are in none.
    component: Vec<Option<u64>>,
    next: u64,
    /// Soft arcs that would close a circle with what is already there.
    broken: BTreeSet<(NodeId, NodeId)>,
}

impl Cyclic {
    /// Takes a change in; returns the nodes whose cycle changed.
    pub(super) fn update(&mut self, store: &mut GraphStore, change: GraphChange) -> Vec<Node> {
        let changed = self.recheck(store, &change.sources, &change.arcs);
        for id in change.released {
            store.release(id);
        }
        changed
    }

    fn recheck(
        &mut self,
        store: &GraphStore,
        sources: &BTreeSet<NodeId>,
        arcs: &BTreeSet<(NodeId, NodeId)>,
    ) -> Vec<Node> {
        let mut region = if sources.is_empty() {
            Vec::new()
        } else {
            closed_set(
                store.bound(),
                sources.iter().copied(),
                |id| store.before(id, ArcFilter::Blocking),
                |id| store.after(id, ArcFilter::Blocking),
            )
        };
        let inner = arcs.iter().filter(|(from, to)| self.component(*from) == self.component(*to));
        let known: BTreeSet<u64> =
            inner.map(|(from, _)| from).chain(&region).filter_map(|&id| self.component(id)).collect();
        let old: Vec<Vec<NodeId>> = known.iter().filter_map(|id| self.members.remove(id)).collect();
        region.extend(old.iter().flatten());
        for &id in old.iter().flatten() {
            self.component[id as usize] = None;
        }
        let mut inside = vec![false; if region.is_empty() { 0 } else { store.bound() }];
        for &id in &region {
            inside[id as usize] = true;
        }
        let mut fresh = Vec::new();
        let was_broken = std::mem::take(&mut self.broken);
        self.broken = was_broken
            .iter()
            .copied()
            .filter(|&(from, to)| {
                let inner =
                    inside.get(from as usize) == Some(&true) && inside.get(to as usize) == Some(&true);
                !inner && store.softness(from, to).is_some()
            })
            .collect();
        let found = components(inside.len(), region, |id, targets| {
            targets.extend(store.before(id, ArcFilter::Blocking).filter(|&to| inside[to as usize]));
        });
        let mut hard = Vec::new();
        for members in found {
            if members.len() > 1 && self.give_way(store, &members) {
                let among: BTreeSet<NodeId> = members.iter().copied().collect();
                hard.extend(components(store.bound(), members, |id, targets| {
                    let arcs = store.before(id, ArcFilter::Blocking);
                    targets
                        .extend(arcs.filter(|&to| among.contains(&to) && !self.broken.contains(&(id, to))));
                }));
            } else {
                hard.push(members);
            }
        }
        for mut members in hard {
            let first = members[0];
            let own = |to: NodeId| to == first && !self.broken.contains(&(first, first));
            if members.len() > 1 || store.before(first, ArcFilter::Blocking).any(own) {
                members.sort_unstable();
                fresh.push(members.clone());
                self.component.resize(store.bound(), None);
                for &id in &members {
                    self.component[id as usize] = Some(self.next);
                }
                self.members.insert(self.next, members);
                self.next += 1;
            }
        }
        // A component that came out as it went in has changed only if one of its own arcs did.
        let inner = arcs.iter().filter(|(from, to)| self.component(*from) == self.component(*to));
        let touched: BTreeSet<u64> = inner.filter_map(|&(from, _)| self.component(from)).collect();
        let (old, fresh) = (BTreeSet::from_iter(old), BTreeSet::from_iter(fresh));
        let changed = old
            .union(&fresh)
            .filter(|&members| {
                let kept = old.contains(members) && fresh.contains(members);
                !kept || self.component(members[0]).is_some_and(|id| touched.contains(&id))
            })
            .flatten();
        let yielding = self.broken.difference(&was_broken).map(|(from, _)| from);
        let mut nodes: Vec<Node> = changed.chain(yielding).map(|&id| store.node(id).clone()).collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }

    /// Breaks the soft arcs among nodes that all wait for each other: hard arcs are there in any case, soft ones are added
    /// one by one, those of the oldest first, each unless it would close a circle. Whether any was broken.
    fn give_way(&mut self, store: &GraphStore, members: &[NodeId]) -> bool {
        let among: BTreeSet<NodeId> = members.iter().copied().collect();
        let mut arcs: BTreeMap<NodeId, BTreeSet<NodeId>> = BTreeMap::new();
        let mut soft = Vec::new();
        for &from in &among {
            for to in store.before(from, ArcFilter::Blocking).filter(|to| among.contains(to)) {
                match store.softness(from, to) {
                    Some(age) => soft.push((age, store.node(from), store.node(to), from, to)),
                    None => {
                        arcs.entry(from).or_default().insert(to);
                    }
                }
            }
        }
        soft.sort_unstable();
        soft.dedup();
        let mut broke = false;
        for (_, _, _, from, to) in soft {
            if reaches(&arcs, to, from) {
                broke |= self.broken.insert((from, to));
            } else {
                arcs.entry(from).or_default().insert(to);
            }
        }
        broke
    }

    /// What the parts of an owner wait for that gives way.
    pub(super) fn broken_of(&self, ids: &[NodeId]) -> impl Iterator<Item = NodeId> {
        self.broken.iter().filter(|(from, _)| ids.contains(from)).map(|(_, to)| *to)
    }

    /// Whether nothing is in a cycle.
    pub(super) fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Which component a node is in, if it is in a cycle.
    pub(super) fn component(&self, id: NodeId) -> Option<u64> {
        self.component.get(id as usize).copied().flatten()
    }

    /// Every cyclic component with a short way round it.
    pub(super) fn cycles(&self, store: &GraphStore) -> Vec<Cycle> {
        let mut cycles: Vec<Cycle> = self
            .members
            .values()
            .map(|ids| {
                let mut members = ids.clone();
                store.sort(&mut members);
                let mut budget = SEARCH_BUDGET;
                let mut best: Option<Vec<NodeId>> = None;
                for &member in &members {
                    let longest = best.as_ref().map_or(usize::MAX, |path| path.len() - 1);
                    if let Some(shorter) = self.shortest(store, member, longest, &mut budget) {
                        best = Some(shorter);
                    }
                    if budget == 0 {
                        break;
                    }
                }
                Cycle {
                    path: spelled(store, &best.unwrap_or_default()),
                    members: members.iter().map(|&id| store.node(id).clone()).collect(),
                }
            })
            .collect();
        cycles.sort_unstable_by(|a, b| a.members.cmp(&b.members));
        cycles
    }

    /// The shortest cycle through one node.
    pub(super) fn cycle_of(&self, store: &GraphStore, id: NodeId) -> Option<CyclePath> {
        self.component(id)?;
        let path = self.shortest(store, id, usize::MAX, &mut usize::MAX.clone())?;
        Some(spelled(store, &path))
    }

    /// The shortest way from `start` back to itself of at most `longest` nodes, by breadth, neighbours in order. The budget bounds the
    /// search except the first one, which always finds a way.
    fn shortest(
        &self,
        store: &GraphStore,
        start: NodeId,
        longest: usize,
        budget: &mut usize,
    ) -> Option<Vec<NodeId>> {
        let component = self.component(start)?;
        let mut parents: BTreeMap<NodeId, NodeId> = BTreeMap::new();
        let mut queue = VecDeque::from([(start, 1)]);
        while let Some((node, length)) = queue.pop_front() {
            if length > longest || (*budget == 0 && longest < usize::MAX) {
                return None;
            }
            let before = store.before_sorted(node, ArcFilter::Blocking);
            *budget = budget.saturating_sub(before.len());
            for next in before {
                if self.broken.contains(&(node, next)) {
                    continue;
                }
                if next == start {
                    let mut path = vec![node];
                    while let Some(&parent) = path.last().and_then(|last| parents.get(last)) {
                        path.push(parent);
                    }
                    path.reverse();
                    return Some(path);
                }
                if self.component(next) == Some(component) && !parents.contains_key(&next) {
                    parents.insert(next, node);
                    queue.push_back((next, length + 1));
                }
            }
        }
        None
    }
}

/// Whether arcs lead from one node to another.
fn reaches(arcs: &BTreeMap<NodeId, BTreeSet<NodeId>>, from: NodeId, to: NodeId) -> bool {
    let mut seen = BTreeSet::from([from]);
    let mut open = vec![from];
    while let Some(node) = open.pop() {
        if node == to {
            return true;
        }
        open.extend(arcs.get(&node).into_iter().flatten().copied().filter(|next| seen.insert(*next)));
    }
    false
}

/// A cycle as nodes, turned so that the smallest comes first.
fn spelled(store: &GraphStore, ids: &[NodeId]) -> CyclePath {
    let mut nodes: Vec<Node> = ids.iter().map(|&id| store.node(id).clone()).collect();
    if let Some(first) = (0..nodes.len()).min_by_key(|&at| &nodes[at]) {
        nodes.rotate_left(first);
    }
    CyclePath(nodes)
}
