//! One component: from the user's entry to its steps.
//!
//! The act applies all objects of the component; a requirement for each object says when it is ready. Of kinds that
//! depend on what comes after them, existence is enough to go on; the bundle's own readiness asks for more.

mod package;

use std::{ops::Range, sync::Arc, time::Duration};

use linchpin_api::{
    AppBundleSpec, Component, Dependency,
    action::Adopt,
    app_bundle::component::Immutable as ImmutableWord,
    common::{DeletionPolicy, KindRef},
};
use linchpin_engine::{
    contract::{Existing, Owner, StepId, Via},
    plan::{
        self, After, Body, Documents, Drift, Immutable, Profile, Prune, Readings, Removal, Rerun, SpecError,
        Step, StepKind, Test, UNKNOWN_DEFINITION, definition,
    },
    readiness::Wanted,
    rights::{self, Deed},
};
use linchpin_lang::weight;
use linchpin_words::{GroupKind, Gvk, limits};
use serde_json::{Value, json};

use super::{
    objects::{self, Marks, Object},
    order::ComponentPosition,
    path,
    porch::{Follow, Package},
    source::{self, Source},
    values::Values,
};
use crate::{
    assemble::{Frame, Keys},
    cluster, dependency,
    errors::duration,
    kinds::Kinds,
    names::Named,
    readiness_profile::{clauses, pay},
    values,
};

/// Kinds that are ready only after what comes after them: that they exist is enough to go on.
const GATE_BY_EXISTENCE: [(&str, &str); 7] = [
    ("", "Service"),
    ("networking.k8s.io", "Ingress"),
    ("autoscaling", "HorizontalPodAutoscaler"),
    ("policy", "PodDisruptionBudget"),
    ("apiregistration.k8s.io", "APIService"),
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"),
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"),
];

