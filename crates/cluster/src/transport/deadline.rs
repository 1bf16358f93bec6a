//! A time limit on every request.
//!
//! A write must be answered completely by its deadline; a watch must begin to answer by it and may then last as long
//! as the server lets it. Whoever waits for a request therefore always gets an answer or an error.

use super::{AnswerBody, TransportError, boxed};
use futures::future::BoxFuture;
use http::{Request, Response};
use hyper::body::{Body as HttpBody, Bytes, Frame, SizeHint};
use kube::client::Body;
use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};
use tokio::time::{Instant, Sleep};
use tower::{BoxError, Service};

/// What must have happened when the time is up.
#[derive(Debug, Clone, Copy)]
pub(super) enum Bound {
    /// The answer has begun.
    Start(Duration),
    /// The answer is complete.
    End(Duration),
}

/// Bounds every request of the service inside.
#[derive(Clone)]
pub(super) struct Deadline<S> {
    inner: S,
    bound: Bound,
}

impl<S> Deadline<S> {
    pub(super) fn new(inner: S, bound: Bound) -> Self {
        Self { inner, bound }
    }
}

impl<S> Service<Request<Body>> for Deadline<S>
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
        let bound = self.bound;
        let (Bound::Start(limit) | Bound::End(limit)) = bound;
        let deadline = Instant::now() + limit;
        Box::pin(async move {
            let Ok(answer) = tokio::time::timeout_at(deadline, answer).await else {
                return Err(TransportError::Deadline(limit).into());
            };
            let answer = answer?;
            Ok(match bound {
                Bound::Start(_) => answer,
                Bound::End(_) => answer.map(|body| {
                    boxed(Timed { body, limit, sleep: Box::pin(tokio::time::sleep_until(deadline)) })
                }),
            })
        })
    }
}

/// A body that must end before its time is up.
struct Timed {
    body: AnswerBody,
    limit: Duration,
    sleep: Pin<Box<Sleep>>,
}

impl HttpBody for Timed {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(cx) {
            return Poll::Ready(frame);
        }
        match self.sleep.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Some(Err(TransportError::Deadline(self.limit).into()))),
            Poll::Pending => Poll::Pending,
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
