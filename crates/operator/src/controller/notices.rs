//! Events about our own objects: written when there is nothing better to do, a few at a time, and not without bound.
//!
//! Nobody waits for one. Events yield to effects like statuses do, for up to a second, and share the few places of
//! background writes with them ([`saving`](super::saving)). Namespaces take turns. Events are a courtesy: of more than
//! [`EVENTS_KEPT`] of one namespace its oldest is dropped, and nobody else's.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    time::{Duration, Instant},
};

use futures::StreamExt;
use linchpin_cluster::events::Regarding;
use linchpin_engine::contract::Notice;

use super::{
    Controller, ControllerMessage,
    backlog::Full,
    driver::caught,
    pace::{EVENTS_AT_THE_END, EVENTS_END_AFTER, EVENTS_KEPT, YIELD},
};

/// Events that wait, by namespace, each in the order they were reported.
#[derive(Debug, Default)]
pub(crate) struct Notices {
    namespaces: BTreeMap<String, VecDeque<(Instant, Regarding, Notice)>>,
    /// The namespaces in the order of their turns.
    turns: VecDeque<String>,
}

impl Notices {
    fn push(&mut self, namespace: &str, now: Instant, about: Regarding, notice: Notice) {
        if !self.namespaces.contains_key(namespace) {
            self.turns.push_back(namespace.to_owned());
        }
        let line = self.namespaces.entry(namespace.to_owned()).or_default();
        if line.len() >= EVENTS_KEPT {
            line.pop_front();
        }
        line.push_back((now, about, notice));
    }

    fn first_of(&self, namespace: &str) -> Option<Instant> {
        self.namespaces.get(namespace)?.front().map(|(since, ..)| *since)
    }

    /// When the next one may be written.
    pub(super) fn next(&self, busy: bool, full: &Full) -> Option<Instant> {
        let turns = self.turns.iter().filter(|namespace| !is_full(full, namespace));
        let since = turns.filter_map(|namespace| self.first_of(namespace)).min()?;
        Some(if busy { since + YIELD } else { since })
    }

    /// The next one whose time has come, and the namespace whose turn it takes; not one of these.
    fn pop(&mut self, now: Instant, busy: bool, full: &Full) -> Option<(String, Regarding, Notice)> {
        let pause = if busy { YIELD } else { Duration::ZERO };
        let is_due = |namespace: &String| {
            !is_full(full, namespace) && self.first_of(namespace).is_some_and(|since| since + pause <= now)
        };
        let namespace = self.turns.iter().position(is_due).and_then(|index| self.turns.remove(index))?;
        let line = self.namespaces.get_mut(&namespace)?;
        let next = line.pop_front();
        if line.is_empty() {
            self.namespaces.remove(&namespace);
        } else {
            self.turns.push_back(namespace.clone());
        }
        next.map(|(_, about, notice)| (namespace, about, notice))
    }
}

fn is_full(full: &Full, namespace: &str) -> bool {
    full.iter().any(|full| &**full == namespace)
}

impl Controller {
    /// Puts an event on an object, without waiting for it.
    pub(super) fn emit_event(&mut self, about: Regarding, notice: Notice) {
        let namespace = about.namespace.clone().unwrap_or_default();
        self.emit_event_for(&namespace, about, notice);
    }

    /// Puts an event on an object, in the turn of a namespace that is not the object's own.
    pub(super) fn emit_event_for(&mut self, namespace: &str, about: Regarding, notice: Notice) {
        self.notices.push(namespace, Instant::now(), about, notice);
    }

    /// Begins to write the next event whose time has come; whether there was one.
    pub(super) fn begin_event(&mut self, now: Instant, busy: bool) -> bool {
        let full = self.under_way.full();
        let Some((namespace, about, notice)) = self.notices.pop(now, busy, &full) else { return false };
        let namespace: Arc<str> = namespace.into();
        self.begun_event(&namespace);
        let (recorder, back) = (self.recorder.clone(), self.back.clone());
        tokio::spawn(async move {
            // Even where it panics: its place is given back.
            let _ = caught(recorder.record(&about, &notice)).await;
            let _ = back.send(ControllerMessage::EventWritten(namespace));
        });
        true
    }

