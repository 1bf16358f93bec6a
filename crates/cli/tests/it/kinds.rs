//! What is served: words that mean more than one kind, groups that do not answer, kinds that nobody can serve.

use crate::{
    bare,
    world::{World, scenario},
};
use linchpin_testkit::{Scenario, entry};
use serde_json::json;

fn definition(group: &str) -> String {
    format!(
        "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: gizmos.{group}}}
spec:
  group: {group}
  scope: Namespaced
  names: {{kind: Gizmo, plural: gizmos, singular: gizmo}}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {{openAPIV3Schema: {{type: object, x-kubernetes-preserve-unknown-fields: true}}}}
"
    )
}

#[test]
fn a_word_that_names_two_kinds_is_refused_until_one_of_them_is_gone() {
    let scenario = scenario("two-kinds");
    scenario.apply(&definition("left.example.com"));
    scenario.apply(&definition("right.example.com"));
    scenario.until("is served", "CustomResourceDefinition", "gizmos.right.example.com", |definition| {
        let conditions = definition["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.iter().any(|one| one["type"] == "Established" && one["status"] == "True")
    });
    let unclear = "{dependencies: [{resource: gizmo/x, state: Absent}]}";
    // The second definition may be noticed a moment after the object, which then has a meaning that stays.
    let mut attempt = 0;
    let said = loop {
        attempt += 1;
        let name = format!("rd-{attempt}");
        scenario.resource_dependency(&name, unclear);
        let object = scenario.until("is looked at", "ResourceDependency", &name, |object| {
            let status = &object["status"];
            status["phase"] == "Failed"
                || !status["blockedBy"][0]["reason"].is_null()
                || status["phase"] == "Completed"
        });
        if object["status"]["phase"] == "Failed" || attempt == 20 {
            break object;
        }
    };
    let message = said["status"]["message"].as_str().unwrap_or_default();
    assert!(
        message.contains("spec.dependencies[0].resource: \"gizmo\" names several kinds: Gizmo.left.example.com, Gizmo.right.example.com"),
        "{message}"
    );
    scenario.api.delete("CustomResourceDefinition", "", "gizmos.right.example.com");
    let name = format!("rd-{attempt}");
    scenario.until("means the one that is left", "ResourceDependency", &name, |object| {
        object["status"]["phase"] != "Failed"
    });
}

/// Makes a definition of a new group, and an object of it through the operator.
fn a_new_group_is_served(scenario: &Scenario, group: &str) {
    scenario.apply(&definition(group));
    scenario.allow("gizmos", &format!("[{{apiGroups: [{group}], resources: [gizmos], verbs: ['*']}}]"));
    scenario.resource_dependency(
        "makes",
        &format!("actions: [{{name: make, type: create, resource: {{apiVersion: {group}/v1, kind: Gizmo, metadata: {{name: x}}}}}}]"),
    );
    scenario.completed("makes");
}

#[test]
fn a_group_whose_server_does_not_answer_keeps_no_other_group_from_being_known() {
    let world = World::start(&bare(), &["--leader-elect=false"]);
    let broken = world.scenario("broken");
    let service = json!({"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
        "metadata": {"name": "v1.aaa.example.com"},
        "spec": {"group": "aaa.example.com", "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 100,
            "insecureSkipTLSVerify": true, "service": {"namespace": "broken", "name": "nobody", "port": 443}}});
    let path = "/apis/apiregistration.k8s.io/v1/apiservices";
    world.api.request(&http::Method::POST, path, "application/json", Some(&service)).unwrap();
    broken.resource_dependency("asks", "{dependencies: [{resource: things.aaa.example.com/x}]}");
    broken.blocked("asks", "KindNotServed");
    a_new_group_is_served(&world.scenario("other"), "zzz.example.com");
}

#[test]
fn a_kind_that_no_server_can_serve_is_refused_and_asked_of_nobody() {
    let world = World::start(&bare(), &["--leader-elect=false"]);
    let scenario = world.scenario("endless");
    let long = "x".repeat(70_000);
    let act = |kind: &str, body: &str| format!("actions: [{{name: a, type: {kind}, {body}}}]");
    scenario.resource_dependency(
        "plain",
        &act("create", &format!("resource: {{apiVersion: {long}/v1, kind: Thing, metadata: {{name: x}}}}")),
    );
    let message = scenario.stalled("ResourceDependency", "plain");
    assert!(message.contains("spec.actions[0].resource: its API group"), "{message}");
    for (name, values) in
        [("group", json!({"g": long, "v": "v1"})), ("version", json!({"g": "x", "v": "../../v1"}))]
    {
        let template = r"'{apiVersion: {{ .Values.g }}/{{ .Values.v }}, kind: Thing, metadata: {name: x}}'";
        scenario.resource_dependency(
            name,
            &format!("{{values: {values}, {}}}", act("template", &format!("template: {template}"))),
        );
        let failed = scenario.phase("ResourceDependency", name, "Failed");
        assert_eq!(entry(&failed, "actions", "a")["state"], "Failed", "{:#}", failed["status"]);
    }
    a_new_group_is_served(&world.scenario("other"), "zzz.example.com");
    let audit = std::fs::read_to_string(world.cluster.audit_log()).unwrap();
    let requests = audit.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let longest = requests.filter_map(|event| event["requestURI"].as_str().map(str::len)).max();
    assert!(longest.is_some_and(|length| length < 1_000), "no such path is asked for: {longest:?}");
}
