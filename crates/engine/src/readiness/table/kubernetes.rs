//! The rows for what every cluster has.

use super::{
    super::{control, generic, network, runs, storage, workloads},
    PLAIN, ReadinessRow, kinds,
};

/// What only keeps a number of pods.
const REPLICA_SET: ReadinessRow = ReadinessRow {
    name: "ReplicaSet",
    applies: &[kinds("apps", &["ReplicaSet"])],
    ready: "all replicas are available",
    in_progress: "replicas are being created, started or removed",
    observes: true,
    reads: conditions![
        "spec.replicas",
        "status.observedGeneration",
        "status.replicas",
        "status.availableReplicas"
    ],
    rule: workloads::replica_set,
    ..PLAIN
};

pub(super) static ROWS: &[ReadinessRow] = &[
    ReadinessRow {
        name: "Deployment",
        applies: &[kinds("apps", &["Deployment"])],
        ready: "all replicas are updated, ready and available, and none are left of older templates",
        in_progress: "replicas are being updated, started or removed; paused half-way",
        failed: "`Progressing` is False with `ProgressDeadlineExceeded`",
        observes: true,
        reads: conditions![
            "spec.replicas",
            "spec.paused",
            "status.observedGeneration",
            "status.replicas",
            "status.updatedReplicas",
            "status.readyReplicas",
            "status.availableReplicas"
        ],
        rule: workloads::deployment,
        ..PLAIN
    },
    ReadinessRow {
        name: "StatefulSet",
        applies: &[kinds("apps", &["StatefulSet"])],
        ready: "all replicas are ready and available, and those above the partition run the latest revision \
                (with `OnDelete` the revision does not count)",
        in_progress: "replicas are being created, updated or removed",
        observes: true,
        reads: conditions![
            "spec.replicas",
            "spec.updateStrategy",
            "status.observedGeneration",
            "status.replicas",
            "status.updatedReplicas",
            "status.readyReplicas",
            "status.availableReplicas",
            "status.currentRevision",
            "status.updateRevision"
        ],
        rule: workloads::stateful_set,
        ..PLAIN
    },
    ReadinessRow {
        name: "DaemonSet",
        applies: &[kinds("apps", &["DaemonSet"])],
        ready: "updated (not with `OnDelete`), ready and available on every node that is to run it, also if none is",
        in_progress: "a node is missing",
        observes: true,
        reads: conditions![
            "spec.updateStrategy.type",
            "status.observedGeneration",
            "status.desiredNumberScheduled",
            "status.updatedNumberScheduled",
            "status.numberReady",
            "status.numberAvailable"
        ],
        rule: workloads::daemon_set,
        ..PLAIN
    },
    REPLICA_SET,
    ReadinessRow {
        name: "ReplicationController",
        applies: &[kinds("", &["ReplicationController"])],
        ..REPLICA_SET
    },
    ReadinessRow {
        name: "Pod",
        applies: &[kinds("", &["Pod"])],
        ready: "`Ready` is True; or phase Succeeded, which is Completed",
        in_progress: "anything else, naming the container and its reason (`CrashLoopBackOff`, `ImagePullBackOff` …)",
        failed: "phase Failed",
        observes: true,
        reads: conditions![
            "status.observedGeneration",
            "status.phase",
            "status.reason",
            "status.message",
            "status.initContainerStatuses.name",
            "status.initContainerStatuses.ready",
            "status.initContainerStatuses.started",
            "status.initContainerStatuses.restartCount",
            "status.initContainerStatuses.state",
            "status.initContainerStatuses.lastState",
            "status.containerStatuses.name",
            "status.containerStatuses.ready",
            "status.containerStatuses.restartCount",
            "status.containerStatuses.state",
            "status.containerStatuses.lastState"
        ],
        rule: runs::pod,
        ends: true,
        ..PLAIN
    },
    ReadinessRow {
        name: "Job",
        applies: &[kinds("batch", &["Job"])],
        ready: "`Complete` is True, which is Completed; a running job is not ready",
        in_progress: "it runs, or has not started, or is suspended",
        failed: "`Failed` (or `FailureTarget`, which comes before it) is True, with its reason",
        reads: conditions![
            "spec.completions",
            "spec.suspend",
            "status.active",
            "status.ready",
            "status.succeeded",
            "status.failed"
        ],
        rule: runs::job,
        ends: true,
        ..PLAIN
    },
    ReadinessRow {
        name: "CronJob",
        applies: &[kinds("batch", &["CronJob"])],
        ready: "it exists, also suspended; its jobs are judged by themselves",
        reads: reads!["spec.suspend"],
        rule: runs::cron_job,
        ..PLAIN
    },
    ReadinessRow {
        name: "Service",
        applies: &[kinds("", &["Service"])],
        ready: "its EndpointSlices have a ready endpoint (if it has a selector), and it has an address \
                (if it is a `LoadBalancer`); `ExternalName` at once",
        in_progress: "no ready endpoint, no load balancer address, or its EndpointSlices are not known",
        reads: reads![
            "metadata.name",
            "metadata.namespace",
            "spec.type",
            "spec.selector",
            "status.loadBalancer.ingress.ip",
            "status.loadBalancer.ingress.hostname"
        ],
        rule: network::service,
        needs: network::service_needs,
        ..PLAIN
    },
    ReadinessRow {
        name: "Ingress",
        applies: &[kinds("networking.k8s.io", &["Ingress"]), kinds("extensions", &["Ingress"])],
        ready: "its status has an address",
        in_progress: "it has none yet, or has no ingress class",
        reads: reads![
            "metadata.annotations",
            "spec.ingressClassName",
            "status.loadBalancer.ingress.ip",
            "status.loadBalancer.ingress.hostname"
        ],
        rule: network::ingress,
        ..PLAIN
    },
    ReadinessRow {
        name: "PersistentVolumeClaim",
        applies: &[kinds("", &["PersistentVolumeClaim"])],
        ready: "phase Bound; or Pending with a StorageClass that waits for the first consumer",
        in_progress: "Pending otherwise",
        failed: "phase Lost",
        reads: reads!["spec.storageClassName", "status.phase"],
        rule: storage::claim,
        needs: storage::claim_needs,
        ..PLAIN
    },
    ReadinessRow {
        name: "PersistentVolume",
        applies: &[kinds("", &["PersistentVolume"])],
        ready: "phase Bound or Available",
        in_progress: "phase Pending or Released",
        failed: "phase Failed",
        reads: reads!["status.phase", "status.message"],
        rule: storage::volume,
        ..PLAIN
    },
    ReadinessRow {
        name: "HorizontalPodAutoscaler",
        applies: &[kinds("autoscaling", &["HorizontalPodAutoscaler"])],
        ready: "`ScalingActive` is True, or False because its target is scaled to zero; `AbleToScale` is not False",
        in_progress: "anything else, with the reason (metrics that are missing, a target that is missing)",
        observes: true,
        reads: conditions!["status.observedGeneration"],
        rule: control::autoscaler,
        ..PLAIN
    },
    ReadinessRow {
        name: "PodDisruptionBudget",
        applies: &[kinds("policy", &["PodDisruptionBudget"])],
        ready: "as many pods are healthy as it wants",
        in_progress: "fewer are, or the budget cannot be computed",
        observes: true,
        reads: conditions!["status.observedGeneration", "status.currentHealthy", "status.desiredHealthy"],
        rule: control::disruption_budget,
        ..PLAIN
    },
    ReadinessRow {
        name: "CustomResourceDefinition",
        applies: &[kinds("apiextensions.k8s.io", &["CustomResourceDefinition"])],
        ready: "`Established` is True, and discovery serves every version that is to be served",
        in_progress: "not established, or not served yet",
        failed: "`NamesAccepted` is False",
        reads: conditions!["spec.group", "spec.names.kind", "spec.versions.name", "spec.versions.served"],
        rule: control::crd,
        needs: control::crd_needs,
        ..PLAIN
    },
    ReadinessRow {
        name: "APIService",
        applies: &[kinds("apiregistration.k8s.io", &["APIService"])],
        ready: "`Available` is True",
        in_progress: "`Available` is not True, with the reason",
        reads: conditions![],
        rule: control::api_service,
        ..PLAIN
    },
    ReadinessRow {
        name: "Namespace",
        applies: &[kinds("", &["Namespace"])],
        ready: "phase Active",
        in_progress: "phase Terminating",
        reads: reads!["status.phase"],
        rule: control::namespace,
        ..PLAIN
    },
    ReadinessRow {
        name: "Node",
        applies: &[kinds("", &["Node"])],
        ready: "`Ready` is True",
        in_progress: "`Ready` is False or Unknown, with the reason",
        reads: conditions![],
        rule: control::node,
        ..PLAIN
    },
    ReadinessRow {
        name: "Webhook configurations",
        applies: &[kinds(
            "admissionregistration.k8s.io",
            &["ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"],
        )],
        ready: "every service behind its webhooks has a ready endpoint, and its webhook a `caBundle`; \
                a webhook with a `url` counts as ready",
        in_progress: "a service without ready endpoints, or a `caBundle` not filled in yet",
        reads: reads!["webhooks.name", "webhooks.clientConfig.service", "webhooks.clientConfig.caBundle"],
        rule: network::webhooks,
        needs: network::webhook_needs,
        ..PLAIN
    },
    ReadinessRow {
        name: "ConfigMap, Secret and the like",
        applies: &[
            kinds(
                "",
                &[
                    "ConfigMap",
                    "Secret",
                    "ServiceAccount",
                    "Endpoints",
                    "LimitRange",
                    "ResourceQuota",
                    "PodTemplate",
                    "Event",
                ],
            ),
            kinds("rbac.authorization.k8s.io", &["Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"]),
            kinds("networking.k8s.io", &["NetworkPolicy", "IngressClass"]),
            kinds("discovery.k8s.io", &["EndpointSlice"]),
            kinds("storage.k8s.io", &["StorageClass", "CSIDriver", "CSINode", "VolumeAttributesClass"]),
            kinds("scheduling.k8s.io", &["PriorityClass"]),
            kinds("node.k8s.io", &["RuntimeClass"]),
            kinds("coordination.k8s.io", &["Lease"]),
            kinds("apps", &["ControllerRevision"]),
            kinds(
                "admissionregistration.k8s.io",
                &[
                    "ValidatingAdmissionPolicyBinding",
                    "MutatingAdmissionPolicy",
                    "MutatingAdmissionPolicyBinding",
                ],
            ),
        ],
        ready: "it exists",
        reads: reads![],
        rule: generic::exists,
        ..PLAIN
    },
];
