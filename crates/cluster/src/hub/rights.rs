//! What the identity of a session may do: one task for all rights that are asked for through it.
//!
//! A thousand plans ask for a thousand rights, most of them once in ten minutes: each has a row in a [`Schedule`] and
//! nothing else. A right that is there is asked for again in ten minutes, one that is missing or could not be asked for
//! sooner and sooner, all of them when the session opens again, and single ones when somebody wants a fresh look. What is
//! due together is asked together, so that one answer about all objects of a kind serves all of them ([`crate::access`]).

use super::{
    Inner,
    session::{ActorClient, SessionGate},
    tasks::{LATEST, backoff, failed},
};
use futures::{StreamExt, stream::FuturesUnordered};
use linchpin_engine::contract::{Actor, Question, Seen, Want};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Weak},
    time::{Duration, Instant},
};
use tokio::{
    sync::{mpsc, watch},
    time,
};

/// How often a right that is there is asked for again.
const AGAIN: Duration = Duration::from_mins(10);
/// The operator itself asks more often for what it lacks: a namespace that becomes a tenant is served within seconds.
const LATEST_OF_OURS: Duration = Duration::from_secs(10);
/// How old the first answer about a right may be.
const RECENT: Duration = Duration::from_secs(1);
/// How many are asked for at a time. How many requests that makes is decided by the reviewer.
const AT_A_TIME: usize = 64;

/// What the hub has to say about one right.
#[derive(Debug)]
pub(super) enum RightNote {
    /// Somebody asks for it.
    Ask(Want),
    /// Nobody does any more.
    Forget(Want),
    /// It is to be asked for anew, at once.
    Again(Want),
}

/// When each right is asked for. Pure: the time is given.
#[derive(Debug, Default)]
struct Schedule {
    rows: BTreeMap<Want, Row>,
    due: BTreeSet<(Instant, Want)>,
}

#[derive(Clone, Copy, Debug)]
struct Row {
    /// When it is asked for next; none while it is being asked for.
    due: Option<Instant>,
    /// How often in a row it was missing or could not be asked for.
    failures: u32,
    /// Answers to questions from before this moment do not count.
    since: Option<Instant>,
}

impl Schedule {
    fn take_in(&mut self, note: RightNote, now: Instant) {
        match note {
            RightNote::Ask(want) => {
                let since = now.checked_sub(RECENT);
                self.rows.entry(want.clone()).or_insert(Row { due: None, failures: 0, since });
                self.plan(&want, now);
            }
            RightNote::Forget(want) => {
                if let Some(Row { due: Some(due), .. }) = self.rows.remove(&want) {
                    self.due.remove(&(due, want));
                }
            }
            RightNote::Again(want) => {
                if let Some(row) = self.rows.get_mut(&want) {
                    row.since = Some(now);
                    self.plan(&want, now);
                }
            }
        }
    }

    /// All of them are due: the session has opened.
    fn all(&mut self, now: Instant) {
        let wants: Vec<Want> = self.rows.keys().cloned().collect();
        for want in &wants {
            self.plan(want, now);
        }
    }

    fn plan(&mut self, want: &Want, at: Instant) {
        let Some(row) = self.rows.get_mut(want) else { return };
        if let Some(old) = row.due.replace(at) {
            self.due.remove(&(old, want.clone()));
        }
        self.due.insert((at, want.clone()));
    }

    /// Takes the next one that is due; how often it failed, and how old an answer may be.
    fn next(&mut self, now: Instant) -> Option<(Want, u32, Instant)> {
        let (at, _) = self.due.first()?;
        if *at > now {
            return None;
        }
        let (_, want) = self.due.pop_first()?;
        let row = self.rows.get_mut(&want)?;
        row.due = None;
        Some((want, row.failures, row.since.take().unwrap_or(now)))
    }

    /// It was asked for, and is asked for again after this pause. An order that came meanwhile is not put off.
    /// A right that has appeared brings others: what else is missing is asked for at once.
    fn asked(&mut self, want: &Want, pause: Duration, now: Instant) {
        let Some(row) = self.rows.get_mut(want) else { return };
        let is_missing = pause < LATEST + LATEST;
        let has_appeared = !is_missing && row.failures > 0;
        row.failures = if is_missing { row.failures.saturating_add(1) } else { 0 };
        if row.due.is_none() {
            self.plan(want, now + pause);
        }
        if has_appeared {
            let waits =
                |(_, row): &(&Want, &mut Row)| row.failures > 0 && row.due.is_some_and(|due| due > now);
            let missing: Vec<Want> = self
                .rows
                .iter_mut()
                .filter(waits)
                .map(|(want, row)| {
                    row.since = Some(now);
                    want.clone()
                })
                .collect();
            for want in &missing {
                self.plan(want, now);
            }
        }
    }

    fn due(&self) -> Option<Instant> {
        self.due.first().map(|(at, _)| *at)
    }
}

