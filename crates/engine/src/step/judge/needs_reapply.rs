//! Judging whose an object is: does what the inventory says of it still fit what the plan says now?
//!
//! A policy may change after an object was written. Where it says that we own what we made, the owner reference is put on
//! by writing once more; where it says that we do not, it is taken off in the same way; and what was left to itself and is
//! to be deleted one day after all is written once more to know whose it is.

use linchpin_words::Shared;

use crate::{
    journal::{InventoryItem, ItemState, Journal, StepRecord},
    plan::{Plan, PlannedAction},
    step::inventory::same_object,
};

/// For each step of a plan, whether what it wrote must be written again for this, if it has written it at all.
pub(super) fn needs_reapply(
    plan: &Plan,
    journal: &Journal,
    records: &[Option<&Shared<StepRecord>>],
) -> Vec<bool> {
    let mut found = vec![false; plan.steps().len()];
    for item in &journal.inventory {
        if let Some(position) = plan.position(&item.step)
            && let Some(action) = plan.steps()[position].action()
        {
            found[position] |= must_be_reapplied(item, action, records[position]);
        }
    }
    found
}

fn must_be_reapplied(
    item: &InventoryItem,
    action: &PlannedAction,
    record: Option<&Shared<StepRecord>>,
) -> bool {
    if item.place != action.via.cluster.place() {
        // It is in a cluster that the step has left: writing it again would not reach it.
        return false;
    }
    let (Some(owner), Some(record)) = (&action.owner, record) else {
        return item.owned && action.owner.is_none();
    };
    if item.owned || item.stale {
        return false;
    }
    match item.state {
        ItemState::Created => !item.unownable && item.target.namespace.as_ref() == Some(&owner.namespace),
        ItemState::Intended | ItemState::Gone => {
            record.wrote.iter().any(|wrote| same_object(&wrote.target, &item.target))
        }
        ItemState::Adopted | ItemState::Deleting | ItemState::Left => false,
    }
}
