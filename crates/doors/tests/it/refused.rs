//! Specs that cannot be carried out: which field, and what is wrong with it.

use linchpin_doors::{DependencyGroupDoor, Door, ResourceDependencyDoor, journal};
use serde_json::{Value, json};

use crate::stage::{compile, read};

fn refused<D: Door>(kind: &str, spec: &Value) -> String
where
    D::Object: serde::de::DeserializeOwned,
{
    let manifest = json!({"apiVersion": "tools.kubestellar.io/v1", "kind": kind, "metadata": {"name": "x"}, "spec": spec});
    match compile::<D>(&read(&manifest.to_string())) {
        Ok(_) => panic!("it is accepted: {spec}"),
        Err(error) => error.to_string(),
    }
}

fn error(spec: &Value) -> String {
    refused::<ResourceDependencyDoor>("ResourceDependency", spec)
}

fn of_dependency(entry: &Value) -> String {
    error(&json!({"dependencies": [entry]}))
}

fn of_action(entry: &Value) -> String {
    let dependencies =
        json!([{"resource": "deployment/db"}, {"name": "cache", "resource": "deployment/cache"}]);
    error(&json!({"dependencies": dependencies, "actions": [entry]}))
}

#[test]
fn dependencies_that_cannot_be_looked_for() {
    for (entry, expected) in [
        (
            json!({"resource": "deployment"}),
            "spec.dependencies[0].resource: \"deployment\" has no name; write kind/name, for example deployment/web, or \
             give a selector",
        ),
        (
            json!({"resource": "deployment/a/b"}),
            "spec.dependencies[0].resource: \"deployment/a/b\": unexpected \"/\" in the name at character 13; a group is \
             written kind.group/name, a namespace goes into the field namespace",
        ),
        (json!({"namespace": "a"}), "spec.dependencies[0]: give exactly one of resource and ref"),
        (
            json!({"resource": "pod/a", "timeout": "5 minutes"}),
            "spec.dependencies[0].timeout: \"5 minutes\": unknown unit \" minutes\" at character 2; use ns, us, ms, s, m \
             or h (a day is 24h)",
        ),
        (
            json!({"resource": "pod/a", "cel": "self.status.phase =="}),
            "spec.dependencies[0].cel: line 1 column 21: not a CEL expression",
        ),
        (
            json!({"resource": "pod/a", "conditions": [{"jsonPath": ".status.x", "operator": "gte"}]}),
            "spec.dependencies[0].conditions[0].value: operator gte needs a value",
        ),
        (
            json!({"resource": "pod/a", "conditions": [{"jsonPath": "{.a[", "value": 1}]}),
            "spec.dependencies[0].conditions[0].jsonPath: ",
        ),
        (
            json!({"resource": "pod/a", "expect": {"atLeast": 1}}),
            "spec.dependencies[0].expect: it counts what a selector finds; it needs a selector",
        ),
        (
            json!({"resource": "pod", "selector": {}}),
            "spec.dependencies[0].selector: it is empty and would match everything",
        ),
        (
            json!({"resource": "pod/a", "cluster": {"controlPlaneRef": {}}}),
            "spec.dependencies[0].cluster.controlPlaneRef: give exactly one of name and selector",
        ),
        (
            json!({"resource": "pod/a", "group": "operators"}),
            "spec.dependencies[0].group: only a DependencyGroup has groups; pod/a is a Pod",
        ),
    ] {
        let told = of_dependency(&entry);
        assert!(told.starts_with(expected), "{entry}\n  told: {told}\n  not:  {expected}");
    }
}

