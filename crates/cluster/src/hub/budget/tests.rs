//! Budgets while nothing answers: what the tasks of watches say is said by the tests.

use super::*;
use crate::{
    hub::{Hub, HubSettings, SubscriberId, state::HubState},
    transport::{Transport, TransportOptions},
    watch::{WatchItem, WatchReport},
};
use linchpin_engine::contract::{Failure, Projection, Question, ReadSet, Right, Scope, Selector};
use linchpin_words::Gvk;
use proptest::{collection::vec, prelude::*};
use serde_json::Value;

fn kind() -> Gvk {
    Gvk::new("", "v1", "ConfigMap")
}

fn via(namespace: &str) -> Via {
    Via::service_account(namespace, "builder")
}

fn named(namespace: &str, name: &str) -> Want {
    Want::object(via(namespace), kind(), Some(namespace.into()), name, ReadSet::nothing())
}

fn selected(namespace: &str, label: &str) -> Want {
    let selector = Selector::requirements(vec![label.to_owned()]);
    let scope = Scope::Labels { namespace: Some(namespace.into()), selector };
    Want::new(Question::Objects { via: via(namespace), kind: kind(), scope, reads: ReadSet::nothing() })
}

fn right(namespace: &str, name: &str) -> Want {
    let right = Right {
        verb: "get".into(),
        group: String::new(),
        resource: "configmaps".into(),
        subresource: None,
        namespace: Some(namespace.into()),
        name: Some(name.into()),
    };
    Want::new(Question::Right { via: via(namespace), right })
}

fn item(name: &str, version: u64, revision: u64, bytes: usize) -> WatchItem {
    let kept = Projection {
        kind: kind(),
        namespace: None,
        name: name.into(),
        uid: "u".into(),
        generation: 1,
        version,
        deleting: false,
        content: Value::Null,
    };
    WatchItem { name: name.into(), version, revision, kept: Some(Arc::new(kept)), bytes }
}

/// A hub whose tasks never run, because its tests never wait.
struct Quiet {
    hub: Hub,
}

impl Quiet {
    fn new(budget: NamespaceBudget) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let config = kube::Config::new("http://127.0.0.1:1".parse().unwrap());
        let transport = Transport::new(&config, &TransportOptions::default()).unwrap();
        let settings = HubSettings { budget, never_widen: true, ..HubSettings::default() };
        Self { hub: Hub::new(transport, settings, Arc::new(|_: &[SubscriberId]| {})) }
    }

    fn ask(&self, subscriber: u64, wants: &[Want]) {
        self.hub.subscribe(SubscriberId(subscriber), wants.iter().cloned().collect());
    }

    fn watch_of(state: &HubState, want: &Want) -> Option<(WatchId, u64)> {
        let AnswerSource::Objects(supply) = &state.topics.get(want)?.source else { return None };
        supply.own
    }

    /// Lets the watch of a question see so many objects of so many bytes; whether there is one.
    fn see(&self, want: &Want, objects: usize, bytes: usize) -> bool {
        let Some((id, revision)) = Self::watch_of(&self.hub.inner.state(), want) else { return false };
        let Question::Objects { scope, .. } = want.question() else { return false };
        let items = (0..objects).map(|number| match scope {
            Scope::Name { name, .. } => item(name, 1, revision, bytes),
            Scope::Labels { .. } => item(&format!("o{number}"), 1, revision, bytes),
        });
        let items = items.collect();
        self.hub.inner.noted(id, WatchReport::Snapshot { items, others: Vec::new(), as_of: 5 });
        true
    }

    /// How many objects are reported, or why none are.
    fn observed(&self, want: &Want) -> Result<usize, (Reason, String)> {
        match self.hub.read([want]).get(want) {
            Some(Seen::Objects(observed)) => Ok(observed.items.len()),
            Some(Seen::Unknown(why)) => Err((why.reason, why.message.clone())),
            other => panic!("{other:?}"),
        }
    }

    fn is_over(&self, want: &Want) -> bool {
        matches!(self.observed(want), Err((Reason::OverBudget, _)))
    }
}

