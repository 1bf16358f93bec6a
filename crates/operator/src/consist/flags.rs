//! The flags that every consist process has, whoever wrote its adapter.
//!
//! `linchpin consist enable` adds those that choose a built-in adapter; [`super::enable`] takes these alone.

use std::{path::PathBuf, time::Duration};

use clap::{ArgAction, Args, ValueEnum};
use linchpin_cluster::lease::Timing;
use linchpin_consist::FinalizerRule;
use linchpin_words::{Period, egress::Egress};
use serde::Deserialize;

use super::{Engine, Lifecycle, Overrides};
use crate::{
    logging::{self, LogFormat},
    settings::{BindAddress, Doors, LeaderElection, Namespaces, ProbeSettings, Settings},
    webhooks::{Reached, WebhookSettings},
};

/// Flags of the process, of PodOpsLifecycle and of the webhooks.
#[derive(Debug, Clone, Args)]
pub struct ProcessFlags {
    /// The cluster to serve [default: $KUBECONFIG, the pod's own cluster, or ~/.kube/config].
    #[arg(long, env = "LINCHPIN_KUBECONFIG", value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The context in the kubeconfig [default: the current one].
    #[arg(long, env = "LINCHPIN_CONTEXT")]
    context: Option<String>,
    /// Let one of several processes lead; false: act alone.
    #[arg(long, env = "LINCHPIN_LEADER_ELECT", default_value_t = true, action = ArgAction::Set,
          num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    leader_elect: bool,
    /// The name of the Lease.
    #[arg(long, env = "LINCHPIN_LEASE_NAME", default_value = "linchpin-consist")]
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
    /// The namespaces whose employers are served, separated by commas [default: all].
    #[arg(
        long,
        env = "LINCHPIN_WATCH_NAMESPACES",
        value_name = "NAMESPACES",
        default_value = "",
        hide_default_value = true
    )]
    watch_namespaces: Namespaces,
    /// The domain of Services [default: that of /etc/resolv.conf, else cluster.local].
    #[arg(long, env = "LINCHPIN_CLUSTER_DOMAIN", value_name = "DOMAIN")]
    cluster_domain: Option<String>,
    /// Where webhooks are served; 0: nowhere, and then neither admission nor deletion is looked at.
    #[arg(long, env = "LINCHPIN_WEBHOOK_BIND_ADDRESS", default_value = "0", value_name = "ADDRESS")]
    webhook_bind_address: BindAddress,
    /// The Service through which the API server reaches them.
    #[arg(long, env = "LINCHPIN_WEBHOOK_SERVICE", value_name = "NAMESPACE/NAME")]
    webhook_service: Option<String>,
    /// The URL at which the API server reaches them.
    #[arg(long, env = "LINCHPIN_WEBHOOK_URL", value_name = "https://HOST:PORT")]
    webhook_url: Option<String>,
    /// The beginning of the names of both webhook configurations.
    #[arg(
        long,
        env = "LINCHPIN_WEBHOOK_CONFIG_NAME",
        default_value = "linchpin-consist",
        value_name = "NAME"
    )]
    webhook_config_name: String,
    /// A directory with tls.crt and tls.key, as cert-manager mounts it [default: certificates of our own].
    #[arg(long, env = "LINCHPIN_WEBHOOK_CERT_DIR", value_name = "DIRECTORY")]
    webhook_cert_dir: Option<PathBuf>,
}

/// Flags of PodOpsLifecycle; as `lifecycle` in a `ConsistConfig` they have the same names.
#[derive(Debug, Clone, Default, PartialEq, Args, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct LifecycleFlags {
    /// Whose engine of PodOpsLifecycle runs: auto, own or external; auto: external where that of kusionstack.io is installed
    /// [default: auto].
    #[arg(long, value_name = "ENGINE")]
    engine: Option<Engine>,
    /// Refuse deletions and evictions of pods until they are out of traffic [default: true].
    #[arg(long, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true",
          value_name = "BOOL")]
    grace_delete: Option<bool>,
    /// How long those who follow EndpointSlices get to notice that a pod leaves [default: 3s].
    #[arg(long, value_name = "DURATION")]
    settle: Option<Period>,
    /// How long a drain before a deletion may take; then the pod goes whatever holds it [default: 5m].
    #[arg(long, value_name = "DURATION")]
    drain_timeout: Option<Period>,
    /// How long an operation waits for other employees to be attached first [default: 60s].
    #[arg(long, value_name = "DURATION")]
    attach_patience: Option<Period>,
    /// How new pods get their gate and entries: webhook, or none [default: webhook].
    #[arg(long, value_enum, hide_possible_values = true)]
    admission: Option<Admission>,
}

impl LifecycleFlags {
    /// What they say.
    pub fn lifecycle(&self) -> Lifecycle {
        let usual = Lifecycle::default();
        Lifecycle {
            engine: self.engine.unwrap_or(usual.engine),
            grace_delete: self.grace_delete.unwrap_or(usual.grace_delete),
            admission: self.admission.map_or(usual.admission, |word| matches!(word, Admission::Webhook)),
            settle: self.settle.map_or(usual.settle, Period::length),
            drain_timeout: self.drain_timeout.map_or(usual.drain_timeout, Period::length),
            attach_patience: self.attach_patience.map_or(usual.attach_patience, Period::length),
        }
    }
}

