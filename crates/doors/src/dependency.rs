//! One dependency: from the user's entry to a requirement.
//!
//! Made in two strokes. [`DependencyDraft::new`] reads the entry, resolves its kind and collects what its own test looks at;
//! guards and templates of actions then add what they read of it; [`DependencyDraft::finish`] turns it into a step. While the
//! kind is not known, the question the requirement asks is the kind itself: it blocks, and is never an error.

use std::{sync::Arc, time::Duration};

use linchpin_api::{Dependency, common::Expect as ExpectCount, dependency::WatchEvent};
use linchpin_engine::{
    contract::{Question, ReadSet, Right, Scope, Selector, StepId, Via, Want},
    plan::{
        After, Clauses, Expect, Lane, Obstacle, Profile, Requirement, SpecError, Step, StepKind, Test,
        WatchEvents, definition,
    },
    readiness::{self, Wanted},
    rights,
};
use linchpin_lang::{cel::Expression, jsonpath};
use linchpin_words::{KindWord, Reference, reference::template_keys};
use serde_json::Value;

use crate::{
    assemble::Frame,
    cluster,
    errors::{at, duration, expression},
    kinds::{Kind, Meaning},
    names::{self, Named},
    readiness_profile::{self, Taught},
};

/// A dependency on its way to become a step.
#[derive(Debug)]
pub(crate) struct DependencyDraft {
    pub id: StepId,
    pub field: String,
    pub part: Option<String>,
    /// Its name, if it has one.
    pub name: Option<String>,
    /// Its resource as written.
    pub resource: String,
    /// Its tier.
    pub priority: i32,
    pub keys: Vec<String>,
    pub watch: WatchEvents,
    /// The state that is waited for.
    pub wanted: Wanted,
    label: String,
    definition: String,
    via: Via,
    subject: DependencySubject,
    test: Test,
    reads: ReadSet,
    group: Option<String>,
    optional: bool,
    timeout: Option<Duration>,
    progress_timeout: Option<Duration>,
    held: Option<Obstacle>,
    more_rights: Vec<Right>,
}

/// What a dependency is about.
#[derive(Debug)]
enum DependencySubject {
    /// The server's version.
    Version,
    /// Objects of a kind.
    Objects(Kind, Scope),
    /// Not known before this question is answered.
    Open(Want),
}

impl DependencyDraft {
    /// Reads an entry.
    pub(crate) fn new(
        frame: &Frame<'_>,
        entry: &Dependency,
        named: &Named,
        field: &str,
        part: Option<&str>,
    ) -> Result<Self, SpecError> {
        let via = cluster::via(
            &frame.via,
            &frame.owner.namespace,
            entry.cluster.as_ref(),
            frame.common.cluster.as_ref(),
            field,
        )?;
        let (reference, written_kind) = reference(entry, field)?;
        let (subject, namespaced_kind) = subject(frame, entry, &reference, &via, field)?;
        let clauses = readiness_profile::clauses(entry.cel.as_deref(), &entry.conditions, field)?;
        readiness_profile::pay(&frame.kinds, &clauses, field)?;
        let mut draft = Self {
            id: named.id.clone(),
            field: field.to_owned(),
            part: part.map(str::to_owned),
            name: entry.name.clone(),
            resource: names::resource_text(entry),
            priority: entry.priority,
            keys: keys(entry, &reference, &written_kind, part),
            watch: watch_events(entry.watch_events.as_deref()),
            wanted: Wanted::Exists,
            label: names::label(entry),
            definition: definition(&frame.fragment(entry, entry.cluster.is_some()), &Value::Null),
            via,
            subject,
            test: Test {
                state: stated(entry),
                min_replicas: entry.min_replicas.map(i64::from),
                conditions: clauses.conditions.clone(),
                cel: clauses.cel.clone(),
                expect: expect(entry.expect.as_ref(), entry.selector.is_some(), field)?,
                profile: None,
                reports_status: namespaced_kind.as_ref().and_then(|kind| kind.reports_status),
            },
            reads: readiness_profile::reads(&clauses),
            group: entry.group.clone(),
            optional: entry.optional,
            timeout: duration(entry.timeout.as_ref(), &format!("{field}.timeout"))?,
            progress_timeout: duration(entry.progress_timeout.as_ref(), &format!("{field}.progressTimeout"))?,
            held: None,
            more_rights: Vec::new(),
        };
        draft.learn(frame, &clauses)?;
        Ok(draft)
    }

