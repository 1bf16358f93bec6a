//! What the controller knows of one subject.

use std::time::Instant;

use linchpin_cluster::hub::SubscriberId;
use linchpin_doors::{VisibleCauses, subject::Subject};
use linchpin_engine::{
    contract::{Effect, Failure, Outcome, Want},
    step::Phase,
};
use linchpin_words::{Few, Timestamp};

use super::{pace::FRESH_LOOKS_EVERY, records::Sent, saving::Saving, throttle::LastTurn};

/// One subject.
pub(crate) struct Entry {
    /// Which kind, as registered.
    pub(crate) kind: usize,
    pub(crate) id: SubscriberId,
    pub(crate) subject: Box<dyn Subject>,
    /// What was asked for.
    pub(crate) wants: Few<Want>,
    /// What came back and was not taken in yet.
    pub(crate) outcomes: Vec<Outcome>,
    /// How many of its effects have not come back.
    pub(crate) in_flight: usize,
    /// Its last turn, after which it may rest.
    pub(crate) last_turn: Option<LastTurn>,
    /// Whether its last turn left something to be evaluated.
    pub(crate) unfinished: bool,
    pub(crate) wake_at: Option<Timestamp>,
    /// The last time that everything was read again because somebody ordered it.
    pub(crate) fresh_look: FreshLook,
    pub(crate) saving: Saving,
    /// Where it is, as last reported.
    pub(crate) phase: Option<Phase>,
    /// What was sent of the objects that are kept beside it.
    pub(crate) sent: Sent,
    /// Whether pods that it holds were counted.
    pub(crate) holds_pods: bool,
    /// What is behind its blockers, as last found.
    pub(crate) causes: VisibleCauses,
    /// What was asked to know whether that may be shown.
    pub(crate) curious: Few<Want>,
    /// What was asked to know how much of the circle that it waits in may be shown.
    pub(crate) circle_asks: Few<Want>,
}

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

impl Entry {
    pub(crate) fn new(kind: usize, id: SubscriberId, subject: Box<dyn Subject>) -> Self {
        Self {
            kind,
            id,
            subject,
            wants: Few::default(),
            outcomes: Vec::new(),
            in_flight: 0,
            last_turn: None,
            unfinished: false,
            wake_at: None,
            fresh_look: FreshLook::default(),
            saving: Saving::default(),
            phase: None,
            sent: Sent::default(),
            holds_pods: false,
            causes: VisibleCauses::new(),
            curious: Few::default(),
            circle_asks: Few::default(),
        }
    }

    /// Effects that wait for the journal are not started any more: the subject gets that as an outcome like any other. Says
    /// whether there were some.
    pub(crate) fn refuse_held(&mut self, at: Timestamp) -> bool {
        let held = self.saving.take_held();
        let any = !held.is_empty();
        let refused =
            |effect: Effect| Outcome { ticket: effect.ticket, at, result: Err(Failure::NotStarted) };
        self.outcomes.extend(held.into_iter().map(refused));
        any
    }

    /// Whether nothing of it is under way or waits to be written.
    pub(crate) fn is_idle(&self) -> bool {
        self.in_flight == 0 && self.outcomes.is_empty() && self.saving.is_idle()
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use linchpin_engine::contract::{Notice, StepId, Ticket, Verb, Via};

    use super::*;

    #[test]
    fn effects_that_are_not_started_any_more_come_back_as_not_started_each_once() {
        let text = r#"{"apiVersion": "tools.kubestellar.io/v1", "kind": "ResourceDependency",
            "metadata": {"namespace": "shop", "name": "a", "uid": "u", "resourceVersion": "1"}, "spec": {}}"#;
        let kinds = linchpin_doors::registry();
        let subject = kinds.kinds()[0].subject(text, &Arc::from("default")).unwrap();
        let mut entry = Entry::new(0, SubscriberId(1), subject);
        let at = Timestamp::from_second(7);
        let ticket = |part| Ticket { step: StepId::new("a"), run: 1, attempt: 1, part };
        let effect = |part| Effect {
            ticket: ticket(part),
            via: Via::service_account("shop", "default"),
            verb: Verb::Notice(Notice { warning: false, reason: String::new(), message: String::new() }),
            discreet: false,
            deadline: Duration::from_secs(1),
            rank: 0,
        };
        let refused = |part| Outcome { ticket: ticket(part), at, result: Err(Failure::NotStarted) };
        let earlier = Outcome { result: Ok(linchpin_engine::contract::Done::default()), ..refused(0) };
        entry.outcomes.push(earlier.clone());
        entry.saving.hold(vec![effect(1), effect(2)], 1);
        assert!(entry.refuse_held(at));
        assert!(entry.saving.take_held().is_empty(), "no later save starts them");
        assert_eq!(entry.outcomes, [earlier, refused(1), refused(2)]);
        assert!(!entry.refuse_held(at));
        assert_eq!(entry.outcomes.len(), 3);
        assert!(!entry.is_idle(), "the engine is to see it first");
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
