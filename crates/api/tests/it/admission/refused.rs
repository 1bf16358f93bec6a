//! Objects that must be refused, and what the answer must say.

const RD: &str = "ResourceDependency";
const DG: &str = "DependencyGroup";
const AB: &str = "AppBundle";
const RP: &str = "ReadinessProfile";

/// Kind, spec, and a part of the answer.
pub(crate) const REFUSED: &[(&str, &str, &str)] = &[
    // Dependencies.
    (
        RD,
        "{dependencies: [{name: a}]}",
        "spec.dependencies[0]: Invalid value: give exactly one of resource and ref",
    ),
    (
        RD,
        "{dependencies: [{resource: pod/x, ref: {kind: Pod, name: x}}]}",
        "give exactly one of resource and ref",
    ),
    (RD, "{dependencies: [{resource: deployment}]}", "resource is kind/name, for example deployment/web"),
    (RD, "{dependencies: [{resource: pod/x, selector: {}}]}", "with a selector it is the kind only"),
    (
        RD,
        "{dependencies: [{resource: 'pod/a b'}]}",
        "spec.dependencies[0].resource: Invalid value: \"pod/a b\"",
    ),
    (RD, "{dependencies: [{resource: a/b/c}]}", "spec.dependencies[0].resource: Invalid value: \"a/b/c\""),
    (
        RD,
        "{dependencies: [{resource: 'pod/{{ .Values.x }}'}]}",
        "spec.dependencies[0].resource: Invalid value",
    ),
    (RD, "{dependencies: [{ref: {kind: Pod}}]}", "ref needs a name, or a selector instead of it"),
    (RD, "{dependencies: [{ref: {name: x}}]}", "spec.dependencies[0].ref.kind: Required value"),
    (
        RD,
        "{dependencies: [{namespace: a, ref: {kind: Pod, name: x, namespace: b}}]}",
        "give the namespace once",
    ),
    (RD, "{dependencies: [{resource: pod/x, expect: {atLeast: 1}}]}", "it needs a selector"),
    (
        RD,
        "{dependencies: [{resource: pod, selector: {}, expect: {}}]}",
        "exactly one of atLeast, exactly and all",
    ),
    (
        RD,
        "{dependencies: [{resource: pod, selector: {}, expect: {atLeast: 1, all: true}}]}",
        "exactly one of atLeast",
    ),
    (RD, "{dependencies: [{resource: pod, selector: {}, expect: {all: false}}]}", "all can only be true"),
    (
        RD,
        "{dependencies: [{resource: pod, selector: {}, expect: {exactly: -1}}]}",
        "greater than or equal to 0",
    ),
    (
        RD,
        "{dependencies: [{resource: pod, selector: {matchExpressions: [{key: a, operator: In}]}}]}",
        "In and NotIn need values",
    ),
    (
        RD,
        "{dependencies: [{resource: pod, selector: {matchExpressions: [{key: a, operator: Gt}]}}]}",
        "Unsupported value: \"Gt\"",
    ),
    (
        RD,
        "{dependencies: [{resource: pod/x, timeout: 5 minutes}]}",
        "write a duration such as 30s, 5m or 1m30s",
    ),
    (RD, "{dependencies: [{resource: pod/x, timeout: '10'}]}", "write a duration such as 30s, 5m or 1m30s"),
    (RD, "{dependencies: [{resource: pod/x, timeout: 30}]}", "write a duration such as 30s, 5m or 1m30s"),
    (RD, "{dependencies: [{resource: pod/x, timeout: -5s}]}", "write a duration such as 30s, 5m or 1m30s"),
    (RD, "{dependencies: [{resource: pod/x, timeout: 10}]}", "spec.dependencies[0].timeout: Invalid value"),
    (RD, "{dependencies: [{resource: pod/x, progressTimeout: soon}]}", "write a duration such as 30s"),
    (RD, "{globalTimeout: 1d}", "spec.globalTimeout: Invalid value"),
    (RD, "{dependencies: [{resource: pod/x, minReplicas: -1}]}", "greater than or equal to 0"),
    (RD, "{dependencies: [{resource: pod/x, watchEvents: [created]}]}", "Unsupported value: \"created\""),
    (RD, "{dependencies: [{resource: pod/x, watchEvents: [create, create]}]}", "Duplicate value"),
    (
        RD,
        "{dependencies: [{resource: pod/x, conditions: [{value: a}]}]}",
        "conditions[0].jsonPath: Required value",
    ),
    (
        RD,
        "{dependencies: [{resource: pod/x, conditions: [{jsonPath: .a}]}]}",
        "conditions[0].value: Required value",
    ),
    (
        RD,
        "{dependencies: [{resource: pod/x, conditions: [{jsonPath: .a, operator: gt}]}]}",
        "conditions[0].value: Required value",
    ),
    (
        RD,
        "{dependencies: [{resource: pod/x, conditions: [{jsonPath: .a, operator: like, value: b}]}]}",
        "Unsupported value: \"like\"",
    ),
    (
        RD,
        "{dependencies: [{name: a, resource: pod/x}, {name: a, resource: pod/y}]}",
        "two dependencies have the same name",
    ),
    (RD, "{dependencies: [{name: 'a@b', resource: pod/x}]}", "spec.dependencies[0].name: Invalid value"),
    (
        RD,
        "{dependencies: [{resource: pod/x, cluster: {controlPlaneRef: {name: a}, kubeconfigSecretRef: {name: b}}}]}",
        "give one of controlPlaneRef and kubeconfigSecretRef",
    ),
    (
        RD,
        "{dependencies: [{resource: pod/x, cluster: {controlPlaneRef: {}}}]}",
        "give exactly one of name and selector",
    ),
    (RD, "{dependencies: [{resource: pod/x, cluster: {impersonate: {user: a}}}]}", "impersonate goes with"),
    // Actions.
    (RD, "{actions: [{priority: 1}]}", "spec.actions[0].type: Required value"),
    (RD, "{actions: [{type: destroy}]}", "Unsupported value: \"destroy\""),
    (RD, "{actions: [{type: create}]}", "spec.actions[0]: Invalid value: the body must fit the type"),
    (RD, "{actions: [{type: create, template: a}]}", "the body must fit the type"),
    (RD, "{actions: [{type: template, resource: {}}]}", "the body must fit the type"),
    (RD, "{actions: [{type: patch, wait: 1s}]}", "the body must fit the type"),
    (RD, "{actions: [{type: delete, wait: 1s}]}", "the body must fit the type"),
    (RD, "{actions: [{type: wait, template: a}]}", "the body must fit the type"),
    (RD, "{actions: [{type: exec, template: a}]}", "the body must fit the type"),
    (RD, "{actions: [{type: create, resource: {}, wait: 1s}]}", "an action has one body"),
    (RD, "{actions: [{type: apply}]}", "spec.actions[0].apply: Required value"),
    (RD, "{actions: [{type: apply, wait: 1s}]}", "spec.actions[0].apply: Required value"),
    (RD, "{actions: [{type: apply, apply: {}, wait: 1s}]}", "type apply takes its objects from apply"),
    (RD, "{actions: [{type: apply, apply: {}, resource: {}}]}", "spec.actions[0]"),
    (RD, "{actions: [{type: create, resource: {}, apply: {}}]}", "spec.actions[0]"),
    (RD, "{actions: [{type: wait, wait: forever}]}", "write a duration such as 30s"),
    (RD, "{actions: [{type: wait, wait: 1s, delayAfter: x}]}", "spec.actions[0].delayAfter"),
    (RD, "{actions: [{type: wait, wait: 1s, onExisting: Skip}]}", "onExisting goes with type create only"),
    (RD, "{actions: [{type: create, resource: {}, onExisting: skip}]}", "Unsupported value: \"skip\""),
    (
        RD,
        "{actions: [{type: create, resource: {}, adopt: Adopt}]}",
        "adopt goes with types template and apply only",
    ),
    (RD, "{actions: [{type: wait, wait: 1s, name: a, after: [a]}]}", "an action cannot come after itself"),
    (RD, "{actions: [{type: wait, wait: 1s, after: [a, a]}]}", "Duplicate value"),
    (
        RD,
        "{actions: [{type: wait, wait: 1s, name: a}, {type: wait, wait: 1s, name: a}]}",
        "two actions have the same name",
    ),
    (
        RD,
        "{actions: [{type: wait, wait: 1s, condition: {state: Ready}}]}",
        "give exactly one of dependency and expression",
    ),
    (
        RD,
        "{actions: [{type: wait, wait: 1s, condition: {dependency: a, expression: b}}]}",
        "give exactly one of dependency",
    ),
    (
        RD,
        "{actions: [{type: wait, wait: 1s, condition: {type: cel, dependency: a}}]}",
        "type cel needs expression",
    ),
    (
        RD,
        "{actions: [{type: wait, wait: 1s, condition: {type: dependency, expression: a}}]}",
        "type dependency needs dependency",
    ),
    (
        RD,
        "{actions: [{type: wait, wait: 1s, condition: {expression: a, state: Ready}}]}",
        "state is that of a dependency",
    ),
    (
        RD,
        "{actions: [{type: patch, patch: {target: {kind: Pod}, patch: '{}'}}]}",
        "patch.target.name: Required value",
    ),
    (RD, "{actions: [{type: patch, patch: {target: {kind: Pod, name: x}}}]}", "patch.patch: Required value"),
    (
        RD,
        "{actions: [{type: patch, patch: {target: {kind: Pod, name: x}, patchType: smart, patch: '{}'}}]}",
        "Unsupported value: \"smart\"",
    ),
    (
        RD,
        "{actions: [{type: delete, delete: {target: {kind: Pod, name: x}, propagation: Sideways}}]}",
        "Unsupported value: \"Sideways\"",
    ),
    (
        RD,
        "{actions: [{type: exec, exec: {target: {kind: Deployment, name: x}, command: [a]}}]}",
        "target.kind must be Pod",
    ),
    (
        RD,
        "{actions: [{type: exec, exec: {target: {kind: Pod, name: x}, command: []}}]}",
        "should have at least 1 items",
    ),
    (
        RD,
        "{actions: [{type: exec, exec: {target: {kind: Pod, name: x}, command: [a], delivery: Once}}]}",
        "Unsupported value: \"Once\"",
    ),
    (
        RD,
        "{actions: [{type: exec, exec: {target: {kind: Pod, name: x}, command: [a], timeout: 1h0m1s}}]}",
        "a command may run for an hour at most",
    ),
    (
        RD,
        "{actions: [{type: exec, exec: {target: {kind: Pod, name: x}, command: [a], timeout: 87600h}}]}",
        "a command may run for an hour at most",
    ),
    // The rest of a spec.
    (RD, "{valuesFrom: [{}]}", "give exactly one of configMapRef and secretRef"),
    (
        RD,
        "{valuesFrom: [{configMapRef: {name: a}, secretRef: {name: b}}]}",
        "give exactly one of configMapRef",
    ),
    (RD, "{deletionPolicy: Keep}", "Unsupported value: \"Keep\""),
    (RD, "{recovery: Never}", "Unsupported value: \"Never\""),
    (RD, "{values: [1]}", "spec.values: Invalid value"),
    (RD, "{onFailure: [{type: event}]}", "an event needs a message"),
    (RD, "{onFailure: [{type: status}]}", "a status needs a phase or a message"),
    (RD, "{onFailure: [{type: event, message: a, phase: b}]}", "phase goes with type status only"),
    (RD, "{onFailure: [{type: page, message: a}]}", "Unsupported value: \"page\""),
    // Groups.
    (DG, "{}", "spec.groups: Required value"),
    (DG, "{groups: [{priority: 1}]}", "spec.groups[0].name: Required value"),
    (DG, "{groups: [{name: a}, {name: a}]}", "Duplicate value"),
    (DG, "{groups: [{name: a, dependsOn: [b]}]}", "dependsOn names a group that is not there"),
    (DG, "{groups: [{name: a, dependsOn: [a]}]}", "a group cannot depend on itself"),
    (
        DG,
        "{groups: [{name: a, dependencies: [{resource: pod/x}]}]}",
        "spec.groups[0].dependencies[0].name: Required value",
    ),
    (
        DG,
        "{groups: [{name: a, dependencies: [{name: d, resource: pod/x}, {name: d, resource: pod/y}]}]}",
        "Duplicate value",
    ),
    (DG, "{groups: [{name: a, dependencies: [{name: d}]}]}", "give exactly one of resource and ref"),
    (
        DG,
        "{groups: [{name: a, actions: [{name: b, type: wait, wait: 1s}, {name: b, type: wait, wait: 1s}]}]}",
        "two actions of this group have the same name",
    ),
    (DG, "{groups: [{name: a, timeout: never}]}", "write a duration such as 30s"),
    (DG, "{teardown: Forward, groups: []}", "Unsupported value: \"Forward\""),
    (
        DG,
        "{teardown: Reverse, deletionPolicy: Retain, groups: []}",
        "it cannot go with deletionPolicy: Retain",
    ),
    // Bundles.
    (AB, "{}", "spec.groups: Required value"),
    (AB, "{groups: []}", "should have at least 1 items"),
    (AB, "{groups: [{name: a}]}", "spec.groups[0].components: Required value"),
    (AB, "{groups: [{name: a, components: []}]}", "should have at least 1 items"),
    (
        AB,
        "{groups: [{name: a, components: [{name: b}]}]}",
        "Component must have either template or porchPackageRef specified",
    ),
    (
        AB,
        "{groups: [{name: a, components: [{name: b, template: {}, porchPackageRef: {packageName: p, repository: r}}]}]}",
        "exactly one of them",
    ),
    (
        AB,
        "{groups: [{name: a, components: [{name: b, source: {configMapRef: {name: c}}, templates: [{}]}]}]}",
        "exactly one of them",
    ),
    (
        AB,
        "{groups: [{name: a, components: [{name: b, template: {}, order: 100}]}]}",
        "less than or equal to 99",
    ),
    (
        AB,
        "{groups: [{name: a, components: [{name: b, template: {}, order: -1}]}]}",
        "greater than or equal to 0",
    ),
    (
        AB,
        "{groups: [{name: a, order: -1, components: [{name: b, template: {}}]}]}",
        "greater than or equal to 0",
    ),
    (
        AB,
        "{groups: [{name: a, components: [{name: b, template: {}}]}, {name: a, components: [{name: b, template: {}}]}]}",
        "Duplicate value",
    ),
    (
        AB,
        "{groups: [{name: a, components: [{name: b, template: {}}, {name: b, template: {}}]}]}",
        "Duplicate value",
    ),
    (
        AB,
        "{groups: [{name: '', components: [{name: b, template: {}}]}]}",
        "spec.groups[0].name: Invalid value",
    ),
    (
        AB,
        "{groups: [{name: 'a b', components: [{name: b, template: {}}]}]}",
        "spec.groups[0].name: Invalid value",
    ),
    (
        AB,
        "{groups: [{name: a, components: [{name: b/c, template: {}}]}]}",
        "spec.groups[0].components[0].name: Invalid value",
    ),
    (
        AB,
        "{groups: [{name: a, components: [{name: b, porchPackageRef: {name: p}}]}]}",
        "porchPackageRef.packageName: Required value",
    ),
    (AB, "{groups: [{name: a, components: [{name: b, template: x}]}]}", "template: Invalid value"),
    (
        AB,
        "{groups: [{name: a, components: [{name: b, template: {}, source: {}}]}]}",
        "configMapRef: Required value",
    ),
    (
        AB,
        "{groups: [{name: a, components: [{name: b, template: {}, deletionPolicy: Keep}]}]}",
        "Unsupported value: \"Keep\"",
    ),
    (
        AB,
        "{groups: [{name: a, components: [{name: b, template: {}, immutable: Maybe}]}]}",
        "Unsupported value: \"Maybe\"",
    ),
    (
        AB,
        "{groups: [{name: a, components: [{name: b, template: {}, readyWhen: {}}]}]}",
        "give cel, conditions or both",
    ),
    (AB, "{groups: [{name: a, components: [{name: b, template: {}, timeout: soon}]}]}", "write a duration"),
    (
        AB,
        "{groups: [{name: a, components: [{name: b, template: {}, dependsOn: [a/b/c]}]}]}",
        "dependsOn[0]: Invalid value",
    ),
    (
        AB,
        "{groups: [{name: a, components: [{name: b, template: {}, requires: [{name: x}]}]}]}",
        "give exactly one of resource and ref",
    ),
    (
        AB,
        "{rollback: 0, groups: [{name: a, components: [{name: b, template: {}}]}]}",
        "greater than or equal to 1",
    ),
    (RD, "{deletionPolicy: Orphan}", "Unsupported value: \"Orphan\""),
    // Profiles.
    (RP, "{readyWhen: {cel: 'true'}}", "spec.kind: Required value"),
    (RP, "{kind: A}", "give readyWhen, failedWhen or both"),
    (RP, "{kind: A, group: a.b, apiVersion: a.b/v1, readyWhen: {cel: 'true'}}", "give the group once"),
    (RP, "{kind: A, readyWhen: {}}", "give cel, conditions or both"),
];
