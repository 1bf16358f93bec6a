//! Twenty mistakes that newcomers make, and exactly what each is told: what is wrong, where, and what to do.

use crate::world::{scenario, world};
use linchpin_testkit::Scenario;

/// How a mistake comes to light.
enum Told {
    /// The API server refuses the object, with this in its answer.
    Refused(&'static str),
    /// The object's status has this line.
    Message(&'static str),
}
use Told::{Message, Refused};

/// What is done wrong, the spec of a ResourceDependency, and what is told. `$NS` is the namespace.
const TABLE: &[(&str, &str, Told)] = &[
    (
        "kind",
        "dependencies: [{resource: deploymnet/web}]",
        Message(
            "waiting for deploymnet/web: the API server does not serve this kind now; did you mean deployment?",
        ),
    ),
    (
        "field",
        "dependancies: [{resource: configmap/a}]",
        Refused(".spec.dependancies: field not declared in schema"),
    ),
    (
        "cycle",
        "actions: [{name: a, type: wait, wait: 1s, after: [b]}, {name: b, type: wait, wait: 1s, after: [a]}]",
        Message("spec.actions[0]: these steps wait for each other: a → b → a"),
    ),
    (
        "unit",
        "dependencies: [{resource: configmap/a, timeout: 30 seconds}]",
        Refused("spec.dependencies[0].timeout: Invalid value: \"30 seconds\": write a duration such as 30s, 5m or 1m30s"),
    ),
    (
        "no-unit",
        "dependencies: [{resource: configmap/a, timeout: 30}]",
        Refused("spec.dependencies[0].timeout: Invalid value: 30: write a duration such as 30s, 5m or 1m30s"),
    ),
    (
        "duplicate",
        "dependencies: [{name: db, resource: configmap/a}, {name: db, resource: configmap/b}]",
        Refused("spec.dependencies: Invalid value: two dependencies have the same name, db; names must differ"),
    ),
    (
        "order",
        "actions: [{name: first, type: wait, wait: 1s}, {name: second, type: wait, wait: 1s, after: [frist]}]",
        Message(
            "spec.actions[1].after[0]: there is no action named \"frist\"; named are: first, second; did you mean first?",
        ),
    ),
    (
        "guard",
        "dependencies: [{name: db, resource: configmap/there}]
actions: [{name: a, type: wait, wait: 1s, condition: {dependency: dbb}}]",
        Message(
            "spec.actions[0].condition.dependency: there is no dependency \"dbb\"; there are \"db\"; did you mean db?",
        ),
    ),
    (
        "namespace",
        "dependencies: [{resource: configmap/a, namespace: othr}]",
        Message("waiting for configmap/a in namespace othr: namespace othr does not exist"),
    ),
    (
        "namespace-unseen",
        "dependencies: [{resource: service/a, namespace: othr}]",
        Message(
            "waiting for service/a in namespace othr: ServiceAccount $NS/actor is not allowed to list and watch \
             services a in othr; asked again in N s at most; does namespace othr exist?",
        ),
    ),
    (
        "right",
        "actions: [{name: a, type: create, resource: {apiVersion: v1, kind: ServiceAccount, metadata: {name: new}}}]",
        Message("a waits: ServiceAccount $NS/actor may not create serviceaccounts in $NS, get serviceaccounts new in $NS; asked again in N s at most"),
    ),
    (
        "json-path",
        "dependencies: [{resource: configmap/there, conditions: [{jsonPath: '.data[value', operator: eq, value: x}]}]",
        Message("spec.dependencies[0].conditions[0].jsonPath: at character 7: expected a quoted name, an index, a slice, * or ?(…), found 'v'"),
    ),
    (
        "json-path-of-nothing",
        "dependencies: [{resource: configmap/there, conditions: [{jsonPath: .data.hots, operator: eq, value: x}]}]",
        Message("waiting for configmap/there: .data.hots is not there yet; .data has: value"),
    ),
    (
        "json-path-misspelt",
        "dependencies: [{resource: configmap/there, conditions: [{jsonPath: .data.vlaue, operator: eq, value: x}]}]",
        Message("waiting for configmap/there: .data.vlaue is not there yet; .data has: value; did you mean value?"),
    ),
    (
        "json-path-misspelt-elsewhere",
        "dependencies: [{resource: deployment/ready, state: Exists, conditions: [{jsonPath: .spec.replicsa, operator: eq, value: x}]}]",
        Message("waiting for deployment/ready: .spec.replicsa is not there yet; did you mean replicas?"),
    ),
    (
        "key-misspelt-elsewhere",
        "dependencies: [{name: web, resource: deployment/ready, state: Exists}]
actions: [{name: a, type: create, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: '{{ .Dependencies.web.Spec.replicsa }}'}}}]",
        Message("its action is not done yet: spec.actions[0].resource.data.a:1:4: no value at .Dependencies.web.Spec.replicsa (near \"{{ .Dependencies.web.Spec.replicsa }}\"); did you mean replicas?"),
    ),
    (
        "right-of-a-second-action",
        "actions: [{name: a, priority: 1, type: create, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: first}}}, {name: b, priority: 2, type: create, resource: {apiVersion: v1, kind: ServiceAccount, metadata: {name: new}}}]",
        Message("b waits: ServiceAccount $NS/actor may not create serviceaccounts in $NS, get serviceaccounts new in $NS; asked again in N s at most"),
    ),
    (
        "template",
        "dependencies: [{name: db, resource: configmap/there}]
actions: [{name: a, type: create, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: '{{ .Dependencies.dbb.Name }}'}}}]",
        Message("spec.actions[0].resource: no dependency has the key \"dbb\"; there are configmap_there, db; did you mean db?"),
    ),
    (
        "data-key",
        "dependencies: [{name: db, resource: configmap/there}]
actions: [{name: a, type: create, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: '{{ .Dependencies.db.Object.data.valeu }}'}}}]",
        Message("its action is not done yet: spec.actions[0].resource.data.a:1:4: no value at .Dependencies.db.Object.data.valeu (near \"{{ .Dependencies.db.Object.data.valeu }}\"); .data has: value; did you mean value?"),
    ),
    (
        "value",
        "values: {host: a}
actions: [{name: a, type: create, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: '{{ .Values.hots }}'}}}]",
        Message("a: spec.actions[0].resource.data.a:1:4: no value at .Values.hots (near \"{{ .Values.hots }}\"); .Values has: host; did you mean host?; asked again in N s"),
    ),
    ("itself", "dependencies: [{resource: rd/itself}]", Message("waits for itself: ResourceDependency $NS/itself → ResourceDependency $NS/itself")),
    (
        "service-account",
        "serviceAccountName: nobody
dependencies: [{resource: configmap/there}]",
        Message("waiting for configmap/there: ServiceAccount $NS/nobody does not exist: create it or name another one in serviceAccountName"),
    ),
    (
        "service-account-of-an-action",
        "serviceAccountName: nobody
actions: [{name: a, type: create, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: new}}}]",
        Message("a waits: ServiceAccount $NS/nobody does not exist: create it or name another one in serviceAccountName"),
    ),
    (
        "patch-target",
        "actions: [{name: a, type: patch, patch: {target: {apiVersion: v1, kind: ConfigMap, name: nothing}, patch: '{\"data\": {\"a\": \"b\"}}'}}]",
        Message("its action is not done yet: ConfigMap $NS/nothing does not exist"),
    ),
    (
        "brace",
        "actions: [{name: a, type: create, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: '{{ .Now }'}}}]",
        Message("spec.actions[0].resource.data.a: not a template at line 1 column 1: this action is not closed with }} (near \"{{ .Now }\")"),
    ),
    (
        "policy",
        "actions: [{name: a, type: create, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: forbidden-a}}}]",
        Message("a: ConfigMap $NS/forbidden-a was refused by admission policy \"no-forbidden-names\": call it otherwise; asked again in N s"),
    ),
    (
        "unknown-field-in-create",
        "actions: [{name: a, type: create, resource: {apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {replica: 1, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: a}]}}}}}]",
        Message("a: Deployment $NS/a was refused: .spec.replica: unknown field; asked again in N s"),
    ),
    (
        "unknown-field-in-apply",
        "actions: [{name: a, type: apply, resource: {apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {replica: 1, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: a}]}}}}}]",
        Message("a: Deployment $NS/a was refused: .spec.replica: unknown field; asked again in N s"),
    ),
    (
        "wrong-type",
        "actions: [{name: a, type: create, resource: {apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {replicas: two, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: a}]}}}}}]",
        Message("a: Deployment $NS/a was refused: .spec.replicas: expected a number, got string; asked again in N s"),
    ),
    (
        "state",
        "dependencies: [{resource: deployment/ready, state: Redy}]",
        Message("waiting for deployment/ready: it has neither a condition Redy nor a phase; did you mean Ready?"),
    ),
];

