//! Single turns of an employment: who serves it, which call comes first, when a pod is protected and when it is let go.
//!
//! The rules that `model.rs` holds over whole stories, here each by itself, so that a broken one has a name.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use linchpin_consist::{
    AdapterOptions, Batch, Call, EmployeeSelection, Getter, ItemPair, LookFailed, PodView, Predicate,
    ProviderAnswer, Trouble,
    settle::{
        Act, AdapterChoice, BindingClaim, CompletedAct, EmployerView, ObservedEmployment, ProviderLook,
        SettleDecision, SettleMemory, SettleOrder, SettleOutcome, WorkSlot, choose, settle,
    },
};
use linchpin_words::{Gvk, Timestamp};
use serde_json::{Value, json};

use crate::pods::pod;

const PROT: &str = "prot.podopslifecycle.kusionstack.io/9705eb7ac2c98403";
const ENTRY: &str =
    r#"{"expectedFinalizers":{"Service/shop/web":"prot.podopslifecycle.kusionstack.io/9705eb7ac2c98403"}}"#;

fn now() -> Timestamp {
    Timestamp::from_second(1_800_000_000)
}

fn later(milliseconds: u64) -> Timestamp {
    now().plus_duration(Duration::from_millis(milliseconds))
}

fn service(change: impl FnOnce(&mut Value)) -> EmployerView {
    let mut object = json!({"metadata": {"namespace": "shop", "name": "web", "uid": "e", "resourceVersion": "5",
        "labels": {"kusionstack.io/control": "true"}, "annotations": {},
        "finalizers": ["resource-consist.kusionstack.io/clean-web"]}});
    change(&mut object);
    EmployerView::of(&Gvk::new("", "v1", "Service"), &Arc::new(object))
}

/// What a turn is made from.
struct Scene {
    employer: EmployerView,
    claim: BindingClaim,
    pods: Vec<Arc<PodView>>,
    memory: SettleMemory,
    look: Option<ProviderLook>,
    outcomes: Vec<SettleOutcome>,
    serve: bool,
    namespace_going: bool,
    now: Timestamp,
}

impl Scene {
    fn of(pods: impl IntoIterator<Item = PodView>) -> Self {
        let claim =
            BindingClaim::Held { adapter: "demo".to_owned(), employer: "e".to_owned(), uid: "b".to_owned() };
        Self {
            employer: service(|_| ()),
            claim,
            pods: pods.into_iter().map(Arc::new).collect(),
            memory: SettleMemory::default(),
            look: None,
            outcomes: Vec::new(),
            serve: true,
            namespace_going: false,
            now: now(),
        }
    }

    fn turn(&self) -> SettleDecision {
        let observed = ObservedEmployment {
            employer: &self.employer,
            adapter: "demo",
            options: &AdapterOptions::default(),
            selection: &EmployeeSelection::Labels(BTreeMap::from([("app".to_owned(), "web".to_owned())])),
            follows: true,
            serve: self.serve,
            employees: Some(&self.pods),
            claim: &self.claim,
            look: self.look.as_ref(),
            namespace_going: self.namespace_going,
            drain_timeout: Duration::from_mins(5),
        };
        settle(&self.memory, observed, &self.outcomes, self.now)
    }

    /// The provider answers this, about what there is now.
    fn answers(&mut self, employer: Vec<ItemPair>, employees: Vec<ItemPair>) -> SettleDecision {
        let result = Ok(ProviderAnswer { employer, employees, recheck: None });
        self.looked(result)
    }

    fn fails(&mut self) -> SettleDecision {
        self.looked(Err(LookFailed::new(Getter::CurrentEmployees, Trouble::new("out of order"))))
    }

    fn looked(&mut self, result: Result<ProviderAnswer, LookFailed>) -> SettleDecision {
        let about = self.turn().about;
        self.look = Some(ProviderLook { began: self.now, about, result });
        self.turn()
    }

