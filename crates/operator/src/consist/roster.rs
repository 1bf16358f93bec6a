//! Who is at work: the adapters, and the kinds that they need followed.
//!
//! Every adapter is opened by a task of its own, so that one whose program does not answer yet, or whose kinds the API
//! server does not serve yet, holds nobody else: the others begin, and it joins them when it can. Kinds get numbers in the
//! order of their arrival and keep them.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::future::BoxFuture;
use linchpin_cluster::own::{OperatorRequests, OwnWriteError};
use linchpin_consist::Trouble;
use linchpin_words::{Gvk, reference::built_in_kind};
use tokio::sync::mpsc;

use super::{
    acts::DEADLINE,
    cluster_view::{Followed, FollowedKinds, WatchedKind},
    crew::{AdapterWorkers, Enabled, Worker},
};
use crate::health::HealthGate;

/// The pause between two attempts to find out what a kind is called.
const AGAIN: Duration = Duration::from_secs(2);
/// How long those that are open wait for the others at the start.
const TOGETHER: Duration = Duration::from_secs(3);

/// An adapter that is to be opened: its name, and how. What it waits for meanwhile it says.
pub struct Opening {
    /// The name it is served under.
    pub name: String,
    /// Opens it.
    pub open: Box<dyn FnOnce(Waiting) -> BoxFuture<'static, Result<Enabled, String>> + Send>,
}

/// Where an adapter says what it waits for.
#[derive(Clone)]
pub struct Waiting {
    name: String,
    roster: Roster,
}

impl Waiting {
    /// Says it, in the log once and in the process's readiness.
    pub fn say(&self, why: String) {
        let mut state = self.roster.state();
        if state.waiting.get(&self.name) != Some(&why) {
            tracing::warn!(adapter = self.name, "{why}");
        }
        state.waiting.insert(self.name.clone(), why);
        drop(state);
        self.roster.set_verdict();
    }
}

/// The adapters that are at work and the kinds that are followed, as of now.
#[derive(Clone)]
pub(super) struct ActiveAdapters {
    pub(super) crew: Arc<AdapterWorkers>,
    pub(super) kinds: FollowedKinds,
}

/// All of that, growing. Clones share it.
#[derive(Clone)]
pub(super) struct Roster(Arc<(Mutex<RosterState>, HealthGate)>);

struct RosterState {
    staff: ActiveAdapters,
    /// What adapters wait for that are not open yet.
    waiting: BTreeMap<String, String>,
}

/// An adapter that is open, with its kinds as the API server calls them.
pub(super) struct OpenAdapter {
    enabled: Enabled,
    kinds: [Followed; 2],
}

impl OpenAdapter {
    /// What comes to an end when the adapter has become another one.
    pub(super) fn until_changed(&mut self) -> Option<BoxFuture<'static, Trouble>> {
        self.enabled.until_changed.take()
    }
}

impl Roster {
    /// Nobody yet.
    pub(super) fn new(gate: HealthGate) -> Self {
        let kinds = FollowedKinds {
            employers: Vec::new(),
            employees: vec![Followed::new("", "v1", "Pod", "pods", true)],
            bindings: Followed::new("linchpin.dev", "v1alpha1", "ConsistBinding", "consistbindings", true),
            rules: Followed::new(
                "apps.kusionstack.io",
                "v1alpha1",
                "PodTransitionRule",
                "podtransitionrules",
                true,
            ),
        };
        let staff = ActiveAdapters { crew: Arc::default(), kinds };
        Self(Arc::new((Mutex::new(RosterState { staff, waiting: BTreeMap::new() }), gate)))
    }

    fn state(&self) -> MutexGuard<'_, RosterState> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Who is at work now.
    pub(super) fn staff(&self) -> ActiveAdapters {
        self.state().staff.clone()
    }

    /// Says at the gate who is at work and who is waited for. A process that serves some adapters is ready: their pods
    /// need it.
    fn set_verdict(&self) {
        let state = self.state();
        let waits: Vec<String> =
            state.waiting.iter().map(|(name, why)| format!("adapter {name}: {why}")).collect();
        let verdict = match (state.staff.crew.workers().count(), waits.is_empty()) {
            (0, true) => Err("starting".to_owned()),
            (0, false) => Err(waits.join("; ")),
            (_, true) => Ok("all adapters are served".to_owned()),
            (_, false) => Ok(format!("the other adapters are served; {}", waits.join("; "))),
        };
        self.0.1.set(verdict);
    }

