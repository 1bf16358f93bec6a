//! When something is written to an object of ours: the numbers, each with the measurement behind it, and what follows from
//! them. Pure: the time is given.
//!
//! | what | number | measured, or why |
//! |---|---|---|
//! | [`YIELD`] | 1 s | statuses and events beside effects made a hop 2.6 times a bare client's, yielding 1.1 times; no longer, because a person watches |
//! | [`WHILE_BUSY`], [`WHILE_QUIET`] | 1, 4 | part of the same measurement; more at a time were not measured |
//! | [`OF_ONE_NAMESPACE`] | 2 | nobody holds more places than are left free: four statuses at once keep both cores of a small API server from another namespace's hop for 20 ms |
//! | [`PAUSE`] | 19 × | beside effects statuses take a twentieth of the time: a status of 40 components costs the API server 23 ms |
//! | [`CROWD`] | 4 | finalizer and journal cost 16 and 23 ms for 40 components, in one write 20 ms (decision 8); four are more than a person applies at once |
//! | [`AT_MOST_EVERY`] | 1 s | chosen: a person reads no faster |
//! | [`AT_ONCE`], [`FLAPPING_EVERY`] | 8, one more in 10 s; 5 s | chosen: a rollout shows fewer phases, and a user who makes one flap pays with writes of their own |
//! | [`LONGEST_REST`] | 1 s | chosen: a server that answers late must not make statuses old |
//! | [`FIRST_PAUSE`], [`LONGEST_PAUSE`] | twice 100 ms, doubling to 30 s | chosen, as everywhere after failures |
//! | [`OWN_ECHO`] | 10 s | chosen: the deadline of a write; a store that went back in time shows older objects for longer |
//! | [`FENCED`] | 100 ms | chosen: a term that seemed over may turn out to go on |

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use super::{
    super::{
        allowance::{Allowance, Rate},
        backlog::{Due, Full},
    },
    machine::SavingMachine,
};

/// How often progress is written.
pub(super) const AT_MOST_EVERY: Duration = Duration::from_secs(1);
/// How many changes of the phase are reported in an event and written at once. A user who makes a phase flap pays with
/// their own writes, not with ours.
pub(super) const AT_ONCE: Rate = Rate { burst: 8, every: Duration::from_secs(10) };
/// How often the status of an object is written whose phase flaps.
pub(super) const FLAPPING_EVERY: Duration = Duration::from_secs(5);
/// How long statuses and events yield to effects.
pub(in super::super) const YIELD: Duration = Duration::from_secs(1);
/// Half of the first pause after a failed write.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// The longest pause after a failed write.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// How long an object that arrives may be older than what we have written ourselves.
pub(super) const OWN_ECHO: Duration = Duration::from_secs(10);
/// How soon to look again while nothing may be written: a term that seemed over may turn out to go on.
pub(super) const FENCED: Duration = Duration::from_millis(100);
/// How many statuses and events are written at a time while nothing else is.
const WHILE_QUIET: usize = 4;
/// How many of these one namespace may have under way.
const OF_ONE_NAMESPACE: usize = 2;
/// How many are written at a time beside effects.
const WHILE_BUSY: usize = 1;
/// After one that was written beside effects there is a pause so many times as long.
const PAUSE: u32 = 19;
/// The longest such pause.
pub(super) const LONGEST_REST: Duration = Duration::from_secs(1);
/// From so many objects with something to write on, the first journal goes with the finalizer: one write instead of two
/// before the first effect. Where there are fewer the status comes before the effects, and shows what is about to happen.
pub(super) const CROWD: usize = 4;

/// How urgent a write is, least first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Urgency {
    /// It may wait.
    #[default]
    Calm,
    /// It should not wait: a phase changed, or effects wait for it.
    AtOnce,
    /// Other objects may wait for it too: it goes before what only people read.
    Awaited,
}

