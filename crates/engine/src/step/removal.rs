//! Taking away what was made: prune, teardown, deletion.
//!
//! Works from the inventory alone, so it works when the spec no longer compiles. Objects go in reverse of the order
//! they were made in, and the next ones only when it is really gone. Only what we created is deleted: what has the row's
//! uid and carries our mark. A user who takes the mark off takes the object back, which is reported. Nothing that a user
//! controls can hold this up for ever but a missing right, a foreign finalizer or another cluster that does not answer,
//! and those are named; a gone identity, a terminating namespace, a kind that is no longer served, or a credential that
//! has been absent for five minutes of deletion means: say what is left behind, and go on.
//!
//! As whom is never remembered: it is what the object says now ([`Authority`]).
//!
//! Rows that are marked `last` go after all others, whatever the order. Where nothing is to be deleted, owner references
//! are taken off first ([`disown`]), or the API server would delete what is to stay.

use std::collections::BTreeSet;

use linchpin_words::{Reason, Timestamp};
use serde_json::Value;

use super::{
    advance::add,
    backoff::{self, FailureClass},
    judge::FreshWorld,
};
use crate::{
    contract::{
        Authority, Effect, Failure, Outcome, Propagation, Question, ReadSet, Seen, Served, StepId, Ticket,
        Verb, Want, Why,
    },
    journal::{InventoryItem, ItemState, Memory},
    plan::Plan,
};

/// Deletions are no run of the plan: their tickets carry a run that no plan has.
const NO_RUN: u64 = 0;
/// How long one delete request may take.
const DEADLINE: std::time::Duration = std::time::Duration::from_secs(30);

/// How long the credential of another cluster may be absent before what is there is given up, while the object goes.
const ABSENCE: std::time::Duration = std::time::Duration::from_mins(5);
/// No pause between two attempts is longer: a later moment was not written by us.
const LONGEST_PAUSE: std::time::Duration = std::time::Duration::from_mins(10);

/// What one pass over the inventory decided.
#[derive(Default)]
pub(super) struct RemovalPass {
    pub effects: Vec<Effect>,
    /// What is still there, and why.
    pub waiting: Vec<(StepId, Reason, String)>,
    /// What is no longer remembered although it may still be there, and why.
    pub left: Vec<String>,
    pub wake_at: Option<Timestamp>,
    /// Whether everything is gone, or is left behind for good.
    pub done: bool,
}

/// Whether an effect is a deletion from the inventory, as opposed to one of the plan.
pub(super) fn is_deletion(ticket: &Ticket) -> bool {
    ticket.run == NO_RUN
}

/// Whether taking away what the object made has begun, as opposed to what has left its plan.
pub fn has_begun(memory: &Memory) -> bool {
    let ordered = |index: usize| {
        memory.flight.iter().any(|ticket| is_deletion(ticket) && ticket.part as usize == index)
    };
    // Who has left the plan is stale, or has no record any more.
    let of_plan = |item: &InventoryItem| !item.stale && memory.journal.steps.contains_key(&item.step);
    memory.journal.inventory.iter().enumerate().any(|(index, item)| {
        let answered =
            item.reason.is_some() || !matches!(item.state, ItemState::Intended | ItemState::Created);
        item.attempt > 0 && of_plan(item) && (answered || ordered(index))
    })
}

/// How what is chosen is taken away.
pub(super) struct Pass<'a, 'w> {
    /// As whom.
    pub authority: &'a Authority,
    /// What is seen.
    pub fresh_world: &'a FreshWorld<'w>,
    /// Whether the object itself is going, as opposed to a part of it.
    pub deleting: bool,
    /// Whether deletion is asked for and its end not waited for.
    pub hurry: bool,
    pub now: Timestamp,
}

/// Files the outcomes of deletions: of those of the object itself, or of a part of it.
pub(super) fn settle(memory: &mut Memory, outcomes: &[Outcome], deleting: bool, now: Timestamp) {
    for outcome in outcomes.iter().filter(|outcome| is_deletion(&outcome.ticket)) {
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
                item.cut_off = None;
            }
            Err(Failure::Gone(_)) => item.state = ItemState::Gone,
            Err(Failure::NotOurs(_)) => leave(item, Reason::TakenBack),
            Err(Failure::NotServed(_)) => leave(item, Reason::KindNotServed),
            Err(Failure::IdentityGone(_)) => leave(item, Reason::IdentityGone),
            Err(Failure::Terminating(_)) => leave(item, Reason::Terminating),
            Err(Failure::CredentialAbsent(message)) => {
                item.reason = Some(Reason::ClusterPending);
                item.retry_at = retry(FailureClass::Absent);
                memory.messages.insert(item.step.clone(), message.clone());
                if deleting {
                    cut_off(item, now);
                }
            }
            Err(failure) => {
                item.cut_off = None;
                let refused = matches!(failure, Failure::Forbidden(_) | Failure::Invalid(_));
                item.reason = Some(if refused { Reason::Forbidden } else { Reason::Retrying });
                item.retry_at = retry(if refused { FailureClass::Refused } else { FailureClass::Transient });
                memory.messages.insert(item.step.clone(), failure.to_string());
            }
        }
    }
}

