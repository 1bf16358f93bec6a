//! Why something waits, and who waits for something.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use linchpin_words::limits;
use serde::{Deserialize, Serialize};

use super::Graph;
use super::node::{CyclePath, Node, Wait, WaitState, is_in_line};
use super::store::{ArcFilter, NodeId};

/// Links kept at each end of a chain; those between are counted.
const CHAIN_ENDS: usize = limits::CHAIN / 2;
/// Chains returned for one question; further ones are counted.
const MAX_CHAINS: usize = 16;

/// How a chain gets from one node to the next.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Hop {
    /// The one before waits for this one.
    WaitsFor(Wait),
    /// The one before is to be made by this one.
    MadeBy,
}

/// One more node of a chain.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChainLink {
    /// How the node before leads to it.
    pub hop: Hop,
    /// The node.
    pub node: Node,
}

/// Where a chain ends.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ChainEnd {
    /// At something that waits for nothing: the root cause.
    Leaf,
    /// In a cycle, spelled out unless some of it may not be named.
    Cycle(Option<CyclePath>),
    /// The last node is known by name only: what is beyond it may not be looked at.
    Opaque,
    /// The last node, or what is beyond it, may not be read by the user.
    Unread,
    /// The last node waits for something that may not be named.
    NotVisible,
}

/// A way from a node that waits towards the reason.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Chain {
    /// What waits.
    pub start: Node,
    /// What it waits for, and what that waits for, and so on.
    pub links: Vec<ChainLink>,
    /// How many links are left out in the middle of a long chain.
    #[serde(default)]
    pub skipped: usize,
    /// Where it ends.
    pub end: ChainEnd,
}

impl Chain {
    /// The links before the gap, and those after it (none when there is no gap).
    pub fn halves(&self) -> (&[ChainLink], &[ChainLink]) {
        if self.skipped == 0 {
            (&self.links, &[])
        } else {
            self.links.split_at(CHAIN_ENDS.min(self.links.len()))
        }
    }
}

/// The answer to "why does it wait": the worst cause first, with the shortest way to each.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Causes {
    /// One chain for each cause: cycles, then what failed, what cannot be seen, what is missing, what is on its way.
    pub chains: Vec<Chain>,
    /// How many causes were left out.
    #[serde(default)]
    pub more: usize,
}

/// Something that needs a node, directly or through others.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Dependent {
    /// How many steps away; 1 is direct.
    pub distance: usize,
    /// The dependent.
    pub node: Node,
    /// Whether it is held up now; otherwise it only would be if the node were not as required.
    pub held: bool,
}

impl Graph {
    /// What `node` itself waits for and does not have, sorted.
    pub fn blockers(&self, node: &Node) -> Vec<(Node, Wait)> {
        let Some(id) = self.store.id(node) else {
            return Vec::new();
        };
        let mut blockers: Vec<(Node, Wait)> = self
            .store
            .unmet_waits(id)
            .map(|(to, wait)| (self.store.node(to).clone(), wait.clone()))
            .collect();
        blockers.sort_unstable();
        blockers.dedup();
        blockers
    }

    /// Who needs `node`, directly or through others, nearest first: "who waits for this?"
    pub fn impact(&self, node: &Node) -> Vec<Dependent> {
        let Some(id) = self.store.id(node) else {
            return Vec::new();
        };
        let held = self.distances(id, ArcFilter::Blocking);
        let mut dependents: Vec<Dependent> = self
            .distances(id, ArcFilter::Every)
            .into_iter()
            .map(|(other, distance)| Dependent {
                distance,
                node: self.store.node(other).clone(),
                held: held.contains_key(&other),
            })
            .collect();
        dependents.sort_unstable();
        dependents
    }

    /// How far everything that comes after `start` is away from it.
    fn distances(&self, start: NodeId, reading: ArcFilter) -> BTreeMap<NodeId, usize> {
        let mut distances = BTreeMap::from([(start, 0)]);
        let mut queue = VecDeque::from([(start, 0)]);
        while let Some((id, distance)) = queue.pop_front() {
            for next in self.store.after(id, reading) {
                distances.entry(next).or_insert_with(|| {
                    queue.push_back((next, distance + 1));
                    distance + 1
                });
            }
        }
        distances.remove(&start);
        distances
    }

    /// Follows what `node` waits for to the causes, each by a shortest chain.
    ///
    /// A chain goes on only into nodes that are `visible`. What `node` itself waits for it names in its own spec, so
    /// those names are always shown; nothing beyond them is unless it is visible.
    pub fn root_causes(&self, node: &Node, visible: &dyn Fn(&Node) -> bool) -> Causes {
        let Some(start) = self.store.id(node) else {
            return Causes::default();
        };
        let mut search = Search::new(self, start, visible);
        search.run();
        let Search { parents, mut ends, .. } = search;
        ends.sort_by_cached_key(|(id, end)| self.rank(&parents, *id, end));
        let more = ends.len().saturating_sub(MAX_CHAINS);
        ends.truncate(MAX_CHAINS);
        let chains = ends
            .into_iter()
            .map(|(id, end)| {
                let mut path = vec![id];
                while let Some(&(parent, _)) = path.last().and_then(|last| parents.get(last)) {
                    path.push(parent);
                }
                path.reverse();
                self.chain(&path, end)
            })
            .collect();
        Causes { chains, more }
    }

