//! Taking away what was made: prune, teardown, deletion.
//!
//! Works from the inventory alone, so it works when the spec no longer compiles. Objects go in reverse of the order
//! they were made in, each by its uid, and the next ones only when it is really gone. Only what we created is
//! deleted. Nothing that a user controls can hold this up for ever but a missing right or a foreign finalizer, and
//! those are named; a gone identity, a terminating namespace or a kind that is no longer served means: say what is
//! left behind, and go on.
//!
//! Rows that are marked `last` go after all others, whatever the order. Where nothing is to be deleted, owner references
//! are taken off first ([`disown`]), or the API server would delete what is to stay.

use std::collections::BTreeSet;

use linchpin_words::{Reason, Timestamp};
use serde_json::Value;

use super::{
    advance::add,
    backoff::{self, Pace},
    judge::Sight,
};
use crate::{
    contract::{Effect, Failure, Outcome, Propagation, ReadSet, Seen, Served, StepId, Ticket, Verb, Want},
    journal::{Item, ItemState, Memory},
    plan::Plan,
};

/// Deletions are no run of the plan: their tickets carry a run that no plan has.
const NO_RUN: u64 = 0;
/// How long one delete request may take.
const DEADLINE: std::time::Duration = std::time::Duration::from_secs(30);

/// What one pass over the inventory decided.
#[derive(Default)]
pub(super) struct Removal {
    pub effects: Vec<Effect>,
    /// What is still there, and why.
    pub waiting: Vec<(StepId, Reason, String)>,
    pub wake_at: Option<Timestamp>,
    /// Whether everything is gone, or is left behind for good.
    pub done: bool,
}

/// Files the outcomes of deletions.
pub(super) fn settle(memory: &mut Memory, outcomes: &[Outcome], now: Timestamp) {
    for outcome in outcomes.iter().filter(|outcome| outcome.ticket.run == NO_RUN) {
        memory.flight.remove(&outcome.ticket);
        let uid = memory.journal.uid.clone();
        let Some(item) = memory.journal.inventory.get_mut(outcome.ticket.part as usize) else {
            continue;
        };
        if item.step != outcome.ticket.step || item.attempt != outcome.ticket.attempt {
            continue;
        }
        let retry = |pace| Some(add(now, backoff::delay(pace, &uid, &item.step, item.attempt)));
        match &outcome.result {
            Ok(done) if done.disowned => item.owned = false,
            Ok(done) if done.gone => item.state = ItemState::Gone,
            Ok(done) => {
                item.state = ItemState::Deleting;
                item.uid = done.stamp.as_ref().map(|stamp| stamp.uid.clone()).or(item.uid.take());
            }
            Err(Failure::Gone(_) | Failure::StalePrecondition(_)) => item.state = ItemState::Gone,
            Err(Failure::NotServed(_)) => leave(item, Reason::KindNotServed),
            Err(Failure::IdentityGone(_)) => leave(item, Reason::IdentityGone),
            Err(Failure::Terminating(_)) => leave(item, Reason::Terminating),
            Err(failure) => {
                let refused = matches!(failure, Failure::Forbidden(_) | Failure::Invalid(_));
                item.reason = Some(if refused { Reason::Forbidden } else { Reason::Retrying });
                item.retry_at = retry(if refused { Pace::Refused } else { Pace::Transient });
                memory.messages.insert(item.step.clone(), failure.to_string());
            }
        }
    }
}

fn leave(item: &mut Item, reason: Reason) {
    item.state = ItemState::Left;
    item.reason = Some(reason);
}

