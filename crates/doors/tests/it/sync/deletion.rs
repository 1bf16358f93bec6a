//! Who outlives whom, and what has to be there while a Sync goes: the laws of deletion.
//!
//! D1: one that is in use is released only when nobody lives whose use counts. D2: both orders of two deletions end, circles
//! included. D3: a gate of the deletion holds for five minutes at most.

use linchpin_doors::{Claim, SyncDoor};
use linchpin_words::{GroupKind, ObjectRef};
use proptest::{prelude::*, test_runner::TestRunner};
use serde_json::{Value, json};

use super::{map, other, ready, stage};
use crate::{stage::Stage, things::deployment};

fn claim(namespace: &str, name: &str, deleting: bool) -> Claim {
    let kind = GroupKind::new("linchpin.dev", "Sync");
    Claim { object: ObjectRef::namespaced(kind, namespace, name), deleting, circular: false }
}

/// A Sync of one ConfigMap that is applied, and is being deleted from now on.
fn going(dependencies: &str, more: &str) -> Stage<SyncDoor> {
    let source = format!("{{objects: [{}]}}", map("a"));
    let mut stage = stage(&format!("{{source: {source}, dependencies: [{dependencies}]{more}}}"));
    stage.settle();
    stage.status();
    stage.edit(|object| object["metadata"]["deletionTimestamp"] = json!("1970-01-01T00:16:40Z"));
    stage
}

const OPERATOR: &str = "{name: op, object: {resource: deployment/op}, gates: [Delete]}";

#[test]
fn before_the_first_deletion_what_gates_it_must_be_in_its_state() {
    let mut stage = going(OPERATOR, "");
    assert_eq!(stage.done(), ["apply ConfigMap own/a"], "it gates nothing but the deletion");
    stage.put(deployment("own", "op", 0));
    let held = stage.hold(&[]).expect("held");
    assert_eq!(held.reason.as_str(), "DependencyNotReady");
    assert_eq!(held.by, ["Deployment own/op"]);
    assert!(held.message.starts_with("waits for Deployment own/op: "), "{}", held.message);
    assert_eq!(held.until, Some(stage.now.plus_duration(std::time::Duration::from_mins(5))));
    stage.put(deployment("own", "op", 1));
    assert_eq!(stage.hold(&[]), None);
}

#[test]
fn a_deletion_does_not_wait_for_what_is_absent_not_served_not_visible_latched_soft_passed_or_going() {
    assert_eq!(going(OPERATOR, "").hold(&[]), None, "absent");
    let unserved = "{name: op, object: {resource: pipeline.tekton.dev/x}, gates: [Delete]}";
    assert_eq!(going(unserved, "").hold(&[]), None, "not served");
    let mut hidden = going(OPERATOR, "");
    hidden.put(deployment("own", "op", 0)).hidden.push("op".to_owned());
    assert_eq!(hidden.hold(&[]), None, "not visible");
    let mut leaving = going(OPERATOR, "");
    let mut deployment_going = deployment("own", "op", 0);
    deployment_going["metadata"]["deletionTimestamp"] = json!("1970-01-01T00:16:00Z");
    leaving.put(deployment_going);
    assert_eq!(leaving.hold(&[]), None, "going itself");
    let soft = "{name: op, object: {resource: deployment/op}, gates: [Delete], strength: Soft}";
    let mut softly = going(soft, "");
    softly.put(deployment("own", "op", 0));
    assert_eq!(softly.hold(&[]), None, "soft");
    let mut orphaned = going(OPERATOR, ", deletionPolicy: Orphan");
    orphaned.put(deployment("own", "op", 0));
    assert_eq!(orphaned.hold(&[]), None, "nothing is deleted");
    let mut passed = going(OPERATOR, "");
    passed.put(deployment("own", "op", 0)).annotate("linchpin.dev/proceed", "op@1");
    assert!(passed.hold(&[]).is_some(), "an order for another generation");
    passed.annotate("linchpin.dev/proceed", "op@2");
    assert_eq!(passed.hold(&[]), None, "passed by hand");
    let once = "{name: op, sync: {name: op}, state: Completed, gates: [Create, Delete]}";
    let mut latched = stage(&format!("{{source: {{objects: [{}]}}, dependencies: [{once}]}}", map("a")));
    latched.put(other("op", &ready("r", "1"))).settle();
    latched.status();
    latched.edit(|object| object["metadata"]["deletionTimestamp"] = json!("1970-01-01T00:16:40Z"));
    latched.put(other("op", &json!({"observedGeneration": 1})));
    assert_eq!(latched.hold(&[]), None, "met once is met for good");
}

