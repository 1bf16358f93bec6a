//! Keeping the inventory true: what we made or mean to make, whose it is, and which step makes it now.
//!
//! A row is of one object in one cluster: its key is the place and what the object is called there. Where a step goes on in
//! another cluster it gets another row, and the old one keeps what is there.
//!
//! Rows come before objects: what a crash right after a write would lose was written down before it. A row follows its
//! object: to another step when the object moves there, out of its step when that no longer renders it. Nothing is
//! deleted here; [`removal`](super::removal) works from what is kept here.

use std::collections::BTreeSet;

use crate::{
    contract::{ClusterRef, Done, EffectTarget, Outcome, StepId},
    journal::{InventoryItem, ItemState, Memory, StepRecord},
    plan::{ActionBody, Plan, PlannedAction, is_long_lived},
};

/// Keeps the inventory true, also for outcomes that come too late to matter otherwise.
///
/// An object is ours while it carries our mark: one that was there when we came never becomes ours, and one that somebody
/// took the mark off is theirs again.
pub(super) fn remember(
    memory: &mut Memory,
    plan: &Plan,
    position: usize,
    action: &PlannedAction,
    done: &Done,
) {
    if matches!(action.body, ActionBody::Delete { .. }) {
        return;
    }
    let (Some(target), Some(stamp)) = (&done.target, &done.stamp) else {
        return;
    };
    if !action.tracked {
        let step = &plan.steps()[position].id;
        let rows = memory.journal.inventory.iter_mut();
        for row in rows.filter(|row| row.step == *step && is_row_of(row, &done.place, target)) {
            row.owned = done.owned;
            release(row);
        }
        return;
    }
    let index = row(memory, plan, position, action, &done.place, target);
    let rows: &mut Vec<InventoryItem> = &mut memory.journal.inventory;
    for (_, other) in rows.iter_mut().enumerate().filter(|(other, _)| *other != index) {
        // The same cluster by another reference: one object needs one row.
        if other.uid.as_ref() == Some(&stamp.uid)
            && same_object(&other.target, target)
            && other.place != done.place
        {
            other.state = ItemState::Gone;
        }
    }
    let row = &mut rows[index];
    row.state = if done.created { ItemState::Created } else { ItemState::Adopted };
    row.uid = Some(stamp.uid.clone());
    row.target = target.clone();
    row.owned = done.owned;
    row.unownable = action.owner.is_some() && !done.owned;
    row.reason = None;
}

/// An object is left to itself, once nothing would delete it with ours: its row has nothing to answer for any more.
fn release(row: &mut InventoryItem) {
    if !row.owned && matches!(row.state, ItemState::Created | ItemState::Intended | ItemState::Adopted) {
        row.state = ItemState::Gone;
    }
}

/// Whether a row is of this object in this cluster.
fn is_row_of(row: &InventoryItem, place: &ClusterRef, target: &EffectTarget) -> bool {
    row.place == *place && same_object(&row.target, target)
}

/// The position of an object's inventory row, made if it is missing, taken over if only the step is another one.
fn row(
    memory: &mut Memory,
    plan: &Plan,
    position: usize,
    action: &PlannedAction,
    place: &ClusterRef,
    target: &EffectTarget,
) -> usize {
    let step = &plan.steps()[position].id;
    let rows: &mut Vec<InventoryItem> = &mut memory.journal.inventory;
    let known =
        rows.iter().position(|row| row.step == *step && is_row_of(row, place, target)).or_else(|| {
            rows.iter().position(|row| is_row_of(row, place, target) && plan.position(&row.step).is_none())
        });
    let index = known.unwrap_or_else(|| {
        rows.push(InventoryItem {
            step: step.clone(),
            place: place.clone(),
            target: target.clone(),
            uid: None,
            state: ItemState::Intended,
            reason: None,
            after: earlier_rows(plan, position, rows),
            prune: action.prune.includes(target),
            stale: false,
            last: action.long_lived_last && is_long_lived(target),
            owned: false,
            unownable: false,
            attempt: 0,
            retry_at: None,
            cut_off: None,
        });
        rows.len() - 1
    });
    if rows[index].step != *step {
        let after = earlier_rows(plan, position, rows);
        let row = &mut rows[index];
        row.step = step.clone();
        row.after = after;
        row.prune = action.prune.includes(target);
        row.last = action.long_lived_last && is_long_lived(target);
    }
    let row = &mut rows[index];
    // What comes back only now from a cluster that the step has left does not count as rendered.
    row.stale &= *place != action.via.cluster.place();
    if matches!(row.state, ItemState::Deleting | ItemState::Gone | ItemState::Left) {
        // It was on its way out and is wanted again: which incarnation it will be is open.
        row.state = ItemState::Intended;
        row.uid = None;
        row.reason = None;
        row.retry_at = None;
    }
    row.cut_off = None;
    index
}

/// The nearest earlier steps that have made something, past those that were left out.
fn earlier_rows(plan: &Plan, position: usize, rows: &[InventoryItem]) -> Vec<StepId> {
    let mut open = plan.earlier_tracked(position);
    let mut seen = BTreeSet::new();
    let mut found = BTreeSet::new();
    while let Some(step) = open.pop() {
        if !seen.insert(step.clone()) {
            continue;
        }
        if rows.iter().any(|row| row.step == step) {
            found.insert(step);
        } else if let Some(earlier) = plan.position(&step) {
            open.extend(plan.earlier_tracked(earlier));
        }
    }
    found.into_iter().collect()
}

