//! What the operator itself may do, and no more: no test may pass because the operator has the administrator's rights.

use serde_json::{Value, json};

use crate::Api;

/// The user that operators under test are.
pub const OPERATOR: &str = "linchpin-operator";

/// Installs our definitions and gives the operator's user its own few rights.
pub fn grant_operator(api: &Api) {
    for definition in linchpin_api::all_crds() {
        api.apply(&serde_json::to_value(definition).unwrap()).unwrap();
    }
    let rule = |groups: &[&str], resources: &[&str], verbs: &[&str]| -> Value {
        json!({"apiGroups": groups, "resources": resources, "verbs": verbs})
    };
    let rules = [
        rule(
            &["tools.kubestellar.io", "linchpin.dev", "app.example.com"],
            &["resourcedependencies", "dependencygroups", "readinessprofiles", "appbundles"],
            &["get", "list", "watch", "patch"],
        ),
        rule(
            &["tools.kubestellar.io", "app.example.com"],
            &["resourcedependencies/status", "dependencygroups/status", "appbundles/status"],
            &["update", "patch"],
        ),
        rule(&["linchpin.dev"], &["readinessprofiles/status"], &["update", "patch"]),
        rule(
            &["core.bootchain-operator.ruicoelho.dev"],
            &["bootdependencies"],
            &["get", "list", "watch", "patch"],
        ),
        rule(&["core.bootchain-operator.ruicoelho.dev"], &["bootdependencies/status"], &["update", "patch"]),
        rule(
            &["app.example.com"],
            &["bundlerevisions"],
            &["get", "list", "watch", "create", "patch", "delete"],
        ),
        rule(&["coordination.k8s.io"], &["leases"], &["get", "list", "watch", "create", "update", "patch"]),
        rule(&["events.k8s.io", ""], &["events"], &["create", "patch"]),
        rule(&["apiextensions.k8s.io"], &["customresourcedefinitions"], &["get", "list", "watch"]),
        rule(&["apiregistration.k8s.io"], &["apiservices"], &["get", "list", "watch"]),
        rule(&[""], &["namespaces", "serviceaccounts"], &["get", "list", "watch"]),
        rule(&[""], &["serviceaccounts"], &["impersonate"]),
    ];
    let everything = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": OPERATOR}, "rules": rules});
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": OPERATOR},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": OPERATOR},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": OPERATOR}]});
    for manifest in [everything, binding] {
        api.apply(&manifest).unwrap();
    }
}

/// Gives the operator's user what webhooks and held pods need beside that. Its own namespace is `default` in tests.
pub fn grant_webhooks(api: &Api) {
    let rules = json!([
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch", "patch"]},
        {"apiGroups": ["apps"], "resources": ["deployments", "statefulsets", "daemonsets"],
         "verbs": ["get", "list", "watch", "patch"]},
        {"apiGroups": ["apps"], "resources": ["replicasets"], "verbs": ["get", "list", "watch"]},
        {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["get", "list", "watch"]},
        {"apiGroups": ["authorization.k8s.io"], "resources": ["subjectaccessreviews"], "verbs": ["create"]},
        {"apiGroups": ["admissionregistration.k8s.io"],
         "resources": ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"],
         "verbs": ["get", "list", "watch", "create", "update", "patch"]},
    ]);
    let secrets = json!([
        {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["linchpin-webhook-tls"],
         "verbs": ["get", "list", "watch", "update"]},
        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["create"]},
    ]);
    let version = "rbac.authorization.k8s.io/v1";
    let subjects = json!([{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": OPERATOR}]);
    let name = format!("{OPERATOR}-webhooks");
    let reference = |kind: &str| json!({"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name});
    let here = json!({"name": name, "namespace": "default"});
    for manifest in [
        json!({"apiVersion": version, "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules}),
        json!({"apiVersion": version, "kind": "ClusterRoleBinding", "metadata": {"name": name},
            "roleRef": reference("ClusterRole"), "subjects": subjects}),
        json!({"apiVersion": version, "kind": "Role", "metadata": here, "rules": secrets}),
        json!({"apiVersion": version, "kind": "RoleBinding", "metadata": here,
            "roleRef": reference("Role"), "subjects": subjects}),
    ] {
        api.apply(&manifest).unwrap();
    }
}
