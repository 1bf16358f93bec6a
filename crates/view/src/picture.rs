//! What there is to see, independent of how it is drawn.
//!
//! Every arrow points from something to what must come before it, so a picture reads in one direction: *needs*. What
//! is made by somebody points to its maker. A wait for one's own product is one arrow, marked as such.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use linchpin_engine::graph::{CyclePath, Edge, Graph, Node, Relation, Wait, WaitState, explain};
use serde::{Deserialize, Serialize};

/// The state of something, as one word; the later, the more it deserves attention.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PictureState {
    /// As required.
    Ready,
    /// There, and on its way.
    Running,
    /// Held until something else is there.
    Waiting,
    /// Not there.
    Missing,
    /// Not known.
    Unknown,
    /// Settled, and not as required.
    Failed,
    /// Part of a cycle: it waits for itself.
    Cycle,
}

impl PictureState {
    /// All states, good ones first.
    pub const ALL: [Self; 7] =
        [Self::Ready, Self::Running, Self::Waiting, Self::Missing, Self::Unknown, Self::Failed, Self::Cycle];

    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Missing => "missing",
            Self::Unknown => "unknown",
            Self::Failed => "failed",
            Self::Cycle => "cycle",
        }
    }
}

/// What is known about a node besides its edges, such as the phase of an object of ours.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeFacts {
    /// Its state.
    pub state: PictureState,
    /// Why, as one word.
    pub reason: String,
    /// Why, in words.
    pub detail: String,
    /// Since when.
    pub since: Option<Timestamp>,
}

/// One thing in the picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PictureItem {
    /// What it is.
    pub node: Node,
    /// Whether it is one of ours: it has a plan.
    pub ours: bool,
    /// Its state.
    pub state: PictureState,
    /// Why, as one word; may be empty.
    pub reason: String,
    /// Why, in words; may be empty.
    pub detail: String,
    /// Whether it reports its state itself, rather than those who wait for it.
    pub speaks: bool,
    /// Since when.
    pub since: Option<Timestamp>,
    /// Its place in the order of all plans; 0 needs nothing.
    pub level: usize,
}

/// Why one thing comes before another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArrowReason {
    /// It is waited for. `own` says that the one who waits also makes it.
    Wait {
        /// The wait.
        wait: Wait,
        /// Whether the one who waits makes it.
        own: bool,
    },
    /// It makes the thing the arrow comes from.
    MadeBy {
        /// Whether it was made.
        done: bool,
    },
}

impl ArrowReason {
    /// Whether it is fulfilled.
    pub fn met(&self) -> bool {
        match self {
            Self::Wait { wait, .. } => wait.met(),
            Self::MadeBy { done } => *done,
        }
    }
}

/// From one thing to what must come before it, by index in [`Picture::items`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrow {
    /// What needs.
    pub from: usize,
    /// What is needed.
    pub to: usize,
    /// Why.
    pub need: ArrowReason,
    /// Whether it is part of a cycle.
    pub cycle: bool,
}

/// Things that belong together: an object and its parts, or the objects of another cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PictureGroup {
    /// What holds them together.
    pub label: String,
    /// Indices in [`Picture::items`], ascending.
    pub members: Vec<usize>,
}

/// Which part of a graph to draw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PictureSelection {
    /// Everything.
    All,
    /// These, what they make, and all that they need.
    Needs(Vec<Node>),
    /// These and all that needs them.
    NeededBy(Vec<Node>),
}

/// Things, arrows, groups and cycles.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Picture {
    /// Sorted by node.
    pub items: Vec<PictureItem>,
    /// Sorted by their ends; at most one for each pair.
    pub arrows: Vec<Arrow>,
    /// Sorted by label.
    pub groups: Vec<PictureGroup>,
    /// Every cycle that touches the picture.
    pub cycles: Vec<CyclePath>,
}

