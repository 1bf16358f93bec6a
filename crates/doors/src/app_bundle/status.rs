//! From report and journal to the status of an AppBundle, in the document's phases and messages.
//!
//! Every group and component is listed from the beginning, those whose turn has not come as Pending. `Deployed` stays
//! once it was reached in a generation; readiness follows the objects. What has not been looked at again since a start
//! keeps what was said of it.

mod component;

use std::collections::BTreeMap;

use linchpin_api::{
    AppBundle, AppBundleStatus, BundleGroup, CommonStatus, Dependency,
    app_bundle::status::{BundleGroupStatus, ComponentStatus},
    status::DependencyStatus,
};
use linchpin_engine::{
    contract::{Notice, StepId},
    journal::StepState,
    step::{Phase, Report, StepReport},
};
use linchpin_words::{Condition, ConditionType, Reason, condition, text};

use self::component::ComponentDrawing;
use super::outline::{BundleOutline, GroupOutline};
use crate::{
    door::{self, StatusInput},
    entries, journal, names,
};

pub(super) const PENDING: &str = "Pending";
pub(super) const DEPLOYING: &str = "Deploying";
pub(super) const DEPLOYED: &str = "Deployed";
pub(super) const FAILED: &str = "Failed";

/// The message of a bundle that is deployed and ready.
const ALL_DEPLOYED: &str = "All groups deployed successfully";

/// How the message of a component begins whose object is there and not ready.
pub(super) const NOT_READY: &str = "Resource not ready: ";

/// The document's word for a phase.
pub(super) fn phase_word(phase: Phase) -> &'static str {
    match phase {
        Phase::Pending | Phase::Waiting => PENDING,
        Phase::Running => DEPLOYING,
        Phase::Completed => DEPLOYED,
        Phase::Failed => FAILED,
        Phase::Suspended | Phase::Deleting => phase.as_str(),
    }
}

pub(super) fn draw(object: &AppBundle, status_input: &StatusInput<'_>) -> AppBundleStatus {
    let generation = object.metadata.generation.unwrap_or_default();
    let current = object.status.as_ref();
    if let Some(same) = entries::still(current, generation, status_input) {
        return same;
    }
    let known = current.filter(|status| status.common.speaks_of(generation));
    let outline = BundleOutline::of(status_input.plan);
    let sketch = Sketch { object, status_input, current, steps: index(status_input), outline };
    let groups = sketch.groups();
    let (phase, message) = sketch.headline(&groups);
    let failed = phase == FAILED;
    let conditions = sketch.conditions(phase, &message, generation);
    let (phase, message) = entries::in_users_words(
        &object.spec.common,
        failed && !status_input.report.invalid,
        phase.to_owned(),
        message,
    );
    let message = entries::with_problems(message, status_input.report);
    let before = current.map_or(&[][..], |status| status.common.blocked_by.as_slice());
    AppBundleStatus {
        common: CommonStatus {
            observed_generation: generation,
            phase: Some(phase),
            message: Some(text::line(&message)),
            conditions,
            blocked_by: entries::blockers(before, status_input),
            edges: entries::edges(known.and_then(|status| status.common.edges.as_ref()), status_input),
            start_time: Some(status_input.journal.run.now),
            completion_time: status_input.journal.completed,
            journal: journal::write(status_input.journal),
        },
        requires: sketch.requires(&object.spec.requires, None, current.map(|status| &status.requires[..])),
        group_statuses: groups,
        porch_repositories: match status_input.plan {
            Some(_) => outline.map(|outline| outline.repositories.clone()).unwrap_or_default(),
            None => current.map(|status| status.porch_repositories.clone()).unwrap_or_default(),
        },
    }
}

/// The report's steps by their names.
fn index<'a>(status_input: &StatusInput<'a>) -> BTreeMap<&'a StepId, &'a StepReport> {
    status_input.report.steps.iter().map(|step| (&step.id, step)).collect()
}

struct Sketch<'a> {
    object: &'a AppBundle,
    status_input: &'a StatusInput<'a>,
    current: Option<&'a AppBundleStatus>,
    steps: BTreeMap<&'a StepId, &'a StepReport>,
    outline: Option<&'a BundleOutline>,
}

