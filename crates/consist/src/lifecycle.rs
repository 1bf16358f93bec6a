//! PodOpsLifecycle: what is to be written on one pod now.
//!
//! [`step`] is the whole engine: labels are the state, and several transitions are one write. It is run by the
//! level-triggered controller alone, so a missed event costs time and nothing else. The stages of one operation:
//!
//! ```text
//! operating ─► pre-check ─► pre-checked, permission ─► preparing (gate False) ─► operate
//!     the operation controller takes `operating` off ─► operated ─► post-check ─► post-checked
//!     ─► completing (gate True) ─► nothing left ─► service-available
//! ```
//!
//! Differences to the original, each with a test: every id has its own stage, and only ids in a check are checked; an id is
//! known by any of its labels and swept of all of them when it vanishes; a permission goes when no id of its type is left;
//! a pod without the gate is drained all the same; `operate` needs an observation that says out of traffic.

mod labels;
mod operations;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use linchpin_words::{Period, Timestamp, keys::consist as keys};

use self::labels::{PodLabels, permission};
pub use self::{
    labels::{Prefix, is_written_annotation, is_written_label},
    operations::{Operation, operations},
};
use crate::{marks::protects, pod::PodView};

/// The id of a deletion that was asked for by label.
pub const POD_DELETE: &str = "pod-delete";

/// The id of an eviction.
pub const POD_EVICT: &str = "pod-evict";

/// The type of both.
pub const DELETE: &str = "delete";

/// What is known beyond the pod itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodFacts {
    /// Now.
    pub now: Timestamp,
    /// Whether it passes `PreCheck`: no rule objects to it, and nobody waits to be attached in its place.
    pub pre_checked: bool,
    /// Whether it passes `PostCheck`.
    pub post_checked: bool,
    /// Whether the entries of all its employers are on it.
    pub entries_complete: bool,
    /// Whether every employer that we serve observed it out of traffic since its gate went False.
    pub out_of_traffic: bool,
    /// How long those who follow endpoints without a report get to notice; none where nobody does.
    pub settle: Option<Duration>,
    /// How long a drain before a deletion may take before it is given up.
    pub drain_timeout: Duration,
    /// Whether an eviction did not come about lately: none is begun now.
    pub evictions_rest: bool,
}

/// What is to be written. Nothing where nothing changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodPatch {
    /// Labels to set, or to remove.
    pub labels: BTreeMap<String, Option<String>>,
    /// Annotations to remove.
    pub forget: BTreeSet<&'static str>,
    /// What the gate's condition is to say; none where it stays.
    pub gate: Option<bool>,
    /// What we do ourselves, because who asked for it does not ask again.
    pub carry_out: Option<CarryOut>,
    /// What is to be said of a drain that was given up.
    pub given_up: Option<String>,
    /// When to look again although nothing changes.
    pub wake_at: Option<Timestamp>,
    /// What is odd about the pod's labels, for people.
    pub oddities: Vec<String>,
}

impl PodPatch {
    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.gate.is_none() && self.forget.is_empty() && self.carry_out.is_none()
    }

    fn wake(&mut self, at: Timestamp) {
        self.wake_at = Some(self.wake_at.map_or(at, |earlier| earlier.min(at)));
    }

    /// What the next step is to remember of the pod: its labels of operations, with the types that this one puts back. What
    /// somebody wrote instead of them would be taken for the first one as soon as they are back.
    pub fn remembered(&self, pod: &PodView) -> BTreeMap<String, String> {
        let is_ours = |key: &str| Prefix::ALL.into_iter().any(|prefix| prefix.has(key));
        let seen = pod.labels.iter().filter(|(key, _)| is_ours(key));
        let types = self.labels.iter().filter(|(key, _)| Prefix::OperationType.has(key));
        let put_back = types.filter_map(|(key, value)| Some((key, value.as_ref()?)));
        seen.chain(put_back).map(|(key, value)| (key.clone(), value.clone())).collect()
    }
}

/// What we do ourselves with a pod that may be operated on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CarryOut {
    /// Delete it, by its uid.
    Delete,
    /// Evict it, by its uid: the API server judges the disruption budget.
    Evict,
}

/// How long after the permission we delete a pod ourselves.
const CARRY_OUT_AFTER: Duration = Duration::from_secs(2);
/// How long after the permission a deletion that nobody repeats is undone.
const DELETE_WITHIN: Duration = Duration::from_mins(1);
/// How long after the permission an eviction that does not come about is undone.
const EVICT_WITHIN: Duration = Duration::from_secs(30);