fn leave(item: &mut InventoryItem, reason: Reason) {
    item.state = ItemState::Left;
    item.reason = Some(reason);
}

/// An object that stays, and why, for people.
pub(super) fn left(item: &InventoryItem) -> String {
    let reason = item.reason.unwrap_or(Reason::LeftBehind);
    if item.place.is_here() {
        format!("{} ({reason})", item.target)
    } else {
        format!("{} in {} ({reason})", item.target, item.place)
    }
}

/// Nothing leads to its cluster any more: it is given up once that has been so for long enough. Says when.
fn cut_off(item: &mut InventoryItem, now: Timestamp) -> Timestamp {
    let due = item.cut_off.get_or_insert(now).plus_duration(ABSENCE);
    if due <= now {
        leave(item, Reason::ClusterPending);
    }
    due
}

/// Takes away what the plan no longer makes, and forgets what is gone.
pub(super) fn prune(
    plan: &Plan,
    memory: &mut Memory,
    fresh_world: &FreshWorld<'_>,
    now: Timestamp,
) -> RemovalPass {
    let left_the_plan = |item: &InventoryItem| item.stale || plan.position(&item.step).is_none();
    if !memory.journal.inventory.iter().any(left_the_plan) {
        return RemovalPass { done: true, ..RemovalPass::default() };
    }
    // A write that was ordered before its step left the plan may still land: what it makes must be there to be deleted.
    let landing: BTreeSet<StepId> = memory
        .flight
        .iter()
        .filter(|ticket| !is_deletion(ticket))
        .map(|ticket| ticket.step.clone())
        .collect();
    let chosen = |item: &InventoryItem| item.prune && left_the_plan(item) && !landing.contains(&item.step);
    let mut removal = if memory.journal.inventory.iter().any(chosen) {
        let pass = Pass { authority: &plan.terms.authority, fresh_world, deleting: false, hurry: false, now };
        remove(memory, &pass, &chosen)
    } else {
        RemovalPass { done: true, ..RemovalPass::default() }
    };
    // Deletions under way are filed by the place of their row.
    if !memory.flight.iter().any(is_deletion) {
        let stays = |item: &InventoryItem| is_there(item) && item.state != ItemState::Adopted;
        let forgotten = |item: &InventoryItem| left_the_plan(item) && !stays(item);
        if memory.journal.inventory.iter().any(forgotten) {
            let rows = memory.journal.inventory.iter().filter(|item| forgotten(item));
            removal.left.extend(rows.filter(|item| item.state == ItemState::Left).map(left));
            memory.journal.inventory.retain(|item| !forgotten(item));
        }
    }
    removal
}

/// Takes our object off as the owner of everything that is to stay.
pub(super) fn disown(memory: &mut Memory, authority: &Authority, now: Timestamp) -> RemovalPass {
    let mut removal = RemovalPass { done: true, ..RemovalPass::default() };
    for index in 0..memory.journal.inventory.len() {
        let item = &memory.journal.inventory[index];
        let Some(uid) = item.uid.clone().filter(|_| item.owned && is_there(item)) else {
            continue;
        };
        removal.done = false;
        let (target, owner) = (item.target.clone(), memory.journal.uid.clone());
        order(memory, authority, index, Verb::Disown { target, uid, owner }, &mut removal, now);
    }
    removal
}

/// Orders something about a row, unless that is under way or its time has not come.
fn order(
    memory: &mut Memory,
    authority: &Authority,
    index: usize,
    verb: Verb,
    removal: &mut RemovalPass,
    now: Timestamp,
) {
    if memory.flight.iter().any(|ticket| is_deletion(ticket) && ticket.part as usize == index) {
        return;
    }
    let item = &mut memory.journal.inventory[index];
    if let Some(at) = item.retry_at.filter(|at| *at > now && *at <= now.plus_duration(LONGEST_PAUSE)) {
        removal.wake_at = Some(removal.wake_at.map_or(at, |earlier| earlier.min(at)));
        let message = memory.messages.get(&item.step).cloned().unwrap_or_default();
        removal.waiting.push((item.step.clone(), item.reason.unwrap_or(Reason::Retrying), message));
        return;
    }
    item.attempt = item.attempt.saturating_add(1);
    item.retry_at = None;
    let ticket = Ticket {
        step: item.step.clone(),
        run: NO_RUN,
        attempt: item.attempt,
        part: u32::try_from(index).unwrap_or(u32::MAX),
    };
    memory.flight.insert(ticket.clone());
    removal.effects.push(Effect {
        ticket,
        via: authority.via(&item.place),
        verb,
        discreet: false,
        deadline: DEADLINE,
        rank: 0,
    });
}

