//! What runs: pods, jobs and what starts jobs.

use serde_json::Value;

use super::{
    State, Verdict,
    subject::{JudgedObject, flag, list, number, text},
};

pub(super) fn pod(subject: &JudgedObject<'_>) -> Verdict {
    let phase = subject.phase();
    mark_containers(subject);
    match phase {
        "Succeeded" => return Verdict::new(State::Completed, "Succeeded", "all containers ended well"),
        "Failed" => return failed_pod(subject),
        _ => {}
    }
    let Some(ready) = subject.condition("Ready") else {
        return waiting_pod(subject);
    };
    if subject.is_outdated(&ready) {
        return subject.outdated(&ready);
    }
    if ready.is_true() {
        Verdict::ready("PodReady", "all containers are ready")
    } else {
        waiting_pod(subject)
    }
}

/// Coming up again is not progress: only containers that never restarted count, and the conditions that do not
/// follow from them.
fn mark_containers(subject: &JudgedObject<'_>) {
    for group in ["initContainerStatuses", "containerStatuses"] {
        for container in list(subject.object, &["status", group]) {
            let first = number(container, &["restartCount"]).unwrap_or(0) == 0;
            let ended = number(container, &["state", "terminated", "exitCode"]) == Some(0);
            subject.mark(&[u8::from(first && flag(container, &["ready"])), u8::from(ended)]);
        }
    }
    for condition in subject.conditions().filter(|c| !matches!(c.kind, "Ready" | "ContainersReady")) {
        subject.mark(condition.kind.as_bytes());
        subject.mark(condition.status.as_bytes());
    }
}

fn failed_pod(subject: &JudgedObject<'_>) -> Verdict {
    let (reason, message) = (subject.text(&["status", "reason"]), subject.text(&["status", "message"]));
    if !reason.is_empty() {
        let colon = if message.is_empty() { "" } else { ": " };
        return Verdict::failed(reason.to_owned(), format!("pod failed: {reason}{colon}{message}"));
    }
    for (what, container) in containers(subject) {
        let Some(code) = number(container, &["state", "terminated", "exitCode"]).filter(|code| *code != 0)
        else {
            continue;
        };
        let reason = text(container, &["state", "terminated", "reason"]);
        let reason = if reason.is_empty() { "Error" } else { reason };
        let name = text(container, &["name"]);
        let message = format!("pod failed: {what} {name}: {reason}, exit code {code}");
        return Verdict::failed(reason.to_owned(), message);
    }
    Verdict::failed("PodFailed", "pod failed")
}

/// Names the first thing that keeps a pod from being ready, in the order in which a pod starts.
fn waiting_pod(subject: &JudgedObject<'_>) -> Verdict {
    if let Some(scheduled) = subject.condition("PodScheduled")
        && scheduled.is_false()
    {
        let message = format!("not scheduled: {}", scheduled.say("no node has been chosen yet"));
        return Verdict::in_progress(scheduled.reason_or("NotScheduled"), message);
    }
    for (what, container) in containers(subject) {
        if let Some(verdict) = waiting_container(what, container) {
            return verdict;
        }
    }
    if let Some(gates) = subject.condition("Ready").filter(|ready| ready.reason == "ReadinessGatesNotReady") {
        return Verdict::in_progress("ReadinessGatesNotReady", gates.say("a readiness gate is not passed"));
    }
    let phase = subject.text(&["status", "phase"]);
    let phase = if phase.is_empty() { "Pending" } else { phase };
    Verdict::in_progress("PodNotReady", format!("phase {phase}, not ready yet"))
}

