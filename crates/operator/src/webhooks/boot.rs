//! The three webhooks of BootDependency: Deployments and Pods get what they wait for, circles are refused.
//!
//! Everything is decided by `doors::boot_dependency`; here is only what must be known for that. Where it cannot be known,
//! the object is allowed as it is.

use std::{
    collections::BTreeMap,
    future::Future,
    sync::{Arc, Mutex, PoisonError, Weak},
    time::{Duration, Instant},
};

use futures::FutureExt;
use linchpin_api::BootDependency;
use linchpin_cluster::own::{Errands, OwnKind};
use linchpin_doors::boot_dependency::{
    BootSet, Division, Gate, GatedEntry, OwnerName, Place, WaiterSettings, circles, divide, ignored_skip,
    inject, is_skipped, keep_old_part, references, selects,
};
use linchpin_engine::contract::Right;
use linchpin_words::{Gvk, Timestamp, limits};
use serde_json::Value;

use super::{
    memory::BootMemory,
    owners::Owners,
    review::{Review, Verdict},
    server::{Handler, Handlers},
    settings::WebhookSettings,
};
use crate::{controller::now, tallies::Tallies};

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

/// How long a question to the API server may take.
const PATIENCE: Duration = Duration::from_millis(500);
/// How long an answer about a right counts.
const RIGHT_COUNTS: Duration = Duration::from_mins(1);
/// How many answers about rights are kept.
const RIGHTS: usize = 10_000;
/// How young a workload may be for its BootDependency to be still on its way to us.
const YOUNG: Duration = Duration::from_secs(10);

/// Headers whose value should not be written in an object.
const SECRET_HEADERS: [&str; 3] = ["authorization", "cookie", "x-api-key"];

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
        // They answer and change nothing: what they say depends on what the API server has.
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

type Answer = fn(Arc<BootWebhooks>, Review) -> futures::future::BoxFuture<'static, Verdict>;

type SharedList =
    futures::future::Shared<futures::future::BoxFuture<'static, Option<Arc<Vec<BootDependency>>>>>;

