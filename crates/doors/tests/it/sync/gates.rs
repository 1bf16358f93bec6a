//! What holds a transition: states, strength, latches, versions, revisions, exports, capabilities, rules.

use serde_json::{Value, json};

use super::{condition, map, other, ready, shown, stage};
use crate::things::{config_map, deployment};

/// A Sync of one ConfigMap with these dependencies.
fn depending(dependencies: &str) -> String {
    format!("{{source: {{objects: [{}]}}, dependencies: [{dependencies}]}}", map("a"))
}

#[test]
fn before_the_sync_controller_applies_configuration_it_checks_the_requirements_and_defers() {
    let mut stage = stage(&depending("{name: db, sync: {name: db}}"));
    stage.settle();
    assert_eq!(stage.done(), [] as [&str; 0]);
    let status = shown(&mut stage);
    assert_eq!(status["phase"], "Waiting");
    assert_eq!(status["message"], "says it depends on Sync own/db, which isn't present");
    assert_eq!(condition(&status, "DependenciesReady")["reason"], "DependencyNotReady");
    assert_eq!(condition(&status, "Linked")["reason"], "NothingProvides");
    let row = &status["dependencies"][0];
    assert_eq!(
        (&row["dependsOn"], &row["relation"], &row["strength"], &row["state"], &row["met"]),
        (
            &json!("Sync own/db"),
            &json!("Available ← Defined"),
            &json!("Hard"),
            &json!("Absent"),
            &json!(false)
        )
    );
    assert_eq!(status["waitingOn"], json!(["Sync own/db"]));
    assert_eq!(status["blockedBy"][0]["step"], "dependency:db");
    stage.put(other("db", &json!({"observedGeneration": -1}))).settle();
    assert_eq!(condition(&shown(&mut stage), "Linked")["status"], "True", "linked, ready or not");
    stage.put(other("db", &ready("r1", "1.0"))).settle();
    assert_eq!(stage.done(), ["apply ConfigMap own/a"]);
    let status = shown(&mut stage);
    assert_eq!(condition(&status, "DependenciesReady")["reason"], "Met");
    assert_eq!(status["dependencies"][0]["observedVersion"], "1.0");
    stage.put(other("db", &json!({"observedGeneration": 1}))).settle();
    let status = shown(&mut stage);
    assert_eq!(condition(&status, "DependenciesReady")["reason"], "DependencyLost");
    assert_eq!(condition(&status, "Ready")["status"], "True", "an admitted transition stays admitted");
}

#[test]
fn the_rfcs_sentences_are_said() {
    for (entry, told) in [
        (
            "{name: t, object: {resource: secret/token}}",
            "says it depends on Secret own/token, which isn't present, and no Sync provides it",
        ),
        (
            "{name: p, object: {resource: pipeline.tekton.dev/build}}",
            "says it depends on Pipeline.tekton.dev own/build, whose kind the cluster does not serve",
        ),
        (
            "{name: t, capability: {name: pipelines.tekton.dev}}",
            "needs pipelines.tekton.dev in this cluster, which nothing provides; it is never installed for you",
        ),
        (
            "{name: t, capability: {api: {group: tekton.dev, version: v1, kind: Pipeline}}}",
            "needs Pipeline tekton.dev/v1 in this cluster, which nothing provides; it is never installed for you",
        ),
    ] {
        let mut stage = stage(&depending(entry));
        stage.settle();
        let status = shown(&mut stage);
        assert_eq!(status["message"], told, "{status:#}");
        assert_eq!(condition(&status, "Linked")["reason"], "NothingProvides", "{entry}");
        assert_eq!(stage.done(), [] as [&str; 0]);
    }
}

#[test]
fn a_soft_dependency_is_waited_for_with_patience_and_then_broken() {
    let mut stage =
        stage(&depending("{name: cache, sync: {name: cache}, neededFor: Available, patience: 10m}"));
    stage.settle();
    assert_eq!(shown(&mut stage)["dependencies"][0]["strength"], "Soft", "Available ← Available");
    stage.pass(599).settle();
    assert_eq!(stage.done(), [] as [&str; 0]);
    stage.pass(1).settle();
    assert_eq!(stage.done(), ["apply ConfigMap own/a"]);
    let status = shown(&mut stage);
    assert_eq!(status["brokenSoft"], json!(["cache"]), "{status:#}");
    assert_eq!(status["dependencies"][0]["broken"], true);
    assert_eq!(condition(&status, "DependenciesReady")["reason"], "SoftBroken");
    assert_eq!(condition(&status, "DependenciesReady")["status"], "True");
    stage.put(other("cache", &ready("r", "1"))).settle();
    let status = shown(&mut stage);
    assert_eq!(condition(&status, "DependenciesReady")["reason"], "Met", "cleared when it is met");
    assert_eq!(status.get("brokenSoft"), None);
}

