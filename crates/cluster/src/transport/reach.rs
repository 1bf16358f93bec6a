//! Whether the server has been answering: noted on every request, asked by readiness and metrics.
//!
//! Any answer counts, also a refusal: the question is only whether the server can be talked to.

use super::layer::{AnswerFuture, AnswerLayer, Answered};
use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};
use tower::BoxError;

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

/// Notes how every request ends.
impl AnswerLayer for ReachabilityMonitor {
    async fn handle(self, _lasting: bool, answer: impl AnswerFuture) -> Result<Answered, BoxError> {
        let answer = answer.await;
        match &answer {
            Ok(_) => self.answered(),
            Err(error) => self.failed(error),
        }
        answer
    }
}