/// Whether two targets are one object, one of them perhaps still without what discovery adds.
pub(super) fn same_object(one: &EffectTarget, other: &EffectTarget) -> bool {
    one.name == other.name
        && one.kind.word.eq_ignore_ascii_case(&other.kind.word)
        && one.kind.group.as_deref().unwrap_or_default() == other.kind.group.as_deref().unwrap_or_default()
        && (one.namespace == other.namespace || one.namespace.is_none() || other.namespace.is_none())
}

/// Adds rows for objects that are to be made, so that a crash right after making them loses none.
pub(super) fn intend(
    memory: &mut Memory,
    plan: &Plan,
    position: usize,
    action: &PlannedAction,
    targets: &[EffectTarget],
) {
    if !action.tracked {
        return;
    }
    for target in targets {
        let before = memory.journal.inventory.len();
        row(memory, plan, position, action, &action.via.cluster.place(), target);
        if memory.journal.inventory.len() > before {
            memory.critical += 1;
        }
    }
}

/// Rows for objects whose names are known before anything is rendered: saved while waiting, so they cost no time later.
/// Rows that are there already follow the plan in order and policy.
pub(super) fn intend_early(plan: &Plan, memory: &mut Memory) {
    let (intents, mark) = plan.intents();
    if memory.intended == Some(mark) {
        return;
    }
    memory.intended = Some(mark);
    for (position, target) in intents {
        if let Some(action) = plan.steps()[*position].action() {
            intend(memory, plan, *position, action, std::slice::from_ref(target));
        }
    }
    for index in 0..memory.journal.inventory.len() {
        let row = &memory.journal.inventory[index];
        let Some(position) = plan.position(&row.step).filter(|_| !row.stale) else {
            continue;
        };
        let Some(action) = plan.steps()[position].action() else { continue };
        let after = earlier_rows(plan, position, &memory.journal.inventory);
        let row = &mut memory.journal.inventory[index];
        row.after = after;
        row.prune = action.prune.includes(&row.target);
        row.last = action.long_lived_last && is_long_lived(&row.target);
        row.unownable &= action.owner.is_some();
        if !action.tracked {
            release(row);
        }
    }
}

/// An attempt came to a good end: what its step made before and has not written now is no longer rendered.
pub(super) fn outgrow(
    memory: &mut Memory,
    plan: &Plan,
    record: &mut StepRecord,
    step: &StepId,
    targets: &[EffectTarget],
) {
    let rendered = |target: &EffectTarget| targets.iter().any(|one| same_object(one, target));
    record.wrote.retain(|wrote| rendered(&wrote.target));
    let action = plan.position(step).and_then(|position| plan.steps()[position].action());
    let place = action.map(|action| action.via.cluster.place());
    let rows: &mut Vec<InventoryItem> = &mut memory.journal.inventory;
    for index in 0..rows.len() {
        let here = place.as_ref() == Some(&rows[index].place);
        if rows[index].step != *step || rows[index].stale || here && rendered(&rows[index].target) {
            continue;
        }
        rows[index].stale = true;
        let elsewhere = rows.iter().position(|row| {
            row.step != *step
                && !row.stale
                && plan.position(&row.step).is_some()
                && is_row_of(row, &rows[index].place, &rows[index].target)
        });
        if let Some(other) = elsewhere {
            // It only moved to another step of the plan: this row has nothing to answer for any more.
            let old = rows[index].clone();
            let new = &mut rows[other];
            if new.state == ItemState::Intended {
                new.state = old.state;
                new.uid = old.uid;
            }
            new.owned |= old.owned;
            rows[index].state = ItemState::Gone;
        }
    }
}

/// The incarnation of an object that a step made, where it is ours to delete.
pub(super) fn ours<'a>(
    memory: &'a Memory,
    step: &StepId,
    place: &ClusterRef,
    target: &EffectTarget,
) -> Option<&'a String> {
    let mut rows = memory.journal.inventory.iter();
    let row = rows.find(|row| row.step == *step && is_row_of(row, place, target))?;
    row.uid.as_ref().filter(|_| row.state == ItemState::Created)
}

/// For an object that is going, or a step that has left the plan: what was created by effects that come back only now.
pub(super) fn remember_late(memory: &mut Memory, outcomes: &[Outcome]) {
    for outcome in outcomes {
        memory.flight.remove(&outcome.ticket);
        remember_created(memory, outcome);
    }
}

/// Without a plan: what an effect created.
pub(super) fn remember_created(memory: &mut Memory, outcome: &Outcome) {
    let Ok(Done { place, target: Some(target), created: true, stamp: Some(stamp), owned, .. }) =
        &outcome.result
    else {
        return;
    };
    let step = &outcome.ticket.step;
    let rows = &mut memory.journal.inventory;
    if let Some(row) = rows.iter_mut().find(|row| row.step == *step && is_row_of(row, place, target)) {
        row.state = ItemState::Created;
        row.uid = Some(stamp.uid.clone());
        row.target = target.clone();
        row.owned = *owned;
    }
}
