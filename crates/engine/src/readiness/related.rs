//! What a verdict wants to know of other objects: a Service its endpoint slices, a CRD its discovery entry.
//!
//! Rules name a [`RelatedQuery`]; the caller turns it into a subscription and answers through [`Related`].

use std::collections::BTreeMap;

use linchpin_words::Gvk;
use serde_json::Value;

use super::subject::{at, flag, is_terminating, list};

/// One thing a verdict wants to know.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RelatedQuery {
    /// Objects of a kind.
    Objects {
        /// Their kind.
        gvk: Gvk,
        /// Their namespace; none for cluster-scoped kinds.
        namespace: Option<String>,
        /// Which of them.
        select: RelatedSelect,
    },
    /// Whether discovery serves a kind at a version.
    Served {
        /// The kind and version.
        gvk: Gvk,
    },
}

impl RelatedQuery {
    /// The paths that rules read of such objects, as [`super::ReadinessRow::reads`] writes them.
    pub fn reads(&self) -> &'static [&'static str] {
        match self {
            Self::Objects { gvk, .. } if gvk.kind == "EndpointSlice" => {
                &["metadata.deletionTimestamp", "endpoints.conditions.ready"]
            }
            Self::Objects { .. } => &["metadata.deletionTimestamp", "volumeBindingMode"],
            Self::Served { .. } => &[],
        }
    }

    /// The endpoint slices of a Service.
    pub(super) fn endpoints(namespace: &str, service: &str) -> Self {
        let labels = BTreeMap::from([("kubernetes.io/service-name".to_owned(), service.to_owned())]);
        Self::Objects {
            gvk: Gvk::new("discovery.k8s.io", "v1", "EndpointSlice"),
            namespace: Some(namespace.to_owned()),
            select: RelatedSelect::Labels(labels),
        }
    }

    /// A storage class.
    pub(super) fn storage_class(name: &str) -> Self {
        Self::Objects {
            gvk: Gvk::new("storage.k8s.io", "v1", "StorageClass"),
            namespace: None,
            select: RelatedSelect::Name(name.to_owned()),
        }
    }
}

/// Which objects of a kind.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RelatedSelect {
    /// The one with this name.
    Name(String),
    /// All with these labels.
    Labels(BTreeMap<String, String>),
}

/// What is known about a need.
#[derive(Clone, Debug, PartialEq)]
pub enum RelatedAnswer<'a> {
    /// Nothing yet: proves nothing and disproves nothing.
    Unknown,
    /// It was looked for and is not there.
    Absent,
    /// The objects found, or the parts of them that [`RelatedQuery::reads`] names.
    Objects(Vec<&'a Value>),
    /// Whether discovery serves the kind.
    Served(bool),
}

/// Who answers needs.
pub trait Related {
    /// What is known about a need.
    fn get(&self, need: &RelatedQuery) -> RelatedAnswer<'_>;
}

/// Knows nothing: every need is unanswered.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nothing;

impl Related for Nothing {
    fn get(&self, _: &RelatedQuery) -> RelatedAnswer<'_> {
        RelatedAnswer::Unknown
    }
}

/// How many ready endpoints a Service has; none where that is not known yet.
pub(super) fn ready_endpoints(related: &dyn Related, namespace: &str, service: &str) -> Option<usize> {
    match related.get(&RelatedQuery::endpoints(namespace, service)) {
        RelatedAnswer::Objects(slices) => {
            let slices = slices.into_iter().filter(|slice| !is_terminating(slice));
            Some(
                slices
                    .flat_map(|slice| list(slice, &["endpoints"]))
                    .filter(|endpoint| is_ready(endpoint))
                    .count(),
            )
        }
        RelatedAnswer::Absent => Some(0),
        RelatedAnswer::Unknown | RelatedAnswer::Served(_) => None,
    }
}

/// The API says: an endpoint that does not say whether it is ready is.
fn is_ready(endpoint: &Value) -> bool {
    at(endpoint, &["conditions", "ready"]).is_none() || flag(endpoint, &["conditions", "ready"])
}
