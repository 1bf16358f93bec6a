//! PodOpsLifecycle: the vectors of the original with our differences.

mod deletion;
mod exploration;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use linchpin_consist::{
    PodView,
    lifecycle::{PodFacts, PodPatch, Prefix, step},
};
use linchpin_words::Timestamp;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::pods::{AVAILABLE, label, pod, set_gate, set_label};

const FINALIZER: &str = "prot.podopslifecycle.kusionstack.io/9705eb7ac2c98403";
const ENTRIES: &str = "pod.kusionstack.io/available-conditions";

/// 2026-01-02: after every pod was made.
fn now() -> Timestamp {
    Timestamp::parse("2026-01-02T00:00:00Z").unwrap()
}

fn facts() -> PodFacts {
    PodFacts {
        now: now(),
        pre_checked: true,
        post_checked: true,
        entries_complete: true,
        out_of_traffic: true,
        settle: None,
        drain_timeout: Duration::from_mins(5),
        evictions_rest: false,
    }
}

fn nanoseconds(at: Timestamp) -> String {
    (i128::from(at.as_microsecond()) * 1_000).to_string()
}

/// The labels of operations that a pod has after a step, without their values.
fn after(pod: &PodView, patch: &PodPatch) -> BTreeSet<String> {
    let mut labels = pod.labels.clone();
    for (key, value) in &patch.labels {
        match value {
            Some(value) => drop(labels.insert(key.clone(), value.clone())),
            None => drop(labels.remove(key)),
        }
    }
    let ours = |key: &String| key.contains("podopslifecycle");
    labels.into_keys().filter(ours).collect()
}

fn set(labels: &[&str]) -> BTreeSet<String> {
    labels.iter().map(|label| (*label).to_owned()).collect()
}

fn begin(object: &mut Value, id: &str, kind: &str) {
    set_label(object, &label("operating", id), "1");
    set_label(object, &label("operation-type", id), kind);
}

fn entry(object: &mut Value) {
    let text = json!({"expectedFinalizers": {"Service/shop/web": FINALIZER}}).to_string();
    object["metadata"]["annotations"][ENTRIES] = json!(text);
}

fn protect(object: &mut Value) {
    object["metadata"]["finalizers"] = json!([FINALIZER]);
}

fn stepped(change: impl FnOnce(&mut Value), facts: &PodFacts) -> (PodView, PodPatch) {
    let pod = pod(change);
    let patch = step(&BTreeMap::new(), &pod, facts);
    (pod, patch)
}

#[test]
fn begin_passes_pre_check_and_prepares_in_one_write_and_closes_the_gate() {
    let (pod, patch) = stepped(
        |object| {
            begin(object, "a", "update");
            set_label(object, AVAILABLE, "1");
        },
        &facts(),
    );
    let expected = [
        &label("operating", "a"),
        &label("operation-type", "a"),
        &label("operation-permission", "update"),
        &label("pre-checked", "a"),
        &label("preparing", "a"),
    ];
    assert_eq!(after(&pod, &patch), set(&expected.map(String::as_str)), "service-available is taken away");
    assert_eq!(patch.gate, Some(false));
    assert_eq!(
        patch.labels.get(&label("preparing", "a")),
        Some(&Some(nanoseconds(now()))),
        "unix nanoseconds"
    );
}

#[test]
fn a_check_that_is_not_passed_holds_the_operation_and_leaves_the_pod_in_traffic() {
    let facts = PodFacts { pre_checked: false, ..facts() };
    let (pod, patch) = stepped(|object| begin(object, "a", "update"), &facts);
    assert!(after(&pod, &patch).contains(&label("pre-check", "a")));
    assert!(!after(&pod, &patch).contains(&label("preparing", "a")));
    assert_eq!(patch.gate, None);
}

fn preparing(object: &mut Value) {
    begin(object, "a", "update");
    for key in ["pre-checked", "preparing"] {
        set_label(object, &label(key, "a"), "1");
    }
    set_label(object, &label("operation-permission", "update"), "1");
}

