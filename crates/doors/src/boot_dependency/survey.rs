//! The workload whose pods a BootDependency holds, as it is seen: the rows of the status, and what is to be repaired.
//!
//! Everything here is looked at as the operator itself, and only in namespaces that have opted in. A Deployment's template
//! carries the containers (the document's way); it follows the set when its template changes, at once where `rollout` says
//! so, and at once where it was created while admission was away, unless that would restart pods that are well. Templates of
//! other kinds are never edited, but for the mark that rolls them under `Immediate`.

mod pods;
mod template;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use linchpin_api::{BootDependency, BootEntry, boot_dependency::WorkloadStatus, common::LabelSelector};
use linchpin_engine::{
    contract::{
        EffectTarget, Observed, PatchKind, Projection, Question, ReadSet, Right, Seen, StepId, Verb, Via,
        Want, World,
    },
    sweep::{ItemKey, SweepItem, SweepNeed, SweepOrder},
};
use linchpin_words::{Gvk, KindWord, Timestamp, keys, limits, reference::built_in_kind, text};
use serde_json::{Value, json};

pub use self::pods::ignored_skip;
use self::{
    pods::{held_notes, missed, missed_message, with_labels},
    template::{TemplateRepair, guarded},
};
use super::{
    WaiterSettings,
    chain::{Chains, controller},
    division::{BootSet, Division, divide},
    held::{boots_of, has_gate, held_pods, marks, objects, operator, owners},
    references::{KeyReference, references},
    scope::BootSettings,
    selection::{OwnerName, WorkloadName, is_skipped, selects},
};
use crate::{cluster, door::Tally};

/// What is read of a workload.
const WORKLOAD_READS: [&str; 7] = [
    "metadata.resourceVersion",
    "metadata.creationTimestamp",
    "metadata.annotations",
    "spec.selector",
    "spec.template",
    "status.readyReplicas",
    "status.observedGeneration",
];

/// Kinds whose templates are looked at.
const READABLE: [&str; 5] = ["Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job"];

/// The rule that repairs come from.
const RULE: &str = "workload:repair";

/// Whether an effect is one of ours.
pub(super) fn is_ours(step: &StepId) -> bool {
    step.as_str() == RULE
}

/// What is asked about a BootDependency's workload.
pub(super) struct SurveyInput<'a> {
    pub(super) object: &'a BootDependency,
    pub(super) default_service_account: &'a str,
    pub(super) settings: &'a BootSettings,
    pub(super) world: &'a World,
    pub(super) before: &'a [WorkloadStatus],
    /// What holds, as last decided.
    pub(super) tally: &'a Tally,
    pub(super) now: Timestamp,
    /// Whether it is being deleted: then nothing of it is to stay.
    pub(super) going: bool,
    pub(super) failed: &'a BTreeMap<ItemKey, String>,
}

/// What is found.
#[derive(Default)]
pub(super) struct Survey {
    pub(super) wants: BTreeSet<Want>,
    pub(super) rows: Vec<WorkloadStatus>,
    /// What is to be repaired; none while that is not known.
    pub(super) items: Option<BTreeMap<ItemKey, SweepItem>>,
    /// How many pods are held for it; none while that is not known.
    pub(super) held: Option<usize>,
    /// Whether a template carries its set; none while that is not known.
    pub(super) carried: Option<bool>,
    /// Whether the namespace has opted in; none while that is not known.
    pub(super) opted_in: Option<bool>,
    /// When there may be more to say.
    pub(super) wake_at: Option<Timestamp>,
}

impl Survey {
    /// No template carries the set, and none is to be repaired.
    fn carry_nothing(&mut self) {
        self.items = Some(BTreeMap::new());
        self.carried = Some(false);
    }
}

