//! Whether what a pod would be held for is there, looked up at once: for a replica that does not follow it.
//!
//! The leader knows. Any other replica asks the API server when a pod is created, as the object's own ServiceAccount, and
//! judges the answers as the leader would. What takes more than a request for an object or two (a probe, a custom kind,
//! another cluster) is not known here, and what is not known holds the pod.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use futures::future::join_all;
use linchpin_api::BootDependency;
use linchpin_cluster::own::{OperatorRequests, OwnKind};
use linchpin_doors::boot_dependency::judge_once;
use linchpin_engine::contract::{
    Actor, Observed, Projection, Question, Scope, Seen, Served, StepId, Via, Want, Why, World,
};
use linchpin_words::{
    Gvk, Reason,
    reference::{built_in, built_in_kind},
};
use serde_json::Value;

use super::shared_requests::SharedRequests;
use crate::controller::now;

/// How long one question may take.
const PATIENCE: Duration = Duration::from_millis(500);
/// How long all of them may: the API server waits for an answer for two seconds.
const IN_ALL: Duration = Duration::from_millis(800);
/// How often the answers lead to further questions.
const ROUNDS: usize = 6;
/// How long an answer counts: pods come in crowds.
const COUNTS: Duration = Duration::from_millis(500);
/// How many answers are kept.
const KEPT: usize = 1_000;

/// An object in one of its generations.
type Key = (String, i64);
type Met = Arc<BTreeSet<StepId>>;

/// Looks for the webhooks.
pub(super) struct WebhookReads {
    reader: DependencyReader,
    known: Mutex<BTreeMap<Key, (Instant, Met)>>,
    /// Looks that are under way.
    requests: SharedRequests<Key, Met>,
}

impl WebhookReads {
    pub(super) fn new(
        own_requests: OperatorRequests,
        default_service_account: String,
        cluster_domain: String,
    ) -> Self {
        let reader = DependencyReader { own_requests, default_service_account, cluster_domain };
        Self { reader, known: Mutex::default(), requests: SharedRequests::default() }
    }

    /// The entries of an object that hold now, as far as that is known.
    pub(super) async fn met(&self, object: &BootDependency) -> Met {
        let meta = &object.metadata;
        let key = (meta.uid.clone().unwrap_or_default(), meta.generation.unwrap_or_default());
        let lock = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, met)) = lock().get(&key).filter(|(looked, _)| looked.elapsed() < COUNTS) {
            return Arc::clone(met);
        }
        let ask = || {
            let (reader, object) = (self.reader.clone(), object.clone());
            async move {
                let met = tokio::time::timeout(IN_ALL, reader.look(&object)).await;
                Arc::new(met.unwrap_or_default())
            }
        };
        let met = self.requests.join(key.clone(), ask).await;
        let mut known = lock();
        if known.len() >= KEPT {
            known.retain(|_, (looked, _)| looked.elapsed() < COUNTS);
        }
        if known.len() < KEPT {
            known.insert(key, (Instant::now(), Arc::clone(&met)));
        }
        met
    }
}

/// Who looks.
#[derive(Clone)]
struct DependencyReader {
    own_requests: OperatorRequests,
    default_service_account: String,
    cluster_domain: String,
}

impl DependencyReader {
    async fn look(&self, object: &BootDependency) -> BTreeSet<StepId> {
        let place = (self.default_service_account.as_str(), self.cluster_domain.as_str());
        let mut world = World::new();
        for _ in 0..ROUNDS {
            let (met, wants) = judge_once(object, &world, place, now());
            let new: Vec<Want> = wants.into_iter().filter(|want| world.get(want).is_none()).collect();
            if new.is_empty() {
                return met;
            }
            let answers = join_all(new.iter().map(|want| self.answer(want))).await;
            for (want, seen) in new.into_iter().zip(answers) {
                world.insert(want, seen);
            }
        }
        BTreeSet::new()
    }

    async fn answer(&self, want: &Want) -> Seen {
        let unknown = || Seen::Unknown(Why::new(Reason::Unsynced, "not looked at from here"));
        match want.question() {
            Question::Objects { via, kind, scope, .. } => {
                self.objects(via, kind, scope).await.unwrap_or_else(unknown)
            }
            Question::Kind { via, word } if via.cluster.is_here() => match built_in(word) {
                Some(known) => Seen::Kind(Arc::new(Served::Yes {
                    kind: Gvk::new(known.group, known.version, known.kind),
                    plural: known.plural.to_owned(),
                    namespaced: known.namespaced,
                    reports_status: None,
                })),
                None => unknown(),
            },
            _ => unknown(),
        }
    }

    /// Objects of Kubernetes' own kinds in this cluster, as the account that asks sees them.
    async fn objects(&self, via: &Via, kind: &Gvk, scope: &Scope) -> Option<Seen> {
        let Actor::ServiceAccount { namespace, name } = &via.actor else { return None };
        let known = built_in_kind(&kind.group, &kind.kind).filter(|_| via.cluster.is_here())?;
        let own = OwnKind::new(kind, known.plural, known.namespaced);
        let found = self.own_requests.look_as((namespace, name), &own, scope, PATIENCE).await.ok()?;
        let items = found.into_iter().map(|object| Arc::new(projection(kind, object))).collect();
        let now = now();
        Some(Seen::Objects(Arc::new(Observed { items, as_of: u64::MAX, live: true, looked: Some(now) })))
    }
}

fn projection(kind: &Gvk, content: Value) -> Projection {
    let metadata = &content["metadata"];
    let text = |key: &str| metadata[key].as_str().map(str::to_owned);
    Projection {
        kind: kind.clone(),
        namespace: text("namespace"),
        name: text("name").unwrap_or_default(),
        uid: text("uid").unwrap_or_default(),
        generation: metadata["generation"].as_i64().unwrap_or_default(),
        version: text("resourceVersion").and_then(|version| version.parse().ok()).unwrap_or_default(),
        deleting: !metadata["deletionTimestamp"].is_null(),
        content,
    }
}
