//! Sync, judged by what the engine does with its plans: gates, order, sources, versions, status.

mod contract;
mod deletion;
mod gates;
mod latches;
mod transitions;

use linchpin_doors::SyncDoor;
use linchpin_words::Gvk;
use serde_json::{Value, json};

use crate::{
    stage::{Custom, Stage},
    things::{config_map, definition, deployment, namespace},
};

/// A Sync named `web` in the namespace `own`, in a cluster that serves our kinds.
pub(crate) fn stage(spec: &str) -> Stage<SyncDoor> {
    let mut stage = Stage::new(&format!(
        "{{apiVersion: linchpin.dev/v1alpha1, kind: Sync, metadata: {{name: web}}, spec: {spec}}}"
    ));
    for (kind, plural, namespaced) in [
        ("Sync", "syncs", true),
        ("GlobalDependency", "globaldependencies", false),
        ("Capability", "capabilities", false),
    ] {
        stage.customs.push(Custom { kind: Gvk::new("linchpin.dev", "v1alpha1", kind), plural, namespaced });
    }
    stage
}

/// A ConfigMap as a source has it.
pub(crate) fn map(name: &str) -> String {
    format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}}}}}")
}

/// Another Sync, with this status.
pub(crate) fn other(name: &str, status: &Value) -> Value {
    json!({"apiVersion": "linchpin.dev/v1alpha1", "kind": "Sync", "metadata": {"namespace": "own", "name": name},
        "spec": {"source": {"objects": []}}, "status": status})
}

/// The status of a Sync that is ready with this revision and version.
pub(crate) fn ready(revision: &str, version: &str) -> Value {
    json!({"observedGeneration": 1, "observedRevision": revision, "lastAppliedRevision": revision,
        "lastReadyRevision": revision, "version": version,
        "conditions": [{"type": "Ready", "status": "True", "reason": "Synced", "observedGeneration": 1}]})
}

pub(crate) fn shown(stage: &mut Stage<SyncDoor>) -> Value {
    serde_json::to_value(stage.status()).expect("a status")
}

pub(crate) fn condition<'a>(status: &'a Value, kind: &str) -> &'a Value {
    let all = status["conditions"].as_array().expect("conditions");
    all.iter().find(|one| one["type"] == kind).unwrap_or(&Value::Null)
}

#[test]
fn a_sync_without_dependencies_is_complete() {
    let mut stage = stage(&format!("{{source: {{objects: [{}, {}]}}}}", map("a"), map("b")));
    stage.settle();
    assert_eq!(stage.done(), ["apply ConfigMap own/a", "apply ConfigMap own/b"]);
    let status = shown(&mut stage);
    assert_eq!(status["phase"], "Synced", "{status:#}");
    assert_eq!(condition(&status, "Ready")["reason"], "Synced");
    assert_eq!(condition(&status, "DependenciesReady")["reason"], "NoDependencies");
    assert_eq!(condition(&status, "SourceReady")["status"], "True");
    assert_eq!(condition(&status, "Linked")["status"], "True");
    assert_eq!(condition(&status, "EnvironmentReady"), &Value::Null);
    let revision = status["observedRevision"].as_str().expect("a revision");
    assert!(revision.starts_with("sha256:") && revision.len() == 71, "{revision}");
    for field in ["lastAttemptedRevision", "lastAppliedRevision", "lastReadyRevision"] {
        assert_eq!(status[field], revision, "{field}");
    }
    assert_eq!(status["source"]["revision"], revision);
    assert_eq!(status["progress"], json!({"layers": 1, "layer": 1, "objects": 2, "applied": 2, "ready": 2}));
    assert_eq!(
        status["resources"][0],
        json!({"apiVersion": "v1", "kind": "ConfigMap", "namespace": "own", "name": "a", "layer": 1, "state": "Ready"})
    );
    assert_eq!(stage.bodies[0]["metadata"]["labels"]["linchpin.dev/sync"], "web");
    stage.settle();
    assert_eq!(stage.done(), [] as [&str; 0], "an unchanged revision writes nothing");
}

