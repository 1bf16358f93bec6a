//! Where one step is, and what holds it.

use linchpin_words::{Reason, Shared, Text, text::push_number};

use super::{Advanced, LACKING, RequirementView, StepReport};
use crate::{
    journal::{StepRecord, StepState},
    plan::{After, Plan, PlanLane, Step, StepKind},
    step::fact::{Fact, GuardAnswer, Holds},
};

/// One step among all others: what its report is made from.
pub(super) struct StepContext<'a> {
    pub(super) plan: &'a Plan,
    pub(super) advanced: &'a Advanced,
    pub(super) records: &'a [Option<&'a Shared<StepRecord>>],
    pub(super) fact: &'a Fact,
    pub(super) position: usize,
}

/// The report on one step. `scratch` is where texts are put together before they are shared.
pub(super) fn step_report(
    place: &StepContext<'_>,
    step: &Step,
    record: &StepRecord,
    found: &RequirementView,
    scratch: &mut String,
) -> StepReport {
    let message = place.advanced.memory.messages.get(&step.id);
    let open = place.advanced.open[place.position];
    let mut report = StepReport {
        id: step.id.clone(),
        state: if record.is_retried() { StepState::Failed } else { record.state },
        word: "",
        reason: record.reason.map(Reason::as_str).unwrap_or_default().into(),
        message: Text::default(),
        detail: Text::default(),
        since: record.since,
        attempts: record.attempt,
        selected: found.selected.clone(),
        absent: found.state == "NotFound",
        blocking: false,
        ready: record.is_successful(),
    };
    match &step.kind {
        StepKind::Require(requirement) => {
            report.word = match (record.state, record.reason) {
                (StepState::Failed, Some(Reason::TimedOut | Reason::ProgressTimeout)) => "TimedOut",
                _ => found.state,
            };
            if let Some(turn) = turn(place, record, scratch) {
                match turn {
                    Turn::Later(detail) => {
                        report.reason = Reason::WaitingForTier.as_str().into();
                        report.detail = detail;
                    }
                    // Nobody waits for it either: what is seen of it is all there is to say, while something is missing.
                    Turn::Suspended if place.fact.holds == Holds::Met => {
                        report.reason = Reason::Suspended.as_str().into();
                        report.detail = Reason::Suspended.in_words().into();
                    }
                    Turn::Suspended => {
                        report.reason = found.reason.clone();
                        report.detail = found.message.clone();
                    }
                }
            } else {
                if record.state != StepState::Failed || record.reason == Some(Reason::DependencyFailed) {
                    report.reason = found.reason.clone();
                }
                report.detail = found.message.clone();
            }
            report.message = joined(&[&requirement.label, ": ", &report.detail], scratch);
            let strictly =
                matches!(place.fact.strictly, None | Some(Holds::Met | Holds::Unknown { passing: true }));
            report.ready = record.state == StepState::Met && (strictly || record.proceeded);
            // What is complete is held by whatever keeps it from being ready.
            let gate_is_enough = place.advanced.memory.journal.completed.is_none();
            let enough = record.state == StepState::Met && (gate_is_enough || report.ready);
            let spent = place.advanced.memory.journal.is_spent(place.plan, place.position);
            report.blocking = open && !step.optional && !enough && !spent;
        }
        StepKind::Act(_) => {
            report.word = match report.state {
                StepState::Waiting | StepState::Met => "Pending",
                StepState::Running => "Running",
                StepState::Done => "Done",
                StepState::Skipped => "Skipped",
                StepState::Failed => "Failed",
                StepState::Unknown => "Unknown",
            };
            let lacking = lacks_rights(place, found);
            let held = held_by(place, record, found, scratch);
            if let Some((reason, text)) = held {
                report.reason = reason.as_str().into();
                report.message = text;
            }
            let unsettled = !record.is_successful() && step.lane == PlanLane::Main;
            report.blocking = unsettled && (open || lacking || record.state != StepState::Waiting);
            // While it waits for another step, what went wrong in its last attempt is not what holds it.
            let held_by_itself = record.is_successful() || open || record.state != StepState::Waiting;
            if let Some(message) = message.filter(|_| held_by_itself) {
                report.message = Text::new(message);
            }
            if let Some(wait) = retries_after(record).filter(|_| report.blocking) {
                report.message = format!("{}; asked again in {wait} s", report.message).into();
            }
            if let Some(reason) = record.reason.filter(|_| record.state == StepState::Skipped)
                && report.message.is_empty()
            {
                report.message = reason.in_words().into();
            }
            if report.blocking && report.message.is_empty() {
                report.message = format!("{} is {}", step.id, report.word.to_lowercase()).into();
            }
            report.detail = report.message.clone();
            if report.blocking && report.reason.is_empty() {
                let reason =
                    if record.state == StepState::Running { Reason::Running } else { Reason::Waiting };
                report.reason = reason.as_str().into();
            }
        }
    }
    report
}

/// How long after its failure an action that was refused is tried again: a number that stays the same until then.
fn retries_after(record: &StepRecord) -> Option<i64> {
    let at = record.retry_at.filter(|_| record.state == StepState::Failed)?;
    let seconds = at.as_second() - record.since.as_second();
    (seconds > 0).then_some(seconds)
}

