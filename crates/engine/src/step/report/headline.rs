//! Where an object is, as one word and in one line.

use linchpin_words::{Period, Reason, Shared};

use super::{Advanced, LACKING, Phase, RequirementView, StepBlocker, StepReport};
use crate::{
    journal::{StepRecord, StepState},
    plan::{Plan, PlanLane, Recovery},
};

pub(super) fn phase(
    plan: &Plan,
    advanced: &Advanced,
    records: &[Option<&Shared<StepRecord>>],
    views: &[RequirementView],
) -> Phase {
    let journal = &advanced.memory.journal;
    if plan.terms.suspended {
        return Phase::Suspended;
    }
    if advanced.failing {
        return Phase::Failed;
    }
    if journal.completed.is_some() {
        return Phase::Completed;
    }
    let begun = plan.steps().iter().zip(records).any(|(step, record)| {
        step.action().is_some()
            && step.lane == PlanLane::Main
            && record.is_some_and(|record| record.state != StepState::Waiting)
    });
    let held = journal.is_held(plan);
    let actions = || {
        let main = plan.steps().iter().zip(records).zip(views);
        main.filter(|((step, _), _)| step.action().is_some() && step.lane == PlanLane::Main)
    };
    let lacks_rights = actions().any(|((_, record), found)| {
        record.is_none_or(|record| !record.is_successful())
            && LACKING.iter().any(|reason| found.reason == reason.as_str())
    });
    // What is under way goes on; with nothing under way, a right is waited for like anything else.
    let under_way =
        actions().any(|((_, record), _)| record.is_some_and(|record| record.state == StepState::Running));
    if lacks_rights && !under_way {
        return Phase::Waiting;
    }
    // With every action done, what is left is to wait for what came into the plan later.
    let never_met = |position: usize| {
        let step = &plan.steps()[position];
        let foreign = step.requirement().is_some_and(|requirement| requirement.floor.is_none());
        let unmet = records[position].is_some_and(|record| record.state != StepState::Met && !record.lost);
        foreign && unmet && !step.optional && !journal.is_spent(plan, position)
    };
    let waits = || advanced.all_done && (0..records.len()).any(never_met);
    if begun && !held && !waits() {
        return Phase::Running;
    }
    let unlooked = Reason::Unsynced.as_str();
    let looked = plan
        .steps()
        .iter()
        .zip(views)
        .any(|(step, found)| step.requirement().is_some() && found.reason != unlooked);
    let has_requirements = plan.steps().iter().any(|step| step.requirement().is_some());
    if has_requirements && !looked {
        Phase::Pending
    } else if advanced.all_hold && !held {
        Phase::Running
    } else {
        Phase::Waiting
    }
}