#[test]
fn i_need_the_custom_resource_definitions_to_have_been_applied_before_i_can_create_my_custom_resources() {
    let mut stage = stage(
        "{source: {objects: [
          {apiVersion: example.com/v1, kind: Widget, metadata: {name: w, namespace: late}},
          {apiVersion: v1, kind: Namespace, metadata: {name: late}},
          {apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: widgets.example.com},
           spec: {group: example.com, scope: Namespaced, names: {kind: Widget, plural: widgets}}}]}}",
    );
    stage.settle();
    let mut done = stage.done();
    done.sort();
    assert_eq!(done, ["apply CustomResourceDefinition widgets.example.com", "apply Namespace late"]);
    let status = shown(&mut stage);
    assert_eq!(
        status["phase"], "Applying",
        "a kind that is not served yet is expected, never an error: {status:#}"
    );
    stage.put(namespace("late")).put(definition("example.com", "widgets", "Widget"));
    stage.customs.push(Custom {
        kind: Gvk::new("example.com", "v1", "Widget"),
        plural: "widgets",
        namespaced: true,
    });
    stage.settle();
    assert_eq!(stage.done(), ["apply Widget late/w"]);
    assert_eq!(shown(&mut stage)["resources"][0]["layer"], 2);
}

#[test]
fn a_definition_is_established_before_its_objects_also_where_another_version_of_the_kind_is_served() {
    let mut stage = stage(
        "{source: {objects: [{apiVersion: example.com/v1, kind: Widget, metadata: {name: w}},
          {apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: widgets.example.com},
           spec: {group: example.com, scope: Namespaced, names: {kind: Widget, plural: widgets}}}]}}",
    );
    stage.customs.push(Custom {
        kind: Gvk::new("example.com", "v1", "Widget"),
        plural: "widgets",
        namespaced: true,
    });
    stage.settle();
    assert_eq!(stage.done(), ["apply CustomResourceDefinition widgets.example.com"]);
    stage.put(definition("example.com", "widgets", "Widget")).settle();
    assert_eq!(stage.done(), ["apply Widget own/w"]);
}

#[test]
fn a_source_in_a_config_map_is_waited_for_followed_and_keeps_what_runs_when_it_goes() {
    let mut stage = stage("{source: {configMapRef: {name: app}}}");
    stage.settle();
    let status = shown(&mut stage);
    assert_eq!(status["phase"], "Waiting");
    assert_eq!(condition(&status, "SourceReady")["reason"], "SourceNotFound");
    assert_eq!(status["message"], "the source, ConfigMap own/app, isn't present");
    let mut source = config_map("own", "app", &json!({"a.yaml": map("a"), "b.yaml": map("b")}));
    source["metadata"]["labels"] = json!({"app.kubernetes.io/version": "1.2.0"});
    stage.put(source.clone()).settle();
    assert_eq!(stage.done(), ["apply ConfigMap own/a", "apply ConfigMap own/b"]);
    assert_eq!(shown(&mut stage)["version"], "1.2.0");
    stage.take(&source).settle();
    let status = shown(&mut stage);
    assert_eq!(stage.done(), [] as [&str; 0], "nothing is pruned by what is not known");
    assert_eq!(condition(&status, "SourceReady")["status"], "False");
    assert_eq!(condition(&status, "Ready")["status"], "True", "what runs, runs");
    assert_eq!(status["phase"], "Synced", "it is the source that waits: {status:#}");
    let fewer = config_map("own", "app", &json!({"a.yaml": map("a")}));
    stage.put(fewer).settle();
    assert_eq!(stage.done(), ["delete configmap own/b"]);
    assert_eq!(condition(&shown(&mut stage), "SourceReady")["status"], "True");
}

