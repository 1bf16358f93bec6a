//! The edges of the wait-for graph, as one object sees them.
//!
//! The object and its parts wait for all that is required of them. What an action makes comes from its turn alone, which
//! waits for what the action comes after and for nothing else: another action of the same part may well be stuck.

use std::{collections::BTreeMap, ops::Range};

use linchpin_words::{Reason, Shared, Text};

use super::{View, entry::is_passed};
use crate::{
    graph::{Edge, Node, Relation, Wait, WaitState},
    journal::{StepRecord, StepState},
    plan::{Plan, StepKind},
};

/// Who waits for whom, as this object sees it.
pub(in crate::step) fn edges(
    plan: &Plan,
    records: &[Option<&Shared<StepRecord>>],
    views: Vec<View>,
) -> Vec<Edge> {
    let mut edges = Vec::with_capacity(plan.steps().len());
    let mut parts: BTreeMap<&Node, bool> = BTreeMap::new();
    let mut waits = vec![0..0; plan.steps().len()];
    for (position, (step, found)) in plan.steps().iter().zip(views).enumerate() {
        let Some(record) = records[position] else {
            continue;
        };
        let outline = plan.outline(position);
        if outline.from.part.is_some() {
            let met = record.state == StepState::Met || record.is_successful() || step.optional;
            *parts.entry(&outline.from).or_insert(true) &= met;
        }
        match &step.kind {
            StepKind::Require(_) => {
                let wait = Wait {
                    standing: standing(record, found.state),
                    reason: found.reason,
                    since: Some(record.clock.unwrap_or(record.since).into()),
                    detail: found.message,
                };
                let wait_for = |object, wait| Edge::waits(outline.from.clone(), outline.node(object), wait);
                let start = edges.len();
                match &**found.selected.as_ref().unwrap_or(&outline.waits_for) {
                    [object] => edges.push(wait_for(object, wait)),
                    objects => edges.extend(objects.iter().map(|object| wait_for(object, wait.clone()))),
                }
                waits[position] = start..edges.len();
            }
            StepKind::Act(_) => {
                for object in outline.makes.iter() {
                    let made = outline.node(object);
                    edges.push(Edge::produces(outline.maker(), made, record.is_successful()));
                }
                if outline.opens_turn {
                    before_turn(plan, records, &waits, position, &mut edges);
                }
            }
        }
    }
    for (part, met) in parts {
        let standing = if met { WaitState::Met } else { WaitState::InProgress };
        edges.push(Edge::waits(part.whole(), part.clone(), Wait::new(standing, Text::default())));
    }
    edges
}

/// What the turn that begins with this action waits for: all of it comes earlier in the plan.
fn before_turn(
    plan: &Plan,
    records: &[Option<&Shared<StepRecord>>],
    waits: &[Range<usize>],
    position: usize,
    edges: &mut Vec<Edge>,
) {
    let turn = plan.outline(position).maker();
    for (earlier, after) in plan.before(position).iter().zip(&plan.steps()[position].after) {
        let (step, Some(record)) = (&plan.steps()[*earlier], records[*earlier]) else {
            continue;
        };
        let passed = is_passed(step, record, after);
        match &step.kind {
            StepKind::Require(_) => {
                for index in waits[*earlier].clone() {
                    let mut edge = Edge { from: turn.clone(), ..edges[index].clone() };
                    if let Relation::WaitsFor(wait) = &mut edge.relation
                        && passed
                    {
                        wait.standing = WaitState::Met;
                    }
                    edges.push(edge);
                }
            }
            StepKind::Act(_) => {
                let standing = if passed { WaitState::Met } else { WaitState::InProgress };
                let wait = Wait::new(standing, Reason::WaitingForStep.as_str());
                edges.push(Edge::waits(turn.clone(), plan.outline(*earlier).maker(), wait));
            }
        }
    }
}

fn standing(record: &StepRecord, found: &str) -> WaitState {
    match (record.state, found) {
        (StepState::Met, _) => WaitState::Met,
        (StepState::Failed, _) | (_, "Failed") => WaitState::Failed,
        (_, "NotFound") => WaitState::Absent,
        (_, "Unknown" | "Error") => WaitState::Unknown,
        _ => WaitState::InProgress,
    }
}
