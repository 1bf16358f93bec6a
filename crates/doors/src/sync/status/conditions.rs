//! The conditions of a Sync.

use linchpin_api::sync::status::SyncDependencyStatus;
use linchpin_engine::{
    readiness::Wanted,
    step::{Phase, Report},
};
use linchpin_words::{Condition, ConditionStatus, ConditionType, Reason, Timestamp, condition};

use super::{APPLYING, SYNCED, SyncStatusInput};
use crate::{
    shown::ShownObject,
    sync::outline::{DependencyOutline, What},
};

/// The conditions that a status has, being drawn anew.
pub(super) struct Conditions<'a> {
    all: &'a mut Vec<Condition>,
    generation: i64,
    now: Timestamp,
}

impl<'a> Conditions<'a> {
    pub(super) fn new(all: &'a mut Vec<Condition>, generation: i64, now: Timestamp) -> Self {
        Self { all, generation, now }
    }

    fn set(
        &mut self,
        kind: ConditionType,
        status: impl Into<ConditionStatus>,
        reason: Reason,
        message: &str,
    ) {
        let new = Condition::new(kind, status, reason, message, self.generation, self.now);
        condition::set(self.all, new);
    }

    /// A condition that is there only while it is True.
    fn set_or_remove(&mut self, kind: ConditionType, entry: Option<(Reason, &str)>) {
        match entry {
            Some((reason, message)) => self.set(kind, true, reason, message),
            None => {
                condition::remove(self.all, kind);
            }
        }
    }

    /// While there is no plan: the source or the spec cannot be used, or the Sync is being deleted.
    pub(super) fn without_plan(&mut self, report: &Report) {
        let reason = report.reason.unwrap_or(Reason::Progressing);
        let message = report.message.clone();
        let stalled = report.phase == Phase::Failed;
        let waits_for_source = report.invalid && !stalled;
        let was_ready = condition::find(self.all, ConditionType::Ready)
            .is_some_and(|ready| ready.status == ConditionStatus::True);
        if report.invalid && reason != Reason::SpecInvalid {
            self.set(ConditionType::SourceReady, false, reason, &message);
        }
        // What runs, runs: that its source cannot be read now makes it no less ready.
        if !(waits_for_source && was_ready) {
            self.set(ConditionType::Ready, false, reason, &message);
            self.set(ConditionType::Reconciling, !stalled, reason, &message);
            self.set(ConditionType::Stalled, stalled, reason, &message);
        }
        // In use, or what must be there before anything is deleted is not.
        let holds = [Reason::InUse, Reason::DependencyNotReady].contains(&reason);
        let held = holds && report.phase == Phase::Deleting;
        self.set_or_remove(ConditionType::DeletionBlocked, held.then_some((reason, message.as_str())));
        condition::remove(self.all, ConditionType::DependencyCycle);
    }

    pub(super) fn draw(
        &mut self,
        sketch: &SyncStatusInput<'_>,
        phase: &str,
        ready: bool,
        message: &str,
        rows: &[SyncDependencyStatus],
    ) {
        let report = sketch.input.report;
        let stalled = phase == Phase::Failed.as_str();
        let reconciling = !ready && !stalled && phase != SYNCED;
        let reason = match phase {
            _ if ready => Reason::Synced,
            SYNCED => Reason::NotReady,
            APPLYING => Reason::Progressing,
            _ => report.reason.unwrap_or(Reason::Progressing),
        };
        self.set(ConditionType::Ready, ready, reason, message);
        self.set(ConditionType::Reconciling, reconciling, reason, message);
        self.set(ConditionType::Stalled, stalled, reason, message);
        self.dependencies(sketch, rows);
        match &sketch.outline.stale {
            None => {
                let message = format!("revision {} was read", sketch.outline.source.revision);
                self.set(ConditionType::SourceReady, true, Reason::SourceRead, &message);
            }
            Some((reason, message)) => self.set(ConditionType::SourceReady, false, *reason, message),
        }
        self.linked(sketch, rows);
        self.environment(sketch, rows);
        let cycle = report.reason == Some(Reason::Cycle) && !ready;
        self.set_or_remove(
            ConditionType::DependencyCycle,
            cycle.then_some((Reason::Cycle, report.message.as_str())),
        );
        condition::remove(self.all, ConditionType::DeletionBlocked);
        let versions = [Reason::VersionNotMet, Reason::VersionUnknown];
        let is_violated = |row: &&SyncDependencyStatus| {
            !row.met && versions.iter().any(|reason| row.reason == reason.as_str())
        };
        let violated = rows.iter().find(is_violated).filter(|_| !sketch.held);
        self.set_or_remove(
            ConditionType::RequirementViolated,
            violated.map(|row| (Reason::VersionNotMet, row.message.as_str())),
        );
    }

