//! The workload whose pods a BootDependency holds, as it is seen: the rows of the status, and what is to be repaired.
//!
//! Everything here is looked at as the operator itself, and only in namespaces that have opted in. A Deployment's template
//! carries the containers (the document's way); it follows the set when its template changes, at once where `rollout` says
//! so, and at once where it was created while admission was away, unless that would restart pods that are well. Templates of
//! other kinds are never edited, but for the mark that rolls them under `Immediate`.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use linchpin_api::{
    BootDependency, BootEntry,
    boot_dependency::{Rollout, WorkloadStatus},
};
use linchpin_engine::{
    contract::{
        PatchKind, Projection, Question, ReadSet, Right, Seen, StepId, Target, Verb, Via, Want, World,
    },
    sweep::{Item, ItemKey, Need, Order},
};
use linchpin_words::{Gvk, KindWord, Timestamp, keys, limits, reference::built_in_kind, text};
use serde_json::{Value, json};

use super::{
    chain::{Chains, controller},
    division::{BootSet, divide},
    held::{boots_of, has_gate, held_pods, objects, operator, owners},
    inject::{Gate, Injection, Place, inject},
    scope::BootSettings,
    selection::{OwnerName, WorkloadName, is_skipped, selects},
};

/// What is read of a workload.
const WORKLOAD_READS: [&str; 6] = [
    "metadata.resourceVersion",
    "metadata.creationTimestamp",
    "metadata.annotations",
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
    pub(super) items: Option<BTreeMap<ItemKey, Item>>,
    /// How many pods are held for it; none while that is not known.
    pub(super) held: Option<usize>,
    /// Whether a template carries its set; none while that is not known.
    pub(super) carried: Option<bool>,
    /// Whether the namespace has opted in; none while that is not known.
    pub(super) opted_in: Option<bool>,
}

/// Looks at everything.
pub(super) fn survey(input: &SurveyInput<'_>) -> Survey {
    let mut survey = Survey::default();
    let namespace = input.object.metadata.namespace.as_deref().unwrap_or_default();
    let labels = ReadSet::dotted(["metadata.labels"]);
    let own = Want::object(operator(), Gvk::new("", "v1", "Namespace"), None, namespace, labels);
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
    if let Some(target) = target {
        of_target(input, namespace, &target, held.map_or(0, |held| held.len()), &mut survey);
    } else {
        survey.carried = Some(false);
        survey.items = Some(BTreeMap::new());
        by_owner(input, namespace, &held.unwrap_or_default(), &mut survey);
    }
    survey
}

/// The rows of pods that are selected by their labels: by whom they belong to.
fn by_owner(input: &SurveyInput<'_>, namespace: &str, held: &[&Projection], survey: &mut Survey) {
    let mut chains = Chains::new(input.world, namespace);
    let mut counts: BTreeMap<OwnerName, usize> = BTreeMap::new();
    for pod in held {
        let chain = chains.of(&pod.name, controller(&pod.content["metadata"]));
        if let Some(top) = chain.owners.last() {
            *counts.entry(top.clone()).or_default() += 1;
        }
    }
    survey.wants.append(&mut chains.wants);
    for (owner, count) in counts.into_iter().take(limits::BOOT_WORKLOADS) {
        let name = WorkloadName { group: Some(owner.group), kind: owner.kind, name: owner.name };
        survey.rows.push(row(input, &name, "Current", count, ""));
    }
}

