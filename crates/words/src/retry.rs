//! The one retry formula: when something that failed is tried again.
//!
//! Delays double from a first value to a cap and are spread by a jitter that is a hash of who retries what, so the
//! same inputs give the same delay and a thousand objects do not knock at the same moment.

use std::{hash::Hasher as _, time::Duration};

use crate::hash::Fnv;

/// How long to wait after the given attempt (from 1): between half and all of the doubled delay.
pub fn delay(first: Duration, cap: Duration, who: &str, what: &str, attempt: u32) -> Duration {
    let doublings = attempt.saturating_sub(1).min(30);
    let full = first.saturating_mul(1 << doublings).min(cap);
    let half = full / 2;
    half + half.mul_f64(spread(who, what, attempt))
}

/// A number in [0, 1) that depends on nothing but its inputs.
fn spread(who: &str, what: &str, attempt: u32) -> f64 {
    let mut hash = Fnv::default();
    hash.write(who.as_bytes());
    hash.write(what.as_bytes());
    hash.write(&attempt.to_le_bytes());
    let top = u32::try_from(hash.finish() >> 32).unwrap_or(u32::MAX);
    f64::from(top) / (f64::from(u32::MAX) + 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_to_the_cap_and_are_the_same_for_the_same() {
        let (first, cap) = (Duration::from_millis(5), Duration::from_mins(1));
        let after = |attempt| delay(first, cap, "uid", "look", attempt);
        for attempt in 1..60 {
            let full = first.saturating_mul(1 << (attempt - 1).min(30)).min(cap);
            assert!(after(attempt) >= full / 2 && after(attempt) <= full, "attempt {attempt}");
        }
        assert_eq!(after(3), after(3));
        assert_ne!(after(3), delay(first, cap, "uid", "write", 3));
        assert!(delay(first, cap, "uid", "look", u32::MAX) <= cap);
    }
}