/// How fast one object is written.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WritePace {
    /// How urgent it is.
    pub(super) urgency: Urgency,
    /// Whether it holds how something ended that must not happen twice: until it is written, a crash makes that unknown.
    pub(super) confirms: bool,
    /// Since when there is something to write.
    pub(super) since: Option<Instant>,
    /// The changes of the phase that were reported and written at once.
    pub(super) hurried: Allowance,
    /// When the last write was begun.
    pub(super) last: Option<Instant>,
    /// Failures in a row.
    pub(super) failures: u32,
}

impl WritePace {
    /// The phase has changed. Returns whether that is reported and written at once.
    pub(super) fn hurry(&mut self, now: Instant, awaited: bool) -> bool {
        let at_once = self.hurried.take(now, AT_ONCE);
        if at_once {
            self.raise(if awaited { Urgency::Awaited } else { Urgency::AtOnce });
        }
        at_once
    }

    /// It is at least so urgent.
    pub(super) fn raise(&mut self, urgency: Urgency) {
        self.urgency = self.urgency.max(urgency);
    }

    /// When what is to be written may be written; none if there is nothing, or not yet.
    pub(super) fn due(&mut self, machine: &SavingMachine, now: Instant) -> Option<Due> {
        if !machine.has_something() {
            self.since = None;
            return None;
        }
        let since = *self.since.get_or_insert(now);
        if !machine.is_due() {
            return None;
        }
        let after = |pause: Duration| self.last.map_or(since, |last| last + pause);
        let waited_for = machine.is_waited_for() || self.confirms;
        if self.failures > 0 {
            let pause = FIRST_PAUSE * 2_u32.saturating_pow(self.failures.min(10));
            let at = after(pause.min(LONGEST_PAUSE));
            return Some(Due { quiet: at, busy: at.max(since + YIELD), waited_for, awaited: false });
        }
        let flaps = self.hurried.is_used_up(now, AT_ONCE);
        let pause = if flaps { FLAPPING_EVERY } else { AT_MOST_EVERY };
        let hurries = self.urgency >= Urgency::AtOnce || waited_for;
        let quiet = if hurries { since } else { after(pause).max(since) };
        let awaited = self.urgency == Urgency::Awaited;
        Some(Due { quiet, busy: quiet.max(since + YIELD), waited_for, awaited })
    }
}

/// Writes under way that are no effects.
#[derive(Clone, Debug, Default)]
pub(crate) struct UnderWay {
    /// Those that effects wait for.
    pub(super) waited_for: usize,
    /// Statuses and events.
    pub(super) background: usize,
    /// The same by namespace.
    namespaces: BTreeMap<Arc<str>, usize>,
    /// Whether the last one in the background was an event: they take turns.
    pub(super) event_last: bool,
    /// When the last one in the background was begun.
    begun: Option<Instant>,
    /// From when on the next one may be begun beside effects.
    rested: Option<Instant>,
}

impl UnderWay {
    /// One in the background is begun.
    pub(super) fn begin(&mut self, namespace: &Arc<str>, now: Instant) {
        self.background += 1;
        *self.namespaces.entry(Arc::clone(namespace)).or_default() += 1;
        self.begun = Some(now);
    }

    /// One in the background has ended.
    pub(super) fn end(&mut self, namespace: &Arc<str>, now: Instant) {
        self.background = self.background.saturating_sub(1);
        if let Some(count) = self.namespaces.get_mut(namespace) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.namespaces.remove(namespace);
            }
        }
        let rest = |begun| (now.saturating_duration_since(begun) * PAUSE).min(LONGEST_REST);
        self.rested = self.begun.map(|begun| now + rest(begun));
    }

    /// The namespaces that have as many in the background as they may.
    pub(in super::super) fn full(&self) -> Full {
        let full = self.namespaces.iter().filter(|(_, count)| **count >= OF_ONE_NAMESPACE);
        full.map(|(namespace, _)| Arc::clone(namespace)).collect()
    }

    /// When the next one in the background may be begun: none until another has ended.
    pub(super) fn room(&self, now: Instant, busy: bool) -> Option<Instant> {
        if !busy {
            return (self.background < WHILE_QUIET).then_some(now);
        }
        (self.background < WHILE_BUSY).then(|| self.rested.map_or(now, |rested| rested.max(now)))
    }
}
