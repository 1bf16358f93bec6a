//! What a ResourceDependency does: every type of action, as the API server saw it.

use crate::{seconds, world::scenario};
use linchpin_testkit::{audit::assert_before, entry};
use serde_json::json;
use std::thread;

#[test]
fn create_leaves_adopts_or_fails_on_what_is_there() {
    let scenario = scenario("create");
    for name in ["skip", "adopt", "fail"] {
        scenario.config_map(name, "mine");
    }
    scenario.resource_dependency(
        "rd",
        "
        actions:
        - {name: new, type: create, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: new}, data: {value: ours}}}
        - {name: skip, type: create, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: skip}, data: {value: ours}}}
        - {name: adopt, type: create, onExisting: Adopt, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: adopt}, data: {other: ours}}}
        ",
    );
    scenario.resource_dependency(
        "failing",
        "actions: [{name: fail, type: create, onExisting: Fail, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: fail}}}]",
    );
    let done = scenario.completed("rd");
    assert_eq!(entry(&done, "actions", "skip")["reason"], "Exists");
    assert_eq!(scenario.data("new", "value").unwrap(), "ours");
    assert_eq!(scenario.data("skip", "value").unwrap(), "mine");
    assert_eq!(scenario.data("adopt", "value").unwrap(), "mine");
    assert_eq!(scenario.data("adopt", "other").unwrap(), "ours");
    let created = scenario.get("ConfigMap", "new").unwrap();
    assert_eq!(created["metadata"]["annotations"]["linchpin.dev/created-by"], done["metadata"]["uid"]);
    let failed = scenario.phase("ResourceDependency", "failing", "Failed");
    assert_eq!(entry(&failed, "actions", "fail")["reason"], "AlreadyExists");
}

#[test]
fn a_template_makes_several_objects_from_what_it_reads() {
    let scenario = scenario("templates");
    scenario.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: its1, labels: {tier: gold}}, data: {endpoint: 'https://its1'}}");
    scenario.resource_dependency(
        "rd",
        r#"
        values: {names: [a, b]}
        dependencies: [{resource: configmap/its1}]
        actions:
        - name: write
          type: template
          template: |
            {{- range .Values.names }}
            ---
            apiVersion: v1
            kind: ConfigMap
            metadata: {name: made-{{ . }}}
            data:
              endpoint: {{ $.Dependencies.configmap_its1.Object.data.endpoint | quote }}
              tier: {{ index $.Dependencies.configmap_its1.Labels "tier" | upper }}
              now: {{ $.Now | quote }}
            {{- end }}
        "#,
    );
    scenario.completed("rd");
    for name in ["made-a", "made-b"] {
        assert_eq!(scenario.data(name, "endpoint").unwrap(), "https://its1");
        assert_eq!(scenario.data(name, "tier").unwrap(), "GOLD");
    }
    assert_eq!(scenario.data("made-a", "now"), scenario.data("made-b", "now"));
    let managers = scenario.get("ConfigMap", "made-a").unwrap()["metadata"]["managedFields"].to_string();
    assert!(managers.contains("linchpin:ResourceDependency:templates/rd:"), "{managers}");
}

#[test]
fn a_missing_path_under_dependencies_makes_the_action_wait() {
    let scenario = scenario("missing-path");
    scenario.config_map("source", "one");
    scenario.resource_dependency(
        "rd",
        "
        dependencies: [{name: source, resource: configmap/source}]
        actions:
        - {name: copy, type: create, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: copy},
            data: {later: '{{ .Dependencies.source.Object.data.later }}'}}}
        ",
    );
    scenario.blocked("rd", "ValueMissing");
    scenario.merge("ConfigMap", "source", &json!({"data": {"later": "now"}}));
    scenario.completed("rd");
    assert_eq!(scenario.data("copy", "later").unwrap(), "now");
}

#[test]
fn apply_takes_a_list_and_reports_a_conflict() {
    let scenario = scenario("apply");
    scenario.config_map("theirs", "theirs");
    scenario.resource_dependency(
        "rd",
        "
        actions:
        - name: both
          type: apply
          apply:
          - {apiVersion: v1, kind: ConfigMap, metadata: {name: one}, data: {value: ours}}
          - {apiVersion: v1, kind: ConfigMap, metadata: {name: two}, data: {value: ours}}
        ",
    );
    scenario.completed("rd");
    assert!(scenario.has("one") && scenario.has("two"));
    scenario.resource_dependency(
        "conflict",
        "actions: [{name: a, type: apply, adopt: Adopt, apply: {apiVersion: v1, kind: ConfigMap, metadata: {name: theirs}, data: {value: ours}}}]",
    );
    let failed = scenario.phase("ResourceDependency", "conflict", "Failed");
    assert_eq!(entry(&failed, "actions", "a")["reason"], "ApplyConflict");
    assert_eq!(scenario.data("theirs", "value").unwrap(), "theirs");
}

