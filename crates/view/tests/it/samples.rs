//! Graphs to draw.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use linchpin_engine::graph::{Edge, Graph, Node, Wait, WaitState};
use linchpin_view::{Picture, PictureSelection};
use linchpin_words::{GroupKind, ObjectRef};

pub(crate) fn now() -> Timestamp {
    "2026-01-02T03:20:00Z".parse().unwrap()
}

fn ago(minutes: i64) -> Timestamp {
    Timestamp::from_second(now().as_second() - 60 * minutes).unwrap()
}

pub(crate) fn node(group: &str, kind: &str, namespace: &str, name: &str) -> Node {
    Node::here(ObjectRef::namespaced(GroupKind::new(group, kind), namespace, name))
}

pub(crate) fn ours(name: &str) -> Node {
    node("tools.kubestellar.io", "ResourceDependency", "shop", name)
}

pub(crate) fn object(kind: &str, name: &str) -> Node {
    node("", kind, "shop", name)
}

pub(crate) fn publish() -> Node {
    ours("publish")
}

fn wait(state: WaitState, reason: &'static str, minutes: i64) -> Wait {
    Wait::new(state, reason).since(ago(minutes))
}

pub(crate) fn waits(from: &Node, to: &Node) -> Edge {
    Edge::waits(from.clone(), to.clone(), wait(WaitState::InProgress, "NotReady", 12))
}

pub(crate) fn waits_with(from: &Node, to: &Node, detail: &str) -> Edge {
    Edge::waits(from.clone(), to.clone(), Wait::new(WaitState::Failed, "Broken").detail(detail.to_owned()))
}

fn has(from: &Node, to: &Node) -> Edge {
    Edge::waits(from.clone(), to.clone(), wait(WaitState::Met, "Ready", 30))
}

pub(crate) fn makes(from: &Node, to: &Node) -> Edge {
    Edge::produces(from.clone(), to.clone(), false)
}

pub(crate) fn graph(edges: impl IntoIterator<Item = Edge>) -> Graph {
    let edges: Vec<Edge> = edges.into_iter().collect();
    let owners: BTreeSet<Node> = edges.iter().map(|edge| edge.from.whole()).collect();
    let mut graph = Graph::new();
    for owner in owners {
        graph
            .set(&owner, edges.iter().filter(|edge| edge.from.whole() == owner).cloned().collect::<Vec<_>>());
    }
    graph
}

pub(crate) fn all(graph: &Graph) -> Picture {
    Picture::of(graph, &PictureSelection::All, &BTreeMap::new())
}

/// A small shop: a bundle that waits for a boot gate and for what another object is to publish, a group with parts, a
/// job that failed, something in another cluster, something that cannot be seen.
pub(crate) fn shop_graph() -> Graph {
    let bundle = node("app.example.com", "AppBundle", "shop", "web");
    let boot = node("core.bootchain-operator.ruicoelho.dev", "BootDependency", "shop", "web");
    let migrate = node("batch", "Job", "db", "migrate");
    let postgres = node("apps", "StatefulSet", "db", "postgres");
    let stack = node("tools.kubestellar.io", "DependencyGroup", "shop", "stack");
    let (crds, services) = (stack.clone().part("crds"), stack.clone().part("services"));
    let crd = Node::here(ObjectRef::cluster_scoped(
        GroupKind::new("apiextensions.k8s.io", "CustomResourceDefinition"),
        "widgets.example.com",
    ));
    let gateway = node("apps", "Deployment", "edge", "gateway").in_cluster("east");
    let endpoints = object("ConfigMap", "endpoints");
    let web = node("apps", "Deployment", "shop", "web");
    let credentials = node("", "Secret", "vault", "credentials");
    let failed = wait(WaitState::Failed, "BackoffLimitExceeded", 4).detail("6 of 6 attempts failed");
    let rolling =
        wait(WaitState::InProgress, "MinimumReplicasUnavailable", 3).detail("1 of 3 replicas available");
    graph([
        Edge::waits(bundle.clone(), boot.clone(), wait(WaitState::InProgress, "DependenciesNotReady", 12)),
        Edge::waits(bundle.clone(), endpoints.clone(), wait(WaitState::Absent, "NotFound", 12)),
        has(&bundle, &crds),
        Edge::waits(bundle.clone(), web.clone(), rolling.clone()),
        Edge::produces(bundle, web, true),
        Edge::waits(boot.clone(), migrate, failed),
        has(&boot, &postgres),
        makes(&publish(), &endpoints),
        Edge::waits(publish(), gateway, rolling),
        has(&stack, &crds),
        Edge::waits(stack.clone(), services.clone(), wait(WaitState::InProgress, "GroupNotReady", 12)),
        has(&crds, &crd),
        has(&services, &postgres),
        Edge::waits(services, credentials, wait(WaitState::Unknown, "Forbidden", 12)),
        makes(&ours("announce"), &object("Job", "announce")),
    ])
}

pub(crate) fn shop() -> Picture {
    all(&shop_graph())
}

/// Two objects that wait for each other through what one is to make, somebody who waits for them, one who waits for
/// itself.
pub(crate) fn knot() -> Picture {
    let [a, b, c, lone] = ["a", "b", "c", "lone"].map(ours);
    let made = object("ConfigMap", "made");
    all(&graph([waits(&a, &made), makes(&b, &made), waits(&b, &a), waits(&c, &a), waits(&lone, &lone)]))
}

/// Names and texts that try to be markup.
pub(crate) fn hostile() -> Picture {
    let evil = "\"]; click n0 \"javascript:alert(1)\"\n<script>alert('x')</script> \u{1b}[31m\u{202e}]]> \\N #quot; & %%";
    let from = object("Job", evil).in_cluster(evil).part(evil);
    all(&graph([
        waits_with(&from, &ours("plain"), evil),
        waits_with(&ours("plain"), &object(evil, "kind"), evil),
    ]))
}