    /// The call of a decision was made, and everything in it is done.
    fn done(&mut self, decision: &SettleDecision) {
        let made = |order: &&SettleOrder| order.slot == WorkSlot::Provider;
        let Some(SettleOrder { slot, number, .. }) = decision.orders.iter().find(made) else {
            panic!("{:?}", decision.orders)
        };
        self.memory = decision.memory.clone();
        self.now = self.now.plus_duration(Duration::from_millis(2));
        let result = Ok(CompletedAct { version: None, batch: Some(Batch::default()) });
        self.outcomes = vec![SettleOutcome { slot: slot.clone(), number: *number, at: self.now, result }];
        self.memory = self.turn().memory;
        self.outcomes.clear();
        self.now = self.now.plus_duration(Duration::from_secs(10));
    }
}

/// A pod of a name, with its entry and these finalizers.
fn named(name: &str, finalizers: &[&str], change: impl FnOnce(&mut Value)) -> PodView {
    pod(|object| {
        object["metadata"]["name"] = json!(name);
        object["metadata"]["uid"] = json!(format!("uid-{name}"));
        object["metadata"]["finalizers"] = json!(finalizers);
        object["metadata"]["annotations"]["pod.kusionstack.io/available-conditions"] = json!(ENTRY);
        change(object);
    })
}

/// An item: as it is to be, and as it is.
fn pair(id: &str, expected: Option<i64>, current: Option<i64>) -> ItemPair {
    ItemPair {
        id: id.to_owned(),
        name: id.to_owned(),
        expected: expected.map(|state| Arc::new(json!(state))),
        current: current.map(|state| Arc::new(json!(state))),
        same: expected.is_some() && expected == current,
        ready: expected.map(|state| state > 0),
        in_traffic: None,
    }
}

fn acts(decision: &SettleDecision) -> Vec<&Act> {
    decision.orders.iter().map(|order| &order.act).collect()
}

/// The one call of a decision.
fn call(decision: &SettleDecision) -> (Call, Vec<(String, Value)>) {
    let calls = acts(decision).into_iter().filter_map(|act| match act {
        Act::Call { call, items } => Some((call, items)),
        _ => None,
    });
    let [(call, items)] = calls.collect::<Vec<_>>()[..] else { panic!("{:?}", decision.orders) };
    (*call, items.iter().map(|(id, state)| (id.clone(), Value::clone(state))).collect())
}

#[test]
fn several_adapters_that_fit_serve_nobody_unless_the_label_chooses_one() {
    let kind = Gvk::new("", "v1", "Service");
    let other = Gvk::new("example.com", "v1", "Service");
    let control = AdapterOptions::default().predicate;
    let both = [("a", &kind, &control), ("b", &kind, &control), ("c", &other, &Predicate::All)];
    let labelled = |adapter: Option<&str>| {
        service(|object| {
            if let Some(adapter) = adapter {
                object["metadata"]["labels"]["linchpin.dev/adapter"] = json!(adapter);
            }
        })
    };
    assert_eq!(choose(&labelled(None), both), AdapterChoice::Several(vec!["a", "b"]));
    assert_eq!(choose(&labelled(Some("b")), both), AdapterChoice::One("b"));
    assert_eq!(choose(&labelled(Some("c")), both), AdapterChoice::Other, "of another group");
    assert_eq!(choose(&labelled(None), both.into_iter().skip(1)), AdapterChoice::One("b"));
    let unlabelled = service(|object| object["metadata"]["labels"] = json!({"linchpin.dev/adapter": "b"}));
    assert_eq!(choose(&unlabelled, both), AdapterChoice::Other, "the control label is missing");
    let unlabelled = service(|object| object["metadata"]["labels"] = json!({}));
    assert_eq!(choose(&unlabelled, both), AdapterChoice::Nobody);
}

