//! The edges of the wait-for graph as statuses carry them.

mod app_bundle;

use kube_core::Resource as _;
use linchpin_api::Ours as _;
use linchpin_doors::{DependencyGroupDoor, Door, ResourceDependencyDoor, status_edges};
use linchpin_engine::graph::{Edge, Graph, Node, Relation, explain};
use linchpin_words::ObjectRef;

use crate::{stage::Stage, things::deployment};

/// An object, and what it waits for and makes as its status says.
#[derive(Clone)]
struct Told {
    node: Node,
    edges: Vec<Edge>,
}

impl Told {
    fn new<D: Door>(object: &D::Object, edges: Option<&str>) -> Self {
        let (kind, meta) = (D::Object::gvk().group_kind(), object.meta());
        let place = [&meta.namespace, &meta.name].map(|text| text.clone().unwrap_or_default());
        let node = Node::here(ObjectRef::namespaced(kind, &place[0], &place[1]));
        Self { edges: status_edges::read(&node, edges), node }
    }

    fn of(stage: &mut Stage<ResourceDependencyDoor>) -> Self {
        let status = stage.status();
        Self::new::<ResourceDependencyDoor>(&stage.object, status.common.edges.as_deref())
    }
}

/// Edges as text, with the state of their targets; without those of batches, which people do not see.
fn texts(told: &Told) -> Vec<String> {
    let batch = |edge: &&Edge| edge.from.batch > 0 && matches!(edge.relation, Relation::WaitsFor(_));
    let mut texts: Vec<String> = told.edges.iter().filter(|edge| !batch(edge)).map(text).collect();
    texts.sort();
    texts
}

fn text(edge: &Edge) -> String {
    match &edge.relation {
        Relation::WaitsFor(wait) => format!("{} waits for {}: {:?}", edge.from, edge.to, wait.state),
        Relation::Produces { done } => {
            format!("{} {} {}", edge.from, if *done { "made" } else { "makes" }, edge.to)
        }
    }
}

const WEB: &str = r#"{apiVersion: tools.kubestellar.io/v1, kind: ResourceDependency, metadata: {name: web}, spec: {
    dependencies: [{name: db, resource: deployment/db, namespace: data},
      {resource: pod, selector: {matchLabels: {app: db}}},
      {name: nice, resource: configmap/nice, optional: true},
      {name: pay, resource: payment.shop.example.com/default},
      {name: far, resource: job/far, cluster: {kubeconfigSecretRef: {name: east}}},
      {name: stack, resource: dependencygroup.tools.kubestellar.io/stack, group: crds}],
    actions: [{name: go, type: create, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: c}}},
      {name: tell, type: template, template: "apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: other}"},
      {type: template, template: "apiVersion: v1\nkind: Secret\nmetadata: {name: '{{ .Now }}'}"}]}}"#;

#[test]
fn the_status_tells_what_is_waited_for_and_what_is_to_be_made() {
    let mut stage = Stage::<ResourceDependencyDoor>::new(WEB).with_kubestellar();
    stage.put(deployment("data", "db", 1)).settle();
    assert_eq!(
        texts(&Told::of(&mut stage)),
        [
            "ResourceDependency own/web makes ConfigMap own/c",
            "ResourceDependency own/web makes Secret other/s",
            "ResourceDependency own/web waits for DependencyGroup own/stack[crds]: Absent",
            "ResourceDependency own/web waits for Deployment data/db: Met",
            "ResourceDependency own/web waits for Job own/far@cluster of Secret own/east: Absent",
            "ResourceDependency own/web waits for Pod own/[app=db]: Absent",
            "ResourceDependency own/web waits for payment own/default: Unknown",
        ]
    );
}

#[test]
fn a_kind_of_ours_that_is_not_served_yet_is_known_by_all_its_names() {
    for word in ["ab", "appbundle", "appbundles", "appbundle.app.example.com"] {
        let manifest = format!(
            "{{apiVersion: tools.kubestellar.io/v1, kind: ResourceDependency, metadata: {{name: web}}, \
             spec: {{dependencies: [{{resource: {word}/shop}}]}}}}"
        );
        let mut stage = Stage::<ResourceDependencyDoor>::new(&manifest);
        stage.settle();
        assert_eq!(
            texts(&Told::of(&mut stage)),
            ["ResourceDependency own/web waits for AppBundle own/shop: Unknown"]
        );
    }
}

#[test]
fn a_selection_is_one_edge_however_many_objects_it_finds() {
    let mut stage = Stage::<ResourceDependencyDoor>::new(
        "{apiVersion: tools.kubestellar.io/v1, kind: ResourceDependency, metadata: {name: web}, spec: {dependencies: [
            {resource: deployment, selector: {matchLabels: {app: db}}, expect: {all: true}}]}}",
    );
    for index in 0..40 {
        let mut one = deployment("own", &format!("db-{index}"), 0);
        one["metadata"]["labels"] = serde_json::json!({"app": "db"});
        stage.put(one);
    }
    stage.settle();
    assert_eq!(
        texts(&Told::of(&mut stage)),
        ["ResourceDependency own/web waits for Deployment own/[app=db]: InProgress"]
    );
}

const STACK: &str =
    "{apiVersion: tools.kubestellar.io/v1, kind: DependencyGroup, metadata: {name: stack}, spec: {groups: [
    {name: data, dependencies: [{name: db, resource: deployment/db}],
     actions: [{type: create, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: c}}}]},
    {name: web, dependsOn: [data], dependencies: [{name: c, resource: configmap/c}]}]}}";

#[test]
fn groups_are_parts_that_wait_for_each_other() {
    let mut stage = Stage::<DependencyGroupDoor>::new(STACK);
    stage.put(deployment("own", "db", 0)).settle();
    let status = stage.status();
    let told = Told::new::<DependencyGroupDoor>(&stage.object, status.common.edges.as_deref());
    assert_eq!(
        texts(&told),
        [
            "DependencyGroup own/stack waits for DependencyGroup own/stack[data]: InProgress",
            "DependencyGroup own/stack waits for DependencyGroup own/stack[web]: InProgress",
            "DependencyGroup own/stack[data] makes ConfigMap own/c",
            "DependencyGroup own/stack[data] waits for Deployment own/db: InProgress",
            "DependencyGroup own/stack[web] waits for ConfigMap own/c: Absent",
            "DependencyGroup own/stack[web] waits for DependencyGroup own/stack[data]: InProgress",
        ]
    );
    let mut graph = Graph::new();
    graph.set(&told.node, told.edges);
    let answer = explain::answer(&told.node, &graph.root_causes(&told.node, &|_| true));
    assert!(
        answer.starts_with(
            "DependencyGroup own/stack waits for DependencyGroup own/stack[data], which waits for Deployment own/db: "
        ),
        "{answer}"
    );
}
