//! Writes of the operator's own to objects that are not ours: one mark at a time.
//!
//! Every write names what it relies on (a uid, a resourceVersion) in its body, so that nobody else's change is lost and
//! nothing reaches another incarnation. Called by the consist process, which writes fixed keys on employers and pods.

use std::time::Duration;

use http::Method;
use linchpin_words::Gvk;
use serde_json::{Value, json};

use super::{OperatorRequests, OwnKind, OwnWriteError};
use crate::call::{self, ApiUrl, Form};

/// How a change is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkPatch {
    /// Strategic merge patch: built-in kinds merge lists by their entries.
    Strategic,
    /// JSON merge patch.
    Merge,
}

impl MarkPatch {
    fn content_type(self) -> &'static str {
        match self {
            Self::Strategic => "application/strategic-merge-patch+json",
            Self::Merge => "application/merge-patch+json",
        }
    }
}

/// Which object.
#[derive(Clone, Copy, Debug)]
pub struct OwnTarget<'a> {
    /// Its kind.
    pub kind: &'a OwnKind,
    /// Its namespace.
    pub namespace: Option<&'a str>,
    /// Its name.
    pub name: &'a str,
}

impl OperatorRequests {
    /// Changes an object, or a subresource of it. Returns its version after the write; none where it is gone.
    pub async fn change(
        &self,
        place: OwnTarget<'_>,
        subresource: Option<&str>,
        change: MarkPatch,
        body: &Value,
        within: Duration,
    ) -> Result<Option<u64>, OwnWriteError> {
        let mut url = place.kind.resource.object(place.namespace, place.name);
        if let Some(subresource) = subresource {
            url = url.segment(subresource);
        }
        let url = url.with("fieldManager", "linchpin-consist");
        let request = call::send_for(Method::PATCH, &url, change.content_type(), body, Form::Metadata);
        match self.send(request, within).await {
            Ok(object) => Ok(version(&object)),
            Err(error) if error.is_code(404) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Creates an object of ours; its uid and version.
    pub async fn make(
        &self,
        kind: &OwnKind,
        namespace: &str,
        body: &Value,
        within: Duration,
    ) -> Result<(), OwnWriteError> {
        let url = kind.resource.collection(Some(namespace));
        let request = call::send_for(Method::POST, &url, "application/json", body, Form::Metadata);
        self.send(request, within).await.map(drop).map_err(Into::into)
    }

    /// Deletes one incarnation of an object; fine where it is gone.
    pub async fn remove(
        &self,
        place: OwnTarget<'_>,
        uid: &str,
        within: Duration,
    ) -> Result<(), OwnWriteError> {
        let body = json!({"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": uid}});
        let url = place.kind.resource.object(place.namespace, place.name);
        let request = call::send_for(Method::DELETE, &url, "application/json", &body, Form::Metadata);
        match self.send(request, within).await {
            Err(error) if !error.is_code(404) => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Evicts one incarnation of a pod: the API server judges its disruption budget.
    pub async fn evict(
        &self,
        namespace: &str,
        name: &str,
        uid: &str,
        within: Duration,
    ) -> Result<(), OwnWriteError> {
        let body = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": namespace},
            "deleteOptions": {"preconditions": {"uid": uid}}});
        let url =
            ApiUrl::new("/api/v1").segment("namespaces").segment(namespace).segment("pods").segment(name);
        let request = call::send_json(Method::POST, &url.segment("eviction"), "application/json", &body);
        match self.send(request, within).await {
            Err(error) if !error.is_code(404) => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// A whole object; none where it does not exist.
    pub async fn read(&self, place: OwnTarget<'_>, within: Duration) -> Result<Option<Value>, OwnWriteError> {
        let request = call::get(&place.kind.resource.object(place.namespace, place.name), Form::Full);
        match self.send(request, within).await {
            Ok(object) => Ok(Some(object)),
            Err(error) if error.is_code(404) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// A kind as paths call it; none where the server does not know it now.
    pub async fn kind(&self, gvk: &Gvk, within: Duration) -> Result<Option<(OwnKind, bool)>, OwnWriteError> {
        let mut url = ApiUrl::new(if gvk.group.is_empty() { "/api" } else { "/apis" });
        if !gvk.group.is_empty() {
            url = url.segment(&gvk.group);
        }
        let request = call::get(&url.segment(&gvk.version), Form::Full);
        let list = match self.send(request, within).await {
            Ok(list) => list,
            Err(error) if error.is_code(404) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let found = list["resources"].as_array().into_iter().flatten().find(|resource| {
            resource["kind"] == gvk.kind.as_str()
                && resource["name"].as_str().is_some_and(|name| !name.contains('/'))
        });
        Ok(found.map(|resource| {
            let plural = resource["name"].as_str().unwrap_or_default();
            let namespaced = resource["namespaced"] == true;
            (OwnKind::new(gvk, plural, namespaced), namespaced)
        }))
    }
}

/// The version of an object that the server returned.
fn version(object: &Value) -> Option<u64> {
    object.pointer("/metadata/resourceVersion")?.as_str()?.parse().ok()
}

impl OwnWriteError {
    /// Whether the server answered that somebody else wrote in between, or that it is another incarnation.
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::Conflict)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_of_what_the_server_returns_is_read_or_nothing() {
        assert_eq!(version(&json!({"metadata": {"resourceVersion": "7"}})), Some(7));
        assert_eq!(version(&json!({"kind": "Status"})), None);
    }
}
