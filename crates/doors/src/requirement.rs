//! One requirement: from a typed reference to a step.
//!
//! What must be observed is said in a [`RequirementSpec`]: doors make it from what their users write (`dependency`) or
//! from what they know themselves (`apply`). [`RequirementDraft::new`] resolves the kind and collects what the test looks
//! at; guards and templates of actions then add what they read of it; [`RequirementDraft::finish`] turns it into a step.
//! While the kind is not known, the question the requirement asks is the kind itself: it blocks, and is never an error.

use std::{sync::Arc, time::Duration};

use linchpin_engine::{
    contract::{Question, ReadSet, Right, Scope, Selector, StepId, Via, Want},
    plan::{
        After, BoundExpression, BoundView, Clauses, ExpectedCount, Obstacle, PlanLane, Profile, Requirement,
        SpecError, Step, StepKind, Test, definition,
    },
    readiness::{self, Wanted},
    rights,
};
use linchpin_lang::{cel::Expression, compare::FieldCondition, jsonpath};
use linchpin_words::{GroupKind, Gvk, KindWord, ObjectRef, reference::template_keys};
use serde_json::{Value, json};

use crate::{
    assemble::Frame,
    errors::{at, expression},
    kinds::{KindMeaning, ResolvedKind},
    readiness_profile::{self, ProfileLookup},
};

/// What a requirement is about.
#[derive(Clone, Debug)]
pub(crate) enum RequiredThing {
    /// The server's version.
    Version,
    /// Objects of the kind that a word means.
    Objects {
        word: KindWord,
        /// Their namespace, where the kind has namespaces; none means the namespace of the object that requires them.
        namespace: Option<String>,
        which: RequiredObjects,
    },
}

/// Which objects of a kind.
#[derive(Clone, Debug)]
pub(crate) enum RequiredObjects {
    Name(String),
    Labels(Selector),
}

/// A requirement, before anything was asked about its kind.
#[derive(Clone, Debug)]
pub(crate) struct RequirementSpec {
    pub id: StepId,
    /// Where it is written, or what it comes from is.
    pub field: String,
    /// Where its kind is written.
    pub kind_field: String,
    pub part: Option<String>,
    /// What messages call it.
    pub label: String,
    /// What it is called in templates and expressions.
    pub keys: Vec<String>,
    pub definition: String,
    pub via: Via,
    pub about: RequiredThing,
    /// The state that is asked for; none means the default of the kind.
    pub state: Option<Wanted>,
    pub clauses: Clauses,
    pub min_replicas: Option<i64>,
    pub expect: Option<ExpectedCount>,
    /// The one group that is meant, of a DependencyGroup.
    pub group: Option<String>,
    /// For what it is required, where that is less than the whole part.
    pub on_behalf_of: Option<String>,
    pub optional: bool,
    pub timeout: Option<Duration>,
    pub progress_timeout: Option<Duration>,
}

impl RequirementSpec {
    /// On one object, called by its kind and place.
    pub(crate) fn on_object(
        id: StepId,
        field: &str,
        via: Via,
        gvk: &Gvk,
        namespace: Option<&str>,
        name: &str,
    ) -> Self {
        let place = namespace.map_or_else(|| name.to_owned(), |namespace| format!("{namespace}/{name}"));
        let identity = json!([gvk.api_version(), gvk.kind, namespace, name, via.cluster.to_string()]);
        Self {
            id,
            field: field.to_owned(),
            kind_field: field.to_owned(),
            part: None,
            label: format!("{} {place}", gvk.kind),
            keys: template_keys(None, &gvk.kind, Some(name)),
            definition: definition(&identity, &Value::Null),
            via,
            about: RequiredThing::Objects {
                word: KindWord::from_manifest(Some(&gvk.api_version()), &gvk.kind),
                namespace: namespace.map(str::to_owned),
                which: RequiredObjects::Name(name.to_owned()),
            },
            state: None,
            clauses: Clauses::default(),
            min_replicas: None,
            expect: None,
            group: None,
            on_behalf_of: None,
            optional: false,
            timeout: None,
            progress_timeout: None,
        }
    }

    /// Gives it a name that templates may use, alone and after the part's.
    pub(crate) fn is_named(&mut self, name: &str, kind: &str, object: Option<&str>) {
        self.keys = keys(Some(name), kind, object, self.part.as_deref());
    }
}

