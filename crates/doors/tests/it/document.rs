//! The document's own examples, carried out.

use linchpin_doors::{DependencyGroupDoor, ResourceDependencyDoor};
use linchpin_engine::step::Phase;
use serde_json::json;

use crate::{
    stage::Stage,
    things::{control_plane, definition, deployment, namespace},
};

const BOOTSTRAP: &str = include_str!("../../../api/tests/it/manifests/bootstrap.yaml");
const KUBEFLEX: &str = include_str!("../../../api/tests/it/manifests/kubeflex-bootstrap.yaml");
const WDS: &str = include_str!("../../../api/tests/it/manifests/wds-prerequisites.yaml");
const POSTGRES: &str = include_str!("../../../api/tests/it/manifests/postgres-setup.yaml");
const BINDING: &str = include_str!("../../../api/tests/it/manifests/its-wds-binding.yaml");
const PREREQ: &str = include_str!("../../../api/tests/it/manifests/prereq-check.yaml");
const FULL: &str = include_str!("../../../api/tests/it/manifests/full-deployment.yaml");

#[test]
fn the_opening_example_waits_tier_by_tier_and_then_acts_in_order() {
    let mut stage = Stage::<ResourceDependencyDoor>::new(BOOTSTRAP).with_kubestellar();
    stage.edit(|object| object["spec"]["values"] = json!({"bootstrapConfig": "hello"}));
    stage.put(deployment("kubeflex-system", "kubeflex-controller-manager", 1)).settle();
    assert_eq!(stage.report().phase, Phase::Waiting);
    assert!(stage.report().message.contains("namespace/kubestellar-system"), "{}", stage.report().message);
    stage.put(namespace("kubestellar-system")).settle();
    assert!(stage.done().is_empty(), "the definition is in the first tier too");
    stage.put(definition("kubeflex.kubestellar.io", "controlplanes", "ControlPlane")).settle();
    assert_eq!(
        stage.done(),
        [
            "create ConfigMap kubestellar-system/kubestellar-bootstrap-status",
            "apply Secret kubestellar-system/kubestellar-bootstrap"
        ]
    );
    assert_eq!(stage.bodies[0]["data"]["timestamp"], "1970-01-01T00:16:40Z");
    assert_eq!(stage.bodies[1]["data"]["config"], "aGVsbG8=");
    assert_eq!((stage.report().phase, stage.report().ready), (Phase::Completed, true));
}

#[test]
fn the_opening_example_tells_when_a_dependency_times_out() {
    let mut stage = Stage::<ResourceDependencyDoor>::new(BOOTSTRAP);
    stage.settle().pass(121).settle();
    assert_eq!(stage.done(), ["notice KubeStellar bootstrap dependencies failed"]);
    let status = stage.status();
    assert_eq!(status.common.phase.as_deref(), Some("Failed"));
    assert_eq!(status.dependencies[0].state, "TimedOut");
}

/// The patches of examples 1 and 2 have one closing brace too many: they are carried out, and it is told.
#[track_caller]
fn tells_of_the_brace(stage: &mut Stage<ResourceDependencyDoor>) {
    let told = "spec.actions[1].patch.patch: what closes nothing at its end is left out";
    assert_eq!(stage.report().problems, [told]);
    assert!(stage.status().common.message.is_some_and(|message| message.ends_with(told)));
}

#[test]
fn kubeflex_is_restarted_after_its_prerequisites() {
    let mut stage = Stage::<ResourceDependencyDoor>::new(KUBEFLEX).with_kubestellar();
    stage.put(namespace("kubeflex-system"));
    stage.put(definition("kubeflex.kubestellar.io", "controlplanes", "ControlPlane")).settle();
    assert_eq!(
        stage.done(),
        [
            "create ConfigMap kubeflex-system/kubeflex-prerequisites-ready",
            "patch deployment kubeflex-system/kubeflex-controller-manager Strategic"
        ]
    );
    let annotations = &stage.bodies[1]["spec"]["template"]["metadata"]["annotations"];
    assert_eq!(annotations["kubectl.kubernetes.io/restartedAt"], "1970-01-01T00:16:40Z");
    tells_of_the_brace(&mut stage);
}

#[test]
fn a_secret_is_made_of_what_a_control_plane_reports_once_it_reports_it() {
    let mut stage = Stage::<ResourceDependencyDoor>::new(WDS).with_kubestellar();
    stage.put(deployment("its1", "cluster-manager", 1));
    stage.put(control_plane("its1", &json!({"phase": "Starting"}))).settle();
    assert!(stage.done().is_empty());
    stage.put(control_plane("its1", &json!({"phase": "Running", "endpoint": "e"}))).settle();
    assert!(stage.done().is_empty(), "kubeconfig is not there yet");
    assert_eq!(stage.report().blocked[0].reason, "ValueMissing");
    stage
        .put(control_plane("its1", &json!({"phase": "Running", "endpoint": "e", "kubeconfig": "k"})))
        .settle();
    assert_eq!(
        stage.done(),
        [
            "apply Secret kubestellar-system/wds-its-connection",
            "patch deployment kubestellar-system/wds-controller Strategic"
        ]
    );
    assert_eq!(stage.bodies[0]["data"], json!({"its-endpoint": "ZQ==", "its-kubeconfig": "aw=="}));
    tells_of_the_brace(&mut stage);
}

