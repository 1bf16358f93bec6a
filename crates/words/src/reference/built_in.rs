//! Kubernetes' own kinds, known without asking the server.
//!
//! A bare word means one of these before it means anything a custom resource brings, so installing a CRD
//! never changes what `deployment/web` or `ing/shop` refers to. The table holds the kinds that can be read and that
//! every supported server (1.33 on) serves at a stable version; kinds that exist only as requests (reviews,
//! bindings) cannot be waited for and are left out, which also keeps the word `binding` free for others.

use crate::{kind::Gvk, reference::KindWord};

/// One kind of Kubernetes itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BuiltIn {
    /// API group; empty for the core group.
    pub group: &'static str,
    /// The stable version every supported server serves.
    pub version: &'static str,
    /// The kind.
    pub kind: &'static str,
    /// Its plural, as in URLs.
    pub plural: &'static str,
    /// Its short names.
    pub short: &'static [&'static str],
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
}

impl BuiltIn {
    /// The kind at that version.
    pub fn gvk(&self) -> Gvk {
        Gvk::new(self.group, self.version, self.kind)
    }

    fn is_called(&self, word: &str) -> bool {
        self.kind.eq_ignore_ascii_case(word) || self.plural == word || self.short.contains(&word)
    }
}

const NAMESPACED: bool = true;
const CLUSTER: bool = false;

const fn row(
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    plural: &'static str,
    short: &'static [&'static str],
    namespaced: bool,
) -> BuiltIn {
    BuiltIn { group, version, kind, plural, short, namespaced }
}

