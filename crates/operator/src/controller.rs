//! The one controller, generic over doors: observe, decide, act, report.
//!
//! A single task owns everything it knows, so there are no locks and no races between objects: messages come in (an
//! object changed, an answer of the hub changed, an outcome came back, a write ended, a time has come), keys go into
//! the one queue, and each turn of a key is one `engine::step`. Everything that takes time happens elsewhere: effects
//! in the driver, status writes in tasks of their own. Nothing in here sleeps.
//!
//! It lives for one term of leadership. What it knows beyond the objects' status dies with it.

mod allowance;
mod backlog;
mod causes;
mod claims;
mod driver;
mod entry;
mod exempt;
mod idle_plans;
mod kept;
mod kinds_seen;
mod notices;
mod pace;
mod precedence;
mod queue;
mod records;
mod saving;
mod subjects;
mod telemetry;
mod term;
mod throttle;
pub(crate) mod timers;
mod turn;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use linchpin_cluster::{
    apply::MayWrite,
    events::EventRecorder,
    hub::SubscriberId,
    identity::OperatorClient,
    own::{NamespacedName, OwnEvent, OwnKind, OwnWriteError},
};
use linchpin_doors::{DoorKind, Insight, Registry};
use linchpin_engine::{
    contract::Outcome,
    graph::{Graph, Node},
};
use linchpin_words::{GroupKind, ObjectRef, Timestamp};
use tokio::{sync::mpsc, time::Instant};

use crate::{
    answers::Answers,
    run::Context,
    tallies::{BootCounts, TermTallies},
};
use backlog::Backlog;
use causes::Reporter;
use claims::ClaimIndex;
use driver::Driver;
pub(crate) use driver::{FAILED, caught, wall_clock as now};
use entry::Entry;
use kept::KeptRecords;
use notices::Notices;
use pace::{BEAT, TURNS_FOR};
use queue::KeyQueue;
use saving::UnderWay;
use telemetry::Telemetry;
pub use term::work;
use throttle::{Throttled, Unfinished};
use timers::Timers;

/// What reaches the controller.
pub(crate) enum ControllerMessage {
    /// Something happened to an object of ours.
    Own(usize, OwnEvent),
    /// Something happened to a record of the history of objects of a kind.
    Kept(usize, OwnEvent),
    /// Answers of the hub have changed.
    Changed(Vec<SubscriberId>),
    /// An effect came back.
    Outcome {
        id: SubscriberId,
        /// What it was ordered for.
        origin: driver::EffectOrigin,
        outcome: Box<Outcome>,
        /// Whether it must not happen twice.
        once: bool,
        /// The place that it held.
        place: driver::EffectSlot,
    },
    /// A status write ended.
    Saved(SubscriberId, EndedWrite),
    /// The writing of an event ended, in the turn of this namespace.
    EventWritten(Arc<str>),
}

/// How a write to an object of ours ended.
pub(crate) struct EndedWrite {
    /// In the turn of which namespace it was written; none where effects, or the end of the object, waited for it.
    pub(crate) background: Option<Arc<str>>,
    pub(crate) result: Result<String, OwnWriteError>,
}

/// A kind as it is served: what is asked of it on every turn is kept beside it.
struct ServedKind {
    kind: Arc<dyn DoorKind>,
    /// Where it is served.
    own: OwnKind,
    group_kind: GroupKind,
    /// Our finalizer on its objects.
    finalizer: Option<&'static str>,
    /// What the wait-for graph shows to them.
    insight: Insight,
    /// Whether its turns are counted.
    counted: bool,
}

impl ServedKind {
    fn new(kind: &Arc<dyn DoorKind>) -> Self {
        let names = kind.names();
        Self {
            own: OwnKind::new(&names.gvk, &names.plural, names.namespaced),
            group_kind: names.gvk.group_kind(),
            finalizer: kind.finalizer(),
            insight: kind.insight(),
            counted: kind.counted(),
            kind: Arc::clone(kind),
        }
    }
}

/// The controller of one term.
pub(crate) struct Controller {
    context: Context,
    own: OperatorClient,
    answers: Answers,
    recorder: EventRecorder,
    /// The kinds there are.
    registry: Registry,
    /// Those that are served.
    served: Vec<ServedKind>,
    default_service_account: Arc<str>,
    entries: BTreeMap<SubscriberId, Box<Entry>>,
    /// How many of them are objects of our own kinds.
    ours: usize,
    ids: BTreeMap<(usize, NamespacedName), SubscriberId>,
    /// The same by uid.
    uids: BTreeMap<String, SubscriberId>,
    /// The records of the history of objects of each kind that has one.
    kept: BTreeMap<usize, KeptRecords>,
    next_id: u64,
    queue: KeyQueue<SubscriberId>,
    timers: Timers<Timestamp, SubscriberId>,
    resting: Throttled,
    /// Subjects that took a turn, by when they have been at rest for a while.
    cooling: Timers<std::time::Instant, SubscriberId>,
    unfinished: Unfinished,
    /// Objects with something to write, by when that may be.
    unsaved: Backlog<SubscriberId>,
    /// Events to write.
    notices: Notices,
    under_way: UnderWay,
    may_write: MayWrite,
    driver: Driver,
    graph: Graph,
    claims: ClaimIndex,
    /// For each global rule, the objects of ours that it leaves alone: what it waits for needs them.
    exempt: BTreeMap<Node, BTreeSet<Node>>,
    /// The shape of the graph that those were found in.
    exempt_of: Option<u64>,
    reporter: Reporter,
    telemetry: Telemetry,
    boot_counts: BootCounts,
    tallies: TermTallies,
    inbox: mpsc::UnboundedReceiver<ControllerMessage>,
    back: mpsc::UnboundedSender<ControllerMessage>,
}

