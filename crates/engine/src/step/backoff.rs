//! The one retry policy: which failure is repeated at which pace. The formula is [`linchpin_words::retry`]'s.

use std::time::Duration;

use linchpin_words::retry;

use crate::contract::StepId;

/// Classes of failure, each with its own pace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FailureClass {
    /// Faults that pass: no connection, 5xx, a lost race.
    Transient,
    /// Something is not there yet; seeing it arrive cuts the delay short.
    Absent,
    /// Somebody has to mend something: rights, a conflict, an invalid object.
    Refused,
}

impl FailureClass {
    fn bounds(self) -> (Duration, Duration) {
        match self {
            Self::Transient => (Duration::from_millis(100), Duration::from_secs(30)),
            Self::Absent => (Duration::from_secs(1), Duration::from_mins(5)),
            Self::Refused => (Duration::from_secs(2), Duration::from_mins(5)),
        }
    }
}

/// How long to wait after the given attempt (from 1): between half and all of the doubled delay.
pub(crate) fn delay(pace: FailureClass, uid: &str, step: &StepId, attempt: u32) -> Duration {
    let (first, cap) = pace.bounds();
    retry::delay(first, cap, uid, step.as_str(), attempt)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_to_the_cap_and_never_beyond() {
        let step = StepId::new("a");
        let mut last = Duration::ZERO;
        for attempt in 1..40 {
            let now = delay(FailureClass::Refused, "uid", &step, attempt);
            assert!(now <= Duration::from_mins(5));
            assert!(now >= Duration::from_secs(1));
            if attempt < 7 {
                assert!(now > last / 2, "attempt {attempt}");
            }
            last = now;
        }
        assert!(last >= Duration::from_secs(150));
    }

    #[test]
    fn objects_do_not_knock_at_the_same_moment() {
        let step = StepId::new("a");
        let delays: std::collections::BTreeSet<Duration> =
            (0..100).map(|uid| delay(FailureClass::Absent, &uid.to_string(), &step, 3)).collect();
        assert!(delays.len() > 90);
    }
}
