//! How adapters are chosen: a name, and what is said of it by flags or in a `ConsistConfig`.
//!
//! [`AdapterConfig`] is one entry of `adapters` in that file, and what the flags of `consist enable` become; both have the
//! same names. [`open`] makes the adapter of it. What makes no sense is [`AdapterConfigError::Wrong`], before anything is asked; an
//! out-of-process adapter that does not answer yet is [`AdapterConfigError::NotYet`], and opening it can be tried again.

use std::{future::Future, path::PathBuf, pin::Pin, sync::Arc, time::Duration};

use linchpin_consist::{AdapterKinds, AdapterOptions, FinalizerRule, Port, Trouble, port};
use linchpin_words::{duration::Period, limits, text::quote};
use serde::Deserialize;
use serde_json::Value;

use crate::{
    alibabacloudslb::AlibabaCloudSlb,
    client::{Access, ProviderClient},
    contract::ContractAdapter,
    haproxy::{Address, Haproxy, HaproxyConfig},
    remote::{Remote, kind_of, pointer},
};

/// The built-in adapters, each with what it is for.
pub const NAMES: [(&str, &str); 5] = [
    ("demo", "the document's demo, for any provider of the provider contract (--provider)"),
    ("http", "employers and employees of any kind, for any provider of the provider contract (--provider)"),
    ("remote", "an adapter of your own, in another process and any language (--adapter-url)"),
    ("haproxy", "HAProxy, through its runtime API (--haproxy)"),
    ("alibabacloudslb", "Alibaba Cloud SLB, observed (ALIYUN_SLB_AK_KEY, ALIYUN_SLB_AK_SECRET)"),
];

/// One adapter, as it is configured. What is not said has the adapter's own default.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct AdapterConfig {
    /// What `linchpin.dev/adapter` and `spec.adapter` say; the adapter's own name where it is empty.
    pub name: String,
    /// Which of [`NAMES`].
    pub adapter: String,
    /// demo, http: where the provider is.
    pub provider: Option<String>,
    /// http: the kind of employers, `v1/Service`.
    pub employer: Option<String>,
    /// http: the kind of employees, `v1/Pod`.
    pub employee: Option<String>,
    /// http: where an employer's selector is, `.spec.selector`.
    pub selector_path: Option<String>,
    /// remote: where the adapter is.
    pub adapter_url: Option<String>,
    /// demo, http, remote: the file with the bearer token.
    pub token_file: Option<PathBuf>,
    /// demo, http, remote: the file with the certificates to believe.
    pub ca_file: Option<PathBuf>,
    /// demo, http, remote: whether plain text may leave this machine.
    pub allow_insecure_provider: bool,
    /// Whether pods are marked and held.
    pub follow_pod_ops_lifecycle: Option<bool>,
    /// Whether the names of marked pods are written on the employer.
    pub need_record_employees: Option<bool>,
    /// How many employers may be in the provider's hands at a time.
    pub max_concurrent_reconciles: Option<usize>,
    /// How long one answer may take.
    pub timeout: Option<Period>,
    /// How often the provider is looked at although nothing changed.
    pub resync: Option<Period>,
    /// `auto`, `name` or `key`.
    pub finalizer_rule: Option<String>,
    /// haproxy: its instances, `unix:/path` or `tcp://host:port`.
    #[serde(deserialize_with = "one_or_many")]
    pub haproxy: Vec<String>,
    /// haproxy: how long a server takes to its full weight.
    pub haproxy_ramp: Option<Period>,
    /// haproxy: how long sessions may last once their server drains.
    pub haproxy_drain_timeout: Option<Period>,
}

/// Whether a text can be the value of a label.
fn is_label_value(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let ends = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    bytes.len() <= limits::LABEL
        && bytes.iter().copied().all(inner)
        && ends(bytes.first())
        && ends(bytes.last())
}

/// A list, or a text with commas as the flag has it.
fn one_or_many<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum OneOrMany {
        One(String),
        Many(Vec<String>),
    }
    Ok(match OneOrMany::deserialize(from)? {
        OneOrMany::One(text) => text.split(',').map(|part| part.trim().to_owned()).collect(),
        OneOrMany::Many(list) => list,
    })
}

