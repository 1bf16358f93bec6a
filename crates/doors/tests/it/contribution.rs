//! The wait-for graph as it is read back from statuses.

mod app_bundle;

use linchpin_api::{DependencyGroup, ResourceDependency, Status};
use linchpin_doors::{
    DependencyGroupDoor, ResourceDependencyDoor,
    contribution::{Contribution, of_dependency_group, of_resource_dependency},
};
use linchpin_engine::graph::{Edge, Graph, Relation, explain};

use crate::{
    stage::{Stage, read},
    things::deployment,
};

/// Edges as text, with how the target stands.
fn texts(contribution: &Contribution) -> Vec<String> {
    contribution.edges.iter().map(text).collect()
}

fn text(edge: &Edge) -> String {
    match &edge.relation {
        Relation::WaitsFor(wait) => format!("{} waits for {}: {:?}", edge.from, edge.to, wait.standing),
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
    let object = ResourceDependency { status: Some(stage.status()), ..stage.object.clone() };
    assert_eq!(
        texts(&of_resource_dependency(&object)),
        [
            "ResourceDependency own/web waits for Deployment data/db: Met",
            "ResourceDependency own/web waits for Pod own/[app=db]: Absent",
            "ResourceDependency own/web waits for payment own/default: Unknown",
            "ResourceDependency own/web waits for Job own/far@cluster of Secret own/east: Absent",
            "ResourceDependency own/web waits for DependencyGroup own/stack[crds]: Absent",
            "ResourceDependency own/web makes ConfigMap own/c",
            "ResourceDependency own/web makes Secret other/s",
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
        stage.status();
        assert_eq!(
            texts(&of_resource_dependency(&stage.object)),
            ["ResourceDependency own/web waits for AppBundle own/shop: Unknown"]
        );
    }
}

#[test]
fn what_nobody_has_looked_at_yet_contributes_nothing() {
    let object: ResourceDependency = read(WEB);
    assert_eq!(texts(&of_resource_dependency(&object)), [""; 0]);
    let unseen = ResourceDependency { status: Some(Status::default()), ..object };
    assert_eq!(texts(&of_resource_dependency(&unseen)), [""; 0]);
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
    let object = DependencyGroup { status: Some(stage.status()), ..stage.object.clone() };
    let contribution = of_dependency_group(&object);
    assert_eq!(
        texts(&contribution),
        [
            "DependencyGroup own/stack waits for DependencyGroup own/stack[data]: InProgress",
            "DependencyGroup own/stack[data] waits for Deployment own/db: InProgress",
            "DependencyGroup own/stack[data] makes ConfigMap own/c",
            "DependencyGroup own/stack waits for DependencyGroup own/stack[web]: InProgress",
            "DependencyGroup own/stack[web] waits for DependencyGroup own/stack[data]: InProgress",
            "DependencyGroup own/stack[web] waits for ConfigMap own/c: Absent",
        ]
    );
    let mut graph = Graph::new();
    graph.set(&contribution.node, contribution.edges);
    let answer = explain::answer(&contribution.node, &graph.root_causes(&contribution.node, &|_| true));
    assert!(
        answer.starts_with(
            "DependencyGroup own/stack waits for DependencyGroup own/stack[data], which waits for Deployment own/db: "
        ),
        "{answer}"
    );
}