#[test]
fn operate_is_given_once_nobody_protects_the_pod_its_gate_is_closed_and_it_is_seen_out_of_traffic() {
    let operate = label("operate", "a");
    let given = |change: &dyn Fn(&mut Value), facts: &PodFacts| {
        let (pod, patch) = stepped(
            |object| {
                preparing(object);
                set_gate(object, false);
                change(object);
            },
            facts,
        );
        after(&pod, &patch).contains(&operate)
    };
    assert!(given(&|_| (), &facts()));
    assert!(!given(&|object| set_gate(object, true), &facts()), "the gate is open");
    assert!(!given(&protect, &facts()), "protected");
    assert!(
        !given(&|_| (), &PodFacts { out_of_traffic: false, ..facts() }),
        "seen in traffic, or not seen at all"
    );
    let foreign = |object: &mut Value| object["metadata"]["finalizers"] = json!(["example.com/other"]);
    assert!(given(&foreign, &facts()), "other finalizers protect nothing");
    // The original gives it to a pod without the condition whatever protects it.
    let ungated = |object: &mut Value| {
        object["spec"]["readinessGates"] = json!([]);
        object["status"]["conditions"] = json!([{"type": "Ready", "status": "True"}]);
    };
    assert!(given(&ungated, &facts()));
    assert!(!given(
        &|object| {
            ungated(object);
            protect(object);
        },
        &facts()
    ));
}

#[test]
fn permission_waits_for_those_who_follow_endpoints_without_telling() {
    let closed = |object: &mut Value| {
        preparing(object);
        set_gate(object, false);
        let time = json!("2026-01-02T00:00:00Z");
        object["status"]["conditions"][1]["lastTransitionTime"] = time;
    };
    let at = |seconds: u64| PodFacts {
        settle: Some(Duration::from_secs(3)),
        now: now().plus_duration(Duration::from_secs(seconds)),
        ..facts()
    };
    let (pod, patch) = stepped(closed, &at(3));
    assert!(!after(&pod, &patch).contains(&label("operate", "a")));
    assert_eq!(patch.wake_at, Some(at(4).now));
    let (pod, patch) = stepped(closed, &at(4));
    assert!(after(&pod, &patch).contains(&label("operate", "a")));
}

fn operated(object: &mut Value) {
    set_gate(object, false);
    for key in ["operate", "pre-checked"] {
        set_label(object, &label(key, "a"), "1");
    }
    set_label(object, &label("operation-type", "a"), "update");
    set_label(object, &label("operation-permission", "update"), "1");
}

#[test]
fn finish_leads_through_post_check_to_completing_and_opens_the_gate() {
    let (pod, patch) = stepped(operated, &facts());
    let expected = [
        label("operated", "a"),
        label("done-operation-type", "a"),
        label("post-checked", "a"),
        label("completing", "a"),
    ];
    assert_eq!(after(&pod, &patch), expected.into_iter().collect());
    assert_eq!(patch.labels.get(&label("done-operation-type", "a")), Some(&Some("update".to_owned())));
    assert_eq!(patch.gate, Some(true));
    let held = PodFacts { post_checked: false, ..facts() };
    let (pod, patch) = stepped(operated, &held);
    assert!(after(&pod, &patch).contains(&label("post-check", "a")));
    assert_eq!(patch.gate, None, "the gate stays closed until PostCheck is passed");
}

#[test]
fn the_type_is_found_again_where_it_was_taken_away_together_with_operating() {
    let gone = |object: &mut Value| {
        operated(object);
        object["metadata"]["labels"].as_object_mut().unwrap().remove(&label("operation-type", "a"));
    };
    let before = pod(operated);
    let pod = pod(gone);
    for before in [&BTreeMap::new(), &before.labels] {
        let patch = step(before, &pod, &facts());
        assert_eq!(patch.labels.get(&label("done-operation-type", "a")), Some(&Some("update".to_owned())));
        assert_eq!(patch.labels.get(&label("operation-permission", "update")), Some(&None), "{before:?}");
    }
}

fn completing(object: &mut Value) {
    entry(object);
    for key in ["operated", "post-checked", "completing"] {
        set_label(object, &label(key, "a"), "1");
    }
    set_label(object, &label("done-operation-type", "a"), "update");
}

#[test]
fn an_operation_ends_when_every_expected_finalizer_is_back_and_then_the_pod_is_service_available() {
    let (pod, patch) = stepped(completing, &facts());
    assert!(after(&pod, &patch).contains(&label("completing", "a")), "the finalizer is missing");
    let (pod, patch) = stepped(
        |object| {
            completing(object);
            protect(object);
            set_label(object, "podopslifecycle.kusionstack.io/completing", "1");
        },
        &facts(),
    );
    assert_eq!(after(&pod, &patch), set(&[AVAILABLE]));
    let (pod, patch) = stepped(
        |object| {
            completing(object);
            protect(object);
            object["metadata"]["annotations"][ENTRIES] = json!("garbage");
        },
        &facts(),
    );
    assert!(after(&pod, &patch).contains(&label("completing", "a")), "what cannot be read is not satisfied");
}