    /// What somebody taught us about the kind, and what its own test therefore looks at.
    fn learn(&mut self, frame: &Frame<'_>, clauses: &Clauses) -> Result<(), SpecError> {
        let DependencySubject::Objects(kind, _) = &self.subject else {
            self.wanted = self.test.state.clone().unwrap_or(Wanted::Ready);
            return Ok(());
        };
        let group_kind = kind.gvk.group_kind();
        let profile = match &self.group {
            Some(group) => {
                if (group_kind.group.as_str(), group_kind.kind.as_str())
                    != ("tools.kubestellar.io", "DependencyGroup")
                {
                    let problem =
                        format!("only a DependencyGroup has groups; {} is a {group_kind}", self.resource);
                    return Err(at(format!("{}.group", self.field), problem));
                }
                Some(Arc::new(one_group(group, &self.field)?))
            }
            None => match readiness_profile::find(&frame.kinds, &group_kind) {
                Taught::Known(profile) => profile,
                Taught::NotYet(want) if self.needs_profile() => {
                    self.wanted = self.test.state.clone().unwrap_or(Wanted::Ready);
                    self.subject = DependencySubject::Open(want);
                    return Ok(());
                }
                Taught::NotYet(_) => None,
            },
        };
        let has_clauses = clauses.cel.is_some() || !clauses.conditions.is_empty();
        let omitted = match (has_clauses && self.test.min_replicas.is_none(), &profile) {
            (true, None) => Wanted::Exists,
            (true, Some(_)) if self.group.is_none() => Wanted::Exists,
            (_, Some(_)) => Wanted::Ready,
            (false, None) => Wanted::omitted(&group_kind),
        };
        self.wanted = self.test.state.clone().unwrap_or(omitted);
        self.test.state = Some(self.wanted.clone());
        if let Some(profile) = profile {
            self.is_taught(profile);
        }
        self.look_for(&self.wanted.clone());
        Ok(())
    }

    /// Whether a profile could change the answer.
    fn needs_profile(&self) -> bool {
        !self.test.state.as_ref().is_some_and(Wanted::is_presence)
    }

    /// Adds what judging a state looks at.
    pub(crate) fn look_for(&mut self, wanted: &Wanted) {
        if let DependencySubject::Objects(kind, _) = &self.subject {
            let paths = readiness::reads_for(wanted, &kind.gvk.group_kind());
            self.reads.merge(&ReadSet::dotted(paths));
        }
    }

