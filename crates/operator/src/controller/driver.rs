//! The driver: starts effects, a bounded number at a time, and hands their outcomes back. It decides nothing: which is
//! next is said by [`Shares`], and [`Executor`] carries it out.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Instant};

use futures::FutureExt;
use linchpin_cluster::{apply::Executor, events::Regarding, hub::SubscriberId};
use linchpin_engine::contract::{Done, Effect, Failure, Outcome, Ticket, Verb};
use linchpin_words::{
    Timestamp,
    shares::{self, Route, Shares, Slot},
};
use tokio::sync::mpsc;

use super::{
    ControllerMessage, now,
    pace::{EFFECT_KEEPS_BUSY, LULL},
    precedence::{Precedence, Precedences},
};

/// Where an effect goes. Each has its own places: this cluster answers in milliseconds, others when they like, and
/// commands take minutes by design.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum EffectLane {
    /// Into the operator's own cluster.
    Here,
    /// Into another cluster.
    Elsewhere,
    /// A command in a container, in whatever cluster.
    Command,
}

impl shares::Lane for EffectLane {
    /// One namespace may have `limit` effects under way in a lane, all together at most twice as many; of commands,
    /// which cost little while they run, twice that.
    fn places(self, limit: usize) -> usize {
        limit.saturating_mul(if self == Self::Command { 4 } else { 2 })
    }
}

/// The place of an effect under way.
pub(crate) type EffectSlot = Slot<EffectLane>;

/// Effects that wait for their turn, and those under way.
pub(crate) struct Driver {
    executor: Executor,
    back: mpsc::UnboundedSender<ControllerMessage>,
    shares: Shares<EffectLane, Job>,
    precedences: Precedences,
    /// When an effect on this cluster was last started or came back.
    stirred: Option<Instant>,
}

struct Job {
    id: SubscriberId,
    origin: EffectOrigin,
    precedence: Precedence,
    effect: Effect,
    about: Arc<Regarding>,
}

/// What an effect was ordered for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EffectOrigin {
    /// What the subject decided: it takes in what comes back.
    Decision,
    /// What is kept beside its object.
    Record,
}

impl Driver {
    pub(crate) fn new(
        executor: Executor,
        back: mpsc::UnboundedSender<ControllerMessage>,
        limit: usize,
    ) -> Self {
        Self {
            executor,
            back,
            shares: Shares::new(limit),
            precedences: Precedences::default(),
            stirred: None,
        }
    }

    /// Queues an effect and starts what may be started.
    pub(crate) fn submit(
        &mut self,
        namespace: &str,
        priority: i32,
        id: SubscriberId,
        origin: EffectOrigin,
        effect: Effect,
        about: Arc<Regarding>,
    ) {
        let route = route(&effect);
        let precedence = Precedence { object: priority, effect: effect.rank };
        self.shares.push(namespace, route, priority, Job { id, origin, precedence, effect, about });
        self.start_waiting();
    }

    /// To be called when an outcome came back.
    pub(crate) fn one_came_back(&mut self, place: &EffectSlot) {
        self.shares.end(place);
        self.precedences.end(place.namespace());
        self.stir(place);
        self.start_waiting();
    }

    /// Whether effects wait for others that come back soon; not where what is under way hangs.
    pub(crate) fn has_waiting(&self, now: Instant) -> bool {
        self.shares.has_waiting() && self.is_busy(now)
    }

    /// Whether effects on this cluster are under way or have just come back: then everything else yields. One that takes
    /// long keeps nobody waiting, nor do those that wait for it.
    pub(crate) fn is_busy(&self, now: Instant) -> bool {
        self.quiet_from().is_some_and(|quiet| now < quiet)
    }

    /// From when on nothing has to yield any more, unless more effects come until then.
    pub(crate) fn quiet_from(&self) -> Option<Instant> {
        let pause = if self.shares.under_way(EffectLane::Here) > 0 { EFFECT_KEEPS_BUSY } else { LULL };
        self.stirred.map(|stirred| stirred + pause)
    }

    fn stir(&mut self, place: &EffectSlot) {
        if place.route.lane == EffectLane::Here {
            self.stirred = Some(Instant::now());
        }
    }

