//! The flags of the webhooks, and how they fit together.

use clap::Args;
use linchpin_operator::{
    flags::WebhookFlags,
    webhooks::{WebhookSettings, label_selector},
};
use linchpin_words::keys;
use serde_json::Value;

use crate::cli::UsageError;

/// Flags of the webhooks, and of what they do for BootDependencies.
#[derive(Debug, Args)]
pub(super) struct BootFlags {
    #[command(flatten)]
    webhooks: WebhookFlags,
    /// The image of linchpin-wait, which is put into pods.
    #[arg(long, env = "LINCHPIN_WAIT_IMAGE", value_name = "IMAGE")]
    wait_image: Option<String>,
    /// Init containers that come before those that wait, if they are first [default: those of meshes].
    #[arg(long, env = "LINCHPIN_BOOT_AFTER", value_name = "NAME,...", value_delimiter = ',')]
    boot_after: Option<Vec<String>>,
    /// The namespaces whose pods and workloads may be held, by their labels; empty: all.
    #[arg(long, env = "LINCHPIN_BOOT_NAMESPACE_SELECTOR", value_name = "SELECTOR",
          default_value_t = format!("{}={}", keys::BOOT, keys::BOOT_ENABLED))]
    boot_namespace_selector: String,
}

impl BootFlags {
    /// The namespaces whose pods and workloads may be held.
    pub(super) fn namespaces(&self) -> Result<Value, UsageError> {
        label_selector::parse(&self.boot_namespace_selector)
            .map_err(|error| UsageError(format!("--boot-namespace-selector: {error}")))
    }

    /// The settings; none where webhooks are off.
    pub(super) fn settings(self) -> Result<Option<WebhookSettings>, UsageError> {
        let namespaces = self.namespaces()?;
        let Some(settings) = self.webhooks.settings().map_err(UsageError)? else { return Ok(None) };
        let wait_image = self.wait_image.filter(|image| !image.is_empty()).ok_or_else(|| {
            UsageError(
                "webhooks need --wait-image: an image of linchpin-wait that the cluster's nodes can pull"
                    .to_owned(),
            )
        })?;
        Ok(Some(WebhookSettings { namespaces, wait_image, boot_after: self.boot_after, ..settings }))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Flags {
        #[command(flatten)]
        webhooks: BootFlags,
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
