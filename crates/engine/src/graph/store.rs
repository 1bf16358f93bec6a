//! Contributions of edges, interned and indexed both ways.
//!
//! Ids are handed out in order of arrival and reused, so they never decide anything visible. [`GraphStore::replace`] is
//! the only way in; it reports which arcs of the blocking reading came and went.

use std::{
    collections::{BTreeMap, BTreeSet},
    mem::discriminant,
};

use linchpin_words::Few;

use super::node::{Edge, Node, Relation, Wait};

/// A node's index.
pub(super) type NodeId = u32;
/// An edge record's index.
type RecordId = u32;

/// Which arcs a walk follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ArcFilter {
    /// Unmet waits, and product → producer while it is not written.
    Blocking,
    /// All waits but those for one's own products, and product → producer.
    Order,
    /// Every edge.
    Every,
}

/// What a replacement did to the blocking arcs.
#[derive(Debug, Default)]
pub(super) struct GraphChange {
    /// Where new arcs start.
    pub sources: BTreeSet<NodeId>,
    /// Arcs that came or went.
    pub arcs: BTreeSet<(NodeId, NodeId)>,
    /// Nodes to let go of once the cycles are up to date.
    pub released: Vec<NodeId>,
}

#[derive(Clone, Debug)]
struct Slot {
    node: Node,
    /// How many records and owners name it; a slot without uses is free.
    uses: u32,
    records: Few<(Role, RecordId)>,
}

/// What a node is in a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Role {
    Waits,
    Produces,
    WaitedFor,
    Produced,
}

impl Slot {
    /// The records in which it is that.
    fn records_as(&self, role: Role) -> impl Iterator<Item = RecordId> {
        let from = self.records.partition_point(|(known, _)| *known < role);
        let found = self.records[from..].iter().take_while(move |(known, _)| *known == role);
        found.map(|(_, record)| *record)
    }
}

#[derive(Clone, Debug)]
struct EdgeRecord {
    from: NodeId,
    to: NodeId,
    relation: Relation,
    /// Whether it carries an arc of the blocking reading.
    blocking: bool,
    /// Whether it carries an arc of the order reading.
    order: bool,
}

/// Nodes, edges, owners.
#[derive(Clone, Debug, Default)]
pub(super) struct GraphStore {
    ids: BTreeMap<Node, NodeId>,
    slots: Vec<Slot>,
    free_slots: Vec<NodeId>,
    records: Vec<EdgeRecord>,
    free_records: Vec<RecordId>,
    /// Counts changes of what is joined with what.
    pub(super) shape: u64,
    /// Records of each owner, in the order that it gave their edges in: mostly it gives the same ones again.
    owned: BTreeMap<NodeId, Vec<RecordId>>,
}

impl GraphStore {
    /// Replaces an owner's edges, or drops the owner. None when nothing changed.
    pub(super) fn replace(&mut self, owner: &Node, edges: Option<&[Edge]>) -> Option<GraphChange> {
        let known = self.id(owner).filter(|id| self.owned.contains_key(id));
        match (known, edges) {
            (None, None) => return None,
            (Some(id), Some(edges)) if self.joins_the_same(id, edges) => return self.restate(id, edges),
            _ => {}
        }
        self.shape += 1;
        let mut given = BTreeSet::new();
        let edges = edges.map(|edges| edges.iter().filter(|edge| given.insert(*edge)).collect::<Vec<_>>());
        let mut released = Vec::new();
        let old = known.and_then(|id| self.owned.remove(&id)).unwrap_or_default();
        released.extend(known);
        let ends: Vec<(NodeId, NodeId)> =
            edges.iter().flatten().map(|edge| (self.intern(&edge.from), self.intern(&edge.to))).collect();
        let old_starts = old.iter().map(|&record| self.records[record as usize].from);
        let starts: BTreeSet<NodeId> = old_starts.chain(ends.iter().map(|&(from, _)| from)).collect();
        let before = self.arcs_around(&starts);
        for record in old {
            released.extend(self.unlink(record));
        }
        if let Some(edges) = edges {
            let records =
                edges.iter().zip(ends).map(|(edge, ends)| self.link(ends, &edge.relation)).collect();
            let id = self.intern(owner);
            self.owned.insert(id, records);
        }
        Some(self.change_of(&starts, &before, released))
    }

