//! Asking a server what it serves: everything in two requests, or one group at a time.

use super::index::{GroupVersions, IndexedKind, IndexedVersion, KindIndex};
use crate::call::{self, ApiUrl, CallError, Form};
use kube::{
    Client,
    client::{APIGroupDiscovery, APIGroupDiscoveryList},
};
use linchpin_words::{
    kind::{group_problem, version_problem, word_problem},
    limits,
};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// Everything that could be asked for.
pub(super) struct ServedGroups {
    pub(super) index: KindIndex,
    /// Groups that are there and did not answer.
    pub(super) silent: BTreeSet<String>,
}

/// Everything. Two requests; one more per group and version from servers that cannot aggregate. A group that does not
/// answer is no reason not to know the others.
pub(super) async fn everything(client: &Client) -> Result<ServedGroups, CallError> {
    let (core, others) = tokio::try_join!(document(client, "/api"), document(client, "/apis"))?;
    let mut groups: BTreeMap<String, GroupVersions> = BTreeMap::new();
    let mut silent = BTreeSet::new();
    for document in [core, others] {
        match document {
            DiscoveryDocument::Aggregated(list) => {
                for group in list.items {
                    let name = group.metadata.as_ref().and_then(|metadata| metadata.name.clone());
                    let name = name.unwrap_or_default();
                    if group_problem(&name).is_some() {
                        continue;
                    }
                    if group.versions.iter().any(|version| version.freshness.as_deref() == Some("Stale")) {
                        silent.insert(name.clone());
                    }
                    groups.insert(name, aggregated(group));
                }
            }
            DiscoveryDocument::Names(names) => {
                for name in names.into_iter().take(limits::DISCOVERED_GROUPS) {
                    match one(client, &name).await {
                        Ok(Some(group)) => drop(groups.insert(name, group)),
                        Ok(None) => {}
                        Err(_) => drop(silent.insert(name)),
                    }
                }
            }
        }
    }
    Ok(ServedGroups { index: groups.into_iter().collect(), silent })
}

