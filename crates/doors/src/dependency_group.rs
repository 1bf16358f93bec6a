//! DependencyGroup: groups of dependencies, each after the groups it depends on, and actions group by group.
//!
//! Only `dependsOn` orders groups. A group begins when those it depends on are met; its dependencies are waited for
//! side by side; its actions run once. What was met and is lost again closes the groups behind it.

mod compile;
mod groups;
mod status;

use linchpin_api::{DependencyGroup, Status};
use linchpin_engine::plan::SpecError;

use crate::door::{CompileInput, Compiled, Door, StatusInput};

/// The door of DependencyGroup.
#[derive(Clone, Copy, Debug)]
pub enum DependencyGroupDoor {}

impl Door for DependencyGroupDoor {
    type Object = DependencyGroup;

    fn compile(object: &DependencyGroup, compile_input: &CompileInput<'_>) -> Result<Compiled, SpecError> {
        compile::compile(object, compile_input)
    }

    fn status(object: &DependencyGroup, status_input: &StatusInput<'_>) -> Status {
        status::draw(object, status_input)
    }
}