/// A world in which what gates a deletion is anything.
fn gate_states() -> impl Strategy<Value = Option<Value>> {
    prop_oneof![
        Just(None),
        (0..2_i64).prop_map(|ready| Some(deployment("own", "op", ready))),
        Just(Some(json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"namespace": "own", "name": "op"}, "spec": {}, "status": {}})))
    ]
}

/// A mistake that whoever decides on deletions could make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bug {
    /// Only those count that are being deleted too.
    ForgetsTheLiving,
    /// Those of every namespace count.
    CountsStrangers,
    /// One that is protected goes after a while all the same.
    GivesUp,
    /// Those that are not being deleted yet are not waited for a moment.
    NeverHesitates,
    /// Members of a circle hold each other.
    CirclesHold,
    /// No clock runs.
    NeverEnds,
}

/// Whom a Sync is held by, by somebody who makes a mistake.
fn held(stage: &mut Stage<SyncDoor>, claims: &[Claim], waited: u64, bug: Option<Bug>) -> Option<Vec<String>> {
    let mut claims = claims.to_vec();
    match bug {
        Some(Bug::ForgetsTheLiving | Bug::NeverHesitates) => claims.retain(|claim| claim.deleting),
        Some(Bug::CountsStrangers) => {
            for claim in &mut claims {
                claim.object.namespace = Some("own".to_owned());
            }
        }
        Some(Bug::GivesUp) if waited >= 300 => return None,
        Some(Bug::CirclesHold) => claims.iter_mut().for_each(|claim| claim.circular = false),
        _ => {}
    }
    let time = stage.now;
    if bug != Some(Bug::NeverEnds) {
        stage.pass(waited);
    }
    let held = stage.hold(&claims);
    stage.now = time;
    held.map(|held| held.by)
}

/// Claims: of the own namespace or another, being deleted or not.
fn d1(claims: &[(bool, bool)], waited: u64, bug: Option<Bug>) -> Result<(), String> {
    let mut stage = going("", ", dependents: {protect: true}");
    let made = claims.iter().enumerate().map(|(index, (here, deleting))| {
        claim(if *here { "own" } else { "other" }, &format!("c{index}"), *deleting)
    });
    let all: Vec<Claim> = made.collect();
    let own = all.iter().filter(|claim| claim.object.namespace.as_deref() == Some("own"));
    let counting: Vec<String> = own.map(|claim| claim.object.to_string()).collect();
    match held(&mut stage, &all, waited, bug) {
        Some(by) if by != counting => Err(format!("D1: held by {by:?}; {counting:?} count")),
        None if !counting.is_empty() => Err(format!("D1: released, and {counting:?} live")),
        _ => Ok(()),
    }
}

/// Two deletions: whether both are of one circle, whether the dependency was asked first, how long after each other, and how
/// long the dependent takes.
type Two = (bool, bool, u64, u64);

