//! `linchpin consist enable` and `disable`: flags or a file turned into adapters, and the process started.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use anyhow::Result;
use clap::Args;
use futures::future::BoxFuture;
use linchpin_adapters::{AdapterConfig, AdapterConfigError, NAMES, open, verify};
use linchpin_operator::{
    consist::{
        self, Consist, ConsistMode, Enabled, Lifecycle, Opening, Overrides, Waiting,
        flags::{AdapterFlags, ConsistFlags, LifecycleFlags},
    },
    run,
    settings::BindAddress,
};
use serde::Deserialize;

use crate::{cli::UsageError, operator::install_tls, version};

/// The pause between two attempts to reach an adapter that is elsewhere.
const AGAIN: Duration = Duration::from_secs(2);

/// Run adapters: pods leave traffic before anything happens to them, and come back after.
#[derive(Debug, Args)]
pub(super) struct EnableCommand {
    #[command(flatten)]
    chosen: ChosenAdapters,
    #[command(flatten)]
    lifecycle: LifecycleFlags,
    #[command(flatten)]
    process: ConsistFlags,
}

/// Take everything off again that adapters left: in the provider, on pods, on employers. Stop the process first.
#[derive(Debug, Args)]
pub(super) struct DisableCommand {
    #[command(flatten)]
    chosen: ChosenAdapters,
    /// Only employers of this namespace.
    #[arg(short, long, conflicts_with = "all_namespaces")]
    namespace: Option<String>,
    /// Employers of all namespaces; what is meant where no namespace is given.
    #[arg(short = 'A', long)]
    all_namespaces: bool,
    /// Take the marks off without the provider; what it still has is left there.
    #[arg(long)]
    without_provider: bool,
    /// Scale this Deployment to none first: it runs the processes that served until now.
    #[arg(long, value_name = "NAMESPACE/NAME")]
    scale_down: Option<String>,
    #[command(flatten)]
    lifecycle: LifecycleFlags,
    #[command(flatten)]
    process: ConsistFlags,
}

/// Which adapters, and where their providers are.
#[derive(Debug, Args)]
struct ChosenAdapters {
    /// The adapters: demo, http, remote, haproxy, alibabacloudslb.
    #[arg(value_name = "ADAPTER")]
    adapters: Vec<String>,
    /// demo, http: the provider.
    #[arg(long, value_name = "URL")]
    provider: Option<String>,
    /// http: the kind of employers [default: v1/Service].
    #[arg(long, value_name = "VERSION/KIND")]
    employer: Option<String>,
    /// http: the kind of employees [default: v1/Pod].
    #[arg(long, value_name = "VERSION/KIND")]
    employee: Option<String>,
    /// http: where an employer's selector is [default: .spec.selector].
    #[arg(long, value_name = "PATH")]
    selector_path: Option<String>,
    /// remote: the adapter.
    #[arg(long, value_name = "URL")]
    adapter_url: Option<String>,
    /// demo, http, remote: a file with a bearer token, read again when it changes.
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// demo, http, remote: a file with the certificates to believe, read again when it changes.
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,
    /// demo, http, remote: let plain http:// leave this machine.
    #[arg(long)]
    allow_insecure_provider: bool,
    /// haproxy: its runtime API, `unix:/path` or `tcp://host:port`; several with commas.
    #[arg(long, value_name = "ADDRESS,...", value_delimiter = ',')]
    haproxy: Vec<String>,
    /// haproxy: how long a server takes to its full weight [default: 0s].
    #[arg(long, value_name = "DURATION")]
    haproxy_ramp: Option<linchpin_words::Period>,
    /// haproxy: how long sessions may last once their server drains [default: 5m].
    #[arg(long, value_name = "DURATION")]
    haproxy_drain_timeout: Option<linchpin_words::Period>,
    #[command(flatten)]
    common: AdapterFlags,
    /// A file of kind `ConsistConfig` with lifecycle and adapters, instead of flags.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// The file of `--config`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ConsistConfig {
    #[serde(default, rename = "apiVersion")]
    _api_version: Option<String>,
    kind: String,
    #[serde(default)]
    lifecycle: LifecycleFlags,
    adapters: Vec<AdapterConfig>,
}

