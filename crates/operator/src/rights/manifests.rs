//! The operator's ServiceAccount, roles and bindings as manifests.
//!
//! Printed by `linchpin rbac --operator`, and given to operators under test. The chart gives the same: a test compares.

use serde_json::{Value, json};

use super::{NAME, NAMESPACE, RightRow, RightScope, rows};
use crate::settings::{Doors, Namespaces};

const GROUP: &str = "rbac.authorization.k8s.io";

/// For whom the operator may act.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tenants {
    /// For ServiceAccounts of these namespaces.
    Namespaces(Vec<String>),
    /// For those of every namespace.
    All,
}

/// Which installation the manifests are for.
#[derive(Clone, Debug)]
pub struct Installation {
    /// The name of everything in it.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// The doors that are open.
    pub doors: Doors,
    /// The namespaces whose objects are served.
    pub watched: Namespaces,
    /// For whom it may act.
    pub tenants: Tenants,
    /// Who is bound, if it is not the installation's own ServiceAccount.
    pub subject: Option<Value>,
}

impl Default for Installation {
    fn default() -> Self {
        Self {
            name: NAME.to_owned(),
            namespace: NAMESPACE.to_owned(),
            doors: Doors::default(),
            watched: Namespaces::All,
            tenants: Tenants::Namespaces(Vec::new()),
            subject: None,
        }
    }
}

impl Installation {
    /// Everything, in the order in which it can be applied.
    pub fn manifests(&self) -> Vec<Value> {
        let (name, tenant) = (&self.name, self.tenant_role());
        let cluster = rows(RightScope::Cluster, &self.doors);
        let (watched, everywhere): (Vec<&RightRow>, Vec<&RightRow>) =
            cluster.partition(|row| row.by_namespace);
        let mut found = Vec::new();
        if self.subject.is_none() {
            found.push(json!({"apiVersion": "v1", "kind": "ServiceAccount",
                "metadata": {"name": name, "namespace": self.namespace}}));
        }
        match &self.watched {
            Namespaces::All => {
                let all = watched.into_iter().chain(everywhere);
                found.extend(self.granted(name, None, all));
            }
            Namespaces::Only(namespaces) => {
                found.extend(self.granted(name, None, everywhere.into_iter()));
                for namespace in namespaces {
                    let name = format!("{name}-watched");
                    found.extend(self.granted(&name, Some(namespace), watched.iter().copied()));
                }
            }
        }
        found.extend(self.granted(name, Some(&self.namespace), rows(RightScope::Release, &self.doors)));
        found.push(role(&tenant, None, rows(RightScope::Tenant, &self.doors)));
        match &self.tenants {
            Tenants::All => found.push(self.binding(&tenant, None, "ClusterRole", &tenant)),
            Tenants::Namespaces(namespaces) => {
                let bind = |namespace| self.binding(&tenant, Some(namespace), "ClusterRole", &tenant);
                found.extend(namespaces.iter().map(|namespace| bind(namespace.as_str())));
            }
        }
        found
    }

    /// The ClusterRole that makes a namespace a tenant.
    pub fn tenant_role(&self) -> String {
        format!("{}-tenant", self.name)
    }

    fn granted<'a>(
        &self,
        name: &str,
        namespace: Option<&str>,
        rows: impl Iterator<Item = &'a RightRow>,
    ) -> [Value; 2] {
        let kind = if namespace.is_some() { "Role" } else { "ClusterRole" };
        [role(name, namespace, rows), self.binding(name, namespace, kind, name)]
    }

    fn binding(&self, name: &str, namespace: Option<&str>, kind: &str, role: &str) -> Value {
        let own = || json!({"kind": "ServiceAccount", "name": self.name, "namespace": self.namespace});
        let binding = if namespace.is_some() { "RoleBinding" } else { "ClusterRoleBinding" };
        json!({"apiVersion": format!("{GROUP}/v1"), "kind": binding, "metadata": metadata(name, namespace),
            "roleRef": {"apiGroup": GROUP, "kind": kind, "name": role},
            "subjects": [self.subject.clone().unwrap_or_else(own)]})
    }
}

fn role<'a>(name: &str, namespace: Option<&str>, rows: impl Iterator<Item = &'a RightRow>) -> Value {
    let kind = if namespace.is_some() { "Role" } else { "ClusterRole" };
    json!({"apiVersion": format!("{GROUP}/v1"), "kind": kind, "metadata": metadata(name, namespace),
        "rules": rows.map(rule).collect::<Vec<_>>()})
}

fn metadata(name: &str, namespace: Option<&str>) -> Value {
    match namespace {
        Some(namespace) => json!({"name": name, "namespace": namespace}),
        None => json!({"name": name}),
    }
}

/// A row as a rule of a role.
pub fn rule(row: &RightRow) -> Value {
    let mut rule = json!({"apiGroups": row.groups, "resources": row.resources});
    if !row.names.is_empty() {
        rule["resourceNames"] = json!(row.names);
    }
    rule["verbs"] = json!(row.verbs);
    rule
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(found: &[Value]) -> Vec<String> {
        let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
        let place = |one: &Value| format!("{} {}", text(&one["metadata"]["namespace"]), text(&one["kind"]));
        found.iter().map(|one| format!("{} {}", place(one), text(&one["metadata"]["name"]))).collect()
    }

    #[test]
    fn an_installation_has_a_role_for_each_scope_and_a_binding_for_each_tenant() {
        let shop =
            Installation { tenants: Tenants::Namespaces(vec!["shop".into()]), ..Installation::default() };
        let expected = [
            "linchpin-system ServiceAccount linchpin",
            "- ClusterRole linchpin",
            "- ClusterRoleBinding linchpin",
            "linchpin-system Role linchpin",
            "linchpin-system RoleBinding linchpin",
            "- ClusterRole linchpin-tenant",
            "shop RoleBinding linchpin-tenant",
        ];
        assert_eq!(named(&shop.manifests()), expected);
        let all = Installation { tenants: Tenants::All, ..Installation::default() };
        assert!(named(&all.manifests()).contains(&"- ClusterRoleBinding linchpin-tenant".to_owned()));
    }

    #[test]
    fn watched_namespaces_get_roles_and_the_rest_of_the_cluster_stays_closed() {
        let watched = Namespaces::Only(["a".to_owned(), "b".to_owned()].into());
        let found = Installation { watched, ..Installation::default() }.manifests();
        let names = named(&found);
        assert!(names.contains(&"a Role linchpin-watched".to_owned()), "{names:?}");
        assert!(names.contains(&"b RoleBinding linchpin-watched".to_owned()), "{names:?}");
        let cluster = found.iter().find(|one| one["kind"] == "ClusterRole").unwrap().to_string();
        assert!(!cluster.contains("appbundles") && cluster.contains("readinessprofiles"), "{cluster}");
    }

    #[test]
    fn a_door_that_is_closed_has_no_rights() {
        let doors: Doors = "appBundle".parse().unwrap();
        let text = json!(Installation { doors, ..Installation::default() }.manifests()).to_string();
        assert!(text.contains("bundlerevisions") && !text.contains("tools.kubestellar.io"));
    }
}
