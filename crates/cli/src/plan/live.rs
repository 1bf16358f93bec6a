//! What a cluster has of what Syncs depend on, read as the user.

use anyhow::{Context as _, Result};
use kube::{
    Client,
    discovery::{Discovery, Scope},
};
use linchpin_words::{KindWord, reference::built_in};
use serde_json::Value;

use super::link::{Link, Verdict};

/// A kind that the cluster serves.
struct Served {
    group: String,
    version: String,
    kind: String,
    plural: String,
    namespaced: bool,
}

/// A cluster, and what it serves.
pub(super) struct Live {
    client: Client,
    served: Vec<Served>,
}

impl Live {
    pub(super) async fn open(client: Client) -> Result<Self> {
        let found = Discovery::new(client.clone())
            .run_aggregated()
            .await
            .context("asking the cluster which kinds it serves")?;
        let resources = found.groups().flat_map(|group| {
            let all = group.versions().flat_map(move |version| group.versioned_resources(version));
            all.collect::<Vec<_>>()
        });
        let served = resources.map(|(resource, capabilities)| Served {
            group: resource.group,
            version: resource.version,
            kind: resource.kind,
            plural: resource.plural,
            namespaced: capabilities.scope == Scope::Namespaced,
        });
        Ok(Self { client, served: served.collect() })
    }

    /// Looks for what nothing that was given provides.
    pub(super) async fn look(&self, link: &mut Link) {
        if matches!(link.verdict, Verdict::Ok(_)) {
            return;
        }
        let found = match (&link.object, &link.api) {
            (Some((word, namespace, name)), _) => self.has(link, word, namespace, name).await,
            (None, Some((group, version, kind))) => self.served.iter().any(|one| {
                one.group == *group
                    && one.kind == *kind
                    && version.as_ref().is_none_or(|version| *version == one.version)
            }),
            (None, None) => false,
        };
        if found {
            link.verdict = Verdict::Ok("in the cluster".to_owned());
        }
    }

    async fn has(&self, link: &Link, word: &KindWord, namespace: &str, name: &str) -> bool {
        let Some(found) = self.get(word, namespace, name).await else {
            return word.word == "capability" && self.is_provided(&link.namespace(), name).await;
        };
        let declared = found.pointer("/spec/exports").and_then(Value::as_array);
        link.export
            .as_ref()
            .is_none_or(|export| declared.is_some_and(|all| all.iter().any(|one| one["name"] == *export)))
    }

    /// Whether a Sync of a namespace provides a capability.
    async fn is_provided(&self, namespace: &str, capability: &str) -> bool {
        let path = format!("/apis/linchpin.dev/v1alpha1/namespaces/{namespace}/syncs");
        let list = self.read(&path).await.unwrap_or_default();
        let syncs = list["items"].as_array().cloned().unwrap_or_default();
        let provides = |sync: &Value| sync.pointer("/spec/provides").and_then(Value::as_array).cloned();
        syncs.iter().filter_map(provides).flatten().any(|one| one["capability"] == capability)
    }

    /// An object, as the user may see it.
    pub(super) async fn get(&self, word: &KindWord, namespace: &str, name: &str) -> Option<Value> {
        let (api_version, plural, namespaced) = if let Some(known) = built_in(word) {
            (known.gvk().api_version(), known.plural.to_owned(), known.namespaced)
        } else {
            let one = self.served.iter().find(|one| {
                (one.kind.eq_ignore_ascii_case(&word.word) || one.plural == word.word)
                    && word.group.as_ref().is_none_or(|group| *group == one.group)
            })?;
            let slash = if one.group.is_empty() { "" } else { "/" };
            (format!("{}{slash}{}", one.group, one.version), one.plural.clone(), one.namespaced)
        };
        let root = if api_version.contains('/') { "/apis" } else { "/api" };
        let place = if namespaced { format!("/namespaces/{namespace}") } else { String::new() };
        self.read(&format!("{root}/{api_version}{place}/{plural}/{name}")).await
    }

    async fn read(&self, path: &str) -> Option<Value> {
        let request = http::Request::get(path).body(Vec::new()).ok()?;
        self.client.request::<Value>(request).await.ok()
    }
}
