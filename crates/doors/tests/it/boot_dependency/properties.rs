//! What holds for every pod and every set.

use linchpin_api::common::LabelSelector;
use linchpin_doors::boot_dependency::{BootSet, OwnerName, is_skipped, label_selector_matches, selects};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{boot, init_names, injected, pod, set};

/// Entries that differ in what names are made of.
fn entries() -> impl Strategy<Value = String> {
    let target = prop_oneof![
        "[a-c]{1,2}(-[a-c0-9]{1,3})?".prop_map(|name| format!("service: {name}")),
        "[a-c]{1,2}\\.[a-c]{1,60}".prop_map(|name| format!("host: {name}")),
    ];
    let entry = (target, 1..4, prop_oneof![Just(""), Just(", httpPath: /a"), Just(", httpPath: /b")])
        .prop_map(|(target, port, path)| format!("{{{target}, port: {port}{path}}}"));
    let object = Just("{resource: job/x}".to_owned());
    prop::collection::vec(prop_oneof![6 => entry, 1 => object], 1..6).prop_map(|list| list.join(", "))
}

fn inits() -> impl Strategy<Value = Value> {
    let one = ("[a-f]{1,3}|wait-for-a|istio-init|istio-proxy", any::<bool>()).prop_map(|(name, sidecar)| {
        let mut container = json!({"name": name, "newerField": {"deep": [1, 2.5, null]}});
        if sidecar {
            container["restartPolicy"] = json!("Always");
        }
        container
    });
    prop::collection::vec(one, 0..4).prop_map(|list| {
        let mut names = std::collections::BTreeSet::new();
        Value::Array(list.into_iter().filter(|one| names.insert(one["name"].to_string())).collect())
    })
}

fn sets(names: &[&str], lists: &[String]) -> Vec<BootSet> {
    names.iter().zip(lists).map(|(name, list)| set(name, &format!("{{dependsOn: [{list}]}}"))).collect()
}

proptest! {
    #[test]
    fn asking_twice_changes_nothing_and_foreign_containers_keep_their_order(
        inits in inits(), first in entries(), second in entries(), third in entries()
    ) {
        let original = pod(&inits);
        let lists = [first, second];
        let (_, _, once) = injected(&original, &sets(&["a", "b"], &lists));
        let (_, again, twice) = injected(&once, &sets(&["a", "b"], &lists));
        prop_assert!(again.patch.is_empty(), "{:?}", again.patch);
        prop_assert_eq!(&once, &twice);
        let foreign = |pod: &Value| -> Vec<Value> {
            let all = pod["spec"]["initContainers"].as_array().cloned().unwrap_or_default();
            all.into_iter().filter(|one| one["newerField"].is_object()).collect()
        };
        prop_assert_eq!(foreign(&once), foreign(&original));
        // Every name is a label, and no two containers share one.
        let names = init_names(&once);
        let distinct: std::collections::BTreeSet<_> = names.iter().collect();
        prop_assert_eq!(distinct.len(), names.len());
        prop_assert!(names.iter().all(|name| name.len() <= 63 && !name.ends_with('-')));
        // From any set to any other is the same as from nothing to that other.
        let (_, _, moved) = injected(&once, &sets(&["c"], std::slice::from_ref(&third)));
        let (_, _, fresh) = injected(&original, &sets(&["c"], std::slice::from_ref(&third)));
        let inits = |pod: &Value| pod["spec"]["initContainers"].as_array().cloned().unwrap_or_default();
        prop_assert_eq!(inits(&moved), inits(&fresh));
        let (_, _, cleared) = injected(&once, &[]);
        prop_assert_eq!(foreign(&cleared).len(), cleared["spec"]["initContainers"].as_array().map_or(0, Vec::len));
    }

    #[test]
    fn no_pod_makes_it_panic(garbage in any::<[u8; 4]>(), list in entries()) {
        let shapes = [json!(null), json!([]), json!("x"), json!({"spec": []}), json!({"metadata": {"annotations": 1}, "spec": {"initContainers": [1, null, {"name": 3}], "containers": {}, "schedulingGates": "a"}})];
        let shape = &shapes[usize::from(garbage[0]) % shapes.len()];
        let division = linchpin_doors::boot_dependency::divide(&shape["spec"], &sets(&["a"], &[list]));
        let _ = linchpin_doors::boot_dependency::inject(
            shape, linchpin_doors::boot_dependency::PatchTarget::Pod, &division,
            linchpin_doors::boot_dependency::PodGate::Hold, &super::settings());
    }
}

#[test]
fn b13_pods_of_any_kind_are_selected_by_their_chain_or_their_labels() {
    let owner =
        |group: &str, kind: &str| OwnerName { group: group.into(), kind: kind.into(), name: "web".into() };
    let plain = boot("web", "{dependsOn: [{service: a, port: 1}]}");
    let chain = [owner("apps", "ReplicaSet"), owner("apps", "Deployment")];
    assert!(selects(&plain, &json!({}), &chain));
    assert!(!selects(&plain, &json!({}), &[owner("apps", "StatefulSet")]));
    assert!(!selects(&plain, &json!({}), &[owner("other", "Deployment")]));
    for (target, found) in [
        ("{kind: StatefulSet, name: web}", owner("apps", "StatefulSet")),
        ("{kind: Job, name: web}", owner("batch", "Job")),
        ("{kind: Rollout, name: web}", owner("argoproj.io", "Rollout")),
        ("{apiVersion: argoproj.io/v1alpha1, kind: Rollout, name: web}", owner("argoproj.io", "Rollout")),
        ("{kind: Pod, name: web}", owner("", "Pod")),
    ] {
        let object = boot("x", &format!("{{targetRef: {target}, dependsOn: [{{service: a, port: 1}}]}}"));
        assert!(selects(&object, &json!({}), std::slice::from_ref(&found)), "{target}");
        assert!(!selects(&object, &json!({}), &[OwnerName { name: "other".into(), ..found }]), "{target}");
    }
    let labelled = boot(
        "x",
        "{selector: {matchLabels: {a: b}, matchExpressions: [{key: c, operator: NotIn, values: [d]}, {key: e, operator: DoesNotExist}]}, dependsOn: [{service: a, port: 1}]}",
    );
    assert!(selects(&labelled, &json!({"a": "b"}), &[]));
    assert!(!selects(&labelled, &json!({"a": "b", "c": "d"}), &[]));
    assert!(!selects(&labelled, &json!({"a": "b", "e": ""}), &[]));
    assert!(
        label_selector_matches(&LabelSelector::default(), &Value::Null),
        "an empty selector matches everything"
    );
}

#[test]
fn b27_only_the_word_true_bypasses_a_wait() {
    assert!(is_skipped(&json!({"linchpin.dev/skip-boot-wait": "true"})));
    for other in [json!({"linchpin.dev/skip-boot-wait": "yes"}), json!({}), Value::Null] {
        assert!(!is_skipped(&other), "{other}");
    }
}
