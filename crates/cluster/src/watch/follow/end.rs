//! How an attempt to follow ends.

use crate::{
    call::{CallError, Refused},
    watch::parse::{Broken, UnreadableReply},
};

/// How an attempt ended.
pub(super) enum FollowEnd {
    /// The server ended it in good order.
    Renew,
    /// Everything must be read again.
    Expired,
    /// The server has no streaming of first states.
    CannotStream,
    /// More is read by now than what was asked for.
    Outgrown,
    /// No answer, a refusal, or an answer that breaks off.
    Failed(CallError),
}

impl From<CallError> for FollowEnd {
    fn from(error: CallError) -> Self {
        if error.is_code(410) { Self::Expired } else { Self::Failed(error) }
    }
}

impl From<UnreadableReply> for FollowEnd {
    fn from(error: UnreadableReply) -> Self {
        Self::broken(&error.to_string())
    }
}

impl From<Broken> for FollowEnd {
    fn from(broken: Broken) -> Self {
        match broken {
            Broken::UnreadableReply(error) => error.into(),
            Broken::Refused(status) => {
                let refused = Refused { code: status.code, status: *status, retry_after: None };
                CallError::Refused(Box::new(refused)).into()
            }
        }
    }
}

impl FollowEnd {
    pub(super) fn broken(message: &str) -> Self {
        Self::Failed(CallError::Unanswered { message: message.to_owned(), maybe_sent: true })
    }
}
