//! Answers questions about sources, beside the hub: manifests that are fetched from servers that users name.
//!
//! `schedule.rs` decides what is fetched when; here it is carried out, each fetch as a task that ends by its time limit.
//! Where requests may go is the administrator's lists and the rule of probes (`linchpin-source`). Used by the controller as
//! the hub is: subscribe, read, refresh.

mod schedule;

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use linchpin_cluster::hub::{AnswerListener, SubscriberId};
use linchpin_engine::contract::{Question, Seen, Want};
use linchpin_source::{http::Reach, request::SourceReach};
use linchpin_words::egress::Egress;
use tokio::{
    sync::Notify,
    task::{AbortHandle, JoinSet},
};

use self::schedule::{FetchEnd, FetchJob, SourceId, SourceSchedule};
use crate::{answers::Answerer, settings::SourceSettings};

/// The sources of one term. When it is dropped, what is under way ends.
pub struct Sources {
    inner: Arc<Inner>,
    keeper: AbortHandle,
}

struct Inner {
    schedule: Mutex<SourceSchedule>,
    /// Something is due earlier than it was, or has ended.
    changed: Notify,
    reaches: SourceReach,
    listener: AnswerListener,
    begun: Instant,
}

impl Sources {
    /// Fetches as the settings allow, to addresses that `egress` allows, and notifies `listener` whose answers have
    /// changed.
    pub fn new(settings: &SourceSettings, egress: &Egress, listener: AnswerListener) -> Self {
        let egress = Arc::new(egress.clone());
        let reach = |hosts| Reach { hosts: Arc::new(hosts), egress: Arc::clone(&egress) };
        let reaches =
            SourceReach { named: reach(settings.hosts.clone()), flux: reach(settings.flux_hosts.clone()) };
        let inner = Arc::new(Inner {
            schedule: Mutex::default(),
            changed: Notify::new(),
            reaches,
            listener,
            begun: Instant::now(),
        });
        let keeper = tokio::spawn(keep_time(Arc::clone(&inner))).abort_handle();
        Self { inner, keeper }
    }
}

impl Answerer for Sources {
    fn answers(&self, question: &Question) -> bool {
        matches!(question, Question::Artifact { .. })
    }

    fn subscribe(&self, subscriber: SubscriberId, wants: BTreeSet<Want>) {
        let now = self.inner.now();
        self.inner.lock().subscribe(subscriber, wants, now);
        self.inner.changed.notify_one();
    }

    fn read(&self, want: &Want) -> Seen {
        self.inner.lock().read(want)
    }

    fn refresh(&self, want: &Want) {
        let now = self.inner.now();
        self.inner.lock().refresh(want, now);
        self.inner.changed.notify_one();
    }
}

impl Drop for Sources {
    fn drop(&mut self) {
        self.keeper.abort();
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, SourceSchedule> {
        self.schedule.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Duration {
        self.begun.elapsed()
    }

    fn ended(&self, id: SourceId, ended: FetchEnd) {
        let woken = self.lock().ended(id, ended, self.now(), crate::controller::now());
        self.changed.notify_one();
        if !woken.is_empty() {
            let woken: Vec<SubscriberId> = woken.into_iter().collect();
            (self.listener)(&woken);
        }
    }
}

/// Starts what is due, until it is ended; what it started ends with it.
async fn keep_time(inner: Arc<Inner>) {
    let mut fetches = JoinSet::new();
    loop {
        // What has ended is forgotten.
        while fetches.try_join_next().is_some() {}
        let now = inner.now();
        let job = inner.lock().next(now);
        if let Some(job) = job {
            fetches.spawn(fetch(Arc::clone(&inner), job));
            continue;
        }
        // What is due and may not start yet starts when something ends.
        let due = inner.lock().wake_at().map(|due| due.saturating_sub(now)).filter(|wait| !wait.is_zero());
        match due {
            None => inner.changed.notified().await,
            Some(wait) => {
                let _ = tokio::time::timeout(wait, inner.changed.notified()).await;
            }
        }
    }
}

async fn fetch(inner: Arc<Inner>, job: FetchJob) {
    let mut slot = FetchSlot { inner, id: job.id, ended: None };
    let outcome = slot.inner.reaches.fetch(&job.source, job.timeout, job.known.as_ref()).await;
    slot.ended = Some(outcome);
}

/// A fetch under way: its place is given back however it ends.
struct FetchSlot {
    inner: Arc<Inner>,
    id: SourceId,
    ended: FetchEnd,
}

impl Drop for FetchSlot {
    fn drop(&mut self) {
        self.inner.ended(self.id, self.ended.take());
    }
}

#[cfg(test)]
mod tests;
