//! What the page of settled questions says word for word, where no other test needs it.

use linchpin_doors::{CapabilityDoor, GlobalDependencyDoor};
use linchpin_engine::graph::{Relation, is_in_line};
use linchpin_words::{Gvk, limits};
use serde_json::{Value, json};

use super::{condition, map, other, ready, shown, stage};
use crate::{
    stage::{Custom, Stage},
    things::{config_map, deployment},
};

fn depending(dependencies: &str) -> String {
    format!("{{source: {{objects: [{}]}}, dependencies: [{dependencies}]}}", map("a"))
}

#[test]
fn an_export_is_named_beside_the_sync_or_in_it_and_not_twice() {
    let mut db = other("db", &ready("r", "1"));
    db["spec"]["exports"] = json!([{"name": "primary"}]);
    db["status"]["exports"] = json!([{"name": "primary", "state": "Available"}]);
    for entry in
        ["{name: db, sync: {name: db}, export: primary}", "{name: db, sync: {name: db, export: primary}}"]
    {
        let mut stage = stage(&depending(entry));
        stage.put(db.clone()).settle();
        assert_eq!(stage.done(), ["apply ConfigMap own/a"], "{entry}");
        assert_eq!(shown(&mut stage)["dependencies"][0]["dependsOn"], "export primary of Sync own/db");
    }
    let mut twice = stage(&depending("{name: db, sync: {name: db, export: primary}, export: primary}"));
    twice.put(db).settle();
    let status = shown(&mut twice);
    assert_eq!(condition(&status, "Stalled")["reason"], "SpecInvalid", "{status:#}");
    assert!(status["message"].as_str().is_some_and(|told| told.starts_with("spec.dependencies[0].export")));
}

#[test]
fn it_could_be_an_object_that_gets_created_or_updated_as_part_of_a_service_starting_up() {
    for entry in [
        "{name: up, object: {resource: configmap/up}, state: Completed, readyExpr: 'dep.data.up == \"yes\"'}",
        "{name: up, objects: {kind: ConfigMap, selector: {matchLabels: {app: up}}}, state: Completed}",
        "{name: up, object: {resource: deployment/up}, state: Completed}",
    ] {
        let mut stage = stage(&depending(entry));
        stage.settle();
        assert_eq!(stage.done(), [] as [&str; 0], "{entry}");
        let mut up = config_map("own", "up", &json!({"up": "yes"}));
        up["metadata"]["labels"] = json!({"app": "up"});
        stage.put(up.clone()).put(deployment("own", "up", 1)).settle();
        assert_eq!(stage.done(), ["apply ConfigMap own/a"], "{entry}");
        let row = shown(&mut stage)["dependencies"][0].clone();
        assert_eq!(
            (&row["relation"], &row["state"]),
            (&json!("Completed ← Defined"), &json!("Completed")),
            "{row:#}"
        );
        stage.take(&up).take(&deployment("own", "up", 1));
        stage.edit(|object| object["spec"]["source"]["objects"][0]["data"] = json!({"k": "v"})).settle();
        assert_eq!(
            stage.done(),
            ["apply ConfigMap own/a"],
            "once it is reached, the dependency is fulfilled"
        );
    }
}

#[test]
fn what_completes_by_being_there_must_be_ready_beside_its_expression_once() {
    let up = "{name: up, object: {resource: database.example.com/up}, state: Completed, readyExpr: has(dep.status.url)}";
    let mut stage = stage(&depending(up));
    let kind = Gvk::new("example.com", "v1", "Database");
    stage.customs.push(Custom { kind, plural: "databases", namespaced: true });
    let database = |ready: &str| {
        json!({"apiVersion": "example.com/v1", "kind": "Database", "metadata": {"namespace": "own", "name": "up"},
            "spec": {}, "status": {"url": "db:5432", "conditions": [{"type": "Ready", "status": ready}]}})
    };
    stage.put(database("False")).settle();
    assert_eq!(stage.done(), [] as [&str; 0], "state and version first, then the expression");
    stage.put(database("True")).settle();
    assert_eq!(stage.done(), ["apply ConfigMap own/a"]);
}

