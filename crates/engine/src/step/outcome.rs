//! What came back: from outcomes of effects to records.
//!
//! An outcome counts only for the attempt it belongs to. What cannot be known is said to be unknown, never guessed.

use linchpin_words::{Reason, Shared, Timestamp};

use super::{
    advance::add,
    backoff::{self, FailureClass},
    inventory::{ours, outgrow, remember, remember_late},
};
use crate::{
    contract::{Done, Failure, Outcome},
    journal::{Attempt, Awaits, EffectEnd, Memory, Recreate, StepRecord, StepState, WrittenObject},
    plan::{ActionBody, Delivery, Immutable, Plan, PlannedAction, Recovery, Step},
};

/// Files all outcomes, then settles every attempt that has come back whole or was lost.
pub(super) fn settle(
    plan: &Plan,
    memory: &mut Memory,
    records: &mut [Shared<StepRecord>],
    outcomes: &[Outcome],
    now: Timestamp,
) {
    for outcome in outcomes {
        file(plan, memory, records, outcome);
    }
    for (step, record) in plan.steps().iter().zip(records) {
        let Some(action) = step.action() else { continue };
        if record.state != StepState::Running || matches!(action.body, ActionBody::Wait(_)) {
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
            Some(Attempt { worst: Some(failure), .. }) => {
                memory.messages.insert(step.id.clone(), failure.to_string());
                if matches!(failure, Failure::NotOurs(_)) {
                    record.recreate = None;
                }
                if !cannot_change(memory, step, action, record, &failure, now) {
                    fail(plan, step, action, record, &failure, now);
                }
            }
            Some(attempt) => end_well(memory, plan, step, record, attempt, now),
            None if record.awaits.is_some() => {}
            None => lose(plan, step, action, record, now),
        }
        if record.ended.is_some() {
            record.ended = None;
        }
    }
}

/// Files one outcome under its attempt.
fn file(plan: &Plan, memory: &mut Memory, records: &mut [Shared<StepRecord>], outcome: &Outcome) {
    let ticket = &outcome.ticket;
    let was_in_flight = memory.flight.remove(ticket);
    let Some(position) = plan.position(&ticket.step) else {
        // Its step has left the plan: what it made all the same is ours to take away.
        return remember_late(memory, std::slice::from_ref(outcome));
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
            let before = is_earlier_work(action, record, done);
            attempt.made_before |= before;
            attempt.changed |= !done.skipped && !before;
            if let (Some(target), Some(stamp)) = (&done.target, &done.stamp) {
                record.wrote.retain(|wrote| wrote.target != *target);
                if !matches!(action.body, ActionBody::Delete { .. }) && record.recreate.is_none() {
                    record.wrote.push(WrittenObject { target: target.clone(), stamp: stamp.clone() });
                } else if !done.gone {
                    attempt.awaits = Some(Awaits::Absent { target: target.clone(), uid: stamp.uid.clone() });
                }
            }
            attempt.yielded.extend(done.yielded.iter().cloned());
        }
        // What was to be deleted to be made anew is gone, or another one is there: either way the way is free.
        Err(Failure::Gone(_) | Failure::StalePrecondition(_)) if record.recreate.is_some() => {}
        // What was there when the deletion was ordered is gone; what is there now was not meant.
        Err(Failure::Gone(_) | Failure::StalePrecondition(_))
            if matches!(action.body, ActionBody::Delete { .. }) =>
        {
            attempt.changed = true;
        }
        Err(failure) => {
            let worse = attempt.worst.as_ref().is_none_or(|worst| severity(failure) > severity(worst));
            if worse {
                attempt.worst = Some(failure.clone());
            }
        }
    }
}

/// Whether a create met what this very step made before, perhaps from another text: nothing was written.
fn is_earlier_work(action: &PlannedAction, record: &StepRecord, done: &Done) -> bool {
    let uid = done.stamp.as_ref().map(|stamp| &stamp.uid);
    matches!(action.body, ActionBody::Create { .. })
        && uid.is_some_and(|uid| record.wrote.iter().any(|wrote| wrote.stamp.uid == *uid))
}

fn end_well(
    memory: &mut Memory,
    plan: &Plan,
    step: &Step,
    record: &mut StepRecord,
    attempt: Attempt,
    now: Timestamp,
) {
    memory.messages.remove(&step.id);
    if attempt.awaits.is_some() {
        record.awaits = attempt.awaits.map(Box::new);
        record.become_state(StepState::Running, Some(Reason::AwaitingAbsence), now);
        return;
    }
    if record.recreate.take().is_some() {
        record.become_state(StepState::Waiting, Some(Reason::Recreating), now);
        return;
    }
    outgrow(memory, plan, record, &step.id, &attempt.targets);
    record.repairing = false;
    if !attempt.changed {
        let reason = if attempt.made_before { Reason::CreatedBefore } else { Reason::Exists };
        record.become_state(StepState::Skipped, Some(reason), now);
    } else if attempt.yielded.is_empty() {
        record.become_state(StepState::Done, None, now);
    } else {
        memory.messages.insert(step.id.clone(), attempt.yielded.join("; "));
        record.become_state(StepState::Done, Some(Reason::FieldsYielded), now);
    }
}

