//! Throttling: an object whose turns are long takes them seldom, and so takes in many outcomes and events at once.
//!
//! A turn of a large plan costs a good part of a millisecond, and each of its many effects calls for one, twice: when it
//! is answered and when what it wrote is seen. After a turn an object therefore rests for a few times as long, and the
//! longer the more others rest while effects of it are under way or any wait for their turn: together they leave most of
//! the time to the effects, and what it could start would wait as well. When the last of its effects has come back what
//! follows may start at once. Turns of small plans are never long.

use std::time::{Duration, Instant};

use linchpin_cluster::hub::SubscriberId;

use super::{entry::Entry, timers::Timers};

/// A rest that is no longer than this saves nothing.
const SHORT: Duration = Duration::from_millis(5);
/// How many times as long as its last turn an object rests.
const TIMES: u32 = 5;
/// The longest rest: nobody notices it.
const LONGEST: Duration = Duration::from_millis(50);
/// How many times as long beside effects, for each that rests.
const TIMES_BESIDE_EFFECTS: u32 = 12;
/// The longest rest beside effects.
const LONGEST_BESIDE_EFFECTS: Duration = Duration::from_millis(200);

/// An object's last turn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LastTurn {
    pub(super) took: Duration,
    pub(super) ended: Instant,
}

impl LastTurn {
    /// Until when an object rests after this turn, beside so many others; none where that is not worth it.
    fn rests_until(self, beside_effects: bool, others: usize) -> Option<Instant> {
        let rest = if beside_effects {
            let all = u32::try_from(others).unwrap_or(u32::MAX).saturating_add(1);
            (self.took * TIMES_BESIDE_EFFECTS).saturating_mul(all).min(LONGEST_BESIDE_EFFECTS)
        } else {
            (self.took * TIMES).min(LONGEST)
        };
        (rest > SHORT).then(|| self.ended + rest)
    }
}

/// Until when this object rests, though it is called; effects may wait for their turn, of it or of others.
pub(super) fn until(entry: &Entry, resting: &Throttled, effects_wait: bool, now: Instant) -> Option<Instant> {
    let all_came_back = entry.in_flight == 0 && !entry.outcomes.is_empty();
    let rests_until = entry.last_turn?.rests_until(entry.in_flight > 0 || effects_wait, resting.len());
    rests_until.filter(|until| *until > now && !all_came_back)
}

/// Objects that were called while they rest, by when they get up.
pub(super) type Throttled = Timers<Instant, SubscriberId>;

#[cfg(test)]
mod tests {
    use super::*;

    fn rest(took: Duration, beside_effects: bool, others: usize) -> Option<Duration> {
        let ended = Instant::now();
        let until = LastTurn { took, ended }.rests_until(beside_effects, others);
        until.map(|until| until.saturating_duration_since(ended))
    }

    #[test]
    fn a_short_turn_needs_no_rest_and_no_rest_is_long() {
        assert_eq!(rest(Duration::from_micros(900), false, 100), None);
        assert_eq!(rest(Duration::from_millis(3), false, 100), Some(Duration::from_millis(15)));
        assert_eq!(rest(Duration::from_secs(3), false, 0), Some(LONGEST));
    }

    #[test]
    fn beside_effects_a_crowd_rests_longer_than_one_alone() {
        let short = Duration::from_micros(200);
        assert_eq!(rest(short, true, 0), None);
        assert_eq!(rest(short, true, 9), Some(Duration::from_millis(24)));
        assert_eq!(rest(short, true, 1_000_000), Some(LONGEST_BESIDE_EFFECTS));
    }
}
