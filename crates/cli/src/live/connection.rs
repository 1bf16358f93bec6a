//! Which cluster is looked at, and as whom: the flags that kubectl has, and the client they ask for.

use std::{path::PathBuf, time::Duration};

use anyhow::Result;
use clap::Args;
use kube::Client;
use linchpin_cluster::{
    config,
    transport::{Transport, TransportOptions},
};
use linchpin_words::{Period, duration::DurationError};

/// Which cluster, and as whom.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Connection {
    /// The cluster to look at [default: $KUBECONFIG, the pod's own cluster, or ~/.kube/config].
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// The context in the kubeconfig [default: the current one].
    #[arg(long)]
    pub(crate) context: Option<String>,
    /// Act as this user, if you may: for example system:serviceaccount:shop:web.
    #[arg(long = "as", value_name = "USER")]
    user: Option<String>,
    /// With --as: in this group; may be repeated.
    #[arg(long = "as-group", value_name = "GROUP", requires = "user")]
    groups: Vec<String>,
    /// How long one request may take; 0: as long as it takes.
    #[arg(long, value_name = "DURATION", value_parser = timeout)]
    request_timeout: Option<Period>,
}

/// A duration, or a bare number of seconds, as kubectl takes it.
fn timeout(text: &str) -> Result<Period, DurationError> {
    let bare = !text.is_empty() && text.bytes().all(|letter| letter.is_ascii_digit());
    if bare { Period::parse(&format!("{text}s")) } else { Period::parse(text) }
}

impl Connection {
    /// A client, and the namespace that is meant where none is named.
    pub(crate) async fn open(&self) -> Result<(Client, String)> {
        let mut config = config::load(self.kubeconfig.as_deref(), self.context.as_deref()).await?;
        if let Some(user) = &self.user {
            config.auth_info.impersonate = Some(user.clone());
            config.auth_info.impersonate_groups =
                Some(self.groups.clone()).filter(|groups| !groups.is_empty());
        }
        let mut options = TransportOptions::default();
        if let Some(limit) = self.request_timeout {
            // Nobody waits for a year.
            let limit =
                if limit.length().is_zero() { Duration::from_hours(24 * 365) } else { limit.length() };
            (options.watch_deadline, options.write_deadline) = (limit, limit);
            options.connect_timeout = options.connect_timeout.min(limit);
        }
        let transport = Transport::new(&config, &options)?;
        Ok((transport.watches(None), config.default_namespace))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_number_is_seconds_as_kubectl_takes_it() {
        for (text, seconds) in [("30", 30), ("0", 0), ("1m30s", 90)] {
            assert_eq!(timeout(text).unwrap().length(), Duration::from_secs(seconds), "{text}");
        }
        assert!(timeout("").is_err() && timeout("soon").is_err());
    }
}