fn d2((circle, db_first, apart, gone_after): Two, bug: Option<Bug>) -> Result<(), String> {
    // `front` depends on `db`, and the other way round in a circle, whoever is between. Each goes as soon as it is not held.
    let mut db = going("", "");
    // `db` is asked first or second; its own clock is the deletionTimestamp.
    let (db_asked, web_asked) = if db_first { (0, apart) } else { (apart, 0) };
    let web_is_gone_at = web_asked + gone_after;
    let is_held = |second: &u64| {
        let front = Claim { circular: circle, ..claim("own", "front", *second >= web_asked) };
        let claims = if *second < web_is_gone_at { vec![front] } else { vec![] };
        held(&mut db, &claims, second - db_asked, bug).is_some()
    };
    let released =
        db_asked + u64::try_from((db_asked..db_asked + 1_000).take_while(is_held).count()).expect("few");
    if released > db_asked + 300 {
        return Err(format!("D2: it does not end: {released}"));
    }
    let in_time = web_is_gone_at.saturating_sub(db_asked) < 300 && web_asked <= db_asked + 1;
    if circle && released != db_asked {
        return Err(format!("D2: members of one circle hold each other: {released}"));
    }
    if !circle && in_time && released < web_is_gone_at {
        return Err(format!("D2: the dependent does not go first: {released} < {web_is_gone_at}"));
    }
    Ok(())
}

fn d3(found: Option<Value>, unsynced: bool, waited: u64, bug: Option<Bug>) -> Result<(), String> {
    let mut stage = going(OPERATOR, "");
    if let Some(object) = found {
        stage.put(object);
    }
    if unsynced {
        stage.unsynced.push("op".to_owned());
    }
    match held(&mut stage, &[], waited, bug) {
        Some(by) if waited >= 300 => Err(format!("D3: held by {by:?} after {waited} s")),
        _ => Ok(()),
    }
}

fn claims() -> impl Strategy<Value = (Vec<(bool, bool)>, u64)> {
    (prop::collection::vec((any::<bool>(), any::<bool>()), 0..5), 0..100_000_u64)
}

fn two_deletions() -> impl Strategy<Value = Two> {
    (any::<bool>(), any::<bool>(), 0..10_u64, 0..400_u64)
}

fn gates() -> impl Strategy<Value = (Option<Value>, bool, u64)> {
    (gate_states(), any::<bool>(), 0..700_u64)
}

proptest! {
    #[test]
    fn d1_one_that_is_protected_is_released_only_when_no_counting_claimant_lives((claims, waited) in claims()) {
        d1(&claims, waited, None).map_err(TestCaseError::fail)?;
    }

    #[test]
    fn d2_both_orders_of_two_deletions_end_and_take_the_dependent_first(two in two_deletions()) {
        d2(two, None).map_err(TestCaseError::fail)?;
    }

    #[test]
    fn d3_a_delete_gate_holds_at_most_five_minutes((state, unsynced, waited) in gates()) {
        d3(state, unsynced, waited, None).map_err(TestCaseError::fail)?;
    }
}

#[test]
fn for_each_law_of_deletion_a_seeded_bug_is_caught_by_it() {
    for (bug, law) in [
        (Bug::ForgetsTheLiving, "D1"),
        (Bug::CountsStrangers, "D1"),
        (Bug::GivesUp, "D1"),
        (Bug::NeverHesitates, "D2"),
        (Bug::CirclesHold, "D2"),
        (Bug::NeverEnds, "D2"),
        (Bug::NeverEnds, "D3"),
    ] {
        let told = |result: Result<(), String>| match result {
            Err(told) if told.starts_with(law) => Err(TestCaseError::fail(told)),
            _ => Ok(()),
        };
        let mut runner = TestRunner::deterministic();
        let caught = match law {
            "D1" => runner.run(&claims(), |(claims, waited)| told(d1(&claims, waited, Some(bug)))).is_err(),
            "D2" => runner.run(&two_deletions(), |two| told(d2(two, Some(bug)))).is_err(),
            _ => {
                let run = |(state, unsynced, waited)| told(d3(state, unsynced, waited, Some(bug)));
                runner.run(&gates(), run).is_err()
            }
        };
        assert!(caught, "{bug:?} is not caught by {law}");
    }
}
