//! Who asks what, of a schedule: each question once, with those who ask it. Pure.

use std::collections::{BTreeMap, BTreeSet};

use linchpin_cluster::hub::SubscriberId;
use linchpin_engine::contract::{Actor, Want};

/// Subscribers and their questions.
#[derive(Default)]
pub(crate) struct Subscriptions {
    wants: BTreeMap<SubscriberId, BTreeSet<Want>>,
    readers: BTreeMap<Want, BTreeSet<SubscriberId>>,
}

/// How questions changed.
pub(crate) struct SubscriptionChange {
    /// Those that nobody asked before.
    pub(crate) new: Vec<Want>,
    /// Those that nobody asks any more.
    pub(crate) gone: Vec<Want>,
}

impl Subscriptions {
    /// Replaces all that a subscriber asks for.
    pub(crate) fn replace(&mut self, subscriber: SubscriberId, wants: BTreeSet<Want>) -> SubscriptionChange {
        let old = self.wants.remove(&subscriber).unwrap_or_default();
        let mut change = SubscriptionChange { new: Vec::new(), gone: Vec::new() };
        for want in wants.difference(&old) {
            let readers = self.readers.entry(want.clone()).or_default();
            if readers.is_empty() {
                change.new.push(want.clone());
            }
            readers.insert(subscriber);
        }
        for want in old.difference(&wants) {
            let Some(readers) = self.readers.get_mut(want) else { continue };
            readers.remove(&subscriber);
            if readers.is_empty() {
                self.readers.remove(want);
                change.gone.push(want.clone());
            }
        }
        if !wants.is_empty() {
            self.wants.insert(subscriber, wants);
        }
        change
    }

    /// What a subscriber asks.
    pub(crate) fn of(&self, subscriber: SubscriberId) -> impl Iterator<Item = &Want> {
        self.wants.get(&subscriber).into_iter().flatten()
    }

    /// All questions.
    pub(crate) fn wants(&self) -> impl Iterator<Item = &Want> {
        self.readers.keys()
    }

    /// Whether nobody asks anything.
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.wants.is_empty() && self.readers.is_empty()
    }

    /// Whether somebody asks it.
    pub(crate) fn asks(&self, want: &Want) -> bool {
        self.readers.contains_key(want)
    }

    /// Who asks one of these.
    pub(crate) fn readers<'a>(&self, wants: impl IntoIterator<Item = &'a Want>) -> BTreeSet<SubscriberId> {
        wants.into_iter().filter_map(|want| self.readers.get(want)).flatten().copied().collect()
    }
}

/// The namespace in whose share a question is answered; the operator's own have an empty one.
pub(crate) fn namespace_of(want: &Want) -> &str {
    match &want.via().actor {
        Actor::ServiceAccount { namespace, .. } => namespace,
        Actor::Operator => "",
    }
}
