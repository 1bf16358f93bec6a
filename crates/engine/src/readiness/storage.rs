//! Volumes and claims.

use serde_json::Value;

use super::{
    RelatedAnswer, RelatedQuery, Verdict,
    subject::{JudgedObject, text},
};

/// A claim that is not bound yet: its storage class says whether that is on purpose.
pub(super) fn claim_needs(object: &Value) -> Vec<RelatedQuery> {
    let class = text(object, &["spec", "storageClassName"]);
    if class.is_empty() || matches!(text(object, &["status", "phase"]), "Bound" | "Lost") {
        return Vec::new();
    }
    vec![RelatedQuery::storage_class(class)]
}

pub(super) fn claim(subject: &JudgedObject<'_>) -> Verdict {
    match subject.phase() {
        "Bound" => return Verdict::ready("Bound", "the claim is bound"),
        "Lost" => {
            return Verdict::failed("Lost", "the claim lost its volume: the volume it was bound to is gone");
        }
        _ => {}
    }
    let class = subject.text(&["spec", "storageClassName"]);
    if class.is_empty() {
        let message = "the claim is not bound and names no storage class: \
                       name one, mark one as default, or provide a volume that fits";
        return Verdict::in_progress("NoStorageClass", message);
    }
    match subject.related.get(&RelatedQuery::storage_class(class)) {
        RelatedAnswer::Objects(classes) => match classes.first() {
            Some(found) if text(found, &["volumeBindingMode"]) == "WaitForFirstConsumer" => Verdict::ready(
                "WaitForFirstConsumer",
                format!("storage class {class} binds the claim when the first pod uses it"),
            ),
            Some(_) => Verdict::in_progress(
                "Pending",
                format!("storage class {class} has not provided a volume yet"),
            ),
            None => no_class(class),
        },
        RelatedAnswer::Absent => no_class(class),
        RelatedAnswer::Unknown | RelatedAnswer::Served(_) => Verdict::in_progress(
            "StorageClassUnknown",
            format!("the claim is not bound, and storage class {class} could not be read yet"),
        ),
    }
}

fn no_class(class: &str) -> Verdict {
    Verdict::in_progress("StorageClassNotFound", format!("storage class {class} does not exist"))
}

pub(super) fn volume(subject: &JudgedObject<'_>) -> Verdict {
    match subject.phase() {
        "Bound" => Verdict::ready("Bound", "the volume is bound to its claim"),
        "Available" => Verdict::ready("Available", "the volume is free to be claimed"),
        "Failed" => {
            let why = subject.text(&["status", "message"]);
            let why = if why.is_empty() { "it could not be reclaimed" } else { why };
            Verdict::failed("ReclaimFailed", format!("the volume failed: {why}"))
        }
        "Released" => Verdict::in_progress(
            "Released",
            "the claim of the volume is gone, and the volume has not been reclaimed: delete it or clear its claimRef",
        ),
        _ => Verdict::in_progress("Pending", "the volume is not available yet"),
    }
}
