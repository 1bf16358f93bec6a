//! From report and journal to the status of a BootDependency: the document's condition, count and messages, and a row
//! for each entry.

use linchpin_api::{BootDependency, BootDependencyStatus, BootEntry, boot_dependency::EntryStatus};
use linchpin_engine::{
    journal::StepState,
    step::{Phase, Report, StepReport},
};
use linchpin_words::{Condition, ConditionType, Reason, condition, text};

use super::{
    address::{step_names, target_and_port},
    compile::observed_from,
};
use crate::{
    door::StatusInput,
    entries::{self, find, is_unseen},
    journal,
};

/// The phase of an object whose entries all hold.
const READY: &str = "Ready";

/// The object's status as it should be now. Equal to the one it has where nothing has changed.
pub fn draw(object: &BootDependency, status_input: &StatusInput<'_>) -> BootDependencyStatus {
    let generation = object.metadata.generation.unwrap_or_default();
    let current = object.status.as_ref();
    let report = status_input.report;
    if let Some(current) = current.filter(|status| status.observed_generation == generation)
        && report.phase == Phase::Pending
        && current.phase.is_some()
    {
        // Nothing has been looked at since: after a start that is no news.
        return BootDependencyStatus { journal: journal::write(status_input.journal), ..current.clone() };
    }
    let all = object.spec.depends_on.len();
    let rows = rows(object, status_input);
    let met = report.steps.iter().filter(|step| is_met(step)).count().min(all);
    let verdict = Verdict::of(report, met, all);
    let mut conditions = current.map(|status| status.conditions.clone()).unwrap_or_default();
    for (kind, holds) in [
        (ConditionType::Ready, verdict.phase == READY),
        (ConditionType::Reconciling, verdict.reconciling),
        (ConditionType::Stalled, report.phase == Phase::Failed),
    ] {
        let (reason, message) = (verdict.reason, &verdict.condition);
        let new = Condition::new(kind, holds, reason, message, generation, status_input.now);
        condition::set(&mut conditions, new);
    }
    let before = current.map_or(&[][..], |status| status.blocked_by.as_slice());
    BootDependencyStatus {
        observed_generation: generation,
        phase: Some(verdict.phase.to_owned()),
        message: Some(text::line(&message(&verdict, report))),
        resolved_dependencies: Some(format!("{met}/{all}")),
        conditions,
        blocked_by: entries::blockers(before, status_input),
        entries: rows,
        workloads: current.map(|status| status.workloads.clone()).unwrap_or_default(),
        edges: entries::edges(current.and_then(|status| status.edges.as_ref()), status_input),
        journal: journal::write(status_input.journal),
    }
}

/// Whether an entry holds now.
pub(super) fn is_met(step: &StepReport) -> bool {
    step.state == StepState::Met && step.ready
}

/// What is said of the whole.
struct Verdict {
    phase: &'static str,
    reconciling: bool,
    reason: Reason,
    /// The message of the conditions.
    condition: String,
}

impl Verdict {
    fn of(report: &Report, met: usize, all: usize) -> Self {
        match report.phase {
            Phase::Suspended | Phase::Failed | Phase::Deleting => Self {
                phase: report.phase.as_str(),
                reconciling: report.phase != Phase::Failed,
                reason: report.reason.unwrap_or(Reason::Progressing),
                condition: report.message.clone(),
            },
            Phase::Pending | Phase::Waiting | Phase::Running | Phase::Completed if met < all || all == 0 => {
                Self {
                    phase: if report.phase == Phase::Pending { Phase::Pending } else { Phase::Waiting }
                        .as_str(),
                    reconciling: true,
                    reason: Reason::DependenciesNotReady,
                    condition: format!("{met}/{all} dependencies are reachable"),
                }
            }
            Phase::Pending | Phase::Waiting | Phase::Running | Phase::Completed => Self {
                phase: READY,
                reconciling: false,
                reason: Reason::AllDependenciesReady,
                condition: format!("All {all} dependencies are reachable"),
            },
        }
    }
}

/// The one line: what is waited for first, and how much more there is.
fn message(verdict: &Verdict, report: &Report) -> String {
    let unmet: Vec<&StepReport> = report.steps.iter().filter(|step| !is_met(step)).collect();
    match (verdict.reason, unmet.as_slice()) {
        (Reason::DependenciesNotReady, [first, rest @ ..]) => {
            let mut line = format!("waits for {}: {}", first.id, first.message);
            if !rest.is_empty() {
                line = format!("{line} (and {} more)", rest.len());
            }
            line
        }
        _ => verdict.condition.clone(),
    }
}

fn rows(object: &BootDependency, status_input: &StatusInput<'_>) -> Vec<EntryStatus> {
    let before = object.status.as_ref().map_or(&[][..], |status| status.entries.as_slice());
    let names = step_names(&object.spec.depends_on.iter().collect::<Vec<_>>());
    let row = |(entry, named): (&BootEntry, &crate::names::Named)| {
        let step = find(status_input.report, &named.id)?;
        let name = named.id.to_string();
        let old = before.iter().find(|old| old.name == name);
        if let Some(old) = old.filter(|_| is_unseen(&step.reason)) {
            return Some(old.clone());
        }
        let prefix = format!("{}: ", target_and_port(entry));
        let message = step.message.strip_prefix(&prefix).unwrap_or(&step.message);
        let state = step.word.to_owned();
        let reason = match (step.reason.is_empty(), is_met(step)) {
            (false, _) => step.reason.to_string(),
            (true, true) => Reason::Met.as_str().to_owned(),
            (true, false) => Reason::Waiting.as_str().to_owned(),
        };
        let last_change = match old.filter(|old| old.state == state && old.reason == reason) {
            Some(old) => old.last_change,
            None => old.map_or(step.since, |_| status_input.now),
        };
        Some(EntryStatus {
            name,
            state,
            met: is_met(step),
            reason,
            message: text::line(message),
            since: step.since,
            last_change,
            observed_from: observed_from(status_input.plan, &named.id).to_owned(),
        })
    };
    object.spec.depends_on.iter().zip(&names).filter_map(row).collect()
}