/// Numbers that no test can know are not compared.
fn steady(text: &str) -> String {
    let mut steady = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("asked again in ") {
        let (_, after) = after.split_once(" s").unwrap_or(("", after));
        steady.push_str(before);
        steady.push_str("asked again in N s");
        rest = after;
    }
    steady.push_str(rest);
    steady
}

#[test]
fn each_mistake_is_told_in_words_that_help() {
    let scenario = scenario("mistakes");
    scenario.config_map("there", "x");
    scenario.apply(
        "
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: no-forbidden-names}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]}
  validations: [{expression: \"!object.metadata.name.startsWith('forbidden-')\", message: 'call it otherwise', reason: Invalid}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: no-forbidden-names}
spec: {policyName: no-forbidden-names, validationActions: [Deny]}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: ready}, spec: {replicas: 0, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: a}]}}}}
",
    );
    scenario
        .allow_everywhere("looks", "[{apiGroups: [''], resources: [configmaps], verbs: [get, list, watch]}]");
    let wrong: Vec<String> =
        TABLE.iter().filter_map(|(name, spec, told)| judge(&scenario, name, spec, told)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What is told instead, if it is something else.
fn judge(scenario: &Scenario, name: &str, spec: &str, told: &Told) -> Option<String> {
    let spec = spec.replace("$NS", &scenario.namespace);
    match told {
        Refused(words) => {
            let said = scenario.refused_resource_dependency(name, &spec);
            (!said.contains(words)).then(|| format!("{name}: {said}"))
        }
        Message(words) => {
            let words = words.replace("$NS", &scenario.namespace);
            scenario.resource_dependency(name, &spec);
            let mut last = String::new();
            for _ in 0..400 {
                let object = scenario.get("ResourceDependency", name).unwrap_or_default();
                last = steady(object["status"]["message"].as_str().unwrap_or_default());
                if last == words {
                    return None;
                }
                std::thread::sleep(std::time::Duration::from_millis(25));
            }
            Some(format!("{name}: {last}"))
        }
    }
}

#[test]
fn an_object_in_a_system_namespace_says_why_it_is_not_served() {
    let api = &world().api;
    let manifest = serde_json::json!({"apiVersion": "tools.kubestellar.io/v1", "kind": "ResourceDependency",
        "metadata": {"name": "mistake", "namespace": "kube-public"}, "spec": {"dependencies": [{"resource": "configmap/a"}]}});
    api.apply(&manifest).unwrap();
    let mut last = String::new();
    for _ in 0..400 {
        let object = api.get("ResourceDependency", "kube-public", "mistake").unwrap_or_default();
        last = object["status"]["message"].as_str().unwrap_or_default().to_owned();
        if last.contains("kube-public") {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(25));
    }
    api.delete("ResourceDependency", "kube-public", "mistake");
    assert_eq!(
        last,
        "waiting for configmap/a: objects in namespace kube-public are not served: start the operator with \
         --allow-system-namespaces if they should be"
    );
}
