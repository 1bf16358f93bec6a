//! Dependencies of a kind that applies nothing: Capability and `GlobalDependency` are Ready while what they name is there.

use linchpin_api::{CommonStatus, SyncDependency, status::Blocker, sync::status::SyncDependencyStatus};
use linchpin_engine::{
    plan::{Plan, SpecError, Step},
    step::Phase,
};
use linchpin_words::text;
use serde_json::Value;

use super::{
    dependency::{self, DependencyContext},
    outline::DependencyOutline,
    status::dependency_rows,
};
use crate::{
    assemble::Frame,
    conditions,
    door::{Backing, StatusInput},
    entries, journal,
};

/// What the status of such an object is drawn from.
#[derive(Clone, Debug, Default)]
pub(crate) struct RowNotes {
    pub outlines: Vec<DependencyOutline>,
    /// What serves the webhooks that it is about.
    pub backing: Backing,
}

impl RowNotes {
    pub(crate) fn of(plan: Option<&Plan>) -> Option<&Self> {
        plan?.notes.get()
    }
}

/// Reads one entry, whose namespaces must be written.
pub(crate) fn read(
    frame: &Frame<'_>,
    entry: &SyncDependency,
    field: &str,
) -> Result<(DependencyOutline, Step), SpecError> {
    let around = DependencyContext {
        frame,
        via: &frame.via,
        revision: None,
        source: None,
        objects: &[],
        myself: Value::Null,
        explicit: true,
    };
    let read = dependency::read(&around, entry, field)?;
    let mut steps = read.steps();
    let mut step = steps.swap_remove(0);
    (step.patience, step.optional) = (None, false);
    Ok((read.outline, step))
}

/// What is said of such an object, with a row for each of its dependencies.
pub(crate) fn draw(
    before: &CommonStatus,
    rows_before: &[SyncDependencyStatus],
    generation: i64,
    input: &StatusInput<'_>,
) -> (CommonStatus, Vec<SyncDependencyStatus>) {
    let report = input.report;
    let blank = RowNotes::default();
    let RowNotes { outlines, .. } = RowNotes::of(input.plan).unwrap_or(&blank);
    let rows = dependency_rows(outlines.iter(), rows_before, input);
    let phase = match report.phase {
        _ if report.ready => "Ready",
        Phase::Completed | Phase::Running => Phase::Waiting.as_str(),
        other => other.as_str(),
    };
    let unmet = rows.iter().find(|row| !row.met);
    let message = match unmet.filter(|_| !report.invalid && report.phase != Phase::Suspended) {
        Some(row) => row.message.clone(),
        None if report.ready => "all that it takes is there".to_owned(),
        None => report.message.clone(),
    };
    let mut shown_report = report.clone();
    shown_report.message.clone_from(&message);
    let common = CommonStatus {
        observed_generation: generation,
        phase: Some(phase.to_owned()),
        message: Some(text::line(&entries::with_problems(message, report))),
        conditions: conditions::draw(&before.conditions, &shown_report, generation, input.now),
        blocked_by: blockers(&before.blocked_by, &rows, input),
        start_time: Some(before.start_time.unwrap_or(input.journal.run.now)),
        completion_time: None,
        edges: entries::edges(before.edges.as_ref(), input),
        journal: journal::write(input.journal),
    };
    (common, rows)
}

/// What it waits for, in the words of its rows.
fn blockers(before: &[Blocker], rows: &[SyncDependencyStatus], input: &StatusInput<'_>) -> Vec<Blocker> {
    let blank = RowNotes::default();
    let RowNotes { outlines, .. } = RowNotes::of(input.plan).unwrap_or(&blank);
    let mut blockers = entries::blockers(before, input);
    for blocker in &mut blockers {
        let outline = outlines.iter().find(|outline| Some(outline.step.as_str()) == blocker.step.as_deref());
        if let Some(row) = outline.and_then(|outline| rows.iter().find(|row| row.name == outline.name)) {
            blocker.message.clone_from(&row.message);
            blocker.reason.clone_from(&row.reason);
        }
    }
    blockers
}
