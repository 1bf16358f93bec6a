//! Whether the server has been answering: noted on every request, asked by readiness and metrics.
//!
//! Any answer counts, also a refusal: the question is only whether the server can be talked to.

use super::AnswerBody;
use futures::future::BoxFuture;
use http::{Request, Response};
use kube::client::Body;
use std::{
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
    time::Instant,
};
use tower::{BoxError, Service};

/// What is known about reaching a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reachability {
    /// Nothing was asked yet.
    Unknown,
    /// The last request was answered.
    Answering,
    /// Requests fail.
    Failing {
        /// Since the first failure after the last answer.
        since: Instant,
        /// The latest error.
        reason: String,
    },
}

/// The shared note. Clones are views of the same.
#[derive(Debug, Clone)]
pub struct ReachabilityMonitor {
    note: Arc<Mutex<Reachability>>,
}

impl Default for ReachabilityMonitor {
    fn default() -> Self {
        Self { note: Arc::new(Mutex::new(Reachability::Unknown)) }
    }
}

impl ReachabilityMonitor {
    /// What is known now.
    pub fn now(&self) -> Reachability {
        self.note.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn answered(&self) {
        *self.note.lock().unwrap_or_else(PoisonError::into_inner) = Reachability::Answering;
    }

    fn failed(&self, error: &BoxError) {
        let mut note = self.note.lock().unwrap_or_else(PoisonError::into_inner);
        let since = match &*note {
            Reachability::Failing { since, .. } => *since,
            Reachability::Unknown | Reachability::Answering => Instant::now(),
        };
        *note = Reachability::Failing { since, reason: error.to_string() };
    }
}

/// Notes how every request of the service inside ends.
#[derive(Clone)]
pub(super) struct Recorder<S> {
    inner: S,
    reach: ReachabilityMonitor,
}

impl<S> Recorder<S> {
    pub(super) fn new(inner: S, reach: ReachabilityMonitor) -> Self {
        Self { inner, reach }
    }
}

impl<S> Service<Request<Body>> for Recorder<S>
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
        let reach = self.reach.clone();
        Box::pin(async move {
            let answer = answer.await;
            match &answer {
                Ok(_) => reach.answered(),
                Err(error) => reach.failed(error),
            }
            answer
        })
    }
}