/// One group; none if it is not served.
pub(super) async fn one(client: &Client, group: &str) -> Result<Option<GroupVersions>, CallError> {
    if group_problem(group).is_some() {
        return Ok(None);
    }
    let versions = match versions(client, group).await {
        Ok(versions) => versions,
        Err(error) if error.is_code(404) => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut found = Vec::new();
    for version in versions {
        let base = if group.is_empty() { ApiUrl::new("/api") } else { ApiUrl::new("/apis").segment(group) };
        match call::call(client, call::get(&base.segment(&version), Form::Full)?).await {
            Ok(answer) => {
                let list: PlainResources = answer.read()?;
                found.push(IndexedVersion { name: version, entries: plain(list.resources) });
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
    let answer = call::call(client, call::get(&ApiUrl::new("/apis").segment(group), Form::Full)?).await?;
    let group: PlainGroup = answer.read()?;
    let mut versions: Vec<String> = group.versions.into_iter().map(|version| version.version).collect();
    versions.retain(|version| version_problem(version).is_none());
    if let Some(preferred) = group.preferred_version {
        versions.sort_by_key(|version| *version != preferred.version);
    }
    versions.truncate(limits::DISCOVERED_VERSIONS);
    Ok(versions)
}

enum DiscoveryDocument {
    Aggregated(APIGroupDiscoveryList),
    Names(Vec<String>),
}

async fn document(client: &Client, path: &str) -> Result<DiscoveryDocument, CallError> {
    #[derive(Deserialize)]
    struct Kind {
        #[serde(default)]
        kind: String,
        #[serde(default)]
        groups: Vec<PlainGroup>,
    }
    let answer = call::call(client, call::get(&ApiUrl::new(path), Form::Discovery)?).await?;
    let kind: Kind = answer.read()?;
    Ok(match kind.kind.as_str() {
        "APIGroupDiscoveryList" => DiscoveryDocument::Aggregated(answer.read()?),
        "APIVersions" => DiscoveryDocument::Names(vec![String::new()]),
        _ => DiscoveryDocument::Names(kind.groups.into_iter().map(|group| group.name).collect()),
    })
}

fn aggregated(group: APIGroupDiscovery) -> GroupVersions {
    let version = |version: kube::client::APIVersionDiscovery| {
        let entry = |resource: kube::client::APIResourceDiscovery| {
            let kind = resource.response_kind.and_then(|kind| kind.kind).unwrap_or_default();
            let plural = resource.resource.unwrap_or_default();
            readable(&resource.verbs, &kind, &plural).then(|| IndexedKind {
                singular: resource.singular_resource.unwrap_or_default(),
                short: resource.short_names,
                namespaced: resource.scope.as_deref() == Some("Namespaced"),
                kind,
                plural,
            })
        };
        IndexedVersion {
            name: version.version.unwrap_or_default(),
            entries: version.resources.into_iter().filter_map(entry).collect(),
        }
    };
    group.versions.into_iter().map(version).collect()
}

fn plain(resources: Vec<PlainResource>) -> Vec<IndexedKind> {
    let entry = |resource: PlainResource| {
        readable(&resource.verbs, &resource.kind, &resource.name).then_some(IndexedKind {
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
    word_problem(kind).is_none() && word_problem(plural).is_none() && verbs.iter().any(|verb| verb == "get")
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

#[cfg(test)]
mod tests {
    use super::*;
    use http::{Request, Response};
    use http_body_util::Full;
    use hyper::body::Bytes;
    use kube::client::Body;
    use serde_json::{Value, json};
    use std::{
        convert::Infallible,
        sync::{Arc, Mutex},
    };

    /// A client of a server without aggregated discovery, with so many groups of so many versions, and what was asked.
    fn server(groups: usize, versions: usize) -> (Client, Arc<Mutex<Vec<String>>>) {
        server_without("", groups, versions)
    }

    /// The same, where one group has nobody who answers for it.
    fn server_without(
        silent: &'static str,
        groups: usize,
        versions: usize,
    ) -> (Client, Arc<Mutex<Vec<String>>>) {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&asked);
        let service = tower::service_fn(move |request: Request<Body>| {
            let path = request.uri().path().to_owned();
            let answer = match path.split('/').skip(1).collect::<Vec<_>>().as_slice() {
                ["api"] => json!({"kind": "APIVersions"}),
                ["apis"] => {
                    let names: Vec<Value> =
                        (0..groups).map(|number| json!({"name": format!("g{number}.example.com")})).collect();
                    json!({"kind": "APIGroupList", "groups": names})
                }
                ["apis", _] => {
                    let all: Vec<Value> =
                        (1..=versions).map(|number| json!({"version": format!("v{number}")})).collect();
                    json!({"versions": all, "preferredVersion": {"version": format!("v{versions}")}})
                }
                _ => json!({"resources": []}),
            };
            let is_silent = !silent.is_empty() && path.contains(silent);
            noted.lock().unwrap().push(path);
            let mut answer = Response::new(Full::new(Bytes::from(answer.to_string())));
            if is_silent {
                *answer.status_mut() = http::StatusCode::SERVICE_UNAVAILABLE;
            }
            async move { Ok::<_, Infallible>(answer) }
        });
        (Client::new(service, "default"), asked)
    }

    #[tokio::test]
    async fn a_group_that_does_not_answer_is_no_reason_not_to_know_the_others() {
        let (client, _) = server_without("g0.example.com", 2, 1);
        let known = everything(&client).await.unwrap();
        assert_eq!(known.silent, BTreeSet::from(["g0.example.com".to_owned()]));
        assert!(
            known.index.group("g1.example.com").is_some() && known.index.group("g0.example.com").is_none()
        );
    }

    #[tokio::test]
    async fn so_many_groups_are_asked_for_and_no_more() {
        let limit = limits::DISCOVERED_GROUPS;
        for (there, expected) in [(limit, limit), (limit + 1, limit), (limit * 100, limit)] {
            let (client, asked) = server(there, 0);
            assert!(everything(&client).await.is_ok());
            let asked = asked.lock().unwrap();
            let groups = asked.iter().filter(|path| path.starts_with("/apis/"));
            assert_eq!(groups.count(), expected, "{there} are there");
        }
    }

    #[tokio::test]
    async fn so_many_versions_are_asked_for_and_no_more_the_preferred_one_among_them() {
        let limit = limits::DISCOVERED_VERSIONS;
        for (there, expected) in [(limit, limit), (limit + 1, limit), (limit * 100, limit)] {
            let (client, asked) = server(1, there);
            let group = one(&client, "g0.example.com").await.unwrap().unwrap();
            assert_eq!(group.len(), expected, "{there} are there");
            assert_eq!(group[0].name, format!("v{there}"));
            assert_eq!(asked.lock().unwrap().len(), expected + 1);
        }
    }
}
