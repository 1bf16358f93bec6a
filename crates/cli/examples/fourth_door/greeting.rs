//! The door of Greeting.

mod compile;
mod status;

use linchpin_doors::{CompileInput, Compiled, Door, StatusInput};
use linchpin_engine::plan::SpecError;

use crate::types::{Greeting, GreetingStatus};

/// The door of Greeting.
pub(crate) enum GreetingDoor {}

impl Door for GreetingDoor {
    type Object = Greeting;

    fn compile(object: &Greeting, input: &CompileInput<'_>) -> Result<Compiled, SpecError> {
        compile::compile(object, input)
    }

    fn status(object: &Greeting, input: &StatusInput<'_>) -> GreetingStatus {
        status::draw(object, input)
    }
}
