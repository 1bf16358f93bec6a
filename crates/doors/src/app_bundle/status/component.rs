//! The entry of one component.

use std::collections::BTreeMap;

use linchpin_api::app_bundle::status::{ComponentStatus, ResourceRef, ResourceStatus};
use linchpin_engine::{contract::StepId, journal::StepState, step::StepReport};
use linchpin_words::{Reason, text};

use super::{DEPLOYED, DEPLOYING, FAILED, NOT_READY, PENDING, is_done};
use crate::{app_bundle::outline::ComponentOutline, door::StatusInput, entries};

/// What the entry of a component is drawn from.
pub(super) struct ComponentDrawing<'a> {
    pub status_input: &'a StatusInput<'a>,
    pub steps: &'a BTreeMap<&'a StepId, &'a StepReport>,
    pub before: Option<&'a ComponentStatus>,
    /// Its steps; none while the spec cannot be carried out.
    pub outline: Option<&'a ComponentOutline>,
    pub name: &'a str,
}

/// Phase, reason and message.
type Story = (&'static str, String, String);

impl ComponentDrawing<'_> {
    pub(super) fn draw(&self) -> ComponentStatus {
        let found: Vec<(&StepReport, &ResourceRef)> = self
            .outline
            .iter()
            .flat_map(|outline| &outline.ready)
            .filter_map(|(step, object)| Some((*self.steps.get(step)?, object)))
            .collect();
        let ready: Vec<&StepReport> = found.iter().map(|(step, _)| *step).collect();
        let act = self.outline.and_then(|outline| self.steps.get(&outline.act).copied());
        let package = self.outline.and_then(|outline| outline.package.as_ref());
        let whole = !ready.is_empty() && act.is_some_and(is_done) && ready.iter().all(|step| is_ready(step));
        let resources: Vec<ResourceStatus> = found
            .iter()
            .map(|(step, object)| ResourceStatus {
                resource_ref: (*object).clone(),
                ready: is_ready(step),
                reason: step.reason.to_string(),
                message: if is_ready(step) { String::new() } else { text::line(&step.message) },
            })
            .collect();
        let resource_ref = resources.first().map(|first| first.resource_ref.clone());
        let resource_ref =
            resource_ref.or_else(|| self.before.and_then(|before| before.resource_ref.clone()));
        // Since a start nothing was looked at again: what was reported of it still holds.
        if let Some(before) = self.before.filter(|before| !whole && !before.ready && is_unseen(act, &ready)) {
            let package = package.map(|package| package.status.clone());
            return ComponentStatus { requires: Vec::new(), package, ..before.clone() };
        }
        let (phase, reason, message) = self.story(act, &ready, whole);
        let since = ready.iter().map(|step| step.since).chain(act.map(|act| act.since)).max();
        ComponentStatus {
            name: self.name.to_owned(),
            phase: phase.to_owned(),
            message: text::line(&message),
            resource_ref,
            reason,
            ready: whole,
            since,
            resources: if resources.len() > 1 { resources } else { Vec::new() },
            package: package.map(|package| package.status.clone()),
            requires: Vec::new(),
        }
    }

    fn story(&self, act: Option<&StepReport>, ready: &[&StepReport], whole: bool) -> Story {
        let source = self.outline.and_then(|outline| self.steps.get(&outline.source).copied());
        let Some(act) = act else {
            let message = source
                .map_or_else(|| "its turn has not come".to_owned(), |source| source.message.to_string());
            let reason = source.map_or(Reason::Waiting.as_str(), |source| source.reason.as_str());
            return (PENDING, reason.to_owned(), message);
        };
        match act.state {
            StepState::Failed | StepState::Unknown => (FAILED, act.reason.to_string(), self.failure(act)),
            StepState::Waiting | StepState::Met
                if source.is_some_and(|source| source.state != StepState::Met && source.blocking) =>
            {
                let cause = source.map(|source| (source.reason.to_string(), source.message.to_string()));
                let (reason, message) = cause.unwrap_or_default();
                (PENDING, reason, message)
            }
            StepState::Waiting | StepState::Met => {
                let phase = if act.attempts > 0 { DEPLOYING } else { PENDING };
                (phase, or(&act.reason, Reason::Waiting), act.message.to_string())
            }
            StepState::Running => (DEPLOYING, or(&act.reason, Reason::Running), "applying".to_owned()),
            StepState::Done | StepState::Skipped if whole => {
                let left = act.state == StepState::Skipped && act.reason == Reason::Exists.as_str();
                let message = match self.outline.and_then(|outline| outline.package.as_ref()) {
                    _ if left => "Resource exists already and is left as it is".to_owned(),
                    Some(package) => format!(
                        "PackageVariant deployed successfully via Porch ({} resources monitored)",
                        package.objects
                    ),
                    None => "Resource deployed successfully".to_owned(),
                };
                // What others hold is left to them, and said for as long as it is so.
                let message = match left_to_others(act) {
                    None => message,
                    Some(left) => format!("{message}; {left}"),
                };
                (DEPLOYED, or(&act.reason, Reason::Completed), message)
            }
            StepState::Done | StepState::Skipped => self.unready(ready),
        }
    }

    /// A component that is applied and not ready.
    fn unready(&self, ready: &[&StepReport]) -> Story {
        let bad = |step: &&&StepReport| step.state == StepState::Failed;
        let first = ready.iter().find(bad).or_else(|| ready.iter().find(|step| !is_ready(step)));
        let Some(step) = first else {
            return (DEPLOYING, Reason::Waiting.as_str().to_owned(), "waits for its objects".to_owned());
        };
        let message = format!("{NOT_READY}{}", step.message);
        let phase = match (self.status_input.journal.completed.is_some(), step.state) {
            (true, _) => DEPLOYED,
            (false, StepState::Failed) => FAILED,
            (false, _) => DEPLOYING,
        };
        (phase, or(&step.reason, Reason::NotReady), message)
    }

    /// What went wrong, in the document's words.
    fn failure(&self, act: &StepReport) -> String {
        let was_there = self.status_input.journal.made_by(&act.id).any(|item| item.uid.is_some());
        let what = match act.reason.as_str() {
            reason if reason == Reason::RenderFailed.as_str() => "Failed to parse template",
            _ if was_there => "Failed to update resource",
            _ => "Failed to create resource",
        };
        format!("{what}: {}", act.message)
    }
}

/// What others hold of what was applied.
pub(super) fn left_to_others(act: &StepReport) -> Option<&str> {
    let left = if act.message.is_empty() { "fields that others hold are left to them" } else { &act.message };
    (act.reason == Reason::FieldsYielded.as_str()).then_some(left)
}

fn or(reason: &str, otherwise: Reason) -> String {
    if reason.is_empty() { otherwise.as_str().to_owned() } else { reason.to_owned() }
}

/// Whether the object of a requirement is ready, as opposed to enough to go on.
fn is_ready(step: &StepReport) -> bool {
    step.state == StepState::Met && step.ready
}

/// Whether what is not ready was simply not looked at yet.
fn is_unseen(act: Option<&StepReport>, ready: &[&StepReport]) -> bool {
    act.is_some_and(is_done) && ready.iter().any(|step| !is_ready(step) && entries::is_unseen(&step.reason))
}
