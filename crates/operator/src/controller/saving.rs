//! Saving: status and finalizers of our objects, as seldom as possible and as soon as needed.
//!
//! A phase change and whatever effects wait for go at once; progress at most once a second; and all of it yields to
//! queued effects for up to a second. One write per object at a time, each with the version it was decided on.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use linchpin_cluster::{
    hub::SubscriberId,
    own::{self, OwnWriteError},
};

use super::{
    Controller, Message, Written, Wrote,
    turn::{number, regarding},
};

/// How often progress is written, and how long any write yields to effects.
const AT_MOST_EVERY: Duration = Duration::from_secs(1);
/// The longest pause after a failed write.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

impl Controller {
    /// Begins every write whose time has come.
    pub(super) fn save_what_is_due(&mut self) {
        let busy = self.driver.is_busy();
        let ids: Vec<SubscriberId> = self.unsaved.iter().copied().collect();
        for id in ids {
            let Some(entry) = self.entries.get(&id) else {
                self.unsaved.remove(&id);
                continue;
            };
            let saving = &entry.saving;
            if !saving.is_due() {
                if saving.under_way.is_none() && !saving.outdated {
                    self.unsaved.remove(&id);
                }
                continue;
            }
            let since = saving.last.map(|last| last.elapsed());
            let pause = if saving.failures > 0 {
                (Duration::from_millis(100) * 2_u32.saturating_pow(saving.failures.min(10)))
                    .min(LONGEST_PAUSE)
            } else if !saving.held.is_empty() || saving.released || saving.urgent && !busy {
                Duration::ZERO
            } else {
                AT_MOST_EVERY
            };
            let first = saving.last.is_none() && !busy;
            if first || since.is_some_and(|since| since >= pause) || pause.is_zero() {
                self.begin_write(id);
            } else if saving.last.is_none() {
                // Yield, but not for ever: the wait counts from now.
                if let Some(entry) = self.entries.get_mut(&id) {
                    entry.saving.last = Some(Instant::now());
                }
            }
        }
    }

    fn begin_write(&mut self, id: SubscriberId) {
        let Some(entry) = self.entries.get_mut(&id) else { return };
        let place = entry.subject.place();
        let saving = &mut entry.saving;
        saving.last = Some(Instant::now());
        let (own, kind, back) = (self.own.clone(), self.own_kinds[entry.kind].clone(), self.back.clone());
        let version = saving.version.clone();
        if let Some(finalizers) = saving.finalizers.take() {
            saving.under_way = Some((None, version.clone()));
            tokio::spawn(async move {
                let result = own::write_finalizers(&own, &kind, &place, &version, &finalizers).await;
                let _ = back.send(Message::Saved(id, Written { what: Wrote::Finalizers, result }));
            });
        } else if let Some(status) = saving.wanted.take() {
            saving.urgent = false;
            saving.under_way = Some((Some(status.clone()), version.clone()));
            let critical = saving.critical;
            tokio::spawn(async move {
                let result = own::write_status(&own, &kind, &place, &version, status).await;
                let _ = back.send(Message::Saved(id, Written { what: Wrote::Status(critical), result }));
            });
        }
    }

    /// A write has ended.
    pub(super) fn saved(&mut self, id: SubscriberId, written: Written) {
        let Some(entry) = self.entries.get_mut(&id) else { return };
        let (status, relied_on) = entry.saving.under_way.take().unwrap_or_default();
        self.telemetry.saved(&written.result);
        match written.result {
            Ok(version) => {
                entry.saving.failures = 0;
                // Somebody's later change may have arrived before this answer: relying on the older version again would
                // be a conflict that no further arrival resolves.
                if number(&version) > number(&entry.saving.version) {
                    entry.saving.version = version;
                }
                if status.is_some() {
                    entry.saving.current = status;
                }
                if let (Wrote::Status(critical), Some(memory)) = (&written.what, &mut entry.memory) {
                    memory.mark_saved(*critical);
                }
                self.start_held(id);
            }
            Err(OwnWriteError::Conflict) => {
                // The newer object is on its way; if it is here already, try again with it.
                entry.saving.outdated = entry.saving.version == relied_on;
            }
            Err(OwnWriteError::Gone) => {
                entry.saving.wanted = None;
                entry.saving.finalizers = None;
            }
            Err(error) => {
                entry.saving.failures += 1;
                if entry.saving.failures == 1 {
                    tracing::warn!(object = %entry.subject.object_ref(), "the status cannot be written: {error}");
                }
            }
        }
        // Whatever was not written is drawn again, from the newest object.
        self.unsaved.insert(id);
        self.enqueue(id);
    }

    /// Starts the effects that waited for the journal, if all that they rely on is saved.
    fn start_held(&mut self, id: SubscriberId) {
        let Some(entry) = self.entries.get_mut(&id) else { return };
        let saved = entry.memory.as_ref().is_some_and(|memory| memory.saved >= memory.critical);
        if !saved || entry.saving.finalizers.is_some() {
            return;
        }
        let held = std::mem::take(&mut entry.saving.held);
        let Some(entry) = self.entries.get(&id) else { return };
        let about = Arc::new(regarding(self, entry));
        let (namespace, priority) = (entry.namespace(), entry.subject.priority());
        for effect in held {
            self.driver.submit(&namespace, priority, id, effect, Arc::clone(&about));
        }
    }
}