fn objects(limit: usize) -> NamespaceBudget {
    NamespaceBudget { objects: limit, ..NamespaceBudget::default() }
}

#[test]
fn numbers_are_written_as_people_read_them() {
    let shown: Vec<String> = [0, 999, 1_000, 12_034, 1_234_567].into_iter().map(grouped).collect();
    assert_eq!(shown, ["0", "999", "1,000", "12,034", "1,234,567"]);
}

#[tokio::test]
async fn each_account_that_is_acted_as_counts_as_a_watch() {
    let account =
        |namespace: &str, number: usize| Via::service_account(namespace, format!("account-{number}"));
    let asks = |via: Via| Want::object(via, kind(), Some("a".into()), "x", ReadSet::nothing());
    for (accounts, served) in [(4, 4), (5, 5), (6, 5), (500, 5)] {
        let quiet = Quiet::new(NamespaceBudget { watches: 10, ..NamespaceBudget::default() });
        let wants: Vec<Want> = (0..accounts).map(|number| asks(account("a", number))).collect();
        for (number, want) in (1..).zip(&wants) {
            quiet.ask(number, std::slice::from_ref(want));
        }
        let over = wants.iter().filter(|want| quiet.is_over(want)).count();
        assert_eq!(over, accounts - served, "{accounts} accounts");
        assert_eq!(quiet.hub.metrics().sessions, served);
        let other = asks(account("b", 0));
        quiet.ask(1_000, std::slice::from_ref(&other));
        assert!(!quiet.is_over(&other), "another namespace has its own");
    }
}

#[tokio::test]
async fn an_account_that_is_one_too_many_is_over_budget_in_questions_and_writes_too() {
    let quiet = Quiet::new(NamespaceBudget { watches: 2, ..NamespaceBudget::default() });
    quiet.ask(1, &[named("a", "x")]);
    let late = Via::service_account("a", "late");
    let Question::Right { right, .. } = right("a", "x").question().clone() else { panic!() };
    let want = Want::new(Question::Right { via: late.clone(), right });
    quiet.ask(2, std::slice::from_ref(&want));
    let (reason, message) = quiet.observed(&want).unwrap_err();
    assert_eq!(reason, Reason::OverBudget);
    let expected =
        "namespace a needs 3 watches, one of them for each ServiceAccount that it acts as, limit 2";
    assert!(message.starts_with(expected), "{message}");
    let failure = quiet.hub.reach(&late, std::time::Duration::from_secs(1)).await.err();
    assert!(matches!(&failure, Some(Failure::Transient(text)) if *text == message), "{failure:?}");
    // What a session needs for itself is not refused, or nothing could be seen through it.
    let keeper = named("a", "credential");
    quiet.hub.inner.subscribe(Reader::Session(99), BTreeSet::from([keeper.clone()]));
    assert!(!quiet.is_over(&keeper));
    quiet.hub.inner.subscribe(Reader::Session(99), BTreeSet::new());
    // An account that nobody acts as any more is paid for no more.
    quiet.ask(1, &[]);
    let retired =
        quiet.hub.inner.state().retire(std::time::Instant::now() + std::time::Duration::from_mins(2));
    for reader in retired {
        quiet.hub.inner.subscribe(reader, BTreeSet::new());
    }
    assert!(!quiet.is_over(&want));
}

#[tokio::test]
async fn at_the_limit_all_is_seen_and_over_it_the_question_says_what_and_how_much() {
    for (there, over) in [(9, false), (10, false), (11, true), (1_000, true)] {
        let quiet = Quiet::new(objects(10));
        let want = selected("a", "x=y");
        quiet.ask(1, std::slice::from_ref(&want));
        assert!(quiet.see(&want, there, 1));
        if over {
            let message = format!("namespace a watches {} objects, limit 10", grouped(there));
            let (reason, text) = quiet.observed(&want).unwrap_err();
            assert!(reason == Reason::OverBudget && text.starts_with(&message), "{text}");
            assert!(!quiet.see(&want, there, 1), "and nothing is watched any more");
        } else {
            assert_eq!(quiet.observed(&want), Ok(there));
        }
    }
}

