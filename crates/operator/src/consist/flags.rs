//! The flags that every consist process has, whatever adapter it serves.
//!
//! `linchpin consist enable` adds those that choose a built-in adapter; [`super::enable`] takes these alone.

use std::time::Duration;

use clap::{ArgAction, Args, ValueEnum};
use linchpin_consist::FinalizerRule;
use linchpin_words::Period;
use serde::Deserialize;

use super::{Engine, Lifecycle, Overrides};
use crate::{
    flags::{ProcessFlags, WebhookFlags},
    settings::{ProbeSettings, Settings},
};

/// What the Lease is called, and what the names of webhook configurations begin with.
const NAME: &str = "linchpin-consist";

/// Flags of the process and of its webhooks.
#[derive(Debug, Clone, Args)]
#[command(
    mut_arg("leader_elect", |arg| arg.help("Let one of several processes lead; false: act alone")),
    mut_arg("lease_name", |arg| arg.default_value(NAME)),
    mut_arg("watch_namespaces", |arg| {
        arg.help("The namespaces whose employers are served, separated by commas [default: all]")
    }),
    mut_arg("webhook_bind_address", |arg| {
        arg.help("Where webhooks are served; 0: nowhere, and then neither admission nor deletion is looked at")
    }),
    mut_arg("webhook_service", |arg| arg.help("The Service through which the API server reaches them")),
    mut_arg("webhook_url", |arg| arg.help("The URL at which the API server reaches them")),
    mut_arg("webhook_config_name", |arg| arg.default_value(NAME))
)]
pub struct ConsistFlags {
    #[command(flatten)]
    process: ProcessFlags,
    /// The domain of Services [default: that of /etc/resolv.conf, else cluster.local].
    #[arg(long, env = "LINCHPIN_CLUSTER_DOMAIN", value_name = "DOMAIN")]
    cluster_domain: Option<String>,
    #[command(flatten)]
    webhooks: WebhookFlags,
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
    /// What protection finalizers are made of: the employer's name, or its key (kind, group, namespace, name)
    /// [default: auto].
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

impl ConsistFlags {
    /// What the names of webhook configurations begin with.
    pub fn webhook_config_name(&self) -> &str {
        self.webhooks.config_name()
    }

    /// The settings of the process. Sets up the log on the way.
    ///
    /// # Errors
    /// The flags do not fit together.
    pub fn settings(self, commit: Option<String>) -> Result<Settings, String> {
        let webhooks = self.webhooks.settings()?;
        let probes = ProbeSettings { cluster_domain: self.cluster_domain, ..ProbeSettings::default() };
        Ok(Settings { probes, webhooks, ..self.process.settings(commit)? })
    }
}
