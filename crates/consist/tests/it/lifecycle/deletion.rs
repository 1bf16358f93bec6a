//! Deletions and evictions: how they begin, what we carry out ourselves, and when they are undone or given up.

use std::time::Duration;

use linchpin_consist::lifecycle::{CarryOut, PodFacts};
use serde_json::{Value, json};

use super::{after, begin, facts, nanoseconds, now, protect, set, stepped};
use crate::pods::{AVAILABLE, label, set_gate, set_label};

#[test]
fn to_delete_begins_pod_delete_and_taking_it_off_before_operate_undoes() {
    let asked =
        |object: &mut Value| set_label(object, "collaset.kusionstack.io/to-delete", &nanoseconds(now()));
    let (asked_pod, patch) = stepped(
        |object| {
            asked(object);
            protect(object);
        },
        &facts(),
    );
    let labels = after(&asked_pod, &patch);
    assert!(labels.contains(&label("preparing", "pod-delete")), "{labels:?}");
    assert!(labels.contains("podopslifecycle.kusionstack.io/preparing-to-delete"));
    assert_eq!(patch.labels.get(&label("operation-type", "pod-delete")), Some(&Some("delete".to_owned())));
    let (unasked, patch) = stepped(
        |object| {
            for (key, value) in &patch.labels {
                if let Some(value) = value {
                    set_label(object, key, value);
                }
            }
            set_gate(object, false);
        },
        &facts(),
    );
    assert_eq!(after(&unasked, &patch), set(&[AVAILABLE]));
    assert_eq!(patch.gate, Some(true));
}

#[test]
fn to_delete_that_came_with_the_template_asks_for_nothing() {
    let old = "1000000000";
    let (pod, patch) =
        stepped(|object| set_label(object, "collaset.kusionstack.io/to-delete", old), &facts());
    assert_eq!(after(&pod, &patch), set(&[AVAILABLE]), "older than the pod");
    let (pod, patch) = stepped(
        |object| {
            set_label(object, "collaset.kusionstack.io/to-delete", "true");
            object["metadata"]["annotations"]["linchpin.dev/to-delete-ignored"] = json!("true");
        },
        &facts(),
    );
    assert_eq!(after(&pod, &patch), set(&[AVAILABLE]), "noted when it was created");
    let (pod, patch) =
        stepped(|object| set_label(object, "collaset.kusionstack.io/to-delete", "true"), &facts());
    assert!(after(&pod, &patch).contains(&label("preparing", "pod-delete")), "by hand it does");
}

fn may_be_deleted(object: &mut Value) {
    set_gate(object, false);
    set_label(object, "collaset.kusionstack.io/to-delete", &nanoseconds(now()));
    begin(object, "pod-delete", "delete");
    set_label(object, &label("pre-checked", "pod-delete"), "1");
    set_label(object, &label("operate", "pod-delete"), &nanoseconds(now()));
}

#[test]
fn a_deletion_that_nobody_repeats_is_undone_and_the_pod_serves_again() {
    let at = |seconds| PodFacts { now: now().plus_duration(Duration::from_secs(seconds)), ..facts() };
    let (pod, patch) = stepped(may_be_deleted, &at(59));
    assert!(after(&pod, &patch).contains(&label("operate", "pod-delete")));
    assert_eq!(patch.wake_at, Some(at(60).now));
    let (pod, patch) = stepped(may_be_deleted, &at(60));
    assert_eq!(after(&pod, &patch), set(&[AVAILABLE]));
    assert_eq!(patch.labels.get("collaset.kusionstack.io/to-delete"), Some(&None));
    assert_eq!(patch.gate, Some(true));
}

#[test]
fn what_makes_a_replica_set_ask_for_the_same_pod_again_goes_with_the_drain() {
    let cost = "controller.kubernetes.io/pod-deletion-cost";
    let costs = |value: &'static str, seconds| {
        let facts = PodFacts { now: now().plus_duration(Duration::from_secs(seconds)), ..facts() };
        let change = move |object: &mut Value| {
            may_be_deleted(object);
            object["metadata"]["annotations"][cost] = json!(value);
        };
        stepped(change, &facts).1.forget.contains(cost)
    };
    assert!(!costs("-2147483647", 59), "it drains");
    assert!(costs("-2147483647", 60));
    assert!(!costs("-5", 60), "the user's own stays");
}

#[test]
fn who_asked_for_a_deletion_is_forgotten_with_it_and_is_not_taken_for_who_asks_next() {
    let by = "linchpin.dev/delete-requested-by";
    let forgotten = |change: fn(&mut Value), seconds| {
        let facts = PodFacts { now: now().plus_duration(Duration::from_secs(seconds)), ..facts() };
        let asked = |object: &mut Value| {
            change(object);
            object["metadata"]["annotations"][by] =
                json!("system:serviceaccount:kube-system:statefulset-controller");
        };
        stepped(asked, &facts).1.forget.contains(by)
    };
    assert!(!forgotten(may_be_deleted, 1), "it is asked for");
    assert!(forgotten(may_be_deleted, 60), "nobody repeats it");
    assert!(forgotten(|_| (), 0), "the label was taken off");
}