/// Why an adapter cannot be opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AdapterConfigError {
    /// What is asked makes no sense.
    #[error("{0}")]
    Wrong(String),
    /// The adapter is elsewhere and does not answer yet.
    #[error("{0}")]
    NotYet(Trouble),
}

/// An adapter that can be served.
pub struct Opened {
    /// What `linchpin.dev/adapter` and `spec.adapter` say.
    pub name: String,
    /// The adapter.
    pub port: Arc<dyn Port>,
    /// Comes to an end when the adapter has become another one, so that the process must begin anew.
    pub until_changed: Pin<Box<dyn Future<Output = Trouble> + Send>>,
}

impl AdapterConfig {
    fn wrong(&self, why: impl std::fmt::Display) -> AdapterConfigError {
        AdapterConfigError::Wrong(format!("adapter {}: {why}", self.adapter))
    }

    /// Refuses what another adapter would need and this one ignores.
    fn check(&self) -> Result<(), AdapterConfigError> {
        if !NAMES.iter().any(|(name, _)| *name == self.adapter) {
            let names: Vec<&str> = NAMES.iter().map(|(name, _)| *name).collect();
            let why = format!("there is no adapter {}; there are {}", quote(&self.adapter), names.join(", "));
            return Err(AdapterConfigError::Wrong(why));
        }
        if !self.name.is_empty() && !is_label_value(&self.name) {
            let why = "is no value of the label linchpin.dev/adapter: letters, digits and -_. between them, at most 63";
            return Err(self.wrong(format!("its name {} {why}", quote(&self.name))));
        }
        self.stray(&[&self.adapter]).map_or(Ok(()), |why| Err(self.wrong(why)))
    }

    /// What is said here that none of these adapters takes, in words; none where each is for one of them.
    pub fn stray(&self, enabled: &[&str]) -> Option<String> {
        let contract = ["demo", "http"];
        let asks = ["demo", "http", "remote"];
        let said: [(&str, bool, &[&str]); 11] = [
            ("provider", self.provider.is_some(), &contract),
            ("employer", self.employer.is_some(), &["http"]),
            ("employee", self.employee.is_some(), &["http"]),
            ("selectorPath", self.selector_path.is_some(), &["http"]),
            ("adapterUrl", self.adapter_url.is_some(), &["remote"]),
            ("tokenFile", self.token_file.is_some(), &asks),
            ("caFile", self.ca_file.is_some(), &asks),
            ("allowInsecureProvider", self.allow_insecure_provider, &asks),
            ("haproxy", !self.haproxy.is_empty(), &["haproxy"]),
            ("haproxyRamp", self.haproxy_ramp.is_some(), &["haproxy"]),
            ("haproxyDrainTimeout", self.haproxy_drain_timeout.is_some(), &["haproxy"]),
        ];
        let strays = |adapters: &[&str]| !enabled.iter().any(|adapter| adapters.contains(adapter));
        let (what, _, adapters) = said.iter().find(|(_, said, adapters)| *said && strays(adapters))?;
        Some(format!("{what} is for {} alone", adapters.join(", ")))
    }

    /// The adapter's options with what is said here.
    fn options(&self, usual: AdapterOptions) -> Result<AdapterOptions, AdapterConfigError> {
        let finalizer = match self.finalizer_rule.as_deref() {
            None | Some("auto" | "name") => FinalizerRule::Name,
            Some("key") => FinalizerRule::Key,
            Some(other) => {
                return Err(self.wrong(format!("finalizerRule {} is none of auto, name, key", quote(other))));
            }
        };
        let most = self.max_concurrent_reconciles.unwrap_or(usual.max_concurrent_reconciles);
        if !(1..=1000).contains(&most) {
            return Err(self.wrong("maxConcurrentReconciles must be 1 to 1000"));
        }
        let length = |what: &str, said: Option<Period>, usual: Duration, least: Duration| match said {
            Some(said) if said.length() < least => {
                Err(self.wrong(format!("{what} must be at least {least:?}")))
            }
            Some(said) => Ok(said.length()),
            None => Ok(usual),
        };
        Ok(AdapterOptions {
            finalizer,
            max_concurrent_reconciles: most,
            follow_pod_ops_lifecycle: self.follow_pod_ops_lifecycle.unwrap_or(usual.follow_pod_ops_lifecycle),
            need_record_employees: self.need_record_employees.unwrap_or(usual.need_record_employees),
            timeout: length("timeout", self.timeout, usual.timeout, Duration::from_millis(100))?,
            resync: length("resync", self.resync, usual.resync, Duration::from_secs(1))?,
            ..usual
        })
    }

