//! From a report to the status of a Greeting.

use linchpin_api::{CommonStatus, status::Blocker};
use linchpin_doors::{StatusInput, journal, status_edges};
use linchpin_words::{Condition, ConditionType, Reason, condition};

use crate::types::{Greeting, GreetingStatus};

pub(super) fn draw(object: &Greeting, input: &StatusInput<'_>) -> GreetingStatus {
    let report = input.report;
    let generation = object.metadata.generation.unwrap_or_default();
    let mut conditions = object.status.clone().unwrap_or_default().common.conditions;
    let reason = report.reason.unwrap_or(Reason::Progressing);
    let ready =
        Condition::new(ConditionType::Ready, report.ready, reason, &report.message, generation, input.now);
    condition::set(&mut conditions, ready);
    let blocker = |blocker: &linchpin_engine::step::StepBlocker| Blocker {
        reason: blocker.reason.to_string(),
        message: blocker.message.to_string(),
        object: None,
        step: blocker.step.as_ref().map(ToString::to_string),
        since: blocker.since,
        chain: Vec::new(),
    };
    let common = CommonStatus {
        observed_generation: generation,
        phase: Some(report.phase.as_str().to_owned()),
        message: Some(report.message.clone()),
        conditions,
        blocked_by: report.blocked.iter().map(blocker).collect(),
        edges: status_edges::write(&report.edges),
        journal: journal::write(input.journal),
        ..CommonStatus::default()
    };
    GreetingStatus { common }
}
