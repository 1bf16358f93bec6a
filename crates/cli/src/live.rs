//! The objects of ours in a cluster, read as the user, and the wait-for graph among them.
//!
//! `tree`, `explain` and `demo` look at a cluster through this module. It reads with the user's own rights: all
//! namespaces where that is allowed, so that causes in other namespaces are found too, and else the one asked for.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use anyhow::{Context as _, Result, anyhow};
use clap::Args;
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{ListParams, ObjectList},
};
use linchpin_api::{DependencyGroup, ResourceDependency, Status};
use linchpin_cluster::{
    config,
    transport::{Options, Transport},
};
use linchpin_doors::contribution::{Contribution, of_dependency_group, of_resource_dependency};
use linchpin_engine::graph::{Graph, Node};
use linchpin_view::{Known, State};
use linchpin_words::{ConditionStatus, ConditionType, condition};
use serde::de::DeserializeOwned;

/// Which cluster, and as whom.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Connection {
    /// The cluster to look at [default: $KUBECONFIG, the pod's own cluster, or ~/.kube/config].
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// The context in the kubeconfig [default: the current one].
    #[arg(long)]
    pub(crate) context: Option<String>,
}

impl Connection {
    /// A client, and the namespace that is meant where none is named.
    pub(crate) async fn open(&self) -> Result<(Client, String)> {
        let config = config::load(self.kubeconfig.as_deref(), self.context.as_deref()).await?;
        let transport = Transport::new(&config, &Options::default())?;
        Ok((transport.watches(None), config.default_namespace))
    }
}

/// How often, and how far apart, a server that is too busy is asked again.
const TRIES_WHEN_BUSY: u32 = 20;
const PAUSE_WHEN_BUSY: Duration = Duration::from_millis(500);

/// Where an object is: namespace and name.
pub(crate) type Place = (String, String);

/// All objects of ours that could be read.
#[derive(Debug, Clone, Default)]
pub(crate) struct Live {
    pub(crate) resource_dependencies: BTreeMap<Place, ResourceDependency>,
    pub(crate) dependency_groups: BTreeMap<Place, DependencyGroup>,
}

impl Live {
    /// Reads them: everywhere if the user may, else in one namespace.
    pub(crate) async fn read(client: &Client, namespace: &str) -> Result<Self> {
        let here = narrowed(client, namespace).await?;
        Ok(Self {
            resource_dependencies: by_place(list(client, here).await?),
            dependency_groups: by_place(list(client, here).await?),
        })
    }

    /// The wait-for graph among them.
    pub(crate) fn graph(&self) -> Graph {
        let mut graph = Graph::new();
        for Contribution { node, edges } in self.contributions() {
            graph.set(&node, edges);
        }
        graph
    }

    fn contributions(&self) -> impl Iterator<Item = Contribution> {
        let dependencies = self.resource_dependencies.values().map(of_resource_dependency);
        dependencies.chain(self.dependency_groups.values().map(of_dependency_group))
    }

    /// The objects of one namespace, or of all, as nodes.
    pub(crate) fn nodes(&self, namespace: Option<&str>) -> Vec<Node> {
        let nodes = self.contributions().map(|contribution| contribution.node);
        let wanted = |node: &Node| namespace.is_none() || node.object.namespace.as_deref() == namespace;
        nodes.filter(wanted).collect()
    }

    /// How each of them, and each of their parts, says that it stands.
    pub(crate) fn known(&self) -> BTreeMap<Node, Known> {
        let mut known = BTreeMap::new();
        for object in self.resource_dependencies.values() {
            known.insert(of_resource_dependency(object).node, standing(object.status.as_ref()));
        }
        for object in self.dependency_groups.values() {
            let node = of_dependency_group(object).node;
            for group in object.status.iter().flat_map(|status| &status.groups) {
                let state = match group.phase.as_str() {
                    _ if group.ready => State::Ready,
                    "Failed" => State::Failed,
                    "Running" => State::Running,
                    _ => State::Waiting,
                };
                let known_group = Known {
                    state,
                    reason: group.reason.clone(),
                    detail: group.message.clone(),
                    since: Some(group.since.into()),
                };
                known.insert(node.clone().part(&group.name), known_group);
            }
            known.insert(node, standing(object.status.as_ref()));
        }
        known
    }
}

