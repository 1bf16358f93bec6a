//! What the consist process may do as itself: marks on employers and pods, and nothing else of users'.
//!
//! Its rights are given in each served namespace; in the whole cluster only where that is asked for. Printed by
//! `linchpin rbac --consist`, given to processes under test, and the same as the chart gives.

use serde_json::{Value, json};

use crate::settings::Namespaces;

/// What everything of the consist process is called.
pub const NAME: &str = "linchpin-consist";

const GROUP: &str = "rbac.authorization.k8s.io";

/// A kind of employers or employees, as rules name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsistResource {
    /// Its API group.
    pub group: String,
    /// Its plural.
    pub plural: String,
}

/// Which installation the manifests are for.
#[derive(Clone, Debug)]
pub struct ConsistInstallation {
    /// The name of everything in it.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// The namespaces that are served.
    pub served: Namespaces,
    /// The kinds of employers, Services where there are none.
    pub employers: Vec<ConsistResource>,
    /// The kinds of employees beside Pods.
    pub employees: Vec<ConsistResource>,
    /// Who is bound, if it is not the installation's own ServiceAccount.
    pub subject: Option<Value>,
}

impl Default for ConsistInstallation {
    fn default() -> Self {
        Self {
            name: NAME.to_owned(),
            namespace: super::NAMESPACE.to_owned(),
            served: Namespaces::All,
            employers: Vec::new(),
            employees: Vec::new(),
            subject: None,
        }
    }
}

fn rule(groups: &[&str], resources: &[&str], verbs: &[&str]) -> Value {
    json!({"apiGroups": groups, "resources": resources, "verbs": verbs})
}

impl ConsistInstallation {
    /// What is needed in each served namespace.
    pub fn served_rules(&self) -> Vec<Value> {
        let service = [ConsistResource { group: String::new(), plural: "services".to_owned() }];
        let employers: &[ConsistResource] =
            if self.employers.is_empty() { &service } else { &self.employers };
        let marked = &["get", "list", "watch", "patch"];
        let read = &["get", "list", "watch"];
        let mut rules: Vec<Value> =
            employers.iter().map(|kind| rule(&[&kind.group], &[&kind.plural], marked)).collect();
        rules.extend(self.employees.iter().map(|kind| rule(&[&kind.group], &[&kind.plural], read)));
        rules.extend([
            rule(&[""], &["pods"], &["get", "list", "watch", "patch", "delete"]),
            rule(&[""], &["pods/status"], &["patch"]),
            rule(&[""], &["pods/eviction"], &["create"]),
            rule(&["policy"], &["poddisruptionbudgets"], read),
            rule(&["discovery.k8s.io"], &["endpointslices"], read),
            rule(
                &["linchpin.dev"],
                &["consistbindings"],
                &["get", "list", "watch", "create", "update", "patch", "delete"],
            ),
            rule(&["linchpin.dev"], &["consistbindings/status"], &["update", "patch"]),
            rule(&["apps.kusionstack.io"], &["podtransitionrules"], read),
            rule(&["apps.kusionstack.io"], &["podtransitionrules/status"], &["update", "patch"]),
            rule(&["events.k8s.io", ""], &["events"], &["create", "patch"]),
        ]);
        rules
    }

    fn cluster_rules(&self) -> Vec<Value> {
        let configurations = ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"];
        let own = [format!("{}-mutating", self.name), format!("{}-validating", self.name)];
        vec![
            rule(&[""], &["namespaces"], &["get", "list", "watch"]),
            // Who else runs PodOpsLifecycle.
            rule(&["admissionregistration.k8s.io"], &configurations, &["get", "list", "watch"]),
            rule(&["admissionregistration.k8s.io"], &configurations, &["create"]),
            json!({"apiGroups": ["admissionregistration.k8s.io"], "resources": configurations,
                "resourceNames": own, "verbs": ["update", "patch", "delete"]}),
        ]
    }

    fn release_rules(&self) -> Vec<Value> {
        vec![
            json!({"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "resourceNames": [self.name],
                "verbs": ["get", "list", "watch", "update", "patch"]}),
            rule(&["coordination.k8s.io"], &["leases"], &["create"]),
            json!({"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["linchpin-consist-webhook-tls"],
                "verbs": ["get", "list", "watch", "update"]}),
            rule(&[""], &["secrets"], &["create"]),
            // What is left at a provider is reported here: the employer is gone.
            rule(&["events.k8s.io", ""], &["events"], &["create", "patch"]),
            // A user who takes everything away ends the processes of this installation first.
            json!({"apiGroups": ["apps"], "resources": ["deployments/scale"], "resourceNames": [self.name],
                "verbs": ["patch"]}),
        ]
    }

