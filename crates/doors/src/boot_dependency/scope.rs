//! Where pods and workloads may be touched: in namespaces that have opted in, and never in some.

use std::sync::Arc;

use linchpin_api::common::LabelSelector;
use linchpin_words::keys;
use serde_json::Value;

use super::{container::WaiterSettings, label_selector_matches};
use crate::door::CLUSTER_DOMAIN;

/// The settings of the process for holding pods.
#[derive(Clone, Debug, Default)]
pub struct BootSettings {
    /// Which namespaces have opted in.
    pub namespaces: LabelSelector,
    /// Namespaces that are never touched.
    pub never: Vec<String>,
    /// The only namespaces that are served; none: all.
    pub only: Option<Vec<String>>,
    /// How the waiter is put into pods; none where webhooks are off, so that nothing is put anywhere.
    pub waiter: Option<WaiterSettings>,
    /// The domain of the cluster's Services; none: the usual one.
    pub cluster_domain: Option<Arc<str>>,
    /// What people can do where a namespace has not opted in.
    pub remedy: String,
}

impl BootSettings {
    /// Whether pods and workloads of a namespace with these labels may be touched.
    pub(super) fn covers(&self, namespace: &str, labels: &Value) -> bool {
        let named = |names: &Vec<String>| names.iter().any(|name| name == namespace);
        !named(&self.never)
            && self.only.as_ref().is_none_or(named)
            && label_selector_matches(&self.namespaces, labels)
    }

    /// How the waiter is put into pods of a namespace with these annotations.
    pub(super) fn waiter_of(&self, annotations: &Value) -> Option<WaiterSettings> {
        let mut waiter = self.waiter.clone()?;
        let image = annotations.get(keys::WAIT_IMAGE).and_then(Value::as_str);
        if let Some(image) = image.filter(|image| !image.is_empty()) {
            image.clone_into(&mut waiter.image);
        }
        Some(waiter)
    }

    /// The domain of the cluster's Services.
    pub(super) fn domain(&self) -> &str {
        self.cluster_domain.as_deref().unwrap_or(CLUSTER_DOMAIN)
    }

    /// What is to be done so that a namespace has opted in.
    pub(super) fn opt_in(&self, namespace: &str) -> String {
        let named = |names: &Vec<String>| names.iter().any(|name| name == namespace);
        if named(&self.never) {
            return "it is the operator's own, or one of Kubernetes' own".to_owned();
        }
        if !self.only.as_ref().is_none_or(named) {
            return "the operator serves others only (--watch-namespaces)".to_owned();
        }
        format!("kubectl label namespace {namespace} {}", self.remedy)
    }
}
