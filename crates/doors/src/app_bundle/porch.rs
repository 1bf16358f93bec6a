//! A component that is a Porch package.
//!
//! What is applied is a PackageVariant; Porch makes a revision of it in the downstream Repository, somebody approves
//! that, and the tool that syncs the Repository creates the objects. The component is ready when all of this has happened:
//! the variant is ready, a revision of it is published (`follow`), and every object in that revision (`contents`) is
//! ready. Nothing is injected into packages: no wait Jobs, no functions, no labels on selectors.
//!
//! All of it is looked at as facts while the bundle is compiled, so that a change of them makes another plan. What is
//! missing is a requirement that cannot hold in this plan ([`Obstacle`]). `revision` chooses what is asked for in the shape
//! that the installed definition has, `variant` writes it down, `catalogue` lists what there is for the status.

pub(super) mod catalogue;
mod contents;
mod follow;
mod look;
mod revision;
mod variant;

use linchpin_api::{
    Component,
    app_bundle::{PorchIntegration, component::PorchPackageRef, status::PackageStatus},
    common::DeletionPolicy,
};
use linchpin_engine::{
    contract::{Actor, Right, Scope, Selector, Via, Want},
    plan::{Obstacle, Removal, SpecError},
    rights,
};
use linchpin_words::{Gvk, Reason};
use serde_json::Value;

use self::{
    catalogue::Repository,
    look::{PorchLook, Revision},
    revision::RequestedRevision,
    variant::Variant,
};
pub(super) use self::{contents::Contained, follow::Follow};
use super::source::{SourceContent, SourceContext};
use crate::{assemble::Frame, errors::at, names, requirement::RequirementSpec};

/// The Repository that variants go to, where the bundle names none.
const DOWNSTREAM: &str = "mgmt";
/// The namespace of variants, where the component names none.
const NAMESPACE: &str = "default";
/// The revision, where the component names none.
const REVISION: &str = "main";

/// Where Porch's own settings are.
const CONFIG: &str = "config.porch.kpt.dev";
/// Where packages are.
const PACKAGES: &str = "porch.kpt.dev";

/// What a component that is a package comes to.
#[derive(Debug)]
pub(super) struct Package {
    /// The variant that is applied.
    pub body: Value,
    /// Whether everything was seen that decides what it says.
    pub certain: bool,
    /// Why nothing can be applied yet.
    pub before: Option<Obstacle>,
    /// What comes of it.
    pub follow: Follow,
    /// The rights that all this looking needs.
    pub rights: Vec<Right>,
    /// The rights that are not known before the package is seen.
    pub open_right: String,
    /// What is reported of it.
    pub status: PackageStatus,
    /// The Repository it comes from.
    pub repository: Repository,
}