/// A component on its way to become steps.
pub(super) struct ComponentDraft {
    pub place: ComponentPosition,
    /// `group/component`.
    pub path: String,
    pub via: Via,
    pub objects: Vec<Object>,
    pub readings: Readings,
    /// The requirements of its own, among all requirements.
    pub own: Range<usize>,
    /// The requirements that its objects are ready, or that its source is there.
    pub ready: Range<usize>,
    entry: Component,
    group: String,
    field: String,
    waits: Option<(Box<Dependency>, Option<String>)>,
    pub package: Option<Box<Package>>,
    profile: Option<Arc<Profile>>,
    timeout: Option<Duration>,
    /// Which versions of values it was compiled with; none while one is missing.
    sources: Option<Value>,
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
        let values = templates.then(|| Values::new(frame));
        let marks = Marks::new(&frame.owner.name, group, entry);
        let read = |field: String, body: &Value, values: Option<&Values<'_>>| {
            objects::read(frame, &via, field, body, &marks, values)
        };
        let porch = spec.porch_integration.as_ref();
        let (mut waits, mut package) = (None, None);
        let objects = match source::read(frame, &via, porch, entry, &marks, field)? {
            Source::Waits { dependency, called } => {
                waits = Some((dependency, called));
                Vec::new()
            }
            Source::Bodies(bodies) => {
                let bodies = bodies.into_iter().map(|(field, body)| read(field, &body, values.as_ref()));
                bodies.collect::<Result<Vec<Object>, SpecError>>()?
            }
            Source::Package(found) => {
                let variant = read(format!("{field}.porchPackageRef"), &found.body, None)?;
                package = Some(found);
                vec![variant]
            }
        };
        let reads_values = objects.iter().any(|object| {
            let reads = object.reads();
            reads.dynamic
                || reads.paths.iter().any(|path| path.segments().first().is_none_or(|root| root == "Values"))
        });
        let sources = match values.filter(|_| reads_values) {
            Some(values) => values.sources()?,
            None => Some(Value::Null),
        };
        let own = common.values.as_ref().filter(|_| reads_values).map(|own| json!(own));
        let read = sources.iter().chain(&own).map(|read| weight(read, limits::TURN_STEPS)).sum();
        frame.kinds.pay(read, field, "there are values to read")?;
        Ok(Self {
            place,
            path: path(&group.name, &entry.name),
            via,
            objects,
            readings: Readings::new(),
            own: 0..0,
            ready: 0..0,
            entry: entry.clone(),
            group: group.name.clone(),
            field: field.to_owned(),
            waits,
            package,
            profile: profile(&frame.kinds, entry, field)?.map(Arc::new),
            timeout: duration(entry.timeout.as_ref(), &format!("{field}.timeout"))?,
            sources,
        })
    }

    /// What is waited for after the component is applied, each with its name: that every object is ready. Before there
    /// are objects: that their source is there.
    pub(super) fn requirements(
        &self,
        frame: &Frame<'_>,
    ) -> Result<Vec<(dependency::DependencyDraft, Named)>, SpecError> {
        let words = vec![self.entry.name.clone(), self.path.clone()];
        if let Some((source, called)) = &self.waits {
            let named = Named { id: self.source_id(), words };
            let mut draft =
                dependency::DependencyDraft::new(frame, source, &named, &self.field, Some(&self.group))?;
            if let Some(called) = called {
                draft.is_called(called.clone());
            }
            return Ok(vec![(draft, named)]);
        }
        let single = self.objects.len() == 1;
        let mut found = Vec::with_capacity(self.objects.len());
        for object in &self.objects {
            let id = if single {
                format!("{}:ready", self.path)
            } else {
                format!("{}:ready:{}", self.path, object.label().replace(' ', "/"))
            };
            let named = Named { id: StepId::new(id), words: if single { words.clone() } else { Vec::new() } };
            let entry = Dependency {
                name: single.then(|| self.entry.name.clone()),
                ..self.on_ready(&object.gvk, object.namespace.clone(), &object.name)
            };
            let mut draft =
                dependency::DependencyDraft::new(frame, &entry, &named, &object.field, Some(&self.group))?;
            draft.is_called(object.label());
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

    /// Notes what its templates read.
    pub(super) fn note(&mut self, keys: &Keys) -> Result<(), SpecError> {
        for object in &self.objects {
            let reads = object.reads();
            keys.check(&reads, &object.field)?;
            self.readings.add(&reads, keys.steps());
        }
        Ok(())
    }

    /// What people may call it.
    pub(super) fn named(&self) -> Named {
        Named { id: StepId::new(&self.path), words: vec![self.entry.name.clone()] }
    }

    /// Its steps, after these.
    pub(super) fn steps(
        &self,
        frame: &Frame<'_>,
        before: Vec<After>,
        ready: Vec<dependency::DependencyDraft>,
    ) -> Vec<Step> {
        if self.waits.is_some() {
            return ready.into_iter().map(|draft| draft.finish(before.clone(), None)).collect();
        }
        let act = StepId::new(&self.path);
        let mut steps = vec![self.act(frame, act.clone(), before)];
        let own = self.objects.iter().map(|object| &object.gvk);
        let kinds = own.chain(self.contained().iter().map(|object| &object.gvk));
        for (index, (kind, draft)) in kinds.zip(ready).enumerate() {
            let mut step = draft.finish(vec![After::success(act.clone())], self.timeout);
            if let StepKind::Require(requirement) = &mut step.kind {
                requirement.floor = Some(act.clone());
                let runs = ["Job", "Pod"].contains(&kind.kind.as_str()) && index >= self.objects.len();
                requirement.latch = self.runs_once() || runs;
                requirement.gate = self.gate(kind);
            }
            steps.push(step);
        }
        steps
    }

    /// That one of its objects is ready, as a dependency.
    fn on_ready(&self, kind: &Gvk, namespace: Option<String>, name: &str) -> Dependency {
        Dependency {
            reference: Some(KindRef {
                api_version: Some(kind.api_version()),
                kind: kind.kind.clone(),
                name: Some(name.to_owned()),
                namespace: None,
            }),
            namespace,
            cluster: self.entry.cluster.clone(),
            state: Some("Ready".to_owned()),
            ..Dependency::default()
        }
    }

    /// What is enough to go on, where that is less than being ready.
    fn gate(&self, kind: &Gvk) -> Option<Test> {
        let by_existence = GATE_BY_EXISTENCE.contains(&(kind.group.as_str(), kind.kind.as_str()));
        let exists = Test { state: Some(Wanted::Exists), ..Test::default() };
        (by_existence && self.entry.ready_when.is_none()).then_some(exists)
    }

    fn act(&self, frame: &Frame<'_>, id: StepId, before: Vec<After>) -> Step {
        let entry = &self.entry;
        let documents = Documents::Objects(self.objects.iter().map(Object::document).collect());
        let existing = match entry.adopt {
            Some(Adopt::Adopt) => Existing::Adopt,
            // A Namespace is shared by nature: one that is there is used as it is, and never becomes ours.
            None if self.is_all("", "Namespace") => Existing::Skip,
            None | Some(Adopt::Never) => Existing::Fail,
        };
        let manager = frame.owner.manager(id.as_str());
        let kept = entry.deletion_policy == Some(DeletionPolicy::Orphan);
        let body = Body::Apply { documents, existing };
        let mut action = plan::Action::new(self.via.clone(), body, &frame.owner.namespace, &manager);
        action.rerun = Rerun::OnDrift(Drift {
            objects: self.objects.iter().filter_map(|object| self.watched(object, &manager)).collect(),
            ignore: entry.ignore_fields.clone(),
            run_once: self.runs_once(),
        });
        action.tracked = !kept;
        action.prune = match entry.prune {
            _ if kept => Prune::Never,
            Some(true) => Prune::All,
            Some(false) => Prune::Never,
            None => Prune::Usual,
        };
        action.long_lived_last = true;
        action.immutable = match entry.immutable.unwrap_or_default() {
            ImmutableWord::Fail => Immutable::Fail,
            ImmutableWord::Recreate => Immutable::Recreate,
            ImmutableWord::Ignore => Immutable::Ignore,
        };
        let owns = frame.removal == Removal::Delete && !kept && self.via.cluster.is_here();
        action.owner = owns.then(|| {
            Arc::new(Owner {
                api_version: frame.owner.api_version.clone(),
                kind: frame.owner.kind.clone(),
                namespace: frame.owner.namespace.clone(),
                name: frame.owner.name.clone(),
                uid: frame.owner.uid.clone(),
            })
        });
        for object in &self.objects {
            if let Ok(kind) = &object.kind {
                let rights = |deed| {
                    rights::changing(deed, &kind.resource(), object.namespace.as_ref(), Some(&object.name))
                };
                action.rights.extend(rights(Deed::Apply));
                if !kept {
                    action.later_rights.extend(rights(Deed::Delete));
                }
            }
        }
        action.open_rights.extend(self.package.iter().map(|package| package.open_right.clone()));
        if self.readings.values && self.via.cluster.is_here() {
            action.rights.extend(values::rights(&frame.inputs));
        }
        action.reads.clone_from(&self.readings.dependencies);
        action.reads_values = self.readings.values;
        action.reads_now = self.readings.now;
        let mut step = Step::new(id, &self.field, self.definition(frame), StepKind::Act(Box::new(action)));
        step.part = Some(self.group.clone());
        step.after = before;
        step
    }

    /// The question that shows whether an object is still as it was written.
    fn watched(&self, object: &Object, manager: &str) -> Option<linchpin_engine::contract::Want> {
        let kind = object.kind.as_ref().ok()?;
        Some(Drift::object(
            self.via.clone(),
            kind.gvk.clone(),
            object.namespace.clone(),
            &object.name,
            manager,
        ))
    }

    /// What is applied, and how: not when, nor what is waited for, so that changing those writes nothing.
    fn definition(&self, frame: &Frame<'_>) -> String {
        let certain = self.package.as_ref().is_none_or(|package| package.certain);
        let Some(sources) = self.sources.as_ref().filter(|_| certain) else {
            return UNKNOWN_DEFINITION.to_owned();
        };
        let bodies: Vec<&Value> = self.objects.iter().map(|object| &object.body).collect();
        let text = json!({
            "objects": bodies,
            "adopt": self.entry.adopt,
            "cluster": self.entry.cluster.as_ref().or(frame.common.cluster.as_ref()),
            "raw": self.entry.raw,
        });
        definition(&text, &json!([values::read(frame.common, &self.readings), sources]))
    }

    /// Whether its end is final.
    fn runs_once(&self) -> bool {
        self.entry.run_once.unwrap_or_else(|| self.is_all("batch", "Job") || self.is_all("", "Pod"))
    }

    fn is_all(&self, group: &str, kind: &str) -> bool {
        let wanted = GroupKind::new(group, kind);
        !self.objects.is_empty() && self.objects.iter().all(|object| object.gvk.group_kind() == wanted)
    }
}

/// What the author says about when objects are ready and when they have failed.
fn profile(kinds: &Kinds<'_>, entry: &Component, field: &str) -> Result<Option<Profile>, SpecError> {
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
