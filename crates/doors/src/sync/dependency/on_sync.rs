//! A dependency on another Sync: the whole of it, or one export.

use std::sync::Arc;

use linchpin_api::{SyncDependency, sync::dependency::SyncRef};
use linchpin_engine::{
    contract::{ReadSet, Seen, StepId, Want},
    plan::{BoundView, Clauses, Obstacle, Profile, SpecError},
    readiness::{RuleWords, Wanted},
};
use linchpin_lang::cel::Expression;
use linchpin_words::{ObjectRef, Reason};
use serde_json::Value;

use super::{
    DependencyContext, ResolvedEntry, Terms, bound, revision::revision_obstacle, version::version_obstacle,
};
use crate::{
    errors::{at, expression},
    requirement::{RequirementDraft, RequirementSpec},
    sync::{
        kind,
        outline::{What, state_word},
    },
};

/// What of another Sync is looked at here.
const SYNC_READS: [&str; 15] = [
    "metadata.generation",
    "spec.exports",
    "spec.source.configMapRef",
    "spec.source.secretRef",
    "spec.source.http",
    "spec.source.oci",
    "spec.source.fluxRef",
    "status.observedGeneration",
    "status.version",
    "status.observedRevision",
    "status.lastAppliedRevision",
    "status.exports",
    "status.conditions.type",
    "status.conditions.status",
    "status.conditions.reason",
];

pub(super) fn on_sync(
    around: &DependencyContext<'_>,
    entry: &SyncDependency,
    terms: &Terms,
    sync: &SyncRef,
    field: &str,
) -> Result<ResolvedEntry, SpecError> {
    let frame = around.frame;
    let namespace = match &sync.namespace {
        Some(namespace) => namespace,
        None if around.explicit => {
            return Err(at(
                format!("{field}.sync.namespace"),
                "name the namespace: there is no other to be meant",
            ));
        }
        None => &frame.owner.namespace,
    };
    if !around.explicit && *namespace == frame.owner.namespace && sync.name == frame.owner.name {
        return Err(at(format!("{field}.sync"), "a Sync cannot depend on itself"));
    }
    let gvk = kind("Sync");
    let object = ObjectRef::namespaced(gvk.group_kind(), namespace, &sync.name);
    let wanted = terms.state.clone().unwrap_or(Wanted::Ready);
    if !matches!(wanted, Wanted::Exists | Wanted::Ready | Wanted::Completed) {
        return Err(at(format!("{field}.state"), "the state of a Sync is Defined, Available or Completed"));
    }
    let spec = RequirementSpec {
        state: Some(Wanted::Ready),
        ..RequirementSpec::on_object(
            StepId::new(&entry.name),
            field,
            frame.via.clone(),
            &gvk,
            Some(namespace.as_str()),
            &sync.name,
        )
    };
    let mut draft = RequirementDraft::new(frame, spec)?;
    if let Some(profile) = sync_profile(&wanted, sync.export.as_deref(), field)? {
        draft.is_taught(Arc::new(profile));
    }
    let view = match &sync.export {
        Some(export) => BoundView::Entry { list: "exports", name: export.clone() },
        None => BoundView::Whole,
    };
    if let Some(bound) = bound(around, entry, view, field)? {
        draft.is_bound(bound);
    }
    let reads = ReadSet::dotted(SYNC_READS);
    let want = Want::object(frame.via.clone(), gvk, Some(namespace.clone()), &sync.name, reads);
    let (mut revision, mut version, mut depends_on, mut cyclic) = (None, None, object.to_string(), false);
    let mut shown_state = None;
    if let Some(export) = &sync.export {
        depends_on = format!("export {export} of {object}");
    }
    if let Some(Seen::Objects(observed)) = frame.kinds.ask(want)
        && let Some(item) = observed.items.first()
    {
        let text = |path: &str| item.content.pointer(path).and_then(Value::as_str).map(str::to_owned);
        (revision, version) = (text("/status/lastAppliedRevision"), text("/status/version"));
        cyclic = waits_in_a_circle(&item.content);
        shown_state = Some(export_state(&item.content, sync.export.as_deref()));
        let obstacle = export_obstacle(sync, &object, &item.content)
            .or_else(|| version_obstacle(&object.to_string(), terms.range.as_ref(), version.as_deref()))
            .or_else(|| revision_obstacle(around, namespace, &object, &item.content, revision.as_deref()));
        if let Some(obstacle) = obstacle {
            draft.is_held(obstacle, None);
        }
    }
    Ok(ResolvedEntry {
        step: draft.finish(Vec::new(), None),
        depends_on,
        completed: wanted == Wanted::Completed,
        state: wanted,
        what: if sync.export.is_some() { What::Export } else { What::Sync },
        object: Some(object),
        own: None,
        cyclic,
        shown_state,
        revision,
        version,
    })
}

