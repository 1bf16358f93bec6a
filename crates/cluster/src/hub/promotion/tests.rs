//! Families of names while nothing answers: what the tasks of watches say is said by the tests, one word at a time.

use super::*;
use crate::{
    hub::{
        Hub, HubSettings, NamespaceBudget, SubscriberId,
        objects::{WatchKey, Watching},
    },
    transport::{Transport, TransportOptions},
    watch::WatchItem,
};
use linchpin_engine::contract::{Projection, ReadSet, Seen, Why};
use serde_json::Value;

#[test]
fn a_wide_watch_must_be_worth_it() {
    assert_eq!(threshold(0, 0.0), 16);
    assert_eq!(threshold(1_600, 0.0), 16);
    assert_eq!(threshold(50_000, 0.0), 500);
    assert_eq!(threshold(100, 1.0), 50);
    assert_eq!(threshold(100, 0.33), 17);
}

/// A hub whose tasks never run, because its tests never wait.
struct Quiet {
    hub: Hub,
}

fn family() -> Family {
    let via = Via::service_account("shop", "builder");
    Family { via, kind: Gvk::new("", "v1", "ConfigMap"), namespace: Some("shop".into()) }
}

fn want_more(name: &str, reads: ReadSet) -> Want {
    Want::object(family().via, family().kind, family().namespace, name, reads)
}

fn want(name: &str) -> Want {
    want_more(name, ReadSet::nothing())
}

fn names(range: std::ops::Range<u32>) -> Vec<String> {
    range.map(|number| format!("m{number:02}")).collect()
}