impl Picture {
    /// Takes a picture of a graph. `known` says more about some nodes; it wins over what the edges show.
    pub fn of(graph: &Graph, selection: &PictureSelection, known: &BTreeMap<Node, NodeFacts>) -> Self {
        let edges = graph.edges();
        let nodes = selected(graph, &edges, selection);
        let index: BTreeMap<&Node, usize> = nodes.iter().enumerate().map(|(at, &node)| (node, at)).collect();
        let cycles = graph.cycles();
        let mut cycle_of: BTreeMap<usize, usize> = BTreeMap::new();
        for (number, cycle) in cycles.iter().enumerate() {
            cycle_of.extend(cycle.members.iter().filter_map(|node| Some((*index.get(node)?, number))));
        }
        let arrows = arrows(&edges, &index, &cycle_of);
        let levels = graph.levels();
        let levels: BTreeMap<&Node, usize> = levels
            .iter()
            .enumerate()
            .flat_map(|(level, nodes)| nodes.iter().map(move |node| (node, level)))
            .collect();
        let ours: BTreeSet<&Node> = graph.owners().into_iter().collect();
        let mut items: Vec<PictureItem> = nodes
            .iter()
            .map(|&node| PictureItem {
                node: node.clone(),
                ours: ours.contains(node) || ours.contains(&node.whole()),
                state: PictureState::Ready,
                reason: String::new(),
                detail: String::new(),
                speaks: known.contains_key(node),
                since: None,
                level: levels.get(node).copied().unwrap_or_default(),
            })
            .collect();
        judge(&mut items, &edges, &index);
        for (at, item) in items.iter_mut().enumerate() {
            if let Some(known) = known.get(&item.node) {
                item.state = known.state;
                item.reason.clone_from(&known.reason);
                item.detail.clone_from(&known.detail);
                item.since = known.since;
            }
            if cycle_of.contains_key(&at) {
                item.state = PictureState::Cycle;
            }
        }
        let shown: BTreeSet<usize> = cycle_of.into_values().collect();
        let cycles = cycles.into_iter().enumerate().filter(|(number, _)| shown.contains(number));
        Self { groups: groups(&items), items, arrows, cycles: cycles.map(|(_, cycle)| cycle.path).collect() }
    }

    /// For each item the positions of the arrows that start there.
    pub(crate) fn outgoing(&self) -> Vec<Vec<usize>> {
        let mut outgoing = vec![Vec::new(); self.items.len()];
        for (at, arrow) in self.arrows.iter().enumerate() {
            outgoing[arrow.from].push(at);
        }
        outgoing
    }
}

/// The selected nodes, sorted.
fn selected<'a>(graph: &'a Graph, edges: &'a [Edge], selection: &PictureSelection) -> Vec<&'a Node> {
    let (roots, forward) = match selection {
        PictureSelection::All => return graph.nodes().collect(),
        PictureSelection::Needs(roots) => (roots, true),
        PictureSelection::NeededBy(roots) => (roots, false),
    };
    let mut next: BTreeMap<&Node, Vec<&Node>> = BTreeMap::new();
    for edge in edges {
        let waits = matches!(edge.relation, Relation::WaitsFor(_));
        let (from, to) = if waits == forward { (&edge.from, &edge.to) } else { (&edge.to, &edge.from) };
        next.entry(from).or_default().push(to);
    }
    let roots: BTreeSet<&Node> = roots.iter().collect();
    let makes = |edge: &&Edge| matches!(edge.relation, Relation::Produces { .. });
    let made_by_root = |edge: &&Edge| roots.contains(&edge.from) || roots.contains(&edge.from.whole());
    let made = edges.iter().filter(|_| forward).filter(makes).filter(made_by_root).map(|edge| &edge.to);
    let made: Vec<&Node> = made.collect();
    let mut seen: BTreeSet<&Node> = graph.nodes().filter(|node| roots.contains(node)).collect();
    let mut queue: Vec<&Node> = seen.iter().copied().collect();
    while let Some(node) = queue.pop() {
        for &other in next.get(node).into_iter().flatten() {
            if seen.insert(other) {
                queue.push(other);
            }
        }
    }
    seen.extend(made);
    seen.into_iter().collect()
}

