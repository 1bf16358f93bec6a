//! The door of `ReadinessProfile`: nothing to do, only to tell whether it is understood.

use std::sync::LazyLock;

use linchpin_api::{Common, ReadinessProfile, readiness_profile::ReadinessProfileStatus};
use linchpin_engine::{
    journal::Journal,
    plan::{Plan, Removal, SpecError, Terms},
};
use linchpin_words::{ObjectRef, text};

use crate::{
    conditions,
    door::{CompileInput, Compiled, Door, StatusInput},
    owner::Owner,
};

/// The door of `ReadinessProfile`.
#[derive(Clone, Copy, Debug)]
pub enum ReadinessProfileDoor {}

impl Door for ReadinessProfileDoor {
    type Object = ReadinessProfile;
    type Status = ReadinessProfileStatus;

    fn compile(object: &ReadinessProfile, _: &CompileInput<'_>) -> Result<Compiled, SpecError> {
        super::compile(&object.spec)?;
        let owner = Owner::of(object);
        let plan =
            Plan::new(Self::object_ref(object), &owner.uid, owner.generation, Vec::new(), Terms::default())?;
        Ok(Compiled { plan, wants: std::collections::BTreeSet::new() })
    }

    fn status(object: &ReadinessProfile, status_input: &StatusInput<'_>) -> ReadinessProfileStatus {
        let before = object.status.as_ref().map_or(&[][..], |status| status.conditions.as_slice());
        let generation = object.metadata.generation.unwrap_or_default();
        let report = status_input.report;
        ReadinessProfileStatus {
            observed_generation: generation,
            message: report.invalid.then(|| text::line(&report.message)),
            conditions: conditions::draw(before, report, generation, status_input.now),
        }
    }

    fn current_status(object: &ReadinessProfile) -> Option<&ReadinessProfileStatus> {
        object.status.as_ref()
    }

    fn journal(_: &ReadinessProfile) -> Result<Option<Journal>, SpecError> {
        Ok(None)
    }

    fn common(_: &ReadinessProfile) -> &Common {
        static NOTHING: LazyLock<Common> = LazyLock::new(Common::default);
        &NOTHING
    }

    fn removal(_: &ReadinessProfile) -> Removal {
        Removal::Retain
    }

    fn is_namespaced() -> bool {
        false
    }

    fn object_ref(object: &ReadinessProfile) -> ObjectRef {
        ObjectRef::cluster_scoped(
            super::kind().group_kind(),
            object.metadata.name.clone().unwrap_or_default(),
        )
    }
}
