//! What holds a pod: its gates, the scheduler, its volumes, its containers, its node.

use linchpin_words::{GroupKind, Gvk, keys};
use serde_json::Value;

use super::{
    DescendAnswers, DescendQuestion, DescendRelation, Descent, ObjectAddress, condition_is, events, named,
    namespace, newest_event, said, text, time,
};
use crate::readiness::{
    self, Nothing, ReadinessOptions, State,
    subject::{flag, list, number},
};

/// Why a container is not there yet, where that names no cause.
const COMING: [&str; 2] = ["PodInitializing", "ContainerCreating"];
/// What the kubelet reports of a pod whose containers cannot be made.
const NOT_MADE: [&str; 4] =
    ["FailedMount", "FailedAttachVolume", "FailedCreatePodSandBox", "FailedCreatePodContainer"];

fn claim() -> Gvk {
    Gvk::new("", "v1", "PersistentVolumeClaim")
}

fn node() -> Gvk {
    Gvk::new("", "v1", "Node")
}

fn claim_names(object: &Value) -> impl Iterator<Item = &str> {
    let volumes = list(object, &["spec", "volumes"]).iter();
    volumes
        .map(|volume| text(volume, &["persistentVolumeClaim", "claimName"]))
        .filter(|name| !name.is_empty())
}

pub(super) fn questions(object: &Value) -> Vec<DescendQuestion> {
    let mut questions = vec![events(object)];
    questions.extend(claim_names(object).map(|name| named(&claim(), Some(namespace(object)), name)));
    let node_name = text(object, &["spec", "nodeName"]);
    if !node_name.is_empty() {
        questions.push(named(&node(), None, node_name));
    }
    questions
}

pub(super) fn pod(object: &Value, answers: &DescendAnswers, here: Descent) -> Descent {
    if let Some(gated) = gates(object) {
        let here = here.because("SchedulingGated", gated);
        return match holder(object) {
            Some(holder) => here.goes_on(DescendRelation::Uses, holder),
            None => here,
        };
    }
    if let Some(scheduled) = condition_is(object, "PodScheduled", "False") {
        return unscheduled(object, scheduled, answers, here);
    }
    if let Some(node) = lost_node(object, answers) {
        return here.goes_on(DescendRelation::Uses, node);
    }
    let coming = COMING.contains(&here.lack.reason.as_str());
    if coming && let Some(event) = newest_event(object, answers, &NOT_MADE) {
        let (reason, message) = said(event);
        return here.because(reason, message);
    }
    match crashed(object) {
        Some(last) if here.lack.reason == "CrashLoopBackOff" => {
            let message = format!("{}: {last}", here.lack.message);
            here.because("CrashLoopBackOff", message)
        }
        _ => here,
    }
}

fn gates(object: &Value) -> Option<String> {
    let gates = list(object, &["spec", "schedulingGates"]).iter().map(|gate| text(gate, &["name"]));
    let gates: Vec<&str> = gates.collect();
    match gates.as_slice() {
        [] => None,
        [one] => Some(format!("held by scheduling gate {one}")),
        several => Some(format!("held by scheduling gates {}", several.join(", "))),
    }
}

/// The BootDependency that our own gate belongs to, the first of them.
fn holder(object: &Value) -> Option<ObjectAddress> {
    let ours =
        list(object, &["spec", "schedulingGates"]).iter().any(|gate| text(gate, &["name"]) == keys::BOOT);
    let name = text(object, &["metadata", "annotations", keys::BOOT]).split(',').next().unwrap_or_default();
    let kind = Gvk::new("core.bootchain-operator.ruicoelho.dev", "v1alpha1", "BootDependency");
    let place = || ObjectAddress { kind, namespace: Some(namespace(object)), name: name.to_owned() };
    (ours && !name.is_empty()).then(place)
}

