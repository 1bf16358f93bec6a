//! Why a Sync waits, in the RFC's own sentences.

use linchpin_engine::step::StepReport;
use linchpin_words::Reason;

use super::outline::{DependencyOutline, What};
use crate::shown::ShownObject;

/// The document's word for what was found of a dependency.
pub(crate) fn state(step: &StepReport) -> &'static str {
    let missing = [Reason::CapabilityMissing, Reason::KindNotServed, Reason::ExportMissing];
    if missing.iter().any(|reason| step.reason == reason.as_str()) {
        return "Absent";
    }
    match step.word {
        "NotFound" => "Absent",
        "NotReady" => "Defined",
        "Ready" => "Available",
        other => other,
    }
}

/// Reasons whose message is a whole sentence already.
const SENTENCES: [Reason; 6] = [
    Reason::ExportMissing,
    Reason::VersionNotMet,
    Reason::VersionUnknown,
    Reason::RevisionNotMet,
    Reason::CapabilityMissing,
    Reason::Suspended,
];

/// Why a dependency is not met, in one word.
pub(crate) fn reason(dependency: &DependencyOutline, step: &StepReport) -> String {
    match dependency.what {
        _ if step.reason.is_empty() => Reason::Waiting.as_str().to_owned(),
        What::Capability if step.reason == Reason::KindNotServed.as_str() => {
            Reason::CapabilityMissing.as_str().to_owned()
        }
        _ => step.reason.to_string(),
    }
}

/// Why a dependency is not met. `provider` is who is to make it, as far as that may be known.
pub(crate) fn sentence(
    dependency: &DependencyOutline,
    step: &StepReport,
    provider: Option<&ShownObject>,
) -> String {
    let what = &dependency.depends_on;
    if SENTENCES.iter().any(|reason| step.reason == reason.as_str()) {
        return step.detail.to_string();
    }
    let not_served = step.reason == Reason::KindNotServed.as_str();
    let word = if step.absent { "NotFound" } else { step.word };
    match (dependency.what, word) {
        (What::Capability, _) if not_served => {
            let what = what.strip_prefix("Capability ").unwrap_or(what);
            format!("needs {what} in this cluster, which nothing provides; it is never installed for you")
        }
        (_, _) if not_served => format!("says it depends on {what}, whose kind the cluster does not serve"),
        (What::Sync | What::Export | What::Global, "NotFound") => {
            format!("says it depends on {what}, which isn't present")
        }
        (What::Object, "NotFound") => match provider {
            Some(provider) => format!("waits for {what}, which {provider} is to make"),
            None => format!("says it depends on {what}, which isn't present, and no Sync provides it"),
        },
        _ => format!("waits for {what}: {}", step.detail),
    }
}