#[test]
fn calls_are_made_one_by_one_in_the_documents_order_with_what_is_expected() {
    let mut scene = Scene::of([named("web-1", &[PROT], |_| ()), named("web-2", &[], |_| ())]);
    let employees = || {
        let (new, changed, gone) =
            (pair("web-2", Some(1), None), pair("web-1", Some(2), Some(1)), pair("old", None, Some(1)));
        vec![new, changed, gone]
    };
    let employer = |current: Option<i64>, old: Option<i64>| {
        let pair = |id, expected, current| ItemPair { ready: None, ..pair(id, expected, current) };
        vec![pair("web", Some(7), current), pair("former", None, old)]
    };
    let decision = scene.answers(employer(None, Some(1)), employees());
    assert_eq!(call(&decision), (Call::CreateEmployer, vec![("web".to_owned(), json!(7))]));
    let again = Scene { memory: decision.memory.clone(), now: later(500), ..Scene::of([]) };
    let again = Scene { pods: scene.pods.clone(), look: scene.look.clone(), ..again }.turn();
    assert!(again.orders.is_empty() && again.look_at.is_none(), "one call at a time");

    scene.done(&decision);
    let decision = scene.answers(employer(Some(6), Some(1)), employees());
    assert_eq!(call(&decision), (Call::UpdateEmployer, vec![("web".to_owned(), json!(7))]));
    scene.done(&decision);
    let decision = scene.answers(employer(Some(7), Some(1)), employees());
    assert_eq!(call(&decision), (Call::DeleteEmployer, vec![("former".to_owned(), json!(1))]));
    scene.done(&decision);
    let mut rest = employees();
    for (place, (wanted, id, state)) in [
        (Call::CreateEmployees, "web-2", json!(1)),
        (Call::UpdateEmployees, "web-1", json!(2)),
        (Call::DeleteEmployees, "old", json!(1)),
    ]
    .into_iter()
    .enumerate()
    {
        let decision = scene.answers(employer(Some(7), None), rest.clone());
        assert_eq!(call(&decision), (wanted, vec![(id.to_owned(), state)]));
        scene.done(&decision);
        rest[place].current = rest[place].expected.clone();
        rest[place].same = true;
    }
}

#[test]
fn at_most_a_hundred_items_are_in_one_call() {
    let names: Vec<String> = (0..150).map(|number| format!("web-{number:03}")).collect();
    let mut scene = Scene::of(names.iter().map(|name| named(name, &[], |_| ())));
    let pairs = names.iter().map(|name| pair(name, Some(1), None)).collect();
    assert_eq!(call(&scene.answers(Vec::new(), pairs)).1.len(), 100);
}

#[test]
fn a_pod_is_protected_when_it_is_seen_in_traffic_as_expected_and_not_before() {
    let protects = |pod: PodView, pair: ItemPair| {
        let decision = Scene::of([pod]).answers(Vec::new(), vec![pair]);
        acts(&decision).iter().any(|act| matches!(act, Act::Protect { .. }))
    };
    let plain = || named("web-1", &[], |_| ());
    assert!(protects(plain(), pair("web-1", Some(1), Some(1))));
    assert!(!protects(plain(), pair("web-1", Some(1), None)), "it is not there");
    assert!(!protects(plain(), pair("web-1", Some(1), Some(2))), "it is not as expected");
    assert!(!protects(plain(), pair("web-1", Some(0), Some(0))), "it may have no traffic");
    let terminating =
        |object: &mut Value| object["metadata"]["deletionTimestamp"] = json!("2027-01-15T08:00:00Z");
    assert!(!protects(named("web-1", &[], terminating), pair("web-1", Some(1), Some(1))));
    let unselected = |object: &mut Value| object["metadata"]["labels"]["app"] = json!("other");
    assert!(!protects(named("web-1", &[], unselected), pair("web-1", Some(1), Some(1))));
    let unmarked = |object: &mut Value| object["metadata"]["annotations"] = json!({});
    assert!(!protects(named("web-1", &[], unmarked), pair("web-1", Some(1), Some(1))), "no entry yet");
}

