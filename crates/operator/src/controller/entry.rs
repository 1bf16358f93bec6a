//! What the controller knows of one object of ours.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use linchpin_cluster::hub::SubscriberId;
use linchpin_doors::{Causes, Compiled, StatusInput};
use linchpin_engine::{
    contract::{Effect, Failure, Outcome, StepId, Want, World},
    journal::Memory,
    plan::SpecError,
    step::{Phase, Report},
};
use linchpin_words::Timestamp;
use serde_json::Value;

use super::{
    allowance::Allowance, history::History, records::Sent, status_hash::StatusHash, subject::Subject,
    throttle::LastTurn,
};

/// One object of ours.
pub(crate) struct Entry {
    /// Which kind, as registered.
    pub(crate) kind: usize,
    pub(crate) id: SubscriberId,
    pub(crate) subject: Box<dyn Subject>,
    /// What the engine remembers; none before the first turn.
    pub(crate) memory: Option<Memory>,
    /// Whether the journal that the object had when it was first looked at could not be read: it is kept as it is, because
    /// nothing else says what was done.
    pub(crate) unread: bool,
    /// The plan, and the facts it was made with; none before it was compiled from this version of the object.
    pub(crate) compiled: Option<(Result<Compiled, SpecError>, World)>,
    /// What the hub was asked for.
    pub(crate) wants: BTreeSet<Want>,
    /// What came back and was not taken in yet.
    pub(crate) outcomes: Vec<Outcome>,
    /// How many effects of its plan have not come back.
    pub(crate) in_flight: usize,
    /// Its last turn, after which it may rest.
    pub(crate) last_turn: Option<LastTurn>,
    /// Whether its last turn left something to be evaluated.
    pub(crate) unfinished: bool,
    pub(crate) wake_at: Option<Timestamp>,
    /// The last time that everything was read again because somebody ordered it.
    pub(crate) fresh_look: FreshLook,
    pub(crate) saving: Saving,
    /// The phase that its status showed when it was first seen.
    pub(crate) shown: Option<String>,
    /// The phase that was last reported in an event.
    pub(crate) reported_phase: Option<Phase>,
    /// What it was, as far as that is to be written down.
    pub(crate) history: History,
    /// What was sent of the objects that are kept beside it.
    pub(crate) sent: Sent,
    /// The gates passed by hand that were reported in events; none before the first turn.
    pub(crate) passed: Option<BTreeSet<StepId>>,
    /// What is behind its blockers, as last found.
    pub(crate) causes: Causes,
    /// What was asked to know whether that may be shown.
    pub(crate) curious: BTreeSet<Want>,
}

/// How often orders make everything be read again.
const FRESH_LOOKS_EVERY: Duration = Duration::from_secs(5);

/// Fresh looks that were ordered by hand.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FreshLook {
    pub(crate) last: Option<Instant>,
    /// Whether one was ordered and has not been taken.
    pub(crate) owed: bool,
}

impl FreshLook {
    /// When the next one is due; none if none was ordered.
    pub(crate) fn due(self, now: Instant) -> Option<Instant> {
        self.owed.then(|| self.last.map_or(now, |last| (last + FRESH_LOOKS_EVERY).max(now)))
    }
}

/// What is to be written of an object, and how far that is.
#[derive(Default)]
pub(crate) struct Saving {
    /// The resourceVersion that the next write relies on.
    pub(crate) version: String,
    /// The status as the API server has it, as far as we know.
    pub(crate) current: Option<StatusHash>,
    /// What the status has not been drawn from yet.
    pub(crate) pending_status: Option<PendingStatus>,
    /// Whether the status should be another one: that which was drawn last.
    pub(crate) wanted: bool,
    /// The status that is being written, and the version it relies on.
    pub(crate) under_way: Option<(Option<StatusHash>, String)>,
    /// The count of critical changes that the wanted status holds.
    pub(crate) critical: u64,
    /// Whether the status that the API server has holds a journal.
    pub(crate) journaled: bool,
    /// Whether the object has a first journal, beside its status.
    pub(crate) first_journal: bool,
    /// The finalizers as they should be; none where they are.
    pub(crate) finalizers: Option<Vec<String>>,
    /// Whether it should not wait: a phase changed, or effects wait for it.
    pub(crate) urgent: bool,
    /// Whether it holds how something ended that must not happen twice: until it is written, a crash makes that unknown.
    pub(crate) confirms: bool,
    /// The last write failed because the object is newer: wait until the newer one arrives.
    pub(crate) outdated: bool,
    /// Since when there is something to write.
    pub(crate) since: Option<Instant>,
    /// The changes of the phase that were reported and written at once.
    pub(crate) hurried: Allowance,
    /// When the last write was begun.
    pub(crate) last: Option<Instant>,
    /// Failures in a row.
    pub(crate) failures: u32,
    /// Effects that start only when the journal is saved.
    pub(crate) held: Vec<Effect>,
    /// Whether the object may go as soon as its finalizer is off.
    pub(crate) released: bool,
}

/// What a turn had to say. A status is drawn of it when it may be written: turns are more frequent.
pub(crate) struct PendingStatus {
    pub(crate) report: Report,
    /// Whether there was a plan.
    pub(crate) planned: bool,
    pub(crate) time: Timestamp,
}

impl Saving {
    /// Whether there may be something to write.
    pub(crate) fn has_something(&self) -> bool {
        self.wanted || self.pending_status.is_some() || self.finalizers.is_some() || self.sheds()
    }

    /// Whether the object has a first journal that counts no more.
    pub(crate) fn sheds(&self) -> bool {
        self.first_journal && self.journaled
    }

