//! What is to be done: a graph of steps that every front door compiles to.
//!
//! A [`Step`] is a requirement (something must be observed) or an action (something is changed). Steps name the
//! steps they come after; there is no other order. A [`Plan`] is checked when it is built: names are unique, edges
//! lead somewhere, there is no cycle. Doors build plans, [`crate::step::step`] carries them out, nobody changes them.

mod action;
mod admission;
mod build;
mod definition;
mod field;
mod notes;
mod outline;
mod reads;
mod requirement;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    hash::BuildHasherDefault,
    sync::Arc,
    time::Duration,
};

use linchpin_lang::cel;
use linchpin_words::{Gvk, ObjectRef, Shared, hash::Fnv};
use serde_json::Value;

pub(crate) use action::target_of_document;
pub use action::{
    ActionBody, Delivery, Document, Documents, Drift, Immutable, PlannedAction, Prune, Rerun, WatchEvents,
    is_long_lived,
};
pub use admission::{Admission, Edition, Editions, Gates};
pub use build::{PlanError, SpecError};
pub(crate) use definition::is_comparable;
pub use definition::{UNKNOWN_DEFINITION, canonical_text, definition, same_definition};
pub use field::{FieldPath, FieldSegment};
pub use notes::Notes;
pub(crate) use outline::{KindRule, Outline, share};
pub use reads::{Readings, Roots};
pub use requirement::{
    BoundExpression, BoundView, Clauses, ExpectedCount, LatchScope, Obstacle, Profile, Requirement, Test,
};

use crate::{
    contract::{Authority, ClusterRef, EffectTarget, Right, StepId, Via, Want},
    readiness::Wanted,
    rights,
};

/// Positions of steps by their names; only ever looked up in.
type Positions = HashMap<StepId, usize, BuildHasherDefault<Fnv>>;

/// What is to be done for one object.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The object the plan is for.
    pub owner: ObjectRef,
    /// Its uid.
    pub uid: String,
    /// The generation it was compiled from.
    pub generation: i64,
    /// The steps, each after all it comes after.
    steps: Vec<Step>,
    /// For each step, the positions of the steps it comes after.
    before: Vec<Vec<usize>>,
    /// Positions in the order of step names: the order of the journal.
    by_name: Vec<usize>,
    /// The same by name.
    positions: Positions,
    /// For each step, what is known of it before anything is observed.
    outlines: Vec<Outline>,
    /// What is asked of the world whatever happens, and before anything has begun.
    wants: outline::Wants,
    /// For each action, the requirements that it is the floor of.
    witnesses: Vec<Vec<usize>>,
    /// The objects that are remembered in the inventory, as far as they are named before they are rendered.
    intents: Vec<(usize, EffectTarget)>,
    /// A fingerprint of the intents and of what their rows hold: another one means that rows must be looked through.
    intents_mark: u64,
    /// Everything else that the spec says.
    pub terms: Terms,
    /// What the door saw when it made the plan and its status shows. Nothing is decided by it.
    pub notes: Notes,
    /// By which names templates read what the plan waits for.
    pub roots: Roots,
    /// Whether nothing that leaves the plan is taken away, whatever was said of it before.
    pub keeps: bool,
    /// When the object was made, in seconds: of those that wait for each other the oldest has its way.
    pub created: i64,
    /// All of it as one transition, where it is one.
    pub admission: Option<Admission>,
    /// Which steps are gates of that transition.
    gates: Vec<Option<Gates>>,
}

/// Everything about a plan that is not a step.
#[derive(Clone, Debug, Default)]
pub struct Terms {
    /// Where values for templates come from.
    pub inputs: Vec<Input>,
    /// `spec.values`.
    pub values: Value,
    /// How long a run may take until all is done.
    pub global_timeout: Option<Duration>,
    /// Nothing starts and clocks are stopped.
    pub suspended: bool,
    /// How a failed plan comes back.
    pub recovery: Recovery,
    /// Whether the world is watched after completion.
    pub watch: bool,
    /// What becomes of what was made, when the object goes.
    pub removal: Removal,
    /// Orders given by hand.
    pub orders: ManualOverrides,
    /// Kind words that were resolved, to be remembered.
    pub kinds: BTreeMap<String, Gvk>,
    /// As whom what left the plan is removed.
    pub authority: Authority,
}

/// Where some of `.Values` come from: the data of a ConfigMap or Secret.
#[derive(Clone, Debug)]
pub struct Input {
    /// The object.
    pub want: Want,
    /// Whether it may be missing.
    pub optional: bool,
}

/// How a failed plan comes back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Recovery {
    /// By itself, when the cause goes away.
    #[default]
    Automatic,
    /// By a new generation or a new `requested-at`.
    Manual,
}

