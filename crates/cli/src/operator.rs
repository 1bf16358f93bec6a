//! `linchpin operator`: flags and environment turned into settings, and the process started.

mod webhooks;

use std::{num::NonZeroUsize, path::PathBuf, process::ExitCode, thread, time::Duration};

use anyhow::{Context as _, Result};
use clap::{ArgAction, Args, ValueEnum};
use linchpin_cluster::lease::Timing;
use linchpin_doors::Registry;
use linchpin_operator::{
    logging::{self, LogFormat},
    run,
    settings::{
        BindAddress, Doors, FLUX_HOSTS, HARMLESS_METHODS, LeaderElection, Namespaces, ProbeSettings,
        Settings, SourceSettings,
    },
};
use linchpin_words::{
    Period,
    egress::{Cidr, Egress},
};

use self::webhooks::WebhookFlags;
use crate::{cli::Usage, version};

/// Run the operator. Every flag can also be set as an environment variable.
#[derive(Debug, Args)]
pub(crate) struct OperatorCommand {
    /// The cluster to serve [default: $KUBECONFIG, the pod's own cluster, or ~/.kube/config].
    #[arg(long, env = "LINCHPIN_KUBECONFIG", value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The context in the kubeconfig [default: the current one].
    #[arg(long, env = "LINCHPIN_CONTEXT")]
    context: Option<String>,
    /// Let one of several operators lead; false: act alone.
    #[arg(long, env = "LINCHPIN_LEADER_ELECT", default_value_t = true, action = ArgAction::Set,
          num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    leader_elect: bool,
    /// The name of the Lease.
    #[arg(long, env = "LINCHPIN_LEASE_NAME", default_value = "linchpin")]
    lease_name: String,
    /// Its namespace [default: the pod's, or that of the kubeconfig's context].
    #[arg(long, env = "LINCHPIN_LEASE_NAMESPACE", value_name = "NAMESPACE")]
    lease_namespace: Option<String>,
    /// How long others leave a lease alone that is not renewed.
    #[arg(long, env = "LINCHPIN_LEASE_DURATION", default_value = "15s", value_name = "DURATION")]
    lease_duration: Period,
    /// How long a leader acts without having renewed it.
    #[arg(long, env = "LINCHPIN_RENEW_DEADLINE", default_value = "10s", value_name = "DURATION")]
    renew_deadline: Period,
    /// The pause between two attempts.
    #[arg(long, env = "LINCHPIN_RETRY_PERIOD", default_value = "2s", value_name = "DURATION")]
    retry_period: Period,
    /// How this process is called in the Lease; a random ending is added [default: the host's name].
    #[arg(long, env = "LINCHPIN_IDENTITY")]
    identity: Option<String>,
    /// Where /metrics is served; 0: nowhere.
    #[arg(long, env = "LINCHPIN_METRICS_BIND_ADDRESS", default_value = ":8080", value_name = "ADDRESS")]
    metrics_bind_address: BindAddress,
    /// Where /livez and /readyz are served; 0: nowhere.
    #[arg(long, env = "LINCHPIN_HEALTH_PROBE_BIND_ADDRESS", default_value = ":8081", value_name = "ADDRESS")]
    health_probe_bind_address: BindAddress,
    /// How log lines look.
    #[arg(long, env = "LINCHPIN_LOG_FORMAT", value_enum, default_value = "json")]
    log_format: Format,
    /// How much is logged: a level, or tracing's filter syntax.
    #[arg(long, env = "LINCHPIN_LOG_LEVEL", default_value = "info", value_name = "FILTER")]
    log_level: String,
    /// The namespaces whose objects are served, separated by commas [default: all].
    #[arg(
        long,
        env = "LINCHPIN_WATCH_NAMESPACES",
        value_name = "NAMESPACES",
        default_value = "",
        hide_default_value = true
    )]
    watch_namespaces: Namespaces,
    #[arg(long, help = "The kinds that are served, separated by commas: resourceDependency (with DependencyGroup), appBundle, \
                        sync (with GlobalDependency and Capability), bootDependency", env = "LINCHPIN_DOORS", value_name = "DOORS", default_value_t = Doors::default())]
    doors: Doors,
    /// The ClusterRole that makes a namespace a tenant when it is bound to the operator there; for messages.
    #[arg(long, env = "LINCHPIN_TENANT_ROLE", value_name = "NAME", default_value = "linchpin-tenant")]
    tenant_role: String,
    /// How many writes of one namespace may be under way at a time; of all together twice as many.
    #[arg(long, env = "LINCHPIN_CONCURRENCY", default_value = "16", value_name = "NUMBER")]
    concurrency: NonZeroUsize,
    /// The ServiceAccount, in the object's own namespace, that acts for objects which name none.
    #[arg(long, env = "LINCHPIN_DEFAULT_SERVICE_ACCOUNT", value_name = "NAME", default_value = "default")]
    default_service_account: String,
    /// Serve objects in kube-* and in the operator's own namespace too: whoever may write there may act as any ServiceAccount there.
    #[arg(long, env = "LINCHPIN_ALLOW_SYSTEM_NAMESPACES")]
    allow_system_namespaces: bool,
    /// Let kubeconfigs of other clusters point at loopback addresses, as those of local clusters do.
    #[arg(long, env = "LINCHPIN_ALLOW_LOOPBACK_CLUSTERS")]
    allow_loopback_clusters: bool,
    /// Ranges of addresses that are not probed, besides loopback, link-local, multicast and metadata services; also
    /// for the servers of other clusters.
    #[arg(long, env = "LINCHPIN_PROBE_DENY", value_name = "CIDR,...", value_delimiter = ',')]
    probe_deny: Vec<Cidr>,
    /// Ranges of addresses that are probed whatever denies them.
    #[arg(long, env = "LINCHPIN_PROBE_ALLOW", value_name = "CIDR,...", value_delimiter = ',')]
    probe_allow: Vec<Cidr>,
    /// The methods that probes may send.
    #[arg(long, env = "LINCHPIN_PROBE_METHODS", value_name = "METHOD,...", value_delimiter = ',',
          default_values_t = HARMLESS_METHODS.map(str::to_owned))]
    probe_methods: Vec<String>,
    /// The domain of Services [default: that of /etc/resolv.conf, else cluster.local].
    #[arg(long, env = "LINCHPIN_CLUSTER_DOMAIN", value_name = "DOMAIN")]
    cluster_domain: Option<String>,
    /// The hosts that sources of Syncs may be fetched from: [http://]host[:port], *.domain or *; none by default. One without
    /// http:// is spoken to over TLS alone.
    #[arg(
        long,
        env = "LINCHPIN_SOURCE_HOSTS",
        value_name = "HOST,...",
        default_value = "",
        hide_default_value = true
    )]
    source_hosts: String,
    /// The hosts that Flux serves the artifacts of a fluxRef from.
    #[arg(long, env = "LINCHPIN_FLUX_HOSTS", value_name = "HOST,...", default_value = FLUX_HOSTS)]
    flux_hosts: String,
    #[command(flatten)]
    webhooks: WebhookFlags,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Format {
    /// One JSON object per line.
    Json,
    /// Text for people.
    Text,
}

