//! The flags that every process of ours has: its cluster, its Lease, where it is asked how it is, its log, its webhooks.
//!
//! The operator and consist flatten them among their own. What one of them calls otherwise (`mut_arg`) is with its own
//! flags; what a flag is called and which variable sets it is the same everywhere.

use std::{path::PathBuf, time::Duration};

use clap::{ArgAction, Args};
use linchpin_cluster::lease::Timing;
use linchpin_words::Period;

use crate::{
    logging::{self, LogFormat},
    settings::{BindAddress, LeaderElection, Namespaces, Settings},
    webhooks::{WebhookAddress, WebhookSettings},
};

/// Flags of the process.
#[derive(Debug, Clone, Args)]
pub struct ProcessFlags {
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
    log_format: LogFormat,
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
}

impl ProcessFlags {
    /// The settings of a process that has no other flags. Sets up the log on the way.
    ///
    /// # Errors
    /// The flags do not fit together.
    pub fn settings(self, commit: Option<String>) -> Result<Settings, String> {
        let durations = [self.lease_duration, self.renew_deadline, self.retry_period].map(Duration::from);
        let timing =
            Timing::new(durations[0], durations[1], durations[2]).map_err(|error| error.to_string())?;
        logging::init(self.log_format, &self.log_level, None).map_err(|error| error.to_string())?;
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
            commit,
            ..Settings::default()
        })
    }
}

/// Admission webhooks: off unless they have an address.
#[derive(Debug, Clone, Args)]
#[allow(clippy::struct_field_names, reason = "a flag is called as its field")]
pub struct WebhookFlags {
    /// Where webhooks are served; 0: nowhere.
    #[arg(long, env = "LINCHPIN_WEBHOOK_BIND_ADDRESS", default_value = "0", value_name = "ADDRESS")]
    webhook_bind_address: BindAddress,
    /// The Service through which the API server reaches them; the configurations are the chart's.
    #[arg(long, env = "LINCHPIN_WEBHOOK_SERVICE", value_name = "NAMESPACE/NAME")]
    webhook_service: Option<String>,
    /// The URL at which the API server reaches them; the configurations are then written by the operator.
    #[arg(long, env = "LINCHPIN_WEBHOOK_URL", value_name = "https://HOST:PORT")]
    webhook_url: Option<String>,
    /// The beginning of the names of both webhook configurations.
    #[arg(long, env = "LINCHPIN_WEBHOOK_CONFIG_NAME", default_value = "linchpin", value_name = "NAME")]
    webhook_config_name: String,
    /// A directory with tls.crt and tls.key, as cert-manager mounts it [default: certificates of our own].
    #[arg(long, env = "LINCHPIN_WEBHOOK_CERT_DIR", value_name = "DIRECTORY")]
    webhook_cert_dir: Option<PathBuf>,
}

impl WebhookFlags {
    /// What the names of webhook configurations begin with.
    pub fn config_name(&self) -> &str {
        &self.webhook_config_name
    }

    /// The settings of webhooks that hold no pod; none where they are off.
    ///
    /// # Errors
    /// The flags do not fit together.
    pub fn settings(self) -> Result<Option<WebhookSettings>, String> {
        let reached = match (&self.webhook_service, &self.webhook_url) {
            (Some(_), Some(_)) => return Err("give one of --webhook-service and --webhook-url".to_owned()),
            (Some(service), None) => Some(
                WebhookAddress::service(service).map_err(|error| format!("--webhook-service: {error}"))?,
            ),
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
            config_name: self.webhook_config_name,
            cert_dir: self.webhook_cert_dir,
            namespaces: serde_json::json!({}),
            wait_image: String::new(),
            boot_after: None,
        }))
    }
}
