//! Saving: status and finalizer of our objects, as seldom as possible and as soon as needed.
//!
//! What is written, and in which order, is said by a machine without time and without I/O ([`machine`]); when, by
//! [`write_pace`]. Here the writes are begun, each with the version it was decided on, and their ends are taken in. A phase
//! change and whatever effects wait for go at once; progress at most once a second, a phase that flaps less often; and all but what
//! effects wait for yields to effects for up to a second, counted from when there was something to write, so that what
//! changes again in the meantime is written once. A status is drawn only when it may be written, or before its object rests.

mod machine;
mod write_pace;

use std::{collections::BTreeMap, sync::Arc, time::Instant};

use linchpin_cluster::{
    hub::SubscriberId,
    own::{self, Finalizer, OwnMetadata, OwnObject, OwnWriteError},
};
use linchpin_doors::subject::{StatusHash, Subject};
use linchpin_engine::contract::Effect;
use linchpin_words::keys;

use super::{
    Controller, ControllerMessage, EndedWrite,
    driver::{FAILED, caught},
    entry::Entry,
    pace::{CROWD, FENCED, OWN_ECHO},
    turn::number,
};
use machine::{FirstJournal, FirstJournalMay, NextWrite, SavingMachine, SavingWrite, WriteEnd};
pub(crate) use write_pace::UnderWay;
use write_pace::{Urgency, WritePace};

/// A journal that is larger is no annotation: all annotations of an object may have 256 KiB together.
const LARGEST_FIRST_JOURNAL: usize = 64 * 1024;

/// What is to be written to an object, and what the API server has of it.
#[derive(Default)]
pub(crate) struct Saving {
    /// The resourceVersion that the next write relies on.
    pub(super) version: String,
    /// The finalizers at that version.
    finalizers: Vec<String>,
    /// The status as the API server has it, as far as we know.
    current: Option<StatusHash>,
    /// The status that is being written, and the version it relies on.
    under_way: (Option<StatusHash>, String),
    /// What is to be written.
    machine: SavingMachine,
    /// When.
    pace: WritePace,
    /// Effects that start only when the journal is saved.
    held: Vec<Effect>,
}

impl Saving {
    /// The object is as the API server has it now.
    pub(super) fn arrived(&mut self, object: &OwnObject, subject: &dyn Subject) {
        let stored = subject.stored();
        object.version().clone_into(&mut self.version);
        object.finalizers().clone_into(&mut self.finalizers);
        self.current = stored.status;
        self.machine.arrived(stored.journaled, stored.first_journal);
    }

    /// A decision was made: its status is to be drawn, and our finalizer is to be like this.
    pub(super) fn decided(&mut self, finalizer: Option<bool>, released: bool) {
        self.machine.decided(finalizer, released);
        if released {
            self.pace.raise(Urgency::AtOnce);
        }
    }

    /// Nothing is to be written to the object any more.
    pub(super) fn drop_all(&mut self) {
        self.machine.drop_all();
    }

    /// Holds effects until the journal is saved with so many critical changes.
    pub(super) fn hold(&mut self, effects: Vec<Effect>, critical: u64) {
        self.held.extend(effects);
        self.machine.hold(critical);
        self.pace.raise(Urgency::AtOnce);
    }

    /// The held effects, which are not to start any more.
    pub(super) fn take_held(&mut self) -> Vec<Effect> {
        self.machine.withdraw();
        std::mem::take(&mut self.held)
    }

    /// The phase has changed. Returns whether that is reported and written at once.
    pub(super) fn hurry(&mut self, now: Instant, awaited: bool) -> bool {
        self.pace.hurry(now, awaited)
    }

    /// Something came back that must not happen twice: what came of it is written at once.
    pub(super) fn confirms(&mut self) {
        self.pace.confirms = true;
    }

    /// Whether effects are held.
    pub(super) fn holds(&self) -> bool {
        !self.held.is_empty()
    }

    /// Whether a write is under way.
    pub(super) fn is_writing(&self) -> bool {
        self.machine.is_writing()
    }

    /// Whether a status was decided and not drawn.
    pub(super) fn is_undrawn(&self) -> bool {
        self.machine.is_undrawn()
    }

    /// Whether there is nothing to write, nothing under way and nothing held.
    pub(super) fn is_idle(&self) -> bool {
        self.machine.is_idle()
    }

    /// Whether what arrived is older than what we have just written ourselves. A store that went back in time also shows
    /// older versions, but goes on doing so.
    pub(super) fn is_late(&self, version: &str) -> bool {
        let recent = self.pace.last.is_some_and(|last| last.elapsed() < OWN_ECHO);
        recent && number(version) < number(&self.version)
    }

