//! A row for each dependency.

use linchpin_api::sync::status::SyncDependencyStatus;
use linchpin_engine::{contract::StepId, journal::StepState, readiness::Wanted, step::StepReport};
use linchpin_words::{Reason, text};

use crate::{
    door::StatusInput,
    entries::{find, is_unseen},
    sync::{outline::DependencyOutline, words},
};

/// A row for each dependency. What has not been looked at again keeps the row in `before`.
pub(crate) fn rows<'o>(
    outlines: impl Iterator<Item = &'o DependencyOutline>,
    before: &[SyncDependencyStatus],
    input: &StatusInput<'_>,
) -> Vec<SyncDependencyStatus> {
    outlines
        .filter_map(|outline| {
            let step = find(input.report, &outline.step)?;
            let old = before.iter().find(|old| old.name == outline.name);
            if let Some(old) =
                old.filter(|old| is_unseen(&step.reason) && old.met == is_met(&outline.step, step, input))
            {
                return Some(old.clone());
            }
            Some(row(outline, step, old, input))
        })
        .collect()
}

/// Why the journal has a step as it is.
fn recorded(step: &StepId, input: &StatusInput<'_>) -> Option<Reason> {
    input.journal.steps.get(step).and_then(|record| record.reason)
}

fn is_met(id: &StepId, step: &StepReport, input: &StatusInput<'_>) -> bool {
    step.state == StepState::Met && recorded(id, input) != Some(Reason::SoftBroken)
}

fn row(
    outline: &DependencyOutline,
    step: &StepReport,
    old: Option<&SyncDependencyStatus>,
    input: &StatusInput<'_>,
) -> SyncDependencyStatus {
    let recorded = recorded(&outline.step, input);
    let met = is_met(&outline.step, step, input);
    let broken = recorded == Some(Reason::SoftBroken);
    let providers = outline.object.as_ref().and_then(|object| input.causes.providers.get(object));
    let provider = providers.and_then(|all| all.first());
    let record = input.journal.steps.get(&outline.step);
    let latched = outline.latches && record.is_some_and(|record| record.latch.is_some());
    let reason = match (met, recorded) {
        (true, Some(Reason::Proceeded)) => Reason::Proceeded.as_str().to_owned(),
        (true, _) => Reason::Met.as_str().to_owned(),
        (false, _) => words::reason(outline, step),
    };
    let mut state = match outline.shown_state {
        Some(shown) if step.word == "NotReady" => shown,
        _ => words::state(step),
    };
    match outline.relation.state {
        // An export, a Sync that is applied, is found by a profile, which knows ready and not ready only.
        Wanted::Exists if met && state == "Available" => state = "Defined",
        Wanted::Completed if met => state = "Completed",
        _ => {}
    }
    SyncDependencyStatus {
        name: outline.name.clone(),
        depends_on: outline.depends_on.clone(),
        relation: outline.relation.to_string(),
        strength: outline.strength.as_str().to_owned(),
        state: state.to_owned(),
        met,
        reason,
        message: if met { String::new() } else { text::line(&words::sentence(outline, step, provider)) },
        since: step.since,
        observed_revision: outline.observed_revision.clone(),
        observed_version: outline.observed_version.clone(),
        latched_at: latched.then(|| old.and_then(|old| old.latched_at).unwrap_or(input.now)),
        broken,
        provided_by: provider.map(ToString::to_string),
    }
}
