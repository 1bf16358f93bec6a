//! Whether the server has been answering: noted on every request, asked by readiness and metrics.
//!
//! Any answer counts, also a refusal: the question is only whether the server can be talked to. Beside that it is counted
//! how often we were forbidden what we asked for as ourselves, for that is a right which we lack.

use super::layer::{AnswerFuture, AnswerLayer, Answered, Asked};
use http::StatusCode;
use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
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
    forbidden: Arc<AtomicU64>,
}

impl Default for ReachabilityMonitor {
    fn default() -> Self {
        Self { note: Arc::new(Mutex::new(Reachability::Unknown)), forbidden: Arc::default() }
    }
}

impl ReachabilityMonitor {
    /// What is known now.
    pub fn now(&self) -> Reachability {
        self.note.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How many requests that were made as ourselves the server has forbidden.
    pub fn forbidden(&self) -> u64 {
        self.forbidden.load(Ordering::Relaxed)
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
    async fn handle(self, asked: Asked, answer: impl AnswerFuture) -> Result<Answered, BoxError> {
        let answer = answer.await;
        match &answer {
            Ok(answer) => {
                self.answered();
                if asked.own && answer.status() == StatusCode::FORBIDDEN {
                    self.forbidden.fetch_add(1, Ordering::Relaxed);
                }
            }
            Err(error) => self.failed(error),
        }
        answer
    }
}
