//! One component: from the user's entry to its steps.
//!
//! The act applies all objects of the component; a requirement for each object says when it is ready. Of kinds that
//! depend on what comes after them, existence is enough to go on; the bundle's own readiness asks for more.

mod package;

use std::{ops::Range, sync::Arc, time::Duration};

use linchpin_api::{
    AppBundleSpec, BundleGroup, Component, app_bundle::component::Immutable as ImmutableWord,
    common::DeletionPolicy,
};
use linchpin_engine::{
    contract::StepId,
    plan::{After, Immutable, Profile, SpecError, Step},
};
use linchpin_words::{Gvk, keys};

use super::{
    order::ComponentPosition,
    porch::{Follow, Package},
    source::{self, SourceContent, SourceContext},
};
use crate::{
    apply::{ApplyDraft, ApplyPolicy, ApplySpec, Marks, ReadyTerms},
    assemble::Frame,
    cluster,
    errors::duration,
    kinds::KindLookup,
    names::{self, NamedStep},
    readiness_profile::{clauses, pay},
    requirement::{RequirementDraft, RequirementSpec},
};

/// A component on its way to become steps.
pub(super) struct ComponentDraft {
    pub place: ComponentPosition,
    /// `group/component`.
    pub path: String,
    /// What it applies; nothing while its source is waited for.
    pub apply: ApplyDraft,
    /// The requirements of its own, among all requirements.
    pub own: Range<usize>,
    /// The requirements that its objects are ready, or that its source is there.
    pub ready: Range<usize>,
    pub package: Option<Box<Package>>,
    name: String,
    group: String,
    field: String,
    waits: Option<Box<RequirementSpec>>,
    profile: Option<Arc<Profile>>,
    gate_by_existence: bool,
    timeout: Option<Duration>,
}

impl ComponentDraft {
    /// Reads an entry and its source.
    pub(super) fn read(
        frame: &Frame<'_>,
        spec: &AppBundleSpec,
        place: ComponentPosition,
        field: &str,
    ) -> Result<Self, SpecError> {
        let group = &spec.groups[place.0];
        let entry = &group.components[place.1];
        let common = frame.common;
        let via = cluster::via(
            &frame.via,
            &frame.owner.namespace,
            entry.cluster.as_ref(),
            common.cluster.as_ref(),
            field,
        )?;
        let templates =
            !entry.raw && (spec.templating || common.values.is_some() || !common.values_from.is_empty());
        let marks = marks(&frame.owner.name, group, entry);
        let path = names::component(&group.name, &entry.name);
        let here = SourceContext { frame, via: &via, path: &path, marks: &marks, field };
        let (mut waits, mut package): (_, Option<Box<Package>>) = (None, None);
        let bodies = match source::read(&here, spec.porch_integration.as_ref(), entry)? {
            SourceContent::Waits(requirement) => {
                waits = Some(requirement);
                Vec::new()
            }
            SourceContent::Bodies(bodies) => bodies,
            SourceContent::Package(found) => {
                let bodies = vec![(format!("{field}.porchPackageRef"), found.body.clone())];
                package = Some(found);
                bodies
            }
        };
        let mut apply = ApplyDraft::read(
            frame,
            ApplySpec {
                id: StepId::new(&path),
                field,
                part: Some(&group.name),
                via: via.clone(),
                cluster: entry.cluster.as_ref(),
                bodies,
                marks: &marks,
                templating: templates && package.is_none(),
                raw: entry.raw,
                policy: policy(entry),
            },
        )?;
        if package.as_ref().is_some_and(|package| !package.certain) {
            apply.is_uncertain();
        }
        Ok(Self {
            place,
            path,
            apply,
            own: 0..0,
            ready: 0..0,
            package,
            name: entry.name.clone(),
            group: group.name.clone(),
            field: field.to_owned(),
            waits,
            profile: profile(&frame.kinds, entry, field)?.map(Arc::new),
            gate_by_existence: entry.ready_when.is_none(),
            timeout: duration(entry.timeout.as_ref(), &format!("{field}.timeout"))?,
        })
    }