    /// What messages call it, instead of how it is written.
    pub(crate) fn is_called(&mut self, label: String) {
        self.label = label;
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
            self.subject = DependencySubject::Open(question);
        }
    }

    /// Adds rights that were needed to find out about it.
    pub(crate) fn also_needs(&mut self, rights: &[Right]) {
        self.more_rights.extend_from_slice(rights);
    }

    /// Adds what somebody else reads of it.
    pub(crate) fn also_read(&mut self, reads: &ReadSet) {
        self.reads.merge(reads);
    }

    /// The requirement, after these steps.
    pub(crate) fn finish(self, after: Vec<After>, limit: Option<Duration>) -> Step {
        let (want, mut rights) = match self.subject {
            DependencySubject::Version => (Want::new(Question::Version { via: self.via }), Vec::new()),
            DependencySubject::Open(want) => (want, Vec::new()),
            DependencySubject::Objects(kind, scope) => {
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
            lane: Lane::Main,
            when: None,
            kind: StepKind::Require(Box::new(Requirement {
                part: self.group,
                rights,
                held: self.held,
                keys: self.keys,
                ..Requirement::new(self.label, want, self.test)
            })),
            optional: self.optional,
            timeout: shorter(self.timeout, limit),
            progress_timeout: self.progress_timeout,
            fail_fast: false,
            delay_after: None,
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

/// The reference an entry makes, and its kind as written.
fn reference(entry: &Dependency, field: &str) -> Result<(Reference, String), SpecError> {
    let (reference, kind) = match (&entry.resource, &entry.reference) {
        (Some(text), None) => {
            let field = format!("{field}.resource");
            let parsed = match &entry.selector {
                Some(_) => Reference::parse_kind(text),
                None => Reference::parse(text),
            };
            let parsed = parsed.map_err(|error| at(field, error))?;
            let kind = text.split('/').next().unwrap_or_default().to_owned();
            (parsed, kind)
        }
        (None, Some(explicit)) => {
            if explicit.name.is_some() == entry.selector.is_some() {
                return Err(at(format!("{field}.ref"), "it needs a name, or a selector instead of it"));
            }
            (Reference { word: explicit.kind_word(), name: explicit.name.clone() }, explicit.kind.clone())
        }
        _ => return Err(at(field, "give exactly one of resource and ref")),
    };
    if entry.expect.is_some() && entry.selector.is_none() {
        return Err(at(format!("{field}.expect"), "it counts what a selector finds; it needs a selector"));
    }
    Ok((reference, kind))
}

/// What an entry is about, and its kind where that is known.
fn subject(
    frame: &Frame<'_>,
    entry: &Dependency,
    reference: &Reference,
    via: &Via,
    field: &str,
) -> Result<(DependencySubject, Option<Kind>), SpecError> {
    if reference.is_server_version() && entry.resource.is_some() {
        return Ok((DependencySubject::Version, None));
    }
    let explicit = entry.reference.as_ref().and_then(|reference| reference.namespace.as_ref());
    let namespace = entry.namespace.as_ref().or(explicit).unwrap_or(&frame.owner.namespace);
    let kind = match meaning(frame, via, &reference.word, entry, field)? {
        Meaning::Open(want) => return Ok((DependencySubject::Open(want), None)),
        Meaning::Known(kind) => kind,
    };
    let scope = match (&reference.name, &entry.selector) {
        (Some(name), None) => Scope::Name { namespace: kind.place(namespace), name: name.clone() },
        (None, Some(labels)) => {
            let selector: Selector = cluster::selector(labels, &format!("{field}.selector"))?;
            Scope::Labels { namespace: kind.place(namespace), selector }
        }
        _ => return Err(at(field, "give the name of an object, or a selector")),
    };
    Ok((DependencySubject::Objects(kind.clone(), scope), Some(kind)))
}

fn meaning(
    frame: &Frame<'_>,
    via: &Via,
    word: &KindWord,
    entry: &Dependency,
    field: &str,
) -> Result<Meaning, SpecError> {
    let inner = if entry.resource.is_some() { "resource" } else { "ref" };
    frame.kinds.resolve(via, word).map_err(|problem| at(format!("{field}.{inner}"), problem))
}

fn keys(entry: &Dependency, reference: &Reference, kind: &str, part: Option<&str>) -> Vec<String> {
    let mut keys = template_keys(entry.name.as_deref(), kind, reference.name.as_deref());
    if let (Some(part), Some(name)) = (part, &entry.name) {
        // Names are unique within a group only, so the group's name makes a key that is always unique.
        for key in template_keys(Some(&format!("{part}/{name}")), kind, None).into_iter().take(2) {
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
    }
    keys
}

/// The state that the entry itself asks for.
fn stated(entry: &Dependency) -> Option<Wanted> {
    match (&entry.state, entry.require_ready) {
        (Some(word), _) => Some(Wanted::parse(word)),
        (None, Some(false)) => Some(Wanted::Exists),
        (None, Some(true)) => Some(Wanted::Ready),
        (None, None) => None,
    }
}

fn expect(expect: Option<&ExpectCount>, selects: bool, field: &str) -> Result<Option<Expect>, SpecError> {
    let Some(expect) = expect else {
        return Ok(selects.then_some(Expect::AtLeast(1)));
    };
    let count = |number: i32| {
        u64::try_from(number).map_err(|_| at(format!("{field}.expect"), "a count is not negative"))
    };
    match (expect.at_least, expect.exactly, expect.all) {
        (Some(number), None, None) => Ok(Some(Expect::AtLeast(count(number)?))),
        (None, Some(number), None) => Ok(Some(Expect::Exactly(count(number)?))),
        (None, None, Some(true)) => Ok(Some(Expect::All)),
        _ => Err(at(format!("{field}.expect"), "give exactly one of atLeast, exactly and all")),
    }
}

fn watch_events(events: Option<&[WatchEvent]>) -> WatchEvents {
    let Some(events) = events else {
        return WatchEvents::default();
    };
    let has = |event| events.contains(&event);
    WatchEvents {
        create: has(WatchEvent::Create),
        update: has(WatchEvent::Update),
        delete: has(WatchEvent::Delete),
    }
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
        says: jsonpath::Path::compile(field, &format!("{{.status.groups[?(@.name=={name})].message}}"))
            .ok()
            .map(Arc::new),
    })
}
