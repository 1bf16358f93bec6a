//! From what keeps pods to the pod that matters: the worst one, or what keeps pods from being made at all.

use linchpin_words::{GroupKind, Gvk};
use serde_json::Value;

use super::{
    DescendAnswers, DescendQuestion, DescendRelation, Descent, ObjectAddress, condition_is, events,
    is_owned_by, labelled, newest_event, pod, pods, said, selector, text, time, uid,
};
use crate::readiness::subject::{list, number};

fn replica_sets() -> Gvk {
    Gvk::new("apps", "v1", "ReplicaSet")
}

fn claims() -> Gvk {
    Gvk::new("", "v1", "PersistentVolumeClaim")
}

/// The labels of what a workload makes.
fn match_labels(object: &Value) -> Option<&Value> {
    selector(object, &["spec", "selector", "matchLabels"])
}

pub(super) fn deployment_questions(object: &Value) -> Vec<DescendQuestion> {
    vec![labelled(&replica_sets(), object, match_labels(object))]
}

pub(super) fn questions(kind: &GroupKind, object: &Value) -> Vec<DescendQuestion> {
    let labels = match_labels(object);
    let mut questions = vec![labelled(&pods(), object, labels), events(object)];
    if kind.kind == "StatefulSet" {
        questions.push(labelled(&claims(), object, labels));
    }
    questions
}

/// A Deployment's cause is in its newest ReplicaSet; without one, in what it says itself.
pub(super) fn deployment(object: &Value, answers: &DescendAnswers, here: Descent) -> Descent {
    let question = labelled(&replica_sets(), object, match_labels(object));
    let owned = answers.objects(&question).iter().filter(|set| is_owned_by(set, uid(object)));
    if let Some(newest) =
        owned.max_by_key(|set| (revision(set), text(set, &["metadata", "creationTimestamp"])))
    {
        return here.goes_on(DescendRelation::Owns, ObjectAddress::of(&replica_sets(), newest));
    }
    let hidden = answers.is_hidden(&question);
    match condition_is(object, "ReplicaFailure", "True") {
        Some(failure) => {
            let (reason, message) = said(failure);
            here.because(reason, message).since(time(failure, &["lastTransitionTime"]))
        }
        None => here.hidden(hidden),
    }
}

fn revision(set: &Value) -> u64 {
    let annotation = text(set, &["metadata", "annotations", "deployment.kubernetes.io/revision"]);
    annotation.parse().unwrap_or_default()
}

/// ReplicaSet, StatefulSet, DaemonSet: what keeps pods from being made, else the worst pod, else an unbound claim.
pub(super) fn replicas(kind: &GroupKind, object: &Value, answers: &DescendAnswers, here: Descent) -> Descent {
    if let Some(failure) = condition_is(object, "ReplicaFailure", "True") {
        let (reason, message) = said(failure);
        return here.because(reason, message).since(time(failure, &["lastTransitionTime"]));
    }
    let wanted = match kind.kind.as_str() {
        "DaemonSet" => number(object, &["status", "desiredNumberScheduled"]),
        _ => number(object, &["spec", "replicas"]).or(Some(1)),
    };
    if let Some(found) = with_pods(object, answers, wanted.unwrap_or(0), &here) {
        return found;
    }
    if kind.kind == "StatefulSet" {
        let templates = list(object, &["spec", "volumeClaimTemplates"]).iter();
        let prefixes: Vec<String> = templates
            .map(|one| {
                format!("{}-{}-", text(one, &["metadata", "name"]), text(object, &["metadata", "name"]))
            })
            .collect();
        let found = answers.objects(&labelled(&claims(), object, match_labels(object))).iter();
        let unbound = found.filter(|claim| text(claim, &["status", "phase"]) != "Bound").find(|claim| {
            prefixes.iter().any(|prefix| text(claim, &["metadata", "name"]).starts_with(prefix))
        });
        if let Some(claim) = unbound {
            return here.goes_on(DescendRelation::Uses, ObjectAddress::of(&claims(), claim));
        }
    }
    here
}

/// Job: its own verdict if it failed or is suspended, else as the others.
pub(super) fn job(object: &Value, answers: &DescendAnswers, here: Descent) -> Descent {
    let failed = ["Failed", "FailureTarget"].iter().find_map(|kind| condition_is(object, kind, "True"));
    if let Some(failed) = failed {
        // The job is the cause; how its last pod ended says why.
        let ended = worst(object, answers).and_then(pod::exit_summary);
        let since = time(failed, &["lastTransitionTime"]);
        let (reason, mut message) = (here.lack.reason.clone(), here.lack.message.clone());
        if let Some(ended) = ended {
            message = format!("{message} ({ended})");
        }
        return here.because(reason, message).since(since);
    }
    if crate::readiness::subject::flag(object, &["spec", "suspend"]) {
        let message = here.lack.message.clone();
        return here.because("JobSuspended", message);
    }
    let wanted = number(object, &["spec", "parallelism"]).unwrap_or(1);
    with_pods(object, answers, wanted, &here).unwrap_or(here)
}

/// What keeps pods from being made, or the worst of those there are; none where there is neither.
fn with_pods(object: &Value, answers: &DescendAnswers, wanted: i64, here: &Descent) -> Option<Descent> {
    let question = labelled(&pods(), object, match_labels(object));
    let count = owned_pods(object, answers).count();
    if i64::try_from(count).unwrap_or(i64::MAX) < wanted
        && !answers.is_hidden(&question)
        && let Some(event) = newest_event(object, answers, &["FailedCreate"])
    {
        let (reason, message) = said(event);
        let since = super::event_time(event).parse().ok();
        return Some(here.clone().because(reason, message).since(since));
    }
    match worst(object, answers) {
        Some(pod) => Some(here.clone().goes_on(DescendRelation::Runs, ObjectAddress::of(&pods(), pod))),
        None => answers.is_hidden(&question).then(|| here.clone().hidden(true)),
    }
}

fn owned_pods<'a>(object: &Value, answers: &'a DescendAnswers) -> impl Iterator<Item = &'a Value> {
    let owner = uid(object).to_owned();
    let found = answers.objects(&labelled(&pods(), object, match_labels(object))).iter();
    found.filter(move |pod| is_owned_by(pod, &owner) && !super::is_terminating(pod))
}

/// The pod that matters: failed before waiting before unschedulable before not ready, the oldest first.
fn worst<'a>(object: &Value, answers: &'a DescendAnswers) -> Option<&'a Value> {
    pod::worst(owned_pods(object, answers))
}
