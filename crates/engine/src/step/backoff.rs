//! The one retry policy.
//!
//! Delays double from a first value to a cap and are spread by a jitter that is a hash of who retries what, so the
//! same inputs give the same delay and a thousand objects do not knock at the same moment.

use std::{hash::Hasher as _, time::Duration};

use linchpin_words::hash::Fnv;

use crate::contract::StepId;

/// Classes of failure, each with its own pace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    /// Faults that pass: no connection, 5xx, a lost race.
    Transient,
    /// Something is not there yet; seeing it arrive cuts the delay short.
    Absent,
    /// Somebody has to mend something: rights, a conflict, an invalid object.
    Refused,
}

impl Pace {
    fn bounds(self) -> (Duration, Duration) {
        match self {
            Self::Transient => (Duration::from_millis(100), Duration::from_secs(30)),
            Self::Absent => (Duration::from_secs(1), Duration::from_mins(5)),
            Self::Refused => (Duration::from_secs(2), Duration::from_mins(5)),
        }
    }
}

/// How long to wait after the given attempt (from 1): between half and all of the doubled delay.
pub(crate) fn delay(pace: Pace, uid: &str, step: &StepId, attempt: u32) -> Duration {
    let (first, cap) = pace.bounds();
    let doublings = attempt.saturating_sub(1).min(16);
    let full = first.saturating_mul(1 << doublings).min(cap);
    let half = full / 2;
    half + half.mul_f64(spread(uid, step, attempt))
}

/// A number in [0, 1) that depends on nothing but its inputs.
fn spread(uid: &str, step: &StepId, attempt: u32) -> f64 {
    let mut hash = Fnv::default();
    hash.write(uid.as_bytes());
    hash.write(step.as_str().as_bytes());
    hash.write(&attempt.to_le_bytes());
    let top = u32::try_from(hash.finish() >> 32).unwrap_or(u32::MAX);
    f64::from(top) / (f64::from(u32::MAX) + 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_to_the_cap_and_never_beyond() {
        let step = StepId::new("a");
        let mut last = Duration::ZERO;
        for attempt in 1..40 {
            let now = delay(Pace::Refused, "uid", &step, attempt);
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
            (0..100).map(|uid| delay(Pace::Absent, &uid.to_string(), &step, 3)).collect();
        assert!(delays.len() > 90);
    }
}
