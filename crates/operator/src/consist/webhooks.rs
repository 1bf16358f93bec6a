//! What is answered when pods are created, deleted and evicted.
//!
//! Answered on every replica, from what is seen there; `linchpin_consist::admission` decides. All webhooks ignore
//! failures: without us new pods are marked late by the controller, and deletions go Kubernetes' own way. That a pod which
//! is asked to go is marked here, also by a process that does not lead, is the one exception to "only the leader writes".
//! A review that marks a pod must be the API server's: all of them are guarded by a word in their path.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use futures::FutureExt as _;
use linchpin_cluster::own::{MarkPatch, OperatorRequests, OwnTarget};
use linchpin_consist::{
    PodView,
    admission::{self, AdmissionVerdict, Asker, RemovalMark, RemovalRequest},
};
use linchpin_doors::json_patch::PatchOperation;
use linchpin_words::{keys::consist as keys, text};
use serde_json::{Value, json};

use super::{
    cluster_view::{Followed, PODS, SharedClusterView, Watch},
    counts::ConsistCounts,
    roster::Roster,
    settings::Lifecycle,
};
use crate::{
    controller::now,
    settings::Namespaces,
    webhooks::{
        configuration::{ConfigurationInput, SYSTEM, WebhookType, client_config},
        keeper::Content,
        review::{Review, ReviewVerdict},
        server::{Handler, Handlers},
    },
};

/// Name and path of each webhook.
const CREATE: (&str, &str) = ("mpod-v1.consist.linchpin.dev", "/consist/mutate-v1-pod");
const DELETE: (&str, &str) = ("vpod-delete.consist.linchpin.dev", "/consist/validate-v1-pod-delete");
const EVICT: (&str, &str) = ("vpod-eviction.consist.linchpin.dev", "/consist/validate-v1-pod-eviction");

/// How long a request of ours may take while somebody waits for the answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// The most bytes of a refusal.
const MESSAGE: usize = 1024;

/// What the webhooks answer from.
#[derive(Clone)]
pub(super) struct PodWebhooks {
    pub(super) shared: SharedClusterView,
    pub(super) roster: Roster,
    pub(super) lifecycle: Lifecycle,
    pub(super) own_requests: OperatorRequests,
    pub(super) pods: Followed,
    pub(super) counts: ConsistCounts,
}

impl PodWebhooks {
    pub(super) fn new(
        shared: SharedClusterView,
        roster: Roster,
        lifecycle: Lifecycle,
        own_requests: OperatorRequests,
        counts: ConsistCounts,
    ) -> Self {
        let pods = roster.staff().kinds.employees[PODS].clone();
        Self { shared, roster, lifecycle, own_requests, pods, counts }
    }

    /// The handlers, by path.
    pub(super) fn handlers(&self) -> Handlers {
        let mut handlers = BTreeMap::new();
        let create = self.clone();
        let answer = move |review: Review| {
            let webhooks = create.clone();
            async move { webhooks.create(&review) }.boxed()
        };
        let kind = ("", "Pod");
        handlers.insert(CREATE.1, Handler { name: CREATE.0, kind, guarded: true, answer: Box::new(answer) });
        for (webhook, kind, eviction) in [(DELETE, ("", "Pod"), false), (EVICT, ("policy", "Eviction"), true)]
        {
            let remove = self.clone();
            let answer = move |review: Review| {
                let webhooks = remove.clone();
                async move { webhooks.remove(review, eviction).await }.boxed()
            };
            let handler = Handler { name: webhook.0, kind, guarded: true, answer: Box::new(answer) };
            handlers.insert(webhook.1, handler);
        }
        handlers
    }

    /// What the configurations say: deletions are ours to look at only where the engine is.
    pub(super) fn content(&self, namespaces: Namespaces) -> Content {
        let (shared, lifecycle) = (self.shared.clone(), self.lifecycle);
        Arc::new(move |which, ingredients| {
            let own = lifecycle.engine.is_own(shared.look().has_other_engine());
            let wanted = match which {
                WebhookType::Mutating => lifecycle.admission,
                WebhookType::Validating => lifecycle.grace_delete && own,
            };
            wanted.then(|| configuration(which, ingredients, &namespaces))
        })
    }