impl Quiet {
    fn new(settings: HubSettings) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let config = kube::Config::new("http://127.0.0.1:1".parse().unwrap());
        let transport = Transport::new(&config, &TransportOptions::default()).unwrap();
        Self { hub: Hub::new(transport, settings, Arc::new(|_: &[SubscriberId]| {})) }
    }

    /// A family of m00 to m19 that is watched widely; m00 is there, and so is `other`, which nobody asks for. It is at 10.
    fn wide() -> Self {
        Self::wide_with(HubSettings::default())
    }

    fn wide_with(settings: HubSettings) -> Self {
        let quiet = Self::new(settings);
        quiet.ask(1, names(0..20).iter().map(|name| want(name)));
        quiet.decide(&PromotionVerdict::May(2));
        quiet.all(&["m00"], &["other"], 10);
        quiet
    }

    fn ask(&self, subscriber: u64, wants: impl IntoIterator<Item = Want>) {
        self.hub.subscribe(SubscriberId(subscriber), wants.into_iter().collect());
    }

    fn decide(&self, verdict: &PromotionVerdict) {
        self.hub.inner.decide(&family(), verdict);
    }

    /// Lets the watch of a selection say something.
    fn say(&self, select: WatchSelect, note: impl Into<WatchNote>) -> SinkReply {
        let key = WatchKey { family: family(), select };
        let id = self.hub.inner.state().keys.get(&key).copied().expect("a watch");
        self.hub.inner.noted(id, note)
    }

    fn all(&self, there: &[&str], others: &[&str], as_of: u64) {
        let items = there.iter().map(|name| self.item(WatchSelect::All, name, 3)).collect();
        let others = others.iter().map(|name| (*name).into()).collect();
        self.say(WatchSelect::All, WatchReport::Snapshot { items, others, as_of });
    }

    fn one(&self, name: &str, version: Option<u64>, as_of: u64) {
        let select = WatchSelect::Name(name.into());
        let items = version.map(|version| self.item(select.clone(), name, version)).into_iter().collect();
        self.say(select, WatchReport::Snapshot { items, others: Vec::new(), as_of });
    }

    /// An object as the task of a watch would make it now.
    fn item(&self, select: WatchSelect, name: &str, version: u64) -> WatchItem {
        let kept = Projection {
            kind: family().kind,
            namespace: family().namespace,
            name: name.into(),
            uid: "u".into(),
            generation: 1,
            version,
            deleting: false,
            content: Value::Null,
        };
        let revision =
            self.watching(select, |watching| watching.revision(name)).flatten().unwrap_or_default();
        WatchItem { name: name.into(), version, revision, kept: Some(Arc::new(kept)), bytes: 1 }
    }

    fn watching<T>(&self, select: WatchSelect, read: impl Fn(&Watching) -> T) -> Option<T> {
        let state = self.hub.inner.state();
        let id = state.keys.get(&WatchKey { family: family(), select })?;
        state.watches.get(id).map(read)
    }

    /// The names that have a watch of their own.
    fn narrow(&self) -> Vec<String> {
        let state = self.hub.inner.state();
        let names =
            state.keys.keys().filter(|key| key.family == family()).filter_map(|key| match &key.select {
                WatchSelect::Name(name) => Some(name.clone()),
                _ => None,
            });
        names.collect()
    }

    fn is_wide(&self) -> bool {
        self.watching(WatchSelect::All, |_| ()).is_some()
    }

    /// What is reported: the version of the object, or none where it is not there, and how recent that is.
    fn observed(&self, want: &Want) -> Result<(Option<u64>, u64), Reason> {
        match self.hub.read([want]).get(want).cloned().unwrap() {
            Seen::Objects(seen) => Ok((seen.items.first().map(|item| item.version), seen.as_of)),
            Seen::Unknown(why) => Err(why.reason),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn all_names_of_one_subscription_wait_for_one_verdict() {
    let quiet = Quiet::new(HubSettings::default());
    quiet.ask(1, names(0..40).iter().map(|name| want(name)));
    assert_eq!(quiet.narrow(), [""; 0]);
    quiet.ask(2, names(30..60).iter().map(|name| want(name)));
    quiet.decide(&PromotionVerdict::May(0));
    assert!(quiet.is_wide() && quiet.narrow().is_empty());
    quiet.all(&[], &[], 10);
    assert_eq!(quiet.observed(&want("m59")), Ok((None, 10)));
}

#[tokio::test]
async fn names_that_may_not_be_watched_together_get_a_watch_each() {
    let quiet = Quiet::new(HubSettings::default());
    quiet.ask(1, names(0..15).iter().map(|name| want(name)));
    assert_eq!(quiet.narrow(), names(0..15), "too few to ask");
    quiet.ask(2, names(15..20).iter().map(|name| want(name)));
    assert_eq!(quiet.narrow(), names(0..15), "the others wait for the verdict");
    quiet.decide(&PromotionVerdict::MayNot);
    assert_eq!(quiet.narrow(), names(0..20));
}

#[tokio::test]
async fn names_that_join_and_are_not_there_are_answered_without_a_request() {
    let quiet = Quiet::wide();
    let more: Vec<Want> = names(20..80)
        .iter()
        .flat_map(|name| [want(name), want_more(name, ReadSet::held_by(format!("manager of {name}")))])
        .collect();
    quiet.ask(2, more.iter().cloned());
    for want in &more {
        assert_eq!(quiet.observed(want), Ok((None, 10)));
    }
    assert!(quiet.narrow().is_empty());
    assert_eq!(quiet.watching(WatchSelect::All, Watching::is_looking), Some(false));
}

#[tokio::test]
async fn a_name_that_joins_and_is_there_is_looked_at_by_itself_and_handed_over() {
    let quiet = Quiet::wide();
    quiet.ask(2, [want("other")]);
    assert_eq!(
        (quiet.observed(&want("other")), quiet.narrow()),
        (Err(Reason::Unsynced), vec!["other".to_owned()])
    );
    quiet.one("other", Some(5), 14);
    assert_eq!(quiet.observed(&want("other")).map(|observed| observed.0), Ok(Some(5)));
    assert!(quiet.narrow().is_empty(), "the wide watch was at 10 and has seen it");
    quiet.say(WatchSelect::All, WatchReport::Gone { name: "other".into(), version: 15 });
    assert_eq!(quiet.observed(&want("other")), Ok((None, 15)));
}

#[tokio::test]
async fn what_the_wide_watch_has_not_come_to_yet_stays_with_the_narrow_one() {
    let quiet = Quiet::wide();
    quiet.ask(2, [want("other")]);
    quiet.one("other", Some(12), 14);
    assert_eq!(quiet.observed(&want("other")), Ok((Some(12), 14)));
    assert_eq!(quiet.narrow(), ["other"], "the wide watch is at 10");
    let item = quiet.item(WatchSelect::All, "other", 12);
    quiet.say(WatchSelect::All, WatchReport::Changed(item));
    assert_eq!(quiet.observed(&want("other")).map(|observed| observed.0), Ok(Some(12)));
    assert!(quiet.narrow().is_empty());
}

#[tokio::test]
async fn what_a_narrow_watch_saw_gone_comes_back_for_nobody() {
    let quiet = Quiet::wide();
    quiet.ask(2, [want("other")]);
    quiet.one("other", None, 14);
    assert_eq!(quiet.observed(&want("other")), Ok((None, 14)));
    assert_eq!(quiet.narrow(), ["other"], "for the wide watch it is still there");
    let item = quiet.item(WatchSelect::All, "other", 11);
    quiet.say(WatchSelect::All, WatchReport::Changed(item));
    assert_eq!(quiet.observed(&want("other")), Ok((None, 14)), "the wide watch is behind");
    quiet.say(WatchSelect::All, WatchReport::Gone { name: "other".into(), version: 13 });
    assert_eq!(quiet.observed(&want("other")).map(|observed| observed.0), Ok(None));
    assert!(quiet.narrow().is_empty());
}

#[tokio::test]
async fn many_names_that_join_and_are_there_take_one_look_together() {
    let quiet = Quiet::wide();
    let many = names(20..50);
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    quiet.all(&["m00"], &many, 12);
    quiet.ask(2, many.iter().map(|name| want(name)));
    assert!(quiet.narrow().is_empty());
    assert_eq!(quiet.watching(WatchSelect::All, Watching::is_looking), Some(true));
    quiet.ask(3, [want("m98")]);
    assert_eq!(quiet.observed(&want("m98")), Err(Reason::Unsynced), "it waits for that look");
    quiet.all(&many, &[], 20);
    assert_eq!(quiet.observed(&want("m20")), Ok((Some(3), 20)));
    assert_eq!(quiet.observed(&want("m98")), Ok((None, 20)));
}

#[tokio::test]
async fn more_of_one_that_is_there_is_looked_at_by_itself_and_known_to_all() {
    let quiet = Quiet::wide();
    let more = want_more("m00", ReadSet::dotted(["data"]));
    quiet.ask(2, [more.clone()]);
    assert_eq!(quiet.observed(&want("m00")), Ok((Some(3), 10)), "the first reader notices nothing");
    assert_eq!((quiet.observed(&more), quiet.narrow()), (Err(Reason::Unsynced), vec!["m00".to_owned()]));
    quiet.one("m00", Some(3), 14);
    assert!(quiet.narrow().is_empty());
    for want in [&more, &want("m00")] {
        assert_eq!(quiet.observed(want), Ok((Some(3), 10)));
    }
}

#[tokio::test]
async fn a_first_state_that_was_read_for_fewer_readers_is_read_again() {
    let quiet = Quiet::new(HubSettings::default());
    quiet.ask(1, [want("a")]);
    let early = quiet.item(WatchSelect::Name("a".into()), "a", 3);
    let more = want_more("a", ReadSet::dotted(["data"]));
    quiet.ask(2, [more.clone()]);
    let snapshot = WatchReport::Snapshot { items: vec![early], others: Vec::new(), as_of: 5 };
    quiet.say(WatchSelect::Name("a".into()), snapshot);
    assert_eq!(
        (quiet.observed(&want("a")), quiet.observed(&more)),
        (Ok((Some(3), 5)), Err(Reason::Unsynced))
    );
    assert_eq!(quiet.watching(WatchSelect::Name("a".into()), Watching::is_looking), Some(true));
    quiet.one("a", Some(3), 6);
    assert_eq!(quiet.observed(&more), Ok((Some(3), 6)));
}

#[tokio::test]
async fn more_of_one_object_is_read_again_if_it_is_there() {
    let quiet = Quiet::new(HubSettings::default());
    let looks = |name: &str| quiet.watching(WatchSelect::Name(name.into()), Watching::is_looking);
    quiet.ask(1, [want("there"), want("absent")]);
    quiet.one("there", Some(3), 5);
    quiet.one("absent", None, 5);
    let more = ["there", "absent"].map(|name| want_more(name, ReadSet::dotted(["data"])));
    quiet.ask(2, more.clone());
    assert_eq!((looks("there"), looks("absent")), (Some(true), Some(false)));
    assert_eq!((quiet.observed(&more[0]), quiet.observed(&more[1])), (Err(Reason::Unsynced), Ok((None, 5))));
}

#[tokio::test]
async fn what_was_passed_over_while_its_name_joined_is_read_again() {
    let quiet = Quiet::wide();
    let passed = || WatchReport::Passed { name: "m20".into(), version: 11 };
    quiet.ask(2, [want("m20")]);
    assert_eq!(quiet.observed(&want("m20")), Ok((None, 10)));
    assert_eq!(quiet.say(WatchSelect::All, passed()), SinkReply::Again);
    let item = quiet.item(WatchSelect::All, "m20", 11);
    assert_eq!(quiet.say(WatchSelect::All, WatchReport::Changed(item)), SinkReply::Noted);
    assert_eq!(quiet.observed(&want("m20")), Ok((Some(11), 11)));
    assert!(quiet.narrow().is_empty());
}

#[tokio::test]
async fn a_name_that_joined_while_the_connection_was_lost_is_looked_at_and_handed_over_when_it_is_back() {
    let quiet = Quiet::wide();
    quiet.say(WatchSelect::All, WatchNote::Lost);
    quiet.ask(2, [want("m20")]);
    assert_eq!(
        (quiet.observed(&want("m20")), quiet.narrow()),
        (Err(Reason::Unsynced), vec!["m20".to_owned()])
    );
    quiet.one("m20", None, 9);
    quiet.say(WatchSelect::All, WatchReport::Live);
    assert_eq!(quiet.observed(&want("m20")), Ok((None, 10)));
    assert!(quiet.narrow().is_empty());
}

#[tokio::test]
async fn narrow_watches_that_are_further_than_a_new_wide_one_stay() {
    let quiet = Quiet::new(HubSettings::default());
    quiet.ask(1, names(0..15).iter().map(|name| want(name)));
    quiet.one("m00", Some(7), 14);
    quiet.one("m01", Some(8), 14);
    quiet.one("m02", None, 14);
    quiet.ask(2, names(15..20).iter().map(|name| want(name)));
    quiet.decide(&PromotionVerdict::May(1));
    quiet.all(&[], &[], 7);
    assert_eq!(quiet.narrow(), ["m01"], "the list was read before m01 was written");
    assert_eq!(quiet.observed(&want("m01")), Ok((Some(8), 14)));
    quiet.say(WatchSelect::All, WatchReport::Reached(8));
    quiet.hub.inner.weigh(Duration::from_secs(30));
    assert!(quiet.narrow().is_empty());
}

#[tokio::test]
async fn a_wide_watch_stays_until_the_narrow_ones_are_not_behind() {
    let quiet = Quiet::wide();
    quiet.ask(1, [want("m00"), want("m01")]);
    assert_eq!(quiet.narrow(), ["m00", "m01"]);
    let item = quiet.item(WatchSelect::All, "m00", 12);
    quiet.say(WatchSelect::All, WatchReport::Changed(item));
    quiet.one("m01", None, 11);
    quiet.one("m00", Some(3), 11);
    assert_eq!(quiet.observed(&want("m00")), Ok((Some(12), 12)), "what was observed is not taken back");
    assert!(quiet.is_wide());
    let item = quiet.item(WatchSelect::Name("m00".into()), "m00", 12);
    quiet.say(WatchSelect::Name("m00".into()), WatchReport::Changed(item));
    quiet.hub.inner.weigh(Duration::from_secs(30));
    assert!(!quiet.is_wide());
    assert_eq!(quiet.observed(&want("m00")).map(|observed| observed.0), Ok(Some(12)));
}

#[tokio::test]
async fn a_name_that_joins_while_a_wide_watch_is_given_up_does_not_keep_it() {
    let quiet = Quiet::wide();
    quiet.ask(1, [want("m00")]);
    quiet.ask(2, [want("other")]);
    assert!(quiet.is_wide(), "m00 is shown by nobody else yet");
    quiet.one("other", Some(5), 9);
    quiet.one("m00", Some(3), 11);
    assert!(!quiet.is_wide());
    assert_eq!(quiet.observed(&want("other")), Ok((Some(5), 9)));
}

#[tokio::test]
async fn many_changes_of_what_is_asked_for_are_no_reason_to_watch_it_narrowly() {
    let quiet = Quiet::wide();
    for version in 11..2_000 {
        let item = quiet.item(WatchSelect::All, "m01", version);
        quiet.say(WatchSelect::All, WatchReport::Changed(item));
    }
    quiet.hub.inner.weigh(Duration::from_secs(30));
    assert!(quiet.narrow().is_empty());
    for version in 2_000..4_000 {
        quiet.say(WatchSelect::All, WatchReport::Passed { name: "other".into(), version });
    }
    quiet.hub.inner.weigh(Duration::from_secs(30));
    assert_eq!(quiet.narrow(), names(0..20), "what nobody asks for is");
}

#[tokio::test]
async fn a_namespace_without_watches_left_hears_what_a_wide_one_shows() {
    let quiet = Quiet::wide_with(HubSettings {
        budget: NamespaceBudget { watches: 2, ..NamespaceBudget::default() },
        ..HubSettings::default()
    });
    let more = want_more("m00", ReadSet::dotted(["data"]));
    quiet.ask(2, [more.clone()]);
    assert_eq!(quiet.observed(&more), Err(Reason::OverBudget));
    assert_eq!(quiet.observed(&want("m00")), Ok((Some(3), 10)), "the first reader notices nothing");
    let item = quiet.item(WatchSelect::All, "m00", 12);
    quiet.say(WatchSelect::All, WatchReport::Changed(item));
    assert_eq!(quiet.observed(&more), Ok((Some(12), 12)));
}

#[tokio::test]
async fn a_refusal_of_the_wide_watch_leaves_narrow_ones_and_no_absence() {
    let quiet = Quiet::wide();
    quiet.say(WatchSelect::All, WatchNote::Blind(Why::new(Reason::Forbidden, "no")));
    assert!(!quiet.is_wide());
    assert_eq!(quiet.narrow(), names(0..20));
    assert_eq!(quiet.observed(&want("m05")), Err(Reason::Unsynced));
}

#[tokio::test]
async fn what_a_narrow_watch_passed_over_is_looked_at_again_and_never_said_to_be_absent() {
    let quiet = Quiet::new(HubSettings::default());
    quiet.ask(1, [want("a")]);
    let select = || WatchSelect::Name("a".into());
    quiet.say(select(), WatchReport::Snapshot { items: Vec::new(), others: vec!["a".into()], as_of: 5 });
    assert_eq!(quiet.observed(&want("a")), Err(Reason::Unsynced));
    assert_eq!(quiet.watching(select(), Watching::is_looking), Some(true), "it is asked for again");
    quiet.one("a", Some(3), 6);
    assert_eq!(quiet.observed(&want("a")), Ok((Some(3), 6)));
}
