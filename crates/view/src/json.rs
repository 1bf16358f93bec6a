//! The picture as JSON, for programs.
//!
//! The shape is stable: fields may be added, none is renamed or removed while `schema` stays the same.
//!
//! ```json
//! {
//!   "schema": "linchpin.dev/picture/v1",
//!   "nodes": [{
//!     "id": "Job.batch db/migrate",       unique in the document and the same in every document
//!     "cluster": "east",                  left out: the cluster Linchpin runs in
//!     "group": "batch", "kind": "Job", "namespace": "db", "name": "migrate",
//!     "part": "crds",                     left out: the whole object
//!     "ours": false,                      whether it has a plan
//!     "state": "failed",                  ready, running, waiting, missing, unknown, failed, cycle
//!     "reason": "BackoffLimitExceeded", "detail": "…", "since": "2026-01-02T03:04:05Z",
//!     "level": 0                          place in the order of all plans; 0 needs nothing
//!   }],
//!   "edges": [{
//!     "from": "…", "to": "…",             `to` must come first
//!     "type": "waitsFor",                 waitsFor, madeBy
//!     "met": false,                       whether that is done
//!     "standing": "Failed",               waitsFor only: Met, InProgress, Absent, Unknown, Failed
//!     "reason": "…", "detail": "…", "since": "…",
//!     "own": true,                        waitsFor only: the one who waits also makes it
//!     "cycle": false
//!   }],
//!   "groups": [{"label": "cluster east", "members": ["…"]}],
//!   "cycles": [["…", "…"]]                each goes on from its last to its first
//! }
//! ```
//!
//! Empty texts, unknown times and `false` values of `own` and `cycle` are left out.

use jiff::Timestamp;
use linchpin_engine::graph::{Node, WaitState};
use serde::Serialize;

use crate::picture::{ArrowReason, Picture, PictureState};

/// The name and version of the shape.
pub const SCHEMA: &str = "linchpin.dev/picture/v1";

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    nodes: Vec<NodeEntry<'a>>,
    edges: Vec<EdgeEntry<'a>>,
    groups: Vec<GroupEntry<'a>>,
    cycles: Vec<Vec<String>>,
}

#[derive(Serialize)]
struct NodeEntry<'a> {
    id: &'a str,
    #[serde(flatten)]
    node: &'a Node,
    ours: bool,
    state: PictureState,
    #[serde(flatten)]
    why: Why<'a>,
    level: usize,
}

#[derive(Serialize)]
struct Why<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    reason: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    detail: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<Timestamp>,
}

#[derive(Serialize)]
struct EdgeEntry<'a> {
    from: &'a str,
    to: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
    met: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    standing: Option<WaitState>,
    #[serde(flatten)]
    why: Option<Why<'a>>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    own: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    cycle: bool,
}

#[derive(Serialize)]
struct GroupEntry<'a> {
    label: &'a str,
    members: Vec<&'a str>,
}

/// The picture as a JSON value of the shape above.
pub fn value(picture: &Picture) -> serde_json::Value {
    let ids: Vec<String> = picture.items.iter().map(|item| id(&item.node)).collect();
    let document = Document {
        schema: SCHEMA,
        nodes: picture
            .items
            .iter()
            .zip(&ids)
            .map(|(item, id)| NodeEntry {
                id,
                node: &item.node,
                ours: item.ours,
                state: item.state,
                why: Why { reason: &item.reason, detail: &item.detail, since: item.since },
                level: item.level,
            })
            .collect(),
        edges: picture
            .arrows
            .iter()
            .map(|arrow| {
                let (kind, standing, why, own) = match &arrow.need {
                    ArrowReason::Wait { wait, own } => {
                        let why = Why { reason: &wait.reason, detail: &wait.detail, since: wait.since };
                        ("waitsFor", Some(wait.state), Some(why), *own)
                    }
                    ArrowReason::MadeBy { .. } => ("madeBy", None, None, false),
                };
                let (from, to) = (&ids[arrow.from], &ids[arrow.to]);
                EdgeEntry { from, to, kind, met: arrow.need.met(), standing, why, own, cycle: arrow.cycle }
            })
            .collect(),
        groups: picture
            .groups
            .iter()
            .map(|group| GroupEntry {
                label: &group.label,
                members: group.members.iter().map(|&at| ids[at].as_str()).collect(),
            })
            .collect(),
        cycles: picture.cycles.iter().map(|path| path.0.iter().map(id).collect()).collect(),
    };
    // All keys are strings and all values plain, so there is nothing that could fail.
    serde_json::to_value(document).unwrap_or_default()
}

/// The picture as JSON text, indented, with a final newline.
pub fn render(picture: &Picture) -> String {
    format!("{:#}\n", value(picture))
}

/// A name for a node that no other node has: `Job.batch db/migrate`, `DependencyGroup.tools… shop/stack[crds]@east`.
pub fn id(node: &Node) -> String {
    let kind = &node.object.kind;
    let shown = node.to_string();
    format!("{kind}{}", shown.get(kind.kind.len()..).unwrap_or_default())
}
