//! Building a plan: checks that make the rest of the engine simple.

use std::{
    collections::{BTreeMap, BTreeSet},
    hash::{Hash as _, Hasher as _},
};

use linchpin_words::{ObjectRef, Reason, hash::Fnv};

use super::{
    FieldPath, Notes, Plan, Roots, Step, StepKind, Terms,
    outline::{self, Outline, Wants},
};
use crate::{
    contract::{EffectTarget, StepId, Want},
    graph::Node,
    sequence::sequence,
};

/// A spec that cannot be carried out, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {message}")]
pub struct SpecError {
    /// The field, as a path from the spec's root.
    pub field: FieldPath,
    /// What is wrong and what was expected.
    pub message: String,
    /// What was looked at to find that out: when one of these answers changes, so may the error.
    pub asks: BTreeSet<Want>,
    /// Whether nothing is wrong, but for a first look that has not been taken yet: nothing is done or said until then.
    pub unready: bool,
    /// Why it cannot be carried out, in one word; none: the spec makes no sense.
    pub reason: Option<Reason>,
    /// Whether nothing is wrong with the object, and it waits for something that is not there.
    pub waits: bool,
}

impl SpecError {
    /// An error at a field.
    pub fn new(field: impl Into<FieldPath>, message: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            message: message.into(),
            asks: BTreeSet::new(),
            unready: false,
            reason: None,
            waits: false,
        }
    }

    /// The same, with the facts it rests on.
    #[must_use]
    pub fn asking(self, asks: BTreeSet<Want>) -> Self {
        Self { asks, ..self }
    }

    /// The same, as something that is not known yet.
    #[must_use]
    pub fn unready(self) -> Self {
        Self { unready: true, ..self }
    }

    /// The same, for a reason of its own.
    #[must_use]
    pub fn because(self, reason: Reason) -> Self {
        Self { reason: Some(reason), ..self }
    }

    /// The same, as something that is waited for.
    #[must_use]
    pub fn waiting(self) -> Self {
        Self { waits: true, ..self }
    }

    /// The same, for a part of the object by its name.
    #[must_use]
    pub fn about(self, part: &str) -> Self {
        Self { message: format!("{part}: {}", self.message), ..self }
    }
}

/// A plan that cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// Two steps have one name.
    #[error("the name {name:?} is taken by {first}")]
    Duplicate {
        /// The name.
        name: StepId,
        /// The field of the first.
        first: String,
        /// The field of the second.
        second: String,
    },
    /// A step comes after one that is not there.
    #[error("there is no step named {name:?}")]
    Missing {
        /// The field of the later step.
        field: String,
        /// The name it gives.
        name: StepId,
    },
    /// Steps wait for each other.
    #[error("these steps wait for each other: {path}")]
    Cycle {
        /// The field of the first of them.
        field: String,
        /// The way round, spelled out.
        path: String,
    },
}

impl From<PlanError> for SpecError {
    fn from(error: PlanError) -> Self {
        let field = match &error {
            PlanError::Duplicate { second: field, .. }
            | PlanError::Missing { field, .. }
            | PlanError::Cycle { field, .. } => field.clone(),
        };
        Self::new(field, error.to_string())
    }
}

