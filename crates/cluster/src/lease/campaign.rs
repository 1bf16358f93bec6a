//! The talking part of leader election: looks at the Lease, does what the elector decides, publishes the result.
//!
//! A campaign runs as long as the process. It survives a lost API server and lost rights by trying again, at most
//! `RETRY_IN_TROUBLE` apart, and reports what is wrong meanwhile; only a right that is missing *from the start* ends
//! it, because then somebody is there to read the message. On standby it watches the Lease, so that a released
//! one is taken within milliseconds instead of at the next look.
//!
//! Rights needed: get, create, update on `leases.coordination.k8s.io`; watch too, if available.

use super::{
    BootInstant, Leadership, Timing,
    elector::{Elector, Move},
    leadership::publish,
    record, rights,
};
use crate::{oneself, transport::Transport};
use futures::TryStreamExt;
use jiff::Timestamp;
use k8s_openapi::{api::coordination::v1::Lease, apimachinery::pkg::apis::meta::v1::OwnerReference};
use kube::{
    Api, Client,
    api::{PostParams, WatchEvent, WatchParams},
};
use std::{
    hash::{BuildHasher, Hasher, RandomState},
    pin::pin,
    sync::Arc,
    time::Duration,
};
use tokio::sync::{Notify, watch};

/// The longest pause between attempts while the server does not answer.
const RETRY_IN_TROUBLE: Duration = Duration::from_millis(500);
/// An attempt is given at least so long, however short the retry period.
const ATTEMPT: Duration = Duration::from_secs(1);
/// So often must a right be denied at the start to be believed: a server that just started denies for a moment.
const DENIALS: usize = 4;
/// The pause between two of them.
const BETWEEN_DENIALS: Duration = Duration::from_millis(500);
/// A release that takes longer is left to the others' patience.
const RELEASE_DEADLINE: Duration = Duration::from_millis(1500);

/// Where the Lease is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseRef {
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
}

/// What the campaign publishes.
#[derive(Debug, Clone)]
pub struct CampaignStatus {
    /// Our part.
    pub leadership: watch::Receiver<Leadership>,
    /// What keeps us from the Lease; none once an attempt succeeded. Before the first attempt: that we are starting.
    pub trouble: watch::Receiver<Option<String>>,
}

/// Why a campaign cannot even begin.
#[derive(Debug, thiserror::Error)]
pub enum CampaignError {
    /// A right is missing.
    #[error(
        "may not {verb} the lease {}/{}: grant get, create, update and watch on leases.coordination.k8s.io in \
         namespace {} or switch leader election off",
        place.namespace, place.name, place.namespace
    )]
    Forbidden {
        /// What was denied.
        verb: &'static str,
        /// The Lease.
        place: LeaseRef,
    },
    /// The server does not know us.
    #[error("the API server does not accept our credentials: {0}")]
    Unauthorized(String),
    /// There is no place for the Lease.
    #[error("cannot create the lease {}/{}: the namespace does not exist", .0.namespace, .0.name)]
    NoNamespace(LeaseRef),
}

/// Why one attempt failed.
enum Trouble {
    /// The server said no, and will again unless somebody changes something.
    Denied(CampaignError),
    /// Anything else: try again.
    Failing(String),
}

/// One process's candidacy.
pub struct Campaign {
    place: LeaseRef,
    client: Client,
    api: Api<Lease>,
    watch_api: Api<Lease>,
    elector: Elector,
    /// The object behind the elector's record.
    known: Option<Lease>,
    /// Whom the Lease belongs to, so that it goes with the installation.
    owner: Option<OwnerReference>,
    leadership: watch::Sender<Leadership>,
    trouble: watch::Sender<Option<String>>,
    /// An attempt has succeeded: from now on nothing is fatal.
    begun: bool,
}

impl Campaign {
    /// Prepares a candidacy under a name that must be unique to this process.
    pub fn new(
        transport: &Transport,
        place: LeaseRef,
        identity: String,
        timing: Timing,
    ) -> (Self, CampaignStatus) {
        let (leadership, leadership_seen) = watch::channel(Leadership::Standby { leader: None });
        let (trouble, trouble_seen) = watch::channel(Some("starting".to_owned()));
        let client = transport.writes(None);
        let campaign = Self {
            api: Api::namespaced(client.clone(), &place.namespace),
            watch_api: Api::namespaced(transport.watches(None), &place.namespace),
            client,
            place,
            elector: Elector::new(identity, timing),
            known: None,
            owner: None,
            leadership,
            trouble,
            begun: false,
        };
        (campaign, CampaignStatus { leadership: leadership_seen, trouble: trouble_seen })
    }