/// Reads a component that is a package.
pub(super) fn read(
    context: &SourceContext<'_>,
    integration: Option<&PorchIntegration>,
    component: &Component,
    reference: &PorchPackageRef,
) -> Result<SourceContent, SpecError> {
    let SourceContext { frame, via, path, marks, field } = *context;
    let Some(integration) = integration.filter(|integration| integration.enabled) else {
        let problem = "spec.porchIntegration.enabled is not true, so nothing is taken from Porch";
        return Err(at(field, problem));
    };
    let namespace = reference.namespace.as_deref().unwrap_or(NAMESPACE);
    let looking = Looking { frame, via, namespace, field };
    let Some(kind) = looking.is_installed()? else {
        return Ok(SourceContent::Waits(Box::new(installation(context))));
    };
    let downstream = integration.repository.as_deref().unwrap_or(DOWNSTREAM);
    let kept = component.deletion_policy == Some(DeletionPolicy::Orphan) || frame.removal == Removal::Retain;
    let variant = Variant { owner: &frame.owner, path, marks, namespace, reference, downstream, kept };
    let name = variant.name();
    // All are asked for before any of them is waited for.
    let (shape, revisions, live, registered) = (
        looking.shape(&kind.version),
        looking.revisions(),
        looking.variant(&name),
        looking.repository(&reference.repository),
    );
    let (shape, revisions, live, registered) = (shape?, revisions?, live?, registered?);
    let all: &[Revision] = revisions.seen().map_or(&[], Vec::as_slice);
    let upstream: Vec<&Revision> =
        all.iter().filter(|one| one.is_of(&reference.repository, &reference.package_name)).collect();
    let asked = RequestedRevision::parse(reference.revision.as_deref().unwrap_or(REVISION));
    let there = live.seen().and_then(Option::as_ref);
    let chosen = revision::choose(&asked, shape.unwrap_or_default(), &upstream, there);
    // Without a look at these, what was written before may be right as it is.
    let certain = shape.is_some() && (revisions.seen().is_some() || live.seen().is_some());
    let before = chosen.is_none().then(|| {
        let message = format!(
            "no revision of package {} in Repository {namespace}/{} is published yet",
            reference.package_name, reference.repository
        );
        revisions.obstacle().cloned().unwrap_or(Obstacle { reason: Reason::NotFound, message })
    });
    let choice = chosen.unwrap_or_default();
    let body = variant.body(&choice);
    let follow = follow::follow(&looking, &name, downstream, &body, &choice, &live, &revisions)?;
    let latest = revision::newest(&upstream).map_or_else(String::new, |latest| latest.text.clone());
    let status = PackageStatus {
        repository: reference.repository.clone(),
        name: reference.package_name.clone(),
        revision: choice.text.clone(),
        latest_revision: latest,
        package_revision: follow.revision().unwrap_or_default().to_owned(),
    };
    let repository = catalogue::list(namespace, &reference.repository, registered, all);
    Ok(SourceContent::Package(Box::new(Package {
        body,
        certain,
        before,
        follow,
        rights: looking.rights(&reference.repository),
        open_right: format!(
            "{field}: add list and watch of the objects in package {}: they are not known before it is published",
            reference.package_name
        ),
        status,
        repository,
    })))
}

/// What is said while Porch is missing.
const INSTALLED: &str = "Porch is not installed: PackageVariant (config.porch.kpt.dev)";

/// That Porch is there: its kind is waited for, and no object of it.
fn installation(context: &SourceContext<'_>) -> RequirementSpec {
    let (id, via) = (names::source(context.path), context.via.clone());
    let spec = RequirementSpec::on_object(id, context.field, via, &variant::kind(), None, "any");
    RequirementSpec { label: INSTALLED.to_owned(), ..spec }
}

/// Where, as whom and for which field is looked.
struct Looking<'l> {
    frame: &'l Frame<'l>,
    via: &'l Via,
    namespace: &'l str,
    field: &'l str,
}

impl Looking<'_> {
    /// All revisions of the namespace: Porch gives packages no labels to select by.
    fn everything(&self) -> Scope {
        Scope::Labels { namespace: Some(self.namespace.to_owned()), selector: Selector::default() }
    }

    fn named(&self, name: &str) -> Scope {
        Scope::Name { namespace: Some(self.namespace.to_owned()), name: name.to_owned() }
    }

    /// As whom definitions are read: of this cluster by ourselves, since that shows no more than which kinds there are.
    fn definitions(&self) -> Via {
        if self.via.cluster.is_here() {
            Via { cluster: self.via.cluster.clone(), actor: Actor::Operator }
        } else {
            self.via.clone()
        }
    }

    /// The rights to look at all this.
    fn rights(&self, repository: &str) -> Vec<Right> {
        let resource = |group: &str, plural: &str| rights::RightResource {
            group: group.to_owned(),
            plural: plural.to_owned(),
            namespaced: true,
        };
        let observing = |group: &str, kind: &str, plural: &str, scope: &Scope| {
            rights::observing(&resource(group, plural), &Gvk::new(group, "v1alpha1", kind), scope)
        };
        let everything = self.everything();
        [
            observing(CONFIG, "Repository", "repositories", &self.named(repository)),
            observing(PACKAGES, "PackageRevision", "packagerevisions", &everything),
            observing(PACKAGES, "PackageRevisionResources", "packagerevisionresources", &everything),
        ]
        .concat()
    }
}

/// An answer that is missing: what is said of it, and the question.
fn missing<T>(look: &PorchLook<T>) -> Option<(Obstacle, Option<Want>)> {
    match look {
        PorchLook::Seen(_) => None,
        PorchLook::Unknown(held, want) => Some((held.clone(), Some(want.clone()))),
        PorchLook::Unserved(held) => Some((held.clone(), None)),
    }
}
