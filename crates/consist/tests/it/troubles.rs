//! What an employment says when something is wrong: limits, collisions, refusals, each once.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use linchpin_consist::{
    AdapterOptions, Batch, EmployeeSelection, Getter, ItemPair, LookFailed, PodView, ProviderAnswer, Trouble,
    marks::PodEntries,
    settle::{
        Act, BindingClaim, CompletedAct, EmployerPhase, EmployerView, ObservedEmployment, ProviderLook,
        ReadyReason, RowState, SettleDecision, SettleMemory, SettleOutcome, WorkSlot, settle,
    },
};
use linchpin_words::{Gvk, Timestamp};
use serde_json::json;

use crate::pods::pod;

fn now() -> Timestamp {
    Timestamp::from_second(1_800_000_000)
}

fn later(milliseconds: u64) -> Timestamp {
    now().plus_duration(Duration::from_millis(milliseconds))
}

/// A turn of an employer that has its claim and its clean finalizer.
fn turn(
    memory: &SettleMemory,
    pods: &[Arc<PodView>],
    look: Option<&ProviderLook>,
    outcomes: &[SettleOutcome],
    at: Timestamp,
) -> SettleDecision {
    turn_of("e", memory, pods, look, outcomes, at)
}

/// The same of the employer of a uid.
fn turn_of(
    uid: &str,
    memory: &SettleMemory,
    pods: &[Arc<PodView>],
    look: Option<&ProviderLook>,
    outcomes: &[SettleOutcome],
    at: Timestamp,
) -> SettleDecision {
    turn_with((&AdapterOptions::default(), "demo"), uid, memory, pods, look, outcomes, at)
}

/// The same with these options, claimed by the adapter of a name.
fn turn_with(
    (options, holder): (&AdapterOptions, &str),
    uid: &str,
    memory: &SettleMemory,
    pods: &[Arc<PodView>],
    look: Option<&ProviderLook>,
    outcomes: &[SettleOutcome],
    at: Timestamp,
) -> SettleDecision {
    let object = json!({"metadata": {"namespace": "shop", "name": "web", "uid": uid, "resourceVersion": "5",
        "finalizers": ["resource-consist.kusionstack.io/clean-web"]}});
    let employer = EmployerView::of(&Gvk::new("", "v1", "Service"), &Arc::new(object));
    let claim =
        BindingClaim::Held { adapter: holder.to_owned(), employer: uid.to_owned(), uid: "b".to_owned() };
    let observed = ObservedEmployment {
        employer: &employer,
        adapter: "demo",
        options,
        selection: &EmployeeSelection::Labels(BTreeMap::from([("app".to_owned(), "web".to_owned())])),
        follows: true,
        serve: true,
        employees: Some(pods),
        claim: &claim,
        look,
        namespace_going: false,
        drain_timeout: Duration::from_mins(5),
    };
    settle(memory, observed, outcomes, at)
}

fn named(number: usize, entries: &str) -> Arc<PodView> {
    Arc::new(pod(|object| {
        object["metadata"]["name"] = json!(format!("web-{number}"));
        object["metadata"]["uid"] = json!(format!("uid-{number}"));
        object["metadata"]["annotations"]["pod.kusionstack.io/available-conditions"] = json!(entries);
    }))
}

#[test]
fn more_employees_than_are_served_are_told_and_nothing_is_touched() {
    let many: Vec<Arc<PodView>> = (0..5_001).map(|number| named(number, "{}")).collect();
    let decision = turn(&SettleMemory::default(), &many, None, &[], now());
    assert_eq!(
        (decision.report.phase, decision.report.reason),
        (EmployerPhase::Degraded, ReadyReason::TooLarge)
    );
    assert_eq!(decision.report.message, "it selects 5001 employees, at most 5000 are served");
    assert!(decision.orders.is_empty() && decision.look_at.is_none(), "nothing is touched");
    assert_eq!(decision.notices.len(), 1);
    let again = turn(&decision.memory, &many, None, &[], later(10));
    assert!(again.notices.is_empty(), "it is said once");
    let fewer = turn(&again.memory, &many[..5_000], None, &[], later(20));
    assert!(fewer.report.reason != ReadyReason::TooLarge && fewer.orders.len() == 5_000);
}

