//! What a wide watch says of names that join, leave and join again, whatever is under way meanwhile.

use super::*;

/// A wide watch that has seen `kept`, which is asked for, and the name `other`, which nobody asks for; it is at 10.
fn wide() -> Watching {
    let mut watch = watching(WatchSelect::All);
    watch.add("kept", &want("kept"));
    let items = vec![item(&watch, "kept", "u", 3)];
    watch.apply(WatchReport::Snapshot { items, others: vec!["other".into()], as_of: 10 });
    watch
}

fn passed(name: &str, version: u64) -> WatchReport {
    WatchReport::Passed { name: name.into(), version }
}

fn narrow(name: &str, version: Option<u64>, as_of: u64) -> Watching {
    let mut watch = watching(WatchSelect::Name(name.into()));
    watch.add(name, &want(name));
    let items = version.map(|version| item(&watch, name, "u", version));
    watch.apply(snapshot(items.into_iter().collect(), as_of));
    watch
}

#[test]
fn a_name_that_joins_and_is_not_there_is_known_at_once() {
    let mut watch = wide();
    let needs = watch.add("new", &want("new"));
    assert_eq!(seen(&watch, needs, "new"), Some((None, 10)), "as of the position of the watch");
    assert!(watch.latecomers().is_empty());
    assert_eq!(*watch.control.borrow(), 0, "without a request");
    assert_eq!(
        watch.apply(WatchReport::Changed(item(&watch, "new", "w", 11))),
        BTreeSet::from([want("new")])
    );
    assert_eq!(seen(&watch, needs, "new"), Some((Some(11), 11)));
}

#[test]
fn a_name_that_joins_and_is_there_is_not_known_before_it_was_looked_at() {
    let mut watch = wide();
    let needs = watch.add("other", &want("other"));
    assert_eq!(seen(&watch, needs, "other"), None);
    assert_eq!(watch.latecomers(), ["other".into()]);
    assert_eq!(
        watch.apply(WatchReport::Changed(item(&watch, "other", "w", 11))).len(),
        1,
        "its next event will do"
    );
    assert_eq!(seen(&watch, needs, "other"), Some((Some(11), 11)));
    assert!(watch.others.is_empty(), "its name is kept once");
}

#[test]
fn a_name_that_was_seen_by_an_event_alone_is_there() {
    let mut watch = wide();
    watch.apply(passed("new", 11));
    let needs = watch.add("new", &want("new"));
    assert_eq!(seen(&watch, needs, "new"), None, "it came after the first state");
    watch.apply(gone("new", 12));
    assert_eq!(seen(&watch, needs, "new"), Some((None, 12)));
}

#[test]
fn a_name_that_was_seen_going_is_not_there() {
    let mut watch = wide();
    assert!(watch.apply(gone("other", 11)).is_empty());
    let needs = watch.add("other", &want("other"));
    assert_eq!(seen(&watch, needs, "other"), Some((None, 11)));
}

#[test]
fn a_name_that_goes_after_it_joined_wakes_its_readers() {
    let mut watch = wide();
    let needs = watch.add("other", &want("other"));
    assert_eq!(watch.apply(gone("other", 11)), BTreeSet::from([want("other")]));
    assert_eq!(seen(&watch, needs, "other"), Some((None, 11)));
}

#[test]
fn an_event_that_was_passed_over_while_its_name_joined_is_read_again() {
    let mut watch = wide();
    // The task found nobody interested; then somebody asked and heard that it is not there; then the task says so.
    let under_way = passed("new", 11);
    let needs = watch.add("new", &want("new"));
    assert_eq!(seen(&watch, needs, "new"), Some((None, 10)));
    assert!(watch.must_be_read_again(&under_way));
    let again = WatchReport::Changed(item(&watch, "new", "w", 11));
    assert!(!watch.must_be_read_again(&again));
    watch.apply(again);
    assert_eq!(seen(&watch, needs, "new"), Some((Some(11), 11)));
}

