//! One pod's turn in PodOpsLifecycle, where the engine is ours: labels, the gate, and deletions that nobody repeats.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use linchpin_cluster::own::{MarkPatch, OwnTarget, OwnWriteError};
use linchpin_consist::{
    PodView,
    lifecycle::{CarryOut, PodFacts, PodPatch, Prefix, step},
    settle::Traffic,
};
use linchpin_engine::contract::Notice;
use linchpin_words::{Gvk, Timestamp, keys::consist as keys};
use serde_json::{Map, Value, json};

use super::{Desk, DeskMessage, Wake, employers::Case};
use crate::{
    consist::{
        ConsistMode,
        acts::DEADLINE,
        cluster_view::{ClusterView, EmployerKey, Followed, Name, PODS, Watch},
        crew::PodEntry,
    },
    controller::now,
};

/// How long after an eviction that did not come about none is begun.
const EVICTIONS_REST: Duration = Duration::from_mins(5);
/// The first pause after a failed write; it doubles up to the longest.
const PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// What is known of one pod beside what is seen of it. It may be lost.
#[derive(Default)]
pub(super) struct PodCase {
    pub(super) uid: String,
    /// The labels of its operations as they were looked at last.
    before: BTreeMap<String, String>,
    /// Whether a write is under way, and the version that the last one left.
    pub(super) writing: bool,
    pub(super) written: u64,
    failures: u32,
    pub(super) not_before: Option<Timestamp>,
    /// The labels that were written and are not seen yet.
    pending: Option<(u64, PodPatch)>,
    evictions_rest_until: Option<Timestamp>,
    logged: Option<String>,
}

impl PodCase {
    /// Whether an operation is under way.
    pub(super) fn is_busy(&self) -> bool {
        !self.before.is_empty()
    }

    /// The pod with what was written to it and is not seen yet.
    pub(super) fn ahead(&self, pod: &Arc<PodView>) -> Arc<PodView> {
        let Some((version, patch)) = self.pending.as_ref().filter(|_| self.uid == pod.uid) else {
            return Arc::clone(pod);
        };
        if pod.version > *version {
            return Arc::clone(pod);
        }
        let mut ahead = PodView::clone(pod);
        for (key, value) in &patch.labels {
            match value {
                Some(value) => ahead.labels.insert(key.clone(), value.clone()),
                None => ahead.labels.remove(key),
            };
        }
        Arc::new(ahead)
    }
}

impl Desk {
    pub(super) fn pod_turn(&mut self, name: &Name, time: Timestamp) {
        let shared = self.parts.shared.clone();
        let cluster_view = shared.look();
        let Some(pod) = cluster_view.pod(&name.0, &name.1).cloned() else {
            self.parts.counts.operations(name, None);
            self.pods.remove(name);
            self.timers.set(Wake::Pod(name.clone()), None);
            return;
        };
        if self.parts.mode != ConsistMode::Serve {
            drop(cluster_view);
            return self.strip(name, &pod, time);
        }
        let own = self.is_own_engine(&cluster_view) && pod.is_controlled() && !pod.is_terminating();
        self.parts.counts.operations(name, Some(&*pod).filter(|_| own));
        if !own || cluster_view.lacks().is_some() {
            self.pods.remove(name);
            self.timers.set(Wake::Pod(name.clone()), None);
            return;
        }
        let mut case = self.pods.remove(name).filter(|case| case.uid == pod.uid).unwrap_or_default();
        case.uid.clone_from(&pod.uid);
        if case.pending.as_ref().is_some_and(|(version, _)| pod.version > *version) {
            case.pending = None;
        }
        if case.writing || pod.version < case.written {
            self.pods.insert(name.clone(), case);
            return;
        }
        let (facts, patience) = self.facts(&cluster_view, name, &pod, &case, time);
        drop(cluster_view);
        let patch = step(&case.before, &pod, &facts);
        for oddity in &patch.oddities {
            if case.logged.as_ref() != Some(oddity) {
                tracing::warn!(namespace = name.0, pod = name.1, "{oddity}");
                case.logged = Some(oddity.clone());
            }
        }
        let mut wake = [patch.wake_at, patience].into_iter().flatten().min();
        let rests = case.not_before.filter(|from| *from > time);
        if let Some(from) = rests.filter(|_| !patch.is_empty()) {
            wake = Some(wake.map_or(from, |wake| wake.min(from)));
        } else if !patch.is_empty() {
            if patch.forget.contains(keys::EVICT_REQUESTED) {
                case.evictions_rest_until = Some(time.plus_duration(EVICTIONS_REST));
            }
            self.write_pod(name, &pod, &patch, &mut case);
        }
        self.timers.set(Wake::Pod(name.clone()), wake.filter(|at| *at > time));
        case.before = patch.remembered(&pod);
        self.pods.insert(name.clone(), case);
    }