    fn client(
        &self,
        flag: &'static str,
        url: Option<&String>,
        timeout: Duration,
    ) -> Result<ProviderClient, AdapterConfigError> {
        let url = url.ok_or_else(|| self.wrong(format!("{flag} must say where it is")))?;
        ProviderClient::new(flag, self.access(url.clone(), timeout)).map_err(|trouble| self.wrong(trouble))
    }

    fn access(&self, url: String, timeout: Duration) -> Access {
        Access {
            url,
            token_file: self.token_file.clone(),
            ca_file: self.ca_file.clone(),
            timeout,
            allow_insecure: self.allow_insecure_provider,
        }
    }

    fn kinds(&self) -> Result<AdapterKinds, AdapterConfigError> {
        let usual = AdapterKinds::default();
        let kind = |said: &Option<String>, usual| match said {
            Some(text) => kind_of(text).map_err(|why| self.wrong(why)),
            None => Ok(usual),
        };
        Ok(AdapterKinds {
            employer: kind(&self.employer, usual.employer)?,
            employee: kind(&self.employee, usual.employee)?,
        })
    }

    fn contract(&self) -> Result<ContractAdapter, AdapterConfigError> {
        let options = self.options(AdapterOptions::default())?;
        let path = self.selector_path.as_deref().unwrap_or(".spec.selector");
        Ok(ContractAdapter {
            controller_name: if self.adapter == "demo" { "demo-controller" } else { "http-controller" },
            kinds: self.kinds()?,
            selector: pointer(path).map_err(|why| self.wrong(why))?,
            client: self.client("--provider", self.provider.as_ref(), options.timeout)?,
            options,
        })
    }

    fn haproxy(&self) -> Result<Haproxy, AdapterConfigError> {
        if self.haproxy.is_empty() {
            return Err(self.wrong("--haproxy must say where it listens for commands"));
        }
        let instances: Result<Vec<Address>, String> = self.haproxy.iter().map(|text| text.parse()).collect();
        let length = |said: Option<Period>, usual: Duration| said.map_or(usual, Period::length);
        // A reload forgets servers that were added, and reports it to nobody.
        let options =
            self.options(AdapterOptions { resync: Duration::from_secs(5), ..AdapterOptions::default() })?;
        Ok(Haproxy::new(HaproxyConfig {
            instances: instances.map_err(|why| self.wrong(format!("--haproxy: {why}")))?,
            timeout: options.timeout,
            ramp: length(self.haproxy_ramp, Duration::ZERO),
            drain_timeout: length(self.haproxy_drain_timeout, Duration::from_mins(5)),
            options,
        }))
    }

    /// An adapter of this process.
    fn built_in(&self) -> Result<Arc<dyn Port>, AdapterConfigError> {
        Ok(match self.adapter.as_str() {
            "haproxy" => port::<_, Value, Value>(self.haproxy()?),
            "alibabacloudslb" => {
                let options = self.options(AlibabaCloudSlb::usual_options())?;
                let access = self.access(String::new(), options.timeout);
                let adapter = AlibabaCloudSlb::new(|name| std::env::var(name).ok(), access, options);
                port::<_, Value, Value>(adapter.map_err(|trouble| self.wrong(trouble))?)
            }
            _ => port::<_, Value, Value>(self.contract()?),
        })
    }

    /// The connection to an adapter that is elsewhere, and the options as far as they are known here.
    fn remote_client(&self) -> Result<(Arc<ProviderClient>, AdapterOptions), AdapterConfigError> {
        let options = self.options(AdapterOptions::default())?;
        let client = self.client("--adapter-url", self.adapter_url.as_ref(), options.timeout)?;
        Ok((Arc::new(client), options))
    }

