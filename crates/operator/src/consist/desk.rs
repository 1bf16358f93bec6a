//! Where the consist process decides, for one term of leadership: observe, decide, act, report.
//!
//! One task owns everything about all employers and pods, so there are no races between them. What changed makes employers
//! and pods *dirty*; every dirty employer is settled (`linchpin_consist::settle`), then every dirty pod is advanced
//! (`linchpin_consist::lifecycle`), from the same view of the cluster. Requests and calls run elsewhere and come back as
//! messages. What is remembered here may be lost at any time: what must survive lies on the objects.

mod employers;
mod leaving;
mod pods;
mod rulebook;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use linchpin_cluster::{
    events::{EventRecorder, Regarding},
    own::OwnWriteError,
};
use linchpin_consist::settle::{ProviderLook, SettleOutcome};
use linchpin_engine::contract::Notice;
use linchpin_words::{Gvk, Timestamp};
use tokio::{
    sync::{Notify, Semaphore, mpsc},
    time::Instant,
};

pub(super) use self::leaving::scale_down;
use self::{employers::Case, pods::PodCase, rulebook::RuleBook};
use super::{
    ConsistMode,
    acts::WriteContext,
    cluster_view::{ClusterView, EmployerKey, FollowedKinds, Name, PODS, SharedClusterView, ViewChange},
    counts::ConsistCounts,
    crew::AdapterWorkers,
    roster::Roster,
    settings::Lifecycle,
};
use crate::{
    controller::{now, timers::Timers},
    run::Context,
};

/// How often the desk looks up although nobody calls.
const BEAT: Duration = Duration::from_secs(5);
/// How many requests may be under way at a time.
const REQUESTS: usize = 32;
/// How many events, and how many answers, are taken in at a time.
const AT_A_TIME: usize = 1024;

/// What comes back to the desk.
pub(super) enum DeskMessage {
    /// An order of an employer was carried out, or not.
    Outcome { key: EmployerKey, case: u64, outcome: SettleOutcome, done: Option<&'static str> },
    /// The provider was looked at.
    Looked { key: EmployerKey, case: u64, look: ProviderLook },
    /// A status or spec of a binding was written.
    Bound { key: EmployerKey, case: u64, result: Result<(), OwnWriteError> },
    /// A pod was written.
    Pod { name: Name, uid: String, version: Option<u64>, failed: Option<String> },
    /// The status of a rule was written, or not.
    Rule { name: Name, succeeded: bool },
}

/// Whose time comes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Wake {
    Employer(EmployerKey),
    Pod(Name),
    Rules(String),
}

/// What a desk is made of.
#[derive(Clone)]
pub(super) struct DeskParts {
    pub(super) context: Context,
    pub(super) shared: SharedClusterView,
    pub(super) crew: Arc<AdapterWorkers>,
    pub(super) kinds: FollowedKinds,
    /// Who may have joined them.
    pub(super) roster: Roster,
    pub(super) lifecycle: Lifecycle,
    pub(super) mode: ConsistMode,
    /// Notified when everything is left.
    pub(super) left: Arc<Notify>,
    pub(super) recorder: EventRecorder,
    pub(super) counts: ConsistCounts,
}

/// The desk of one term.
pub(super) struct Desk {
    parts: DeskParts,
    write_context: WriteContext,
    cases: BTreeMap<EmployerKey, Case>,
    /// Those of them that only their bindings name, by namespace.
    gone: BTreeMap<String, BTreeSet<EmployerKey>>,
    pods: BTreeMap<Name, PodCase>,
    rules: RuleBook,
    dirty: BTreeSet<EmployerKey>,
    dirty_pods: BTreeSet<Name>,
    dirty_rules: BTreeSet<String>,
    timers: Timers<Timestamp, Wake>,
    requests: Arc<Semaphore>,
    back: mpsc::UnboundedSender<DeskMessage>,
    last_case: u64,
    /// Whether everything could be seen when everything was last looked at.
    has_seen_all: bool,
}

impl Desk {
    fn new(parts: DeskParts, write_context: WriteContext, back: mpsc::UnboundedSender<DeskMessage>) -> Self {
        Self {
            parts,
            write_context,
            cases: BTreeMap::new(),
            gone: BTreeMap::new(),
            pods: BTreeMap::new(),
            rules: RuleBook::default(),
            dirty: BTreeSet::new(),
            dirty_pods: BTreeSet::new(),
            dirty_rules: BTreeSet::new(),
            timers: Timers::default(),
            requests: Arc::new(Semaphore::new(REQUESTS)),
            back,
            last_case: 0,
            has_seen_all: false,
        }
    }

