//! Whether all kinds of ours can be seen: read by readiness, written by the followers.
//!
//! Nobody is served whose kind cannot be listed, however well everything else goes. While leading we are therefore
//! ready only once every kind was listed, and no longer when one cannot be watched for a while. On standby there is
//! nothing to see.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use linchpin_cluster::own::OwnEvent;

use crate::health::CheckResult;

/// How long a kind may be out of sight: a connection that broke is back sooner.
const GRACE: Duration = Duration::from_secs(30);

/// A kind and the namespace it is followed in.
type Followed = (String, Option<String>);

/// What is seen of each kind. Clones share it.
#[derive(Clone, Default)]
pub(super) struct KindsSeen(Arc<Mutex<BTreeMap<Followed, KindState>>>);

#[derive(Debug)]
struct KindState {
    /// Whether everything was seen once.
    listed: bool,
    /// Since when it cannot be seen, and why.
    trouble: Option<(Instant, String)>,
}

impl KindsSeen {
    /// A kind will be followed, for as long as what this returns lives.
    pub(super) fn follow(&self, kind: &str, namespace: Option<&str>) -> KindFollower {
        let key = (kind.to_owned(), namespace.map(str::to_owned));
        self.all().insert(key.clone(), KindState { listed: false, trouble: None });
        KindFollower { sight: self.clone(), key }
    }

    /// Whether everything that is followed can be seen.
    pub(super) fn verdict(&self, now: Instant) -> CheckResult {
        let all = self.all();
        let problems: Vec<String> = all
            .iter()
            .filter_map(|((kind, namespace), seen)| {
                let place =
                    namespace.as_ref().map(|name| format!(" in namespace {name}")).unwrap_or_default();
                match (&seen.trouble, seen.listed) {
                    (Some((_, why)), false) => Some(format!("{kind}{place} cannot be listed: {why}")),
                    (None, false) => Some(format!("{kind}{place} is being listed")),
                    (Some((since, why)), true) => {
                        let lasted = now.saturating_duration_since(*since);
                        let seconds = lasted.as_secs();
                        (lasted > GRACE)
                            .then(|| format!("{kind}{place} cannot be watched for {seconds}s: {why}"))
                    }
                    (None, true) => None,
                }
            })
            .collect();
        if problems.is_empty() { Ok("all can be seen".to_owned()) } else { Err(problems.join("; ")) }
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<Followed, KindState>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One kind that is followed.
pub(super) struct KindFollower {
    sight: KindsSeen,
    key: Followed,
}

impl KindFollower {
    /// Takes note of what its follower says.
    pub(super) fn note(&self, event: &OwnEvent, now: Instant) {
        let mut all = self.sight.all();
        let Some(seen) = all.get_mut(&self.key) else { return };
        match event {
            OwnEvent::Synced => *seen = KindState { listed: true, trouble: None },
            OwnEvent::Trouble(why) => {
                let since = seen.trouble.as_ref().map_or(now, |(since, _)| *since);
                seen.trouble = Some((since, why.to_string()));
            }
            OwnEvent::There(_) | OwnEvent::Gone(_) => {}
        }
    }
}

impl Drop for KindFollower {
    fn drop(&mut self) {
        self.sight.all().remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linchpin_cluster::own::OwnTrouble;

    #[test]
    fn a_kind_that_cannot_be_listed_or_watched_is_named_with_the_reason() {
        let sight = KindsSeen::default();
        let now = Instant::now();
        assert!(sight.verdict(now).is_ok(), "on standby there is nothing to see");
        let bundles = sight.follow("AppBundle", None);
        let groups = sight.follow("DependencyGroup", Some("shop"));
        groups.note(&OwnEvent::Synced, now);
        assert_eq!(sight.verdict(now).unwrap_err(), "AppBundle is being listed");
        bundles.note(&OwnEvent::Trouble(OwnTrouble::Forbidden("403 Forbidden".into())), now);
        assert_eq!(sight.verdict(now).unwrap_err(), "AppBundle cannot be listed: 403 Forbidden");
        bundles.note(&OwnEvent::Synced, now);
        assert!(sight.verdict(now).is_ok());

        groups.note(&OwnEvent::Trouble(OwnTrouble::Lost("no answer".into())), now);
        assert!(sight.verdict(now + GRACE).is_ok(), "a broken connection is back soon");
        groups.note(&OwnEvent::Trouble(OwnTrouble::Lost("no answer".into())), now + GRACE);
        let later = now + GRACE + Duration::from_secs(5);
        let expected = "DependencyGroup in namespace shop cannot be watched for 35s: no answer";
        assert_eq!(sight.verdict(later).unwrap_err(), expected);
        drop(groups);
        assert!(sight.verdict(later).is_ok(), "what is not followed any more does not count");
    }
}
