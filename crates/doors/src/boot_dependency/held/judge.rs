//! Whether a held pod may start.

use std::collections::{BTreeMap, BTreeSet};

use linchpin_api::{BootDependency, BootEntry, boot_dependency::OnTimeout};
use linchpin_engine::{
    contract::{Projection, StepId, Want, World},
    journal::Memory,
    step::{Goal, step},
};
use linchpin_words::{Reason, Timestamp, keys};
use serde_json::Value;

use crate::{
    boot_dependency::{
        BootSet, address::step_names, compile::compile, divide, is_skipped, references, status::is_met,
        survey::boot_of,
    },
    door::CompileInput,
    journal,
    registry::Registry,
    subject::SubjectInput,
};

/// A BootDependency that pods are held for, judged in the world as it is.
pub(super) struct JudgedDependency {
    /// What must be observed for it.
    pub(super) wants: BTreeSet<Want>,
    pub(super) object: Option<BootDependency>,
    /// The entries that hold.
    met: BTreeSet<StepId>,
}

/// What becomes of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum HoldDecision {
    /// It starts.
    Release,
    /// It stays.
    Hold(Held),
}

/// Why a pod stays held.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::boot_dependency) struct Held {
    /// When to look again, if nothing happens before.
    pub(in crate::boot_dependency) until: Option<Timestamp>,
    /// What it waits for: whose entry, and which.
    pub(super) entries: Vec<(String, StepId)>,
    /// What it has waited for too long.
    pub(in crate::boot_dependency) late: Vec<Late>,
}

impl Held {
    fn wake(&mut self, at: Option<Timestamp>) {
        self.until = [self.until, at].into_iter().flatten().min();
    }
}

/// An entry whose timeout is over for a pod, which stays held all the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::boot_dependency) struct Late {
    pub(super) owner: String,
    pub(super) entry: StepId,
    pub(super) timeout: String,
}

impl Late {
    /// What is said of it.
    pub(in crate::boot_dependency) fn text(&self, pod: &str) -> String {
        format!("Pod {pod} has waited {} for {} and stays held", self.timeout, self.entry)
    }
}

impl JudgedDependency {
    /// Judges an object. One that cannot be read or compiled holds what it holds.
    pub(super) fn of(
        boot: &Projection,
        look: &SubjectInput<'_>,
        default_service_account: &str,
        cluster_domain: &str,
    ) -> Self {
        let nothing = Self { wants: BTreeSet::new(), object: None, met: BTreeSet::new() };
        let Some(object) = boot_of(boot) else {
            return nothing;
        };
        let stored = boot.content["status"].get("journal");
        let memory = match journal::read(stored, &boot.uid) {
            Ok(Some(journal)) => Memory::recovered(journal),
            _ => Memory::fresh(&boot.uid, boot.generation, look.now),
        };
        let place = (default_service_account, cluster_domain);
        match judge(&object, memory, look.world, look.registry, place, look.now) {
            Some((met, wants)) => Self { wants, object: Some(object), met },
            None => nothing,
        }
    }
}

/// The entries that hold in a world, and what must be observed to decide; none of an object that cannot be compiled.
fn judge(
    object: &BootDependency,
    memory: Memory,
    world: &World,
    registry: &Registry,
    (default_service_account, cluster_domain): (&str, &str),
    now: Timestamp,
) -> Option<(BTreeSet<StepId>, BTreeSet<Want>)> {
    let kinds = memory.journal.kinds.clone();
    let compile_input = CompileInput {
        registry,
        facts: world,
        kinds: &kinds,
        default_service_account,
        cluster_domain,
        exempt: &[],
        makers: &[],
    };
    let compiled = compile(object, &compile_input).ok()?;
    let decision = step(memory, Goal::Converge(&compiled.plan), world, &[], None, now);
    let records = &decision.memory.journal.steps;
    let by_hand =
        |id: &StepId| records.get(id).is_some_and(|record| record.reason == Some(Reason::Proceeded));
    let steps = decision.report.steps.iter().filter(|step| is_met(step) || by_hand(&step.id));
    let met = steps.map(|step| step.id.clone()).collect();
    let wants = compiled.wants.into_iter().chain(decision.wants.iter().cloned()).collect();
    Some((met, wants))
}

