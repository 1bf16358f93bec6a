//! The driver: starts effects, a bounded number at a time, and hands their outcomes back. It decides nothing.

use std::{sync::Arc, time::Duration};

use linchpin_cluster::{
    apply,
    events::{Events, Happening},
    hub::{Hub, SubscriberId},
    lease::Fence,
};
use linchpin_engine::contract::{Done, Effect, Failure, Outcome, Verb};
use linchpin_words::Timestamp;
use tokio::sync::mpsc;

use super::{Message, now, queue::FairQueue};

/// How long a way to the API server may take to open.
const PATIENCE: Duration = Duration::from_secs(10);

/// Effects that wait for their turn, and those under way.
pub(crate) struct Driver {
    hub: Hub,
    events: Events,
    fence: Fence,
    back: mpsc::UnboundedSender<Message>,
    waiting: FairQueue<Job>,
    under_way: usize,
    limit: usize,
}

struct Job {
    id: SubscriberId,
    effect: Effect,
    about: Arc<Happening>,
}

impl Driver {
    pub(crate) fn new(
        hub: Hub,
        events: Events,
        fence: Fence,
        back: mpsc::UnboundedSender<Message>,
        limit: usize,
    ) -> Self {
        Self { hub, events, fence, back, waiting: FairQueue::default(), under_way: 0, limit }
    }

    /// Queues an effect and starts what may be started.
    pub(crate) fn submit(&mut self, namespace: &str, priority: i32, id: SubscriberId, effect: Effect, about: Arc<Happening>) {
        self.waiting.push(namespace, priority, Job { id, effect, about });
        self.start_waiting();
    }

    /// To be called when an outcome came back.
    pub(crate) fn one_came_back(&mut self) {
        self.under_way = self.under_way.saturating_sub(1);
        self.start_waiting();
    }

    /// Whether effects wait for their turn: then everything else yields.
    pub(crate) fn is_busy(&self) -> bool {
        self.waiting.len() > 0
    }

    fn start_waiting(&mut self) {
        while self.under_way < self.limit {
            let Some(job) = self.waiting.pop() else { return };
            self.under_way += 1;
            let (hub, events, fence, back) =
                (self.hub.clone(), self.events.clone(), self.fence.clone(), self.back.clone());
            tokio::spawn(async move {
                let ticket = job.effect.ticket.clone();
                let result = carry_out(&hub, &events, &fence, &job).await;
                let outcome = Outcome { ticket, at: now(), result };
                // The controller is gone only when the term is over: then nobody needs the outcome.
                let _ = back.send(Message::Outcome(job.id, outcome));
            });
        }
    }
}

async fn carry_out(hub: &Hub, events: &Events, fence: &Fence, job: &Job) -> Result<Done, Failure> {
    if fence.check().is_err() {
        return Err(Failure::NotStarted);
    }
    if let Verb::Notice(notice) = &job.effect.verb {
        events.tell(&job.about, &notice.reason, &notice.message, notice.warning);
        return Ok(Done::default());
    }
    let reach = hub.reach(&job.effect.via, PATIENCE).await?;
    if fence.check().is_err() {
        return Err(Failure::NotStarted);
    }
    apply::execute(hub, &reach, &job.effect).await
}

/// The time as the engine counts it.
pub(crate) fn wall_clock() -> Timestamp {
    Timestamp::from(jiff::Timestamp::now())
}
