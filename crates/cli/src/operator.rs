//! `linchpin operator`: flags and environment turned into settings, and the process started.

mod webhooks;

use std::{
    num::NonZeroUsize,
    process::{self, ExitCode},
    thread,
};

use anyhow::{Context as _, Result};
use clap::Args;
use linchpin_doors::Registry;
use linchpin_operator::{
    flags::ProcessFlags,
    run,
    settings::{Doors, FLUX_HOSTS, HARMLESS_METHODS, ProbeSettings, Settings, SourceSettings},
};
use linchpin_words::{
    egress::{Cidr, Egress},
    probe::{ProbeError, ProbeRequest, ProbeTarget},
};

use self::webhooks::BootFlags;
use crate::{cli::UsageError, version};

/// The exit code of a program that Ctrl-C ended.
const INTERRUPTED: i32 = 130;

/// Run the operator. Every flag can also be set as an environment variable.
#[derive(Debug, Args)]
pub(crate) struct OperatorCommand {
    #[command(flatten)]
    process: ProcessFlags,
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
    /// Serve objects in kube-* and in the operator's own namespace too: a user who may write there may act as any ServiceAccount there.
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
          value_parser = method, default_values_t = HARMLESS_METHODS.map(str::to_owned))]
    probe_methods: Vec<String>,
    /// The domain of Services [default: that of /etc/resolv.conf, else cluster.local].
    #[arg(long, env = "LINCHPIN_CLUSTER_DOMAIN", value_name = "DOMAIN", value_parser = domain)]
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
    webhooks: BootFlags,
}

/// A method as requests write it.
fn method(text: &str) -> Result<String, ProbeError> {
    ProbeRequest::get("host", "/").and_then(|request| request.method(text)).map(|_| text.to_owned())
}

/// A domain that names of Services can end with.
fn domain(text: &str) -> Result<String, ProbeError> {
    ProbeTarget::host(text, 1).map(|_| text.to_owned())
}

/// Checks what the parser cannot: how the values fit together. Sets up the log on the way.
pub(crate) fn settings(command: OperatorCommand) -> Result<Settings, UsageError> {
    Ok(Settings {
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
        sources: SourceSettings::parse(&command.source_hosts, &command.flux_hosts).map_err(UsageError)?,
        boot_namespaces: command.webhooks.namespaces()?,
        webhooks: command.webhooks.settings()?,
        ..command.process.settings(version::COMMIT.map(str::to_owned)).map_err(UsageError)?
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

/// The same for what a person waits for: Ctrl-C ends the program, with the exit code that shells give it.
pub(crate) fn awaited<F: Future>(future: F) -> Result<F::Output> {
    block_on(async {
        tokio::select! {
            done = future => done,
            // Where the signal cannot be heard, it ends the program by itself.
            Ok(()) = tokio::signal::ctrl_c() => process::exit(INTERRUPTED),
        }
    })
}
