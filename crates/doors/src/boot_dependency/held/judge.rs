//! Whether a held pod may start.

use std::collections::{BTreeMap, BTreeSet};

use linchpin_api::{BootDependency, BootEntry, boot_dependency::OnTimeout};
use linchpin_engine::{
    contract::{Projection, StepId, Want},
    journal::Memory,
    step::{Goal, step},
};
use linchpin_words::{Timestamp, keys};
use serde_json::{Value, json};

use crate::{
    boot_dependency::{BootSet, address::step_names, compile::compile, divide, is_skipped, status::is_met},
    door::CompileInput,
    journal,
    subject::Look,
};

/// A BootDependency that pods are held for, judged in the world as it is.
pub(super) struct Judged {
    /// What must be observed for it.
    pub(super) wants: BTreeSet<Want>,
    object: Option<BootDependency>,
    /// The entries that hold.
    met: BTreeSet<StepId>,
}

/// What becomes of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It starts.
    Release,
    /// It stays, at least until then.
    Hold(Option<Timestamp>),
}

impl Judged {
    /// Judges an object. One that cannot be read or compiled holds what it holds.
    pub(super) fn of(boot: &Projection, look: &Look<'_>, default_service_account: &str) -> Self {
        let nothing = Self { wants: BTreeSet::new(), object: None, met: BTreeSet::new() };
        let metadata = json!({
            "name": boot.name,
            "namespace": boot.namespace,
            "uid": boot.uid,
            "generation": boot.generation,
            "annotations": boot.content["metadata"]["annotations"],
        });
        let whole = json!({"metadata": metadata, "spec": boot.content["spec"]});
        let Ok(object) = serde_json::from_value::<BootDependency>(whole) else {
            return nothing;
        };
        let stored = boot.content["status"].get("journal");
        let memory = match journal::read(stored, &boot.uid) {
            Ok(Some(journal)) => Memory::recovered(journal),
            _ => Memory::fresh(&boot.uid, boot.generation, look.now),
        };
        let kinds = memory.journal.kinds.clone();
        let compile_input =
            CompileInput { facts: look.world, kinds: &kinds, default_service_account, exempt: &[] };
        let Ok(compiled) = compile(&object, &compile_input) else {
            return nothing;
        };
        let decision = step(memory, Goal::Converge(&compiled.plan), look.world, &[], None, look.now);
        let met =
            decision.report.steps.iter().filter(|step| is_met(step)).map(|step| step.id.clone()).collect();
        let wants = compiled.wants.into_iter().chain(decision.wants.iter().cloned()).collect();
        Self { wants, object: Some(object), met }
    }
}

/// Whether all that a pod is held for is there, of all BootDependencies that it is held for.
pub(super) fn pod(
    pod: &Projection,
    owners: &[&str],
    judged: &BTreeMap<&str, Judged>,
    now: Timestamp,
) -> Verdict {
    let annotations = &pod.content["metadata"]["annotations"];
    if is_skipped(annotations) {
        return Verdict::Release;
    }
    let mut verdict = Verdict::Release;
    // A BootDependency that is gone holds nobody.
    for one in owners.iter().filter_map(|owner| judged.get(owner)) {
        let Some(object) = &one.object else {
            return Verdict::Hold(None);
        };
        let bypass = object.metadata.annotations.as_ref().and_then(|map| map.get(keys::SKIP_BOOT_WAIT));
        if bypass.is_some_and(|value| value == "true") {
            continue;
        }
        match of_one(pod, object, &one.met, now) {
            Verdict::Release => (),
            // A pause opens no door, and stops the clocks.
            Verdict::Hold(_) if object.spec.common.suspend => return Verdict::Hold(None),
            Verdict::Hold(until) => {
                let before = if let Verdict::Hold(before) = verdict { before } else { None };
                verdict = Verdict::Hold([before, until].into_iter().flatten().min());
            }
        }
    }
    verdict
}

fn of_one(pod: &Projection, object: &BootDependency, met: &BTreeSet<StepId>, now: Timestamp) -> Verdict {
    let usable = |index: usize| is_carried(&pod.content["spec"], &object.spec.depends_on[index]);
    let set = BootSet::of(object, &usable);
    let division = divide(&pod.content["spec"], std::slice::from_ref(&set));
    let entries: Vec<&BootEntry> = object.spec.depends_on.iter().collect();
    let names = step_names(&entries);
    let mut verdict = Verdict::Release;
    for gated in division.gated.iter().filter(|gated| !met.contains(&gated.entry)) {
        let position = names.iter().position(|named| named.id == gated.entry);
        let given_up =
            position.and_then(|position| set.entries.get(position)).and_then(|(entry, on_timeout, _)| {
                (*on_timeout == OnTimeout::Proceed).then(|| deadline(pod, entry)).flatten()
            });
        match given_up {
            Some(at) if at <= now && !object.spec.common.suspend => (),
            until => {
                let before = if let Verdict::Hold(before) = verdict { before } else { None };
                verdict = Verdict::Hold([before, until].into_iter().flatten().min());
            }
        }
    }
    verdict
}

/// Until when a pod waits for an entry.
fn deadline(pod: &Projection, entry: &BootEntry) -> Option<Timestamp> {
    let created = pod.content["metadata"]["creationTimestamp"].as_str()?;
    let timeout = entry.timeout.as_ref().map_or("60s", |timeout| timeout.0.as_str());
    let period = linchpin_words::Period::parse(timeout).ok()?;
    Some(Timestamp::parse(created).ok()?.plus(period))
}

/// Whether a container of ours in the pod carries what the entry refers to: otherwise the gate stands for it.
fn is_carried(spec: &Value, entry: &BootEntry) -> bool {
    let headers = entry.http_headers.iter().filter_map(|header| header.value_from.as_ref());
    let mut names: Vec<&str> = headers.map(|value| value.secret_key_ref.name.as_str()).collect();
    names.extend(entry.ca_bundle_secret_ref.iter().map(|bundle| bundle.name.as_str()));
    names.extend(entry.ca_bundle_config_map_ref.iter().map(|bundle| bundle.name.as_str()));
    let variables = || {
        let containers = spec["initContainers"].as_array().into_iter().flatten();
        containers.flat_map(|container| container["env"].as_array().into_iter().flatten())
    };
    names.iter().all(|name| {
        variables().any(|variable| {
            let from = &variable["valueFrom"];
            from["secretKeyRef"]["name"] == *name || from["configMapKeyRef"]["name"] == *name
        })
    })
}
