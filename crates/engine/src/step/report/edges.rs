//! The edges of the wait-for graph, as one object sees them.

use super::View;
use crate::{
    contract::ClusterRef,
    graph::{Edge, Node, Standing, Wait},
    journal::{Record, StepState},
    plan::{Plan, StepKind},
};

/// Who waits for whom, as this object sees it.
pub(in crate::step) fn edges(plan: &Plan, records: &[Option<&Record>], views: &[View]) -> Vec<Edge> {
    let owner = Node::here(plan.owner.clone());
    let mut edges = Vec::with_capacity(plan.steps().len());
    let mut parts = std::collections::BTreeMap::new();
    for (position, step) in plan.steps().iter().enumerate() {
        let Some(record) = records[position] else {
            continue;
        };
        let from = match &step.part {
            Some(part) => {
                let met = record.state == StepState::Met || record.is_successful() || step.optional;
                *parts.entry(part.clone()).or_insert(true) &= met;
                owner.clone().part(part.clone())
            }
            None => owner.clone(),
        };
        match &step.kind {
            StepKind::Require(requirement) => {
                let found = &views[position];
                let wait = Wait {
                    standing: standing(record, found),
                    reason: found.reason.clone(),
                    since: Some(record.clock.unwrap_or(record.since).into()),
                    detail: found.message.clone(),
                };
                for object in &found.objects {
                    let mut to = Node::here(object.clone());
                    to.part.clone_from(&requirement.part);
                    if requirement.want.via().cluster != ClusterRef::Here {
                        to.cluster = Some(requirement.want.via().cluster.to_string());
                    }
                    edges.push(Edge::waits(from.clone(), to, wait.clone()));
                }
            }
            StepKind::Act(_) => {
                for object in plan.makes(position) {
                    let made = Node::here(object.clone());
                    edges.push(Edge::produces(from.clone(), made, record.is_successful()));
                }
            }
        }
    }
    for (part, met) in parts {
        let standing = if met { Standing::Met } else { Standing::InProgress };
        let wait = Wait { standing, reason: String::new(), since: None, detail: String::new() };
        edges.push(Edge::waits(owner.clone(), owner.clone().part(part), wait));
    }
    edges
}

fn standing(record: &Record, found: &View) -> Standing {
    match (record.state, found.state) {
        (StepState::Met, _) => Standing::Met,
        (StepState::Failed, _) | (_, "Failed") => Standing::Failed,
        (_, "NotFound") => Standing::Absent,
        (_, "Unknown" | "Error") => Standing::Unknown,
        _ => Standing::InProgress,
    }
}
