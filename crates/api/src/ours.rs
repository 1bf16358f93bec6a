//! What every kind of ours has by construction: its definition, the common part of its spec, what becomes of what it made,
//! its finalizer, and the words that every status has.
//!
//! Whatever serves kinds or shows them (the operator, `tree`, `explain`, `rbac`, `crds`) knows a kind by this alone; a new
//! kind implements it in its own file.

use std::{any::TypeId, fmt::Debug};

use k8s_openapi::{
    NamespaceResourceScope, apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube_core::{CustomResourceExt, Resource, object::HasStatus};
use linchpin_words::{Gvk, Timestamp, keys};
use serde::{Serialize, de::DeserializeOwned};

use crate::{
    common::{Cluster, Common, DeletionPolicy},
    status::CommonStatus,
};

/// A kind of ours.
pub trait Ours:
    Resource<DynamicType = (), Scope: 'static>
    + CustomResourceExt
    + HasStatus<Status: OurStatus>
    + Clone
    + Debug
    + Serialize
    + DeserializeOwned
    + Send
    + Sync
    + 'static
{
    /// The finalizer that is on an object while there is something we must delete before it may go.
    const FINALIZER: &'static str = keys::TEARDOWN_FINALIZER;
    /// What happens to what an object made, where its spec says nothing of it or cannot be read.
    const DELETION_POLICY: DeletionPolicy = DeletionPolicy::Retain;
    /// Whether its objects wait for others, so that they are drawn and explained.
    const WAITS: bool = true;

    /// The definitions for the API server: its own, and those of what is kept beside its objects.
    fn definitions() -> Vec<CustomResourceDefinition>;

    /// The part of the spec that every kind has.
    fn common(&self) -> &Common;

    /// The account that a kind without namespaces names, with its namespace; none for kinds whose account is one of their
    /// own namespace.
    fn account(&self) -> Option<Account<'_>> {
        None
    }

    /// The clusters that the spec names, its own first.
    fn clusters(&self) -> Vec<&Cluster> {
        self.common().cluster.iter().collect()
    }

    /// What happens to what the object made, when it goes. Asked also while the spec makes no sense.
    fn deletion_policy(&self) -> DeletionPolicy {
        self.common().deletion_policy.unwrap_or(Self::DELETION_POLICY)
    }

    /// The parts of it that others can wait for on their own, as they are written down.
    fn parts(&self) -> Vec<&str> {
        Vec::new()
    }

    /// The kind, at the version that is served.
    fn gvk() -> Gvk {
        Gvk::new(Self::group(&()), Self::version(&()), Self::kind(&()))
    }

    /// Whether its objects live in namespaces.
    fn is_namespaced() -> bool {
        TypeId::of::<Self::Scope>() == TypeId::of::<NamespaceResourceScope>()
    }
}

/// A ServiceAccount; one without a name is nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Account<'a> {
    /// Its namespace.
    pub namespace: &'a str,
    /// Its name.
    pub name: &'a str,
}

/// The status of a kind of ours.
pub trait OurStatus:
    Clone + Debug + PartialEq + Serialize + DeserializeOwned + Send + Sync + 'static
{
    /// The part that every status has.
    fn common(&self) -> &CommonStatus;

    /// The same, to be changed.
    fn common_mut(&mut self) -> &mut CommonStatus;

    /// What the object does that did not come to a good end.
    fn troubles(&self) -> Vec<FailedPart<'_>> {
        Vec::new()
    }

    /// Why everything in it that does not hold is as it is, blockers and conditions aside.
    fn entry_reasons(&self) -> Vec<&str> {
        Vec::new()
    }
}

/// Something that did not come to a good end.
#[derive(Clone, Debug)]
pub struct FailedPart<'a> {
    /// As people call it: `action make`, `component app/web`.
    pub what: String,
    /// How far it is, in one word.
    pub state: &'a str,
    /// Why, in one word.
    pub reason: &'a str,
    /// Why, in one line.
    pub message: &'a str,
    /// Since when.
    pub since: Option<Timestamp>,
}
