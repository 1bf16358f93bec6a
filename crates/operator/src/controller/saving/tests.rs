//! When what is written, and what goes together.

use std::time::{Duration, Instant};

use super::{
    super::{
        backlog::Due,
        pace::{FLAPPING_EVERY, LONGEST_WRITE_REST, PHASES_AT_ONCE, PROGRESS_EVERY, YIELD},
    },
    machine::{FirstJournal, FirstJournalMay, NextWrite, SavingMachine, SavingWrite, WriteEnd},
    write_pace::{UnderWay, Urgency, WritePace},
};

/// An object with a status to write.
fn changed() -> SavingMachine {
    let mut machine = SavingMachine::default();
    machine.decided(None, false);
    machine
}

fn phase_change(begun: Instant) -> WritePace {
    WritePace { urgency: Urgency::AtOnce, last: Some(begun), ..WritePace::default() }
}

fn due(pace: &mut WritePace, now: Instant) -> Due {
    pace.due(&changed(), now).unwrap()
}

#[test]
fn a_status_yields_to_effects_for_a_second_however_old_the_last_one_is() {
    let begun = Instant::now();
    let later = begun + Duration::from_mins(1);
    let mut pace = phase_change(begun);
    let first = due(&mut pace, later);
    assert_eq!((first.quiet, first.busy), (later, later + YIELD));
    let again = due(&mut pace, later + Duration::from_millis(500));
    assert_eq!(again, first, "another change of the same does not begin the wait anew");
}

#[test]
fn progress_is_written_once_a_second_and_a_phase_at_once() {
    let begun = Instant::now();
    let soon = begun + Duration::from_millis(10);
    assert_eq!(due(&mut phase_change(begun), soon).quiet, soon);
    let mut progress = WritePace { urgency: Urgency::Calm, ..phase_change(begun) };
    assert_eq!(due(&mut progress, soon).quiet, begun + PROGRESS_EVERY);
    let mut first = WritePace { last: None, ..progress };
    assert_eq!(due(&mut first, soon).quiet, soon);
}

#[test]
fn what_other_objects_wait_for_goes_first_until_it_is_written_whatever_comes_after_it() {
    let begun = Instant::now();
    let mut pace = WritePace::default();
    assert!(pace.hurry(begun, false));
    assert!(!due(&mut pace, begun).awaited);
    assert!(pace.hurry(begun, true));
    pace.raise(Urgency::AtOnce);
    assert!(due(&mut pace, begun).awaited);
}

#[test]
fn a_phase_that_flaps_is_written_at_once_a_few_times_and_then_seldom() {
    let begun = Instant::now();
    let soon = begun + Duration::from_millis(10);
    let mut pace = WritePace { urgency: Urgency::Calm, ..phase_change(begun) };
    for _ in 0..PHASES_AT_ONCE.burst {
        assert!(pace.hurry(soon, false));
        assert_eq!(due(&mut pace, soon).quiet, soon);
        pace.urgency = Urgency::Calm;
    }
    assert!(!pace.hurry(soon, false));
    assert_eq!(due(&mut pace, soon).quiet, begun + FLAPPING_EVERY);
    assert!(pace.hurry(soon + PHASES_AT_ONCE.every, false), "after a while one is written at once again");
    assert!(!pace.hurry(soon + PHASES_AT_ONCE.every, false), "and no more than one");
}

#[test]
fn the_first_journal_may_be_written_with_the_finalizer_and_only_where_there_is_no_journal() {
    let mut machine = changed();
    assert_eq!(machine.next(), NextWrite::Draw, "without a finalizer it is worth no write");
    machine.decided(Some(true), false);
    let with = |first_journal| NextWrite::Metadata { finalizer: Some(true), first_journal };
    assert_eq!(machine.next(), with(FirstJournalMay::Be));
    machine.arrived(true, false);
    assert_eq!(machine.next(), with(FirstJournalMay::Stay));
    machine.arrived(true, true);
    assert_eq!(machine.next(), with(FirstJournalMay::Go));
}

