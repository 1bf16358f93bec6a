//! ResourceDependency: dependencies in tiers, then actions in order.
//!
//! Tier n+1 opens when tier n is met; actions come after the last tier, by priority or by the names they give.

mod compile;
mod status;

use linchpin_api::{ResourceDependency, Status};
use linchpin_engine::plan::SpecError;

use crate::door::{CompileInput, Compiled, Door, StatusInput};

/// The door of ResourceDependency.
#[derive(Clone, Copy, Debug)]
pub enum ResourceDependencyDoor {}

impl Door for ResourceDependencyDoor {
    type Object = ResourceDependency;

    fn compile(object: &ResourceDependency, compile_input: &CompileInput<'_>) -> Result<Compiled, SpecError> {
        compile::compile(object, compile_input)
    }

    fn status(object: &ResourceDependency, status_input: &StatusInput<'_>) -> Status {
        status::draw(object, status_input)
    }
}