/// Looks at everything.
pub(super) fn survey(input: &SurveyInput<'_>) -> Survey {
    let mut survey = Survey::default();
    let namespace = input.object.metadata.namespace.as_deref().unwrap_or_default();
    let reads = ReadSet::dotted(["metadata.labels", "metadata.annotations"]);
    let own = Want::object(operator(), Gvk::new("", "v1", "Namespace"), None, namespace, reads);
    survey.wants.insert(own.clone());
    let target = WorkloadName::of(input.object);
    let Some(Seen::Objects(found)) = input.world.get(&own) else { return survey };
    let opted_in = found
        .items
        .first()
        .is_some_and(|found| input.settings.covers(namespace, &found.content["metadata"]["labels"]));
    survey.opted_in = Some(opted_in);
    if !opted_in {
        survey.held = Some(0);
        survey.carried = Some(false);
        survey.items = Some(BTreeMap::new());
        let message = format!("nothing is touched in this namespace: {}", input.settings.opt_in(namespace));
        survey.rows.extend(target.iter().map(|target| row(input, target, "NotOptedIn", 0, &message)));
        return survey;
    }
    let pods_want = held_pods(namespace);
    survey.wants.insert(pods_want.clone());
    let own_name = input.object.metadata.name.as_deref().unwrap_or_default();
    let held: Option<Vec<&Projection>> = objects(input.world, &pods_want).map(|pods| {
        let pods = pods.items.iter().map(AsRef::as_ref).filter(|pod| !pod.deleting && has_gate(pod));
        pods.filter(|pod| owners(pod).contains(&own_name)).collect()
    });
    survey.held = held.as_ref().map(Vec::len);
    let held = held.unwrap_or_default();
    let held_report = held_notes(&held, input.object, input.tally, input.now);
    survey.wake_at = held_report.wake_at;
    let said = &found.items.first().map_or(&Value::Null, |found| &found.content)["metadata"]["annotations"];
    let waiter = input.settings.waiter_of(said);
    if let Some(target) = target {
        if target.group.as_deref() == Some("") && target.kind == "Pod" {
            pods::of_pod(input, namespace, &target, held.len(), &mut survey);
        } else {
            of_target(input, namespace, &target, held.len(), waiter.as_ref(), &mut survey);
        }
    } else {
        survey.carried = Some(false);
        survey.items = Some(BTreeMap::new());
        by_owner(input, namespace, &held, &mut survey);
    }
    let own = input.object.metadata.annotations.as_ref().map_or(Value::Null, |map| json!(map));
    let notes: Vec<String> = held_report.notes.into_iter().chain(ignored_skip(&own)).collect();
    if let Some(row) = survey.rows.first_mut().filter(|_| survey.items.is_some()) {
        add(&mut row.message, &notes);
    }
    survey
}

/// Adds what there is to say to what is said already.
fn add(message: &mut String, notes: &[String]) {
    let parts = [message.as_str()].into_iter().chain(notes.iter().map(String::as_str));
    let parts: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
    *message = text::line(&parts.join("; "));
}

/// The pods with these labels. Without webhooks admission sees none of them, and there is nothing to say of any.
fn selected_pods<'w>(
    input: &SurveyInput<'w>,
    namespace: &str,
    labels: &LabelSelector,
    wants: &mut BTreeSet<Want>,
) -> Option<&'w Observed> {
    let selector = cluster::selector(labels, "spec.selector").ok();
    let want = with_labels(namespace, selector.filter(|_| input.settings.waiter.is_some())?);
    wants.insert(want.clone());
    objects(input.world, &want).filter(|_| !is_bypassed(input.object))
}

