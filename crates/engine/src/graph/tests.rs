//! What the graph promises, shown by small examples; [`properties`] holds it against a plain reference.

mod properties;
mod sentences;

use std::collections::BTreeSet;

use linchpin_words::{GroupKind, ObjectRef};

use super::*;

/// An object of ours.
pub(super) fn ours(name: &str) -> Node {
    let kind = GroupKind::new("tools.kubestellar.io", "ResourceDependency");
    Node::here(ObjectRef::namespaced(kind, "shop", name))
}

/// An object of the cluster.
pub(super) fn plain(kind: &str, name: &str) -> Node {
    Node::here(ObjectRef::namespaced(GroupKind::new("", kind), "shop", name))
}

pub(super) fn waits(from: &Node, to: &Node) -> Edge {
    Edge::waits(from.clone(), to.clone(), Wait::new(WaitState::InProgress, "NotReady"))
}

pub(super) fn has(from: &Node, to: &Node) -> Edge {
    Edge::waits(from.clone(), to.clone(), Wait::new(WaitState::Met, "Ready"))
}

pub(super) fn makes(from: &Node, to: &Node) -> Edge {
    Edge::produces(from.clone(), to.clone(), false)
}

fn graph(edges: impl IntoIterator<Item = Edge>) -> Graph {
    let mut graph = Graph::new();
    let edges: Vec<Edge> = edges.into_iter().collect();
    let owners: BTreeSet<Node> = edges.iter().map(|edge| edge.from.clone()).collect();
    for owner in owners {
        graph.set(&owner, edges.iter().filter(|edge| edge.from == owner).cloned().collect::<Vec<_>>());
    }
    graph
}

fn set<const N: usize>(nodes: [&Node; N]) -> Vec<Node> {
    nodes.into_iter().cloned().collect()
}

#[test]
fn two_objects_that_wait_for_each_other_are_a_cycle_spelled_from_the_smallest() {
    let (a, b) = (ours("a"), ours("b"));
    let graph = graph([waits(&b, &a), waits(&a, &b)]);
    let cycles = graph.cycles();
    assert_eq!(cycles.len(), 1);
    assert_eq!(
        cycles[0].path.to_string(),
        "ResourceDependency shop/a → ResourceDependency shop/b → ResourceDependency shop/a"
    );
    assert_eq!(graph.cycle_of(&b), Some(cycles[0].path.clone()));
}

#[test]
fn a_met_wait_closes_no_cycle() {
    let (a, b) = (ours("a"), ours("b"));
    assert_eq!(graph([waits(&b, &a), has(&a, &b)]).cycles(), []);
}

#[test]
fn a_cycle_may_go_through_what_another_is_to_make() {
    let (a, b, c) = (ours("a"), ours("b"), plain("ConfigMap", "c"));
    let graph = graph([waits(&a, &c), makes(&b, &c), waits(&b, &a)]);
    let cycle = &graph.cycles()[0];
    assert_eq!(cycle.path.0, [c.clone(), b.clone(), a.clone()]);
    assert_eq!(cycle.members, [c, a, b]);
}

#[test]
fn what_was_already_made_closes_no_cycle() {
    let (a, b, c) = (ours("a"), ours("b"), plain("ConfigMap", "c"));
    let made = Edge::produces(b.clone(), c.clone(), true);
    assert_eq!(graph([waits(&a, &c), made, waits(&b, &a)]).cycles(), []);
}

#[test]
fn waiting_for_what_one_makes_oneself_is_no_cycle() {
    let (a, c) = (ours("a"), plain("Deployment", "c"));
    assert_eq!(graph([waits(&a, &c), makes(&a, &c)]).cycles(), []);
}

#[test]
fn an_object_that_waits_for_itself_is_a_cycle_of_one() {
    let a = ours("a");
    assert_eq!(graph([waits(&a, &a)]).cycle_of(&a), Some(CyclePath(vec![a])));
}

#[test]
fn parts_of_one_object_are_told_apart() {
    let (stack, other) = (ours("stack"), ours("other"));
    let (first, last) = (stack.clone().part("first"), stack.clone().part("last"));
    let mut graph = Graph::new();
    graph.set(&stack, vec![waits(&stack, &first), waits(&stack, &last), waits(&last, &other)]);
    graph.set(&other, vec![waits(&other, &first)]);
    assert_eq!(graph.cycles(), []);
    graph.set(&other, vec![waits(&other, &last)]);
    assert_eq!(graph.cycles()[0].members, [other, last]);
}

