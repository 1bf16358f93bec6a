//! When the reporter of causes looks, and at how many objects. Pure: the time is given.
//!
//! Nobody waits for what it finds, so it yields to whatever happens. What an object of ours reports is for others a reason to
//! act: right after a message a look would come between the two. It takes its looks in short slices for the same reason.

use std::{ops::Bound, time::Instant};

use linchpin_cluster::hub::SubscriberId;

use super::super::pace::{
    BUSY_ASKED_EVERY, LOOK_SLICE, LOOKS_EVERY, LOOKS_PUT_OFF, LOOKS_YIELD, LULL, OBJECTS_A_LOOK,
    STATUSES_A_LOOK,
};

/// How far the reporter is.
#[derive(Default)]
pub(crate) struct Reporter {
    /// Whether something changed since the round began.
    stale: bool,
    /// The last object of the round that was looked at; none between rounds.
    at: Option<SubscriberId>,
    /// When the last look was begun.
    last: Option<Instant>,
    /// What the look that is under way may still do.
    left: Option<LookBudget>,
    /// When a message came last.
    heard: Option<Instant>,
}

/// What one look may do.
struct LookBudget {
    looks: usize,
    changes: usize,
    until: Instant,
}

impl Reporter {
    /// To be called when somebody's waits may have changed.
    pub(crate) fn note_change(&mut self) {
        self.stale = true;
    }

    /// To be called when messages came.
    pub(crate) fn note_messages(&mut self, now: Instant) {
        self.heard = Some(now);
    }

    /// When it may look next, as far as is known now, and whether effects are under way; none while there is nothing to look
    /// at.
    pub(crate) fn next(&self, now: Instant, busy: bool) -> Option<Instant> {
        if !self.stale && self.at.is_none() && self.left.is_none() {
            return None;
        }
        let Some(last) = self.last else { return Some(now) };
        let due = if self.left.is_some() { last } else { last + LOOKS_EVERY };
        if busy && now < last + LOOKS_YIELD {
            return Some(due.max(now + BUSY_ASKED_EVERY).min(last + LOOKS_YIELD));
        }
        let quiet = self.heard.map_or(due, |heard| (heard + LULL).min(last + LOOKS_EVERY + LOOKS_PUT_OFF));
        Some(due.max(quiet))
    }

    /// Begins a look, or goes on with the one under way: after which object, and at how many.
    pub(super) fn begin(&mut self, now: Instant) -> (Bound<SubscriberId>, usize) {
        if self.at.is_none() {
            self.stale = false;
        }
        let until = now + LOOK_SLICE;
        let left = self.left.get_or_insert_with(|| {
            self.last = Some(now);
            LookBudget { looks: OBJECTS_A_LOOK, changes: STATUSES_A_LOOK, until }
        });
        left.until = until;
        (self.at.map_or(Bound::Unbounded, Bound::Excluded), left.looks)
    }

    /// An object was looked at; whether the next one may be at once.
    pub(super) fn looked(&mut self, id: SubscriberId, changed: bool, now: Instant) -> bool {
        self.at = Some(id);
        let Some(left) = &mut self.left else { return false };
        left.looks = left.looks.saturating_sub(1);
        left.changes = left.changes.saturating_sub(usize::from(changed));
        let goes_on = now < left.until;
        if left.looks == 0 || left.changes == 0 {
            self.left = None;
            return false;
        }
        goes_on
    }

    /// All of them were looked at.
    pub(super) fn ended(&mut self) {
        (self.at, self.left) = (None, None);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const MOMENT: Duration = Duration::from_micros(100);

    /// Looks at so many objects, each for so long; at how many before it stops.
    fn look(reporter: &mut Reporter, from: u64, begun: Instant, each: Duration) -> (u64, Instant) {
        let (_, looks) = reporter.begin(begun);
        let mut now = begun;
        for number in 1..=looks as u64 {
            now += each;
            if !reporter.looked(SubscriberId(from + number), false, now) {
                return (number, now);
            }
        }
        (looks as u64, now)
    }

    #[test]
    fn a_look_stops_after_a_moment_and_goes_on_once_messages_were_taken_in_and_then_pauses() {
        let begun = Instant::now();
        let mut reporter = Reporter::default();
        assert_eq!(reporter.next(begun, false), None);
        reporter.note_change();
        assert_eq!(reporter.next(begun, false), Some(begun));
        let (mut seen, mut now) = (0, begun);
        while seen < OBJECTS_A_LOOK as u64 {
            assert!(reporter.next(now, false).is_some_and(|at| at <= now), "after {seen}");
            let (more, later) = look(&mut reporter, seen, now, MOMENT);
            assert!(later.duration_since(now) <= LOOK_SLICE, "{more} at once");
            (seen, now) = (seen + more, later);
        }
        assert_eq!(seen, OBJECTS_A_LOOK as u64);
        assert_eq!(reporter.next(now, false), Some(begun + LOOKS_EVERY), "the next ones come after a pause");
    }

    #[test]
    fn it_yields_to_messages_and_effects_and_not_for_ever() {
        let begun = Instant::now();
        let mut reporter = Reporter::default();
        reporter.note_change();
        look(&mut reporter, 0, begun, Duration::ZERO);
        let due = begun + LOOKS_EVERY;
        reporter.note_messages(due);
        assert_eq!(reporter.next(due, false), Some(due + LULL));
        assert_eq!(reporter.next(due, true), Some(due + BUSY_ASKED_EVERY));
        let late = due + LOOKS_PUT_OFF;
        reporter.note_messages(late);
        assert_eq!(reporter.next(late, false), Some(late), "messages that never end put it off so long");
        assert_eq!(
            reporter.next(begun + LOOKS_YIELD, true).map(|at| at <= begun + LOOKS_YIELD + LULL),
            Some(true)
        );
    }

    #[test]
    fn so_many_statuses_are_drawn_anew_and_no_more() {
        let now = Instant::now();
        let mut reporter = Reporter::default();
        reporter.note_change();
        reporter.begin(now);
        let looked = (1..1_000).find(|number| !reporter.looked(SubscriberId(*number), true, now));
        assert_eq!(looked, Some(STATUSES_A_LOOK as u64));
        reporter.ended();
        assert_eq!(reporter.next(now, false), None, "the round is over");
    }
}
