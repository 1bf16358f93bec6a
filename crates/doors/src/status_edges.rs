//! An object's edges of the wait-for graph in its status: one text.
//!
//! They are the edges that the engine reports, no more and no less than a reader of objects needs
//! (`linchpin tree`, `linchpin explain`): what the object itself waits for and makes. What is behind that is in the
//! statuses of the others, so the text does not grow with a chain. Waits that are over and products that are made carry
//! no words; a selection is one edge, however many objects it finds; and there is a largest size
//! ([`limits::EDGE_BYTES`]), within which what is still open comes first.

use linchpin_engine::graph::{Edge, Node, Relation, Wait, WaitState};
use linchpin_words::{GroupKind, ObjectRef, Text, Timestamp, limits, text};
use serde::{Deserialize, Serialize};

/// One edge as it is written. Exactly one of `state` and `made` is there.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct EdgeLine {
    /// The part of the object that it starts at, and the batch of that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    part: Option<Text>,
    #[serde(default, skip_serializing_if = "is_zero")]
    batch: u32,
    to: EdgeTarget,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    state: Option<WaitState>,
    #[serde(default, skip_serializing_if = "str::is_empty")]
    reason: Text,
    #[serde(default, skip_serializing_if = "str::is_empty")]
    message: Text,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    since: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    made: Option<bool>,
}

/// What an edge leads to.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct EdgeTarget {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    group: String,
    kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    namespace: Option<String>,
    name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    part: Option<Text>,
    #[serde(default, skip_serializing_if = "is_zero")]
    batch: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cluster: Option<Text>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// The edges as a status holds them; none where there are none.
pub fn write(edges: &[Edge]) -> Option<String> {
    let (open, over): (Vec<&Edge>, Vec<&Edge>) =
        edges.iter().filter(|edge| is_shown(edge)).partition(|edge| is_open(edge));
    let mut text = String::new();
    let mut last = String::new();
    for edge in open.into_iter().chain(over) {
        let Ok(line) = serde_json::to_string(&EdgeLine::of(edge)) else { continue };
        // The objects of a selection are written alike.
        if line == last {
            continue;
        }
        if text.len() + line.len() + 2 > limits::EDGE_BYTES {
            break;
        }
        text.push(if text.is_empty() { '[' } else { ',' });
        text.push_str(&line);
        last = line;
    }
    (!text.is_empty()).then(|| text + "]")
}

/// The edges in a status of this object. What cannot be read, or is larger than any we write, is none: a user who may
/// write a status may write anything here. It says of nobody but its owner what it waits for and makes, and nothing
/// acts on it.
pub fn read(owner: &Node, text: Option<&str>) -> Vec<Edge> {
    let text = text.filter(|text| text.len() <= limits::EDGE_BYTES);
    let lines: Vec<EdgeLine> = text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    lines.into_iter().filter_map(|line| line.edge(owner)).collect()
}

/// A batch's waits that are over add nothing: its part has them too. What is not there and holds nothing up is no wait to
/// be shown.
fn is_shown(edge: &Edge) -> bool {
    match &edge.relation {
        Relation::WaitsFor(wait) => !wait.was_let_through() && (edge.from.batch == 0 || is_open(edge)),
        Relation::Produces { .. } => true,
    }
}

fn is_open(edge: &Edge) -> bool {
    match &edge.relation {
        Relation::WaitsFor(wait) => !wait.met(),
        Relation::Produces { done } => !done,
    }
}

/// A text on one line, without what a terminal would obey.
fn shown(said: impl AsRef<str>) -> Text {
    text::line(said.as_ref()).into()
}

impl EdgeLine {
    fn of(edge: &Edge) -> Self {
        let Node { cluster, object, part, batch } = &edge.to;
        let mut line = Self {
            part: edge.from.part.clone(),
            batch: edge.from.batch,
            to: EdgeTarget {
                group: object.kind.group.clone(),
                kind: object.kind.kind.clone(),
                namespace: object.namespace.clone(),
                name: object.name.clone(),
                part: part.clone(),
                batch: *batch,
                cluster: cluster.clone(),
            },
            state: None,
            reason: Text::default(),
            message: Text::default(),
            since: None,
            made: None,
        };
        match &edge.relation {
            Relation::Produces { done } => line.made = Some(*done),
            Relation::WaitsFor(wait) => {
                line.state = Some(wait.state);
                if let Some(selection) = &wait.selection {
                    line.to.name = selection.to_string();
                }
                if !wait.met() {
                    line.reason = wait.reason.clone();
                    line.message = text::line(&wait.detail).into();
                    line.since = wait.since.map(Into::into);
                }
            }
        }
        line
    }

