//! Asking a server what it serves: everything in two requests, or one group at a time.

use super::index::{Entry, Group, Index, Version};
use crate::call::{self, CallError, Form, Url};
use kube::{
    Client,
    client::{APIGroupDiscovery, APIGroupDiscoveryList},
};
use serde::Deserialize;
use std::collections::BTreeMap;

/// Everything. Two requests; one more per group and version from servers that cannot aggregate.
pub(super) async fn everything(client: &Client) -> Result<Index, CallError> {
    let (core, others) = tokio::try_join!(document(client, "/api"), document(client, "/apis"))?;
    let mut groups: BTreeMap<String, Group> = BTreeMap::new();
    for document in [core, others] {
        match document {
            Document::Aggregated(list) => {
                groups.extend(list.items.into_iter().map(|group| {
                    let name = group.metadata.as_ref().and_then(|metadata| metadata.name.clone());
                    (name.unwrap_or_default(), aggregated(group))
                }));
            }
            Document::Names(names) => {
                for name in names {
                    if let Some(group) = one(client, &name).await? {
                        groups.insert(name, group);
                    }
                }
            }
        }
    }
    Ok(groups.into_iter().collect())
}

/// One group; none if it is not served.
pub(super) async fn one(client: &Client, group: &str) -> Result<Option<Group>, CallError> {
    let versions = match versions(client, group).await {
        Ok(versions) => versions,
        Err(error) if error.is_code(404) => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut found = Vec::new();
    for version in versions {
        let base = if group.is_empty() { Url::new("/api") } else { Url::new("/apis").segment(group) };
        match call::call(client, call::get(&base.segment(&version), Form::Full)?).await {
            Ok(answer) => {
                let list: PlainResources = answer.read()?;
                found.push(Version { name: version, entries: plain(list.resources) });
            }
            Err(error) if error.is_code(404) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(Some(found))
}

/// The versions of a group, the preferred one first.
async fn versions(client: &Client, group: &str) -> Result<Vec<String>, CallError> {
    if group.is_empty() {
        return Ok(vec!["v1".to_owned()]);
    }
    let answer = call::call(client, call::get(&Url::new("/apis").segment(group), Form::Full)?).await?;
    let group: PlainGroup = answer.read()?;
    let mut versions: Vec<String> = group.versions.into_iter().map(|version| version.version).collect();
    if let Some(preferred) = group.preferred_version {
        versions.sort_by_key(|version| *version != preferred.version);
    }
    Ok(versions)
}

enum Document {
    Aggregated(APIGroupDiscoveryList),
    Names(Vec<String>),
}

async fn document(client: &Client, path: &str) -> Result<Document, CallError> {
    #[derive(Deserialize)]
    struct Kind {
        #[serde(default)]
        kind: String,
        #[serde(default)]
        groups: Vec<PlainGroup>,
    }
    let answer = call::call(client, call::get(&Url::new(path), Form::Discovery)?).await?;
    let kind: Kind = answer.read()?;
    Ok(match kind.kind.as_str() {
        "APIGroupDiscoveryList" => Document::Aggregated(answer.read()?),
        "APIVersions" => Document::Names(vec![String::new()]),
        _ => Document::Names(kind.groups.into_iter().map(|group| group.name).collect()),
    })
}

fn aggregated(group: APIGroupDiscovery) -> Group {
    let version = |version: kube::client::APIVersionDiscovery| {
        let entry = |resource: kube::client::APIResourceDiscovery| {
            let kind = resource.response_kind.and_then(|kind| kind.kind).unwrap_or_default();
            let plural = resource.resource.unwrap_or_default();
            readable(&resource.verbs, &kind, &plural).then(|| Entry {
                singular: resource.singular_resource.unwrap_or_default(),
                short: resource.short_names,
                namespaced: resource.scope.as_deref() == Some("Namespaced"),
                kind,
                plural,
            })
        };
        Version {
            name: version.version.unwrap_or_default(),
            entries: version.resources.into_iter().filter_map(entry).collect(),
        }
    };
    group.versions.into_iter().map(version).collect()
}

fn plain(resources: Vec<PlainResource>) -> Vec<Entry> {
    let entry = |resource: PlainResource| {
        readable(&resource.verbs, &resource.kind, &resource.name).then_some(Entry {
            kind: resource.kind,
            plural: resource.name,
            singular: resource.singular_name,
            short: resource.short_names,
            namespaced: resource.namespaced,
        })
    };
    resources.into_iter().filter_map(entry).collect()
}

/// Whether objects of the kind exist to be looked at or written: subresources and mere requests are left out.
fn readable(verbs: &[String], kind: &str, plural: &str) -> bool {
    !kind.is_empty() && !plural.is_empty() && !plural.contains('/') && verbs.iter().any(|verb| verb == "get")
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PlainGroup {
    #[serde(default)]
    name: String,
    #[serde(default)]
    versions: Vec<PlainVersion>,
    #[serde(default)]
    preferred_version: Option<PlainVersion>,
}

#[derive(Deserialize)]
struct PlainVersion {
    version: String,
}

#[derive(Deserialize)]
struct PlainResources {
    #[serde(default)]
    resources: Vec<PlainResource>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PlainResource {
    name: String,
    #[serde(default)]
    singular_name: String,
    #[serde(default)]
    namespaced: bool,
    kind: String,
    #[serde(default)]
    verbs: Vec<String>,
    #[serde(default)]
    short_names: Vec<String>,
}