#[test]
fn what_was_passed_over_is_not_called_absent_even_if_it_is_not_read_again() {
    let mut watch = wide();
    let needs = watch.add("new", &want("new"));
    assert_eq!(watch.apply(passed("new", 11)), BTreeSet::from([want("new")]));
    assert_eq!(seen(&watch, needs, "new"), None);
}

#[test]
fn an_event_under_way_for_a_name_that_left_and_joined_again_is_read_again() {
    let mut watch = wide();
    let first = watch.add("new", &want("new"));
    let under_way = WatchReport::Changed(item(&watch, "new", "w", 11));
    watch.remove("new", &want("new"));
    let more = want_more("new", ReadSet::dotted(["data"]));
    let second = watch.add("new", &more);
    assert!(second > first);
    assert!(watch.must_be_read_again(&under_way), "it was projected for somebody else");
}

#[test]
fn an_event_under_way_for_a_name_that_left_is_remembered_as_a_name() {
    let mut watch = wide();
    watch.add("new", &want("new"));
    let under_way = WatchReport::Changed(item(&watch, "new", "w", 11));
    watch.remove("new", &want("new"));
    assert!(!watch.must_be_read_again(&under_way));
    assert!(watch.apply(under_way).is_empty());
    assert_eq!(watch.len(), 1, "nobody asks for it");
    let needs = watch.add("new", &want("new"));
    assert_eq!(seen(&watch, needs, "new"), None, "it is there");
}

#[test]
fn a_name_that_leaves_is_not_forgotten() {
    let mut watch = wide();
    watch.add("new", &want("new"));
    watch.remove("kept", &want("kept"));
    assert_eq!(watch.len(), 0);
    let needs = watch.add("kept", &want("kept"));
    assert_eq!(seen(&watch, needs, "kept"), None, "it is there, and nothing of it is kept");
    watch.apply(gone("kept", 12));
    assert_eq!(seen(&watch, needs, "kept"), Some((None, 12)));
}

#[test]
fn names_that_join_while_the_first_state_is_read_are_known_as_it_tells() {
    let mut watch = watching(WatchSelect::All);
    let before = watch.add("before", &want("before"));
    watch.apply(WatchReport::Looking);
    // The task has passed `late`; both names join; then the task comes by `read`.
    let late = watch.add("late", &want("late"));
    let read = watch.add("read", &want("read"));
    let absent = watch.add("absent", &want("absent"));
    let items = vec![item(&watch, "before", "u", 3), item(&watch, "read", "v", 4)];
    let woken = watch.apply(WatchReport::Snapshot { items, others: vec!["late".into()], as_of: 10 });
    assert_eq!(woken.len(), 4);
    assert_eq!(seen(&watch, before, "before"), Some((Some(3), 10)));
    assert_eq!(seen(&watch, read, "read"), Some((Some(4), 10)));
    assert_eq!(seen(&watch, absent, "absent"), Some((None, 10)));
    assert_eq!(seen(&watch, late, "late"), None, "it is there, and was passed over");
    assert_eq!(watch.latecomers(), ["late".into()]);
}

#[test]
fn a_name_that_left_while_the_first_state_was_read_is_remembered() {
    let mut watch = watching(WatchSelect::All);
    watch.add("a", &want("a"));
    watch.add("b", &want("b"));
    let items = vec![item(&watch, "a", "u", 3), item(&watch, "b", "v", 4)];
    watch.remove("b", &want("b"));
    watch.apply(snapshot(items, 10));
    assert_eq!(watch.len(), 1);
    let needs = watch.add("b", &want("b"));
    assert_eq!(seen(&watch, needs, "b"), None);
}

#[test]
fn more_that_is_read_while_a_first_state_is_read_is_known_to_be_missing() {
    let mut watch = wide();
    watch.apply(WatchReport::Looking);
    let items = vec![item(&watch, "kept", "u", 3)];
    let more = watch.add("kept", &want_more("kept", ReadSet::dotted(["data"])));
    watch.apply(WatchReport::Snapshot { items, others: vec!["other".into()], as_of: 12 });
    assert_eq!(seen(&watch, more, "kept"), None);
    assert_eq!(watch.latecomers(), ["kept".into()]);
}

