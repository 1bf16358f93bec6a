//! Who outlives whom, and what has to be there while a Sync goes: the laws of deletion.
//!
//! D1: one that is in use is released only when nobody lives whose use counts. D2: both orders of two deletions end, circles
//! included. D3: a gate of the deletion holds for five minutes at most.

use linchpin_doors::{Claim, SyncDoor};
use linchpin_words::{GroupKind, ObjectRef};
use proptest::prelude::*;
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

proptest! {
    #[test]
    fn d3_a_delete_gate_holds_at_most_five_minutes(state in gate_states(), unsynced: bool, waited in 0..700_u64) {
        let mut stage = going(OPERATOR, "");
        if let Some(state) = state {
            stage.put(state);
        }
        if unsynced {
            stage.unsynced.push("op".to_owned());
        }
        stage.pass(waited);
        if stage.hold(&[]).is_some() {
            prop_assert!(waited < 300);
        }
    }

    #[test]
    fn d1_one_that_is_protected_is_released_only_when_no_counting_claimant_lives(
        claims in prop::collection::vec((any::<bool>(), any::<bool>()), 0..5),
        waited in 0..100_000_u64,
    ) {
        let mut stage = going("", ", dependents: {protect: true}");
        stage.pass(waited);
        let all: Vec<Claim> = claims
            .iter()
            .enumerate()
            .map(|(index, (here, deleting))| claim(if *here { "own" } else { "other" }, &format!("c{index}"), *deleting))
            .collect();
        let counting: Vec<String> = all
            .iter()
            .filter(|claim| claim.object.namespace.as_deref() == Some("own"))
            .map(|claim| claim.object.to_string())
            .collect();
        match stage.hold(&all) {
            Some(held) => prop_assert_eq!(held.by, counting),
            None => prop_assert!(counting.is_empty(), "{:?} live", counting),
        }
    }

    #[test]
    fn d2_both_orders_of_two_deletions_end_and_take_the_dependent_first(
        circle: bool, db_first: bool, apart in 0..10_u64, gone_after in 0..400_u64,
    ) {
        // `front` depends on `db`, and the other way round in a circle, whoever is between. Each goes as soon as it is not
        // held.
        let mut db = going("", "");
        let (db_asked, web_asked) = if db_first { (0, apart) } else { (apart, 0) };
        let start = db.now;
        // `db` is asked first or second; its own clock is the deletionTimestamp, which is `start`.
        let web_is_gone_at = web_asked + gone_after;
        let mut released = None;
        for second in db_asked..db_asked + 1_000 {
            db.now = start.plus_duration(std::time::Duration::from_secs(second - db_asked));
            let lives = second < web_is_gone_at;
            let front = Claim { circular: circle, ..claim("own", "front", second >= web_asked) };
            let claims = if lives { vec![front] } else { vec![] };
            if db.hold(&claims).is_none() {
                released = Some(second);
                break;
            }
        }
        let released = released.expect("it ends");
        prop_assert!(released - db_asked <= 300, "{released}");
        let in_time = web_is_gone_at.saturating_sub(db_asked) < 300 && web_asked <= db_asked + 1;
        if circle {
            prop_assert_eq!(released, db_asked, "members of one circle do not hold each other");
        } else if in_time {
            prop_assert!(released >= web_is_gone_at, "the dependent goes first: {released} < {web_is_gone_at}");
        }
    }
}
