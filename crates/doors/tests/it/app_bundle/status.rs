//! What a bundle says: the document's phases and messages, live.

use linchpin_api::AppBundleStatus;
use linchpin_words::ConditionStatus;
use serde_json::json;

use super::{map, stage, workload};
use crate::things::{config_map, deployment};

fn condition(status: &AppBundleStatus, kind: &str) -> (ConditionStatus, String, String) {
    let found = status.common.conditions.iter().find(|one| one.kind == kind).expect("a condition");
    (found.status, found.reason.clone(), found.message.clone())
}

fn phases(status: &AppBundleStatus) -> Vec<(&str, Vec<&str>)> {
    status
        .group_statuses
        .iter()
        .map(|group| {
            (group.phase.as_str(), group.component_statuses.iter().map(|one| one.phase.as_str()).collect())
        })
        .collect()
}

fn two() -> String {
    format!(
        "{{groups: [{{name: db, components: [{}]}}, {{name: app, components: [{}, {}]}}]}}",
        workload("db", ""),
        map("web", ""),
        map("rest", "")
    )
}

#[test]
fn p02_progress_is_shown_live_in_the_documents_words() {
    let mut stage = stage(&two());
    stage.settle();
    let status = stage.status();
    assert_eq!(status.common.phase.as_deref(), Some("Deploying"));
    assert_eq!(phases(&status), [("Deploying", vec!["Deploying"]), ("Pending", vec!["Pending", "Pending"])]);
    assert_eq!(condition(&status, "Ready").0, ConditionStatus::False);
    assert_eq!(condition(&status, "Ready").1, "Progressing");
    assert_eq!(condition(&status, "Reconciling").0, ConditionStatus::True);
    assert!(status.common.message.expect("a message").starts_with("0 of 3 components are deployed; db/db: "));
    stage.put(deployment("own", "db", 1)).settle();
    let status = stage.status();
    assert_eq!(status.common.phase.as_deref(), Some("Deployed"));
    assert_eq!(status.common.message.as_deref(), Some("All groups deployed successfully"));
    assert_eq!(phases(&status), [("Deployed", vec!["Deployed"]), ("Deployed", vec!["Deployed", "Deployed"])]);
    assert_eq!(
        condition(&status, "Ready"),
        (
            ConditionStatus::True,
            "DeploymentComplete".to_owned(),
            "All resources deployed successfully".to_owned()
        )
    );
    assert_eq!(status.group_statuses[0].message, "All components deployed successfully");
    assert_eq!(status.group_statuses[0].component_statuses[0].message, "Resource deployed successfully");
    assert_eq!(status.common.observed_generation, 1);
}

#[test]
fn what_others_hold_of_a_component_is_said_in_its_entry_and_of_the_whole_bundle() {
    let mut stage = stage(&format!("{{groups: [{{name: app, components: [{}]}}]}}", map("web", "")));
    stage.held_by_others =
        vec![".data.a is held by kubectl".to_owned(), ".data.b is held by helm".to_owned()];
    stage.settle();
    let status = stage.status();
    let held = ".data.a is held by kubectl; .data.b is held by helm";
    assert_eq!(
        status.group_statuses[0].component_statuses[0].message,
        format!("Resource deployed successfully; {held}")
    );
    assert_eq!(
        status.common.message.unwrap(),
        format!("deployed; {held}; to take it back, write another value to it once with kubectl patch")
    );
}

#[test]
fn p02_a_new_generation_is_not_deployed_before_it_is() {
    let mut stage = stage(&two());
    stage.settle();
    stage.put(deployment("own", "db", 1)).settle();
    assert_eq!(stage.status().common.phase.as_deref(), Some("Deployed"));
    stage
        .edit(|object| {
            object["spec"]["groups"][0]["components"][0]["template"]["spec"]["replicas"] = json!(2);
        })
        .settle();
    let status = stage.status();
    assert_eq!(status.common.phase.as_deref(), Some("Deploying"), "the last word was of another generation");
    assert_eq!(condition(&status, "Ready").0, ConditionStatus::False);
}

#[test]
fn deployed_stays_and_ready_follows_the_components() {
    let mut stage = stage(&two());
    stage.settle();
    stage.put(deployment("own", "db", 1)).settle();
    stage.status();
    stage.put(deployment("own", "db", 0)).settle();
    let status = stage.status();
    assert_eq!(status.common.phase.as_deref(), Some("Deployed"));
    assert_eq!(condition(&status, "Ready").0, ConditionStatus::False);
    let db = &status.group_statuses[0].component_statuses[0];
    assert!(!db.ready && db.message.starts_with("Resource not ready: "), "{db:?}");
    stage.put(deployment("own", "db", 1)).settle();
    assert_eq!(condition(&stage.status(), "Ready").0, ConditionStatus::True);
}