#[tokio::test]
async fn bytes_count_as_well_as_objects() {
    for (bytes, over) in [(500, false), (501, true), (50_000, true)] {
        let quiet = Quiet::new(NamespaceBudget { bytes: 1_000, ..NamespaceBudget::default() });
        let want = selected("a", "x=y");
        quiet.ask(1, std::slice::from_ref(&want));
        quiet.see(&want, 2, bytes);
        assert_eq!(quiet.is_over(&want), over);
        if over {
            let (_, text) = quiet.observed(&want).unwrap_err();
            let message = format!("namespace a watches objects of {} bytes, limit 1,000", grouped(bytes * 2));
            assert!(text.starts_with(&message), "{text}");
        }
    }
}

#[tokio::test]
async fn a_list_that_is_too_long_ends_while_it_is_read() {
    let quiet = Quiet::new(objects(10));
    let want = selected("a", "x=y");
    quiet.ask(1, std::slice::from_ref(&want));
    let id = Quiet::watch_of(&quiet.hub.inner.state(), &want).unwrap().0;
    quiet.hub.inner.noted(id, WatchReport::Read { objects: 10, bytes: 10 });
    assert!(!quiet.is_over(&want));
    quiet.hub.inner.noted(id, WatchReport::Read { objects: 11, bytes: 11 });
    assert!(quiet.is_over(&want) && quiet.hub.inner.state().watches.is_empty());
}

#[tokio::test]
async fn what_was_asked_last_is_refused_and_nothing_else() {
    let quiet = Quiet::new(objects(10));
    let (old, big, late) = (selected("a", "x=old"), selected("a", "x=big"), named("a", "late"));
    let theirs = selected("b", "x=theirs");
    for (number, want) in (1..).zip([&old, &big, &late, &theirs]) {
        quiet.ask(number, std::slice::from_ref(want));
    }
    quiet.see(&theirs, 10, 1);
    quiet.see(&late, 1, 1);
    quiet.see(&old, 5, 1);
    quiet.see(&big, 4, 1);
    assert_eq!(quiet.observed(&big), Ok(4), "ten of ten");
    quiet.see(&old, 6, 1);
    assert!(quiet.is_over(&late), "it came last");
    quiet.see(&big, 5, 1);
    assert!(quiet.is_over(&big));
    assert_eq!((quiet.observed(&old), quiet.observed(&theirs)), (Ok(6), Ok(10)));
    // One that is small fits where a large one does not.
    quiet.see(&late, 1, 1);
    assert_eq!(quiet.observed(&late), Ok(1));
    // When the first goes there is room for the others again.
    quiet.ask(1, &[]);
    quiet.see(&big, 5, 1);
    assert_eq!((quiet.observed(&big), quiet.observed(&late)), (Ok(5), Ok(1)));
}

#[tokio::test]
async fn what_was_refused_is_tried_again_now_and_then_because_it_may_have_become_less() {
    let quiet = Quiet::new(objects(10));
    let (big, other) = (selected("a", "x=big"), selected("a", "x=other"));
    quiet.ask(1, &[big.clone(), other.clone()]);
    quiet.see(&big, 11, 1);
    quiet.see(&other, 12, 1);
    let again = || {
        let mut state = quiet.hub.inner.state();
        state.feed_one_each(&quiet.hub.inner);
    };
    again();
    assert!(quiet.is_over(&big), "until it is known to be less it is over budget");
    assert!(quiet.see(&big, 11, 1) && quiet.is_over(&big) && !quiet.see(&other, 12, 1));
    again();
    assert!(quiet.see(&other, 3, 1), "they take turns");
    assert_eq!(quiet.observed(&other), Ok(3));
    quiet.hub.refresh([&big]);
    assert!(quiet.see(&big, 7, 1), "who asks for a fresh look gets one");
    assert_eq!(quiet.observed(&big), Ok(7));
}

