//! Keys of ResourceConsist and PodOpsLifecycle, verbatim: labels, annotations, finalizers, a readiness gate.
//!
//! Other programs read and write them too, so none may change. `crates/consist` says what they mean.

/// Label on employers and pods: `"true"` opts in.
pub const CONTROL: &str = "kusionstack.io/control";

/// Label on an employer: which of several adapters serves it.
pub const ADAPTER: &str = "linchpin.dev/adapter";

/// Finalizer on an employer, with the employer's name behind it.
pub const CLEAN_PREFIX: &str = "resource-consist.kusionstack.io/clean-";

/// Finalizer on an employer whose name is too long for the other form; also what a later original writes.
pub const CLEAN: &str = "resource-consist.kusionstack.io/clean-finalizer";

/// Annotation on a pod: which protection finalizers it must carry to be service-available.
pub const AVAILABLE_CONDITIONS: &str = "pod.kusionstack.io/available-conditions";

/// What the finalizers on a pod begin with that hold an operation on it until the pod is out of traffic.
pub const PROTECTION_PREFIX: &str = "prot.podopslifecycle.kusionstack.io";

/// Annotation on an employer: names of the pods that have its entry, sorted and joined by commas.
pub const RECORDED_ENTRIES: &str = "resource-consist.kusionstack.io/employees-expected-finalizer-added";

/// Annotation on an employer: names of the pods that have its finalizer, sorted and joined by commas.
pub const RECORDED_FINALIZERS: &str =
    "resource-consist.kusionstack.io/employees-lifecycle-finalizer-recorded";

/// Readiness gate, and condition, of a pod: whether it may get traffic.
pub const SERVICE_READY: &str = "pod.kusionstack.io/service-ready";

/// Message of that condition.
pub const SERVICE_READY_MESSAGE: &str = "updated by PodOpsLifecycle";

/// Label on a pod that is ready, protected by all its employers and not operated on.
pub const SERVICE_AVAILABLE: &str = "podopslifecycle.kusionstack.io/service-available";

/// Label on a pod that is being created, for the operation controllers.
pub const CREATING: &str = "podopslifecycle.kusionstack.io/creating";

/// Label on a pod that is being completed, for the operation controllers.
pub const COMPLETING: &str = "podopslifecycle.kusionstack.io/completing";

/// Label on a pod that is to get no traffic.
pub const STAY_OFFLINE: &str = "podopslifecycle.kusionstack.io/stay-offline";

/// Label on a pod whose operation is its deletion.
pub const PREPARING_TO_DELETE: &str = "podopslifecycle.kusionstack.io/preparing-to-delete";

/// Label on a pod that is to be deleted as soon as it is drained; its value is when that was asked, in unix nanoseconds.
pub const TO_DELETE: &str = "collaset.kusionstack.io/to-delete";

/// Annotation on a pod, Kubernetes' own: which of its pods a ReplicaSet gives up first.
pub const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// Its value while a ReplicaSet's pod is being drained: the refused client asks for the same pod again, not for
/// another.
pub const DELETION_COST_DRAINING: &str = "-2147483647";

/// Annotation on a pod: who asked for its deletion.
pub const DELETE_REQUESTED_BY: &str = "linchpin.dev/delete-requested-by";

/// Annotation on a pod: when its eviction was last asked for, in unix nanoseconds.
pub const EVICT_REQUESTED: &str = "linchpin.dev/evict-requested";

/// Annotation on a pod: the value of [`TO_DELETE`] that its template gave it, which asks for nothing.
pub const TO_DELETE_IGNORED: &str = "linchpin.dev/to-delete-ignored";

/// Annotation on a pod: rules that are not asked about it, `{"skipRules": […]}`.
pub const SKIP_RULES: &str = "podtransitionrule.kusionstack.io/skip-rule-conditions";

/// What the annotations on a pod begin with that say what a PodTransitionRule thinks of it.
pub const RULE_DETAIL_PREFIX: &str = "detail.podtransitionrule.kusionstack.io";

/// Annotation on a Service: the HAProxy backend that its pods are servers of.
pub const HAPROXY_BACKEND: &str = "linchpin.dev/haproxy-backend";

/// Annotation on a Service: which of its ports HAProxy connects to.
pub const HAPROXY_PORT: &str = "linchpin.dev/haproxy-port";

/// Annotation on a Service: keywords for `add server`.
pub const HAPROXY_SERVER: &str = "linchpin.dev/haproxy-server";

/// Label on a Service: its load balancer at Alibaba Cloud, put there by the cloud controller manager.
pub const ALIBABA_LOAD_BALANCER: &str = "service.k8s.alibaba/loadbalancer-id";
