//! Reading objects of ours as the user: what may be read where, and what to say of what may not.
//!
//! A kind that is not served, or that the user may not list, does not keep the others from being read, nor does a
//! single object that cannot be read: it is reported in one line. Anything else that goes wrong is a failure.

use std::time::Duration;

use anyhow::{Context as _, Result};
use kube::{Client, api::ListParams};
use linchpin_cluster::own::{self, OwnObject};

use linchpin_doors::registry::KindNames;
use linchpin_words::Gvk;

/// How often, and how far apart, a server that is too busy is asked again.
const TRIES_WHEN_BUSY: u32 = 20;
const PAUSE_WHEN_BUSY: Duration = Duration::from_millis(500);

/// Where the objects of a kind can be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ReadScope {
    /// In all namespaces.
    Everywhere,
    /// In the namespace asked for.
    Here,
    /// Nowhere: the cluster does not serve it. In words.
    NotServed(String),
    /// Nowhere: the user may not. In words.
    Forbidden(String),
}

impl ReadScope {
    /// Why nothing can be read, if so.
    pub(crate) fn why_not(&self) -> Option<&str> {
        match self {
            Self::Everywhere | Self::Here => None,
            Self::NotServed(why) | Self::Forbidden(why) => Some(why),
        }
    }

    /// The cluster does not serve the kind, and what to do about it.
    pub(crate) fn not_served(names: &KindNames) -> Self {
        let kind = plural(names);
        Self::NotServed(format!(
            "the cluster does not serve {kind}: install them with `linchpin crds | kubectl apply --server-side -f -`"
        ))
    }

    /// The user may not read the kind, as the server says it.
    pub(crate) fn forbidden(names: &KindNames, said: &str) -> Self {
        Self::Forbidden(format!("reading {}: {said}", plural(names)))
    }
}

/// How many objects are read at a time.
const PAGE: u32 = 500;

/// Objects of one kind.
pub(super) struct ListedObjects {
    /// Where they can be read.
    pub(super) reach: ReadScope,
    pub(super) objects: Vec<OwnObject>,
}

/// Lists a kind: everywhere if the user may, else in one namespace, else not at all.
pub(super) async fn list(client: &Client, names: &KindNames, namespace: &str) -> Result<ListedObjects> {
    let mut found = all_pages(client, names, None).await;
    let mut reach = ReadScope::Everywhere;
    if code(&found) == Some(403) {
        found = all_pages(client, names, Some(namespace)).await;
        reach = ReadScope::Here;
    }
    match found {
        Ok(objects) => Ok(ListedObjects { reach, objects }),
        Err(kube::Error::Api(status)) if status.code == 404 => {
            Ok(ListedObjects { reach: ReadScope::not_served(names), objects: Vec::new() })
        }
        Err(kube::Error::Api(status)) if status.code == 403 => {
            Ok(ListedObjects { reach: ReadScope::forbidden(names, &status.message), objects: Vec::new() })
        }
        Err(error) => Err(error).with_context(|| format!("reading {}", plural(names))),
    }
}

fn code<T>(answer: &kube::Result<T>) -> Option<u16> {
    match answer {
        Err(kube::Error::Api(status)) => Some(status.code),
        _ => None,
    }
}

/// Asks again for a while where the server is too busy, as it is right after a definition was installed.
pub(crate) async fn while_busy<T, F>(ask: impl Fn() -> F) -> kube::Result<T>
where
    F: Future<Output = kube::Result<T>>,
{
    for _ in 0..TRIES_WHEN_BUSY {
        match ask().await {
            Err(kube::Error::Api(status)) if status.code == 429 => {
                tokio::time::sleep(PAUSE_WHEN_BUSY).await;
            }
            answer => return answer,
        }
    }
    ask().await
}

/// Lists a kind, page by page.
async fn all_pages(
    client: &Client,
    names: &KindNames,
    namespace: Option<&str>,
) -> kube::Result<Vec<OwnObject>> {
    let mut found = Vec::new();
    let mut parameters = ListParams::default().limit(PAGE);
    loop {
        let text = while_busy(|| async {
            let request = kube::core::Request::new(path(names, namespace)).list(&parameters);
            client.request_text(request.map_err(kube::Error::BuildRequest)?).await
        })
        .await?;
        let (page, next) = own::page(&text).map_err(|error| kube::Error::Service(error.into()))?;
        found.extend(page);
        match next {
            Some(next) => parameters = parameters.continue_token(&next),
            None => return Ok(found),
        }
    }
}

/// What a kind is called where it is read: by plural and group.
fn plural(names: &KindNames) -> String {
    format!("{}.{}", names.plural, names.gvk.group)
}

/// Where the objects of a kind are listed.
fn path(names: &KindNames, namespace: Option<&str>) -> String {
    let Gvk { group, version, .. } = &names.gvk;
    let place = namespace.filter(|_| names.namespaced);
    let place = place.map_or_else(String::new, |namespace| format!("namespaces/{namespace}/"));
    format!("/apis/{group}/{version}/{place}{}", names.plural)
}
