//! What changes of definitions and API services mean for what is known of kinds: which groups are asked for again.
//! [`Discovery`](super::Discovery) follows both with a listener each.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

use super::{Ask, Shared};
use crate::watch::{Sink, SinkReply, WatchFailure, WatchReport, interest::Interest};

/// Where news of kinds come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KindSource {
    /// `CustomResourceDefinitions`, named `plural.group`.
    Definitions,
    /// `APIServices`, named `version.group`.
    Services,
}

/// Takes note of what one source says.
pub(super) struct KindListener {
    pub(super) shared: Arc<Shared>,
    pub(super) source: KindSource,
    /// What was last seen, by name and version; none before the first look.
    pub(super) known: Mutex<Option<BTreeMap<String, u64>>>,
}

impl KindListener {
    fn touch(&self, name: &str) {
        let Some((_, group)) = name.split_once('.') else { return };
        self.shared.state().dirty.insert(group.to_owned(), Ask::now());
        self.shared.wake.notify_one();
    }

    fn note(&self, change: impl FnOnce(&mut BTreeMap<String, u64>)) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.get_or_insert_default();
        change(known);
        if self.source == KindSource::Definitions {
            let mut state = self.shared.state();
            state.definitions.clone_from(known);
            state.watching = true;
        }
    }

    /// Compares a snapshot with what was known; before the first one, with what is served.
    fn snapshot(&self, fresh: &BTreeMap<String, u64>) {
        let old = self.known.lock().unwrap_or_else(PoisonError::into_inner).clone();
        self.note(|known| known.clone_from(fresh));
        match old {
            Some(old) => {
                let names: BTreeSet<&String> = old.keys().chain(fresh.keys()).collect();
                for name in names.into_iter().filter(|name| old.get(*name) != fresh.get(*name)) {
                    self.touch(name);
                }
                // The connection was down in between: the server may be another one.
                self.shared.state().all = Some(Instant::now());
                self.shared.wake.notify_one();
            }
            None if self.source == KindSource::Definitions => {
                let Some(index) = self.shared.newest.borrow().clone() else { return };
                for name in fresh.keys() {
                    let (plural, group) = name.split_once('.').unwrap_or((name, ""));
                    if !index.serves_plural(group, plural) {
                        self.touch(name);
                    }
                }
            }
            None => {}
        }
    }
}

impl Sink for KindListener {
    fn is_metadata(&self) -> bool {
        true
    }

    fn interest(&self, _name: &str) -> Option<Arc<Interest>> {
        Some(Arc::default())
    }

    fn report(&self, report: WatchReport) -> SinkReply {
        match report {
            WatchReport::Snapshot { items, .. } => {
                self.snapshot(&items.into_iter().map(|item| (item.name, item.version)).collect());
            }
            WatchReport::Changed(item) => {
                self.note(|known| {
                    known.insert(item.name.clone(), item.version);
                });
                self.shared.state().deleted.remove(&item.name);
                self.touch(&item.name);
            }
            WatchReport::Gone { name, .. } => {
                self.note(|known| {
                    known.remove(&name);
                });
                if self.source == KindSource::Definitions {
                    self.shared.state().deleted.insert(name.clone());
                }
                self.touch(&name);
            }
            WatchReport::Live => {
                self.shared.state().all = Some(Instant::now());
                self.shared.wake.notify_one();
            }
            WatchReport::Looking
            | WatchReport::Read { .. }
            | WatchReport::Passed { .. }
            | WatchReport::Reached(_) => {}
        }
        SinkReply::Noted
    }

    fn failed(&self, failure: WatchFailure) {
        if let WatchFailure::Forbidden(error) = failure {
            tracing::debug!(?self.source, %error, "definitions cannot be watched: kinds are asked for now and then");
            self.shared.state().watching = false;
        }
    }
}
