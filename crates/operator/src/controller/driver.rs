//! The driver: starts effects, a bounded number at a time, and hands their outcomes back. It decides nothing.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use linchpin_cluster::{apply::Executor, events::Regarding, hub::SubscriberId};
use linchpin_engine::contract::{Effect, Outcome, Verb};
use linchpin_words::Timestamp;
use tokio::sync::mpsc;

use super::{Message, now, queue::FairQueue};

/// How long after an effect came back the next one, which may depend on it, is waited for before anything else is
/// done: the event that it causes arrives at about the time of its answer, before or after it.
const LULL: Duration = Duration::from_millis(5);
/// How long an effect under way keeps others waiting: a write is answered long before, a command may take minutes.
const ATTENTION: Duration = Duration::from_millis(100);

/// Effects that wait for their turn, and those under way.
pub(crate) struct Driver {
    executor: Executor,
    back: mpsc::UnboundedSender<Message>,
    waiting: FairQueue<Job>,
    under_way: usize,
    limit: usize,
    /// When an effect was last started or came back.
    stirred: Option<Instant>,
}

struct Job {
    id: SubscriberId,
    effect: Effect,
    about: Arc<Regarding>,
}

impl Driver {
    pub(crate) fn new(executor: Executor, back: mpsc::UnboundedSender<Message>, limit: usize) -> Self {
        Self { executor, back, waiting: FairQueue::default(), under_way: 0, limit, stirred: None }
    }

    /// Queues an effect and starts what may be started.
    pub(crate) fn submit(
        &mut self,
        namespace: &str,
        priority: i32,
        id: SubscriberId,
        effect: Effect,
        about: Arc<Regarding>,
    ) {
        self.waiting.push(namespace, priority, Job { id, effect, about });
        self.start_waiting();
    }

    /// To be called when an outcome came back.
    pub(crate) fn one_came_back(&mut self) {
        self.under_way = self.under_way.saturating_sub(1);
        self.stirred = Some(Instant::now());
        self.start_waiting();
    }

    /// Whether effects wait for their turn.
    pub(crate) fn has_waiting(&self) -> bool {
        self.waiting.len() > 0
    }

    /// Whether effects wait for their turn, are under way or have just come back: then everything else yields.
    pub(crate) fn is_busy(&self, now: Instant) -> bool {
        self.has_waiting() || self.quiet_from().is_some_and(|quiet| now < quiet)
    }

    /// From when on nothing has to yield any more, unless more effects come until then.
    pub(crate) fn quiet_from(&self) -> Option<Instant> {
        let pause = if self.under_way > 0 { ATTENTION } else { LULL };
        self.stirred.map(|stirred| stirred + pause)
    }

    fn start_waiting(&mut self) {
        while self.under_way < self.limit {
            let Some(job) = self.waiting.pop() else { return };
            self.under_way += 1;
            self.stirred = Some(Instant::now());
            let (executor, back) = (self.executor.clone(), self.back.clone());
            tokio::spawn(async move {
                let result = executor.execute(&job.effect, &job.about).await;
                let once = matches!(job.effect.verb, Verb::Exec(_) | Verb::Patch { once: true, .. });
                let outcome = Outcome { ticket: job.effect.ticket, at: now(), result };
                // The controller is gone only when the term is over: then nobody needs the outcome.
                let _ = back.send(Message::Outcome { id: job.id, outcome: Box::new(outcome), once });
            });
        }
    }
}

/// The time as the engine counts it.
pub(crate) fn wall_clock() -> Timestamp {
    Timestamp::from(jiff::Timestamp::now())
}