/// What is to be written on a pod now. `before` is what is remembered of its last step ([`PodPatch::remembered`]).
pub fn step(before: &BTreeMap<String, String>, pod: &PodView, facts: &PodFacts) -> PodPatch {
    if pod.is_terminating() || !pod.is_controlled() {
        return PodPatch::default();
    }
    let mut patch = PodPatch::default();
    let mut labels = PodLabels::new(&pod.labels, facts.now);
    keep_types(before, &mut labels, &mut patch);
    begin_deletion(pod, facts, &mut labels);
    end_deletion(pod, facts.now, &mut labels, &mut patch);
    // Every transition removes or adds labels in one direction, so this ends; the bound is for our own mistakes.
    for _ in 0..labels::STAGES {
        let state = labels.clone();
        advance(pod, facts, before, &mut labels, &mut patch);
        if labels == state {
            break;
        }
    }
    if labels.ids().is_empty() {
        labels.remove(keys::PREPARING_TO_DELETE);
    }
    if !labels.has(keys::TO_DELETE) {
        let cost = pod.annotations.get(keys::DELETION_COST);
        if cost.is_some_and(|cost| cost == keys::DELETION_COST_DRAINING) {
            patch.forget.insert(keys::DELETION_COST);
        }
        // Who asked last time did not ask for what somebody begins by hand.
        if pod.annotations.contains_key(keys::DELETE_REQUESTED_BY) {
            patch.forget.insert(keys::DELETE_REQUESTED_BY);
        }
    }
    patch.gate = gate(pod, facts, &labels);
    availability(pod, facts, &mut labels);
    patch.labels = labels.difference(&pod.labels);
    patch
}

/// Begin with an id that carries another type already: the first type is kept.
fn keep_types(before: &BTreeMap<String, String>, labels: &mut PodLabels, patch: &mut PodPatch) {
    for id in labels.ids() {
        let operating = Prefix::Operating.key(&id);
        let kind = Prefix::OperationType.key(&id);
        let both = |key: &String| before.contains_key(key) && labels.has(key);
        let (Some(first), Some(now)) = (before.get(&kind), labels.get(&kind)) else { continue };
        if both(&operating) && first != now {
            patch.oddities.push(format!("operation {id} is of type {first} and cannot become {now}"));
            labels.set(&kind, first);
        }
    }
}

/// The label that asks for a deletion, and the annotation that asks for an eviction, begin operations; taking them away
/// before `operate` ends them.
fn begin_deletion(pod: &PodView, facts: &PodFacts, labels: &mut PodLabels) {
    let asked = [
        (POD_DELETE, asks_for_deletion(pod)),
        (POD_EVICT, pod.annotations.contains_key(keys::EVICT_REQUESTED)),
    ];
    for (id, asked) in asked {
        let operating = Prefix::Operating.key(id);
        let known = labels.ids().contains(id);
        if asked && !known && !(id == POD_EVICT && facts.evictions_rest) {
            labels.stamp(&operating);
            labels.set(&Prefix::OperationType.key(id), DELETE);
            labels.stamp(keys::PREPARING_TO_DELETE);
        } else if !asked && known && labels.has(&operating) && !labels.has(&Prefix::Operate.key(id)) {
            labels.remove(&operating);
        }
    }
}

/// What comes of a permission to delete: we carry it out, or it is undone when nobody does.
fn end_deletion(pod: &PodView, now: Timestamp, labels: &mut PodLabels, patch: &mut PodPatch) {
    for (id, within) in [(POD_DELETE, DELETE_WITHIN), (POD_EVICT, EVICT_WITHIN)] {
        let Some(since) = labels.since(&Prefix::Operate.key(id), now) else { continue };
        let (due, last) = (since.plus_duration(CARRY_OUT_AFTER), since.plus_duration(within));
        if now >= last {
            labels.sweep(id);
            labels.remove(keys::PREPARING_TO_DELETE);
            if id == POD_DELETE {
                labels.remove(keys::TO_DELETE);
            } else {
                patch.forget.insert(keys::EVICT_REQUESTED);
            }
            continue;
        }
        patch.wake(last);
        if id == POD_EVICT {
            patch.carry_out.get_or_insert(CarryOut::Evict);
        } else if asked_only_once(pod) {
            if now >= due {
                patch.carry_out = Some(CarryOut::Delete);
            } else {
                patch.wake(due);
            }
        }
    }
}