#[test]
fn actions_that_cannot_be_carried_out() {
    let map = |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
    let target = json!({"kind": "Deployment", "name": "a"});
    for (entry, expected) in [
        (json!({"type": "create"}), "spec.actions[0]: an action of type create needs resource"),
        (
            json!({"type": "create", "resource": map("{{ .Values.a")}),
            "spec.actions[0].resource.metadata.name: not a template at line 1 column ",
        ),
        (
            json!({"type": "create", "resource": {"kind": "ConfigMap", "metadata": {"name": "a"}}}),
            "spec.actions[0].resource: it has no apiVersion",
        ),
        (
            json!({"type": "template", "template": "kind: A\n\tb: c"}),
            "spec.actions[0].template: at line 1 column 7: this is not valid YAML",
        ),
        (
            json!({"type": "template", "template": "# nothing"}),
            "spec.actions[0].template: there is no document in it",
        ),
        (
            json!({"type": "template", "template": "{{ .Dependencies.database.Status.x }}"}),
            "spec.actions[0].template: no dependency has the key \"database\"; there are cache, deployment_cache, \
             deployment_db",
        ),
        (
            json!({"type": "apply", "apply": 7}),
            "spec.actions[0].apply: give an object, a list of objects, or a text",
        ),
        (json!({"type": "apply", "apply": [7]}), "spec.actions[0].apply[0]: it is not an object"),
        (
            json!({"type": "patch", "patch": {"target": target, "patchType": "json", "patch": "{}"}}),
            "spec.actions[0].patch.patch: a patch of type json must be a list of operations",
        ),
        (
            json!({"type": "exec", "exec": {"target": target, "command": ["a"]}}),
            "spec.actions[0].exec.target.kind: a command runs in a Pod, not in a Deployment",
        ),
        (
            json!({"type": "exec", "exec": {"target": {"kind": "Pod", "name": "a"}, "command": ["a"], "timeout": "3601s"}}),
            "spec.actions[0].exec.timeout: a command may run for an hour at most (1h): what takes longer belongs in a Job",
        ),
        (
            json!({"type": "wait", "wait": "soon"}),
            "spec.actions[0].wait: \"soon\": expected a number at character 1",
        ),
        (
            json!({"type": "wait", "wait": "1s", "condition": {"dependency": "deployment/web"}}),
            "spec.actions[0].condition.dependency: there is no dependency \"deployment/web\"; there are \
             \"deployment/db\", \"cache\"",
        ),
        (
            json!({"type": "wait", "wait": "1s", "condition": {"expression": "dependencies.web.state == 'Ready'"}}),
            "spec.actions[0].condition.expression: no dependency has the key \"web\"",
        ),
        (
            json!({"type": "wait", "wait": "1s", "condition": {"type": "cel", "dependency": "cache"}}),
            "spec.actions[0].condition: give dependency for type dependency, or expression for type cel",
        ),
        (
            json!({"type": "wait", "wait": "1s", "after": ["b"]}),
            "spec.actions[0].after[0]: there is no action named \"b\"; named are: no action has a name",
        ),
        (json!({"type": "wait", "wait": "1s", "delayAfter": "-1s"}), "spec.actions[0].delayAfter: "),
    ] {
        let told = of_action(&entry);
        assert!(told.starts_with(expected), "{entry}\n  told: {told}\n  not:  {expected}");
    }
}

#[test]
fn names_must_differ_and_a_dependency_in_a_condition_must_be_one() {
    let twice = json!([{"name": "a", "resource": "pod/a"}, {"name": "a", "resource": "pod/b"}]);
    assert_eq!(
        error(&json!({"dependencies": twice})),
        "spec.dependencies[1].name: \"a\" is the name of spec.dependencies[0] too; names must differ"
    );
    let wait = |name: &str| json!({"name": name, "type": "wait", "wait": "1s"});
    assert_eq!(
        error(&json!({"actions": [wait("a"), wait("b"), wait("a")]})),
        "spec.actions[2].name: \"a\" is the name of spec.actions[0] too; names must differ"
    );
    let same = json!([{"resource": "pod/a", "namespace": "one"}, {"resource": "pod/a", "namespace": "two"}]);
    let guarded = json!([{"type": "wait", "wait": "1s", "condition": {"dependency": "pod/a"}}]);
    assert_eq!(
        error(&json!({"dependencies": same, "actions": guarded})),
        "spec.actions[0].condition.dependency: \"pod/a\" is the dependency of each of spec.dependencies[0], \
         spec.dependencies[1]; give them names"
    );
    let read = json!([{"type": "template", "template": "{{ .Dependencies.pod_a.Name }}"}]);
    assert_eq!(
        error(&json!({"dependencies": same, "actions": read})),
        "spec.actions[0].template: \"pod_a\" is the key of each of spec.dependencies[0], spec.dependencies[1]; give them \
         names"
    );
    assert!(
        compile::<ResourceDependencyDoor>(&read_spec(&json!({"dependencies": same}))).is_ok(),
        "a key given twice is an error only for who reads it"
    );
}

fn read_spec(spec: &Value) -> linchpin_api::ResourceDependency {
    let manifest = json!({"apiVersion": "tools.kubestellar.io/v1", "kind": "ResourceDependency",
        "metadata": {"name": "x"}, "spec": spec});
    read(&manifest.to_string())
}