#[test]
fn a_turn_is_in_a_circle_only_with_what_it_waits_for_itself_and_its_owner_is_told() {
    let (stack, other) = (ours("stack"), ours("other"));
    let part = stack.clone().part("first");
    let (early, late) = (part.batch(1), part.batch(2));
    let (one, two) = (plain("ConfigMap", "one"), plain("ConfigMap", "two"));
    let edges = |done: bool| {
        let made = Edge::produces(early.clone(), one.clone(), done);
        vec![
            waits(&stack, &part),
            waits(&part, &one),
            made,
            waits(&part, &two),
            makes(&late, &two),
            waits(&late, &other),
        ]
    };
    let mut graph = Graph::new();
    graph.set(&stack, edges(false));
    graph.set(&other, vec![waits(&other, &one)]);
    assert_eq!((graph.cycles(), graph.cycle_of_owner(&stack)), (vec![], None));
    assert_eq!(graph.root_causes(&part, &|_| true), Causes::default(), "what it makes itself is no cause");
    graph.set(&stack, edges(true));
    assert_eq!(graph.root_causes(&part, &|_| true).chains.len(), 1, "what it made is, until it is ready");
    graph.set(&other, vec![waits(&other, &two)]);
    let path = graph.cycle_of_owner(&stack).expect("a circle");
    assert_eq!(path.0, [two, late, other.clone()]);
    assert_eq!(graph.cycle_of_owner(&other), Some(path));
    assert_eq!(graph.cycle_of(&stack), None);
}

#[test]
fn set_tells_whose_cycle_changed() {
    let (a, b, c) = (ours("a"), ours("b"), ours("c"));
    let mut graph = graph([waits(&a, &b), waits(&c, &b)]);
    assert_eq!(graph.set(&b, vec![waits(&b, &a)]), set([&a, &b]));
    assert_eq!(graph.set(&b, vec![waits(&b, &a)]), set([]), "nothing changed");
    assert_eq!(graph.set(&b, vec![waits(&b, &a), waits(&b, &c)]), set([&a, &b, &c]), "it grew");
    assert_eq!(graph.set(&b, vec![waits(&b, &c)]), set([&a, &b, &c]), "it shrank");
    assert_eq!(graph.remove(&b), set([&b, &c]));
    assert_eq!(graph.remove(&b), set([]));
}

#[test]
fn another_cycle_downstream_is_not_reported_again() {
    let (a, b, c, d) = (ours("a"), ours("b"), ours("c"), ours("d"));
    let mut graph = graph([waits(&a, &b), waits(&b, &a)]);
    assert_eq!(graph.set(&c, vec![waits(&c, &a)]), set([]));
    assert_eq!(graph.set(&d, vec![waits(&d, &c)]), set([]));
    assert_eq!(graph.cycles().len(), 1);
}

#[test]
fn a_removed_owner_leaves_nothing_behind() {
    let (a, b) = (ours("a"), ours("b"));
    let mut graph = graph([waits(&a, &b)]);
    graph.remove(&a);
    assert_eq!(graph.nodes().count(), 0);
    assert_eq!(graph.edges(), []);
}

#[test]
fn an_owner_without_edges_is_still_there() {
    let mut graph = Graph::new();
    graph.set(&ours("a"), Vec::<Edge>::new());
    assert_eq!(graph.owners(), [&ours("a")]);
    assert_eq!(graph.levels(), [[ours("a")]]);
}

#[test]
fn the_shortest_way_round_is_spelled() {
    let [a, b, c, d] = ["a", "b", "c", "d"].map(ours);
    let edges = [waits(&a, &b), waits(&b, &c), waits(&c, &d), waits(&d, &a), waits(&d, &c)];
    let cycle = graph(edges).cycles().remove(0);
    assert_eq!(cycle.path.0, [c, d]);
    assert_eq!(cycle.members.len(), 4);
}

#[test]
fn levels_count_met_waits_and_members_of_a_cycle_share_one() {
    let [a, b, c, d] = ["a", "b", "c", "d"].map(ours);
    let made = plain("ConfigMap", "made");
    let edges = [has(&a, &b), waits(&b, &c), waits(&c, &b), has(&c, &d), waits(&d, &made), makes(&a, &made)];
    let graph = graph(edges);
    // a makes what d waits for, and waits for d through b: all but nothing is one knot.
    assert_eq!(graph.levels().len(), 1);
    let mut graph = graph;
    graph.set(&a, vec![has(&a, &b)]);
    assert_eq!(graph.levels(), [vec![made], vec![d], vec![b, c], vec![a]]);
}

#[test]
fn impact_lists_everybody_who_needs_it_nearest_first() {
    let [a, b, c] = ["a", "b", "c"].map(ours);
    let made = plain("ConfigMap", "made");
    let graph = graph([waits(&b, &a), has(&c, &b), makes(&b, &made)]);
    let impact: Vec<(Node, usize, bool)> = graph
        .impact(&a)
        .into_iter()
        .map(|dependent| (dependent.node, dependent.distance, dependent.held))
        .collect();
    assert_eq!(impact, [(b, 1, true), (made, 2, true), (c, 2, false)]);
}

#[test]
fn blockers_are_the_direct_unmet_waits() {
    let [a, b, c, d] = ["a", "b", "c", "d"].map(ours);
    let graph = graph([waits(&a, &c), waits(&a, &b), has(&a, &d)]);
    let blockers: Vec<Node> = graph.blockers(&a).into_iter().map(|(node, _)| node).collect();
    assert_eq!(blockers, [b, c]);
}