/// Flags that every adapter has.
#[derive(Debug, Clone, Default, PartialEq, Args)]
pub struct AdapterFlags {
    /// Whether pods are marked, and held until they are out of traffic [default: as the adapter says, true].
    #[arg(long, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true",
          value_name = "BOOL")]
    pub follow_pod_ops_lifecycle: Option<bool>,
    /// Whether the names of marked pods are written on the employer [default: as the adapter says, false].
    #[arg(long, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true",
          value_name = "BOOL")]
    pub need_record_employees: Option<bool>,
    /// How many employers may be in the provider's hands at a time [default: 5].
    #[arg(long, value_name = "NUMBER")]
    pub max_concurrent_reconciles: Option<usize>,
    /// How long one answer of the provider may take [default: 5s].
    #[arg(long, value_name = "DURATION")]
    pub timeout: Option<Period>,
    /// How often the provider is looked at although nothing changed [default: 60s, haproxy 5s].
    #[arg(long, value_name = "DURATION")]
    pub resync: Option<Period>,
    /// What protection finalizers are made of: the employer's name, or its key (kind, group, namespace, name).
    #[arg(long, value_enum, value_name = "RULE")]
    pub finalizer_rule: Option<RuleWord>,
}

impl AdapterFlags {
    /// What they say instead of the adapter.
    pub fn overrides(&self) -> Overrides {
        Overrides {
            follow_pod_ops_lifecycle: self.follow_pod_ops_lifecycle,
            need_record_employees: self.need_record_employees,
            max_concurrent_reconciles: self.max_concurrent_reconciles.map(|most| most.max(1)),
            timeout: self.timeout.map(Period::length),
            resync: self.resync.map(|resync| resync.length().max(Duration::from_secs(1))),
            finalizer: self.finalizer_rule.map(|rule| match rule {
                RuleWord::Auto | RuleWord::Name => FinalizerRule::Name,
                RuleWord::Key => FinalizerRule::Key,
            }),
        }
    }
}

/// What protection finalizers are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RuleWord {
    /// As name.
    Auto,
    /// The employer's name, as the document says.
    Name,
    /// Kind, group, namespace and name.
    Key,
}

impl RuleWord {
    /// The word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Name => "name",
            Self::Key => "key",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Admission {
    /// By a mutating webhook.
    Webhook,
    /// Not at creation.
    None,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Format {
    /// One JSON object per line.
    Json,
    /// Text for people.
    Text,
}

impl ProcessFlags {
    /// What the names of webhook configurations begin with.
    pub fn webhook_config_name(&self) -> &str {
        &self.webhook_config_name
    }

    /// The settings of the process. Sets up the log on the way.
    ///
    /// # Errors
    /// The flags do not fit together.
    pub fn settings(self, commit: Option<String>) -> Result<Settings, String> {
        let format = match self.log_format {
            Format::Json => LogFormat::Json,
            Format::Text => LogFormat::Text,
        };
        let durations = [self.lease_duration, self.renew_deadline, self.retry_period].map(Duration::from);
        let timing =
            Timing::new(durations[0], durations[1], durations[2]).map_err(|error| error.to_string())?;
        let webhooks = self.webhooks()?;
        logging::init(format, &self.log_level, None).map_err(|error| error.to_string())?;
        Ok(Settings {
            kubeconfig: self.kubeconfig,
            context: self.context,
            leader_election: self.leader_elect.then_some(LeaderElection {
                name: self.lease_name,
                namespace: self.lease_namespace,
                identity: self.identity,
                timing,
            }),
            metrics_address: self.metrics_bind_address,
            health_address: self.health_probe_bind_address,
            watch_namespaces: self.watch_namespaces,
            doors: Doors::default(),
            tenant_role: String::new(),
            concurrency: std::num::NonZeroUsize::MIN,
            default_service_account: "default".to_owned(),
            allow_system_namespaces: false,
            allow_loopback_clusters: false,
            sources: crate::settings::SourceSettings::default(),
            probes: ProbeSettings {
                egress: Egress::default(),
                cluster_domain: self.cluster_domain,
                ..ProbeSettings::default()
            },
            boot_namespaces: serde_json::json!({}),
            webhooks,
            commit,
        })
    }

    fn webhooks(&self) -> Result<Option<WebhookSettings>, String> {
        let reached = match (&self.webhook_service, &self.webhook_url) {
            (Some(_), Some(_)) => return Err("give one of --webhook-service and --webhook-url".to_owned()),
            (Some(service), None) => {
                Some(Reached::service(service).map_err(|error| format!("--webhook-service: {error}"))?)
            }
            (None, Some(url)) => Some(url.parse().map_err(|error| format!("--webhook-url: {error}"))?),
            (None, None) => None,
        };
        let reached = match (self.webhook_bind_address, reached) {
            (BindAddress::Off, None) => return Ok(None),
            (BindAddress::Off, Some(_)) => {
                return Err("--webhook-service and --webhook-url need --webhook-bind-address".to_owned());
            }
            (_, None) => {
                return Err("--webhook-bind-address needs --webhook-service or --webhook-url".to_owned());
            }
            (_, Some(reached)) => reached,
        };
        Ok(Some(WebhookSettings {
            address: self.webhook_bind_address,
            reached,
            config_name: self.webhook_config_name.clone(),
            cert_dir: self.webhook_cert_dir.clone(),
            namespaces: serde_json::json!({}),
            wait_image: String::new(),
            boot_after: None,
        }))
    }
}