    /// Everything, in the order in which it can be applied.
    pub fn manifests(&self) -> Vec<Value> {
        let served = format!("{}-served", self.name);
        let mut found = Vec::new();
        if self.subject.is_none() {
            found.push(json!({"apiVersion": "v1", "kind": "ServiceAccount",
                "metadata": {"name": self.name, "namespace": self.namespace}}));
        }
        let role = |kind: &str, metadata: Value, rules: Vec<Value>| json!({"apiVersion": format!("{GROUP}/v1"), "kind": kind, "metadata": metadata, "rules": rules});
        found.push(role("ClusterRole", json!({"name": self.name}), self.cluster_rules()));
        found.push(self.binding(&json!({"name": self.name}), "ClusterRole", &self.name));
        found.push(role("ClusterRole", json!({"name": served}), self.served_rules()));
        match &self.served {
            Namespaces::All => found.push(self.binding(&json!({"name": served}), "ClusterRole", &served)),
            Namespaces::Only(namespaces) => {
                let bind = |namespace: &String| {
                    self.binding(&json!({"name": served, "namespace": namespace}), "ClusterRole", &served)
                };
                found.extend(namespaces.iter().map(bind));
            }
        }
        let here = json!({"name": self.name, "namespace": self.namespace});
        found.push(role("Role", here.clone(), self.release_rules()));
        found.push(self.binding(&here, "Role", &self.name));
        found
    }

    fn binding(&self, metadata: &Value, kind: &str, role: &str) -> Value {
        let own = || json!({"kind": "ServiceAccount", "name": self.name, "namespace": self.namespace});
        let binding = if metadata.get("namespace").is_some() { "RoleBinding" } else { "ClusterRoleBinding" };
        json!({"apiVersion": format!("{GROUP}/v1"), "kind": binding, "metadata": metadata,
            "roleRef": {"apiGroup": GROUP, "kind": kind, "name": role},
            "subjects": [self.subject.clone().unwrap_or_else(own)]})
    }
}

/// The rules as the chart reads them, for Services and Pods.
pub fn chart() -> String {
    let usual = ConsistInstallation::default();
    let rules = json!({
        "cluster": usual.cluster_rules(),
        "release": usual.release_rules(),
        "served": usual.served_rules(),
    });
    format!("{rules:#}\n")
}

#[cfg(test)]
mod tests {
    use std::{env, fs, path::PathBuf};

    use super::*;

    #[test]
    fn the_chart_gives_what_is_needed_here() {
        let file =
            PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../charts/linchpin/files/consist-rights.json");
        if env::var_os("LINCHPIN_UPDATE").is_some() {
            fs::write(&file, chart()).unwrap();
        }
        assert!(
            fs::read_to_string(&file).unwrap_or_default() == chart(),
            "files/consist-rights.json is out of date: make docs writes it"
        );
    }

    #[test]
    fn rights_on_users_objects_are_given_in_served_namespaces_alone() {
        let served = Namespaces::Only(["shop".to_owned()].into());
        let found = ConsistInstallation { served, ..ConsistInstallation::default() }.manifests();
        let cluster_bound: Vec<&Value> =
            found.iter().filter(|one| one["kind"] == "ClusterRoleBinding").collect();
        assert_eq!(cluster_bound.len(), 1);
        assert_eq!(cluster_bound[0]["roleRef"]["name"], "linchpin-consist");
        let cluster = found.iter().find(|one| one["metadata"]["name"] == "linchpin-consist").unwrap();
        assert!(!cluster.to_string().contains("pods"), "{cluster}");
        assert!(
            found.iter().any(|one| one["kind"] == "RoleBinding" && one["metadata"]["namespace"] == "shop")
        );
    }

    #[test]
    fn nobody_is_impersonated_and_no_secret_of_others_is_read() {
        let text = json!(ConsistInstallation::default().manifests()).to_string();
        assert!(!text.contains("impersonate") && !text.contains('*'), "{text}");
        let readers = text.matches("\"secrets\"").count();
        assert_eq!(readers, 2, "the certificate, by name, and its creation");
    }
}