    /// Whether an object that arrives is the one we have, at most with the status that we wrote.
    fn is_echo(&self, object: &OwnObject) -> bool {
        !self.machine.is_outdated()
            && object.version() == self.version
            && object.finalizers() == self.finalizers
    }
}

/// What is written, ready to be sent.
enum Request {
    Status(serde_json::Value),
    Metadata(OwnMetadata),
}

impl Controller {
    /// Puts an object where it belongs among those with something to write.
    pub(super) fn schedule(&mut self, entry: &mut Entry) {
        match entry.saving.pace.due(&entry.saving.machine, Instant::now()) {
            Some(due) => self.unsaved.put(entry.subject.key().lane(), entry.id, due),
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
        let full = self.under_way.full();
        let Some(id) = self.unsaved.pop(now, busy, &full) else { return false };
        self.under_way.event_last = false;
        self.begin_write(id, false);
        true
    }

    /// An event is being written.
    pub(super) fn begun_event(&mut self, namespace: &Arc<str>) {
        self.under_way.event_last = true;
        self.under_way.begin(namespace, Instant::now());
    }

    /// An event was written, or could not be.
    pub(super) fn event_written(&mut self, namespace: &Arc<str>) {
        self.under_way.end(namespace, Instant::now());
    }

    /// When to look again for something to write; none if only a message can change that.
    pub(super) fn next_save(&self) -> Option<Instant> {
        let now = Instant::now();
        let busy = self.driver.is_busy(now);
        let full = self.under_way.full();
        let [waited_for, status] = self.unsaved.next(busy, &full);
        let next = [status, self.notices.next(busy, &full)].into_iter().flatten().min();
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
        let next = entry.next_write(self.served[entry.kind].finalizer, crowded);
        // A status that was drawn may be the first that relies on something.
        self.note_claims(id);
        let Some(entry) = self.entries.get_mut(&id) else { return };
        let Some((write, request)) = next else {
            entry.saving.pace.urgency = Urgency::Calm;
            if entry.is_idle() && entry.subject.puts_off_history() {
                self.enqueue(id);
            }
            return;
        };
        let version = entry.saving.version.clone();
        entry.saving.begin(write, &request);
        let key = entry.subject.key();
        let place = (key.namespace.clone(), key.name.clone());
        // What effects wait for has places of its own.
        let namespace: Option<Arc<str>> = (!waited_for).then(|| key.lane().into());
        match &namespace {
            Some(namespace) => self.under_way.begin(namespace, Instant::now()),
            None => self.under_way.waited_for += 1,
        }
        let (own, kind, back) = (self.own.clone(), self.served[entry.kind].own.clone(), self.back.clone());
        tokio::spawn(async move {
            let sent = async {
                match request {
                    Request::Status(status) => own::write_status(&own, &kind, &place, &version, status).await,
                    Request::Metadata(metadata) => {
                        own::write_metadata(&own, &kind, &place, &version, &metadata).await
                    }
                }
            };
            // What is said of a write that panicked: it is tried again, and its place is given back.
            let failed = || Err(OwnWriteError::Passing(FAILED.to_owned()));
            let result = caught(sent).await.unwrap_or_else(failed);
            let _ = back.send(ControllerMessage::Saved(id, EndedWrite { background: namespace, result }));
        });
    }

    /// A write has ended.
    pub(super) fn saved(&mut self, id: SubscriberId, written: EndedWrite) {
        let waited_for = written.background.is_none();
        match &written.background {
            Some(namespace) => self.under_way.end(namespace, Instant::now()),
            None => self.under_way.waited_for = self.under_way.waited_for.saturating_sub(1),
        }
        self.telemetry.saved(&written.result);
        let Some(mut entry) = self.entries.remove(&id) else { return };
        if self.served[entry.kind].counted && !matches!(written.result, Ok(_) | Err(OwnWriteError::Gone)) {
            let begun = entry.saving.pace.last;
            self.boot_counts.turn(false, begun.map(|begun| begun.elapsed()).unwrap_or_default());
        }
        let finalizer = self.served[entry.kind].finalizer;
        entry.saving.pace.confirms |= waited_for && written.result.is_err();
        entry.write_ended(written.result, finalizer);
        if entry.saving.machine.release_held() {
            let held = std::mem::take(&mut entry.saving.held);
            self.submit(&mut entry, held);
        }
        self.entries.insert(id, entry);
        // Whatever was not written is drawn again, from the newest object.
        self.enqueue(id);
    }

    /// Whether an object that arrives is the one we have, at most with the status that we wrote: nothing in it is new, and
    /// reading it costs more than a decision does.
    pub(super) fn is_echo(&self, kind: usize, object: &OwnObject) -> bool {
        let entry = self.ids.get(&(kind, object.place())).and_then(|id| self.entries.get(id));
        entry.is_some_and(|entry| object.uid() == entry.subject.key().uid && entry.saving.is_echo(object))
    }
}

impl Saving {
    fn begin(&mut self, write: SavingWrite, request: &Request) {
        self.machine.begin(write);
        self.pace.since = None;
        self.pace.last = Some(Instant::now());
        let status = match request {
            Request::Status(status) => {
                self.pace.confirms = false;
                self.pace.urgency = Urgency::Calm;
                Some(StatusHash::of(status))
            }
            Request::Metadata(_) => None,
        };
        self.under_way = (status, self.version.clone());
    }
}

impl Entry {
    /// What is to be written now, if anything is.
    fn next_write(
        &mut self,
        finalizer: Option<&'static str>,
        crowded: bool,
    ) -> Option<(SavingWrite, Request)> {
        self.saving.pace.since = None;
        let mut next = self.saving.machine.next();
        if next == NextWrite::Draw {
            let drawn = self.subject.status(&self.causes);
            let new = drawn
                .as_ref()
                .is_some_and(|drawn| self.saving.current != Some(StatusHash::of(&drawn.status)));
            let writes = self.saving.machine.drawn(new);
            if let Some(drawn) = drawn.filter(|_| writes) {
                let write = SavingWrite::Status { critical: drawn.critical, journaled: drawn.journaled };
                return Some((write, Request::Status(drawn.status)));
            }
            next = self.saving.machine.next();
        }
        let NextWrite::Metadata { finalizer: present, first_journal } = next else { return None };
        let entry = finalizer.zip(present).map(|(name, present)| Finalizer { name, present });
        let first = || self.subject.first_journal().filter(|(text, _)| text.len() <= LARGEST_FIRST_JOURNAL);
        let (first_journal, annotation) = match first_journal {
            FirstJournalMay::Go => (Some(FirstJournal::Shed), Some(None)),
            FirstJournalMay::Be if crowded => match first() {
                Some((text, critical)) => (Some(FirstJournal::Put(critical)), Some(Some(text))),
                None => (None, None),
            },
            FirstJournalMay::Be | FirstJournalMay::Stay => (None, None),
        };
        let annotations: BTreeMap<_, _> =
            annotation.map(|value| (keys::FIRST_JOURNAL, value)).into_iter().collect();
        let finalizers = entry.map(|entry| entry.among(&self.saving.finalizers));
        let metadata = OwnMetadata { finalizers, annotations };
        Some((SavingWrite::Metadata { finalizer: present, first_journal }, Request::Metadata(metadata)))
    }

