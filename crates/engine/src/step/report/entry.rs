//! Where one step is, and what holds it.

use linchpin_words::Reason;

use super::{Advanced, StepReport, View};
use crate::{
    journal::{Record, StepState},
    plan::{Lane, Plan, Step, StepKind},
    step::fact::{Answer, Fact, Holds},
};

/// One step among all others: what its report is told from.
pub(super) struct Place<'a> {
    pub(super) plan: &'a Plan,
    pub(super) advanced: &'a Advanced,
    pub(super) records: &'a [Option<&'a Record>],
    pub(super) fact: &'a Fact,
    pub(super) position: usize,
}

pub(super) fn step_report(place: &Place<'_>, step: &Step, record: &Record, mut found: View) -> StepReport {
    let message = place.advanced.memory.messages.get(&step.id);
    let open = place.advanced.open[place.position];
    let mut report = StepReport {
        id: step.id.clone(),
        state: record.state,
        word: "",
        reason: record.reason.map_or_else(String::new, |reason| reason.as_str().to_owned()),
        message: String::new(),
        since: record.since,
        attempts: record.attempt,
        objects: std::mem::take(&mut found.objects),
        blocking: false,
        ready: record.is_successful(),
    };
    match &step.kind {
        StepKind::Require(requirement) => {
            report.word = match (record.state, record.reason) {
                (StepState::Failed, Some(Reason::TimedOut | Reason::ProgressTimeout)) => "TimedOut",
                _ => found.state,
            };
            if !open && record.state == StepState::Waiting {
                Reason::WaitingForTier.as_str().clone_into(&mut report.reason);
                report.message = [&requirement.label, ": waits for ", &waits_for(place)].concat();
            } else {
                if record.state != StepState::Failed || record.reason == Some(Reason::DependencyFailed) {
                    report.reason = found.reason;
                }
                report.message = [&requirement.label, ": ", &found.message].concat();
            }
            let strictly =
                matches!(place.fact.strictly, None | Some(Holds::Met | Holds::Unknown { passing: true }));
            report.ready = record.state == StepState::Met && (strictly || record.proceeded);
            // What is complete is held by whatever keeps it from being ready.
            let gate_is_enough = place.advanced.memory.journal.completed.is_none();
            let enough = record.state == StepState::Met && (gate_is_enough || report.ready);
            report.blocking = open && !step.optional && !enough;
        }
        StepKind::Act(_) => {
            report.word = match record.state {
                StepState::Waiting | StepState::Met => "Pending",
                StepState::Running => "Running",
                StepState::Done => "Done",
                StepState::Skipped => "Skipped",
                StepState::Failed => "Failed",
                StepState::Unknown => "Unknown",
            };
            let lacking = lacks_rights(place, &found);
            let held = held_by(place, record, found);
            if let Some((reason, text)) = held {
                reason.as_str().clone_into(&mut report.reason);
                report.message = text;
            }
            let unsettled = !record.is_successful() && step.lane == Lane::Main;
            report.blocking = unsettled && (open || lacking || record.state != StepState::Waiting);
            // While it waits for another step, what went wrong in its last attempt is not what holds it.
            let held_by_itself = record.is_successful() || open || record.state != StepState::Waiting;
            if let Some(message) = message.filter(|_| held_by_itself) {
                report.message.clone_from(message);
            }
            if report.blocking && report.message.is_empty() {
                report.message = format!("{} is {}", step.id, report.word.to_lowercase());
            }
            if report.blocking && report.reason.is_empty() {
                let reason =
                    if record.state == StepState::Running { Reason::Running } else { Reason::Waiting };
                reason.as_str().clone_into(&mut report.reason);
            }
        }
    }
    report
}

/// Whether an action lacks rights: told before its turn comes, so that somebody can give them while it waits.
fn lacks_rights(place: &Place<'_>, found: &View) -> bool {
    !place.fact.supplied && found.reason == Reason::MissingRights.as_str()
}

/// Why an action that has not started has not.
fn held_by(place: &Place<'_>, record: &Record, found: View) -> Option<(Reason, String)> {
    if record.is_successful() || record.state == StepState::Running {
        return None;
    }
    if record.state == StepState::Failed || record.state == StepState::Unknown {
        let reason = record.reason?;
        return Some((reason, reason.in_words()));
    }
    if !place.advanced.open[place.position] && !lacks_rights(place, &found) {
        return Some((Reason::WaitingForStep, ["waits for ", &waits_for(place)].concat()));
    }
    if !place.fact.supplied {
        let reason = Reason::from_word(&found.reason).unwrap_or(Reason::MissingRights);
        return Some((reason, found.message));
    }
    if place.fact.guard == Answer::Undecided {
        return Some((Reason::GuardUndecided, Reason::GuardUndecided.in_words()));
    }
    let reason = record.reason?;
    Some((reason, reason.in_words()))
}

/// The first steps that keep a step closed, by name.
fn waits_for(place: &Place<'_>) -> String {
    let Place { plan, records, position, .. } = *place;
    let mut names: Vec<&str> = Vec::new();
    for (earlier, after) in plan.before(position).iter().zip(&plan.steps()[position].after) {
        let step = &plan.steps()[*earlier];
        let Some(record) = records[*earlier] else {
            continue;
        };
        let done = match &step.kind {
            StepKind::Require(_) => record.state == StepState::Met || step.optional,
            StepKind::Act(_) if after.settled_is_enough => record.is_settled(),
            StepKind::Act(_) => record.is_successful(),
        };
        if !done {
            names.push(match &step.kind {
                StepKind::Require(requirement) => &requirement.label,
                StepKind::Act(_) => step.id.as_str(),
            });
        }
    }
    match names.len() {
        0 => "a delay to pass".to_owned(),
        1..=3 => names.join(", "),
        more => format!("{} and {} more", names[..2].join(", "), more - 2),
    }
}