impl Plan {
    /// A plan of these steps. Order of the steps does not matter, only their edges do.
    pub fn new(
        owner: ObjectRef,
        uid: impl Into<String>,
        generation: i64,
        steps: Vec<Step>,
        terms: Terms,
    ) -> Result<Self, PlanError> {
        let mut positions: BTreeMap<StepId, usize> = BTreeMap::new();
        for (position, step) in steps.iter().enumerate() {
            if let Some(first) = positions.insert(step.id.clone(), position) {
                return Err(PlanError::Duplicate {
                    name: step.id.clone(),
                    first: steps[first].field.clone(),
                    second: step.field.clone(),
                });
            }
        }
        let mut before = Vec::with_capacity(steps.len());
        for step in &steps {
            let mut earlier = Vec::with_capacity(step.after.len());
            for after in &step.after {
                let position = positions.get(&after.step).ok_or_else(|| PlanError::Missing {
                    field: step.field.clone(),
                    name: after.step.clone(),
                })?;
                earlier.push(*position);
            }
            before.push(earlier);
        }
        let order = sequence(&before).map_err(|round| cycle_error(&steps, &round))?;
        let mut rank = vec![0; steps.len()];
        for (new, old) in order.iter().enumerate() {
            rank[*old] = new;
        }
        let mut placed: Vec<Option<(Step, Vec<usize>)>> = steps.into_iter().zip(before).map(Some).collect();
        let mut steps = Vec::with_capacity(placed.len());
        let mut before = Vec::with_capacity(placed.len());
        for old in &order {
            if let Some((step, earlier)) = placed[*old].take() {
                before.push(earlier.into_iter().map(|position| rank[position]).collect());
                steps.push(slim(step));
            }
        }
        let mut by_name: Vec<usize> = (0..steps.len()).collect();
        by_name.sort_by(|one, other| steps[*one].id.cmp(&steps[*other].id));
        let node = Node::here(owner.clone());
        let mut outlines: Vec<Outline> = steps.iter().map(|step| Outline::of(step, &node)).collect();
        outline::number_batches(&mut outlines, &steps, &before);
        let wants = Wants::of(&steps, &outlines, &terms.inputs);
        let mut witnesses = vec![Vec::new(); steps.len()];
        for (position, step) in steps.iter().enumerate() {
            let floor = step.requirement().and_then(|requirement| requirement.floor.as_ref());
            if let Some(action) = floor.and_then(|floor| positions.get(floor)) {
                witnesses[rank[*action]].push(position);
            }
        }
        let (intents, intents_mark) = intents(&steps, &before);
        Ok(Self {
            owner,
            uid: uid.into(),
            generation,
            steps,
            before,
            by_name,
            positions: positions.into_iter().map(|(id, position)| (id, rank[position])).collect(),
            outlines,
            wants,
            witnesses,
            intents,
            intents_mark,
            terms,
            notes: Notes::default(),
            roots: Roots::default(),
            keeps: false,
            created: 0,
            admission: None,
            gates: Vec::new(),
        })
    }
}

/// A step without room for more: plans are kept for as long as their objects wait.
fn slim(mut step: Step) -> Step {
    match &mut step.kind {
        StepKind::Require(requirement) => requirement.rights.shrink_to_fit(),
        StepKind::Act(action) => {
            action.rights.shrink_to_fit();
            action.later_rights.shrink_to_fit();
            action.sketched.shrink_to_fit();
        }
    }
    step
}

/// The objects that are remembered, and a mark of all that their rows hold.
fn intents(steps: &[Step], before: &[Vec<usize>]) -> (Vec<(usize, EffectTarget)>, u64) {
    let mut found = Vec::new();
    let mut mark = Fnv::default();
    for (position, step) in steps.iter().enumerate() {
        before[position].hash(&mut mark);
        step.id.hash(&mut mark);
        let Some(action) = step.action().filter(|action| action.tracked) else {
            continue;
        };
        for target in action.targets() {
            let policies = (action.prune.includes(&target), action.long_lived_last, action.owner.is_some());
            (&action.via.cluster, &target, policies).hash(&mut mark);
            found.push((position, target));
        }
    }
    (found, mark.finish())
}

/// Steps wait for each other: the way round in the order they would go.
fn cycle_error(steps: &[Step], round: &[usize]) -> PlanError {
    let round: Vec<usize> = round.iter().rev().copied().collect();
    let start = round.iter().enumerate().min_by_key(|(_, position)| **position).map_or(0, |(index, _)| index);
    let names: Vec<&str> = round
        .iter()
        .cycle()
        .skip(start)
        .take(round.len() + 1)
        .map(|position| steps[*position].id.as_str())
        .collect();
    PlanError::Cycle {
        field: round.get(start).map_or_else(String::new, |position| steps[*position].field.clone()),
        path: names.join(" → "),
    }
}