#[test]
fn p14_what_has_failed_is_told_from_what_is_on_its_way() {
    let mut stage = stage(&format!(
        "{{groups: [{{name: a, components: [{{name: job, template: {{apiVersion: batch/v1, kind: Job,
           metadata: {{name: j}}}}}}, {}]}}, {{name: b, components: [{}]}}]}}",
        map("x", ""),
        map("why", "")
    ));
    stage.settle();
    assert_eq!(stage.status().common.phase.as_deref(), Some("Deploying"));
    stage.put(json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j", "namespace": "own"},
        "status": {"conditions": [{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded",
            "message": "Job has reached the specified backoff limit"}]}}));
    stage.settle();
    let status = stage.status();
    assert_eq!(status.common.phase.as_deref(), Some("Failed"));
    assert_eq!(phases(&status), [("Failed", vec!["Failed", "Pending"]), ("Pending", vec!["Pending"])]);
    let (ready, reason, message) = condition(&status, "Ready");
    assert_eq!((ready, reason.as_str()), (ConditionStatus::False, "DeploymentFailed"));
    assert!(
        message.starts_with("group a: Failed to deploy component job: Resource not ready: Job own/j"),
        "{message}"
    );
    assert_eq!(condition(&status, "Stalled").0, ConditionStatus::True);
}

#[test]
fn missing_rights_are_waited_for_and_named_with_group_and_component() {
    let mut stage = stage(&two());
    let mut first = stage_rights(&two());
    stage.denied.append(&mut first);
    stage.settle();
    assert_eq!(stage.done(), Vec::<String>::new());
    let status = stage.status();
    assert_eq!(status.group_statuses[0].phase, "Pending", "{status:?}");
    assert_eq!(status.group_statuses[0].component_statuses[0].reason, "MissingRights");
    let message = status.common.message.expect("a message");
    assert!(message.contains("may not create deployments.apps in own"), "{message}");
    stage.denied.clear();
    stage.settle();
    assert_eq!(stage.done(), ["apply Deployment own/db"]);
}

/// The rights that the first component needs, as text.
fn stage_rights(spec: &str) -> Vec<String> {
    let mut stage = stage(spec);
    stage.settle();
    super::action(stage.plan(), "db/db").rights.iter().map(ToString::to_string).collect()
}

#[test]
fn a_restart_is_no_news() {
    let mut stage = stage(&two());
    stage.settle();
    let before = stage.status();
    stage.start_anew();
    assert_eq!(stage.status(), before, "while it is on its way");
    stage.settle();
    stage.put(deployment("own", "db", 1)).settle();
    let before = stage.status();
    stage.start_anew();
    assert_eq!(stage.status(), before, "once it is deployed");
}

#[test]
fn a_gate_can_be_passed_by_hand_by_the_components_name() {
    let mut stage = stage(&two());
    stage.settle();
    stage.done();
    stage.annotate("linchpin.dev/proceed", "db@1").settle();
    assert_eq!(stage.done(), ["apply ConfigMap own/web", "apply ConfigMap own/rest"]);
}

#[test]
fn a_suspended_bundle_starts_nothing() {
    let mut stage =
        stage(&format!("{{suspend: true, groups: [{{name: a, components: [{}]}}]}}", map("x", "")));
    stage.settle();
    assert_eq!(stage.done(), Vec::<String>::new());
    assert_eq!(stage.status().common.phase.as_deref(), Some("Suspended"));
    stage.edit(|object| object["spec"]["suspend"] = json!(false)).settle();
    assert_eq!(stage.done(), ["apply ConfigMap own/x"]);
}

#[test]
fn p17_no_value_of_a_secret_is_ever_told() {
    let mut stage = stage(
        "{valuesFrom: [{secretRef: {name: s}}], groups: [{name: a, components: [{name: x, template: {apiVersion: v1,
           kind: Secret, metadata: {name: x}, stringData: {k: '{{ .Values.password }}', n: '{{ fail .Values.password }}'}}}]}]}",
    );
    stage.put(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "own"},
        "data": {"password": "aHVudGVyMg=="}}));
    stage.settle();
    let told = serde_json::to_string(&stage.status()).expect("a status");
    assert!(!told.contains("hunter2"), "{told}");
}

#[test]
fn what_a_deployed_bundle_requires_from_now_on_is_waited_for() {
    let mut stage = stage(&format!("{{groups: [{{name: app, components: [{}]}}]}}", map("web", "")));
    stage.settle();
    assert_eq!(stage.status().common.phase.as_deref(), Some("Deployed"));
    let requires = json!([{"resource": "configmap/later"}]);
    stage.edit(|object| object["spec"]["requires"] = requires).settle();
    let status = stage.status();
    assert_eq!(status.common.phase.as_deref(), Some("Deploying"));
    let told = "1 of 1 components are deployed; waiting for configmap/later: it does not exist";
    assert_eq!(status.common.message.as_deref(), Some(told));
    stage.put(config_map("own", "later", &json!({}))).settle();
    assert_eq!(stage.status().common.phase.as_deref(), Some("Deployed"));
}
