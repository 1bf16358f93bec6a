//! What a dependency says about a transition that it does not hold: one that is over, another one, or none.

use linchpin_engine::graph::{Edge, Graph, Node, Relation};
use linchpin_words::{GroupKind, ObjectRef};
use serde_json::{Value, json};

use super::{condition, map, other, ready, shown, stage};
use crate::things::config_map;

/// A Sync of these ConfigMaps with these dependencies.
fn depending(maps: &[&str], dependencies: &str) -> String {
    let maps: Vec<String> = maps.iter().map(|name| map(name)).collect();
    format!("{{source: {{objects: [{}]}}, dependencies: [{dependencies}]}}", maps.join(", "))
}

/// A new text for the first of its objects.
fn update(object: &mut Value) {
    object["spec"]["source"]["objects"][0]["data"] = json!({"k": "v"});
}

/// The status of a Sync whose newest revision has failed, with what the one before had.
fn stalled(version: &str) -> Value {
    let mut status = ready("r1", version);
    status["observedRevision"] = json!("r2");
    status["conditions"] = json!([
        {"type": "Ready", "status": "False", "reason": "ActionFailed", "observedGeneration": 1},
        {"type": "Stalled", "status": "True", "reason": "ActionFailed", "observedGeneration": 1}]);
    status
}

#[test]
fn what_a_synced_sync_relies_on_is_known_also_where_it_is_not_there() {
    let mut stage = stage(&depending(&["a"], ""));
    stage.settle();
    let entry = json!([{"name": "t", "object": {"resource": "secret/token"}},
        {"name": "d", "object": {"resource": "secret/late"}, "gates": ["Delete"]}]);
    stage.edit(|object| object["spec"]["dependencies"] = entry).settle();
    let edges: Vec<Edge> = stage.report().edges.clone();
    for name in ["token", "late"] {
        let secret = Node::here(ObjectRef::namespaced(GroupKind::new("", "Secret"), "own", name));
        let relation = edges.iter().find(|edge| edge.to == secret).map(|edge| &edge.relation);
        let Some(Relation::WaitsFor(wait)) = relation else { panic!("{name}: {edges:?}") };
        assert!(wait.met(), "it holds nothing");
        let mut graph = Graph::new();
        graph.set(&edges[0].from.whole(), edges.clone());
        assert_eq!(graph.waiting_for(&secret), (1, 0), "one relies on it, and is not held");
        assert_eq!(graph.blockers(&edges[0].from), []);
    }
    let status = shown(&mut stage);
    assert_eq!(status["phase"], "Synced");
    assert!(!status["edges"].to_string().contains("token"), "nobody waits for it: {}", status["edges"]);
}

#[test]
fn the_message_and_what_is_waited_for_name_only_what_holds_this_very_transition() {
    let mut stage = stage(&depending(
        &["c"],
        "{name: a, object: {resource: configmap/a}, gates: [Update]}, {name: b, object: {resource: configmap/b}}",
    ));
    stage.settle();
    let status = shown(&mut stage);
    assert_eq!(status["phase"], "Waiting");
    let message = "says it depends on ConfigMap own/b, which isn't present, and no Sync provides it";
    assert_eq!(status["message"], message);
    assert_eq!(status["waitingOn"], json!(["ConfigMap own/b"]));
    assert_eq!(condition(&status, "DependenciesReady")["message"], message);
    assert_eq!(status["blockedBy"].as_array().map(Vec::len), Some(1));
    stage.put(config_map("own", "b", &json!({}))).settle();
    assert_eq!(stage.done(), ["apply ConfigMap own/c"]);
    stage.edit(update).settle();
    assert_eq!(shown(&mut stage)["waitingOn"], json!(["ConfigMap own/a"]));
}

#[test]
fn what_was_gone_past_and_then_met_can_be_lost_like_any_other() {
    let mut stage =
        stage(&depending(&["a"], "{name: cache, sync: {name: cache}, strength: Soft, patience: 10m}"));
    stage.settle();
    stage.pass(600).settle();
    assert_eq!(shown(&mut stage)["brokenSoft"], json!(["cache"]));
    let cache = other("cache", &ready("r", "1"));
    stage.put(cache.clone()).settle();
    assert_eq!(shown(&mut stage).get("brokenSoft"), None, "cleared when the dependency is met");
    stage.take(&cache).settle();
    let status = shown(&mut stage);
    assert_eq!(status.get("brokenSoft"), None, "{status:#}");
    assert_eq!(condition(&status, "DependenciesReady")["reason"], "DependencyLost");
    assert_eq!(condition(&status, "Ready")["status"], "True");
}