    /// The object is as the API server has it now.
    pub(crate) fn arrived(&mut self, subject: &dyn Subject) {
        let status = subject.current_status();
        subject.version().clone_into(&mut self.version);
        self.current = status.as_ref().map(StatusHash::of);
        self.journaled = status.is_some_and(|status| status.get("journal").is_some());
        self.first_journal = subject.has_first_journal();
    }

    /// A status was drawn, with so many critical changes in it.
    pub(crate) fn drawn(&mut self, status: &Value, critical: u64) {
        self.wanted = self.current != Some(StatusHash::of(status)) || !self.held.is_empty();
        self.critical = critical;
    }

    /// Whether it may be written, as far as earlier writes go.
    pub(crate) fn is_due(&self) -> bool {
        self.has_something() && self.under_way.is_none() && !self.outdated
    }
}

impl Entry {
    pub(crate) fn new(kind: usize, id: SubscriberId, subject: Box<dyn Subject>) -> Self {
        let shown =
            subject.current_status().and_then(|status| Some(status.get("phase")?.as_str()?.to_owned()));
        let mut saving = Saving::default();
        saving.arrived(subject.as_ref());
        Self {
            kind,
            id,
            subject,
            memory: None,
            unread: false,
            compiled: None,
            wants: BTreeSet::new(),
            outcomes: Vec::new(),
            in_flight: 0,
            last_turn: None,
            unfinished: false,
            wake_at: None,
            fresh_look: FreshLook::default(),
            saving,
            shown,
            reported_phase: None,
            history: History::default(),
            sent: Sent::default(),
            passed: None,
            causes: Causes::new(),
            curious: BTreeSet::new(),
        }
    }

    /// Draws the status of what the last turn had to say, if that was not done yet, and notes whether it is another one.
    pub(crate) fn draw(&mut self) {
        let Some(PendingStatus { report, planned, time }) = self.saving.pending_status.take() else { return };
        let plan = match &self.compiled {
            Some((Ok(compiled), _)) if planned => Some(&compiled.plan),
            // The object has changed since: its next turn has something newer to say.
            _ if planned => return,
            _ => None,
        };
        let Some(memory) = &self.memory else { return };
        let status_input =
            StatusInput { plan, journal: &memory.journal, report: &report, causes: &self.causes, now: time };
        let status = self.subject.status(&status_input, self.unread);
        self.saving.drawn(&status, memory.critical);
    }

    /// Effects that wait for the journal are not started any more: the engine gets that as an outcome like any other.
    pub(crate) fn refuse_held(&mut self, at: Timestamp) {
        let held = std::mem::take(&mut self.saving.held);
        let refused =
            |effect: Effect| Outcome { ticket: effect.ticket, at, result: Err(Failure::NotStarted) };
        self.outcomes.extend(held.into_iter().map(refused));
    }

    /// Whether there is nothing better to do for it: it has been looked at, it stays, and nothing is to be done or
    /// written.
    pub(crate) fn may_keep_history(&self) -> bool {
        self.reported_phase.is_some()
            && !self.subject.is_deleting()
            && self.in_flight == 0
            && self.outcomes.is_empty()
            && self.saving.held.is_empty()
            && self.saving.under_way.is_none()
            && !self.saving.has_something()
    }

    /// The lane of the queue this object is in.
    pub(crate) fn namespace(&self) -> String {
        self.subject.place().0.unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use linchpin_cluster::own;
    use linchpin_doors::ResourceDependencyDoor;
    use linchpin_engine::contract::{Notice, Ticket, Verb, Via};

    use super::{super::subject, *};

    #[test]
    fn effects_that_are_not_started_any_more_come_back_as_not_started_each_once() {
        let text = r#"{"metadata": {}, "items": [{"apiVersion": "tools.kubestellar.io/v1", "kind": "ResourceDependency",
            "metadata": {"namespace": "shop", "name": "a", "uid": "u", "resourceVersion": "1"}, "spec": {}}]}"#;
        let (objects, _) = own::page(text).unwrap();
        let subject = subject::kind::<ResourceDependencyDoor>().read(&objects[0]).unwrap();
        let mut entry = Entry::new(0, SubscriberId(1), subject);
        let at = Timestamp::from_second(7);
        let ticket = |part| Ticket { step: StepId::new("a"), run: 1, attempt: 1, part };
        let effect = |part| Effect {
            ticket: ticket(part),
            via: Via::service_account("shop", "default"),
            verb: Verb::Notice(Notice { warning: false, reason: String::new(), message: String::new() }),
            deadline: Duration::from_secs(1),
        };
        let refused = |part| Outcome { ticket: ticket(part), at, result: Err(Failure::NotStarted) };
        let earlier = Outcome { result: Ok(linchpin_engine::contract::Done::default()), ..refused(0) };
        entry.outcomes.push(earlier.clone());
        entry.saving.held = vec![effect(1), effect(2)];
        entry.refuse_held(at);
        assert!(entry.saving.held.is_empty(), "no later save starts them");
        assert_eq!(entry.outcomes, [earlier, refused(1), refused(2)]);
        entry.refuse_held(at);
        assert_eq!(entry.outcomes.len(), 3);
        assert!(!entry.may_keep_history(), "the engine is to be told first");
    }

    #[test]
    fn the_first_order_is_followed_at_once_and_the_next_ones_together_after_a_pause() {
        let now = Instant::now();
        assert_eq!(FreshLook::default().due(now), None);
        assert_eq!(FreshLook { last: None, owed: true }.due(now), Some(now));
        let again = FreshLook { last: Some(now), owed: true };
        assert_eq!(again.due(now), Some(now + FRESH_LOOKS_EVERY));
        let late = now + FRESH_LOOKS_EVERY * 2;
        assert_eq!(again.due(late), Some(late));
    }
}
