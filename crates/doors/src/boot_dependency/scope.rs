//! Where pods and workloads may be touched: in namespaces that have opted in, and never in some.

use linchpin_api::common::LabelSelector;
use serde_json::Value;

use super::{container::WaiterSettings, label_selector_matches};

/// What the process was told about holding pods.
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
    /// What people are told to do where a namespace has not opted in.
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

    /// What is to be done so that a namespace has opted in.
    pub(super) fn opt_in(&self, namespace: &str) -> String {
        format!("kubectl label namespace {namespace} {}", self.remedy)
    }
}
