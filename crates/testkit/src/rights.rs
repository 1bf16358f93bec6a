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