    /// Opens all adapters, each in a task of its own.
    pub(super) fn open(
        &self,
        own_requests: &OperatorRequests,
        openings: Vec<Opening>,
    ) -> mpsc::UnboundedReceiver<Result<OpenAdapter, String>> {
        let (arrive, arrivals) = mpsc::unbounded_channel();
        for Opening { name, open } in openings {
            let waiting = Waiting { name: name.clone(), roster: self.clone() };
            self.state().waiting.insert(name, "it is being opened".to_owned());
            let (own_requests, arrive) = (own_requests.clone(), arrive.clone());
            tokio::spawn(async move {
                let arrived = async {
                    let enabled = open(waiting.clone()).await?;
                    let of = enabled.port.kinds();
                    let kinds = [
                        followed(&own_requests, &of.employer, &waiting).await?,
                        followed(&own_requests, &of.employee, &waiting).await?,
                    ];
                    Ok(OpenAdapter { enabled, kinds })
                };
                tokio::select! {
                    arrived = arrived => drop(arrive.send(arrived)),
                    () = arrive.closed() => {}
                }
            });
        }
        self.set_verdict();
        arrivals
    }

    /// Those that are open soon; the others come later. Ends with what cannot be opened at all.
    pub(super) async fn first(
        arrivals: &mut mpsc::UnboundedReceiver<Result<OpenAdapter, String>>,
    ) -> Result<Vec<OpenAdapter>, String> {
        let mut first = Vec::new();
        first.extend(arrivals.recv().await.transpose()?);
        let until = tokio::time::Instant::now() + TOGETHER;
        while let Ok(Some(arrived)) = tokio::time::timeout_at(until, arrivals.recv()).await {
            first.push(arrived?);
        }
        Ok(first)
    }

    /// One more is at work. Returns what has to be followed for it: the kinds that were not yet.
    pub(super) fn add(&self, arrived: OpenAdapter) -> Vec<WatchedKind> {
        let OpenAdapter { enabled, kinds: [ruling, ruled] } = arrived;
        let mut state = self.state();
        let staff = &mut state.staff;
        let before = (staff.kinds.employers.len(), staff.kinds.employees.len());
        let numbers = [number(&mut staff.kinds.employers, ruling), number(&mut staff.kinds.employees, ruled)];
        let name = enabled.name.clone();
        let worker = Worker::new(enabled, numbers);
        tracing::info!(
            adapter = worker.name,
            controller = worker.port.controller_name(),
            employer = worker.employer_kind.kind,
            employee = worker.employee_kind.kind,
            "enabled"
        );
        let new = staff.kinds.since(before);
        state.waiting.remove(&name);
        state.staff.crew = Arc::new(state.staff.crew.with(worker, state.waiting.is_empty()));
        drop(state);
        self.set_verdict();
        new
    }
}

/// The number of a kind in a list, into which it is put if it is new.
fn number(list: &mut Vec<Followed>, kind: Followed) -> usize {
    if let Some(known) = list.iter().position(|known| known.gvk == kind.gvk) {
        return known;
    }
    list.push(kind);
    list.len() - 1
}

/// A kind as the API server calls it, as soon as it serves it.
async fn followed(own_requests: &OperatorRequests, gvk: &Gvk, waiting: &Waiting) -> Result<Followed, String> {
    if let Some(known) = built_in_kind(&gvk.group, &gvk.kind) {
        let kind = Followed::new(known.group, known.version, known.kind, known.plural, known.namespaced);
        return Ok(Followed { gvk: gvk.clone(), ..kind });
    }
    loop {
        let why = match own_requests.kind(gvk, DEADLINE).await {
            Ok(Some((own, true))) => return Ok(Followed { gvk: gvk.clone(), own }),
            Ok(Some((_, false))) => {
                return Err(format!("{} has no namespaces: employers and employees must", gvk.kind));
            }
            Ok(None) => format!("the API server does not serve {} of {}", gvk.kind, gvk.api_version()),
            Err(OwnWriteError::Refused(error) | OwnWriteError::Passing(error)) => error,
            Err(error) => error.to_string(),
        };
        waiting.say(why);
        tokio::time::sleep(AGAIN).await;
    }
}
