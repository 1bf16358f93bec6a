//! The tasks behind the answers: one per watch, one per kind or version asked for, and one that tidies up. Rights have
//! one per session ([`rights`](super::rights)).
//!
//! Each waits at its session's gate, does its requests, and reports. None of them keeps the hub alive.

use super::{
    Inner,
    objects::{Scope, WatchKey, WatchNote, WatchSink},
    session::{ActorClient, SessionCluster, SessionGate},
    state::WatchId,
};
use crate::{
    call::{self, ApiUrl, Form, Resource},
    discovery::{
        Discovery,
        index::{KindIndex, WordMeaning},
    },
    transport::Reachability,
    watch::{WatchTarget, follow::Follower},
};
use linchpin_engine::contract::{Question, Seen, Served, Want, Why};
use linchpin_words::{Gvk, KindWord, Reason, text};
use serde_json::Value;
use std::{
    collections::BTreeSet,
    sync::{Arc, Weak},
    time::{Duration, Instant},
};
use tokio::{sync::watch, time};

/// How often the hub is tidied and wide watches are weighed.
const TIDY: Duration = Duration::from_secs(30);
/// How often a version is asked for again.
const VERSION_AGAIN: Duration = Duration::from_hours(1);
/// How soon and how late what is missing, or a question that failed, is asked for again.
const SOONEST: Duration = Duration::from_secs(1);
pub(super) const LATEST: Duration = Duration::from_secs(30);

/// The task of one watch.
pub(super) struct Watcher {
    pub(super) inner: Weak<Inner>,
    pub(super) id: WatchId,
    pub(super) key: WatchKey,
    pub(super) scope: Arc<Scope>,
    pub(super) gate: watch::Receiver<SessionGate>,
    pub(super) restart: watch::Receiver<u64>,
}

impl Watcher {
    pub(super) async fn run(mut self) {
        let mut missed = 0u32;
        loop {
            let open = self.gate.borrow_and_update().clone();
            let reach = match open {
                SessionGate::Open(reach) => reach,
                SessionGate::Closed { why, .. } => {
                    self.note(if why.is_passing() { WatchNote::Dim(why) } else { WatchNote::Blind(why) });
                    if self.gate.changed().await.is_err() {
                        return;
                    }
                    continue;
                }
            };
            let gate = self.gate.clone();
            tokio::select! {
                changed = changed(gate) => if !changed { return },
                () = self.look(&reach, &mut missed) => {}
            }
        }
    }

    /// Watches while the kind is served; returns when it is not.
    async fn look(&mut self, reach: &Arc<ActorClient>, missed: &mut u32) {
        let mut newest = reach.place.discovery.subscribe();
        let resource = loop {
            let index = newest.borrow_and_update().clone();
            match index.as_deref().map(|index| find(index, &self.key)) {
                Some(Ok(resource)) => break resource,
                Some(Err(why)) => self.note(WatchNote::Blind(why)),
                None => self.note(WatchNote::Dim(not_discovered(&reach.place))),
            }
            // Another cluster's silence is news too, and comes without a change.
            let news = time::timeout(SOONEST, newest.changed()).await;
            if matches!(news, Ok(Err(_))) {
                return;
            }
        };
        let Some(counters) = self.inner.upgrade().map(|inner| Arc::clone(&inner.counters)) else { return };
        let family = &self.key.family;
        let namespace = family.namespace.clone().filter(|_| resource.namespaced);
        let follower = Follower {
            client: reach.watches.clone(),
            clock: Arc::clone(&reach.place.clock),
            features: Arc::clone(&reach.place.features),
            counters,
            watched: WatchTarget { resource: resource.clone(), namespace, select: self.key.select.clone() },
            asker: family.asker().to_owned(),
            seed: self.id,
        };
        let sink = WatchSink {
            inner: self.inner.clone(),
            id: self.id,
            scope: Arc::clone(&self.scope),
            resource,
            key: self.key.clone(),
            who: reach.who.clone(),
            remote: reach.place.remote.clone(),
        };
        let began = Instant::now();
        follower.run(&sink, &mut self.restart).await;
        // The kind is gone, or not there yet although it is listed: wait for news, but not for ever.
        if began.elapsed() > LATEST {
            *missed = 0;
        }
        *missed = missed.saturating_add(1);
        self.note(WatchNote::Blind(not_served(&family.kind, &[])));
        reach.place.discovery.invalidate(&family.kind.group);
        let _ = time::timeout(backoff(*missed), newest.changed()).await;
    }

    fn note(&self, note: WatchNote) {
        if let Some(inner) = self.inner.upgrade() {
            inner.noted(self.id, note);
        }
    }
}

/// Why it is not known what is served: another cluster that does not answer is said to be unreachable.
fn not_discovered(place: &SessionCluster) -> Why {
    let failing = match place.transport.reach().now() {
        Reachability::Failing { reason, .. } => Some(reason),
        Reachability::Unknown | Reachability::Answering => place.discovery.trouble(),
    };
    match (&place.remote, failing) {
        (Some(name), Some(reason)) => {
            Why::new(Reason::ClusterUnreachable, text::line(&format!("{name} does not answer: {reason}")))
        }
        _ => Why::new(Reason::Unsynced, "the served kinds are not known yet"),
    }
}

