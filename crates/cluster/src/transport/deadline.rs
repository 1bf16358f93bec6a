//! A limit of time and of size on every answer.
//!
//! An answer must be complete by its deadline and no larger than its limit; a refusal has a smaller one. A watch must
//! begin to answer by its deadline and may then last as long as the server lets it: its lines have a limit of their
//! own where they are read. A request therefore always ends with an answer or an error, and no server
//! can fill our memory with one.

use super::{
    AnswerBody, TransportError, boxed,
    layer::{AnswerFuture, AnswerLayer, Answered, Asked},
};
use http::StatusCode;
use hyper::body::{Body as HttpBody, Bytes, Frame, SizeHint};
use linchpin_words::limits;
use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};
use tokio::time::{Instant, Sleep};
use tower::BoxError;

/// What every answer is bound by.
#[derive(Debug, Clone, Copy)]
pub(super) struct AnswerLimits {
    /// By when it must be complete, or have begun if it is a watch.
    pub(super) time: Duration,
    /// How large it may be.
    pub(super) size: usize,
}

/// Every answer ends by its limits, or with an error that says which one it exceeds.
impl AnswerLayer for AnswerLimits {
    async fn handle(self, asked: Asked, answer: impl AnswerFuture) -> Result<Answered, BoxError> {
        let Self { time, size } = self;
        let deadline = Instant::now() + time;
        let Ok(answer) = tokio::time::timeout_at(deadline, answer).await else {
            return Err(TransportError::Deadline(time).into());
        };
        let answer = answer?;
        let good = answer.status().is_success();
        if answer.status() == StatusCode::SWITCHING_PROTOCOLS || good && asked.lasting {
            return Ok(answer);
        }
        let size = if good { size } else { size.min(limits::REFUSAL) };
        let sleep = Box::pin(tokio::time::sleep_until(deadline));
        Ok(answer.map(|body| boxed(Bounded { body, size, left: size, time, sleep })))
    }
}

/// A body that must end before its time is up, and within its size.
struct Bounded {
    body: AnswerBody,
    size: usize,
    left: usize,
    time: Duration,
    sleep: Pin<Box<Sleep>>,
}

impl HttpBody for Bounded {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if self.sleep.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Some(Err(TransportError::Deadline(self.time).into())));
        }
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        if let Poll::Ready(Some(Ok(frame))) = &frame
            && let Some(data) = frame.data_ref()
        {
            match self.left.checked_sub(data.len()) {
                Some(left) => self.left = left,
                None => return Poll::Ready(Some(Err(TransportError::TooLarge(self.size).into()))),
            }
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
