//! Something that must be observed.
//!
//! A requirement usually says one thing: what comes after it waits until it holds, and the object is ready only while
//! it does. Where the two differ, `gate` says what is enough to go on, and `test` what is asked for readiness: a Service
//! may have to exist before its Deployment, and is ready only after it.

use std::{borrow::Cow, sync::Arc};

use linchpin_lang::{cel, compare, jsonpath};
use linchpin_words::{ObjectRef, Reason, hash::Fnv};
use serde_json::{Map, Value};

use crate::{
    contract::{Right, StepId, Want},
    readiness::{RuleWords, Wanted},
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
    /// What is enough for the steps that come after it, and for completion; none means `test`. The object's own
    /// readiness always follows `test`.
    pub gate: Option<Test>,
    /// Whether it counts for ever once it was met: when that very incarnation is gone later, it still holds. (A state of
    /// `Completed` always does.)
    pub latch: bool,
    /// Whether being met once is enough, whatever is seen later.
    pub lasts: LatchScope,
    /// An action of ours that writes the object: nothing older than its write counts. Its failure is that action's, so it
    /// stops what comes after it and nothing else.
    pub floor: Option<StepId>,
    /// Why it cannot hold as the plan is, whatever is observed: its door has looked at what is missing, and makes another
    /// plan when that is there.
    pub held: Option<Obstacle>,
    /// Whether what has failed is told as that, also where something else keeps it from holding.
    pub fails_first: bool,
    /// The state that its author asked for, where the test has another way to know that.
    pub asked: Option<Wanted>,
    /// The part of the object that is meant, such as one group of a DependencyGroup.
    pub part: Option<String>,
    /// What it is about as people are shown it, where the question does not name one object: a selection, a version, an
    /// object of a kind that is not known yet.
    pub target: Option<ObjectRef>,
    /// Whether its objects are of a kind of ours, and judged as these are.
    pub ours: bool,
    /// For what it is required, where that is less than the whole part: `component web`.
    pub on_behalf_of: Option<String>,
    /// Rights that observing it needs.
    pub rights: Vec<Right>,
    /// The keys it has under `.Dependencies` in templates, and under `dependencies` in expressions.
    pub keys: Vec<String>,
}

impl Requirement {
    /// A requirement on what `want` shows, called `label` by people.
    pub fn new(label: impl Into<String>, want: Want, test: Test) -> Self {
        Self {
            label: label.into(),
            want,
            test,
            gate: None,
            latch: false,
            lasts: LatchScope::No,
            floor: None,
            held: None,
            fails_first: false,
            asked: None,
            part: None,
            target: None,
            ours: false,
            on_behalf_of: None,
            rights: Vec::new(),
            keys: Vec::new(),
        }
    }
}

/// For how long being met once is enough.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LatchScope {
    /// Not beyond what the test itself remembers of one incarnation.
    #[default]
    No,
    /// Not at all, whatever the test would remember.
    Never,
    /// Until there is something else to apply.
    Edition,
    /// For good, as long as its own text stays.
    ForGood,
}

impl LatchScope {
    /// Whether being met once is enough, for some time.
    pub fn lasts(self) -> bool {
        matches!(self, Self::Edition | Self::ForGood)
    }
}

/// Why a requirement cannot hold as the plan is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obstacle {
    /// In one word.
    pub reason: Reason,
    /// For people.
    pub message: String,
}

/// What must be true of what is observed. All parts must hold together.
#[derive(Clone, Debug, Default)]
pub struct Test {
    /// The state; none means the default of the kind, or existence where conditions are given.
    pub state: Option<Wanted>,
    /// Relaxes workloads to at least this many available replicas.
    pub min_replicas: Option<i64>,
    /// JSONPath comparisons.
    pub conditions: Vec<Arc<compare::FieldCondition>>,
    /// An expression over `self`.
    pub cel: Option<Arc<cel::Expression>>,
    /// For selectors: how many of the matching objects.
    pub expect: Option<ExpectedCount>,
    /// What the cluster's administrators say about when this kind is ready.
    pub profile: Option<Arc<Profile>>,
    /// Whether the kind's schema promises a status: an empty one then means "not yet".
    pub reports_status: Option<bool>,
    /// An expression over what was found and over what the door knows.
    pub bound: Option<Arc<BoundExpression>>,
    /// Whether it is enough that the kind in question is served.
    pub served: bool,
}

/// An expression over `dep`, what was found, and `self`, which the door gives.
#[derive(Clone, Debug)]
pub struct BoundExpression {
    /// The expression.
    pub cel: Arc<cel::Expression>,
    /// What `self` is.
    pub constant: Value,
    /// What of the object `dep` is.
    pub view: BoundView,
    /// A number that represents all of it.
    pub fingerprint: u64,
}

/// What of an object an expression sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BoundView {
    /// All of it.
    Whole,
    /// The entry of this name in a list of its status.
    Entry {
        /// The list.
        list: &'static str,
        /// The name of the entry.
        name: String,
    },
    /// What the door says of it, whatever it is found by.
    Given(Value),
}

impl BoundExpression {
    /// An expression with what it is given.
    pub fn new(cel: cel::Expression, constant: Value, view: BoundView) -> Self {
        let text = format!("{}\n{constant}\n{view:?}", cel.source());
        Self { cel: Arc::new(cel), constant, view, fingerprint: Fnv::of(text.as_bytes()) }
    }

    /// What `dep` is, of an object.
    pub(crate) fn dep<'a>(&self, object: &'a Value) -> Cow<'a, Value> {
        match &self.view {
            BoundView::Whole => Cow::Borrowed(object),
            BoundView::Entry { list, name } => {
                let entries = object.pointer(&format!("/status/{list}")).and_then(Value::as_array);
                let entry = entries.and_then(|all| all.iter().find(|one| one["name"] == name.as_str()));
                entry.map_or(Cow::Owned(Value::Object(Map::new())), Cow::Borrowed)
            }
            BoundView::Given(given) => Cow::Owned(given.clone()),
        }
    }
}

/// How many of the objects that a selector finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpectedCount {
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
    pub says: Option<Arc<jsonpath::JsonPath>>,
    /// What is said instead, where the rule is a door's own and nobody wrote a profile.
    pub words: Option<RuleWords>,
}

/// Expressions that hold together.
#[derive(Clone, Debug, Default)]
pub struct Clauses {
    /// An expression over `self`.
    pub cel: Option<Arc<cel::Expression>>,
    /// JSONPath comparisons.
    pub conditions: Vec<Arc<compare::FieldCondition>>,
}
