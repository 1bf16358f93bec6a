//! What a dependency says about a transition that it does not hold: one that is over, another one, or none.

use linchpin_engine::graph::{Edge, Graph, Node, Relation};
use linchpin_words::{GroupKind, ObjectRef};
use serde_json::json;

use super::{map, shown, stage};

/// A Sync of these ConfigMaps with these dependencies.
fn depending(maps: &[&str], dependencies: &str) -> String {
    let maps: Vec<String> = maps.iter().map(|name| map(name)).collect();
    format!("{{source: {{objects: [{}]}}, dependencies: [{dependencies}]}}", maps.join(", "))
}

#[test]
fn what_a_synced_sync_relies_on_is_known_also_where_it_is_not_there() {
    let mut stage = stage(&depending(&["a"], ""));
    stage.settle();
    let entry = json!([{"name": "t", "object": {"resource": "secret/token"}},
        {"name": "d", "object": {"resource": "secret/late"}, "gates": ["Delete"]}]);
    stage.edit(|object| object["spec"]["dependencies"] = entry).settle();
    let edges: Vec<Edge> = stage.report().edges.clone();
    for name in ["token", "late"] {
        let secret = Node::here(ObjectRef::namespaced(GroupKind::new("", "Secret"), "own", name));
        let relation = edges.iter().find(|edge| edge.to == secret).map(|edge| &edge.relation);
        let Some(Relation::WaitsFor(wait)) = relation else { panic!("{name}: {edges:?}") };
        assert!(wait.met(), "it holds nothing");
        let mut graph = Graph::new();
        graph.set(&edges[0].from.whole(), edges.clone());
        assert_eq!(graph.waiting_for(&secret), (1, 0), "one relies on it, and is not held");
        assert_eq!(graph.blockers(&edges[0].from), []);
    }
    let status = shown(&mut stage);
    assert_eq!(status["phase"], "Synced");
    assert!(!status["edges"].to_string().contains("token"), "nobody waits for it: {}", status["edges"]);
}
