//! Who a pod belongs to: the chain of its controllers, and what their annotations say.
//!
//! The pod names its controller; a ReplicaSet or Job in the middle is asked for its own, once per incarnation and for a
//! few seconds, since annotations change. What cannot be found out in time ends the chain: the pod is then treated by
//! what is known of it.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use linchpin_cluster::own::{OperatorRequests, OwnKind};
use linchpin_doors::boot_dependency::{LONGEST_CHAIN, OwnerName, controller, is_skipped};
use linchpin_words::{Gvk, reference::built_in_kind};
use serde_json::Value;

use crate::rights;

/// How long one question may take.
const PATIENCE: Duration = Duration::from_millis(500);
/// How long an answer counts.
const FRESH: Duration = Duration::from_secs(5);
/// How many answers are kept.
const KEPT: usize = 10_000;

/// The chain of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ReviewedOwners {
    /// The pod itself first.
    pub(super) owners: Vec<OwnerName>,
    /// Whether one of its controllers says that the wait is to be bypassed.
    pub(super) skipped: bool,
    /// When the topmost was created, as the API server writes it; none for a pod of its own.
    pub(super) top_created: Option<String>,
}

/// Answers that are kept for a while.
#[derive(Clone)]
pub(super) struct Owners {
    own_requests: OperatorRequests,
    known: Arc<Mutex<BTreeMap<String, (Instant, Value)>>>,
}

impl Owners {
    pub(super) fn new(own_requests: OperatorRequests) -> Self {
        Self { own_requests, known: Arc::default() }
    }

    /// The chain of a pod that is about to be created.
    pub(super) async fn chain(&self, namespace: &str, pod: &Value) -> ReviewedOwners {
        let name = pod["metadata"]["name"].as_str().unwrap_or_default();
        let mut chain = ReviewedOwners {
            owners: vec![OwnerName { group: String::new(), kind: "Pod".to_owned(), name: name.to_owned() }],
            ..ReviewedOwners::default()
        };
        let mut reference = controller(&pod["metadata"]);
        while let Some((owner, uid)) = reference.take().filter(|_| chain.owners.len() < LONGEST_CHAIN) {
            let metadata = self.metadata(namespace, &owner, &uid).await;
            chain.owners.push(owner);
            let Some(metadata) = metadata else { break };
            chain.skipped |= is_skipped(&metadata["annotations"]);
            chain.top_created = metadata["creationTimestamp"].as_str().map(str::to_owned);
            reference = controller(&metadata);
        }
        chain
    }

    async fn metadata(&self, namespace: &str, owner: &OwnerName, uid: &str) -> Option<Value> {
        // Only kinds that the operator may read.
        let known = built_in_kind(&owner.group, &owner.kind)
            .filter(|known| rights::of_tenants(known.group, known.plural, "get"))?;
        let lock = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, metadata)) = lock().get(uid).filter(|(asked, _)| asked.elapsed() < FRESH) {
            return Some(metadata.clone());
        }
        let kind = OwnKind::new(&Gvk::new(known.group, known.version, known.kind), known.plural, true);
        let answer = self.own_requests.metadata(&kind, Some(namespace), &owner.name, PATIENCE).await;
        let mut object = answer.ok()??;
        let metadata = object["metadata"].take();
        if metadata["uid"] != uid {
            return None;
        }
        let mut answers = lock();
        if answers.len() >= KEPT {
            answers.retain(|_, (asked, _)| asked.elapsed() < FRESH);
        }
        if answers.len() < KEPT {
            answers.insert(uid.to_owned(), (Instant::now(), metadata.clone()));
        }
        Some(metadata)
    }
}
