//! Saving: status and finalizers of our objects, as seldom as possible and as soon as needed.
//!
//! A phase change and whatever effects wait for go at once; progress at most once a second, a phase that flaps less often;
//! and all but what effects wait for yields to effects for up to a second, counted from when there was something to write, so
//! that what changes again in the meantime is written once. One write per object at a time, each with the version it
//! was decided on; few at a time altogether, and beside effects one at a time with pauses between, because a status
//! costs the API server more than an effect does. A status is drawn only when it may be written. Where many objects
//! begin at once, the first journal goes with the finalizer.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use linchpin_cluster::{
    hub::SubscriberId,
    own::{self, OwnMetadata, OwnObject, OwnWriteError},
};
use linchpin_doors::journal;
use linchpin_engine::journal::Memory;
use linchpin_words::keys;

use super::{
    Controller, Message, Written, Wrote,
    allowance::Rate,
    backlog::Due,
    driver::{FAILED, caught},
    entry::{Entry, Saving},
    status_hash::StatusHash,
    turn::{number, regarding},
};

/// How often progress is written.
const AT_MOST_EVERY: Duration = Duration::from_secs(1);
/// How many changes of the phase are reported in an event and written at once. A user who makes a phase flap pays with
/// their own writes, not with ours.
const AT_ONCE: Rate = Rate { burst: 8, every: Duration::from_secs(10) };
/// How often the status of an object is written whose phase flaps.
const FLAPPING_EVERY: Duration = Duration::from_secs(5);
/// How long statuses and events yield to effects.
pub(super) const YIELD: Duration = Duration::from_secs(1);
/// The longest pause after a failed write.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// How soon to look again while nothing may be written: a term that seemed over may turn out to go on.
const FENCED: Duration = Duration::from_millis(100);
/// How many statuses and events are written at a time while nothing else is.
const WHILE_QUIET: usize = 4;
/// How many are written at a time beside effects.
const WHILE_BUSY: usize = 1;
/// After one that was written beside effects there is a pause so many times as long: they take a twentieth of the time.
const PAUSE: u32 = 19;
/// The longest such pause: a server that answers late must not make statuses old.
const LONGEST_REST: Duration = Duration::from_secs(1);

/// From so many objects with something to write on, the first journal goes with the finalizer: one write instead of two
/// before the first effect. Where there are fewer the status comes before the effects, and shows what is about to happen.
const CROWD: usize = 4;
/// A journal that is larger is no annotation: all annotations of an object may have 256 KiB together.
const LARGEST_FIRST_JOURNAL: usize = 64 * 1024;

/// Writes under way that are no effects.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct UnderWay {
    /// Those that effects wait for.
    waited_for: usize,
    /// Statuses and events.
    background: usize,
    /// Whether the last one in the background was an event: they take turns.
    event_last: bool,
    /// When the last one in the background was begun.
    begun: Option<Instant>,
    /// From when on the next one may be begun beside effects.
    rested: Option<Instant>,
}

impl UnderWay {
    /// One in the background is begun.
    fn begin(&mut self, now: Instant) {
        self.background += 1;
        self.begun = Some(now);
    }

    /// One in the background has ended.
    fn end(&mut self, now: Instant) {
        self.background = self.background.saturating_sub(1);
        let rest = |begun| (now.saturating_duration_since(begun) * PAUSE).min(LONGEST_REST);
        self.rested = self.begun.map(|begun| now + rest(begun));
    }

    /// When the next one in the background may be begun: none until another has ended.
    fn room(&self, now: Instant, busy: bool) -> Option<Instant> {
        if !busy {
            return (self.background < WHILE_QUIET).then_some(now);
        }
        (self.background < WHILE_BUSY).then(|| self.rested.map_or(now, |rested| rested.max(now)))
    }
}

impl Saving {
    /// The first journal and the count of critical changes in it; none where there was one before, nothing in it has to be
    /// saved, or it cannot be an annotation.
    fn first(&self, memory: &Memory) -> Option<(String, u64)> {
        let first = !self.journaled && memory.critical > memory.saved;
        let text = first.then(|| journal::write_first(&memory.journal)).flatten();
        Some((text.filter(|text| text.len() <= LARGEST_FIRST_JOURNAL)?, memory.critical))
    }

    /// The phase has changed. Returns whether that is reported and written at once.
    pub(super) fn hurry(&mut self, now: Instant) -> bool {
        let at_once = self.hurried.take(now, AT_ONCE);
        self.urgent |= at_once;
        at_once
    }