/// When a Sync, or an export of it, is in a state other than that its own condition Ready is True.
fn sync_profile(wanted: &Wanted, export: Option<&str>, field: &str) -> Result<Option<Profile>, SpecError> {
    const SEEN: &str = "self.status.observedGeneration == self.metadata.generation";
    const STALLED: &str = "self.status.conditions.exists(c, c.type == 'Stalled' && c.status == 'True')";
    let (ready, failed) = match (export, wanted) {
        (None, Wanted::Exists | Wanted::Completed) => {
            let revision =
                if *wanted == Wanted::Exists { "lastAppliedRevision" } else { "lastReadyRevision" };
            let there = format!("self.status.{revision} == self.status.observedRevision");
            let gone = format!("(!has(self.status.{revision}) || !({there}))");
            (format!("{SEEN} && {there}"), format!("{SEEN} && {STALLED} && {gone}"))
        }
        (None, _) => return Ok(None),
        (Some(export), wanted) => {
            let name = Value::String(export.to_owned());
            let is =
                |test: &str| format!("{SEEN} && self.status.exports.exists(e, e.name == {name} && ({test}))");
            let there = match wanted {
                Wanted::Exists => "e.state in ['Defined', 'Available', 'Completed', 'Failed']",
                // What does not run to an end is completed once it was available.
                Wanted::Completed => {
                    "e.state == 'Completed' || e.state == 'Available' && !(e.object.kind in ['Job', 'Pod'])"
                }
                _ => "e.state in ['Available', 'Completed']",
            };
            let failed = "e.state == 'Failed'";
            (is(there), if *wanted == Wanted::Exists { "false".to_owned() } else { is(failed) })
        }
    };
    let clause = |source: String| {
        Expression::compile(field, &source, &["self"])
            .map(|cel| Clauses { cel: Some(Arc::new(cel)), conditions: Vec::new() })
            .map_err(|error| expression(&error))
    };
    let not_ready = match (export, wanted) {
        (Some(_), wanted) => format!("it is not {} yet", state_word(wanted)),
        (None, Wanted::Completed) => "its newest revision was not ready yet".to_owned(),
        (None, _) => "its newest revision is not applied yet".to_owned(),
    };
    Ok(Some(Profile {
        ready_when: clause(ready)?,
        failed_when: Some(clause(failed)?),
        says: None,
        words: Some(RuleWords { not_ready, failed: "it has failed".to_owned() }),
    }))
}

/// The document's word for where a Sync, or an export of it, is: what its newest revision has come to, and nothing
/// where it has not been looked at.
fn export_state(content: &Value, export: Option<&str>) -> &'static str {
    const WORDS: [&str; 4] = ["Defined", "Available", "Completed", "Failed"];
    let at = |path: &str| content.pointer(path);
    let is_current =
        at("/status/observedGeneration").is_some_and(|seen| Some(seen) == at("/metadata/generation"));
    if let Some(export) = export {
        let rows = at("/status/exports").and_then(Value::as_array).into_iter().flatten();
        let state = rows.filter(|_| is_current).find(|row| row["name"] == export).map(|row| &row["state"]);
        return WORDS.into_iter().find(|word| state.is_some_and(|state| state == word)).unwrap_or("Absent");
    }
    let revision = at("/status/observedRevision");
    let is_ready = |one: &Value| one["type"] == "Ready" && one["status"] == "True";
    let conditions = at("/status/conditions").and_then(Value::as_array);
    match at("/status/lastAppliedRevision") {
        _ if !is_current || revision.is_none() => "Absent",
        applied if applied != revision => "Absent",
        _ if conditions.into_iter().flatten().any(is_ready) => "Available",
        _ => "Defined",
    }
}

/// An export that is not declared, or whose object is not there to be exported.
fn export_obstacle(sync: &SyncRef, object: &ObjectRef, content: &Value) -> Option<Obstacle> {
    let export = sync.export.as_deref()?;
    let list = |path: &str| content.pointer(path).and_then(Value::as_array).cloned().unwrap_or_default();
    let declared = list("/spec/exports");
    let broken = |message: String| Some(Obstacle { reason: Reason::ExportMissing, message });
    if !declared.iter().any(|one| one["name"] == export) {
        let mut names: Vec<&str> = declared.iter().filter_map(|one| one["name"].as_str()).collect();
        names.sort_unstable();
        let has =
            if names.is_empty() { "it has none".to_owned() } else { format!("it has: {}", names.join(", ")) };
        return broken(format!(
            "says it depends on export {export} of {object}, which has no such export ({has})"
        ));
    }
    let shown = list("/status/exports");
    let entry = shown.iter().find(|one| one["name"] == export)?;
    if entry["reason"] == Reason::ExportMissing.as_str() {
        return broken(format!(
            "says it depends on export {export} of {object}, whose object is not among those that it applies"
        ));
    }
    None
}

/// Whether a Sync says that it waits for itself, or for what does.
fn waits_in_a_circle(content: &Value) -> bool {
    let conditions = content.pointer("/status/conditions").and_then(Value::as_array);
    conditions.into_iter().flatten().any(|one| {
        one["type"] == "DependencyCycle" && one["status"] == "True"
            || one["type"] == "DependenciesReady" && one["reason"] == Reason::BlockedByCycle.as_str()
    })
}