#[test]
fn i_need_to_update_the_database_for_my_app_before_i_can_update_the_web_service() {
    let mut stage = stage(&depending("{name: db, sync: {name: db}, version: '>=2 <3'}"));
    stage.put(other("db", &ready("r1", "1.0.0"))).settle();
    let status = shown(&mut stage);
    assert_eq!(status["message"], "Sync own/db is at 1.0.0, needs >=2 <3");
    assert_eq!(condition(&status, "DependenciesReady")["reason"], "VersionNotMet");
    stage.put(other("db", &ready("r2", "main"))).settle();
    assert_eq!(shown(&mut stage)["dependencies"][0]["reason"], "VersionUnknown");
    stage.put(other("db", &ready("r2", "2.1"))).settle();
    assert_eq!(stage.done(), ["apply ConfigMap own/a"]);
}

#[test]
fn completion_is_a_one_way_gate_once_it_is_reached_the_dependency_is_fulfilled() {
    let mut stage = stage(&depending("{name: migrated, object: {resource: job/migrate}, state: Completed}"));
    let job = |status: serde_json::Value| {
        json!({"apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"namespace": "own", "name": "migrate"}, "spec": {}, "status": status})
    };
    stage.put(job(json!({"active": 1}))).settle();
    assert_eq!(shown(&mut stage)["dependencies"][0]["relation"], "Completed ← Defined");
    let done = job(json!({"succeeded": 1, "conditions": [{"type": "Complete", "status": "True"}]}));
    stage.put(done.clone()).settle();
    assert_eq!(stage.done(), ["apply ConfigMap own/a"]);
    let status = shown(&mut stage);
    assert!(status["dependencies"][0]["latchedAt"].is_string(), "{status:#}");
    stage.take(&done).settle();
    stage.edit(|object| object["spec"]["source"]["objects"][0]["data"] = json!({"k": "v"})).settle();
    assert_eq!(stage.done(), ["apply ConfigMap own/a"], "for good, also for the next update");
}

#[test]
fn adding_a_dependency_to_a_running_sync_writes_nothing_and_gates_the_next_transition() {
    let mut stage = stage(&depending(""));
    stage.settle();
    stage.done();
    stage
        .edit(|object| object["spec"]["dependencies"] = json!([{"name": "db", "sync": {"name": "db"}}]))
        .settle();
    let status = shown(&mut stage);
    assert_eq!(stage.done(), [] as [&str; 0]);
    assert_eq!(status["phase"], "Synced", "{status:#}");
    assert_eq!(condition(&status, "Ready")["status"], "True");
    stage.edit(|object| object["spec"]["source"]["objects"][0]["data"] = json!({"k": "v"})).settle();
    assert_eq!(stage.done(), [] as [&str; 0]);
    assert_eq!(shown(&mut stage)["phase"], "Waiting");
    stage.edit(|object| object["spec"]["dependencies"] = json!([])).settle();
    assert_eq!(stage.done(), ["apply ConfigMap own/a"], "taking it away frees at once");
}

#[test]
fn where_dependent_and_dependency_have_one_source_the_very_revision_must_be_applied() {
    let mut stage = stage(
        "{source: {configMapRef: {name: app, key: web}}, dependencies: [{name: db, sync: {name: db}}]}",
    );
    let source = |web: &str| config_map("own", "app", &json!({"web": web, "db": map("db")}));
    stage.put(source(&map("a"))).settle();
    let revision = shown(&mut stage)["observedRevision"].as_str().expect("a revision").to_owned();
    let db = |revision: &str| {
        let mut db = other("db", &ready(revision, "1"));
        db["spec"]["source"] = json!({"configMapRef": {"name": "app", "key": "db"}});
        db
    };
    stage.put(db("sha256:older")).settle();
    let status = shown(&mut stage);
    assert_eq!(condition(&status, "DependenciesReady")["reason"], "RevisionNotMet", "{status:#}");
    assert_eq!(stage.done(), [] as [&str; 0]);
    stage.put(db(&revision)).settle();
    assert_eq!(stage.done(), ["apply ConfigMap own/a"]);
}

#[test]
fn the_relation_must_break_if_the_export_is_no_longer_present() {
    let mut stage = stage(&depending("{name: db, sync: {name: db, export: primary}}"));
    let db = |exports: serde_json::Value, states: serde_json::Value| {
        let mut status = ready("r", "1");
        status["exports"] = states;
        let mut db = other("db", &status);
        db["spec"]["exports"] = exports;
        db
    };
    stage.put(db(json!([{"name": "rw"}, {"name": "ro"}]), json!([]))).settle();
    let status = shown(&mut stage);
    assert_eq!(
        status["message"],
        "says it depends on export primary of Sync own/db, which has no such export (it has: ro, rw)"
    );
    assert_eq!(condition(&status, "DependenciesReady")["reason"], "ExportMissing");
    let published = |state: &str| json!([{"name": "primary", "state": state}]);
    stage.put(db(json!([{"name": "primary"}]), published("Defined"))).settle();
    let status = shown(&mut stage);
    assert_eq!(status["message"], "waits for export primary of Sync own/db: it is not Available yet");
    assert_eq!(status["blockedBy"][0]["reason"], "NotReady", "{status:#}");
    stage.put(db(json!([{"name": "primary"}]), published("Available"))).settle();
    assert_eq!(stage.done(), ["apply ConfigMap own/a"]);
}

#[test]
fn a_ready_expression_sees_the_dependency_and_this_sync() {
    let mut stage = stage(
        "{version: '7', source: {objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}]}, dependencies: [
           {name: db, object: {resource: deployment/db}, readyExpr: 'dep.metadata.labels.shards == self.spec.version'}]}",
    );
    let mut db = deployment("own", "db", 1);
    db["metadata"]["labels"] = json!({"shards": "6"});
    stage.put(db.clone()).settle();
    assert_eq!(stage.done(), [] as [&str; 0]);
    db["metadata"]["labels"] = json!({"shards": "7"});
    stage.put(db).settle();
    assert_eq!(stage.done(), ["apply ConfigMap own/a"]);
}