/// What a look at an object's entries finds that nobody follows here: the entries that hold in a world, and what must be
/// known besides. An object that cannot be compiled has none.
pub fn judge_once(
    object: &BootDependency,
    world: &World,
    place: (&str, &str),
    now: Timestamp,
) -> (BTreeSet<StepId>, BTreeSet<Want>) {
    let meta = &object.metadata;
    let uid = meta.uid.as_deref().unwrap_or_default();
    let memory = Memory::fresh(uid, meta.generation.unwrap_or_default(), now);
    // Looked at is what is of Kubernetes' own kinds; of ours nothing is known here.
    judge(object, memory, world, &Registry::default(), place, now).unwrap_or_default()
}

/// Whether all that a pod is held for is there, of all BootDependencies that hold it.
pub(super) fn pod(
    pod: &Projection,
    owners: &BTreeSet<&str>,
    judged: &BTreeMap<&str, JudgedDependency>,
    now: Timestamp,
) -> HoldDecision {
    let annotations = &pod.content["metadata"]["annotations"];
    if is_skipped(annotations) {
        return HoldDecision::Release;
    }
    let mut held = Held::default();
    let mut stays = false;
    // A BootDependency that is gone holds nobody.
    for one in owners.iter().filter_map(|owner| judged.get(owner)) {
        let Some(object) = &one.object else {
            stays = true;
            continue;
        };
        let bypass = object.metadata.annotations.as_ref().and_then(|map| map.get(keys::SKIP_BOOT_WAIT));
        if bypass.is_some_and(|value| value == "true") {
            continue;
        }
        stays |= of_one(pod, object, &|entry| one.met.contains(entry), now, &mut held);
    }
    if stays { HoldDecision::Hold(held) } else { HoldDecision::Release }
}

/// Why one BootDependency holds a pod.
pub(in crate::boot_dependency) fn held_for(
    pod: &Projection,
    object: &BootDependency,
    is_met: &dyn Fn(&StepId) -> bool,
    now: Timestamp,
) -> Held {
    let mut held = Held::default();
    of_one(pod, object, is_met, now, &mut held);
    held
}

/// Whether one BootDependency holds a pod, and why.
fn of_one(
    pod: &Projection,
    object: &BootDependency,
    is_met: &dyn Fn(&StepId) -> bool,
    now: Timestamp,
    held: &mut Held,
) -> bool {
    // A pause opens no door, and stops the clocks.
    let paused = object.spec.common.suspend;
    let usable = |index: usize| is_carried(&pod.content["spec"], &object.spec.depends_on[index]);
    let set = BootSet::of(object, &usable);
    let division = divide(&pod.content["spec"], std::slice::from_ref(&set));
    let entries: Vec<&BootEntry> = object.spec.depends_on.iter().collect();
    let names = step_names(&entries);
    let mut stays = false;
    for gated in division.gated.iter().filter(|gated| paused || !is_met(&gated.entry)) {
        let position = names.iter().position(|named| named.id == gated.entry);
        let Some((entry, on_timeout, _)) = position.and_then(|position| set.entries.get(position)) else {
            continue;
        };
        let timeout = entry.timeout.as_ref().map_or("60s", |timeout| timeout.0.as_str());
        let deadline = deadline(pod, timeout).filter(|_| !paused);
        let over = deadline.is_some_and(|deadline| deadline <= now);
        if over && *on_timeout == OnTimeout::Proceed {
            continue;
        }
        stays = true;
        held.entries.push((gated.owner.clone(), gated.entry.clone()));
        if over {
            let (owner, entry) = (gated.owner.clone(), gated.entry.clone());
            held.late.push(Late { owner, entry, timeout: timeout.to_owned() });
        } else {
            held.wake(deadline);
        }
    }
    stays
}

/// When a pod was created.
pub(super) fn created(pod: &Projection) -> Option<Timestamp> {
    Timestamp::parse(pod.content["metadata"]["creationTimestamp"].as_str()?).ok()
}

/// Until when a pod waits for an entry.
fn deadline(pod: &Projection, timeout: &str) -> Option<Timestamp> {
    Some(created(pod)?.plus(linchpin_words::Period::parse(timeout).ok()?))
}

/// Whether a container of ours in the pod carries what the entry refers to: otherwise the gate holds for it.
fn is_carried(spec: &Value, entry: &BootEntry) -> bool {
    let variables = || {
        let containers = spec["initContainers"].as_array().into_iter().flatten();
        containers.flat_map(|container| container["env"].as_array().into_iter().flatten())
    };
    references(entry).all(|reference| {
        variables().any(|variable| {
            let from = &variable["valueFrom"];
            [&from["secretKeyRef"], &from["configMapKeyRef"]]
                .into_iter()
                .any(|key| key["name"] == reference.name && key["key"] == reference.key)
        })
    })
}
