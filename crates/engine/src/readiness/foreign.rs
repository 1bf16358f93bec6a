//! Kinds of other projects that need more than the generic rule.

use std::borrow::Cow;

use serde_json::Value;

use super::{
    Verdict,
    generic::{by, no_status, reports_ready, stalled_or_reconciling},
    subject::{JudgedObject, at, list, text},
};

/// KubeFlex rewrites time stamps without need; only type, status and reason count. It reports no failure: it retries.
pub(super) fn control_plane(subject: &JudgedObject<'_>) -> Verdict {
    subject.mark_conditions();
    let Some(ready) = subject.condition("Ready") else {
        return no_status();
    };
    let verdict = by(subject, &ready);
    let error = subject.condition("Synced").filter(|synced| synced.reason == "ReconcileError");
    match error {
        Some(error) if !verdict.state.is_ready() => {
            Verdict::in_progress("ReconcileError", format!("{}; {}", ready.describe(), error.describe()))
        }
        _ => verdict,
    }
}

pub(super) fn argo_application(subject: &JudgedObject<'_>) -> Verdict {
    let health = subject.text(&["status", "health", "status"]);
    let sync = subject.text(&["status", "sync", "status"]);
    let operation = subject.text(&["status", "operationState", "phase"]);
    for part in [health, sync, operation, subject.text(&["status", "sync", "revision"])] {
        subject.mark(part.as_bytes());
    }
    if health.is_empty() && sync.is_empty() {
        return no_status();
    }
    if !compared_to_source(subject.object) {
        let message = "its source changed, and Argo CD has not compared the cluster to the new one yet";
        return Verdict::in_progress("StaleGeneration", message);
    }
    if health == "Degraded" {
        let why = subject.text(&["status", "health", "message"]);
        let why = if why.is_empty() { "a resource of it is degraded" } else { why };
        return Verdict::failed("Degraded", format!("degraded: {why}"));
    }
    if operation == "Running" || at(subject.object, &["operation"]).is_some() {
        let message =
            with_words("a sync is under way", subject.text(&["status", "operationState", "message"]));
        return Verdict::in_progress("Syncing", message);
    }
    if sync != "Synced" {
        let sync = if sync.is_empty() { "Unknown" } else { sync };
        let failed = matches!(operation, "Failed" | "Error");
        let why = if failed { subject.text(&["status", "operationState", "message"]) } else { "" };
        let reason = if failed { "SyncFailed" } else { sync };
        return Verdict::in_progress(reason.to_owned(), with_words(&format!("sync status is {sync}"), why));
    }
    if health != "Healthy" {
        let health = if health.is_empty() { "Unknown" } else { health };
        let why = subject.text(&["status", "health", "message"]);
        return Verdict::in_progress(health.to_owned(), with_words(&format!("health is {health}"), why));
    }
    Verdict::ready("Healthy", "healthy and synced")
}

fn with_words(sentence: &str, more: &str) -> String {
    if more.is_empty() { sentence.to_owned() } else { format!("{sentence}: {more}") }
}

/// Applications report no observed generation, but which source their status was made for.
fn compared_to_source(application: &Value) -> bool {
    let identify = |source: &Value| {
        ["repoURL", "path", "chart", "targetRevision"].map(|field| text(source, &[field]).to_owned())
    };
    let sources = |one: &[&str], many: &[&str]| match list(application, many) {
        [] => at(application, one).map(identify).into_iter().collect::<Vec<_>>(),
        many => many.iter().map(identify).collect(),
    };
    let compared =
        sources(&["status", "sync", "comparedTo", "source"], &["status", "sync", "comparedTo", "sources"]);
    // A comparison that failed early leaves an empty source behind: that says nothing about the spec.
    compared.iter().flatten().all(String::is_empty)
        || compared == sources(&["spec", "source"], &["spec", "sources"])
}

pub(super) fn flux(subject: &JudgedObject<'_>) -> Verdict {
    let silent = subject.conditions().next().is_none();
    let static_kind = matches!(subject.kind.kind.as_str(), "Alert" | "Provider");
    let static_repository = subject.kind.kind == "HelmRepository" && subject.text(&["spec", "type"]) == "oci";
    if silent && (static_kind || static_repository) {
        return Verdict::ready("Exists", "it exists; its kind reports no status");
    }
    let mut verdict = reports_ready(subject);
    if !verdict.state.is_ready() && subject.flag(&["spec", "suspend"]) {
        let suspended = " (suspended: nothing will change until it is resumed)";
        verdict.message = [&verdict.message, suspended].concat().into();
    }
    verdict
}

pub(super) fn certificate(subject: &JudgedObject<'_>) -> Verdict {
    let verdict = reports_ready(subject);
    if verdict.state.is_ready() {
        return verdict;
    }
    // cert-manager tries again, but only after a pause of an hour or more: nobody should wait in silence.
    let issuing = subject.condition("Issuing");
    let failed = issuing.filter(|issuing| issuing.is_false() && issuing.reason == "Failed");
    match failed {
        Some(failed) if !subject.is_outdated(&failed) => {
            Verdict::failed("IssuanceFailed", format!("issuance failed: {}", failed.say("no reason given")))
        }
        _ => verdict,
    }
}

/// Managed and composite resources: Synced says that the last try went well, Ready that the thing is there.
pub(super) fn crossplane(subject: &JudgedObject<'_>) -> Verdict {
    subject.mark_conditions();
    if let Some(verdict) = stalled_or_reconciling(subject) {
        return verdict;
    }
    all_of(subject, &["Synced", "Ready"])
}

/// Settings of a provider have no conditions; everything else in a provider's groups has.
pub(super) fn crossplane_provider(subject: &JudgedObject<'_>) -> Verdict {
    let silent = subject.conditions().next().is_none();
    if silent && (subject.kind.kind.contains("ProviderConfig") || subject.kind.kind == "StoreConfig") {
        return Verdict::ready("Exists", "it exists; its kind reports no conditions");
    }
    crossplane(subject)
}

pub(super) fn crossplane_package(subject: &JudgedObject<'_>) -> Verdict {
    subject.mark_conditions();
    all_of(subject, &["Installed", "Healthy"])
}

pub(super) fn crossplane_definition(subject: &JudgedObject<'_>) -> Verdict {
    subject.mark_conditions();
    if at(subject.object, &["spec", "claimNames"]).is_some() {
        return all_of(subject, &["Established", "Offered"]);
    }
    all_of(subject, &["Established"])
}

/// Ready when all conditions are true; otherwise the first that is not says why.
fn all_of(subject: &JudgedObject<'_>, kinds: &[&'static str]) -> Verdict {
    let mut reason = Cow::Borrowed("Ready");
    for kind in kinds {
        let Some(condition) = subject.condition(kind) else {
            return Verdict::in_progress("NoStatus", format!("it has no condition {kind} yet"));
        };
        let verdict = by(subject, &condition);
        if !verdict.state.is_ready() {
            return verdict;
        }
        reason = verdict.reason;
    }
    Verdict::ready(reason, format!("True: {}", kinds.join(", ")))
}