impl ChosenAdapters {
    /// The adapters, and what is said of the lifecycle.
    fn read(self, lifecycle: &LifecycleFlags) -> Result<(Vec<AdapterConfig>, Lifecycle), UsageError> {
        let Some(file) = self.config.clone() else {
            let configs = self.configs()?;
            return Ok((configs, lifecycle.lifecycle()));
        };
        if *lifecycle != LifecycleFlags::default() || self.says_something() {
            return Err(UsageError(
                "--config says everything about adapters and lifecycle: give no such flags beside it"
                    .to_owned(),
            ));
        }
        let config = read_config(&file)?;
        Ok((config.adapters, config.lifecycle.lifecycle()))
    }

    fn says_something(&self) -> bool {
        let texts = [&self.provider, &self.employer, &self.employee, &self.selector_path, &self.adapter_url];
        !self.adapters.is_empty()
            || texts.iter().any(|text| text.is_some())
            || self.token_file.is_some()
            || self.ca_file.is_some()
            || self.allow_insecure_provider
            || !self.haproxy.is_empty()
            || self.haproxy_ramp.is_some()
            || self.haproxy_drain_timeout.is_some()
            || self.common != AdapterFlags::default()
    }

    fn configs(&self) -> Result<Vec<AdapterConfig>, UsageError> {
        if self.adapters.is_empty() {
            return Err(UsageError(format!("name at least one adapter: {}", names())));
        }
        for name in &self.adapters {
            if !NAMES.iter().any(|(known, _)| known == name) {
                return Err(UsageError(format!("there is no adapter {name:?}; there are {}", names())));
            }
        }
        let mut seen = std::collections::BTreeSet::new();
        if let Some(twice) = self.adapters.iter().find(|name| !seen.insert(*name)) {
            return Err(UsageError(format!("{twice} is named twice: --config can enable one adapter twice")));
        }
        let names: Vec<&str> = self.adapters.iter().map(String::as_str).collect();
        if let Some(why) = self.config("", true).stray(&names) {
            return Err(UsageError(format!("adapters {}: {why}", names.join(", "))));
        }
        Ok(names.into_iter().map(|name| self.config(name, false)).collect())
    }

    /// One adapter, with the flags that are for it, or with all of them.
    fn config(&self, adapter: &str, all: bool) -> AdapterConfig {
        let fits = |adapters: &[&str]| all || adapters.contains(&adapter);
        let (contract, http) = (fits(&["demo", "http"]), fits(&["http"]));
        let (asks, remote, haproxy) =
            (fits(&["demo", "http", "remote"]), fits(&["remote"]), fits(&["haproxy"]));
        AdapterConfig {
            name: String::new(),
            adapter: adapter.to_owned(),
            provider: self.provider.clone().filter(|_| contract),
            employer: self.employer.clone().filter(|_| http),
            employee: self.employee.clone().filter(|_| http),
            selector_path: self.selector_path.clone().filter(|_| http),
            adapter_url: self.adapter_url.clone().filter(|_| remote),
            token_file: self.token_file.clone().filter(|_| asks),
            ca_file: self.ca_file.clone().filter(|_| asks),
            allow_insecure_provider: self.allow_insecure_provider && asks,
            follow_pod_ops_lifecycle: self.common.follow_pod_ops_lifecycle,
            need_record_employees: self.common.need_record_employees,
            max_concurrent_reconciles: self.common.max_concurrent_reconciles,
            timeout: self.common.timeout,
            resync: self.common.resync,
            finalizer_rule: self.common.finalizer_rule.map(|rule| rule.word().to_owned()),
            haproxy: if haproxy { self.haproxy.clone() } else { Vec::new() },
            haproxy_ramp: self.haproxy_ramp.filter(|_| haproxy),
            haproxy_drain_timeout: self.haproxy_drain_timeout.filter(|_| haproxy),
        }
    }
}