/// Whether who asked for the deletion does not ask again, or not soon: controllers of what deletes its pods in order or has
/// no owner, the collector of what has lost its owner, and evictions for taints.
fn asked_only_once(pod: &PodView) -> bool {
    let by = pod.annotations.get(keys::DELETE_REQUESTED_BY).map(String::as_str).unwrap_or_default();
    let controller =
        by == "system:kube-controller-manager" || by.starts_with("system:serviceaccount:kube-system:");
    let taint = by.ends_with(":taint-eviction-controller") || by.ends_with(":node-controller");
    let collector = by.ends_with(":generic-garbage-collector");
    let owner = pod.owner.as_deref();
    controller && (taint || collector || owner.is_none() || owner == Some("StatefulSet"))
}

/// Whether somebody asks for the pod's deletion; a label that came with its template does not.
pub fn asks_for_deletion(pod: &PodView) -> bool {
    let Some(asked) = pod.labels.get(keys::TO_DELETE) else { return false };
    let template = pod.annotations.get(keys::TO_DELETE_IGNORED) == Some(asked);
    let nanoseconds = |created: Timestamp| i128::from(created.as_microsecond()) * 1_000;
    let older = match (asked.parse::<i128>(), pod.created) {
        // Creation times are cut to the second.
        (Ok(asked), Some(created)) => asked < nanoseconds(created),
        _ => false,
    };
    !template && !older
}

/// One pass over all ids.
fn advance(
    pod: &PodView,
    facts: &PodFacts,
    before: &BTreeMap<String, String>,
    labels: &mut PodLabels,
    patch: &mut PodPatch,
) {
    let ids = labels.ids();
    // Nothing goes past `operated` while somebody prepares or operates.
    let busy = |labels: &PodLabels, id: &String| {
        labels.has(&Prefix::Operating.key(id))
            && (labels.has(&Prefix::Preparing.key(id)) || labels.has(&Prefix::Operate.key(id)))
    };
    for id in &ids {
        let on = |labels: &PodLabels, prefix: Prefix| labels.has(&prefix.key(id));
        let begun = on(labels, Prefix::Operating);
        let operate = on(labels, Prefix::Operate);
        let operated = on(labels, Prefix::Operated);
        let undone = on(labels, Prefix::Undo) && !operated;
        if undone || !(begun || operate || operated) {
            labels.sweep(id);
            continue;
        }
        labels.remove(&Prefix::Undo.key(id));
        if begun {
            if operated {
                // The same id begins anew while its last operation was being completed.
                for old in [
                    Prefix::Operated,
                    Prefix::DoneType,
                    Prefix::PostCheck,
                    Prefix::PostChecked,
                    Prefix::Completing,
                ] {
                    labels.remove(&old.key(id));
                }
            }
            prepare(pod, facts, id, labels, patch);
        } else if operate {
            finish(before, id, labels);
        } else if !ids.iter().any(|other| busy(labels, other)) {
            complete(pod, facts, id, labels);
        }
    }
    labels.drop_permissions();
}

/// From pre-check to the permission.
fn prepare(pod: &PodView, facts: &PodFacts, id: &str, labels: &mut PodLabels, patch: &mut PodPatch) {
    if !labels.has(&Prefix::PreChecked.key(id)) {
        let kind = labels.get(&Prefix::OperationType.key(id)).map(str::to_owned);
        match kind.filter(|_| facts.pre_checked) {
            Some(kind) if labels.has(&Prefix::PreCheck.key(id)) => {
                labels.stamp(&permission(&kind));
                labels.stamp(&Prefix::PreChecked.key(id));
            }
            _ => labels.stamp_if_absent(&Prefix::PreCheck.key(id)),
        }
        return;
    }
    labels.remove(&Prefix::PreCheck.key(id));
    let operate = Prefix::Operate.key(id);
    let preparing = Prefix::Preparing.key(id);
    if labels.has(&operate) {
        labels.remove(&preparing);
    } else if labels.has(&preparing)
        && (may_operate(pod, facts, patch) || gives_up(pod, facts, id, labels, patch))
    {
        labels.remove(&preparing);
        labels.stamp(&operate);
    } else {
        labels.stamp_if_absent(&preparing);
    }
}

