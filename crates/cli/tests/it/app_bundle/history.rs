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
    scenario.merge("AppBundle", "shop", &json!({"spec": {"rollback": 1}}));
    scenario.deployed("shop");
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
