//! A bundle as it was compiled: which steps belong to which component, and what was seen of packages.
//!
//! The plan carries it ([`Notes`](linchpin_engine::plan::Notes)), and the status is drawn from it: a plan is made anew
//! whenever something of it changes.

use linchpin_api::app_bundle::status::{PackageStatus, RepositoryStatus, ResourceRef};
use linchpin_engine::{contract::StepId, plan::Plan};

/// A whole bundle.
#[derive(Clone, Debug, Default)]
pub(super) struct BundleOutline {
    pub groups: Vec<GroupOutline>,
    /// The Porch Repositories that components take packages from, each once.
    pub repositories: Vec<RepositoryStatus>,
}

#[derive(Clone, Debug)]
pub(super) struct GroupOutline {
    pub name: String,
    pub components: Vec<ComponentOutline>,
}

#[derive(Clone, Debug)]
pub(super) struct ComponentOutline {
    pub name: String,
    /// The step that applies its objects.
    pub act: StepId,
    /// The step that waits until there is something to apply, where there is one.
    pub source: StepId,
    /// The steps that wait until its objects are ready, by name, with the objects.
    pub ready: Vec<(StepId, ResourceRef)>,
    pub package: Option<PackageOutline>,
}

/// What was seen of the package of a component.
#[derive(Clone, Debug)]
pub(super) struct PackageOutline {
    pub status: PackageStatus,
    /// How many objects are in it.
    pub objects: usize,
}

impl BundleOutline {
    /// That of a plan.
    pub(super) fn of(plan: Option<&Plan>) -> Option<&Self> {
        plan?.notes.get()
    }

    /// A component by its group's name and its own.
    pub(super) fn component(&self, group: &str, name: &str) -> Option<&ComponentOutline> {
        let group = self.groups.iter().find(|one| one.name == group)?;
        group.components.iter().find(|one| one.name == name)
    }

    /// Every component, with its group's name.
    pub(super) fn components(&self) -> impl Iterator<Item = (&str, &ComponentOutline)> {
        self.groups.iter().flat_map(|group| group.components.iter().map(|one| (group.name.as_str(), one)))
    }

    /// Adds a Repository, once.
    pub(super) fn add(&mut self, repository: RepositoryStatus) {
        let place = |one: &RepositoryStatus| (one.namespace.clone(), one.name.clone());
        if let Err(index) = self.repositories.binary_search_by_key(&place(&repository), place) {
            self.repositories.insert(index, repository);
        }
    }
}