    fn edge(self, owner: &Node) -> Option<Edge> {
        let from = Node { part: self.part.map(shown), batch: self.batch, ..owner.clone() };
        let EdgeTarget { group, kind, namespace, name, part, batch, cluster } = self.to;
        let kind = GroupKind::new(text::line(&group), text::line(&kind));
        let namespace = namespace.map(|namespace| text::line(&namespace));
        let object = ObjectRef { kind, namespace, name: text::line(&name) };
        let to = Node { cluster: cluster.map(shown), part: part.map(shown), batch, ..Node::here(object) };
        if let Some(done) = self.made {
            return Some(Edge::produces(from, to, done));
        }
        let mut wait = Wait::new(self.state?, shown(self.reason)).detail(shown(self.message));
        wait.since = self.since.map(Into::into);
        Some(Edge::waits(from, to, wait))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str) -> Node {
        Node::here(ObjectRef::namespaced(GroupKind::new("apps", "Deployment"), "shop", name))
    }

    fn open(name: &str) -> Edge {
        let wait = Wait::new(WaitState::InProgress, "NotReady").detail("0 of 1 are ready");
        Edge::waits(node("owner"), node(name), wait)
    }

    #[test]
    fn edges_are_read_as_they_were_written() {
        let owner = node("owner");
        let batch = owner.clone().part("data").batch(2);
        let edges = [
            open("a"),
            Edge::waits(
                batch.clone(),
                owner.clone().part("data").batch(1),
                Wait::new(WaitState::Absent, "x"),
            ),
            Edge::produces(batch, node("b").in_cluster("east"), false),
            Edge::waits(owner.clone(), node("c").part("one"), Wait::new(WaitState::Met, "")),
        ];
        assert_eq!(read(&owner, write(&edges).as_deref()), edges);
        assert_eq!(write(&[]), None);
        assert_eq!(read(&owner, Some("[{")), []);
        assert_eq!(
            read(&owner, Some(r#"[{"to":{"kind":"A","name":"b"}}]"#)),
            [],
            "neither a wait nor a product"
        );
    }

    #[test]
    fn what_somebody_else_wrote_there_is_about_its_owner_alone_and_moves_no_terminal() {
        let forged = r#"[{"part":"p\u001b[2J","to":{"group":"g\n","kind":"K\u0007","namespace":"n\r","name":"a\u001b]0;x",
            "part":"q\t","cluster":"c\u009b"},"state":"Absent","reason":"r\u001b","message":"first\nsecond\u001b[31m"},
            {"to":{"kind":"Deployment","name":"web"},"made":false,"from":{"kind":"Other","name":"other"}}]"#;
        let edges = read(&node("owner"), Some(forged));
        assert_eq!(edges.len(), 2);
        for edge in &edges {
            assert_eq!(edge.from.whole(), node("owner"), "it says nothing of others");
            let words = match &edge.relation {
                Relation::WaitsFor(wait) => format!("{} {}", wait.reason, wait.detail),
                Relation::Produces { .. } => String::new(),
            };
            let said = format!("{} {} {words}", edge.from, edge.to);
            assert!(!said.chars().any(char::is_control), "{said:?}");
        }
        let large = format!("[{}]", vec![r#"{"to":{"kind":"A","name":"b"},"made":true}"#; 3_000].join(","));
        assert!(large.len() > limits::EDGE_BYTES);
        assert_eq!(read(&node("owner"), Some(&large)), []);
    }

    #[test]
    fn what_is_over_has_no_words_and_a_selection_is_one_edge() {
        let words = Wait::new(WaitState::Met, "Ready").detail("1 of 1 are ready");
        let text = write(&[Edge::waits(node("owner"), node("a"), words)]).expect("an edge");
        assert!(!text.contains("Ready") && !text.contains("1 of 1"), "{text}");
        let chosen = |name: &str| {
            let wait = Wait { selection: Some("[app=db]".into()), ..Wait::new(WaitState::InProgress, "x") };
            Edge::waits(node("owner"), node(name), wait)
        };
        let edges = read(&node("owner"), write(&[chosen("a"), chosen("b")]).as_deref());
        assert_eq!(
            edges.iter().map(|edge| edge.to.to_string()).collect::<Vec<_>>(),
            ["Deployment shop/[app=db]"]
        );
    }

    #[test]
    fn the_text_has_a_largest_size_and_what_is_open_comes_first() {
        let over = |count: usize| {
            (0..count).map(|index| Edge::produces(node("owner"), node(&format!("n{index}")), true))
        };
        let edges: Vec<Edge> = over(10_000).chain([open("late")]).collect();
        let text = write(&edges).expect("edges");
        assert!(text.len() <= limits::EDGE_BYTES, "{}", text.len());
        let found = read(&node("owner"), Some(&text));
        assert_eq!(found[0], open("late"));
        assert!(found.len() > 100 && found.len() < 10_000, "{}", found.len());
    }
}
