//! What surrounds the controller: what outlives its terms, and how a term begins.
//!
//! [`work`] is called once by the process; it makes the hub, whose caches stay warm, and serves whenever we lead. A term
//! follows the objects of all kinds, opens what answers questions and carries out effects, and runs a fresh controller.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use linchpin_cluster::{
    apply::{Executor, MayWrite},
    events::EventRecorder,
    hub::{AnswerListener, Hub, SubscriberId},
    identity::{OperatorClient, Policy},
    lease::Fence,
    own::{self, OwnEvent, OwnKind},
    remote::RemoteSettings,
};
use linchpin_doors::Registry;
use linchpin_engine::graph::Graph;
use tokio::sync::mpsc;

use super::{
    Controller, ControllerMessage, ServedKind,
    backlog::Backlog,
    causes::Reporter,
    claims::ClaimIndex,
    driver::Driver,
    kept::KeptRecords,
    kinds_seen::{KindFollower, KindsSeen},
    notices::Notices,
    queue::KeyQueue,
    saving::UnderWay,
    telemetry::Telemetry,
    throttle::{Throttled, Unfinished},
    timers::Timers,
};
use crate::{
    answers::Answers,
    probes::{ProbeTimes, Probes},
    run::Context,
    settings::Namespaces,
    sources::Sources,
    tallies::{BootCounts, TermTallies},
};

/// What outlives a term: the hub's caches stay warm, and what is counted goes on.
#[derive(Clone)]
struct Parts {
    kinds: Registry,
    own: OperatorClient,
    hub: Hub,
    recorder: EventRecorder,
    telemetry: Telemetry,
    boot_counts: BootCounts,
    probe_times: ProbeTimes,
    term_inbox: TermInbox,
    sight: KindsSeen,
}

/// Where the hub rings when answers have changed: the inbox of the term that runs, if one does.
#[derive(Clone, Default)]
struct TermInbox(Arc<Mutex<Option<mpsc::UnboundedSender<ControllerMessage>>>>);

impl TermInbox {
    /// What the hub calls.
    fn listener(&self) -> AnswerListener {
        let term_inbox = self.clone();
        Arc::new(move |ids: &[SubscriberId]| {
            let inbox = term_inbox.0.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(inbox) = &*inbox {
                let _ = inbox.send(ControllerMessage::Changed(ids.to_vec()));
            }
        })
    }

    fn connect(&self, inbox: Option<mpsc::UnboundedSender<ControllerMessage>>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = inbox;
    }
}

/// The operator's work: serves these kinds whenever it leads. The hub outlives terms, so its caches stay warm.
pub async fn work(context: Context, kinds: Registry) -> Result<(), String> {
    let term_inbox = TermInbox::default();
    let settings = &context.settings;
    let in_cluster = settings.is_in_cluster();
    let hub_settings = linchpin_cluster::hub::HubSettings {
        policy: Policy {
            operator_namespace: in_cluster.then(|| context.namespace.clone()),
            allow_system_namespaces: settings.allow_system_namespaces,
            tenant_role: settings.tenant_role.clone(),
        },
        remote: RemoteSettings { egress: settings.cluster_egress(), in_cluster },
        ..linchpin_cluster::hub::HubSettings::default()
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
    let recorder = EventRecorder::new(own.clone(), &context.identity);
    let mut counts = None;
    context.metrics.register(|registry| {
        let boots = BootCounts::register(registry, context.tallies.clone());
        counts = Some((Telemetry::register(registry, hub.clone()), ProbeTimes::register(registry), boots));
    });
    let Some((telemetry, probe_times, boot_counts)) = counts else {
        return Err("metrics cannot be registered".to_owned());
    };
    let lasting = Parts { kinds, own, hub, recorder, telemetry, boot_counts, probe_times, term_inbox, sight };
    context.while_leading(|fence| serve(context.clone(), lasting.clone(), fence)).await;
    Ok(())
}

/// Serves all kinds for one term. Returns when asked to stop; dropped when the term ends.
async fn serve(context: Context, parts: Parts, fence: Fence) {
    let (back, inbox) = mpsc::unbounded_channel();
    parts.term_inbox.connect(Some(back.clone()));
    let registry = parts.kinds.clone();
    let kinds = parts.kinds.only(|names| context.settings.doors.serve(&names.gvk.group_kind()));
    let served: Vec<ServedKind> = kinds.kinds().iter().map(ServedKind::new).collect();
    let mut followers = tokio::task::JoinSet::new();
    let mut kept = BTreeMap::new();
    for (index, ServedKind { kind, own, .. }) in served.iter().enumerate() {
        let everywhere = Namespaces::All;
        let namespaces =
            if kind.names().namespaced { &context.settings.watch_namespaces } else { &everywhere };
        for namespace in each(namespaces) {
            let look = parts.sight.follow(own.name(), namespace.as_deref());
            followers.spawn(follow(parts.own.clone(), own.clone(), namespace, index, back.clone(), look));
        }
        let Some(names) = kind.history_kind() else { continue };
        kept.insert(index, KeptRecords::default());
        for namespace in each(&context.settings.watch_namespaces) {
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
    let driver = Driver::new(executor, back.clone(), limit);
    parts.telemetry.begin();
    let mut controller = Controller {
        default_service_account: Arc::from(context.settings.default_service_account.as_str()),
        own: parts.own,
        answers: Answers::new(parts.hub).with(probes).with(sources),
        recorder: parts.recorder,
        registry,
        served,
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
        claims: ClaimIndex::default(),
        reporter: Reporter::default(),
        telemetry: parts.telemetry,
        boot_counts: parts.boot_counts,
        tallies: TermTallies::begin(context.tallies.clone()),
        inbox,
        back,
        context,
    };
    controller.run().await;
    parts.term_inbox.connect(None);
    controller.flush_events().await;
}

/// Each watch that namespaces take.
fn each(namespaces: &Namespaces) -> Vec<Option<String>> {
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
    back: mpsc::UnboundedSender<ControllerMessage>,
    look: KindFollower,
) {
    let report = |event| {
        look.note(&event, std::time::Instant::now());
        if let OwnEvent::Trouble(message) = &event {
            tracing::warn!(kind = kind.name(), "cannot watch: {message}");
        }
        // Nobody listens any more at the end of a term, which ends this task too.
        let _ = back.send(ControllerMessage::Own(index, event));
    };
    own::follow(own.watches(), &kind, namespace.as_deref(), report).await;
}

async fn follow_records(
    own: OperatorClient,
    kind: OwnKind,
    namespace: Option<String>,
    index: usize,
    back: mpsc::UnboundedSender<ControllerMessage>,
) {
    let report = |event| {
        if let OwnEvent::Trouble(message) = &event {
            tracing::warn!(kind = kind.name(), "cannot watch, so no history is kept: {message}");
        }
        let _ = back.send(ControllerMessage::Kept(index, event));
    };
    own::follow(own.watches(), &kind, namespace.as_deref(), report).await;
}