#[test]
fn service_available_needs_ready_entries_finalizers_and_no_operation() {
    let protected = |object: &mut Value| {
        entry(object);
        protect(object);
    };
    let available = |change: &dyn Fn(&mut Value), facts: &PodFacts| {
        let (pod, patch) = stepped(
            |object| {
                protected(object);
                change(object);
            },
            facts,
        );
        after(&pod, &patch).contains(AVAILABLE)
    };
    assert!(available(&|_| (), &facts()));
    assert!(!available(&|object| object["metadata"]["finalizers"] = json!([]), &facts()));
    assert!(!available(&|_| (), &PodFacts { entries_complete: false, ..facts() }));
    let unready = |object: &mut Value| object["status"]["conditions"][0]["status"] = json!("False");
    assert!(!available(&unready, &facts()));
    assert!(
        !available(
            &|object| {
                unready(object);
                set_label(object, AVAILABLE, "1");
            },
            &facts()
        ),
        "it is taken away"
    );
    let offline = |object: &mut Value| set_label(object, "podopslifecycle.kusionstack.io/stay-offline", "1");
    assert!(!available(&offline, &facts()));
    let creating = |object: &mut Value| set_label(object, "podopslifecycle.kusionstack.io/creating", "1");
    let (pod, patch) = stepped(
        |object| {
            protected(object);
            creating(object);
        },
        &facts(),
    );
    assert_eq!(after(&pod, &patch), set(&[AVAILABLE]), "creating goes in the same patch");
    // A new employer does not take it away.
    let kept = |object: &mut Value| set_label(object, AVAILABLE, "1");
    assert!(available(&kept, &PodFacts { entries_complete: false, ..facts() }));
}

#[test]
fn the_gate_opens_for_the_first_time_only_when_all_entries_are_on_the_pod() {
    let fresh = |object: &mut Value| {
        object["status"]["conditions"] = json!([{"type": "Ready", "status": "False"}]);
    };
    let incomplete = PodFacts { entries_complete: false, ..facts() };
    assert_eq!(stepped(fresh, &incomplete).1.gate, None);
    assert_eq!(stepped(fresh, &facts()).1.gate, Some(true));
    let closed = |object: &mut Value| set_gate(object, false);
    assert_eq!(stepped(closed, &incomplete).1.gate, Some(true), "it was open before");
    assert_eq!(stepped(|_| (), &facts()).1.gate, None, "nothing is written where nothing changes");
    let ungated = |object: &mut Value| {
        closed(object);
        object["spec"]["readinessGates"] = json!([]);
    };
    assert_eq!(stepped(ungated, &facts()).1.gate, None, "only where the pod has the gate");
}

#[test]
fn stay_offline_turns_an_open_gate_off() {
    let offline = |object: &mut Value| set_label(object, "podopslifecycle.kusionstack.io/stay-offline", "1");
    assert_eq!(stepped(offline, &facts()).1.gate, Some(false));
}

#[test]
fn undo_sweeps_an_id_at_any_stage_before_operated_and_the_gate_opens_again() {
    let (pod, patch) = stepped(
        |object| {
            preparing(object);
            set_gate(object, false);
            set_label(object, &label("undo-operation-type", "a"), "update");
        },
        &facts(),
    );
    assert_eq!(after(&pod, &patch), set(&[AVAILABLE]));
    assert_eq!(patch.gate, Some(true));
    let (pod, patch) = stepped(
        |object| {
            completing(object);
            set_label(object, &label("undo-operation-type", "a"), "update");
        },
        &facts(),
    );
    assert!(after(&pod, &patch).contains(&label("operated", "a")), "too late");
    assert!(!after(&pod, &patch).contains(&label("undo-operation-type", "a")));
}

#[test]
fn operating_that_goes_before_operate_counts_as_undo_and_no_label_leaks() {
    let (pod, patch) = stepped(
        |object| {
            preparing(object);
            set_gate(object, false);
            object["metadata"]["labels"].as_object_mut().unwrap().remove(&label("operating", "a"));
        },
        &facts(),
    );
    assert_eq!(after(&pod, &patch), set(&[AVAILABLE]));
    for prefix in Prefix::ALL
        .into_iter()
        .filter(|prefix| !matches!(prefix, Prefix::Operating | Prefix::Operate | Prefix::Operated))
    {
        let (pod, patch) = stepped(|object| set_label(object, &prefix.key("left"), "1"), &facts());
        assert_eq!(after(&pod, &patch), set(&[AVAILABLE]), "{prefix:?} reveals an id that is gone");
    }
}