/// Takes away what the plan no longer makes, and forgets what is gone.
pub(super) fn prune(plan: &Plan, memory: &mut Memory, sight: &Sight<'_>, now: Timestamp) -> Removal {
    let left_the_plan = |item: &Item| item.stale || plan.position(&item.step).is_none();
    if !memory.journal.inventory.iter().any(left_the_plan) {
        return Removal { done: true, ..Removal::default() };
    }
    // A write that was ordered before its step left the plan may still land: what it makes must be there to be deleted.
    let landing: BTreeSet<StepId> = memory
        .flight
        .iter()
        .filter(|ticket| ticket.run != NO_RUN)
        .map(|ticket| ticket.step.clone())
        .collect();
    let chosen = |item: &Item| item.prune && left_the_plan(item) && !landing.contains(&item.step);
    let removal = if memory.journal.inventory.iter().any(chosen) {
        remove(memory, sight, &chosen, false, now)
    } else {
        Removal { done: true, ..Removal::default() }
    };
    // Deletions under way are filed by the place of their row.
    if !memory.flight.iter().any(|ticket| ticket.run == NO_RUN) {
        let stays = |item: &Item| is_there(item) && item.state != ItemState::Adopted;
        let forgotten = |item: &Item| left_the_plan(item) && !stays(item);
        if memory.journal.inventory.iter().any(forgotten) {
            memory.journal.inventory.retain(|item| !forgotten(item));
        }
    }
    removal
}

/// Takes our object off as the owner of everything that is to stay.
pub(super) fn disown(memory: &mut Memory, now: Timestamp) -> Removal {
    let mut removal = Removal { done: true, ..Removal::default() };
    for index in 0..memory.journal.inventory.len() {
        let item = &memory.journal.inventory[index];
        let Some(uid) = item.uid.clone().filter(|_| item.owned && is_there(item)) else {
            continue;
        };
        removal.done = false;
        let (target, owner) = (item.target.clone(), memory.journal.uid.clone());
        order(memory, index, Verb::Disown { target, uid, owner }, &mut removal, now);
    }
    removal
}

/// Orders something about a row, unless that is under way or its time has not come.
fn order(memory: &mut Memory, index: usize, verb: Verb, removal: &mut Removal, now: Timestamp) {
    if memory.flight.iter().any(|ticket| ticket.run == NO_RUN && ticket.part as usize == index) {
        return;
    }
    let item = &mut memory.journal.inventory[index];
    if let Some(at) = item.retry_at.filter(|at| *at > now) {
        removal.wake_at = Some(removal.wake_at.map_or(at, |earlier| earlier.min(at)));
        let message = memory.messages.get(&item.step).cloned().unwrap_or_default();
        removal.waiting.push((item.step.clone(), item.reason.unwrap_or(Reason::Retrying), message));
        return;
    }
    item.attempt += 1;
    item.retry_at = None;
    let ticket = Ticket {
        step: item.step.clone(),
        run: NO_RUN,
        attempt: item.attempt,
        part: u32::try_from(index).unwrap_or(u32::MAX),
    };
    memory.flight.insert(ticket.clone());
    removal.effects.push(Effect { ticket, via: item.via.clone(), verb, deadline: DEADLINE });
}

/// Takes away the rows that `chosen` names. In a hurry, deletion is asked for but its end is not waited for.
pub(super) fn remove(
    memory: &mut Memory,
    sight: &Sight<'_>,
    chosen: &dyn Fn(&Item) -> bool,
    hurry: bool,
    now: Timestamp,
) -> Removal {
    let mut removal = Removal { done: true, ..Removal::default() };
    let uid = memory.journal.uid.clone();
    for index in 0..memory.journal.inventory.len() {
        if chosen(&memory.journal.inventory[index]) {
            look(&mut memory.journal.inventory[index], sight, hurry, &mut removal);
        }
    }
    let held = Held::of(&memory.journal.inventory, chosen);
    for index in 0..memory.journal.inventory.len() {
        let item = &memory.journal.inventory[index];
        if !chosen(item) || !is_there(item) {
            continue;
        }
        removal.done = false;
        let deletable = matches!(item.state, ItemState::Created | ItemState::Intended);
        if !deletable || held.holds(item) {
            continue;
        }
        let verb = Verb::Delete {
            target: item.target.clone(),
            uid: item.uid.clone(),
            creator: item.uid.is_none().then(|| uid.clone()),
            propagation: Propagation::Background,
        };
        order(memory, index, verb, &mut removal, now);
    }
    removal
}

