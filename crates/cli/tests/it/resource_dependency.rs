//! What a ResourceDependency waits for: every form of a dependency, told true by an event and never before.

use crate::world::scenario;
use linchpin_testkit::{Scenario, audit::assert_before, entry};
use serde_json::json;

const THEN_DONE: &str = "actions: [{name: done, type: create, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: done}}}]";

/// Applies a ResourceDependency `rd` that makes the ConfigMap `done` once its dependencies are met.
fn waits_for(scenario: &Scenario, dependencies: &str) {
    scenario.resource_dependency("rd", &format!("{{dependencies: [{dependencies}], {THEN_DONE}}}"));
}

#[test]
fn nothing_is_written_before_every_tier_holds_and_actions_follow_their_priorities() {
    let scenario = scenario("tiers");
    scenario.resource_dependency(
        "rd",
        "
        dependencies:
        - {name: first, resource: configmap/first, priority: 1}
        - {name: second, resource: configmap/second, priority: 2}
        actions:
        - {name: c, priority: 3, type: create, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: c}}}
        - {name: a, priority: 1, type: create, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}}
        - {name: b, priority: 2, type: create, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: b}}}
        - {name: d, after: [c], type: create, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: d}}}
        ",
    );
    let waiting = scenario.blocked("rd", "NotFound");
    assert_eq!(waiting["status"]["phase"], "Waiting");
    assert_eq!(entry(&waiting, "dependencies", "second")["reason"], "WaitingForTier");
    assert!(waiting["status"]["message"].as_str().unwrap().contains("first"), "{:#}", waiting["status"]);
    scenario.config_map("second", "");
    scenario.config_map("first", "");
    let done = scenario.completed("rd");
    assert_eq!(done["status"]["observedGeneration"], 1);
    let ready =
        done["status"]["conditions"].as_array().unwrap().iter().find(|c| c["type"] == "Ready").unwrap();
    assert_eq!(ready["status"], "True");
    assert!(done["status"].get("blockedBy").is_none(), "{:#}", done["status"]);
    scenario.in_order(&["second", "first", "a", "b", "c", "d"]);
    assert_eq!(scenario.audit.user_writes("tiers").len(), 4);
}

#[test]
fn a_deployment_must_be_ready_and_min_replicas_relaxes_that() {
    let scenario = scenario("deployments");
    let deployment = |replicas: u32| {
        scenario.apply(&format!(
            "{{apiVersion: apps/v1, kind: Deployment, metadata: {{name: web}}, spec: {{replicas: {replicas}, \
             selector: {{matchLabels: {{app: web}}}}, template: {{metadata: {{labels: {{app: web}}}}, \
             spec: {{containers: [{{name: web, image: web}}]}}}}}}}}"
        ));
    };
    scenario.resource_dependency("ready", "dependencies: [{resource: deployment/web, state: Ready}]");
    scenario.resource_dependency("two", "dependencies: [{resource: deploy/web, minReplicas: 2}]");
    deployment(0);
    scenario.completed("ready");
    scenario.blocked("two", "TooFewReplicas");
    deployment(2);
    let done = scenario.completed("two");
    assert_eq!(entry(&done, "dependencies", "deploy/web")["resolved"]["kind"], "Deployment");
}

#[test]
fn a_job_that_runs_is_not_complete_and_a_failed_one_fails() {
    let scenario = scenario("jobs");
    let job = |name: &str| {
        scenario.apply(&format!(
            "{{apiVersion: batch/v1, kind: Job, metadata: {{name: {name}}}, spec: {{managedBy: example.com/hand, \
             template: {{spec: {{restartPolicy: Never, containers: [{{name: a, image: a}}]}}}}}}}}"
        ));
    };
    let status = |name: &str, status: serde_json::Value| {
        scenario.api.merge("Job", "jobs", name, "/status", &json!({"status": status})).unwrap();
    };
    scenario.resource_dependency("good", "dependencies: [{resource: job/good, state: Completed}]");
    scenario.resource_dependency("bad", "dependencies: [{resource: job/bad, state: Completed}]");
    job("good");
    job("bad");
    status("good", json!({"startTime": "2026-01-01T00:00:00Z", "active": 1}));
    scenario.blocked("good", "Running");
    status(
        "good",
        json!({"active": 0, "succeeded": 1, "completionTime": "2026-01-01T00:00:01Z", "conditions": [
            {"type": "SuccessCriteriaMet", "status": "True"}, {"type": "Complete", "status": "True"}]}),
    );
    scenario.completed("good");
    status(
        "bad",
        json!({"startTime": "2026-01-01T00:00:00Z", "failed": 1, "conditions": [
            {"type": "FailureTarget", "status": "True", "reason": "BackoffLimitExceeded"},
            {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}]}),
    );
    let failed = scenario.phase("ResourceDependency", "bad", "Failed");
    assert_eq!(entry(&failed, "dependencies", "job/bad")["state"], "Failed");
    assert!(
        failed["status"]["message"].as_str().unwrap().contains("BackoffLimitExceeded"),
        "{:#}",
        failed["status"]
    );
}

