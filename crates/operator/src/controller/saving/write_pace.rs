//! When something is written to an object of ours: what follows from the numbers in [`pace`](super::super::pace). Pure: the time
//! is given.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use super::{
    super::{
        allowance::Allowance,
        backlog::{Due, Full},
        pace::{
            FIRST_WRITE_RETRY, FLAPPING_EVERY, LONGEST_WRITE_REST, LONGEST_WRITE_RETRY, PHASES_AT_ONCE,
            PROGRESS_EVERY, WRITE_REST_TIMES, WRITES_OF_ONE_NAMESPACE, WRITES_WHILE_BUSY, WRITES_WHILE_QUIET,
            YIELD,
        },
    },
    machine::SavingMachine,
};

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
        let at_once = self.hurried.take(now, PHASES_AT_ONCE);
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
            let pause = FIRST_WRITE_RETRY * 2_u32.saturating_pow(self.failures.min(10));
            let at = after(pause.min(LONGEST_WRITE_RETRY));
            return Some(Due { quiet: at, busy: at.max(since + YIELD), waited_for, awaited: false });
        }
        let flaps = self.hurried.is_used_up(now, PHASES_AT_ONCE);
        let pause = if flaps { FLAPPING_EVERY } else { PROGRESS_EVERY };
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
        let rest = |begun| (now.saturating_duration_since(begun) * WRITE_REST_TIMES).min(LONGEST_WRITE_REST);
        self.rested = self.begun.map(|begun| now + rest(begun));
    }

    /// The namespaces that have as many in the background as they may.
    pub(in super::super) fn full(&self) -> Full {
        let full = self.namespaces.iter().filter(|(_, count)| **count >= WRITES_OF_ONE_NAMESPACE);
        full.map(|(namespace, _)| Arc::clone(namespace)).collect()
    }

    /// When the next one in the background may be begun: none until another has ended.
    pub(super) fn room(&self, now: Instant, busy: bool) -> Option<Instant> {
        if !busy {
            return (self.background < WRITES_WHILE_QUIET).then_some(now);
        }
        (self.background < WRITES_WHILE_BUSY).then(|| self.rested.map_or(now, |rested| rested.max(now)))
    }
}
