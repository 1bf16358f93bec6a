//! Events about our own objects: told when there is nothing better to do, a few at a time, and not without bound.
//!
//! Whoever tells one does not wait. Events yield to effects like statuses do, for up to a second, and share the few
//! places of background writes with them ([`saving`](super::saving)). They are a courtesy: beyond [`KEPT`] of them the
//! oldest is dropped.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use futures::StreamExt;
use linchpin_cluster::events::Regarding;
use linchpin_engine::contract::Notice;

use super::{Controller, Message, saving::YIELD};

/// How many events may wait.
const KEPT: usize = 10_000;
/// How long what is left to say may take at the end of a term.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// How many are said at a time then.
const AT_THE_END: usize = 4;

/// Events that wait, in the order they were told.
#[derive(Debug, Default)]
pub(crate) struct Notices(VecDeque<(Instant, Regarding, Notice)>);

impl Notices {
    fn push(&mut self, now: Instant, about: Regarding, notice: Notice) {
        if self.0.len() >= KEPT {
            self.0.pop_front();
        }
        self.0.push_back((now, about, notice));
    }

    /// When the next one may be written.
    pub(super) fn next(&self, busy: bool) -> Option<Instant> {
        let since = self.0.front().map(|(since, ..)| *since)?;
        Some(if busy { since + YIELD } else { since })
    }

    fn pop(&mut self, now: Instant, busy: bool) -> Option<(Regarding, Notice)> {
        if self.next(busy)? > now {
            return None;
        }
        self.0.pop_front().map(|(_, about, notice)| (about, notice))
    }
}

impl Controller {
    /// Puts an event on an object, without waiting for it.
    pub(super) fn tell(&mut self, about: Regarding, reason: &str, message: &str, warning: bool) {
        let notice = Notice { reason: reason.to_owned(), message: message.to_owned(), warning };
        self.notices.push(Instant::now(), about, notice);
    }

    /// Begins to write the next event whose time has come; whether there was one.
    pub(super) fn begin_event(&mut self, now: Instant, busy: bool) -> bool {
        let Some((about, notice)) = self.notices.pop(now, busy) else { return false };
        self.begun_event();
        let (recorder, back) = (self.recorder.clone(), self.back.clone());
        tokio::spawn(async move {
            recorder.record(&about, &notice).await;
            let _ = back.send(Message::Told);
        });
        true
    }

    /// Says what is still to be said when the work is asked to stop.
    pub(super) async fn last_words(&mut self) {
        let notices = std::mem::take(&mut self.notices.0);
        let recorder = &self.recorder;
        let say = |(_, about, notice)| async move { recorder.record(&about, &notice).await };
        let all = futures::stream::iter(notices).for_each_concurrent(AT_THE_END, say);
        let _ = tokio::time::timeout(LAST_WORDS, all).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linchpin_words::Gvk;

    fn told(count: usize, at: Instant) -> Notices {
        let mut notices = Notices::default();
        let kind = Gvk::new("tools.kubestellar.io", "v1", "ResourceDependency");
        let about = Regarding { kind, namespace: None, name: "a".into(), uid: "u".into() };
        for number in 0..count {
            let notice = Notice { reason: "Waiting".into(), message: number.to_string(), warning: false };
            notices.push(at, about.clone(), notice);
        }
        notices
    }

    #[test]
    fn events_yield_to_effects_for_a_second_and_keep_their_order() {
        let now = Instant::now();
        let mut notices = told(2, now);
        assert!(notices.pop(now, true).is_none());
        assert_eq!(notices.pop(now, false).unwrap().1.message, "0");
        assert_eq!(notices.pop(now + YIELD, true).unwrap().1.message, "1");
        assert!(notices.pop(now + YIELD, false).is_none());
    }

    #[test]
    fn events_that_wait_are_bounded_and_the_newest_stay() {
        let now = Instant::now();
        let mut notices = told(KEPT + 1, now);
        assert_eq!(notices.0.len(), KEPT);
        assert_eq!(notices.pop(now, false).unwrap().1.message, "1");
    }
}
