//! Sessions: one per cluster and actor, the one way for every question and every write.
//!
//! A session of a ServiceAccount is open while the operator may act for accounts of its namespace and that account lives;
//! the account's metadata is watched by the operator.
//! A session in another cluster is open while the actor may read the credential and the credential is usable
//! ([`crate::remote`]). When a session closes, its watches say why; when it opens again, they begin anew. Sessions
//! that nobody uses are dropped after a minute.

use super::{
    Inner,
    rights::{self, RightNote},
    state::Reader,
};
use crate::{
    access::Reviewer,
    discovery::Discovery,
    identity::{Identity, IdentityError, OperatorClient},
    remote::{self, ConnectionPool, Pools},
    tenancy::Tenancy,
    transport::{Impersonation, Transport},
    watch::{Counters, Features, clock::VersionClock},
};
use kube::Client;
use linchpin_engine::contract::{Actor, ClusterRef, Failure, Question, ReadSet, Right, Seen, Via, Want, Why};
use linchpin_words::{Gvk, Reason};
use std::{
    collections::BTreeSet,
    sync::{Arc, Weak},
    time::{Duration, Instant},
};
use tokio::{
    sync::{Notify, mpsc, watch},
    task::AbortHandle,
};

/// How long a session outlives its last user.
const LINGER: Duration = Duration::from_mins(1);

/// One cluster as one credential sees it.
pub(crate) struct SessionCluster {
    pub(crate) transport: Transport,
    pub(crate) discovery: Discovery,
    pub(crate) clock: Arc<VersionClock>,
    pub(crate) features: Arc<Features>,
    /// What the cluster is called in messages; none for the operator's own.
    pub(crate) remote: Option<String>,
    /// Who the operator is in this cluster.
    tenancy: Tenancy,
    /// Keeps the connections to another cluster.
    _pool: Option<Arc<ConnectionPool>>,
}

impl SessionCluster {
    /// The operator's own cluster.
    pub(crate) fn here(transport: Transport, counters: &Arc<Counters>) -> Self {
        // Discovery waits for nobody's first looks.
        Self::new(transport, None, &Arc::default(), counters)
    }

    /// Another cluster, by what it is called, with its further impersonation.
    pub(crate) fn remote(
        pool: Arc<ConnectionPool>,
        name: String,
        impersonation: Option<&Impersonation>,
        counters: &Arc<Counters>,
    ) -> Self {
        let features = Arc::new(Features::elsewhere());
        // What it serves is read within the same limits as its objects.
        let place = Self::new(pool.transport.clone(), impersonation, &features, counters);
        Self { features, remote: Some(name), _pool: Some(pool), ..place }
    }

    fn new(
        transport: Transport,
        impersonation: Option<&Impersonation>,
        features: &Arc<Features>,
        counters: &Arc<Counters>,
    ) -> Self {
        let clock = Arc::new(VersionClock::default());
        let (watches, writes) = (transport.watches(impersonation), transport.writes(impersonation));
        let discovery = Discovery::start(&watches, &writes, &clock, features, counters);
        let tenancy = Tenancy::new(writes);
        Self { transport, discovery, clock, features: Arc::default(), remote: None, tenancy, _pool: None }
    }
}

/// The way to act in one cluster as one actor. Only a session hands it out.
pub struct ActorClient {
    pub(crate) watches: Client,
    pub(crate) writes: Client,
    pub(crate) place: Arc<SessionCluster>,
    /// Who acts, as messages name it.
    pub(crate) who: String,
    /// What it may do.
    pub(crate) rights: Reviewer,
}

/// Whether a session lets requests through.
#[derive(Clone)]
pub(crate) enum SessionGate {
    /// Not now.
    Closed {
        /// Why not.
        why: Why,
        /// The right that is missing, where it is that.
        right: Option<Right>,
    },
    /// Yes, this way.
    Open(Arc<ActorClient>),
}

impl SessionGate {
    pub(crate) fn closed(reason: Reason, message: impl Into<String>) -> Self {
        Self::Closed { why: Why::new(reason, message), right: None }
    }
}

/// One session.
pub(super) struct Session {
    pub(super) number: u64,
    gate: Arc<watch::Sender<SessionGate>>,
    wake: Arc<Notify>,
    users: usize,
    idle_since: Instant,
    task: AbortHandle,
    /// Where its rights are asked for; none before one is.
    rights: Option<mpsc::UnboundedSender<RightNote>>,
}

