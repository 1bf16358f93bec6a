//! `linchpin demo`: a local Kubernetes and the operator, shown at work.
//!
//! Starts a cluster in the default directory (or uses the one that runs there), or with `LOCAL=0` the one `KUBECONFIG`
//! names; runs the operator in this process; shows the [`story`] of a shop that opens, and what to try next. On a
//! terminal it goes on until Ctrl-C; elsewhere it ends by itself, after `DEMO_SECONDS` if set. What it started ends
//! with it, and what it made in a cluster that stays is taken away again.

mod client;
mod story;

use std::{
    env,
    fs::File,
    io::{self, IsTerminal, Write},
    net::{SocketAddr, TcpListener},
    num::NonZeroUsize,
    path::{Path, PathBuf},
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};
use linchpin_cluster::lease::Timing;
use linchpin_doors::Registry;
use linchpin_local::{Cluster, ClusterOptions, Error, KUBERNETES_VERSION, default_directory};
use linchpin_operator::{
    logging::{self, LogFormat},
    run::{self, Context},
    settings::{BindAddress, Doors, LeaderElection, Namespaces, ProbeSettings, Settings, SourceSettings},
    webhooks::WebhookSettings,
};

use linchpin_words::keys;
use serde_json::{Value, json};

use crate::{operator::install_tls, version};
use client::DemoClient;

/// How long the operator may take to become ready; it takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(30);

/// Where the demonstration happens.
enum Stage {
    Local { cluster: Box<Cluster>, ours: bool },
    Given(PathBuf),
}