/// The task: as long as the session lives.
pub(super) async fn keep(
    inner: Weak<Inner>,
    mut gate: watch::Receiver<SessionGate>,
    mut notes: mpsc::UnboundedReceiver<RightNote>,
) {
    let mut schedule = Schedule::default();
    let mut asking = FuturesUnordered::new();
    let mut open = gate.borrow_and_update().clone();
    loop {
        let now = Instant::now();
        while asking.len() < AT_A_TIME
            && let Some((want, failures, since)) = schedule.next(now)
        {
            match &open {
                SessionGate::Open(reach) => asking.push(ask(Arc::clone(reach), want, since, failures)),
                SessionGate::Closed { why, .. } => {
                    let Some(inner) = inner.upgrade() else { return };
                    inner.answered(&want, Seen::Unknown(why.clone()));
                }
            }
        }
        let due = schedule.due().filter(|_| asking.len() < AT_A_TIME);
        let until_due = async {
            match due {
                Some(due) => time::sleep_until(due.into()).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            changed = gate.changed() => {
                if changed.is_err() {
                    return;
                }
                open = gate.borrow_and_update().clone();
                // What was asked as somebody else proves nothing now.
                asking.clear();
                schedule.all(Instant::now());
            }
            note = notes.recv() => {
                let Some(note) = note else { return };
                let now = Instant::now();
                schedule.take_in(note, now);
                while let Ok(note) = notes.try_recv() {
                    schedule.take_in(note, now);
                }
            }
            Some((want, seen, pause)) = asking.next() => {
                let Some(inner) = inner.upgrade() else { return };
                inner.answered(&want, seen);
                schedule.asked(&want, pause, Instant::now());
            }
            () = until_due => {}
        }
    }
}

/// Asks for one right; what came of it, and when to ask again.
async fn ask(reach: Arc<ActorClient>, want: Want, since: Instant, failures: u32) -> (Want, Seen, Duration) {
    let Question::Right { via, right } = want.question() else {
        return (want, Seen::Right(false), AGAIN);
    };
    let soon = backoff(failures.saturating_add(1));
    let (seen, pause) = match reach.rights.may(&reach.writes, right, since).await {
        Ok(true) => (Seen::Right(true), AGAIN),
        Ok(false) if via.actor == Actor::Operator => (Seen::Right(false), soon.min(LATEST_OF_OURS)),
        Ok(false) => (Seen::Right(false), soon),
        Err(error) => (failed(&error, &reach), soon),
    };
    (want, seen, pause)
}

#[cfg(test)]
mod tests {
    use super::*;
    use linchpin_engine::contract::{Right, Via};

    fn right(name: &str) -> Want {
        let right = Right {
            verb: "get".into(),
            group: String::new(),
            resource: "configmaps".into(),
            subresource: None,
            namespace: Some("shop".into()),
            name: Some(name.into()),
        };
        Want::new(Question::Right { via: Via::service_account("shop", "builder"), right })
    }

    #[test]
    fn what_is_asked_is_due_at_once_and_again_after_its_pause() {
        let now = Instant::now();
        let mut schedule = Schedule::default();
        schedule.take_in(RightNote::Ask(right("a")), now);
        let (want, failures, since) = schedule.next(now).unwrap();
        assert_eq!(
            (failures, since),
            (0, now.checked_sub(RECENT).unwrap()),
            "a recent answer will do at first"
        );
        assert!(schedule.next(now).is_none() && schedule.due().is_none(), "it is asked once");
        schedule.asked(&want, AGAIN, now);
        assert_eq!(schedule.due(), Some(now + AGAIN));
        let (_, failures, since) = schedule.next(now + AGAIN).unwrap();
        assert_eq!((failures, since), (0, now + AGAIN), "later answers are fresh");
    }

    #[test]
    fn what_is_missing_is_counted_and_what_nobody_asks_for_is_forgotten() {
        let now = Instant::now();
        let mut schedule = Schedule::default();
        schedule.take_in(RightNote::Ask(right("a")), now);
        for failures in 0..3 {
            let at = schedule.due().unwrap();
            let (want, counted, _) = schedule.next(at).unwrap();
            assert_eq!(counted, failures);
            schedule.asked(&want, backoff(failures + 1), at);
        }
        schedule.take_in(RightNote::Forget(right("a")), now);
        assert!(schedule.rows.is_empty() && schedule.due.is_empty());
        schedule.asked(&right("a"), AGAIN, now);
        assert!(
            schedule.rows.is_empty() && schedule.due.is_empty(),
            "an answer that comes late changes nothing"
        );
    }

    #[test]
    fn a_right_that_appears_has_the_others_that_are_missing_asked_for_at_once() {
        let now = Instant::now();
        let mut schedule = Schedule::default();
        for name in ["a", "b", "c"] {
            schedule.take_in(RightNote::Ask(right(name)), now);
        }
        while let Some((want, ..)) = schedule.next(now) {
            let pause = if want == right("c") { AGAIN } else { backoff(1) };
            schedule.asked(&want, pause, now);
        }
        let later = schedule.due().unwrap();
        let (want, ..) = schedule.next(later).unwrap();
        schedule.asked(&want, AGAIN, later);
        let (other, _, since) = schedule.next(later).unwrap();
        assert_eq!((other, since), (right(if want == right("a") { "b" } else { "a" }), later));
        assert!(schedule.next(later).is_none(), "what is there is not asked for again");
    }

    #[test]
    fn an_order_to_look_again_counts_although_the_answer_to_the_last_one_is_under_way() {
        let now = Instant::now();
        let mut schedule = Schedule::default();
        schedule.take_in(RightNote::Ask(right("a")), now);
        let (want, ..) = schedule.next(now).unwrap();
        let later = now + Duration::from_millis(5);
        schedule.take_in(RightNote::Again(right("a")), later);
        schedule.asked(&want, AGAIN, later);
        assert_eq!(schedule.next(later).map(|(_, _, since)| since), Some(later));
    }

    #[test]
    fn everything_is_due_when_the_session_opens() {
        let now = Instant::now();
        let mut schedule = Schedule::default();
        for name in ["a", "b"] {
            schedule.take_in(RightNote::Ask(right(name)), now);
        }
        while let Some((want, ..)) = schedule.next(now) {
            schedule.asked(&want, AGAIN, now);
        }
        schedule.all(now);
        assert!(schedule.next(now).is_some() && schedule.next(now).is_some() && schedule.next(now).is_none());
        assert!(schedule.due.is_empty());
    }
}
