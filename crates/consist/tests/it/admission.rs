//! What is answered when pods are created, deleted and evicted: the tables of the design.

use linchpin_consist::{
    PodView,
    admission::{AdmissionVerdict, Asker, RemovalMark, RemovalRequest, create, remove},
};
use linchpin_words::Timestamp;
use serde_json::{Value, json};

use crate::pods::{GATE, label, pod, set_label};

const FINALIZER: &str = "prot.podopslifecycle.kusionstack.io/9705eb7ac2c98403";

fn employers() -> Vec<(String, String)> {
    vec![("Service/shop/web".to_owned(), FINALIZER.to_owned())]
}

/// Applies the few operations that we write.
fn applied(mut object: Value, operations: &[Value]) -> Value {
    for operation in operations {
        assert_eq!(operation["op"], "add");
        let path = operation["path"].as_str().unwrap();
        let (parent, last) = path.rsplit_once('/').unwrap();
        let last = last.replace("~1", "/").replace("~0", "~");
        match object.pointer_mut(parent).unwrap() {
            Value::Array(items) => items.push(operation["value"].clone()),
            Value::Object(fields) => drop(fields.insert(last, operation["value"].clone())),
            other => panic!("{other}"),
        }
    }
    object
}

#[test]
fn a_new_pod_gets_the_gate_and_an_entry_for_every_employer_and_nothing_else_changes() {
    let raw = json!({"metadata": {"labels": {"kusionstack.io/control": "true"}, "unknown": 1},
        "spec": {"containers": [], "newField": {"x": 1}}});
    let made = applied(raw.clone(), &create(&raw, true, &employers()));
    assert_eq!(made["spec"]["readinessGates"], json!([{"conditionType": GATE}]));
    assert_eq!(
        made["spec"]["newField"], raw["spec"]["newField"],
        "fields that we do not know are left alone"
    );
    let entries =
        made["metadata"]["annotations"]["pod.kusionstack.io/available-conditions"].as_str().unwrap();
    assert_eq!(entries, format!(r#"{{"expectedFinalizers":{{"Service/shop/web":"{FINALIZER}"}}}}"#));
    assert!(create(&made, true, &employers()).is_empty(), "twice is once");
}

#[test]
fn entries_are_merged_into_those_that_are_there_and_garbage_is_left_alone() {
    let with = |text: &str| json!({"metadata": {"annotations": {"pod.kusionstack.io/available-conditions": text}}, "spec": {}});
    let theirs = with(r#"{"expectedFinalizers":{"Service/shop/api":"x"}}"#);
    let made = applied(theirs.clone(), &create(&theirs, true, &employers()));
    let text = made["metadata"]["annotations"]["pod.kusionstack.io/available-conditions"].as_str().unwrap();
    assert!(text.contains("Service/shop/api") && text.contains("Service/shop/web"), "{text}");
    let null = with(r#"{"expectedFinalizers":null}"#);
    assert_eq!(create(&null, true, &employers()).len(), 1, "the original panics on it");
    assert!(create(&with("garbage"), true, &employers()).is_empty());
}

#[test]
fn the_gate_is_for_pods_that_opted_in_and_for_our_own_engine() {
    let plain = json!({"metadata": {}, "spec": {}});
    assert!(create(&plain, true, &[]).is_empty());
    let controlled = json!({"metadata": {"labels": {"kusionstack.io/control": "true"}}, "spec": {}});
    assert_eq!(create(&controlled, true, &[]).len(), 1);
    assert!(create(&controlled, false, &[]).is_empty());
    let other = json!({"metadata": {"labels": {"kusionstack.io/control": "true"}}, "spec": {"readinessGates": [{"conditionType": "x"}]}});
    let made = applied(other.clone(), &create(&other, true, &[]));
    assert_eq!(made["spec"]["readinessGates"].as_array().unwrap().len(), 2);
    for garbage in [json!(null), json!([]), json!({"spec": 1, "metadata": "x"})] {
        assert!(create(&garbage, true, &employers()).is_empty(), "{garbage}");
    }
}

#[test]
fn to_delete_in_a_template_is_noted_when_the_pod_is_created() {
    let raw = json!({"metadata": {"labels": {"kusionstack.io/control": "true", "collaset.kusionstack.io/to-delete": "true"}},
        "spec": {"readinessGates": [{"conditionType": GATE}]}});
    let made = applied(raw.clone(), &create(&raw, true, &[]));
    assert_eq!(made["metadata"]["annotations"]["linchpin.dev/to-delete-ignored"], "true");
}

fn now() -> Timestamp {
    Timestamp::parse("2026-01-02T00:00:00Z").unwrap()
}

fn nanoseconds(seconds: i64) -> String {
    (i128::from(now().as_microsecond() + seconds * 1_000_000) * 1_000).to_string()
}

fn deletion() -> RemovalRequest {
    RemovalRequest {
        eviction: false,
        asker: Asker { user: "jane".to_owned(), groups: Vec::new() },
        grace: None,
        dry_run: false,
        namespace_going: false,
        over_budget: false,
        now: now(),
    }
}

fn by(user: &str) -> RemovalRequest {
    RemovalRequest { asker: Asker { user: user.to_owned(), groups: Vec::new() }, ..deletion() }
}

fn protected(change: impl FnOnce(&mut Value)) -> PodView {
    pod(|object| {
        object["metadata"]["finalizers"] = json!([FINALIZER]);
        let entries = format!(r#"{{"expectedFinalizers":{{"Service/shop/web":"{FINALIZER}"}}}}"#);
        object["metadata"]["annotations"]["pod.kusionstack.io/available-conditions"] = json!(entries);
        change(object);
    })
}

#[test]
fn what_is_allowed_at_once() {
    let allowed = |change: &dyn Fn(&mut Value), removal: RemovalRequest| {
        remove(&protected(change), &removal) == AdmissionVerdict::Allow
    };
    let nothing: &dyn Fn(&mut Value) = &|_| ();
    assert!(!allowed(nothing, deletion()));
    assert!(
        allowed(&|object| set_label(object, "kusionstack.io/control", "false"), deletion()),
        "not controlled"
    );
    let bare = |object: &mut Value| {
        object["spec"]["readinessGates"] = json!([]);
        object["metadata"]["finalizers"] = json!([]);
    };
    assert!(allowed(&bare, deletion()), "no gate and no protection");
    let unscheduled = |object: &mut Value| {
        object["spec"]["nodeName"] = json!("");
        object["status"]["conditions"] = json!([]);
    };
    assert!(allowed(&unscheduled, deletion()), "never scheduled and never Ready");
    assert!(allowed(
        &|object| object["metadata"]["deletionTimestamp"] = json!("2026-01-02T00:00:00Z"),
        deletion()
    ));
    assert!(allowed(nothing, RemovalRequest { grace: Some(0), ..deletion() }), "force");
    let node = Asker { user: "system:node:n".to_owned(), groups: vec!["system:nodes".to_owned()] };
    assert!(allowed(nothing, RemovalRequest { asker: node, ..deletion() }));
    assert!(allowed(nothing, RemovalRequest { namespace_going: true, ..deletion() }));
    assert!(allowed(nothing, RemovalRequest { dry_run: true, ..deletion() }));
    assert!(allowed(nothing, by("system:kube-scheduler")), "preemption");
    for id in ["pod-delete", "pod-evict"] {
        assert!(allowed(&|object| set_label(object, &label("operate", id), "1"), deletion()), "{id}");
    }
    for phase in ["Succeeded", "Failed"] {
        assert!(allowed(&|object| object["status"]["phase"] = json!(phase), deletion()), "{phase}");
    }
}

#[test]
fn people_get_429_and_controllers_403_and_the_pod_is_marked_once() {
    let message = "pod deletion process is underway: it is in traffic of Service/shop/web".to_owned();
    let mark = |by: &str| Some(RemovalMark::Delete { at: nanoseconds(0), by: by.to_owned() });
    let refused = |code, retry_after, mark| AdmissionVerdict::Refuse {
        code,
        retry_after,
        budget: false,
        message: message.clone(),
        mark,
    };
    assert_eq!(remove(&protected(|_| ()), &deletion()), refused(429, Some(1), mark("jane")));
    for controller in
        ["system:kube-controller-manager", "system:serviceaccount:kube-system:replicaset-controller"]
    {
        assert_eq!(remove(&protected(|_| ()), &by(controller)), refused(403, None, mark(controller)));
    }
    let asked = |seconds| {
        protected(|object| set_label(object, "collaset.kusionstack.io/to-delete", &nanoseconds(seconds)))
    };
    assert_eq!(remove(&asked(-4), &deletion()), refused(429, Some(1), None));
    assert_eq!(remove(&asked(-5), &deletion()), refused(429, Some(30), None));
}

#[test]
fn evictions_get_429_without_a_time_and_the_budget_comes_first() {
    let eviction = RemovalRequest { eviction: true, ..deletion() };
    let AdmissionVerdict::Refuse { code, retry_after, budget, mark, .. } =
        remove(&protected(|_| ()), &eviction)
    else {
        panic!("allowed")
    };
    assert_eq!((code, retry_after, budget), (429, None, false));
    assert_eq!(mark, Some(RemovalMark::Evict { at: nanoseconds(0) }));
    let lately = protected(|object| {
        object["metadata"]["annotations"]["linchpin.dev/evict-requested"] = json!(nanoseconds(-4));
    });
    assert!(matches!(remove(&lately, &eviction), AdmissionVerdict::Refuse { mark: None, .. }));
    let full = RemovalRequest { over_budget: true, ..eviction };
    let verdict = remove(&protected(|_| ()), &full);
    assert!(
        matches!(verdict, AdmissionVerdict::Refuse { code: 429, budget: true, mark: None, .. }),
        "{verdict:?}"
    );
}
