//! DependencyGroup: groups of dependencies, each after the groups it depends on, and actions group by group.
//!
//! Only `dependsOn` orders groups. A group begins when those it depends on are met; its dependencies are waited for
//! side by side; its actions run once. What was met and is lost again closes the groups behind it.

mod compile;
mod groups;
mod status;

use linchpin_api::{
    Common, DependencyGroup, Status,
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

/// The door of DependencyGroup.
#[derive(Clone, Copy, Debug)]
pub enum DependencyGroupDoor {}

impl Door for DependencyGroupDoor {
    type Object = DependencyGroup;
    type Status = Status;

    fn compile(object: &DependencyGroup, compile_input: &CompileInput<'_>) -> Result<Compiled, SpecError> {
        compile::compile(object, compile_input)
    }

    fn status(object: &DependencyGroup, status_input: &StatusInput<'_>) -> Status {
        status::draw(object, status_input)
    }

    fn current_status(object: &DependencyGroup) -> Option<&Status> {
        object.status.as_ref()
    }

    fn journal(object: &DependencyGroup) -> Result<Option<Journal>, SpecError> {
        let journal = object.status.as_ref().and_then(|status| status.journal.as_ref());
        journal::read(journal, object.metadata.uid.as_deref().unwrap_or_default())
    }

    fn common(object: &DependencyGroup) -> &Common {
        &object.spec.common
    }

    fn clusters(object: &DependencyGroup) -> Vec<&Cluster> {
        let actions = object.spec.groups.iter().flat_map(|group| &group.actions);
        let clusters = actions.map(|action| &action.cluster);
        std::iter::once(&object.spec.common.cluster).chain(clusters).flatten().collect()
    }

    fn removal(object: &DependencyGroup) -> Removal {
        let policy = object.spec.common.deletion_policy;
        if object.spec.teardown.is_some() || policy == Some(DeletionPolicy::Delete) {
            Removal::Delete
        } else {
            Removal::Retain
        }
    }
}
