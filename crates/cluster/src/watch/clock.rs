//! Whether the store has gone back in time.
//!
//! A watch from a version that the store has not reached (etcd restored from a backup) is accepted and stays silent
//! for ever. Versions of one kind only grow, so a fresh, consistent read that answers with a smaller version than one
//! already seen proves it: then everything known of that cluster is forgotten and read again ([`VersionClock::subscribe`]).
//! Kinds are compared with themselves only, because aggregated servers and split stores count for themselves.

use crate::call::Resource;
use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::sync::watch;

/// How often a watch that never begins anew is compared with a fresh read.
const CHECK: Duration = Duration::from_mins(10);

/// The versions seen in one cluster.
#[derive(Debug)]
pub(crate) struct VersionClock {
    epoch: watch::Sender<u64>,
    kinds: Mutex<BTreeMap<(String, String), Arc<KindClock>>>,
}

/// The versions seen of one kind.
#[derive(Debug)]
pub(crate) struct KindClock {
    highest: AtomicU64,
    checked: Mutex<Instant>,
}

/// What was known when a fresh read began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClockMark {
    epoch: u64,
    highest: u64,
}

impl Default for VersionClock {
    fn default() -> Self {
        Self { epoch: watch::Sender::new(0), kinds: Mutex::default() }
    }
}

impl VersionClock {
    /// The clock of one kind.
    pub(crate) fn kind(&self, resource: &Resource) -> Arc<KindClock> {
        let mut kinds = self.kinds.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (resource.kind.group.clone(), resource.plural.clone());
        Arc::clone(kinds.entry(key).or_insert_with(|| {
            Arc::new(KindClock { highest: AtomicU64::new(0), checked: Mutex::new(Instant::now()) })
        }))
    }

    /// Changes whenever the store went back.
    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.epoch.subscribe()
    }

    /// Notes what is known before a fresh read.
    pub(crate) fn mark(&self, kind: &KindClock) -> ClockMark {
        ClockMark { epoch: *self.epoch.borrow(), highest: kind.highest.load(Ordering::Acquire) }
    }

    /// Judges a fresh read by the mark made before it: false means that the store went back, and everybody is notified.
    pub(crate) fn confirm(&self, kind: &KindClock, mark: ClockMark, version: u64) -> bool {
        *kind.checked.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        if version >= mark.highest || *self.epoch.borrow() != mark.epoch {
            kind.saw(version);
            return true;
        }
        for other in self.kinds.lock().unwrap_or_else(PoisonError::into_inner).values() {
            other.highest.store(0, Ordering::Release);
        }
        self.epoch.send_modify(|epoch| *epoch += 1);
        false
    }
}

impl KindClock {
    /// Notes a version.
    pub(crate) fn saw(&self, version: u64) {
        self.highest.fetch_max(version, Ordering::AcqRel);
    }

    /// Whether it is time for a fresh read; the first to ask is the one to do it.
    pub(crate) fn claim_check(&self, now: Instant) -> bool {
        let mut checked = self.checked.lock().unwrap_or_else(PoisonError::into_inner);
        let due = now.saturating_duration_since(*checked) >= CHECK;
        if due {
            *checked = now;
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linchpin_words::Gvk;

    fn resource(kind: &str) -> Resource {
        Resource::new(Gvk::new("", "v1", kind), kind.to_lowercase(), true)
    }

    #[test]
    fn a_smaller_version_than_one_already_seen_rebuilds_everything() {
        let clock = VersionClock::default();
        let (pods, maps) = (clock.kind(&resource("Pod")), clock.kind(&resource("ConfigMap")));
        let epoch = clock.subscribe();
        pods.saw(500);
        maps.saw(700);
        let mark = clock.mark(&pods);
        assert!(clock.confirm(&pods, mark, 500));
        assert!(!epoch.has_changed().unwrap());

        assert!(!clock.confirm(&pods, mark, 300));
        assert!(epoch.has_changed().unwrap());
        let fresh = clock.mark(&maps);
        assert!(clock.confirm(&maps, fresh, 310), "the other kinds start anew as well");
    }

    #[test]
    fn what_happened_after_the_mark_proves_nothing() {
        let clock = VersionClock::default();
        let pods = clock.kind(&resource("Pod"));
        let mark = clock.mark(&pods);
        pods.saw(900);
        assert!(clock.confirm(&pods, mark, 800), "the read may have begun before that event");
    }

    #[test]
    fn one_follower_of_a_kind_checks_for_all() {
        let clock = VersionClock::default();
        let pods = clock.kind(&resource("Pod"));
        let now = Instant::now();
        assert!(!pods.claim_check(now));
        assert!(pods.claim_check(now + CHECK + Duration::from_secs(1)));
        assert!(!pods.claim_check(now + CHECK + Duration::from_secs(2)));
    }
}
