//! What is known of each step before anything is observed.
//!
//! Put together once, when a plan is built, and passed on by reference or by a counted pointer ever after: what a look at
//! the world finds is new each time, what the plan itself says never is.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use linchpin_words::{GroupKind, ObjectRef, Shared, Text};

use super::{Input, PlannedAction, Requirement, Step, StepKind};
use crate::{
    contract::{ClusterRef, Objects, Question, Want},
    graph::Node,
    readiness::{self, ReadinessRow},
};

/// The part of one step's story that never changes.
#[derive(Clone, Debug)]
pub(crate) struct Outline {
    /// Whom it belongs to in the wait-for graph: the plan's owner, or one part of it.
    pub from: Node,
    /// For a requirement, the object it is about, where the plan names it.
    pub waits_for: Objects,
    /// For a requirement, what represents its objects where the plan does not name them.
    pub target: Option<Shared<ObjectRef>>,
    /// For an action, the objects it makes, as far as the plan names them.
    pub makes: Objects,
    /// For an action of a part, which of the part's batches it belongs to; 0 where the plan has no parts.
    pub batch: u32,
    /// Whether it is the first action of its batch.
    pub opens_batch: bool,
    /// For a requirement, the kind of the objects it is about; none while the question is the kind itself.
    pub kind: Option<KindRule>,
    /// The rights it needs before it may start, as questions.
    pub asks: Vec<Want>,
    /// The cluster that its objects are in; none for our own.
    cluster: Option<Text>,
    /// The part of its objects that is meant.
    part: Option<Text>,
}

/// A kind, and the rule that it is judged by.
#[derive(Clone)]
pub(crate) struct KindRule {
    pub name: GroupKind,
    pub row: &'static ReadinessRow,
}

impl KindRule {
    fn new(name: GroupKind, ours: bool) -> Self {
        let row = readiness::row(&name, ours);
        Self { name, row }
    }
}

impl fmt::Debug for KindRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.name.fmt(f)
    }
}

impl Outline {
    pub(super) fn of(step: &Step, owner: &Node) -> Self {
        let from = match &step.part {
            Some(part) => owner.clone().part(part.clone()),
            None => owner.clone(),
        };
        let blank = Self {
            from,
            waits_for: Objects::default(),
            target: None,
            makes: Objects::default(),
            batch: 0,
            opens_batch: false,
            kind: None,
            asks: Vec::new(),
            cluster: None,
            part: None,
        };
        match &step.kind {
            StepKind::Require(requirement) => blank.requiring(requirement),
            StepKind::Act(action) => blank.acting(action),
        }
    }

    fn requiring(self, requirement: &Requirement) -> Self {
        let via = requirement.want.via();
        // What is dialled may belong to an object, which is then what is waited for.
        let dialled = matches!(requirement.want.question(), Question::Probe { .. });
        let dialled_target = requirement.target.clone().filter(|_| dialled);
        Self {
            waits_for: share(requirement.want.object_ref().or(dialled_target)),
            target: requirement.target.clone().map(Shared::new),
            kind: match requirement.want.question() {
                Question::Objects { kind, .. } => Some(KindRule::new(kind.group_kind(), requirement.ours)),
                _ => None,
            },
            cluster: (via.cluster != ClusterRef::Here).then(|| via.cluster.to_string().into()),
            part: requirement.part.clone().map(Text::from),
            ..self
        }
    }

    fn acting(self, action: &PlannedAction) -> Self {
        let ask = |right: &crate::contract::Right| {
            Want::new(Question::Right { via: action.via.clone(), right: right.clone() })
        };
        Self { makes: share(action.makes()), asks: action.rights.iter().map(ask).collect(), ..self }
    }

    /// Who makes the objects of an action in the wait-for graph.
    pub(crate) fn maker(&self) -> Node {
        self.from.batch(self.batch)
    }

    /// One of the step's objects as a node of the wait-for graph.
    pub(crate) fn node(&self, object: &Shared<ObjectRef>) -> Node {
        Node { cluster: self.cluster.clone(), object: object.clone(), part: self.part.clone(), batch: 0 }
    }
}

/// What the actions of a batch have in common: their part, and what they come after, each with whether its end is enough.
type Batch<'a> = (&'a str, Vec<(usize, bool)>);

/// Counts the batches: actions of one part that come after the same steps have the same.
pub(super) fn number_batches(outlines: &mut [Outline], steps: &[Step], before: &[Vec<usize>]) {
    let mut batches: BTreeMap<Batch<'_>, u32> = BTreeMap::new();
    for (position, (outline, step)) in outlines.iter_mut().zip(steps).enumerate() {
        let (StepKind::Act(_), Some(part)) = (&step.kind, &step.part) else { continue };
        let earlier = before[position].iter().copied();
        let after = earlier.zip(step.after.iter().map(|after| after.settled_is_enough)).collect();
        // No plan has four billion steps.
        let next = u32::try_from(batches.len() + 1).unwrap_or(u32::MAX);
        outline.batch = *batches.entry((part, after)).or_insert(next);
        outline.opens_batch = outline.batch == next;
    }
}

/// Objects, to be passed on.
pub(crate) fn share(objects: impl IntoIterator<Item = ObjectRef>) -> Objects {
    let objects: Arc<[Shared<ObjectRef>]> = objects.into_iter().map(Shared::new).collect();
    objects
}

/// What a plan asks of the world, put together for the two states that most plans are in most of the time.
#[derive(Clone, Debug)]
pub(super) struct Wants {
    /// Whatever happens: what requirements and inputs are about, and what must stay as written.
    permanent: Shared<BTreeSet<Want>>,
    /// While no action has begun: the rights of all of them too.
    opening: Shared<BTreeSet<Want>>,
    /// The opening wants in their order, those that are not permanent with the positions of the actions that need them.
    needed_by: Vec<(Want, Vec<usize>)>,
    /// How many actions need rights.
    needy: usize,
}

impl Wants {
    pub(super) fn of(steps: &[Step], outlines: &[Outline], inputs: &[Input]) -> Self {
        let required = steps.iter().filter_map(Step::requirement).map(|requirement| &requirement.want);
        let kept = steps.iter().filter_map(Step::action).filter_map(PlannedAction::drift);
        let kept = kept.flat_map(|drift| &drift.objects);
        let inputs = inputs.iter().map(|input| &input.want);
        let permanent: BTreeSet<Want> = required.chain(kept).chain(inputs).cloned().collect();
        let mut needed_by: BTreeMap<Want, Vec<usize>> =
            permanent.iter().map(|want| (want.clone(), Vec::new())).collect();
        for (position, outline) in outlines.iter().enumerate() {
            for right in &outline.asks {
                needed_by.entry(right.clone()).or_default().push(position);
            }
        }
        Self {
            permanent: Shared::new(permanent),
            opening: Shared::new(needed_by.keys().cloned().collect()),
            needed_by: needed_by.into_iter().collect(),
            needy: outlines.iter().filter(|outline| !outline.asks.is_empty()).count(),
        }
    }

    /// What is asked while some actions, by their positions in ascending order, need their rights.
    pub(super) fn while_asking(&self, actions: &[usize]) -> Shared<BTreeSet<Want>> {
        if actions.is_empty() {
            self.permanent.clone()
        } else if actions.len() == self.needy {
            self.opening.clone()
        } else {
            let asks = |action: &usize| actions.binary_search(action).is_ok();
            let wanted = |(_, by): &&(Want, Vec<usize>)| by.is_empty() || by.iter().any(asks);
            Shared::new(self.needed_by.iter().filter(wanted).map(|(want, _)| want.clone()).collect())
        }
    }
}