#[test]
fn a_kind_that_nobody_serves_is_called_as_people_call_it() {
    for entry in [
        "{name: p, object: {apiVersion: tekton.dev/v1, kind: Pipeline, name: build, namespace: shop}}",
        "{name: p, object: {resource: pipeline.tekton.dev/build, namespace: shop}}",
    ] {
        let mut stage = stage(&depending(entry));
        stage.settle();
        let status = shown(&mut stage);
        assert_eq!(
            status["message"],
            "says it depends on Pipeline.tekton.dev shop/build, whose kind the cluster does not serve"
        );
        assert_eq!(status["dependencies"][0]["reason"], "KindNotServed");
        assert_eq!(status["dependencies"][0]["state"], "Absent");
    }
}

#[test]
fn what_would_not_fit_into_its_status_is_refused_with_the_figure() {
    // Names that do not pack, as long as names may be.
    let name = |number: usize| {
        let hash = |part: usize| linchpin_words::hash::sha256_hex(format!("{number} {part}").as_bytes());
        (0..4).map(hash).collect::<String>().split_at(253).0.to_owned()
    };
    let text = |count: usize, name: &dyn Fn(usize) -> String| {
        (0..count)
            .map(|number| map(&format!("n{}", name(number)).as_str()[..253]))
            .collect::<Vec<_>>()
            .join("\n---\n")
    };
    let mut long = stage("{source: {configMapRef: {name: app}}}");
    long.put(config_map("own", "app", &json!({"all": text(900, &name)}))).settle();
    let status = shown(&mut long);
    assert_eq!(long.done(), [] as [&str; 0]);
    assert_eq!(condition(&status, "SourceReady")["reason"], "TooLarge", "{}", status["message"]);
    let message = status["message"].as_str().expect("a message");
    assert!(message.contains(" KiB; 512 KiB are allowed") && message.contains("900 objects"), "{message}");
    // Many objects, each after many others: what would be remembered of their order could not be read again.
    let wave = |number: usize, wave: usize| {
        format!(
            "{{apiVersion: v1, kind: ConfigMap, metadata: {{name: m{number}, annotations: \
             {{argocd.argoproj.io/sync-wave: '{wave}'}}}}}}"
        )
    };
    let waves = |each: usize| {
        (0..2 * each).map(|number| wave(number, number / each)).collect::<Vec<_>>().join("\n---\n")
    };
    let mut dense = stage("{source: {configMapRef: {name: app}}}");
    dense.put(config_map("own", "app", &json!({"all": waves(200)}))).settle();
    let status = shown(&mut dense);
    assert_eq!(condition(&status, "SourceReady")["reason"], "TooLarge", "{}", status["message"]);
    let message = status["message"].as_str().expect("a message");
    assert!(message.contains("its order has 40000 edges; ") && !message.contains("KiB"), "{message}");
    dense.put(config_map("own", "app", &json!({"all": waves(100)}))).settle();
    let status = shown(&mut dense);
    assert_eq!(condition(&status, "SourceReady")["status"], "True", "{}", status["message"]);
    let journal = linchpin_doors::journal::of(&dense.object).expect("readable").expect("a journal");
    assert_eq!(journal, dense.memory.journal, "what is taken can be read again");
    assert!(status.to_string().len() < limits::SYNC_STATUS);
}

/// A rule of this name, whose dependency is this.
fn rule(name: &str, dependency: &str) -> Stage<GlobalDependencyDoor> {
    let mut stage = Stage::new(&format!(
        "{{apiVersion: linchpin.dev/v1alpha1, kind: GlobalDependency, metadata: {{name: {name}}}, spec: {{\
         serviceAccount: {{namespace: mesh, name: viewer}}, dependency: {dependency}}}}}"
    ));
    stage.customs.extend(super::stage("{source: {objects: []}}").customs);
    stage
}

