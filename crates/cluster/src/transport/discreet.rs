//! Errors of servers that a user names, reported as one.
//!
//! Whether a port is closed, filtered, speaks something else or may not be connected to is what somebody would like
//! to know who uses us to look around in our network. Such errors reach statuses and events as one sentence; what
//! really happened is in the operator's log, once a minute at most.

use super::{AnswerBody, TransportError, boxed};
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body_util::BodyExt;
use kube::client::Body;
use std::{
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
    time::{Duration, Instant},
};
use tower::{BoxError, Service};

/// How long the same server's errors are not repeated in the log.
const PAUSE: Duration = Duration::from_mins(1);

/// Reports the errors of the service inside as one.
#[derive(Clone)]
pub(super) struct Discreet<S> {
    inner: S,
    /// None for servers that nobody but the operator's administrator names: their errors are reported as they are.
    secret: Option<Arc<Secret>>,
}

/// What only the log gets.
pub(super) struct Secret {
    address: String,
    told: Mutex<Option<Instant>>,
}

impl Secret {
    pub(super) fn new(address: String) -> Self {
        Self { address, told: Mutex::new(None) }
    }

    /// What may be shown of an error.
    fn reduce(&self, error: BoxError) -> BoxError {
        let maybe_sent = match error.downcast_ref::<TransportError>() {
            Some(TransportError::TooLarge(_) | TransportError::Unreachable { .. }) => return error,
            Some(known) => !known.certainly_not_sent(),
            None => true,
        };
        let now = Instant::now();
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.is_none_or(|told| now.saturating_duration_since(told) > PAUSE) {
            *told = Some(now);
            tracing::info!(server = self.address, %error, "another cluster cannot be reached");
        }
        TransportError::Unreachable { maybe_sent }.into()
    }
}

impl<S> Discreet<S> {
    pub(super) fn new(inner: S, secret: Option<Arc<Secret>>) -> Self {
        Self { inner, secret }
    }
}

impl<S> Service<Request<Body>> for Discreet<S>
where
    S: Service<Request<Body>, Response = Response<AnswerBody>, Error = BoxError>,
    S::Future: Send + 'static,
{
    type Response = Response<AnswerBody>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<AnswerBody>, BoxError>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let answer = self.inner.call(request);
        let Some(secret) = self.secret.clone() else { return Box::pin(answer) };
        Box::pin(async move {
            match answer.await {
                Err(error) => Err(secret.reduce(error)),
                Ok(answer) => Ok(answer.map(|body| boxed(body.map_err(move |error| secret.reduce(error))))),
            }
        })
    }
}