#[test]
fn we_delete_ourselves_only_what_its_controller_asks_for_once() {
    let by = "system:serviceaccount:kube-system:statefulset-controller";
    let carried = |by: &str, owner: Option<&str>, seconds| {
        let facts = PodFacts { now: now().plus_duration(Duration::from_secs(seconds)), ..facts() };
        let change = |object: &mut Value| {
            may_be_deleted(object);
            object["metadata"]["annotations"]["linchpin.dev/delete-requested-by"] = json!(by);
            if let Some(kind) = owner {
                object["metadata"]["ownerReferences"] = json!([{"kind": kind, "controller": true}]);
            }
        };
        stepped(change, &facts).1.carry_out
    };
    assert_eq!(carried(by, Some("StatefulSet"), 1), None, "who asked has 2 s to repeat");
    assert_eq!(carried(by, Some("StatefulSet"), 2), Some(CarryOut::Delete));
    assert_eq!(carried(by, None, 2), Some(CarryOut::Delete));
    assert_eq!(carried(by, Some("ReplicaSet"), 2), None, "it asks again");
    assert_eq!(carried("jane", Some("StatefulSet"), 2), None);
    let taint = "system:serviceaccount:kube-system:taint-eviction-controller";
    assert_eq!(carried(taint, Some("ReplicaSet"), 2), Some(CarryOut::Delete));
    let collector = "system:serviceaccount:kube-system:generic-garbage-collector";
    assert_eq!(carried(collector, Some("ReplicaSet"), 2), Some(CarryOut::Delete), "its owner is gone");
}

#[test]
fn an_eviction_is_carried_out_by_us_and_undone_when_the_budget_never_lets_it_through() {
    let evicted = |object: &mut Value| {
        set_gate(object, false);
        object["metadata"]["annotations"]["linchpin.dev/evict-requested"] = json!(nanoseconds(now()));
        begin(object, "pod-evict", "delete");
        set_label(object, &label("pre-checked", "pod-evict"), "1");
        set_label(object, &label("operate", "pod-evict"), &nanoseconds(now()));
    };
    assert_eq!(stepped(evicted, &facts()).1.carry_out, Some(CarryOut::Evict));
    let late = PodFacts { now: now().plus_duration(Duration::from_secs(30)), ..facts() };
    let (pod, patch) = stepped(evicted, &late);
    assert_eq!(after(&pod, &patch), set(&[AVAILABLE]));
    assert!(patch.forget.contains("linchpin.dev/evict-requested") && patch.carry_out.is_none());
}

#[test]
fn a_drain_before_a_deletion_is_given_up_after_the_drain_timeout_and_others_are_not() {
    let held =
        PodFacts { out_of_traffic: false, now: now().plus_duration(Duration::from_mins(5)), ..facts() };
    let draining = |object: &mut Value, id: &str| {
        set_gate(object, false);
        protect(object);
        set_label(object, "collaset.kusionstack.io/to-delete", &nanoseconds(now()));
        begin(object, id, "delete");
        set_label(object, &label("pre-checked", id), "1");
        set_label(object, &label("preparing", id), &nanoseconds(now()));
    };
    let (pod, patch) = stepped(|object| draining(object, "pod-delete"), &held);
    assert!(after(&pod, &patch).contains(&label("operate", "pod-delete")));
    assert!(patch.given_up.unwrap().starts_with("drain given up after 5m: "));
    let (pod, patch) = stepped(|object| draining(object, "collaset"), &held);
    assert!(!after(&pod, &patch).contains(&label("operate", "collaset")));
}

#[test]
fn thousands_of_operations_are_led_a_few_at_a_time_and_hold_no_deletion() {
    let (pod, patch) = stepped(
        |object| {
            for number in 0..5_000 {
                set_label(object, &label("operating", &format!("a{number}")), "1");
                set_label(object, &label("operate", &format!("b{number}")), "1");
            }
            set_label(object, "collaset.kusionstack.io/to-delete", &nanoseconds(now()));
            set_gate(object, false);
        },
        &facts(),
    );
    let labels = after(&pod, &patch);
    assert!(labels.contains(&label("operate", "pod-delete")), "its deletion goes on");
    let of = |id: &str| patch.labels.keys().filter(|key| key.ends_with(&format!("/{id}"))).count();
    assert!(of("b1000") > 0 && of("b4999") == 0, "the first that hold the gate are led, the last wait");
    assert_eq!(of("a1000"), 0, "and those that do not hold it wait for them");
    assert!(patch.labels.len() < 1_000, "{}: what is written is bounded", patch.labels.len());
}
