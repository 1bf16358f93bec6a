//! The frame of the process: starts everything, keeps it apart, stops it in order.
//!
//! # Apart
//!
//! The frame (Lease, health, metrics, signals) has a runtime and connections of its own; the work has another runtime
//! and, for what it does itself, a thread (`workplace.rs`). Work that computes for a minute loses neither the Lease
//! nor the answers of the ports, and its late pulse is reported.
//!
//! # Work
//!
//! [`run`] is given the work as a function of a [`Context`]. It starts once, whether we lead or not, so that caches are
//! warm when our turn comes; what it may *do* it asks the context: [`Context::while_leading`] runs something once per
//! term and drops it when the term ends, and the [`Fence`] it gets is asked right before each write.
//!
//! # Order of the end
//!
//! A signal asks the work to stop (up to [`WORK_GRACE`]); only then is the Lease released, so that nobody else leads
//! while we still write. All of it takes less than 5 s. A second signal ends the process at once.
//!
//! # What is survived
//!
//! A lost API server, a lost Lease, rights taken away later: not ready, with the reason, and tried again for ever.

use crate::{
    election::{self, Election},
    health::{CheckResult, Health},
    metrics::{self, Metrics},
    server::{self, HttpPage},
    settings::{BindAddress, Settings},
    shutdown::{self, Signals},
    tallies::Tallies,
    workplace::{Workplace, frame},
};
use http::StatusCode;
use linchpin_cluster::{
    config::{self, ConfigError},
    lease::{BootInstant, CampaignError, Fence, Leadership, campaign::CampaignStatus},
    transport::{Transport, TransportError, TransportOptions},
};
use std::{io, sync::Arc, time::Duration};
use tokio::{
    net::TcpListener,
    sync::watch,
    task::{JoinError, JoinSet},
};

pub use crate::shutdown::Stop;

/// How long the work may take to stop.
pub const WORK_GRACE: Duration = Duration::from_secs(3);
/// A loop that did not turn for so long is stuck.
const STUCK: Duration = Duration::from_secs(30);

/// Why the process ended with an error.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// No cluster to talk to.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The cluster's address or credentials are unusable.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// A port is taken, say.
    #[error("cannot listen on {address} for {purpose}: {why}; choose another address with {flag}")]
    Listen {
        /// Where.
        address: BindAddress,
        /// What for.
        purpose: &'static str,
        /// Why not.
        why: String,
        /// What chooses the address.
        flag: &'static str,
    },
    /// No threads, say.
    #[error("cannot start the asynchronous runtime: {0}")]
    Runtime(io::Error),
    /// Signals cannot be waited for.
    #[error("cannot wait for signals: {0}")]
    Signals(io::Error),
    /// Leader election cannot begin.
    #[error(transparent)]
    Campaign(#[from] CampaignError),
    /// The work failed in a way that a restart may cure.
    #[error("{0}")]
    Work(String),
}

/// Everything the work is given.
#[derive(Clone)]
pub struct Context {
    /// What the user chose.
    pub settings: Arc<Settings>,
    /// The way to the API server.
    pub transport: Transport,
    /// The namespace of the pod, or of the kubeconfig's context.
    pub namespace: String,
    /// How this process calls itself.
    pub identity: String,
    /// Our part in leader election.
    pub leadership: watch::Receiver<Leadership>,
    /// Where loops beat and parts say that they are ready.
    pub health: Health,
    /// Where metrics are registered.
    pub metrics: Metrics,
    /// What is known of BootDependencies while we lead.
    pub tallies: Tallies,
    /// The wish to stop.
    pub stop: Stop,
}

impl Context {
    /// Runs `act` once per term of ours and drops it when the term ends; returns when the process is to stop.
    ///
    /// When asked to stop it is up to `act` to return in time: the term goes on until then.
    pub async fn while_leading<F>(&self, mut act: impl FnMut(Fence) -> F)
    where
        F: Future<Output = ()>,
    {
        let mut leadership = self.leadership.clone();
        loop {
            let term = async {
                loop {
                    if let Some(fence) = Fence::current(&leadership) {
                        return Some(fence);
                    }
                    leadership.changed().await.ok()?;
                }
            };
            let fence = tokio::select! {
                biased;
                () = self.stop.requested() => return,
                fence = term => match fence {
                    Some(fence) => fence,
                    None => return,
                },
            };
            tokio::select! {
                () = fence.ended() => {}
                () = act(fence.clone()) => tokio::select! {
                    () = fence.ended() => {}
                    () = self.stop.requested() => return,
                },
            }
        }
    }
}

