//! Keeping the inventory true: what we made or mean to make, whose it is, and which step makes it now.
//!
//! Rows come before objects: what a crash right after a write would lose was written down before it. A row follows its
//! object: to another step when the object moves there, out of its step when that no longer renders it. Nothing is
//! deleted here; [`removal`](super::removal) works from what is kept here.

use std::collections::BTreeSet;

use crate::{
    contract::{Done, Outcome, StepId, Target},
    journal::{Item, ItemState, Memory, Record},
    plan::{Action, Body, Plan, is_long_lived},
};

/// Keeps the inventory true, also for outcomes that come too late to matter otherwise.
///
/// An object that we made stays ours when we write to it again; one that was there when we came never becomes ours.
pub(super) fn remember(memory: &mut Memory, plan: &Plan, position: usize, action: &Action, done: &Done) {
    if matches!(action.body, Body::Delete { .. }) {
        return;
    }
    let (Some(target), Some(stamp)) = (&done.target, &done.stamp) else {
        return;
    };
    if !action.tracked {
        let step = &plan.steps()[position].id;
        let rows = memory.journal.inventory.iter_mut();
        for row in rows.filter(|row| row.step == *step && same_object(&row.target, target)) {
            row.owned = done.owned;
            release(row);
        }
        return;
    }
    let row = row(memory, plan, position, action, target);
    let ours = done.created || row.state == ItemState::Created && row.uid.as_ref() == Some(&stamp.uid);
    row.state = if ours { ItemState::Created } else { ItemState::Adopted };
    row.uid = Some(stamp.uid.clone());
    row.target = target.clone();
    row.owned = done.owned;
    row.unownable = action.owner.is_some() && !done.owned;
    row.reason = None;
}

/// An object is left to itself, once nothing would delete it with ours: its row has nothing to answer for any more.
fn release(row: &mut Item) {
    if !row.owned && matches!(row.state, ItemState::Created | ItemState::Intended | ItemState::Adopted) {
        row.state = ItemState::Gone;
    }
}

/// The inventory row of an object, made if it is missing, taken over if only the step is another one.
fn row<'a>(
    memory: &'a mut Memory,
    plan: &Plan,
    position: usize,
    action: &Action,
    target: &Target,
) -> &'a mut Item {
    let step = &plan.steps()[position].id;
    let rows: &mut Vec<Item> = &mut memory.journal.inventory;
    let known =
        rows.iter().position(|row| row.step == *step && same_object(&row.target, target)).or_else(|| {
            rows.iter().position(|row| same_object(&row.target, target) && plan.position(&row.step).is_none())
        });
    let index = known.unwrap_or_else(|| {
        rows.push(Item {
            step: step.clone(),
            via: action.via.clone(),
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
        });
        rows.len() - 1
    });
    if rows[index].step != *step {
        let after = earlier_rows(plan, position, rows);
        let row = &mut rows[index];
        row.step = step.clone();
        row.via = action.via.clone();
        row.after = after;
        row.prune = action.prune.includes(target);
        row.last = action.long_lived_last && is_long_lived(target);
    }
    let row = &mut rows[index];
    row.stale = false;
    if matches!(row.state, ItemState::Deleting | ItemState::Gone | ItemState::Left) {
        // It was on its way out and is wanted again: which incarnation it will be is open.
        row.state = ItemState::Intended;
        row.uid = None;
        row.reason = None;
        row.retry_at = None;
    }
    row
}

/// The nearest earlier steps that have made something, past those that were left out.
fn earlier_rows(plan: &Plan, position: usize, rows: &[Item]) -> Vec<StepId> {
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
pub(super) fn same_object(one: &Target, other: &Target) -> bool {
    one.name == other.name
        && one.kind.word.eq_ignore_ascii_case(&other.kind.word)
        && one.kind.group.as_deref().unwrap_or_default() == other.kind.group.as_deref().unwrap_or_default()
        && (one.namespace == other.namespace || one.namespace.is_none() || other.namespace.is_none())
}

/// Adds rows for objects that are to be made, so that a crash right after making them loses none.
pub(super) fn intend(memory: &mut Memory, plan: &Plan, position: usize, action: &Action, targets: &[Target]) {
    if !action.tracked {
        return;
    }
    for target in targets {
        let before = memory.journal.inventory.len();
        row(memory, plan, position, action, target);
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
    record: &mut Record,
    step: &StepId,
    targets: &[Target],
) {
    let rendered = |target: &Target| targets.iter().any(|one| same_object(one, target));
    record.wrote.retain(|wrote| rendered(&wrote.target));
    let rows: &mut Vec<Item> = &mut memory.journal.inventory;
    for index in 0..rows.len() {
        if rows[index].step != *step || rows[index].stale || rendered(&rows[index].target) {
            continue;
        }
        rows[index].stale = true;
        let elsewhere = rows.iter().position(|row| {
            row.step != *step
                && !row.stale
                && plan.position(&row.step).is_some()
                && same_object(&row.target, &rows[index].target)
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
pub(super) fn ours<'a>(memory: &'a Memory, step: &StepId, target: &Target) -> Option<&'a String> {
    let mut rows = memory.journal.inventory.iter();
    let row = rows.find(|row| row.step == *step && same_object(&row.target, target))?;
    row.uid.as_ref().filter(|_| row.state == ItemState::Created)
}

/// For an object that is going, or a step that has left the plan: what was created by effects that come back only now.
pub(super) fn remember_late(memory: &mut Memory, outcomes: &[Outcome]) {
    for outcome in outcomes {
        memory.flight.remove(&outcome.ticket);
        let Ok(Done { target: Some(target), created: true, stamp: Some(stamp), owned, .. }) = &outcome.result
        else {
            continue;
        };
        let step = &outcome.ticket.step;
        let rows = &mut memory.journal.inventory;
        if let Some(row) = rows.iter_mut().find(|row| row.step == *step && same_object(&row.target, target)) {
            row.state = ItemState::Created;
            row.uid = Some(stamp.uid.clone());
            row.target = target.clone();
            row.owned = *owned;
        }
    }
}
