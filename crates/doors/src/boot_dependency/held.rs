//! The pods of a namespace that our scheduling gate holds: released when what they are held for is there.
//!
//! A subject of its own, one for each namespace that has opted in: it has no plan, no status and no memory that a crash
//! could cost. Held pods are found by their label; what each waits for follows from the BootDependencies that select it
//! (`holders`), judged by the engine as those judge it, each as its own identity, in one and the same world. Releases
//! are ordered by [`sweep`](linchpin_engine::sweep); `pod_messages` reports what happens to pods as events.

mod holders;
mod judge;
mod pod_messages;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use linchpin_api::{BootDependency, Ours as _};
use linchpin_engine::{
    contract::{
        Actor, ClusterRef, EffectTarget, Observed, PatchKind, ProbePace, Projection, Question, ReadSet,
        Scope, Seen, Selector, StepId, Verb, Via, Want, World,
    },
    sweep::{ItemKey, SweepItem, SweepMemory, SweepNeed, SweepOrder, sweep},
};
use linchpin_words::{Gvk, KindWord, keys};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::{Value, json};

pub(super) use self::judge::held_for;
pub use self::judge::judge_once;
use self::{
    holders::Selecting,
    judge::{HoldDecision, JudgedDependency},
    pod_messages::PodMessages,
};
use super::{
    chain::{Chains, OwnerChain, controller},
    inject::is_our_gate,
    scope::BootSettings,
};
use crate::{
    registry::{DoorKind, KindNames},
    subject::{Arrival, Asks, Decision, Subject, SubjectInput, SubjectKey},
};

/// Releases that are under way at a time, for one namespace.
const AT_A_TIME: usize = 16;

/// The rule that releases come from.
const RULE: &str = "release";

/// What is read of a held pod.
const POD_READS: [&str; 10] = [
    "metadata.labels",
    "metadata.annotations",
    "metadata.creationTimestamp",
    "metadata.ownerReferences",
    "spec.schedulingGates",
    "spec.initContainers",
    "spec.os",
    "spec.nodeSelector",
    "spec.restartPolicy",
    "status.phase",
];

/// What is read of a BootDependency that pods are held for.
const BOOT_READS: [&str; 3] = ["spec", "metadata.annotations", "status.journal"];

/// What is read of one otherwise.
const SPEC_READS: [&str; 2] = ["spec", "metadata.annotations"];

/// The kind whose objects are the namespaces that have opted in.
pub struct HeldPods(pub Arc<BootSettings>);

impl DoorKind for HeldPods {
    fn names(&self) -> KindNames {
        KindNames {
            gvk: Gvk::new("", "v1", "Namespace"),
            plural: "namespaces".to_owned(),
            short: Vec::new(),
            namespaced: false,
        }
    }

    fn subject(
        &self,
        text: &str,
        default_service_account: &Arc<str>,
    ) -> Result<Box<dyn Subject>, serde_json::Error> {
        let namespace: Namespace = serde_json::from_str(text)?;
        let key = SubjectKey {
            kind: self.names().gvk,
            // In the namespace's own lane: no tenant's pods keep another's waiting.
            namespace: Some(namespace.metadata.name.clone()),
            name: namespace.metadata.name.clone(),
            uid: namespace.metadata.uid.clone(),
        };
        Ok(Box::new(HeldIn {
            key,
            namespace,
            settings: Arc::clone(&self.0),
            default_service_account: Arc::clone(default_service_account),
            touched: false,
            memory: SweepMemory::default(),
            pod_messages: PodMessages::default(),
        }))
    }
}

#[derive(Deserialize)]
struct Namespace {
    metadata: Metadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    name: String,
    uid: String,
    #[serde(default)]
    labels: Value,
    deletion_timestamp: Option<IgnoredAny>,
}

/// The held pods of one namespace.
struct HeldIn {
    key: SubjectKey,
    namespace: Namespace,
    settings: Arc<BootSettings>,
    default_service_account: Arc<str>,
    /// Whether the namespace has opted in since we look after it. Only then is anything in it looked at.
    touched: bool,
    memory: SweepMemory,
    pod_messages: PodMessages,
}

impl Subject for HeldIn {
    fn key(&self) -> &SubjectKey {
        &self.key
    }

    fn is_deleting(&self) -> bool {
        self.namespace.metadata.deletion_timestamp.is_some()
    }

    fn arrived(&mut self, text: &str, _echo: bool) -> Result<Arrival, serde_json::Error> {
        self.namespace = serde_json::from_str(text)?;
        Ok(Arrival::default())
    }

    fn decide(&mut self, look: &SubjectInput<'_>) -> Result<Decision, Asks> {
        let enabled = self.settings.covers(&self.key.name, &self.namespace.metadata.labels);
        self.touched |= enabled;
        let mut decision = Decision::default();
        if !self.touched {
            return Ok(decision);
        }
        let pods_want = held_pods(&self.key.name);
        decision.wants.insert(pods_want.clone());
        self.pod_messages.came_back(look, &mut decision.report);
        let items = match objects(look.world, &pods_want) {
            Some(pods) => self.items(look, pods, enabled, &mut decision),
            None => None,
        };
        let swept = sweep(&self.memory, items.as_ref(), look.outcomes, AT_A_TIME, look.now);
        self.memory = swept.memory;
        self.pod_messages.ordered(&swept.effects);
        decision.effects = swept.effects;
        decision.wake_at = [decision.wake_at, swept.wake_at].into_iter().flatten().min();
        Ok(decision)
    }
}

