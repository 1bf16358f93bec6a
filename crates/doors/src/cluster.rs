//! Other clusters and label selectors, from the user's words to the engine's.

use linchpin_api::common::{Cluster, LabelSelector, SelectorOperator};
use linchpin_engine::{
    contract::{ClusterRef, ControlPlaneSelect, RemoteUser, Selector, Via},
    plan::SpecError,
};

use crate::errors::at;

/// Where to look or act: the entry's own cluster, else the object's. An empty one means here.
pub(crate) fn via(
    base: &Via,
    namespace: &str,
    own: Option<&Cluster>,
    inherited: Option<&Cluster>,
    field: &str,
) -> Result<Via, SpecError> {
    let (cluster, field) = match (own, inherited) {
        (Some(own), _) => (own, format!("{field}.cluster")),
        (None, Some(inherited)) => (inherited, "spec.cluster".to_owned()),
        (None, None) => return Ok(base.clone()),
    };
    Ok(Via { cluster: reference(cluster, namespace, &field)?, actor: base.actor.clone() })
}

/// The clusters that a spec names, as far as they can be understood: where, and impersonating whom, it acts.
pub(crate) fn named<'c>(clusters: impl IntoIterator<Item = &'c Cluster>, namespace: &str) -> Vec<ClusterRef> {
    let references = clusters.into_iter().filter_map(|cluster| reference(cluster, namespace, "").ok());
    references.filter(|cluster| !cluster.is_here()).collect()
}

fn reference(cluster: &Cluster, namespace: &str, field: &str) -> Result<ClusterRef, SpecError> {
    let impersonate = cluster
        .impersonate
        .as_ref()
        .map(|other| RemoteUser { user: other.user.clone(), groups: other.groups.clone() });
    match (&cluster.control_plane_ref, &cluster.kubeconfig_secret_ref) {
        (Some(_), Some(_)) => Err(at(field, "give one of controlPlaneRef and kubeconfigSecretRef")),
        (None, None) => Ok(ClusterRef::Here),
        (None, Some(secret)) => Ok(ClusterRef::Kubeconfig {
            namespace: secret.namespace.clone().unwrap_or_else(|| namespace.to_owned()),
            name: secret.name.clone(),
            // Where none is given, the usual ones are tried.
            key: secret.key.clone().unwrap_or_default(),
            impersonate,
        }),
        (Some(plane), None) => {
            let select = match (&plane.name, &plane.selector) {
                (Some(name), None) => ControlPlaneSelect::Name(name.clone()),
                (None, Some(labels)) => ControlPlaneSelect::Labels(selector(
                    labels,
                    &format!("{field}.controlPlaneRef.selector"),
                )?),
                _ => {
                    let problem = "give exactly one of name and selector";
                    return Err(at(format!("{field}.controlPlaneRef"), problem));
                }
            };
            Ok(ClusterRef::ControlPlane {
                select,
                require_ready: plane.require_ready.unwrap_or(true),
                impersonate,
            })
        }
    }
}

/// A label selector in the API server's own text form. An empty one would match everything and is refused.
pub(crate) fn selector(labels: &LabelSelector, field: &str) -> Result<Selector, SpecError> {
    for (index, requirement) in labels.match_expressions.iter().enumerate() {
        let wants_values = matches!(requirement.operator, SelectorOperator::In | SelectorOperator::NotIn);
        if wants_values == requirement.values.is_empty() {
            let problem = "In and NotIn need values, Exists and DoesNotExist take none";
            return Err(at(format!("{field}.matchExpressions[{index}]"), problem));
        }
    }
    let requirements = labels.requirements();
    if requirements.is_empty() {
        return Err(at(
            field,
            "it is empty and would match everything; give matchLabels or matchExpressions",
        ));
    }
    Ok(Selector::requirements(requirements))
}