#[test]
fn troubles_of_several_pods_are_told_once_and_do_not_take_turns() {
    let full = (0..64).fold(PodEntries::read(None), |entries, number| {
        PodEntries::read(Some(&entries.with(&format!("Service/shop/s{number}"), "f").unwrap()))
    });
    let full = full.with("Service/shop/s0", "f").unwrap();
    let pods = [named(1, "not what it should be"), named(2, &full)];
    let decision = turn(&SettleMemory::default(), &pods, None, &[], now());
    let [notice] = decision.notices.as_slice() else { panic!("{:?}", decision.notices) };
    assert_eq!(notice.reason, "EnsureExpectedFinalizerFailed");
    assert_eq!(
        notice.message,
        "cannot add an entry to pod.kusionstack.io/available-conditions of pod web-1: what is in it cannot be read"
    );
    let again = turn(&decision.memory, &pods, None, &[], later(10));
    assert!(again.notices.is_empty(), "{:?}", again.notices);
    let alone = turn(&again.memory, &pods[1..], None, &[], later(20));
    assert!(
        alone.notices[0].message.ends_with("web-2: a pod has at most 64 employers"),
        "{:?}",
        alone.notices
    );
    let mended = turn(&alone.memory, &[named(1, "{}")], None, &[], later(30));
    assert!(mended.notices.is_empty() && matches!(mended.orders[0].act, Act::WriteEntries { .. }));
}

#[test]
fn an_employer_that_another_adapter_holds_is_left_alone_and_told_of() {
    let options = AdapterOptions::default();
    let other =
        turn_with((&options, "other"), "e", &SettleMemory::default(), &[named(1, "{}")], None, &[], now());
    assert!(other.orders.is_empty() && other.look_at.is_none(), "{:?}", other.orders);
    assert_eq!(other.report.reason, ReadyReason::AlreadyServed);
    assert_eq!(other.report.message, "adapter other serves this employer");
    let own =
        turn_with((&options, "demo"), "e", &SettleMemory::default(), &[named(1, "{}")], None, &[], now());
    assert!(!own.orders.is_empty() && own.look_at.is_some());
}

#[test]
fn employers_of_one_name_that_share_a_finalizer_are_told() {
    let shared = r#"{"expectedFinalizers":{"Gateway/shop/web":"prot.podopslifecycle.kusionstack.io/9705eb7ac2c98403"}}"#;
    let decision = turn(&SettleMemory::default(), &[named(1, shared)], None, &[], now());
    assert_eq!(decision.notices[0].reason, "EnsureExpectedFinalizerFailed");
    let told = &decision.notices[0].message;
    assert!(told.starts_with("Service/shop/web and Gateway/shop/web share the finalizer prot."), "{told}");
    assert!(told.ends_with("--finalizer-rule=key"), "{told}");
}

/// What the provider has: nothing of the one pod.
fn nothing_there(about: u64, at: Timestamp) -> ProviderLook {
    let pair = ItemPair {
        id: "web-1".to_owned(),
        name: "web-1".to_owned(),
        expected: Some(Arc::new(json!(1))),
        current: None,
        same: false,
        ready: Some(true),
        in_traffic: None,
    };
    ProviderLook {
        began: at,
        about,
        result: Ok(ProviderAnswer { employer: Vec::new(), employees: vec![pair], recheck: None }),
    }
}

