//! Throttling: an object whose turns are long takes them seldom, and so takes in many outcomes and events at once.
//!
//! A turn of a large plan costs a good part of a millisecond, and each of its many effects calls for one, twice: when it
//! is answered and when what it wrote is seen. For its turns an object therefore owes a rest a few times as long, which it
//! takes once it owes more than a few turns' worth: a single slow one delays nothing. While effects of it are under way or
//! any wait for their turn it rests after each turn, and the longer the more others rest: together they leave most of
//! the time to the effects, and what it could start would wait as well. When the last of its effects has come back what
//! follows may start at once. Turns of small plans are never long, but what somebody changes all the time calls for many of
//! them: an object that is called again and again with nothing to do takes a few turns at once and then ten a second.
//! Evaluations that do not fit one turn take at most a fifth of the time for all objects of a namespace together.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use linchpin_cluster::hub::SubscriberId;

use super::{
    allowance::Allowance,
    entry::Entry,
    pace::{
        IDLE_TURNS, LONGEST_REST, LONGEST_REST_BESIDE_EFFECTS, OWED_REST, REST_TIMES,
        REST_TIMES_BESIDE_EFFECTS, SHORTEST_REST, UNFINISHED_TIMES,
    },
    timers::Timers,
};

/// An object's last turn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LastTurn {
    pub(super) took: Duration,
    pub(super) ended: Instant,
    /// How much rest it owes for this turn and those before.
    pub(super) owed: Duration,
    /// Turns in which nothing was done.
    pub(super) idle: Allowance,
    /// When what did not fit the turn may go on.
    pub(super) goes_on: Option<Instant>,
}

impl LastTurn {
    /// The turn that has just ended, after another one.
    pub(super) fn after(last: Option<Self>, began: Instant, ended: Instant, did_something: bool) -> Self {
        let mut idle = last.map(|last| last.idle).unwrap_or_default();
        if did_something {
            idle = Allowance::default();
        } else {
            idle.take(ended, IDLE_TURNS);
        }
        let took = ended.saturating_duration_since(began);
        let left = last.map_or(Duration::ZERO, |last| {
            last.owed.saturating_sub(began.saturating_duration_since(last.ended))
        });
        let owed = left.saturating_add(took.saturating_mul(REST_TIMES)).min(OWED_REST + LONGEST_REST);
        Self { took, ended, owed, idle, goes_on: None }
    }
}

impl LastTurn {
    /// Until when an object rests after this turn, beside so many others; none where that is not worth it.
    fn rests_until(self, beside_effects: bool, others: usize) -> Option<Instant> {
        let rest = if beside_effects {
            let all = u32::try_from(others).unwrap_or(u32::MAX).saturating_add(1);
            (self.took * REST_TIMES_BESIDE_EFFECTS).saturating_mul(all).min(LONGEST_REST_BESIDE_EFFECTS)
        } else {
            self.owed.saturating_sub(OWED_REST)
        };
        let called_too_often = self.idle.is_used_up(self.ended, IDLE_TURNS);
        let rest = if called_too_often { rest.max(IDLE_TURNS.every) } else { rest };
        let until = (rest > SHORTEST_REST).then(|| self.ended + rest);
        until.max(self.goes_on)
    }
}

/// When evaluations that do not fit one turn may go on, by namespace.
#[derive(Debug, Default)]
pub(super) struct Unfinished(BTreeMap<String, Instant>);

impl Unfinished {
    /// When what a turn left over may go on: after what others of the namespace left over before.
    pub(super) fn place(&mut self, namespace: String, took: Duration, ended: Instant) -> Instant {
        self.0.retain(|_, until| *until > ended);
        let until = self.0.entry(namespace).or_insert(ended);
        *until += took * UNFINISHED_TIMES;
        *until
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
        let began = Instant::now();
        let ended = began + took;
        let until = LastTurn::after(None, began, ended, true).rests_until(beside_effects, others);
        until.map(|until| until.saturating_duration_since(ended))
    }

    #[test]
    fn a_single_turn_needs_no_rest_unless_it_is_very_long_and_no_rest_is_long() {
        assert_eq!(rest(Duration::from_micros(900), false, 100), None);
        assert_eq!(rest(Duration::from_millis(5), false, 100), None);
        assert_eq!(rest(Duration::from_millis(8), false, 100), Some(Duration::from_millis(15)));
        assert_eq!(rest(Duration::from_secs(3), false, 0), Some(LONGEST_REST));
    }

    #[test]
    fn turns_in_a_row_take_a_sixth_of_the_time_however_short_each_is() {
        let took = Duration::from_millis(1);
        let (mut last, mut now, mut turns) = (None, Instant::now(), 0);
        let end = now + Duration::from_secs(1);
        while now < end {
            let turn = LastTurn::after(last, now, now + took, true);
            turns += 1;
            now = turn.rests_until(false, 0).unwrap_or(now + took);
            last = Some(turn);
        }
        assert!((160..185).contains(&turns), "{turns} turns of a millisecond in a second");
    }

    #[test]
    fn an_object_that_is_called_again_and_again_with_nothing_to_do_rests_until_there_is_something() {
        let mut last = None;
        let now = Instant::now();
        for _ in 1..IDLE_TURNS.burst {
            let turn = LastTurn::after(last, now, now, false);
            assert_eq!(turn.rests_until(false, 0), None);
            last = Some(turn);
        }
        let turn = LastTurn::after(last, now, now, false);
        assert_eq!(turn.rests_until(false, 0), Some(now + IDLE_TURNS.every));
        assert_eq!(LastTurn::after(Some(turn), now, now, true).rests_until(false, 0), None);
    }

    #[test]
    fn what_is_left_over_in_a_namespace_goes_on_one_after_another_and_keeps_no_other_namespace_waiting() {
        let (now, took) = (Instant::now(), Duration::from_millis(5));
        let mut unfinished = Unfinished::default();
        assert_eq!(unfinished.place("a".into(), took, now), now + took * 4);
        assert_eq!(unfinished.place("a".into(), took, now + took), now + took * 8);
        assert_eq!(unfinished.place("b".into(), took, now + took), now + took * 5);
        let later = now + Duration::from_secs(1);
        assert_eq!(
            unfinished.place("a".into(), took, later),
            later + took * 4,
            "what has passed is forgotten"
        );
        assert_eq!(unfinished.0.len(), 1);
        let turn = LastTurn { goes_on: Some(later), ..LastTurn::after(None, now, now, false) };
        assert_eq!(turn.rests_until(false, 0), Some(later));
    }

    #[test]
    fn beside_effects_a_crowd_rests_longer_than_one_alone() {
        let short = Duration::from_micros(200);
        assert_eq!(rest(short, true, 0), None);
        assert_eq!(rest(short, true, 9), Some(Duration::from_millis(24)));
        assert_eq!(rest(short, true, 1_000_000), Some(LONGEST_REST_BESIDE_EFFECTS));
    }
}