#[test]
fn an_edit_that_is_no_transition_does_not_clear_what_was_gone_past() {
    let mut stage =
        stage(&depending(&["a"], "{name: cache, sync: {name: cache}, strength: Soft, patience: 10m}"));
    stage.settle();
    stage.pass(600).settle();
    stage.edit(|object| object["spec"]["timeout"] = json!("9m")).settle();
    let status = shown(&mut stage);
    assert_eq!(status["brokenSoft"], json!(["cache"]), "{status:#}");
    assert_eq!(condition(&status, "DependenciesReady")["reason"], "SoftBroken");
    stage.done();
    stage.edit(update).settle();
    assert_eq!(stage.done(), [] as [&str; 0], "the next admission waits for it again");
    assert_eq!(shown(&mut stage).get("brokenSoft"), None);
    // Made hard, it is not passed by.
    stage.pass(600).settle();
    stage.edit(|object| {
        object["spec"]["dependencies"][0] = json!({"name": "cache", "sync": {"name": "cache"}});
    });
    stage.settle();
    assert_eq!(shown(&mut stage).get("brokenSoft"), None);
}

#[test]
fn every_write_waits_for_a_reapply_gate_also_while_an_update_is_held() {
    let mut stage =
        stage(&depending(&["b", "a"], "{name: db, sync: {name: db}, gates: [Create, Update, Reapply]}"));
    let db = other("db", &ready("r", "1"));
    stage.put(db.clone()).settle();
    assert_eq!(stage.done().len(), 2);
    stage.take(&db).settle();
    stage.edit(update).settle();
    stage.take(&config_map("own", "a", &json!({}))).settle();
    assert_eq!(stage.done(), [] as [&str; 0]);
    stage.put(db).settle();
    assert_eq!(stage.done().len(), 2, "all of it, once it is there");
}

#[test]
fn adding_a_reapply_gate_to_a_running_sync_leaves_it_ready() {
    let mut stage = stage(&depending(&["a"], ""));
    stage.settle();
    stage.done();
    stage.edit(|object| {
        object["spec"]["dependencies"] =
            json!([{"name": "db", "sync": {"name": "db"}, "gates": ["Create", "Update", "Reapply"]}]);
    });
    stage.settle();
    let status = shown(&mut stage);
    assert_eq!(status["phase"], "Synced", "{status:#}");
    assert_eq!(condition(&status, "Ready")["status"], "True");
    assert_eq!(stage.done(), [] as [&str; 0]);
    stage.take(&config_map("own", "a", &json!({}))).settle();
    assert_eq!(stage.done(), [] as [&str; 0], "and every write waits for it from now on");
}

#[test]
fn a_dependency_that_has_failed_says_so_whatever_version_it_has() {
    let mut stage = stage(&depending(&["a"], "{name: db, sync: {name: db}, version: '>=2'}"));
    stage.put(other("db", &stalled("1.0"))).settle();
    let status = shown(&mut stage);
    assert_eq!(status["phase"], "Failed", "{status:#}");
    assert_eq!(condition(&status, "DependenciesReady")["reason"], "DependencyFailed");
    stage.put(other("db", &ready("r1", "1.0"))).settle();
    let status = shown(&mut stage);
    assert_eq!(condition(&status, "DependenciesReady")["reason"], "VersionNotMet", "it recovers with it");
    stage.put(other("db", &ready("r2", "2.0"))).settle();
    assert_eq!(stage.done(), ["apply ConfigMap own/a"]);
}

#[test]
fn a_soft_dependency_that_has_failed_at_another_version_is_gone_past_at_once() {
    let entry = "{name: db, sync: {name: db}, version: '>=2', strength: Soft, patience: 10m}";
    let mut stage = stage(&depending(&["a"], entry));
    stage.put(other("db", &ready("r1", "1.0"))).settle();
    assert_eq!(stage.done(), [] as [&str; 0], "one that is merely at another version is waited for");
    stage.put(other("db", &stalled("1.0"))).settle();
    assert_eq!(stage.done(), ["apply ConfigMap own/a"]);
}

#[test]
fn a_job_of_another_version_that_has_failed_is_another_job() {
    let entry = "{name: m, object: {resource: job/migrate}, state: Completed, version: '2'}";
    let mut stage = stage(&depending(&["a"], entry));
    stage.put(json!({"apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"namespace": "own", "name": "migrate", "labels": {"app.kubernetes.io/version": "1"}}, "spec": {},
        "status": {"failed": 1, "conditions": [{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}]}}));
    stage.settle();
    let status = shown(&mut stage);
    assert_eq!(status["phase"], "Waiting", "{status:#}");
    assert_eq!(condition(&status, "DependenciesReady")["reason"], "VersionNotMet");
}
