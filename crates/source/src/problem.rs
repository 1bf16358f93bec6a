//! Why a source cannot be used: a reason, and a line for people in our own words.
//!
//! A message names the host, the file or the limit. It never repeats what a server answered, and no credential.

use std::fmt;

use linchpin_words::{Reason, text};

/// Why a source cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The kind of problem.
    pub reason: Reason,
    /// What went wrong, with what, and what to do.
    pub message: String,
    /// How many seconds the server asks us to wait before the next attempt.
    pub retry_after: Option<u64>,
}

impl Problem {
    /// A problem with its explanation, kept to one bounded line.
    pub fn new(reason: Reason, message: impl AsRef<str>) -> Self {
        Self { reason, message: text::line(message.as_ref()), retry_after: None }
    }

    pub(crate) fn too_large(message: impl AsRef<str>) -> Self {
        Self::new(Reason::TooLarge, message)
    }

    pub(crate) fn unsafe_archive(message: impl AsRef<str>) -> Self {
        Self::new(Reason::ArchiveUnsafe, message)
    }

    pub(crate) fn invalid_archive(message: impl AsRef<str>) -> Self {
        Self::new(Reason::ArchiveInvalid, message)
    }

    pub(crate) fn failed(message: impl AsRef<str>) -> Self {
        Self::new(Reason::FetchFailed, message)
    }

    /// Whether another attempt may end otherwise although nothing was changed: then what was read before still counts.
    pub fn is_passing(&self) -> bool {
        matches!(
            self.reason,
            Reason::FetchFailed
                | Reason::Unauthorized
                | Reason::SourceNotFound
                | Reason::HostNotAllowed
                | Reason::AddressDenied
                | Reason::OverBudget
        )
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Problem {}
