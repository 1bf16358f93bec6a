//! From report and journal to the status of a ResourceDependency.

use linchpin_api::{ResourceDependency, Status};

use crate::{door::StatusInput, entries, names};

pub(super) fn draw(object: &ResourceDependency, status_input: &StatusInput<'_>) -> Status {
    let spec = &object.spec;
    let generation = object.metadata.generation.unwrap_or_default();
    let current = object.status.as_ref();
    if let Some(same) = entries::unchanged(current, generation, status_input) {
        return same;
    }
    let before = current.map_or(&[][..], |status| status.dependencies.as_slice());
    let names = names::of_part(None, &spec.dependencies, &spec.actions);
    Status {
        dependencies: spec
            .dependencies
            .iter()
            .zip(&names.dependencies)
            .filter_map(|(entry, named)| entries::dependency(entry, named, before, status_input))
            .collect(),
        actions: spec
            .actions
            .iter()
            .zip(&names.actions)
            .filter_map(|(entry, named)| entries::action(entry, named, status_input))
            .collect(),
        common: entries::base(&spec.common, current, generation, status_input),
        groups: Vec::new(),
    }
}