#[test]
fn a_source_in_a_secret_leaves_no_hash_and_no_text_of_it_anywhere() {
    let mut stage = stage("{source: {secretRef: {name: app, key: k}}}");
    // {apiVersion: v1, kind: Secret, metadata: {name: s}, stringData: {p: hunter2}}
    let text = "e2FwaVZlcnNpb246IHYxLCBraW5kOiBTZWNyZXQsIG1ldGFkYXRhOiB7bmFtZTogc30sIHN0cmluZ0RhdGE6IHtwOiBodW50ZXIyfX0=";
    stage.put(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "own", "name": "app"},
        "data": {"k": text}}));
    stage.settle();
    assert_eq!(stage.done(), ["apply Secret own/s"]);
    let status = shown(&mut stage);
    assert!(status["observedRevision"].as_str().expect("a revision").starts_with("uid-"), "{status:#}");
    assert!(!status.to_string().contains("hunter2"));
    let act = stage.plan().steps().iter().find_map(|step| step.action()).expect("an act");
    assert!(act.discreet);
    stage.put(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "own", "name": "app"},
        "data": {"k": "aHVudGVyMjogWw=="}}));
    stage.settle();
    let status = shown(&mut stage);
    assert_eq!(condition(&status, "Stalled")["reason"], "ManifestInvalid", "{status:#}");
    assert!(!status.to_string().contains("hunter2"), "{status:#}");
}

#[test]
fn one_key_of_a_secret_is_read_whatever_the_others_hold() {
    let mut stage = stage("{source: {secretRef: {name: app, key: manifests}}}");
    // {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}
    let text = "e2FwaVZlcnNpb246IHYxLCBraW5kOiBDb25maWdNYXAsIG1ldGFkYXRhOiB7bmFtZTogYX19";
    stage.put(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "own", "name": "app"},
        "data": {"manifests": text, "keystore": "/u3+7QAAAAI="}}));
    stage.settle();
    assert_eq!(stage.done(), ["apply ConfigMap own/a"]);
}

#[test]
fn an_own_object_of_a_kind_that_the_source_defines_is_known_by_every_name_of_the_kind() {
    for word in ["widget", "widgets", "widgets.example.com", "wi"] {
        let mut stage = stage(&format!(
            "{{dependencies: [{{name: w, object: {{resource: {word}/w}}}}], source: {{objects: [
              {{apiVersion: v1, kind: ConfigMap, metadata: {{name: after}}}},
              {{apiVersion: example.com/v1, kind: Widget, metadata: {{name: w}}}},
              {{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {{name: widgets.example.com}},
               spec: {{group: example.com, scope: Namespaced, names: {{kind: Widget, plural: widgets, shortNames: [wi]}}}}}}]}}}}",
        ));
        stage.settle();
        assert_eq!(stage.done(), ["apply CustomResourceDefinition widgets.example.com"], "{word}");
        let status = shown(&mut stage);
        assert_eq!(status["dependencies"][0]["dependsOn"], "Widget.example.com own/w", "{word}: {status:#}");
    }
}

#[test]
fn a_revision_that_is_refused_touches_nothing_and_says_what_and_where() {
    for (spec, reason, told) in [
        ("{source: {objects: []}}".to_owned(), "SourceEmpty", "allowEmpty"),
        (format!("{{source: {{objects: [{}, {}]}}}}", map("a"), map("a")), "ManifestInvalid", "ConfigMap own/a is given twice"),
        ("{source: {objects: [{kind: ConfigMap}]}}".to_owned(), "ManifestInvalid", "it has no apiVersion"),
        (
            "{source: {objects: [{apiVersion: v1, kind: Secret, metadata: {name: a}, sops: {}}]}}".to_owned(),
            "SourceUnsupported",
            "SOPS",
        ),
        (
            "{source: {objects: [{apiVersion: kustomize.config.k8s.io/v1beta1, kind: Kustomization}]}}".to_owned(),
            "SourceUnsupported",
            "kustomize build",
        ),
        (
            "{source: {objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {linchpin.dev/prune: maybe}}}]}}"
                .to_owned(),
            "ManifestInvalid",
            "annotation linchpin.dev/prune is \"true\" or \"false\"",
        ),
        (
            "{source: {objects: [
               {apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {config.kubernetes.io/depends-on: /namespaces/own/ConfigMap/b}}},
               {apiVersion: v1, kind: ConfigMap, metadata: {name: b, annotations: {config.kubernetes.io/depends-on: /namespaces/own/ConfigMap/a}}}]}}"
                .to_owned(),
            "Cycle",
            "ConfigMap own/a → ConfigMap own/b → ConfigMap own/a",
        ),
    ] {
        let mut stage = stage(&spec);
        stage.settle();
        let status = shown(&mut stage);
        assert_eq!(stage.done(), [] as [&str; 0]);
        assert_eq!(status["phase"], "Failed", "{spec}: {status:#}");
        assert_eq!(condition(&status, "Stalled")["status"], "True");
        assert_eq!(condition(&status, "SourceReady")["reason"], reason, "{spec}");
        let message = status["message"].as_str().expect("a message");
        assert!(message.contains(told), "{message}");
    }
}

