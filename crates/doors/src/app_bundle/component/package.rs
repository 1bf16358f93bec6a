//! A component that is a package: what is waited for before its variant, and of what is in it.

use std::sync::Arc;

use linchpin_engine::{contract::StepId, plan::SpecError, readiness::Wanted};
use linchpin_words::Gvk;

use super::ComponentDraft;
use crate::{
    app_bundle::porch::Contained,
    assemble::Frame,
    names::{self, NamedStep},
    requirement::{RequirementDraft, RequirementSpec},
};

impl ComponentDraft {
    /// The objects in its package.
    pub(in crate::app_bundle) fn contained(&self) -> &[Contained] {
        self.package.as_ref().map_or(&[], |package| package.follow.objects())
    }

    /// The step that waits for an object in its package.
    pub(in crate::app_bundle) fn contained_id(&self, object: &Contained) -> StepId {
        let namespace = object.namespace.as_deref().map_or_else(String::new, |space| format!("{space}/"));
        names::ready(&self.path, Some(&format!("{}/{namespace}{}", object.gvk.group_kind(), object.name)))
    }

    /// That an object in its package is ready.
    pub(super) fn requires_contained(
        &self,
        frame: &Frame<'_>,
        object: &Contained,
    ) -> Result<(RequirementDraft, NamedStep), SpecError> {
        let named = NamedStep { id: self.contained_id(object), words: Vec::new() };
        let field = format!("{}.porchPackageRef ({})", self.field, object.file);
        let namespace = object.namespace.as_deref();
        let spec = self.apply.ready_object(named.id.clone(), &field, &object.gvk, namespace, &object.name);
        let mut draft = RequirementDraft::new(frame, spec)?;
        if let Some(profile) = &self.profile {
            draft.is_taught(Arc::clone(profile));
        }
        Ok((draft, named))
    }

    /// What must be there before it can be applied at all.
    pub(in crate::app_bundle) fn prior(
        &self,
        frame: &Frame<'_>,
    ) -> Result<Option<(RequirementDraft, NamedStep)>, SpecError> {
        let Some((package, held)) =
            self.package.as_ref().and_then(|package| Some((package, package.before.clone()?)))
        else {
            return Ok(None);
        };
        let named = NamedStep { id: names::source(&self.path), words: Vec::new() };
        let kind = Gvk::new("config.porch.kpt.dev", "v1alpha1", "Repository");
        let (namespace, name) = (&package.repository.namespace, &package.status.repository);
        let via = self.apply.via.clone();
        let spec = RequirementSpec {
            part: Some(self.group.clone()),
            on_behalf_of: Some(super::on_behalf_of(&self.name)),
            state: Some(Wanted::Exists),
            ..RequirementSpec::on_object(named.id.clone(), &self.field, via, &kind, Some(namespace), name)
        };
        let mut draft = RequirementDraft::new(frame, spec)?;
        draft.is_held(held, None);
        Ok(Some((draft, named)))
    }
}
