//! Rest: an object whose turns are long takes them seldom, and so takes in many outcomes and events at once.
//!
//! A turn of a large plan costs milliseconds, and each of its many effects calls for one, twice: when it is answered and
//! when what it wrote is seen. After a long turn an object therefore rests for a few times as long, except when the
//! last effect it waits for has come back: then what follows may start at once. Turns of small plans are never long.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use linchpin_cluster::hub::SubscriberId;

use super::entry::Entry;

/// A turn that is no longer than this costs nothing worth saving.
const SHORT: Duration = Duration::from_millis(1);
/// How many times as long as its last turn an object rests.
const TIMES: u32 = 5;
/// The longest rest: nobody notices it.
const LONGEST: Duration = Duration::from_millis(50);

/// Until when an object rests after a turn that took so long.
pub(super) fn after(turn: Duration, ended: Instant) -> Option<Instant> {
    (turn > SHORT).then(|| ended + (turn * TIMES).min(LONGEST))
}

/// Until when this object rests, though it is called.
pub(super) fn until(entry: &Entry, now: Instant) -> Option<Instant> {
    let all_came_back = entry.in_flight == 0 && !entry.outcomes.is_empty();
    entry.rests_until.filter(|until| *until > now && !all_came_back)
}

/// Objects that were called while they rest, by when they get up.
#[derive(Debug, Default)]
pub(super) struct Resting(BTreeSet<(Instant, SubscriberId)>);

impl Resting {
    /// Remembers that an object was called.
    pub(super) fn put(&mut self, until: Instant, id: SubscriberId) {
        self.0.insert((until, id));
    }

    /// When the next one gets up.
    pub(super) fn next(&self) -> Option<Instant> {
        self.0.first().map(|(until, _)| *until)
    }

    /// One that has rested enough.
    pub(super) fn pop(&mut self, now: Instant) -> Option<SubscriberId> {
        self.next().filter(|until| *until <= now)?;
        self.0.pop_first().map(|(_, id)| id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_turn_needs_no_rest_and_no_rest_is_long() {
        let now = Instant::now();
        assert_eq!(after(Duration::from_micros(900), now), None);
        assert_eq!(after(Duration::from_millis(3), now), Some(now + Duration::from_millis(15)));
        assert_eq!(after(Duration::from_secs(3), now), Some(now + LONGEST));
    }

    #[test]
    fn whoever_was_called_gets_up_once_in_the_order_of_time() {
        let now = Instant::now();
        let (soon, later) = (now + Duration::from_millis(1), now + Duration::from_millis(2));
        let mut resting = Resting::default();
        resting.put(later, SubscriberId(1));
        resting.put(soon, SubscriberId(2));
        resting.put(later, SubscriberId(1));
        assert_eq!(resting.pop(now), None);
        assert_eq!(resting.next(), Some(soon));
        assert_eq!(resting.pop(later), Some(SubscriberId(2)));
        assert_eq!(resting.pop(later), Some(SubscriberId(1)));
        assert_eq!(resting.pop(later), None);
    }
}
