//! Applying objects: from bodies to an act, and to the requirements that its objects are ready.
//!
//! What every door that applies objects does the same way: kind and namespace of each body, marks on its metadata,
//! templates over `.Values` (`object`, `values`), bodies kept elsewhere (`source`), and the policies for what is there
//! already, what drifts, what leaves and what cannot be changed. A door says which bodies, marks and policies; the order
//! and the names of the steps are its own.

mod object;
mod source;
mod values;

use std::{sync::Arc, time::Duration};

use linchpin_api::{action::Adopt, common::Cluster};
use linchpin_engine::{
    contract::{Existing, OwnerReference, StepId, Via, Want},
    plan::{
        self, ActionBody, After, Documents, Drift, Immutable, Prune, Readings, Removal, Rerun, SpecError,
        Step, StepKind, Test, UNKNOWN_DEFINITION, definition,
    },
    readiness::Wanted,
    rights::{self, ObjectAccess},
};
use linchpin_lang::weight;
use linchpin_words::{GroupKind, Gvk, limits};
use serde_json::{Value, json};

use self::values::Values;
pub(crate) use self::{
    object::{Marks, Object, as_json},
    source::{Bodies, config_map},
};
use crate::{
    assemble::{Frame, Keys},
    requirement::{RequirementDraft, RequirementSpec},
    values as common_values,
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

/// What becomes of objects that are there already, that drift, that leave the spec and that cannot be changed.
#[derive(Clone, Debug, Default)]
pub(crate) struct ApplyPolicy {
    pub adopt: Option<Adopt>,
    /// Whether they stay when they leave the spec, or the object that applies them goes.
    pub kept: bool,
    /// Whether they are deleted when they leave the spec; none means as their kind is usually treated.
    pub prune: Option<bool>,
    pub immutable: Immutable,
    pub ignore_fields: Vec<String>,
    /// Whether their end is final; none means as their kind is usually treated.
    pub run_once: Option<bool>,
}

/// What one act applies, as a door says it.
pub(crate) struct ApplySpec<'a> {
    /// The act.
    pub id: StepId,
    /// Where it is written.
    pub field: &'a str,
    pub part: Option<&'a str>,
    pub via: Via,
    /// The cluster as it is written for these objects alone.
    pub cluster: Option<&'a Cluster>,
    /// The bodies, each with the field it is written in.
    pub bodies: Vec<(String, Value)>,
    pub marks: &'a Marks,
    /// Whether strings in the bodies are templates.
    pub templating: bool,
    /// Whether the author has turned templates off.
    pub raw: bool,
    pub policy: ApplyPolicy,
}

/// How it is waited for an object that was applied.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadyTerms {
    pub timeout: Option<Duration>,
    /// Whether it counts for ever once it was ready, whatever its kind.
    pub latch: bool,
    /// Whether existence is enough to go on, of kinds that are ready only after what comes after them.
    pub gate_by_existence: bool,
}

/// Objects on their way to become an act and requirements.
#[derive(Debug)]
pub(crate) struct ApplyDraft {
    pub id: StepId,
    pub via: Via,
    pub objects: Vec<Object>,
    pub readings: Readings,
    field: String,
    part: Option<String>,
    cluster: Option<Cluster>,
    raw: bool,
    policy: ApplyPolicy,
    /// Which versions of values it was compiled with; none while one is missing.
    sources: Option<Value>,
    /// Of bodies that are in a Secret: which version of it, instead of what they are.
    secret: Option<Value>,
}

impl ApplyDraft {
    /// Reads the bodies.
    pub(crate) fn read(frame: &Frame<'_>, spec: ApplySpec<'_>) -> Result<Self, SpecError> {
        let values = spec.templating.then(|| Values::new(frame));
        let read = |(field, body): (String, Value)| {
            object::read(frame, &spec.via, field, &body, spec.marks, values.as_ref())
        };
        let objects: Vec<Object> = spec.bodies.into_iter().map(read).collect::<Result<_, _>>()?;
        let reads_values = objects.iter().any(|object| {
            let reads = object.reads();
            reads.dynamic
                || reads.paths.iter().any(|path| path.segments().first().is_none_or(|root| root == "Values"))
        });
        let sources = match values.filter(|_| reads_values) {
            Some(values) => values.sources()?,
            None => Some(Value::Null),
        };
        let own = frame.common.values.as_ref().filter(|_| reads_values).map(|own| json!(own));
        let read = sources.iter().chain(&own).map(|read| weight(read, limits::TURN_STEPS)).sum();
        frame.kinds.pay(read, spec.field, "there are values to read")?;
        Ok(Self {
            id: spec.id,
            via: spec.via,
            objects,
            readings: Readings::new(),
            field: spec.field.to_owned(),
            part: spec.part.map(str::to_owned),
            cluster: spec.cluster.or(frame.common.cluster.as_ref()).cloned(),
            raw: spec.raw,
            policy: spec.policy,
            sources,
            secret: None,
        })
    }

    /// Notes what its templates read.
    pub(crate) fn note(&mut self, keys: &Keys) -> Result<(), SpecError> {
        for object in &self.objects {
            let reads = object.reads();
            keys.check(&reads, &object.field)?;
            self.readings.add(&reads, keys.roots(), keys.steps());
        }
        Ok(())
    }

    /// What is applied is not known for certain: until it is, what was applied before counts as unchanged.
    pub(crate) fn is_uncertain(&mut self) {
        self.sources = None;
    }