async fn changed(mut gate: watch::Receiver<SessionGate>) -> bool {
    gate.changed().await.is_ok()
}

fn find(index: &KindIndex, key: &WatchKey) -> Result<Resource, Why> {
    let kind = &key.family.kind;
    let Some(resource) = index.resource(kind) else {
        return Err(not_served(kind, &index.versions(&kind.group, &kind.kind)));
    };
    if resource.namespaced && key.family.namespace.is_none() {
        let message = format!("{} lives in namespaces, and none is given", kind.kind);
        return Err(Why::new(Reason::SpecInvalid, message));
    }
    Ok(resource)
}

fn not_served(kind: &Gvk, versions: &[&str]) -> Why {
    let mut message = format!("the API server does not serve {} {} now", kind.api_version(), kind.kind);
    if !versions.is_empty() {
        message = format!("{message}, only at version {}", versions.join(", "));
    }
    Why::new(Reason::KindNotServed, text::line(&message))
}

pub(super) fn backoff(failures: u32) -> Duration {
    SOONEST.saturating_mul(1 << failures.saturating_sub(1).min(5)).min(LATEST)
}

/// Answers one question about a kind or a version, as long as it is asked. A change of `again` asks anew at once.
pub(super) async fn ask(
    inner: Weak<Inner>,
    want: Want,
    mut gate: watch::Receiver<SessionGate>,
    mut again: watch::Receiver<u64>,
) {
    let mut failures = 0;
    loop {
        again.borrow_and_update();
        let open = gate.borrow_and_update().clone();
        let here = match (&open, want.question()) {
            // Which kinds there are needs no right of the user's: any session will do.
            (SessionGate::Closed { .. }, Question::Kind { via, .. }) if via.cluster.is_here() => {
                inner.upgrade().map(|inner| Arc::clone(&inner.here))
            }
            (SessionGate::Open(reach), _) => Some(Arc::clone(&reach.place)),
            _ => None,
        };
        let mut newest = here.as_ref().map(|place| place.discovery.subscribe());
        let (seen, pause) = match (want.question(), &here, &open) {
            (Question::Kind { word, .. }, Some(place), _) => {
                let index = newest.as_mut().and_then(|newest| newest.borrow_and_update().clone());
                match index {
                    None => (Seen::Unknown(not_discovered(place)), SOONEST),
                    Some(index) => (served(&index, word, &place.discovery).await, VERSION_AGAIN),
                }
            }
            (Question::Version { .. }, _, SessionGate::Open(reach)) => version(reach, failures).await,
            (_, _, SessionGate::Closed { why, .. }) => (Seen::Unknown(why.clone()), VERSION_AGAIN),
            (_, _, SessionGate::Open(_)) => return,
        };
        failures = if pause < LATEST + LATEST { failures + 1 } else { 0 };
        let Some(strong) = inner.upgrade() else { return };
        strong.answered(&want, seen);
        drop(strong);
        let news = async {
            match &mut newest {
                // A server with other kinds may well be another version.
                Some(newest) => drop(newest.changed().await),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            changed = gate.changed() => if changed.is_err() { return },
            changed = again.changed() => if changed.is_err() { return },
            () = news => {}
            () = time::sleep(pause) => {}
        }
    }
}

fn unknown(reason: Reason, message: &str) -> Seen {
    Seen::Unknown(Why::new(reason, text::line(message)))
}

async fn served(index: &KindIndex, word: &KindWord, discovery: &Discovery) -> Seen {
    Seen::Kind(Arc::new(match index.meaning(word) {
        WordMeaning::None => Served::No,
        WordMeaning::Several(kinds) => Served::Several(kinds),
        WordMeaning::One(resource) => {
            let reports_status = discovery.reports_status(&resource).await;
            let Resource { kind, plural, namespaced } = resource;
            Served::Yes { kind, plural, namespaced, reports_status }
        }
    }))
}

async fn version(reach: &ActorClient, failures: u32) -> (Seen, Duration) {
    let asked = async {
        let answer = call::call(&reach.writes, call::get(&ApiUrl::new("/version"), Form::Full)?).await?;
        answer.read::<Value>()
    };
    match asked.await {
        Ok(version) => (Seen::Version(Arc::new(version)), VERSION_AGAIN),
        Err(error) => (failed(&error, reach), backoff(failures + 1)),
    }
}

pub(super) fn failed(error: &call::CallError, reach: &ActorClient) -> Seen {
    match (error.is_code(403), &reach.place.remote) {
        (true, _) => unknown(Reason::Forbidden, &format!("{} may not ask this: {error}", reach.who)),
        (false, Some(name)) => {
            unknown(Reason::ClusterUnreachable, &format!("{name} does not answer: {error}"))
        }
        (false, None) => unknown(Reason::Disconnected, &error.to_string()),
    }
}

/// Drops idle sessions and weighs wide watches, as long as there is a hub.
pub(super) async fn keep_tidy(inner: Weak<Inner>) {
    let mut ticks = time::interval(TIDY);
    ticks.tick().await;
    loop {
        ticks.tick().await;
        let Some(inner) = inner.upgrade() else { return };
        let retired = inner.state().retire(Instant::now());
        for reader in retired {
            inner.subscribe(reader, BTreeSet::new());
        }
        inner.weigh(TIDY);
        inner.state().feed_one_each(&inner);
    }
}
