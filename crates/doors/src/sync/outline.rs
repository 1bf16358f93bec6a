//! A Sync as it was compiled: what its status is drawn from. The plan carries it
//! ([`Notes`](linchpin_engine::plan::Notes)).

use std::fmt;

use linchpin_api::{
    app_bundle::status::ResourceRef,
    sync::{NeededFor, Strength, status::SourceStatus},
};
use linchpin_engine::{contract::StepId, plan::Plan, readiness::Wanted};
use linchpin_words::{ObjectRef, Reason};

use crate::door::Backing;

/// A whole Sync.
#[derive(Clone, Debug, Default)]
pub(crate) struct SyncOutline {
    pub source: SourceStatus,
    /// Why there may be a newer revision that could not be read.
    pub stale: Option<(Reason, String)>,
    pub dependencies: Vec<DependencyOutline>,
    /// The rules that are imposed on it, by name.
    pub globals: Vec<DependencyOutline>,
    pub objects: Vec<ObjectOutline>,
    pub exports: Vec<ExportOutline>,
    /// What of its objects serves webhooks.
    pub backing: Backing,
}

/// One dependency.
#[derive(Clone, Debug)]
pub(crate) struct DependencyOutline {
    pub name: String,
    pub step: StepId,
    /// What it is, as people are shown it.
    pub depends_on: String,
    pub relation: Relation,
    pub strength: Strength,
    pub what: What,
    /// The object it is about, where it is one.
    pub object: Option<ObjectRef>,
    /// Whether being met once is enough.
    pub latches: bool,
    /// Whether it holds any transition of this Sync.
    pub gates: bool,
    /// Whether what it is about waits for itself, or for what does.
    pub cyclic: bool,
    /// Where it is, in the document's word, as far as it says more than whether it is ready.
    pub shown_state: Option<&'static str>,
    pub observed_revision: Option<String>,
    pub observed_version: Option<String>,
}

/// The state of the dependency, and the transition that relies on it.
#[derive(Clone, Debug)]
pub(crate) struct Relation {
    pub state: Wanted,
    pub needed_for: NeededFor,
}

impl fmt::Display for Relation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ← {}", state_word(&self.state), self.needed_for.as_str())
    }
}

/// The document's word for a state that is relied on.
pub(crate) fn state_word(wanted: &Wanted) -> String {
    match wanted {
        Wanted::Exists => "Defined".to_owned(),
        Wanted::Ready => "Available".to_owned(),
        other => other.to_string(),
    }
}

/// What a dependency is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Sync,
    /// One export of a Sync.
    Export,
    Object,
    Objects,
    Capability,
    /// An object of the Sync itself.
    Own,
    /// A rule.
    Global,
}

/// One object.
#[derive(Clone, Debug)]
pub(crate) struct ObjectOutline {
    pub reference: ResourceRef,
    pub act: StepId,
    /// The step that waits until it is ready; none where it does not count.
    pub ready: Option<StepId>,
    pub layer: usize,
}

/// One export.
#[derive(Clone, Debug)]
pub(crate) struct ExportOutline {
    pub name: String,
    pub object: ResourceRef,
    /// The step that looks at it; none where it is not among the objects.
    pub step: Option<StepId>,
    pub act: Option<StepId>,
}

impl SyncOutline {
    /// That of a plan.
    pub(crate) fn of(plan: Option<&Plan>) -> Option<&Self> {
        plan?.notes.get()
    }
}