#[test]
fn conditions_and_cel_judge_values() {
    let scenario = scenario("conditions");
    scenario.config_map("numbers", "3");
    waits_for(
        &scenario,
        "{name: numbers, resource: configmap/numbers, cel: \"int(self.data.value) > 5\", conditions: [\
         {jsonPath: .data.value, operator: gte, value: 7}, {jsonPath: .data.value, operator: in, value: ['7', '8']}, \
         {jsonPath: .data.other, operator: absent}, {jsonPath: .data.value, operator: exists}, \
         {jsonPath: .data.value, operator: matches, value: '^[0-9]$'}, {jsonPath: .data.value, operator: ne, value: '8'}]}",
    );
    scenario.blocked("rd", "ConditionNotMet");
    scenario.config_map("numbers", "8");
    scenario.passes("meanwhile");
    scenario.config_map("numbers", "7");
    scenario.completed("rd");
    let right = scenario.audit.last_by_others("configmaps", "conditions", "numbers");
    assert_before(&right, &scenario.audit.first_write("configmaps", "conditions", "done"));
}

#[test]
fn a_selector_counts_what_matches() {
    let scenario = scenario("selectors");
    let labelled = |name: &str| {
        scenario.apply(&format!(
            "{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}, labels: {{app: db}}}}, data: {{n: {name}}}}}"
        ));
    };
    labelled("one");
    scenario.resource_dependency(
        "rd",
        "
        dependencies: [{name: all, resource: configmap, selector: {matchLabels: {app: db}}, expect: {atLeast: 2}}]
        actions:
        - {type: create, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: names}, data: {
            names: '{{ range .Dependencies.all.Items }}{{ .Kind }}/{{ .Name }} {{ end }}'}}}
        ",
    );
    scenario.resource_dependency(
        "exactly",
        "dependencies: [{name: all, resource: configmap, selector: {matchLabels: {app: db}}, expect: {exactly: 1}}]",
    );
    scenario.completed("exactly");
    scenario.blocked("rd", "CountNotMet");
    labelled("two");
    scenario.completed("rd");
    assert_eq!(scenario.data("names", "names").unwrap(), "ConfigMap/one ConfigMap/two ");
}

#[test]
fn absence_is_a_state_that_can_be_waited_for() {
    let scenario = scenario("absence");
    scenario.config_map("lock", "");
    waits_for(&scenario, "{resource: configmap/lock, state: Absent}");
    scenario.blocked("rd", "Exists");
    scenario.delete("ConfigMap", "lock");
    scenario.completed("rd");
}

#[test]
fn an_optional_dependency_delays_nothing() {
    let scenario = scenario("optional");
    waits_for(&scenario, "{name: extra, resource: configmap/extra, optional: true}");
    let done = scenario.completed("rd");
    assert_eq!(entry(&done, "dependencies", "extra")["state"], "NotFound", "{done:#}");
}

#[test]
fn the_version_of_kubernetes_is_a_dependency() {
    let scenario = scenario("version");
    waits_for(
        &scenario,
        "{resource: version/kubernetes, conditions: [{jsonPath: .status.version, operator: gte, value: 1.24.0}]}",
    );
    scenario.completed("rd");
    scenario.resource_dependency(
        "future",
        "dependencies: [{resource: version/kubernetes, conditions: [{jsonPath: .status.version, operator: gte, value: 9.0.0}]}]",
    );
    scenario.blocked("future", "ConditionNotMet");
}

#[test]
fn a_kind_that_appears_later_wakes_those_who_wait_for_it_without_a_poll() {
    let scenario = scenario("later-kind");
    waits_for(
        &scenario,
        "{name: crd, resource: crd/gadgets.later.example.com, optional: true}, \
         {name: gadget, resource: gadget.later.example.com/one, conditions: [{jsonPath: .spec.size, value: 3}]}",
    );
    scenario.apply(
        "
        {apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: gadgets},
         rules: [{apiGroups: [later.example.com], resources: [gadgets], verbs: [get, list, watch]}]}
---
        {apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: gadgets},
         roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: gadgets},
         subjects: [{kind: ServiceAccount, name: actor, namespace: $NS}]}",
    );
    let waiting = scenario.blocked("rd", "KindNotServed");
    assert_eq!(waiting["status"]["phase"], "Waiting", "a kind that is not served is no mistake");
    scenario.apply(
        "
        apiVersion: apiextensions.k8s.io/v1
        kind: CustomResourceDefinition
        metadata: {name: gadgets.later.example.com}
        spec:
          group: later.example.com
          scope: Namespaced
          names: {kind: Gadget, plural: gadgets, singular: gadget}
          versions:
          - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
        ",
    );
    scenario.until("is served and missing", "ResourceDependency", "rd", |object| {
        object["status"]["blockedBy"][0]["reason"] == "NotFound"
    });
    scenario
        .apply("{apiVersion: later.example.com/v1, kind: Gadget, metadata: {name: one}, spec: {size: 3}}");
    scenario.completed("rd");
    scenario.api.delete("CustomResourceDefinition", "", "gadgets.later.example.com");
}

