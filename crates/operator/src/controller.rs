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
mod driver;
mod entry;
mod exempt;
mod kept;
mod kinds_seen;
mod notices;
mod queue;
mod records;
mod router;
mod saving;
mod telemetry;
mod throttle;
pub(crate) mod timers;
mod turn;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use linchpin_cluster::{
    apply::{Executor, MayWrite},
    events::{Recorder, Regarding},
    hub::{Hub, SubscriberId},
    identity::{OperatorClient, Policy},
    lease::Fence,
    own::{self, NamespacedName, OwnEvent, OwnKind, OwnObject, OwnWriteError, Unreadable},
    remote::RemoteSettings,
};
use linchpin_doors::{Registry, subject::Subject};
use linchpin_engine::{
    contract::{Notice, Outcome},
    graph::{Graph, Node},
};
use linchpin_words::{GroupKind, Timestamp};
use tokio::{sync::mpsc, time::Instant};

use crate::{
    answers::Answers,
    probes::{ProbeTimes, Probes},
    run::Context,
    settings::Namespaces,
    sources::Sources,
    tallies::{BootCounts, TermTallies},
};
use backlog::Backlog;
use causes::Reporter;
use driver::Driver;
pub(crate) use driver::{FAILED, caught, wall_clock as now};
use entry::Entry;
use kept::KeptRecords;
use kinds_seen::{KindsSeen, Look};
use notices::Notices;
use queue::KeyQueue;
use router::Router;
pub use router::{Answering, NoPorts, Ports};
use saving::UnderWay;
use telemetry::Telemetry;
use throttle::{Throttled, Unfinished};
use timers::Timers;

/// How often we look up although nobody calls, to show that we live.
const BEAT: Duration = Duration::from_secs(5);
/// How long after its last turn a subject rests: its plan is made anew when it is called again, which takes a fraction of a
/// millisecond and would double the memory of what waits for hours.
const COOL_AFTER: Duration = Duration::from_secs(10);
/// How many begin to rest before messages are looked at.
const COOLED_AT_ONCE: usize = 32;
/// How long turns are taken before new messages are looked at: whatever came back makes room for the next effect.
const TURNS_FOR: Duration = Duration::from_millis(2);

/// The reporter of causes, which may be due while effects are under way, is not asked more often than this.
const LEAST_PAUSE: Duration = Duration::from_millis(50);

/// What reaches the controller.
pub(crate) enum Message {
    /// Something happened to an object of ours.
    Own(usize, OwnEvent),
    /// Something happened to a record of the history of objects of a kind.
    Kept(usize, OwnEvent),
    /// Answers of the hub have changed.
    Changed(Vec<SubscriberId>),
    /// An effect came back.
    Outcome {
        id: SubscriberId,
        outcome: Box<Outcome>,
        /// Whether it must not happen twice.
        once: bool,
        /// The place that it held.
        place: driver::EffectSlot,
    },
    /// A status write ended.
    Saved(SubscriberId, Written),
    /// The writing of an event ended, in the turn of this namespace.
    EventWritten(Arc<str>),
}

/// How a write to an object of ours ended.
pub(crate) struct Written {
    /// In the turn of which namespace it was written; none where effects, or the end of the object, waited for it.
    pub(crate) background: Option<Arc<str>>,
    pub(crate) result: Result<String, OwnWriteError>,
}

/// The controller of one term.
pub(crate) struct Controller {
    context: Context,
    own: OperatorClient,
    answers: Answers,
    recorder: Recorder,
    kinds: Registry,
    /// Where each kind is served.
    own_kinds: Vec<OwnKind>,
    /// Each kind by its name.
    group_kinds: Vec<GroupKind>,
    /// Our finalizer on objects of each kind.
    finalizers: Vec<Option<&'static str>>,
    default_service_account: Arc<str>,
    entries: BTreeMap<SubscriberId, Entry>,
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
    /// For each global rule, the objects of ours that it leaves alone: what it waits for needs them.
    exempt: BTreeMap<String, BTreeSet<Node>>,
    /// The shape of the graph that those were found in.
    exempt_of: Option<u64>,
    reporter: Reporter,
    telemetry: Telemetry,
    boot_counts: BootCounts,
    tallies: TermTallies,
    inbox: mpsc::UnboundedReceiver<Message>,
    back: mpsc::UnboundedSender<Message>,
}