    /// Works until the process is to stop; dropped when the term ends.
    pub(super) async fn work(parts: DeskParts, write_context: WriteContext) {
        let (back, mut inbox) = mpsc::unbounded_channel();
        let (sender, mut changes_seen) = mpsc::unbounded_channel();
        parts.shared.notify(Some(sender));
        let pulse = parts.context.health.pulse("desk", Duration::from_secs(30));
        let stop = parts.context.stop.clone();
        let mut desk = Self::new(parts, write_context, back);
        desk.parts.counts.begin_anew();
        desk.begin_anew();
        let (mut changes, mut messages) = (Vec::new(), Vec::new());
        loop {
            pulse.beat();
            desk.turns();
            if desk.has_left() {
                desk.take_configurations_away().await;
                desk.parts.left.notify_one();
                break;
            }
            let wake = desk.next_wake();
            tokio::select! {
                biased;
                () = stop.requested() => break,
                count = changes_seen.recv_many(&mut changes, AT_A_TIME) => if count == 0 { break },
                count = inbox.recv_many(&mut messages, AT_A_TIME) => if count == 0 { break },
                () = tokio::time::sleep_until(wake) => {}
            }
            // A flood of events keeps no answer from being heard.
            while messages.len() < AT_A_TIME
                && let Ok(message) = inbox.try_recv()
            {
                messages.push(message);
            }
            for change in changes.drain(..) {
                desk.note_change(change);
            }
            for message in messages.drain(..) {
                desk.came_back(message);
            }
            desk.wake_due();
        }
        desk.parts.shared.notify(None);
    }

    /// Everything is to be looked at.
    fn begin_anew(&mut self) {
        let staff = self.parts.roster.staff();
        (self.parts.crew, self.parts.kinds) = (staff.crew, staff.kinds);
        let shared = self.parts.shared.clone();
        let cluster_view = shared.look();
        self.has_seen_all = cluster_view.lacks().is_none() && cluster_view.has_asked_for_engines();
        self.dirty.extend(cluster_view.employers.keys().cloned());
        self.dirty.extend(self.cases.keys().cloned());
        for ((namespace, _), binding) in &cluster_view.bindings {
            self.dirty.extend(self.bound(namespace, &binding.spec.employer));
        }
        for ((_, namespace), pods) in cluster_view.employees.iter().filter(|((kind, _), _)| *kind == PODS) {
            let controlled = pods.values().filter(|pod| pod.is_controlled());
            self.dirty_pods.extend(controlled.map(|pod| (namespace.clone(), pod.name.clone())));
        }
        self.dirty_rules.extend(cluster_view.rules.keys().map(|(namespace, _)| namespace.clone()));
    }

    /// The employer that a binding names.
    fn bound(
        &self,
        namespace: &str,
        employer: &linchpin_api::consist_binding::EmployerName,
    ) -> Option<EmployerKey> {
        let wanted = Gvk::from_api_version(&employer.api_version, &employer.kind).group_kind();
        let kinds = &self.parts.kinds.employers;
        let kind = kinds.iter().position(|kind| kind.gvk.group_kind() == wanted)?;
        Some((kind, namespace.to_owned(), employer.name.clone()))
    }

    /// Something was seen to have changed.
    fn note_change(&mut self, change: ViewChange) {
        match change {
            ViewChange::Employer(key) => drop(self.dirty.insert(key)),
            ViewChange::Binding { namespace, binding } => {
                self.dirty.extend(self.bound(&namespace, &binding.spec.employer));
            }
            ViewChange::Employee { kind, namespace, old, new } => {
                let shared = self.parts.shared.clone();
                let cluster_view = shared.look();
                self.employers_touched(&cluster_view, kind, &namespace, [old.as_ref(), new.as_ref()]);
                drop(cluster_view);
                if kind == PODS {
                    if let Some(pod) = new.as_ref().or(old.as_ref()) {
                        self.dirty_pods.insert((namespace.clone(), pod.name.clone()));
                    }
                    if self.rules.has(&namespace) {
                        self.dirty_rules.insert(namespace);
                    }
                }
            }
            ViewChange::Rules(namespace) => drop(self.dirty_rules.insert(namespace)),
            ViewChange::Slices(namespace) => {
                let here = self.pods.range((namespace.clone(), String::new())..);
                let here = here.take_while(|((place, _), _)| *place == namespace);
                let busy = here.filter(|(_, case)| case.is_busy());
                self.dirty_pods.extend(busy.map(|(name, _)| name.clone()));
            }
            ViewChange::Namespace(name) => {
                let here = self.cases.keys().filter(|(_, namespace, _)| *namespace == name);
                self.dirty.extend(here.cloned());
            }
            ViewChange::All => self.begin_anew(),
        }
    }