    /// The employments that a pod concerns, or that only their bindings name.
    fn cases_of(
        &self,
        cluster_view: &ClusterView,
        namespace: &str,
        pod: &PodView,
    ) -> impl Iterator<Item = &Case> {
        let concerned: BTreeSet<EmployerKey> = cluster_view
            .concerned(PODS, namespace, pod)
            .into_iter()
            .chain(self.gone_of(namespace))
            .cloned()
            .collect();
        concerned.into_iter().filter_map(|key| self.cases.get(&key))
    }

    /// What decides beyond the pod itself, and when to look again.
    fn facts(
        &self,
        cluster_view: &ClusterView,
        name: &Name,
        pod: &Arc<PodView>,
        case: &PodCase,
        time: Timestamp,
    ) -> (PodFacts, Option<Timestamp>) {
        let (namespace, _) = name;
        let lifecycle = &self.parts.lifecycle;
        let entries = pod.entries();
        let wanted = self.parts.crew.entries(cluster_view, namespace, &pod.name, &pod.labels);
        let entries_complete = wanted.iter().all(|entry| entries.has(&entry.key, &entry.finalizer));
        let mut out_of_traffic = true;
        let mut attaching = false;
        for employer in self.cases_of(cluster_view, namespace, pod) {
            let Some((version, traffic)) = employer.traffic.get(&pod.uid) else { continue };
            out_of_traffic &= *version == pod.version && *traffic == Traffic::Out;
            attaching |= employer.attaching.iter().any(|other| *other != pod.name);
        }
        out_of_traffic &= is_judged(&self.cases, &wanted, &pod.uid);
        let (pre_ruled, post_ruled) = self.rules.verdict(cluster_view, namespace, pod);
        let begun = pod.labels.iter().filter(|(key, _)| Prefix::PreCheck.has(key));
        let begun = begun.filter_map(|(_, at)| at.parse::<i64>().ok()).min();
        let patience = begun.map(|nanoseconds| {
            Timestamp::from_microsecond(nanoseconds / 1_000).plus_duration(lifecycle.attach_patience)
        });
        let waits = attaching && patience.is_none_or(|until| time < until);
        let facts = PodFacts {
            now: time,
            pre_checked: pre_ruled && !waits,
            post_checked: post_ruled,
            entries_complete,
            out_of_traffic,
            settle: cluster_view.is_endpoint(&pod.uid).then_some(lifecycle.settle),
            drain_timeout: lifecycle.drain_timeout,
            evictions_rest: case.evictions_rest_until.is_some_and(|until| time < until),
        };
        (facts, patience.filter(|_| waits && begun.is_some()))
    }

    /// Writes the first thing that is to be written: labels, then the gate, then what we carry out ourselves.
    fn write_pod(&mut self, name: &Name, pod: &Arc<PodView>, patch: &PodPatch, case: &mut PodCase) {
        let metadata = metadata(patch);
        let write = if let Some(metadata) = metadata {
            case.pending = Some((pod.version, patch.clone()));
            PodWrite::Metadata(metadata)
        } else if let Some(open) = patch.gate {
            PodWrite::Gate(open)
        } else if let Some(carry_out) = patch.carry_out {
            let budgets = self.parts.shared.clone();
            let cluster_view = budgets.look();
            let none_desired =
                cluster_view.budgets_of(&name.0).any(|budget| budget.asks_for_none(&pod.labels));
            let evict =
                carry_out == CarryOut::Evict && !none_desired && cluster_view.is_synced(Watch::Budgets);
            PodWrite::Remove { evict }
        } else {
            return;
        };
        if let Some(message) = &patch.given_up {
            self.say_of_pod(name, &pod.uid, "PodDeletion", message, true);
            self.parts.counts.given_up();
        }
        if let PodWrite::Gate(open) = write {
            let message = format!("{} becomes {}", keys::SERVICE_READY, if open { "True" } else { "False" });
            self.say_of_pod(name, &pod.uid, "ServiceReady", &message, false);
        }
        if let PodWrite::Remove { evict } = write {
            let message =
                if evict { "the pod is drained and is evicted" } else { "the pod is drained and is deleted" };
            self.say_of_pod(name, &pod.uid, "PodDeletion", message, false);
        }
        self.send_pod(name, pod, write, case);
    }

    /// Sends one write to a pod.
    pub(super) fn send_pod(&self, name: &Name, pod: &Arc<PodView>, write: PodWrite, case: &mut PodCase) {
        case.writing = true;
        let (write_context, back, requests) =
            (self.write_context.clone(), self.back.clone(), Arc::clone(&self.requests));
        let (kind, name, pod) = (self.parts.kinds.employees[PODS].clone(), name.clone(), Arc::clone(pod));
        tokio::spawn(async move {
            let _turn = requests.acquire().await.ok();
            let result = if write_context.fence.check().is_err() {
                Err(OwnWriteError::Passing("this process does not lead any more".to_owned()))
            } else {
                write.send(&write_context.own_requests, &kind, &name, &pod).await
            };
            let (version, failed) = match result {
                Ok(version) => (version, None),
                Err(error) => (None, Some(error.to_string())),
            };
            let _ = back.send(DeskMessage::Pod { name, uid: pod.uid.clone(), version, failed });
        });
    }

