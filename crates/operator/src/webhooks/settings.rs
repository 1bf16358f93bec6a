//! What a user can choose about the webhooks, parsed and checked.

use std::{path::PathBuf, str::FromStr};

use serde_json::Value;

use crate::settings::BindAddress;

/// Everything about the webhooks.
#[derive(Debug, Clone)]
pub struct WebhookSettings {
    /// Where the server listens.
    pub address: BindAddress,
    /// How the API server reaches it.
    pub reached: WebhookAddress,
    /// The beginning of the names of both configurations.
    pub config_name: String,
    /// Where the certificate is, if somebody else makes it.
    pub cert_dir: Option<PathBuf>,
    /// The namespaces whose pods and workloads may be touched: a label selector as in the API.
    pub namespaces: Value,
    /// The waiter's image.
    pub wait_image: String,
    /// Init containers that come before ours.
    pub boot_after: Option<Vec<String>>,
}

/// How the API server reaches the webhooks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WebhookAddress {
    /// Through a Service; the chart owns the configurations.
    Service {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// At a URL; the configurations are written by the operator.
    Url {
        /// The URL without a path.
        url: String,
        /// Its host.
        host: String,
    },
}

impl WebhookAddress {
    /// Reads `NAMESPACE/NAME`.
    pub fn service(text: &str) -> Result<Self, ReachedError> {
        match text.split_once('/') {
            Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() && !name.contains('/') => {
                Ok(Self::Service { namespace: namespace.to_owned(), name: name.to_owned() })
            }
            _ => Err(ReachedError::Service(text.to_owned())),
        }
    }

    /// The names that the server's certificate must have.
    pub(crate) fn names(&self, cluster_domain: &str) -> Vec<String> {
        match self {
            Self::Service { namespace, name } => {
                vec![format!("{name}.{namespace}.svc"), format!("{name}.{namespace}.svc.{cluster_domain}")]
            }
            Self::Url { host, .. } => vec![host.clone()],
        }
    }
}

impl FromStr for WebhookAddress {
    type Err = ReachedError;

    /// Reads `https://HOST:PORT`.
    fn from_str(text: &str) -> Result<Self, ReachedError> {
        let wrong = || ReachedError::Url(text.to_owned());
        let uri: http::Uri = text.parse().map_err(|_| wrong())?;
        let is_bare = uri.path_and_query().is_none_or(|path| path.as_str() == "/") && !text.ends_with('/');
        // The API server takes no URL with a user or a fragment.
        let plain = is_bare && !text.contains(['@', '#']);
        let host = uri.host().filter(|_| uri.scheme_str() == Some("https") && plain).ok_or_else(wrong)?;
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        Ok(Self::Url { url: text.to_owned(), host })
    }
}

/// A text that does not say how the webhooks are reached.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReachedError {
    /// Not a Service.
    #[error("{0:?} names no Service: write NAMESPACE/NAME")]
    Service(String),
    /// Not a URL.
    #[error("{0:?} is not how webhooks are reached: write https://HOST:PORT, without a path")]
    Url(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_is_reached_by_service_or_url() {
        assert_eq!(
            WebhookAddress::service("system/linchpin").unwrap().names("cluster.local"),
            ["linchpin.system.svc", "linchpin.system.svc.cluster.local"]
        );
        for (text, host) in [("https://127.0.0.1:9443", "127.0.0.1"), ("https://[::1]:9443", "::1")] {
            assert_eq!(text.parse::<WebhookAddress>().unwrap().names(""), [host]);
        }
        for wrong in [
            "http://a:1",
            "https://a:1/",
            "https://a:1/path",
            "https://a:1?b",
            "https://a:1#b",
            "https://u:p@a:1",
            "a:1",
            "",
            "https://",
        ] {
            assert!(wrong.parse::<WebhookAddress>().is_err(), "{wrong}");
        }
        for wrong in ["a", "/a", "a/", "a/b/c", ""] {
            assert!(WebhookAddress::service(wrong).is_err(), "{wrong}");
        }
    }
}