/// What a requirement is called in templates: by its name, and by kind and name of its object.
pub(crate) fn keys(name: Option<&str>, kind: &str, object: Option<&str>, part: Option<&str>) -> Vec<String> {
    let mut keys = template_keys(name, kind, object);
    if let (Some(part), Some(name)) = (part, name) {
        // Names are unique within a part only, so the part's name makes a key that is always unique.
        for key in template_keys(Some(&format!("{part}/{name}")), kind, None).into_iter().take(2) {
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
    }
    keys
}

/// A requirement on its way to become a step.
#[derive(Debug)]
pub(crate) struct RequirementDraft {
    pub id: StepId,
    pub field: String,
    pub part: Option<String>,
    pub keys: Vec<String>,
    /// The state that is waited for.
    pub wanted: Wanted,
    label: String,
    definition: String,
    via: Via,
    subject: RequirementSubject,
    /// Whether its objects are of a kind of ours.
    ours: bool,
    test: Test,
    reads: ReadSet,
    group: Option<String>,
    on_behalf_of: Option<String>,
    target: ObjectRef,
    optional: bool,
    timeout: Option<Duration>,
    progress_timeout: Option<Duration>,
    held: Option<Obstacle>,
    more_rights: Vec<Right>,
}

/// What a requirement is about, as far as that is known.
#[derive(Debug)]
enum RequirementSubject {
    /// The server's version.
    Version,
    /// Objects of a kind.
    Objects(ResolvedKind, Scope),
    /// Not known before this question is answered.
    Open(Want),
}

impl RequirementDraft {
    /// Resolves what it is about.
    pub(crate) fn new(frame: &Frame<'_>, spec: RequirementSpec) -> Result<Self, SpecError> {
        let subject = subject(frame, &spec)?;
        let target = target(frame, &spec.about, &subject);
        let reports_status = match &subject {
            RequirementSubject::Objects(kind, _) => kind.reports_status,
            RequirementSubject::Version | RequirementSubject::Open(_) => None,
        };
        readiness_profile::pay(&frame.kinds, &spec.clauses, &spec.field)?;
        let mut draft = Self {
            id: spec.id,
            field: spec.field,
            part: spec.part,
            keys: spec.keys,
            wanted: Wanted::Exists,
            label: spec.label,
            definition: spec.definition,
            via: spec.via,
            subject,
            ours: false,
            test: Test {
                state: spec.state,
                min_replicas: spec.min_replicas,
                conditions: spec.clauses.conditions.clone(),
                cel: spec.clauses.cel.clone(),
                expect: spec.expect,
                profile: None,
                reports_status,
                bound: None,
                served: false,
            },
            reads: ReadSet::nothing(),
            group: spec.group,
            on_behalf_of: spec.on_behalf_of,
            target,
            optional: spec.optional,
            timeout: spec.timeout,
            progress_timeout: spec.progress_timeout,
            held: None,
            more_rights: Vec::new(),
        };
        draft.also_read(&readiness_profile::reads(&spec.clauses));
        draft.learn(frame)?;
        Ok(draft)
    }

    /// What somebody taught us about the kind, and what its own test therefore looks at.
    fn learn(&mut self, frame: &Frame<'_>) -> Result<(), SpecError> {
        let RequirementSubject::Objects(kind, _) = &self.subject else {
            self.wanted = self.test.state.clone().unwrap_or(Wanted::Ready);
            return Ok(());
        };
        let group_kind = kind.gvk.group_kind();
        self.ours = frame.kinds.registry().is_ours(&group_kind);
        let profile = match &self.group {
            Some(group) => Some(Arc::new(one_group(group, &self.field)?)),
            None => match readiness_profile::find(&frame.kinds, &group_kind) {
                ProfileLookup::Known(profile) => profile,
                ProfileLookup::NotYet(want) if self.needs_profile() => {
                    self.wanted = self.test.state.clone().unwrap_or(Wanted::Ready);
                    self.subject = RequirementSubject::Open(want);
                    return Ok(());
                }
                ProfileLookup::NotYet(_) => None,
            },
        };
        let has_clauses = self.test.cel.is_some() || !self.test.conditions.is_empty();
        let omitted = match (has_clauses && self.test.min_replicas.is_none(), &profile) {
            (true, None) => Wanted::Exists,
            (true, Some(_)) if self.group.is_none() => Wanted::Exists,
            (_, Some(_)) => Wanted::Ready,
            (false, None) => Wanted::omitted(readiness::row(&group_kind, self.ours)),
        };
        self.wanted = self.test.state.clone().unwrap_or(omitted);
        self.test.state = Some(self.wanted.clone());
        if let Some(profile) = profile {
            self.is_taught(profile);
        }
        self.look_for(&self.wanted.clone());
        Ok(())
    }

    /// The one object it is about, where that is known.
    pub(crate) fn object(&self) -> Option<(&Gvk, Option<&String>, &String)> {
        match &self.subject {
            RequirementSubject::Objects(kind, Scope::Name { namespace, name }) => {
                Some((&kind.gvk, namespace.as_ref(), name))
            }
            _ => None,
        }
    }

    /// What it is about as people are shown it.
    pub(crate) fn target(&self) -> &ObjectRef {
        &self.target
    }

    /// Says how the kind is written that nobody serves; of kinds of ours that is known.
    pub(crate) fn is_of_kind(&mut self, written: &str) {
        if self.target.kind.kind.eq_ignore_ascii_case(written) {
            written.clone_into(&mut self.target.kind.kind);
        }
    }

    /// Says which kind that nobody serves yet is meant.
    pub(crate) fn is_of_defined_kind(&mut self, kind: GroupKind) {
        self.target.kind = kind;
    }

    /// The kind and the selection it is about, where both are known.
    pub(crate) fn selection(&self) -> Option<(Gvk, Scope)> {
        match &self.subject {
            RequirementSubject::Objects(kind, scope) => Some((kind.gvk.clone(), scope.clone())),
            RequirementSubject::Version | RequirementSubject::Open(_) => None,
        }
    }

    /// The kind of its objects, where that is known.
    pub(crate) fn kind(&self) -> Option<GroupKind> {
        match &self.subject {
            RequirementSubject::Objects(kind, _) => Some(kind.gvk.group_kind()),
            RequirementSubject::Version | RequirementSubject::Open(_) => None,
        }
    }

    /// Whether a profile could change the answer.
    fn needs_profile(&self) -> bool {
        !self.test.state.as_ref().is_some_and(Wanted::is_presence)
    }

    /// Adds what judging a state looks at.
    pub(crate) fn look_for(&mut self, wanted: &Wanted) {
        if let RequirementSubject::Objects(kind, _) = &self.subject {
            let paths = readiness::reads_for(wanted, readiness::row(&kind.gvk.group_kind(), self.ours));
            self.reads.merge(&ReadSet::dotted(paths));
        }
    }

    /// Says when it is ready and when it has failed, instead of what its kind says.
    pub(crate) fn is_taught(&mut self, profile: Arc<Profile>) {
        self.reads.merge(&readiness_profile::reads(&profile.ready_when));
        if let Some(failed) = &profile.failed_when {
            self.reads.merge(&readiness_profile::reads(failed));
        }
        self.test.profile = Some(profile);
    }

    /// Says why it cannot hold in this plan; where that is for want of an answer, the question is what it waits for.
    pub(crate) fn is_held(&mut self, held: Obstacle, question: Option<Want>) {
        self.held = Some(held);
        if let Some(question) = question {
            self.subject = RequirementSubject::Open(question);
        }
    }

    /// Adds comparisons of fields, which change nothing about the state that is looked for.
    pub(crate) fn also_requires(&mut self, conditions: Vec<Arc<FieldCondition>>) {
        let clauses = Clauses { cel: None, conditions };
        self.reads.merge(&readiness_profile::reads(&clauses));
        self.test.conditions.extend(clauses.conditions);
    }

    /// Adds an expression over what is found and what the door knows.
    pub(crate) fn is_bound(&mut self, bound: BoundExpression) {
        match (&bound.view, bound.cel.reads().get("dep")) {
            (BoundView::Whole, Some(read)) => self.reads.merge(&ReadSet::from(read)),
            (BoundView::Entry { list, .. }, Some(_)) => {
                self.reads.merge(&ReadSet::dotted([format!("status.{list}").as_str()]));
            }
            (BoundView::Given(_), Some(_)) | (_, None) => {}
        }
        self.test.bound = Some(Arc::new(bound));
    }

    /// Says what messages call it.
    pub(crate) fn is_called(&mut self, label: String) {
        self.label = label;
    }

    /// Adds rights that were needed to find out about it.
    pub(crate) fn also_needs(&mut self, rights: &[Right]) {
        self.more_rights.extend_from_slice(rights);
    }

    /// Adds what somebody else reads of it.
    pub(crate) fn also_read(&mut self, reads: &ReadSet) {
        self.reads.merge(reads);
        // Of a key that is missing the message lists which there are; not of Secrets.
        let is = |wanted: &str| self.kind().is_some_and(|kind| kind.group.is_empty() && kind.kind == wanted);
        if is("Secret") {
            return;
        }
        let has_data = is("ConfigMap");
        for path in reads.paths() {
            let map = match path {
                [map, _] if map == "data" && has_data => &path[..1],
                [map, _] if map == "spec" || map == "status" => &path[..1],
                [metadata, map, _] if metadata == "metadata" && (map == "labels" || map == "annotations") => {
                    &path[..2]
                }
                _ => continue,
            };
            self.reads.add_shape(map.to_vec());
        }
    }

    /// The requirement, after these steps.
    pub(crate) fn finish(self, after: Vec<After>, limit: Option<Duration>) -> Step {
        let (want, mut rights) = match self.subject {
            RequirementSubject::Version => (Want::new(Question::Version { via: self.via }), Vec::new()),
            RequirementSubject::Open(want) => (want, Vec::new()),
            RequirementSubject::Objects(kind, scope) => {
                let rights: Vec<Right> = rights::observing(&kind.resource(), &kind.gvk, &scope);
                let question = Question::Objects { via: self.via, kind: kind.gvk, scope, reads: self.reads };
                (Want::new(question), rights)
            }
        };
        rights.extend(self.more_rights);
        Step {
            id: self.id,
            field: self.field,
            part: self.part,
            definition: self.definition,
            after,
            lane: PlanLane::Main,
            when: None,
            kind: StepKind::Require(Box::new(Requirement {
                part: self.group,
                ours: self.ours,
                target: Some(self.target).filter(|_| want.object_ref().is_none()),
                on_behalf_of: self.on_behalf_of,
                rights,
                held: self.held,
                keys: self.keys,
                ..Requirement::new(self.label, want, self.test)
            })),
            optional: self.optional,
            patience: None,
            timeout: shorter(self.timeout, limit),
            progress_timeout: self.progress_timeout,
            fail_fast: false,
            delay_after: None,
            rank: 0,
        }
    }
}

/// The shorter of two limits.
fn shorter(one: Option<Duration>, other: Option<Duration>) -> Option<Duration> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

/// What it is about, as far as discovery says.
fn subject(frame: &Frame<'_>, spec: &RequirementSpec) -> Result<RequirementSubject, SpecError> {
    let RequiredThing::Objects { word, namespace, which } = &spec.about else {
        return Ok(RequirementSubject::Version);
    };
    let meaning = frame.kinds.resolve(&spec.via, word).map_err(|problem| at(&spec.kind_field, problem))?;
    let kind = match meaning {
        KindMeaning::Open(want) => return Ok(RequirementSubject::Open(want)),
        KindMeaning::Known(kind) => kind,
    };
    let namespace = kind.place(namespace.as_ref().unwrap_or(&frame.owner.namespace));
    let scope = match which {
        RequiredObjects::Name(name) => Scope::Name { namespace, name: name.clone() },
        RequiredObjects::Labels(selector) => Scope::Labels { namespace, selector: selector.clone() },
    };
    Ok(RequirementSubject::Objects(kind, scope))
}

/// What it is about as people are shown it: resolved as far as it is, else as written.
fn target(frame: &Frame<'_>, about: &RequiredThing, subject: &RequirementSubject) -> ObjectRef {
    let RequiredThing::Objects { word, namespace, which } = about else {
        return ObjectRef::cluster_scoped(GroupKind::new("", "Version"), "kubernetes");
    };
    let (kind, namespaced) = match subject {
        RequirementSubject::Objects(kind, _) => (kind.gvk.group_kind(), kind.namespaced),
        RequirementSubject::Version | RequirementSubject::Open(_) => {
            let as_written = || GroupKind::new(word.group.clone().unwrap_or_default(), &word.word);
            let ours = frame.kinds.registry().called(word).map(|kind| kind.names().gvk.group_kind());
            (ours.unwrap_or_else(as_written), true)
        }
    };
    let namespace = namespace.as_ref().unwrap_or(&frame.owner.namespace);
    let name = match which {
        RequiredObjects::Name(name) => name.clone(),
        RequiredObjects::Labels(selector) => format!("[{selector}]"),
    };
    ObjectRef { kind, namespace: namespaced.then(|| namespace.clone()), name }
}

/// When one group of a DependencyGroup is ready: what its own status says of it.
fn one_group(group: &str, field: &str) -> Result<Profile, SpecError> {
    let name = Value::String(group.to_owned());
    let clause = |source: String| {
        Expression::compile(&format!("{field}.group"), &source, &["self"])
            .map(|cel| Clauses { cel: Some(Arc::new(cel)), conditions: Vec::new() })
            .map_err(|error| expression(&error))
    };
    Ok(Profile {
        ready_when: clause(format!("self.status.groups.exists(group, group.name == {name} && group.ready)"))?,
        failed_when: Some(clause(format!(
            "self.status.groups.exists(group, group.name == {name} && group.phase == 'Failed')"
        ))?),
        says: jsonpath::JsonPath::compile(field, &format!("{{.status.groups[?(@.name=={name})].message}}"))
            .ok()
            .map(Arc::new),
        words: None,
    })
}