#[test]
fn a_resource_dependency_waits_for_another_and_says_what_that_one_waits_for() {
    let scenario = scenario("chained");
    scenario.resource_dependency("inner", "dependencies: [{name: root, resource: configmap/root}]");
    scenario.resource_dependency(
        "outer",
        "dependencies: [{name: inner, resource: resourcedependency/inner, state: Ready}]",
    );
    scenario.until("names the cause", "ResourceDependency", "outer", |object| {
        object["status"]["message"].as_str().is_some_and(|message| message.contains("ConfigMap chained/root"))
    });
    scenario.config_map("root", "");
    scenario.completed("outer");
}

#[test]
fn a_dependency_in_time_out_fails_recovers_by_itself_and_tells_it_once() {
    let scenario = scenario("timeouts");
    scenario.resource_dependency(
        "rd",
        "
        dependencies: [{name: slow, resource: configmap/slow, timeout: 1s}]
        onFailure: [{type: event, message: the slow one is missing}, {type: status, phase: Starved}]
        actions: [{name: done, type: create, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: done}}}]
        ",
    );
    let failed = scenario.phase("ResourceDependency", "rd", "Starved");
    assert_eq!(entry(&failed, "dependencies", "slow")["state"], "TimedOut");
    let stalled =
        failed["status"]["conditions"].as_array().unwrap().iter().find(|c| c["type"] == "Stalled").unwrap();
    assert_eq!(stalled["status"], "True");
    assert!(!scenario.has("done"));
    scenario.config_map("slow", "");
    scenario.completed("rd");
    let told =
        scenario.events("rd").into_iter().filter(|(_, note)| note == "the slow one is missing").count();
    assert_eq!(told, 1, "{:?}", scenario.events("rd"));
}

#[test]
fn a_global_timeout_ends_the_waiting() {
    let scenario = scenario("global-timeout");
    scenario.resource_dependency("rd", "{globalTimeout: 1s, dependencies: [{resource: configmap/never}]}");
    let failed = scenario.phase("ResourceDependency", "rd", "Failed");
    assert!(failed["status"].to_string().contains("GlobalTimeout"), "{:#}", failed["status"]);
}

#[test]
fn watch_mode_follows_the_world_and_runs_again_what_reads_a_changed_value() {
    let scenario = scenario("watch-mode");
    scenario.config_map("source", "one");
    scenario.config_map("beside", "one");
    scenario.resource_dependency(
        "rd",
        "
        watchMode: true
        dependencies: [{name: source, resource: configmap/source}, {name: beside, resource: configmap/beside}]
        actions:
        - {name: follow, type: apply, runOnChanges: true, apply: {apiVersion: v1, kind: ConfigMap,
            metadata: {name: copy}, data: {value: '{{ .Dependencies.source.Object.data.value }}'}}}
        - {name: once, type: apply, apply: {apiVersion: v1, kind: ConfigMap,
            metadata: {name: first}, data: {value: '{{ .Dependencies.source.Object.data.value }}'}}}
        ",
    );
    scenario.completed("rd");
    scenario.config_map("beside", "two");
    scenario.config_map("source", "two");
    scenario.until("follows", "ConfigMap", "copy", |object| object["data"]["value"] == "two");
    scenario.completed("rd");
    assert_eq!(scenario.data("first", "value").unwrap(), "one");
    scenario.delete("ConfigMap", "beside");
    let lost = scenario.until("lost a dependency", "ResourceDependency", "rd", |object| {
        object["status"]["conditions"].to_string().contains("DependencyLost")
    });
    assert_eq!(lost["status"]["phase"], "Completed");
    let copies = scenario.audit.user_writes("watch-mode").iter().filter(|event| event.name == "copy").count();
    assert_eq!(copies, 2);
}

#[test]
fn without_watch_mode_a_completed_object_is_done() {
    let scenario = scenario("done-is-done");
    scenario.config_map("source", "one");
    waits_for(&scenario, "{resource: configmap/source}");
    scenario.completed("rd");
    scenario.delete("ConfigMap", "source");
    scenario.delete("ConfigMap", "done");
    scenario.config_map("source", "two");
    scenario.annotate("ResourceDependency", "rd", "example.com/any", "thing");
    std::thread::sleep(crate::seconds(1));
    assert!(!scenario.has("done"));
    scenario.completed("rd");
}
