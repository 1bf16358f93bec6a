//! Workloads that keep a number of pods running: enough replicas of the latest
//! template, available, and seen by the controller.

use linchpin_words::{Text, text::push_number};

use super::{Verdict, subject::JudgedObject};

/// In progress, unless the controller has seen the object; ready, where fewer replicas were asked for and are there.
fn early(subject: &JudgedObject<'_>, available: i64) -> Option<Verdict> {
    if let Some(unobserved) = subject.unobserved() {
        return Some(unobserved);
    }
    let least = subject.options.min_replicas?;
    Some(if available >= least {
        Verdict::ready("EnoughReplicas", format!("{available} replicas available, at least {least} wanted"))
    } else {
        let message = format!("{available} replicas available, at least {least} wanted");
        Verdict::in_progress("TooFewReplicas", with_failure(subject, message))
    })
}

/// Adds what keeps replicas from being created (quota, admission), where the controller says so.
fn with_failure(subject: &JudgedObject<'_>, message: impl Into<Text>) -> Text {
    let message = message.into();
    match subject.holds("ReplicaFailure") {
        Some(failure) => format!("{message}; {}", failure.say("replicas cannot be created")).into(),
        None => message,
    }
}

/// `2 of 3 replicas ready`: by far the most frequent sentence there is.
fn counted(count: i64, wanted: i64, what: &str) -> Text {
    let mut sentence = String::with_capacity(48);
    push_number(&mut sentence, count);
    sentence.push_str(" of ");
    push_number(&mut sentence, wanted);
    sentence.push(' ');
    sentence.push_str(what);
    sentence.into()
}

fn wanted_replicas(subject: &JudgedObject<'_>) -> i64 {
    subject.number(&["spec", "replicas"]).unwrap_or(1)
}

fn all_available(available: i64, wanted: i64) -> Verdict {
    Verdict::ready("AllReplicasAvailable", counted(available, wanted, "replicas available"))
}

pub(super) fn deployment(subject: &JudgedObject<'_>) -> Verdict {
    let wanted = wanted_replicas(subject);
    let total = subject.counter("replicas");
    let updated = subject.counter("updatedReplicas");
    let ready = subject.counter("readyReplicas");
    let available = subject.counter("availableReplicas");
    if let Some(verdict) = early(subject, available) {
        return verdict;
    }
    let progressing = subject.condition("Progressing");
    if let Some(condition) = progressing
        && condition.is_false()
        && condition.reason == "ProgressDeadlineExceeded"
    {
        let message = format!("{available} of {wanted} replicas available; {}", condition.say("no progress"));
        return Verdict::failed("ProgressDeadlineExceeded", with_failure(subject, message));
    }
    let (reason, message) = if updated < wanted {
        let paused = if subject.flag(&["spec", "paused"]) { " (paused)" } else { "" };
        let reason = if paused.is_empty() { "RollingOut" } else { "Paused" };
        (reason, format!("{updated} of {wanted} replicas updated{paused}").into())
    } else if total > wanted {
        ("OldReplicasLeft", format!("{} replicas are still to be removed", total - wanted).into())
    } else if ready < wanted {
        ("ReplicasNotReady", counted(ready, wanted, "replicas ready"))
    } else if available < wanted {
        ("ReplicasNotAvailable", counted(available, wanted, "replicas available"))
    } else {
        return all_available(available, wanted);
    };
    Verdict::in_progress(reason, with_failure(subject, message))
}

pub(super) fn stateful_set(subject: &JudgedObject<'_>) -> Verdict {
    let wanted = wanted_replicas(subject);
    let total = subject.counter("replicas");
    let updated = subject.counter("updatedReplicas");
    let ready = subject.counter("readyReplicas");
    let available = subject.number(&["status", "availableReplicas"]).unwrap_or(ready);
    subject.mark_number(available);
    if let Some(verdict) = early(subject, available) {
        return verdict;
    }
    let on_delete = subject.text(&["spec", "updateStrategy", "type"]) == "OnDelete";
    let partition = subject.number(&["spec", "updateStrategy", "rollingUpdate", "partition"]).unwrap_or(0);
    let to_update = (wanted - partition).max(0);
    let current = subject.text(&["status", "currentRevision"]);
    let update = subject.text(&["status", "updateRevision"]);
    if total != wanted {
        return Verdict::in_progress("Scaling", counted(total, wanted, "replicas exist"));
    }
    if ready < wanted {
        return Verdict::in_progress("ReplicasNotReady", counted(ready, wanted, "replicas ready"));
    }
    if available < wanted {
        return Verdict::in_progress(
            "ReplicasNotAvailable",
            counted(available, wanted, "replicas available"),
        );
    }
    // With OnDelete nobody but the user replaces pods; with a partition the two revisions stay apart for ever.
    if !on_delete && current != update && updated < to_update {
        return Verdict::in_progress(
            "RollingOut",
            format!("{updated} of {to_update} replicas updated to {update}"),
        );
    }
    if !on_delete && partition == 0 && current != update {
        return Verdict::in_progress("RollingOut", format!("the rollout of {update} is not finished"));
    }
    all_available(available, wanted)
}

pub(super) fn daemon_set(subject: &JudgedObject<'_>) -> Verdict {
    let wanted = subject.counter("desiredNumberScheduled");
    let updated = subject.counter("updatedNumberScheduled");
    let ready = subject.counter("numberReady");
    let available = subject.counter("numberAvailable");
    if let Some(verdict) = early(subject, available) {
        return verdict;
    }
    if wanted == 0 {
        return Verdict::ready("NoNodesSelected", "no node is to run it");
    }
    if subject.text(&["spec", "updateStrategy", "type"]) != "OnDelete" && updated < wanted {
        return Verdict::in_progress("RollingOut", format!("updated on {updated} of {wanted} nodes"));
    }
    if ready < wanted {
        return Verdict::in_progress("ReplicasNotReady", format!("ready on {ready} of {wanted} nodes"));
    }
    if available < wanted {
        return Verdict::in_progress(
            "ReplicasNotAvailable",
            format!("available on {available} of {wanted} nodes"),
        );
    }
    Verdict::ready("AllReplicasAvailable", format!("available on {available} of {wanted} nodes"))
}

/// `ReplicaSet` and `ReplicationController`, which differ in nothing that matters here.
pub(super) fn replica_set(subject: &JudgedObject<'_>) -> Verdict {
    let wanted = wanted_replicas(subject);
    let total = subject.counter("replicas");
    let available = subject.counter("availableReplicas");
    if let Some(verdict) = early(subject, available) {
        return verdict;
    }
    if total != wanted {
        let message = counted(total, wanted, "replicas exist");
        return Verdict::in_progress("Scaling", with_failure(subject, message));
    }
    if available < wanted {
        let message = counted(available, wanted, "replicas available");
        return Verdict::in_progress("ReplicasNotAvailable", with_failure(subject, message));
    }
    all_available(available, wanted)
}
