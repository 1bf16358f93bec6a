//! The three webhooks of BootDependency: Deployments and Pods get what they wait for, circles are refused.
//!
//! Everything is decided by `doors::boot_dependency`; here is only what must be known for that. Where it cannot be known,
//! the object is allowed as it is.

use std::{
    collections::BTreeMap,
    future::Future,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use futures::FutureExt;
use linchpin_api::BootDependency;
use linchpin_cluster::own::{OperatorRequests, OwnKind};
use linchpin_doors::boot_dependency::{
    BootSet, Division, KeyReference, OwnerName, PatchTarget, PodGate, WaiterSettings, circles, divide,
    ignored_skip, inject, is_skipped, keep_old_part, references, selects,
};
use linchpin_engine::contract::{Scope, StepId};
use linchpin_words::{Gvk, Timestamp, limits};
use serde_json::Value;

use super::{
    configuration::SYSTEM,
    label_selector,
    memory::{BootMemory, labels, namespace_kind},
    owners::Owners,
    review::{Review, ReviewVerdict},
    server::{Handler, Handlers},
    settings::{WebhookAddress, WebhookSettings},
    shared_requests::SharedRequests,
    webhook_reads::WebhookReads,
};
use crate::{controller::now, settings::Namespaces, tallies::Tallies};

/// Name and path of the webhook for Deployments.
pub(super) const DEPLOYMENTS: (&str, &str) = ("mdeployment-v1.kb.io", "/mutate-apps-v1-deployment");
/// Name and path of the webhook for Pods.
pub(super) const PODS: (&str, &str) = ("mpod-v1.linchpin.dev", "/mutate-v1-pod");
/// Name and path of the webhook for BootDependencies.
pub(super) const BOOT_DEPENDENCIES: (&str, &str) = (
    "vbootdependency-v1alpha1.kb.io",
    "/validate-core-bootchain-operator-ruicoelho-dev-v1alpha1-bootdependency",
);

pub(super) const GROUP: &str = "core.bootchain-operator.ruicoelho.dev";
pub(super) const VERSION: &str = "v1alpha1";
pub(super) const PLURAL: &str = "bootdependencies";

/// How long what is asked for one answer may take in all. The API server waits for two seconds and then lets the pod pass,
/// so what is not known by then counts as not there.
const IN_ALL: Duration = Duration::from_millis(1500);
/// How long a question to the API server may take.
const PATIENCE: Duration = Duration::from_millis(500);
/// How long it counts that a key can be used.
const USABLE_FOR: Duration = Duration::from_mins(1);
/// How long it counts that it cannot: it may come at any moment.
const UNUSABLE_FOR: Duration = Duration::from_secs(2);
/// How many such answers are kept.
const KEYS: usize = 10_000;
/// How young a workload may be for its BootDependency to be still on its way to us.
const YOUNG: Duration = Duration::from_secs(10);

/// What the names of headers have in them whose value should not be written in an object.
const SECRET_HEADERS: [&str; 4] = ["authorization", "cookie", "proxy", "api-key"];

/// The kind that is followed.
pub(super) fn kind() -> OwnKind {
    OwnKind::new(&Gvk::new(GROUP, VERSION, "BootDependency"), PLURAL, true)
}

/// The handlers, by path.
pub(super) fn handlers(webhooks: BootWebhooks) -> Handlers {
    let webhooks = Arc::new(webhooks);
    let mut handlers = BTreeMap::new();
    let mut add = |(name, path): (&'static str, &'static str), kind, answer: Answer| {
        let webhooks = Arc::clone(&webhooks);
        let answer = Box::new(move |review| answer(Arc::clone(&webhooks), review));
        // They change nothing. Who forges a review of a namespace that has opted in learns what a pod would wait for and
        // whether that is there: objects, and keys of Secrets, as the tenant's account sees them, which is asked in its
        // name, within limits (decision 11).
        handlers.insert(path, Handler { name, kind, guarded: false, answer });
    };
    add(DEPLOYMENTS, ("apps", "Deployment"), |webhooks, review| {
        async move { webhooks.deployment(review).await }.boxed()
    });
    add(PODS, ("", "Pod"), |webhooks, review| async move { webhooks.pod(review).await }.boxed());
    add(BOOT_DEPENDENCIES, (GROUP, "BootDependency"), |webhooks, review| {
        async move { webhooks.boot_dependency(&review) }.boxed()
    });
    handlers
}

type Answer = fn(Arc<BootWebhooks>, Review) -> futures::future::BoxFuture<'static, ReviewVerdict>;

/// The BootDependencies of a namespace; none where they could not be listed.
type ListedDependencies = Option<Arc<Vec<BootDependency>>>;

/// A key as an account sees it: namespace, account, plural, name and key.
type AccountKey = (String, String, &'static str, String, String);

/// Whether a key could be used, and when that was asked.
#[derive(Clone, Copy)]
struct Usability {
    asked: Instant,
    usable: bool,
}

impl Usability {
    fn counts(&self) -> bool {
        self.asked.elapsed() < if self.usable { USABLE_FOR } else { UNUSABLE_FOR }
    }
}

/// The BootDependencies that select a pod, and their sets.
#[derive(Default)]
struct Selected {
    objects: Vec<BootDependency>,
    sets: Vec<BootSet>,
}

/// What the three webhooks answer from.
pub(super) struct BootWebhooks {
    own_requests: OperatorRequests,
    memory: BootMemory,
    owners: Owners,
    settings: Arc<WebhookSettings>,
    default_service_account: String,
    cluster_domain: String,
    tallies: Tallies,
    /// The namespaces that the controller serves: nobody would release what is held elsewhere.
    served: Namespaces,
    reads: WebhookReads,
    /// Lists that are under way, by namespace.
    lists: SharedRequests<String, ListedDependencies>,
    keys: Mutex<BTreeMap<AccountKey, Usability>>,
}

impl BootWebhooks {
    pub(super) fn new(
        own_requests: OperatorRequests,
        memory: BootMemory,
        settings: Arc<WebhookSettings>,
        default_service_account: String,
        cluster_domain: String,
        tallies: Tallies,
        served: Namespaces,
    ) -> Self {
        Self {
            owners: Owners::new(own_requests.clone()),
            reads: WebhookReads::new(
                own_requests.clone(),
                default_service_account.clone(),
                cluster_domain.clone(),
            ),
            own_requests,
            memory,
            settings,
            default_service_account,
            cluster_domain,
            tallies,
            served,
            lists: SharedRequests::default(),
            keys: Mutex::default(),
        }
    }

    async fn deployment(&self, review: Review) -> ReviewVerdict {
        let by = Instant::now() + IN_ALL;
        if !self.is_in_scope(&review.namespace, by).await {
            return ReviewVerdict::default();
        }
        let (object, template) = (&review.object, &review.object["spec"]["template"]);
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let chain =
            [OwnerName { group: "apps".to_owned(), kind: "Deployment".to_owned(), name: name.to_owned() }];
        let labels = &template["metadata"]["labels"];
        let skipped = is_skipped(&object["metadata"]["annotations"])
            || is_skipped(&template["metadata"]["annotations"]);
        let selected =
            self.selected(&review.namespace, labels, &chain, skipped, review.is_creation, by).await;
        let Some(Selected { sets, .. }) = selected else {
            return ReviewVerdict::default();
        };
        let division = divide(&template["spec"], &sets);
        let waiter = self.waiter(&review.namespace);
        let injection = inject(template, PatchTarget::DeploymentTemplate, &division, PodGate::Open, &waiter);
        let warnings =
            ignored(&sets, &[&object["metadata"]["annotations"], &template["metadata"]["annotations"]]);
        // An owner that writes its template whole starts no rollout.
        let old_part = (!review.is_creation && !injection.patch.is_empty())
            .then(|| keep_old_part(&review.old_object, object))
            .flatten();
        ReviewVerdict { warnings, ..ReviewVerdict::patched(old_part.unwrap_or(injection.patch)) }
    }

    async fn pod(&self, review: Review) -> ReviewVerdict {
        let by = Instant::now() + IN_ALL;
        if !self.is_in_scope(&review.namespace, by).await {
            return ReviewVerdict::default();
        }
        let pod = &review.object;
        let chain = self.owners.chain(&review.namespace, pod).await;
        let annotations = &pod["metadata"]["annotations"];
        let skipped = chain.skipped || is_skipped(annotations);
        let young = chain.top_created.as_deref().is_none_or(is_young);
        let labels = &pod["metadata"]["labels"];
        let selected = self.selected(&review.namespace, labels, &chain.owners, skipped, young, by).await;
        let Some(Selected { objects, sets }) = selected.filter(|_| review.is_creation) else {
            return ReviewVerdict::default();
        };
        let division = divide(&pod["spec"], &sets);
        // The API server lets nobody gate a pod that has a node already.
        let placed = pod["spec"]["nodeName"].as_str().is_some_and(|name| !name.is_empty());
        let gate = if placed {
            PodGate::Open
        } else {
            let gate = self.gate(&review.namespace, &objects, &division);
            tokio::time::timeout(left(by), gate).await.unwrap_or(PodGate::Hold)
        };
        let waiter = self.waiter(&review.namespace);
        let patch = inject(pod, PatchTarget::Pod, &division, gate, &waiter).patch;
        ReviewVerdict { warnings: ignored(&sets, &[annotations]), ..ReviewVerdict::patched(patch) }
    }

    /// Whether pods and workloads of a namespace may be touched. Webhook configurations name no other, so a review of
    /// one is forged: nothing is asked for it, and nothing reported.
    async fn is_in_scope(&self, namespace: &str, by: Instant) -> bool {
        let is_own = matches!(&self.settings.reached, WebhookAddress::Service { namespace: own, .. } if own == namespace);
        let is_served = match &self.served {
            Namespaces::All => true,
            Namespaces::Only(names) => names.contains(namespace),
        };
        if is_own || !is_served || SYSTEM.contains(&namespace) {
            return false;
        }
        if self.memory.has_opted_in(namespace) {
            return true;
        }
        // It may have opted in a moment ago, and the API server has seen that sooner than we have.
        let within = left(by).min(PATIENCE);
        match self.own_requests.metadata(&namespace_kind(), None, namespace, within).await {
            Ok(found) => {
                found.is_some_and(|found| label_selector::matches(&self.settings.namespaces, &labels(&found)))
            }
            // Without knowing, the configurations are believed.
            Err(_) => true,
        }
    }

    /// Whether a pod is held. It is not where all that the gate would wait for is seen to be there: by the controller
    /// in this process, while it leads, or at once.
    async fn gate(&self, namespace: &str, objects: &[BootDependency], division: &Division) -> PodGate {
        for object in objects {
            let name = object.metadata.name.as_deref().unwrap_or_default();
            let gated = division.gated.iter().filter(|gated| gated.owner == name);
            let gated: Vec<&StepId> = gated.map(|gated| &gated.entry).collect();
            if gated.is_empty() {
                continue;
            }
            let generation = object.metadata.generation.unwrap_or_default();
            let holds = match self.tallies.of(namespace, name, generation) {
                _ if object.spec.common.suspend => false,
                Some(tally) => !gated.iter().any(|entry| tally.unmet.contains(*entry)),
                // The controller of this process has not got to it yet; it releases what is held for nothing at once.
                None if self.tallies.leads() => false,
                None => {
                    let met = self.reads.met(object).await;
                    gated.iter().all(|entry| met.contains(*entry))
                }
            };
            if !holds {
                return PodGate::Hold;
            }
        }
        PodGate::Open
    }

    fn boot_dependency(&self, review: &Review) -> ReviewVerdict {
        let Ok(mut incoming) = serde_json::from_value::<BootDependency>(review.object.clone()) else {
            return ReviewVerdict::default();
        };
        incoming.metadata.namespace = Some(review.namespace.clone());
        let mut verdict = ReviewVerdict { warnings: secret_headers(&incoming), ..ReviewVerdict::default() };
        if !self.memory.has_room_for(&review.namespace, &incoming) {
            verdict.refusal = Some(format!(
                "spec.dependsOn: Forbidden: the BootDependencies of namespace {} take more than {} MiB together; delete \
                 some, or say less in this one",
                review.namespace,
                limits::BOOT_MEMORY >> 20
            ));
            return verdict;
        }
        // Who cannot see the whole graph allows: circles are found at run time too.
        if self.memory.is_complete() {
            let all = self.memory.all();
            let found = circles(&incoming, all.iter().map(AsRef::as_ref));
            let text =
                |circle: linchpin_doors::boot_dependency::WorkloadCircle| circle.text(&review.namespace);
            verdict.refusal =
                found.through.map(|circle| format!("spec.dependsOn: Forbidden: {}", text(circle)));
            verdict.warnings.extend(found.elsewhere.map(text));
        }
        verdict
    }

    /// What holds for a pod, as far as it is known `by` then; none while that is not known. `fresh` asks the API server
    /// where memory has none.
    async fn selected(
        &self,
        namespace: &str,
        labels: &Value,
        chain: &[OwnerName],
        skipped: bool,
        fresh: bool,
        by: Instant,
    ) -> Option<Selected> {
        if skipped {
            return Some(Selected::default());
        }
        let is_selected = |object: &BootDependency| {
            let annotations = object.metadata.annotations.as_ref();
            let bypassed = annotations.is_some_and(|map| {
                map.get(linchpin_words::keys::SKIP_BOOT_WAIT).is_some_and(|value| value == "true")
            });
            !bypassed && object.metadata.deletion_timestamp.is_none() && selects(object, labels, chain)
        };
        let known = self.memory.of_namespace(namespace);
        let mut objects: Vec<BootDependency> =
            known.iter().filter(|object| is_selected(object)).map(|object| (**object).clone()).collect();
        let complete = self.memory.is_complete();
        if objects.is_empty() && (fresh || !complete) {
            // Applied in one command, the BootDependency may be newer than what we know.
            match tokio::time::timeout(left(by), self.list(namespace)).await.ok().flatten() {
                Some(list) => objects.extend(list.iter().filter(|object| is_selected(object)).cloned()),
                None if !complete => return None,
                None => (),
            }
        }
        let mut sets = Vec::with_capacity(objects.len());
        for object in &objects {
            sets.push(self.set(namespace, object, by).await);
        }
        Some(Selected { objects, sets })
    }

    async fn set(&self, namespace: &str, object: &BootDependency, by: Instant) -> BootSet {
        let account =
            object.spec.common.service_account_name.as_ref().unwrap_or(&self.default_service_account);
        let mut usable = Vec::with_capacity(object.spec.depends_on.len());
        for entry in &object.spec.depends_on {
            let mut all = true;
            for reference in references(entry) {
                all = all && self.can_use((namespace, account), &reference, by).await;
            }
            usable.push(all);
        }
        BootSet::of(object, &|index| usable.get(index).copied().unwrap_or(false))
    }

    /// Whether a key that an entry refers to can be put into a pod: its account gets it. Unknown is no.
    async fn can_use(
        &self,
        (namespace, account): (&str, &str),
        reference: &KeyReference<'_>,
        by: Instant,
    ) -> bool {
        let text = str::to_owned;
        let KeyReference { holder, name, key, .. } = *reference;
        let place = (text(namespace), text(account), holder.plural(), text(name), text(key));
        let lock = || self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        let known = lock().get(&place).copied();
        if let Some(known) = known.filter(Usability::counts) {
            return known.usable;
        }
        let left = left(by);
        if left.is_zero() {
            return false;
        }
        let kind = OwnKind::new(&holder.kind(), holder.plural(), true);
        let scope = Scope::Name { namespace: Some(text(namespace)), name: text(name) };
        let answer = self.own_requests.look_as((namespace, account), &kind, &scope, PATIENCE);
        let found = tokio::time::timeout(left, answer).await.ok().and_then(Result::ok).unwrap_or_default();
        let usable = found.first().is_some_and(|found| reference.is_in(found));
        let mut keys = lock();
        if keys.len() >= KEYS {
            keys.retain(|_, known| known.counts());
        }
        if keys.len() < KEYS {
            keys.insert(place, Usability { asked: Instant::now(), usable });
        }
        usable
    }

    /// The BootDependencies of a namespace as the API server has them now.
    async fn list(&self, namespace: &str) -> ListedDependencies {
        self.lists.join(namespace.to_owned(), || self.ask(namespace)).await
    }

    fn ask(&self, namespace: &str) -> impl Future<Output = ListedDependencies> + use<> {
        let (own_requests, namespace) = (self.own_requests.clone(), namespace.to_owned());
        async move {
            let objects = own_requests.list(&kind(), &namespace, PATIENCE).await.ok()?;
            let read = objects.into_iter().filter_map(|object| serde_json::from_value(object).ok());
            Some(Arc::new(read.collect()))
        }
    }

    fn waiter(&self, namespace: &str) -> WaiterSettings {
        WaiterSettings {
            image: self.memory.image(namespace).unwrap_or_else(|| self.settings.wait_image.clone()),
            cluster_domain: self.cluster_domain.clone(),
            after: self.settings.boot_after.clone(),
        }
    }
}

/// The warning about a bypass that is none, where there is something to bypass.
fn ignored(sets: &[BootSet], annotations: &[&Value]) -> Vec<String> {
    let notes = annotations.iter().filter_map(|annotations| ignored_skip(annotations));
    notes.take(usize::from(!sets.is_empty())).collect()
}

/// The warning about headers that are written where everybody can read them.
fn secret_headers(object: &BootDependency) -> Vec<String> {
    let is_secret = |name: &str| {
        let name = name.to_ascii_lowercase();
        SECRET_HEADERS.iter().any(|known| name.contains(known))
    };
    let mut warnings = Vec::new();
    for (index, entry) in object.spec.depends_on.iter().enumerate() {
        for header in entry.http_headers.iter().filter(|header| header.value.is_some()) {
            if is_secret(&header.name) {
                warnings.push(format!(
                    "spec.dependsOn[{index}].httpHeaders: the value of {} can be read by everybody who can read this \
                     object; use valueFrom.secretKeyRef",
                    header.name
                ));
            }
        }
    }
    warnings
}

/// How long it is until then.
fn left(by: Instant) -> Duration {
    by.saturating_duration_since(Instant::now())
}

/// Whether something was created only just now.
fn is_young(created: &str) -> bool {
    Timestamp::parse(created).is_ok_and(|created| now().since(created).length() < YOUNG)
}

#[cfg(test)]
mod tests;