    /// Takes part until `stop`, then releases the Lease. `pulse` is called at least once per attempt.
    ///
    /// The caller must have stopped writing before.
    pub async fn run(
        mut self,
        stop: impl Future<Output = ()>,
        pulse: impl Fn(),
    ) -> Result<(), CampaignError> {
        let released = Arc::new(Notify::new());
        let hints = Hints {
            api: self.watch_api.clone(),
            name: self.place.name.clone(),
            leadership: self.leadership.subscribe(),
            released: Arc::clone(&released),
        };
        let hints = AbortOnDrop(tokio::spawn(hints.run()));
        let mut stop = pin!(stop);
        let mut denials = 0;
        loop {
            pulse();
            let attempt_limit = self.elector.timing().retry_period().max(ATTEMPT);
            let outcome = tokio::select! {
                biased;
                () = &mut stop => break,
                outcome = tokio::time::timeout(attempt_limit, self.attempt()) => outcome
                    .unwrap_or_else(|_| Err(Trouble::Failing(format!("no answer about the lease within {attempt_limit:?}")))),
            };
            pulse();
            let pause = match outcome {
                Ok(()) => {
                    self.begun = true;
                    self.report_trouble(None);
                    self.pause()
                }
                Err(Trouble::Denied(error)) => {
                    denials += 1;
                    if !self.begun && denials >= DENIALS {
                        return Err(error);
                    }
                    self.report_trouble(Some(error.to_string()));
                    if self.begun { RETRY_IN_TROUBLE } else { BETWEEN_DENIALS }
                }
                Err(Trouble::Failing(reason)) => {
                    self.report_trouble(Some(reason));
                    self.elector.timing().retry_period().min(RETRY_IN_TROUBLE)
                }
            };
            self.announce();
            tokio::select! {
                () = &mut stop => break,
                () = tokio::time::sleep(pause) => {}
                () = released.notified() => {}
            }
            // A term may have ended while we slept or were stopped.
            self.announce();
        }
        drop(hints);
        self.release().await;
        Ok(())
    }

    /// One look at the Lease and, if called for, one write.
    async fn attempt(&mut self) -> Result<(), Trouble> {
        if !self.begun {
            let missing = rights::missing(&self.client, &self.place.namespace, &self.place.name);
            if let Some(verb) = missing.await.map_err(|error| self.trouble("review access to", &error))? {
                return Err(Trouble::Denied(CampaignError::Forbidden { verb, place: self.place.clone() }));
            }
            self.owner = oneself::owner_in(&self.client, &self.place.namespace).await;
        }
        if let Some(renewal) = self.elector.renewal() {
            match self.write(&renewal).await {
                Err(error) if lost_race(&error) => {}
                Err(error) => return Err(self.trouble("update", &error)),
                Ok(()) => return Ok(()),
            }
        }
        let found = self.api.get_opt(&self.place.name).await.map_err(|error| self.trouble("get", &error))?;
        let decision = self.elector.read(BootInstant::now(), found.as_ref().map(record::read));
        self.known = found;
        match self.write(&decision).await {
            Err(error) if lost_race(&error) && !is(&error, 404) => Ok(()),
            Err(error) => Err(self
                .trouble(if matches!(decision, Move::Create { .. }) { "create" } else { "update" }, &error)),
            Ok(()) => Ok(()),
        }
    }

    async fn write(&mut self, decision: &Move) -> Result<(), kube::Error> {
        let (identity, timing) = (self.elector.identity(), self.elector.timing());
        let draft = record::draft(
            self.known.as_ref(),
            &self.place.name,
            identity,
            timing,
            decision,
            Timestamp::now(),
        );
        let Some(draft) = draft.map(|draft| record::owned_by(draft, self.owner.as_ref())) else {
            return Ok(());
        };
        let sent = BootInstant::now();
        let parameters = PostParams::default();
        let stored = match decision {
            Move::Create { .. } => self.api.create(&parameters, &draft).await?,
            _ => self.api.replace(&self.place.name, &parameters, &draft).await?,
        };
        self.elector.wrote(sent, record::read(&stored));
        self.known = Some(stored);
        Ok(())
    }

    /// Gives the Lease back so that the next leader need not wait.
    async fn release(mut self) {
        self.elector.resign();
        self.announce();
        let done = tokio::time::timeout(RELEASE_DEADLINE, async {
            if self.elector.own_record().is_none() {
                // An attempt that was cut off may have been stored all the same.
                self.reread().await?;
            }
            match self.give_back().await {
                Err(error) if lost_race(&error) => {
                    self.reread().await?;
                    self.give_back().await
                }
                result => result,
            }
        });
        match done.await {
            Ok(Ok(true)) => tracing::info!("lease released"),
            Ok(Ok(false)) => {}
            Ok(Err(error)) => {
                tracing::warn!(%error, "lease not released: the next leader has to wait for its end");
            }
            Err(_) => tracing::warn!("lease not released in time: the next leader has to wait for its end"),
        }
    }

