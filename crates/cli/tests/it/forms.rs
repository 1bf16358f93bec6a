//! How a dependency may be written, and what its words mean.

use crate::{seconds, world::scenario};
use linchpin_testkit::entry;
use serde_json::json;
use std::thread;

const THING: &str = "
    apiVersion: apiextensions.k8s.io/v1
    kind: CustomResourceDefinition
    metadata: {name: PLURAL.GROUP}
    spec:
      group: GROUP
      scope: Namespaced
      names: {kind: KIND, plural: PLURAL, singular: SINGULAR}
      versions:
      - {name: v1, served: true, storage: true, subresources: {status: {}}, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
";

/// A definition of a kind without a schema.
pub(crate) fn definition(group: &str, kind: &str) -> String {
    let singular = kind.to_lowercase();
    THING
        .replace("GROUP", group)
        .replace("KIND", kind)
        .replace("PLURAL", &format!("{singular}s"))
        .replace("SINGULAR", &singular)
}

#[test]
fn every_way_to_write_one_object_means_the_same_one() {
    let scenario = scenario("forms");
    scenario.apply(&definition("forms.example.com", "Sprocket"));
    scenario.allow(
        "sprockets",
        "[{apiGroups: [forms.example.com], resources: [sprockets], verbs: [get, list, watch]}]",
    );
    scenario.resource_dependency(
        "rd",
        "
        dependencies:
        - {name: plural, resource: sprockets.forms.example.com/one}
        - {name: kind, resource: sprocket.forms.example.com/one}
        - {name: capital, resource: Sprocket.forms.example.com/one}
        - {name: bare, resource: sprocket/one}
        - {name: explicit, ref: {apiVersion: forms.example.com/v1, kind: Sprocket, name: one}}
        - {name: short, resource: cm/plain}
        - {name: own, ref: {apiVersion: v1, kind: ConfigMap, name: plain}}
        - {name: cluster-scoped, resource: ns/forms, namespace: ignored}
        - {name: definition, resource: crd/sprockets.forms.example.com}
        ",
    );
    scenario.allow_everywhere(
        "look",
        "[{apiGroups: [''], resources: [namespaces], verbs: [list, watch]}, \
         {apiGroups: [apiextensions.k8s.io], resources: [customresourcedefinitions], verbs: [list, watch]}]",
    );
    scenario.blocked("rd", "NotFound");
    scenario.config_map("plain", "");
    scenario.apply("{apiVersion: forms.example.com/v1, kind: Sprocket, metadata: {name: one}}");
    scenario.annotate("ResourceDependency", "rd", "linchpin.dev/requested-at", "1");
    let done = scenario.completed("rd");
    for name in ["plural", "kind", "capital", "bare", "explicit"] {
        let resolved = &entry(&done, "dependencies", name)["resolved"];
        assert_eq!(resolved["apiVersion"], "forms.example.com/v1", "{name}");
        assert_eq!(resolved["kind"], "Sprocket", "{name}");
    }
}

#[test]
fn an_object_of_another_namespace_is_waited_for_where_a_role_binding_allows_it() {
    let data = scenario("forms-data");
    let app = scenario("forms-app");
    data.apply(
        "
        {apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: app},
         roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: actor},
         subjects: [{kind: ServiceAccount, name: actor, namespace: forms-app}]}
        ",
    );
    app.resource_dependency(
        "rd",
        "
        dependencies: [{name: db, resource: configmap/db, namespace: forms-data}]
        actions: [{name: copy, type: create, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: copy},
          data: {from: '{{ .Dependencies.db.Namespace }}/{{ .Dependencies.db.Name }}', value: '{{ .Dependencies.configmap_db.Object.data.value }}'}}}]
        ",
    );
    app.blocked("rd", "NotFound");
    data.config_map("db", "gold");
    app.completed("rd");
    assert_eq!(app.data("copy", "from").unwrap(), "forms-data/db");
    assert_eq!(app.data("copy", "value").unwrap(), "gold");
}

