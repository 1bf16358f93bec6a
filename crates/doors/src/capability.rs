//! Capability: what the platform says that the cluster is able to do. It is Ready while all it takes is there, each looked
//! at as the account that it names.

use linchpin_api::{Capability, CapabilityStatus, Ours as _};
use linchpin_engine::plan::{Notes, Removal, SpecError};
use linchpin_words::limits;

use crate::{
    assemble::Frame,
    door::{self, CompileInput, Compiled, Door, GraphTies, Insight, StatusInput},
    entries,
    errors::bounded,
    names::NamedStep,
    sync::{
        capability::is_counted,
        dependency_status::{self, RowNotes},
    },
};

/// The door of Capability.
#[derive(Clone, Copy, Debug)]
pub enum CapabilityDoor {}

impl Door for CapabilityDoor {
    type Object = Capability;

    fn compile(object: &Capability, compile_input: &CompileInput<'_>) -> Result<Compiled, SpecError> {
        let entries = &object.spec.dependencies;
        bounded(entries.len(), limits::SYNC_DEPENDENCIES, "spec.dependencies", "dependencies")?;
        let mut frame = Frame::new(object, object.common(), compile_input, Removal::Retain)?;
        frame.via = door::via(object, compile_input.default_service_account);
        let places =
            entries.iter().enumerate().map(|(index, entry)| (entry, format!("spec.dependencies[{index}]")));
        let counted = is_counted(&frame, object.metadata.name.as_deref().unwrap_or_default());
        let read = |()| places.map(|(entry, field)| dependency_status::read(&frame, entry, &field)).collect();
        let found: Vec<_> = match counted.and_then(read) {
            Ok(found) => found,
            Err(error) => return Err(error.asking(frame.kinds.into_parts().0)),
        };
        let names: Vec<NamedStep> = found
            .iter()
            .map(|(outline, _)| NamedStep { id: outline.step.clone(), words: vec![outline.name.clone()] })
            .collect();
        let (outlines, steps) = found.into_iter().unzip();
        let mut compiled = frame.plan(steps, &names, &[], true)?;
        compiled.plan.notes = Notes::new(RowNotes { outlines, ..RowNotes::default() });
        Ok(compiled)
    }

    fn status(object: &Capability, input: &StatusInput<'_>) -> CapabilityStatus {
        let generation = object.metadata.generation.unwrap_or_default();
        if let Some(same) = entries::still(object.status.as_ref(), generation, input) {
            return same;
        }
        let current = object.status.clone().unwrap_or_default();
        let (common, rows) =
            dependency_status::draw(&current.common, &current.dependencies, generation, input);
        CapabilityStatus { common, dependencies: rows, version: object.spec.version.clone() }
    }

    fn ties() -> Option<&'static dyn GraphTies<Capability>> {
        Some(&CapabilityTies)
    }
}

/// Capabilities see who makes what they wait for.
struct CapabilityTies;

impl GraphTies<Capability> for CapabilityTies {
    fn insight(&self) -> Insight {
        Insight::Makers
    }
}