/// A pod without a node: because of a claim of its own, or as the scheduler says.
fn unscheduled(object: &Value, scheduled: &Value, answers: &DescendAnswers, here: Descent) -> Descent {
    let (reason, message) = said(scheduled);
    let since = time(scheduled, &["lastTransitionTime"]);
    // The scheduler names claims in prose only; a claim that it does not speak of is not why there is no node.
    let speaks = |word: &str| message.to_ascii_lowercase().contains(word);
    if speaks("persistentvolumeclaim") || speaks("binding volumes") {
        let unbound = claim_names(object).find(|name| {
            let question = named(&claim(), Some(namespace(object)), name);
            let found = answers.objects(&question);
            !answers.is_hidden(&question)
                && found.iter().all(|one| text(one, &["status", "phase"]) != "Bound")
        });
        if let Some(name) = unbound {
            let place =
                ObjectAddress { kind: claim(), namespace: Some(namespace(object)), name: name.to_owned() };
            return here.since(since).goes_on(DescendRelation::Uses, place);
        }
    }
    let message = format!(
        "not scheduled: {}",
        if message.is_empty() { "no node has been chosen yet" } else { &message }
    );
    here.because(if reason.is_empty() { "Unschedulable".to_owned() } else { reason }, message).since(since)
}

/// The pod's node, if it is not ready.
fn lost_node(object: &Value, answers: &DescendAnswers) -> Option<ObjectAddress> {
    let name = text(object, &["spec", "nodeName"]);
    let found = answers.objects(&named(&node(), None, name));
    let kind = GroupKind::new("", "Node");
    let ready =
        |one: &Value| readiness::verdict(&kind, one, &ReadinessOptions::default(), &Nothing).state.is_ready();
    let lost = !name.is_empty() && found.iter().any(|one| !ready(one));
    lost.then(|| ObjectAddress { kind: node(), namespace: None, name: name.to_owned() })
}

/// The last line that a container which ended badly left behind.
fn crashed(object: &Value) -> Option<String> {
    let mut ended = containers(object).filter_map(|container| {
        let last = ["state", "lastState"].iter().find(|state| {
            number(container, &[state, "terminated", "exitCode"]).is_some_and(|code| code != 0)
        })?;
        last_line(text(container, &[last, "terminated", "message"]))
    });
    ended.next()
}

fn last_line(text: &str) -> Option<String> {
    text.lines().map(str::trim).rfind(|line| !line.is_empty()).map(str::to_owned)
}

/// How a pod of a job that failed ended: `Pod migrate-x7f: container migrate: exit code 3: no such table`.
pub(super) fn exit_summary(object: &Value) -> Option<String> {
    let ended = containers(object).find_map(|container| {
        let state = ["state", "lastState"].iter().find(|state| {
            number(container, &[state, "terminated", "exitCode"]).is_some_and(|code| code != 0)
        })?;
        let code = number(container, &[state, "terminated", "exitCode"])?;
        Some(format!("container {}: exit code {code}", text(container, &["name"])))
    })?;
    let line = crashed(object).map_or_else(String::new, |line| format!(": {line}"));
    Some(format!("Pod {}: {ended}{line}", text(object, &["metadata", "name"])))
}

fn containers(object: &Value) -> impl Iterator<Item = &Value> {
    let groups = ["initContainerStatuses", "containerStatuses"];
    groups.into_iter().flat_map(|group| list(object, &["status", group]))
}

/// The pod that matters among several: failed before waiting before unschedulable before not ready, the oldest first.
pub(super) fn worst<'a>(pods: impl Iterator<Item = &'a Value>) -> Option<&'a Value> {
    let ranked = pods.filter_map(|pod| Some((badness(pod)?, pod)));
    let age =
        |pod: &'a Value| (text(pod, &["metadata", "creationTimestamp"]), text(pod, &["metadata", "name"]));
    ranked.min_by_key(|(badness, pod)| (*badness, age(pod))).map(|(_, pod)| pod)
}

/// How much a pod deserves attention, the least first; none if it is as it should be.
fn badness(pod: &Value) -> Option<u8> {
    let verdict = readiness::verdict(&GroupKind::new("", "Pod"), pod, &ReadinessOptions::default(), &Nothing);
    let waits = |container: &Value| {
        let reason = text(container, &["state", "waiting", "reason"]);
        let ended = number(container, &["state", "terminated", "exitCode"]).is_some_and(|code| code != 0);
        !flag(container, &["ready"]) && (ended || !reason.is_empty() && !COMING.contains(&reason))
    };
    match verdict.state {
        State::Ready | State::Completed => None,
        State::Failed => Some(0),
        _ if containers(pod).any(waits) => Some(1),
        _ if condition_is(pod, "PodScheduled", "False").is_some() => Some(2),
        _ => Some(3),
    }
}