pub(super) fn headline(
    plan: &Plan,
    advanced: &Advanced,
    phase: Phase,
    ready: bool,
    steps: &[StepReport],
    blocked: &[StepBlocker],
) -> (Reason, String) {
    let actions: Vec<&StepReport> = steps
        .iter()
        .zip(plan.steps())
        .filter(|(_, step)| step.action().is_some() && step.lane == PlanLane::Main)
        .map(|(report, _)| report)
        .collect();
    let done =
        actions.iter().filter(|report| matches!(report.state, StepState::Done | StepState::Skipped)).count();
    let more = |count: usize| {
        if count > 1 { format!(" (and {} more)", count - 1) } else { String::new() }
    };
    let first = blocked.first();
    match phase {
        Phase::Suspended => (Reason::Suspended, Reason::Suspended.in_words()),
        Phase::Deleting => (Reason::Deleting, Reason::Deleting.in_words()),
        Phase::Pending => (Reason::Waiting, "looking at its dependencies for the first time".to_owned()),
        Phase::Completed if ready => {
            let text = if actions.is_empty() {
                "all dependencies are met".to_owned()
            } else {
                all_done(actions.len())
            };
            (Reason::Completed, text)
        }
        Phase::Completed => {
            let what = first.map_or_else(String::new, |blocker| format!(": {}", blocker.message));
            let own =
                first.and_then(|blocker| plan.position(blocker.step.as_ref()?)).is_some_and(|position| {
                    let step = &plan.steps()[position];
                    step.requirement().is_none_or(|requirement| requirement.floor.is_some())
                });
            if own {
                (Reason::NotReady, format!("done, but not ready{what}"))
            } else {
                (Reason::DependencyLost, format!("done, but a dependency no longer holds{what}"))
            }
        }
        Phase::Failed => {
            let halt = advanced.memory.journal.halt.as_ref();
            let culprit = halt
                .and_then(|halt| halt.step.as_ref())
                .and_then(|id| steps.iter().find(|report| report.id == *id))
                .or_else(|| {
                    actions
                        .iter()
                        .copied()
                        .find(|report| matches!(report.state, StepState::Failed | StepState::Unknown))
                })
                .or_else(|| steps.iter().find(|report| report.state == StepState::Failed));
            // What an action made has failed: its own reason says more than that something did.
            let own = culprit
                .filter(|report| halt.is_none() && !actions.iter().any(|action| action.id == report.id))
                .and_then(|report| Reason::from_word(&report.reason));
            let reason = own.or(halt.map(|halt| halt.reason)).unwrap_or(Reason::ActionFailed);
            let text = match (halt, culprit) {
                (Some(halt), None) => halt.reason.in_words(),
                (Some(halt), Some(culprit))
                    if matches!(halt.reason, Reason::TimedOut | Reason::ProgressTimeout) =>
                {
                    match limit(plan, culprit, halt.reason) {
                        Some(limit) => format!("timed out after {limit}: {}", culprit.message),
                        None => format!("timed out: {}", culprit.message),
                    }
                }
                (_, Some(culprit)) => describe(plan, culprit),
                (None, None) => Reason::ActionFailed.in_words(),
            };
            let by_hand = if plan.terms.recovery == Recovery::Manual { "; recovery is by hand" } else { "" };
            (reason, format!("{text}{by_hand}"))
        }
        Phase::Waiting => {
            let text = first.map_or_else(
                || Reason::Waiting.in_words(),
                |blocker| {
                    // An action is not waited for: it waits.
                    let action = blocker.step.as_ref().filter(|id| actions.iter().any(|one| one.id == **id));
                    let (message, more) = (&blocker.message, more(blocked.len()));
                    match action {
                        Some(action) => format!("{action} waits: {message}{more}"),
                        None => format!("waiting for {message}{more}"),
                    }
                },
            );
            (Reason::Waiting, text)
        }
        Phase::Running => {
            let text = first.map_or_else(String::new, |blocker| format!(": {}", blocker.message));
            let progress = match actions.len() {
                1 => "its action is not done yet".to_owned(),
                all => format!("{done} of {all} actions are done"),
            };
            (Reason::Running, format!("{progress}{text}"))
        }
    }
}

/// What happened to a step; what already says which step it is about does not say so twice.
fn describe(plan: &Plan, report: &StepReport) -> String {
    let (id, message) = (report.id.as_str(), report.message.as_str());
    let requirement = plan.position(&report.id).and_then(|position| plan.steps()[position].requirement());
    let named = requirement.is_some_and(|requirement| requirement.label == id);
    if named { message.to_owned() } else { format!("{id}: {message}") }
}

/// How long a requirement might have taken.
fn limit(plan: &Plan, report: &StepReport, reason: Reason) -> Option<Period> {
    let step = &plan.steps()[plan.position(&report.id)?];
    let limit = if reason == Reason::ProgressTimeout { step.progress_timeout } else { step.timeout };
    limit.map(Period::new)
}

fn all_done(actions: usize) -> String {
    match actions {
        1 => "its action is done".to_owned(),
        all => format!("all {all} actions are done"),
    }
}