/// What becomes of what was made, when the object goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Removal {
    /// It stays.
    #[default]
    Retain,
    /// It is deleted, in reverse order.
    Delete,
}

/// Orders given by annotation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ManualOverrides {
    /// `linchpin.dev/requested-at`: look again now, and try again what failed.
    pub requested_at: Option<String>,
    /// `linchpin.dev/rerun`: run these steps again.
    pub rerun: Option<RerunOverride>,
    /// `linchpin.dev/proceed`: let these requirements pass, in this generation.
    pub proceed: Vec<StepId>,
    /// What is wrong with orders that cannot be followed, for people.
    pub problems: Vec<String>,
}

/// An order to run steps again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RerunOverride {
    /// The annotation's value: a new one is a new order.
    pub value: String,
    /// Which steps; none means all.
    pub steps: Option<Vec<StepId>>,
}

impl RerunOverride {
    /// Whether it names a step that may have been met once and for all: that is to be met anew.
    pub(crate) fn reopens(&self, step: &StepId) -> bool {
        self.steps.as_ref().is_some_and(|steps| steps.contains(step))
    }
}

/// One step of a plan.
#[derive(Clone, Debug)]
pub struct Step {
    /// Its name.
    pub id: StepId,
    /// The field of the spec it was written in, for messages: `actions[2]`.
    pub field: String,
    /// The part of the owner it belongs to, such as one group of a DependencyGroup.
    pub part: Option<String>,
    /// Hash of the user's text for it.
    pub definition: String,
    /// What it comes after.
    pub after: Vec<After>,
    /// Whether it belongs to the plan proper or runs when the plan fails.
    pub lane: PlanLane,
    /// Whether it is wanted at all, judged when its turn comes.
    pub when: Option<ActionGuard>,
    /// What it is.
    pub kind: StepKind,
    /// A requirement that never holds anything up once it was observed.
    pub optional: bool,
    /// A requirement that is passed by, until the next edition, once it was waited for so long or will not come.
    pub patience: Option<Duration>,
    /// How long it may take, from when its turn comes.
    pub timeout: Option<Duration>,
    /// How long it may go without progress.
    pub progress_timeout: Option<Duration>,
    /// Whether its failure keeps everything else from starting.
    pub fail_fast: bool,
    /// How long what comes after it waits after its end.
    pub delay_after: Option<Duration>,
    /// Its place among the actions that start at the same moment; lower comes first.
    pub rank: i32,
}

/// An edge to an earlier step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct After {
    /// The earlier step.
    pub step: StepId,
    /// Whether its end is enough, even a bad one (priorities), or it must end well (named edges).
    pub settled_is_enough: bool,
}

impl After {
    /// After the good end of a step.
    pub fn success(step: StepId) -> Self {
        Self { step, settled_is_enough: false }
    }

    /// After the end of a step, good or bad.
    pub fn settled(step: StepId) -> Self {
        Self { step, settled_is_enough: true }
    }
}

/// Which part of the plan a step belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PlanLane {
    /// The plan proper.
    #[default]
    Main,
    /// What is done when the plan fails, once per generation.
    OnFailure,
}

/// A three-valued condition on an action.
#[derive(Clone, Debug)]
pub struct ActionGuard {
    /// What is asked.
    pub subject: GuardSubject,
    /// Whether the answer is turned round; undecided stays undecided.
    pub negate: bool,
}

/// What a guard asks.
#[derive(Clone, Debug)]
pub enum GuardSubject {
    /// Whether a dependency has a state.
    Dependency {
        /// The requirement that names the dependency.
        step: StepId,
        /// The state.
        state: Wanted,
    },
    /// An expression over `dependencies.<key>` and `values`.
    Expression(Arc<cel::Expression>),
}

impl ActionGuard {
    /// How long it may stay undecided: as long as the dependencies it asks about may take.
    pub fn timeout(&self, plan: &Plan) -> Option<Duration> {
        match &self.subject {
            GuardSubject::Dependency { step, .. } => plan.steps[plan.position(step)?].timeout,
            GuardSubject::Expression(expression) => {
                let read = plan.dependencies_of(expression);
                let timeouts: Option<Vec<Duration>> =
                    read.iter().map(|(position, _)| plan.steps[*position].timeout).collect();
                timeouts?.into_iter().max()
            }
        }
    }
}

/// What a step is.
#[derive(Clone, Debug)]
pub enum StepKind {
    /// Something must be observed.
    Require(Box<Requirement>),
    /// Something is changed.
    Act(Box<PlannedAction>),
}