#[test]
fn internal_dependencies_need_special_handling_since_they_alter_how_syncing_is_done() {
    let mut stage = stage(
        "{dependencies: [{name: db, object: {resource: deployment/db}}], source: {objects: [
           {apiVersion: apps/v1, kind: Deployment, metadata: {name: db}, spec: {replicas: 1}},
           {apiVersion: v1, kind: ConfigMap, metadata: {name: web}}]}}",
    );
    stage.settle();
    assert_eq!(stage.done(), ["apply Deployment own/db"], "mentioning it as a requirement is no circle");
    stage.put(deployment("own", "db", 1)).settle();
    assert_eq!(stage.done(), ["apply ConfigMap own/web"]);
    assert_eq!(shown(&mut stage)["phase"], "Synced");
}

#[test]
fn waves_are_kept_and_an_object_that_is_not_to_be_waited_for_holds_nothing() {
    let object = |name: &str, wave: i32, more: &str| {
        format!(
            "{{apiVersion: apps/v1, kind: Deployment, metadata: {{name: {name}, annotations: {{\
             argocd.argoproj.io/sync-wave: '{wave}'{more}}}}}, spec: {{replicas: 1}}}}"
        )
    };
    let spec = format!("{{source: {{objects: [{}, {}]}}}}", object("first", -1, ""), object("second", 2, ""));
    let mut waiting = stage(&spec);
    waiting.settle();
    assert_eq!(waiting.done(), ["apply Deployment own/first"]);
    waiting.pass(301).settle();
    assert_eq!(waiting.done(), ["apply Deployment own/second"], "waves are soft: five minutes");
    let mut prompt = stage(&spec);
    prompt.settle();
    prompt.put(deployment("own", "first", 1)).settle();
    assert_eq!(prompt.done(), ["apply Deployment own/first", "apply Deployment own/second"]);
    let ignored = ", linchpin.dev/ready: ignore";
    let spec = format!(
        "{{source: {{objects: [{}, {}]}}}}",
        object("first", -1, ignored),
        object("second", 2, ignored)
    );
    let mut free = stage(&spec);
    free.settle();
    assert_eq!(free.done(), ["apply Deployment own/first", "apply Deployment own/second"]);
    assert_eq!(shown(&mut free)["phase"], "Synced");
}

#[test]
fn an_object_outside_of_the_set_holds_only_what_names_it() {
    let mut stage = stage(
        "{source: {objects: [
          {apiVersion: v1, kind: ConfigMap, metadata: {name: free}},
          {apiVersion: v1, kind: ConfigMap, metadata: {name: tied, annotations: {
            config.kubernetes.io/depends-on: /namespaces/data/Secret/key}}}]}}",
    );
    stage.settle();
    assert_eq!(stage.done(), ["apply ConfigMap own/free"]);
    let status = shown(&mut stage);
    assert_eq!(status["phase"], "Applying");
    assert_eq!(status["blockedBy"][0]["object"]["name"], "key", "{status:#}");
    stage
        .put(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "data", "name": "key"}}));
    stage.settle();
    assert_eq!(stage.done(), ["apply ConfigMap own/tied"]);
}

