//! The cluster's own furniture: CRDs, aggregated APIs, Namespaces, Nodes, autoscalers and disruption budgets.

use linchpin_words::Gvk;
use serde_json::Value;

use super::{
    RelatedAnswer, RelatedQuery, Verdict,
    subject::{JudgedObject, flag, list, text},
};

/// Every version of the kind that the CRD asks to be served.
pub(super) fn crd_needs(object: &Value) -> Vec<RelatedQuery> {
    let (group, kind) = (text(object, &["spec", "group"]), text(object, &["spec", "names", "kind"]));
    let served = list(object, &["spec", "versions"]).iter().filter(|version| flag(version, &["served"]));
    served
        .map(|version| RelatedQuery::Served { gvk: Gvk::new(group, text(version, &["name"]), kind) })
        .collect()
}

pub(super) fn crd(subject: &JudgedObject<'_>) -> Verdict {
    subject.mark_conditions();
    if let Some(names) = subject.condition("NamesAccepted").filter(super::subject::ObjectCondition::is_false)
    {
        let message = format!("its names are not accepted: {}", names.say("another CRD uses them"));
        return Verdict::failed(names.reason_or("NamesNotAccepted"), message);
    }
    if subject.holds("Established").is_none() {
        let message = subject.condition("Established").map_or_else(
            || "the API server has not established it yet".to_owned(),
            |established| established.describe(),
        );
        return Verdict::in_progress("NotEstablished", message);
    }
    for need in crd_needs(subject.object) {
        let RelatedQuery::Served { gvk } = &need else { continue };
        let answer = subject.related.get(&need);
        subject.mark(&[u8::from(answer == RelatedAnswer::Served(true))]);
        match answer {
            RelatedAnswer::Served(true) => {}
            RelatedAnswer::Unknown | RelatedAnswer::Objects(_) => {
                let message = format!("it is established; whether discovery serves {gvk} is not known yet");
                return Verdict::in_progress("DiscoveryUnknown", message);
            }
            RelatedAnswer::Served(false) | RelatedAnswer::Absent => {
                let message = format!("it is established, but discovery does not serve {gvk} yet");
                return Verdict::in_progress("NotServed", message);
            }
        }
    }
    Verdict::ready("Established", "it is established and served")
}

pub(super) fn api_service(subject: &JudgedObject<'_>) -> Verdict {
    by_condition(subject, "Available")
}

pub(super) fn node(subject: &JudgedObject<'_>) -> Verdict {
    by_condition(subject, "Ready")
}

/// Ready when one condition is true, in progress with what it says otherwise.
fn by_condition(subject: &JudgedObject<'_>, kind: &'static str) -> Verdict {
    subject.mark_conditions();
    match subject.condition(kind) {
        Some(condition) if condition.is_true() => {
            Verdict::ready(condition.reason_or(kind), condition.describe())
        }
        Some(condition) => Verdict::in_progress(condition.reason_or("NotReady"), condition.describe()),
        None => Verdict::in_progress("NotReady", format!("it has no condition {kind} yet")),
    }
}

pub(super) fn namespace(subject: &JudgedObject<'_>) -> Verdict {
    match subject.phase() {
        "Active" => Verdict::ready("Active", "the namespace is active"),
        "" => Verdict::in_progress("NoPhase", "the namespace has no phase yet"),
        phase => Verdict::in_progress(phase.to_owned(), format!("the namespace is {phase}")),
    }
}

pub(super) fn autoscaler(subject: &JudgedObject<'_>) -> Verdict {
    subject.mark_conditions();
    if let Some(able) = subject.condition("AbleToScale").filter(super::subject::ObjectCondition::is_false) {
        return Verdict::in_progress(able.reason_or("UnableToScale"), able.describe());
    }
    match subject.condition("ScalingActive") {
        Some(active) if active.is_true() => Verdict::ready("ScalingActive", "it scales its target"),
        Some(active) if active.reason == "ScalingDisabled" => {
            Verdict::ready("ScalingDisabled", "its target is scaled to zero, so it rests")
        }
        Some(active) => Verdict::in_progress(active.reason_or("ScalingInactive"), active.describe()),
        None => Verdict::in_progress("NotObserved", "its controller has not looked at it yet"),
    }
}

pub(super) fn disruption_budget(subject: &JudgedObject<'_>) -> Verdict {
    let healthy = subject.counter("currentHealthy");
    let wanted = subject.counter("desiredHealthy");
    if let Some(unobserved) = subject.unobserved() {
        return unobserved;
    }
    let failure = subject.condition("DisruptionAllowed").filter(|allowed| allowed.reason == "SyncFailed");
    if let Some(failure) = failure {
        return Verdict::in_progress("SyncFailed", failure.say("the budget cannot be computed"));
    }
    let message = format!("{healthy} of {wanted} pods healthy");
    if healthy < wanted {
        return Verdict::in_progress("InsufficientPods", message);
    }
    Verdict::ready("SufficientPods", message)
}
