//! What the operator itself may do, and no more: no test may pass because the operator has the administrator's rights.

use linchpin_operator::rights::manifests::{Installation, Tenants};
use serde_json::json;

use crate::Api;

/// The user that operators under test are.
pub const OPERATOR: &str = "linchpin-operator";

/// Who an operator is that the chart installs.
pub const CHART_OPERATOR: &str = "system:serviceaccount:linchpin-system:linchpin";

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
    for definition in linchpin_doors::registry().definitions() {
        api.apply(&json!(definition)).unwrap();
    }
    for manifest in installation.manifests() {
        api.apply(&manifest).unwrap();
    }
}

/// Gives the operator's user what it needs beside that where it is reached at a URL: it writes its webhook configurations
/// itself, which the chart does elsewhere.
pub fn grant_webhooks(api: &Api) {
    let rules = json!([
        {"apiGroups": ["admissionregistration.k8s.io"],
         "resources": ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"],
         "verbs": ["create", "update"]},
    ]);
    let version = "rbac.authorization.k8s.io/v1";
    let subjects = json!([{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": OPERATOR}]);
    let name = format!("{OPERATOR}-webhooks");
    let reference = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name});
    for manifest in [
        json!({"apiVersion": version, "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules}),
        json!({"apiVersion": version, "kind": "ClusterRoleBinding", "metadata": {"name": name},
            "roleRef": reference, "subjects": subjects}),
    ] {
        api.apply(&manifest).unwrap();
    }
}
