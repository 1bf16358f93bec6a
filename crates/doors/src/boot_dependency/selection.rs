//! Whose pods a BootDependency holds.

use std::collections::BTreeMap;

use linchpin_api::{
    BootDependency,
    boot_dependency::WorkloadRef,
    common::{LabelSelector, SelectorOperator},
};
use linchpin_words::{
    Gvk, keys,
    reference::{KindWord, built_in},
};
use serde_json::Value;

/// A workload: its group, kind and name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkloadName {
    /// Its API group; none where any is meant.
    pub group: Option<String>,
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
}

/// A link of a pod's chain of controllers: the pod itself, its ReplicaSet, the Deployment above that.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OwnerName {
    /// Its API group.
    pub group: String,
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
}

impl WorkloadName {
    /// The workload whose pods the object holds: that of `targetRef`, else the Deployment of its own name; none with a
    /// selector.
    pub fn of(object: &BootDependency) -> Option<Self> {
        match (&object.spec.target_ref, &object.spec.selector) {
            (Some(target), _) => Some(Self::named(target)),
            (None, Some(_)) => None,
            (None, None) => Some(Self::deployment(object.metadata.name.as_deref().unwrap_or_default())),
        }
    }

    /// The workload that a reference means.
    pub(super) fn named(target: &WorkloadRef) -> Self {
        let WorkloadRef { api_version, kind, name } = target;
        let group = if let Some(version) = api_version {
            Some(Gvk::group_of(version).to_owned())
        } else {
            let word = KindWord::from_manifest(None, kind);
            built_in(&word).map(|known| known.group.to_owned())
        };
        Self { group, kind: kind.clone(), name: name.clone() }
    }

    /// A Deployment.
    pub(super) fn deployment(name: &str) -> Self {
        Self { group: Some("apps".to_owned()), kind: "Deployment".to_owned(), name: name.to_owned() }
    }

    /// Whether this is it.
    pub(super) fn is(&self, owner: &OwnerName) -> bool {
        self.group.as_ref().is_none_or(|group| *group == owner.group)
            && self.kind == owner.kind
            && self.name == owner.name
    }
}

/// Whether the object holds a pod with these labels and this chain of controllers, in its namespace.
pub fn selects(object: &BootDependency, labels: &Value, chain: &[OwnerName]) -> bool {
    match (&object.spec.selector, WorkloadName::of(object)) {
        (Some(selector), _) => label_selector_matches(selector, labels),
        (None, Some(workload)) => chain.iter().any(|owner| workload.is(owner)),
        (None, None) => false,
    }
}

/// Whether a selector matches these labels. An empty one matches everything, as everywhere in Kubernetes.
pub fn label_selector_matches(selector: &LabelSelector, labels: &Value) -> bool {
    let value = |key: &str| labels.get(key).and_then(Value::as_str);
    let equal = |labels: &BTreeMap<String, String>| {
        labels.iter().all(|(key, wanted)| value(key) == Some(wanted.as_str()))
    };
    equal(&selector.match_labels)
        && selector.match_expressions.iter().all(|requirement| {
            let is = value(&requirement.key);
            let listed = is.is_some_and(|is| requirement.values.iter().any(|wanted| wanted == is));
            match requirement.operator {
                SelectorOperator::In => listed,
                SelectorOperator::NotIn => !listed,
                SelectorOperator::Exists => is.is_some(),
                SelectorOperator::DoesNotExist => is.is_none(),
            }
        })
}

/// Whether annotations say that the wait is to be bypassed. Any other value than `true` says nothing.
pub fn is_skipped(annotations: &Value) -> bool {
    annotations.get(keys::SKIP_BOOT_WAIT).and_then(Value::as_str) == Some("true")
}
