//! The shipped examples, each with the rights it brings and no more, on simulated nodes: the RFC's five scenarios, the four
//! relations, internal dependencies, and the retrofit in three commits.

use crate::{eventually, seconds, world::scenario};
use linchpin_testkit::{Scenario, condition, entry};
use serde_json::{Value, json};
use std::{fs, path::Path};

/// The examples of a folder, by name.
fn examples(folder: &str) -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(folder);
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> =
        files.filter(|path| path.extension().is_some_and(|word| word == "yaml")).collect();
    files.sort();
    let name = |path: &Path| path.file_stem().unwrap().to_str().unwrap().to_owned();
    files.iter().map(|path| (name(path), fs::read_to_string(path).unwrap())).collect()
}

/// The objects of a kind in an example, as namespace and name.
fn named(text: &str, kind: &str) -> Vec<(String, String)> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text).unwrap();
    let ours = documents.iter().filter(|document| document["kind"] == kind);
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    ours.map(|one| (word(&one["metadata"]["namespace"]), word(&one["metadata"]["name"]))).collect()
}

/// Waits until a Sync of any namespace is as it should be.
#[track_caller]
fn until(
    scenario: &Scenario,
    namespace: &str,
    name: &str,
    what: &str,
    holds: impl Fn(&Value) -> bool,
) -> Value {
    let mut last = Value::Null;
    for _ in 0..1200 {
        last = scenario.api.get("Sync", namespace, name).unwrap_or_default();
        if holds(&last) {
            return last;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    panic!("{namespace}/{name} {what}: {:#}", last["status"]);
}

fn is_synced(object: &Value) -> bool {
    object["status"]["phase"] == "Synced"
        && object["status"]["observedGeneration"] == object["metadata"]["generation"]
        && condition(object, "Ready")["status"] == "True"
}

#[test]
fn every_example_comes_up_with_its_own_rights_and_goes_down_again() {
    let scenario = scenario("sync-examples");
    let all = examples("sync");
    let names: Vec<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
    for scene in ["availability", "definition", "environment", "global", "internal", "relations", "version"] {
        assert!(names.contains(&scene), "{names:?}");
    }
    for (_, text) in &all {
        scenario.apply(text);
    }
    let commits = examples("sync/retrofit");
    scenario.apply(&commits[0].1);
    let syncs: Vec<(String, String)> = all.iter().flat_map(|(_, text)| named(text, "Sync")).collect();
    for (namespace, name) in &syncs {
        until(&scenario, namespace, name, "is synced", is_synced);
    }
    let four = until(&scenario, "sync-relations", "all-four", "is synced", is_synced);
    let relations: Vec<(&Value, &Value)> = ["settings", "cache", "certificates", "base"]
        .map(|name| entry(&four, "dependencies", name))
        .map(|row| (&row["relation"], &row["strength"]))
        .to_vec();
    assert_eq!(
        json!(relations),
        json!([
            ["Defined ← Available", "Hard"],
            ["Available ← Available", "Soft"],
            ["Completed ← Defined", "Hard"],
            ["Available ← Defined", "Hard"]
        ])
    );
    eventually("the rule shows what it leaves alone", seconds(90), || {
        let rule = scenario.api.get("GlobalDependency", "", "sync-global-mesh").unwrap_or_default();
        rule["status"]["exempt"] == json!(["Sync sync-global/mesh"])
    });
    retrofit(&scenario, &commits);
    for (namespace, name) in &syncs {
        scenario.api.delete("Sync", namespace, name);
    }
    for (namespace, name) in &syncs {
        eventually(&format!("{namespace}/{name} is gone"), seconds(120), || {
            scenario.api.get("Sync", namespace, name).is_none()
        });
    }
    for kind in ["GlobalDependency", "Capability"] {
        for (_, name) in all.iter().flat_map(|(_, text)| named(text, kind)) {
            scenario.api.delete(kind, "", &name);
        }
    }
}

/// "a major concern is how to retrofit dependencies to existing chunks of configuration … it can be gradual": nothing, soft,
/// hard.
fn retrofit(scenario: &Scenario, commits: &[(String, String)]) {
    let (place, name) = ("sync-retrofit", "app");
    let value = || {
        let map = scenario.api.get("ConfigMap", place, name).unwrap_or_default();
        map["data"]["value"].as_str().unwrap_or_default().to_owned()
    };
    until(scenario, place, name, "is synced", is_synced);
    scenario.apply(&commits[1].1);
    let soft = until(scenario, place, name, "goes on without it", |object| {
        is_synced(object) && object["status"]["brokenSoft"] == json!(["settings"])
    });
    assert_eq!(condition(&soft, "DependenciesReady")["reason"], "SoftBroken");
    assert_eq!(value(), "2");
    scenario.apply(&commits[2].1);
    until(scenario, place, name, "is held", |object| {
        object["status"]["phase"] == "Waiting"
            && object["status"]["message"]
                == "says it depends on ConfigMap sync-retrofit/settings, which isn't present, and no Sync provides it"
    });
    assert_eq!(value(), "2", "what runs stays");
    scenario.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: sync-retrofit}}");
    until(scenario, place, name, "is synced", is_synced);
    assert_eq!(value(), "3");
    scenario.api.delete("Sync", place, name);
}
