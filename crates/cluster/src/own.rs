//! Our own kinds: following them ([`follow`]), and writing their status, finalizers and annotations.
//!
//! The one place where the operator acts as itself on objects. A follower sees every object of a kind in the served
//! namespaces and, after a break, the deletions it missed; each object is handed over as it arrived, so that one that
//! cannot be read is nobody else's problem. A status is written with the resourceVersion it was decided on: a writer that
//! wrote in between makes the write fail, and the newer object arrives through the follower.

mod follow;
mod marks;
mod object;
mod operator_requests;

use std::{collections::BTreeMap, time::Duration};

use http::{Method, Request};
use kube::client::Body;
use linchpin_words::Gvk;
use serde::Deserialize;
use serde_json::{Value, json};

pub use self::{
    follow::{OwnEvent, OwnTrouble, follow, follow_one},
    marks::{MarkPatch, OwnTarget},
    object::{OwnObject, UnreadableObject, page},
    operator_requests::{OperatorRequestError, OperatorRequests},
};
use crate::{
    call::{self, CallError, Form, Resource},
    identity::OperatorClient,
};

/// How long one write may take.
const DEADLINE: Duration = Duration::from_secs(10);

/// A kind of ours.
#[derive(Clone, Debug)]
pub struct OwnKind {
    resource: Resource,
    /// Whether its objects are followed by their metadata alone.
    metadata_only: bool,
}

impl OwnKind {
    /// A kind by name, plural and whether its objects live in namespaces.
    pub fn new(kind: &Gvk, plural: &str, namespaced: bool) -> Self {
        Self { resource: Resource::new(kind.clone(), plural, namespaced), metadata_only: false }
    }

    /// The same, followed by the metadata of its objects alone.
    #[must_use]
    pub fn metadata_only(self) -> Self {
        Self { metadata_only: true, ..self }
    }

    /// The kind as people call it.
    pub fn name(&self) -> &str {
        &self.resource.kind.kind
    }

    /// The kind as paths call it.
    pub fn plural(&self) -> &str {
        &self.resource.plural
    }
}

/// An object's place: namespace (none for cluster-scoped kinds) and name.
pub type NamespacedName = (Option<String>, String);

/// Why a write to an object of ours did not take place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OwnWriteError {
    /// The object has changed since.
    #[error("the object has changed since it was read")]
    Conflict,
    /// The object is gone.
    #[error("the object is gone")]
    Gone,
    /// The server refuses it: nothing will change that but another status or another right.
    #[error("{0}")]
    Refused(String),
    /// A fault that may pass.
    #[error("{0}")]
    Passing(String),
}

impl From<CallError> for OwnWriteError {
    fn from(error: CallError) -> Self {
        let CallError::Refused(refused) = &error else { return Self::Passing(error.to_string()) };
        let said = &refused.status.message;
        let message = if said.is_empty() { refused.summary() } else { said.clone() };
        match refused.code {
            409 => Self::Conflict,
            404 => Self::Gone,
            429 | 500..=599 => Self::Passing(message),
            _ => Self::Refused(message),
        }
    }
}

/// Sends a write. Of the answer only the version is read: sending back all the rest would cost as much as the object.
async fn write(
    own: &OperatorClient,
    request: Result<Request<Body>, CallError>,
) -> Result<String, OwnWriteError> {
    #[derive(Deserialize)]
    struct Written {
        metadata: Metadata,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Metadata {
        #[serde(default)]
        resource_version: String,
    }
    let answer = tokio::time::timeout(DEADLINE, call::call(own.writes(), request?)).await;
    let answer = answer
        .map_err(|_| OwnWriteError::Passing(format!("no answer within {} s", DEADLINE.as_secs())))??;
    Ok(answer.read::<Written>()?.metadata.resource_version)
}

/// Writes a whole status, if the object is still at `version`. Returns its new version.
pub async fn write_status(
    own: &OperatorClient,
    kind: &OwnKind,
    place: &NamespacedName,
    version: &str,
    status: Value,
) -> Result<String, OwnWriteError> {
    let resource = &kind.resource;
    let body = json!({
        "apiVersion": resource.kind.api_version(),
        "kind": resource.kind.kind,
        "metadata": {"namespace": place.0, "name": place.1, "resourceVersion": version},
        "status": status,
    });
    let url = resource.object(place.0.as_deref(), &place.1).segment("status");
    write(own, call::send_for(Method::PUT, &url, "application/json", &body, Form::Metadata)).await
}

/// One finalizer of an object as it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finalizer {
    /// What it is called.
    pub name: &'static str,
    /// Whether it is to be there.
    pub present: bool,
}

impl Finalizer {
    /// The finalizers of an object with this one as it should be: nobody else's is touched.
    pub fn among(self, there: &[String]) -> Vec<String> {
        let others = there.iter().filter(|other| *other != self.name).cloned();
        others.chain(self.present.then(|| self.name.to_owned())).collect()
    }
}

/// What is to be written of an object's metadata. What it does not name stays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnMetadata {
    /// All finalizers, from those at the version that the write relies on ([`Finalizer::among`]).
    pub finalizers: Option<Vec<String>>,
    /// Annotations; none for one that goes.
    pub annotations: BTreeMap<&'static str, Option<String>>,
}

/// Writes metadata of an object, if it is still at `version`. Returns its new version, or none where it is gone now.
pub async fn write_metadata(
    own: &OperatorClient,
    kind: &OwnKind,
    place: &NamespacedName,
    version: &str,
    metadata: &OwnMetadata,
) -> Result<String, OwnWriteError> {
    let mut patch = json!({"metadata": {"resourceVersion": version}});
    if let Some(finalizers) = &metadata.finalizers {
        patch["metadata"]["finalizers"] = json!(finalizers);
    }
    if !metadata.annotations.is_empty() {
        patch["metadata"]["annotations"] = json!(metadata.annotations);
    }
    // The kind is ours: looking for fields that it does not have would be in vain.
    let url = kind.resource.object(place.0.as_deref(), &place.1).with("fieldValidation", "Ignore");
    let content_type = "application/merge-patch+json";
    write(own, call::send_for(Method::PATCH, &url, content_type, &patch, Form::Metadata)).await
}