/// The rows of pods that are selected by their labels: by whom they belong to. One that belongs to nobody has a row of its own
/// only while there is something to say of it.
fn by_owner(input: &SurveyInput<'_>, namespace: &str, held: &[&Projection], survey: &mut Survey) {
    let mut chains = Chains::new(input.world, namespace);
    let mut counts: BTreeMap<OwnerName, (usize, usize)> = BTreeMap::new();
    let labels = input.object.spec.selector.clone().unwrap_or_default();
    let pods = selected_pods(input, namespace, &labels, &mut survey.wants);
    let missed = pods.map(|pods| missed(pods, input.object)).unwrap_or_default();
    let counted = held.iter().map(|pod| (pod, true)).chain(missed.iter().map(|pod| (pod, false)));
    for (pod, is_held) in counted {
        let chain = chains.of(&pod.name, controller(&pod.content["metadata"]));
        // A workload of its own that bypasses the wait missed nothing.
        if let Some(top) = chain.owners.last().filter(|_| is_held || !chain.skipped) {
            let (held, missed) = counts.entry(top.clone()).or_default();
            *(if is_held { held } else { missed }) += 1;
        }
    }
    let own_name = input.object.metadata.name.as_deref().unwrap_or_default();
    let carrying = pods.into_iter().flat_map(|pods| &pods.items);
    let carrying = carrying.filter(|pod| !pod.deleting && owners(pod).contains(&own_name));
    let makers: BTreeSet<_> = carrying.filter_map(|pod| controller(&pod.content["metadata"])).collect();
    for maker in makers.into_iter().take(limits::BOOT_WORKLOADS) {
        let mut chain = chains.of("", Some(maker));
        if let Some(top) = chain.owners.pop().filter(|_| chain.complete) {
            counts.entry(top).or_default();
        }
    }
    survey.wants.append(&mut chains.wants);
    let more = counts.len().saturating_sub(limits::BOOT_WORKLOADS);
    for (owner, (held, missed)) in counts.into_iter().take(limits::BOOT_WORKLOADS) {
        let name = WorkloadName { group: Some(owner.group), kind: owner.kind, name: owner.name };
        survey.rows.push(match missed {
            0 => row(input, &name, "Current", held, ""),
            missed => row(input, &name, "Missed", held, &missed_message(missed)),
        });
    }
    if let Some(last) = survey.rows.last_mut().filter(|_| more > 0) {
        add(&mut last.message, &[format!("{more} more workloads are not listed")]);
    }
}

/// The one row of a workload that is named.
fn of_target(
    input: &SurveyInput<'_>,
    namespace: &str,
    target: &WorkloadName,
    held: usize,
    waiter: Option<&WaiterSettings>,
    survey: &mut Survey,
) {
    let group = target.group.as_deref().unwrap_or_default();
    let known = built_in_kind(group, &target.kind).filter(|known| READABLE.contains(&known.kind));
    let Some(known) = known else {
        // Nobody gives us the right to read it; its pods get what they need when they are created.
        survey.carry_nothing();
        survey.rows.push(row(
            input,
            target,
            "Current",
            held,
            "its pods get what they wait for when they are created",
        ));
        return;
    };
    let gvk = Gvk::new(known.group, known.version, known.kind);
    let reads = ReadSet::dotted(WORKLOAD_READS);
    let want = Want::object(operator(), gvk, Some(namespace.to_owned()), &target.name, reads);
    survey.wants.insert(want.clone());
    let workload = match input.world.get(&want) {
        Some(Seen::Objects(found)) => found.items.first(),
        Some(Seen::Unknown(why)) if !why.is_passing() => {
            survey.carry_nothing();
            survey.rows.push(row(input, target, "Refused", held, &why.message));
            return;
        }
        _ => {
            survey.rows.extend(input.before.iter().cloned());
            return;
        }
    };
    let Some(workload) = workload else {
        survey.carry_nothing();
        survey.rows.push(row(input, target, "Absent", held, "it does not exist"));
        return;
    };
    let boots_want = boots_of(namespace);
    survey.wants.insert(boots_want.clone());
    let Some(boots) = objects(input.world, &boots_want) else {
        survey.rows.extend(input.before.iter().cloned());
        return;
    };
    let template = &workload.content["spec"]["template"];
    let chain =
        [OwnerName { group: known.group.to_owned(), kind: known.kind.to_owned(), name: target.name.clone() }];
    let own_name = input.object.metadata.name.as_deref().unwrap_or_default();
    let own_mark = marks(template).any(|name| name == own_name);
    let annotations = [&workload.content["metadata"]["annotations"], &template["metadata"]["annotations"]];
    let skipped = annotations.into_iter().any(is_skipped) || is_bypassed(input.object);
    let sets = if skipped {
        Some(Vec::new())
    } else {
        sets(input, boots, target, template, &chain, &mut survey.wants)
    };
    let Some(sets) = sets else {
        survey.rows.extend(input.before.iter().cloned());
        return;
    };
    let division = divide(&template["spec"], &sets);
    let plan = TemplateRepair::of(known.kind, workload, template, input, own_mark, &division, waiter);
    survey.carried = Some(plan.carried);
    let key = ItemKey { rule: StepId::new(RULE), uid: workload.uid.clone() };
    let (mut state, mut message) = (plan.state, plan.message);
    if skipped {
        (state, message) = ("Skipped", format!("{} says so", keys::SKIP_BOOT_WAIT));
    } else if let Some(failure) = input.failed.get(&key) {
        (state, message) = ("Refused", failure.clone());
    } else if state == "Current" && misses_pods(known.kind, &division) {
        let labels = serde_json::from_value(workload.content["spec"]["selector"].clone()).unwrap_or_default();
        let pods = selected_pods(input, namespace, &labels, &mut survey.wants);
        let missed = pods.map_or(0, |pods| missed(pods, input.object).len());
        if missed > 0 {
            state = "Missed";
            add(&mut message, &[missed_message(missed)]);
        }
    }
    let ignored: Vec<String> = annotations.into_iter().filter_map(ignored_skip).take(1).collect();
    add(&mut message, &ignored);
    survey.rows.push(row(input, target, state, held, &message));
    let need = match plan.patch {
        Some(patch) if input.settings.waiter.is_some() || input.going => {
            let kind =
                KindWord::from_manifest(Some(&format!("{}/{}", known.group, known.version)), known.kind);
            let verb = Verb::Patch {
                target: EffectTarget {
                    kind,
                    namespace: Some(namespace.to_owned()),
                    name: target.name.clone(),
                },
                kind: PatchKind::Json,
                body: Arc::new(guarded(workload, patch)),
                manager: format!(
                    "{}BootDependency:{namespace}/{own_name}:inject",
                    keys::FIELD_MANAGER_PREFIX
                ),
                once: false,
            };
            SweepNeed::Due(Box::new(SweepOrder { via: operator(), verb }))
        }
        _ => SweepNeed::Settled,
    };
    survey.items = Some(BTreeMap::from([(key, SweepItem { seen: workload.version, need })]));
}

