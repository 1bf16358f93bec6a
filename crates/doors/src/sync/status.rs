//! From report and journal to the status of a Sync.
//!
//! Ready is about the Sync's own objects: the newest revision is applied and each of them is ready now. What it depends
//! on has conditions of its own, so that a database that flaps does not make everything above it unready. What has not
//! been looked at again since a start keeps what was said of it.

mod conditions;
mod dependencies;
mod resources;

use std::collections::BTreeMap;

use linchpin_api::{
    CommonStatus, Sync, SyncStatus,
    status::Blocker,
    sync::status::{SourceStatus, SyncDependencyStatus},
};
use linchpin_engine::{
    contract::{Notice, StepId},
    plan::Edition,
    step::{Phase, Report, StepReport},
};
use linchpin_words::{Reason, Shared, limits, text};

pub(crate) use self::dependencies::rows as dependency_rows;
use self::{conditions::Conditions, resources::ResourceRows};
use super::{
    dependency::short,
    outline::{DependencyOutline, SyncOutline, What},
};
use crate::{
    door::{self, StatusInput},
    entries, journal,
};

pub(super) const SYNCED: &str = "Synced";
pub(super) const APPLYING: &str = "Applying";

pub(super) fn draw(object: &Sync, input: &StatusInput<'_>) -> SyncStatus {
    let generation = object.metadata.generation.unwrap_or_default();
    let current = object.status.as_ref();
    if let Some(same) = entries::still(current, generation, input) {
        return same;
    }
    if input.report.invalid || input.report.phase == Phase::Deleting {
        return without_plan(object, input, generation);
    }
    let blank = SyncOutline::default();
    let sketch = SyncStatusInput {
        object,
        input,
        current,
        outline: SyncOutline::of(input.plan).unwrap_or(&blank),
        steps: input.report.steps.iter().map(|step| (&step.id, step)).collect(),
        held: input.plan.is_some_and(|plan| input.journal.is_held(plan)),
    };
    sketch.draw(generation)
}

/// The event about a phase, in the words that the status has for it.
pub(super) fn event(report: &Report) -> Notice {
    let notice = door::phase_event(report);
    let (reason, message) = match report.phase {
        Phase::Completed => (SYNCED, "all its objects are applied and ready"),
        Phase::Running => (APPLYING, "it is admitted: its objects are applied"),
        _ => return notice,
    };
    Notice { reason: reason.to_owned(), message: message.to_owned(), ..notice }
}

/// What a status is drawn from.
pub(super) struct SyncStatusInput<'a> {
    pub object: &'a Sync,
    pub input: &'a StatusInput<'a>,
    pub current: Option<&'a SyncStatus>,
    pub outline: &'a SyncOutline,
    pub steps: BTreeMap<&'a StepId, &'a StepReport>,
    /// Whether the revision has not been admitted.
    pub held: bool,
}

/// The status while there is no plan: the source or the spec cannot be used, or the Sync is being deleted.
fn without_plan(object: &Sync, input: &StatusInput<'_>, generation: i64) -> SyncStatus {
    let report = input.report;
    let mut status = object.status.clone().unwrap_or_default();
    let common = &mut status.common;
    // What is Synced stays that while its source cannot be read: it is the source that waits.
    let waits = report.invalid && report.phase == Phase::Waiting;
    let stays = waits && common.observed_generation == generation && common.phase.as_deref() == Some(SYNCED);
    common.observed_generation = generation;
    let failed = report.phase == Phase::Failed && !report.invalid;
    let (phase, message) = entries::in_users_words(
        &object.spec.common,
        failed,
        report.phase.as_str().to_owned(),
        report.message.clone(),
    );
    if !stays {
        common.phase = Some(phase);
    }
    common.message = Some(text::line(&entries::with_problems(message, report)));
    common.blocked_by = entries::blockers(&common.blocked_by, input);
    Conditions::new(&mut common.conditions, generation, input.now).without_plan(report);
    common.start_time.get_or_insert(input.journal.run.now);
    common.journal = journal::write(input.journal);
    status.held_by = report.held_by.iter().take(limits::HELD_BY).cloned().collect();
    status
}

