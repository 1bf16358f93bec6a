//! PodTransitionRule: `availablePolicy` and `labelCheck`.

use std::collections::BTreeMap;

use linchpin_consist::{
    PodView,
    rules::{self, Amount, Labelled, Rule, RuleDemand, Stage, judge},
};
use proptest::prelude::*;
use serde_json::json;

use crate::pods::{AVAILABLE, label, pod, set_label};

/// A pod: whether it is service-available, and the stage label it has.
fn named(name: &str, available: bool, stage: Option<&str>) -> PodView {
    let mut one = pod(|object| {
        object["metadata"]["name"] = json!(name);
        if available {
            set_label(object, AVAILABLE, "1");
        }
        if let Some(stage) = stage {
            set_label(object, &label(stage, "a"), "1");
        }
    });
    name.clone_into(&mut one.uid);
    one
}

fn rule(ask: RuleDemand) -> Rule {
    Rule {
        name: "r".to_owned(),
        disabled: false,
        stage: Stage::PreCheck,
        conditions: Vec::new(),
        filter: Labelled::default(),
        ask,
    }
}

fn labelled(key: &str, value: &str) -> Labelled {
    Labelled { labels: BTreeMap::from([(key.to_owned(), value.to_owned())]), tests: Vec::new() }
}

fn available(max: Option<Amount>, min: Option<Amount>) -> Rule {
    rule(RuleDemand::Available { max_unavailable: max, min_available: min })
}

fn passed(rules: &[Rule], pods: &[PodView]) -> Vec<String> {
    let pods: Vec<&PodView> = pods.iter().collect();
    let details = judge(rules, &pods);
    details.into_iter().filter(linchpin_consist::rules::Detail::is_passed).map(|detail| detail.pod).collect()
}

fn all_asking(count: usize) -> Vec<PodView> {
    (0..count).map(|number| named(&format!("p{number}"), true, Some("pre-check"))).collect()
}

#[test]
fn max_unavailable_rounds_up_and_min_available_down() {
    let pods = all_asking(5);
    assert_eq!(passed(&[available(Some(Amount::Percent(25)), None)], &pods), ["p0", "p1"]);
    assert_eq!(passed(&[available(None, Some(Amount::Percent(75)))], &pods), ["p0", "p1"]);
    assert_eq!(passed(&[available(Some(Amount::Number(1)), None)], &pods), ["p0"]);
    assert_eq!(passed(&[available(Some(Amount::Number(0)), None)], &pods), [""; 0]);
    assert_eq!(passed(&[available(None, None)], &pods).len(), 5);
}

#[test]
fn pods_that_are_unavailable_pass_freely_and_take_a_place() {
    let mut pods = all_asking(4);
    pods[3] = named("p3", false, Some("pre-check"));
    assert_eq!(passed(&[available(Some(Amount::Number(2)), None)], &pods), ["p0", "p3"]);
    // One that passed before keeps its place until it is available again.
    pods[2] = named("p2", true, Some("pre-checked"));
    assert_eq!(passed(&[available(Some(Amount::Number(2)), None)], &pods), ["p3"]);
}