    /// When what is to be written may be written; none if there is nothing, or not yet.
    fn due(&mut self, now: Instant) -> Option<Due> {
        if !self.has_something() {
            self.since = None;
            return None;
        }
        let since = *self.since.get_or_insert(now);
        if !self.is_due() {
            return None;
        }
        let after = |pause: Duration| self.last.map_or(since, |last| last + pause);
        let waited_for = !self.held.is_empty() || self.released || self.confirms;
        if self.failures > 0 {
            let pause = Duration::from_millis(100) * 2_u32.saturating_pow(self.failures.min(10));
            let at = after(pause.min(LONGEST_PAUSE));
            return Some(Due { quiet: at, busy: at.max(since + YIELD), waited_for });
        }
        let flaps = self.hurried.is_used_up(now, AT_ONCE);
        let pause = if flaps { FLAPPING_EVERY } else { AT_MOST_EVERY };
        let quiet = if self.urgent || waited_for { since } else { after(pause).max(since) };
        Some(Due { quiet, busy: quiet.max(since + YIELD), waited_for })
    }
}

impl Controller {
    /// Puts an object where it belongs among those with something to write.
    pub(super) fn schedule(&mut self, entry: &mut Entry) {
        match entry.saving.due(Instant::now()) {
            Some(due) => self.unsaved.put(&entry.namespace(), entry.id, due),
            None => self.unsaved.remove(entry.id),
        }
    }

    /// Begins every write whose time has come, as far as there are places.
    pub(super) fn save_what_is_due(&mut self) {
        // If the term is over, the next leader writes it; if it goes on after all, nothing may be lost.
        if !(self.may_write)() {
            return;
        }
        let now = Instant::now();
        while self.under_way.waited_for < self.context.settings.concurrency.get() {
            let Some(id) = self.unsaved.pop_waited_for(now) else { break };
            self.begin_write(id, true);
        }
        let busy = self.driver.is_busy(now);
        while self.under_way.room(now, busy) == Some(now) {
            let event_first = !self.under_way.event_last && self.begin_event(now, busy);
            let begun = event_first || self.begin_status(now, busy) || self.begin_event(now, busy);
            if !begun {
                break;
            }
        }
    }

    fn begin_status(&mut self, now: Instant, busy: bool) -> bool {
        let Some(id) = self.unsaved.pop(now, busy) else { return false };
        self.under_way.event_last = false;
        self.begin_write(id, false);
        true
    }

    /// An event is being written.
    pub(super) fn begun_event(&mut self) {
        self.under_way.event_last = true;
        self.under_way.begin(Instant::now());
    }

    /// An event was written, or could not be.
    pub(super) fn event_written(&mut self) {
        self.under_way.end(Instant::now());
    }

    /// When to look again for something to write; none if only a message can change that.
    pub(super) fn next_save(&self) -> Option<Instant> {
        let now = Instant::now();
        let busy = self.driver.is_busy(now);
        let [waited_for, status] = self.unsaved.next(busy);
        let next = [status, self.notices.next(busy)].into_iter().flatten().min();
        let next = next.zip(self.under_way.room(now, busy)).map(|(next, room)| next.max(room));
        // What yields now may be written as soon as effects have come to rest.
        let quiet = self.driver.quiet_from().filter(|_| busy && next.is_some());
        let waited_for =
            waited_for.filter(|_| self.under_way.waited_for < self.context.settings.concurrency.get());
        let at = [waited_for, next, quiet].into_iter().flatten().min()?;
        Some(if (self.may_write)() { at } else { at.max(now + FENCED) })
    }

    fn begin_write(&mut self, id: SubscriberId, waited_for: bool) {
        let crowded = self.under_way.waited_for + self.under_way.background + self.unsaved.len() >= CROWD;
        let Some(entry) = self.entries.get_mut(&id) else { return };
        if entry.saving.finalizers.is_none() {
            entry.draw();
        }
        let place = entry.subject.place();
        let saving = &mut entry.saving;
        saving.since = None;
        let (own, kind, back) = (self.own.clone(), self.own_kinds[entry.kind].clone(), self.back.clone());
        let version = saving.version.clone();
        let finalizers = saving.finalizers.take();
        if finalizers.is_some() || !saving.wanted && saving.sheds() {
            let memory = entry.memory.as_ref().filter(|_| crowded);
            let first = memory.and_then(|memory| saving.first(memory));
            let critical = first.as_ref().map(|(_, critical)| *critical);
            let annotation = if saving.sheds() { Some(None) } else { first.map(|(text, _)| Some(text)) };
            let annotations = annotation.map(|value| (keys::FIRST_JOURNAL, value)).into_iter().collect();
            let metadata = OwnMetadata { finalizers, annotations };
            saving.under_way = Some((None, version.clone()));
            tokio::spawn(async move {
                let result = caught(own::write_metadata(&own, &kind, &place, &version, &metadata))
                    .await
                    .unwrap_or_else(failed);
                let written = Written { what: Wrote::Metadata(metadata, critical), waited_for, result };
                let _ = back.send(Message::Saved(id, written));
            });
        } else if let Some(status) = saving.wanted.then(|| entry.subject.current_status()).flatten() {
            saving.wanted = false;
            saving.confirms = false;
            saving.urgent = false;
            saving.under_way = Some((Some(StatusHash::of(&status)), version.clone()));
            let (critical, journaled) = (saving.critical, status.get("journal").is_some());
            tokio::spawn(async move {
                let result = caught(own::write_status(&own, &kind, &place, &version, status))
                    .await
                    .unwrap_or_else(failed);
                let written = Written { what: Wrote::Status { critical, journaled }, waited_for, result };
                let _ = back.send(Message::Saved(id, written));
            });
        } else {
            saving.urgent = false;
            if entry.may_keep_history() && entry.history.is_put_off(entry.subject.as_ref()) {
                self.enqueue(id);
            }
            return;
        }
        saving.last = Some(Instant::now());
        if waited_for {
            self.under_way.waited_for += 1;
        } else {
            self.under_way.begin(Instant::now());
        }
    }