impl SyncStatusInput<'_> {
    fn draw(&self, generation: i64) -> SyncStatus {
        let rows = dependency_rows(
            self.outline.dependencies.iter().chain(&self.outline.globals),
            self.current.map_or(&[][..], |status| status.dependencies.as_slice()),
            self.input,
        );
        let resources = ResourceRows::of(self);
        let ready = !self.held && self.input.journal.completed.is_some() && resources.all_ready();
        let phase = self.phase();
        let message = self.message(phase, ready, &rows, &resources);
        let mut conditions = self.current.map(|status| status.common.conditions.clone()).unwrap_or_default();
        Conditions::new(&mut conditions, generation, self.input.now)
            .draw(self, phase, ready, &message, &rows);
        let failed = phase == Phase::Failed.as_str();
        let (phase, message) =
            entries::in_users_words(&self.object.spec.common, failed, phase.to_owned(), message);
        let message = entries::with_problems(message, self.input.report);
        let editions = &self.input.journal.editions;
        let revision = |edition: &Option<Shared<Edition>>| Some(edition.as_ref()?.revision.clone());
        let progress = resources.progress();
        let (listed, more_resources) = resources.listed();
        let broken = rows.iter().filter(|row| row.broken).map(|row| row.name.clone()).collect();
        let shown = self.current.and_then(|status| status.common.edges.as_ref());
        SyncStatus {
            common: CommonStatus {
                observed_generation: generation,
                phase: Some(phase),
                message: Some(text::line(&message)),
                conditions,
                blocked_by: self.blockers(&rows),
                start_time: Some(self.input.journal.run.now),
                completion_time: self.input.journal.completed,
                edges: entries::edges(shown, self.input),
                journal: journal::write(self.input.journal),
            },
            observed_revision: Some(self.outline.source.revision.clone()),
            last_attempted_revision: revision(&editions.admitted),
            last_applied_revision: revision(&editions.applied),
            last_ready_revision: revision(&editions.ready),
            version: editions.applied.as_ref().and_then(|edition| edition.version.clone()),
            source: Some(self.source()),
            waiting_on: self.waiting_on(&rows),
            dependencies: rows,
            broken_soft: broken,
            held_by: Vec::new(),
            progress: Some(progress),
            resources: listed,
            more_resources,
            exports: self.exports(),
        }
    }

    /// How far it is, in one word.
    fn phase(&self) -> &'static str {
        match self.input.report.phase {
            Phase::Waiting | Phase::Running if self.held => Phase::Waiting.as_str(),
            Phase::Waiting | Phase::Running => APPLYING,
            Phase::Completed => SYNCED,
            other => other.as_str(),
        }
    }

    /// How far it is, in one line.
    fn message(
        &self,
        phase: &str,
        ready: bool,
        rows: &[SyncDependencyStatus],
        resources: &ResourceRows,
    ) -> String {
        let report = self.input.report;
        if [Reason::NotATenant, Reason::Cycle].map(Some).contains(&report.reason) && !ready {
            return report.message.clone();
        }
        let revision = short(&self.outline.source.revision);
        let count = self.outline.objects.len();
        let unsettled = resources.first_unsettled();
        if phase == SYNCED {
            return match unsettled.filter(|_| !ready) {
                None if count == 0 => format!("revision {revision} is applied and has no objects"),
                None if count == 1 => format!("revision {revision} is applied and its object is ready"),
                None => format!("revision {revision} is applied and all its {count} objects are ready"),
                Some(detail) => format!("revision {revision} is applied, but {detail}"),
            };
        }
        if phase == APPLYING {
            let progress = resources.progress();
            let detail = unsettled.map(|detail| format!("; {detail}")).unwrap_or_default();
            let (applied, ready) = (progress.applied, progress.ready);
            return format!("{applied} of {count} objects are applied, {ready} are ready{detail}");
        }
        let unmet: Vec<&SyncDependencyStatus> = rows.iter().filter(|row| self.is_held_by(row)).collect();
        if phase == Phase::Waiting.as_str()
            && let Some(first) = unmet.first()
        {
            let more =
                if unmet.len() > 1 { format!(" (and {} more)", unmet.len() - 1) } else { String::new() };
            let blocked = self.blockers(rows);
            let cause = entries::root_cause(&blocked).map(|cause| format!("; root cause: {cause}"));
            return format!("{}{more}{}", first.message, cause.unwrap_or_default());
        }
        if phase == Phase::Failed.as_str() {
            let halt = self.input.journal.halt.as_ref();
            let halted = halt.and_then(|halt| halt.step.as_ref());
            let late = halt.is_some_and(|halt| halt.reason == Reason::GlobalTimeout);
            let outlines = self.outline.dependencies.iter().chain(&self.outline.globals);
            let culprit = halted.and_then(|step| {
                let named = outlines.into_iter().find(|outline| outline.step == *step)?;
                rows.iter().find(|row| row.name == named.name && !row.met)
            });
            return match (culprit, unmet.first(), unsettled) {
                (Some(row), ..) if row.state == "TimedOut" => format!("timed out: {}", row.message),
                (Some(row), ..) => row.message.clone(),
                (None, Some(row), _) if late => {
                    format!("{}: {}", Reason::GlobalTimeout.in_words(), row.message)
                }
                // What failed has recovered; the rest is still waited for.
                (None, Some(row), _) if self.held => row.message.clone(),
                (None, _, Some(detail)) => detail,
                (None, _, None) => report.message.clone(),
            };
        }
        report.message.clone()
    }

    /// Whether it is what this very transition waits for.
    fn is_held_by(&self, row: &SyncDependencyStatus) -> bool {
        let mut outlines = self.outline.dependencies.iter().chain(&self.outline.globals);
        let outline = outlines.find(|outline| outline.name == row.name && outline.gates);
        let step = outline.and_then(|outline| self.steps.get(&outline.step));
        self.held && !row.met && !row.broken && step.is_some_and(|step| step.blocking)
    }

    /// The source as it was read; the moment stays that of the first look at this revision.
    fn source(&self) -> SourceStatus {
        let old = self.current.and_then(|status| status.source.as_ref());
        let since =
            old.filter(|old| old.revision == self.outline.source.revision).and_then(|old| old.fetched_at);
        SourceStatus { fetched_at: since.or(Some(self.input.now)), ..self.outline.source.clone() }
    }

    /// What it waits for, each in the RFC's words. While it is held, its objects are not what it waits for.
    fn blockers(&self, rows: &[SyncDependencyStatus]) -> Vec<Blocker> {
        let before = self.current.map_or(&[][..], |status| status.common.blocked_by.as_slice());
        let mut blockers = entries::blockers(before, self.input);
        let outlines = || self.outline.dependencies.iter().chain(&self.outline.globals);
        for blocker in &mut blockers {
            let outline = outlines().find(|outline| Some(outline.step.as_str()) == blocker.step.as_deref());
            if let Some(row) = outline.and_then(|outline| rows.iter().find(|row| row.name == outline.name)) {
                blocker.message.clone_from(&row.message);
                blocker.reason.clone_from(&row.reason);
            }
        }
        if self.held {
            let is_object = |blocker: &Blocker| {
                self.outline.objects.iter().any(|object| Some(object.act.as_str()) == blocker.step.as_deref())
            };
            let lacking = [Reason::MissingRights.as_str(), Reason::NotATenant.as_str()];
            blockers.retain(|blocker| !is_object(blocker) || lacking.contains(&blocker.reason.as_str()));
        }
        blockers
    }

    /// What is waited for, as everybody calls it: of an export, the Sync.
    fn waited_for(&self, row: &SyncDependencyStatus) -> String {
        let export = |one: &&DependencyOutline| one.name == row.name && one.what == What::Export;
        let object = self.outline.dependencies.iter().find(export).and_then(|one| one.object.as_ref());
        object.map_or_else(|| row.depends_on.clone(), ToString::to_string)
    }

    /// What it waits for, directly and through others.
    fn waiting_on(&self, rows: &[SyncDependencyStatus]) -> Vec<String> {
        let mut waiting: Vec<String> = Vec::new();
        let direct = rows.iter().filter(|row| self.is_held_by(row)).map(|row| self.waited_for(row));
        let behind = if self.held { self.input.causes.waiting_on.as_slice() } else { &[] };
        for one in direct.chain(behind.iter().cloned()) {
            if !waiting.contains(&one) && waiting.len() < limits::WAITING_ON {
                waiting.push(one);
            }
        }
        waiting
    }
}
