//! Following a kind of ours: the loop of every watch ([`crate::watch`]), with whole objects handed over as they arrive.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use kube::Client;
use serde_json::value::RawValue;
use tokio::sync::watch as channel;

use super::{NamespacedName, OwnKind, OwnObject};
use crate::watch::{
    Counters, Features, Head, Sink, SinkReply, WatchFailure, WatchPauses, WatchReport, WatchSelect,
    WatchTarget, WatchTrouble, clock::VersionClock, follow::Follower, interest::Interest,
};

/// What a follower sees.
#[derive(Debug)]
pub enum OwnEvent {
    /// An object is there, new or changed.
    There(Box<OwnObject>),
    /// An object is gone.
    Gone(NamespacedName),
    /// Everything that is there has been seen, and changes are followed.
    Synced,
    /// It cannot be looked at now; it is tried again.
    Trouble(OwnTrouble),
}

/// Why a kind cannot be looked at.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OwnTrouble {
    /// The server does not know it.
    #[error("the API server does not serve {0}: is its definition installed?")]
    NotServed(String),
    /// A right is missing.
    #[error("{0}")]
    Forbidden(String),
    /// There is no usable answer.
    #[error("{0}")]
    Lost(String),
}

/// Follows a kind, in one namespace or in all, as the user that the client acts as, for ever.
pub async fn follow(
    client: &Client,
    kind: &OwnKind,
    namespace: Option<&str>,
    report: impl Fn(OwnEvent) + Send + Sync,
) {
    follow_selected(client, kind, namespace, WatchSelect::All, report).await;
}

/// Follows one object by its name, which needs no right to any other.
pub async fn follow_one(
    client: &Client,
    kind: &OwnKind,
    namespace: Option<&str>,
    name: &str,
    report: impl Fn(OwnEvent) + Send + Sync,
) {
    follow_selected(client, kind, namespace, WatchSelect::Name(name.to_owned()), report).await;
}

async fn follow_selected(
    client: &Client,
    kind: &OwnKind,
    namespace: Option<&str>,
    select: WatchSelect,
    report: impl Fn(OwnEvent) + Send + Sync,
) {
    // Spreads the pauses of different followers.
    let seed = kind.plural().bytes().map(u64::from).sum();
    let features = Features::default();
    // Objects are handed over one by one as they arrive: a first state that comes as a stream is not.
    features.cannot_stream(&kind.resource.kind.group);
    let follower = Follower {
        client: client.clone(),
        clock: Arc::new(VersionClock::default()),
        features: Arc::new(features),
        counters: Arc::new(Counters::default()),
        watched: WatchTarget {
            resource: kind.resource.clone(),
            namespace: namespace.map(str::to_owned),
            select,
        },
        asker: namespace.unwrap_or_default().to_owned(),
        seed,
    };
    let sink = ReportSink { report, known: Mutex::default(), metadata_only: kind.metadata_only };
    let (_keep, mut never) = channel::channel(0);
    let mut pace = WatchPauses::new(seed);
    loop {
        // Returns only where the server does not know the kind.
        follower.run(&sink, &mut never).await;
        if std::mem::take(&mut sink.known().synced) {
            pace.fine();
        }
        (sink.report)(OwnEvent::Trouble(OwnTrouble::NotServed(kind.plural().to_owned())));
        tokio::time::sleep(pace.after(WatchTrouble::Connection)).await;
    }
}

/// Hands over what arrives, and finds the deletions that were missed during a break.
struct ReportSink<T> {
    report: T,
    known: Mutex<KnownNames>,
    metadata_only: bool,
}

#[derive(Debug, Default)]
struct KnownNames {
    there: BTreeSet<NamespacedName>,
    /// What has been seen of a list that is being read.
    listing: Option<BTreeSet<NamespacedName>>,
    /// Whether a list was complete since the kind was last not served.
    synced: bool,
}

impl<T> ReportSink<T> {
    fn known(&self) -> MutexGuard<'_, KnownNames> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KnownNames {
    fn saw(&mut self, place: NamespacedName) {
        self.listing.as_mut().unwrap_or(&mut self.there).insert(place);
    }

    /// The list is complete: what was there before and is not in it is gone.
    fn complete(&mut self) -> Vec<NamespacedName> {
        let listed = self.listing.take().unwrap_or_default();
        let before = std::mem::replace(&mut self.there, listed);
        self.synced = true;
        before.difference(&self.there).cloned().collect()
    }
}

impl<T: Fn(OwnEvent) + Send + Sync> Sink for ReportSink<T> {
    fn take(&self, head: &Head, text: Option<&RawValue>) -> bool {
        let place = head.place();
        let Some(text) = text else {
            self.known().there.remove(&place);
            (self.report)(OwnEvent::Gone(place));
            return true;
        };
        match OwnObject::new(text) {
            Ok(object) => {
                self.known().saw(place);
                (self.report)(OwnEvent::There(Box::new(object)));
            }
            // The server itself gave it this metadata; nothing can be done for it, and it is not gone either.
            Err(error) => {
                tracing::warn!(namespace = ?place.0, name = place.1, "the metadata of an object cannot be read: {error}");
                self.known().saw(place);
            }
        }
        true
    }

    fn is_metadata(&self) -> bool {
        self.metadata_only
    }

    fn interest(&self, _name: &str) -> Option<Arc<Interest>> {
        None
    }

    fn report(&self, report: WatchReport) -> SinkReply {
        match report {
            WatchReport::Looking => self.known().listing = Some(BTreeSet::new()),
            WatchReport::Snapshot { .. } => {
                let gone = self.known().complete();
                for place in gone {
                    (self.report)(OwnEvent::Gone(place));
                }
                (self.report)(OwnEvent::Synced);
            }
            WatchReport::Live => (self.report)(OwnEvent::Synced),
            WatchReport::Read { .. }
            | WatchReport::Changed(_)
            | WatchReport::Passed { .. }
            | WatchReport::Gone { .. }
            | WatchReport::Reached(_) => {}
        }
        SinkReply::Noted
    }

    fn failed(&self, failure: WatchFailure) {
        (self.report)(OwnEvent::Trouble(match failure {
            WatchFailure::Lost { message, .. } => OwnTrouble::Lost(message),
            WatchFailure::Forbidden(error) => OwnTrouble::Forbidden(error.to_string()),
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(name: &str) -> NamespacedName {
        (Some("shop".to_owned()), name.to_owned())
    }

    #[test]
    fn what_a_new_list_does_not_name_is_gone() {
        let mut known = KnownNames { listing: Some(BTreeSet::new()), ..KnownNames::default() };
        known.saw(place("a"));
        known.saw(place("b"));
        assert_eq!(known.complete(), []);
        known.saw(place("c"));
        known.listing = Some(BTreeSet::new());
        known.saw(place("b"));
        assert_eq!(known.complete(), [place("a"), place("c")]);
    }
}