    /// Its bodies are in a Secret: no hash of them is remembered, and nothing that a server says of them is reported.
    pub(crate) fn stems_from_secret(&mut self, version: Value) {
        self.secret = Some(version);
    }

    /// That one of its objects is ready.
    pub(crate) fn ready(&self, id: StepId, object: &Object) -> RequirementSpec {
        self.ready_object(id, &object.field, &object.gvk, object.namespace.as_deref(), &object.name)
    }

    /// That an object is ready that comes of what it applies.
    pub(crate) fn ready_object(
        &self,
        id: StepId,
        field: &str,
        gvk: &Gvk,
        namespace: Option<&str>,
        name: &str,
    ) -> RequirementSpec {
        RequirementSpec {
            part: self.part.clone(),
            state: Some(Wanted::Ready),
            ..RequirementSpec::on_object(id, field, self.via.clone(), gvk, namespace, name)
        }
    }

    /// The step that waits until an object of this kind is ready.
    pub(crate) fn ready_step(&self, draft: RequirementDraft, gvk: &Gvk, terms: &ReadyTerms) -> Step {
        let mut step = draft.finish(vec![After::success(self.id.clone())], terms.timeout);
        if let StepKind::Require(requirement) = &mut step.kind {
            let kind = (gvk.group.as_str(), gvk.kind.as_str());
            let gated = terms.gate_by_existence && GATE_BY_EXISTENCE.contains(&kind);
            requirement.floor = Some(self.id.clone());
            requirement.latch = self.runs_once() || terms.latch;
            requirement.gate = gated.then(|| Test { state: Some(Wanted::Exists), ..Test::default() });
        }
        step
    }

    /// The act, after these steps. `open_rights` are rights that are not known yet, in words.
    pub(crate) fn act(&self, frame: &Frame<'_>, before: Vec<After>, open_rights: &[String]) -> Step {
        let policy = &self.policy;
        let documents = Documents::Objects(self.objects.iter().map(Object::document).collect());
        let existing = match policy.adopt {
            Some(Adopt::Adopt) => Existing::Adopt,
            // A Namespace is shared by nature: one that is there is used as it is, and never becomes ours.
            None if self.is_all("", "Namespace") => Existing::Skip,
            None | Some(Adopt::Never) => Existing::Fail,
        };
        let manager = frame.owner.manager(self.id.as_str());
        let body = ActionBody::Apply { documents, existing };
        let mut action = plan::PlannedAction::new(self.via.clone(), body, &frame.owner.namespace, &manager);
        action.rerun = Rerun::OnDrift(Drift {
            objects: self.objects.iter().filter_map(|object| self.watched(object, &manager)).collect(),
            ignore: policy.ignore_fields.clone(),
            run_once: self.runs_once(),
        });
        action.tracked = !policy.kept;
        action.prune = match policy.prune {
            _ if policy.kept => Prune::Never,
            Some(true) => Prune::All,
            Some(false) => Prune::Never,
            None => Prune::Usual,
        };
        action.long_lived_last = true;
        action.immutable = policy.immutable;
        let owns = frame.removal == Removal::Delete && !policy.kept && self.via.cluster.is_here();
        action.owner = owns.then(|| {
            Arc::new(OwnerReference {
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
                action.rights.extend(rights(ObjectAccess::Apply));
                if !policy.kept {
                    action.later_rights.extend(rights(ObjectAccess::Delete));
                }
            }
        }
        action.open_rights.extend_from_slice(open_rights);
        action.discreet = self.secret.is_some();
        if self.readings.values && self.via.cluster.is_here() {
            action.rights.extend(common_values::rights(&frame.inputs));
        }
        action.reads.clone_from(&self.readings.dependencies);
        action.reads_values = self.readings.values;
        action.reads_now = self.readings.now;
        let definition = self.definition(frame);
        let mut step = Step::new(self.id.clone(), &self.field, definition, StepKind::Act(Box::new(action)));
        step.part.clone_from(&self.part);
        step.after = before;
        step
    }

    /// The question that shows whether an object is still as it was written.
    fn watched(&self, object: &Object, manager: &str) -> Option<Want> {
        let gvk = object.kind.as_ref().ok()?.gvk.clone();
        Some(Drift::object(self.via.clone(), gvk, object.namespace.clone(), &object.name, manager))
    }

    /// What is applied, and how: not when, nor what is waited for, so that changing those writes nothing.
    fn definition(&self, frame: &Frame<'_>) -> String {
        let Some(sources) = &self.sources else {
            return UNKNOWN_DEFINITION.to_owned();
        };
        let bodies = match &self.secret {
            None => json!(self.objects.iter().map(|object| &object.body).collect::<Vec<_>>()),
            Some(version) => json!([self.id.as_str(), version]),
        };
        let text = json!({
            "objects": bodies,
            "adopt": self.policy.adopt,
            "cluster": self.cluster,
            "raw": self.raw,
        });
        definition(&text, &json!([common_values::read(frame.common, &self.readings), sources]))
    }

    /// Whether its end is final.
    fn runs_once(&self) -> bool {
        self.policy.run_once.unwrap_or_else(|| self.is_all("batch", "Job") || self.is_all("", "Pod"))
    }

    fn is_all(&self, group: &str, kind: &str) -> bool {
        let wanted = GroupKind::new(group, kind);
        !self.objects.is_empty() && self.objects.iter().all(|object| object.gvk.group_kind() == wanted)
    }
}
