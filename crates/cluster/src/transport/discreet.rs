//! Errors of servers that a user names, reported as one.
//!
//! Whether a port is closed, filtered, speaks something else or may not be connected to is what somebody would like
//! to know who uses us to look around in our network. Such errors reach statuses and events as one sentence; what
//! really happened is in the operator's log, once a minute at most.

use super::{
    TransportError, boxed,
    layer::{AnswerFuture, AnswerLayer, Answered, Asked},
};
use http_body_util::BodyExt;
use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};
use tower::BoxError;

/// How long the same server's errors are not repeated in the log.
const PAUSE: Duration = Duration::from_mins(1);

/// What only the log gets.
pub(super) struct Secret {
    address: String,
    logged_at: Mutex<Option<Instant>>,
}

impl Secret {
    pub(super) fn new(address: String) -> Self {
        Self { address, logged_at: Mutex::new(None) }
    }

    /// What may be shown of an error.
    fn reduce(&self, error: BoxError) -> BoxError {
        let maybe_sent = match error.downcast_ref::<TransportError>() {
            Some(TransportError::TooLarge(_) | TransportError::Unreachable { .. }) => return error,
            Some(known) => !known.certainly_not_sent(),
            None => true,
        };
        let now = Instant::now();
        let mut logged_at = self.logged_at.lock().unwrap_or_else(PoisonError::into_inner);
        if logged_at.is_none_or(|logged_at| now.saturating_duration_since(logged_at) > PAUSE) {
            *logged_at = Some(now);
            tracing::info!(server = self.address, %error, "another cluster cannot be reached");
        }
        TransportError::Unreachable { maybe_sent }.into()
    }
}

/// Reports errors as one. None for servers that nobody but the operator's administrator names: their errors are reported as
/// they are.
impl AnswerLayer for Option<Arc<Secret>> {
    async fn handle(self, _asked: Asked, answer: impl AnswerFuture) -> Result<Answered, BoxError> {
        let answer = answer.await;
        let Some(secret) = self else { return answer };
        match answer {
            Err(error) => Err(secret.reduce(error)),
            Ok(answer) => Ok(answer.map(|body| boxed(body.map_err(move |error| secret.reduce(error))))),
        }
    }
}