#[test]
fn while_everything_is_read_anew_a_name_that_joins_waits_for_it() {
    let mut watch = wide();
    watch.apply(WatchReport::Looking);
    let needs = watch.add("new", &want("new"));
    assert_eq!(seen(&watch, needs, "new"), None);
    assert!(watch.is_looking());
    let kept = vec![item(&watch, "kept", "u", 3)];
    let woken = watch.apply(WatchReport::Snapshot { items: kept, others: vec!["other".into()], as_of: 12 });
    assert_eq!(woken, BTreeSet::from([want("new")]), "kept is as it was");
    assert_eq!(seen(&watch, needs, "new"), Some((None, 12)));
}

#[test]
fn a_look_that_was_asked_for_is_waited_for_and_asked_for_once() {
    let mut watch = wide();
    let other = watch.add("other", &want("other"));
    watch.look_again();
    watch.look_again();
    assert_eq!(*watch.control.borrow(), 1, "a look that is awaited is not begun anew");
    assert!(watch.is_looking());
    let items = vec![item(&watch, "kept", "u", 3), item(&watch, "other", "w", 4)];
    assert_eq!(watch.apply(snapshot(items, 12)), BTreeSet::from([want("other")]), "kept is as it was");
    assert_eq!(seen(&watch, other, "other"), Some((Some(4), 12)));
    assert!(!watch.is_looking());
}

#[test]
fn while_the_connection_is_lost_a_name_that_joins_is_not_known() {
    let mut watch = wide();
    watch.apply(WatchNote::Lost);
    let new = watch.add("new", &want("new"));
    let missed = watch.add("missed", &want("missed"));
    assert_eq!((seen(&watch, new, "new"), seen(&watch, missed, "missed")), (None, None));
    // What was missed comes first; then the watch has caught up.
    watch.apply(WatchReport::Changed(item(&watch, "missed", "w", 11)));
    assert_eq!(seen(&watch, new, "new"), None);
    assert_eq!(watch.apply(WatchReport::Live).len(), 3);
    assert_eq!(seen(&watch, new, "new"), Some((None, 11)));
    assert_eq!(seen(&watch, missed, "missed"), Some((Some(11), 11)));
}

#[test]
fn what_is_seen_going_while_the_connection_is_made_up_for_is_not_there() {
    let mut watch = wide();
    watch.apply(WatchNote::Lost);
    let needs = watch.add("new", &want("new"));
    watch.apply(WatchReport::Changed(item(&watch, "new", "w", 11)));
    watch.apply(gone("new", 12));
    assert_eq!(seen(&watch, needs, "new"), Some((None, 12)));
    watch.remove("new", &want("new"));
    watch.add("new", &want("new"));
    assert_eq!(watch.apply(gone("new", 13)), BTreeSet::from([want("new")]), "it came and went unread");
    assert_eq!(seen(&watch, needs, "new"), Some((None, 13)));
}

#[test]
fn metadata_is_enough_until_somebody_reads_more() {
    let mut watch = wide();
    watch.add("new", &want_more("new", ReadSet::held_by("us")));
    assert!(watch.scope.is_metadata());
    watch.add("kept", &want_more("kept", ReadSet::dotted(["data"])));
    assert!(!watch.scope.is_metadata());
}

#[test]
fn after_a_refusal_no_absence_is_left() {
    let mut watch = wide();
    let new = watch.add("new", &want("new"));
    watch.apply(WatchNote::Blind(Why::new(Reason::Forbidden, "no")));
    let newer = watch.add("newer", &want("newer"));
    assert_eq!((seen(&watch, new, "new"), seen(&watch, newer, "newer")), (None, None));
    watch.apply(WatchReport::Looking);
    watch.apply(snapshot(vec![], 20));
    assert_eq!(seen(&watch, newer, "newer"), Some((None, 20)));
}

