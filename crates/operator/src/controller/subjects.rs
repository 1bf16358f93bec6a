//! Subjects as their objects come, change and go.

use std::collections::BTreeSet;

use linchpin_cluster::{
    events::Regarding,
    hub::SubscriberId,
    own::{NamespacedName, OwnEvent, OwnObject, UnreadableObject},
};
use linchpin_doors::subject::Subject;
use linchpin_engine::{contract::Notice, graph::Node};

use super::{Controller, entry::Entry};

impl Controller {
    pub(super) fn take_in_own(&mut self, kind: usize, event: OwnEvent) {
        match event {
            OwnEvent::There(object) if self.is_echo(kind, &object) => {}
            OwnEvent::There(object) => self.arrived(kind, &object),
            OwnEvent::Gone(place) => {
                if let Some(id) = self.ids.remove(&(kind, place)) {
                    self.forget(id);
                }
            }
            OwnEvent::Synced => tracing::debug!(kind = self.served[kind].own.name(), "all objects seen"),
            OwnEvent::Trouble(_) => {}
        }
    }

    pub(super) fn take_in_kept(&mut self, kind: usize, event: &OwnEvent) {
        let Some(records) = self.kept.get_mut(&kind) else { return };
        let first = !records.is_listed();
        let mut ids: Vec<SubscriberId> =
            records.take_in(event).iter().filter_map(|uid| self.uids.get(uid).copied()).collect();
        if first && records.is_listed() {
            // Now it is known of all of them.
            ids = self.entries.iter().filter(|(_, entry)| entry.kind == kind).map(|(id, _)| *id).collect();
        }
        for id in ids {
            self.enqueue(id);
        }
    }

    /// An object of ours is there and cannot be read: that is said on the object itself, and nothing is done for what
    /// it was before, because nobody knows what it asks for now.
    pub(super) fn unreadable(&mut self, kind: usize, object: &OwnObject, error: &UnreadableObject) {
        let (namespace, name) = object.place();
        let kind_name = self.served[kind].own.name();
        tracing::warn!(
            kind = kind_name,
            namespace,
            name,
            "an object cannot be read and is not served: {error}"
        );
        let message = format!("This object cannot be read and is not served: {error}. Correct its spec.");
        let uid = object.uid().to_owned();
        let gvk = self.served[kind].kind.names().gvk;
        let about = Regarding { kind: gvk, namespace, name, uid };
        self.emit_event(about, Notice { reason: "Unreadable".to_owned(), message, warning: true });
        if let Some(id) = self.ids.remove(&(kind, object.place())) {
            self.forget(id);
        }
    }

    /// An object of ours is new or has changed.
    fn arrived(&mut self, kind: usize, object: &OwnObject) {
        let key = (kind, object.place());
        let known = self.ids.get(&key).copied();
        let same = |id: &SubscriberId| {
            self.entries.get(id).is_some_and(|entry| entry.subject.key().uid == object.uid())
        };
        if let Some(id) = known.filter(same) {
            return self.changed(id, kind, object);
        }
        if let Some(id) = known {
            self.forget(id);
        }
        match self.served[kind].kind.subject(object.text(), &self.default_service_account) {
            Ok(subject) => self.begin(key, object, subject),
            Err(error) => self.unreadable(kind, object, &error.into()),
        }
    }

    /// Looks after a subject from now on.
    fn begin(&mut self, key: (usize, NamespacedName), object: &OwnObject, subject: Box<dyn Subject>) {
        let id = SubscriberId(self.next_id);
        self.next_id += 1;
        let mut entry = Entry::new(key.0, id, subject);
        entry.saving.arrived(object, entry.subject.as_ref());
        self.uids.insert(entry.subject.key().uid.clone(), id);
        self.ids.insert(key, id);
        self.ours += usize::from(self.served[entry.kind].finalizer.is_some());
        self.entries.insert(id, Box::new(entry));
        self.note_claims(id);
        self.enqueue(id);
        self.telemetry.objects(self.ours);
    }

    fn forget(&mut self, id: SubscriberId) {
        if let Some(entry) = self.entries.remove(&id) {
            self.telemetry.forget(&self.served[entry.kind].group_kind.kind, entry.phase);
            self.ours -= usize::from(self.served[entry.kind].finalizer.is_some());
            let key = entry.subject.key();
            if self.served[entry.kind].counted {
                self.tallies.0.forget(key.lane(), &key.name);
            }
            if entry.holds_pods {
                self.tallies.0.hold(&key.name, 0);
            }
            self.uids.remove(&entry.subject.key().uid);
            let node = Node::here(entry.subject.key().object_ref());
            for neighbour in self.graph.remove(&node) {
                self.enqueue_node(&neighbour);
            }
            // What it relied on may go now.
            for claimed in entry.subject.claims() {
                self.enqueue_node(&Node::here(claimed.clone()));
            }
            self.find_exempt();
        }
        self.note_claims(id);
        self.unsaved.remove(id);
        self.timers.set(id, None);
        self.resting.set(id, None);
        self.cooling.set(id, None);
        self.answers.subscribe(id, BTreeSet::new());
        self.telemetry.objects(self.ours);
    }
}