    fn dependencies(&mut self, sketch: &SyncStatusInput<'_>, rows: &[SyncDependencyStatus]) {
        const KIND: ConditionType = ConditionType::DependenciesReady;
        let report = sketch.input.report;
        if rows.is_empty() {
            return self.set(KIND, true, Reason::NoDependencies, "it depends on nothing");
        }
        if report.reason == Some(Reason::Cycle) {
            return self.set(KIND, false, Reason::Cycle, &report.message);
        }
        let outlines = || sketch.outline.dependencies.iter().chain(&sketch.outline.globals);
        let outline = |row: &SyncDependencyStatus| outlines().find(|outline| outline.name == row.name);
        // An object of its own orders it, and is no state of another that it relies on.
        let own = |row: &SyncDependencyStatus| outline(row).is_some_and(|outline| outline.what == What::Own);
        let unmet = rows.iter().filter(|row| !row.met && !row.broken && !own(row));
        // What holds it comes before what only holds another transition.
        let (holding, others): (Vec<_>, Vec<_>) = unmet.partition(|row| sketch.is_held_by(row));
        let unmet = if holding.is_empty() { others } else { holding };
        // What has failed makes the Sync fail: it is reported before what is merely not there yet.
        let has_failed = |row: &&&SyncDependencyStatus| ["Failed", "TimedOut"].contains(&row.state.as_str());
        if let Some(row) = unmet.iter().find(has_failed).or(unmet.first()) {
            let reason = why(sketch, row, outline(row));
            return self.set(KIND, false, reason, &row.message);
        }
        let broken: Vec<&str> = rows.iter().filter(|row| row.broken).map(|row| row.name.as_str()).collect();
        if broken.is_empty() {
            self.set(KIND, true, Reason::Met, "all dependencies are in the state that is relied on");
        } else {
            let message = format!("went on without: {}", broken.join(", "));
            self.set(KIND, true, Reason::SoftBroken, &message);
        }
    }

    /// Whether something provides each dependency, ready or not.
    fn linked(&mut self, sketch: &SyncStatusInput<'_>, rows: &[SyncDependencyStatus]) {
        let missing = [Reason::CapabilityMissing, Reason::ExportMissing, Reason::KindNotServed];
        let outlines = || sketch.outline.dependencies.iter().chain(&sketch.outline.globals);
        // An absence is provided by nobody.
        let is_absence = |row: &SyncDependencyStatus| {
            outlines().any(|outline| outline.name == row.name && outline.relation.state == Wanted::Absent)
        };
        // Also of what was waited for too long, or passed by hand; but not of what was there once and for all.
        let gone = |row: &SyncDependencyStatus| {
            let outline = outlines().find(|outline| outline.name == row.name && outline.what != What::Own);
            let step = outline.and_then(|outline| sketch.steps.get(&outline.step));
            row.latched_at.is_none() && step.is_some_and(|step| step.absent)
        };
        // A Sync that is there and has applied nothing is linked.
        let there = |row: &SyncDependencyStatus| {
            outlines().any(|outline| outline.name == row.name && outline.shown_state.is_some())
        };
        let absent = |row: &&SyncDependencyStatus| {
            let lacking = missing.iter().any(|reason| row.reason == reason.as_str());
            let lacking = lacking || row.state == "Absent" && !there(row);
            row.provided_by.is_none() && !is_absence(row) && (gone(row) || !row.met && lacking)
        };
        let none: Vec<String> =
            rows.iter().filter(absent).map(|row| format!("{} ({})", row.name, row.depends_on)).collect();
        let unseen = rows.iter().find(|row| !row.met && ["Unknown", "Error"].contains(&row.state.as_str()));
        let hidden = |row: &&SyncDependencyStatus| {
            !row.met && row.provided_by.as_deref().is_some_and(|by| ShownObject::read(by).is_hidden())
        };
        if !none.is_empty() {
            let message = format!("nothing provides {}", none.join(", "));
            self.set(ConditionType::Linked, false, Reason::NothingProvides, &message);
        } else if let Some(row) = unseen {
            let reason = Reason::from_word(&row.reason).unwrap_or(Reason::Unsynced);
            let message = format!("{} is not visible", row.depends_on);
            self.set(ConditionType::Linked, ConditionStatus::Unknown, reason, &message);
        } else if let Some(row) = rows.iter().find(hidden) {
            let message = format!("what provides {} is not visible", row.depends_on);
            self.set(ConditionType::Linked, ConditionStatus::Unknown, Reason::Forbidden, &message);
        } else {
            self.set(ConditionType::Linked, true, Reason::AllLinked, "everything is provided by something");
        }
    }

    /// Whether the cluster is able to do what is needed; only where something is.
    fn environment(&mut self, sketch: &SyncStatusInput<'_>, rows: &[SyncDependencyStatus]) {
        const KIND: ConditionType = ConditionType::EnvironmentReady;
        let capabilities = sketch.outline.dependencies.iter().filter(|one| one.what == What::Capability);
        let rows: Vec<&SyncDependencyStatus> =
            capabilities.filter_map(|outline| rows.iter().find(|row| row.name == outline.name)).collect();
        if rows.is_empty() {
            condition::remove(self.all, KIND);
            return;
        }
        match rows.iter().find(|row| !row.met) {
            None => self.set(KIND, true, Reason::Met, "every capability that it needs is there"),
            Some(row) => {
                // What was gone past, or holds no transition, was never there.
                let gates = sketch.outline.dependencies.iter().any(|one| one.name == row.name && one.gates);
                let had = !sketch.held && !row.broken && gates;
                let reason = if had { Reason::CapabilityLost } else { Reason::CapabilityMissing };
                self.set(KIND, false, reason, &row.message);
            }
        }
    }
}

/// Why the dependencies are not as they should be.
fn why(
    sketch: &SyncStatusInput<'_>,
    row: &SyncDependencyStatus,
    outline: Option<&DependencyOutline>,
) -> Reason {
    // What holds no transition was never had.
    if !sketch.held && outline.is_none_or(|outline| outline.gates) {
        return Reason::DependencyLost;
    }
    if outline.is_some_and(|outline| outline.cyclic) {
        return Reason::BlockedByCycle;
    }
    match Reason::from_word(&row.reason) {
        Some(Reason::VersionNotMet | Reason::VersionUnknown) => Reason::VersionNotMet,
        Some(reason @ (Reason::RevisionNotMet | Reason::ExportMissing | Reason::CapabilityMissing)) => reason,
        _ if row.state == "Failed" || row.state == "TimedOut" => Reason::DependencyFailed,
        _ => Reason::DependencyNotReady,
    }
}
