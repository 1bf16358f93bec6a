//! `GlobalDependency`: what every Sync it is about relies on. It judges its dependency once, as the account that it names,
//! and is Ready with it; each subject has it as one more gate (`sync::global`). What the dependency itself needs is exempt:
//! the controller finds that in the wait-for graph.

use linchpin_api::{
    GlobalDependency, GlobalDependencyStatus, Ours as _, SyncDependency, global_dependency::SubjectCount,
};
use linchpin_engine::plan::{Notes, Removal, SpecError};
use linchpin_words::limits;

use crate::{
    assemble::Frame,
    door::{self, CompileInput, Compiled, Door, StatusInput},
    entries, journal,
    sync::standing::{self, Standing},
};

/// The door of `GlobalDependency`.
#[derive(Clone, Copy, Debug)]
pub enum GlobalDependencyDoor {}

impl Door for GlobalDependencyDoor {
    type Object = GlobalDependency;

    fn compile(object: &GlobalDependency, compile_input: &CompileInput<'_>) -> Result<Compiled, SpecError> {
        let mut frame = Frame::new(object, object.common(), compile_input, Removal::Retain)?;
        frame.via = door::via(object, compile_input.default_service_account);
        let entry = SyncDependency { name: "dependency".to_owned(), ..object.spec.dependency.clone() };
        let (outline, step) = match standing::read(&frame, &entry, "spec.dependency") {
            Ok(found) => found,
            Err(error) => return Err(error.asking(frame.kinds.into_parts().0)),
        };
        let mut compiled = frame.plan(vec![step], &[], &[], true)?;
        compiled.plan.suspended = object.spec.suspend;
        compiled.plan.notes = Notes::new(Standing(vec![outline]));
        Ok(compiled)
    }

    fn status(object: &GlobalDependency, input: &StatusInput<'_>) -> GlobalDependencyStatus {
        let generation = object.metadata.generation.unwrap_or_default();
        let current = object.status.clone().unwrap_or_default();
        if standing::is_unchanged(current.observed_generation, current.phase.as_deref(), generation, input) {
            return GlobalDependencyStatus { journal: journal::write(input.journal), ..current };
        }
        let before: Vec<_> = current.dependency.clone().into_iter().collect();
        let said = standing::draw(&current.conditions, &before, generation, input);
        let count = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
        let (subjects, exempt, exempt_count) = match &input.causes.imposed {
            None => (current.subjects, current.exempt, current.exempt_count),
            Some(imposed) => (
                Some(SubjectCount { total: count(imposed.total), held: count(imposed.held) }),
                imposed.exempt.iter().take(limits::GLOBAL_EXEMPT).cloned().collect(),
                count(imposed.exempt.len()),
            ),
        };
        GlobalDependencyStatus {
            observed_generation: generation,
            phase: Some(said.phase.to_owned()),
            message: Some(said.message),
            conditions: said.conditions,
            blocked_by: standing::blockers(&current.blocked_by, &said.rows, input),
            dependency: said.rows.into_iter().next(),
            subjects,
            exempt,
            exempt_count,
            start_time: Some(current.start_time.unwrap_or(input.journal.run.now)),
            edges: entries::edges(current.edges.as_ref(), input),
            journal: journal::write(input.journal),
        }
    }
}
