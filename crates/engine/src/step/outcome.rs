//! What came back: from outcomes of effects to records.
//!
//! An outcome counts only for the attempt it belongs to. What cannot be known is said to be unknown, never guessed.

use std::collections::BTreeSet;

use linchpin_words::{Reason, Timestamp};

use super::{
    advance::add,
    backoff::{self, Pace},
};
use crate::{
    contract::{Done, Failure, Outcome, StepId, Target},
    journal::{Awaits, Item, ItemState, Memory, Record, StepState, Wrote},
    plan::{Action, Body, Delivery, Plan, Recovery, Step},
};

/// Files all outcomes, then settles every attempt that has come back whole or was lost.
pub(super) fn settle(
    plan: &Plan,
    memory: &mut Memory,
    records: &mut [Record],
    outcomes: &[Outcome],
    now: Timestamp,
) {
    for outcome in outcomes {
        file(plan, memory, records, outcome);
    }
    for (step, record) in plan.steps().iter().zip(records) {
        let Some(action) = step.action() else { continue };
        if record.state != StepState::Running || matches!(action.body, Body::Wait(_)) {
            continue;
        }
        let in_flight = memory.flight.iter().any(|ticket| ticket.step == step.id);
        let more = memory
            .attempts
            .get(&step.id)
            .is_some_and(|attempt| attempt.worst.is_none() && !attempt.waves.is_empty());
        if in_flight || more {
            continue;
        }
        match memory.attempts.remove(&step.id) {
            Some(attempt) => match attempt.worst {
                Some(failure) => {
                    memory.messages.insert(step.id.clone(), failure.to_string());
                    fail(plan, step, action, record, &failure, now);
                }
                None => end_well(memory, step, record, attempt.changed, attempt.awaits, now),
            },
            None if record.awaits.is_some() => {}
            None => lose(action, record, now),
        }
    }
}

/// Files one outcome under its attempt.
fn file(plan: &Plan, memory: &mut Memory, records: &mut [Record], outcome: &Outcome) {
    let ticket = &outcome.ticket;
    let was_in_flight = memory.flight.remove(ticket);
    let Some(position) = plan.position(&ticket.step) else {
        return;
    };
    let step = &plan.steps()[position];
    let Some(action) = step.action() else { return };
    if let Ok(done) = &outcome.result {
        remember(memory, plan, position, action, done);
    }
    let record = &mut records[position];
    let current =
        record.state == StepState::Running && ticket.run == record.run && ticket.attempt == record.attempt;
    if !current || !was_in_flight {
        return;
    }
    let Some(attempt) = memory.attempts.get_mut(&ticket.step) else {
        return;
    };
    match &outcome.result {
        Ok(done) => {
            attempt.changed |= !done.skipped;
            if let (Some(target), Some(stamp)) = (&done.target, &done.stamp) {
                record.wrote.retain(|wrote| wrote.target != *target);
                if !matches!(action.body, Body::Delete { .. }) {
                    record.wrote.push(Wrote { target: target.clone(), stamp: stamp.clone() });
                } else if !done.gone {
                    attempt.awaits = Some(Awaits::Absent { target: target.clone(), uid: stamp.uid.clone() });
                }
            }
        }
        Err(failure) => {
            let worse = attempt.worst.as_ref().is_none_or(|worst| severity(failure) > severity(worst));
            if worse {
                attempt.worst = Some(failure.clone());
            }
        }
    }
}

/// Keeps the inventory true, also for outcomes that come too late to matter otherwise.
///
/// An object that we made stays ours when we write to it again; one that was there when we came never becomes ours.
fn remember(memory: &mut Memory, plan: &Plan, position: usize, action: &Action, done: &Done) {
    if !action.tracked || matches!(action.body, Body::Delete { .. }) {
        return;
    }
    let (Some(target), Some(stamp)) = (&done.target, &done.stamp) else {
        return;
    };
    let row = row(memory, plan, position, action, target);
    let ours = done.created || row.state == ItemState::Created && row.uid.as_ref() == Some(&stamp.uid);
    row.state = if ours { ItemState::Created } else { ItemState::Adopted };
    row.uid = Some(stamp.uid.clone());
    row.target = target.clone();
}

/// The inventory row of an object, made if it is missing.
fn row<'a>(
    memory: &'a mut Memory,
    plan: &Plan,
    position: usize,
    action: &Action,
    target: &Target,
) -> &'a mut Item {
    let step = &plan.steps()[position];
    let rows = &mut memory.journal.inventory;
    let known = rows.iter().position(|row| {
        row.step == step.id && row.target.name == target.name && same_place(&row.target, target)
    });
    let index = known.unwrap_or_else(|| {
        let after = earlier_rows(plan, position, rows);
        rows.push(Item {
            step: step.id.clone(),
            via: action.via.clone(),
            target: target.clone(),
            uid: None,
            state: ItemState::Intended,
            reason: None,
            after,
            prune: action.prune,
            attempt: 0,
            retry_at: None,
        });
        rows.len() - 1
    });
    &mut rows[index]
}

/// The nearest earlier steps that have made something, past those that were left out.
fn earlier_rows(plan: &Plan, position: usize, rows: &[Item]) -> Vec<StepId> {
    let mut open = plan.earlier_tracked(position);
    let mut seen = BTreeSet::new();
    let mut found = BTreeSet::new();
    while let Some(step) = open.pop() {
        if !seen.insert(step.clone()) {
            continue;
        }
        if rows.iter().any(|row| row.step == step) {
            found.insert(step);
        } else if let Some(earlier) = plan.position(&step) {
            open.extend(plan.earlier_tracked(earlier));
        }
    }
    found.into_iter().collect()
}

