//! One dependency: from the user's entry to a requirement.

use linchpin_api::{Dependency, common::Expect as ExpectCount, dependency::WatchEvent};
use linchpin_engine::{
    plan::{ExpectedCount, SpecError, WatchEvents, definition},
    readiness::Wanted,
};
use linchpin_words::{GroupKind, Reference};
use serde_json::Value;

use crate::{
    assemble::Frame,
    cluster,
    errors::{at, duration},
    names::{self, NamedStep},
    readiness_profile,
    requirement::{self, RequiredObjects, RequiredThing, RequirementDraft, RequirementSpec},
};

/// A dependency on its way to become a step.
#[derive(Debug)]
pub(crate) struct DependencyDraft {
    pub requirement: RequirementDraft,
    /// Its name, if it has one.
    pub name: Option<String>,
    /// Its resource as written.
    pub resource: String,
    /// Its tier.
    pub priority: i32,
    pub watch: WatchEvents,
}

impl DependencyDraft {
    /// Reads an entry.
    pub(crate) fn new(
        frame: &Frame<'_>,
        entry: &Dependency,
        named: &NamedStep,
        field: &str,
        part: Option<&str>,
    ) -> Result<Self, SpecError> {
        Ok(Self {
            requirement: read(frame, entry, named, field, part, None)?,
            name: entry.name.clone(),
            resource: names::resource_text(entry),
            priority: entry.priority,
            watch: watch_events(entry.watch_events.as_deref()),
        })
    }
}

/// The requirement that an entry is.
pub(crate) fn read(
    frame: &Frame<'_>,
    entry: &Dependency,
    named: &NamedStep,
    field: &str,
    part: Option<&str>,
    on_behalf_of: Option<&str>,
) -> Result<RequirementDraft, SpecError> {
    let via = cluster::via(
        &frame.via,
        &frame.owner.namespace,
        entry.object.cluster.as_ref(),
        frame.common.cluster.as_ref(),
        field,
    )?;
    let (reference, written_kind) = reference(entry, field)?;
    let spec = RequirementSpec {
        id: named.id.clone(),
        field: field.to_owned(),
        kind_field: format!("{field}.{}", if entry.object.resource.is_some() { "resource" } else { "ref" }),
        part: part.map(str::to_owned),
        label: names::label(entry, &frame.owner.namespace),
        keys: requirement::keys(entry.name.as_deref(), &written_kind, reference.name.as_deref(), part),
        definition: definition(&frame.fragment(entry, entry.object.cluster.is_some()), &Value::Null),
        via,
        about: about(entry, &reference, field)?,
        state: stated(entry),
        clauses: readiness_profile::clauses(entry.object.cel.as_deref(), &entry.object.conditions, field)?,
        min_replicas: entry.object.min_replicas.map(i64::from),
        expect: expect(entry.object.expect.as_ref(), entry.object.selector.is_some(), field)?,
        group: entry.object.group.clone(),
        on_behalf_of: on_behalf_of.map(str::to_owned),
        optional: entry.optional,
        timeout: duration(entry.timeout.as_ref(), &format!("{field}.timeout"))?,
        progress_timeout: duration(entry.progress_timeout.as_ref(), &format!("{field}.progressTimeout"))?,
    };
    let draft = RequirementDraft::new(frame, spec)?;
    match draft.kind().filter(|kind| entry.object.group.is_some() && !has_groups(kind)) {
        Some(kind) => {
            let resource = names::resource_text(entry);
            let problem = format!("only a DependencyGroup has groups; {resource} is a {kind}");
            Err(at(format!("{field}.group"), problem))
        }
        None => Ok(draft),
    }
}

fn has_groups(kind: &GroupKind) -> bool {
    (kind.group.as_str(), kind.kind.as_str()) == ("tools.kubestellar.io", "DependencyGroup")
}

/// The reference an entry makes, and its kind as written.
fn reference(entry: &Dependency, field: &str) -> Result<(Reference, String), SpecError> {
    let (reference, kind) = match (&entry.object.resource, &entry.object.reference) {
        (Some(text), None) => {
            let field = format!("{field}.resource");
            let parsed = match &entry.object.selector {
                Some(_) => Reference::parse_kind(text),
                None => Reference::parse(text),
            };
            let parsed = parsed.map_err(|error| at(field, error))?;
            let kind = text.split('/').next().unwrap_or_default().to_owned();
            (parsed, kind)
        }
        (None, Some(explicit)) => {
            if explicit.name.is_some() == entry.object.selector.is_some() {
                return Err(at(format!("{field}.ref"), "it needs a name, or a selector instead of it"));
            }
            (Reference { word: explicit.kind_word(), name: explicit.name.clone() }, explicit.kind.clone())
        }
        _ => return Err(at(field, "give exactly one of resource and ref")),
    };
    if entry.object.expect.is_some() && entry.object.selector.is_none() {
        return Err(at(format!("{field}.expect"), "it counts what a selector finds; it needs a selector"));
    }
    Ok((reference, kind))
}

/// What an entry is about.
fn about(entry: &Dependency, reference: &Reference, field: &str) -> Result<RequiredThing, SpecError> {
    if reference.is_server_version() && entry.object.resource.is_some() {
        return Ok(RequiredThing::Version);
    }
    let which = match (&reference.name, &entry.object.selector) {
        (Some(name), None) => RequiredObjects::Name(name.clone()),
        (None, Some(labels)) => {
            RequiredObjects::Labels(cluster::selector(labels, &format!("{field}.selector"))?)
        }
        _ => return Err(at(field, "give the name of an object, or a selector")),
    };
    let explicit = entry.object.reference.as_ref().and_then(|reference| reference.namespace.as_ref());
    let namespace = entry.namespace.as_ref().or(explicit).cloned();
    Ok(RequiredThing::Objects { word: reference.word.clone(), namespace, which })
}

/// The state that the entry itself asks for.
fn stated(entry: &Dependency) -> Option<Wanted> {
    match (&entry.object.state, entry.require_ready) {
        (Some(word), _) => Some(Wanted::parse(word)),
        (None, Some(false)) => Some(Wanted::Exists),
        (None, Some(true)) => Some(Wanted::Ready),
        (None, None) => None,
    }
}

pub(crate) fn expect(
    expect: Option<&ExpectCount>,
    selects: bool,
    field: &str,
) -> Result<Option<ExpectedCount>, SpecError> {
    let Some(expect) = expect else {
        return Ok(selects.then_some(ExpectedCount::AtLeast(1)));
    };
    let count = |number: i32| {
        u64::try_from(number).map_err(|_| at(format!("{field}.expect"), "a count is not negative"))
    };
    match (expect.at_least, expect.exactly, expect.all) {
        (Some(number), None, None) => Ok(Some(ExpectedCount::AtLeast(count(number)?))),
        (None, Some(number), None) => Ok(Some(ExpectedCount::Exactly(count(number)?))),
        (None, None, Some(true)) => Ok(Some(ExpectedCount::All)),
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