impl Sketch<'_> {
    /// Names of groups and their components: as they are written, or of the plan where that is of another revision.
    fn listing(&self) -> Vec<(String, Vec<String>)> {
        if let Some(outline) = self.outline.filter(|_| self.object.spec.rollback.is_some()) {
            let names = |group: &GroupOutline| group.components.iter().map(|one| one.name.clone()).collect();
            return outline.groups.iter().map(|group| (group.name.clone(), names(group))).collect();
        }
        let names = |group: &BundleGroup| group.components.iter().map(|one| one.name.clone()).collect();
        self.object.spec.groups.iter().map(|group| (group.name.clone(), names(group))).collect()
    }

    fn groups(&self) -> Vec<BundleGroupStatus> {
        let old = self.current.map_or(&[][..], |status| status.group_statuses.as_slice());
        if self.status_input.report.phase == Phase::Deleting {
            return old.to_vec();
        }
        let culprit = self.culprit();
        self.listing()
            .into_iter()
            .enumerate()
            .map(|(index, (name, components))| {
                let before = old.iter().find(|group| group.name == name);
                let entry = self.object.spec.groups.iter().find(|group| group.name == name);
                let drawn = components.into_iter().enumerate().map(|(inner, component)| {
                    let mut drawn = self.component(&name, &component, before);
                    if culprit == Some((index, inner)) {
                        FAILED.clone_into(&mut drawn.phase);
                        Reason::SpecInvalid.as_str().clone_into(&mut drawn.reason);
                        drawn.message = text::line(&wrong(self.status_input.report));
                        drawn.ready = false;
                    }
                    let entry =
                        entry.and_then(|group| group.components.iter().find(|one| one.name == drawn.name));
                    let old = before
                        .and_then(|group| group.component_statuses.iter().find(|old| old.name == drawn.name));
                    if let Some(entry) = entry {
                        let path = names::component(&name, &drawn.name);
                        let old = old.map(|old| &old.requires[..]);
                        drawn.requires = self.requires(&entry.requires, Some(&path), old);
                    }
                    drawn
                });
                let component_statuses: Vec<ComponentStatus> = drawn.collect();
                let (phase, message) = group_phase(&component_statuses);
                let requires = entry.map(|entry| {
                    self.requires(&entry.requires, Some(&name), before.map(|old| &old.requires[..]))
                });
                BundleGroupStatus {
                    name,
                    phase: phase.to_owned(),
                    message: text::line(&message),
                    component_statuses,
                    requires: requires.unwrap_or_default(),
                }
            })
            .collect()
    }

    fn component(&self, group: &str, name: &str, before: Option<&BundleGroupStatus>) -> ComponentStatus {
        let before = before.and_then(|group| group.component_statuses.iter().find(|old| old.name == name));
        let outline = self.outline.and_then(|outline| outline.component(group, name));
        ComponentDrawing { status_input: self.status_input, steps: &self.steps, before, outline, name }.draw()
    }

    fn requires(
        &self,
        entries: &[Dependency],
        of: Option<&str>,
        before: Option<&[DependencyStatus]>,
    ) -> Vec<DependencyStatus> {
        let named = names::required(of, entries);
        let own = names::of_part(None, entries, &[]).dependencies;
        let before = before.unwrap_or_default();
        entries
            .iter()
            .zip(named.iter().zip(&own))
            .filter_map(|(entry, (named, own))| {
                let mut drawn = entries::dependency(entry, named, before, self.status_input)?;
                if entry.name.is_none() {
                    drawn.name = own.id.to_string();
                }
                Some(drawn)
            })
            .collect()
    }

    /// The component that a wrong spec is wrong in.
    fn culprit(&self) -> Option<(usize, usize)> {
        let field = &self.status_input.report.field;
        Some((field.index_in("groups")?, field.index_in("components")?))
    }

    /// Phase and message of the whole bundle.
    fn headline(&self, groups: &[BundleGroupStatus]) -> (&'static str, String) {
        let report = self.status_input.report;
        let components = || {
            groups
                .iter()
                .flat_map(|group| group.component_statuses.iter().map(move |component| (group, component)))
        };
        let failed = groups.iter().find(|group| group.phase == FAILED);
        let going = components().any(|(_, component)| component.phase == DEPLOYING);
        let begun = going || components().any(|(_, component)| component.phase == DEPLOYED);
        let describe = |group: &BundleGroupStatus| format!("group {}: {}", group.name, group.message);
        let phase = match report.phase {
            Phase::Waiting | Phase::Running if failed.is_some() && !going => FAILED,
            Phase::Waiting | Phase::Running if begun => DEPLOYING,
            other => phase_word(other),
        };
        let message = match phase {
            _ if report.reason == Some(Reason::NotATenant) => report.message.clone(),
            DEPLOYED if report.ready => match rolled_back(self.object) {
                Some(detail) => format!("{detail}; to deploy it: {}", self.undo()),
                None => match self.left_to_others() {
                    Some(left) => {
                        format!(
                            "deployed; {left}; to take it back, write another value to it once with kubectl patch"
                        )
                    }
                    None => ALL_DEPLOYED.to_owned(),
                },
            },
            DEPLOYED => components().find(|(_, component)| !component.ready).map_or_else(
                || report.message.clone(),
                |(group, component)| {
                    format!(
                        "deployed, but component {}/{}: {}",
                        group.name, component.name, component.message
                    )
                },
            ),
            FAILED if !report.invalid => failed.map_or_else(|| report.message.clone(), describe),
            DEPLOYING => {
                let done = components().filter(|(_, component)| component.phase == DEPLOYED).count();
                let first = components().find(|(_, component)| component.phase == DEPLOYING);
                let first = first.or_else(|| components().find(|(_, component)| component.phase != DEPLOYED));
                let detail = first.map_or_else(
                    || format!("; {}", report.message),
                    |(group, component)| {
                        format!("; {}/{}: {}", group.name, component.name, component.message)
                    },
                );
                format!("{done} of {} components are deployed{detail}", components().count())
            }
            _ => report.message.clone(),
        };
        let message = match rolled_back(self.object).filter(|_| !report.ready && !report.invalid) {
            Some(detail) => format!("{message} ({detail})"),
            None => message,
        };
        (phase, message)
    }

    /// What of the first component of which others hold something.
    fn left_to_others(&self) -> Option<&str> {
        let mut acts = self.outline?.components().filter_map(|(_, one)| self.steps.get(&one.act));
        acts.find_map(|act| component::left_to_others(act))
    }

    /// The line that deploys the spec again.
    fn undo(&self) -> String {
        let name = self.object.metadata.name.as_deref().unwrap_or_default();
        format!("kubectl patch ab {name} --type merge -p '{{\"spec\":{{\"rollback\":null}}}}'")
    }

    fn conditions(&self, phase: &str, message: &str, generation: i64) -> Vec<Condition> {
        let report = self.status_input.report;
        let stalled = phase == FAILED;
        let reconciling = !report.ready && !stalled && phase != DEPLOYED;
        let reason = match phase {
            _ if report.reason == Some(Reason::NotATenant) => Reason::NotATenant,
            FAILED => Reason::DeploymentFailed,
            _ if report.ready && self.object.spec.rollback.is_some() => Reason::RolledBack,
            _ if report.ready => Reason::DeploymentComplete,
            DEPLOYING => Reason::Progressing,
            _ => report.reason.unwrap_or(Reason::Progressing),
        };
        let plain = report.ready && reason != Reason::RolledBack;
        let message = if plain { "All resources deployed successfully" } else { message };
        let mut conditions = self.current.map(|status| status.common.conditions.clone()).unwrap_or_default();
        for (kind, holds) in [
            (ConditionType::Ready, report.ready),
            (ConditionType::Reconciling, reconciling),
            (ConditionType::Stalled, stalled),
        ] {
            let new = Condition::new(kind, holds, reason, message, generation, self.status_input.now);
            condition::set(&mut conditions, new);
        }
        conditions
    }
}