    /// The gate and the entries of a pod that is about to be made.
    fn create(&self, review: &Review) -> ReviewVerdict {
        let pod = &review.object;
        let labels: BTreeMap<String, String> = pod
            .pointer("/metadata/labels")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
            .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
            .collect();
        let name = pod.pointer("/metadata/name").and_then(Value::as_str).unwrap_or(&review.name);
        let (entries, own) = {
            let cluster_view = self.shared.look();
            let own = self.lifecycle.engine.is_own(cluster_view.has_other_engine());
            let entries = self.roster.staff().crew.entries(&cluster_view, &review.namespace, name, &labels);
            (entries.into_iter().map(|entry| (entry.key, entry.finalizer)).collect::<Vec<_>>(), own)
        };
        let operations = admission::create(pod, own, &entries).into_iter().filter_map(|operation| {
            let path = operation.get("path")?.as_str()?.to_owned();
            Some(PatchOperation::Add { path, value: operation.get("value")?.clone() })
        });
        ReviewVerdict::patched(operations.collect())
    }

    /// Whether a pod may go.
    async fn remove(&self, review: Review, eviction: bool) -> ReviewVerdict {
        let Some(pod) = self.pod(&review, eviction).await else {
            return ReviewVerdict::default();
        };
        let options = if eviction { &review.object["deleteOptions"] } else { &review.options };
        let dry_run = review.dry_run
            || options.get("dryRun").and_then(Value::as_array).is_some_and(|list| !list.is_empty());
        let removal = {
            let cluster_view = self.shared.look();
            if !self.lifecycle.engine.is_own(cluster_view.has_other_engine()) {
                return ReviewVerdict::default();
            }
            let mut budgets = cluster_view.budgets_of(&review.namespace);
            let over_budget = cluster_view.is_synced(Watch::Budgets)
                && budgets.any(|budget| budget.refuses(&pod.labels, pod.ready));
            RemovalRequest {
                eviction,
                asker: Asker { user: review.user.clone(), groups: review.groups.clone() },
                grace: options.get("gracePeriodSeconds").and_then(Value::as_i64),
                dry_run,
                namespace_going: cluster_view.going.contains(&review.namespace),
                over_budget,
                now: now(),
            }
        };
        match admission::remove(&pod, &removal) {
            AdmissionVerdict::Allow => {
                self.counts.answered("allowed");
                ReviewVerdict::default()
            }
            AdmissionVerdict::Refuse { code, retry_after, budget, message, mark } => {
                self.counts.answered(if budget { "over_budget" } else { "refused" });
                if let Some(mark) = mark {
                    self.mark(&review.namespace, &pod, &mark).await;
                }
                ReviewVerdict {
                    status: Some(status(code, retry_after, budget, &message)),
                    ..ReviewVerdict::default()
                }
            }
        }
    }

    /// The pod that is asked to go; none where it cannot be known.
    async fn pod(&self, review: &Review, eviction: bool) -> Option<Arc<PodView>> {
        if !eviction {
            return Some(Arc::new(PodView::of(&Arc::new(review.old_object.clone()))));
        }
        let name = review.object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or(&review.name);
        if let Some(pod) = self.shared.look().pod(&review.namespace, name) {
            return Some(Arc::clone(pod));
        }
        let place = OwnTarget { kind: &self.pods.own, namespace: Some(&review.namespace), name };
        let found = self.own_requests.read(place, PATIENCE).await.ok()??;
        Some(Arc::new(PodView::of(&Arc::new(found))))
    }

    /// Writes on a pod that it is asked to go.
    async fn mark(&self, namespace: &str, pod: &PodView, mark: &RemovalMark) {
        let mut metadata = match mark {
            RemovalMark::Delete { at, by } => json!({"uid": pod.uid, "labels": {keys::TO_DELETE: at},
                "annotations": {keys::DELETE_REQUESTED_BY: by}}),
            RemovalMark::Evict { at } => json!({"uid": pod.uid, "annotations": {keys::EVICT_REQUESTED: at}}),
        };
        // A ReplicaSet chooses anew whenever it is refused: without this it might come to ask for every pod that it has.
        let chosen = matches!(mark, RemovalMark::Delete { .. }) && pod.owner.as_deref() == Some("ReplicaSet");
        if chosen && !pod.annotations.contains_key(keys::DELETION_COST) {
            metadata["annotations"][keys::DELETION_COST] = json!(keys::DELETION_COST_DRAINING);
        }
        let place = OwnTarget { kind: &self.pods.own, namespace: Some(namespace), name: &pod.name };
        let body = json!({"metadata": metadata});
        if let Err(error) = self.own_requests.change(place, None, MarkPatch::Merge, &body, PATIENCE).await {
            tracing::warn!(namespace, pod = pod.name, "cannot mark a pod that is asked to go: {error}");
        }
    }
}

