//! What a cluster has of what Syncs depend on, read as the user.

use anyhow::{Context as _, Result};
use kube::{
    Client,
    api::ListParams,
    core::Request,
    discovery::{Discovery, Scope},
};
use linchpin_words::{KindWord, reference::built_in, text};
use serde_json::Value;

use super::link::{DependencyLink, LinkVerdict, SearchedBy, SearchedObjects};

/// A kind that the cluster serves.
struct LiveKind {
    group: String,
    version: String,
    kind: String,
    plural: String,
    namespaced: bool,
}

/// A cluster, and what it serves.
pub(super) struct LiveCluster {
    client: Client,
    served: Vec<LiveKind>,
}

impl LiveCluster {
    pub(super) async fn open(client: Client) -> Result<Self> {
        let found = Discovery::new(client.clone())
            .run_aggregated()
            .await
            .context("asking the cluster which kinds it serves")?;
        let resources = found.groups().flat_map(|group| {
            let all = group.versions().flat_map(move |version| group.versioned_resources(version));
            all.collect::<Vec<_>>()
        });
        let served = resources.map(|(resource, capabilities)| LiveKind {
            group: resource.group,
            version: resource.version,
            kind: resource.kind,
            plural: resource.plural,
            namespaced: capabilities.scope == Scope::Namespaced,
        });
        Ok(Self { client, served: served.collect() })
    }

    /// Looks for what nothing that was given provides.
    pub(super) async fn look(&self, link: &mut DependencyLink) {
        if matches!(link.verdict, LinkVerdict::Ok(_)) {
            return;
        }
        let found = match (&link.object, &link.api) {
            (Some(sought), _) => self.has(link, sought).await,
            (None, Some((group, version, kind))) => Ok(self.served.iter().any(|one| {
                one.group == *group
                    && one.kind == *kind
                    && version.as_ref().is_none_or(|version| *version == one.version)
            })),
            (None, None) => Ok(false),
        };
        match found {
            Ok(true) => link.verdict = LinkVerdict::Ok("in the cluster".to_owned()),
            Ok(false) => {}
            Err(unseen) => link.verdict = LinkVerdict::Unknown(unseen),
        }
    }

    /// Whether the cluster has what a dependency is about; or why that cannot be seen.
    async fn has(&self, link: &DependencyLink, sought: &SearchedObjects) -> Result<bool, String> {
        let SearchedObjects { word, namespace, which } = sought;
        let name = match which {
            SearchedBy::Name(name) => name,
            SearchedBy::Labels(selector) => {
                let Some(path) = self.path(word, namespace) else { return Ok(false) };
                let one = ListParams::default().labels(&selector.requirements().join(",")).limit(1);
                let request = Request::new(path).list(&one).map_err(|error| one_line(&error))?;
                let list = self.send(request).await?.unwrap_or_default();
                return Ok(list["items"].as_array().is_some_and(|items| !items.is_empty()));
            }
        };
        let Some(found) = self.get(word, namespace, name).await? else {
            return match word.word.as_str() {
                "capability" => self.is_provided(&link.namespace(), name).await,
                _ => Ok(false),
            };
        };
        let declared = found.pointer("/spec/exports").and_then(Value::as_array);
        Ok(link
            .export
            .as_ref()
            .is_none_or(|export| declared.is_some_and(|all| all.iter().any(|one| one["name"] == *export))))
    }

    /// Whether a Sync of a namespace provides a capability.
    async fn is_provided(&self, namespace: &str, capability: &str) -> Result<bool, String> {
        let path = format!("/apis/linchpin.dev/v1alpha1/namespaces/{namespace}/syncs");
        let list = self.read(&path).await?.unwrap_or_default();
        let syncs = list["items"].as_array().cloned().unwrap_or_default();
        let provides = |sync: &Value| sync.pointer("/spec/provides").and_then(Value::as_array).cloned();
        Ok(syncs.iter().filter_map(provides).flatten().any(|one| one["capability"] == capability))
    }

    /// An object, as the user may see it; none where there is none, or its kind is not served.
    pub(super) async fn get(
        &self,
        word: &KindWord,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Value>, String> {
        match self.path(word, namespace) {
            Some(path) => self.read(&format!("{path}/{name}")).await,
            None => Ok(None),
        }
    }

    /// Where the objects of a kind are; none where it is not served.
    fn path(&self, word: &KindWord, namespace: &str) -> Option<String> {
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
        Some(format!("{root}/{api_version}{place}/{plural}"))
    }

    /// What is at a path; none where nothing is. An error says why it cannot be seen.
    async fn read(&self, path: &str) -> Result<Option<Value>, String> {
        let request = http::Request::get(path).body(Vec::new()).map_err(|error| one_line(&error))?;
        self.send(request).await
    }

    async fn send(&self, request: http::Request<Vec<u8>>) -> Result<Option<Value>, String> {
        match self.client.request::<Value>(request).await {
            Ok(found) => Ok(Some(found)),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
            Err(kube::Error::Api(status)) => Err(text::line(&status.message)),
            Err(error) => Err(one_line(&error)),
        }
    }
}

/// An error in one line.
fn one_line(error: &dyn std::fmt::Display) -> String {
    text::line(&error.to_string())
}