/// The sets of all BootDependencies that select a workload; none while that is not known.
fn sets(
    input: &SurveyInput<'_>,
    boots: &Observed,
    target: &WorkloadName,
    template: &Value,
    chain: &[OwnerName],
    wants: &mut BTreeSet<Want>,
) -> Option<Vec<BootSet>> {
    let own_name = input.object.metadata.name.as_deref().unwrap_or_default();
    let selecting = boots
        .items
        .iter()
        .filter(|boot| !boot.deleting && (boot.name != own_name || !input.going))
        // Reading all of them would take a crowd too long.
        .filter(|boot| target_of(boot).is_none_or(|named| named.name == target.name))
        .filter_map(|boot| boot_of(boot))
        .filter(|boot| !is_bypassed(boot) && selects(boot, &template["metadata"]["labels"], chain));
    let mut sets = Some(Vec::new());
    for boot in selecting {
        // All of them are asked, also where one is not known yet.
        let usable: Vec<Option<bool>> =
            boot.spec.depends_on.iter().map(|entry| usable(input, &boot, entry, wants)).collect();
        let usable: Option<Vec<bool>> = usable.into_iter().collect();
        match (&mut sets, usable) {
            (Some(sets), Some(usable)) => {
                sets.push(BootSet::of(&boot, &|index| usable.get(index).copied().unwrap_or(false)));
            }
            _ => sets = None,
        }
    }
    sets
}

/// Whether pods get their part at their own admission alone. Those of a Deployment have it from its template, but for
/// what only a gate holds for.
fn misses_pods(kind: &str, division: &Division) -> bool {
    match kind {
        "Deployment" => division.carried.is_empty() && !division.gated.is_empty(),
        _ => !division.owners.is_empty(),
    }
}

fn is_bypassed(object: &BootDependency) -> bool {
    let annotations = object.metadata.annotations.as_ref();
    annotations.and_then(|map| map.get(keys::SKIP_BOOT_WAIT)).is_some_and(|value| value == "true")
}