/// Runs the process until it is asked to stop. The caller's thread is the frame's.
pub fn run<F>(settings: Settings, work: impl FnOnce(Context) -> F + Send + 'static) -> Result<(), RunError>
where
    F: Future<Output = Result<(), String>>,
{
    let workplace = Workplace::open().map_err(RunError::Runtime)?;
    let outcome = frame().map_err(RunError::Runtime)?.block_on(keep(settings, &workplace, work));
    workplace.close();
    outcome
}

async fn keep<F>(
    settings: Settings,
    workplace: &Workplace,
    work: impl FnOnce(Context) -> F + Send + 'static,
) -> Result<(), RunError>
where
    F: Future<Output = Result<(), String>>,
{
    let mut signals = Signals::new().map_err(RunError::Signals)?;
    let config = config::load(settings.kubeconfig.as_deref(), settings.context.as_deref()).await?;
    let transport = Transport::new(&config, &TransportOptions::default())?;
    // The Lease is renewed over connections that nothing else can fill.
    let lease_transport = Transport::new(&config, &TransportOptions::default())?;
    let health_listener = listen(settings.health_address, "health").await?;
    let metrics_listener = listen(settings.metrics_address, "metrics").await?;
    tracing::info!(server = %config.cluster_url, version = env!("CARGO_PKG_VERSION"), "linchpin operator starts");

    let (election, campaign_status) =
        election::prepare(&lease_transport, settings.leader_election.as_ref(), &config.default_namespace);
    let health = Health::default();
    require_leadership(&health, &campaign_status);
    let metrics =
        Metrics::new(settings.commit.as_deref(), campaign_status.leadership.clone(), transport.clone());
    let _servers = serve(health_listener, metrics_listener, &health, &metrics);

    let (work_stopper, stop) = shutdown::channel();
    let context = Context {
        namespace: config.default_namespace.clone(),
        identity: election::name(settings.leader_election.as_ref()),
        settings: Arc::new(settings),
        transport,
        leadership: campaign_status.leadership,
        health: health.clone(),
        metrics,
        tallies: Tallies::default(),
        stop,
    };
    let mut work = workplace.start(move || work(context)).map_err(RunError::Runtime)?;
    let (election_stopper, election_stop) = shutdown::channel();
    let mut election = tokio::spawn(elect(election, election_stop, &health));

    let mut outcome = Ok(());
    let mut running = true;
    tokio::select! {
        signal = signals.next() => tracing::info!(signal, "stopping"),
        ended = work.ended() => {
            outcome = ended.map_err(RunError::Work);
            running = false;
        }
        ended = &mut election => outcome = election_ended(ended),
    }
    // Work that ends well unasked could not see the election any more: the end of the election is the cause to report.
    if !running && outcome.is_ok() {
        election_stopper.stop();
        outcome = election_ended((&mut election).await);
    }
    tokio::spawn(async move {
        signals.next().await;
        std::process::exit(1);
    });
    work_stopper.stop();
    if running {
        if tokio::time::timeout(WORK_GRACE, work.ended()).await.is_err() {
            tracing::warn!("work did not stop within {WORK_GRACE:?} and is cut off");
        }
        work.cut_off();
    }
    election_stopper.stop();
    if !election.is_finished() {
        let _ = election.await;
    }
    tracing::info!("stopped");
    outcome
}

fn elect(
    election: Election,
    stop: Stop,
    health: &Health,
) -> impl Future<Output = Result<(), CampaignError>> + use<> {
    let pulse = health.pulse("election", STUCK);
    async move { election.run(stop.requested(), move || pulse.beat()).await }
}

fn election_ended(ended: Result<Result<(), CampaignError>, JoinError>) -> Result<(), RunError> {
    match ended {
        Ok(ended) => ended.map_err(RunError::from),
        Err(error) => Err(RunError::Work(format!("leader election failed: {error}"))),
    }
}

/// Ready means leading or on standby; both take a server that answers.
fn require_leadership(health: &Health, campaign_status: &CampaignStatus) {
    let CampaignStatus { leadership, trouble } = campaign_status.clone();
    health.require("api-server", move || match &*trouble.borrow() {
        None => Ok("answers".to_owned()),
        Some(reason) => Err(reason.clone()),
    });
    health.require("leadership", move || part(&leadership.borrow()));
}

fn part(leadership: &Leadership) -> CheckResult {
    match leadership {
        Leadership::Leading { epoch, .. } if leadership.may_write(BootInstant::now()) => {
            Ok(format!("leading, term {epoch}"))
        }
        Leadership::Leading { .. } => Err("the lease could not be renewed in time".to_owned()),
        Leadership::Standby { leader: Some(leader) } => Ok(format!("on standby, {leader} leads")),
        Leadership::Standby { leader: None } => Err("nobody leads yet".to_owned()),
    }
}

/// The flag that says where something is served.
fn flag_of(purpose: &str) -> &'static str {
    match purpose {
        "metrics" => "--metrics-bind-address",
        "webhooks" => "--webhook-bind-address",
        _ => "--health-probe-bind-address",
    }
}

