//! Single requests that the operator makes for itself beside its own kinds: its certificate, its webhook
//! configurations, who controls a pod, what an account may do.
//!
//! One request each, with a deadline, never repeated. Called by the webhooks alone, which answer on every replica.

use std::time::Duration;

use http::Method;
use linchpin_engine::contract::Right;
use serde_json::Value;

use super::OwnKind;
use crate::{
    access,
    call::{self, CallError, Form},
    identity::OperatorClient,
    transport::{Impersonation, Transport},
};

/// Why a request had no success; without any text of the objects concerned.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ErrandError {
    /// A right is missing.
    #[error("not allowed to {verb} {plural}")]
    Forbidden {
        /// What was tried.
        verb: &'static str,
        /// On what.
        plural: String,
    },
    /// Somebody else wrote in between, or created it.
    #[error("it has changed since it was read")]
    Conflict,
    /// Anything else; it may pass.
    #[error("{0}")]
    Failed(String),
}

/// The operator's own requests.
#[derive(Clone)]
pub struct Errands {
    client: OperatorClient,
    transport: Transport,
}

impl Errands {
    /// Requests as the operator itself.
    pub fn new(transport: &Transport) -> Self {
        Self { client: OperatorClient::new(transport), transport: transport.clone() }
    }

    /// The client, for following.
    pub fn client(&self) -> &OperatorClient {
        &self.client
    }

    /// An object's metadata; none where it does not exist.
    pub async fn metadata(
        &self,
        kind: &OwnKind,
        namespace: Option<&str>,
        name: &str,
        within: Duration,
    ) -> Result<Option<Value>, ErrandError> {
        let request = call::get(&kind.resource.object(namespace, name), Form::Metadata);
        match self.send(request, within).await {
            Ok(object) => Ok(Some(object)),
            Err(error) if error.is_code(404) => Ok(None),
            Err(error) => Err(refusal(&error, "get", kind.plural())),
        }
    }

    /// All objects of a kind in a namespace, as they are at this moment.
    pub async fn list(
        &self,
        kind: &OwnKind,
        namespace: &str,
        within: Duration,
    ) -> Result<Vec<Value>, ErrandError> {
        // Without a resourceVersion the answer is consistent.
        let request = call::get(&kind.resource.collection(Some(namespace)), Form::Full);
        let mut list =
            self.send(request, within).await.map_err(|error| refusal(&error, "list", kind.plural()))?;
        match list["items"].take() {
            Value::Array(items) => Ok(items),
            _ => Ok(Vec::new()),
        }
    }

    /// Creates an object.
    pub async fn create(
        &self,
        kind: &OwnKind,
        namespace: Option<&str>,
        body: &Value,
        within: Duration,
    ) -> Result<(), ErrandError> {
        let url = kind.resource.collection(namespace);
        let request = call::send_json(Method::POST, &url, "application/json", body);
        let answer = self.send(request, within).await;
        answer.map(drop).map_err(|error| refusal(&error, "create", kind.plural()))
    }

    /// Replaces an object; a resourceVersion in `body` must be the stored one.
    pub async fn replace(
        &self,
        kind: &OwnKind,
        namespace: Option<&str>,
        name: &str,
        body: &Value,
        within: Duration,
    ) -> Result<(), ErrandError> {
        let url = kind.resource.object(namespace, name);
        let request = call::send_json(Method::PUT, &url, "application/json", body);
        let answer = self.send(request, within).await;
        answer.map(drop).map_err(|error| refusal(&error, "update", kind.plural()))
    }

    /// Changes an object by a JSON patch.
    pub async fn patch(
        &self,
        kind: &OwnKind,
        namespace: Option<&str>,
        name: &str,
        patch: &Value,
        within: Duration,
    ) -> Result<(), ErrandError> {
        let url = kind.resource.object(namespace, name);
        let request = call::send_json(Method::PATCH, &url, "application/json-patch+json", patch);
        let answer = self.send(request, within).await;
        answer.map(drop).map_err(|error| refusal(&error, "patch", kind.plural()))
    }

    /// Whether a ServiceAccount has a right, asked as that account itself.
    pub async fn may(
        &self,
        namespace: &str,
        account: &str,
        right: &Right,
        within: Duration,
    ) -> Result<bool, ErrandError> {
        let who = Impersonation::service_account(namespace, account)
            .map_err(|_| ErrandError::Failed(format!("{namespace}/{account} is no ServiceAccount")))?;
        let client = self.transport.writes(Some(&who));
        match tokio::time::timeout(within, access::may(&client, right)).await {
            Ok(Ok(allowed)) => Ok(allowed),
            Ok(Err(error)) => Err(refusal(&error, "impersonate", "serviceaccounts")),
            Err(_) => Err(ErrandError::Failed(format!("no answer within {} ms", within.as_millis()))),
        }
    }

    pub(super) async fn send(
        &self,
        request: Result<http::Request<kube::client::Body>, CallError>,
        within: Duration,
    ) -> Result<Value, CallError> {
        let answer = tokio::time::timeout(within, call::call(self.client.writes(), request?)).await;
        let late = |_| CallError::Unanswered {
            message: format!("no answer within {} ms", within.as_millis()),
            maybe_sent: true,
        };
        answer.map_err(late)??.read()
    }
}

fn refusal(error: &CallError, verb: &'static str, plural: &str) -> ErrandError {
    if error.is_code(403) {
        return ErrandError::Forbidden { verb, plural: plural.to_owned() };
    }
    if error.is_code(409) {
        return ErrandError::Conflict;
    }
    ErrandError::Failed(error.to_string())
}
