//! The hub: turns questions into the fewest watches and keeps the answers.
//!
//! A user of the hub subscribes with a set of [`Want`]s and reads a [`World`]; when an answer changes,
//! exactly those who asked for it are named to the listener. The hub judges nothing: it says what was observed, how
//! recent that is, and why something could not be observed.
//!
//! * **Fewest watches.** Equal questions share an answer; questions about one object as one identity share a watch;
//!   many names of one kind in one namespace become one wide watch where the identity may do that (`hub/promotion.rs`).
//! * **As the right identity.** Each question goes through a session: a cluster and an actor, open only while the
//!   ServiceAccount lives (or the remote credential can be read by it).
//! * **Small.** Objects are projected on arrival to what their readers read together, and what several identities see
//!   alike is kept once. Each namespace has a budget of watches, objects, bytes and questions.
//! * **Honest.** What cannot be seen is `Seen::Unknown` with a reason, never an absence. A lost connection leaves
//!   the last view with `live: false`; nobody is woken for that, but everybody is when it is back.
//!
//! Everything is one value behind one lock, held for microseconds; requests happen in tasks, one per watch.

pub(crate) mod answers;
mod budget;
mod objects;
mod pool;
mod promotion;
mod rights;
pub(crate) mod session;
mod state;
mod supply;
mod tasks;

use crate::{
    call::Resource,
    identity::Policy,
    remote::{Pools, RemoteSettings},
    transport::Transport,
    watch::Counters,
};
use linchpin_engine::contract::{Failure, Seen, Via, Want, World};
use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::runtime::Handle;

use self::{
    answers::CachedObject,
    pool::ProjectionPool,
    session::{SessionCluster, SessionGate},
    state::{HubState, Reader},
};
pub use self::{budget::NamespaceBudget, session::ActorClient};

/// Who asks: an opaque number that the operator gives out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SubscriberId(pub u64);

/// Is notified whose answers have changed. Called often and must return at once.
pub type AnswerListener = Arc<dyn Fn(&[SubscriberId]) + Send + Sync>;

/// How a hub is set up.
#[derive(Clone, Debug, Default)]
pub struct HubSettings {
    /// Which namespaces' objects may act.
    pub policy: Policy,
    /// Which other clusters may be reached, and how.
    pub remote: RemoteSettings,
    /// Whether many names of one kind may become one wide watch.
    pub never_widen: bool,
    /// What the accounts of one namespace may use together; more waits as `OverBudget`.
    pub budget: NamespaceBudget,
}

/// What the hub holds and has done, for metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HubMetrics {
    /// Subscribers.
    pub subscribers: usize,
    /// Different questions.
    pub questions: usize,
    /// Open watches.
    pub watches: usize,
    /// Those of them that watch a whole namespace.
    pub wide_watches: usize,
    /// Objects kept.
    pub objects: usize,
    /// Sessions: pairs of cluster and actor.
    pub sessions: usize,
    /// Bytes received.
    pub bytes: u64,
    /// Changes received.
    pub events: u64,
    /// First states read.
    pub lists: u64,
    /// Watch requests made.
    pub watch_requests: u64,
    /// Times that a store was found to have gone back in time.
    pub rewinds: u64,
}

/// The hub. Clones are the same hub; when the last one is dropped, all watches end.
#[derive(Clone)]
pub struct Hub {
    inner: Arc<Inner>,
}

struct Inner {
    state: Mutex<HubState>,
    listener: AnswerListener,
    settings: HubSettings,
    here: Arc<SessionCluster>,
    runtime: Handle,
    counters: Arc<Counters>,
    pools: Arc<Pools>,
    /// What several watches see alike.
    copies: ProjectionPool,
    next: AtomicU64,
}

impl Hub {
    /// A hub on the cluster that `transport` reaches. Must be called inside a tokio runtime.
    pub fn new(transport: Transport, settings: HubSettings, listener: AnswerListener) -> Self {
        let counters = Arc::new(Counters::default());
        let here = SessionCluster::here(transport, &counters);
        let hub = Self {
            inner: Arc::new(Inner {
                state: Mutex::default(),
                listener,
                settings,
                here: Arc::new(here),
                runtime: Handle::current(),
                counters,
                pools: Arc::default(),
                copies: ProjectionPool::default(),
                next: AtomicU64::new(1),
            }),
        };
        tokio::spawn(tasks::keep_tidy(Arc::downgrade(&hub.inner)));
        hub
    }