/// What outlives a term: the hub's caches stay warm, and what is counted goes on.
#[derive(Clone)]
struct Parts {
    kinds: Registry,
    ports: Arc<dyn Ports>,
    own: OperatorClient,
    hub: Hub,
    recorder: Recorder,
    telemetry: Telemetry,
    boot_counts: BootCounts,
    probe_times: ProbeTimes,
    term_inbox: TermInbox,
    sight: KindsSeen,
}

/// Where the hub rings when answers have changed: the inbox of the term that runs, if one does.
#[derive(Clone, Default)]
struct TermInbox(Arc<std::sync::Mutex<Option<mpsc::UnboundedSender<Message>>>>);

impl TermInbox {
    /// What the hub calls.
    fn listener(&self) -> linchpin_cluster::hub::Listener {
        let term_inbox = self.clone();
        Arc::new(move |ids: &[SubscriberId]| {
            let inbox = term_inbox.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            if let Some(inbox) = &*inbox {
                let _ = inbox.send(Message::Changed(ids.to_vec()));
            }
        })
    }

    fn connect(&self, inbox: Option<mpsc::UnboundedSender<Message>>) {
        *self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = inbox;
    }
}

/// The operator's work: serves these kinds whenever it leads, and reaches what is no API server through these ports. The
/// hub outlives terms, so its caches stay warm.
pub async fn work(context: Context, kinds: Registry, ports: Arc<dyn Ports>) -> Result<(), String> {
    let term_inbox = TermInbox::default();
    let settings = &context.settings;
    let in_cluster = settings.is_in_cluster();
    let hub_settings = linchpin_cluster::hub::Settings {
        policy: Policy {
            operator_namespace: in_cluster.then(|| context.namespace.clone()),
            allow_system_namespaces: settings.allow_system_namespaces,
            tenant_role: settings.tenant_role.clone(),
        },
        remote: RemoteSettings { egress: settings.cluster_egress(), in_cluster },
        ..linchpin_cluster::hub::Settings::default()
    };
    let hub = Hub::new(context.transport.clone(), hub_settings, term_inbox.listener());
    let synced = hub.clone();
    context.health.require("hub", move || {
        if synced.is_synced() {
            Ok("knows what is served".to_owned())
        } else {
            Err("reading what is served".to_owned())
        }
    });
    let sight = KindsSeen::default();
    let seen = sight.clone();
    context.health.require("kinds", move || seen.verdict(std::time::Instant::now()));
    let own = OperatorClient::new(&context.transport);
    let recorder = Recorder::new(own.clone(), &context.identity);
    let mut counts = None;
    context.metrics.register(|registry| {
        let boots = BootCounts::register(registry, context.tallies.clone());
        counts = Some((Telemetry::register(registry, hub.clone()), ProbeTimes::register(registry), boots));
    });
    let Some((telemetry, probe_times, boot_counts)) = counts else {
        return Err("metrics cannot be registered".to_owned());
    };
    let lasting =
        Parts { kinds, ports, own, hub, recorder, telemetry, boot_counts, probe_times, term_inbox, sight };
    context.while_leading(|fence| serve(context.clone(), lasting.clone(), fence)).await;
    Ok(())
}

