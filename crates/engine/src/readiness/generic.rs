//! The rule for every kind without a row of its own, and for kinds whose presence is all there is to say.

use serde_json::Value;

use super::{
    RelatedQuery, State, Verdict, foreign,
    subject::{JudgedObject, ObjectCondition},
};

pub(super) fn no_needs(_: &Value) -> Vec<RelatedQuery> {
    Vec::new()
}

/// Its presence is all there is to say.
pub(super) fn exists(_: &JudgedObject<'_>) -> Verdict {
    Verdict::ready("Exists", "it exists")
}

/// The common language of controllers: Stalled and Reconciling, then Ready or Available.
pub(super) fn generic(subject: &JudgedObject<'_>) -> Verdict {
    subject.mark_conditions();
    let phase = subject.phase();
    if let Some(verdict) = stalled_or_reconciling(subject) {
        return verdict;
    }
    // Crossplane's composites live in groups that their users invent; this reason gives them away.
    if subject.condition("Synced").is_some_and(|synced| synced.reason.starts_with("Reconcile")) {
        return foreign::crossplane(subject);
    }
    if let Some(condition) = subject.condition("Ready").or_else(|| subject.condition("Available")) {
        return by(subject, &condition);
    }
    let silent = subject.conditions().next().is_none()
        && phase.is_empty()
        && subject.number(&["status", "observedGeneration"]).is_none();
    if silent && subject.options.status_declared == Some(true) {
        return no_status();
    }
    if silent {
        return Verdict::ready("Exists", "it exists; its kind reports no status that says more");
    }
    Verdict::ready(
        "Observed",
        "its controller has looked at it; its kind reports no condition Ready or Available",
    )
}

/// For kinds that are known to report Ready: without it they are not.
pub(super) fn reports_ready(subject: &JudgedObject<'_>) -> Verdict {
    subject.mark_conditions();
    if let Some(verdict) = stalled_or_reconciling(subject) {
        return verdict;
    }
    subject.condition("Ready").map_or_else(no_status, |ready| by(subject, &ready))
}

/// Our own kinds: their one line is left to them. Repeating it in each of those who wait, and those who wait for
/// those, would write a chain's every status anew for each change at its end; causes are reported by the graph.
pub(super) fn ours(subject: &JudgedObject<'_>) -> Verdict {
    let verdict = reports_ready(subject);
    let Some(ready) = subject.condition("Ready") else {
        return verdict;
    };
    let reason = if ready.reason.is_empty() { "no reason given" } else { ready.reason };
    let message = match verdict.state {
        State::Failed => format!("it failed: {reason}"),
        State::InProgress if !subject.is_outdated(&ready) => format!("it is not ready: {reason}"),
        _ => return verdict,
    };
    Verdict { message: message.into(), ..verdict }
}

pub(super) fn no_status() -> Verdict {
    Verdict::in_progress("NoStatus", "its controller has not reported anything yet")
}

pub(super) fn stalled_or_reconciling(subject: &JudgedObject<'_>) -> Option<Verdict> {
    if let Some(stalled) = subject.holds("Stalled") {
        return Some(Verdict::failed(
            stalled.reason_or("Stalled"),
            format!("stalled: {}", stalled.say("no reason given")),
        ));
    }
    let reconciling = subject.holds("Reconciling")?;
    // What is not ready says more about why than the fact that somebody works on it.
    let cause = subject.condition("Ready").filter(|ready| ready.is_false() && !subject.is_outdated(ready));
    let condition = cause.unwrap_or(reconciling);
    Some(Verdict::in_progress(condition.reason_or("Reconciling"), condition.describe()))
}

/// Ready when a condition is true and made for this generation, in progress with what it says otherwise.
pub(super) fn by(subject: &JudgedObject<'_>, condition: &ObjectCondition<'_>) -> Verdict {
    if subject.is_outdated(condition) {
        subject.outdated(condition)
    } else if condition.is_true() {
        Verdict::ready(condition.reason_or("Ready"), condition.describe())
    } else {
        Verdict::in_progress(condition.reason_or("NotReady"), condition.describe())
    }
}