    /// The employers that an employee concerns, as it was or as it is.
    fn employers_touched(
        &mut self,
        cluster_view: &ClusterView,
        kind: usize,
        namespace: &str,
        views: [Option<&Arc<linchpin_consist::PodView>>; 2],
    ) {
        for here in views.into_iter().flatten().flat_map(|view| cluster_view.concerned(kind, namespace, view))
        {
            let chosen =
                || cluster_view.employers.get(here).is_some_and(|one| self.parts.crew.of(one).is_some());
            if self.cases.contains_key(here) || chosen() {
                self.dirty.insert(here.clone());
            }
        }
        let gone: Vec<EmployerKey> = self.gone_of(namespace).cloned().collect();
        self.dirty.extend(gone);
    }

    /// The employers of a namespace that only their bindings name.
    fn gone_of(&self, namespace: &str) -> impl Iterator<Item = &EmployerKey> {
        self.gone.get(namespace).into_iter().flatten()
    }

    /// An employer is seen again, or nothing is left of it.
    fn not_gone(&mut self, key: &EmployerKey) {
        if let Some(here) = self.gone.get_mut(&key.1) {
            here.remove(key);
            if here.is_empty() {
                self.gone.remove(&key.1);
            }
        }
    }

    fn came_back(&mut self, message: DeskMessage) {
        match message {
            DeskMessage::Outcome { key, case, outcome, done } => self.carried_out(key, case, outcome, done),
            DeskMessage::Looked { key, case, look } => self.looked(key, case, look),
            DeskMessage::Bound { key, case, result } => self.bound_written(key, case, result),
            DeskMessage::Pod { name, uid, version, failed } => self.pod_written(name, &uid, version, failed),
            DeskMessage::Rule { name, succeeded } => {
                self.rules.written(&name, succeeded);
                self.dirty_rules.insert(name.0);
            }
        }
    }

    /// A turn for everything that is dirty: employers, then rules, then pods.
    fn turns(&mut self) {
        let time = now();
        while let Some(key) = self.dirty.pop_first() {
            self.employer_turn(&key, time);
        }
        while let Some(namespace) = self.dirty_rules.pop_first() {
            self.rules_turn(&namespace, time);
        }
        while let Some(name) = self.dirty_pods.pop_first() {
            self.pod_turn(&name, time);
        }
    }

    fn wake_due(&mut self) {
        let time = now();
        while let Some(wake) = self.timers.pop(time) {
            match wake {
                Wake::Employer(key) => drop(self.dirty.insert(key)),
                Wake::Pod(name) => drop(self.dirty_pods.insert(name)),
                Wake::Rules(namespace) => drop(self.dirty_rules.insert(namespace)),
            }
        }
    }

    fn next_wake(&self) -> Instant {
        let at_hand = Instant::now();
        let timer = self.timers.next().map(|at| at_hand + Duration::from(at.since(now())));
        timer.map_or(at_hand + BEAT, |timer| timer.min(at_hand + BEAT))
    }

    /// Whether the engine of PodOpsLifecycle is ours.
    fn is_own_engine(&self, cluster_view: &ClusterView) -> bool {
        self.parts.lifecycle.engine.is_own(cluster_view.has_other_engine())
    }

    /// Says something about an object.
    fn say(&self, kind: Gvk, namespace: &str, name: &str, uid: &str, notice: Notice) {
        let about = Regarding {
            kind,
            namespace: Some(namespace.to_owned()),
            name: name.to_owned(),
            uid: uid.to_owned(),
        };
        let (recorder, fence) = (self.parts.recorder.clone(), self.write_context.fence.clone());
        tokio::spawn(async move {
            if fence.check().is_ok() {
                recorder.record(&about, &notice).await;
            }
        });
    }
}