    /// What is waited for after the component is applied, each with its name: that every object is ready. Before there
    /// are objects: that their source is there.
    pub(super) fn requirements(
        &self,
        frame: &Frame<'_>,
    ) -> Result<Vec<(RequirementDraft, NamedStep)>, SpecError> {
        let words = vec![self.name.clone(), self.path.clone()];
        if let Some(source) = &self.waits {
            let spec = RequirementSpec {
                field: self.field.clone(),
                part: Some(self.group.clone()),
                on_behalf_of: Some(on_behalf_of(&self.name)),
                ..(**source).clone()
            };
            let named = NamedStep { id: spec.id.clone(), words };
            return Ok(vec![(RequirementDraft::new(frame, spec)?, named)]);
        }
        let objects = &self.apply.objects;
        let single = objects.len() == 1;
        let mut found = Vec::with_capacity(objects.len());
        for object in objects {
            let id = names::ready(&self.path, (!single).then(|| object.label().replace(' ', "/")).as_deref());
            let named = NamedStep { id: id.clone(), words: if single { words.clone() } else { Vec::new() } };
            let mut spec = self.apply.ready(id, object);
            if single {
                spec.is_named(&self.name, &object.gvk.kind, Some(&object.name));
            }
            let mut draft = RequirementDraft::new(frame, spec)?;
            match (&self.package, &self.profile) {
                // What the author says is about the objects in the package.
                (Some(package), _) => {
                    draft.also_needs(&package.rights);
                    if let Follow::Blocked(held, question) = &package.follow {
                        draft.is_held(held.clone(), question.clone());
                    }
                }
                (None, Some(profile)) => draft.is_taught(Arc::clone(profile)),
                (None, None) => {}
            }
            found.push((draft, named));
        }
        for object in self.contained() {
            found.push(self.requires_contained(frame, object)?);
        }
        Ok(found)
    }

    /// What it waits for after it is applied, as it is written: its objects, and those in its package.
    pub(super) fn named_objects(&self) -> impl Iterator<Item = (&Gvk, Option<&String>, &String)> {
        let own = self.apply.objects.iter().map(|one| (&one.gvk, one.namespace.as_ref(), &one.name));
        own.chain(self.contained().iter().map(|one| (&one.gvk, one.namespace.as_ref(), &one.name)))
    }

    /// What people may call it.
    pub(super) fn named(&self) -> NamedStep {
        NamedStep { id: StepId::new(&self.path), words: vec![self.name.clone()] }
    }

    /// Its steps, after these.
    pub(super) fn steps(
        &self,
        frame: &Frame<'_>,
        before: Vec<After>,
        ready: Vec<RequirementDraft>,
    ) -> Vec<Step> {
        if self.waits.is_some() {
            return ready.into_iter().map(|draft| draft.finish(before.clone(), None)).collect();
        }
        let open_rights: Vec<String> =
            self.package.iter().map(|package| package.open_right.clone()).collect();
        let mut steps = vec![self.apply.act(frame, before, &open_rights)];
        let own = self.apply.objects.iter().map(|object| (&object.gvk, false));
        let contained = self.contained().iter().map(|object| (&object.gvk, true));
        for ((gvk, contained), draft) in own.chain(contained).zip(ready) {
            let runs = contained && ["Job", "Pod"].contains(&gvk.kind.as_str());
            let terms =
                ReadyTerms { timeout: self.timeout, latch: runs, gate_by_existence: self.gate_by_existence };
            steps.push(self.apply.ready_step(draft, gvk, &terms));
        }
        steps
    }
}

/// What a requirement that is a component's own says of it.
pub(super) fn on_behalf_of(name: &str) -> String {
    format!("component {name}")
}

/// What is put on the objects of a component: whose they are, and their sync wave.
fn marks(bundle: &str, group: &BundleGroup, component: &Component) -> Marks {
    let (major, minor) = (group.order.unwrap_or(0), component.order.unwrap_or(0));
    Marks {
        labels: vec![
            (keys::APP_BUNDLE, bundle.to_owned()),
            (keys::APP_BUNDLE_GROUP, group.name.clone()),
            (keys::APP_BUNDLE_COMPONENT, component.name.clone()),
        ],
        annotations: vec![(keys::SYNC_WAVE, (i64::from(major) * 100 + i64::from(minor)).to_string())],
    }
}

fn policy(entry: &Component) -> ApplyPolicy {
    ApplyPolicy {
        adopt: entry.adopt,
        kept: entry.deletion_policy == Some(DeletionPolicy::Orphan),
        prune: entry.prune,
        immutable: match entry.immutable.unwrap_or_default() {
            ImmutableWord::Fail => Immutable::Fail,
            ImmutableWord::Recreate => Immutable::Recreate,
            ImmutableWord::Ignore => Immutable::Ignore,
        },
        ignore_fields: entry.ignore_fields.clone(),
        run_once: entry.run_once,
    }
}

/// What the author says about when objects are ready and when they have failed.
fn profile(kinds: &KindLookup<'_>, entry: &Component, field: &str) -> Result<Option<Profile>, SpecError> {
    if entry.ready_when.is_none() && entry.failed_when.is_none() {
        return Ok(None);
    }
    let test = |test: Option<&linchpin_api::readiness_profile::ObjectTest>, name: &str| {
        let Some(test) = test else { return Ok::<_, SpecError>(None) };
        let field = format!("{field}.{name}");
        let clauses = clauses(test.cel.as_deref(), &test.conditions, &field)?;
        pay(kinds, &clauses, &field)?;
        Ok(Some(clauses))
    };
    Ok(Some(Profile {
        ready_when: test(entry.ready_when.as_ref(), "readyWhen")?.unwrap_or_default(),
        failed_when: test(entry.failed_when.as_ref(), "failedWhen")?,
        ..Profile::default()
    }))
}
