//! Objects are kept as they were written, and nobody is robbed.

use super::{component, map, maps};
use crate::{seconds, world::scenario};
use serde_json::{Value, json};

#[test]
fn p15_what_is_changed_or_deleted_is_put_right() {
    let scenario = scenario("drift");
    scenario.app_bundle("shop", &maps(&[&["a"], &["b"]]));
    scenario.deployed("shop");
    scenario.merge("ConfigMap", "a", &json!({"data": {"value": "theirs", "more": "kept"}}));
    scenario.until("is put right", "ConfigMap", "a", |object| object["data"]["value"] == "one");
    assert_eq!(scenario.data("a", "more").as_deref(), Some("kept"), "p03: what others add stays");
    scenario.delete("ConfigMap", "b");
    scenario.until("comes back", "ConfigMap", "b", |object| object["data"]["value"] == "one");
    scenario.deployed("shop");
}

#[test]
fn what_another_object_of_ours_holds_is_left_to_it_and_told_and_a_borrowed_name_evades_nothing() {
    let scenario = scenario("managers");
    scenario.app_bundle("shop", &maps(&[&["a"], &["b"]]));
    scenario.deployed("shop");
    let take = |name: &str, manager: &str| {
        let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"value": "theirs"}});
        let path = format!("/api/v1/namespaces/managers/configmaps/{name}?force=true&fieldManager={manager}");
        scenario
            .api
            .request(&http::Method::PATCH, &path, "application/apply-patch+yaml", Some(&body))
            .unwrap();
    };
    for borrowed in ["linchpin:", "linchpin:me", "linchpin:AppBundle:managers/other"] {
        take("a", borrowed);
        scenario.until("is put right", "ConfigMap", "a", |object| object["data"]["value"] == "one");
    }
    take("b", "linchpin:AppBundle:managers/other:x");
    let told = "Resource deployed successfully; data.value is left to linchpin:AppBundle:managers/other:x";
    scenario.until("is told", "AppBundle", "shop", |object| {
        object["status"].to_string().contains(&json!(told).to_string())
    });
    assert_eq!(scenario.data("b", "value").as_deref(), Some("theirs"));
}

#[test]
fn what_was_scaled_is_left_to_whoever_scaled_it_also_to_nothing_and_from_there() {
    let scenario = scenario("scaled");
    let pod = "{metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: web}]}}";
    let web = format!(
        "{{apiVersion: apps/v1, kind: Deployment, metadata: {{name: web}}, spec: {{replicas: 2, selector: {{matchLabels: \
         {{app: web}}}}, template: {pod}}}}}"
    );
    let spec = format!("{{groups: [{{name: a, components: [{{name: web, template: {web}}}]}}]}}");
    scenario.app_bundle("shop", &spec);
    scenario.until("is made", "Deployment", "web", |object| object["spec"]["replicas"] == 2);
    scenario.phase("AppBundle", "shop", "Deploying");
    let scale = |replicas: i64| {
        let path = "/apis/apps/v1/namespaces/scaled/deployments/web/scale";
        let body = json!({"spec": {"replicas": replicas}});
        scenario
            .api
            .request(&http::Method::PATCH, path, "application/merge-patch+json", Some(&body))
            .unwrap();
    };
    scale(0);
    let told = "Resource deployed successfully; spec.replicas is left to who scaled it";
    scenario.until("is told", "AppBundle", "shop", |object| {
        object["status"].to_string().contains(&json!(told).to_string())
    });
    for replicas in [3, 0] {
        scale(replicas);
        std::thread::sleep(seconds(2));
        let web = scenario.api.get("Deployment", "scaled", "web").unwrap();
        assert_eq!(web["spec"]["replicas"], replicas);
    }
}

#[test]
fn p03_what_somebody_else_made_is_reported_and_left_unless_adopted() {
    let scenario = scenario("adoption");
    scenario.config_map("theirs", "their own");
    let spec = |adopt: &str| {
        format!(
            "{{groups: [{{name: a, components: [{}]}}, {{name: b, components: [{}]}}]}}",
            map("theirs", adopt),
            map("next", "")
        )
    };
    scenario.app_bundle("shop", &spec(""));
    let failed = scenario.phase("AppBundle", "shop", "Failed");
    let told = failed["status"]["message"].as_str().unwrap();
    assert!(
        told.starts_with("group a: Failed to deploy component theirs: Failed to create resource: "),
        "{told}"
    );
    assert_eq!(component(&failed, "a", "theirs")["reason"], "AlreadyExists");
    assert_eq!(scenario.data("theirs", "value").as_deref(), Some("their own"));
    assert!(!scenario.has("next"), "later groups are untouched");
    scenario.app_bundle("shop", &spec(", adopt: Adopt, ignoreFields: [/data/value]"));
    scenario.until("is adopted", "ConfigMap", "theirs", |object| {
        object["metadata"]["labels"]["app.example.com/component"] == "theirs"
    });
    scenario.deployed("shop");
    scenario.delete("AppBundle", "shop");
    scenario.gone("AppBundle", "shop");
    assert!(scenario.has("theirs") && !scenario.has("next"), "an adopted object is never deleted");
}

