//! The flags of the webhooks, and how they fit together.

use std::path::PathBuf;

use clap::Args;
use linchpin_operator::{
    settings::BindAddress,
    webhooks::{Reached, WebhookSettings, label_selector},
};
use linchpin_words::keys;
use serde_json::Value;

use crate::cli::Usage;

/// Admission webhooks: off unless they have an address.
#[derive(Debug, Args)]
pub(super) struct WebhookFlags {
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
    /// The image of linchpin-wait, which is put into pods.
    #[arg(long, env = "LINCHPIN_WAIT_IMAGE", value_name = "IMAGE")]
    wait_image: Option<String>,
    /// Init containers that come before those that wait, if they stand first [default: those of meshes].
    #[arg(long, env = "LINCHPIN_BOOT_AFTER", value_name = "NAME,...", value_delimiter = ',')]
    boot_after: Option<Vec<String>>,
    /// The namespaces whose pods and workloads may be held, by their labels; empty: all.
    #[arg(long, env = "LINCHPIN_BOOT_NAMESPACE_SELECTOR", value_name = "SELECTOR",
          default_value_t = format!("{}={}", keys::BOOT, keys::BOOT_ENABLED))]
    boot_namespace_selector: String,
}

impl WebhookFlags {
    /// The namespaces whose pods and workloads may be held.
    pub(super) fn namespaces(&self) -> Result<Value, Usage> {
        label_selector::parse(&self.boot_namespace_selector)
            .map_err(|error| Usage(format!("--boot-namespace-selector: {error}")))
    }

    /// The settings; none where webhooks are off.
    pub(super) fn settings(self) -> Result<Option<WebhookSettings>, Usage> {
        let usage = |problem: &str| Usage(problem.to_owned());
        let namespaces = self.namespaces()?;
        let reached = match (&self.webhook_service, &self.webhook_url) {
            (Some(_), Some(_)) => {
                return Err(usage("give one of --webhook-service and --webhook-url"));
            }
            (Some(service), None) => Some(
                Reached::service(service).map_err(|error| Usage(format!("--webhook-service: {error}")))?,
            ),
            (None, Some(url)) => Some(url.parse().map_err(|error| Usage(format!("--webhook-url: {error}")))?),
            (None, None) => None,
        };
        let reached = match (self.webhook_bind_address, reached) {
            (BindAddress::Off, None) => return Ok(None),
            (BindAddress::Off, Some(_)) => {
                return Err(usage("--webhook-service and --webhook-url need --webhook-bind-address"));
            }
            (_, None) => {
                return Err(usage("--webhook-bind-address needs --webhook-service or --webhook-url"));
            }
            (_, Some(reached)) => reached,
        };
        let wait_image = self.wait_image.filter(|image| !image.is_empty()).ok_or_else(|| {
            usage("webhooks need --wait-image: an image of linchpin-wait that the cluster's nodes can pull")
        })?;
        Ok(Some(WebhookSettings {
            address: self.webhook_bind_address,
            reached,
            config_name: self.webhook_config_name,
            cert_dir: self.webhook_cert_dir,
            namespaces,
            wait_image,
            boot_after: self.boot_after,
        }))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Flags {
        #[command(flatten)]
        webhooks: WebhookFlags,
    }

    fn settings(words: &str) -> Result<Option<WebhookSettings>, String> {
        let words = std::iter::once("x").chain(words.split_whitespace());
        let flags = Flags::try_parse_from(words).map_err(|error| error.to_string())?;
        flags.webhooks.settings().map_err(|usage| usage.0)
    }

    #[test]
    fn webhooks_are_off_unless_they_have_an_address_and_a_way_to_be_reached() {
        assert!(settings("").unwrap().is_none());
        let on = "--webhook-bind-address 127.0.0.1:9443 --wait-image w:1";
        assert!(settings(&format!("{on} --webhook-url https://127.0.0.1:9443")).unwrap().is_some());
        assert!(settings(&format!("{on} --webhook-service a/b")).unwrap().is_some());
        for (wrong, problem) in [
            ("--webhook-url https://a:1", "need --webhook-bind-address"),
            (on, "needs --webhook-service or --webhook-url"),
            ("--webhook-bind-address :9443 --webhook-service a/b", "webhooks need --wait-image"),
            ("--boot-namespace-selector a=(", "--boot-namespace-selector"),
        ] {
            let said = settings(wrong).unwrap_err();
            assert!(said.contains(problem), "{wrong}: {said}");
        }
        for wrong in [
            "--webhook-url https://a:1/x",
            "--webhook-service a",
            "--webhook-service a/b --webhook-url https://a:1",
        ] {
            assert!(settings(&format!("{on} {wrong}")).is_err(), "{wrong}");
        }
    }
}
