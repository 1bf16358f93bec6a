//! What the graph is made of: nodes, edges and the paths through them.
//!
//! Plain values with a total order and a text form. Everything visible that the graph returns is sorted by the
//! order of [`Node`], so that the same edges always read the same, whatever the order they arrived in.

use std::fmt;

use jiff::Timestamp;
use linchpin_words::{ObjectRef, Reason, Shared, Text};
use serde::{Deserialize, Serialize};

/// One thing that waits, is waited for, or is made: an object, or one part of an object of ours. Cheap to clone.
///
/// Shown as `Deployment shop/web`, `DependencyGroup shop/stack[crds]`, `Job db/migrate@east`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Node {
    /// The cluster it lives in; none for the cluster Linchpin runs in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<Text>,
    /// The object.
    #[serde(flatten)]
    pub object: Shared<ObjectRef>,
    /// A part of the object that others can wait for on its own, such as one group of a DependencyGroup.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<Text>,
    /// Those actions of a part that come after the same steps, counted from 1; 0 is the part itself. They wait for less
    /// than the whole part does, so what they make is in a circle only if they are. Not shown: people know the part.
    #[serde(skip)]
    pub batch: u32,
}

impl Node {
    /// An object in the cluster Linchpin runs in.
    pub fn here(object: impl Into<Shared<ObjectRef>>) -> Self {
        Self { cluster: None, object: object.into(), part: None, batch: 0 }
    }

    /// The same object in another cluster.
    #[must_use]
    pub fn in_cluster(mut self, cluster: impl Into<Text>) -> Self {
        self.cluster = Some(cluster.into());
        self
    }

    /// A part of this object.
    #[must_use]
    pub fn part(mut self, part: impl Into<Text>) -> Self {
        self.part = Some(part.into());
        self
    }

    /// One batch of this part, or the part itself.
    #[must_use]
    pub fn batch(&self, batch: u32) -> Self {
        Self { batch, ..self.clone() }
    }

    /// The object this is a part of, or itself.
    #[must_use]
    pub fn whole(&self) -> Self {
        Self { part: None, batch: 0, ..self.clone() }
    }
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.object)?;
        if let Some(part) = &self.part {
            write!(f, "[{part}]")?;
        }
        match &self.cluster {
            Some(cluster) => write!(f, "@{cluster}"),
            None => Ok(()),
        }
    }
}

/// The state of what is waited for, from good to bad: the larger, the more it deserves attention.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum WaitState {
    /// The wait is over: the required state was observed.
    Met,
    /// It is there and on its way.
    InProgress,
    /// It is known not to be there.
    Absent,
    /// It cannot be seen: first list not complete, forbidden, unreachable.
    Unknown,
    /// It has settled in a state that will not become the required one by itself.
    Failed,
}

/// A wait of one node for another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Wait {
    /// The state of the target against what is required of it.
    pub state: WaitState,
    /// Why, as one CamelCase word.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub reason: Text,
    /// Since when it is in that state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// Why, in words for a person; may be empty.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub detail: Text,
    /// Where the target is one of the objects that a selector has found: the selector, as people are shown it.
    #[serde(skip)]
    pub selection: Option<Text>,
    /// Of a wait that gives way where it would close a circle: when the one that waits was made. The oldest keeps its wait.
    #[serde(skip)]
    pub soft: Option<i64>,
}

/// Whether a reason says no more than that something has its turn later.
pub fn is_in_line(reason: &str) -> bool {
    [Reason::WaitingForTier, Reason::WaitingForGroup, Reason::WaitingForStep]
        .iter()
        .any(|later| later.as_str() == reason)
}

impl Wait {
    /// A wait with a reason and nothing else known.
    pub fn new(state: WaitState, reason: impl Into<Text>) -> Self {
        Self {
            state,
            reason: reason.into(),
            since: None,
            detail: Text::default(),
            selection: None,
            soft: None,
        }
    }

    /// The same wait with words for a person.
    #[must_use]
    pub fn detail(mut self, detail: impl Into<Text>) -> Self {
        self.detail = detail.into();
        self
    }

    /// The same wait with its start.
    #[must_use]
    pub fn since(mut self, since: Timestamp) -> Self {
        self.since = Some(since);
        self
    }

    /// Whether the wait is over.
    pub fn met(&self) -> bool {
        self.state == WaitState::Met
    }

    /// What is waited for is not as it should be, and holds nothing up: the wait is over.
    pub fn is_let_through(&mut self) {
        (self.state, self.reason) = (WaitState::Met, Reason::DependencyLost.as_str().into());
    }

    /// Whether the wait is over although what is waited for is not as it should be: nothing says that it is there.
    pub fn was_let_through(&self) -> bool {
        self.met() && self.reason == Reason::DependencyLost.as_str()
    }
}

/// What an [`Edge`] says about its two ends.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Relation {
    /// `from` makes no further step until `to` is in the required state.
    WaitsFor(Wait),
    /// `from` writes `to`. Until it is done, everything that waits for `to` waits for `from`.
    Produces {
        /// Whether it was written.
        done: bool,
    },
}

/// One statement about two nodes, contributed by the object whose plan it comes from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Edge {
    /// The dependent, or the producer.
    pub from: Node,
    /// What is waited for, or what is produced.
    pub to: Node,
    /// Which of the two.
    pub relation: Relation,
}

impl Edge {
    /// `from` waits for `to`.
    pub fn waits(from: Node, to: Node, wait: Wait) -> Self {
        Self { from, to, relation: Relation::WaitsFor(wait) }
    }

    /// `from` produces `to`.
    pub fn produces(from: Node, to: Node, done: bool) -> Self {
        Self { from, to, relation: Relation::Produces { done } }
    }
}

/// A closed way through the graph, smallest node first; the first node is not repeated at the end.
///
/// Shown closed: `a → b → a`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CyclePath(pub Vec<Node>);

impl fmt::Display for CyclePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for node in &self.0 {
            write!(f, "{node} → ")?;
        }
        self.0.first().map_or(Ok(()), |first| write!(f, "{first}"))
    }
}

/// Nodes that all wait for each other: none of them can go on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Cycle {
    /// A short way round, smallest node first.
    pub path: CyclePath,
    /// Everything that is on some way round, sorted.
    pub members: Vec<Node>,
}