    /// Whether an owner's edges are between the same nodes as before, whatever they say.
    fn joins_the_same(&self, owner: NodeId, edges: &[Edge]) -> bool {
        let records = &self.owned[&owner];
        records.len() == edges.len()
            && records.iter().zip(edges).all(|(&record, edge)| {
                let record = &self.records[record as usize];
                discriminant(&record.relation) == discriminant(&edge.relation)
                    && *self.node(record.from) == edge.from
                    && *self.node(record.to) == edge.to
            })
    }

    /// Writes down what an owner's edges say now, which is all that has changed: this happens with every step.
    fn restate(&mut self, owner: NodeId, edges: &[Edge]) -> Option<GraphChange> {
        let records = self.owned[&owner].iter().zip(edges);
        let changed: Vec<(RecordId, &Relation)> = records
            .filter(|(record, edge)| self.records[**record as usize].relation != edge.relation)
            .map(|(record, edge)| (*record, &edge.relation))
            .collect();
        let mut starts: BTreeSet<NodeId> =
            changed.iter().map(|(record, _)| self.records[*record as usize].from).collect();
        // Whether a part's waits lead anywhere depends on what its batches have made.
        let parts: Vec<NodeId> = starts.iter().filter_map(|start| self.part_of(*start)).collect();
        starts.extend(parts);
        let before = self.arcs_around(&starts);
        let softened = changed
            .iter()
            .any(|(record, relation)| soft(&self.records[*record as usize].relation) != soft(relation));
        for (record, relation) in &changed {
            self.records[*record as usize].relation = (*relation).clone();
        }
        // A wait that gives way from now on, or no longer, may open or close a circle although every arc is there as before.
        let before = if softened { BTreeSet::new() } else { before };
        (!changed.is_empty()).then(|| self.change_of(&starts, &before, Vec::new()))
    }

    /// What became of the blocking arcs that start at `starts`.
    fn change_of(
        &mut self,
        starts: &BTreeSet<NodeId>,
        before: &BTreeSet<(NodeId, NodeId)>,
        released: Vec<NodeId>,
    ) -> GraphChange {
        for &start in starts {
            self.refresh(start);
        }
        let after = self.arcs_around(starts);
        GraphChange {
            sources: after.difference(before).map(|&(from, _)| from).collect(),
            arcs: after.symmetric_difference(before).copied().collect(),
            released,
        }
    }

    fn intern(&mut self, node: &Node) -> NodeId {
        if let Some(&id) = self.ids.get(node) {
            self.slots[id as usize].uses += 1;
            return id;
        }
        let slot = Slot { node: node.clone(), uses: 1, records: Few::default() };
        let id = put(&mut self.slots, &mut self.free_slots, slot);
        self.ids.insert(node.clone(), id);
        id
    }

    /// Gives one use back; a node nobody names is forgotten.
    pub(super) fn release(&mut self, id: NodeId) {
        let slot = &mut self.slots[id as usize];
        slot.uses -= 1;
        if slot.uses == 0 {
            self.ids.remove(&slot.node);
            self.free_slots.push(id);
        }
    }

    fn link(&mut self, (from, to): (NodeId, NodeId), relation: &Relation) -> RecordId {
        let record = EdgeRecord { from, to, relation: relation.clone(), blocking: false, order: false };
        let id = put(&mut self.records, &mut self.free_records, record);
        let (start, end) = roles(relation);
        self.slots[from as usize].records.insert((start, id));
        self.slots[to as usize].records.insert((end, id));
        id
    }

    /// Takes a record out of the index; its ends are to be released.
    fn unlink(&mut self, id: RecordId) -> [NodeId; 2] {
        let EdgeRecord { from, to, ref relation, .. } = self.records[id as usize];
        let (start, end) = roles(relation);
        self.slots[from as usize].records.remove(&(start, id));
        self.slots[to as usize].records.remove(&(end, id));
        self.free_records.push(id);
        [from, to]
    }

