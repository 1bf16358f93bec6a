//! What `tree` and `explain` want to know of an object of ours, of whichever kind.
//!
//! A further kind is a further implementation of [`Speaks`] and [`Kind`] here, and a line in [`Live`].

use std::{collections::BTreeMap, fmt};

use kube::{Resource, core::NamespaceResourceScope};
use linchpin_api::{
    AppBundle, AppBundleStatus, Common, DependencyGroup, ResourceDependency, Status,
    app_bundle::status::ComponentStatus,
    status::{ActionStatus, DependencyStatus},
};
use linchpin_doors::status_edges;
use linchpin_engine::graph::{Edge, Node};
use linchpin_words::{Condition, GroupKind, ObjectRef, Timestamp};
use serde::de::DeserializeOwned;

use super::{Live, NamespacedName};

/// A kind of ours whose objects wait for others.
pub(crate) trait Kind:
    Speaks
    + Resource<DynamicType = (), Scope = NamespaceResourceScope>
    + Clone
    + fmt::Debug
    + DeserializeOwned
    + Send
    + 'static
{
    /// Its objects among all.
    fn among(live: &mut Live) -> &mut BTreeMap<NamespacedName, Self>;

    /// Its group and kind.
    fn group_kind() -> GroupKind {
        GroupKind::new(Self::group(&()), Self::kind(&()))
    }
}

/// An object of ours that says how it stands.
pub(crate) trait Speaks {
    /// The object in the wait-for graph.
    fn node(&self) -> Node;
    /// What it waits for and makes, as its status says.
    fn edges(&self) -> Vec<Edge>;
    /// What every kind has.
    fn common(&self) -> &Common;
    /// What it says of itself; none if nobody has looked at it yet.
    fn said(&self) -> Option<Said<'_>>;
    /// What it does that did not come to a good end.
    fn troubles(&self) -> Vec<Trouble<'_>>;
    /// Why it, and everything in it that does not hold, is as it is.
    fn reasons(&self) -> Vec<&str>;
}

/// The words of a status that every kind has.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Said<'a> {
    pub(crate) phase: Option<&'a str>,
    pub(crate) message: Option<&'a str>,
    pub(crate) conditions: &'a [Condition],
}

/// Something that did not come to a good end.
#[derive(Debug, Clone)]
pub(crate) struct Trouble<'a> {
    /// As people call it: `action make`, `component app/web`.
    pub(crate) what: String,
    pub(crate) state: &'a str,
    pub(crate) reason: &'a str,
    pub(crate) message: &'a str,
    pub(crate) since: Option<Timestamp>,
}

impl<'a> From<&'a Status> for Said<'a> {
    fn from(status: &'a Status) -> Self {
        let (phase, message) = (status.phase.as_deref(), status.message.as_deref());
        Self { phase, message, conditions: &status.conditions }
    }
}

impl<'a> From<&'a AppBundleStatus> for Said<'a> {
    fn from(status: &'a AppBundleStatus) -> Self {
        let (phase, message) = (status.phase.as_deref(), status.message.as_deref());
        Self { phase, message, conditions: &status.conditions }
    }
}

fn node_of<K: Kind>(object: &K) -> Node {
    let namespace = object.meta().namespace.clone().unwrap_or_default();
    Node::here(ObjectRef::namespaced(
        K::group_kind(),
        namespace,
        object.meta().name.clone().unwrap_or_default(),
    ))
}

/// Kinds, and where their objects are kept.
macro_rules! kinds {
    ($($kind:ty: $field:ident,)*) => {
        $(impl Kind for $kind {
            fn among(live: &mut Live) -> &mut BTreeMap<NamespacedName, Self> {
                &mut live.$field
            }
        })*
    };
}

kinds! {
    ResourceDependency: resource_dependencies,
    DependencyGroup: dependency_groups,
    AppBundle: app_bundles,
}