#[test]
fn a_capability_is_an_object_that_is_ready_or_what_a_sync_of_the_namespace_provides() {
    let mut stage = stage(&depending("{name: pg, capability: {name: postgres.db.example}, version: '>=15'}"));
    stage.settle();
    let status = shown(&mut stage);
    assert_eq!(condition(&status, "EnvironmentReady")["reason"], "CapabilityMissing", "{status:#}");
    let mut db = other("db", &ready("r", "1"));
    db["spec"]["provides"] = json!([{"capability": "postgres.db.example", "version": "14"}]);
    stage.put(db.clone()).settle();
    assert_eq!(shown(&mut stage)["message"], "Capability postgres.db.example is at 14, needs >=15");
    db["spec"]["provides"][0]["version"] = json!("15");
    stage.put(db.clone()).settle();
    assert_eq!(stage.done(), ["apply ConfigMap own/a"]);
    assert_eq!(condition(&shown(&mut stage), "EnvironmentReady")["status"], "True");
    stage.take(&db).settle();
    assert_eq!(condition(&shown(&mut stage), "EnvironmentReady")["reason"], "CapabilityLost");
}

#[test]
fn whoever_of_several_is_ready_and_has_the_version_provides_a_capability() {
    let said = |ready: &str, version: &str| {
        json!({"observedGeneration": 1, "version": version,
            "conditions": [{"type": "Ready", "status": ready, "reason": "x", "observedGeneration": 1}]})
    };
    let capability = |status: Value| {
        json!({"apiVersion": "linchpin.dev/v1alpha1", "kind": "Capability", "metadata": {"name": "pg.example"},
            "spec": {}, "status": status})
    };
    let sync = |name: &str, status: Value| {
        let mut sync = other(name, &status);
        sync["spec"]["provides"] = json!([{"capability": "pg.example"}]);
        sync
    };
    let held = "waits for Capability pg.example: it is not ready: x";
    let old = "Capability pg.example is at 14, needs >=15";
    for (all, told) in [
        (vec![capability(said("False", "15")), sync("a", said("True", "15"))], ""),
        (vec![capability(said("True", "15")), sync("a", said("False", "15"))], ""),
        (vec![capability(said("True", "14")), sync("a", said("True", "15"))], ""),
        (
            vec![
                sync("a", said("False", "15")),
                sync("b", said("True", "14")),
                sync("c", said("True", "15")),
            ],
            "",
        ),
        (vec![sync("a", said("False", "15")), sync("b", said("False", "15"))], held),
        (vec![sync("a", said("False", "15")), sync("b", said("True", "14"))], old),
    ] {
        let mut stage = stage(&depending("{name: pg, capability: {name: pg.example}, version: '>=15'}"));
        for one in &all {
            stage.put(one.clone());
        }
        stage.settle();
        let status = shown(&mut stage);
        if told.is_empty() {
            assert_eq!(stage.done(), ["apply ConfigMap own/a"], "{all:?}: {status:#}");
        } else {
            assert_eq!(status["message"], told, "{all:?}: {status:#}");
        }
    }
}