    /// Cycles first, then the worst state, then the shortest way, then the smallest node.
    fn rank(
        &self,
        parents: &Parents,
        id: NodeId,
        end: &ChainEnd,
    ) -> (bool, std::cmp::Reverse<WaitState>, usize, &Node) {
        let (state, length) = match parents.get(&id) {
            Some(&(parent, length)) => match self.hop(parent, id) {
                Hop::WaitsFor(wait) => (wait.state, length),
                Hop::MadeBy => (WaitState::Absent, length),
            },
            None => (WaitState::InProgress, 0),
        };
        (!matches!(end, ChainEnd::Cycle(_)), std::cmp::Reverse(state), length, self.store.node(id))
    }

    /// What `id` waits for only because of its own order: no cause of anything while something else is.
    fn in_line(&self, id: NodeId) -> BTreeSet<NodeId> {
        let in_line = |wait: &Wait| is_in_line(&wait.reason);
        let mut later: BTreeSet<NodeId> =
            self.store.unmet_waits(id).filter(|(_, wait)| in_line(wait)).map(|(to, _)| to).collect();
        let now: BTreeSet<NodeId> =
            self.store.unmet_waits(id).filter(|(_, wait)| !in_line(wait)).map(|(to, _)| to).collect();
        if now.is_empty() {
            return BTreeSet::new();
        }
        later.retain(|to| !now.contains(to));
        later
    }

    /// The hop from one node to the next: the worst of the waits between them, or else the making.
    fn hop(&self, from: NodeId, to: NodeId) -> Hop {
        let waits = self.store.unmet_waits(from).filter(|&(target, _)| target == to).map(|(_, wait)| wait);
        waits.max().map_or(Hop::MadeBy, |wait| Hop::WaitsFor(wait.clone()))
    }

    /// A path of ids as a chain, the middle left out if it is long.
    pub(super) fn chain(&self, path: &[NodeId], end: ChainEnd) -> Chain {
        // From one batch of a part to another is no step that anybody can see.
        let is_seen = |(from, to): &(NodeId, NodeId)| {
            let (from, to) = (self.store.node(*from), self.store.node(*to));
            from.batch(0) != to.batch(0)
        };
        let hops = path.windows(2).map(|pair| (pair[0], pair[1]));
        let hops: Vec<(NodeId, NodeId)> = hops.filter(is_seen).collect();
        let skipped = hops.len().saturating_sub(2 * CHAIN_ENDS);
        let kept = hops.iter().take(CHAIN_ENDS).chain(hops.iter().skip(CHAIN_ENDS + skipped));
        Chain {
            start: self.store.node(path[0]).clone(),
            links: kept
                .map(|&(from, to)| ChainLink { hop: self.hop(from, to), node: self.store.node(to).clone() })
                .collect(),
            skipped,
            end,
        }
    }
}

/// For each node reached: from where, and in how many steps.
type Parents = BTreeMap<NodeId, (NodeId, usize)>;

/// A breadth-first search for causes.
struct Search<'a> {
    graph: &'a Graph,
    start: NodeId,
    visible: &'a dyn Fn(&Node) -> bool,
    /// Answers of `visible`, which may be costly.
    asked: BTreeMap<NodeId, bool>,
    parents: Parents,
    queue: VecDeque<(NodeId, usize)>,
    cycles: BTreeSet<u64>,
    ends: Vec<(NodeId, ChainEnd)>,
}

impl<'a> Search<'a> {
    fn new(graph: &'a Graph, start: NodeId, visible: &'a dyn Fn(&Node) -> bool) -> Self {
        Self {
            graph,
            start,
            visible,
            asked: BTreeMap::from([(start, true)]),
            parents: Parents::new(),
            queue: VecDeque::from([(start, 0)]),
            cycles: BTreeSet::new(),
            ends: Vec::new(),
        }
    }

    fn may_see(&mut self, id: NodeId) -> bool {
        *self.asked.entry(id).or_insert_with(|| (self.visible)(self.graph.store.node(id)))
    }

    fn run(&mut self) {
        while let Some((id, length)) = self.queue.pop_front() {
            if !self.may_see(id) {
                self.ends.push((id, ChainEnd::Opaque));
                continue;
            }
            let component = self.graph.cyclic.component(id);
            if let Some(component) = component {
                if self.cycles.insert(component) {
                    let end = ChainEnd::Cycle(self.visible_cycle(id));
                    self.ends.push((id, end));
                }
                // Beyond a cycle nothing matters, but a member may have causes of its own besides.
                if id != self.start {
                    continue;
                }
            }
            self.go_on(id, length, component);
        }
    }

    fn go_on(&mut self, id: NodeId, length: usize, component: Option<u64>) {
        let before = self.graph.store.before_sorted(id, ArcFilter::Blocking);
        if before.is_empty() && id != self.start {
            self.ends.push((id, ChainEnd::Leaf));
            return;
        }
        let mut hidden = false;
        let later = self.graph.in_line(id);
        for next in before {
            if later.contains(&next) {
                continue;
            }
            if component.is_some() && self.graph.cyclic.component(next) == component {
                continue;
            }
            if id != self.start && !self.may_see(next) {
                hidden = true;
            } else if next != self.start && !self.parents.contains_key(&next) {
                self.parents.insert(next, (id, length + 1));
                self.queue.push_back((next, length + 1));
            }
        }
        if hidden {
            self.ends.push((id, ChainEnd::NotVisible));
        }
    }

    /// The cycle through a node, if all of it may be named.
    fn visible_cycle(&mut self, id: NodeId) -> Option<CyclePath> {
        let graph = self.graph;
        let path = graph.cyclic.cycle_of(&graph.store, id)?;
        let all = path.0.iter().all(|node| graph.store.id(node).is_some_and(|id| self.may_see(id)));
        all.then_some(path)
    }
}