impl Drop for Session {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Session {
    /// Begins to open a session.
    pub(super) fn start(inner: &Arc<Inner>, via: &Via) -> Self {
        let number = inner.number();
        let gate = Arc::new(watch::Sender::new(SessionGate::closed(
            Reason::Unsynced,
            format!("looking whether {} can act in {}", actor(&via.actor), via.cluster),
        )));
        let wake = Arc::new(Notify::new());
        let keeper = SessionKeeper {
            inner: Arc::downgrade(inner),
            number,
            gate: Arc::clone(&gate),
            wake: Arc::clone(&wake),
        };
        let task = match (&via.cluster, &via.actor) {
            (ClusterRef::Here, Actor::Operator) => {
                let own = OperatorClient::new(&inner.here.transport);
                gate.send_replace(SessionGate::Open(Arc::new(ActorClient {
                    watches: own.watches().clone(),
                    writes: own.writes().clone(),
                    place: Arc::clone(&inner.here),
                    who: "the operator".to_owned(),
                    rights: Reviewer::default(),
                })));
                inner.runtime.spawn(std::future::ready(()))
            }
            (ClusterRef::Here, Actor::ServiceAccount { namespace, name }) => {
                inner.runtime.spawn(keeper.account(namespace.clone(), name.clone()))
            }
            _ => inner.runtime.spawn(remote::resolve::keep(keeper, via.clone())),
        };
        let (task, idle_since) = (task.abort_handle(), Instant::now());
        Self { number, gate, wake, users: 0, idle_since, task, rights: None }
    }

    /// The gate, for one request or for as long as a user is counted.
    pub(super) fn gate(&mut self) -> watch::Receiver<SessionGate> {
        self.idle_since = Instant::now();
        self.gate.subscribe()
    }

    /// Says something about a right, to a task that is begun with the first. It ends with the session.
    pub(super) fn note_right(&mut self, inner: &Arc<Inner>, note: RightNote) {
        if self.rights.is_none() {
            let (rights, notes) = mpsc::unbounded_channel();
            inner.runtime.spawn(rights::keep(Arc::downgrade(inner), self.gate(), notes));
            self.rights = Some(rights);
        }
        self.pass_on(note);
    }

    /// The same, to a task that was begun.
    pub(super) fn pass_on(&self, note: RightNote) {
        if let Some(rights) = &self.rights {
            // It ends only with the session.
            let _ = rights.send(note);
        }
    }

    pub(super) fn enter(&mut self) {
        self.users += 1;
    }

    pub(super) fn leave(&mut self) {
        self.users = self.users.saturating_sub(1);
        self.idle_since = Instant::now();
    }

    pub(super) fn is_idle(&self, now: Instant) -> bool {
        self.users == 0 && now.saturating_duration_since(self.idle_since) > LINGER
    }

    pub(super) fn poke(&self) {
        self.wake.notify_one();
    }
}

/// What keeps one session's gate true: it asks the hub, like everybody else.
pub(crate) struct SessionKeeper {
    inner: Weak<Inner>,
    number: u64,
    gate: Arc<watch::Sender<SessionGate>>,
    wake: Arc<Notify>,
}

impl SessionKeeper {
    /// Asks for these and no others, and returns the present answers; none when the hub is gone.
    pub(crate) fn ask(&self, wants: &[Want]) -> Option<Vec<Seen>> {
        let inner = self.inner.upgrade()?;
        inner.subscribe(Reader::Session(self.number), wants.iter().cloned().collect::<BTreeSet<_>>());
        let state = inner.state();
        Some(wants.iter().map(|want| state.answer(want)).collect())
    }

    /// Waits until an answer changed.
    pub(crate) async fn changed(&self) {
        self.wake.notified().await;
    }

    /// Opens or closes the gate.
    pub(crate) fn set(&self, gate: SessionGate) {
        self.gate.send_replace(gate);
    }

    /// Closes the gate, unless it is closed for that reason already.
    pub(crate) fn close(&self, fresh: Why, right: Option<Right>) {
        self.gate.send_if_modified(|gate| {
            let same = matches!(gate, SessionGate::Closed { why, .. } if *why == fresh);
            if !same {
                *gate = SessionGate::Closed { why: fresh, right };
            }
            !same
        });
    }

    /// Whether the gate is open.
    pub(crate) fn is_open(&self) -> bool {
        matches!(&*self.gate.borrow(), SessionGate::Open(_))
    }

    /// Settings and counters of the hub, while there is one.
    pub(crate) fn hub(&self) -> Option<HubParts> {
        let inner = self.inner.upgrade()?;
        Some(HubParts {
            settings: inner.settings.clone(),
            counters: Arc::clone(&inner.counters),
            pools: Arc::clone(&inner.pools),
        })
    }