#[test]
fn a_call_that_fails_makes_its_items_failed_and_is_repeated_in_a_while() {
    let entry = r#"{"expectedFinalizers":{"Service/shop/web":"prot.podopslifecycle.kusionstack.io/9705eb7ac2c98403"}}"#;
    let pods = [named(1, entry)];
    let asks = turn(&SettleMemory::default(), &pods, None, &[], now());
    let look = nothing_there(asks.about, later(1));
    let calls = turn(&asks.memory, &pods, Some(&look), &[], later(2));
    let [order] = calls.orders.as_slice() else { panic!("{:?}", calls.orders) };
    assert!(order.slot == WorkSlot::Provider && !calls.memory.is_retry(order), "the first is no repetition");
    let failed = SettleOutcome {
        slot: order.slot.clone(),
        number: order.number,
        at: later(3),
        result: Err("no room".to_owned()),
    };
    let told = turn(&calls.memory, &pods, Some(&look), &[failed], later(4));
    let [notice] = told.notices.as_slice() else { panic!("{:?}", told.notices) };
    assert_eq!(
        (notice.reason, notice.message.as_str()),
        ("SyncEmployeesFailed", "sync employees failed: syncCreate failed, err: no room")
    );
    let look = nothing_there(asks.about, later(5));
    let seen = turn(&told.memory, &pods, Some(&look), &[], later(5));
    let row = &seen.report.employees[0];
    assert_eq!((row.state, row.reason.as_str()), (RowState::Failed, "no room"));
    assert_eq!(
        (seen.report.phase, seen.report.message.as_str()),
        (EmployerPhase::Degraded, "web-1 is Failed: no room")
    );
    let look = nothing_there(asks.about, later(60));
    let again = turn(&seen.memory, &pods, Some(&look), &[], later(60));
    let [order] = again.orders.as_slice() else { panic!("{:?}", again.orders) };
    assert!(again.memory.is_retry(order), "it passes the bucket");
    assert!(again.notices.is_empty(), "it was told");
}

#[test]
fn a_pod_that_may_not_be_attached_does_not_make_the_provider_be_asked_without_a_pause() {
    let entry = r#"{"expectedFinalizers":{"Service/shop/web":"prot.podopslifecycle.kusionstack.io/9705eb7ac2c98403"}}"#;
    let asks = turn(&SettleMemory::default(), &[named(1, entry)], None, &[], now());
    let look = nothing_there(asks.about, later(1));
    let calls = turn(&asks.memory, &[named(1, entry)], Some(&look), &[], later(2));
    let [order] = calls.orders.as_slice() else { panic!("{:?}", calls.orders) };
    let batch =
        Batch { done: Vec::new(), pending: vec![("web-1".to_owned(), "it is on its way".to_owned())] };
    let accepted = SettleOutcome {
        slot: order.slot.clone(),
        number: order.number,
        at: later(3),
        result: Ok(CompletedAct { version: None, batch: Some(batch) }),
    };
    // Somebody spoils the pod's entries meanwhile: it must not be put into traffic.
    let spoilt = [named(1, "not what it should be")];
    let mut memory = turn(&calls.memory, &spoilt, Some(&look), &[accepted], later(4)).memory;
    for round in 1..10 {
        let at = later(round * 10_000);
        let look = nothing_there(asks.about, at);
        let held = turn(&memory, &spoilt, Some(&look), &[], at);
        assert!(held.orders.is_empty(), "{:?}", held.orders);
        let next = held.look_at.unwrap();
        assert!(next >= at.plus_duration(AdapterOptions::default().poll), "asked again at {next}, at {at}");
        memory = held.memory;
    }
}

#[test]
fn every_question_that_was_not_answered_is_told_once_with_its_own_reason() {
    let asks = turn(&SettleMemory::default(), &[], None, &[], now());
    let mut failed = LookFailed::new(Getter::CurrentEmployer, Trouble::new("out of order"));
    failed.beside.push((Getter::CurrentEmployees, Trouble::new("out of order too")));
    let look = ProviderLook { began: now(), about: asks.about, result: Err(failed) };
    let told = turn(&asks.memory, &[], Some(&look), &[], later(1));
    let told_of: Vec<_> = told.notices.iter().map(|one| (one.reason, one.message.as_str())).collect();
    assert_eq!(
        told_of,
        [("GetCurrentEmployerFailed", "out of order"), ("GetCurrentEmployeesFailed", "out of order too")]
    );
    let look = ProviderLook { began: later(2), ..look };
    assert!(turn(&told.memory, &[], Some(&look), &[], later(3)).notices.is_empty());
}

#[test]
fn a_provider_that_does_not_answer_any_more_is_said_to_have_answered_when_it_did() {
    let asks = turn(&SettleMemory::default(), &[], None, &[], now());
    let answered = ProviderLook { began: now(), about: asks.about, result: Ok(ProviderAnswer::default()) };
    let synced = turn(&asks.memory, &[], Some(&answered), &[], later(1));
    assert_eq!((synced.report.reachable, synced.report.last_answer), (Some(true), Some(now())));
    let failed = LookFailed::new(Getter::CurrentEmployees, Trouble::new("no answer"));
    let look = ProviderLook { began: later(2), about: asks.about, result: Err(failed) };
    let away = turn(&synced.memory, &[], Some(&look), &[], later(3));
    assert_eq!((away.report.reachable, away.report.last_answer), (Some(false), Some(now())));
    let never = turn(&SettleMemory::default(), &[], Some(&look), &[], later(3));
    assert_eq!(never.report.last_answer, None);
}

