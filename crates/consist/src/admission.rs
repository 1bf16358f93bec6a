//! What is answered when a pod is created, deleted or evicted.
//!
//! [`create`] adds the readiness gate and the entries to the raw object, so that a pod is never called available before
//! its employers have seen it. [`remove`] refuses deletions and evictions until the pod is out of traffic: a finalizer
//! does not stop SIGTERM, so traffic must be gone *before* a deletion is admitted.

use std::collections::BTreeMap;

use linchpin_words::{Timestamp, keys::consist as keys};
use serde_json::{Value, json};

use crate::{
    lifecycle::{POD_DELETE, POD_EVICT, Prefix},
    marks::{PodEntries, protects},
    pod::PodView,
};

/// Operations of a JSON patch that make a new pod one of ours: the gate (own engine, opted in) and an entry for every
/// employer that selects it (key and finalizer). Nothing where nothing is to be added.
pub fn create(pod: &Value, own_engine: bool, employers: &[(String, String)]) -> Vec<Value> {
    let mut operations = Vec::new();
    let label = |key: &str| pod.pointer("/metadata/labels").and_then(|labels| labels.get(key)?.as_str());
    let controlled = label(keys::CONTROL) == Some("true");
    if own_engine && controlled && pod.get("spec").is_some_and(Value::is_object) {
        let gates = pod.pointer("/spec/readinessGates").and_then(Value::as_array);
        let gate = json!({"conditionType": keys::SERVICE_READY});
        let has = |gates: &Vec<Value>| {
            gates.iter().any(|one| one.get("conditionType") == gate.get("conditionType"))
        };
        match gates {
            None => operations.push(json!({"op": "add", "path": "/spec/readinessGates", "value": [gate]})),
            Some(gates) if !has(gates) => {
                operations.push(json!({"op": "add", "path": "/spec/readinessGates/-", "value": gate}));
            }
            Some(_) => {}
        }
    }
    let mut annotations = BTreeMap::new();
    let annotation = |key: &str| pod.pointer("/metadata/annotations").and_then(|all| all.get(key)?.as_str());
    let before = annotation(keys::AVAILABLE_CONDITIONS).map(str::to_owned);
    let mut text = before.clone();
    for (key, finalizer) in employers {
        let entries = PodEntries::read(text.as_deref());
        if !entries.has(key, finalizer)
            && let Ok(with) = entries.with(key, finalizer)
        {
            text = Some(with);
        }
    }
    if let Some(text) = text.filter(|text| Some(text) != before.as_ref()) {
        annotations.insert(keys::AVAILABLE_CONDITIONS, text);
    }
    if own_engine
        && controlled
        && let Some(asked) = label(keys::TO_DELETE)
    {
        annotations.insert(keys::TO_DELETE_IGNORED, asked.to_owned());
    }
    if annotations.is_empty() || !pod.get("metadata").is_some_and(Value::is_object) {
        return operations;
    }
    if pod.pointer("/metadata/annotations").is_some_and(Value::is_object) {
        for (key, value) in annotations {
            let key = key.replace('~', "~0").replace('/', "~1");
            operations
                .push(json!({"op": "add", "path": format!("/metadata/annotations/{key}"), "value": value}));
        }
    } else {
        operations.push(json!({"op": "add", "path": "/metadata/annotations", "value": annotations}));
    }
    operations
}

/// Who asks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asker {
    /// The user's name.
    pub user: String,
    /// Its groups.
    pub groups: Vec<String>,
}

impl Asker {
    fn is_controller(&self) -> bool {
        self.user.starts_with("system:serviceaccount:") || self.user == "system:kube-controller-manager"
    }
}

/// A deletion or an eviction that is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemovalRequest {
    /// Whether it comes through the Eviction API.
    pub eviction: bool,
    /// Who asks.
    pub asker: Asker,
    /// The grace period that is asked for.
    pub grace: Option<i64>,
    /// Whether nothing is to happen in earnest.
    pub dry_run: bool,
    /// Whether the pod's namespace is being deleted.
    pub namespace_going: bool,
    /// Whether the pod's disruption budget has no room now.
    pub over_budget: bool,
    /// Now.
    pub now: Timestamp,
}