/// The status of a refusal, as clients of Kubernetes understand it.
fn status(code: u16, retry_after: Option<u32>, budget: bool, message: &str) -> Value {
    let reason = if code == 429 { "TooManyRequests" } else { "Forbidden" };
    // Names of employers and finalizers are anybody's.
    let message = text::line_of(message, MESSAGE);
    let mut status = json!({"status": "Failure", "code": code, "reason": reason, "message": message});
    if let Some(seconds) = retry_after {
        status["details"] = json!({"retryAfterSeconds": seconds});
    }
    if budget {
        status["details"] = json!({"causes": [{"reason": "DisruptionBudget", "message": message}]});
    }
    status
}

/// A whole configuration.
fn configuration(which: WebhookType, ingredients: &ConfigurationInput<'_>, namespaces: &Namespaces) -> Value {
    const NAME: &str = "kubernetes.io/metadata.name";
    let mut never: Vec<&str> = SYSTEM.to_vec();
    if !ingredients.own_namespace.is_empty() {
        never.push(ingredients.own_namespace);
    }
    let mut expressions = vec![json!({"key": NAME, "operator": "NotIn", "values": never})];
    if let Namespaces::Only(names) = namespaces {
        expressions.push(json!({"key": NAME, "operator": "In", "values": names}));
    }
    let webhook = |(name, path): (&str, &str), resource: &str, operation: &str, seconds: i64| {
        json!({
            "name": name,
            "clientConfig": client_config(&format!("{path}/{}", ingredients.word), ingredients),
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": [resource], "operations": [operation],
                "scope": "Namespaced"}],
            "failurePolicy": "Ignore",
            "matchPolicy": "Equivalent",
            "namespaceSelector": {"matchExpressions": expressions},
            "sideEffects": "NoneOnDryRun",
            "timeoutSeconds": seconds,
            "admissionReviewVersions": ["v1"],
        })
    };
    let webhooks = match which {
        WebhookType::Mutating => {
            let mut create = webhook(CREATE, "pods", "CREATE", 2);
            create["sideEffects"] = json!("None");
            create["reinvocationPolicy"] = json!("IfNeeded");
            json!([create])
        }
        WebhookType::Validating => {
            let mut delete = webhook(DELETE, "pods", "DELETE", 5);
            delete["objectSelector"] = json!({"matchLabels": {keys::CONTROL: "true"}});
            json!([delete, webhook(EVICT, "pods/eviction", "CREATE", 5)])
        }
    };
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": which.kind(),
        "metadata": {"name": which.name(ingredients.prefix)},
        "webhooks": webhooks,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_say_what_clients_of_kubernetes_act_on() {
        let people = status(429, Some(1), false, "pod deletion process is underway: x");
        assert_eq!((&people["code"], &people["reason"]), (&json!(429), &json!("TooManyRequests")));
        assert_eq!(people["details"]["retryAfterSeconds"], 1);
        assert_eq!(status(403, None, false, "")["reason"], "Forbidden");
        let budget = status(429, None, true, "no room");
        assert_eq!(budget["details"]["causes"][0]["reason"], "DisruptionBudget");
        assert!(budget["details"].get("retryAfterSeconds").is_none());
    }

    #[test]
    fn every_webhook_ignores_failures_and_looks_at_served_namespaces_alone() {
        let reached = "https://127.0.0.1:9443".parse().unwrap();
        let ingredients = ConfigurationInput {
            reached: &reached,
            bundle: "ca",
            namespaces: &json!({}),
            own_namespace: "linchpin-system",
            prefix: "linchpin-consist",
            word: "0123456789abcdef",
        };
        let served = Namespaces::Only(["shop".to_owned()].into());
        for which in [WebhookType::Mutating, WebhookType::Validating] {
            let whole = configuration(which, &ingredients, &served);
            for webhook in whole["webhooks"].as_array().unwrap() {
                assert_eq!(webhook["failurePolicy"], "Ignore");
                let url = webhook["clientConfig"]["url"].as_str().unwrap();
                assert!(url.ends_with("/0123456789abcdef"), "{url}");
                let selector = webhook["namespaceSelector"].to_string();
                assert!(selector.contains("shop") && selector.contains("linchpin-system"), "{selector}");
            }
        }
        let validating = configuration(WebhookType::Validating, &ingredients, &Namespaces::All);
        assert_eq!(validating["metadata"]["name"], "linchpin-consist-validating");
        assert_eq!(
            validating["webhooks"][0]["objectSelector"]["matchLabels"]["kusionstack.io/control"],
            "true"
        );
        assert!(validating["webhooks"][1].get("objectSelector").is_none(), "it would look at the Eviction");
    }
}