    /// A write has ended.
    pub(super) fn saved(&mut self, id: SubscriberId, written: Written) {
        if written.waited_for {
            self.under_way.waited_for = self.under_way.waited_for.saturating_sub(1);
        } else {
            self.under_way.end(Instant::now());
        }
        let Some(entry) = self.entries.get_mut(&id) else { return };
        let (status, relied_on) = entry.saving.under_way.take().unwrap_or_default();
        self.telemetry.saved(&written.result);
        entry.saving.confirms |= written.waited_for && written.result.is_err();
        match written.result {
            Ok(version) => {
                entry.saving.failures = 0;
                // Somebody's later change may have arrived before this answer: relying on the older version again would
                // be a conflict that no further arrival resolves, and what is known of the finalizers is newer.
                let newest = number(&version) > number(&entry.saving.version);
                if newest {
                    entry.saving.version = version;
                }
                if status.is_some() {
                    entry.saving.current = status;
                }
                let critical = match written.what {
                    Wrote::Status { critical, journaled } => {
                        entry.saving.journaled = journaled;
                        Some(critical)
                    }
                    Wrote::Metadata(metadata, critical) => {
                        if let Some(first) = metadata.annotations.get(keys::FIRST_JOURNAL) {
                            entry.saving.first_journal = first.is_some();
                        }
                        if let Some(finalizers) = metadata.finalizers.filter(|_| newest) {
                            entry.subject.set_finalizers(finalizers);
                            // A turn that was taken in the meantime asked for them once more.
                            let there = entry.subject.finalizers();
                            entry.saving.finalizers.take_if(|wanted| *wanted == there);
                        }
                        critical
                    }
                };
                if let (Some(memory), Some(critical)) = (&mut entry.memory, critical) {
                    memory.mark_saved(critical);
                }
                self.start_held(id);
            }
            Err(OwnWriteError::Conflict) => {
                // The newer object is on its way; if it is here already, try again with it.
                entry.saving.outdated = entry.saving.version == relied_on;
                entry.saving.urgent = true;
            }
            Err(OwnWriteError::Gone) => {
                entry.saving.wanted = false;
                entry.saving.finalizers = None;
                entry.saving.first_journal = false;
            }
            Err(error) => {
                entry.saving.failures += 1;
                if entry.saving.failures == 1 {
                    tracing::warn!(object = %entry.subject.object_ref(), "the status cannot be written: {error}");
                }
            }
        }
        // Whatever was not written is drawn again, from the newest object.
        self.enqueue(id);
    }

    /// Whether an object that arrives is the one we have, at most with the status that we wrote: nothing in it is new, and
    /// reading it costs more than a decision does.
    pub(super) fn is_echo(&self, kind: usize, object: &OwnObject) -> bool {
        let entry = self.ids.get(&(kind, object.place())).and_then(|id| self.entries.get(id));
        entry.is_some_and(|entry| {
            !entry.saving.outdated
                && object.version() == entry.saving.version
                && object.uid() == entry.subject.uid()
                && object.finalizers() == entry.subject.finalizers()
        })
    }

    /// Starts the effects that waited for the journal, if all that they rely on is saved.
    fn start_held(&mut self, id: SubscriberId) {
        let Some(entry) = self.entries.get_mut(&id) else { return };
        let saved = entry.memory.as_ref().is_some_and(|memory| memory.saved >= memory.critical);
        if !saved || entry.saving.finalizers.is_some() {
            return;
        }
        let held = std::mem::take(&mut entry.saving.held);
        entry.in_flight += held.len();
        let Some(entry) = self.entries.get(&id) else { return };
        let about = Arc::new(regarding(self, entry));
        let (namespace, priority) = (entry.namespace(), entry.subject.priority());
        for effect in held {
            self.driver.submit(&namespace, priority, id, effect, Arc::clone(&about));
        }
    }
}

/// What is said of a write that panicked: it is tried again, and its place is given back.
fn failed<T>() -> Result<T, OwnWriteError> {
    Err(OwnWriteError::Passing(FAILED.to_owned()))
}

#[cfg(test)]
mod tests;
