//! The pods of a namespace that our scheduling gate holds: released when what they are held for is there.
//!
//! A subject of its own, one for each namespace that has opted in: it has no plan, no status and no memory that a crash
//! could cost. Held pods are found by their label; what each waits for follows from the BootDependencies that its
//! annotation names, judged by the engine as those judge it, each as its own identity, in one and the same world.
//! Releases are ordered by [`sweep`](linchpin_engine::sweep).

mod judge;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use linchpin_api::{BootDependency, Ours as _, common::LabelSelector};
use linchpin_engine::{
    contract::{
        Actor, ClusterRef, Observed, PatchKind, Projection, Question, ReadSet, Scope, Seen, Selector, StepId,
        Target, Verb, Via, Want,
    },
    sweep::{Item, ItemKey, Need, Order, SweepMemory, sweep},
};
use linchpin_words::{Gvk, KindWord, keys};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::{Value, json};

use self::judge::{Judged, Verdict};
use super::label_selector_matches;
use crate::{
    registry::{Kind, Names},
    subject::{Arrival, Asks, Decision, Look, Subject, SubjectKey},
};

/// Releases that are under way at a time, for one namespace.
const AT_A_TIME: usize = 16;

/// The rule that releases come from.
const RULE: &str = "release";

/// What is read of a held pod.
const POD_READS: [&str; 9] = [
    "metadata.labels",
    "metadata.annotations",
    "metadata.creationTimestamp",
    "spec.schedulingGates",
    "spec.initContainers",
    "spec.os",
    "spec.nodeSelector",
    "spec.restartPolicy",
    "status.phase",
];

/// What is read of a BootDependency.
const BOOT_READS: [&str; 3] = ["spec", "metadata.annotations", "status.journal"];

/// The kind whose objects are the namespaces that have opted in.
pub struct HeldPods {
    /// Which namespaces these are.
    pub namespaces: LabelSelector,
}

impl Kind for HeldPods {
    fn names(&self) -> Names {
        Names {
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
            selector: self.namespaces.clone(),
            default_service_account: Arc::clone(default_service_account),
            touched: false,
            memory: SweepMemory::default(),
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
    selector: LabelSelector,
    default_service_account: Arc<str>,
    /// Whether the namespace has opted in since we look after it. Only then is anything in it looked at.
    touched: bool,
    memory: SweepMemory,
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

    fn decide(&mut self, look: &Look<'_>) -> Result<Decision, Asks> {
        let enabled = label_selector_matches(&self.selector, &self.namespace.metadata.labels);
        self.touched |= enabled;
        let mut decision = Decision::default();
        if !self.touched {
            return Ok(decision);
        }
        let pods_want = self.wanted(Gvk::new("", "v1", "Pod"), held(), &POD_READS);
        decision.wants.insert(pods_want.clone());
        let items = match objects(look, &pods_want) {
            Some(pods) => self.items(look, pods, enabled, &mut decision),
            None => None,
        };
        let swept = sweep(&self.memory, items.as_ref(), look.outcomes, AT_A_TIME, look.now);
        self.memory = swept.memory;
        decision.effects = swept.effects;
        decision.wake_at = [decision.wake_at, swept.wake_at].into_iter().flatten().min();
        Ok(decision)
    }
}

impl HeldIn {
    /// What each held pod needs; none while that is not known.
    fn items(
        &self,
        look: &Look<'_>,
        pods: &Observed,
        enabled: bool,
        decision: &mut Decision,
    ) -> Option<BTreeMap<ItemKey, Item>> {
        let held: Vec<&Projection> =
            pods.items.iter().map(AsRef::as_ref).filter(|pod| !pod.deleting && has_gate(pod)).collect();
        if held.is_empty() {
            return Some(BTreeMap::new());
        }
        let boots_want = self.wanted(BootDependency::gvk(), Selector::default(), &BOOT_READS);
        decision.wants.insert(boots_want.clone());
        let boots = objects(look, &boots_want)?;
        let named: BTreeSet<&str> = held.iter().flat_map(|pod| owners(pod)).collect();
        let judged: BTreeMap<&str, Judged> = boots
            .items
            .iter()
            .filter(|boot| !boot.deleting && named.contains(boot.name.as_str()))
            .map(|boot| (boot.name.as_str(), Judged::of(boot, look, &self.default_service_account)))
            .collect();
        for one in judged.values() {
            decision.wants.extend(one.wants.iter().cloned());
        }
        let mut items = BTreeMap::new();
        for pod in held {
            let verdict =
                if enabled { judge::pod(pod, &owners(pod), &judged, look.now) } else { Verdict::Release };
            let need = match verdict {
                Verdict::Release => Need::Due(Box::new(Order { via: operator(), verb: release(pod) })),
                Verdict::Hold(until) => {
                    decision.wake_at = [decision.wake_at, until].into_iter().flatten().min();
                    Need::Held
                }
            };
            let key = ItemKey { rule: StepId::new(RULE), uid: pod.uid.clone() };
            items.insert(key, Item { seen: pod.version, need });
        }
        Some(items)
    }

    /// A question about objects of this namespace, asked as the operator itself.
    fn wanted(&self, kind: Gvk, selector: Selector, reads: &[&str]) -> Want {
        let scope = Scope::Labels { namespace: Some(self.key.name.clone()), selector };
        let reads = ReadSet::dotted(reads.iter().copied());
        Want::new(Question::Objects { via: operator(), kind, scope, reads })
    }
}

fn operator() -> Via {
    Via { cluster: ClusterRef::Here, actor: Actor::Operator }
}

/// The label that finds held pods.
fn held() -> Selector {
    Selector::requirements(vec![format!("{}={}", keys::BOOT_GATE, keys::BOOT_HELD)])
}

fn objects<'a>(look: &Look<'a>, want: &Want) -> Option<&'a Observed> {
    match look.world.get(want) {
        Some(Seen::Objects(observed)) => Some(&**observed),
        _ => None,
    }
}

fn has_gate(pod: &Projection) -> bool {
    let gates = pod.content["spec"]["schedulingGates"].as_array();
    gates.is_some_and(|gates| gates.iter().any(|gate| gate["name"] == keys::BOOT))
}

/// The BootDependencies that a pod is held for.
fn owners(pod: &Projection) -> Vec<&str> {
    let names = pod.content["metadata"]["annotations"][keys::BOOT].as_str().unwrap_or_default();
    names.split(',').filter(|name| !name.is_empty()).collect()
}

/// Takes our gate and our label off this very pod; every other gate stays.
fn release(pod: &Projection) -> Verb {
    Verb::Patch {
        target: Target {
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
