//! What is done with every answer of a service: one shape for the layers of a transport.

use futures::future::BoxFuture;
use http::{Request, Response};
use kube::client::Body;
use std::task::{Context, Poll};
use tower::{BoxError, Service};

use super::{AnswerBody, impersonate};

/// An answer as the layers pass it on.
pub(super) type Answered = Response<AnswerBody>;

/// An answer that is under way.
pub(super) trait AnswerFuture: Future<Output = Result<Answered, BoxError>> + Send {}

impl<F: Future<Output = Result<Answered, BoxError>> + Send> AnswerFuture for F {}

/// What is known of a request when its answer is seen through.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    /// Whether the answer is one to a watch, if it is a good one.
    pub(super) lasting: bool,
    /// Whether it is asked as ourselves, and not in the name of somebody else.
    pub(super) own: bool,
}

/// Something that is done with every answer.
pub(super) trait AnswerLayer: Clone + Send + 'static {
    /// Sees an answer through.
    fn handle(
        self,
        asked: Asked,
        answer: impl AnswerFuture,
    ) -> impl Future<Output = Result<Answered, BoxError>> + Send;
}

/// A service, with something that is done with every answer of the one inside.
#[derive(Clone)]
pub(super) struct Layered<S, L> {
    pub(super) inner: S,
    pub(super) layer: L,
}

impl<S, L: AnswerLayer> Service<Request<Body>> for Layered<S, L>
where
    S: Service<Request<Body>, Response = Answered, Error = BoxError>,
    S::Future: Send + 'static,
{
    type Response = Answered;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Answered, BoxError>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let asked =
            Asked { lasting: is_watch(&request), own: !request.headers().contains_key(impersonate::USER) };
        let answer = self.inner.call(request);
        Box::pin(self.layer.clone().handle(asked, answer))
    }
}

/// Whether the answer lasts, if it is a good one.
fn is_watch(request: &Request<Body>) -> bool {
    request.uri().query().is_some_and(|query| query.split('&').any(|part| part == "watch=true"))
}