#[test]
fn a_second_type_under_one_id_is_reported_and_the_first_stands() {
    let before = pod(|object| begin(object, "a", "update"));
    let pod = pod(|object| begin(object, "a", "scale-in"));
    let patch = step(&before.labels, &pod, &facts());
    assert_eq!(patch.labels.get(&label("operation-type", "a")), Some(&Some("update".to_owned())));
    assert_eq!(patch.oddities, ["operation a is of type update and cannot become scale-in"]);
    // What was put back is the first one still, also before it is seen, and nothing is written to and fro.
    let remembered = patch.remembered(&pod);
    assert_eq!(step(&remembered, &pod, &facts()).labels, patch.labels);
    let (put_back, _) = stepped(|object| begin(object, "a", "update"), &facts());
    let next = step(&remembered, &put_back, &facts());
    assert_eq!(next.labels.get(&label("operation-type", "a")), None, "{:?}", next.labels);
    assert!(next.oddities.is_empty());
}

#[test]
fn checks_are_given_only_to_ids_in_that_check_and_no_id_goes_past_operated_while_another_prepares() {
    let (pod, patch) = stepped(
        |object| {
            operated(object);
            begin(object, "b", "restart");
            for key in ["pre-checked", "preparing"] {
                set_label(object, &label(key, "b"), "1");
            }
            set_label(object, &label("operation-permission", "restart"), "1");
            protect(object);
        },
        &facts(),
    );
    let labels = after(&pod, &patch);
    assert!(
        labels.contains(&label("operated", "a")) && !labels.contains(&label("post-check", "a")),
        "{labels:?}"
    );
    assert!(labels.contains(&label("preparing", "b")));
    assert!(!labels.contains(&label("operation-permission", "update")), "no id of that type is left");
    assert!(labels.contains(&label("operation-permission", "restart")));
    assert_eq!(patch.gate, None, "it stays closed");
}

#[test]
fn terminating_and_uncontrolled_pods_are_left_alone() {
    let terminating = |object: &mut Value| {
        begin(object, "a", "update");
        object["metadata"]["deletionTimestamp"] = json!("2026-01-02T00:00:00Z");
    };
    assert!(stepped(terminating, &facts()).1.is_empty());
    let uncontrolled = |object: &mut Value| {
        begin(object, "a", "update");
        set_label(object, "kusionstack.io/control", "false");
    };
    assert!(stepped(uncontrolled, &facts()).1.is_empty());
}

proptest! {
    #[test]
    fn a_step_is_total_and_a_second_one_changes_nothing(
        keys in prop::collection::btree_map(
            prop_oneof![
                (0..12_usize, "[ab/]{0,3}").prop_map(|(prefix, id)| Prefix::ALL[prefix].key(&id)),
                Just("collaset.kusionstack.io/to-delete".to_owned()),
                Just(AVAILABLE.to_owned()),
                Just(label("operation-permission", "update")),
            ],
            prop_oneof![Just("update".to_owned()), Just("1".to_owned()), ".{0,4}"],
            0..10,
        ),
        open in any::<bool>(),
        protected in any::<bool>(),
        pre_checked in any::<bool>(),
    ) {
        let facts = PodFacts { pre_checked, out_of_traffic: !protected, ..facts() };
        let make = |labels: &BTreeMap<String, String>, open: bool| pod(|object| {
            for (key, value) in labels {
                set_label(object, key, value);
            }
            set_gate(object, open);
            if protected { protect(object) }
        });
        let first = make(&keys, open);
        let patch = step(&BTreeMap::new(), &first, &facts);
        prop_assert_eq!(&step(&BTreeMap::new(), &first, &facts), &patch, "deterministic");
        let mut labels = first.labels.clone();
        for (key, value) in &patch.labels {
            match value {
                Some(value) => drop(labels.insert(key.clone(), value.clone())),
                None => drop(labels.remove(key)),
            }
        }
        // What the gate does is another observation; labels alone must be at rest.
        let second = make(&labels, open);
        let again = step(&first.labels, &second, &facts);
        let changed: Vec<_> = again.labels.iter().filter(|(_, value)| value.is_some()).collect();
        prop_assert!(changed.iter().all(|(key, _)| key.contains("operation-type")), "{:?} then {:?}", patch, again);
    }
}
