//! A component that is a package: what is waited for before its variant, and of what is in it.

use std::sync::Arc;

use linchpin_api::{Dependency, common::KindRef};
use linchpin_engine::{contract::StepId, plan::SpecError};

use super::ComponentDraft;
use crate::{app_bundle::porch::Contained, assemble::Frame, dependency, names::Named};

impl ComponentDraft {
    /// The objects in its package.
    pub(in crate::app_bundle) fn contained(&self) -> &[Contained] {
        self.package.as_ref().map_or(&[], |package| package.follow.objects())
    }

    /// The step that waits for an object in its package.
    pub(in crate::app_bundle) fn contained_id(&self, object: &Contained) -> StepId {
        StepId::new(format!("{}:ready:{}/{}", self.path, object.gvk.group_kind(), place(object)))
    }

    /// That an object in its package is ready.
    pub(super) fn requires_contained(
        &self,
        frame: &Frame<'_>,
        object: &Contained,
    ) -> Result<(dependency::DependencyDraft, Named), SpecError> {
        let named = Named { id: self.contained_id(object), words: Vec::new() };
        let entry = self.on_ready(&object.gvk, object.namespace.clone(), &object.name);
        let field = format!("{}.porchPackageRef ({})", self.field, object.file);
        let mut draft = dependency::DependencyDraft::new(frame, &entry, &named, &field, Some(&self.group))?;
        draft.is_called(format!("{} {}", object.gvk.kind, place(object)));
        if let Some(profile) = &self.profile {
            draft.is_taught(Arc::clone(profile));
        }
        Ok((draft, named))
    }

    /// What must be there before it can be applied at all.
    pub(in crate::app_bundle) fn prior(
        &self,
        frame: &Frame<'_>,
    ) -> Result<Option<(dependency::DependencyDraft, Named)>, SpecError> {
        let Some((package, held)) =
            self.package.as_ref().and_then(|package| Some((package, package.before.clone()?)))
        else {
            return Ok(None);
        };
        let named = Named { id: self.source_id(), words: Vec::new() };
        let entry = Dependency {
            reference: Some(KindRef {
                api_version: Some("config.porch.kpt.dev/v1alpha1".to_owned()),
                kind: "Repository".to_owned(),
                name: Some(package.status.repository.clone()),
                namespace: None,
            }),
            namespace: Some(package.repository.namespace.clone()),
            cluster: self.entry.cluster.clone(),
            state: Some("Exists".to_owned()),
            ..Dependency::default()
        };
        let mut draft =
            dependency::DependencyDraft::new(frame, &entry, &named, &self.field, Some(&self.group))?;
        draft.is_called(format!("Repository {}/{}", package.repository.namespace, package.status.repository));
        draft.is_held(held, None);
        Ok(Some((draft, named)))
    }

    pub(super) fn source_id(&self) -> StepId {
        StepId::new(format!("{}:source", self.path))
    }
}

/// Where an object in a package will be.
fn place(object: &Contained) -> String {
    let namespace = object.namespace.as_deref().map_or_else(String::new, |space| format!("{space}/"));
    format!("{namespace}{}", object.name)
}