/// Takes away the rows that `chosen` names.
pub(super) fn remove(
    memory: &mut Memory,
    pass: &Pass<'_, '_>,
    chosen: &dyn Fn(&InventoryItem) -> bool,
) -> RemovalPass {
    let mut removal = RemovalPass { done: true, ..RemovalPass::default() };
    let uid = memory.journal.uid.clone();
    for index in 0..memory.journal.inventory.len() {
        if chosen(&memory.journal.inventory[index]) {
            look(&mut memory.journal.inventory[index], pass, &mut removal);
        }
    }
    let held = RemovalOrder::of(&memory.journal.inventory, chosen);
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
            creator: Some(uid.clone()),
            propagation: Propagation::Background,
        };
        order(memory, pass.authority, index, verb, &mut removal, pass.now);
    }
    removal
}

/// What must stay until other objects are gone.
struct RemovalOrder {
    /// Steps whose objects must stay until those of every later step are gone.
    usual: BTreeSet<StepId>,
    /// The same among the objects that go last.
    last: BTreeSet<StepId>,
    /// Whether anything that does not go last is still there.
    busy: bool,
}

impl RemovalOrder {
    fn of(inventory: &[InventoryItem], chosen: &dyn Fn(&InventoryItem) -> bool) -> Self {
        let there = |item: &&InventoryItem| chosen(item) && is_there(item);
        let (last, usual): (Vec<&InventoryItem>, Vec<&InventoryItem>) =
            inventory.iter().filter(there).partition(|item| item.last);
        let busy = !usual.is_empty();
        Self { usual: earlier(inventory, usual), last: earlier(inventory, last), busy }
    }

    fn holds(&self, item: &InventoryItem) -> bool {
        if item.last { self.busy || self.last.contains(&item.step) } else { self.usual.contains(&item.step) }
    }
}

/// The steps before those of these rows, also where a step between them has nothing of its own any more.
fn earlier<'a>(inventory: &'a [InventoryItem], mut open: Vec<&'a InventoryItem>) -> BTreeSet<StepId> {
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

fn is_there(item: &InventoryItem) -> bool {
    !matches!(item.state, ItemState::Gone | ItemState::Left)
}

/// What is known of a row now: whether a deleted object is gone.
fn look(item: &mut InventoryItem, pass: &Pass<'_, '_>, removal: &mut RemovalPass) {
    let fresh_world = pass.fresh_world;
    match item.state {
        ItemState::Adopted => item.state = ItemState::Gone,
        ItemState::Deleting if pass.hurry => leave(item, Reason::Terminating),
        ItemState::Deleting => {
            let via = pass.authority.via(&item.place);
            let question = Want::new(Question::Kind { via: via.clone(), word: item.target.kind.clone() });
            let served = match fresh_world.ask(question) {
                Some(Seen::Kind(served)) => Some(served.as_ref()),
                Some(Seen::Unknown(why)) => return unseen(item, why, pass, removal),
                _ => None,
            };
            let kind = match served {
                Some(Served::Yes { kind, namespaced, .. }) => (kind, *namespaced),
                Some(Served::No) => return leave(item, Reason::KindNotServed),
                _ => {
                    return removal.waiting.push((item.step.clone(), Reason::Unsynced, String::new()));
                }
            };
            let namespace = item.target.namespace.clone().filter(|_| kind.1);
            let reads = ReadSet::dotted(["metadata.finalizers"]);
            let want = Want::object(via, kind.0.clone(), namespace, &item.target.name, reads);
            match fresh_world.ask(want) {
                Some(Seen::Objects(observed)) => match observed.items.first() {
                    None => item.state = ItemState::Gone,
                    Some(found) if item.uid.as_ref() != Some(&found.uid) => item.state = ItemState::Gone,
                    Some(found) => {
                        let (reason, message) = still_there(&found.content, &item.target.to_string());
                        item.reason = Some(reason);
                        removal.waiting.push((item.step.clone(), reason, message));
                    }
                },
                Some(Seen::Unknown(why)) => unseen(item, why, pass, removal),
                _ => removal.waiting.push((item.step.clone(), Reason::Unsynced, String::new())),
            }
        }
        ItemState::Intended | ItemState::Created | ItemState::Gone | ItemState::Left => {}
    }
}

/// Whether a deleted object is gone cannot be seen now.
fn unseen(item: &mut InventoryItem, why: &Why, pass: &Pass<'_, '_>, removal: &mut RemovalPass) {
    if why.reason == Reason::IdentityGone {
        return leave(item, why.reason);
    }
    if why.absent && pass.deleting {
        let due = cut_off(item, pass.now);
        removal.wake_at = Some(removal.wake_at.map_or(due, |earlier| earlier.min(due)));
    } else {
        item.cut_off = None;
    }
    removal.waiting.push((item.step.clone(), why.reason, why.message.clone()));
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