#[test]
fn an_employment_is_not_in_sync_while_a_pod_lacks_its_entry_and_says_why() {
    let said = |entry: Value| {
        let marked = |object: &mut Value| {
            object["metadata"]["annotations"]["pod.kusionstack.io/available-conditions"] = entry;
        };
        let pairs = vec![pair("web-1", Some(1), Some(1))];
        let report = Scene::of([named("web-1", &[PROT], marked)]).answers(Vec::new(), pairs).report;
        (report.phase.word(), report.message)
    };
    assert_eq!(said(json!(ENTRY)).0, "Synced");
    assert_eq!(said(json!("{}")), ("Syncing", "pods are being marked".to_owned()));
    let (phase, why) = said(json!("{nobody can read this"));
    assert_eq!(phase, "Syncing");
    assert!(why.contains("of pod web-1: what is in it cannot be read"), "{why}");
}

fn releases(decision: &SettleDecision) -> bool {
    let off = |act: &&Act| matches!(act, Act::Release { finalizers, .. } if *finalizers == [PROT]);
    acts(decision).iter().any(off)
}

#[test]
fn a_pod_is_released_when_it_is_seen_out_of_traffic_and_not_before() {
    let released = |pair: ItemPair| {
        releases(&Scene::of([named("web-1", &[PROT], |_| ())]).answers(Vec::new(), vec![pair]))
    };
    assert!(!released(pair("web-1", Some(1), Some(1))), "it may have traffic");
    assert!(!released(pair("web-1", Some(0), Some(1))), "it is still on");
    assert!(released(pair("web-1", Some(0), Some(0))), "equal says so where nothing is said of traffic");
    assert!(released(pair("web-1", Some(0), None)), "it is not there");
    let said = |in_traffic, current| ItemPair { in_traffic, ..pair("web-1", Some(0), current) };
    assert!(!released(said(Some(true), Some(0))), "switched off, and sessions are left");
    assert!(released(said(Some(false), Some(1))));
    assert!(!releases(&Scene::of([named("web-1", &[PROT], |_| ())]).fails()), "unknown is not absent");
}

#[test]
fn a_terminating_pod_is_held_for_the_drain_timeout_unless_nothing_of_it_runs() {
    let terminating = |change: fn(&mut Value)| {
        named("web-1", &[PROT], |object| {
            object["metadata"]["deletionTimestamp"] = json!(now().to_string());
            change(object);
        })
    };
    let held = Scene::of([terminating(|_| ())]).fails();
    assert!(!releases(&held));
    assert!(held.wake_at.is_some_and(|at| at <= now().plus_duration(Duration::from_mins(5))));
    let at = |milliseconds| {
        let mut scene = Scene::of([terminating(|_| ())]);
        scene.now = later(milliseconds);
        releases(&scene.fails())
    };
    assert!(!at(299_999) && at(300_000), "five minutes after its deletion");
    let changes: [fn(&mut Value); 3] = [
        |object| object["status"]["phase"] = json!("Succeeded"),
        |object| object["spec"]["nodeName"] = json!(""),
        |object| {
            object["status"]["conditions"] =
                json!([{"type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC"}]);
        },
    ];
    for change in changes {
        assert!(releases(&Scene::of([terminating(change)]).fails()));
    }
    let mut going = Scene::of([terminating(|_| ())]);
    going.namespace_going = true;
    assert!(releases(&going.fails()));
}