fn message(stage: &mut Stage<GlobalDependencyDoor>) -> String {
    let status: Value = serde_json::to_value(stage.status()).expect("a status");
    status["message"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn a_rule_says_which_namespace_and_the_thirty_third_says_that_it_holds_nobody() {
    for dependency in
        ["{object: {resource: deployment/mesh}}", "{objects: {kind: Pod, selector: {matchLabels: {a: b}}}}"]
    {
        let mut nameless = rule("mesh", dependency);
        nameless.settle();
        assert!(
            message(&mut nameless).contains("name the namespace"),
            "{dependency}: {}",
            message(&mut nameless)
        );
    }
    let mut last = rule("r99", "{object: {resource: deployment/mesh, namespace: mesh}}");
    for number in 0..limits::GLOBAL_RULES {
        last.put(json!({"apiVersion": "linchpin.dev/v1alpha1", "kind": "GlobalDependency",
            "metadata": {"name": format!("r{number:02}")}, "spec": {"dependency": {}}}));
    }
    last.settle();
    let told = message(&mut last);
    assert!(told.contains("32 global rules are imposed") && told.contains("holds nobody"), "{told}");
}

#[test]
fn two_hundred_and_fifty_six_capabilities_count_and_the_next_one_says_that_it_provides_nothing() {
    let capability = |name: &str| {
        json!({"apiVersion": "linchpin.dev/v1alpha1", "kind": "Capability", "metadata": {"name": name},
            "spec": {}, "status": {"observedGeneration": 1, "conditions": [{"type": "Ready", "status": "True",
            "reason": "x", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z",
            "observedGeneration": 1}]}})
    };
    let mut last = Stage::<CapabilityDoor>::new(&capability("c999").to_string());
    let mut sync = stage(&depending("{name: c, capability: {name: c999}}"));
    last.customs.extend(stage("{source: {objects: []}}").customs);
    sync.put(capability("c999"));
    for number in 1..limits::CAPABILITIES {
        last.put(capability(&format!("c{number:03}")));
        sync.put(capability(&format!("c{number:03}")));
    }
    last.settle();
    sync.settle();
    assert_eq!(sync.done(), ["apply ConfigMap own/a"], "the last one that counts");
    let status: Value = serde_json::to_value(last.status()).expect("a status");
    assert_eq!(status["phase"], "Ready", "{status:#}");

    let mut sync = stage(&depending("{name: c, capability: {name: c999}}"));
    sync.put(capability("c999"));
    for number in 0..limits::CAPABILITIES {
        last.put(capability(&format!("c{number:03}")));
        sync.put(capability(&format!("c{number:03}")));
    }
    last.settle();
    sync.settle();
    let status: Value = serde_json::to_value(last.status()).expect("a status");
    let told = status["message"].as_str().unwrap_or_default();
    assert!(told.contains("256 capabilities count") && told.contains("provides nothing"), "{status:#}");
    assert_eq!(sync.done(), [] as [&str; 0]);
    let status = shown(&mut sync);
    assert_eq!(condition(&status, "EnvironmentReady")["reason"], "CapabilityMissing", "{status:#}");
}

#[test]
fn a_sync_that_has_applied_nothing_is_not_defined_and_is_linked_all_the_same() {
    let revisions = |observed: &str, applied: Option<&str>, ready: &str| {
        json!({"observedGeneration": 1, "observedRevision": observed, "lastAppliedRevision": applied, "version": "1",
            "conditions": [{"type": "Ready", "status": ready, "reason": "x", "observedGeneration": 1}]})
    };
    for (entry, status, state, reason) in [
        ("state: Defined", revisions("r", None, "False"), "Absent", "NotReady"),
        ("state: Available", revisions("r", None, "False"), "Absent", "x"),
        ("state: Available", revisions("r2", Some("r1"), "False"), "Absent", "x"),
        ("state: Available", revisions("r", Some("r"), "False"), "Defined", "x"),
        ("state: Completed", revisions("r", Some("r"), "False"), "Defined", "NotReady"),
        ("version: '>=2'", revisions("r", Some("r"), "True"), "Available", "VersionNotMet"),
    ] {
        let mut stage = stage(&depending(&format!("{{name: db, sync: {{name: db}}, {entry}}}")));
        stage.put(other("db", &status)).settle();
        let shown = shown(&mut stage);
        let row = &shown["dependencies"][0];
        assert_eq!(
            (&row["state"], &row["reason"]),
            (&json!(state), &json!(reason)),
            "{entry} {status}: {row:#}"
        );
        assert_eq!(row["met"], false, "{entry} {status}");
        assert_eq!(condition(&shown, "Linked")["status"], "True", "{entry} {status}");
    }
    let mut gone = stage(&depending("{name: db, sync: {name: db}, timeout: 1m}"));
    gone.settle();
    gone.pass(60).settle();
    let shown = shown(&mut gone);
    assert_eq!(shown["message"], "timed out: says it depends on Sync own/db, which isn't present");
    assert_eq!(condition(&shown, "Linked")["reason"], "NothingProvides");
}

#[test]
fn an_expression_on_a_capability_sees_its_name_and_its_version_whoever_provides_it() {
    let entry = "{name: pg, capability: {name: postgres.db.example}, \
                 readyExpr: 'dep.name == \"postgres.db.example\" && dep.version == \"15\"'}";
    let mut stage = stage(&depending(entry));
    let mut db = other("db", &ready("r", "1.0.0"));
    db["spec"]["provides"] = json!([{"capability": "postgres.db.example", "version": "14"}]);
    stage.put(db.clone()).settle();
    let row = shown(&mut stage)["dependencies"][0].clone();
    assert_eq!((&row["met"], &row["observedVersion"]), (&json!(false), &json!("14")), "{row:#}");
    db["spec"]["provides"][0]["version"] = json!("15");
    stage.put(db).settle();
    assert_eq!(stage.done(), ["apply ConfigMap own/a"]);
}

#[test]
fn a_missing_capability_is_told_with_what_there_is_instead_in_the_cluster_and_in_the_namespace() {
    let mut stage = stage(&depending("{name: ci, capability: {name: ci.example}}"));
    let mut db = other("db", &ready("r", "1.0.0"));
    db["spec"]["provides"] = json!([{"capability": "postgres.db.example"}]);
    let mesh = json!({"apiVersion": "linchpin.dev/v1alpha1", "kind": "Capability", "metadata": {"name": "mesh"}, "spec": {}});
    stage.put(db).put(mesh).settle();
    assert_eq!(
        shown(&mut stage)["message"],
        "needs ci.example in this cluster, which nothing provides (there are: mesh, postgres.db.example); it is never \
         installed for you"
    );
}

#[test]
fn a_kind_that_must_be_served_is_called_with_its_group_and_version_as_far_as_it_has_them() {
    for (api, told) in [
        ("{group: tekton.dev, version: v1, kind: Pipeline}", "Pipeline tekton.dev/v1"),
        ("{group: tekton.dev, kind: Pipeline}", "Pipeline tekton.dev"),
        ("{version: v1, kind: Pipeline}", "Pipeline v1"),
        ("{kind: Pipeline}", "Pipeline"),
    ] {
        let mut stage = stage(&depending(&format!("{{name: ci, capability: {{api: {api}}}}}")));
        stage.settle();
        let status = shown(&mut stage);
        assert_eq!(status["dependencies"][0]["dependsOn"], format!("Capability {told}"));
        assert_eq!(
            status["message"],
            format!("needs {told} in this cluster, which nothing provides; it is never installed for you")
        );
    }
}

#[test]
fn of_several_objects_those_that_count_must_have_the_version_and_others_hold_nothing() {
    let released = |name: &str, version: &str| {
        let mut released = config_map("own", name, &json!({"version": version}));
        released["metadata"]["labels"] = json!({"app": "pg", "app.kubernetes.io/version": version});
        released
    };
    for (expect, path, all, told) in [
        ("atLeast: 2", "", ["1.24", "v1.30", "1.9"], ""),
        ("atLeast: 2", "", ["1.24", "1.30", "main"], ""),
        ("atLeast: 2", ", versionPath: .data.version", ["1.24", "1.30", "1.9"], ""),
        ("atLeast: 2", "", ["1.24", "1.9", "1.9"], "ConfigMap own/b is at 1.9, needs >=1.24 !=2"),
        ("atLeast: 3", "", ["1.24", "1.30", "2"], "ConfigMap own/c is at 2, needs >=1.24 !=2"),
        ("all: true", "", ["1.24", "1.30", "1.9"], "ConfigMap own/c is at 1.9, needs >=1.24 !=2"),
    ] {
        let mut stage = stage(&depending(&format!(
            "{{name: pg, objects: {{kind: ConfigMap, selector: {{matchLabels: {{app: pg}}}}, expect: {{{expect}}}}}, \
             version: '>=1.24 !=2'{path}}}"
        )));
        for (name, version) in ["a", "b", "c"].iter().zip(all) {
            stage.put(released(name, version));
        }
        stage.settle();
        let status = shown(&mut stage);
        if told.is_empty() {
            assert_eq!(stage.done(), ["apply ConfigMap own/a"], "{expect} {all:?}: {status:#}");
        } else {
            assert_eq!(status["message"], told, "{expect} {all:?}");
        }
    }
    // "Version and state must hold of one and the same observation."
    let mut stage = stage(&depending(
        "{name: pg, objects: {apiVersion: apps/v1, kind: Deployment, selector: {matchLabels: {app: pg}}, \
         expect: {atLeast: 2}}, version: '>=14'}",
    ));
    for (name, version, ready) in [("a", "14", 0), ("b", "15", 1), ("c", "13", 1)] {
        let mut released = deployment("own", name, ready);
        released["metadata"]["labels"] = json!({"app": "pg", "app.kubernetes.io/version": version});
        stage.put(released);
    }
    stage.settle();
    let status = shown(&mut stage);
    let message = status["message"].as_str().expect("a message");
    assert!(message.contains("1 of 3 matching objects are Ready, at least 2 wanted"), "{message}");
    assert_eq!(status["dependencies"][0]["reason"], "CountNotMet");
}

#[test]
fn what_holds_no_transition_is_not_lost_when_it_is_not_there() {
    for (entry, ready, reason) in [
        ("{name: d, sync: {name: db}, gates: [Delete]}", "DependenciesReady", "DependencyNotReady"),
        (
            "{name: d, capability: {name: ci.example}, gates: [Delete]}",
            "DependenciesReady",
            "CapabilityMissing",
        ),
        (
            "{name: d, capability: {name: ci.example}, gates: [Delete]}",
            "EnvironmentReady",
            "CapabilityMissing",
        ),
    ] {
        let mut stage = stage(&depending(entry));
        stage.settle();
        assert_eq!(stage.done(), ["apply ConfigMap own/a"], "{entry}");
        let status = shown(&mut stage);
        assert_eq!(status["phase"], "Synced");
        assert_eq!(condition(&status, ready)["reason"], reason, "{entry}: {status:#}");
    }
}

#[test]
fn a_new_version_of_the_same_objects_is_said_and_nothing_is_written() {
    let mut stage = stage(&format!("{{version: 1.0.0, {}", &depending("")[1..]));
    stage.settle();
    assert_eq!(stage.done(), ["apply ConfigMap own/a"]);
    assert_eq!(shown(&mut stage)["version"], "1.0.0");
    stage.edit(|object| object["spec"]["version"] = json!("2.0.0")).settle();
    assert_eq!(stage.done(), [] as [&str; 0]);
    let status = shown(&mut stage);
    assert_eq!((&status["version"], &status["phase"]), (&json!("2.0.0"), &json!("Synced")), "{status:#}");
}

#[test]
fn a_capability_that_was_gone_past_is_missing_and_not_lost() {
    let entry = "{name: ci, capability: {name: ci.example}, strength: Soft, patience: 1m}";
    let mut stage = stage(&depending(entry));
    stage.settle();
    stage.pass(60).settle();
    assert_eq!(stage.done(), ["apply ConfigMap own/a"]);
    let status = shown(&mut stage);
    assert_eq!(status["brokenSoft"], json!(["ci"]));
    assert_eq!(condition(&status, "EnvironmentReady")["reason"], "CapabilityMissing");
}

#[test]
fn what_has_failed_is_told_before_what_is_not_there_and_an_export_is_waited_for_as_its_sync() {
    let entries = "{name: a, sync: {name: a}, export: e}, {name: b, sync: {name: b}}";
    let mut stage = stage(&depending(entries));
    let stalled = json!({"observedGeneration": 1, "conditions": [
        {"type": "Ready", "status": "False", "reason": "SourceEmpty", "observedGeneration": 1},
        {"type": "Stalled", "status": "True", "reason": "SourceEmpty", "observedGeneration": 1}]});
    stage.settle();
    assert_eq!(shown(&mut stage)["waitingOn"], json!(["Sync own/a", "Sync own/b"]));
    stage.put(other("b", &stalled)).settle();
    let status = shown(&mut stage);
    assert_eq!(status["phase"], "Failed");
    for kind in ["Ready", "DependenciesReady", "Stalled"] {
        assert_eq!(condition(&status, kind)["reason"], "DependencyFailed", "{kind}");
    }
}

#[test]
fn a_suspended_sync_says_what_it_would_wait_for_and_where_nothing_is_missing_that_it_is_suspended() {
    const SUSPENDED: &str = "the object is suspended: nothing starts and no clock runs";
    let source = format!("suspend: true, source: {{objects: [{}]}}", map("a"));
    let mut stage = stage(&format!("{{{source}, dependencies: [{{name: db, sync: {{name: db}}}}]}}"));
    stage.settle();
    let status = shown(&mut stage);
    let row = &status["dependencies"][0];
    assert_eq!(status["phase"], "Suspended");
    assert_eq!(row["message"], "says it depends on Sync own/db, which isn't present", "{row:#}");
    assert_eq!(status["resources"][0]["message"], "waits for Sync own/db");
    stage.put(other("db", &ready("r", "1"))).settle();
    let row = shown(&mut stage)["dependencies"][0].clone();
    assert_eq!((&row["reason"], &row["message"]), (&json!("Suspended"), &json!(SUSPENDED)), "{row:#}");
    let mut free = super::stage(&format!("{{{source}}}"));
    free.settle();
    let row = shown(&mut free)["resources"][0].clone();
    assert_eq!((&row["reason"], &row["message"]), (&json!("Suspended"), &json!(SUSPENDED)), "{row:#}");
    let edges = free.report().edges.iter();
    let causes =
        edges.filter(|edge| matches!(&edge.relation, Relation::WaitsFor(wait) if !is_in_line(&wait.reason)));
    assert_eq!(causes.count(), 0, "what it makes itself is no cause");
}

#[test]
fn what_was_not_done_within_the_global_timeout_says_so_and_what_was_missing() {
    let mut stage =
        stage(&format!("{{globalTimeout: 1m, {}", &depending("{name: db, sync: {name: db}}")[1..]));
    stage.settle();
    stage.pass(60).settle();
    let status = shown(&mut stage);
    let told = "the whole object was not done within its global timeout: says it depends on Sync own/db, which isn't present";
    assert_eq!((&status["phase"], &status["message"]), (&json!("Failed"), &json!(told)));
    assert_eq!(condition(&status, "Ready")["reason"], "GlobalTimeout");
}

#[test]
fn what_is_to_be_absent_needs_nobody_to_provide_it() {
    let mut stage = stage(&depending("{name: old, object: {resource: configmap/old}, state: Absent}"));
    let old = config_map("own", "old", &json!({}));
    stage.put(old.clone()).settle();
    assert_eq!(stage.done(), [] as [&str; 0], "it is there");
    stage.take(&old).settle();
    assert_eq!(stage.done(), ["apply ConfigMap own/a"]);
    assert_eq!(condition(&shown(&mut stage), "Linked")["reason"], "AllLinked");
}