/// Whether the pod may be operated on: protected by nobody, its gate not open, out of traffic where we can know, and
/// long enough out of it for those who do not report.
fn may_operate(pod: &PodView, facts: &PodFacts, patch: &mut PodPatch) -> bool {
    let protected = pod.finalizers.iter().any(|finalizer| protects(finalizer));
    let open = pod.gated && pod.gate != Some(false);
    if protected || open || !facts.out_of_traffic {
        return false;
    }
    let (Some(settle), Some(since)) = (facts.settle, pod.gate_since) else { return true };
    // The condition's time is cut to the second.
    let settled = since.plus_duration(settle + Duration::from_secs(1));
    if facts.now < settled {
        patch.wake(settled);
    }
    facts.now >= settled
}

/// Whether the drain before a deletion has taken too long: then the pod goes, whatever holds it.
fn gives_up(pod: &PodView, facts: &PodFacts, id: &str, labels: &mut PodLabels, patch: &mut PodPatch) -> bool {
    if id != POD_DELETE && id != POD_EVICT {
        return false;
    }
    let Some(since) = labels.since(&Prefix::Preparing.key(id), facts.now) else { return false };
    let last = since.plus_duration(facts.drain_timeout);
    if facts.now < last {
        patch.wake(last);
        return false;
    }
    let after = Period::new(facts.drain_timeout).brief();
    patch.given_up = Some(format!("drain given up after {after}: {}", crate::admission::holder(pod)));
    true
}

/// The operation controller is done.
fn finish(before: &BTreeMap<String, String>, id: &str, labels: &mut PodLabels) {
    let key = Prefix::OperationType.key(id);
    let kind = labels
        .get(&key)
        .map(str::to_owned)
        .or_else(|| before.get(&key).cloned())
        .or_else(|| labels.only_permission());
    for old in
        [Prefix::PreCheck, Prefix::PreChecked, Prefix::Preparing, Prefix::Operate, Prefix::OperationType]
    {
        labels.remove(&old.key(id));
    }
    labels.stamp(&Prefix::Operated.key(id));
    if let Some(kind) = kind {
        labels.set(&Prefix::DoneType.key(id), &kind);
    }
}

/// From operated to the end.
fn complete(pod: &PodView, facts: &PodFacts, id: &str, labels: &mut PodLabels) {
    let (check, checked) = (Prefix::PostCheck.key(id), Prefix::PostChecked.key(id));
    if !labels.has(&checked) {
        if labels.has(&check) && facts.post_checked {
            labels.stamp(&checked);
        } else {
            labels.stamp_if_absent(&check);
        }
        return;
    }
    labels.remove(&check);
    if !labels.has(&Prefix::Completing.key(id)) {
        labels.stamp(&Prefix::Completing.key(id));
        return;
    }
    let gate_open = !pod.gated || pod.gate == Some(true);
    if gate_open && pod.entries().satisfied(&pod.finalizers) {
        labels.sweep(id);
    }
}

/// What the gate's condition is to say.
fn gate(pod: &PodView, facts: &PodFacts, labels: &PodLabels) -> Option<bool> {
    if !pod.gated {
        return None;
    }
    let unfinished = labels.any_without(Prefix::Operated, Prefix::Completing);
    let drained = labels.any(Prefix::Preparing) || labels.any(Prefix::Operate);
    let wanted = if labels.has(keys::STAY_OFFLINE) || drained {
        false
    } else if unfinished || (pod.gate.is_none() && !facts.entries_complete) {
        return None;
    } else {
        true
    };
    (pod.gate != Some(wanted)).then_some(wanted)
}

/// The label that says that the pod is available.
fn availability(pod: &PodView, facts: &PodFacts, labels: &mut PodLabels) {
    let offline = labels.has(keys::STAY_OFFLINE);
    let away = [Prefix::Preparing, Prefix::Operate, Prefix::Operated];
    if !pod.ready || offline || away.into_iter().any(|prefix| labels.any(prefix)) {
        labels.remove(keys::SERVICE_AVAILABLE);
    } else if labels.ids().is_empty() && facts.entries_complete && pod.entries().satisfied(&pod.finalizers) {
        labels.stamp_if_absent(keys::SERVICE_AVAILABLE);
        labels.remove(keys::CREATING);
        labels.remove(keys::COMPLETING);
    }
}
