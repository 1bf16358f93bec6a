//! One watch's transitions, one at a time.

use super::*;
use linchpin_engine::contract::{Projection, Via};
use linchpin_words::Gvk;
use serde_json::Value;

fn family() -> Family {
    let via = Via::service_account("shop", "builder");
    Family { via, kind: Gvk::new("", "v1", "ConfigMap"), namespace: Some("shop".into()) }
}

fn watching(select: Select) -> Watching {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let task = runtime.spawn(std::future::pending::<()>()).abort_handle();
    let scope = Arc::new(Scope::new(&select));
    Watching::new(WatchKey { family: family(), select }, scope, watch::channel(0).0, task)
}

fn want(name: &str) -> Want {
    Want::object(family().via, family().kind, family().namespace, name, ReadSet::nothing())
}

fn item(name: &str, uid: &str, version: u64) -> Item {
    let kept = Projection {
        kind: family().kind,
        namespace: family().namespace,
        name: name.into(),
        uid: uid.into(),
        generation: 1,
        version,
        deleting: false,
        content: Value::Null,
    };
    Item { name: name.into(), version, kept: Some(Arc::new(kept)) }
}

fn snapshot(items: Vec<Item>, as_of: u64, revision: u64) -> Note {
    Note::Snapshot { items, as_of, revision }
}

fn revision(watching: &Watching) -> u64 {
    watching.scope.looking().0
}

#[test]
fn before_the_first_state_nothing_is_known() {
    let mut watch = watching(Select::Name("a".into()));
    let needs = watch.add("a", &want("a"), &ReadSet::nothing());
    assert_eq!(watch.view(needs, Some("a")), None);
    assert_eq!(watch.apply(snapshot(vec![], 5, needs)).len(), 1);
    let Some(Seen::Objects(seen)) = watch.view(needs, Some("a")) else { panic!() };
    assert_eq!((seen.items.len(), seen.as_of, seen.live), (0, 5, true));
}

#[test]
fn a_renewal_that_brings_nothing_new_wakes_nobody() {
    let mut watch = watching(Select::Name("a".into()));
    let needs = watch.add("a", &want("a"), &ReadSet::nothing());
    watch.apply(snapshot(vec![item("a", "u", 3)], 5, needs));
    assert!(watch.apply(snapshot(vec![item("a", "u", 3)], 9, needs)).is_empty());
    assert_eq!(watch.apply(snapshot(vec![], 12, needs)).len(), 1, "a deletion that was missed is news");
    assert_eq!(watch.apply(snapshot(vec![item("a", "v", 14)], 15, needs)).len(), 1);
}

#[test]
fn a_lost_connection_keeps_the_view_and_wakes_when_it_is_back() {
    let mut watch = watching(Select::Name("a".into()));
    let needs = watch.add("a", &want("a"), &ReadSet::nothing());
    watch.apply(snapshot(vec![item("a", "u", 3)], 5, needs));
    assert!(watch.apply(Note::Lost).is_empty());
    let Some(Seen::Objects(seen)) = watch.view(needs, Some("a")) else { panic!() };
    assert!(!seen.live && seen.items.len() == 1);
    assert_eq!(watch.apply(Note::Live).len(), 1);
}

#[test]
fn a_refusal_forgets_what_was_seen() {
    let mut watch = watching(Select::Name("a".into()));
    let needs = watch.add("a", &want("a"), &ReadSet::nothing());
    watch.apply(snapshot(vec![item("a", "u", 3)], 5, needs));
    let why = || Why::new(Reason::Forbidden, "no");
    assert_eq!(watch.apply(Note::Blind(why())).len(), 1);
    assert!(watch.apply(Note::Blind(why())).is_empty(), "the same refusal is no news");
    assert_eq!((watch.view(needs, Some("a")), watch.len()), (None, 0));
}