/// An account's right to one object of its namespace.
type AccountRight = (String, String, &'static str, String);

/// What the three webhooks answer from.
pub(super) struct BootWebhooks {
    errands: Errands,
    memory: BootMemory,
    owners: Owners,
    settings: Arc<WebhookSettings>,
    default_service_account: String,
    cluster_domain: String,
    tallies: Tallies,
    /// Lists that are under way, by namespace: one for all that ask meanwhile.
    lists: Mutex<BTreeMap<String, Weak<SharedList>>>,
    rights: Mutex<BTreeMap<AccountRight, (Instant, bool)>>,
}

impl BootWebhooks {
    pub(super) fn new(
        errands: Errands,
        memory: BootMemory,
        settings: Arc<WebhookSettings>,
        default_service_account: String,
        cluster_domain: String,
        tallies: Tallies,
    ) -> Self {
        Self {
            owners: Owners::new(errands.clone()),
            errands,
            memory,
            settings,
            default_service_account,
            cluster_domain,
            tallies,
            lists: Mutex::default(),
            rights: Mutex::default(),
        }
    }

    async fn deployment(&self, review: Review) -> Verdict {
        let (object, template) = (&review.object, &review.object["spec"]["template"]);
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let chain =
            [OwnerName { group: "apps".to_owned(), kind: "Deployment".to_owned(), name: name.to_owned() }];
        let labels = &template["metadata"]["labels"];
        let skipped = is_skipped(&object["metadata"]["annotations"])
            || is_skipped(&template["metadata"]["annotations"]);
        let Some(sets) = self.sets(&review.namespace, labels, &chain, skipped, review.is_creation).await
        else {
            return Verdict::default();
        };
        let division = divide(&template["spec"], &sets);
        let waiter = self.waiter(&review.namespace);
        let injection = inject(template, Place::DeploymentTemplate, &division, Gate::Open, &waiter);
        let warnings =
            ignored(&sets, &[&object["metadata"]["annotations"], &template["metadata"]["annotations"]]);
        // An owner that writes its template whole starts no rollout.
        let old_part = (!review.is_creation && !injection.patch.is_empty())
            .then(|| keep_old_part(&review.old_object, object))
            .flatten();
        Verdict { warnings, ..Verdict::patched(old_part.unwrap_or(injection.patch)) }
    }

    async fn pod(&self, review: Review) -> Verdict {
        let pod = &review.object;
        let chain = self.owners.chain(&review.namespace, pod).await;
        let annotations = &pod["metadata"]["annotations"];
        let skipped = chain.skipped || is_skipped(annotations);
        let young = chain.top_created.as_deref().is_none_or(is_young);
        let labels = &pod["metadata"]["labels"];
        let sets = self.sets(&review.namespace, labels, &chain.owners, skipped, young).await;
        let Some(sets) = sets.filter(|_| review.is_creation) else {
            return Verdict::default();
        };
        let division = divide(&pod["spec"], &sets);
        let gate = self.gate(&review.namespace, pod, &sets, &division);
        let waiter = self.waiter(&review.namespace);
        let patch = inject(pod, Place::Pod, &division, gate, &waiter).patch;
        Verdict { warnings: ignored(&sets, &[annotations]), ..Verdict::patched(patch) }
    }

    /// Whether a pod is held. It is not where it has a node already, which the API server lets nobody gate, and where the
    /// leader, which then is this very process, sees all that the gate would stand for.
    fn gate(&self, namespace: &str, pod: &Value, sets: &[BootSet], division: &Division) -> Gate {
        let has_node = pod["spec"]["nodeName"].as_str().is_some_and(|name| !name.is_empty());
        let holds = |gated: &GatedEntry| {
            sets.iter().filter(|set| set.name == gated.owner && !set.suspended).any(|set| {
                let tally = self.tallies.of(namespace, &set.name, set.generation);
                tally.is_some_and(|tally| !tally.unmet.contains(&gated.entry))
            })
        };
        if has_node || division.gated.iter().all(holds) { Gate::Open } else { Gate::Hold }
    }

    fn boot_dependency(&self, review: &Review) -> Verdict {
        let Ok(mut incoming) = serde_json::from_value::<BootDependency>(review.object.clone()) else {
            return Verdict::default();
        };
        incoming.metadata.namespace = Some(review.namespace.clone());
        let mut verdict = Verdict { warnings: secret_headers(&incoming), ..Verdict::default() };
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
            let text = |circle: linchpin_doors::boot_dependency::Circle| circle.text(&review.namespace);
            verdict.refusal =
                found.through.map(|circle| format!("spec.dependsOn: Forbidden: {}", text(circle)));
            verdict.warnings.extend(found.elsewhere.map(text));
        }
        verdict
    }

    /// The sets that hold for a pod; none while that is not known. `fresh` asks the API server where memory has none.
    async fn sets(
        &self,
        namespace: &str,
        labels: &Value,
        chain: &[OwnerName],
        skipped: bool,
        fresh: bool,
    ) -> Option<Vec<BootSet>> {
        if skipped {
            return Some(Vec::new());
        }
        let is_selected = |object: &BootDependency| {
            let annotations = object.metadata.annotations.as_ref();
            let bypassed = annotations.is_some_and(|map| {
                map.get(linchpin_words::keys::SKIP_BOOT_WAIT).is_some_and(|value| value == "true")
            });
            !bypassed && object.metadata.deletion_timestamp.is_none() && selects(object, labels, chain)
        };
        let known = self.memory.of_namespace(namespace);
        let mut selected: Vec<BootDependency> =
            known.iter().filter(|object| is_selected(object)).map(|object| (**object).clone()).collect();
        let complete = self.memory.is_complete();
        if selected.is_empty() && (fresh || !complete) {
            // Applied in one command, the BootDependency may be newer than what we know.
            match self.list(namespace).await {
                Some(list) => selected.extend(list.iter().filter(|object| is_selected(object)).cloned()),
                None if !complete => return None,
                None => (),
            }
        }
        let mut sets = Vec::with_capacity(selected.len());
        for object in &selected {
            sets.push(self.set(namespace, object).await);
        }
        Some(sets)
    }

    async fn set(&self, namespace: &str, object: &BootDependency) -> BootSet {
        let account =
            object.spec.common.service_account_name.as_ref().unwrap_or(&self.default_service_account);
        let mut usable = Vec::with_capacity(object.spec.depends_on.len());
        for entry in &object.spec.depends_on {
            let mut all = true;
            for (plural, name) in references(entry) {
                all = all && self.may_read(namespace, account, plural, name).await;
            }
            usable.push(all);
        }
        BootSet::of(object, &|index| usable.get(index).copied().unwrap_or(false))
    }

    /// Whether an account may read what an entry refers to. Unknown is no.
    async fn may_read(&self, namespace: &str, account: &str, plural: &'static str, name: &str) -> bool {
        let key = (namespace.to_owned(), account.to_owned(), plural, name.to_owned());
        let lock = || self.rights.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((asked, allowed)) = lock().get(&key).copied()
            && asked.elapsed() < RIGHT_COUNTS
        {
            return allowed;
        }
        let right = Right {
            verb: "get".to_owned(),
            group: String::new(),
            resource: plural.to_owned(),
            subresource: None,
            namespace: Some(namespace.to_owned()),
            name: Some(name.to_owned()),
        };
        let Ok(allowed) = self.errands.may(namespace, account, &right, PATIENCE).await else {
            return false;
        };
        let mut rights = lock();
        if rights.len() >= RIGHTS {
            rights.retain(|_, (asked, _)| asked.elapsed() < RIGHT_COUNTS);
        }
        if rights.len() < RIGHTS {
            rights.insert(key, (Instant::now(), allowed));
        }
        allowed
    }

    /// The BootDependencies of a namespace as the API server has them now; one question for all that ask meanwhile.
    async fn list(&self, namespace: &str) -> Option<Arc<Vec<BootDependency>>> {
        let list = {
            let mut lists = self.lists.lock().unwrap_or_else(PoisonError::into_inner);
            lists.retain(|_, list| list.strong_count() > 0);
            if let Some(list) = lists.get(namespace).and_then(Weak::upgrade) {
                list
            } else {
                let list = Arc::new(self.ask(namespace).boxed().shared());
                lists.insert(namespace.to_owned(), Arc::downgrade(&list));
                list
            }
        };
        SharedList::clone(&list).await
    }

    fn ask(&self, namespace: &str) -> impl Future<Output = Option<Arc<Vec<BootDependency>>>> + use<> {
        let (errands, namespace) = (self.errands.clone(), namespace.to_owned());
        async move {
            let objects = errands.list(&kind(), &namespace, PATIENCE).await.ok()?;
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

/// What the user is told of a bypass that is none, where there is something to bypass.
fn ignored(sets: &[BootSet], annotations: &[&Value]) -> Vec<String> {
    let notes = annotations.iter().filter_map(|annotations| ignored_skip(annotations));
    notes.take(usize::from(!sets.is_empty())).collect()
}

/// What the user is told of headers that are written where everybody can read them.
fn secret_headers(object: &BootDependency) -> Vec<String> {
    let is_secret = |name: &str| SECRET_HEADERS.iter().any(|known| name.eq_ignore_ascii_case(known));
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

/// Whether something was created only just now.
fn is_young(created: &str) -> bool {
    Timestamp::parse(created).is_ok_and(|created| now().since(created).length() < YOUNG)
}
