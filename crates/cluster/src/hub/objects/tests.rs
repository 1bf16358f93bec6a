//! One watch's transitions, one at a time.

use super::*;
use linchpin_engine::contract::{Projection, ReadSet, Via};
use linchpin_words::Gvk;
use serde_json::Value;

mod stories;
mod wide;

fn family() -> Family {
    let via = Via::service_account("shop", "builder");
    Family { via, kind: Gvk::new("", "v1", "ConfigMap"), namespace: Some("shop".into()) }
}

fn watching(select: WatchSelect) -> Watching {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let task = runtime.spawn(std::future::pending::<()>()).abort_handle();
    let scope = Arc::new(Scope::new(&select));
    Watching::new(WatchKey { family: family(), select }, scope, watch::channel(0).0, task)
}

fn want_more(name: &str, reads: ReadSet) -> Want {
    Want::object(family().via, family().kind, family().namespace, name, reads)
}

fn want(name: &str) -> Want {
    want_more(name, ReadSet::nothing())
}

/// An object as somebody would see it who reads whatever is asked for by then.
fn item(watch: &Watching, name: &str, uid: &str, version: u64) -> WatchItem {
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
    let revision = watch.scope.revision(name).unwrap_or_default();
    WatchItem { name: name.into(), version, revision, kept: Some(Arc::new(kept)), bytes: 1 }
}

fn snapshot(items: Vec<WatchItem>, as_of: u64) -> WatchReport {
    WatchReport::Snapshot { items, others: Vec::new(), as_of }
}

fn gone(name: &str, version: u64) -> WatchReport {
    WatchReport::Gone { name: name.into(), version }
}