    fn start_waiting(&mut self) {
        while let Some((place, job)) = self.shares.pop() {
            self.stir(&place);
            let (executor, back) = (self.executor.clone(), self.back.clone());
            let once = matches!(job.effect.verb, Verb::Exec(_) | Verb::Patch { once: true, .. });
            let ordered = place.route.lane == EffectLane::Here;
            let turn = ordered.then(|| self.precedences.start(place.namespace(), job.precedence));
            let (id, origin, ticket) = (job.id, job.origin, job.effect.ticket.clone());
            let errand = StartedEffect { id, origin, ticket, once, place };
            tokio::spawn(async move {
                let (ahead, unanswered) = turn.unzip();
                if let Some(ahead) = ahead {
                    ahead.pass().await;
                }
                let work = async {
                    let result = executor.execute(&job.effect, &job.about).await;
                    drop(unanswered);
                    result
                };
                errand.run(work, &back).await;
            });
        }
    }
}

/// An effect under way.
struct StartedEffect {
    id: SubscriberId,
    origin: EffectOrigin,
    ticket: Ticket,
    /// Whether it must not happen twice.
    once: bool,
    place: EffectSlot,
}

impl StartedEffect {
    /// Carries it out and sends back the outcome. There is one even where that panics: without it the place would never be
    /// free again, and the object would wait for ever.
    async fn run(
        self,
        work: impl Future<Output = Result<Done, Failure>>,
        back: &mpsc::UnboundedSender<ControllerMessage>,
    ) {
        let result = caught(work).await.unwrap_or_else(|| {
            let message = FAILED.to_owned();
            // What must not happen twice may have happened.
            Err(if self.once { Failure::Unknowable(message) } else { Failure::Transient(message) })
        });
        let outcome = Box::new(Outcome { ticket: self.ticket, at: now(), result });
        // The controller is gone only when the term is over: then nobody needs the outcome.
        let _ = back.send(ControllerMessage::Outcome {
            id: self.id,
            origin: self.origin,
            outcome,
            once: self.once,
            place: self.place,
        });
    }
}

/// What is said of work that panicked. What it panicked about may hold a secret, and goes to the log alone.
pub(crate) const FAILED: &str =
    "the operator itself failed while it was doing this: its log says where, please report it";

/// What comes of some work; none where it panics.
pub(crate) async fn caught<T>(work: impl Future<Output = T>) -> Option<T> {
    AssertUnwindSafe(work).catch_unwind().await.ok()
}

/// Where an effect goes.
fn route(effect: &Effect) -> Route<EffectLane> {
    let cluster = &effect.via.cluster;
    let lane = match &effect.verb {
        Verb::Exec(_) => EffectLane::Command,
        _ if cluster.is_here() => EffectLane::Here,
        _ => EffectLane::Elsewhere,
    };
    Route { lane, backend: (!cluster.is_here()).then(|| cluster.to_string()) }
}

/// The time as the engine counts it.
pub(crate) fn wall_clock() -> Timestamp {
    Timestamp::from(jiff::Timestamp::now())
}

#[cfg(test)]
mod tests {
    use super::*;
    use linchpin_engine::contract::StepId;

    /// What comes back of an effect.
    async fn outcome(
        once: bool,
        place: EffectSlot,
        work: impl Future<Output = Result<Done, Failure>>,
    ) -> (Result<Done, Failure>, EffectSlot) {
        let (back, mut came) = mpsc::unbounded_channel();
        let ticket = Ticket { step: StepId::new("a"), run: 1, attempt: 1, part: 0 };
        let origin = EffectOrigin::Decision;
        StartedEffect { id: SubscriberId(1), origin, ticket, once, place }.run(work, &back).await;
        match came.recv().await {
            Some(ControllerMessage::Outcome { outcome, place, .. }) => (outcome.result, place),
            _ => panic!("no outcome"),
        }
    }

    #[tokio::test]
    async fn an_effect_that_panics_gives_its_place_back_and_what_must_not_happen_twice_is_not_repeated() {
        for once in [true, false] {
            let mut shares = Shares::new(1);
            for _ in 0..2 {
                shares.push("a", Route { lane: EffectLane::Here, backend: None }, 0, ());
            }
            let (place, ()) = shares.pop().unwrap();
            assert!(shares.pop().is_none(), "the second waits for the first");
            let (result, place) = outcome(once, place, async { panic!("with a secret") }).await;
            shares.end(&place);
            assert!(shares.pop().is_some());
            let failure = result.unwrap_err();
            assert_eq!(matches!(failure, Failure::Unknowable(_)), once, "{failure}");
            assert_eq!(matches!(failure, Failure::Transient(_)), !once, "{failure}");
            assert!(!failure.to_string().contains("secret"), "{failure}");
        }
    }
}
