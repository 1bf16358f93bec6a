//! Reading objects of ours as the user: what may be read where, and what to say of what may not.
//!
//! A kind that is not served, or that the user may not list, does not keep the others from being read: it is told in
//! one line. Anything else that goes wrong is a failure.

use std::{fmt, time::Duration};

use anyhow::{Context as _, Result, anyhow};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{ListParams, ObjectList},
};
use serde::de::DeserializeOwned;

use super::{Kind, Place};

/// How often, and how far apart, a server that is too busy is asked again.
const TRIES_WHEN_BUSY: u32 = 20;
const PAUSE_WHEN_BUSY: Duration = Duration::from_millis(500);

/// Where the objects of a kind can be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reach {
    /// In all namespaces.
    Everywhere,
    /// In the namespace asked for.
    Here,
    /// Nowhere: the cluster does not serve it. In words.
    NotServed(String),
    /// Nowhere: the user may not. In words.
    Forbidden(String),
}

impl Reach {
    /// Why nothing can be read, if so.
    pub(crate) fn why_not(&self) -> Option<&str> {
        match self {
            Self::Everywhere | Self::Here => None,
            Self::NotServed(why) | Self::Forbidden(why) => Some(why),
        }
    }

    /// What a refusal means, unless it concerns others too.
    pub(crate) fn after<K: Kind>(error: kube::Error) -> Result<Self, kube::Error> {
        match &error {
            kube::Error::Api(status) if status.code == 404 => {
                Ok(Self::NotServed(unreadable::<K>(error).to_string()))
            }
            kube::Error::Api(status) if status.code == 403 => {
                Ok(Self::Forbidden(unreadable::<K>(error).to_string()))
            }
            _ => Err(error),
        }
    }
}

/// Lists a kind: everywhere if the user may, else in one namespace, else not at all.
pub(super) async fn list<K: Kind>(client: &Client, namespace: &str) -> Result<(Reach, Vec<K>)> {
    let everything = ListParams::default();
    let mut found = patiently(&api::<K>(client, None), &everything).await;
    let mut reach = Reach::Everywhere;
    if code(&found) == Some(403) {
        found = patiently(&api::<K>(client, Some(namespace)), &everything).await;
        reach = Reach::Here;
    }
    match found {
        Ok(found) => Ok((reach, found.items)),
        Err(error) => match Reach::after::<K>(error) {
            Ok(reach) => Ok((reach, Vec::new())),
            Err(error) => Err(unreadable::<K>(error)),
        },
    }
}

fn code<T>(answer: &kube::Result<T>) -> Option<u16> {
    match answer {
        Err(kube::Error::Api(status)) => Some(status.code),
        _ => None,
    }
}

/// The API of one kind of ours, in one namespace or in all.
pub(crate) fn api<K: Kind>(client: &Client, namespace: Option<&str>) -> Api<K> {
    match namespace {
        Some(namespace) => Api::namespaced(client.clone(), namespace),
        None => Api::all(client.clone()),
    }
}

/// Lists, and asks again for a while when the server is too busy, as it is right after a definition was installed.
async fn patiently<K>(api: &Api<K>, parameters: &ListParams) -> kube::Result<ObjectList<K>>
where
    K: Clone + fmt::Debug + DeserializeOwned,
{
    let mut tries = 0;
    loop {
        match api.list(parameters).await {
            Err(kube::Error::Api(status)) if status.code == 429 && tries < TRIES_WHEN_BUSY => {
                tries += 1;
                tokio::time::sleep(PAUSE_WHEN_BUSY).await;
            }
            answer => return answer,
        }
    }
}

/// Why objects of a kind cannot be read, and what to do about it.
fn unreadable<K: Kind>(error: kube::Error) -> anyhow::Error {
    let kind = format!("{}.{}", K::plural(&()), K::group(&()));
    match &error {
        kube::Error::Api(status) if status.code == 404 => {
            anyhow!(
                "the cluster does not serve {kind}: install them with `linchpin crds | kubectl apply -f -`"
            )
        }
        kube::Error::Api(status) => anyhow!("reading {kind}: {}", status.message),
        _ => Err::<(), _>(error)
            .with_context(|| format!("reading {kind}"))
            .err()
            .unwrap_or_else(|| anyhow!(kind)),
    }
}

/// Where an object is.
pub(crate) fn place<K: Resource>(object: &K) -> Place {
    (object.namespace().unwrap_or_default(), object.name_any())
}