    /// Replaces all that `subscriber` asks for. An empty set unsubscribes.
    pub fn subscribe(&self, subscriber: SubscriberId, wants: BTreeSet<Want>) {
        self.inner.subscribe(Reader::Subscriber(subscriber), wants);
    }

    /// The present answers.
    pub fn read<'a>(&self, wants: impl IntoIterator<Item = &'a Want>) -> World {
        let state = self.inner.state();
        wants.into_iter().map(|want| (want.clone(), state.answer(want))).collect()
    }

    /// Asks for an immediate fresh look: watches are read again, rights and versions asked again.
    pub fn refresh<'a>(&self, wants: impl IntoIterator<Item = &'a Want>) {
        let mut state = self.inner.state();
        for want in wants {
            state.refresh(want);
            state.try_again(&self.inner, want);
        }
    }

    /// What the hub holds and has done.
    pub fn metrics(&self) -> HubMetrics {
        let counters = &self.inner.counters;
        let counted = self.inner.state().count();
        HubMetrics {
            bytes: counters.bytes.load(Ordering::Relaxed),
            events: counters.events.load(Ordering::Relaxed),
            lists: counters.lists.load(Ordering::Relaxed),
            watch_requests: counters.watches.load(Ordering::Relaxed),
            rewinds: counters.rewinds.load(Ordering::Relaxed),
            ..counted
        }
    }

    /// Whether it is known what the cluster serves: the caches that every question needs are there.
    pub fn is_synced(&self) -> bool {
        self.inner.here.discovery.newest().is_some()
    }

    /// The way to act through `via`, waiting for it up to `patience`.
    pub async fn reach(&self, via: &Via, patience: Duration) -> Result<Arc<ActorClient>, Failure> {
        let mut gate = self.inner.gate(via);
        let open = async {
            loop {
                match &*gate.borrow_and_update() {
                    SessionGate::Open(reach) => return Ok(Arc::clone(reach)),
                    SessionGate::Closed { why, .. } if why.is_passing() => {}
                    SessionGate::Closed { why, right } => return Err(session::refusal(why, right.as_ref())),
                }
                if gate.changed().await.is_err() {
                    return Err(Failure::NotStarted);
                }
            }
        };
        tokio::time::timeout(patience, open)
            .await
            .unwrap_or_else(|_| Err(Failure::Transient(format!("{} cannot be reached yet", via.cluster))))
    }

    /// What a watch that is open anyway shows of one object, so that a write need not look first.
    pub(crate) fn cached_object(
        &self,
        via: &Via,
        resource: &Resource,
        namespace: Option<&str>,
        name: &str,
    ) -> Option<CachedObject> {
        self.inner.state().cached_object(via, resource, namespace, name)
    }
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, HubState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Takes note of the answer to a question that is no watch, and notifies whom it concerns. That nothing is known for a
    /// moment does not take the place of what was known.
    fn answered(&self, want: &Want, seen: Seen) {
        let readers = {
            let mut state = self.state();
            let passing = matches!(&seen, Seen::Unknown(why) if why.is_passing());
            if passing && !matches!(state.answer(want), Seen::Unknown(_)) {
                return;
            }
            state.asked(want, seen)
        };
        self.wake(readers);
    }

    /// Notifies everybody whose answers have changed. Never called with the lock held.
    fn wake(&self, readers: BTreeSet<Reader>) {
        if readers.is_empty() {
            return;
        }
        let mut subscribers = Vec::with_capacity(readers.len());
        let mut sessions = Vec::new();
        for reader in readers {
            match reader {
                Reader::Subscriber(subscriber) => subscribers.push(subscriber),
                Reader::Session(number) => sessions.push(number),
            }
        }
        if !sessions.is_empty() {
            self.state().poke(&sessions);
        }
        if !subscribers.is_empty() {
            (self.listener)(&subscribers);
        }
    }
}