/// Serves all kinds for one term. Returns when asked to stop; dropped when the term ends.
async fn serve(context: Context, parts: Parts, fence: Fence) {
    let (back, inbox) = mpsc::unbounded_channel();
    parts.term_inbox.connect(Some(back.clone()));
    let kinds = parts.kinds.only(|names| context.settings.doors.serve(&names.gvk.kind));
    let names: Vec<_> = kinds.kinds().iter().map(|kind| kind.names()).collect();
    let own_kinds: Vec<OwnKind> =
        names.iter().map(|names| OwnKind::new(&names.gvk, &names.plural, names.namespaced)).collect();
    let mut followers = tokio::task::JoinSet::new();
    for (index, own_kind) in own_kinds.iter().enumerate() {
        let everywhere = Namespaces::All;
        let namespaces =
            if names[index].namespaced { &context.settings.watch_namespaces } else { &everywhere };
        for namespace in served(namespaces) {
            let look = parts.sight.follow(own_kind.name(), namespace.as_deref());
            followers.spawn(follow(
                parts.own.clone(),
                own_kind.clone(),
                namespace,
                index,
                back.clone(),
                look,
            ));
        }
    }
    let mut kept = BTreeMap::new();
    for (index, kind) in kinds.kinds().iter().enumerate() {
        let Some(names) = kind.history_kind() else { continue };
        kept.insert(index, KeptRecords::default());
        for namespace in served(&context.settings.watch_namespaces) {
            let records = OwnKind::new(&names.gvk, &names.plural, names.namespaced).metadata_only();
            followers.spawn(follow_records(parts.own.clone(), records, namespace, index, back.clone()));
        }
    }
    let probes = Probes::new(&context.settings.probes, parts.probe_times, parts.term_inbox.listener());
    let sources =
        Sources::new(&context.settings.sources, &context.settings.probes.egress, parts.term_inbox.listener());
    let limit = context.settings.concurrency.get();
    let may_write: MayWrite = Arc::new(move || fence.check().is_ok());
    let executor = Executor::new(parts.hub.clone(), parts.recorder.clone(), Arc::clone(&may_write));
    let router = Router::new(executor, parts.ports, Arc::clone(&may_write));
    let driver = Driver::new(router, back.clone(), limit);
    parts.telemetry.begin();
    let mut controller = Controller {
        default_service_account: Arc::from(context.settings.default_service_account.as_str()),
        own: parts.own,
        answers: Answers::new(parts.hub).with(probes).with(sources),
        recorder: parts.recorder,
        group_kinds: names.iter().map(|names| names.gvk.group_kind()).collect(),
        finalizers: kinds.kinds().iter().map(|kind| kind.finalizer()).collect(),
        kinds,
        own_kinds,
        entries: BTreeMap::new(),
        ours: 0,
        ids: BTreeMap::new(),
        uids: BTreeMap::new(),
        kept,
        next_id: 1,
        queue: KeyQueue::default(),
        timers: Timers::default(),
        resting: Throttled::default(),
        cooling: Timers::default(),
        unfinished: Unfinished::default(),
        unsaved: Backlog::default(),
        notices: Notices::default(),
        under_way: UnderWay::default(),
        may_write,
        driver,
        graph: Graph::new(),
        exempt: BTreeMap::new(),
        exempt_of: None,
        reporter: Reporter::default(),
        telemetry: parts.telemetry,
        boot_counts: parts.boot_counts,
        tallies: TermTallies(context.tallies.clone()),
        inbox,
        back,
        context,
    };
    controller.run().await;
    parts.term_inbox.connect(None);
    controller.flush_events().await;
}

fn served(namespaces: &Namespaces) -> Vec<Option<String>> {
    match namespaces {
        Namespaces::All => vec![None],
        Namespaces::Only(names) => names.iter().cloned().map(Some).collect(),
    }
}

async fn follow(
    own: OperatorClient,
    kind: OwnKind,
    namespace: Option<String>,
    index: usize,
    back: mpsc::UnboundedSender<Message>,
    look: Look,
) {
    let tell = |event| {
        look.note(&event, std::time::Instant::now());
        if let OwnEvent::Trouble(message) = &event {
            tracing::warn!(kind = kind.name(), "cannot watch: {message}");
        }
        // Nobody listens any more at the end of a term, which ends this task too.
        let _ = back.send(Message::Own(index, event));
    };
    own::follow(own.watches(), &kind, namespace.as_deref(), tell).await;
}