/// A field that cannot be changed in place: whether the action's policy knows what to do about it.
fn cannot_change(
    memory: &Memory,
    step: &Step,
    action: &PlannedAction,
    record: &mut StepRecord,
    failure: &Failure,
    now: Timestamp,
) -> bool {
    let Failure::Immutable { target, .. } = failure else {
        return false;
    };
    match action.immutable {
        Immutable::Fail => false,
        Immutable::Ignore => {
            record.repairing = false;
            record.become_state(StepState::Done, Some(Reason::ImmutableField), now);
            true
        }
        Immutable::Recreate => {
            let Some(uid) = ours(memory, &step.id, &action.via.cluster.place(), target) else {
                return false;
            };
            record.recreate = Some(Box::new(Recreate { target: target.clone(), uid: uid.clone() }));
            record.become_state(StepState::Waiting, Some(Reason::Recreating), now);
            true
        }
    }
}

/// An attempt that was under way when we crashed. How it ended may have been recorded before that.
fn lose(plan: &Plan, step: &Step, action: &PlannedAction, record: &mut StepRecord, now: Timestamp) {
    match (action.delivery(), record.ended) {
        (Some(_), Some(EffectEnd::Well)) => record.become_state(StepState::Done, None, now),
        (Some(_), Some(EffectEnd::Exit(code))) => fail(plan, step, action, record, &Failure::Exit(code), now),
        (Some(_), Some(EffectEnd::NotDone)) => fail(plan, step, action, record, &Failure::NotStarted, now),
        (Some(Delivery::AtMostOnce), None) => {
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
        | Failure::NotOurs(_)
        | Failure::FieldConflict(_)
        | Failure::Forbidden(_)
        | Failure::Invalid(_)
        | Failure::Immutable { .. }
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
    action: &PlannedAction,
    record: &mut StepRecord,
    failure: &Failure,
    now: Timestamp,
) {
    let after = |pace| add(now, backoff::delay(pace, &plan.uid, &step.id, record.attempt));
    let automatic = plan.terms.recovery == Recovery::Automatic;
    let (state, reason, retry_at) = match failure {
        Failure::NotStarted => {
            record.token = None;
            (StepState::Waiting, Some(Reason::Retrying), Some(after(FailureClass::Transient)))
        }
        Failure::Unknowable(_) => match action.delivery() {
            Some(Delivery::AtMostOnce) => (StepState::Unknown, Some(Reason::OutcomeUnknown), None),
            _ => (StepState::Waiting, Some(Reason::Retrying), Some(after(FailureClass::Transient))),
        },
        Failure::Throttled(patience) => (
            StepState::Waiting,
            Some(Reason::Throttled),
            Some(add(now, *patience).max(after(FailureClass::Transient))),
        ),
        Failure::Transient(_) | Failure::StalePrecondition(_) => {
            (StepState::Waiting, Some(Reason::Retrying), Some(after(FailureClass::Transient)))
        }
        Failure::Terminating(_) => {
            (StepState::Waiting, Some(Reason::Terminating), Some(after(FailureClass::Absent)))
        }
        Failure::IdentityGone(_) => {
            (StepState::Waiting, Some(Reason::IdentityGone), Some(after(FailureClass::Absent)))
        }
        Failure::CredentialAbsent(_) => {
            (StepState::Waiting, Some(Reason::ClusterPending), Some(after(FailureClass::Absent)))
        }
        Failure::Gone(_) => {
            record.awaits = action.target().map(Awaits::Present).map(Box::new);
            (StepState::Waiting, Some(Reason::NotFound), Some(after(FailureClass::Absent)))
        }
        Failure::NotServed(_) => {
            record.awaits = action.target().map(|target| Box::new(Awaits::Served(target.kind)));
            (StepState::Waiting, Some(Reason::KindNotServed), Some(after(FailureClass::Absent)))
        }
        Failure::AlreadyExists(_) => refused(Reason::AlreadyExists, automatic, after(FailureClass::Refused)),
        Failure::FieldConflict(_) => refused(Reason::ApplyConflict, automatic, after(FailureClass::Refused)),
        Failure::NotOurs(_) => refused(Reason::TakenBack, automatic, after(FailureClass::Refused)),
        Failure::Forbidden(_) => refused(Reason::Forbidden, automatic, after(FailureClass::Refused)),
        Failure::Invalid(_) => refused(Reason::Invalid, automatic, after(FailureClass::Refused)),
        Failure::Immutable { .. } => refused(Reason::ImmutableField, automatic, after(FailureClass::Refused)),
        Failure::Render(_) => refused(Reason::RenderFailed, automatic, after(FailureClass::Refused)),
        Failure::Exit(_) => {
            let again = automatic && action.delivery() == Some(Delivery::AtLeastOnce);
            refused(Reason::ActionFailed, again, after(FailureClass::Refused))
        }
    };
    record.retry_at = retry_at;
    record.become_state(state, reason, now);
}

fn refused(reason: Reason, again: bool, at: Timestamp) -> (StepState, Option<Reason>, Option<Timestamp>) {
    (StepState::Failed, Some(reason), again.then_some(at))
}
