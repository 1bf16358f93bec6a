//! Outcomes that come back while there is no plan to file them under, because the spec is invalid or the object is
//! held while it is being deleted.
//!
//! They are kept in memory and filed with the next plan, as if they came back then; their tickets stay in flight until
//! that. What can be said without a plan is recorded in the journal at once, so that a crash before the next plan loses
//! as little as possible: the inventory rows of what was created, and how an effect ended that must not happen twice.

use std::borrow::Cow;

use super::{inventory, removal};
use crate::{
    contract::{Failure, Outcome},
    journal::{EffectEnd, Memory, StepState},
};
use linchpin_words::Timestamp;

/// Keeps outcomes for the next plan, or for the deletion. Those of deletions need no plan and are filed.
pub fn keep(memory: &mut Memory, outcomes: &[Outcome], now: Timestamp) {
    removal::settle(memory, outcomes, false, now);
    for outcome in outcomes.iter().filter(|outcome| !removal::is_deletion(&outcome.ticket)) {
        inventory::remember_created(memory, outcome);
        record_end(memory, outcome);
        memory.late.push(outcome.clone());
    }
}

/// The outcomes that were kept, and those that have come back since.
pub(super) fn with_kept<'a>(memory: &mut Memory, outcomes: &'a [Outcome]) -> Cow<'a, [Outcome]> {
    if memory.late.is_empty() {
        return Cow::Borrowed(outcomes);
    }
    let mut all = std::mem::take(&mut memory.late);
    all.extend_from_slice(outcomes);
    Cow::Owned(all)
}

/// Records how an effect ended that must not happen twice.
fn record_end(memory: &mut Memory, outcome: &Outcome) {
    let ticket = &outcome.ticket;
    if !memory.flight.contains(ticket) {
        return;
    }
    let Some(record) = memory.journal.steps.get_mut(&ticket.step) else { return };
    let current =
        record.state == StepState::Running && ticket.run == record.run && ticket.attempt == record.attempt;
    if current && record.token.is_some() {
        record.ended = match &outcome.result {
            Ok(_) => Some(EffectEnd::Well),
            Err(Failure::Exit(code)) => Some(EffectEnd::Exit(*code)),
            Err(Failure::Unknowable(_)) => None,
            Err(_) => Some(EffectEnd::NotDone),
        };
    }
}