async fn follow_records(
    own: OperatorClient,
    kind: OwnKind,
    namespace: Option<String>,
    index: usize,
    back: mpsc::UnboundedSender<Message>,
) {
    let tell = |event| {
        if let OwnEvent::Trouble(message) = &event {
            tracing::warn!(kind = kind.name(), "cannot watch, so no history is kept: {message}");
        }
        let _ = back.send(Message::Kept(index, event));
    };
    own::follow(own.watches(), &kind, namespace.as_deref(), tell).await;
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
        let report = self.reporter.due_in().map(|pause| at_hand + pause.max(LEAST_PAUSE));
        let rested = self.resting.next().map(Instant::from_std);
        let cooled = self.cooling.next().map(Instant::from_std);
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
        self.let_rest(at_hand);
    }

    /// Lets subjects rest to which nothing happens, a few at a time.
    fn let_rest(&mut self, at_hand: std::time::Instant) {
        for _ in 0..COOLED_AT_ONCE {
            let Some(id) = self.cooling.pop(at_hand) else { return };
            let Some(entry) = self.entries.get_mut(&id) else { continue };
            // What goes on with an evaluation takes another turn.
            let Some(turn) = entry.last_turn.filter(|turn| turn.goes_on.is_none()) else { continue };
            let due = turn.ended + COOL_AFTER;
            if due > at_hand {
                self.cooling.set(id, Some(due));
            } else {
                entry.subject.rest();
            }
        }
    }

    fn enqueue(&mut self, id: SubscriberId) {
        if let Some(entry) = self.entries.get(&id) {
            self.queue.push(entry.subject.key().lane(), entry.subject.priority(), id);
        }
    }

    fn take_in(&mut self, message: Message) {
        match message {
            Message::Own(kind, event) => self.take_in_own(kind, event),
            Message::Kept(kind, event) => self.take_in_kept(kind, &event),
            Message::Changed(ids) => ids.into_iter().for_each(|id| self.enqueue(id)),
            Message::Outcome { id, outcome, once, place } => {
                self.driver.one_came_back(&place);
                self.telemetry.outcome(&outcome);
                if self.took_record(id, &outcome) {
                    return;
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
            Message::Saved(id, written) => self.saved(id, written),
            Message::EventWritten(namespace) => self.event_written(&namespace),
        }
    }

    fn take_in_own(&mut self, kind: usize, event: OwnEvent) {
        match event {
            OwnEvent::There(object) if self.is_echo(kind, &object) => {}
            OwnEvent::There(object) => self.arrived(kind, &object),
            OwnEvent::Gone(place) => {
                if let Some(id) = self.ids.remove(&(kind, place)) {
                    self.forget(id);
                }
            }
            OwnEvent::Synced => tracing::debug!(kind = self.own_kinds[kind].name(), "all objects seen"),
            OwnEvent::Trouble(_) => {}
        }
    }

    fn take_in_kept(&mut self, kind: usize, event: &OwnEvent) {
        let Some(records) = self.kept.get_mut(&kind) else { return };
        let first = !records.is_listed();
        let mut ids: Vec<SubscriberId> =
            records.take_in(event).iter().filter_map(|uid| self.uids.get(uid).copied()).collect();
        if first && records.is_listed() {
            // Now it is known of all of them.
            ids = self.entries.iter().filter(|(_, entry)| entry.kind == kind).map(|(id, _)| *id).collect();
        }
        for id in ids {
            self.enqueue(id);
        }
    }

    /// An object of ours is there and cannot be read: that is said on the object itself, and nothing is done for what
    /// it was before, because nobody knows what it asks for now.
    fn unreadable(&mut self, kind: usize, object: &OwnObject, error: &Unreadable) {
        let (namespace, name) = object.place();
        let kind_name = self.own_kinds[kind].name();
        tracing::warn!(
            kind = kind_name,
            namespace,
            name,
            "an object cannot be read and is not served: {error}"
        );
        let message = format!("This object cannot be read and is not served: {error}. Correct its spec.");
        let uid = object.uid().to_owned();
        let gvk = self.kinds.kinds()[kind].names().gvk;
        let about = Regarding { kind: gvk, namespace, name, uid };
        self.emit_event(about, Notice { reason: "Unreadable".to_owned(), message, warning: true });
        if let Some(id) = self.ids.remove(&(kind, object.place())) {
            self.forget(id);
        }
    }

    /// An object of ours is new or has changed.
    fn arrived(&mut self, kind: usize, object: &OwnObject) {
        let key = (kind, object.place());
        let known = self.ids.get(&key).copied();
        let same = |id: &SubscriberId| {
            self.entries.get(id).is_some_and(|entry| entry.subject.key().uid == object.uid())
        };
        if let Some(id) = known.filter(same) {
            return self.changed(id, kind, object);
        }
        if let Some(id) = known {
            self.forget(id);
        }
        match self.kinds.kinds()[kind].subject(object.text(), &self.default_service_account) {
            Ok(subject) => self.begin(key, object, subject),
            Err(error) => self.unreadable(kind, object, &error.into()),
        }
    }

    /// Looks after a subject from now on.
    fn begin(&mut self, key: (usize, NamespacedName), object: &OwnObject, subject: Box<dyn Subject>) {
        let id = SubscriberId(self.next_id);
        self.next_id += 1;
        let mut entry = Entry::new(key.0, id, subject);
        entry.saving.arrived(object, entry.subject.as_ref());
        self.uids.insert(entry.subject.key().uid.clone(), id);
        self.ids.insert(key, id);
        self.ours += usize::from(self.finalizers[entry.kind].is_some());
        self.entries.insert(id, entry);
        self.enqueue(id);
        self.telemetry.objects(self.ours);
    }

    fn forget(&mut self, id: SubscriberId) {
        if let Some(entry) = self.entries.remove(&id) {
            self.telemetry.forget(entry.phase);
            self.ours -= usize::from(self.finalizers[entry.kind].is_some());
            let key = entry.subject.key();
            if self.is_boot(entry.kind) {
                self.tallies.0.forget(key.lane(), &key.name);
            } else if key.kind.kind == "Namespace" {
                self.tallies.0.hold(&key.name, 0);
            }
            self.uids.remove(&entry.subject.key().uid);
            let node = Node::here(entry.subject.key().object_ref());
            for neighbour in self.graph.remove(&node) {
                self.enqueue_node(&neighbour);
            }
            // What it relied on may go now.
            for claimed in entry.subject.claims() {
                self.enqueue_node(&Node::here(claimed));
            }
            self.find_exempt();
        }
        self.unsaved.remove(id);
        self.timers.set(id, None);
        self.resting.set(id, None);
        self.cooling.set(id, None);
        self.answers.subscribe(id, BTreeSet::new());
        self.telemetry.objects(self.ours);
    }

    /// Whether a kind is BootDependency, whose document names its metrics.
    pub(super) fn is_boot(&self, kind: usize) -> bool {
        self.group_kinds[kind].kind == "BootDependency"
    }

    /// Queues the object of ours that a node represents.
    fn enqueue_node(&mut self, node: &Node) {
        let found = self.group_kinds.iter().position(|kind| *kind == node.object.kind);
        let Some(kind) = found.filter(|_| node.cluster.is_none()) else { return };
        let place = (node.object.namespace.clone(), node.object.name.clone());
        if let Some(id) = self.ids.get(&(kind, place)).copied() {
            self.enqueue(id);
        }
    }
}