/// Checks what the parser cannot: how the values fit together. Sets up the log on the way.
pub(crate) fn settings(command: OperatorCommand) -> Result<Settings, Usage> {
    let format = match command.log_format {
        Format::Json => LogFormat::Json,
        Format::Text => LogFormat::Text,
    };
    let durations =
        [command.lease_duration, command.renew_deadline, command.retry_period].map(Duration::from);
    let timing =
        Timing::new(durations[0], durations[1], durations[2]).map_err(|error| Usage(error.to_string()))?;
    logging::init(format, &command.log_level, None).map_err(|error| Usage(error.to_string()))?;
    Ok(Settings {
        kubeconfig: command.kubeconfig,
        context: command.context,
        leader_election: command.leader_elect.then_some(LeaderElection {
            name: command.lease_name,
            namespace: command.lease_namespace,
            identity: command.identity,
            timing,
        }),
        metrics_address: command.metrics_bind_address,
        health_address: command.health_probe_bind_address,
        watch_namespaces: command.watch_namespaces,
        doors: command.doors,
        tenant_role: command.tenant_role,
        concurrency: command.concurrency,
        default_service_account: command.default_service_account,
        allow_system_namespaces: command.allow_system_namespaces,
        allow_loopback_clusters: command.allow_loopback_clusters,
        probes: ProbeSettings {
            egress: Egress::new(command.probe_deny, command.probe_allow),
            methods: command.probe_methods.into_iter().collect(),
            cluster_domain: command.cluster_domain,
        },
        sources: SourceSettings::parse(&command.source_hosts, &command.flux_hosts).map_err(Usage)?,
        boot_namespaces: command.webhooks.namespaces()?,
        webhooks: command.webhooks.settings()?,
        commit: version::COMMIT.map(str::to_owned),
    })
}

/// Runs the process until it is asked to stop.
pub(crate) fn run(settings: Settings, kinds: &Registry) -> Result<ExitCode> {
    install_tls();
    let kinds = kinds.clone();
    run::run(settings, |context| linchpin_operator::work(context, kinds))?;
    Ok(ExitCode::SUCCESS)
}

/// Installs the one TLS provider.
pub(crate) fn install_tls() {
    // Fails only if a provider is installed already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// Runs something asynchronous with the one TLS provider installed.
pub(crate) fn block_on<F: Future>(future: F) -> Result<F::Output> {
    install_tls();
    let workers = thread::available_parallelism().map_or(2, NonZeroUsize::get).clamp(2, 4);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(workers)
        .enable_all()
        .build()
        .context("starting the asynchronous runtime")?;
    Ok(runtime.block_on(future))
}
