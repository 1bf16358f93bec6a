//! ResourceDependency: dependencies in tiers, then actions in order.
//!
//! Tier n+1 opens when tier n is met; actions come after the last tier, by priority or by the names they give.

mod compile;
mod status;

use linchpin_api::{
    Common, ResourceDependency, Status,
    common::{Cluster, DeletionPolicy},
};
use linchpin_engine::{
    journal::Journal,
    plan::{Removal, SpecError},
};

use crate::{
    door::{CompileInput, Compiled, Door, StatusInput},
    journal,
};

/// The door of ResourceDependency.
#[derive(Clone, Copy, Debug)]
pub enum ResourceDependencyDoor {}

impl Door for ResourceDependencyDoor {
    type Object = ResourceDependency;
    type Status = Status;

    fn compile(object: &ResourceDependency, compile_input: &CompileInput<'_>) -> Result<Compiled, SpecError> {
        compile::compile(object, compile_input)
    }

    fn status(object: &ResourceDependency, status_input: &StatusInput<'_>) -> Status {
        status::draw(object, status_input)
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

    fn clusters(object: &ResourceDependency) -> Vec<&Cluster> {
        let actions = object.spec.actions.iter().map(|action| &action.cluster);
        std::iter::once(&object.spec.common.cluster).chain(actions).flatten().collect()
    }

    fn removal(object: &ResourceDependency) -> Removal {
        match object.spec.common.deletion_policy {
            Some(DeletionPolicy::Delete) => Removal::Delete,
            None | Some(DeletionPolicy::Retain | DeletionPolicy::Orphan) => Removal::Retain,
        }
    }
}