/// Whether two targets are one object, one of them perhaps still without what discovery adds.
fn same_place(one: &Target, other: &Target) -> bool {
    one.kind.word.eq_ignore_ascii_case(&other.kind.word)
        && one.kind.group.as_deref().unwrap_or_default() == other.kind.group.as_deref().unwrap_or_default()
        && (one.namespace == other.namespace || one.namespace.is_none() || other.namespace.is_none())
}

/// Adds rows for objects that are to be made, so that a crash right after making them loses none.
pub(super) fn intend(memory: &mut Memory, plan: &Plan, position: usize, action: &Action, targets: &[Target]) {
    if !action.tracked {
        return;
    }
    for target in targets {
        let before = memory.journal.inventory.len();
        row(memory, plan, position, action, target);
        if memory.journal.inventory.len() > before {
            memory.critical += 1;
        }
    }
}

/// For an object that is going: what was created by effects that come back only now.
pub(super) fn remember_late(memory: &mut Memory, outcomes: &[Outcome]) {
    for outcome in outcomes {
        memory.flight.remove(&outcome.ticket);
        let Ok(Done { target: Some(target), created: true, stamp: Some(stamp), .. }) = &outcome.result else {
            continue;
        };
        let step = &outcome.ticket.step;
        let rows = &mut memory.journal.inventory;
        if let Some(row) = rows.iter_mut().find(|row| row.step == *step && same_place(&row.target, target)) {
            row.state = ItemState::Created;
            row.uid = Some(stamp.uid.clone());
            row.target = target.clone();
        }
    }
}

fn end_well(
    memory: &mut Memory,
    step: &Step,
    record: &mut Record,
    changed: bool,
    awaits: Option<Awaits>,
    now: Timestamp,
) {
    memory.messages.remove(&step.id);
    if awaits.is_some() {
        record.awaits = awaits;
        record.become_state(StepState::Running, Some(Reason::AwaitingAbsence), now);
    } else if changed {
        record.become_state(StepState::Done, None, now);
    } else {
        record.become_state(StepState::Skipped, Some(Reason::Exists), now);
    }
}

/// An attempt that was under way when we crashed.
fn lose(action: &Action, record: &mut Record, now: Timestamp) {
    match action.delivery() {
        Some(Delivery::AtMostOnce) => {
            record.become_state(StepState::Unknown, Some(Reason::OutcomeUnknown), now);
        }
        _ => record.become_state(StepState::Waiting, None, now),
    }
}

/// Which of two failures of one attempt decides it.
fn severity(failure: &Failure) -> u8 {
    match failure {
        Failure::Unknowable(_) => 3,
        Failure::AlreadyExists(_)
        | Failure::FieldConflict(_)
        | Failure::Forbidden(_)
        | Failure::Invalid(_)
        | Failure::Render(_)
        | Failure::Exit(_) => 2,
        Failure::NotStarted => 0,
        _ => 1,
    }
}

/// An attempt that did not end well: fail, or try again, by the class of what went wrong.
pub(super) fn fail(
    plan: &Plan,
    step: &Step,
    action: &Action,
    record: &mut Record,
    failure: &Failure,
    now: Timestamp,
) {
    let after = |pace| add(now, backoff::delay(pace, &plan.uid, &step.id, record.attempt));
    let automatic = plan.recovery == Recovery::Automatic;
    let (state, reason, retry_at) = match failure {
        Failure::NotStarted => {
            record.token = None;
            (StepState::Waiting, Some(Reason::Retrying), Some(after(Pace::Transient)))
        }
        Failure::Unknowable(_) => match action.delivery() {
            Some(Delivery::AtMostOnce) => (StepState::Unknown, Some(Reason::OutcomeUnknown), None),
            _ => (StepState::Waiting, Some(Reason::Retrying), Some(after(Pace::Transient))),
        },
        Failure::Throttled(patience) => (
            StepState::Waiting,
            Some(Reason::Throttled),
            Some(add(now, *patience).max(after(Pace::Transient))),
        ),
        Failure::Transient(_) | Failure::StalePrecondition(_) => {
            (StepState::Waiting, Some(Reason::Retrying), Some(after(Pace::Transient)))
        }
        Failure::Terminating(_) => (StepState::Waiting, Some(Reason::Terminating), Some(after(Pace::Absent))),
        Failure::IdentityGone(_) => {
            (StepState::Waiting, Some(Reason::IdentityGone), Some(after(Pace::Absent)))
        }
        Failure::Gone(_) => {
            record.awaits = action.target().map(Awaits::Present);
            (StepState::Waiting, Some(Reason::NotFound), Some(after(Pace::Absent)))
        }
        Failure::NotServed(_) => {
            record.awaits = action.target().map(|target| Awaits::Served(target.kind));
            (StepState::Waiting, Some(Reason::KindNotServed), Some(after(Pace::Absent)))
        }
        Failure::AlreadyExists(_) => refused(Reason::AlreadyExists, automatic, after(Pace::Refused)),
        Failure::FieldConflict(_) => refused(Reason::ApplyConflict, automatic, after(Pace::Refused)),
        Failure::Forbidden(_) => refused(Reason::Forbidden, automatic, after(Pace::Refused)),
        Failure::Invalid(_) => refused(Reason::Invalid, automatic, after(Pace::Refused)),
        Failure::Render(_) => refused(Reason::RenderFailed, automatic, after(Pace::Refused)),
        Failure::Exit(_) => {
            let again = automatic && action.delivery() == Some(Delivery::AtLeastOnce);
            refused(Reason::ActionFailed, again, after(Pace::Refused))
        }
    };
    record.retry_at = retry_at;
    record.become_state(state, reason, now);
}

fn refused(reason: Reason, again: bool, at: Timestamp) -> (StepState, Option<Reason>, Option<Timestamp>) {
    (StepState::Failed, Some(reason), again.then_some(at))
}
