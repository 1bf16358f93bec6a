//! Records: what a door keeps beside an object (events, revisions), written as the operator itself.
//!
//! They are no part of the plan and nothing waits for them. A door says on every turn what is to be written or deleted
//! now, judged by what it sees; here each is sent once, and again after a while if it fails.

use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
};

use linchpin_cluster::hub::SubscriberId;
use linchpin_doors::SideWrite;
use linchpin_engine::contract::{Effect, Failure, Outcome, StepId, Ticket, Verb};
use linchpin_words::Timestamp;

use super::{
    Controller,
    driver::EffectOrigin,
    entry::Entry,
    now,
    pace::{RECORD_DEADLINE, RECORD_RETRY, RECORDS_REMEMBERED},
    turn::regarding,
};

/// What was sent of an object's records.
#[derive(Default)]
pub(crate) struct Sent {
    /// By name, what was sent last: its hash, for a revision holds a whole spec.
    last: BTreeMap<StepId, u64>,
    /// When those that failed may be sent again.
    retry_at: BTreeMap<StepId, Timestamp>,
}

impl Sent {
    /// When a record may be sent again, if it failed and that is not yet.
    fn rests_until(&mut self, name: &StepId, time: Timestamp) -> Option<Timestamp> {
        let at = *self.retry_at.get(name)?;
        if at <= time {
            self.retry_at.remove(name);
            return None;
        }
        Some(at)
    }
}

fn fingerprint(verb: &Verb) -> u64 {
    let mut hasher = DefaultHasher::new();
    verb.hash(&mut hasher);
    hasher.finish()
}

impl Controller {
    /// Sends what is not sent yet.
    pub(super) fn keep(&mut self, entry: &mut Entry, records: Vec<SideWrite>, time: Timestamp) {
        entry.sent.retry_at.retain(|name, _| records.iter().any(|record| record.name == *name));
        if entry.sent.last.len() > RECORDS_REMEMBERED {
            entry.sent.last.retain(|name, _| records.iter().any(|record| record.name == *name));
        }
        for record in records {
            if let Some(at) = entry.sent.rests_until(&record.name, time) {
                let wake_at = entry.wake_at.map_or(at, |earlier| earlier.min(at));
                entry.wake_at = Some(wake_at);
                self.timers.set(entry.id, Some(wake_at));
                continue;
            }
            let hash = fingerprint(&record.verb);
            if entry.sent.last.get(&record.name) == Some(&hash) {
                continue;
            }
            let ticket = Ticket { step: record.name.clone(), run: 0, attempt: 0, part: 0 };
            let (via, verb) = (record.via, record.verb);
            let effect = Effect { ticket, via, verb, discreet: false, deadline: RECORD_DEADLINE, rank: 0 };
            entry.sent.last.insert(record.name, hash);
            let about = Arc::new(regarding(entry));
            let (lane, priority) = (entry.subject.key().lane(), entry.subject.priority());
            self.driver.submit(lane, priority, entry.id, EffectOrigin::Record, effect, about);
        }
    }

    /// The writing of a record ended.
    pub(super) fn record_written(&mut self, id: SubscriberId, outcome: Outcome) {
        let failed = outcome.result.err().filter(|failure| !matches!(failure, Failure::Gone(_)));
        if let (Some(failure), Some(entry)) = (failed, self.entries.get_mut(&id)) {
            let name = outcome.ticket.step;
            tracing::warn!(object = %entry.subject.key().object_ref(), "cannot keep record {name}: {failure}");
            entry.sent.last.remove(&name);
            entry.sent.retry_at.insert(name, now().plus_duration(RECORD_RETRY));
            self.enqueue(id);
        }
    }
}
