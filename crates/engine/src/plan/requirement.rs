//! Something that must be observed.

use std::sync::Arc;

use linchpin_lang::{cel, compare, jsonpath};

use crate::{
    contract::{Right, StepId, Want},
    readiness::Wanted,
};

/// Something that must be observed before what comes after may start.
#[derive(Clone, Debug)]
pub struct Requirement {
    /// The user's own words for it: `deployment/db`.
    pub label: String,
    /// What is asked of the world. While the kind is not known yet, the question is the kind.
    pub want: Want,
    /// What must be true of the answer.
    pub test: Test,
    /// An action of ours that writes the object: nothing older than its write counts.
    pub floor: Option<StepId>,
    /// The part of the object that is meant, such as one group of a DependencyGroup.
    pub part: Option<String>,
    /// Rights that observing it needs.
    pub rights: Vec<Right>,
    /// The keys it has under `.Dependencies` in templates, and under `dependencies` in expressions.
    pub keys: Vec<String>,
}

/// What must be true of what is observed. All parts must hold together.
#[derive(Clone, Debug, Default)]
pub struct Test {
    /// The state; none means the default of the kind, or existence where conditions are given.
    pub state: Option<Wanted>,
    /// Relaxes workloads to at least this many available replicas.
    pub min_replicas: Option<i64>,
    /// JSONPath comparisons.
    pub conditions: Vec<Arc<compare::Condition>>,
    /// An expression over `self`.
    pub cel: Option<Arc<cel::Expression>>,
    /// For selectors: how many of the matching objects.
    pub expect: Option<Expect>,
    /// What the cluster's administrators say about when this kind is ready.
    pub profile: Option<Arc<Profile>>,
    /// Whether the kind's schema promises a status: an empty one then means "not yet".
    pub reports_status: Option<bool>,
}

/// How many of the objects that a selector finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// At least so many.
    AtLeast(u64),
    /// So many, no more and no fewer match at all.
    Exactly(u64),
    /// All that match, and at least one.
    All,
}

/// A `ReadinessProfile`: how a foreign kind is judged.
#[derive(Clone, Debug, Default)]
pub struct Profile {
    /// Ready when all of these hold.
    pub ready_when: Clauses,
    /// Failed when all of these hold.
    pub failed_when: Option<Clauses>,
    /// Where the object itself says in words why it is not ready.
    pub says: Option<Arc<jsonpath::Path>>,
}

/// Expressions that hold together.
#[derive(Clone, Debug, Default)]
pub struct Clauses {
    /// An expression over `self`.
    pub cel: Option<Arc<cel::Expression>>,
    /// JSONPath comparisons.
    pub conditions: Vec<Arc<compare::Condition>>,
}