    /// The batches of a part.
    fn waves_of(&self, part: NodeId) -> Vec<NodeId> {
        let node = self.node(part);
        if node.batch > 0 {
            return Vec::new();
        }
        self.ids.range(node.batch(1)..=node.batch(u32::MAX)).map(|(_, &id)| id).collect()
    }

    /// The part that a batch is of.
    fn part_of(&self, batch: NodeId) -> Option<NodeId> {
        let node = self.node(batch);
        if node.batch == 0 { None } else { self.id(&node.batch(0)) }
    }

    /// An owner, its parts and their batches, in their order.
    pub(super) fn parts_of(&self, owner: &Node) -> Vec<NodeId> {
        let parts = self
            .ids
            .range(owner..)
            .take_while(|(node, _)| (&node.cluster, &node.object) == (&owner.cluster, &owner.object));
        parts.map(|(_, &id)| id).collect()
    }

    /// Decides again which records that start at `from` carry arcs: what a node makes itself, or in one of its batches, it
    /// waits for after it made it, so that wait leads to no producer.
    fn refresh(&mut self, from: NodeId) {
        let mut made: BTreeMap<NodeId, bool> = BTreeMap::new();
        for producer in std::iter::once(from).chain(self.waves_of(from)) {
            for record in self.slots[producer as usize].records_as(Role::Produces) {
                let record = &mut self.records[record as usize];
                let done = record.relation == Relation::Produces { done: true };
                (record.blocking, record.order) = (!done, true);
                let all_done = made.entry(record.to).or_insert(true);
                *all_done = *all_done && done;
            }
        }
        for record in self.slots[from as usize].records_as(Role::Waits) {
            let record = &mut self.records[record as usize];
            let made = made.get(&record.to);
            record.order = made.is_none();
            record.blocking = unmet(&record.relation) && made != Some(&false);
        }
    }

    /// The blocking arcs that edges starting at `starts` carry.
    fn arcs_around(&self, starts: &BTreeSet<NodeId>) -> BTreeSet<(NodeId, NodeId)> {
        let mut arcs = BTreeSet::new();
        for &start in starts {
            let slot = &self.slots[start as usize];
            let waits = slot.records_as(Role::Waits).map(|record| (&self.records[record as usize], true));
            let makes = slot.records_as(Role::Produces).map(|record| (&self.records[record as usize], false));
            for (record, forward) in waits.chain(makes).filter(|(record, _)| record.blocking) {
                arcs.insert(if forward { (record.from, record.to) } else { (record.to, record.from) });
            }
        }
        arcs
    }

    /// The id of a node, if anything names it.
    pub(super) fn id(&self, node: &Node) -> Option<NodeId> {
        self.ids.get(node).copied()
    }

    /// The node of an id.
    pub(super) fn node(&self, id: NodeId) -> &Node {
        &self.slots[id as usize].node
    }

    /// All nodes in their order.
    pub(super) fn ids(&self) -> impl Iterator<Item = (&Node, NodeId)> {
        self.ids.iter().map(|(node, &id)| (node, id))
    }

    /// An upper bound of all ids in use.
    pub(super) fn bound(&self) -> usize {
        self.slots.len()
    }

    /// All owners in their order.
    pub(super) fn owners(&self) -> Vec<&Node> {
        let mut owners: Vec<&Node> = self.owned.keys().map(|&id| self.node(id)).collect();
        owners.sort_unstable();
        owners
    }

    /// The edges that start at a node, in no order.
    pub(super) fn edges_from(&self, id: NodeId) -> impl Iterator<Item = Edge> {
        let slot = &self.slots[id as usize];
        slot.records_as(Role::Waits).chain(slot.records_as(Role::Produces)).map(|record| {
            let record = &self.records[record as usize];
            Edge {
                from: self.node(record.from).clone(),
                to: self.node(record.to).clone(),
                relation: record.relation.clone(),
            }
        })
    }

    /// The unmet waits of a node, in no order; what it makes itself included.
    pub(super) fn unmet_waits(&self, id: NodeId) -> impl Iterator<Item = (NodeId, &Wait)> {
        self.slots[id as usize].records_as(Role::Waits).filter_map(|record| {
            match &self.records[record as usize] {
                EdgeRecord { to, relation: Relation::WaitsFor(wait), .. } if !wait.met() => Some((*to, wait)),
                _ => None,
            }
        })
    }

