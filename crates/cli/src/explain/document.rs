//! An explanation for programs: `linchpin.dev/explain/v1`.
//!
//! Fields are added, never renamed, within a version. Empty texts are left out.

use jiff::Timestamp;
use linchpin_engine::graph::{Node, WaitState};
use linchpin_view::json::id;
use serde::Serialize;
use serde_json::Value;

use super::{
    Explanation,
    beyond::{LinkKind, LongChain},
    hints::Hint,
};

/// The name and version of the shape.
const SCHEMA: &str = "linchpin.dev/explain/v1";

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    id: String,
    state: &'static str,
    answer: &'a str,
    chains: Vec<ChainEntry>,
    events: Vec<EventEntry>,
    hints: &'a [Hint],
}

#[derive(Serialize)]
struct ChainEntry {
    links: Vec<LinkEntry>,
    #[serde(skip_serializing_if = "Option::is_none")]
    root: Option<LinkEntry>,
}

#[derive(Serialize, Clone)]
struct LinkEntry {
    id: String,
    relation: LinkKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<WaitState>,
    #[serde(skip_serializing_if = "String::is_empty")]
    reason: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<Timestamp>,
}

/// An Event as it is shown.
#[derive(Serialize, Debug, Clone, PartialEq, Eq)]
pub(super) struct EventEntry {
    pub(super) id: String,
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) reason: String,
    pub(super) message: String,
    pub(super) at: String,
    pub(super) count: i64,
}

/// The document of an explanation.
pub(super) fn render(explanation: &Explanation) -> String {
    let document = Document {
        schema: SCHEMA,
        id: id(&explanation.node),
        state: explanation.state.word(),
        answer: &explanation.answer,
        chains: explanation.chains.iter().map(chain).collect(),
        events: explanation.events.clone(),
        hints: explanation.hint.as_slice(),
    };
    let mut text = serde_json::to_string_pretty(&document).unwrap_or_default();
    text.push('\n');
    text
}

fn chain(long: &LongChain) -> ChainEntry {
    let links = long.chain.links.iter().zip(&long.kinds).map(|(link, relation)| {
        let mut entry = LinkEntry {
            id: id(&link.node),
            relation: *relation,
            state: None,
            reason: String::new(),
            message: String::new(),
            since: None,
        };
        if let linchpin_engine::graph::Hop::WaitsFor(wait) = &link.hop {
            entry.state = Some(wait.state);
            (entry.reason, entry.message) = (wait.reason.to_string(), wait.detail.to_string());
            entry.since = wait.since;
        }
        entry
    });
    let links: Vec<LinkEntry> = links.collect();
    ChainEntry { root: links.last().cloned(), links }
}

/// The newest Events about an object, warnings first, five at most.
pub(super) fn newest(node: &Node, events: &[Value]) -> Vec<EventEntry> {
    const SHOWN: usize = 5;
    let text = |event: &Value, path: &str| {
        event.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let mut entries: Vec<EventEntry> = events
        .iter()
        .map(|event| {
            let times = ["/series/lastObservedTime", "/lastTimestamp", "/eventTime"];
            EventEntry {
                id: id(node),
                kind: text(event, "/type"),
                reason: text(event, "/reason"),
                message: text(event, "/message"),
                at: times.iter().map(|path| text(event, path)).find(|at| !at.is_empty()).unwrap_or_default(),
                count: event.get("count").and_then(Value::as_i64).unwrap_or(1).max(1),
            }
        })
        .collect();
    entries.sort_by(|one, other| {
        (one.kind != "Warning").cmp(&(other.kind != "Warning")).then_with(|| other.at.cmp(&one.at))
    });
    entries.truncate(SHOWN);
    entries
}

#[cfg(test)]
mod tests {
    use linchpin_words::{GroupKind, ObjectRef};
    use serde_json::json;

    use super::*;

    #[test]
    fn events_are_the_newest_and_warnings_come_first() {
        let node = Node::here(ObjectRef::namespaced(GroupKind::new("", "Pod"), "shop", "web"));
        let event = |kind: &str, at: &str| json!({"type": kind, "reason": at, "lastTimestamp": at});
        let events: Vec<Value> = [("Normal", "9"), ("Warning", "1"), ("Warning", "2"), ("Normal", "3")]
            .iter()
            .chain([("Normal", "4"), ("Normal", "5")].iter())
            .map(|(kind, at)| event(kind, at))
            .collect();
        let shown: Vec<String> = newest(&node, &events).into_iter().map(|event| event.reason).collect();
        assert_eq!(shown, ["2", "1", "9", "5", "4"]);
    }
}
