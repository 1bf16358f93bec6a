//! When what is written, and what goes together.

use super::*;

fn phase_change(begun: Instant) -> Saving {
    Saving { wanted: true, urgent: true, last: Some(begun), ..Saving::default() }
}

#[test]
fn a_status_yields_to_effects_for_a_second_however_old_the_last_one_is() {
    let begun = Instant::now();
    let changed = begun + Duration::from_mins(1);
    let mut saving = phase_change(begun);
    let due = saving.due(changed).unwrap();
    assert_eq!((due.quiet, due.busy), (changed, changed + YIELD));
    let again = saving.due(changed + Duration::from_millis(500)).unwrap();
    assert_eq!(again, due, "another change of the same does not begin the wait anew");
}

#[test]
fn progress_is_written_once_a_second_and_a_phase_at_once() {
    let begun = Instant::now();
    let soon = begun + Duration::from_millis(10);
    assert_eq!(phase_change(begun).due(soon).unwrap().quiet, soon);
    let mut progress = Saving { urgent: false, ..phase_change(begun) };
    assert_eq!(progress.due(soon).unwrap().quiet, begun + AT_MOST_EVERY);
    let mut first = Saving { last: None, ..progress };
    assert_eq!(first.due(soon).unwrap().quiet, soon);
}

#[test]
fn a_phase_that_flaps_is_written_at_once_a_few_times_and_then_seldom() {
    let begun = Instant::now();
    let soon = begun + Duration::from_millis(10);
    let mut saving = Saving { urgent: false, ..phase_change(begun) };
    for _ in 0..AT_ONCE.burst {
        assert!(saving.hurry(soon));
        assert_eq!(saving.due(soon).unwrap().quiet, soon);
        saving.urgent = false;
    }
    assert!(!saving.hurry(soon));
    assert_eq!(saving.due(soon).unwrap().quiet, begun + FLAPPING_EVERY);
    assert!(saving.hurry(soon + AT_ONCE.every), "after a while one is written at once again");
    assert!(!saving.hurry(soon + AT_ONCE.every), "and no more than one");
}

#[test]
fn the_first_journal_is_written_once_and_only_where_something_in_it_must_be_saved() {
    let fresh = Memory::fresh("u", 1, linchpin_words::Timestamp::from_microsecond(0));
    let saving = Saving::default();
    let (text, critical) = saving.first(&fresh).unwrap();
    assert_eq!((journal::read_first(&text, "u").unwrap(), critical), (Some(fresh.journal.clone()), 1));
    assert_eq!(Saving { journaled: true, ..Saving::default() }.first(&fresh), None);
    let mut saved = fresh;
    saved.mark_saved(critical);
    assert_eq!(saving.first(&saved), None);
}

#[test]
fn the_first_journal_goes_when_the_status_holds_one() {
    let mut saving = Saving { first_journal: true, ..Saving::default() };
    assert!(!saving.has_something(), "it is all there is");
    saving.journaled = true;
    assert!(saving.has_something() && saving.due(Instant::now()).is_some_and(|due| !due.waited_for));
}

#[test]
fn what_effects_wait_for_stands_in_another_line() {
    let now = Instant::now();
    let mut saving = Saving { released: true, urgent: false, ..phase_change(now) };
    let due = saving.due(now).unwrap();
    assert!(due.waited_for && due.quiet == now);
    let mut failing = Saving { failures: 1, ..saving };
    assert_eq!(failing.due(now).unwrap().quiet, now + Duration::from_millis(200), "a failed write pauses");
}

#[test]
fn how_a_command_ended_is_written_beside_other_effects() {
    let now = Instant::now();
    let mut saving = Saving { confirms: true, urgent: false, ..phase_change(now) };
    let due = saving.due(now).unwrap();
    assert!(due.waited_for && due.quiet == now);
}

#[test]
fn beside_effects_one_is_written_at_a_time_and_then_none_for_a_while() {
    let begun = Instant::now();
    let ended = begun + Duration::from_millis(20);
    let mut under_way = UnderWay::default();
    assert_eq!(under_way.room(begun, true), Some(begun));
    under_way.begin(begun);
    assert_eq!(under_way.room(begun, true), None);
    assert_eq!(under_way.room(begun, false), Some(begun), "but while it is quiet");
    under_way.end(ended);
    assert_eq!(under_way.room(ended, true), Some(ended + Duration::from_millis(380)));
    assert_eq!(under_way.room(ended, false), Some(ended));
    let later = ended + Duration::from_secs(1);
    assert_eq!(under_way.room(later, true), Some(later));
    under_way.begin(later);
    let late = later + Duration::from_secs(10);
    under_way.end(late);
    assert_eq!(under_way.room(late, true), Some(late + LONGEST_REST), "no pause is long");
}

#[test]
fn nothing_is_due_while_a_write_is_under_way_or_a_newer_object_is_on_its_way() {
    let now = Instant::now();
    let mut saving = Saving { outdated: true, ..phase_change(now) };
    assert_eq!(saving.due(now), None);
    let mut saving = Saving { under_way: Some((None, String::new())), ..phase_change(now) };
    assert_eq!(saving.due(now), None);
    assert_eq!(Saving::default().due(now), None);
}