#[test]
fn a_circle_of_actions_is_spelled_out() {
    let wait =
        |name: &str, after: &str| json!({"name": name, "type": "wait", "wait": "1s", "after": [after]});
    assert_eq!(
        error(&json!({"actions": [wait("a", "c"), wait("b", "a"), wait("c", "b")]})),
        "spec.actions[0]: these steps wait for each other: a → b → c → a"
    );
    assert_eq!(
        error(&json!({"actions": [wait("a", "a")]})),
        "spec.actions[0].after[0]: an action cannot come after itself"
    );
}

#[test]
fn lists_are_bounded_at_the_limit_and_not_before() {
    let list = |count: usize| -> Vec<Value> {
        (0..count).map(|index| json!({"resource": format!("configmap/c{index}")})).collect()
    };
    assert!(compile::<ResourceDependencyDoor>(&read_spec(&json!({"dependencies": list(256)}))).is_ok());
    for count in [257, 25_600] {
        assert_eq!(
            error(&json!({"dependencies": list(count)})),
            format!("spec.dependencies: there are {count} dependencies; 256 are allowed")
        );
    }
    let waits: Vec<Value> = (0..257).map(|_| json!({"type": "wait", "wait": "1s"})).collect();
    assert_eq!(error(&json!({"actions": waits})), "spec.actions: there are 257 actions; 256 are allowed");
}

#[test]
fn groups_that_cannot_be_ordered() {
    let group_error =
        |groups: Value| refused::<DependencyGroupDoor>("DependencyGroup", &json!({"groups": groups}));
    assert_eq!(
        group_error(json!([{"name": "a"}, {"name": "b", "dependsOn": ["c"]}])),
        "spec.groups[1].dependsOn[0]: there is no group named \"c\"; there are a, b"
    );
    assert_eq!(
        group_error(json!([{"name": "a", "dependsOn": ["b"]}, {"name": "b", "dependsOn": ["a"]}])),
        "spec.groups[0].dependsOn: groups wait for each other: a → b → a"
    );
    assert_eq!(
        group_error(json!([{"name": "a"}, {"name": "a"}])),
        "spec.groups[1].name: \"a\" is the name of spec.groups[0] too; names must differ"
    );
    assert_eq!(
        group_error(json!([{"name": "a", "dependencies": [{"name": "d", "resource": "pod"}]}])),
        "spec.groups[0].dependencies[0].resource: \"pod\" has no name; write kind/name, for example deployment/web, or \
         give a selector"
    );
    let many: Vec<Value> = (0..65).map(|index| json!({"name": format!("g{index}")})).collect();
    assert_eq!(group_error(json!(many)), "spec.groups: there are 65 groups; 64 are allowed");
}

#[test]
fn a_journal_that_cannot_be_read_is_not_forgotten() {
    let mut object = read_spec(&json!({}));
    for journal in [
        json!({"uid": "uid-1", "steps": 7}),
        json!({"text": "{"}),
        json!({"text": r#"{"uid": "uid-1", "steps": 7}"#}),
    ] {
        let status = json!({"observedGeneration": 1, "journal": journal});
        object.status = Some(serde_json::from_value(status).expect("a status"));
        let error = journal::of(&object).expect_err("unreadable");
        assert!(error.to_string().starts_with("status.journal: it cannot be read"), "{error}");
    }
}

#[test]
fn a_spec_that_takes_more_than_a_turn_to_read() {
    // Each of these compiles to many KiB.
    let pattern = "[^a]{80}";
    let dependency = |number: usize| {
        let condition =
            json!({"jsonPath": ".data.x", "operator": "matches", "value": format!("{pattern}{number}")});
        json!({"resource": format!("configmap/a{number}"), "conditions": vec![condition; 16]})
    };
    let dependencies = |count: usize| json!({"dependencies": (0..count).map(dependency).collect::<Vec<_>>()});
    let problem = error(&dependencies(256));
    assert!(
        problem.contains("takes more than 1000000 steps, and there are patterns to compile here"),
        "{problem}"
    );
    assert!(problem.starts_with("spec.dependencies["), "{problem}");
    let guarded = json!({
        "dependencies": [{"name": "a", "resource": "configmap/a"}],
        "actions": [{"type": "wait", "wait": "1s", "condition": {"type": "cel", "expression":
            vec![format!(r"dependencies.a.state.matches('{}')", r"\\w+"); 10].join(" && ")}}],
    });
    let problem = error(&guarded);
    assert!(problem.contains("all patterns together are too large once compiled"), "{problem}");
}