/// What is reported of a bundle that has come to another phase. Of one that is rolled back there is a warning of its
/// own.
pub(super) fn event(object: Option<&AppBundle>, report: &Report) -> Option<Notice> {
    let notice = door::phase_event(report);
    match (report.phase, object) {
        (Phase::Completed, Some(object)) if object.spec.rollback.is_some() => None,
        (Phase::Completed, _) if report.ready => Some(Notice {
            reason: Reason::Deployed.as_str().to_owned(),
            message: ALL_DEPLOYED.to_owned(),
            ..notice
        }),
        _ => Some(notice),
    }
}

/// That an earlier revision is deployed instead of the spec.
pub(super) fn rolled_back(object: &AppBundle) -> Option<String> {
    let revision = object.spec.rollback?;
    let generation = object.metadata.generation.unwrap_or_default();
    Some(format!("rolled back to revision {revision}; the spec (generation {generation}) is not deployed"))
}

/// Whether the status says so already.
pub(super) fn says_rolled_back(status: &AppBundleStatus) -> bool {
    let ready = condition::find(&status.common.conditions, ConditionType::Ready);
    ready.is_some_and(|ready| ready.reason == Reason::RolledBack.as_str())
}

/// What is wrong with a component, in the document's words where its template is.
fn wrong(report: &Report) -> String {
    let in_template = report.field.is_in(&["template", "templates", "source"]);
    if in_template { format!("Failed to parse template: {}", report.message) } else { report.message.clone() }
}

/// A group by its components.
fn group_phase(components: &[ComponentStatus]) -> (&'static str, String) {
    let is = |phase: &'static str| move |component: &&ComponentStatus| component.phase == phase;
    if let Some(failed) = components.iter().find(is(FAILED)) {
        return (FAILED, format!("Failed to deploy component {}: {}", failed.name, failed.message));
    }
    let done = components.iter().filter(is(DEPLOYED)).count();
    if done == components.len() {
        return (DEPLOYED, "All components deployed successfully".to_owned());
    }
    let first = components.iter().find(is(DEPLOYING)).or_else(|| components.iter().find(is(PENDING)));
    let first = first.map_or_else(String::new, |one| format!("{}: {}", one.name, one.message));
    if done > 0 || components.iter().any(|component| component.phase == DEPLOYING) {
        return (DEPLOYING, format!("{done} of {} components are deployed; {first}", components.len()));
    }
    (PENDING, first)
}

/// Whether a step has come to a good end.
fn is_done(step: &StepReport) -> bool {
    matches!(step.state, StepState::Done | StepState::Skipped)
}