/// Runs the demonstration.
pub(crate) fn run(kinds: &Registry) -> Result<ExitCode> {
    let stage = prepare()?;
    let (kubeconfig, log) = match &stage {
        Stage::Local { cluster, .. } => (cluster.kubeconfig(), cluster.dir().join("operator.log")),
        Stage::Given(path) => (path.clone(), env::temp_dir().join("linchpin-demo-operator.log")),
    };
    let file = File::create(&log).with_context(|| format!("writing {}", log.display()))?;
    logging::init(LogFormat::Text, "info", Some(file))?;
    let health = free_address()?;
    let metrics = free_address()?;
    let local = matches!(stage, Stage::Local { .. });
    let stays = !matches!(stage, Stage::Local { ours: true, .. });
    let namespace = if local { "shop" } else { "linchpin-demo" };
    // In somebody else's cluster nobody else's objects are served.
    let watch_namespaces =
        if local { Namespaces::All } else { Namespaces::Only([namespace.to_owned()].into()) };
    let settings = Settings {
        // Of somebody else's cluster the environment says it, in one file or several.
        kubeconfig: local.then(|| kubeconfig.clone()),
        context: None,
        leader_election: Some(LeaderElection {
            name: "linchpin".into(),
            namespace: None,
            identity: Some("demo".into()),
            timing: Timing::default(),
        }),
        metrics_address: BindAddress::At(metrics),
        health_address: BindAddress::At(health),
        watch_namespaces,
        doors: Doors::default(),
        tenant_role: "linchpin-tenant".to_owned(),
        concurrency: NonZeroUsize::MIN.saturating_add(15),
        default_service_account: "default".to_owned(),
        allow_system_namespaces: false,
        allow_loopback_clusters: true,
        probes: ProbeSettings::default(),
        sources: SourceSettings::default(),
        boot_namespaces: opted_in(),
        // The API server of somebody else's cluster cannot reach us here.
        webhooks: if local { Some(webhooks(free_address()?)?) } else { None },
        commit: version::COMMIT.map(str::to_owned),
    };
    let words = Words { kubeconfig, log, health, metrics, local, namespace: namespace.to_owned(), stays };
    say("starting the operator …");
    install_tls();
    let kinds = kinds.clone();
    run::run(settings, move |context| at_work(context, words, kinds))?;
    say("operator stopped, lease released");
    if let Stage::Local { cluster, ours: true } = stage {
        say("stopping Kubernetes …");
        cluster.stop()?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The namespaces whose pods may be held.
fn opted_in() -> Value {
    json!({"matchLabels": {(keys::BOOT): keys::BOOT_ENABLED}})
}

/// Webhooks that the API server of this machine reaches.
fn webhooks(address: SocketAddr) -> Result<WebhookSettings> {
    Ok(WebhookSettings {
        address: BindAddress::At(address),
        reached: format!("https://{address}").parse()?,
        config_name: client::WEBHOOKS.to_owned(),
        cert_dir: None,
        namespaces: opted_in(),
        wait_image: "localhost/linchpin-wait:1".to_owned(),
        boot_after: None,
    })
}

fn prepare() -> Result<Stage> {
    if env::var("LOCAL").is_ok_and(|local| local == "0") {
        let path = env::var_os("KUBECONFIG").filter(|path| !path.is_empty());
        let Some(path) = path else { bail!("LOCAL=0 asks for a cluster of yours: set KUBECONFIG") };
        say(&format!("using the cluster of {}", Path::new(&path).display()));
        return Ok(Stage::Given(path.into()));
    }
    let dir = default_directory()?;
    say(&format!("starting Kubernetes {KUBERNETES_VERSION} in {} …", dir.display()));
    let begun = Instant::now();
    match Cluster::start(&ClusterOptions { dir: Some(dir.clone()), ..ClusterOptions::default() }) {
        Ok(cluster) => {
            say(&format!(
                "Kubernetes is ready at {} after {:.1} s",
                cluster.server(),
                begun.elapsed().as_secs_f64()
            ));
            Ok(Stage::Local { cluster: Box::new(cluster), ours: true })
        }
        Err(Error::AlreadyRunning { .. }) => {
            say("a cluster runs there already and is used");
            Ok(Stage::Local { cluster: Box::new(Cluster::open(&dir)?), ours: false })
        }
        Err(error) => Err(error.into()),
    }
}

/// What is shown while the operator runs.
struct Words {
    kubeconfig: PathBuf,
    log: PathBuf,
    health: SocketAddr,
    metrics: SocketAddr,
    local: bool,
    /// Where the story takes place.
    namespace: String,
    /// Whether the cluster stays when the demonstration is over.
    stays: bool,
}

/// The operator's own work, and the demonstration beside it: the operator ends with it.
async fn at_work(context: Context, words: Words, kinds: Registry) -> Result<(), String> {
    let mut client = DemoClient::new(context.transport.writes(None), &words.namespace);
    client.clear().await.map_err(|error| format!("{error:#}"))?;
    if words.local {
        let looked = client.look_for_certificate(&context.namespace).await;
        looked.map_err(|error| format!("{error:#}"))?;
    }
    client.define(kinds.definitions()).await.map_err(|error| format!("{error:#}"))?;
    let stays = words.stays;
    let result = tokio::select! {
        ended = linchpin_operator::work(context.clone(), kinds.clone()) => ended,
        result = show(&context, &words, &mut client, &kinds) => result,
    };
    if stays {
        say("taking away what the demonstration made …");
        client.clean_up().await.map_err(|error| format!("{error:#}"))?;
    }
    result
}

/// The demonstration itself.
async fn show(
    context: &Context,
    words: &Words,
    client: &mut DemoClient,
    kinds: &Registry,
) -> Result<(), String> {
    let begun = Instant::now();
    while !context.health.ready().good {
        if begun.elapsed() > PATIENCE {
            return Err(format!(
                "the operator is not ready after {PATIENCE:?}:\n{}",
                context.health.ready().text
            ));
        }
        tokio::select! {
            () = context.stop.requested() => return Ok(()),
            () = tokio::time::sleep(Duration::from_millis(20)) => {}
        }
    }
    let epoch = linchpin_cluster::lease::Fence::current(&context.leadership).map(|fence| fence.epoch());
    match epoch {
        Some(epoch) => say(&format!("the operator leads (term {epoch}) and is ready:\n")),
        None => say("another operator leads; this one is on standby and ready:\n"),
    }
    say(&indent(&context.health.ready().text));
    tokio::select! {
        () = context.stop.requested() => return Ok(()),
        result = story::run(client, kinds, words.local) => result.map_err(|error| format!("{error:#}"))?,
    }
    say(&words.next());
    tokio::select! {
        () = context.stop.requested() => {}
        () = patience() => {}
    }
    Ok(())
}

/// A person decides when it is over; a script gets what it asked for.
async fn patience() {
    let seconds = env::var("DEMO_SECONDS").ok().and_then(|seconds| seconds.parse().ok());
    match seconds {
        Some(seconds) => tokio::time::sleep(Duration::from_secs(seconds)).await,
        None if io::stdin().is_terminal() => {
            say("Ctrl-C ends the demonstration.");
            std::future::pending::<()>().await;
        }
        None => {}
    }
}

impl Words {
    fn next(&self) -> String {
        let program =
            env::current_exe().map_or_else(|_| "linchpin".to_owned(), |path| path.display().to_string());
        let kubectl = if self.local { format!("{program} local kubectl --") } else { "kubectl".to_owned() };
        let namespace = &self.namespace;
        format!(
            "Try, in another terminal:\n\n  \
             export KUBECONFIG={}\n  \
             {kubectl} get resourcedependencies,dependencygroups -n {namespace}\n  \
             {kubectl} describe resourcedependency storefront -n {namespace}\n  \
             {program} tree -n {namespace}\n  \
             {program} explain dg/shop -n {namespace}\n  \
             {program} explain configmap/db-config -n {namespace}\n  \
             curl -s http://{}/readyz\n  \
             curl -s http://{}/metrics\n\n\
             The operator's log is {}\n",
            self.kubeconfig.display(),
            self.health,
            self.metrics,
            self.log.display(),
        )
    }
}

fn free_address() -> Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").context("looking for a free port")?;
    Ok(listener.local_addr()?)
}

fn indent(text: &str) -> String {
    text.lines().map(|line| ["  ", line, "\n"].concat()).collect()
}

fn say(text: &str) {
    // Nobody may be listening any more; the demonstration goes on.
    let _ = writeln!(io::stdout(), "{text}");
}