/// What is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AdmissionVerdict {
    /// Go ahead.
    Allow,
    /// Not yet.
    Refuse {
        /// The HTTP status: 429 is repeated by people's clients, 403 makes a controller wait for the pod to change.
        code: u16,
        /// When to repeat, in seconds.
        retry_after: Option<u32>,
        /// Whether the cause is the disruption budget.
        budget: bool,
        /// The text.
        message: String,
        /// What is to be written on the pod, once.
        mark: Option<RemovalMark>,
    },
}

/// What is to be written on a pod that is asked to go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RemovalMark {
    /// The label that asks for its deletion, and who asked.
    Delete {
        /// The label's value.
        at: String,
        /// Who asked.
        by: String,
    },
    /// The annotation that asks for its eviction.
    Evict {
        /// Its value.
        at: String,
    },
}

/// How long people's clients repeat every second, and how long after that.
const PATIENT_AFTER: i128 = 5_000_000_000;
/// An eviction is noted at most this often.
const EVICTION_EVERY: i128 = 5_000_000_000;

/// Whether a pod may be deleted or evicted now.
pub fn remove(pod: &PodView, removal: &RemovalRequest) -> AdmissionVerdict {
    let protected = pod.finalizers.iter().any(|finalizer| protects(finalizer));
    let operate = |id: &str| pod.labels.contains_key(&Prefix::Operate.key(id));
    let ended = matches!(pod.phase.as_str(), "Succeeded" | "Failed");
    let by_node = removal.asker.groups.iter().any(|group| group == "system:nodes");
    let free = !pod.is_controlled()
        || (!pod.gated && !protected)
        || (!pod.scheduled && !pod.ready)
        || pod.is_terminating()
        || removal.grace == Some(0)
        || by_node
        || removal.namespace_going
        || operate(POD_DELETE)
        || operate(POD_EVICT)
        || removal.dry_run
        || removal.asker.user == "system:kube-scheduler"
        || ended;
    if free {
        return AdmissionVerdict::Allow;
    }
    let now = i128::from(removal.now.as_microsecond()) * 1_000;
    let message = format!("pod deletion process is underway: {}", holder(pod));
    if removal.eviction {
        if removal.over_budget {
            let message = "the disruption budget of the pod has no room".to_owned();
            return AdmissionVerdict::Refuse {
                code: 429,
                retry_after: None,
                budget: true,
                message,
                mark: None,
            };
        }
        let last = pod.annotations.get(keys::EVICT_REQUESTED).and_then(|at| at.parse::<i128>().ok());
        let mark = last.is_none_or(|last| now.saturating_sub(last) >= EVICTION_EVERY);
        let mark = mark.then(|| RemovalMark::Evict { at: now.to_string() });
        return AdmissionVerdict::Refuse { code: 429, retry_after: None, budget: false, message, mark };
    }
    let asked = pod.labels.get(keys::TO_DELETE).filter(|_| crate::lifecycle::asks_for_deletion(pod));
    let since = asked.and_then(|at| at.parse::<i128>().ok()).unwrap_or(now);
    let by = removal.asker.user.chars().take(253).collect();
    let mark = asked.is_none().then(|| RemovalMark::Delete { at: now.to_string(), by });
    let (code, retry_after) = if removal.asker.is_controller() {
        (403, None)
    } else {
        (429, Some(if now.saturating_sub(since) < PATIENT_AFTER { 1 } else { 30 }))
    };
    AdmissionVerdict::Refuse { code, retry_after, budget: false, message, mark }
}

/// What holds a pod, for people.
pub fn holder(pod: &PodView) -> String {
    let protections: Vec<&str> =
        pod.finalizers.iter().filter(|finalizer| protects(finalizer)).map(String::as_str).collect();
    if let PodEntries::Known(entries) = pod.entries() {
        let held = entries.iter().filter(|(_, finalizer)| protections.contains(&finalizer.as_str()));
        let employers: Vec<&str> = held.map(|(key, _)| key.as_str()).collect();
        if !employers.is_empty() {
            return format!("it is in traffic of {}", employers.join(", "));
        }
    }
    if !protections.is_empty() {
        return format!("it is protected by {}", protections.join(", "));
    }
    if pod.labels.keys().any(|key| Prefix::PreCheck.has(key)) {
        return "it waits for its checks".to_owned();
    }
    "it leaves traffic".to_owned()
}