#[test]
fn old_news_changes_nothing() {
    let mut watch = watching(Select::Name("a".into()));
    let needs = watch.add("a", &want("a"), &ReadSet::nothing());
    watch.apply(snapshot(vec![item("a", "u", 7)], 8, needs));
    assert!(watch.apply(Note::Changed(item("a", "u", 7))).is_empty());
    assert!(watch.apply(Note::Changed(item("a", "u", 6))).is_empty());
    assert!(watch.apply(Note::Gone { name: "a".into(), version: 6 }).is_empty());
    assert_eq!(watch.len(), 1);
    assert_eq!(watch.apply(Note::Gone { name: "a".into(), version: 9 }).len(), 1);
}

#[test]
fn more_reads_are_answered_after_the_next_first_state_only() {
    let mut watch = watching(Select::Name("a".into()));
    let needs = watch.add("a", &want("a"), &ReadSet::nothing());
    watch.apply(snapshot(vec![item("a", "u", 3)], 5, needs));
    let more = watch.add("a", &want("a"), &ReadSet::dotted(["data"]));
    assert!(more > needs);
    assert!(watch.view(needs, Some("a")).is_some() && watch.view(more, Some("a")).is_none());
    watch.apply(snapshot(vec![item("a", "u", 3)], 5, more));
    assert!(watch.view(more, Some("a")).is_some());
}

#[test]
fn a_wide_watch_answers_for_a_name_only_when_it_has_really_looked() {
    let mut watch = watching(Select::All);
    let needs = watch.add("a", &want("a"), &ReadSet::nothing());
    let looking = revision(&watch);
    watch.add("b", &want("b"), &ReadSet::nothing());
    watch.apply(snapshot(vec![item("a", "u", 3)], 5, looking));
    assert!(watch.view(needs, Some("a")).is_some());
    assert_eq!(watch.view(needs, Some("b")), None, "b was asked for after the list began");
    watch.adopt("b", None);
    assert!(watch.view(needs, Some("b")).is_some());
    assert_eq!(watch.apply(Note::Changed(item("b", "w", 9))), BTreeSet::from([want("b")]));
}

#[test]
fn names_that_joined_are_seen_by_the_next_look_and_wake_only_their_readers() {
    let mut watch = watching(Select::All);
    let needs = watch.add("a", &want("a"), &ReadSet::nothing());
    assert!(watch.is_looking());
    let looking = revision(&watch);
    watch.apply(snapshot(vec![item("a", "u", 3)], 5, looking));
    watch.add("b", &want("b"), &ReadSet::nothing());
    watch.add("c", &want("c"), &ReadSet::nothing());
    assert_eq!((watch.latecomers(), watch.is_looking()), (2, false));
    watch.look_again();
    watch.look_again();
    assert_eq!(*watch.control.borrow(), 1, "a look that is awaited is not begun anew");
    assert!(watch.is_looking());
    let looking = revision(&watch);
    let woken = watch.apply(snapshot(vec![item("a", "u", 3), item("b", "w", 4)], 9, looking));
    assert_eq!(woken, BTreeSet::from([want("b"), want("c")]), "a is as it was");
    assert_eq!((watch.latecomers(), watch.is_looking()), (0, false));
    assert!(watch.view(needs, Some("b")).is_some() && watch.view(needs, Some("c")).is_some());
}

#[test]
fn too_many_objects_are_not_looked_at() {
    let mut watch = watching(Select::Labels(linchpin_engine::contract::Selector::default()));
    let needs = watch.add("", &want("x"), &ReadSet::nothing());
    let items = |count: usize| (0..count).map(|n| item(&n.to_string(), "u", 1)).collect::<Vec<_>>();
    watch.apply(snapshot(items(limits::SELECTED), 5, needs));
    assert!(matches!(watch.view(needs, None), Some(Seen::Objects(_))));
    watch.apply(snapshot(items(limits::SELECTED + 1), 5, needs));
    assert!(matches!(watch.view(needs, None), Some(Seen::Unknown(why)) if why.reason == Reason::TooLarge));
}