#[test]
fn what_only_has_its_turn_later_is_no_cause() {
    let [a, b, c] = ["a", "b", "c"].map(ours);
    let later = Wait::new(WaitState::Absent, "WaitingForTier");
    let edges = |first: Edge| [first, Edge::waits(a.clone(), c.clone(), later.clone())];
    let ends = |graph: Graph| -> Vec<Node> {
        let chains = graph.root_causes(&a, &|_| true).chains;
        chains.iter().map(|chain| chain.links.last().unwrap().node.clone()).collect()
    };
    assert_eq!(ends(graph(edges(waits(&a, &b)))), std::slice::from_ref(&b));
    assert_eq!(ends(graph(edges(has(&a, &b)))), std::slice::from_ref(&c), "it is all there is");
}

#[test]
fn a_chain_of_ten_thousand_needs_no_deep_stack() {
    let run = || {
        let node = |at: usize| ours(&format!("n{at:05}"));
        let mut graph = Graph::new();
        for at in 0..10_000 {
            graph.set(&node(at), vec![waits(&node(at), &node(at + 1))]);
        }
        assert_eq!(graph.levels().len(), 10_001);
        assert_eq!(graph.impact(&node(10_000)).len(), 10_000);
        let causes = graph.root_causes(&node(0), &|_| true);
        assert_eq!(causes.chains[0].links.last().unwrap().node, node(10_000));
        assert_eq!(causes.chains[0].links.len() + causes.chains[0].skipped, 10_000);
        graph.set(&node(10_000), vec![waits(&node(10_000), &node(0))]);
        assert_eq!(graph.cycles()[0].path.0.len(), 10_001);
        assert_eq!(graph.root_causes(&node(7), &|_| true).chains[0].links.len(), 0);
    };
    std::thread::Builder::new().stack_size(2 << 20).spawn(run).unwrap().join().unwrap();
}

/// A wait that gives way, of somebody made at this moment.
fn softly(from: &Node, to: &Node, age: i64) -> Edge {
    let wait = Wait { soft: Some(age), ..Wait::new(WaitState::InProgress, "NotReady") };
    Edge::waits(from.clone(), to.clone(), wait)
}

#[test]
fn s2_a_circle_with_a_soft_arc_is_broken_there_and_a_hard_one_is_named_in_its_members_alone() {
    let (a, b, c) = (ours("a"), ours("b"), ours("c"));
    let soft = graph([waits(&a, &b), softly(&b, &a, 1), waits(&c, &a)]);
    assert_eq!(soft.cycles(), []);
    assert_eq!(soft.broken_of_owner(&b), set([&a]));
    assert_eq!(soft.broken_of_owner(&a), set([]));
    let hard = graph([waits(&a, &b), waits(&b, &a), softly(&c, &a, 1), softly(&a, &c, 2)]);
    assert_eq!(hard.cycles().len(), 1);
    assert_eq!(hard.cycle_of_owner(&c), None, "its own arc is the older one and stays; that of a gives way");
    assert_eq!(hard.broken_of_owner(&a), set([&c]));
}

#[test]
fn of_soft_arcs_that_close_a_circle_the_oldest_stay_whatever_the_order_they_came_in() {
    let (a, b, c) = (ours("a"), ours("b"), ours("c"));
    let edges = [softly(&a, &b, 30), softly(&b, &c, 10), softly(&c, &a, 20)];
    for turn in 0..3 {
        let mut edges = edges.clone();
        edges.rotate_left(turn);
        let mut graph = Graph::new();
        for edge in edges {
            graph.set(&edge.from.clone(), [edge]);
        }
        assert_eq!(graph.cycles(), []);
        assert_eq!(graph.broken_of_owner(&a), set([&b]), "the youngest gives way");
        assert!(graph.broken_of_owner(&b).is_empty() && graph.broken_of_owner(&c).is_empty());
    }
}

#[test]
fn what_is_behind_a_node_goes_over_waits_and_makers_and_not_through_what_is_left_out() {
    let (rule, hook, mesh, base, other) =
        (ours("rule"), plain("Hook", "hook"), ours("mesh"), ours("base"), ours("other"));
    let graph = graph([waits(&rule, &hook), makes(&mesh, &hook), has(&mesh, &base), waits(&other, &rule)]);
    let mut all = set([&base, &mesh, &hook]);
    all.sort_unstable();
    assert_eq!(graph.behind(&rule, |_| true), all);
    assert_eq!(graph.behind(&rule, |node| *node != mesh), set([&hook]));
    assert_eq!(graph.makers(&hook), set([&mesh]));
    assert_eq!(graph.waiting_for(&rule), (1, 1));
}

#[test]
fn a_circle_that_is_there_opens_when_one_of_its_waits_becomes_soft_and_closes_again() {
    let (a, b) = (ours("a"), ours("b"));
    let mut graph = graph([waits(&a, &b), waits(&b, &a)]);
    assert_eq!(graph.cycles().len(), 1);
    graph.set(&b, [softly(&b, &a, 1)]);
    assert_eq!((graph.cycles().len(), graph.broken_of_owner(&b)), (0, set([&a])));
    graph.set(&b, [waits(&b, &a)]);
    assert_eq!(graph.cycles().len(), 1);
}
