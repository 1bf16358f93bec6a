//! How long the wait-for graph takes to follow one change at 10,000 nodes and 30,000 edges.

use divan::{Bencher, black_box};
use linchpin_engine::graph::{Edge, Graph, Node, Wait, WaitState};
use linchpin_words::{GroupKind, ObjectRef};

const NODES: u32 = 10_000;

fn main() {
    divan::main();
}

fn node(at: u32) -> Node {
    let kind = GroupKind::new("tools.kubestellar.io", "ResourceDependency");
    Node::here(ObjectRef::namespaced(kind, format!("team-{:02}", at % 50), format!("object-{at:05}")))
}

fn waits(from: u32, to: u32) -> Edge {
    Edge::waits(node(from), node(to), Wait::new(WaitState::InProgress, "NotReady"))
}

/// Each node waits for the one before it and for two picked by a fixed mixing of its number: 10,000 levels deep, and
/// everything above a node waits for it.
fn edges(at: u32) -> Vec<Edge> {
    let pick = |turn: u32| at.wrapping_mul(2_654_435_761).wrapping_add(turn * 40_503) % at.max(1);
    let targets = [at.saturating_sub(1), pick(1), pick(2)];
    targets.into_iter().filter(|&to| to < at).map(|to| waits(at, to)).collect()
}

fn graph() -> Graph {
    let mut graph = Graph::new();
    for at in 0..NODES {
        graph.set(&node(at), edges(at));
    }
    graph
}

#[divan::bench]
fn build_everything(bencher: Bencher<'_, '_>) {
    bencher.bench(graph);
}

/// A new object that waits for three: nobody waits for it yet.
#[divan::bench]
fn add_one_at_the_top(bencher: Bencher<'_, '_>) {
    let mut graph = graph();
    bencher.bench_local(|| {
        black_box(graph.set(&node(NODES), edges(NODES)));
        graph.remove(&node(NODES))
    });
}

/// An object in the middle gets another wait: much above it, much below it, no cycle.
#[divan::bench]
fn one_more_wait_in_the_middle(bencher: Bencher<'_, '_>) {
    let mut graph = graph();
    let middle = NODES / 2;
    let mut more = edges(middle);
    more.push(waits(middle, 7));
    bencher.bench_local(|| {
        black_box(graph.set(&node(middle), more.clone()));
        graph.set(&node(middle), edges(middle))
    });
}

/// The worst: the bottom waits for the top, so that all 10,000 become one cycle; then it is broken again.
#[divan::bench]
fn close_and_break_the_largest_cycle(bencher: Bencher<'_, '_>) {
    let mut graph = graph();
    bencher.bench_local(|| {
        black_box(graph.set(&node(0), vec![waits(0, NODES - 1)]));
        graph.set(&node(0), Vec::<Edge>::new())
    });
}

/// Spelling the largest cycle.
#[divan::bench]
fn spell_the_largest_cycle(bencher: Bencher<'_, '_>) {
    let mut graph = graph();
    graph.set(&node(0), vec![waits(0, NODES - 1)]);
    bencher.bench_local(|| graph.cycles());
}

/// The causes of a wait at the top, through the whole graph.
#[divan::bench]
fn root_causes_from_the_top(bencher: Bencher<'_, '_>) {
    let graph = graph();
    bencher.bench_local(|| graph.root_causes(&node(NODES - 1), &|_| true));
}

/// The order of everything.
#[divan::bench]
fn levels_of_everything(bencher: Bencher<'_, '_>) {
    let graph = graph();
    bencher.bench_local(|| graph.levels());
}
