//! The door of `ReadinessProfile`: nothing to do, only to report whether it is understood.

use linchpin_api::{CommonStatus, ReadinessProfile, readiness_profile::ReadinessProfileStatus};
use linchpin_engine::plan::{Plan, SpecError, Terms};
use linchpin_words::text;

use crate::{
    conditions,
    door::{CompileInput, Compiled, Door, StatusInput, object_ref},
    owner::Owner,
};

/// The door of `ReadinessProfile`.
#[derive(Clone, Copy, Debug)]
pub enum ReadinessProfileDoor {}

impl Door for ReadinessProfileDoor {
    type Object = ReadinessProfile;

    fn compile(object: &ReadinessProfile, _: &CompileInput<'_>) -> Result<Compiled, SpecError> {
        super::compile(&object.spec)?;
        let owner = Owner::of(object);
        let plan = Plan::new(object_ref(object), &owner.uid, owner.generation, Vec::new(), Terms::default())?;
        Ok(Compiled { plan, wants: std::collections::BTreeSet::new() })
    }

    fn status(object: &ReadinessProfile, status_input: &StatusInput<'_>) -> ReadinessProfileStatus {
        let before = object.status.as_ref().map_or(&[][..], |status| status.common.conditions.as_slice());
        let generation = object.metadata.generation.unwrap_or_default();
        let report = status_input.report;
        let common = CommonStatus {
            observed_generation: generation,
            message: report.invalid.then(|| text::line(&report.message)),
            conditions: conditions::draw(before, report, generation, status_input.now),
            ..CommonStatus::default()
        };
        ReadinessProfileStatus { common }
    }
}
