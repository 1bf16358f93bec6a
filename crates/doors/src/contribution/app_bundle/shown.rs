//! The objects of a bundle's components as its status shows them, and how they look to those who wait for them.

use linchpin_api::app_bundle::status::{ComponentStatus, ResourceRef};
use linchpin_engine::graph::{Wait, WaitState};
use linchpin_words::{Gvk, ObjectRef, Reason};

use crate::app_bundle::NOT_READY;

/// Reasons for not knowing how an object stands.
const UNSEEN: [Reason; 11] = [
    Reason::Unsynced,
    Reason::Disconnected,
    Reason::OwnWriteNotSeen,
    Reason::Evaluating,
    Reason::KindNotServed,
    Reason::AmbiguousKind,
    Reason::Forbidden,
    Reason::IdentityGone,
    Reason::ClusterPending,
    Reason::ClusterUnreachable,
    Reason::OverBudget,
];

/// An object of a component, as the status shows it.
pub(super) struct Shown<'a> {
    reference: &'a ResourceRef,
    ready: bool,
    reason: &'a str,
    message: &'a str,
    /// Whether it is the only one.
    pub(super) alone: bool,
}

/// The objects of a component.
pub(super) fn objects(component: &ComponentStatus) -> Vec<Shown<'_>> {
    let several = component.resources.iter().map(|one| Shown {
        reference: &one.resource_ref,
        ready: one.ready,
        reason: &one.reason,
        message: &one.message,
        alone: false,
    });
    let alone = component.resource_ref.iter().map(|reference| Shown {
        reference,
        ready: component.ready,
        reason: &component.reason,
        message: &component.message,
        alone: true,
    });
    if component.resources.is_empty() { alone.collect() } else { several.collect() }
}

impl Shown<'_> {
    /// Its kind and name.
    pub(super) fn named(&self) -> ObjectRef {
        let ResourceRef { api_version, kind, name, namespace } = self.reference;
        ObjectRef {
            kind: Gvk::from_api_version(api_version, kind).group_kind(),
            namespace: namespace.clone(),
            name: name.clone(),
        }
    }

    /// Namespace and name.
    pub(super) fn place(&self) -> String {
        let namespace = self.reference.namespace.as_deref();
        namespace.map_or_else(String::new, |namespace| format!("{namespace}/")) + &self.reference.name
    }

    /// The wait of its group for it.
    pub(super) fn wait(&self, failed: bool, component: &ComponentStatus) -> Wait {
        let standing = match () {
            () if self.ready => WaitState::Met,
            () if failed => WaitState::Failed,
            () => seen_as(self.reason),
        };
        let mut wait = Wait::new(standing, self.reason.to_owned());
        if !self.ready {
            let message = self.message.strip_prefix(NOT_READY).unwrap_or(self.message);
            wait.detail = without_name(message, &self.named()).to_owned().into();
        }
        wait.since = component.since.map(Into::into);
        wait
    }
}

/// How an object looks of which this is said.
pub(super) fn seen_as(reason: &str) -> WaitState {
    match Reason::from_word(reason) {
        Some(Reason::NotFound) => WaitState::Absent,
        Some(reason) if UNSEEN.contains(&reason) => WaitState::Unknown,
        _ => WaitState::InProgress,
    }
}

/// What is said of an object, without its name in either form.
pub(super) fn without_name<'t>(message: &'t str, object: &ObjectRef) -> &'t str {
    let written = format!("{}/{}", object.kind.kind.to_ascii_lowercase(), object.name);
    [object.to_string(), written]
        .iter()
        .find_map(|name| message.strip_prefix(name.as_str())?.strip_prefix(": "))
        .unwrap_or(message)
}
