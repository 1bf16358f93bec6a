//! The edges of the wait-for graph, as one object sees them.

use std::collections::BTreeMap;

use linchpin_words::{Shared, Text};

use super::View;
use crate::{
    graph::{Edge, Node, Standing, Wait},
    journal::{Record, StepState},
    plan::{Plan, StepKind},
};

/// Who waits for whom, as this object sees it.
pub(in crate::step) fn edges(
    plan: &Plan,
    records: &[Option<&Shared<Record>>],
    views: Vec<View>,
) -> Vec<Edge> {
    let mut edges = Vec::with_capacity(plan.steps().len());
    let mut parts: BTreeMap<&Node, bool> = BTreeMap::new();
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
                match &**found.selected.as_ref().unwrap_or(&outline.waits_for) {
                    [object] => edges.push(wait_for(object, wait)),
                    objects => edges.extend(objects.iter().map(|object| wait_for(object, wait.clone()))),
                }
            }
            StepKind::Act(_) => {
                for object in outline.makes.iter() {
                    let made = outline.node(object);
                    edges.push(Edge::produces(outline.from.clone(), made, record.is_successful()));
                }
            }
        }
    }
    for (part, met) in parts {
        let standing = if met { Standing::Met } else { Standing::InProgress };
        edges.push(Edge::waits(part.whole(), part.clone(), Wait::new(standing, Text::default())));
    }
    edges
}

fn standing(record: &Record, found: &str) -> Standing {
    match (record.state, found) {
        (StepState::Met, _) => Standing::Met,
        (StepState::Failed, _) | (_, "Failed") => Standing::Failed,
        (_, "NotFound") => Standing::Absent,
        (_, "Unknown" | "Error") => Standing::Unknown,
        _ => Standing::InProgress,
    }
}
