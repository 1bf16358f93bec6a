//! Judging whose an object is: does what the inventory says of it still fit what the plan says now?
//!
//! A policy may change after an object was written. Where it says that we own what we made, the owner reference is put on
//! by writing once more; where it says that we do not, it is taken off in the same way; and what was left to itself and is
//! to be deleted one day after all is written once more to know whose it is.

use std::collections::{BTreeMap, BTreeSet};

use super::action::Place;
use crate::{
    contract::StepId,
    journal::{Item, ItemState, Journal},
    step::inventory::same_object,
};

/// The rows of an inventory that may not fit their plan.
pub(super) struct Belongings<'j> {
    /// Steps with objects that have our object as their owner.
    owned: BTreeSet<&'j StepId>,
    /// Objects that have not, by their steps.
    loose: BTreeMap<&'j StepId, Vec<&'j Item>>,
}

impl<'j> Belongings<'j> {
    pub(super) fn of(journal: &'j Journal) -> Self {
        let mut found = Self { owned: BTreeSet::new(), loose: BTreeMap::new() };
        for item in &journal.inventory {
            if item.owned {
                found.owned.insert(&item.step);
            } else if !item.stale && !matches!(item.state, ItemState::Adopted) {
                found.loose.entry(&item.step).or_default().push(item);
            }
        }
        found
    }

    /// Whether what a finished action wrote must be written again for this.
    pub(super) fn differ(&self, place: &Place<'_>) -> bool {
        let id = &place.step.id;
        let Some(owner) = &place.action.owner else {
            return self.owned.contains(id);
        };
        let Some(record) = place.record else { return false };
        let is_written =
            |item: &Item| record.wrote.iter().any(|wrote| same_object(&wrote.target, &item.target));
        let may_own =
            |item: &Item| !item.unownable && item.target.namespace.as_ref() == Some(&owner.namespace);
        self.loose.get(id).into_iter().flatten().any(|item| match item.state {
            ItemState::Created => may_own(item),
            ItemState::Intended | ItemState::Gone => is_written(item),
            ItemState::Adopted | ItemState::Deleting | ItemState::Left => false,
        })
    }
}