#[test]
fn an_object_outside_of_the_set_that_has_failed_holds_only_what_names_it() {
    let mut stage = stage(
        "{source: {objects: [
          {apiVersion: v1, kind: ConfigMap, metadata: {name: one}},
          {apiVersion: v1, kind: ConfigMap, metadata: {name: two, annotations: {
            config.kubernetes.io/depends-on: /namespaces/own/ConfigMap/one}}},
          {apiVersion: v1, kind: ConfigMap, metadata: {name: tied, annotations: {
            config.kubernetes.io/depends-on: batch/namespaces/own/Job/migrate}}}]}}",
    );
    let job = |kind: &str| {
        json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"namespace": "own", "name": "migrate"},
            "spec": {}, "status": {"conditions": [{"type": kind, "status": "True"}]}})
    };
    stage.put(job("Failed")).settle();
    assert_eq!(stage.done(), ["apply ConfigMap own/one", "apply ConfigMap own/two"]);
    let status = shown(&mut stage);
    assert_eq!(status["phase"], "Applying", "{status:#}");
    assert!(status["message"].as_str().is_some_and(|text| text.contains("Job own/migrate")), "{status:#}");
    stage.take(&job("Failed")).settle();
    assert_eq!(stage.done(), [] as [&str; 0]);
    stage.put(job("Complete")).settle();
    assert_eq!(stage.done(), ["apply ConfigMap own/tied"]);
}

#[test]
fn an_object_that_was_written_and_did_not_become_ready_in_time_is_applied_all_the_same() {
    let mut stage = stage(
        "{timeout: 30s, source: {objects: [
          {apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {replicas: 1}}]}}",
    );
    stage.settle();
    stage.pass(31).settle();
    let status = shown(&mut stage);
    assert_eq!((&status["phase"], &status["resources"][0]["reason"]), (&json!("Failed"), &json!("TimedOut")));
    assert_eq!((&status["progress"]["applied"], &status["progress"]["ready"]), (&json!(1), &json!(0)));
}

#[test]
fn an_export_is_judged_by_its_provider_and_one_without_an_object_is_told() {
    let mut stage = stage(
        "{exports: [{name: primary, object: {apiVersion: apps/v1, kind: Deployment, name: pg}},
           {name: gone, object: {kind: Deployment, name: other}}], source: {objects: [
           {apiVersion: apps/v1, kind: Deployment, metadata: {name: pg}, spec: {replicas: 1}}]}}",
    );
    stage.settle();
    let status = shown(&mut stage);
    assert_eq!(status["exports"][0]["state"], "Defined", "{status:#}");
    assert_eq!(
        status["exports"][1],
        json!({"name": "gone", "object": {"apiVersion": "", "kind": "Deployment",
        "name": "other"}, "state": "Absent", "reason": "ExportMissing"})
    );
    stage.put(deployment("own", "pg", 1)).settle();
    let status = shown(&mut stage);
    assert_eq!(status["exports"][0]["state"], "Available");
    assert_eq!(condition(&status, "Ready")["status"], "True", "the provider itself is not held by it");
}

#[test]
fn many_objects_fit_into_the_status_and_are_remembered() {
    let mut stage = stage("{source: {configMapRef: {name: app}}}");
    let text = |count: usize| {
        (0..count).map(|number| map(&format!("m{number}"))).collect::<Vec<_>>().join("\n---\n")
    };
    stage.put(config_map("own", "app", &json!({"all": text(200)}))).settle();
    assert_eq!(stage.done().len(), 200);
    let status = shown(&mut stage);
    assert_eq!(status["phase"], "Synced");
    assert!(status["journal"]["packed"].is_string(), "a long journal is packed");
    let size = status["journal"].to_string().len() * 5;
    assert!(size < 256 << 10, "a thousand objects fit: {size}");
    let journal = linchpin_doors::journal::of(&stage.object).expect("readable").expect("a journal");
    assert_eq!(journal, stage.memory.journal, "all of it is there after a restart");
    stage.put(config_map("own", "app", &json!({"all": text(1001)}))).settle();
    assert_eq!(condition(&shown(&mut stage), "SourceReady")["reason"], "TooLarge");
    assert_eq!(stage.done(), [] as [&str; 0]);
}
