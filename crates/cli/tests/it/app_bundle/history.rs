//! Revisions, and going back to one.

use super::{maps, names, written};
use crate::world::scenario;
use linchpin_testkit::{Scenario, condition};
use serde_json::{Value, json};

fn revisions(scenario: &Scenario, bundle: &str) -> Vec<Value> {
    let all = scenario.api.list("BundleRevision", &scenario.namespace);
    let mut mine: Vec<Value> = all.into_iter().filter(|one| one["spec"]["bundle"] == bundle).collect();
    mine.sort_by_key(|one| one["spec"]["revision"].as_i64());
    mine
}

fn results(scenario: &Scenario, bundle: &str) -> Vec<(i64, String)> {
    let text = |one: &Value| one["spec"]["result"].as_str().unwrap_or_default().to_owned();
    let all = revisions(scenario, bundle);
    all.iter().map(|one| (one["spec"]["revision"].as_i64().unwrap(), text(one))).collect()
}

#[test]
fn p27_every_change_is_a_revision_and_one_can_go_back() {
    let scenario = scenario("history-bundle");
    scenario.app_bundle("shop", &maps(&[&["a"], &["b"]]));
    scenario.deployed("shop");
    let second = maps(&[&["a"], &["c"]]).replacen("value: one", "value: two", 1);
    scenario.app_bundle("shop", &second);
    scenario.deployed("shop");
    scenario.gone("ConfigMap", "b");
    crate::eventually("both are written down", crate::seconds(30), || {
        results(&scenario, "shop") == [(1, "Deployed".to_owned()), (2, "Deployed".to_owned())]
    });
    let newest = &revisions(&scenario, "shop")[1];
    assert_eq!(newest["spec"]["changes"], json!(["changed g0/a", "added g1/c", "removed g1/b"]));
    assert_eq!(newest["metadata"]["ownerReferences"][0]["name"], "shop");
    let count = written(&scenario).len();
    crate::eventually("that it is deployed is told", crate::seconds(30), || {
        let told = |(reason, message): &(String, String)| {
            reason == "Deployed" && message == "All groups deployed successfully"
        };
        scenario.events("shop").iter().any(told)
    });
    scenario.merge("AppBundle", "shop", &json!({"spec": {"rollback": 1}}));
    let back = scenario.deployed("shop");
    says_everywhere_that_it_went_back(&scenario, &back);
    scenario.gone("ConfigMap", "c");
    assert_eq!(scenario.data("a", "value").as_deref(), Some("one"));
    assert!(scenario.has("b"));
    assert_eq!(names(&written(&scenario)[count..], "patch"), ["a", "b"]);
    assert_eq!(results(&scenario, "shop").len(), 2, "going back makes no revision");
    scenario.merge("AppBundle", "shop", &json!({"spec": {"rollback": 9}}));
    let stalled = scenario.phase("AppBundle", "shop", "Failed");
    assert!(stalled["status"]["message"].as_str().unwrap().contains("there is no revision 9"));
    assert_eq!(condition(&stalled, "Stalled")["status"], "True");
    assert!(scenario.has("b"), "nothing is touched");
    scenario.merge("AppBundle", "shop", &json!({"spec": {"rollback": null}}));
    scenario.deployed("shop");
    assert_eq!(scenario.data("a", "value").as_deref(), Some("two"));
    assert_eq!(results(&scenario, "shop").len(), 2);
}

/// Status, events, columns, `explain` and `tree` say that the spec is not what is deployed, and how it would be.
#[track_caller]
fn says_everywhere_that_it_went_back(scenario: &Scenario, bundle: &Value) {
    let told = "rolled back to revision 1; the spec (generation 3) is not deployed";
    let whole = format!(
        "{told}; to deploy it: kubectl patch ab shop --type merge -p '{{\"spec\":{{\"rollback\":null}}}}'"
    );
    assert_eq!(bundle["status"]["message"], whole);
    assert_eq!(condition(bundle, "Ready")["reason"], "RolledBack");
    crate::eventually("an event says it", crate::seconds(30), || {
        let says = |(reason, message): &(String, String)| reason == "RolledBack" && message == told;
        scenario.events("shop").iter().any(says)
    });
    let cluster = &crate::world::world().cluster;
    let place = ["-n", scenario.namespace.as_str()];
    let shown = cluster.kubectl().args(["get", "ab", "shop"]).args(place).output().unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    let mut rows = shown.lines();
    let heading: Vec<&str> = rows.next().unwrap().split_whitespace().collect();
    assert_eq!(heading, ["NAME", "READY", "PHASE", "AGE", "MESSAGE"]);
    assert!(rows.next().unwrap().ends_with(&whole), "{shown}");
    for command in ["explain", "tree"] {
        let output = crate::operator::linchpin()
            .env("KUBECONFIG", cluster.kubeconfig())
            .args([command, "ab/shop"])
            .args(place)
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains(told), "{command}: {text}");
    }
}

#[test]
fn the_last_ten_revisions_are_kept() {
    let scenario = scenario("history-ten");
    for number in 0..12 {
        scenario.app_bundle("shop", &maps(&[&["a"]]).replace("value: one", &format!("value: v{number}")));
        scenario.deployed("shop");
        crate::eventually("it is written down", crate::seconds(30), || {
            results(&scenario, "shop")
                .last()
                .is_some_and(|(last, result)| *last == number + 1 && result == "Deployed")
        });
    }
    crate::eventually("the oldest are gone", crate::seconds(30), || {
        results(&scenario, "shop").first().map(|(first, _)| *first) == Some(3)
    });
    assert_eq!(results(&scenario, "shop").len(), 10);
    scenario.delete("AppBundle", "shop");
    crate::eventually("they go with the bundle", crate::seconds(60), || {
        results(&scenario, "shop").is_empty()
    });
}

#[test]
fn a_hundred_bundles_make_no_list_and_no_watch_of_their_own_for_their_revisions() {
    let scenario = scenario("history-hundred");
    for number in 0..100 {
        scenario.app_bundle(&format!("b{number}"), &maps(&[&[&format!("a{number}")]]));
    }
    let deployed = |one: &Value| one["spec"]["result"] == "Deployed";
    crate::eventually("all are written down", crate::seconds(120), || {
        let all = scenario.api.list("BundleRevision", &scenario.namespace);
        all.len() == 100 && all.iter().all(deployed)
    });
    let mut looks = scenario.audit.events();
    looks.retain(|event| {
        event.is_by_operator() && event.resource == "bundlerevisions" && event.namespace == scenario.namespace
    });
    assert!(looks.iter().any(|event| event.verb != "watch"), "they are written there");
    looks.retain(|event| matches!(event.verb.as_str(), "list" | "watch"));
    assert!(looks.is_empty(), "one follower knows them all: {looks:?}");
}
