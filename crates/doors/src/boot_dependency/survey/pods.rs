//! The pods of a workload as far as admission missed them, and what is said of those that are held.
//!
//! A pod that admission saw has our mark, whether it waits or not. One without it that is not older than the
//! BootDependency was created while admission was away: it cannot be changed any more, so it is counted and reported,
//! never evicted.

use std::collections::{BTreeMap, BTreeSet};

use linchpin_api::BootDependency;
use linchpin_engine::contract::{Observed, Projection, ReadSet, Seen, Selector, StepId, Want};
use linchpin_words::{Gvk, Timestamp, keys};
use serde_json::Value;

use super::{
    Survey, SurveyInput, is_bypassed, row,
    template::{created, created_of},
};
use crate::{
    boot_dependency::{
        held::{held_for, operator, owners, wanted},
        selection::{WorkloadName, is_skipped},
    },
    door::Tally,
};

/// What is read of pods to know whether admission saw them.
const POD_READS: [&str; 4] =
    ["metadata.annotations", "metadata.creationTimestamp", "metadata.ownerReferences", "status.phase"];

/// Written by the kubelet on pods that only mirror one of its own.
const MIRROR: &str = "kubernetes.io/config.mirror";

/// The question for pods with these labels.
pub(super) fn with_labels(namespace: &str, selector: Selector) -> Want {
    wanted(namespace, Gvk::new("", "v1", "Pod"), selector, &POD_READS)
}

/// The one row of a pod that is named itself.
pub(super) fn of_pod(
    input: &SurveyInput<'_>,
    namespace: &str,
    target: &WorkloadName,
    held: usize,
    survey: &mut Survey,
) {
    let kind = Gvk::new("", "v1", "Pod");
    let reads = ReadSet::dotted(POD_READS);
    let want = Want::object(operator(), kind, Some(namespace.to_owned()), &target.name, reads);
    survey.wants.insert(want.clone());
    // A pod cannot be changed any more: nothing of it is ever repaired.
    survey.carried = Some(false);
    survey.items = Some(BTreeMap::new());
    let (state, message) = match input.world.get(&want) {
        Some(Seen::Objects(found)) => match found.items.first() {
            None => ("Absent", "it does not exist".to_owned()),
            Some(pod) if is_bypassed(input.object) || is_skipped(&pod.content["metadata"]["annotations"]) => {
                ("Skipped", format!("{} says so", keys::SKIP_BOOT_WAIT))
            }
            Some(_) if input.settings.waiter.is_some() && !missed(found, input.object).is_empty() => {
                ("Missed", missed_message(1))
            }
            Some(_) => ("Current", String::new()),
        },
        Some(Seen::Unknown(why)) if !why.is_passing() => ("Refused", why.message.clone()),
        _ => {
            survey.items = None;
            survey.rows.extend(input.before.iter().cloned());
            return;
        }
    };
    survey.rows.push(row(input, target, state, held, &message));
}

/// Those that were created while admission was away.
pub(super) fn missed<'p>(pods: &'p Observed, object: &BootDependency) -> Vec<&'p Projection> {
    let own_name = object.metadata.name.as_deref().unwrap_or_default();
    let begun = created_of(object);
    let is_missed = |pod: &&Projection| {
        let annotations = &pod.content["metadata"]["annotations"];
        let phase = pod.content["status"]["phase"].as_str().unwrap_or_default();
        !pod.deleting
            && !["Succeeded", "Failed"].contains(&phase)
            && !owners(pod).contains(&own_name)
            && !is_skipped(annotations)
            && annotations.get(MIRROR).is_none()
            && begun.is_some()
            && created(&pod.content) >= begun
    };
    pods.items.iter().map(AsRef::as_ref).filter(is_missed).collect()
}

/// What is said of so many.
pub(super) fn missed_message(count: usize) -> String {
    let pods = if count == 1 { "1 pod was" } else { &format!("{count} pods were") };
    format!("{pods} created before admission knew of this object, or while it was away, and did not wait")
}

/// What is said of held pods: what they have waited for too long, and what does not bypass the wait.
#[derive(Default)]
pub(super) struct HeldNotes {
    pub(super) notes: Vec<String>,
    /// When there may be more to say.
    pub(super) wake_at: Option<Timestamp>,
}

/// Looks at the pods that are held for an object.
pub(super) fn held_notes(
    held: &[&Projection],
    object: &BootDependency,
    tally: &Tally,
    now: Timestamp,
) -> HeldNotes {
    let mut found = HeldNotes::default();
    let mut late = BTreeSet::new();
    let is_met = |entry: &StepId| !tally.unmet.contains(entry);
    for pod in held {
        let why = held_for(pod, object, &is_met, now);
        found.wake_at = [found.wake_at, why.until].into_iter().flatten().min();
        late.extend(why.late.into_iter().map(|late| late.text(&pod.name)));
    }
    let more = late.len().saturating_sub(1);
    found.notes.extend(late.into_iter().next().map(|first| match more {
        0 => first,
        more => format!("{first} (and {more} more)"),
    }));
    let odd = held.iter().find_map(|pod| {
        let note = ignored_skip(&pod.content["metadata"]["annotations"])?;
        Some(format!("Pod {}: {note}", pod.name))
    });
    found.notes.extend(odd);
    found
}

/// What is said of a value that does not bypass the wait.
pub fn ignored_skip(annotations: &Value) -> Option<String> {
    let value = annotations.get(keys::SKIP_BOOT_WAIT)?.as_str()?;
    (value != "true").then(|| {
        let shown: String = value.chars().take(32).collect();
        format!("{}: {shown:?} is ignored: only \"true\" bypasses the wait", keys::SKIP_BOOT_WAIT)
    })
}
