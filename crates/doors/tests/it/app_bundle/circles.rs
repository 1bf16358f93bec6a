//! Bundles that wait for what the others make: what the engine itself tells the wait-for graph.

use linchpin_doors::AppBundleDoor;
use linchpin_engine::graph::{Graph, Node};
use linchpin_words::{GroupKind, ObjectRef};

use super::map;
use crate::stage::Stage;

fn node(name: &str) -> Node {
    let kind = GroupKind::new("app.example.com", "AppBundle");
    Node::here(ObjectRef { kind, namespace: Some("own".into()), name: name.into() })
}

/// The graph over these bundles, each as the engine sees it once nothing more can be done.
fn graph(bundles: &[(&str, String)]) -> Graph {
    let mut graph = Graph::new();
    for (name, spec) in bundles {
        let mut stage: Stage<AppBundleDoor> = Stage::new(&format!(
            "{{apiVersion: app.example.com/v1alpha1, kind: AppBundle, metadata: {{name: {name}}}, spec: {spec}}}"
        ));
        stage.settle();
        graph.set(&node(name), &stage.decision.expect("settled before").report.edges);
    }
    graph
}

/// The way round that a bundle is told about.
fn circle(graph: &Graph, name: &str) -> Option<String> {
    graph.cycle_of_owner(&node(name)).map(|path| path.to_string())
}

#[test]
fn a_circle_through_what_is_made_is_found_on_whatever_level_it_is_required() {
    let left = map("left", "");
    for spec in [
        format!("{{requires: [{{resource: cm/right}}], groups: [{{name: a, components: [{left}]}}]}}"),
        format!("{{groups: [{{name: a, requires: [{{resource: cm/right}}], components: [{left}]}}]}}"),
        format!(
            "{{groups: [{{name: a, components: [{}]}}]}}",
            map("left", ", requires: [{resource: cm/right}]")
        ),
        format!(
            "{{groups: [{{name: a, components: [{}, {left}]}}]}}",
            map("first", ", requires: [{resource: cm/right}]")
        ),
        format!(
            "{{groups: [{{name: before, components: [{}]}}, {{name: a, components: [{left}]}}]}}",
            map("first", ", requires: [{resource: cm/right}]")
        ),
    ] {
        let right = format!(
            "{{requires: [{{resource: cm/left}}], groups: [{{name: b, components: [{}]}}]}}",
            map("right", "")
        );
        let graph = graph(&[("left", spec.clone()), ("right", right)]);
        for name in ["left", "right"] {
            let told = circle(&graph, name).unwrap_or_else(|| panic!("{name} is told nothing of {spec}"));
            for part in ["AppBundle own/left[a]", "ConfigMap own/left", "ConfigMap own/right", "own/right[b]"]
            {
                assert!(told.contains(part), "{told}");
            }
        }
    }
}

#[test]
fn what_another_component_of_the_group_waits_for_is_no_circle() {
    let left = format!(
        "{{groups: [{{name: a, components: [{}, {}]}}]}}",
        map("left", ", order: 1, requires: [{resource: cm/elsewhere}]"),
        map("other", ", order: 1, requires: [{resource: cm/right}]")
    );
    let right = format!(
        "{{groups: [{{name: b, components: [{}]}}]}}",
        map("right", ", requires: [{resource: cm/left}]")
    );
    let graph = graph(&[("left", left), ("right", right)]);
    assert_eq!(graph.cycles(), []);
    assert_eq!((circle(&graph, "left"), circle(&graph, "right")), (None, None));
}

#[test]
fn what_is_no_gate_may_require_what_comes_later() {
    let spec = |gate: &str| {
        format!(
            "{{groups: [{{name: a, components: [{}]}}, {{name: b, requires: [{{resource: cm/held}}], components: [{}]}}]}}",
            map("early", &format!(", requires: [{{resource: cm/late}}]{gate}")),
            map("late", "")
        )
    };
    assert_eq!(circle(&graph(&[("shop", spec(", gate: false"))]), "shop"), None);
    let told = circle(&graph(&[("shop", spec(""))]), "shop").expect("a circle");
    assert_eq!(
        told,
        "ConfigMap own/early → AppBundle own/shop[a] → ConfigMap own/late → AppBundle own/shop[b] → ConfigMap own/early"
    );
}
