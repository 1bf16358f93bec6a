//! Random changes: the graph kept up to date equals the graph built anew, and finds exactly the cycles that a plain
//! transitive closure finds.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

const NODES: usize = 9;

fn node(at: usize) -> Node {
    if at < 6 { ours(&format!("n{at}")) } else { plain("ConfigMap", &format!("n{at}")) }
}

#[derive(Clone, Debug)]
enum Operation {
    Set(usize, Vec<Edge>),
    Remove(usize),
}

fn edge(owner: usize) -> impl Strategy<Value = Edge> {
    // Mostly the owner's own edges, now and then of a part or of somebody else.
    let from = prop_oneof![
        8 => Just(node(owner)),
        1 => Just(node(owner).part("part")),
        1 => (0..NODES).prop_map(node)
    ];
    let to =
        prop_oneof![9 => (0..NODES).prop_map(node), 1 => (0..NODES).prop_map(|at| node(at).part("part"))];
    let relation = prop_oneof![
        6 => Just(Relation::WaitsFor(Wait::new(WaitState::InProgress, "NotReady"))),
        1 => Just(Relation::WaitsFor(Wait::new(WaitState::Failed, "Failed"))),
        2 => Just(Relation::WaitsFor(Wait::new(WaitState::Met, "Ready"))),
        2 => any::<bool>().prop_map(|done| Relation::Produces { done })
    ];
    (from, to, relation).prop_map(|(from, to, relation)| Edge { from, to, relation })
}

fn operation() -> impl Strategy<Value = Operation> {
    (0..NODES, 0..8_u8).prop_flat_map(|(owner, dice)| {
        let edges = prop::collection::vec(edge(owner), 0..4);
        edges.prop_map(
            move |edges| {
                if dice == 0 { Operation::Remove(owner) } else { Operation::Set(owner, edges) }
            },
        )
    })
}

/// The blocking arcs, read off the edges as the module's documentation has it.
fn arcs(edges: &[Edge]) -> BTreeSet<(&Node, &Node)> {
    let making = |from: &Node, to: &Node| {
        let making = Relation::Produces { done: false };
        edges.iter().any(|edge| edge.relation == making && edge.from == *from && edge.to == *to)
    };
    edges
        .iter()
        .filter_map(|Edge { from, to, relation }| match relation {
            Relation::WaitsFor(wait) if !wait.met() && !making(from, to) => Some((from, to)),
            Relation::Produces { done: false } => Some((to, from)),
            _ => None,
        })
        .collect()
}

/// The sets of nodes that reach each other, by transitive closure.
fn knots(edges: &[Edge]) -> BTreeSet<Vec<Node>> {
    let mut reach: BTreeSet<(&Node, &Node)> = arcs(edges);
    loop {
        let further: Vec<(&Node, &Node)> = reach
            .iter()
            .flat_map(|&(a, b)| reach.iter().filter(move |&&(c, _)| c == b).map(move |&(_, d)| (a, d)))
            .filter(|pair| !reach.contains(pair))
            .collect();
        if further.is_empty() {
            break;
        }
        reach.extend(further);
    }
    let knotted = reach.iter().filter(|(a, b)| a == b).map(|&(a, _)| a);
    knotted
        .map(|a| {
            let mut members: BTreeSet<Node> = BTreeSet::from([a.clone()]);
            let both = reach.iter().filter(|&&(from, to)| from == a && reach.contains(&(to, a)));
            members.extend(both.map(|&(_, b)| b.clone()));
            members.into_iter().collect()
        })
        .collect()
}

/// Everything the graph can be asked, as one text.
fn everything(graph: &Graph) -> String {
    let nodes: Vec<&Node> = graph.nodes().collect();
    let answers: Vec<_> = nodes
        .iter()
        .map(|node| {
            let hidden = |other: &Node| other.object.name != "n3";
            let causes = graph.root_causes(node, &hidden);
            let answer = explain::answer(node, &causes);
            (graph.cycle_of(node), graph.impact(node), graph.blockers(node), causes, answer)
        })
        .collect();
    format!(
        "{nodes:#?} {:#?} {:#?} {:#?} {:#?} {answers:#?}",
        graph.owners(),
        graph.edges(),
        graph.cycles(),
        graph.levels()
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn kept_up_to_date_it_equals_one_built_anew(operations in prop::collection::vec(operation(), 1..24)) {
        let mut graph = Graph::new();
        let mut contributions: BTreeMap<usize, Vec<Edge>> = BTreeMap::new();
        for operation in operations {
            let before: BTreeMap<Node, CyclePath> = cycles_by_node(&graph);
            let changed = match operation {
                Operation::Set(owner, edges) => {
                    let changed = graph.set(&node(owner), edges.clone());
                    contributions.insert(owner, edges);
                    changed
                }
                Operation::Remove(owner) => {
                    contributions.remove(&owner);
                    graph.remove(&node(owner))
                }
            };
            let after = cycles_by_node(&graph);
            for node in before.keys().chain(after.keys()) {
                prop_assert!(changed.iter().any(|other| other == node) || before.get(node) == after.get(node), "{node} not reported");
            }
            let edges: Vec<Edge> = contributions.values().flatten().cloned().collect();
            let found: BTreeSet<Vec<Node>> = graph.cycles().into_iter().map(|cycle| cycle.members).collect();
            prop_assert_eq!(found, knots(&edges));
        }
        let mut anew = Graph::new();
        for (&owner, edges) in contributions.iter().rev() {
            anew.set(&node(owner), edges.clone());
        }
        prop_assert_eq!(everything(&graph), everything(&anew));
    }

    #[test]
    fn every_cycle_spelled_is_a_cycle_and_every_level_comes_after_what_it_needs(
        edges in prop::collection::vec((0..NODES).prop_flat_map(edge), 0..20),
    ) {
        let mut graph = Graph::new();
        graph.set(&node(0), edges.clone());
        let arcs = arcs(&edges);
        for cycle in graph.cycles() {
            let path = &cycle.path.0;
            for (at, from) in path.iter().enumerate() {
                prop_assert!(arcs.contains(&(from, &path[(at + 1) % path.len()])));
            }
            prop_assert_eq!(path.iter().min(), path.first());
            prop_assert!(cycle.members.iter().all(|node| graph.cycle_of(node).unwrap().0.len() >= path.len()));
        }
        let levels = graph.levels();
        let level = |node: &Node| levels.iter().position(|level| level.contains(node)).unwrap();
        for (from, to) in arcs {
            let own = edges.contains(&Edge::produces(from.clone(), to.clone(), true));
            prop_assert!(own || level(from) >= level(to));
        }
        prop_assert_eq!(levels.concat().len(), graph.nodes().count());
    }
}

fn cycles_by_node(graph: &Graph) -> BTreeMap<Node, CyclePath> {
    graph.nodes().filter_map(|node| Some((node.clone(), graph.cycle_of(node)?))).collect()
}