    async fn reread(&mut self) -> Result<(), kube::Error> {
        self.known = self.api.get_opt(&self.place.name).await?;
        self.elector.read(BootInstant::now(), self.known.as_ref().map(record::read));
        Ok(())
    }

    /// True if there was something to give back.
    async fn give_back(&self) -> Result<bool, kube::Error> {
        let (Some(_), Some(known)) = (self.elector.own_record(), &self.known) else {
            return Ok(false);
        };
        let released = record::released(known, Timestamp::now());
        self.api.replace(&self.place.name, &PostParams::default(), &released).await?;
        Ok(true)
    }

    /// The leader renews on time; candidates spread out a little so that they do not all try at once.
    fn pause(&self) -> Duration {
        let period = self.elector.timing().retry_period();
        match self.elector.leadership(BootInstant::now()) {
            Leadership::Leading { .. } => period,
            Leadership::Standby { .. } => {
                let spread = RandomState::new().build_hasher().finish() % 200;
                period.mul_f64(1.0 + f64::from(u32::try_from(spread).unwrap_or(0)) / 1000.0)
            }
        }
    }

    /// Publishes our part as of now, and logs it if it is another.
    fn announce(&self) {
        let current = self.elector.leadership(BootInstant::now());
        let before = self.leadership.borrow().clone();
        match (&before, &current) {
            (Leadership::Leading { epoch: old, .. }, Leadership::Leading { epoch: new, .. })
                if old == new => {}
            (_, Leadership::Leading { epoch, .. }) => tracing::info!(epoch = epoch.0, "leading"),
            (Leadership::Leading { epoch, .. }, Leadership::Standby { .. }) => {
                tracing::warn!(epoch = epoch.0, "no longer leading");
            }
            (Leadership::Standby { leader: old }, Leadership::Standby { leader: new }) if old == new => {}
            (_, Leadership::Standby { leader }) => {
                tracing::info!(leader = leader.as_deref().unwrap_or("nobody"), "on standby");
            }
        }
        publish(&self.leadership, current);
    }

    fn report_trouble(&self, trouble: Option<String>) {
        self.trouble.send_if_modified(|known| {
            let changed = *known != trouble;
            if let Some(reason) = trouble.as_ref().filter(|_| changed) {
                tracing::warn!(reason, "cannot get at the lease");
            }
            *known = trouble;
            changed
        });
    }

    fn trouble(&self, verb: &'static str, error: &kube::Error) -> Trouble {
        if is(error, 403) && verb != "review access to" {
            return Trouble::Denied(CampaignError::Forbidden { verb, place: self.place.clone() });
        }
        if let (true, kube::Error::Api(status)) = (is(error, 401), error) {
            return Trouble::Denied(CampaignError::Unauthorized(status.message.clone()));
        }
        if is(error, 404) && verb == "create" {
            return Trouble::Denied(CampaignError::NoNamespace(self.place.clone()));
        }
        let reason = match error {
            kube::Error::Service(source) => source.to_string(),
            other => other.to_string(),
        };
        Trouble::Failing(format!(
            "cannot {verb} the lease {}/{}: {reason}",
            self.place.namespace, self.place.name
        ))
    }
}

/// Somebody else wrote (or deleted) first.
fn lost_race(error: &kube::Error) -> bool {
    is(error, 409) || is(error, 404)
}

fn is(error: &kube::Error, code: u16) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == code)
}

/// Watches the Lease while we are on standby, and says when it has no holder. Only ever a hint: without it the campaign
/// looks every retry period.
struct Hints {
    api: Api<Lease>,
    name: String,
    leadership: watch::Receiver<Leadership>,
    released: Arc<Notify>,
}

impl Hints {
    async fn run(mut self) {
        let standby = |leadership: &Leadership| matches!(leadership, Leadership::Standby { .. });
        while self.leadership.wait_for(standby).await.is_ok() {
            let mut leadership = self.leadership.clone();
            tokio::select! {
                ended = self.watch() => if let Err(error) = ended {
                    tracing::debug!(%error, "cannot watch the lease");
                },
                _ = leadership.wait_for(|leadership| !standby(leadership)) => {}
            }
            tokio::time::sleep(RETRY_IN_TROUBLE).await;
        }
    }

    async fn watch(&self) -> Result<(), kube::Error> {
        let parameters = WatchParams::default().fields(&format!("metadata.name={}", self.name));
        let mut events = pin!(self.api.watch(&parameters, "0").await?);
        while let Some(event) = events.try_next().await? {
            let free = match event {
                WatchEvent::Added(lease) | WatchEvent::Modified(lease) => {
                    record::read(&lease).holder.is_none()
                }
                WatchEvent::Deleted(_) => true,
                WatchEvent::Bookmark(_) => false,
                WatchEvent::Error(_) => return Ok(()),
            };
            if free {
                self.released.notify_one();
            }
        }
        Ok(())
    }
}

struct AbortOnDrop(tokio::task::JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}
