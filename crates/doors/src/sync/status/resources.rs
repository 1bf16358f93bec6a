//! A row for each object, and how far all of them are.

use linchpin_api::sync::status::{ExportStatus, SyncProgress, SyncResource};
use linchpin_engine::{journal::StepState, step::StepReport};
use linchpin_words::{Reason, limits, text};

use super::SyncStatusInput;
use crate::{entries::is_unseen, sync::outline::ObjectOutline};

const WAITING: &str = "Waiting";
const APPLIED: &str = "Applied";
const READY: &str = "Ready";
const FAILED: &str = "Failed";

/// The rows of all objects, in the order of the source.
pub(super) struct ResourceRows {
    rows: Vec<SyncResource>,
    /// For each row, whether it is all that counts for Ready.
    good: Vec<bool>,
    /// How many objects are written.
    written: usize,
}

impl ResourceRows {
    pub(super) fn of(sketch: &SyncStatusInput<'_>) -> Self {
        let mut found = Self { rows: Vec::new(), good: Vec::new(), written: 0 };
        for object in &sketch.outline.objects {
            let (row, good) = row(sketch, object);
            let act = sketch.steps.get(&object.act).copied();
            found.written += usize::from(is_written(act) || row.state == READY);
            found.rows.push(row);
            found.good.push(good);
        }
        found
    }

    /// Whether every object is written, and ready if it counts.
    pub(super) fn all_ready(&self) -> bool {
        self.good.iter().all(|good| *good)
    }

    /// What is wrong with the first object that is not as it should be: failed ones first, then those under way.
    pub(super) fn first_unsettled(&self) -> Option<String> {
        let mut found = [FAILED, APPLIED, WAITING].into_iter().flat_map(|state| {
            let rows = self.rows.iter().zip(&self.good);
            rows.filter(move |(row, good)| row.state == state && !**good).map(|(row, _)| row)
        });
        let row = found.next()?;
        let object = &row.object;
        let name = match &object.namespace {
            Some(namespace) => format!("{} {namespace}/{}", object.kind, object.name),
            None => format!("{} {}", object.kind, object.name),
        };
        Some(if row.message.is_empty() {
            format!("{name} is {}", row.state.to_lowercase())
        } else if row.message.starts_with(&name) {
            row.message.clone()
        } else {
            format!("{name}: {}", row.message)
        })
    }

    pub(super) fn progress(&self) -> SyncProgress {
        let count = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
        let layers = self.rows.iter().map(|row| row.layer).max().unwrap_or_default();
        let open =
            self.rows.iter().zip(&self.good).filter(|(_, good)| !**good).map(|(row, _)| row.layer).min();
        let ready = self.rows.iter().filter(|row| row.state == READY).count();
        SyncProgress {
            layers,
            layer: open.unwrap_or(layers),
            objects: count(self.rows.len()),
            applied: count(self.written),
            ready: count(ready),
        }
    }

    /// What is listed, those that are not settled first, and how many are not.
    pub(super) fn listed(self) -> (Vec<SyncResource>, i64) {
        let mut rows = self.rows;
        rows.sort_by_key(|row| match row.state.as_str() {
            FAILED => 0,
            APPLIED => 1,
            WAITING => 2,
            _ => 3,
        });
        let more = rows.len().saturating_sub(limits::SYNC_RESOURCES);
        rows.truncate(limits::SYNC_RESOURCES);
        (rows, i64::try_from(more).unwrap_or(i64::MAX))
    }
}

fn row(sketch: &SyncStatusInput<'_>, object: &ObjectOutline) -> (SyncResource, bool) {
    let act = sketch.steps.get(&object.act).copied();
    let ready = object.ready.as_ref().and_then(|step| sketch.steps.get(step).copied());
    let done = is_written(act);
    let (state, cause) = match act.map(|act| act.state) {
        Some(StepState::Failed | StepState::Unknown) => (FAILED, act),
        _ if !done => (WAITING, act),
        _ => match ready {
            None => (APPLIED, None),
            Some(step) if is_ready(step) => (READY, None),
            Some(step) if step.state == StepState::Failed => (FAILED, Some(step)),
            Some(step) => (APPLIED, Some(step)),
        },
    };
    let good = done && ready.is_none_or(is_ready);
    let layer = i64::try_from(object.layer + 1).unwrap_or(i64::MAX);
    let yielded = act.filter(|act| done && act.reason == Reason::FieldsYielded.as_str());
    let cause = cause.or(yielded);
    let row = SyncResource {
        object: object.reference.clone(),
        layer,
        state: state.to_owned(),
        reason: cause.map(|step| step.reason.to_string()).unwrap_or_default(),
        message: cause.map(explained).unwrap_or_default(),
    };
    let old = sketch.current.and_then(|status| {
        status.resources.iter().find(|old| old.object == object.reference && old.layer == layer)
    });
    // Since a start nothing was looked at again: what was reported of it still holds.
    match old.filter(|_| !good && ready.is_some_and(|step| is_unseen(&step.reason)) && done) {
        Some(old) => (old.clone(), old.state == READY),
        None => (row, good),
    }
}

/// Whether the act of an object has come to a good end.
fn is_written(act: Option<&StepReport>) -> bool {
    act.is_some_and(|act| matches!(act.state, StepState::Done | StepState::Skipped))
}

/// What a step says, with the field that changes it where there is one.
fn explained(step: &StepReport) -> String {
    let hint = match &*step.reason {
        reason if *reason == *Reason::AlreadyExists.as_str() => "; adopt: Adopt takes it over",
        reason if *reason == *Reason::ImmutableField.as_str() => "; immutable: Recreate makes it anew",
        _ => "",
    };
    text::line(&format!("{}{hint}", step.detail))
}

fn is_ready(step: &StepReport) -> bool {
    step.state == StepState::Met && step.ready
}

impl SyncStatusInput<'_> {
    /// A row for each export.
    pub(super) fn exports(&self) -> Vec<ExportStatus> {
        let before = self.current.map_or(&[][..], |status| status.exports.as_slice());
        self.outline
            .exports
            .iter()
            .map(|export| {
                let step = export.step.as_ref().and_then(|step| self.steps.get(step).copied());
                let written = export.act.as_ref().and_then(|act| self.steps.get(act).copied());
                let written = is_written(written);
                let old = before.iter().find(|old| old.name == export.name);
                if let (Some(old), Some(step)) = (old, step)
                    && is_unseen(&step.reason)
                {
                    return old.clone();
                }
                let (state, reason) = match step {
                    None => ("Absent", Reason::ExportMissing.as_str().to_owned()),
                    Some(step) if !written && step.word.is_empty() => ("Absent", step.reason.to_string()),
                    Some(step) if is_ready(step) && step.word == "Completed" => ("Completed", String::new()),
                    Some(step) if is_ready(step) => ("Available", String::new()),
                    Some(step) => (crate::sync::words::state(step), step.reason.to_string()),
                };
                ExportStatus {
                    name: export.name.clone(),
                    object: export.object.clone(),
                    state: state.to_owned(),
                    reason,
                }
            })
            .collect()
    }
}