#[test]
fn label_check_asks_for_labels_and_a_refused_pod_takes_nobodys_place() {
    let mut pods = all_asking(2);
    pods[1].labels.insert("ok".to_owned(), "yes".to_owned());
    let check = rule(RuleDemand::Labels(labelled("ok", "yes")));
    assert_eq!(passed(&[available(Some(Amount::Number(1)), None), check.clone()], &pods), ["p1"]);
    let refs: Vec<&PodView> = pods.iter().collect();
    let details = judge(&[check], &refs);
    assert_eq!(
        details[0].text(),
        r#"{"stage":"PreCheck","passed":false,"rejectInfo":[{"ruleName":"r","reason":"label ok=yes is required"}]}"#
    );
    assert_eq!(details[1].text(), r#"{"stage":"PreCheck","passed":true}"#);
}

#[test]
fn disabled_filtered_and_skipped_rules_are_not_asked() {
    let pods = all_asking(1);
    let none = available(Some(Amount::Number(0)), None);
    assert!(passed(std::slice::from_ref(&none), &pods).is_empty());
    assert_eq!(passed(&[Rule { disabled: true, ..none.clone() }], &pods), ["p0"]);
    let filter = labelled("tier", "gold");
    assert_eq!(passed(&[Rule { filter, ..none.clone() }], &pods), ["p0"]);
    assert_eq!(passed(&[Rule { stage: Stage::PostCheck, ..none.clone() }], &pods), ["p0"]);
    let mut skipping = all_asking(1);
    let key = "podtransitionrule.kusionstack.io/skip-rule-conditions".to_owned();
    skipping[0].annotations.insert(key, r#"{"skipRules":["r"]}"#.to_owned());
    assert_eq!(passed(&[none], &skipping), ["p0"]);
}

#[test]
fn conditions_say_which_operations_a_rule_is_about_and_all_selected_pods_count() {
    let typed = |name: &str, stage: Option<&str>, kind: Option<(&str, &str)>| {
        let mut pod = named(name, true, stage);
        if let Some((prefix, kind)) = kind {
            pod.labels.insert(label(prefix, "a"), kind.to_owned());
        }
        pod
    };
    let of = |kind: &str, rule: Rule| Rule { conditions: vec![kind.to_owned()], ..rule };
    let update = Some(("operation-type", "update"));
    let mut pods =
        vec![typed("p0", Some("pre-check"), update), typed("p1", None, None), typed("p2", None, None)];
    // Two of three must stay, so one may go, although it is the only one that the rule is asked about.
    let two = of("update", available(None, Some(Amount::Number(2))));
    assert_eq!(passed(std::slice::from_ref(&two), &pods), ["p0"]);
    assert_eq!(passed(&[of("update", available(Some(Amount::Percent(30)), None))], &pods), ["p0"]);
    // One that is unavailable for another reason takes the place.
    pods[1] = named("p1", false, None);
    assert!(passed(&[two], &pods).is_empty());
    let none = available(Some(Amount::Number(0)), None);
    assert!(passed(&[of("update", none.clone())], &pods).is_empty());
    assert_eq!(passed(&[of("delete", none)], &pods), ["p0"], "it is not asked");
    // After the operation its type is said by another label.
    let done = Some(("done-operation-type", "update"));
    let after = [typed("p0", Some("post-check"), done)];
    let check = Rule { stage: Stage::PostCheck, ..rule(RuleDemand::Labels(labelled("ok", "yes"))) };
    assert!(passed(&[of("update", check.clone())], &after).is_empty());
    assert_eq!(passed(&[of("delete", check)], &after), ["p0"]);
}

#[test]
fn post_check_is_about_pods_in_post_check() {
    let pods = [named("a", false, Some("post-check")), named("b", true, Some("pre-check"))];
    let refs: Vec<&PodView> = pods.iter().collect();
    let details = judge(&[], &refs);
    let stages: Vec<_> = details.iter().map(|detail| (detail.pod.as_str(), detail.stage)).collect();
    assert_eq!(stages, [("b", Stage::PreCheck), ("a", Stage::PostCheck)]);
}

#[test]
fn amounts_are_numbers_or_percent() {
    assert_eq!(Amount::read(&json!(3)), Some(Amount::Number(3)));
    assert_eq!(Amount::read(&json!("25%")), Some(Amount::Percent(25)));
    assert_eq!(Amount::read(&json!("3")), Some(Amount::Number(3)));
    for odd in [json!(-1), json!("x%"), json!(1.5), json!(null), json!(4_294_967_296_i64)] {
        assert_eq!(Amount::read(&odd), None, "{odd}");
    }
}

#[test]
fn a_bound_that_cannot_be_understood_is_not_none() {
    let rule = |policy: serde_json::Value| {
        let spec = json!({"selector": {}, "rules": [{"name": "r", "availablePolicy": policy}]});
        rules::read(&serde_json::from_value(spec).unwrap())
    };
    assert!(rule(json!({"maxUnavailableValue": 1})).is_some() && rule(json!({})).is_some());
    for odd in
        [json!({"maxUnavailableValue": "x%"}), json!({"minAvailableValue": -1, "maxUnavailableValue": 1})]
    {
        assert!(rule(odd.clone()).is_none(), "{odd}: nobody passes");
    }
}

proptest! {
    #[test]
    fn no_more_pods_are_unavailable_than_the_policy_allows(
        shape in prop::collection::vec((any::<bool>(), 0..3_usize), 0..12),
        max in 0..12_u32,
    ) {
        let stages = [None, Some("pre-check"), Some("pre-checked")];
        let pods: Vec<PodView> = shape.iter().enumerate()
            .map(|(number, (available, stage))| named(&format!("p{number:02}"), *available, stages[*stage])).collect();
        let before = shape.iter().filter(|(available, stage)| !available || *stage == 2).count();
        let passed = passed(&[available(Some(Amount::Number(max)), None)], &pods);
        let newly = passed.iter().filter(|name| shape[name[1..].parse::<usize>().unwrap()].0).count();
        prop_assert!(newly == 0 || before + newly <= max as usize);
    }
}
