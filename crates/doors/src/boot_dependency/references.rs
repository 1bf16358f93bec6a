//! The keys of Secrets and ConfigMaps that an entry refers to, and whether they can be put into a pod.
//!
//! A key is usable while the object's own ServiceAccount may get what holds it, it is there, and its text fits into an
//! environment variable. An entry with one that is not goes into no pod: the scheduling gate holds for it. Asked by the
//! webhooks, by the survey of workloads and, for the text itself, by the operator's own probes.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use linchpin_api::{BootEntry, boot_dependency::CaBundleRef};
use linchpin_engine::plan::Obstacle;
use linchpin_words::{
    Gvk, Reason, limits,
    probe::{is_header_value, without_line_end},
};
use serde_json::Value;

/// The key of a bundle of certificates that names none.
const DEFAULT_CA_KEY: &str = "ca.crt";

/// A kind whose keys entries refer to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    /// A Secret.
    Secret,
    /// A ConfigMap.
    ConfigMap,
}

impl Holder {
    /// The kind.
    pub fn kind(self) -> Gvk {
        let kind = match self {
            Self::Secret => "Secret",
            Self::ConfigMap => "ConfigMap",
        };
        Gvk::new("", "v1", kind)
    }

    /// The kind as paths call it.
    pub fn plural(self) -> &'static str {
        match self {
            Self::Secret => "secrets",
            Self::ConfigMap => "configmaps",
        }
    }
}

/// A key that an entry refers to, in the object's own namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyReference<'e> {
    /// What holds it.
    pub holder: Holder,
    /// The name of that.
    pub name: &'e str,
    /// The key.
    pub key: &'e str,
    /// What its text is for.
    pub(super) purpose: Purpose,
}

/// What the text of a key is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// The value of a header.
    Header,
    /// Certificates.
    Certificates,
}

impl Purpose {
    /// How long a text may be, in bytes.
    fn most(self) -> usize {
        match self {
            Self::Header => limits::PROBE_HEADER_VALUE,
            Self::Certificates => limits::PROBE_ROOTS,
        }
    }
}

impl KeyReference<'_> {
    /// The text of the key in what holds it; none where there is none or it is no text.
    fn text(&self, object: &Value) -> Option<String> {
        let text = object["data"].get(self.key)?.as_str()?;
        match self.holder {
            Holder::ConfigMap => Some(text.to_owned()),
            Holder::Secret => String::from_utf8(STANDARD.decode(text).ok()?).ok(),
        }
    }

    /// The text of the key as it is used, or why it cannot be. Nothing of the text is in that.
    pub(super) fn read(&self, object: &Value) -> Result<String, Obstacle> {
        let Self { name, key, purpose, .. } = *self;
        let kind = self.holder.kind().kind;
        let most = purpose.most();
        let wrong = |reason, message| Err(Obstacle { reason, message });
        let Some(mut text) = self.text(object) else {
            return wrong(Reason::ValueMissing, format!("{kind} {name} has no key {key} with a text"));
        };
        if purpose == Purpose::Header {
            text.truncate(without_line_end(&text).len());
        }
        if text.len() > most {
            return wrong(Reason::TooLarge, format!("key {key} of {kind} {name} has more than {most} bytes"));
        }
        if purpose == Purpose::Header && !is_header_value(&text) {
            let message =
                format!("key {key} of {kind} {name} holds control characters: no header can have it");
            return wrong(Reason::ValueMissing, message);
        }
        Ok(text)
    }

    /// That what holds it does not exist.
    pub(super) fn absent(&self) -> Obstacle {
        let message = format!("{} {} does not exist", self.holder.kind().kind, self.name);
        Obstacle { reason: Reason::NotFound, message }
    }

    /// Whether what holds it has the key, with a text that can be used.
    pub fn is_in(&self, object: &Value) -> bool {
        self.read(object).is_ok()
    }
}

/// The key of each header whose value is not written in the entry, in their order.
pub(super) fn headers(entry: &BootEntry) -> impl Iterator<Item = KeyReference<'_>> {
    let values = entry.http_headers.iter().filter_map(|header| header.value_from.as_ref());
    values.map(|value| KeyReference {
        holder: Holder::Secret,
        name: &value.secret_key_ref.name,
        key: &value.secret_key_ref.key,
        purpose: Purpose::Header,
    })
}

/// The bundle of certificates.
pub(super) fn bundle(entry: &BootEntry) -> Option<KeyReference<'_>> {
    match (&entry.ca_bundle_secret_ref, &entry.ca_bundle_config_map_ref) {
        (Some(bundle), _) => Some(certificates(Holder::Secret, bundle)),
        (None, Some(bundle)) => Some(certificates(Holder::ConfigMap, bundle)),
        (None, None) => None,
    }
}

fn certificates(holder: Holder, bundle: &CaBundleRef) -> KeyReference<'_> {
    let key = bundle.key.as_deref().unwrap_or(DEFAULT_CA_KEY);
    KeyReference { holder, name: &bundle.name, key, purpose: Purpose::Certificates }
}

/// All keys that an entry refers to.
pub fn references(entry: &BootEntry) -> impl Iterator<Item = KeyReference<'_>> {
    headers(entry).chain(bundle(entry))
}
