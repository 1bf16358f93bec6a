//! The rights that observing and changing objects need, as RBAC names them.
//!
//! The one place that derives them: doors put them into steps, `Plan::rights` collects them, and preflight, blockers
//! and `linchpin rbac` all read that. The smallest set that does: by name where a name is known. What is not known
//! before something is rendered is said in words and never left out silently.

use linchpin_words::Gvk;

use crate::contract::{ClusterRef, ControlPlaneSelect, Right, Scope};

/// A kind as RBAC needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RightResource {
    /// API group.
    pub group: String,
    /// Plural.
    pub plural: String,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
}

/// Rights to observe objects: list and watch, by name where there is one, and what readiness looks at beside them.
pub fn observing(resource: &RightResource, kind: &Gvk, scope: &Scope) -> Vec<Right> {
    let (namespace, name) = match scope {
        Scope::Name { namespace, name } => (namespace, Some(name.clone())),
        Scope::Labels { namespace, .. } => (namespace, None),
    };
    let mut rights: Vec<Right> = ["list", "watch"]
        .into_iter()
        .map(|verb| right(verb, resource, namespace.as_ref(), name.clone()))
        .collect();
    let beside = match (kind.group.as_str(), kind.kind.as_str()) {
        ("", "Service") => Some(("discovery.k8s.io", "endpointslices", true)),
        ("", "PersistentVolumeClaim") => Some(("storage.k8s.io", "storageclasses", false)),
        _ => None,
    };
    if let Some((group, plural, namespaced)) = beside {
        let beside = RightResource { group: group.to_owned(), plural: plural.to_owned(), namespaced };
        rights
            .extend(["list", "watch"].into_iter().map(|verb| right(verb, &beside, namespace.as_ref(), None)));
    }
    rights
}

/// The plural of KubeFlex's ControlPlane, which has no namespace.
pub const CONTROL_PLANES: &str = "controlplanes";
/// Where KubeFlex puts the kubeconfig of a control plane, in the namespace `<name>-system`: one for each of its types.
const KUBECONFIG_SECRETS: [&str; 3] =
    ["admin-kubeconfig", "multicluster-controlplane-kubeconfig", "vc-vcluster"];

/// The kind that other clusters may be reached through.
pub fn control_plane() -> Gvk {
    Gvk::new("tenancy.kflex.kubestellar.org", "v1alpha1", "ControlPlane")
}

/// What is needed in this cluster to find the credential of another one: it is read as the object's own identity.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CredentialRights {
    /// As rights.
    pub rights: Vec<Right>,
    /// What is not known, in words.
    pub open: Option<String>,
}

/// The rights to find the credential of a cluster; none for this one.
pub fn reaching(cluster: &ClusterRef) -> CredentialRights {
    let secrets = RightResource { group: String::new(), plural: "secrets".to_owned(), namespaced: true };
    let secret = |namespace: String, name: &str| {
        let scope = Scope::Name { namespace: Some(namespace), name: name.to_owned() };
        let mut needed = observing(&secrets, &Gvk::new("", "v1", "Secret"), &scope);
        needed.push(right("get", &secrets, scope_namespace(&scope), Some(name.to_owned())));
        needed
    };
    match cluster {
        ClusterRef::Here => CredentialRights::default(),
        ClusterRef::Kubeconfig { namespace, name, .. } => {
            CredentialRights { rights: secret(namespace.clone(), name), open: None }
        }
        ClusterRef::ControlPlane { select, .. } => {
            let planes = control_plane();
            let resource = RightResource {
                group: planes.group.clone(),
                plural: CONTROL_PLANES.to_owned(),
                namespaced: false,
            };
            match select {
                ControlPlaneSelect::Name(name) => {
                    let scope = Scope::Name { namespace: None, name: name.clone() };
                    let mut rights = observing(&resource, &planes, &scope);
                    rights.extend(
                        KUBECONFIG_SECRETS.iter().flat_map(|it| secret(format!("{name}-system"), it)),
                    );
                    let open = format!(
                        "{cluster}: its kubeconfig is in one of the Secrets {}, by its type; strike the others",
                        KUBECONFIG_SECRETS.join(", ")
                    );
                    CredentialRights { rights, open: Some(open) }
                }
                ControlPlaneSelect::Labels(selector) => {
                    let scope = Scope::Labels { namespace: None, selector: selector.clone() };
                    let open = format!(
                        "{cluster}: add list and watch of the Secret that its status.secretRef names"
                    );
                    CredentialRights { rights: observing(&resource, &planes, &scope), open: Some(open) }
                }
            }
        }
    }
}

fn scope_namespace(scope: &Scope) -> Option<&String> {
    match scope {
        Scope::Name { namespace, .. } | Scope::Labels { namespace, .. } => namespace.as_ref(),
    }
}

/// What is done to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectAccess {
    /// Create it if it is missing.
    Create,
    /// Server-side apply.
    Apply,
    /// Patch it.
    Patch,
    /// Delete it and see it gone.
    Delete,
    /// Delete what was made here, once it is sure whose it is, and see it gone.
    Remove,
    /// Run a command in it.
    Exec,
}

/// Rights to change one object. `create` cannot be limited to a name: the server does not know it yet.
pub fn changing(
    deed: ObjectAccess,
    resource: &RightResource,
    namespace: Option<&String>,
    name: Option<&String>,
) -> Vec<Right> {
    let named = |verb: &str| right(verb, resource, namespace, name.cloned());
    match deed {
        ObjectAccess::Create => vec![right("create", resource, namespace, None), named("get")],
        ObjectAccess::Apply => vec![right("create", resource, namespace, None), named("get"), named("patch")],
        ObjectAccess::Patch => vec![named("get"), named("patch")],
        ObjectAccess::Delete => vec![named("delete"), named("list"), named("watch")],
        ObjectAccess::Remove => vec![named("delete"), named("get"), named("list"), named("watch")],
        ObjectAccess::Exec => {
            // A websocket is opened with GET; from Kubernetes 1.35 on the server asks for `create` as well.
            let exec = |verb| Right { subresource: Some("exec".to_owned()), ..named(verb) };
            vec![named("get"), exec("get"), exec("create")]
        }
    }
}

fn right(verb: &str, resource: &RightResource, namespace: Option<&String>, name: Option<String>) -> Right {
    Right {
        verb: verb.to_owned(),
        group: resource.group.clone(),
        resource: resource.plural.clone(),
        subresource: None,
        namespace: namespace.filter(|_| resource.namespaced).cloned(),
        name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_for_one_deployment_needs_no_more_than_to_list_and_watch_it() {
        let resource = RightResource { group: "apps".into(), plural: "deployments".into(), namespaced: true };
        let scope = Scope::Name { namespace: Some("data".into()), name: "db".into() };
        let rights = observing(&resource, &Gvk::new("apps", "v1", "Deployment"), &scope);
        let texts: Vec<String> = rights.iter().map(ToString::to_string).collect();
        assert_eq!(texts, ["list deployments.apps db in data", "watch deployments.apps db in data"]);
    }

    #[test]
    fn a_cluster_scoped_kind_is_asked_for_without_a_namespace() {
        let resource = RightResource { group: String::new(), plural: "namespaces".into(), namespaced: false };
        let rights =
            changing(ObjectAccess::Create, &resource, Some(&"own".to_owned()), Some(&"shop".to_owned()));
        assert!(rights.iter().all(|right| right.namespace.is_none()));
        assert_eq!(rights[0].name, None);
    }
}