    /// The write under way has ended.
    fn write_ended(&mut self, result: Result<String, OwnWriteError>, finalizer: Option<&'static str>) {
        let (status, relied_on) = std::mem::take(&mut self.saving.under_way);
        let saving = &mut self.saving;
        match result {
            Ok(version) => {
                saving.pace.failures = 0;
                // Somebody's later change may have arrived before this answer: relying on the older version again would
                // be a conflict that no further arrival resolves, and what is known of the finalizers is newer.
                let newest = number(&version) > number(&saving.version);
                if newest {
                    saving.version = version;
                }
                if status.is_some() {
                    saving.current = status;
                }
                let Some(write) = saving.machine.ended(WriteEnd::Done { newest }) else { return };
                match write {
                    SavingWrite::Status { critical, .. }
                    | SavingWrite::Metadata { first_journal: Some(FirstJournal::Put(critical)), .. } => {
                        self.subject.saved(critical);
                    }
                    SavingWrite::Metadata { .. } => {}
                }
                if let (SavingWrite::Metadata { finalizer: Some(present), .. }, Some(name), true) =
                    (write, finalizer, newest)
                {
                    saving.finalizers = Finalizer { name, present }.among(&saving.finalizers);
                    self.subject.finalizer_written(present);
                }
            }
            Err(OwnWriteError::Conflict) => {
                // The newer object is on its way; if it is here already, try again with it.
                let known = saving.version != relied_on;
                saving.machine.ended(WriteEnd::Conflict { known });
                saving.pace.raise(Urgency::AtOnce);
            }
            Err(OwnWriteError::Gone) => {
                saving.machine.ended(WriteEnd::Gone);
            }
            Err(error) => {
                saving.machine.ended(WriteEnd::Failed);
                saving.pace.failures += 1;
                if saving.pace.failures == 1 {
                    let object = self.subject.key().object_ref();
                    tracing::warn!(%object, "the status cannot be written: {error}");
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