impl Step {
    /// A step of the plan proper, after nothing, without a limit in time.
    pub fn new(id: StepId, field: impl Into<String>, definition: impl Into<String>, kind: StepKind) -> Self {
        Self {
            id,
            field: field.into(),
            part: None,
            definition: definition.into(),
            after: Vec::new(),
            lane: PlanLane::Main,
            when: None,
            kind,
            optional: false,
            patience: None,
            timeout: None,
            progress_timeout: None,
            fail_fast: false,
            delay_after: None,
            rank: 0,
        }
    }

    /// The action, if it is one.
    pub fn action(&self) -> Option<&PlannedAction> {
        match &self.kind {
            StepKind::Act(action) => Some(action),
            StepKind::Require(_) => None,
        }
    }

    /// Where and as whom it looks or acts.
    pub fn via(&self) -> &Via {
        match &self.kind {
            StepKind::Require(requirement) => requirement.want.via(),
            StepKind::Act(action) => &action.via,
        }
    }

    /// The requirement, if it is one.
    pub fn requirement(&self) -> Option<&Requirement> {
        match &self.kind {
            StepKind::Require(requirement) => Some(requirement),
            StepKind::Act(_) => None,
        }
    }
}

impl Plan {
    /// The steps, each after all it comes after.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Positions of the steps that the step at `position` comes after, in the order of its `after`.
    pub fn before(&self, position: usize) -> &[usize] {
        &self.before[position]
    }

    /// Positions of all steps in the order of their names.
    pub fn by_name(&self) -> &[usize] {
        &self.by_name
    }

    /// What is known of the step at `position` before anything is observed.
    pub(crate) fn outline(&self, position: usize) -> &Outline {
        &self.outlines[position]
    }

    /// What is asked of the world while the actions at these positions, in ascending order, need their rights.
    pub(crate) fn wants(&self, asking: &[usize]) -> Shared<BTreeSet<Want>> {
        self.wants.while_asking(asking)
    }

    /// Positions of the requirements that have the step at `position` as their floor.
    pub(crate) fn witnesses(&self, position: usize) -> &[usize] {
        &self.witnesses[position]
    }

    /// The objects to be remembered, as far as they are named before they are rendered, each with its step's position;
    /// and a mark that differs wherever their rows would.
    pub(crate) fn intents(&self) -> (&[(usize, EffectTarget)], u64) {
        (&self.intents, self.intents_mark)
    }

    /// Whether what is no longer in the plan is taken away at all.
    pub(crate) fn prunes(&self) -> bool {
        let tracks = || self.steps.iter().any(|step| step.action().is_some_and(|action| action.tracked));
        !self.keeps && (self.terms.removal == Removal::Delete || tracks())
    }

    /// The position of a step.
    pub fn position(&self, id: &StepId) -> Option<usize> {
        self.positions.get(id).copied()
    }

    /// The rights that this plan needs, each with the step that needs it.
    ///
    /// The one place that knows: preflight, blockers and `linchpin rbac` all ask here. Where a step looks or acts in
    /// another cluster, the rights to find its credential here are among them, as are those that are needed only to take
    /// away what was made.
    pub fn rights(&self) -> Vec<(Via, Right, &StepId)> {
        let mut all = Vec::new();
        for step in &self.steps {
            let via = step.via();
            let needed = match &step.kind {
                StepKind::Require(requirement) => requirement.rights.clone(),
                StepKind::Act(action) => [action.rights.clone(), action.later_rights.clone()].concat(),
            };
            all.extend(needed.into_iter().map(|right| (via.clone(), right, &step.id)));
            let here = Via { actor: via.actor.clone(), cluster: ClusterRef::Here };
            let reaching = rights::reaching(&via.cluster);
            all.extend(reaching.rights.into_iter().map(|right| (here.clone(), right, &step.id)));
        }
        all
    }

    /// The rights that are not known before something is rendered or looked up, in words.
    pub fn open_rights(&self) -> BTreeSet<String> {
        let of_actions =
            self.steps.iter().filter_map(Step::action).flat_map(|action| action.open_rights.iter().cloned());
        of_actions
            .chain(self.steps.iter().filter_map(|step| rights::reaching(&step.via().cluster).open))
            .collect()
    }

    /// The nearest earlier actions whose objects are tracked: what is taken away only after this step's own objects.
    pub fn earlier_tracked(&self, position: usize) -> Vec<StepId> {
        let mut found = BTreeSet::new();
        let mut seen = vec![false; self.steps.len()];
        let mut open: Vec<usize> = self.before[position].clone();
        while let Some(earlier) = open.pop() {
            if std::mem::replace(&mut seen[earlier], true) {
                continue;
            }
            if self.steps[earlier].action().is_some_and(|action| action.tracked) {
                found.insert(self.steps[earlier].id.clone());
            } else {
                open.extend(&self.before[earlier]);
            }
        }
        found.into_iter().collect()
    }
}
