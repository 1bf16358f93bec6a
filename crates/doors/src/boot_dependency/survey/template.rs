//! What becomes of a workload's template: whether it follows the set now, and by which operations.

use linchpin_api::{BootDependency, boot_dependency::Rollout};
use linchpin_engine::contract::Projection;
use linchpin_words::{Timestamp, keys};
use serde_json::{Value, json};

use super::SurveyInput;
use crate::boot_dependency::{
    container::WaiterSettings,
    division::Division,
    inject::{Injection, PatchTarget, PodGate, inject},
};

/// What becomes of a workload.
pub(super) struct TemplateRepair {
    pub(super) state: &'static str,
    pub(super) message: String,
    /// The operations that repair it, if it is to be repaired now.
    pub(super) patch: Option<Vec<Value>>,
    /// Whether the template has something that goes with the object.
    pub(super) carried: bool,
}

impl TemplateRepair {
    pub(super) fn of(
        kind: &str,
        workload: &Projection,
        template: &Value,
        input: &SurveyInput<'_>,
        own_mark: bool,
        division: &Division,
        waiter: Option<&WaiterSettings>,
    ) -> Self {
        let hash = division.hash();
        let is = template["metadata"]["annotations"][keys::BOOT_HASH].as_str();
        let immediate = input.object.spec.rollout == Some(Rollout::Immediate);
        let carried = match kind {
            "Deployment" => own_mark,
            _ => is.is_some() && !(input.going && is == hash.as_deref()),
        };
        let injection = waiter
            .map(|waiter| inject(template, PatchTarget::DeploymentTemplate, division, PodGate::Open, waiter));
        let Injection { patch, skipped } = injection.unwrap_or_default();
        let explained = |message: &str| with_skipped(message, &skipped);
        let quiet = |state, message: &str| Self { state, message: explained(message), patch: None, carried };
        if kind != "Deployment" {
            let rolls = matches!(kind, "StatefulSet" | "DaemonSet") && immediate;
            if !rolls || is == hash.as_deref() {
                return quiet("Current", "");
            }
            let mut operations = Vec::new();
            if !template["metadata"]["annotations"].is_object() {
                operations
                    .push(json!({"op": "add", "path": "/spec/template/metadata/annotations", "value": {}}));
            }
            let path = format!("/spec/template/metadata/annotations/{}", keys::BOOT_HASH.replace('/', "~1"));
            operations.push(match &hash {
                Some(hash) => json!({"op": "add", "path": path, "value": hash}),
                None => json!({"op": "remove", "path": path}),
            });
            return Self {
                state: "Outdated",
                message: explained("it is rolled out anew"),
                patch: Some(operations),
                carried,
            };
        }
        if waiter.is_none() {
            return if is == hash.as_deref() {
                quiet("Current", "")
            } else {
                quiet("Outdated", "the operator serves no webhooks: nothing is put into its template")
            };
        }
        if patch.is_empty() || is == hash.as_deref() && (hash.is_some() || !own_mark) {
            return quiet("Current", "");
        }
        let operations =
            || patch.iter().filter_map(|operation| serde_json::to_value(operation).ok()).collect();
        if input.going {
            return Self { state: "Outdated", message: explained(""), patch: Some(operations()), carried };
        }
        let missed = is.is_none() && hash.is_some() && created(&workload.content) >= created_of(input.object);
        let well = workload.content["status"]["readyReplicas"].as_i64().unwrap_or_default() > 0;
        if missed && well && !immediate {
            let message = "it was created while admission was away, and its pods are ready: the next rollout repairs it";
            return quiet("Missed", message);
        }
        if missed || immediate {
            return Self {
                state: "Outdated",
                message: explained("its template is repaired"),
                patch: Some(operations()),
                carried,
            };
        }
        quiet("Outdated", "its template follows at its next change; new pods have the present set")
    }
}

/// A message, and which entries the template's own init containers keep out.
fn with_skipped(message: &str, skipped: &[String]) -> String {
    if skipped.is_empty() {
        return message.to_owned();
    }
    let names = skipped.join(", ");
    let note = format!("an init container of its own has the name of ours for {names}");
    if message.is_empty() { note } else { format!("{message}; {note}") }
}

/// The operations for this very version of this very object.
pub(super) fn guarded(workload: &Projection, operations: Vec<Value>) -> Value {
    let version = &workload.content["metadata"]["resourceVersion"];
    let guards = [
        json!({"op": "replace", "path": "/metadata/uid", "value": workload.uid}),
        json!({"op": "replace", "path": "/metadata/resourceVersion", "value": version}),
    ];
    guards.into_iter().chain(operations).collect()
}

pub(super) fn created(content: &Value) -> Option<Timestamp> {
    Timestamp::parse(content["metadata"]["creationTimestamp"].as_str()?).ok()
}

pub(super) fn created_of(object: &BootDependency) -> Option<Timestamp> {
    object.metadata.creation_timestamp.as_ref().map(|time| Timestamp::from(time.0))
}