#[test]
fn every_kind_of_patch_waits_for_its_target() {
    let scenario = scenario("patches");
    scenario.resource_dependency(
        "rd",
        r#"
        actions:
        - {name: strategic, type: patch, patch: {target: {apiVersion: v1, kind: ConfigMap, name: target}, patch: '{"data": {"strategic": "1"}}'}}
        - {name: merge, type: patch, patch: {target: {apiVersion: v1, kind: ConfigMap, name: target}, patchType: merge, patch: '{"data": {"merge": "1", "gone": null}}'}}
        - {name: json, type: patch, patch: {target: {apiVersion: v1, kind: ConfigMap, name: target}, patchType: json, patch: '[{"op": "add", "path": "/data/json", "value": "1"}]'}}
        - {name: apply, type: patch, patch: {target: {apiVersion: v1, kind: ConfigMap, name: target}, patchType: apply, patch: '{"data": {"apply": "1"}}'}}
        "#,
    );
    scenario.blocked("rd", "NotFound");
    scenario.passes("meanwhile");
    scenario.apply(
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: target}, data: {value: mine, gone: soon}}",
    );
    scenario.completed("rd");
    let data = scenario.get("ConfigMap", "target").unwrap()["data"].clone();
    assert_eq!(data, json!({"value": "mine", "strategic": "1", "merge": "1", "json": "1", "apply": "1"}));
}

#[test]
fn delete_waits_until_the_object_is_gone() {
    let scenario = scenario("delete");
    scenario
        .apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: old, finalizers: [example.com/hold]}}");
    scenario.resource_dependency(
        "rd",
        "
        actions:
        - {name: remove, priority: 1, type: delete, delete: {target: {apiVersion: v1, kind: ConfigMap, name: old}}}
        - {name: absent, priority: 1, type: delete, delete: {target: {apiVersion: v1, kind: ConfigMap, name: never-there}}}
        - {name: after, priority: 2, type: create, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: after}}}
        ",
    );
    scenario.until("is being deleted", "ConfigMap", "old", |object| {
        object["metadata"].get("deletionTimestamp").is_some()
    });
    scenario.passes("meanwhile");
    scenario.merge("ConfigMap", "old", &json!({"metadata": {"finalizers": null}}));
    scenario.completed("rd");
    let released = scenario.audit.last_by_others("configmaps", "delete", "old");
    assert_before(&released, &scenario.audit.first_write("configmaps", "delete", "after"));
    assert!(scenario.has("after") && !scenario.has("old"));
}

#[test]
fn wait_and_delay_after_let_time_pass() {
    let scenario = scenario("delays");
    scenario.resource_dependency(
        "rd",
        "
        actions:
        - {name: a, priority: 1, delayAfter: 1s, type: create, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}}
        - {name: b, priority: 2, type: create, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: b}}}
        - {name: pause, priority: 3, type: wait, wait: 1s}
        - {name: c, priority: 4, type: create, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: c}}}
        ",
    );
    scenario.completed("rd");
    scenario.in_order(&["a", "b", "c"]);
    let moment = |name: &str| {
        let text = scenario.audit.first_write("configmaps", "delays", name).received;
        let (minutes, seconds) =
            text[14..text.len() - 1].split_once(':').map(|(m, s)| (m.to_owned(), s.to_owned())).unwrap();
        minutes.parse::<f64>().unwrap() * 60.0 + seconds.parse::<f64>().unwrap()
    };
    let hour = 3600.0_f64;
    for (first, second) in [("a", "b"), ("b", "c")] {
        let passed = (moment(second) - moment(first) + hour) % hour;
        assert!((0.9..20.0).contains(&passed), "{passed} s between {first} and {second}");
    }
}

#[test]
fn a_condition_decides_whether_an_action_runs() {
    let scenario = scenario("guards");
    scenario.config_map("there", "");
    scenario.resource_dependency(
        "rd",
        "
        dependencies:
        - {name: there, resource: configmap/there}
        - {name: missing, resource: configmap/missing, optional: true}
        actions:
        - {name: if-there, type: create, condition: {dependency: there, state: Ready}, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: if-there}}}
        - {name: if-not-there, type: create, condition: {dependency: there, state: Ready, negate: true}, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: if-not-there}}}
        - {name: if-missing, type: create, condition: {dependency: configmap/missing, state: NotFound}, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: if-missing}}}
        - {name: if-cel, type: create, condition: {type: cel, expression: \"dependencies.there.state == 'Failed'\"}, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: if-cel}}}
        ",
    );
    let done = scenario.completed("rd");
    assert!(scenario.has("if-there") && scenario.has("if-missing"));
    assert!(!scenario.has("if-not-there") && !scenario.has("if-cel"));
    assert_eq!(entry(&done, "actions", "if-not-there")["state"], "Skipped");
}