/// How an object says that it stands. Conditions are asked before the phase, whose word a user may replace.
pub(crate) fn standing(status: Option<&Status>) -> Known {
    let Some((status, ready)) =
        status.and_then(|status| Some((status, condition::find(&status.conditions, ConditionType::Ready)?)))
    else {
        let detail = "the operator has not looked at it yet".to_owned();
        return Known { state: State::Unknown, reason: "Pending".to_owned(), detail, since: None };
    };
    let holds = |kind| {
        condition::find(&status.conditions, kind)
            .is_some_and(|condition| condition.status == ConditionStatus::True)
    };
    let state = match status.phase.as_deref() {
        _ if ready.status == ConditionStatus::True => State::Ready,
        _ if holds(ConditionType::Stalled) => State::Failed,
        Some("Running" | "Deleting") => State::Running,
        _ => State::Waiting,
    };
    Known {
        state,
        reason: ready.reason.clone(),
        detail: status.message.clone().unwrap_or_default(),
        since: Some(ready.last_transition_time.into()),
    }
}

/// None if all namespaces may be listed, else the one that is left.
pub(crate) async fn narrowed<'n>(client: &Client, namespace: &'n str) -> Result<Option<&'n str>> {
    let everywhere = Api::<ResourceDependency>::all(client.clone());
    match patiently(&everywhere, &ListParams::default().limit(1)).await {
        Err(kube::Error::Api(status)) if status.code == 403 => Ok(Some(namespace)),
        Err(error) => Err(unreadable::<ResourceDependency>(error)),
        Ok(_) => Ok(None),
    }
}

/// The API of one kind of ours, in one namespace or in all.
pub(crate) fn api<K>(client: &Client, namespace: Option<&str>) -> Api<K>
where
    K: Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>,
{
    match namespace {
        Some(namespace) => Api::namespaced(client.clone(), namespace),
        None => Api::all(client.clone()),
    }
}

async fn list<K>(client: &Client, namespace: Option<&str>) -> Result<Vec<K>>
where
    K: Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>
        + Clone
        + std::fmt::Debug
        + DeserializeOwned,
{
    let found = patiently(&api::<K>(client, namespace), &ListParams::default()).await;
    found.map(|found| found.items).map_err(unreadable::<K>)
}

/// Lists, and asks again for a while when the server is too busy, as it is right after a definition was installed.
async fn patiently<K>(api: &Api<K>, parameters: &ListParams) -> kube::Result<ObjectList<K>>
where
    K: Clone + std::fmt::Debug + DeserializeOwned,
{
    let mut tries = 0;
    loop {
        match api.list(parameters).await {
            Err(kube::Error::Api(status)) if status.code == 429 && tries < TRIES_WHEN_BUSY => {
                tries += 1;
                tokio::time::sleep(PAUSE_WHEN_BUSY).await;
            }
            answer => return answer,
        }
    }
}

/// Why objects of a kind cannot be read, and what to do about it.
pub(crate) fn unreadable<K: Resource<DynamicType = ()>>(error: kube::Error) -> anyhow::Error {
    let kind = format!("{}.{}", K::plural(&()), K::group(&()));
    match &error {
        kube::Error::Api(status) if status.code == 404 => {
            anyhow!(
                "the cluster does not serve {kind}: install them with `linchpin crds | kubectl apply -f -`"
            )
        }
        kube::Error::Api(status) => anyhow!("reading {kind}: {}", status.message),
        _ => Err::<(), _>(error)
            .with_context(|| format!("reading {kind}"))
            .err()
            .unwrap_or_else(|| anyhow!(kind)),
    }
}

fn by_place<K: ResourceExt>(objects: Vec<K>) -> BTreeMap<Place, K> {
    objects.into_iter().map(|object| (place(&object), object)).collect()
}

/// Where an object is.
pub(crate) fn place<K: ResourceExt>(object: &K) -> Place {
    (object.namespace().unwrap_or_default(), object.name_any())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn status(phase: &str, ready: &str, stalled: &str) -> Status {
        let at = "2026-01-01T00:00:00Z";
        let condition = |kind: &str, status: &str| json!({"type": kind, "status": status, "reason": "Because", "lastTransitionTime": at});
        serde_json::from_value(json!({"phase": phase, "message": "so it is",
            "conditions": [condition("Ready", ready), condition("Stalled", stalled)]}))
        .unwrap()
    }

    #[test]
    fn an_object_stands_as_its_conditions_say() {
        let state = |status: &Status| standing(Some(status)).state;
        assert_eq!(state(&status("Completed", "True", "False")), State::Ready);
        assert_eq!(state(&status("Completed", "False", "False")), State::Waiting, "what it had is lost");
        assert_eq!(state(&status("Call us", "False", "True")), State::Failed, "a word of the user's own");
        assert_eq!(state(&status("Running", "False", "False")), State::Running);
        assert_eq!(standing(Some(&status("Waiting", "False", "False"))).detail, "so it is");
    }

    #[test]
    fn an_object_nobody_has_looked_at_is_unknown() {
        assert_eq!(standing(None).state, State::Unknown);
        assert_eq!(standing(Some(&Status::default())).state, State::Unknown);
    }
}