fn names() -> String {
    NAMES.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

fn read_config(file: &Path) -> Result<ConsistConfig, UsageError> {
    let shown = file.display();
    let text =
        std::fs::read_to_string(file).map_err(|error| UsageError(format!("--config {shown}: {error}")))?;
    let config: ConsistConfig = serde_saphyr::from_str(&text).map_err(|error| {
        UsageError(format!("--config {shown} cannot be read: {}", first_line(&error.to_string())))
    })?;
    if config.kind != "ConsistConfig" {
        return Err(UsageError(format!("--config {shown} is of kind {:?}, not ConsistConfig", config.kind)));
    }
    if config.adapters.is_empty() {
        return Err(UsageError(format!("--config {shown} names no adapter; there are {}", names())));
    }
    let called =
        |one: &AdapterConfig| if one.name.is_empty() { one.adapter.clone() } else { one.name.clone() };
    let mut seen = std::collections::BTreeSet::new();
    for adapter in &config.adapters {
        if !NAMES.iter().any(|(known, _)| *known == adapter.adapter) {
            return Err(UsageError(format!(
                "there is no adapter {:?}; there are {}",
                adapter.adapter,
                names()
            )));
        }
        if !seen.insert(called(adapter)) {
            return Err(UsageError(format!("--config {shown}: two adapters are called {}", called(adapter))));
        }
    }
    Ok(config)
}

/// What is wrong and where, without the picture of it: a failure is one line.
fn first_line(error: &str) -> &str {
    let line = error.lines().next().unwrap_or_default();
    line.strip_prefix("error: ").unwrap_or(line)
}

/// Opens an adapter, waiting for one that is elsewhere and does not answer yet.
fn opening(config: AdapterConfig) -> Opening {
    let name = if config.name.is_empty() { config.adapter.clone() } else { config.name.clone() };
    let open = move |waiting: Waiting| -> BoxFuture<'static, Result<Enabled, String>> {
        Box::pin(async move {
            let opened = loop {
                match open(&config).await {
                    Ok(opened) => break opened,
                    Err(AdapterConfigError::Wrong(why)) => return Err(why),
                    Err(AdapterConfigError::NotYet(trouble)) => {
                        waiting.say(format!("it does not answer yet: {trouble}"));
                        tokio::time::sleep(AGAIN).await;
                    }
                }
            };
            Ok(Enabled {
                name: opened.name,
                port: opened.port,
                overrides: Overrides::default(),
                until_changed: Some(opened.until_changed),
            })
        })
    };
    Opening { name, open: Box::new(open) }
}

/// Refuses before anything starts what makes no sense: exit 2, with the reason.
fn check(configs: &[AdapterConfig]) -> Result<(), UsageError> {
    configs.iter().try_for_each(|config| verify(config).map_err(|wrong| UsageError(wrong.to_string())))
}

/// Runs the process until it is asked to stop.
pub(super) fn enable(command: EnableCommand) -> Result<Result<ExitCode, UsageError>> {
    let (configs, lifecycle) = match command.chosen.read(&command.lifecycle) {
        Ok(read) => read,
        Err(usage) => return Ok(Err(usage)),
    };
    if let Err(usage) = check(&configs) {
        return Ok(Err(usage));
    }
    let settings = match command.process.settings(version::COMMIT.map(str::to_owned)) {
        Ok(settings) => settings,
        Err(reason) => return Ok(Err(UsageError(reason))),
    };
    install_tls();
    let adapters = configs.into_iter().map(opening).collect();
    let work = Consist { adapters, lifecycle, mode: ConsistMode::Serve };
    run::run(settings, move |context| consist::work(context, work))?;
    Ok(Ok(ExitCode::SUCCESS))
}

/// `shop/linchpin-consist`.
fn deployment(text: &str) -> Result<(String, String), UsageError> {
    match text.split_once('/') {
        Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() && !name.contains('/') => {
            Ok((namespace.to_owned(), name.to_owned()))
        }
        _ => Err(UsageError(format!("--scale-down: {text:?} is no Deployment: write NAMESPACE/NAME"))),
    }
}

