//! Where objects live on an API server. Knows the kinds that tests use; any other as `Kind.group`, in version v1.

use serde_json::Value;

/// Kinds whose group or version is not simply "v1 of the core".
const GROUPS: &[(&str, &str)] = &[
    ("Deployment", "apps/v1"),
    ("StatefulSet", "apps/v1"),
    ("Job", "batch/v1"),
    ("Lease", "coordination.k8s.io/v1"),
    ("Role", "rbac.authorization.k8s.io/v1"),
    ("RoleBinding", "rbac.authorization.k8s.io/v1"),
    ("ClusterRole", "rbac.authorization.k8s.io/v1"),
    ("ClusterRoleBinding", "rbac.authorization.k8s.io/v1"),
    ("CustomResourceDefinition", "apiextensions.k8s.io/v1"),
    ("ResourceDependency", "tools.kubestellar.io/v1"),
    ("DependencyGroup", "tools.kubestellar.io/v1"),
    ("ReadinessProfile", "linchpin.dev/v1alpha1"),
    ("Sync", "linchpin.dev/v1alpha1"),
    ("GlobalDependency", "linchpin.dev/v1alpha1"),
    ("Capability", "linchpin.dev/v1alpha1"),
    ("MutatingWebhookConfiguration", "admissionregistration.k8s.io/v1"),
    ("AppBundle", "app.example.com/v1alpha1"),
    ("BootDependency", "core.bootchain-operator.ruicoelho.dev/v1alpha1"),
    ("BundleRevision", "app.example.com/v1alpha1"),
    ("ConsistBinding", "linchpin.dev/v1alpha1"),
    ("PodTransitionRule", "apps.kusionstack.io/v1alpha1"),
    ("ValidatingAdmissionPolicy", "admissionregistration.k8s.io/v1"),
    ("ValidatingAdmissionPolicyBinding", "admissionregistration.k8s.io/v1"),
    ("PriorityClass", "scheduling.k8s.io/v1"),
    ("StorageClass", "storage.k8s.io/v1"),
    ("PackageVariant", "config.porch.kpt.dev/v1alpha1"),
    ("Repository", "config.porch.kpt.dev/v1alpha1"),
    ("PackageRevision", "porch.kpt.dev/v1alpha1"),
    ("PackageRevisionResources", "porch.kpt.dev/v1alpha1"),
    ("ControlPlane", "tenancy.kflex.kubestellar.org/v1alpha1"),
];

/// Kinds without a namespace.
const CLUSTER_SCOPED: &[&str] = &[
    "Namespace",
    "CustomResourceDefinition",
    "ClusterRole",
    "ClusterRoleBinding",
    "ReadinessProfile",
    "GlobalDependency",
    "Capability",
    "MutatingWebhookConfiguration",
    "ControlPlane",
    "PriorityClass",
    "StorageClass",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
];

/// The API version of a kind by its name.
pub(crate) fn api_version(kind: &str) -> String {
    match kind.split_once('.') {
        Some((_, group)) => format!("{group}/v1"),
        None => GROUPS
            .iter()
            .find(|(known, _)| *known == kind)
            .map_or_else(|| "v1".to_owned(), |(_, version)| (*version).to_owned()),
    }
}

/// Whether objects of a kind have a namespace.
pub(crate) fn is_namespaced(kind: &str) -> bool {
    !CLUSTER_SCOPED.contains(&kind)
}

/// The path of all objects of a kind, in a namespace if it has them.
pub(crate) fn collection(api_version: &str, kind: &str, namespace: &str) -> String {
    let root = if api_version.contains('/') { "/apis" } else { "/api" };
    let kind = kind.split('.').next().unwrap_or(kind);
    let namespace = if is_namespaced(kind) { format!("/namespaces/{namespace}") } else { String::new() };
    format!("{root}/{api_version}{namespace}/{}", plural(kind))
}

/// The path of the object in a manifest.
pub(crate) fn place(manifest: &Value) -> String {
    let text = |pointer: &str| manifest.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let collection = collection(text("/apiVersion"), text("/kind"), text("/metadata/namespace"));
    format!("{collection}/{}", text("/metadata/name"))
}

/// A kind as paths call it.
pub(crate) fn plural(kind: &str) -> String {
    let word = kind.to_lowercase();
    // A plural already.
    if word.ends_with("resources") {
        return word;
    }
    match word.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None if word.ends_with('s') => format!("{word}es"),
        None => format!("{word}s"),
    }
}