// The order matters once: core events come before those of events.k8s.io, which are the same objects.
const TABLE: &[BuiltIn] = &[
    row("", "v1", "ComponentStatus", "componentstatuses", &["cs"], CLUSTER),
    row("", "v1", "ConfigMap", "configmaps", &["cm"], NAMESPACED),
    row("", "v1", "Endpoints", "endpoints", &["ep"], NAMESPACED),
    row("", "v1", "Event", "events", &["ev"], NAMESPACED),
    row("", "v1", "LimitRange", "limitranges", &["limits"], NAMESPACED),
    row("", "v1", "Namespace", "namespaces", &["ns"], CLUSTER),
    row("", "v1", "Node", "nodes", &["no"], CLUSTER),
    row("", "v1", "PersistentVolume", "persistentvolumes", &["pv"], CLUSTER),
    row("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", &["pvc"], NAMESPACED),
    row("", "v1", "Pod", "pods", &["po"], NAMESPACED),
    row("", "v1", "PodTemplate", "podtemplates", &[], NAMESPACED),
    row("", "v1", "ReplicationController", "replicationcontrollers", &["rc"], NAMESPACED),
    row("", "v1", "ResourceQuota", "resourcequotas", &["quota"], NAMESPACED),
    row("", "v1", "Secret", "secrets", &[], NAMESPACED),
    row("", "v1", "Service", "services", &["svc"], NAMESPACED),
    row("", "v1", "ServiceAccount", "serviceaccounts", &["sa"], NAMESPACED),
    row(
        "admissionregistration.k8s.io",
        "v1",
        "MutatingWebhookConfiguration",
        "mutatingwebhookconfigurations",
        &[],
        CLUSTER,
    ),
    row(
        "admissionregistration.k8s.io",
        "v1",
        "ValidatingAdmissionPolicy",
        "validatingadmissionpolicies",
        &[],
        CLUSTER,
    ),
    row(
        "admissionregistration.k8s.io",
        "v1",
        "ValidatingAdmissionPolicyBinding",
        "validatingadmissionpolicybindings",
        &[],
        CLUSTER,
    ),
    row(
        "admissionregistration.k8s.io",
        "v1",
        "ValidatingWebhookConfiguration",
        "validatingwebhookconfigurations",
        &[],
        CLUSTER,
    ),
    row(
        "apiextensions.k8s.io",
        "v1",
        "CustomResourceDefinition",
        "customresourcedefinitions",
        &["crd", "crds"],
        CLUSTER,
    ),
    row("apiregistration.k8s.io", "v1", "APIService", "apiservices", &[], CLUSTER),
    row("apps", "v1", "ControllerRevision", "controllerrevisions", &[], NAMESPACED),
    row("apps", "v1", "DaemonSet", "daemonsets", &["ds"], NAMESPACED),
    row("apps", "v1", "Deployment", "deployments", &["deploy"], NAMESPACED),
    row("apps", "v1", "ReplicaSet", "replicasets", &["rs"], NAMESPACED),
    row("apps", "v1", "StatefulSet", "statefulsets", &["sts"], NAMESPACED),
    row("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", &["hpa"], NAMESPACED),
    row("batch", "v1", "CronJob", "cronjobs", &["cj"], NAMESPACED),
    row("batch", "v1", "Job", "jobs", &[], NAMESPACED),
    row(
        "certificates.k8s.io",
        "v1",
        "CertificateSigningRequest",
        "certificatesigningrequests",
        &["csr"],
        CLUSTER,
    ),
    row("coordination.k8s.io", "v1", "Lease", "leases", &[], NAMESPACED),
    row("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices", &[], NAMESPACED),
    row("events.k8s.io", "v1", "Event", "events", &["ev"], NAMESPACED),
    row("flowcontrol.apiserver.k8s.io", "v1", "FlowSchema", "flowschemas", &[], CLUSTER),
    row(
        "flowcontrol.apiserver.k8s.io",
        "v1",
        "PriorityLevelConfiguration",
        "prioritylevelconfigurations",
        &[],
        CLUSTER,
    ),
    row("networking.k8s.io", "v1", "Ingress", "ingresses", &["ing"], NAMESPACED),
    row("networking.k8s.io", "v1", "IngressClass", "ingressclasses", &[], CLUSTER),
    row("networking.k8s.io", "v1", "IPAddress", "ipaddresses", &["ip"], CLUSTER),
    row("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies", &["netpol"], NAMESPACED),
    row("networking.k8s.io", "v1", "ServiceCIDR", "servicecidrs", &[], CLUSTER),
    row("node.k8s.io", "v1", "RuntimeClass", "runtimeclasses", &[], CLUSTER),
    row("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", &["pdb"], NAMESPACED),
    row("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", &[], CLUSTER),
    row("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings", &[], CLUSTER),
    row("rbac.authorization.k8s.io", "v1", "Role", "roles", &[], NAMESPACED),
    row("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings", &[], NAMESPACED),
    row("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", &["pc"], CLUSTER),
    row("storage.k8s.io", "v1", "CSIDriver", "csidrivers", &[], CLUSTER),
    row("storage.k8s.io", "v1", "CSINode", "csinodes", &[], CLUSTER),
    row("storage.k8s.io", "v1", "CSIStorageCapacity", "csistoragecapacities", &[], NAMESPACED),
    row("storage.k8s.io", "v1", "StorageClass", "storageclasses", &["sc"], CLUSTER),
    row("storage.k8s.io", "v1", "VolumeAttachment", "volumeattachments", &[], CLUSTER),
];

/// The built-in kind that a word means; none where it is somebody else's, or where another version is asked for.
pub fn built_in(word: &KindWord) -> Option<&'static BuiltIn> {
    TABLE.iter().find(|entry| {
        word.group.as_deref().is_none_or(|group| group == entry.group)
            && word.version.as_deref().is_none_or(|version| version == entry.version)
            && entry.is_called(&word.word)
    })
}

/// The built-in kind of that group and kind, as a manifest writes them.
pub fn built_in_kind(group: &str, kind: &str) -> Option<&'static BuiltIn> {
    TABLE.iter().find(|entry| entry.group == group && entry.kind == kind)
}

/// All built-in kinds.
pub fn all_built_in() -> &'static [BuiltIn] {
    TABLE
}