/// An adapter whose provider is not asked: nobody need say where it is, nor need a remote adapter answer.
fn unreached(config: AdapterConfig) -> AdapterConfig {
    let nowhere = || Some("http://127.0.0.1:9".to_owned());
    match config.adapter.as_str() {
        "demo" | "http" => AdapterConfig { provider: config.provider.or_else(nowhere), ..config },
        "haproxy" if config.haproxy.is_empty() => {
            AdapterConfig { haproxy: vec!["tcp://127.0.0.1:9".to_owned()], ..config }
        }
        "remote" => AdapterConfig {
            name: if config.name.is_empty() { config.adapter.clone() } else { config.name },
            adapter: "http".to_owned(),
            adapter_url: None,
            provider: nowhere(),
            ..config
        },
        _ => config,
    }
}

/// Takes everything off again, and returns.
pub(super) fn disable(command: DisableCommand) -> Result<Result<ExitCode, UsageError>> {
    let without_provider = command.without_provider;
    let (mut configs, lifecycle) = match command.chosen.read(&command.lifecycle) {
        Ok(read) => read,
        Err(usage) => return Ok(Err(usage)),
    };
    if without_provider {
        configs = configs.into_iter().map(unreached).collect();
    }
    if let Err(usage) = check(&configs) {
        return Ok(Err(usage));
    }
    let scale_down = match command.scale_down.as_deref().map(deployment).transpose() {
        Ok(named) => named,
        Err(usage) => return Ok(Err(usage)),
    };
    // They are for all namespaces: leaving one does not take them away.
    let configurations =
        command.namespace.is_none().then(|| command.process.webhook_config_name().to_owned());
    let mut settings = match command.process.settings(version::COMMIT.map(str::to_owned)) {
        Ok(settings) => settings,
        Err(reason) => return Ok(Err(UsageError(reason))),
    };
    if let Some(namespace) = command.namespace {
        match namespace.parse() {
            Ok(only) => settings.watch_namespaces = only,
            Err(error) => return Ok(Err(UsageError(format!("--namespace: {error}")))),
        }
    }
    settings.health_address = BindAddress::Off;
    settings.metrics_address = BindAddress::Off;
    install_tls();
    let mode = ConsistMode::Leave { without_provider, configurations, scale_down };
    let adapters = configs.into_iter().map(opening).collect();
    let work = Consist { adapters, lifecycle, mode };
    run::run(settings, move |context| consist::work(context, work))?;
    println!("Nothing of these adapters is left.");
    Ok(Ok(ExitCode::SUCCESS))
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        command: DisableCommand,
    }

    #[test]
    fn whoever_disables_without_the_provider_need_not_say_where_it_is() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "kind: ConsistConfig\nadapters: [{name: edge, adapter: remote}]\n")
            .unwrap();
        let config = file.path().to_str().unwrap();
        for (words, name) in [
            (vec!["demo"], "demo"),
            (vec!["http", "--employer", "example.com/v1/Gateway"], "http"),
            (vec!["haproxy"], "haproxy"),
            (vec!["remote"], "remote"),
            (vec!["remote", "--adapter-url", "http://127.0.0.1:1"], "remote"),
            (vec!["alibabacloudslb"], "alibabacloudslb"),
            (vec!["--config", config], "edge"),
        ] {
            let line = ["disable"].into_iter().chain(words.iter().copied()).chain(["--without-provider"]);
            let command = Line::try_parse_from(line).unwrap().command;
            let (configs, _) = command.chosen.read(&command.lifecycle).map_err(|usage| usage.0).unwrap();
            let [config] = configs.try_into().unwrap();
            let config = unreached(config);
            let opened = crate::operator::block_on(open(&config)).unwrap();
            assert_eq!(opened.map(|opened| opened.name).unwrap(), name, "{words:?}");
        }
    }
}