#[test]
fn a_global_rule_is_imposed_on_all_syncs_that_make_pods() {
    let rule = |ready: &str| {
        json!({"apiVersion": "linchpin.dev/v1alpha1", "kind": "GlobalDependency",
        "metadata": {"name": "mesh"}, "spec": {"dependency": {"capability": {"name": "mesh"}}},
        "status": {"observedGeneration": 1,
            "conditions": [{"type": "Ready", "status": ready, "reason": "x", "observedGeneration": 1}]}})
    };
    let pods = "{source: {objects: [{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {template: {spec: \
                {containers: [{name: c}]}}}}]}}";
    let mut held = stage(pods);
    held.put(rule("False")).settle();
    assert_eq!(held.done(), [] as [&str; 0]);
    let status = shown(&mut held);
    assert_eq!(status["dependencies"][0]["name"], "global:mesh");
    assert!(
        status["message"].as_str().expect("a message").starts_with("waits for GlobalDependency mesh"),
        "{status:#}"
    );
    held.put(rule("True")).settle();
    assert_eq!(held.done(), ["apply Deployment own/a"]);
    let mut free = stage(&depending(""));
    free.put(rule("False")).settle();
    assert_eq!(free.done(), ["apply ConfigMap own/a"], "what makes no pods is no subject");
}

#[test]
fn what_schema_and_cel_cannot_tell_is_stalled_with_the_field() {
    for (entry, field) in [
        ("{name: a, sync: {name: x}, version: '^1'}", "spec.dependencies[0].version"),
        ("{name: a, sync: {name: web, namespace: own}}", "spec.dependencies[0].sync"),
        ("{name: a, sync: {name: x}, readyExpr: 'dep.('}", "spec.dependencies[0].readyExpr"),
        ("{name: a, object: {resource: 'x y/z'}}", "spec.dependencies[0].object.resource"),
        ("{name: a, capability: {api: {kind: Pod}}, version: '>=1'}", "spec.dependencies[0].version"),
        ("{name: a, capability: {api: {kind: Pod}}, readyExpr: 'false'}", "spec.dependencies[0].readyExpr"),
    ] {
        let mut stage = stage(&depending(entry));
        stage.settle();
        let status = shown(&mut stage);
        assert_eq!(condition(&status, "Stalled")["reason"], "SpecInvalid", "{entry}: {status:#}");
        let message = status["message"].as_str().expect("a message");
        assert!(message.starts_with(field), "{message}");
    }
}

#[test]
fn while_an_update_is_held_what_it_does_not_change_is_repaired_and_what_it_does_is_told_as_held() {
    let source = format!("{{objects: [{}, {}]}}", map("a"), map("b"));
    let mut stage = stage(&format!(
        "{{source: {source}, dependencies: [{{name: db, sync: {{name: db}}, version: '>=2', gates: [Update]}}]}}"
    ));
    stage.put(other("db", &ready("r", "1"))).settle();
    assert_eq!(stage.done(), ["apply ConfigMap own/a", "apply ConfigMap own/b"]);
    let status = shown(&mut stage);
    assert_eq!(
        condition(&status, "RequirementViolated")["reason"],
        "VersionNotMet",
        "applied, and not at a version that it needs"
    );
    stage.edit(|object| object["spec"]["source"]["objects"][0]["data"] = json!({"k": "v"})).settle();
    assert_eq!(stage.done(), [] as [&str; 0]);
    let status = shown(&mut stage);
    assert_eq!(status["resources"][0]["reason"], "WaitingForStep", "{status:#}");
    assert_eq!(condition(&status, "RequirementViolated"), &json!(null));
    for name in ["a", "b"] {
        stage.take(&config_map("own", name, &json!({})));
    }
    stage.settle();
    assert_eq!(stage.done(), ["apply ConfigMap own/b"], "its old body is no longer at hand");
    let status = shown(&mut stage);
    assert_eq!(status["resources"][0]["reason"], "DriftHeld", "{status:#}");
    stage.put(other("db", &ready("r", "2"))).settle();
    assert_eq!(stage.done(), ["apply ConfigMap own/a"]);
    assert_eq!(condition(&shown(&mut stage), "RequirementViolated"), &json!(null));
}

