//! Answers questions about the network, beside the hub, which answers those about API servers.
//!
//! `schedule.rs` decides what is probed when; here it is carried out: one thread keeps the time, and each probe has a thread
//! for as long as it lasts, a few at once and none while nothing is asked. Probes block and end by their deadline
//! (`linchpin-probe`), and share nothing with the runtimes of the controller. Used by the controller as the hub is:
//! subscribe, read, refresh.

mod schedule;

use std::{
    collections::BTreeSet,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use linchpin_cluster::hub::{AnswerListener, SubscriberId};
use linchpin_engine::contract::{Question, Seen, Want};
use linchpin_probe::{Miss, NameResolver, Rules};
use linchpin_words::{Reason, probe::Probe};
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{
        family::Family,
        histogram::{Histogram, exponential_buckets},
    },
    registry::Registry,
};

use self::schedule::{ProbeEnd, ProbeId, ProbeJob, ProbeSchedule};
use crate::{answers::Answerer, settings::ProbeSettings};

/// Enough for TLS, little enough for many.
const STACK: usize = 512 << 10;

/// How long probes take, by kind and outcome. Clones count together.
#[derive(Clone)]
pub struct ProbeTimes(Family<Labels, Histogram, fn() -> Histogram>);

impl ProbeTimes {
    /// Registers what is counted.
    pub fn register(registry: &mut Registry) -> Self {
        let times = Family::new_with_constructor(buckets as fn() -> Histogram);
        let help = "Time a probe takes, by its kind and how it ends";
        registry.register("linchpin_probe_seconds", help, times.clone());
        Self(times)
    }

    fn observe(&self, probe: &Probe, outcome: &Result<(), Miss>, taken: Duration) {
        let outcome = outcome.as_ref().map_or_else(Miss::reason, |()| Reason::Met).as_str();
        self.0.get_or_create(&Labels { kind: probe.kind(), outcome }).observe(taken.as_secs_f64());
    }
}

/// From a millisecond to what a probe may take.
fn buckets() -> Histogram {
    Histogram::new(exponential_buckets(0.001, 2.0, 12))
}

/// The probes of one term. When it is dropped, no further one begins.
pub struct Probes {
    inner: Arc<Inner>,
}

struct Inner {
    state: Mutex<ProbeState>,
    /// Something is due earlier than it was, or has ended.
    changed: Condvar,
    rules: Rules,
    names: NameResolver,
    listener: AnswerListener,
    begun: Instant,
    times: ProbeTimes,
}

#[derive(Default)]
struct ProbeState {
    schedule: ProbeSchedule,
    /// Whether the thread that keeps the time runs.
    kept: bool,
    closed: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    kind: &'static str,
    outcome: &'static str,
}

impl Probes {
    /// A pool that follows the settings and notifies `listener` whose answers have changed.
    pub fn new(settings: &ProbeSettings, times: ProbeTimes, listener: AnswerListener) -> Self {
        let rules = Rules { egress: Some(settings.egress.clone()), methods: Some(settings.methods.clone()) };
        let inner = Inner {
            state: Mutex::default(),
            changed: Condvar::new(),
            rules,
            names: NameResolver::default(),
            listener,
            begun: Instant::now(),
            times,
        };
        Self { inner: Arc::new(inner) }
    }
}

impl Answerer for Probes {
    fn answers(&self, question: &Question) -> bool {
        matches!(question, Question::Probe { .. })
    }

    fn subscribe(&self, subscriber: SubscriberId, wants: BTreeSet<Want>) {
        let mut state = self.inner.lock();
        let now = self.inner.now();
        state.schedule.subscribe(subscriber, wants, now);
        if !state.kept && state.schedule.len() > 0 {
            let inner = Arc::clone(&self.inner);
            // Without it nothing would be probed: the next subscription tries again.
            let started = thread::Builder::new().name("probes".to_owned()).spawn(move || keep_time(&inner));
            match started {
                Ok(_) => state.kept = true,
                Err(error) => tracing::error!(%error, "no thread could be started for probes"),
            }
        }
        drop(state);
        self.inner.changed.notify_all();
    }

    fn read(&self, want: &Want) -> Seen {
        self.inner.lock().schedule.read(want)
    }

    fn refresh(&self, want: &Want) {
        let now = self.inner.now();
        self.inner.lock().schedule.refresh(want, now);
        self.inner.changed.notify_all();
    }
}

impl Drop for Probes {
    fn drop(&mut self) {
        self.inner.lock().closed = true;
        self.inner.changed.notify_all();
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, ProbeState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Duration {
        self.begun.elapsed()
    }

    fn ended(&self, id: ProbeId, ended: ProbeEnd) {
        let woken = self.lock().schedule.ended(id, ended, self.now());
        self.changed.notify_all();
        if !woken.is_empty() {
            let woken: Vec<SubscriberId> = woken.into_iter().collect();
            (self.listener)(&woken);
        }
    }
}

/// Starts what is due, until the pool is dropped.
fn keep_time(inner: &Arc<Inner>) {
    let mut state = inner.lock();
    while !state.closed {
        let now = inner.now();
        if let Some(job) = state.schedule.next(now) {
            drop(state);
            start(inner, job);
            state = inner.lock();
            continue;
        }
        // What is due and may not start yet starts when something ends.
        let wait = state.schedule.wake_at().map(|due| due.saturating_sub(now)).filter(|wait| !wait.is_zero());
        state = match wait {
            None => inner.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            Some(wait) => {
                let waited = inner.changed.wait_timeout(state, wait);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
        };
    }
}

/// Carries a probe out on a thread of its own.
fn start(inner: &Arc<Inner>, job: ProbeJob) {
    let ProbeJob { id, probe } = job;
    let mut slot = ProbeSlot { inner: Arc::clone(inner), id, ended: None };
    let work = move || {
        let begun = Instant::now();
        let deadline = begun + linchpin_probe::LONGEST;
        let outcome = linchpin_probe::run(&probe, &slot.inner.rules, &slot.inner.names, deadline);
        slot.inner.times.observe(&probe, &outcome, begun.elapsed());
        slot.ended = Some(outcome);
    };
    if let Err(error) = thread::Builder::new().name("probe".to_owned()).stack_size(STACK).spawn(work) {
        tracing::warn!(%error, "no thread could be started for a probe; it is tried again");
    }
}

/// A probe under way: its place is given back however it ends.
struct ProbeSlot {
    inner: Arc<Inner>,
    id: ProbeId,
    ended: ProbeEnd,
}

impl Drop for ProbeSlot {
    fn drop(&mut self) {
        self.inner.ended(self.id, self.ended.take());
    }
}

#[cfg(test)]
mod tests;