#[test]
fn a_database_is_created_only_if_it_is_missing_and_initialised_when_it_is_ready() {
    let stateful_set = |ready: i64| {
        json!({"apiVersion": "apps/v1", "kind": "StatefulSet",
            "metadata": {"namespace": "kubestellar-system", "name": "postgres", "generation": 1},
            "spec": {"replicas": 1, "serviceName": "postgres"},
            "status": {"observedGeneration": 1, "replicas": 1, "readyReplicas": ready, "availableReplicas": ready,
                "updatedReplicas": 1, "currentRevision": "a", "updateRevision": "a"}})
    };
    let job = POSTGRES.replace("          # ... database initialization job ...", "          suspend: false");
    let mut stage = Stage::<ResourceDependencyDoor>::new(&job);
    stage.settle();
    assert_eq!(stage.done(), ["create StatefulSet kubestellar-system/postgres"]);
    stage.pass(10).settle();
    assert!(stage.done().is_empty(), "the set is not ready, so the last guard is undecided");
    stage.put(stateful_set(1)).settle();
    assert_eq!(stage.done(), ["create Job kubestellar-system/postgres-init"]);
    assert_eq!(stage.report().phase, Phase::Completed);

    let mut stage = Stage::<ResourceDependencyDoor>::new(&job);
    stage.put(stateful_set(1)).settle().pass(10).settle();
    assert_eq!(stage.done(), ["create Job kubestellar-system/postgres-init"], "what is there is not created");
    let status = stage.status();
    assert_eq!(
        (status.actions[0].state.as_str(), status.actions[0].reason.as_str()),
        ("Skipped", "GuardFalse")
    );
}

#[test]
fn a_binding_is_written_again_when_what_it_read_changes_and_only_then() {
    let mut stage = Stage::<ResourceDependencyDoor>::new(BINDING).with_kubestellar();
    let plane = |name: &str, endpoint: &str, other: i64| {
        let ready = json!([{"type": "Ready", "status": "True"}]);
        control_plane(name, &json!({"endpoint": endpoint, "other": other, "conditions": ready}))
    };
    stage.put(plane("its1", "one", 1)).put(plane("wds1", "two", 1)).settle();
    assert_eq!(stage.done(), ["apply ITSWDSBinding kubestellar-system/its1-wds1-binding"]);
    stage.put(plane("its1", "one", 2)).settle();
    assert!(stage.done().is_empty(), "nobody reads `other`");
    stage.pass(5).put(plane("its1", "three", 2)).settle();
    assert_eq!(stage.done(), ["apply ITSWDSBinding kubestellar-system/its1-wds1-binding"]);
    assert_eq!(stage.bodies[1]["spec"]["itsEndpoint"], "three");
    stage.take(&plane("wds1", "", 0)).settle();
    let status = stage.status();
    assert_eq!(status.common.phase.as_deref(), Some("Completed"));
    assert_eq!(
        (status.common.conditions[0].kind.as_str(), status.common.conditions[0].reason.as_str()),
        ("Ready", "DependencyLost")
    );
    let holds: Vec<bool> = status
        .common
        .conditions
        .iter()
        .map(|one| one.status == linchpin_words::ConditionStatus::True)
        .collect();
    assert_eq!(holds, [false; 3], "it is finished, not ready, and nobody has to do anything");
}

#[test]
fn a_hook_looks_at_the_servers_version_and_makes_the_namespace_if_it_is_missing() {
    let mut stage = Stage::<ResourceDependencyDoor>::new(PREREQ);
    stage.version = json!({"major": "1", "minor": "23+", "gitVersion": "v1.23.1"});
    stage.settle();
    assert!(stage.done().is_empty(), "1.23 is too old");
    stage.version = json!({"major": "1", "minor": "34", "gitVersion": "v1.34.2"});
    stage.settle();
    assert_eq!(
        stage.done(),
        ["create Namespace kubestellar-system", "apply ConfigMap kubestellar-system/kubestellar-helm-values"]
    );
    let values = stage.bodies[1]["data"]["overrideValues.yaml"].as_str().expect("a text");
    assert!(values.contains("kubernetesVersion: v1.34.2"), "{values}");
}

#[test]
fn the_full_deployment_opens_group_after_group() {
    let mut stage = Stage::<DependencyGroupDoor>::new(FULL).with_kubestellar();
    stage.put(deployment("kubestellar-system", "kubestellar-controller", 1));
    stage.put(namespace("kubestellar-system")).put(namespace("kubeflex-system")).settle();
    let phases = |stage: &mut Stage<DependencyGroupDoor>| -> Vec<String> {
        stage.status().groups.iter().map(|group| group.phase.clone()).collect()
    };
    assert_eq!(phases(&mut stage), ["Waiting", "Pending", "Pending", "Pending", "Pending"]);
    stage.put(definition("kubeflex.kubestellar.io", "controlplanes", "ControlPlane"));
    stage.put(definition("kubestellar.io", "workloadclusters", "WorkloadCluster"));
    stage.customs.push(crate::stage::Custom {
        kind: linchpin_words::Gvk::new("kubestellar.io", "v1", "WorkloadCluster"),
        plural: "workloadclusters",
        namespaced: true,
    });
    stage.settle();
    assert_eq!(phases(&mut stage), ["Ready", "Waiting", "Pending", "Pending", "Pending"]);
    stage.put(deployment("kubeflex-system", "kubeflex-controller-manager", 1));
    stage.put(deployment("its1", "cluster-manager", 1));
    stage.put(control_plane("its1", &json!({"phase": "Running"})));
    stage.put(control_plane("wds1", &json!({"phase": "Running"}))).settle();
    assert_eq!(phases(&mut stage), ["Ready"; 5]);
    assert!(stage.report().ready);
    stage.take(&namespace("kubeflex-system")).settle();
    assert_eq!(phases(&mut stage), ["Waiting", "Pending", "Pending", "Pending", "Pending"]);
    assert!(!stage.report().ready);
}
