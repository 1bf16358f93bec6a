//! Another cluster to look at or act in.

use linchpin_words::limits;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::LabelSelector;
use crate::schema;

/// Where to look and act. Empty means here.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = schema::rules(&[
    ("!(has(self.controlPlaneRef) && has(self.kubeconfigSecretRef))",
     "give one of controlPlaneRef and kubeconfigSecretRef"),
    ("!has(self.impersonate) || has(self.controlPlaneRef) || has(self.kubeconfigSecretRef)",
     "impersonate goes with controlPlaneRef or kubeconfigSecretRef; here the ServiceAccount is impersonated"),
])))]
pub struct Cluster {
    /// A KubeFlex ControlPlane; its kubeconfig is found through its status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_plane_ref: Option<ControlPlaneRef>,
    /// A Secret with a kubeconfig, read as the object's own ServiceAccount.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubeconfig_secret_ref: Option<KubeconfigSecretRef>,
    /// Who to be in the other cluster; the user of the kubeconfig if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub impersonate: Option<Impersonate>,
}

/// A KubeFlex ControlPlane.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = schema::rules(&[
    ("has(self.name) != has(self.selector)", "give exactly one of name and selector"),
])))]
pub struct ControlPlaneRef {
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = limits::NAME))]
    pub name: Option<String>,
    /// Its labels; exactly one must match.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<LabelSelector>,
    /// Whether it must be Ready (the default), or whether a usable kubeconfig is enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub require_ready: Option<bool>,
}

/// A key of a Secret that holds a kubeconfig.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KubeconfigSecretRef {
    /// The Secret's namespace; the object's own if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = limits::LABEL))]
    pub namespace: Option<String>,
    /// The Secret's name.
    #[schemars(length(min = 1, max = limits::NAME))]
    pub name: String,
    /// The key; `kubeconfig` if omitted (Cluster API uses `value`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = limits::NAME))]
    pub key: Option<String>,
}

/// An identity in the other cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Impersonate {
    /// User name.
    #[schemars(length(min = 1, max = limits::NAME))]
    pub user: String,
    /// Groups.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = limits::IMPERSONATED_GROUPS),
        inner(length(min = 1, max = limits::NAME)),
        extend("x-kubernetes-list-type" = "atomic")
    )]
    pub groups: Vec<String>,
}