/// The one row of a workload that is named.
fn of_target(
    input: &SurveyInput<'_>,
    namespace: &str,
    target: &WorkloadName,
    held: usize,
    survey: &mut Survey,
) {
    let group = target.group.as_deref().unwrap_or_default();
    let known = built_in_kind(group, &target.kind).filter(|known| READABLE.contains(&known.kind));
    let Some(known) = known else {
        // Nobody gives us the right to read it; its pods get what they need when they are created.
        survey.items = Some(BTreeMap::new());
        survey.carried = Some(false);
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
            survey.carried = Some(false);
            survey.items = Some(BTreeMap::new());
            survey.rows.push(row(input, target, "Refused", held, &why.message));
            return;
        }
        _ => {
            survey.rows.extend(input.before.iter().cloned());
            return;
        }
    };
    let Some(workload) = workload else {
        survey.items = Some(BTreeMap::new());
        survey.carried = Some(false);
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
    survey.carried = Some(own_mark);
    let skipped = [&workload.content["metadata"]["annotations"], &template["metadata"]["annotations"]]
        .into_iter()
        .any(is_skipped)
        || is_bypassed(input.object);
    let selecting: Vec<BootDependency> = boots
        .items
        .iter()
        .filter(|boot| !skipped && !boot.deleting && (boot.name != own_name || !input.going))
        // Reading all of them would take a crowd too long.
        .filter(|boot| target_of(boot).is_none_or(|named| named.name == target.name))
        .filter_map(|boot| boot_of(boot))
        .filter(|boot| !is_bypassed(boot) && selects(boot, &template["metadata"]["labels"], &chain))
        .collect();
    let mut sets = Vec::with_capacity(selecting.len());
    for boot in &selecting {
        let usable: Vec<bool> =
            boot.spec.depends_on.iter().map(|entry| usable(input, boot, entry, &mut survey.wants)).collect();
        sets.push(BootSet::of(boot, &|index| usable.get(index).copied().unwrap_or(false)));
    }
    let plan = Plan::of(known.kind, workload, template, &sets, input, own_mark);
    let key = ItemKey { rule: StepId::new(RULE), uid: workload.uid.clone() };
    let (mut state, mut message) = (plan.state, plan.message);
    if skipped {
        (state, message) = ("Skipped", format!("{} says so", keys::SKIP_BOOT_WAIT));
    } else if let Some(failure) = input.failed.get(&key) {
        (state, message) = ("Refused", failure.clone());
    }
    survey.rows.push(row(input, target, state, held, &message));
    let need = match plan.patch {
        Some(patch) if input.settings.waiter.is_some() || input.going => {
            let kind =
                KindWord::from_manifest(Some(&format!("{}/{}", known.group, known.version)), known.kind);
            let verb = Verb::Patch {
                target: Target { kind, namespace: Some(namespace.to_owned()), name: target.name.clone() },
                kind: PatchKind::Json,
                body: Arc::new(guarded(workload, patch)),
                manager: format!(
                    "{}BootDependency:{namespace}/{own_name}:inject",
                    keys::FIELD_MANAGER_PREFIX
                ),
                once: false,
            };
            Need::Due(Box::new(Order { via: operator(), verb }))
        }
        _ => Need::Settled,
    };
    survey.items = Some(BTreeMap::from([(key, Item { seen: workload.version, need })]));
}

/// What becomes of a workload.
struct Plan {
    state: &'static str,
    message: String,
    /// The operations that repair it, if it is to be repaired now.
    patch: Option<Vec<Value>>,
}

impl Plan {
    fn of(
        kind: &str,
        workload: &Projection,
        template: &Value,
        sets: &[BootSet],
        input: &SurveyInput<'_>,
        own_mark: bool,
    ) -> Self {
        let division = divide(&template["spec"], sets);
        let hash = division.hash();
        let is = template["metadata"]["annotations"][keys::BOOT_HASH].as_str();
        let immediate = input.object.spec.rollout == Some(Rollout::Immediate);
        let quiet = |state, message: &str| Self { state, message: message.to_owned(), patch: None };
        if kind != "Deployment" {
            let rolls = matches!(kind, "StatefulSet" | "DaemonSet") && immediate;
            if !rolls || input.going || is == hash.as_deref() {
                return quiet("Current", "");
            }
            let mut operations = Vec::new();
            if !template["metadata"]["annotations"].is_object() {
                operations
                    .push(json!({"op": "add", "path": "/spec/template/metadata/annotations", "value": {}}));
            }
            let path = format!("/spec/template/metadata/annotations/{}", keys::BOOT_HASH.replace('/', "~1"));
            operations.push(match &hash {
                Some(hash) => json!({"op": "add", "path": path, "value": hash}),
                None => json!({"op": "remove", "path": path}),
            });
            return Self {
                state: "Outdated",
                message: "it is rolled out anew".to_owned(),
                patch: Some(operations),
            };
        }
        let Some(waiter) = &input.settings.waiter else {
            return if is == hash.as_deref() {
                quiet("Current", "")
            } else {
                quiet("Outdated", "the operator serves no webhooks: nothing is put into its template")
            };
        };
        let Injection { patch, skipped } =
            inject(template, Place::DeploymentTemplate, &division, Gate::Open, waiter);
        let mut message = String::new();
        if !skipped.is_empty() {
            message = format!("an init container of its own has the name of ours for {}", skipped.join(", "));
        }
        if patch.is_empty() || is == hash.as_deref() && (hash.is_some() || !own_mark) {
            return Self { state: "Current", message, patch: None };
        }
        let operations =
            || patch.iter().filter_map(|operation| serde_json::to_value(operation).ok()).collect();
        if input.going {
            return Self { state: "Outdated", message, patch: Some(operations()) };
        }
        let missed = is.is_none() && hash.is_some() && created(&workload.content) >= created_of(input.object);
        let well = workload.content["status"]["readyReplicas"].as_i64().unwrap_or_default() > 0;
        if missed && well && !immediate {
            let message = "it was created while admission was away, and its pods are ready: the next rollout repairs it";
            return quiet("Missed", message);
        }
        if missed || immediate {
            return Self {
                state: "Outdated",
                message: "its template is repaired".to_owned(),
                patch: Some(operations()),
            };
        }
        quiet("Outdated", "its template follows at its next change; new pods have the present set")
    }
}