    async fn remote(&self) -> Result<Remote, AdapterConfigError> {
        let (client, options) = self.remote_client()?;
        let said = Remote::describe(&client).await.map_err(AdapterConfigError::NotYet)?;
        let usual = AdapterOptions {
            follow_pod_ops_lifecycle: said.follow_pod_ops_lifecycle.unwrap_or(true),
            need_record_employees: said.need_record_employees.unwrap_or(false),
            max_concurrent_reconciles: said
                .max_concurrent_reconciles
                .unwrap_or(options.max_concurrent_reconciles),
            ..AdapterOptions::default()
        };
        Ok(Remote::new(client, said, self.options(usual)?))
    }
}

/// Refuses what makes no sense, and asks nobody.
pub fn verify(config: &AdapterConfig) -> Result<(), AdapterConfigError> {
    config.check()?;
    match config.adapter.as_str() {
        "remote" => config.remote_client().map(drop),
        _ => config.built_in().map(drop),
    }
}

/// Makes the adapter that is configured. A remote one is asked what it is.
pub async fn open(config: &AdapterConfig) -> Result<Opened, AdapterConfigError> {
    config.check()?;
    let name = if config.name.is_empty() { config.adapter.clone() } else { config.name.clone() };
    let (port, until_changed): (_, Pin<Box<dyn Future<Output = Trouble> + Send>>) =
        match config.adapter.as_str() {
            "remote" => {
                let remote = config.remote().await?;
                let changed = Box::pin(remote.clone().until_changed());
                (port::<_, Value, Value>(remote), changed)
            }
            _ => (config.built_in()?, Box::pin(std::future::pending())),
        };
    Ok(Opened { name, port, until_changed })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn config(value: Value) -> AdapterConfig {
        serde_json::from_value(value).unwrap()
    }

    async fn refused(value: Value) -> String {
        match open(&config(value)).await {
            Ok(_) => panic!("it was opened"),
            Err(AdapterConfigError::Wrong(why)) => why,
            Err(AdapterConfigError::NotYet(trouble)) => panic!("{trouble}"),
        }
    }

    #[tokio::test]
    async fn every_adapter_can_be_opened_by_its_name_and_has_the_documents_defaults() {
        for (config, controller) in [
            (json!({"adapter": "demo", "provider": "http://127.0.0.1:9900"}), "demo-controller"),
            (json!({"adapter": "http", "provider": "https://provider.example"}), "http-controller"),
            (json!({"adapter": "haproxy", "haproxy": "unix:/a,tcp://h:1"}), "haproxy-controller"),
            (json!({"adapter": "alibabacloudslb"}), "alibaba-cloud-slb-controller"),
        ] {
            let opened = open(&self::config(config.clone())).await.unwrap();
            assert_eq!(opened.port.controller_name(), controller);
            assert_eq!(opened.name, config["adapter"].as_str().unwrap());
            let options = opened.port.options();
            assert_eq!((options.max_concurrent_reconciles, options.follow_pod_ops_lifecycle), (5, true));
            assert_eq!(options.need_record_employees, controller == "alibaba-cloud-slb-controller");
            let resync = if controller == "haproxy-controller" { 5 } else { 60 };
            assert_eq!(options.resync, Duration::from_secs(resync));
        }
    }

    #[tokio::test]
    async fn what_is_said_counts() {
        let opened = open(&config(json!({"name": "edge", "adapter": "http", "provider": "http://localhost:1",
            "employer": "example.com/v1/Gateway", "employee": "v1/ConfigMap", "selectorPath": ".spec.backends",
            "followPodOpsLifecycle": false, "needRecordEmployees": true, "maxConcurrentReconciles": 2, "timeout": "1s",
            "resync": "10s", "finalizerRule": "key"})))
        .await
        .unwrap();
        let options = opened.port.options();
        assert_eq!(opened.name, "edge");
        assert_eq!((options.follow_pod_ops_lifecycle, options.need_record_employees), (false, true));
        assert_eq!((options.max_concurrent_reconciles, options.finalizer), (2, FinalizerRule::Key));
        assert_eq!((options.timeout, options.resync), (Duration::from_secs(1), Duration::from_secs(10)));
        assert_eq!(opened.port.kinds().employer.kind, "Gateway");
        let selects = opened.port.employs(&json!({"spec": {"backends": {"a": "b"}}}));
        assert!(selects.selects("x", &[("a".to_owned(), "b".to_owned())].into()));
    }

    #[test]
    fn of_several_adapters_each_takes_what_is_for_it_and_what_is_for_none_is_named() {
        let said = config(json!({"provider": "http://localhost:1", "haproxyRamp": "1s"}));
        assert_eq!(said.stray(&["demo", "haproxy"]), None);
        assert_eq!(said.stray(&["demo", "http"]).as_deref(), Some("haproxyRamp is for haproxy alone"));
        assert_eq!(said.stray(&["haproxy"]).as_deref(), Some("provider is for demo, http alone"));
    }

    #[test]
    fn names_are_values_of_labels() {
        for (name, fits) in [
            ("edge", true),
            ("Edge_1.b-2", true),
            ("a b", false),
            ("a/b", false),
            ("-a", false),
            ("a.", false),
            ("\u{e9}", false),
        ] {
            assert_eq!(is_label_value(name), fits, "{name}");
        }
        assert!(is_label_value(&"n".repeat(63)) && !is_label_value(&"n".repeat(64)));
    }

    #[tokio::test]
    async fn what_makes_no_sense_is_refused_with_a_reason() {
        for (config, why) in [
            (json!({"adapter": "nope"}), "there are demo, http, remote, haproxy, alibabacloudslb"),
            (json!({"adapter": "demo"}), "--provider must say"),
            (
                json!({"adapter": "demo", "provider": "http://localhost:1", "name": "the edge"}),
                "its name \"the edge\" is no value of the label linchpin.dev/adapter",
            ),
            (json!({"adapter": "remote"}), "--adapter-url must say"),
            (json!({"adapter": "haproxy"}), "--haproxy must say"),
            (
                json!({"adapter": "http", "provider": "http://localhost:1", "employer": "v1/Namespace"}),
                "Namespace has no namespaces: employers and employees must",
            ),
            (json!({"adapter": "remote"}), "--adapter-url must say"),
            (json!({"adapter": "remote", "adapterUrl": "nonsense"}), "nonsense"),
            (
                json!({"adapter": "remote", "adapterUrl": "http://localhost:1", "resync": "1ms"}),
                "resync must be at least 1s",
            ),
            (json!({"adapter": "remote", "adapterUrl": "http://a.example"}), "--allow-insecure-provider"),
            (json!({"adapter": "haproxy", "haproxy": ["nope"]}), "unix:/path"),
            (json!({"adapter": "demo", "provider": "http://p.example"}), "--allow-insecure-provider"),
            (
                json!({"adapter": "demo", "provider": "http://localhost:1", "employer": "v1/Service"}),
                "employer is for http",
            ),
            (
                json!({"adapter": "haproxy", "haproxy": "unix:/a", "tokenFile": "t"}),
                "tokenFile is for demo, http, remote",
            ),
            (
                json!({"adapter": "http", "provider": "http://localhost:1", "employer": "Service"}),
                "v1/Service",
            ),
            (
                json!({"adapter": "http", "provider": "http://localhost:1", "selectorPath": "a b"}),
                ".spec.selector",
            ),
            (
                json!({"adapter": "demo", "provider": "http://localhost:1", "finalizerRule": "x"}),
                "auto, name, key",
            ),
            (
                json!({"adapter": "demo", "provider": "http://localhost:1", "maxConcurrentReconciles": 0}),
                "1 to 1000",
            ),
            (json!({"adapter": "demo", "provider": "http://localhost:1", "resync": "1ms"}), "resync"),
        ] {
            let message = refused(config.clone()).await;
            assert!(message.contains(why), "{config}: {message}");
            let verified = verify(&self::config(config)).map_err(|wrong| wrong.to_string());
            assert_eq!(verified, Err(message), "asking nobody gives the same answer");
        }
        assert!(serde_json::from_value::<AdapterConfig>(json!({"adapter": "demo", "unknown": 1})).is_err());
    }
}