/// Whether an action lacks rights: reported before its turn comes, so that somebody can give them while it waits.
fn lacks_rights(place: &StepContext<'_>, found: &RequirementView) -> bool {
    !place.fact.supplied && LACKING.iter().any(|reason| found.reason == reason.as_str())
}

/// Why an action that has not started has not.
fn held_by(
    place: &StepContext<'_>,
    record: &StepRecord,
    found: &RequirementView,
    scratch: &mut String,
) -> Option<(Reason, Text)> {
    if record.is_successful() || record.state == StepState::Running {
        return None;
    }
    if record.state == StepState::Failed || record.state == StepState::Unknown {
        let reason = record.reason?;
        if reason == Reason::TimedOut && !place.fact.supplied {
            // What it lacks says more than that its time is over.
            return Some((reason, found.message.clone()));
        }
        let undecided = reason == Reason::GuardTimedOut && place.fact.guard == GuardAnswer::Undecided;
        return Some((reason, in_words(reason, found, undecided)));
    }
    if place.fact.drift_held && !lacks_rights(place, found) {
        return Some((Reason::DriftHeld, Reason::DriftHeld.in_words().into()));
    }
    if let Some(turn) = turn(place, record, scratch).filter(|_| !lacks_rights(place, found)) {
        return Some(match turn {
            Turn::Later(text) => (Reason::WaitingForStep, text),
            Turn::Suspended => (Reason::Suspended, Reason::Suspended.in_words().into()),
        });
    }
    if !place.fact.supplied {
        let reason = Reason::from_word(&found.reason).unwrap_or(Reason::MissingRights);
        return Some((reason, found.message.clone()));
    }
    if place.fact.guard == GuardAnswer::Undecided {
        return Some((Reason::GuardUndecided, in_words(Reason::GuardUndecided, found, true)));
    }
    let reason = record.reason?;
    Some((reason, reason.in_words().into()))
}

/// A reason in words; of a condition that is undecided, with what keeps it so.
fn in_words(reason: Reason, found: &RequirementView, undecided: bool) -> Text {
    if undecided && !found.message.is_empty() {
        format!("the action's condition cannot be decided: {}", found.message).into()
    } else {
        reason.in_words().into()
    }
}

/// Whether a step that others come after keeps them no longer.
pub(super) fn is_passed(step: &Step, record: &StepRecord, after: &After) -> bool {
    match &step.kind {
        StepKind::Require(_) => record.state == StepState::Met || step.optional,
        StepKind::Act(_) if after.settled_is_enough => record.is_settled(),
        StepKind::Act(_) => record.is_successful(),
    }
}

/// How many names of steps are shown; of more, the last place goes to their number.
const NAMED: usize = 3;

/// Why a step that waits is closed.
enum Turn {
    /// Others, or a delay, come first: which.
    Later(Text),
    /// Nothing does, but that the object is suspended.
    Suspended,
}

/// Why a step is closed; none where it is not.
fn turn(place: &StepContext<'_>, record: &StepRecord, scratch: &mut String) -> Option<Turn> {
    if place.advanced.open[place.position] || record.state != StepState::Waiting {
        return None;
    }
    Some(match waits_for(place, scratch) {
        Some(named) => Turn::Later(named),
        None if place.plan.terms.suspended => Turn::Suspended,
        None => Turn::Later("waits for a delay to pass".into()),
    })
}

/// The first steps that keep a step closed, by name; none where no step does.
fn waits_for(place: &StepContext<'_>, scratch: &mut String) -> Option<Text> {
    const INTRODUCTION: &str = "waits for ";
    let StepContext { plan, records, position, .. } = *place;
    let mut names = [""; NAMED];
    let mut count = 0;
    for (earlier, after) in plan.before(position).iter().zip(&plan.steps()[position].after) {
        let step = &plan.steps()[*earlier];
        let Some(record) = records[*earlier] else {
            continue;
        };
        if is_passed(step, record, after) || place.advanced.memory.journal.is_spent(plan, *earlier) {
            continue;
        }
        if let Some(name) = names.get_mut(count) {
            *name = match &step.kind {
                StepKind::Require(requirement) => &requirement.label,
                StepKind::Act(_) => step.id.as_str(),
            };
        }
        count += 1;
    }
    if count == 0 {
        return None;
    }
    let shown = if count > NAMED { NAMED - 1 } else { count };
    scratch.clear();
    scratch.push_str(INTRODUCTION);
    for (index, name) in names[..shown].iter().enumerate() {
        scratch.push_str(if index == 0 { "" } else { ", " });
        scratch.push_str(name);
    }
    if count > shown {
        scratch.push_str(" and ");
        push_number(scratch, i64::try_from(count - shown).unwrap_or(i64::MAX));
        scratch.push_str(" more");
    }
    Some(Text::new(scratch))
}

fn joined(parts: &[&str], scratch: &mut String) -> Text {
    scratch.clear();
    scratch.extend(parts.iter().copied());
    Text::new(scratch)
}