#[test]
fn a_failed_action_lets_the_others_run_unless_it_says_fail_fast() {
    let scenario = scenario("fail-fast");
    let spec = |fail_fast: bool, name: &str| {
        format!(
            "
            actions:
            - {{name: bad, priority: 1, failFast: {fail_fast}, type: create, resource: {{apiVersion: v1, kind: ConfigMap, metadata: {{name: Not_A_Name}}}}}}
            - {{name: next, priority: 2, type: create, resource: {{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}}}}}}}
            - {{name: dependent, after: [bad], type: create, resource: {{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}-after}}}}}}
            "
        )
    };
    scenario.resource_dependency("patient", &spec(false, "patient"));
    scenario.resource_dependency("hasty", &spec(true, "hasty"));
    let patient = scenario.phase("ResourceDependency", "patient", "Failed");
    assert_eq!(entry(&patient, "actions", "bad")["reason"], "Invalid");
    scenario.appears("patient");
    scenario.phase("ResourceDependency", "hasty", "Failed");
    thread::sleep(seconds(1));
    assert!(!scenario.has("hasty") && !scenario.has("hasty-after") && !scenario.has("patient-after"));
}

#[test]
fn what_is_refused_again_and_again_stays_failed_and_is_told_once() {
    let scenario = scenario("refused-again");
    scenario.resource_dependency(
        "rd",
        "actions: [{name: bad, type: create, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: Bad_Name}}}]",
    );
    scenario.phase("ResourceDependency", "rd", "Failed");
    let tried = |times: i64| {
        scenario.until("is tried again", "ResourceDependency", "rd", |object| {
            assert_eq!(object["status"]["phase"], "Failed", "{:#}", object["status"]);
            entry(object, "actions", "bad")["attempts"].as_i64() >= Some(times)
        })
    };
    let failed = tried(4);
    let bad = entry(&failed, "actions", "bad");
    assert_eq!((&bad["state"], &bad["reason"]), (&json!("Failed"), &json!("Invalid")));
    let told = scenario.events("rd").into_iter().filter(|(reason, _)| reason == "ActionFailed").count();
    assert_eq!(told, 1, "{:#?}", scenario.events("rd"));
}

#[test]
fn an_edited_create_leaves_what_it_made_and_says_that_it_exists() {
    let scenario = scenario("edited-create");
    let create = |value: &str| {
        let body =
            format!("apiVersion: v1, kind: ConfigMap, metadata: {{name: made}}, data: {{value: {value}}}");
        scenario.resource_dependency(
            "rd",
            &format!("actions: [{{name: a, type: create, resource: {{{body}}}}}]"),
        );
    };
    create("one");
    scenario.completed("rd");
    create("two");
    let edited = scenario.until("is done with the new text", "ResourceDependency", "rd", |object| {
        object["status"]["observedGeneration"] == 2 && object["status"]["phase"] == "Completed"
    });
    let action = entry(&edited, "actions", "a");
    assert_eq!((&action["state"], &action["reason"]), (&json!("Skipped"), &json!("Exists")));
    let message = action["message"].as_str().unwrap();
    assert!(message.contains("made the object earlier") && message.contains("use apply"), "{message}");
    assert_eq!(scenario.data("made", "value").as_deref(), Some("one"));
}

#[test]
fn a_custom_kind_is_created_and_waited_for() {
    let scenario = scenario("custom");
    scenario.apply(
        "
        apiVersion: apiextensions.k8s.io/v1
        kind: CustomResourceDefinition
        metadata: {name: widgets.test.example.com}
        spec:
          group: test.example.com
          scope: Namespaced
          names: {kind: Widget, plural: widgets, singular: widget}
          versions:
          - name: v1
            served: true
            storage: true
            subresources: {status: {}}
            schema: {openAPIV3Schema: {type: object, properties: {
              spec: {type: object, x-kubernetes-preserve-unknown-fields: true},
              status: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {conditions: {type: array, items: {type: object, x-kubernetes-preserve-unknown-fields: true}}}}}}}
        ",
    );
    scenario.resource_dependency(
        "maker",
        "actions: [{type: create, resource: {apiVersion: test.example.com/v1, kind: Widget, metadata: {name: w}, spec: {size: 3, text: '{{ .Now }}'}}}]",
    );
    scenario.resource_dependency(
        "waiter",
        "dependencies: [{name: w, resource: widgets.test.example.com/w, state: Ready}]",
    );
    scenario.completed("maker");
    scenario.blocked("waiter", "NoStatus");
    let ready = json!({"status": {"conditions": [{"type": "Ready", "status": "True", "reason": "Fine"}]}});
    scenario.api.merge("Widget.test.example.com", "custom", "w", "/status", &ready).unwrap();
    scenario.completed("waiter");
}