    pub(super) fn pod_written(
        &mut self,
        name: Name,
        uid: &str,
        version: Option<u64>,
        failed: Option<String>,
    ) {
        let Some(case) = self.pods.get_mut(&name).filter(|case| case.uid == uid) else { return };
        case.writing = false;
        match failed {
            None => {
                case.failures = 0;
                case.not_before = None;
                case.written = case.written.max(version.unwrap_or_default());
            }
            Some(error) => {
                case.pending = None;
                case.failures = case.failures.saturating_add(1);
                let pause = PAUSE.saturating_mul(1 << case.failures.min(10)).min(LONGEST_PAUSE);
                case.not_before = Some(now().plus_duration(pause));
                if case.failures > 3 && case.logged.as_ref() != Some(&error) {
                    tracing::warn!(namespace = name.0, pod = name.1, "cannot write to the pod: {error}");
                    case.logged = Some(error);
                }
            }
        }
        self.dirty_pods.insert(name);
    }

    fn say_of_pod(&self, name: &Name, uid: &str, reason: &str, message: &str, warning: bool) {
        let notice = Notice { reason: reason.to_owned(), message: message.to_owned(), warning };
        self.say(Gvk::new("", "v1", "Pod"), &name.0, &name.1, uid, notice);
    }
}

/// Whether each employer whose entry a pod is to have knows the pod's traffic: one whose first turn is still to come knows
/// nothing yet.
fn is_judged(cases: &BTreeMap<EmployerKey, Case>, entries: &[PodEntry], uid: &str) -> bool {
    let knows =
        |entry: &PodEntry| cases.get(&entry.employer).is_some_and(|case| case.traffic.contains_key(uid));
    entries.iter().all(knows)
}

/// One write to a pod.
pub(super) enum PodWrite {
    Metadata(Value),
    Gate(bool),
    Remove { evict: bool },
}

impl PodWrite {
    async fn send(
        self,
        own_requests: &linchpin_cluster::own::OperatorRequests,
        kind: &Followed,
        (namespace, name): &Name,
        pod: &PodView,
    ) -> Result<Option<u64>, OwnWriteError> {
        let place = OwnTarget { kind: &kind.own, namespace: Some(namespace), name };
        match self {
            Self::Metadata(mut body) => {
                body["resourceVersion"] = json!(pod.version.to_string());
                let body = json!({"metadata": body});
                own_requests.change(place, None, MarkPatch::Merge, &body, DEADLINE).await
            }
            Self::Gate(open) => {
                let condition = json!({
                    "type": keys::SERVICE_READY,
                    "status": if open { "True" } else { "False" },
                    "lastTransitionTime": second(now()),
                    "message": keys::SERVICE_READY_MESSAGE,
                });
                let body = json!({"metadata": {"uid": pod.uid}, "status": {"conditions": [condition]}});
                own_requests.change(place, Some("status"), MarkPatch::Strategic, &body, DEADLINE).await
            }
            Self::Remove { evict: true } => {
                own_requests.evict(namespace, name, &pod.uid, DEADLINE).await.map(|()| None)
            }
            Self::Remove { evict: false } => {
                own_requests.remove(place, &pod.uid, DEADLINE).await.map(|()| None)
            }
        }
    }
}

/// A moment in whole seconds: that is all that a condition's time may have.
fn second(at: Timestamp) -> String {
    Timestamp::from_second(at.as_second()).to_string()
}

/// Labels and annotations of a patch; none where there are none.
fn metadata(patch: &PodPatch) -> Option<Value> {
    if patch.labels.is_empty() && patch.forget.is_empty() {
        return None;
    }
    let mut metadata = Map::new();
    if !patch.labels.is_empty() {
        metadata.insert("labels".to_owned(), json!(patch.labels));
    }
    if !patch.forget.is_empty() {
        let forget: Map<String, Value> =
            patch.forget.iter().map(|key| ((*key).to_owned(), Value::Null)).collect();
        metadata.insert("annotations".to_owned(), Value::Object(forget));
    }
    Some(Value::Object(metadata))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_employer_knows_of_a_pod_says_nothing_for_one_of_another_kind_with_the_same_name() {
        let key = |kind| (kind, "shop".to_owned(), "web".to_owned());
        let entry = |kind: usize, word: &str| PodEntry {
            key: format!("{word}/shop/web"),
            finalizer: "f".to_owned(),
            employer: key(kind),
        };
        let entries = [entry(0, "Service"), entry(1, "Gateway")];
        let knowing = || {
            let mut case = Case::default();
            case.traffic.insert("u".to_owned(), (1, Traffic::Out));
            case
        };
        let mut cases = BTreeMap::from([(key(0), knowing()), (key(1), Case::default())]);
        assert!(is_judged(&cases, &entries[..1], "u") && !is_judged(&cases, &entries, "u"));
        cases.insert(key(1), knowing());
        assert!(is_judged(&cases, &entries, "u") && !is_judged(&cases, &entries, "v"));
    }
}
