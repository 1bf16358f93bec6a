//! The circles that run through Services: what admission cannot see, and the wait-for graph must.
//!
//! A gated pod has no address and is in no EndpointSlice, so the very deadlock would hide itself from who looks there. So a
//! Service leads to the workloads whose templates its selector matches, and to the held pods that it matches, and from
//! those to the BootDependency that holds them.

use std::collections::{BTreeMap, BTreeSet};

use linchpin_api::{BootDependency, BootEntry, Ours as _};
use linchpin_engine::{
    contract::{Projection, Question, ReadSet, Scope, Selector, Via, Want, World},
    graph::{Edge, Node, Wait, WaitState},
};
use linchpin_words::{GroupKind, Gvk, ObjectRef, Reason, reference::built_in_kind};
use serde_json::Value;

use super::{
    address::step_names,
    held::{boots_of, has_gate, held_pods, objects, owners, wanted},
    scope::BootSettings,
    selection::WorkloadName,
    service::SERVICE_READS,
    survey::target_of,
};
use crate::door::{Tally, object_ref};

/// Kinds whose templates are compared with selectors.
const TEMPLATES: [&str; 3] = ["Deployment", "StatefulSet", "DaemonSet"];

/// What is found, and what is asked to find it.
#[derive(Default)]
pub(super) struct Found {
    pub(super) edges: Vec<Edge>,
    pub(super) wants: BTreeSet<Want>,
}

/// The object holds the pods of its workload, as long as something is not there.
pub(super) fn produced(object: &BootDependency, holds: bool) -> Option<Edge> {
    let namespace = object.metadata.namespace.as_deref().unwrap_or_default();
    let workload = node(namespace, WorkloadName::of(object)?);
    Some(Edge::produces(Node::here(object_ref(object)), workload, !holds))
}

/// A workload as the graph names it.
fn node(namespace: &str, workload: WorkloadName) -> Node {
    let kind = GroupKind { group: workload.group.unwrap_or_default(), kind: workload.kind };
    Node::here(ObjectRef::namespaced(kind, namespace, workload.name))
}

/// From each Service that the object waits for to what stands behind it, in namespaces that have opted in.
pub(super) fn behind_services(
    object: &BootDependency,
    via: &Via,
    tally: &Tally,
    world: &World,
    settings: &BootSettings,
) -> Found {
    let mut found = Found::default();
    let own = object.metadata.namespace.as_deref().unwrap_or_default();
    let entries: Vec<&BootEntry> = object.spec.depends_on.iter().collect();
    let mut templates: BTreeMap<String, Vec<(Node, Value)>> = BTreeMap::new();
    for (entry, named) in entries.iter().zip(step_names(&entries)) {
        let Some(service) = entry.service.as_ref().filter(|_| tally.unmet.contains(&named.id)) else {
            continue;
        };
        let namespace = entry.namespace.as_deref().unwrap_or(own);
        if namespace != own && !has_opted_in(namespace, world, settings, &mut found.wants) {
            continue;
        }
        let scope = Scope::Name { namespace: Some(namespace.to_owned()), name: service.clone() };
        let kind = Gvk::new("", "v1", "Service");
        let reads = ReadSet::dotted(SERVICE_READS);
        let want = Want::new(Question::Objects { via: via.clone(), kind, scope, reads });
        let Some(seen) = objects(world, &want).and_then(|seen| seen.items.first()) else { continue };
        let Some(selector) = seen.content["spec"]["selector"].as_object().filter(|map| !map.is_empty())
        else {
            continue;
        };
        let matches = |labels: &Value| selector.iter().all(|(key, value)| labels.get(key) == Some(value));
        let place = ObjectRef::namespaced(
            GroupKind { group: String::new(), kind: "Service".to_owned() },
            namespace,
            service.clone(),
        );
        let from = Node::here(place);
        let unmet = || Wait::new(WaitState::InProgress, Reason::NoEndpoints.as_str());
        if !templates.contains_key(namespace) {
            templates.insert(namespace.to_owned(), held_templates(namespace, world, &mut found.wants));
        }
        for (workload, labels) in templates.get(namespace).into_iter().flatten() {
            if matches(labels) {
                found.edges.push(Edge::waits(from.clone(), workload.clone(), unmet()));
            }
        }
        let pods_want = held_pods(namespace);
        found.wants.insert(pods_want.clone());
        for pod in objects(world, &pods_want).into_iter().flat_map(|pods| &pods.items) {
            let pod: &Projection = pod;
            if has_gate(pod) && matches(&pod.content["metadata"]["labels"]) {
                let kind = BootDependency::gvk().group_kind();
                let to = |owner: &str| Node::here(ObjectRef::namespaced(kind.clone(), namespace, owner));
                found.edges.extend(
                    owners(pod).into_iter().map(|owner| Edge::waits(from.clone(), to(owner), unmet())),
                );
            }
        }
    }
    found.edges.sort();
    found.edges.dedup();
    found
}

fn has_opted_in(namespace: &str, world: &World, settings: &BootSettings, wants: &mut BTreeSet<Want>) -> bool {
    let labels = ReadSet::dotted(["metadata.labels"]);
    let want =
        Want::object(super::held::operator(), Gvk::new("", "v1", "Namespace"), None, namespace, labels);
    wants.insert(want.clone());
    objects(world, &want)
        .and_then(|seen| seen.items.first())
        .is_some_and(|seen| settings.covers(namespace, &seen.content["metadata"]["labels"]))
}

/// The workloads of a namespace that some BootDependency holds, with the labels of their pods.
fn held_templates(namespace: &str, world: &World, wants: &mut BTreeSet<Want>) -> Vec<(Node, Value)> {
    let boots_want = boots_of(namespace);
    wants.insert(boots_want.clone());
    let Some(boots) = objects(world, &boots_want) else { return Vec::new() };
    let boots = boots.items.iter().filter(|boot| !boot.deleting);
    let targets: BTreeSet<Node> = boots.filter_map(|boot| Some(node(namespace, target_of(boot)?))).collect();
    let kinds: BTreeSet<&GroupKind> = targets.iter().map(|node| &node.object.kind).collect();
    let mut found = Vec::new();
    for kind in kinds.into_iter().filter(|kind| TEMPLATES.contains(&kind.kind.as_str())) {
        let Some(known) = built_in_kind(&kind.group, &kind.kind) else { continue };
        let gvk = Gvk::new(known.group, known.version, known.kind);
        let want = wanted(namespace, gvk, Selector::default(), &["spec.template.metadata.labels"]);
        wants.insert(want.clone());
        for workload in objects(world, &want).into_iter().flat_map(|seen| &seen.items) {
            let node = Node::here(ObjectRef::namespaced(kind.clone(), namespace, workload.name.clone()));
            if targets.contains(&node) {
                found.push((node, workload.content["spec"]["template"]["metadata"]["labels"].clone()));
            }
        }
    }
    found
}
