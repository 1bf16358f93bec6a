//! From report and journal to the status of a DependencyGroup.

use linchpin_api::{
    DependencyGroup, Group, Status,
    status::{ActionStatus, DependencyStatus, GroupStatus},
};
use linchpin_words::{Reason, text};

use crate::{door::StatusInput, entries, names};

pub(super) fn draw(object: &DependencyGroup, status_input: &StatusInput<'_>) -> Status {
    let spec = &object.spec;
    let generation = object.metadata.generation.unwrap_or_default();
    let current = object.status.as_ref();
    if let Some(same) = entries::unchanged(current, generation, status_input) {
        return same;
    }
    let mut groups: Vec<GroupStatus> = Vec::new();
    if !status_input.report.steps.is_empty() {
        let known = spec.groups.iter().map(|group| entry(group, current, status_input)).collect();
        groups = settle(&spec.groups, known);
    }
    for group in &mut groups {
        let before = current.and_then(|status| status.groups.iter().find(|old| old.name == group.name));
        let same = before.filter(|old| old.phase == group.phase && old.reason == group.reason);
        group.since = same.map_or(status_input.now, |old| old.since);
    }
    let common = entries::base(&spec.common, current, generation, status_input);
    Status { common, groups, ..Status::default() }
}

/// A group by its own entries alone.
fn entry(group: &Group, current: Option<&Status>, status_input: &StatusInput<'_>) -> GroupStatus {
    let before = current.and_then(|status| status.groups.iter().find(|old| old.name == group.name));
    let before = before.map_or(&[][..], |old| old.dependencies.as_slice());
    let names = names::of_part(Some(&group.name), &group.dependencies, &group.actions);
    let dependencies: Vec<DependencyStatus> = group
        .dependencies
        .iter()
        .zip(&names.dependencies)
        .filter_map(|(entry, named)| entries::dependency(entry, named, before, status_input))
        .collect();
    let actions: Vec<ActionStatus> = group
        .actions
        .iter()
        .zip(&names.actions)
        .filter_map(|(entry, named)| entries::action(entry, named, status_input))
        .collect();
    // Once everything was done, what does not hold was lost.
    let was_ready = status_input.journal.completed.is_some();
    let (phase, reason, message) = judge(group, &dependencies, &actions, was_ready);
    GroupStatus {
        name: group.name.clone(),
        phase: phase.to_owned(),
        ready: phase == READY,
        reason,
        message: text::line(&message),
        since: status_input.now,
        dependencies,
        actions,
    }
}

const READY: &str = "Ready";
const PENDING: &str = "Pending";

fn judge(
    group: &Group,
    dependencies: &[DependencyStatus],
    actions: &[ActionStatus],
    was_ready: bool,
) -> (&'static str, String, String) {
    let is_bad = |state: &str| matches!(state, "Failed" | "Unknown");
    if let Some(action) = actions.iter().find(|action| is_bad(&action.state)) {
        return ("Failed", action.reason.clone(), format!("{}: {}", action.name, action.message));
    }
    let optional = |index: usize| group.dependencies.get(index).is_some_and(|entry| entry.optional);
    let unmet: Vec<&DependencyStatus> = dependencies
        .iter()
        .enumerate()
        .filter(|(index, one)| !one.met && !optional(*index))
        .map(|(_, one)| one)
        .collect();
    // What has failed before its turn fails nothing yet.
    let in_turn = |one: &&&DependencyStatus| one.reason != Reason::WaitingForTier.as_str();
    let has_failed = |one: &&&DependencyStatus| matches!(one.state.as_str(), "Failed" | "TimedOut");
    if let Some(one) = unmet.iter().filter(in_turn).find(has_failed) {
        return ("Failed", one.reason.clone(), format!("{}: {}", one.name, one.message));
    }
    if let Some(first) = unmet.first() {
        let reason =
            if was_ready { Reason::DependencyLost.as_str().to_owned() } else { first.reason.clone() };
        let more = if unmet.len() > 1 { format!(" (and {} more)", unmet.len() - 1) } else { String::new() };
        return ("Waiting", reason, format!("waiting for {}: {}{more}", first.name, first.message));
    }
    let done =
        actions.iter().filter(|action| matches!(action.state.as_str(), "Completed" | "Skipped")).count();
    if done < actions.len() {
        let text = format!("{done} of {} actions are done", actions.len());
        return ("Running", Reason::Running.as_str().to_owned(), text);
    }
    let text = if actions.is_empty() { "all dependencies are met" } else { "all actions are done" };
    (READY, Reason::Met.as_str().to_owned(), text.to_owned())
}

/// Groups that wait for other groups say so, also those without entries of their own.
fn settle(groups: &[Group], mut entries: Vec<GroupStatus>) -> Vec<GroupStatus> {
    // Each pass settles at least the next group of any chain, so as many passes as groups are enough.
    for _ in 0..entries.len() {
        let waiting: Vec<Vec<&str>> = groups
            .iter()
            .map(|group| {
                let unready =
                    |name: &&String| entries.iter().any(|entry| entry.name == **name && !entry.ready);
                group.depends_on.iter().filter(unready).map(String::as_str).collect()
            })
            .collect();
        let mut changed = false;
        for (entry, before) in entries.iter_mut().zip(waiting) {
            if before.is_empty() || entry.phase == PENDING || entry.phase == "Failed" {
                continue;
            }
            PENDING.clone_into(&mut entry.phase);
            entry.ready = false;
            Reason::WaitingForGroup.as_str().clone_into(&mut entry.reason);
            entry.message = text::line(&format!("waits for {}", before.join(", ")));
            changed = true;
        }
        if !changed {
            break;
        }
    }
    entries
}