#[test]
fn a_latch_is_opened_again_by_hand() {
    let mut stage = stage(&depending("{name: seen, object: {resource: configmap/seen}, latch: Once}"));
    let seen = config_map("own", "seen", &json!({}));
    stage.put(seen.clone()).settle();
    assert_eq!(stage.done(), ["apply ConfigMap own/a"]);
    stage.take(&seen).annotate("linchpin.dev/rerun", "seen@1").settle();
    let status = shown(&mut stage);
    assert_eq!(status["dependencies"][0]["met"], false, "{status:#}");
    assert_eq!(stage.done(), [] as [&str; 0], "what is admitted stays admitted");
    stage.edit(|object| object["spec"]["source"]["objects"][0]["data"] = json!({"k": "v"})).settle();
    assert_eq!(shown(&mut stage)["phase"], "Waiting");
}

#[test]
fn what_leaves_the_source_stays_when_nothing_is_to_be_pruned_from_now_on() {
    let mut stage = stage(&format!("{{source: {{objects: [{}, {}]}}}}", map("a"), map("b")));
    stage.settle();
    stage.done();
    stage
        .edit(|object| {
            object["spec"]["prune"] = json!(false);
            object["spec"]["source"]["objects"] =
                json!([{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}]);
        })
        .settle();
    assert_eq!(stage.done(), [] as [&str; 0]);
    stage.edit(|object| object["spec"]["prune"] = json!(true)).settle();
    assert_eq!(stage.done(), ["delete configmap own/b"]);
}

#[test]
fn a_dependency_that_failed_and_is_gone_is_merely_waited_for_again() {
    let mut stage = stage(&depending(
        "{name: job, object: {resource: job/migrate}, state: Completed}, {name: go, object: {resource: configmap/go}}",
    ));
    let failed = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"namespace": "own", "name": "migrate"},
        "spec": {}, "status": {"failed": 1, "conditions": [{"type": "Failed", "status": "True"}]}});
    stage.put(failed.clone()).settle();
    let status = shown(&mut stage);
    assert_eq!(
        (&status["phase"], &condition(&status, "Ready")["reason"]),
        (&json!("Failed"), &json!("DependencyFailed"))
    );
    stage.take(&failed).settle();
    let status = shown(&mut stage);
    assert_eq!(status["phase"], "Waiting", "{status:#}");
    assert!(status["message"].as_str().is_some_and(|text| text.contains("Job own/migrate")), "{status:#}");
    assert_ne!(condition(&status, "Stalled")["status"], "True");
    stage.put(failed).settle();
    assert_eq!(shown(&mut stage)["phase"], "Failed", "and fails again");
    assert_eq!(stage.done(), [] as [&str; 0]);
}

#[test]
fn what_ran_out_of_time_stays_failed_until_all_holds_and_always_says_why() {
    let mut stage = stage(&depending(
        "{name: one, object: {resource: configmap/one}, timeout: 10s}, {name: two, object: {resource: configmap/two}}",
    ));
    stage.settle();
    stage.pass(11).settle();
    let status = shown(&mut stage);
    assert_eq!(
        (&status["phase"], &condition(&status, "Ready")["reason"]),
        (&json!("Failed"), &json!("TimedOut"))
    );
    stage.put(config_map("own", "one", &json!({}))).settle();
    let status = shown(&mut stage);
    assert_eq!(status["phase"], "Failed", "after a timeout nothing starts before all requirements hold");
    assert!(status["message"].as_str().is_some_and(|text| text.contains("ConfigMap own/two")), "{status:#}");
    stage.put(config_map("own", "two", &json!({}))).settle();
    assert_eq!(stage.done(), ["apply ConfigMap own/a"]);
}

#[test]
fn an_order_to_proceed_passes_one_revision_and_the_next_only_if_it_is_given_again() {
    let mut stage = stage(
        "{source: {configMapRef: {name: set}}, dependencies: [{name: go, object: {resource: configmap/go}}]}",
    );
    let set = |value: &str| {
        let text =
            format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: a}}, data: {{k: {value}}}}}");
        config_map("own", "set", &json!({"a.yaml": text}))
    };
    stage.put(set("one")).annotate("linchpin.dev/proceed", "go@1").settle();
    assert_eq!(stage.done(), ["apply ConfigMap own/a"]);
    stage.put(set("two")).settle();
    assert_eq!((stage.done().len(), &shown(&mut stage)["phase"]), (0, &json!("Waiting")), "it is used up");
    stage.annotate("linchpin.dev/proceed", "").settle();
    stage.annotate("linchpin.dev/proceed", "go@1").settle();
    assert_eq!(stage.done(), ["apply ConfigMap own/a"], "taken away and given again, it is a new order");
}