#[test]
fn a_finalizer_that_another_employer_of_that_name_expects_too_stays() {
    let shared =
        format!(r#"{{"expectedFinalizers":{{"Gateway/shop/web":"{PROT}","Service/shop/web":"{PROT}"}}}}"#);
    let shared = |object: &mut Value| {
        object["metadata"]["annotations"]["pod.kusionstack.io/available-conditions"] = json!(shared);
    };
    let mut scene = Scene::of([named("web-1", &[PROT], shared)]);
    assert!(!releases(&scene.answers(Vec::new(), vec![pair("web-1", Some(0), Some(0))])));
}

#[test]
fn an_employer_that_is_released_by_hand_does_not_wait_for_its_provider() {
    let mut scene = Scene::of([named("web-1", &[PROT], |_| ())]);
    let deleted = |object: &mut Value| object["metadata"]["deletionTimestamp"] = json!(now().to_string());
    scene.employer = service(deleted);
    let held = scene.fails();
    assert!(acts(&held).is_empty() && held.look_at.is_some(), "{:?}", held.orders);
    scene.employer = service(|object| {
        deleted(object);
        object["metadata"]["annotations"]["linchpin.dev/proceed"] = json!("clean");
    });
    assert!(releases(&scene.turn()));
    scene.pods.clear();
    assert!(
        matches!(acts(&scene.turn())[..], [Act::Unclaim { .. }]),
        "the binding goes before the finalizer"
    );
    scene.claim = BindingClaim::Absent;
    let last = scene.turn();
    assert!(matches!(acts(&last)[..], [Act::RemoveClean { .. }]) && last.left.is_some());
}

#[test]
fn pods_that_leave_a_selection_stay_in_traffic_until_those_that_come_are_marked_or_for_three_seconds() {
    let leaves = |object: &mut Value| object["metadata"]["labels"]["app"] = json!("former");
    let comes = |object: &mut Value| object["metadata"]["annotations"] = json!({});
    let mut scene = Scene::of([named("old-1", &[PROT], leaves), named("web-1", &[], comes)]);
    let pairs = || vec![pair("old-1", None, Some(1)), pair("web-1", Some(1), None)];
    let decision = scene.answers(Vec::new(), pairs());
    assert!(matches!(acts(&decision)[..], [Act::WriteEntries { .. }]), "{:?}", decision.orders);
    scene.now = later(3_000);
    let calls = |decision: &SettleDecision| {
        acts(decision).iter().any(|act| matches!(act, Act::Call { call: Call::DeleteEmployees, .. }))
    };
    assert!(calls(&scene.turn()), "not for ever");
    scene.now = now();
    scene.pods = vec![Arc::new(named("old-1", &[PROT], leaves)), Arc::new(named("web-1", &[], |_| ()))];
    assert_eq!(
        call(&scene.answers(Vec::new(), pairs())).0,
        Call::CreateEmployees,
        "it is marked: it comes first"
    );
}

#[test]
fn an_employer_is_not_released_before_its_pods_are_seen_to_be_free() {
    let mut scene = Scene::of([named("web-1", &[PROT], |_| ())]);
    scene.serve = false;
    let decision = scene.answers(Vec::new(), Vec::new());
    assert!(releases(&decision));
    let [SettleOrder { slot, number, .. }] = decision.orders.as_slice() else {
        panic!("{:?}", decision.orders)
    };
    scene.memory = decision.memory.clone();
    let result = Ok(CompletedAct { version: Some(99), batch: None });
    scene.outcomes = vec![SettleOutcome { slot: slot.clone(), number: *number, at: later(1), result }];
    scene.now = later(2);
    assert!(scene.turn().orders.is_empty(), "the pod as it was before says nothing");
    scene.pods = vec![Arc::new(named("web-1", &[], |object| {
        object["metadata"]["resourceVersion"] = json!("99");
        object["metadata"]["annotations"] = json!({});
    }))];
    assert!(matches!(acts(&scene.turn())[..], [Act::Unclaim { .. }]));
}

#[test]
fn an_employer_whose_label_comes_back_is_served_after_what_releases_it_has_ended() {
    let mut scene = Scene::of([]);
    scene.serve = false;
    let decision = scene.answers(Vec::new(), Vec::new());
    assert!(matches!(acts(&decision)[..], [Act::Unclaim { .. }]));
    scene.memory = decision.memory;
    scene.serve = true;
    scene.pods = vec![Arc::new(named("web-1", &[], |object| object["metadata"]["annotations"] = json!({})))];
    assert!(scene.turn().orders.is_empty(), "its binding is on its way out");
    scene.memory = SettleMemory::default();
    assert!(matches!(acts(&scene.turn())[..], [Act::WriteEntries { .. }]));
}