/// Opens a port, and says so; none where it is switched off.
pub(crate) async fn listen(
    address: BindAddress,
    purpose: &'static str,
) -> Result<Option<TcpListener>, RunError> {
    let listener = server::bind(address).await.map_err(|error| {
        let why = match error.kind() {
            io::ErrorKind::AddrInUse => "the port is taken".to_owned(),
            io::ErrorKind::PermissionDenied => "that needs more rights".to_owned(),
            _ => error.to_string(),
        };
        RunError::Listen { address, purpose, why, flag: flag_of(purpose) }
    })?;
    if let Some(address) = listener.as_ref().and_then(|listener| listener.local_addr().ok()) {
        tracing::info!(%address, purpose, "listening");
    }
    Ok(listener)
}

fn serve(
    health_listener: Option<TcpListener>,
    metrics_listener: Option<TcpListener>,
    health: &Health,
    metrics: &Metrics,
) -> JoinSet<()> {
    let mut servers = JoinSet::new();
    if let Some(listener) = health_listener {
        let health = health.clone();
        servers.spawn(server::serve(listener, move |path| {
            let report = match path {
                "/livez" | "/healthz" => health.live(),
                "/readyz" => health.ready(),
                _ => return None,
            };
            let status = if report.good { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
            Some(HttpPage::text(status, report.text))
        }));
    }
    if let Some(listener) = metrics_listener {
        let metrics = metrics.clone();
        servers.spawn(server::serve(listener, move |path| {
            (path == "/metrics").then(|| match metrics.text() {
                Ok(text) => HttpPage { status: StatusCode::OK, content_type: metrics::CONTENT_TYPE, text },
                Err(error) => HttpPage::text(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
            })
        }));
    }
    servers
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use linchpin_cluster::lease::Epoch;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// A context without a server to talk to.
    pub(crate) fn context(leadership: watch::Receiver<Leadership>, stop: Stop) -> Context {
        let config = kube::Config::new("http://127.0.0.1:1".parse().unwrap());
        let transport = Transport::new(&config, &TransportOptions::default()).unwrap();
        Context {
            namespace: "default".to_owned(),
            identity: "test".to_owned(),
            settings: Arc::new(Settings::default()),
            metrics: Metrics::new(None, leadership.clone(), transport.clone()),
            transport,
            leadership,
            tallies: Tallies::default(),
            health: Health::default(),
            stop,
        }
    }

    fn leading(epoch: u64) -> Leadership {
        Leadership::Leading { epoch: Epoch(epoch), deadline: BootInstant::NEVER }
    }

    /// Counts itself while it lives.
    struct Acting(Arc<AtomicUsize>);

    impl Acting {
        fn new(count: &Arc<AtomicUsize>) -> Self {
            count.fetch_add(1, Ordering::SeqCst);
            Self(Arc::clone(count))
        }
    }

    impl Drop for Acting {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Ordering::SeqCst);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn work_acts_once_per_term_and_never_between_terms() {
        let (campaign_status, leadership) = watch::channel(Leadership::Standby { leader: None });
        let (stopper, stop) = shutdown::channel();
        let context = context(leadership, stop);
        let (acting, terms) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (alive, begun) = (Arc::clone(&acting), Arc::clone(&terms));
        let work = tokio::spawn(async move {
            let act = |fence: Fence| {
                let acting = Acting::new(&alive);
                begun.fetch_add(1, Ordering::SeqCst);
                let stop = context.stop.clone();
                async move {
                    assert!(fence.check().is_ok());
                    stop.requested().await;
                    drop(acting);
                }
            };
            context.while_leading(act).await;
        });
        let settle = || tokio::time::sleep(Duration::from_millis(1));
        let seen = || (acting.load(Ordering::SeqCst), terms.load(Ordering::SeqCst));

        settle().await;
        assert_eq!(seen(), (0, 0), "on standby");
        campaign_status.send_replace(leading(1));
        settle().await;
        assert_eq!(seen(), (1, 1));
        campaign_status.send_replace(Leadership::Standby { leader: None });
        settle().await;
        assert_eq!(seen(), (0, 1), "dropped with its term");
        campaign_status.send_replace(leading(3));
        settle().await;
        campaign_status.send_replace(leading(5));
        settle().await;
        assert_eq!(seen(), (1, 3), "another term is another start");
        stopper.stop();
        work.await.unwrap();
        assert_eq!(seen(), (0, 3));
    }

    #[test]
    fn readiness_tells_leading_from_standing_by_from_neither() {
        assert!(part(&leading(2)).unwrap().contains("term 2"));
        assert!(part(&Leadership::Standby { leader: Some("other".into()) }).unwrap().contains("other leads"));
        assert!(part(&Leadership::Standby { leader: None }).is_err());
        let over = Leadership::Leading { epoch: Epoch(2), deadline: BootInstant::from_boot(Duration::ZERO) };
        assert!(part(&over).is_err(), "a term that ran out is no leadership");
    }
}