    /// Open while the operator may act for the namespace's accounts and the ServiceAccount lives. Nothing of a namespace
    /// is read before that right was answered.
    async fn account(self, namespace: String, name: String) {
        let Some(HubParts { settings, .. }) = self.hub() else { return };
        if let Err(error) = Identity::check(&namespace, &name, &settings.policy) {
            let right = impersonation(&namespace);
            return self.close(Why::new(Reason::Forbidden, error.to_string()), Some(right));
        }
        let operator = Via { cluster: ClusterRef::Here, actor: Actor::Operator };
        let tenant = Want::new(Question::Right { via: operator.clone(), right: impersonation(&namespace) });
        let kind = Gvk::new("", "v1", "ServiceAccount");
        let account = Want::object(operator, kind, Some(namespace.clone()), &name, ReadSet::nothing());
        let mut wants = vec![tenant];
        loop {
            let Some(answers) = self.ask(&wants) else { return };
            match answers.as_slice() {
                [Seen::Right(true)] => {
                    wants.push(account.clone());
                    continue;
                }
                [Seen::Right(false)] => self.refuse(&namespace, &settings).await,
                [Seen::Right(false), _] => {
                    wants.truncate(1);
                    continue;
                }
                [Seen::Right(true), Seen::Objects(observed)] => {
                    match Identity::resolve(&namespace, &name, &settings.policy, observed) {
                        Ok(identity) if !self.is_open() => {
                            let Some(inner) = self.inner.upgrade() else { return };
                            let place = Arc::clone(&inner.here);
                            let reach = ActorClient {
                                watches: identity.watches(&place.transport),
                                writes: identity.writes(&place.transport),
                                place,
                                who: identity.to_string(),
                                rights: Reviewer::default(),
                            };
                            self.set(SessionGate::Open(Arc::new(reach)));
                        }
                        Ok(_) => {}
                        Err(error @ IdentityError::Gone { .. }) => {
                            self.close(Why::new(Reason::IdentityGone, error.to_string()), None);
                        }
                        Err(error) => self.close(Why::new(Reason::Forbidden, error.to_string()), None),
                    }
                }
                // The role that lets it act for the accounts lets it see them too.
                [_, Seen::Unknown(why)] if why.reason == Reason::Forbidden => {
                    self.refuse(&namespace, &settings).await;
                }
                [Seen::Unknown(why), ..] | [_, Seen::Unknown(why)]
                    if !(why.is_passing() && self.is_open()) =>
                {
                    self.close(why.clone(), None);
                }
                _ => {}
            }
            self.changed().await;
        }
    }

    /// The operator may not act here: says so, with the command that would change it.
    async fn refuse(&self, namespace: &str, settings: &super::HubSettings) {
        let Some(inner) = self.inner.upgrade() else { return };
        let remedy = inner.here.tenancy.remedy(namespace, &settings.policy.tenant_role).await;
        let error = IdentityError::NotATenant { namespace: namespace.to_owned(), remedy };
        self.close(Why::new(Reason::NotATenant, error.to_string()), Some(impersonation(namespace)));
    }
}

/// What a session needs of its hub.
pub(crate) struct HubParts {
    pub(crate) settings: super::HubSettings,
    pub(crate) counters: Arc<Counters>,
    pub(crate) pools: Arc<Pools>,
}

fn actor(actor: &Actor) -> String {
    match actor {
        Actor::ServiceAccount { namespace, name } => format!("ServiceAccount {namespace}/{name}"),
        Actor::Operator => "the operator".to_owned(),
    }
}

/// The right to act for every ServiceAccount of a namespace.
fn impersonation(namespace: &str) -> Right {
    Right {
        verb: "impersonate".to_owned(),
        group: String::new(),
        resource: "serviceaccounts".to_owned(),
        subresource: None,
        namespace: Some(namespace.to_owned()),
        name: None,
    }
}

/// What a closed session means for a write.
pub(super) fn refusal(why: &Why, right: Option<&Right>) -> Failure {
    match (why.reason, right) {
        // The operator's own right is no failure of the action that needs it.
        (_, Some(right)) if right.verb == "impersonate" => Failure::Transient(why.message.clone()),
        (_, Some(right)) => Failure::Forbidden(right.clone()),
        (Reason::IdentityGone, None) => Failure::IdentityGone(why.message.clone()),
        (_, None) if why.absent => Failure::CredentialAbsent(why.message.clone()),
        _ => Failure::Transient(why.message.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_that_is_pending_or_silent_is_waited_for_and_only_an_absent_credential_is_gone() {
        for reason in [Reason::ClusterPending, Reason::ClusterUnreachable, Reason::Unsynced] {
            let why = Why::new(reason, "ControlPlane its1 is not ready");
            assert!(matches!(refusal(&why, None), Failure::Transient(_)), "{reason}");
        }
        let absent = Why::new(Reason::ClusterPending, "Secret n/s does not exist").absent();
        assert!(matches!(refusal(&absent, None), Failure::CredentialAbsent(_)));
    }
}
