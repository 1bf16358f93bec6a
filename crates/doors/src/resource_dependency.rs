//! ResourceDependency: dependencies in tiers, then actions in order.
//!
//! Tier n+1 opens when tier n is met; actions come after the last tier, by priority or by the names they give.

mod compile;
mod status;

use linchpin_api::{Common, ResourceDependency, Status, common::DeletionPolicy};
use linchpin_engine::{
    journal::Journal,
    plan::{Removal, SpecError},
};

use crate::{
    door::{Compiled, Door, Given, Told},
    journal,
};

/// The door of ResourceDependency.
#[derive(Clone, Copy, Debug)]
pub enum ResourceDependencyDoor {}

impl Door for ResourceDependencyDoor {
    type Object = ResourceDependency;
    type Status = Status;

    fn compile(object: &ResourceDependency, given: &Given<'_>) -> Result<Compiled, SpecError> {
        compile::compile(object, given)
    }

    fn status(object: &ResourceDependency, told: &Told<'_>) -> Status {
        status::draw(object, told)
    }

    fn current_status(object: &ResourceDependency) -> Option<&Status> {
        object.status.as_ref()
    }

    fn journal(object: &ResourceDependency) -> Result<Option<Journal>, SpecError> {
        let journal = object.status.as_ref().and_then(|status| status.journal.as_ref());
        journal::read(journal, object.metadata.uid.as_deref().unwrap_or_default())
    }

    fn common(object: &ResourceDependency) -> &Common {
        &object.spec.common
    }

    fn removal(object: &ResourceDependency) -> Removal {
        match object.spec.common.deletion_policy {
            Some(DeletionPolicy::Delete) => Removal::Delete,
            None | Some(DeletionPolicy::Retain | DeletionPolicy::Orphan) => Removal::Retain,
        }
    }
}
