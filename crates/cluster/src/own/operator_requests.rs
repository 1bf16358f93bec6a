//! Single requests that the operator makes for itself beside its own kinds: its certificate, its webhook
//! configurations, who controls a pod, what an account itself sees.
//!
//! One request each, with a deadline, never repeated. Called by the webhooks alone, which answer on every replica.

use std::time::Duration;

use http::Method;
use kube::{Client, client::Body};
use linchpin_engine::contract::Scope;
use linchpin_words::Gvk;
use serde_json::Value;

use super::OwnKind;
use crate::{
    call::{self, CallError, Form},
    identity::OperatorClient,
    transport::{Impersonation, Transport},
};

/// Why a request had no success; without any text of the objects concerned.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OperatorRequestError {
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

/// How many objects are looked at in one request.
const SEEN_AT_ONCE: &str = "500";

/// The operator's own requests.
#[derive(Clone)]
pub struct OperatorRequests {
    client: OperatorClient,
    transport: Transport,
}

impl OperatorRequests {
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
    ) -> Result<Option<Value>, OperatorRequestError> {
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
    ) -> Result<Vec<Value>, OperatorRequestError> {
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
    ) -> Result<(), OperatorRequestError> {
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
    ) -> Result<(), OperatorRequestError> {
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
    ) -> Result<(), OperatorRequestError> {
        let url = kind.resource.object(namespace, name);
        let request = call::send_json(Method::PATCH, &url, "application/json-patch+json", patch);
        let answer = self.send(request, within).await;
        answer.map(drop).map_err(|error| refusal(&error, "patch", kind.plural()))
    }

    /// Objects as a ServiceAccount itself sees them at this moment; none where there are none.
    pub async fn look_as(
        &self,
        (namespace, account): (&str, &str),
        kind: &OwnKind,
        scope: &Scope,
        within: Duration,
    ) -> Result<Vec<Value>, OperatorRequestError> {
        // Roles outlive the account that they were given to.
        let accounts = OwnKind::new(&Gvk::new("", "v1", "ServiceAccount"), "serviceaccounts", true);
        let alive = self.metadata(&accounts, Some(namespace), account, within).await?;
        let who = alive.and_then(|_| Impersonation::service_account(namespace, account).ok());
        let Some(who) = who else {
            return Err(OperatorRequestError::Failed(format!(
                "there is no ServiceAccount {namespace}/{account}"
            )));
        };
        let client = self.transport.writes(Some(&who));
        let url = match scope {
            Scope::Name { namespace, name } => kind.resource.object(namespace.as_deref(), name),
            Scope::Labels { namespace, selector } => kind
                .resource
                .collection(namespace.as_deref())
                .with("labelSelector", selector.as_str())
                .with("limit", SEEN_AT_ONCE),
        };
        let mut found = match send(&client, call::get(&url, Form::Full), within).await {
            Ok(found) => found,
            Err(error) if error.is_code(404) => return Ok(Vec::new()),
            Err(error) => return Err(refusal(&error, "get", kind.plural())),
        };
        match (scope, found["items"].take()) {
            (Scope::Name { .. }, _) => Ok(vec![found]),
            (Scope::Labels { .. }, Value::Array(items)) if found["metadata"]["continue"].is_null() => {
                Ok(items)
            }
            _ => Err(OperatorRequestError::Failed(format!(
                "there are more than {SEEN_AT_ONCE} {}",
                kind.plural()
            ))),
        }
    }

    pub(super) async fn send(
        &self,
        request: Result<http::Request<Body>, CallError>,
        within: Duration,
    ) -> Result<Value, CallError> {
        send(self.client.writes(), request, within).await
    }
}

async fn send(
    client: &Client,
    request: Result<http::Request<Body>, CallError>,
    within: Duration,
) -> Result<Value, CallError> {
    let answer = tokio::time::timeout(within, call::call(client, request?)).await;
    let late = |_| CallError::Unanswered {
        message: format!("no answer within {} ms", within.as_millis()),
        maybe_sent: true,
    };
    answer.map_err(late)??.read()
}

fn refusal(error: &CallError, verb: &'static str, plural: &str) -> OperatorRequestError {
    if error.is_code(403) {
        return OperatorRequestError::Forbidden { verb, plural: plural.to_owned() };
    }
    if error.is_code(409) {
        return OperatorRequestError::Conflict;
    }
    OperatorRequestError::Failed(error.to_string())
}