/// One arrow for each pair: the worst wait, or else the making.
fn arrows(edges: &[Edge], index: &BTreeMap<&Node, usize>, cycle_of: &BTreeMap<usize, usize>) -> Vec<Arrow> {
    let mut makes: BTreeMap<(usize, usize), bool> = BTreeMap::new();
    let mut waits: BTreeMap<(usize, usize), &Wait> = BTreeMap::new();
    for edge in edges {
        let (Some(&from), Some(&to)) = (index.get(&edge.from), index.get(&edge.to)) else { continue };
        match &edge.relation {
            Relation::WaitsFor(wait) => {
                let worst = waits.entry((from, to)).or_insert(wait);
                *worst = (*worst).max(wait);
            }
            Relation::Produces { done } => {
                let all = makes.entry((from, to)).or_insert(true);
                *all = *all && *done;
            }
        }
    }
    let mut arrows = BTreeMap::new();
    for (&(maker, made), &done) in &makes {
        if !waits.contains_key(&(maker, made)) {
            arrows.insert((made, maker), ArrowReason::MadeBy { done });
        }
    }
    for (&(from, to), &wait) in &waits {
        let own = makes.contains_key(&(from, to));
        arrows.insert((from, to), ArrowReason::Wait { wait: wait.clone(), own });
    }
    let cyclic = |from, to, need: &ArrowReason| {
        let blocks =
            !need.met() && !matches!(need, ArrowReason::Wait { own: true, .. } if !makes[&(from, to)]);
        blocks && cycle_of.get(&from).is_some_and(|number| cycle_of.get(&to) == Some(number))
    };
    arrows
        .into_iter()
        .map(|((from, to), need)| Arrow { from, to, cycle: cyclic(from, to, &need), need })
        .collect()
}

/// What the edges show of their ends: who waits is waiting, who has still to make something is running, what is
/// still to be made is waiting, and anything else is as those who wait for it see it.
fn judge(items: &mut [PictureItem], edges: &[Edge], index: &BTreeMap<&Node, usize>) {
    let mut seen_as: BTreeMap<usize, &Wait> = BTreeMap::new();
    let mut unmade: BTreeSet<usize> = BTreeSet::new();
    for edge in edges {
        match &edge.relation {
            Relation::WaitsFor(wait) if !wait.met() => {
                if let Some(&to) = index.get(&edge.to) {
                    let worst = seen_as.entry(to).or_insert(wait);
                    *worst = (*worst).max(wait);
                }
                if let Some(&from) = index.get(&edge.from) {
                    let item = &mut items[from];
                    item.since = match (item.state, item.since, wait.since) {
                        (PictureState::Waiting, Some(a), Some(b)) => Some(a.min(b)),
                        (_, a, b) => b.or(a),
                    };
                    item.state = PictureState::Waiting;
                }
            }
            Relation::Produces { done: false } => {
                if let Some(&from) = index.get(&edge.from) {
                    items[from].state = items[from].state.max(PictureState::Running);
                }
                unmade.extend(index.get(&edge.to));
            }
            _ => {}
        }
    }
    for at in unmade.into_iter().filter(|at| !seen_as.contains_key(at)) {
        items[at].state = items[at].state.max(PictureState::Waiting);
    }
    for (at, wait) in seen_as {
        let item = &mut items[at];
        if item.state != PictureState::Waiting || wait.state == WaitState::Failed {
            item.state = seen(wait.state);
            item.since = wait.since;
        } else if let Some(since) = wait.since {
            item.since = item.since.map_or(wait.since, |own| Some(own.min(since)));
        }
        item.reason = wait.reason.to_string();
        item.detail = wait.detail.to_string();
    }
}

/// How a wait's target looks to the one who waits.
pub(crate) fn seen(state: WaitState) -> PictureState {
    match state {
        WaitState::Met => PictureState::Ready,
        WaitState::InProgress => PictureState::Running,
        WaitState::Absent => PictureState::Missing,
        WaitState::Unknown => PictureState::Unknown,
        WaitState::Failed => PictureState::Failed,
    }
}

fn groups(items: &[PictureItem]) -> Vec<PictureGroup> {
    let parted: BTreeSet<Node> =
        items.iter().filter(|item| item.node.part.is_some()).map(|item| item.node.whole()).collect();
    let mut groups: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (at, item) in items.iter().enumerate() {
        let whole = item.node.whole();
        let label = match &item.node.cluster {
            _ if parted.contains(&whole) => explain::clean(&whole.to_string()),
            Some(cluster) => explain::clean(&format!("cluster {cluster}")),
            None => continue,
        };
        groups.entry(label).or_default().push(at);
    }
    groups.into_iter().map(|(label, members)| PictureGroup { label, members }).collect()
}