/// The operations for this very version of this very object.
fn guarded(workload: &Projection, operations: Vec<Value>) -> Value {
    let version = &workload.content["metadata"]["resourceVersion"];
    let guards = [
        json!({"op": "replace", "path": "/metadata/uid", "value": workload.uid}),
        json!({"op": "replace", "path": "/metadata/resourceVersion", "value": version}),
    ];
    guards.into_iter().chain(operations).collect()
}

/// The BootDependencies that a template carries something of.
fn marks(template: &Value) -> impl Iterator<Item = &str> {
    template["metadata"]["annotations"][keys::BOOT].as_str().unwrap_or_default().split(',')
}

fn created(content: &Value) -> Option<Timestamp> {
    Timestamp::parse(content["metadata"]["creationTimestamp"].as_str()?).ok()
}

fn created_of(object: &BootDependency) -> Option<Timestamp> {
    object.metadata.creation_timestamp.as_ref().map(|time| Timestamp::from(time.0))
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

/// Whether what an entry refers to may be put into a pod: the account of its object may read it. Unknown is no.
fn usable(
    input: &SurveyInput<'_>,
    boot: &BootDependency,
    entry: &BootEntry,
    wants: &mut BTreeSet<Want>,
) -> bool {
    let namespace = boot.metadata.namespace.as_deref().unwrap_or_default();
    let via = match &boot.spec.common.service_account_name {
        Some(account) => Via::service_account(namespace, account),
        None => Via::service_account(namespace, input.default_service_account),
    };
    references(entry).into_iter().fold(true, |all, (plural, name)| {
        let right = Right {
            verb: "get".to_owned(),
            group: String::new(),
            resource: plural.to_owned(),
            subresource: None,
            namespace: Some(namespace.to_owned()),
            name: Some(name.to_owned()),
        };
        let want = Want::new(Question::Right { via: via.clone(), right });
        let allowed = matches!(input.world.get(&want), Some(Seen::Right(true)));
        wants.insert(want);
        all && allowed
    })
}

/// The Secrets and ConfigMaps that an entry refers to, by plural and name.
pub fn references(entry: &BootEntry) -> Vec<(&'static str, &str)> {
    let headers = entry.http_headers.iter().filter_map(|header| header.value_from.as_ref());
    let mut references: Vec<(&'static str, &str)> =
        headers.map(|value| ("secrets", value.secret_key_ref.name.as_str())).collect();
    references.extend(entry.ca_bundle_secret_ref.iter().map(|bundle| ("secrets", bundle.name.as_str())));
    references
        .extend(entry.ca_bundle_config_map_ref.iter().map(|bundle| ("configmaps", bundle.name.as_str())));
    references
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
    let old = input
        .before
        .iter()
        .find(|old| old.kind == target.kind && old.name == target.name && old.state == state);
    WorkloadStatus {
        api_version,
        kind: target.kind.clone(),
        name: target.name.clone(),
        state: state.to_owned(),
        held: i64::try_from(held).unwrap_or(i64::MAX),
        since: old.map_or(input.now, |old| old.since),
        message: text::line(message),
    }
}
