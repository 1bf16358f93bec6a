//! The same small change to many objects, ordered without a plan.
//!
//! For needs that can be read off each object again at any time: a pod that is to be released, a mark that is to be
//! set. Nothing is remembered that must survive a crash, so nothing is journaled: a crash costs at most one repeated
//! order per object, and orders are idempotent and name the incarnation they are meant for. Called by subjects that
//! have no plan of their own (the held pods of a namespace).
//!
//! What [`sweep`] promises:
//!
//! - one order at a time for an item, and no more than `limit` for all;
//! - after an order took place, the item is not judged again from an observation older than it;
//! - a failed item is tried again after a pause and touches no other;
//! - while the set of items is not known, nothing is ordered.

use std::collections::BTreeMap;

use linchpin_words::Timestamp;

use crate::{
    contract::{Effect, Failure, Outcome, StepId, Ticket, Verb, Via},
    step::{
        REQUEST_DEADLINE,
        backoff::{self, FailureClass},
    },
};

/// Which need of which object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ItemKey {
    /// The rule that the need comes from.
    pub rule: StepId,
    /// The object's uid.
    pub uid: String,
}

/// What an object, as it was seen, needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SweepNeed {
    /// Nothing.
    Settled,
    /// This order.
    Due(Box<SweepOrder>),
    /// Nothing yet: something else must come first.
    Held,
}

/// What is to be done to an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SweepOrder {
    /// Where and as whom.
    pub via: Via,
    /// What: idempotent, and for this incarnation only.
    pub verb: Verb,
}

/// One object of the set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SweepItem {
    /// The resourceVersion that it was seen at.
    pub seen: u64,
    /// What it needs.
    pub need: SweepNeed,
}

/// What is remembered between two sweeps. A crash forgets it, and that is harmless.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SweepMemory {
    records: BTreeMap<ItemKey, Record>,
    flights: BTreeMap<Ticket, ItemKey>,
    orders: u64,
}

impl SweepMemory {
    /// How many orders are under way.
    pub fn in_flight(&self) -> usize {
        self.flights.len()
    }
}

/// What is known of one item beside what is seen of it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Record {
    attempts: u32,
    state: OrderState,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum OrderState {
    /// An order is under way.
    Flying,
    /// The last order took place; the object was at this version then.
    Written(u64),
    /// The incarnation is gone.
    Gone,
    /// The last order failed; the next one comes then.
    Resting { until: Timestamp, failure: Failure },
}

/// What a sweep gives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// What to remember.
    pub memory: SweepMemory,
    /// What to do now.
    pub effects: Vec<Effect>,
    /// When to look again, if nothing happens before.
    pub wake_at: Option<Timestamp>,
    /// The items whose last order failed, and why.
    pub failed: BTreeMap<ItemKey, Failure>,
}

/// Orders what is due. `items` is none while the set of objects is not known.
pub fn sweep(
    memory: &SweepMemory,
    items: Option<&BTreeMap<ItemKey, SweepItem>>,
    outcomes: &[Outcome],
    limit: usize,
    now: Timestamp,
) -> Swept {
    let mut memory = memory.clone();
    for outcome in outcomes {
        file(&mut memory, outcome);
    }
    let mut swept = Swept::default();
    if let Some(items) = items {
        // What is no longer asked for is forgotten, once nothing of it is under way.
        memory.records.retain(|key, record| record.state == OrderState::Flying || items.contains_key(key));
        for (key, item) in items {
            order(&mut memory, &mut swept, key, item, limit, now);
        }
    }
    for (key, record) in &memory.records {
        if let OrderState::Resting { failure, .. } = &record.state {
            swept.failed.insert(key.clone(), failure.clone());
        }
    }
    swept.memory = memory;
    swept
}

/// Takes down what came back for an order. One that is not under way, or that a crash forgot, changes nothing.
fn file(memory: &mut SweepMemory, outcome: &Outcome) {
    let Some(key) = memory.flights.remove(&outcome.ticket) else {
        return;
    };
    let Some(record) = memory.records.get_mut(&key) else {
        return;
    };
    let pace = match &outcome.result {
        Ok(done) => {
            record.attempts = 0;
            record.state =
                done.stamp.as_ref().map_or(OrderState::Gone, |stamp| OrderState::Written(stamp.version));
            return;
        }
        Err(Failure::Gone(_) | Failure::Terminating(_)) => {
            record.state = OrderState::Gone;
            return;
        }
        // It never left: there is nothing to rest from.
        Err(Failure::NotStarted) => {
            memory.records.remove(&key);
            return;
        }
        Err(Failure::Throttled(after)) => {
            let until = outcome.at.plus_duration(*after);
            record.state = OrderState::Resting { until, failure: Failure::Throttled(*after) };
            return;
        }
        Err(Failure::Transient(_) | Failure::Unknowable(_) | Failure::StalePrecondition(_)) => {
            FailureClass::Transient
        }
        Err(_) => FailureClass::Refused,
    };
    if let Err(failure) = &outcome.result {
        let delay = backoff::delay(pace, &key.uid, &key.rule, record.attempts);
        record.state =
            OrderState::Resting { until: outcome.at.plus_duration(delay), failure: failure.clone() };
    }
}

/// Orders what one item needs, if it may be ordered now.
fn order(
    memory: &mut SweepMemory,
    swept: &mut Swept,
    key: &ItemKey,
    item: &SweepItem,
    limit: usize,
    now: Timestamp,
) {
    let SweepNeed::Due(due) = &item.need else {
        // What needs nothing has nothing to be tried again.
        if memory.records.get(key).is_some_and(|record| matches!(record.state, OrderState::Resting { .. })) {
            memory.records.remove(key);
        }
        return;
    };
    let attempts = match memory.records.get(key) {
        None => 0,
        Some(record) => match &record.state {
            OrderState::Flying | OrderState::Gone => return,
            OrderState::Written(version) if item.seen < *version => return,
            OrderState::Written(_) => 0,
            OrderState::Resting { until, .. } if *until > now => {
                swept.wake_at = Some(swept.wake_at.map_or(*until, |earlier| earlier.min(*until)));
                return;
            }
            OrderState::Resting { .. } => record.attempts,
        },
    };
    if memory.flights.len() >= limit {
        return;
    }
    memory.orders += 1;
    let ticket =
        Ticket { step: key.rule.clone(), run: memory.orders, attempt: attempts.saturating_add(1), part: 0 };
    memory.flights.insert(ticket.clone(), key.clone());
    memory.records.insert(key.clone(), Record { attempts: ticket.attempt, state: OrderState::Flying });
    swept.effects.push(Effect {
        ticket,
        via: due.via.clone(),
        verb: due.verb.clone(),
        discreet: false,
        deadline: REQUEST_DEADLINE,
        rank: 0,
    });
}