#[tokio::test]
async fn questions_have_a_budget_and_the_first_ones_are_asked() {
    let quiet = Quiet::new(NamespaceBudget { questions: 3, ..NamespaceBudget::default() });
    let rights: Vec<Want> = (0..300).map(|number| right("a", &format!("r{number}"))).collect();
    for (number, want) in (1..).zip(&rights) {
        quiet.ask(number, std::slice::from_ref(want));
    }
    let theirs = right("b", "r");
    quiet.ask(1_000, std::slice::from_ref(&theirs));
    assert!(rights[..3].iter().chain([&theirs]).all(|want| !quiet.is_over(want)));
    assert!(rights[3..].iter().all(|want| quiet.is_over(want)));
    let (_, text) = quiet.observed(&rights[3]).unwrap_err();
    assert!(text.starts_with("namespace a asks 4 questions about rights and kinds, limit 3"), "{text}");
    quiet.ask(1, &[]);
    assert!(!quiet.is_over(&rights[3]) && quiet.is_over(&rights[4]), "the oldest that waited is next");
}

#[derive(Clone, Debug)]
enum Step {
    Ask(usize),
    Leave(usize),
    See(usize, usize, usize),
    Gone(usize),
    Again,
}

fn step() -> impl Strategy<Value = Step> {
    let which = 0..6usize;
    prop_oneof![
        4 => which.clone().prop_map(Step::Ask),
        2 => which.clone().prop_map(Step::Leave),
        6 => (which.clone(), 0..8usize, 1..4usize).prop_map(|(which, objects, bytes)| Step::See(which, objects, bytes)),
        1 => which.prop_map(Step::Gone),
        1 => Just(Step::Again),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn in_no_story_is_more_kept_than_may_be_or_the_count_wrong(steps in vec(step(), 0..60)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let _guard = runtime.enter();
        let limit = NamespaceBudget { watches: 5, objects: 10, bytes: 20, questions: 1 };
        let quiet = Quiet::new(limit);
        let wants = [
            selected("a", "x=0"), selected("a", "x=1"), named("a", "n0"), named("a", "n1"), selected("b", "x=0"),
            right("a", "r"),
        ];
        for step in steps {
            match step {
                Step::Ask(which) => quiet.ask(u64::try_from(which).unwrap(), &wants[which..=which]),
                Step::Leave(which) => quiet.ask(u64::try_from(which).unwrap(), &[]),
                Step::See(which, objects, bytes) => drop(quiet.see(&wants[which], objects, bytes)),
                Step::Gone(which) => {
                    let own = Quiet::watch_of(&quiet.hub.inner.state(), &wants[which]);
                    if let Some((id, _)) = own {
                        quiet.hub.inner.noted(id, WatchReport::Gone { name: "o0".into(), version: 9 });
                    }
                }
                Step::Again => quiet.hub.inner.state().feed_one_each(&quiet.hub.inner),
            }
            let state = quiet.hub.inner.state();
            for namespace in ["a", "b"] {
                let used = state.used(namespace);
                let watches = || state.watches.values().filter(|one| namespace_of(&one.key.family.via) == Some(namespace));
                let kept = watches().fold(Weight::default(), |sum, one| sum.plus(one.weight()));
                let accounts = usize::from(state.has_session(&via(namespace)));
                prop_assert_eq!((used.watches, used.objects, used.bytes), (watches().count() + accounts, kept.objects, kept.bytes));
                prop_assert!(kept.fits(&limit) && used.watches <= limit.watches && used.questions <= limit.questions);
            }
            prop_assert_eq!(state.starved.len(), state.waiting.len());
            prop_assert_eq!(state.asked.len(), state.topics.keys().filter(|want| namespace_of(want.via()).is_some()).count());
        }
    }
}