impl HeldIn {
    /// What each held pod needs; none while that is not known.
    fn items(
        &mut self,
        look: &SubjectInput<'_>,
        pods: &Observed,
        enabled: bool,
        decision: &mut Decision,
    ) -> Option<BTreeMap<ItemKey, SweepItem>> {
        let held: Vec<&Projection> =
            pods.items.iter().map(AsRef::as_ref).filter(|pod| !pod.deleting && has_gate(pod)).collect();
        decision.report.held_pods = Some(held.len());
        self.pod_messages.keep_only(&held);
        if held.is_empty() {
            return Some(BTreeMap::new());
        }
        let boots_want = wanted(&self.key.name, BootDependency::gvk(), Selector::default(), &BOOT_READS);
        decision.wants.insert(boots_want.clone());
        let boots = objects(look.world, &boots_want)?;
        let living = || boots.items.iter().map(AsRef::as_ref).filter(|boot: &&Projection| !boot.deleting);
        let selecting = Selecting::of(living());
        let mut chains = Chains::new(look.world, &self.key.name);
        let held: Vec<(&Projection, OwnerChain, BTreeSet<&str>)> = held
            .into_iter()
            .map(|pod| {
                let chain = chains.of(&pod.name, controller(&pod.content["metadata"]));
                let holders = selecting.holders(pod, &chain);
                (pod, chain, holders)
            })
            .collect();
        let named: BTreeSet<&str> = held.iter().flat_map(|(.., holders)| holders).copied().collect();
        let judged: BTreeMap<&str, JudgedDependency> = living()
            .filter(|boot| named.contains(boot.name.as_str()))
            .map(|boot| {
                let judged =
                    JudgedDependency::of(boot, look, &self.default_service_account, self.settings.domain());
                (boot.name.as_str(), judged)
            })
            .collect();
        for one in judged.values() {
            decision.wants.extend(one.wants.iter().cloned());
            // Somebody is held: what is probed is probed more often.
            decision.wants.extend(one.wants.iter().filter_map(hurried));
        }
        let mut items = BTreeMap::new();
        for (pod, chain, holders) in held {
            let verdict = if enabled && !chain.skipped {
                judge::pod(pod, &holders, &judged, look.now)
            } else {
                HoldDecision::Release
            };
            self.pod_messages.judged(pod, &verdict, &judged, look.now, decision);
            let need = match verdict {
                HoldDecision::Release => {
                    SweepNeed::Due(Box::new(SweepOrder { via: operator(), verb: release(pod) }))
                }
                HoldDecision::Hold(held) => {
                    decision.wake_at = [decision.wake_at, held.until].into_iter().flatten().min();
                    SweepNeed::Held
                }
            };
            let key = ItemKey { rule: StepId::new(RULE), uid: pod.uid.clone() };
            items.insert(key, SweepItem { seen: pod.version, need });
        }
        decision.wants.extend(chains.wants);
        Some(items)
    }
}

/// The question for the held pods of a namespace, asked as the operator itself.
pub(super) fn held_pods(namespace: &str) -> Want {
    wanted(namespace, Gvk::new("", "v1", "Pod"), held(), &POD_READS)
}

/// The question for the BootDependencies of a namespace, for who does not ask how far they are.
pub(super) fn boots_of(namespace: &str) -> Want {
    wanted(namespace, BootDependency::gvk(), Selector::default(), &SPEC_READS)
}

/// A question about objects of a namespace, asked as the operator itself.
pub(super) fn wanted(namespace: &str, kind: Gvk, selector: Selector, reads: &[&str]) -> Want {
    let scope = Scope::Labels { namespace: Some(namespace.to_owned()), selector };
    let reads = ReadSet::dotted(reads.iter().copied());
    Want::new(Question::Objects { via: operator(), kind, scope, reads })
}

/// The same probe, for somebody who is held by it.
fn hurried(want: &Want) -> Option<Want> {
    match want.question() {
        Question::Probe { via, probe, .. } => {
            Some(Want::new(Question::Probe { via: via.clone(), probe: probe.clone(), pace: ProbePace::Held }))
        }
        _ => None,
    }
}

pub(super) fn operator() -> Via {
    Via { cluster: ClusterRef::Here, actor: Actor::Operator }
}

/// The label that finds held pods.
fn held() -> Selector {
    Selector::requirements(vec![format!("{}={}", keys::BOOT_GATE, keys::BOOT_HELD)])
}

pub(super) fn objects<'a>(world: &'a World, want: &Want) -> Option<&'a Observed> {
    match world.get(want) {
        Some(Seen::Objects(observed)) => Some(&**observed),
        _ => None,
    }
}

pub(super) fn has_gate(pod: &Projection) -> bool {
    let gates = pod.content["spec"]["schedulingGates"].as_array();
    gates.is_some_and(|gates| gates.iter().any(is_our_gate))
}

/// The BootDependencies that a pod is held for.
pub(super) fn owners(pod: &Projection) -> Vec<&str> {
    marks(&pod.content).collect()
}

/// The BootDependencies that a pod or a template carries something of.
pub(super) fn marks(object: &Value) -> impl Iterator<Item = &str> {
    let names = object["metadata"]["annotations"][keys::BOOT].as_str().unwrap_or_default();
    names.split(',').filter(|name| !name.is_empty())
}

/// Takes our gate and our label off this very pod; every other gate stays.
fn release(pod: &Projection) -> Verb {
    Verb::Patch {
        target: EffectTarget {
            kind: KindWord::from_manifest(Some("v1"), "Pod"),
            namespace: pod.namespace.clone(),
            name: pod.name.clone(),
        },
        kind: PatchKind::Strategic,
        body: Arc::new(json!({
            "metadata": {"uid": pod.uid, "labels": {(keys::BOOT_GATE): null}},
            "spec": {"schedulingGates": [{"name": keys::BOOT, "$patch": "delete"}]},
        })),
        manager: keys::OPERATOR_FIELD_MANAGER.to_owned(),
        once: false,
    }
}