    /// Says what is still to be said when the work is asked to stop.
    pub(super) async fn flush_events(&mut self) {
        let mut notices = std::mem::take(&mut self.notices);
        let now = Instant::now();
        let notices: Vec<_> = std::iter::from_fn(|| notices.pop(now, false, &Full::new())).collect();
        let recorder = &self.recorder;
        let say = |(_, about, notice)| async move { recorder.record(&about, &notice).await };
        let all = futures::stream::iter(notices).for_each_concurrent(EVENTS_AT_THE_END, say);
        let _ = tokio::time::timeout(EVENTS_END_AFTER, all).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linchpin_words::Gvk;

    fn emit_event(notices: &mut Notices, namespace: &str, count: usize, at: Instant) {
        let kind = Gvk::new("tools.kubestellar.io", "v1", "ResourceDependency");
        let about = Regarding { kind, namespace: None, name: "a".into(), uid: "u".into() };
        for number in 0..count {
            let message = format!("{namespace}{number}");
            let notice = Notice { reason: "Waiting".into(), message, warning: false };
            notices.push(namespace, at, about.clone(), notice);
        }
    }

    fn rest(notices: &mut Notices, now: Instant) -> Vec<String> {
        std::iter::from_fn(|| notices.pop(now, false, &Full::new()).map(|(_, _, notice)| notice.message))
            .collect()
    }

    #[test]
    fn events_yield_to_effects_for_a_second_and_keep_their_order() {
        let now = Instant::now();
        let mut notices = Notices::default();
        emit_event(&mut notices, "a", 2, now);
        assert!(notices.pop(now, true, &Full::new()).is_none());
        assert_eq!(notices.next(true, &Full::new()), Some(now + YIELD));
        assert_eq!(notices.pop(now, false, &Full::new()).unwrap().2.message, "a0");
        assert_eq!(notices.pop(now + YIELD, true, &Full::new()).unwrap().2.message, "a1");
        assert!(notices.pop(now + YIELD, false, &Full::new()).is_none());
        assert_eq!(notices.next(false, &Full::new()), None);
    }

    #[test]
    fn namespaces_take_turns_and_the_loud_one_drops_its_own_oldest_alone() {
        let now = Instant::now();
        for (count, first) in [
            (EVENTS_KEPT, "a0".to_owned()),
            (EVENTS_KEPT + 1, "a1".to_owned()),
            (EVENTS_KEPT * 100, format!("a{}", EVENTS_KEPT * 99)),
        ] {
            let mut notices = Notices::default();
            emit_event(&mut notices, "b", 1, now);
            emit_event(&mut notices, "a", count, now);
            emit_event(&mut notices, "c", 2, now);
            let rest = rest(&mut notices, now);
            assert_eq!(rest.len(), EVENTS_KEPT + 3);
            assert_eq!(rest[..4], ["b0".to_owned(), first, "c0".to_owned(), rest[3].clone()]);
            assert_eq!(rest[4], "c1");
        }
    }

    #[test]
    fn a_namespace_with_all_that_it_may_have_under_way_is_passed_over() {
        let now = Instant::now();
        let mut notices = Notices::default();
        emit_event(&mut notices, "a", 2, now);
        emit_event(&mut notices, "b", 1, now);
        let full: Full = vec!["a".into()];
        assert_eq!(notices.pop(now, false, &full).map(|(namespace, ..)| namespace).as_deref(), Some("b"));
        assert!(notices.pop(now, false, &full).is_none() && notices.next(false, &full).is_none());
        assert!(notices.next(false, &Full::new()).is_some());
    }
}
