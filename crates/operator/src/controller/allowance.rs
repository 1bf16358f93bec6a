//! An allowance: so many at once, and then one now and then.
//!
//! What a user can make happen as often as they like (a phase that flaps, an object that is called again and again with
//! nothing to do) is served at once as long as it is seldom, and at a steady pace afterwards. Used by `saving` and
//! `throttle`; pure, the time is given.

use std::time::{Duration, Instant};

/// How much is allowed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rate {
    /// So many at once.
    pub(super) burst: u32,
    /// How long it takes until one more is allowed.
    pub(super) every: Duration,
}

/// How much of it has been used up. A fresh one is full.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Allowance {
    used: u32,
    /// From when on what was used up counts as given back.
    since: Option<Instant>,
}

impl Allowance {
    /// Takes one. Returns whether it was there.
    pub(super) fn take(&mut self, now: Instant, rate: Rate) -> bool {
        self.give_back(now, rate);
        if self.used >= rate.burst {
            return false;
        }
        self.used += 1;
        true
    }

    /// Whether none is left.
    pub(super) fn is_used_up(&self, now: Instant, rate: Rate) -> bool {
        let mut present = *self;
        present.give_back(now, rate);
        present.used >= rate.burst
    }

    fn give_back(&mut self, now: Instant, rate: Rate) {
        let since = *self.since.get_or_insert(now);
        let passed = now.saturating_duration_since(since).as_nanos() / rate.every.as_nanos().max(1);
        let back = u32::try_from(passed).unwrap_or(u32::MAX);
        self.used = self.used.saturating_sub(back);
        // A full one begins to count with the next that is taken; otherwise what has passed of the next one counts.
        self.since = Some(if self.used == 0 { now } else { since + rate.every.saturating_mul(back) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate { burst: 3, every: Duration::from_secs(10) };

    #[test]
    fn a_few_are_allowed_at_once_and_then_one_at_a_time() {
        let begun = Instant::now();
        let mut allowance = Allowance::default();
        assert_eq!([0; 5].map(|_| allowance.take(begun, RATE)), [true, true, true, false, false]);
        assert!(allowance.is_used_up(begun + Duration::from_secs(9), RATE));
        let later = begun + Duration::from_secs(11);
        assert!(!allowance.is_used_up(later, RATE));
        assert!(allowance.take(later, RATE) && !allowance.take(later, RATE));
        assert!(allowance.take(begun + Duration::from_secs(20), RATE), "the second that had passed counts");
    }

    #[test]
    fn a_long_quiet_time_gives_everything_back_and_no_more() {
        let begun = Instant::now();
        let mut allowance = Allowance::default();
        while allowance.take(begun, RATE) {}
        let later = begun + Duration::from_hours(1);
        assert_eq!([0; 4].map(|_| allowance.take(later, RATE)), [true, true, true, false]);
    }
}