#[test]
fn a_word_is_a_state_a_condition_or_a_phase() {
    let scenario = scenario("words");
    scenario.apply(&definition("words.example.com", "Gear"));
    scenario
        .allow("gears", "[{apiGroups: [words.example.com], resources: [gears], verbs: [get, list, watch]}]");
    scenario
        .allow_everywhere("namespaces", "[{apiGroups: [''], resources: [namespaces], verbs: [list, watch]}]");
    for (name, state) in [
        ("phase", "Running"),
        ("condition", "Greased"),
        ("failed", "Failed"),
        ("present", "Present"),
        ("gone", "Deleted"),
    ] {
        scenario.resource_dependency(
            name,
            &format!("dependencies: [{{resource: gear.words.example.com/one, state: {state}}}]"),
        );
    }
    scenario.resource_dependency("active", "dependencies: [{resource: namespace/words, state: Active}]");
    scenario.completed("gone");
    scenario.completed("active");
    scenario.apply("{apiVersion: words.example.com/v1, kind: Gear, metadata: {name: one}}");
    scenario.completed("present");
    let status = |status: serde_json::Value| {
        scenario
            .api
            .merge("Gear.words.example.com", "words", "one", "/status", &json!({"status": status}))
            .unwrap();
    };
    status(json!({"phase": "Starting"}));
    thread::sleep(seconds(1));
    for name in ["phase", "condition", "failed"] {
        scenario.phase("ResourceDependency", name, "Waiting");
    }
    status(json!({"phase": "Running"}));
    scenario.completed("phase");
    status(json!({"conditions": [{"type": "Greased", "status": "True"}]}));
    scenario.completed("condition");
    status(
        json!({"phase": "Failed", "conditions": [{"type": "Failed", "status": "True", "reason": "Broken"}]}),
    );
    scenario.completed("failed");
}

#[test]
fn all_that_a_selector_finds_may_be_required() {
    let scenario = scenario("expect-all");
    scenario.resource_dependency(
        "rd",
        "
        dependencies:
        - {name: all, ref: {apiVersion: v1, kind: ConfigMap}, selector: {matchExpressions: [{key: app, operator: In, values: [db, web]}]},
           expect: {all: true}, conditions: [{jsonPath: .data.ok, value: 'yes'}]}
        ",
    );
    let labelled = |name: &str, ok: &str| {
        scenario.apply(&format!(
            "{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}, labels: {{app: db}}}}, data: {{ok: '{ok}'}}}}"
        ));
    };
    // None is not all.
    scenario.blocked("rd", "CountNotMet");
    labelled("one", "no");
    labelled("two", "yes");
    thread::sleep(seconds(1));
    scenario.phase("ResourceDependency", "rd", "Waiting");
    labelled("one", "yes");
    scenario.completed("rd");
}

#[test]
fn only_the_events_that_are_named_run_an_action_again() {
    let scenario = scenario("watch-events");
    scenario.config_map("new", "1");
    scenario.config_map("any", "1");
    let follow = |events: &str, of: &str| {
        format!(
            "
            watchMode: true
            dependencies: [{{name: source, resource: configmap/{of}{events}}}]
            actions:
            - {{name: follow, type: apply, runOnChanges: true, apply: {{apiVersion: v1, kind: ConfigMap,
                metadata: {{name: copy-{of}}}, data: {{value: '{{{{ .Dependencies.source.Object.data.value }}}}'}}}}}}
            "
        )
    };
    scenario.resource_dependency("on-create", &follow(", watchEvents: [create]", "new"));
    scenario.resource_dependency("on-any", &follow("", "any"));
    scenario.completed("on-create");
    scenario.completed("on-any");
    let copied = |of: &str| scenario.data(&format!("copy-{of}"), "value").unwrap();
    scenario.config_map("new", "2");
    scenario.config_map("any", "2");
    scenario.until("follows", "ConfigMap", "copy-any", |object| object["data"]["value"] == "2");
    thread::sleep(seconds(1));
    assert_eq!(copied("new"), "1", "an update does not count");
    scenario.delete("ConfigMap", "new");
    scenario.config_map("new", "3");
    scenario.until("follows a new one", "ConfigMap", "copy-new", |object| object["data"]["value"] == "3");
}

#[test]
fn another_object_of_ours_is_waited_for_until_its_phase_is_completed() {
    let scenario = scenario("completed-other");
    scenario.resource_dependency("first", "{dependencies: [{name: a, resource: configmap/a}]}");
    scenario.resource_dependency("second", "{dependencies: [{resource: rd/first, state: Completed}]}");
    scenario.phase("ResourceDependency", "second", "Waiting");
    scenario.config_map("a", "");
    let second = scenario.completed("second");
    assert_eq!(entry(&second, "dependencies", "rd/first")["state"], "Completed");
}
