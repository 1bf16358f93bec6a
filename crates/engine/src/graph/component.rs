//! Strongly connected components, without recursion.
//!
//! [`components`] is Tarjan's algorithm over any arcs; [`closed_set`] finds the part of a graph that a change can
//! have affected. Both know nothing of nodes and edges, so the tests can hold them against a plain reference.

/// The strongly connected components of everything reachable from `roots`, each after all that it can reach.
///
/// `arcs` appends the targets of one node; ids are below `bound`.
pub(super) fn components(
    bound: usize,
    roots: impl IntoIterator<Item = u32>,
    mut arcs: impl FnMut(u32, &mut Vec<u32>),
) -> Vec<Vec<u32>> {
    const UNSEEN: u32 = 0;
    const DONE: u32 = u32::MAX;
    struct Frame {
        node: u32,
        /// Where this node's targets begin in the shared list, and which is next.
        start: usize,
        next: usize,
        index: u32,
        low: u32,
    }
    let mut found = Vec::new();
    let mut index_of = vec![UNSEEN; bound];
    let mut counter = UNSEEN;
    let mut open: Vec<u32> = Vec::new();
    let mut frames: Vec<Frame> = Vec::new();
    // Targets of all nodes on the way down, one after another: a node's own are always the last ones.
    let mut targets: Vec<u32> = Vec::new();
    for root in roots {
        let mut enter = (index_of[root as usize] == UNSEEN).then_some(root);
        loop {
            if let Some(node) = enter.take() {
                counter += 1;
                index_of[node as usize] = counter;
                open.push(node);
                let start = targets.len();
                arcs(node, &mut targets);
                frames.push(Frame { node, start, next: start, index: counter, low: counter });
            }
            let Some(frame) = frames.last_mut() else { break };
            if let Some(&target) = targets.get(frame.next) {
                frame.next += 1;
                match index_of[target as usize] {
                    UNSEEN => enter = Some(target),
                    DONE => {}
                    index => frame.low = frame.low.min(index),
                }
                continue;
            }
            targets.truncate(frame.start);
            let (node, index, low) = (frame.node, frame.index, frame.low);
            frames.pop();
            if let Some(parent) = frames.last_mut() {
                parent.low = parent.low.min(low);
            }
            if low == index {
                let at = open.iter().rposition(|&member| member == node).unwrap_or(0);
                let component = open.split_off(at);
                for &member in &component {
                    index_of[member as usize] = DONE;
                }
                found.push(component);
            }
        }
    }
    found
}

/// All that `seeds` reach, or all that reaches `seeds`: whichever is found complete first, walking both in step.
///
/// Either set holds every component it touches in full, so components found inside it are those of the whole graph.
pub(super) fn closed_set<Forward, Backward>(
    bound: usize,
    seeds: impl IntoIterator<Item = u32>,
    forward: impl Fn(u32) -> Forward,
    backward: impl Fn(u32) -> Backward,
) -> Vec<u32>
where
    Forward: Iterator<Item = u32>,
    Backward: Iterator<Item = u32>,
{
    let mut ahead = Walk::new(bound, seeds);
    let mut behind = ahead.clone();
    loop {
        match ahead.next() {
            Some(node) => ahead.visit(forward(node)),
            None => return ahead.seen,
        }
        match behind.next() {
            Some(node) => behind.visit(backward(node)),
            None => return behind.seen,
        }
    }
}

/// A breadth-first walk that can be taken step by step.
#[derive(Clone)]
struct Walk {
    marked: Vec<bool>,
    seen: Vec<u32>,
    at: usize,
}

impl Walk {
    fn new(bound: usize, seeds: impl IntoIterator<Item = u32>) -> Self {
        let mut walk = Self { marked: vec![false; bound], seen: Vec::new(), at: 0 };
        walk.visit(seeds);
        walk
    }

    fn next(&mut self) -> Option<u32> {
        let node = self.seen.get(self.at).copied();
        self.at += 1;
        node
    }

    fn visit(&mut self, nodes: impl IntoIterator<Item = u32>) {
        for node in nodes {
            if !std::mem::replace(&mut self.marked[node as usize], true) {
                self.seen.push(node);
            }
        }
    }
}
