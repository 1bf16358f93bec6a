//! The circles that run through Services: what admission cannot see, and the wait-for graph must.
//!
//! A gated pod has no address and is in no EndpointSlice, so the very deadlock would hide itself from who looks there.
//! So a Service leads to the workloads whose templates its selector matches, and to the held pods that it matches, and
//! from those to the BootDependency that holds them; where pods wait by themselves and no template shows whose they are
//! (they are selected by their labels, or made by somebody else's kind), to those that it matches and that have not
//! started. A Service without a selector leads to the pods that its slices claim, as long as they have not started.

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
    held::{boots_of, has_gate, held_pods, objects, operator, owners, wanted},
    scope::BootSettings,
    selection::WorkloadName,
    service::{SERVICE_LABEL, SERVICE_READS, SLICE_READS},
    survey::target_of,
};
use crate::door::{Tally, object_ref};

/// Kinds whose templates are compared with selectors.
const TEMPLATES: [&str; 3] = ["Deployment", "StatefulSet", "DaemonSet"];

/// What is read of a pod that the slices of a Service name.
const POD_READS: [&str; 2] = ["metadata.annotations", "status.phase"];

/// What is read of a pod that a Service may select.
const LABELLED_READS: [&str; 3] = ["metadata.labels", "metadata.annotations", "status.phase"];

/// How many pods are looked at that the slices of one Service name.
const CLAIMED: usize = 64;

/// What is found, and what is asked to find it.
#[derive(Default)]
pub(super) struct FoundEdges {
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

/// From each Service that the object waits for to what serves it, in namespaces that have opted in.
pub(super) fn behind_services(
    object: &BootDependency,
    via: &Via,
    tally: &Tally,
    world: &World,
    settings: &BootSettings,
) -> FoundEdges {
    let mut found = FoundEdges::default();
    let own = object.metadata.namespace.as_deref().unwrap_or_default();
    let entries: Vec<&BootEntry> = object.spec.depends_on.iter().collect();
    let mut known: BTreeMap<String, HeldWorkloads<'_>> = BTreeMap::new();
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
        let place = ObjectRef::namespaced(
            GroupKind { group: String::new(), kind: "Service".to_owned() },
            namespace,
            service.clone(),
        );
        let from = Node::here(place);
        let Some(selector) = seen.content["spec"]["selector"].as_object().filter(|map| !map.is_empty())
        else {
            behind_claims(&from, (namespace, service), via, world, &mut found);
            continue;
        };
        let matches = |labels: &Value| selector.iter().all(|(key, value)| labels.get(key) == Some(value));
        if !known.contains_key(namespace) {
            known.insert(namespace.to_owned(), HeldWorkloads::of(namespace, world, &mut found.wants));
        }
        for (workload, labels) in known.get(namespace).into_iter().flat_map(|held| &held.templates) {
            if matches(labels) {
                found.edges.push(Edge::waits(from.clone(), workload.clone(), unmet()));
            }
        }
        for pod in known.get(namespace).into_iter().flat_map(|held| &held.waiting) {
            if matches(&pod.content["metadata"]["labels"]) {
                found.edges.extend(to_holders(&from, namespace, pod));
            }
        }
        let pods_want = held_pods(namespace);
        found.wants.insert(pods_want.clone());
        for pod in objects(world, &pods_want).into_iter().flat_map(|pods| &pods.items) {
            let pod: &Projection = pod;
            if has_gate(pod) && matches(&pod.content["metadata"]["labels"]) {
                found.edges.extend(to_holders(&from, namespace, pod));
            }
        }
    }
    found.edges.sort();
    found.edges.dedup();
    found
}

fn unmet() -> Wait {
    Wait::new(WaitState::InProgress, Reason::NoEndpoints.as_str())
}

/// From a Service to the BootDependencies that a pod behind it waits for.
fn to_holders(from: &Node, namespace: &str, pod: &Projection) -> Vec<Edge> {
    let kind = BootDependency::gvk().group_kind();
    let to = |owner: &str| Node::here(ObjectRef::namespaced(kind.clone(), namespace, owner));
    owners(pod).into_iter().map(|owner| Edge::waits(from.clone(), to(owner), unmet())).collect()
}