/// The workload that a BootDependency names, without reading all of it; none where it selects pods by their labels.
pub(super) fn target_of(boot: &Projection) -> Option<WorkloadName> {
    let spec = &boot.content["spec"];
    let target = spec.get("targetRef").and_then(|target| serde_json::from_value(target.clone()).ok());
    match target {
        Some(target) => Some(WorkloadName::named(&target)),
        None if spec.get("selector").is_some() => None,
        None => Some(WorkloadName::deployment(&boot.name)),
    }
}

/// A BootDependency as it was seen.
pub(super) fn boot_of(boot: &Projection) -> Option<BootDependency> {
    let metadata = json!({
        "name": boot.name,
        "namespace": boot.namespace,
        "uid": boot.uid,
        "generation": boot.generation,
        "annotations": boot.content["metadata"]["annotations"],
    });
    serde_json::from_value(json!({"metadata": metadata, "spec": boot.content["spec"]})).ok()
}

/// Whether what an entry refers to may be put into a pod: the account of its object may get it, and it is there. None while
/// that is not known.
fn usable(
    input: &SurveyInput<'_>,
    boot: &BootDependency,
    entry: &BootEntry,
    wants: &mut BTreeSet<Want>,
) -> Option<bool> {
    let namespace = boot.metadata.namespace.as_deref().unwrap_or_default();
    let via = match &boot.spec.common.service_account_name {
        Some(account) => Via::service_account(namespace, account),
        None => Via::service_account(namespace, input.default_service_account),
    };
    let mut all = Some(true);
    for reference in references(entry) {
        let right = Right {
            verb: "get".to_owned(),
            group: String::new(),
            resource: reference.holder.plural().to_owned(),
            subresource: None,
            namespace: Some(namespace.to_owned()),
            name: Some(reference.name.to_owned()),
        };
        let right = Want::new(Question::Right { via: via.clone(), right });
        let allowed = match input.world.get(&right) {
            Some(Seen::Right(allowed)) => Some(*allowed),
            Some(Seen::Unknown(why)) if !why.is_passing() => Some(false),
            _ => None,
        };
        wants.insert(right);
        let there = if allowed == Some(true) { is_there(input, &via, &reference, wants) } else { allowed };
        all = match (all, there) {
            (Some(false), _) | (_, Some(false)) => Some(false),
            (Some(true), known) => known,
            (None, _) => None,
        };
    }
    all
}

/// Whether a key is there that an account may get. Where it may get it and nothing else, that is all that is asked.
fn is_there(
    input: &SurveyInput<'_>,
    via: &Via,
    reference: &KeyReference<'_>,
    wants: &mut BTreeSet<Want>,
) -> Option<bool> {
    let namespace = input.object.metadata.namespace.clone();
    let reads = ReadSet::dotted(["data"]);
    let want = Want::object(via.clone(), reference.holder.kind(), namespace, reference.name, reads);
    let there = match input.world.get(&want) {
        Some(Seen::Objects(found)) => {
            Some(found.items.first().is_some_and(|found| reference.is_in(&found.content)))
        }
        Some(Seen::Unknown(why)) if !why.is_passing() => Some(true),
        _ => None,
    };
    wants.insert(want);
    there
}

/// A row, with the moment at which its state began.
fn row(
    input: &SurveyInput<'_>,
    target: &WorkloadName,
    state: &str,
    held: usize,
    message: &str,
) -> WorkloadStatus {
    let group = target.group.clone().unwrap_or_default();
    let api_version = match built_in_kind(&group, &target.kind) {
        Some(known) if known.group.is_empty() => known.version.to_owned(),
        Some(known) => format!("{}/{}", known.group, known.version),
        None => {
            let written = input.object.spec.target_ref.as_ref();
            written.and_then(|written| written.api_version.clone()).unwrap_or(group)
        }
    };
    // As people see it: nobody but the schema has looked at these texts.
    let (kind, name) = (text::line(&target.kind), text::line(&target.name));
    let old = input.before.iter().find(|old| old.kind == kind && old.name == name && old.state == state);
    WorkloadStatus {
        api_version: text::line(&api_version),
        kind,
        name,
        state: state.to_owned(),
        held: i64::try_from(held).unwrap_or(i64::MAX),
        since: old.map_or(input.now, |old| old.since),
        message: text::line(message),
    }
}
