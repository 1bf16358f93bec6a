//! What the operator itself may do, and no more: no test may pass because the operator has the administrator's rights.

use linchpin_operator::rights::manifests::{Installation, Tenants};
use serde_json::json;

use crate::Api;

/// The user that operators under test are.
pub const OPERATOR: &str = "linchpin-operator";

/// The installation that operators under test are: a user instead of a ServiceAccount, its Lease in `default`.
pub fn installation() -> Installation {
    let subject = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": OPERATOR});
    Installation {
        name: OPERATOR.to_owned(),
        namespace: "default".to_owned(),
        tenants: Tenants::All,
        subject: Some(subject),
        ..Installation::default()
    }
}

/// Installs our definitions and gives the operator's user exactly the rights of the operator's table, in every namespace.
pub fn grant_operator(api: &Api) {
    grant(api, &installation());
}

/// The same for another installation.
pub fn grant(api: &Api, installation: &Installation) {
    for definition in linchpin_api::all_crds() {
        api.apply(&json!(definition)).unwrap();
    }
    for manifest in installation.manifests() {
        api.apply(&manifest).unwrap();
    }
}

/// Gives the operator's user what webhooks and held pods need beside that. Its own namespace is `default` in tests.
pub fn grant_webhooks(api: &Api) {
    let rules = json!([
        {"apiGroups": ["core.bootchain-operator.ruicoelho.dev"], "resources": ["bootdependencies"],
         "verbs": ["get", "list", "watch", "patch"]},
        {"apiGroups": ["core.bootchain-operator.ruicoelho.dev"], "resources": ["bootdependencies/status"],
         "verbs": ["update", "patch"]},
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