/// From a Service without a selector to what holds the pods that its slices name.
fn behind_claims(
    from: &Node,
    (namespace, service): (&str, &str),
    via: &Via,
    world: &World,
    found: &mut FoundEdges,
) {
    let selector = Selector::requirements(vec![format!("{SERVICE_LABEL}={service}")]);
    let scope = Scope::Labels { namespace: Some(namespace.to_owned()), selector };
    let kind = Gvk::new("discovery.k8s.io", "v1", "EndpointSlice");
    let want =
        Want::new(Question::Objects { via: via.clone(), kind, scope, reads: ReadSet::dotted(SLICE_READS) });
    let slices = objects(world, &want).into_iter().flat_map(|seen| &seen.items);
    let endpoints = slices.flat_map(|slice| slice.content["endpoints"].as_array().into_iter().flatten());
    let named: BTreeSet<&str> = endpoints
        .map(|endpoint| &endpoint["targetRef"])
        .filter(|target| target["kind"] == "Pod")
        .filter(|target| target["namespace"].as_str().is_none_or(|place| place == namespace))
        .filter_map(|target| target["name"].as_str())
        .take(CLAIMED)
        .collect();
    for name in named {
        let reads = ReadSet::dotted(POD_READS);
        let pod = Gvk::new("", "v1", "Pod");
        let want = Want::object(operator(), pod, Some(namespace.to_owned()), name, reads);
        found.wants.insert(want.clone());
        let seen = objects(world, &want).and_then(|seen| seen.items.first());
        if let Some(pod) = seen.filter(|pod| has_not_started(pod)) {
            found.edges.extend(to_holders(from, namespace, pod));
        }
    }
}

fn has_not_started(pod: &Projection) -> bool {
    pod.content["status"]["phase"] == "Pending"
}

fn has_opted_in(namespace: &str, world: &World, settings: &BootSettings, wants: &mut BTreeSet<Want>) -> bool {
    let labels = ReadSet::dotted(["metadata.labels"]);
    let want = Want::object(operator(), Gvk::new("", "v1", "Namespace"), None, namespace, labels);
    wants.insert(want.clone());
    objects(world, &want)
        .and_then(|seen| seen.items.first())
        .is_some_and(|seen| settings.covers(namespace, &seen.content["metadata"]["labels"]))
}

/// Whose pods the BootDependencies of a namespace hold.
#[derive(Default)]
struct HeldWorkloads<'w> {
    /// The workloads that they name, with the labels of their pods.
    templates: Vec<(Node, Value)>,
    /// Pods that have not started, where some wait by themselves that none of these templates covers.
    waiting: Vec<&'w Projection>,
}

impl<'w> HeldWorkloads<'w> {
    fn of(namespace: &str, world: &'w World, wants: &mut BTreeSet<Want>) -> Self {
        let boots_want = boots_of(namespace);
        wants.insert(boots_want.clone());
        let Some(boots) = objects(world, &boots_want) else { return Self::default() };
        let mut held = Self::default();
        let mut others = false;
        let mut targets = BTreeSet::new();
        for boot in boots.items.iter().filter(|boot| !boot.deleting) {
            match target_of(boot).filter(|target| TEMPLATES.contains(&target.kind.as_str())) {
                Some(target) => drop(targets.insert(node(namespace, target))),
                // Who is held by the gate is found by it.
                None => others |= boot.content["spec"]["strategy"] != "SchedulingGate",
            }
        }
        if others {
            // One question for all Services of a namespace: an object with many of them makes no more watches.
            let want = wanted(namespace, Gvk::new("", "v1", "Pod"), Selector::default(), &LABELLED_READS);
            for pod in objects(world, &want).into_iter().flat_map(|seen| &seen.items) {
                let pod: &Projection = pod;
                if has_not_started(pod) && !owners(pod).is_empty() {
                    held.waiting.push(pod);
                }
            }
            wants.insert(want);
        }
        let kinds: BTreeSet<&GroupKind> = targets.iter().map(|node: &Node| &node.object.kind).collect();
        for kind in kinds {
            let Some(known) = built_in_kind(&kind.group, &kind.kind) else { continue };
            let gvk = Gvk::new(known.group, known.version, known.kind);
            let want = wanted(namespace, gvk, Selector::default(), &["spec.template.metadata.labels"]);
            wants.insert(want.clone());
            for workload in objects(world, &want).into_iter().flat_map(|seen| &seen.items) {
                let node = Node::here(ObjectRef::namespaced(kind.clone(), namespace, workload.name.clone()));
                if targets.contains(&node) {
                    let labels = workload.content["spec"]["template"]["metadata"]["labels"].clone();
                    held.templates.push((node, labels));
                }
            }
        }
        held
    }
}