fn waiting_container(what: &str, container: &Value) -> Option<Verdict> {
    let init = what == "init container";
    // A sidecar is done with starting once it has started; any other init container once it has ended well.
    let over = number(container, &["state", "terminated", "exitCode"]) == Some(0);
    if flag(container, &["ready"]) || (init && (over || flag(container, &["started"]))) {
        return None;
    }
    let name = text(container, &["name"]);
    let reason = text(container, &["state", "waiting", "reason"]);
    if !reason.is_empty() {
        // Every later container waits for the one before it: these two words name no cause.
        if matches!(reason, "PodInitializing" | "ContainerCreating") {
            return Some(Verdict::in_progress(reason.to_owned(), format!("{what} {name}: {reason}")));
        }
        let message = text(container, &["state", "waiting", "message"]);
        let colon = if message.is_empty() { "" } else { ": " };
        let last = last_end(container);
        return Some(Verdict::in_progress(
            reason.to_owned(),
            format!("{what} {name}: {reason}{colon}{message}{last}"),
        ));
    }
    if let Some(code) = number(container, &["state", "terminated", "exitCode"]) {
        let reason = text(container, &["state", "terminated", "reason"]);
        let reason = if reason.is_empty() { "Error" } else { reason };
        let message = format!("{what} {name}: {reason}, exit code {code}");
        return Some(Verdict::in_progress(reason.to_owned(), message));
    }
    let (reason, message) = if init {
        ("Initializing", format!("{what} {name} is running"))
    } else {
        ("ContainerNotReady", format!("{what} {name} is running, not ready yet{}", last_end(container)))
    };
    Some(Verdict::in_progress(reason, message))
}

/// How a container that restarted ended the last time.
fn last_end(container: &Value) -> String {
    let Some(code) = number(container, &["lastState", "terminated", "exitCode"]) else {
        return String::new();
    };
    let reason = text(container, &["lastState", "terminated", "reason"]);
    let restarts = number(container, &["restartCount"]).unwrap_or(0);
    let reason = if reason.is_empty() { "ended" } else { reason };
    format!(" (last time: {reason}, exit code {code}; {restarts} restarts)")
}

/// All containers in the order in which they start, each with what to call it.
fn containers<'a>(subject: &JudgedObject<'a>) -> impl Iterator<Item = (&'static str, &'a Value)> + use<'a> {
    let init = subject.list(&["status", "initContainerStatuses"]).iter().map(|one| ("init container", one));
    init.chain(subject.list(&["status", "containerStatuses"]).iter().map(|one| ("container", one)))
}

pub(super) fn job(subject: &JudgedObject<'_>) -> Verdict {
    let wanted = subject.number(&["spec", "completions"]);
    let succeeded = subject.counter("succeeded");
    let failed = subject.number(&["status", "failed"]).unwrap_or(0);
    let active = subject.number(&["status", "active"]).unwrap_or(0);
    // A retry is not progress: while nothing has failed yet, pods that come up are.
    if failed == 0 {
        subject.counter("ready");
    }
    if subject.holds("Complete").is_some() {
        return Verdict::new(State::Completed, "Complete", format!("{succeeded} pods ended well"));
    }
    // FailureTarget comes before Failed, while pods are still ending; nothing undoes it.
    if let Some(failure) = subject.holds("Failed").or_else(|| subject.holds("FailureTarget")) {
        let message = format!("job failed: {}", failure.say("no reason given"));
        return Verdict::failed(failure.reason_or("JobFailed"), message);
    }
    if subject.flag(&["spec", "suspend"]) {
        return Verdict::in_progress(
            "Suspended",
            "the job is suspended: set spec.suspend to false to let it run",
        );
    }
    let of = wanted.map_or_else(String::new, |wanted| format!(" of {wanted}"));
    let failures = if failed > 0 { format!(", {failed} failed") } else { String::new() };
    let reason = if active > 0 { "Running" } else { "NotStarted" };
    let reason = if active == 0 && (failed > 0 || succeeded > 0) { "Retrying" } else { reason };
    Verdict::in_progress(reason, format!("{active} pods running, {succeeded}{of} ended well{failures}"))
}

pub(super) fn cron_job(subject: &JudgedObject<'_>) -> Verdict {
    if subject.flag(&["spec", "suspend"]) {
        Verdict::ready("Suspended", "it exists; it is suspended and starts no jobs")
    } else {
        Verdict::ready("Exists", "it exists; its jobs are judged by themselves")
    }
}