/// What is seen of a name: the version of the object, or none where it is not there, and how recent that is.
fn seen(watch: &Watching, revision: u64, name: &str) -> Option<(Option<u64>, u64)> {
    match watch.view(revision, Some(name))? {
        Seen::Objects(seen) => Some((seen.items.first().map(|item| item.version), seen.as_of)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn before_the_first_state_nothing_is_known() {
    let mut watch = watching(WatchSelect::Name("a".into()));
    let needs = watch.add("a", &want("a"));
    assert_eq!(watch.view(needs, Some("a")), None);
    assert_eq!(watch.apply(snapshot(vec![], 5)).len(), 1);
    let Some(Seen::Objects(seen)) = watch.view(needs, Some("a")) else { panic!() };
    assert_eq!((seen.items.len(), seen.as_of, seen.live), (0, 5, true));
}

#[test]
fn a_renewal_that_brings_nothing_new_wakes_nobody() {
    let mut watch = watching(WatchSelect::Name("a".into()));
    watch.add("a", &want("a"));
    watch.apply(snapshot(vec![item(&watch, "a", "u", 3)], 5));
    assert!(watch.apply(snapshot(vec![item(&watch, "a", "u", 3)], 9)).is_empty());
    assert_eq!(watch.apply(snapshot(vec![], 12)).len(), 1, "a deletion that was missed is news");
    assert_eq!(watch.apply(snapshot(vec![item(&watch, "a", "v", 14)], 15)).len(), 1);
}

#[test]
fn a_lost_connection_keeps_the_view_and_wakes_when_it_is_back() {
    let mut watch = watching(WatchSelect::Name("a".into()));
    let needs = watch.add("a", &want("a"));
    watch.apply(snapshot(vec![item(&watch, "a", "u", 3)], 5));
    assert!(watch.apply(WatchNote::Lost).is_empty());
    let Some(Seen::Objects(seen)) = watch.view(needs, Some("a")) else { panic!() };
    assert!(!seen.live && seen.items.len() == 1);
    assert_eq!(watch.apply(WatchReport::Live).len(), 1);
}

#[test]
fn a_refusal_forgets_what_was_seen() {
    let mut watch = watching(WatchSelect::Name("a".into()));
    let needs = watch.add("a", &want("a"));
    watch.apply(snapshot(vec![item(&watch, "a", "u", 3)], 5));
    let why = || Why::new(Reason::Forbidden, "no");
    assert_eq!(watch.apply(WatchNote::Blind(why())).len(), 1);
    assert!(watch.apply(WatchNote::Blind(why())).is_empty(), "the same refusal is no news");
    assert_eq!((watch.view(needs, Some("a")), watch.len()), (None, 0));
}

#[test]
fn old_news_changes_nothing() {
    let mut watch = watching(WatchSelect::Name("a".into()));
    watch.add("a", &want("a"));
    watch.apply(snapshot(vec![item(&watch, "a", "u", 7)], 8));
    assert!(watch.apply(WatchReport::Changed(item(&watch, "a", "u", 7))).is_empty());
    assert!(watch.apply(WatchReport::Changed(item(&watch, "a", "u", 6))).is_empty());
    assert!(watch.apply(gone("a", 6)).is_empty());
    assert_eq!(watch.len(), 1);
    assert_eq!(watch.apply(gone("a", 9)).len(), 1);
}

#[test]
fn more_of_an_object_is_answered_when_it_was_read_again_only() {
    let mut watch = watching(WatchSelect::Name("a".into()));
    let needs = watch.add("a", &want("a"));
    watch.apply(snapshot(vec![item(&watch, "a", "u", 3)], 5));
    let more = watch.add("a", &want_more("a", ReadSet::dotted(["data"])));
    assert!(more > needs && watch.is_behind());
    assert!(watch.view(needs, Some("a")).is_some() && watch.view(more, Some("a")).is_none());
    assert_eq!(watch.apply(snapshot(vec![item(&watch, "a", "u", 3)], 5)).len(), 2);
    assert!(watch.view(more, Some("a")).is_some() && !watch.is_behind());
}

#[test]
fn what_is_not_there_answers_whatever_is_read_of_it() {
    let mut watch = watching(WatchSelect::Name("a".into()));
    watch.add("a", &want("a"));
    watch.apply(snapshot(vec![], 5));
    let more = watch.add("a", &want_more("a", ReadSet::whole()));
    assert_eq!(seen(&watch, more, "a"), Some((None, 5)));
    assert!(!watch.is_behind(), "nothing has to be read again for that");
}

#[test]
fn what_was_projected_for_fewer_readers_is_read_again() {
    let mut watch = watching(WatchSelect::Name("a".into()));
    watch.add("a", &want("a"));
    watch.apply(snapshot(vec![], 5));
    let under_way = WatchReport::Changed(item(&watch, "a", "u", 6));
    assert!(!watch.must_be_read_again(&under_way));
    let more = watch.add("a", &want_more("a", ReadSet::dotted(["data"])));
    assert!(watch.must_be_read_again(&under_way));
    let again = WatchReport::Changed(item(&watch, "a", "u", 6));
    assert!(!watch.must_be_read_again(&again));
    assert_eq!(watch.apply(again).len(), 2);
    assert_eq!(seen(&watch, more, "a"), Some((Some(6), 6)));
}

#[test]
fn too_many_objects_are_not_looked_at() {
    let mut watch = watching(WatchSelect::Labels(linchpin_engine::contract::Selector::default()));
    let needs = watch.add("", &want("x"));
    let items = |count: usize| {
        let watch = &watch;
        (0..count).map(|n| item(watch, &n.to_string(), "u", 1)).collect::<Vec<_>>()
    };
    let (enough, too_many) = (items(limits::SELECTED), items(limits::SELECTED + 1));
    watch.apply(snapshot(enough, 5));
    assert!(matches!(watch.view(needs, None), Some(Seen::Objects(_))));
    watch.apply(snapshot(too_many, 5));
    assert!(matches!(watch.view(needs, None), Some(Seen::Unknown(why)) if why.reason == Reason::TooLarge));
}

#[test]
fn a_selection_answers_more_when_all_of_it_was_read_again() {
    let mut watch = watching(WatchSelect::Labels(linchpin_engine::contract::Selector::default()));
    watch.add("", &want("x"));
    watch.apply(snapshot(vec![item(&watch, "a", "u", 3), item(&watch, "b", "v", 4)], 5));
    let more = watch.add("", &want_more("x", ReadSet::dotted(["data"])));
    assert!(watch.is_behind() && watch.view(more, None).is_none());
    watch.apply(WatchReport::Changed(item(&watch, "a", "u", 6)));
    assert!(watch.view(more, None).is_none(), "b was not read again");
    let woken = watch.apply(snapshot(vec![item(&watch, "a", "u", 6), item(&watch, "b", "v", 4)], 7));
    assert!(watch.view(more, None).is_some());
    assert_eq!(woken.len(), 2, "b is as it was, but more of it can be read");
}