#[test]
fn p13_a_job_that_has_succeeded_is_not_run_again_when_it_is_gone() {
    let scenario = scenario("run-once");
    let job = "{name: migrate, template: {apiVersion: batch/v1, kind: Job, metadata: {name: migrate}, spec: {template: \
               {metadata: {annotations: {simulated: job}}, spec: {restartPolicy: Never, containers: [{name: c, image: none}]}}}}}";
    scenario
        .app_bundle("shop", &format!("{{groups: [{{name: a, components: [{job}, {}]}}]}}", map("after", "")));
    scenario.until("is there", "Job", "migrate", |object| !object.is_null());
    if scenario.get("Job", "migrate").is_some_and(|job| job["status"]["succeeded"].is_null()) {
        complete(&scenario);
    }
    scenario.deployed("shop");
    let uid = |object: &Value| object["metadata"]["uid"].clone();
    let first = scenario.get("Job", "migrate").map(|job| uid(&job));
    scenario.delete("Job", "migrate");
    scenario.merge("ConfigMap", "after", &json!({"data": {"value": "theirs"}}));
    scenario.until("is put right", "ConfigMap", "after", |object| object["data"]["value"] == "one");
    crate::eventually("an event says who changed what", crate::seconds(30), || {
        let says = |(reason, message): &(String, String)| {
            reason == "Drifted"
                && message.starts_with("configmap run-once/after: data.value was changed by ")
                && message.ends_with(" and is put right")
        };
        scenario.events("shop").iter().any(says)
    });
    assert!(scenario.get("Job", "migrate").is_none_or(|job| Some(uid(&job)) == first), "its end is final");
    scenario.deployed("shop");
}

#[test]
fn p04_claims_are_left_alone_on_the_next_pass() {
    let scenario = scenario("second-pass");
    scenario.grant(
        "second-pass",
        "[{apiGroups: [''], resources: [persistentvolumeclaims], verbs: ['*']},
          {apiGroups: [storage.k8s.io], resources: [storageclasses], verbs: [get, list, watch]}]",
    );
    scenario.apply(
        "{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: later}, provisioner: none,
           volumeBindingMode: WaitForFirstConsumer}",
    );
    let claim = "{name: claim, template: {apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: claim}, \
                 spec: {accessModes: [ReadWriteOnce], storageClassName: later, resources: {requests: {storage: 1Gi}}}}}";
    let spec = |value: &str| {
        let after = map("after", "").replace("value: one", &format!("value: {value}"));
        format!("{{groups: [{{name: a, components: [{claim}, {after}]}}]}}")
    };
    scenario.app_bundle("shop", &spec("one"));
    scenario.deployed("shop");
    scenario.app_bundle("shop", &spec("two"));
    scenario.deployed("shop");
    let writes = scenario.audit.user_writes("second-pass");
    let claims = writes.iter().filter(|event| event.resource == "persistentvolumeclaims").count();
    assert_eq!(claims, 1, "{writes:#?}");
    assert_eq!(scenario.data("after", "value").as_deref(), Some("two"));
}

#[test]
fn p04_a_field_that_cannot_be_changed_fails_or_makes_the_object_anew() {
    let scenario = scenario("immutable");
    let spec = |app: &str, more: &str| {
        let workload = super::workload("web", 1, more).replace("app: web", &format!("app: {app}"));
        format!("{{groups: [{{name: a, components: [{workload}]}}]}}")
    };
    scenario.app_bundle("shop", &spec("web", ""));
    scenario.deployed("shop");
    let uid = |object: &Value| object["metadata"]["uid"].clone();
    let first = uid(&scenario.get("Deployment", "web").unwrap());
    scenario.app_bundle("shop", &spec("other", ""));
    let failed = scenario.phase("AppBundle", "shop", "Failed");
    let told = component(&failed, "a", "web")["message"].as_str().unwrap();
    assert!(told.starts_with("Failed to update resource: ") && told.contains("selector"), "{told}");
    assert_eq!(uid(&scenario.get("Deployment", "web").unwrap()), first);
    scenario.app_bundle("shop", &spec("other", ", immutable: Recreate"));
    scenario.deployed("shop");
    let second = scenario.get("Deployment", "web").unwrap();
    assert_ne!(uid(&second), first);
    assert_eq!(second["spec"]["selector"]["matchLabels"]["app"], "other");
}

/// Plays the Job's own controller, where no node ends its Pod.
fn complete(scenario: &linchpin_testkit::Scenario) {
    let pods = || scenario.api.list("Pod", &scenario.namespace);
    crate::eventually("a Pod of the Job", crate::seconds(30), || !pods().is_empty());
    for pod in pods() {
        let name = pod["metadata"]["name"].as_str().unwrap();
        let ended = json!({"status": {"phase": "Succeeded"}});
        let _ = scenario.api.merge("Pod", &scenario.namespace, name, "/status", &ended);
    }
}
