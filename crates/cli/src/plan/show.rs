//! What `linchpin plan` prints: a line for each dependency, the order, circles.

use linchpin_api::Sync;
use linchpin_engine::graph::{Edge, Graph, Node, Wait, WaitState};
use linchpin_words::text::line_of;

use super::link::{DependencyLink, LinkVerdict, PlanManifests, sync_ref};

impl PlanManifests {
    /// All of it for people: a line for each dependency, the order, circles.
    pub(super) fn shown(&self, links: &[DependencyLink]) -> String {
        let mut out = String::new();
        for link in links {
            let place = format!("{}/{}", link.sync.namespace.as_deref().unwrap_or_default(), link.sync.name);
            let (word, why) = match &link.verdict {
                LinkVerdict::Ok(why) => ("ok  ", format!(" ({why})")),
                LinkVerdict::None => ("none", String::new()),
                LinkVerdict::Unknown(why) => ("?   ", format!(" (cannot tell: {why})")),
            };
            add(&mut out, &format!("{word} {place}  {}  {}{why}", link.name, link.what));
        }
        let edges_of = |sync: &Sync| -> (Node, Vec<Edge>) {
            let namespace = sync.metadata.namespace.as_deref().unwrap_or_default();
            let node = Node::here(sync_ref(namespace, sync.metadata.name.as_deref().unwrap_or_default()));
            let edges: Vec<Edge> = links
                .iter()
                .filter(|link| link.sync == *node.object)
                .filter_map(|link| {
                    let wait = Wait { soft: link.soft.then_some(0), ..Wait::new(WaitState::InProgress, "") };
                    Some(Edge::waits(node.clone(), Node::here(link.to.clone()?), wait))
                })
                .collect();
            (node, edges)
        };
        let arcs: Vec<(Node, Vec<Edge>)> = self.syncs.iter().map(edges_of).collect();
        let (mut graph, mut order) = (Graph::new(), Graph::new());
        for (node, edges) in &arcs {
            graph.set(node, edges);
        }
        // Soft arcs that give way are no part of the order.
        for (node, mut edges) in arcs {
            let broken = graph.broken_of_owner(&node);
            edges.retain(|edge| !broken.contains(&edge.to));
            order.set(&node, &edges);
        }
        for (index, level) in order.levels().iter().enumerate() {
            let names: Vec<String> = level
                .iter()
                .map(|node| {
                    format!("{}/{}", node.object.namespace.as_deref().unwrap_or_default(), node.object.name)
                })
                .collect();
            add(&mut out, &format!("layer {}: {}", index + 1, names.join(", ")));
        }
        for owner in graph.owners() {
            for broken in graph.broken_of_owner(owner) {
                add(&mut out, &format!("circle: {owner} → {broken} gives way (soft)"));
            }
        }
        for cycle in graph.cycles() {
            add(&mut out, &format!("circle: {} (hard: none of them is applied)", cycle.path));
        }
        out
    }
}

/// Adds a line: names come from files, where anybody may have written them.
fn add(out: &mut String, line: &str) {
    out.push_str(&line_of(line, usize::MAX));
    out.push('\n');
}