/// Kinds that share one status.
macro_rules! speak_by_status {
    ($($kind:ty,)*) => {
        $(impl Speaks for $kind {
            fn node(&self) -> Node {
                node_of(self)
            }

            fn edges(&self) -> Vec<Edge> {
                status_edges::read(&self.node(), self.status.as_ref().and_then(|status| status.edges.as_deref()))
            }

            fn common(&self) -> &Common {
                &self.spec.common
            }

            fn said(&self) -> Option<Said<'_>> {
                self.status.as_ref().map(Said::from)
            }

            fn troubles(&self) -> Vec<Trouble<'_>> {
                troubles(self.status.as_ref())
            }

            fn reasons(&self) -> Vec<&str> {
                reasons(self.status.as_ref())
            }
        })*
    };
}

speak_by_status! {
    ResourceDependency,
    DependencyGroup,
}

impl Speaks for AppBundle {
    fn node(&self) -> Node {
        node_of(self)
    }

    fn edges(&self) -> Vec<Edge> {
        status_edges::read(&self.node(), self.status.as_ref().and_then(|status| status.edges.as_deref()))
    }

    fn common(&self) -> &Common {
        &self.spec.common
    }

    fn said(&self) -> Option<Said<'_>> {
        self.status.as_ref().map(Said::from)
    }

    fn troubles(&self) -> Vec<Trouble<'_>> {
        let failed = components(self.status.as_ref()).filter(|(_, one)| one.phase == "Failed");
        failed
            .map(|(group, one)| Trouble {
                what: format!("component {group}/{}", one.name),
                state: &one.phase,
                reason: &one.reason,
                message: &one.message,
                since: one.since,
            })
            .collect()
    }

    fn reasons(&self) -> Vec<&str> {
        let Some(status) = &self.status else { return Vec::new() };
        let blockers = status.blocked_by.iter().map(|blocker| &blocker.reason);
        let unready = components(Some(status)).map(|(_, one)| one).filter(|one| !one.ready);
        let groups = status.group_statuses.iter().flat_map(|group| &group.requires);
        let own = components(Some(status)).flat_map(|(_, one)| &one.requires);
        let waits = status.requires.iter().chain(groups).chain(own).filter(|entry| !entry.met);
        let conditions = status.conditions.iter().map(|one| &one.reason);
        let reasons = blockers.chain(unready.map(|one| &one.reason)).chain(waits.map(|entry| &entry.reason));
        reasons.chain(conditions).map(String::as_str).collect()
    }
}

/// All components of a bundle, with their groups.
fn components(status: Option<&AppBundleStatus>) -> impl Iterator<Item = (&str, &ComponentStatus)> {
    let groups = status.into_iter().flat_map(|status| &status.group_statuses);
    groups.flat_map(|group| group.component_statuses.iter().map(|one| (group.name.as_str(), one)))
}

fn actions(status: Option<&Status>) -> impl Iterator<Item = &ActionStatus> {
    let groups = status.into_iter().flat_map(|status| &status.groups).flat_map(|group| &group.actions);
    status.into_iter().flat_map(|status| &status.actions).chain(groups)
}

fn dependencies(status: Option<&Status>) -> impl Iterator<Item = &DependencyStatus> {
    let groups = status.into_iter().flat_map(|status| &status.groups).flat_map(|group| &group.dependencies);
    status.into_iter().flat_map(|status| &status.dependencies).chain(groups)
}

/// Actions that did not come to a good end.
fn troubles(status: Option<&Status>) -> Vec<Trouble<'_>> {
    let bad =
        actions(status).filter(|action| ["Failed", "Unknown", "Running"].contains(&action.state.as_str()));
    bad.map(|action| Trouble {
        what: format!("action {}", action.name),
        state: &action.state,
        reason: &action.reason,
        message: &action.message,
        since: Some(action.since),
    })
    .collect()
}

fn reasons(status: Option<&Status>) -> Vec<&str> {
    let blockers = status.into_iter().flat_map(|status| &status.blocked_by).map(|blocker| &blocker.reason);
    let entries = actions(status).map(|action| &action.reason);
    let waits = dependencies(status).filter(|entry| !entry.met).map(|entry| &entry.reason);
    let conditions = status.into_iter().flat_map(|status| &status.conditions).map(|one| &one.reason);
    blockers.chain(entries).chain(waits).chain(conditions).map(String::as_str).collect()
}