#[test]
fn the_first_journal_goes_when_the_status_holds_one() {
    let mut machine = SavingMachine::default();
    machine.arrived(false, true);
    assert!(!machine.has_something(), "it is all there is");
    machine.arrived(true, true);
    assert!(WritePace::default().due(&machine, Instant::now()).is_some_and(|due| !due.waited_for));
    assert_eq!(machine.next(), NextWrite::Metadata { finalizer: None, first_journal: FirstJournalMay::Go });
    machine.begin(SavingWrite::Metadata { finalizer: None, first_journal: Some(FirstJournal::Shed) });
    machine.ended(WriteEnd::Done { newest: true });
    assert!(!machine.has_something());
}

#[test]
fn what_effects_wait_for_stands_in_another_line() {
    let now = Instant::now();
    let mut machine = changed();
    machine.decided(Some(false), true);
    let mut pace = WritePace { urgency: Urgency::Calm, ..phase_change(now) };
    let due = pace.due(&machine, now).unwrap();
    assert!(due.waited_for && due.quiet == now);
    let mut failing = WritePace { failures: 1, ..pace };
    let due = failing.due(&machine, now).unwrap();
    assert_eq!(due.quiet, now + Duration::from_millis(200), "a failed write pauses");
}

#[test]
fn how_a_command_ended_is_written_beside_other_effects() {
    let now = Instant::now();
    let mut pace = WritePace { confirms: true, urgency: Urgency::Calm, ..phase_change(now) };
    let due = due(&mut pace, now);
    assert!(due.waited_for && due.quiet == now);
}

#[test]
fn beside_effects_one_is_written_at_a_time_and_then_none_for_a_while() {
    let begun = Instant::now();
    let ended = begun + Duration::from_millis(20);
    let mut under_way = UnderWay::default();
    assert_eq!(under_way.room(begun, true), Some(begun));
    under_way.begin(&"a".into(), begun);
    assert_eq!(under_way.room(begun, true), None);
    assert_eq!(under_way.room(begun, false), Some(begun), "but while it is quiet");
    under_way.end(&"a".into(), ended);
    assert_eq!(under_way.room(ended, true), Some(ended + Duration::from_millis(380)));
    assert_eq!(under_way.room(ended, false), Some(ended));
    let later = ended + Duration::from_secs(1);
    assert_eq!(under_way.room(later, true), Some(later));
    under_way.begin(&"a".into(), later);
    let late = later + Duration::from_secs(10);
    under_way.end(&"a".into(), late);
    assert_eq!(under_way.room(late, true), Some(late + LONGEST_WRITE_REST), "no pause is long");
}

#[test]
fn nothing_is_due_while_a_write_is_under_way_or_a_newer_object_is_on_its_way() {
    let now = Instant::now();
    let mut machine = changed();
    machine.begin(SavingWrite::Status { critical: 1, journaled: true });
    machine.decided(None, false);
    assert_eq!(phase_change(now).due(&machine, now), None);
    machine.ended(WriteEnd::Conflict { known: false });
    assert_eq!(phase_change(now).due(&machine, now), None);
    machine.arrived(true, false);
    assert!(phase_change(now).due(&machine, now).is_some());
    assert_eq!(WritePace::default().due(&SavingMachine::default(), now), None);
}

#[test]
fn one_namespace_has_at_most_half_of_what_is_written_at_a_time() {
    let (now, mut under_way) = (Instant::now(), UnderWay::default());
    let (crowd, alone) = ("crowd".into(), "alone".into());
    under_way.begin(&crowd, now);
    assert_eq!(under_way.full(), []);
    under_way.begin(&crowd, now);
    under_way.begin(&alone, now);
    assert_eq!(under_way.full(), [std::sync::Arc::clone(&crowd)]);
    assert_eq!(under_way.room(now, false), Some(now), "there is room for others");
    under_way.end(&crowd, now);
    assert_eq!(under_way.full(), []);
}