impl Controller {
    async fn run(&mut self) {
        let pulse = self.context.health.pulse("controller", Duration::from_secs(30));
        let mut messages = Vec::new();
        let stop = self.context.stop.clone();
        loop {
            pulse.beat();
            if !(self.may_write)() {
                // The term ended during a turn: this is where the controller is dropped with it.
                tokio::task::yield_now().await;
            }
            let until = std::time::Instant::now() + TURNS_FOR;
            while let Some(id) = self.queue.pop() {
                self.turn(id);
                if std::time::Instant::now() >= until {
                    break;
                }
            }
            self.save_what_is_due();
            self.look_for_causes();
            self.drop_idle_plans(std::time::Instant::now());
            let idle = self.queue.len() == 0;
            let wake = self.next_wake(idle);
            messages.clear();
            tokio::select! {
                biased;
                () = stop.requested() => return,
                count = self.inbox.recv_many(&mut messages, 1024) => {
                    if count == 0 {
                        return;
                    }
                }
                () = tokio::time::sleep_until(wake) => {}
            }
            if !messages.is_empty() {
                self.reporter.note_messages(std::time::Instant::now());
            }
            for message in messages.drain(..) {
                self.take_in(message);
            }
            self.ring_timers();
        }
    }

    /// When to look again without being called: at the next timer, and often enough to show that we live.
    fn next_wake(&self, idle: bool) -> Instant {
        let at_hand = Instant::now();
        if !idle {
            return at_hand;
        }
        let timer = self.timers.next().map(|at| at_hand + Duration::from(at.since(now())));
        let save = self.next_save().map(Instant::from_std);
        let busy = self.driver.is_busy(at_hand.into_std());
        let report = self.reporter.next(at_hand.into_std(), busy).map(Instant::from_std);
        let rested = self.resting.next().map(Instant::from_std);
        let cooled = self.next_rest(at_hand.into_std()).map(Instant::from_std);
        [timer, save, report, rested, cooled].into_iter().flatten().fold(at_hand + BEAT, Instant::min)
    }

    fn ring_timers(&mut self) {
        let at_hand = std::time::Instant::now();
        while let Some(id) = self.resting.pop(at_hand) {
            self.enqueue(id);
        }
        let time = now();
        while let Some(id) = self.timers.pop(time) {
            self.enqueue(id);
        }
    }

    fn enqueue(&mut self, id: SubscriberId) {
        if let Some(entry) = self.entries.get(&id) {
            self.queue.push(entry.subject.key().lane(), entry.subject.priority(), id);
        }
    }

    fn take_in(&mut self, message: ControllerMessage) {
        match message {
            ControllerMessage::Own(kind, event) => self.take_in_own(kind, event),
            ControllerMessage::Kept(kind, event) => self.take_in_kept(kind, &event),
            ControllerMessage::Changed(ids) => ids.into_iter().for_each(|id| self.enqueue(id)),
            ControllerMessage::Outcome { id, origin, outcome, once, place } => {
                self.driver.one_came_back(&place);
                self.telemetry.outcome(&outcome);
                if origin == driver::EffectOrigin::Record {
                    return self.record_written(id, *outcome);
                }
                if let Some(entry) = self.entries.get_mut(&id) {
                    entry.in_flight = entry.in_flight.saturating_sub(1);
                    entry.outcomes.push(*outcome);
                    if once {
                        entry.saving.confirms();
                    }
                    self.enqueue(id);
                }
            }
            ControllerMessage::Saved(id, written) => self.saved(id, written),
            ControllerMessage::EventWritten(namespace) => self.event_written(&namespace),
        }
    }

    /// The kind of an object, where it is one that is served.
    fn kind_of(&self, object: &ObjectRef) -> Option<&ServedKind> {
        self.served.iter().find(|kind| kind.group_kind == object.kind)
    }

    /// Queues the object of ours that a node represents.
    fn enqueue_node(&mut self, node: &Node) {
        let found = self.served.iter().position(|kind| kind.group_kind == node.object.kind);
        let Some(kind) = found.filter(|_| node.cluster.is_none()) else { return };
        let place = (node.object.namespace.clone(), node.object.name.clone());
        if let Some(id) = self.ids.get(&(kind, place)).copied() {
            self.enqueue(id);
        }
    }
}