/// What must stay until other objects are gone.
struct Held {
    /// Steps whose objects must stay until those of every later step are gone.
    usual: BTreeSet<StepId>,
    /// The same among the objects that go last.
    last: BTreeSet<StepId>,
    /// Whether anything that does not go last is still there.
    busy: bool,
}

impl Held {
    fn of(inventory: &[Item], chosen: &dyn Fn(&Item) -> bool) -> Self {
        let there = |item: &&Item| chosen(item) && is_there(item);
        let (last, usual): (Vec<&Item>, Vec<&Item>) =
            inventory.iter().filter(there).partition(|item| item.last);
        let busy = !usual.is_empty();
        Self { usual: earlier(inventory, usual), last: earlier(inventory, last), busy }
    }

    fn holds(&self, item: &Item) -> bool {
        if item.last { self.busy || self.last.contains(&item.step) } else { self.usual.contains(&item.step) }
    }
}

/// The steps before those of these rows, also where a step between them has nothing of its own any more.
fn earlier<'a>(inventory: &'a [Item], mut open: Vec<&'a Item>) -> BTreeSet<StepId> {
    let mut found = BTreeSet::new();
    while let Some(item) = open.pop() {
        for earlier in &item.after {
            if found.insert(earlier.clone()) {
                open.extend(inventory.iter().filter(|row| row.step == *earlier));
            }
        }
    }
    found
}

fn is_there(item: &Item) -> bool {
    !matches!(item.state, ItemState::Gone | ItemState::Left)
}

/// What is known of a row now: whether a deleted object is gone.
fn look(item: &mut Item, sight: &Sight<'_>, hurry: bool, removal: &mut Removal) {
    match item.state {
        ItemState::Adopted => item.state = ItemState::Gone,
        ItemState::Deleting if hurry => leave(item, Reason::Terminating),
        ItemState::Deleting => {
            let kind = match sight.resolve(&item.via, &item.target.kind) {
                Some(Served::Yes { kind, namespaced, .. }) => (kind, *namespaced),
                Some(Served::No) => return leave(item, Reason::KindNotServed),
                _ => {
                    return removal.waiting.push((item.step.clone(), Reason::Unsynced, String::new()));
                }
            };
            let namespace = item.target.namespace.clone().filter(|_| kind.1);
            let reads = ReadSet::dotted(["metadata.finalizers"]);
            let want = Want::object(item.via.clone(), kind.0.clone(), namespace, &item.target.name, reads);
            match sight.ask(want) {
                Some(Seen::Objects(observed)) => match observed.items.first() {
                    None => item.state = ItemState::Gone,
                    Some(found) if item.uid.as_ref() != Some(&found.uid) => item.state = ItemState::Gone,
                    Some(found) => {
                        let (reason, message) = still_there(&found.content, &item.target.to_string());
                        item.reason = Some(reason);
                        removal.waiting.push((item.step.clone(), reason, message));
                    }
                },
                Some(Seen::Unknown(why)) if why.reason == Reason::IdentityGone => leave(item, why.reason),
                Some(Seen::Unknown(why)) => {
                    removal.waiting.push((item.step.clone(), why.reason, why.message.clone()));
                }
                _ => removal.waiting.push((item.step.clone(), Reason::Unsynced, String::new())),
            }
        }
        ItemState::Intended | ItemState::Created | ItemState::Gone | ItemState::Left => {}
    }
}

fn still_there(content: &Value, name: &str) -> (Reason, String) {
    let finalizers: Vec<&str> = content
        .pointer("/metadata/finalizers")
        .and_then(Value::as_array)
        .map(|list| list.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    if finalizers.is_empty() {
        (Reason::AwaitingAbsence, format!("{name} is being deleted"))
    } else {
        (
            Reason::ForeignFinalizer,
            format!("{name} is being deleted, but is kept by {}", finalizers.join(", ")),
        )
    }
}