#[test]
fn a_store_that_went_back_is_believed() {
    let mut watch = wide();
    let new = watch.add("new", &want("new"));
    watch.apply(WatchReport::Changed(item(&watch, "new", "w", 30)));
    watch.apply(WatchNote::Lost);
    watch.apply(WatchReport::Looking);
    let kept = vec![item(&watch, "kept", "u", 3)];
    watch.apply(WatchReport::Snapshot { items: kept, others: vec!["old".into()], as_of: 8 });
    assert_eq!(seen(&watch, new, "new"), Some((None, 8)));
    let old = watch.add("old", &want("old"));
    assert_eq!(seen(&watch, old, "old"), None);
}

#[test]
fn what_a_narrow_watch_saw_is_taken_over_once_the_wide_one_is_as_far() {
    let mut watch = wide();
    let needs = watch.add("other", &want("other"));
    assert!(!watch.adopt("other", &narrow("other", Some(12), 14)), "12 has not come here yet");
    watch.apply(WatchReport::Reached(12));
    assert!(watch.adopt("other", &narrow("other", Some(12), 14)));
    assert_eq!(seen(&watch, needs, "other"), Some((Some(12), 12)));
    assert!(watch.apply(gone("other", 11)).is_empty(), "an incarnation before that");
    assert_eq!(watch.apply(gone("other", 13)).len(), 1);
}

#[test]
fn that_something_is_not_there_is_not_taken_over() {
    let mut watch = wide();
    let needs = watch.add("other", &want("other"));
    assert!(!watch.adopt("other", &narrow("other", None, 10)));
    assert_eq!(seen(&watch, needs, "other"), None);
}

#[test]
fn what_a_narrow_watch_saw_for_some_readers_is_not_taken_over_for_all() {
    let mut watch = wide();
    watch.add("other", &want("other"));
    let more = want_more("other", ReadSet::dotted(["data"]));
    let needs = watch.add("other", &more);
    let mut narrow = narrow("other", Some(5), 10);
    assert!(!watch.adopt("other", &narrow));
    narrow.add("other", &more);
    assert!(!watch.adopt("other", &narrow), "it has to read it again first");
    narrow.apply(snapshot(vec![item(&narrow, "other", "u", 5)], 10));
    assert!(watch.adopt("other", &narrow));
    assert_eq!(seen(&watch, needs, "other"), Some((Some(5), 10)));
}

#[test]
fn nothing_is_taken_over_while_nothing_can_be_seen() {
    let mut watch = wide();
    watch.add("other", &want("other"));
    watch.apply(WatchNote::Blind(Why::new(Reason::Forbidden, "no")));
    assert!(!watch.adopt("other", &narrow("other", Some(5), 10)));
}

#[test]
fn who_is_behind_does_not_take_over() {
    let at = |version, as_of| narrow("a", version, as_of);
    assert!(at(Some(5), 9).is_not_behind(&at(Some(5), 20), "a"));
    assert!(at(Some(6), 9).is_not_behind(&at(Some(5), 20), "a"));
    assert!(!at(Some(5), 30).is_not_behind(&at(Some(6), 20), "a"));
    assert!(at(None, 9).is_not_behind(&at(Some(5), 7), "a"), "it has seen it go");
    assert!(!at(None, 4).is_not_behind(&at(Some(5), 7), "a"), "it has not seen it come");
    assert!(at(Some(8), 9).is_not_behind(&at(None, 7), "a"), "it has seen it come");
    assert!(!at(Some(5), 9).is_not_behind(&at(None, 7), "a"), "it has not seen it go");
    assert!(
        at(Some(5), 9).is_not_behind(&watching(WatchSelect::Name("a".into())), "a"),
        "nothing was reported"
    );
}

#[test]
fn more_of_what_is_not_there_asks_for_nothing() {
    let mut watch = wide();
    for number in 0..100 {
        watch.add("new", &want_more("new", ReadSet::held_by(format!("manager-{number}"))));
    }
    assert!(watch.latecomers().is_empty());
    let more = watch.add("kept", &want_more("kept", ReadSet::held_by("us")));
    assert_eq!(watch.latecomers(), ["kept".into()], "only what is there has to be read again");
    assert_eq!(*watch.control.borrow(), 0);
    watch.apply(WatchReport::Changed(item(&watch, "kept", "u", 11)));
    assert_eq!(seen(&watch, more, "kept"), Some((Some(11), 11)));
}