#[test]
fn need_record_employees_stops_at_its_limit_and_says_so_once() {
    let entry = r#"{"expectedFinalizers":{"Service/shop/web":"prot.podopslifecycle.kusionstack.io/9705eb7ac2c98403"}}"#;
    let long = |number: usize| {
        let mut pod = PodView::clone(&named(number, entry));
        pod.name = format!("{}-{number:04}", "n".repeat(200));
        Arc::new(pod)
    };
    let options = AdapterOptions { need_record_employees: true, ..AdapterOptions::default() };
    let records = |decision: &SettleDecision| {
        let mut acts = decision.orders.iter().map(|order| &order.act);
        acts.any(|act| matches!(act, Act::Record { .. }))
    };
    let many: Vec<Arc<PodView>> = (0..1_100).map(long).collect();
    let full = turn_with((&options, "demo"), "e", &SettleMemory::default(), &many, None, &[], now());
    assert!(!records(&full), "what is there is left as it is");
    let [notice] = full.notices.as_slice() else { panic!("{:?}", full.notices) };
    assert_eq!(notice.reason, "RecordStatusesFailed");
    assert!(notice.message.ends_with("at most 204800 are recorded on the employer"), "{}", notice.message);
    let again = turn_with((&options, "demo"), "e", &full.memory, &many, None, &[], later(1));
    assert!(again.notices.is_empty());
    assert!(records(&turn_with((&options, "demo"), "e", &again.memory, &many[..900], None, &[], later(2))));
}

#[test]
fn another_question_than_the_one_that_failed_is_asked_at_once() {
    let asks = turn(&SettleMemory::default(), &[named(1, "{}")], None, &[], now());
    let trouble = LookFailed::new(Getter::CurrentEmployees, Trouble::new("no answer"));
    let look = ProviderLook { began: now(), about: asks.about, result: Err(trouble) };
    let mut memory = asks.memory;
    for round in 0..20 {
        let look = ProviderLook { began: later(round), ..look.clone() };
        memory = turn(&memory, &[named(1, "{}")], Some(&look), &[], later(round)).memory;
    }
    let look = ProviderLook { began: later(20), ..look };
    let same = turn(&memory, &[named(1, "{}")], Some(&look), &[], later(21));
    assert!(same.look_at.is_some_and(|at| at > later(1_000)), "the same question waits its time");
    assert!(same.memory.look_is_retry());
    let other = turn(&memory, &[named(1, "{}"), named(2, "{}")], Some(&look), &[], later(21));
    assert_eq!(other.look_at, Some(later(21)));
}

#[test]
fn employers_that_were_made_together_are_looked_at_within_resync_and_not_together() {
    let resync = AdapterOptions::default().resync;
    let mut moments = std::collections::BTreeSet::new();
    for number in 0..200 {
        let uid = format!("employer-{number}");
        let first = turn_of(&uid, &SettleMemory::default(), &[], None, &[], now());
        assert_eq!(first.look_at, Some(now()), "it is looked at at once");
        let answer = ProviderAnswer { employer: Vec::new(), employees: Vec::new(), recheck: None };
        let look = ProviderLook { began: now(), about: first.about, result: Ok(answer) };
        let next = turn_of(&uid, &first.memory, &[], Some(&look), &[], later(5)).look_at.unwrap();
        assert!(next > now() && next <= now().plus_duration(resync), "{next} is not within {resync:?}");
        moments.insert(next.as_second());
        // And from then on once in that time.
        let look = ProviderLook { began: next, ..look };
        let after = turn_of(&uid, &first.memory, &[], Some(&look), &[], next).look_at;
        assert_eq!(after, Some(next.plus_duration(resync)));
    }
    assert!(moments.len() > 40, "they are spread over the minute: {}", moments.len());
}