    /// Who makes a node.
    pub(super) fn makers(&self, id: NodeId) -> impl Iterator<Item = NodeId> {
        self.slots[id as usize].records_as(Role::Produced).map(|record| self.records[record as usize].from)
    }

    /// Who waits for a node, each with whether it has it.
    pub(super) fn waits_for(&self, id: NodeId) -> impl Iterator<Item = (NodeId, bool)> {
        self.slots[id as usize].records_as(Role::WaitedFor).map(|record| {
            let record = &self.records[record as usize];
            (record.from, !unmet(&record.relation))
        })
    }

    /// What must come before `id`, in no order, possibly repeated.
    pub(super) fn before(&self, id: NodeId, reading: ArcFilter) -> impl Iterator<Item = NodeId> {
        let waits = self.carrying(id, Role::Waits, reading).map(|record| record.to);
        waits.chain(self.carrying(id, Role::Produced, reading).map(|record| record.from))
    }

    /// What comes after `id`, in no order, possibly repeated.
    pub(super) fn after(&self, id: NodeId, reading: ArcFilter) -> impl Iterator<Item = NodeId> {
        let waits = self.carrying(id, Role::WaitedFor, reading).map(|record| record.from);
        waits.chain(self.carrying(id, Role::Produces, reading).map(|record| record.to))
    }

    /// What must come before `id`, sorted by node, each once.
    pub(super) fn before_sorted(&self, id: NodeId, reading: ArcFilter) -> Vec<NodeId> {
        let mut ids: Vec<NodeId> = self.before(id, reading).collect();
        self.sort(&mut ids);
        ids
    }

    /// Whether a blocking arc is a wait that gives way, and how old the one that waits is.
    pub(super) fn softness(&self, from: NodeId, to: NodeId) -> Option<i64> {
        if self.carrying(from, Role::Produced, ArcFilter::Blocking).any(|record| record.from == to) {
            return None;
        }
        let mut youngest = None;
        for record in self.carrying(from, Role::Waits, ArcFilter::Blocking).filter(|record| record.to == to) {
            let Relation::WaitsFor(Wait { soft: Some(age), .. }) = &record.relation else { return None };
            youngest = youngest.max(Some(*age));
        }
        youngest
    }

    /// Sorts ids by their nodes and drops duplicates.
    pub(super) fn sort(&self, ids: &mut Vec<NodeId>) {
        ids.sort_unstable_by(|&a, &b| self.node(a).cmp(self.node(b)));
        ids.dedup();
    }

    /// The records in which a node is that, as far as they carry an arc of this reading.
    fn carrying(&self, id: NodeId, role: Role, reading: ArcFilter) -> impl Iterator<Item = &EdgeRecord> {
        let records = self.slots[id as usize].records_as(role).map(|record| &self.records[record as usize]);
        records.filter(move |record| match reading {
            ArcFilter::Blocking => record.blocking,
            ArcFilter::Order => record.order,
            ArcFilter::Every => true,
        })
    }
}

/// What the nodes at the start and at the end of an edge are in it.
fn roles(relation: &Relation) -> (Role, Role) {
    match relation {
        Relation::WaitsFor(_) => (Role::Waits, Role::WaitedFor),
        Relation::Produces { .. } => (Role::Produces, Role::Produced),
    }
}

/// Whether a wait gives way.
fn soft(relation: &Relation) -> bool {
    matches!(relation, Relation::WaitsFor(wait) if wait.soft.is_some())
}

fn unmet(relation: &Relation) -> bool {
    matches!(relation, Relation::WaitsFor(wait) if !wait.met())
}

/// Puts a value in a free place or at the end.
fn put<T>(places: &mut Vec<T>, free: &mut Vec<u32>, value: T) -> u32 {
    if let Some(id) = free.pop() {
        places[id as usize] = value;
        return id;
    }
    places.push(value);
    // Four billion nodes would have filled the memory long before.
    u32::try_from(places.len() - 1).unwrap_or(u32::MAX)
}
