//! One dependency of a Sync: from the user's entry to a gate.
//!
//! State and readiness are judged by the engine, on the object itself. What lies between two Syncs, that is versions,
//! revisions of one source and exports, is looked at here, in the same world: it is an obstacle of the requirement, with
//! words of its own.

use std::{sync::Arc, time::Duration};

use linchpin_api::{
    SyncDependency,
    common::Target,
    sync::{
        Gate, Latch, NeededFor, Strength, SyncSource,
        dependency::{ObjectRef as ObjectWord, RequiredStatus, SyncRef},
    },
};
use linchpin_engine::{
    contract::{Question, ReadSet, Seen, StepId, Via, Want},
    plan::{
        After, Bound, BoundView, Clauses, Gates, Lasts, Obstacle, Profile, SpecError, Step, StepKind,
        definition,
    },
    readiness::{self, Wanted},
};
use linchpin_lang::{cel::Expression, jsonpath::Path};
use linchpin_words::{GroupKind, KindWord, ObjectRef, Reason, Reference, keys};
use serde_json::{Value, json};

use super::{
    capability, kind,
    object::SyncObject,
    outline::{DependencyOutline, What},
    range::{Range, Within},
};
use crate::{
    assemble::Frame,
    cluster,
    dependency::expect,
    errors::{at, duration, expression},
    requirement::{About, RequirementDraft, RequirementSpec, Which},
};

/// How long a soft dependency is waited for, where nothing is said.
pub(super) const PATIENCE: Duration = Duration::from_mins(5);

/// What a dependency is read with, beside the entry itself.
pub(super) struct Around<'a> {
    pub frame: &'a Frame<'a>,
    /// Where objects are looked for.
    pub via: &'a Via,
    /// The revision that is about to be applied; none where nothing is applied.
    pub revision: Option<&'a str>,
    pub source: Option<&'a SyncSource>,
    pub objects: &'a [SyncObject],
    /// What `self` is in expressions.
    pub myself: Value,
    /// Whether a namespace must be written.
    pub explicit: bool,
}

/// A dependency on its way to become steps.
pub(super) struct Dependency {
    pub outline: DependencyOutline,
    /// The own object that it names, by position.
    pub own: Option<usize>,
    pub gates: GateSet,
    step: Step,
}

/// The transitions that a dependency holds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct GateSet {
    pub admission: Option<Gates>,
    pub reapply: bool,
}

/// What `gates` means.
pub(super) fn gate_set(create: bool, update: bool, reapply: bool) -> GateSet {
    let admission = match (create, update) {
        (true, true) => Some(Gates::Both),
        (true, false) => Some(Gates::Create),
        (false, true) => Some(Gates::Update),
        (false, false) => None,
    };
    GateSet { admission, reapply }
}

/// Reads an entry.
pub(super) fn read(
    around: &Around<'_>,
    entry: &SyncDependency,
    field: &str,
) -> Result<Dependency, SpecError> {
    let given =
        [entry.sync.is_some(), entry.object.is_some(), entry.objects.is_some(), entry.capability.is_some()];
    if given.iter().filter(|given| **given).count() != 1 {
        return Err(at(field, "give exactly one of sync, object, objects and capability"));
    }
    let terms = Terms::read(entry, field)?;
    let found = if let Some(sync) = &entry.sync {
        on_sync(around, entry, &terms, sync, field)?
    } else if let Some(object) = &entry.object {
        on_object(around, entry, &terms, object, field)?
    } else if let Some(capability) = &entry.capability {
        capability::read(around, entry, terms.range.as_ref(), capability, field)?
    } else {
        on_objects(around, entry, &terms, field)?
    };
    let needed_for = entry.needed_for.unwrap_or_default();
    let mut step = found.step;
    step.id = StepId::new(format!("dependency:{}", entry.name));
    field.clone_into(&mut step.field);
    step.definition = definition(&reference_text(entry), &Value::Null);
    let gates = entry.gates.as_deref().unwrap_or(&[Gate::Create, Gate::Update]);
    let has = |gate| gates.contains(&gate);
    let hard = terms.strength == Strength::Hard;
    let gate_set = gate_set(has(Gate::Create), has(Gate::Update), has(Gate::Reapply) && hard);
    if hard {
        step.timeout = duration(entry.timeout.as_ref(), &format!("{field}.timeout"))?;
    } else {
        let patience = duration(entry.patience.as_ref(), &format!("{field}.patience"))?;
        step.patience = Some(patience.unwrap_or(PATIENCE));
    }
    let lasts = match entry.latch {
        Some(Latch::Once) => Lasts::ForGood,
        Some(Latch::PerRevision) => Lasts::Edition,
        None if found.completed => Lasts::ForGood,
        Some(Latch::None) | None => Lasts::No,
    };
    if let StepKind::Require(requirement) = &mut step.kind {
        requirement.lasts = lasts;
        requirement.label.clone_from(&found.depends_on);
    }
    // What holds no transition is only looked at.
    step.optional = gate_set.admission.is_none() && found.own.is_none();
    let outline = DependencyOutline {
        name: entry.name.clone(),
        step: step.id.clone(),
        depends_on: found.depends_on,
        relation: format!("{} ← {}", found.state, needed_for.as_str()),
        strength: terms.strength,
        what: found.what,
        object: found.object,
        latches: lasts != Lasts::No,
        gates: gate_set.admission.is_some() || gate_set.reapply,
        cyclic: found.cyclic,
        observed_revision: found.revision,
        observed_version: found.version,
    };
    Ok(Dependency { outline, own: found.own, gates: gate_set, step })
}

impl Dependency {
    /// Its step, and one more where every write waits for it.
    pub(super) fn steps(&self) -> Vec<Step> {
        let mut steps = vec![self.step.clone()];
        if self.gates.reapply {
            let id = StepId::new(format!("reapply:{}", self.outline.name));
            steps.push(Step { id, timeout: None, optional: false, ..self.step.clone() });
        }
        steps
    }

    /// The step of a dependency on an own object, after what writes it.
    pub(super) fn own_step(&self, act: &StepId) -> Step {
        let mut step = self.step.clone();
        step.after = vec![After::success(act.clone())];
        if let StepKind::Require(requirement) = &mut step.kind {
            requirement.floor = Some(act.clone());
        }
        step
    }
}

/// The part of an entry that says what is referred to: another one is another latch.
fn reference_text(entry: &SyncDependency) -> Value {
    json!([
        entry.sync,
        entry.object,
        entry.objects,
        entry.capability,
        entry.state,
        entry.required_status,
        entry.version,
        entry.version_path,
        entry.ready_expr
    ])
}

/// What an entry asks for, whatever it refers to.
struct Terms {
    strength: Strength,
    state: Option<Wanted>,
    range: Option<Range>,
}

impl Terms {
    fn read(entry: &SyncDependency, field: &str) -> Result<Self, SpecError> {
        let state = match (&entry.state, entry.required_status) {
            (Some(_), Some(_)) => return Err(at(field, "give one of state and requiredStatus")),
            (Some(word), None) => Some(Wanted::parse(word)),
            (None, Some(RequiredStatus::Current)) => Some(Wanted::Ready),
            (None, Some(RequiredStatus::InProgress)) => Some(Wanted::Exists),
            (None, None) => None,
        };
        let range = entry.version.as_deref().map(Range::parse).transpose();
        let range = range.map_err(|problem| at(format!("{field}.version"), problem))?;
        Ok(Self { strength: strength(entry), state, range })
    }
}

/// How firmly an entry is waited for: what is Available is needed softly to become Available, all else is hard.
pub(super) fn strength(entry: &SyncDependency) -> Strength {
    let available = match (&entry.state, entry.required_status) {
        (Some(word), _) => Wanted::parse(word) == Wanted::Ready,
        (None, required) => required != Some(RequiredStatus::InProgress),
    };
    let soft = entry.needed_for == Some(NeededFor::Available) && available;
    entry.strength.unwrap_or(if soft { Strength::Soft } else { Strength::Hard })
}

/// An entry, as far as what it refers to is known.
pub(super) struct Found {
    pub step: Step,
    pub depends_on: String,
    /// The document's word for the state that is relied on.
    pub state: String,
    pub what: What,
    pub object: Option<ObjectRef>,
    pub own: Option<usize>,
    pub completed: bool,
    pub cyclic: bool,
    pub revision: Option<String>,
    pub version: Option<String>,
}

/// The document's word for a state that is relied on.
fn state_word(wanted: &Wanted) -> String {
    match wanted {
        Wanted::Exists => "Defined".to_owned(),
        Wanted::Ready => "Available".to_owned(),
        other => other.to_string(),
    }
}

/// An expression over `dep` and `self`.
pub(super) fn bound(
    around: &Around<'_>,
    entry: &SyncDependency,
    view: BoundView,
    field: &str,
) -> Result<Option<Bound>, SpecError> {
    let Some(source) = &entry.ready_expr else { return Ok(None) };
    let compiled = Expression::compile(&format!("{field}.readyExpr"), source, &["self", "dep"]);
    let compiled = compiled.map_err(|error| expression(&error))?;
    Ok(Some(Bound::new(compiled, around.myself.clone(), view)))
}

/// What of another Sync is looked at here.
const SYNC_READS: [&str; 13] = [
    "spec.exports",
    "spec.source.configMapRef",
    "spec.source.secretRef",
    "spec.source.http",
    "spec.source.oci",
    "spec.source.fluxRef",
    "status.version",
    "status.observedRevision",
    "status.lastAppliedRevision",
    "status.exports",
    "status.conditions.type",
    "status.conditions.status",
    "status.conditions.reason",
];

fn on_sync(
    around: &Around<'_>,
    entry: &SyncDependency,
    terms: &Terms,
    sync: &SyncRef,
    field: &str,
) -> Result<Found, SpecError> {
    let frame = around.frame;
    let namespace = match &sync.namespace {
        Some(namespace) => namespace,
        None if around.explicit => {
            return Err(at(
                format!("{field}.sync.namespace"),
                "name the namespace: there is no other to be meant",
            ));
        }
        None => &frame.owner.namespace,
    };
    if !around.explicit && *namespace == frame.owner.namespace && sync.name == frame.owner.name {
        return Err(at(format!("{field}.sync"), "a Sync cannot depend on itself"));
    }
    let gvk = kind("Sync");
    let object = ObjectRef::namespaced(gvk.group_kind(), namespace, &sync.name);
    let wanted = terms.state.clone().unwrap_or(Wanted::Ready);
    if !matches!(wanted, Wanted::Exists | Wanted::Ready | Wanted::Completed) {
        return Err(at(format!("{field}.state"), "the state of a Sync is Defined, Available or Completed"));
    }
    let spec = RequirementSpec {
        state: Some(Wanted::Ready),
        ..RequirementSpec::on_object(
            StepId::new(&entry.name),
            field,
            frame.via.clone(),
            &gvk,
            Some(namespace.as_str()),
            &sync.name,
        )
    };
    let mut draft = RequirementDraft::new(frame, spec)?;
    if let Some(profile) = sync_profile(&wanted, sync.export.as_deref(), field)? {
        draft.is_taught(Arc::new(profile));
    }
    let view = match &sync.export {
        Some(export) => BoundView::Entry { list: "exports", name: export.clone() },
        None => BoundView::Whole,
    };
    if let Some(bound) = bound(around, entry, view, field)? {
        draft.is_bound(bound);
    }
    let reads = ReadSet::dotted(SYNC_READS);
    let want = Want::object(frame.via.clone(), gvk, Some(namespace.clone()), &sync.name, reads);
    let (mut revision, mut version, mut told, mut cyclic) = (None, None, object.to_string(), false);
    if let Some(export) = &sync.export {
        told = format!("export {export} of {object}");
    }
    if let Some(Seen::Objects(observed)) = frame.kinds.ask(want)
        && let Some(item) = observed.items.first()
    {
        let text = |path: &str| item.content.pointer(path).and_then(Value::as_str).map(str::to_owned);
        (revision, version) = (text("/status/lastAppliedRevision"), text("/status/version"));
        cyclic = waits_in_a_circle(&item.content);
        let obstacle = export_obstacle(sync, &object, &item.content)
            .or_else(|| version_obstacle(&object.to_string(), terms.range.as_ref(), version.as_deref()))
            .or_else(|| revision_obstacle(around, namespace, &object, &item.content, revision.as_deref()));
        if let Some(obstacle) = obstacle {
            draft.is_held(obstacle, None);
        }
    }
    Ok(Found {
        step: draft.finish(Vec::new(), None),
        depends_on: told,
        state: state_word(&wanted),
        what: if sync.export.is_some() { What::Export } else { What::Sync },
        object: Some(object),
        own: None,
        completed: wanted == Wanted::Completed,
        cyclic,
        revision,
        version,
    })
}

/// When a Sync, or an export of it, is in a state other than that its own condition Ready is True.
fn sync_profile(wanted: &Wanted, export: Option<&str>, field: &str) -> Result<Option<Profile>, SpecError> {
    const SEEN: &str = "self.status.observedGeneration == self.metadata.generation";
    const STALLED: &str = "self.status.conditions.exists(c, c.type == 'Stalled' && c.status == 'True')";
    let (ready, failed) = match (export, wanted) {
        (None, Wanted::Exists | Wanted::Completed) => {
            let revision =
                if *wanted == Wanted::Exists { "lastAppliedRevision" } else { "lastReadyRevision" };
            let there = format!("self.status.{revision} == self.status.observedRevision");
            let gone = format!("(!has(self.status.{revision}) || !({there}))");
            (format!("{SEEN} && {there}"), format!("{SEEN} && {STALLED} && {gone}"))
        }
        (None, _) => return Ok(None),
        (Some(export), wanted) => {
            let name = Value::String(export.to_owned());
            let states = match wanted {
                Wanted::Exists => "['Defined', 'Available', 'Completed', 'Failed']",
                Wanted::Completed => "['Completed']",
                _ => "['Available', 'Completed']",
            };
            let is = |states: &str| {
                format!("{SEEN} && self.status.exports.exists(e, e.name == {name} && e.state in {states})")
            };
            (is(states), if *wanted == Wanted::Exists { "false".to_owned() } else { is("['Failed']") })
        }
    };
    let clause = |source: String| {
        Expression::compile(field, &source, &["self"])
            .map(|cel| Clauses { cel: Some(Arc::new(cel)), conditions: Vec::new() })
            .map_err(|error| expression(&error))
    };
    Ok(Some(Profile { ready_when: clause(ready)?, failed_when: Some(clause(failed)?), says: None }))
}

/// An export that is not declared, or whose object is not there to be exported.
fn export_obstacle(sync: &SyncRef, object: &ObjectRef, content: &Value) -> Option<Obstacle> {
    let export = sync.export.as_deref()?;
    let list = |path: &str| content.pointer(path).and_then(Value::as_array).cloned().unwrap_or_default();
    let declared = list("/spec/exports");
    let broken = |message: String| Some(Obstacle { reason: Reason::ExportMissing, message });
    if !declared.iter().any(|one| one["name"] == export) {
        let mut names: Vec<&str> = declared.iter().filter_map(|one| one["name"].as_str()).collect();
        names.sort_unstable();
        let has =
            if names.is_empty() { "it has none".to_owned() } else { format!("it has: {}", names.join(", ")) };
        return broken(format!(
            "says it depends on export {export} of {object}, which has no such export ({has})"
        ));
    }
    let shown = list("/status/exports");
    let entry = shown.iter().find(|one| one["name"] == export)?;
    if entry["reason"] == Reason::ExportMissing.as_str() {
        return broken(format!(
            "says it depends on export {export} of {object}, whose object is not among those that it applies"
        ));
    }
    None
}

/// Whether a Sync says that it waits for itself, or for what does.
fn waits_in_a_circle(content: &Value) -> bool {
    let conditions = content.pointer("/status/conditions").and_then(Value::as_array);
    conditions.into_iter().flatten().any(|one| {
        one["type"] == "DependencyCycle" && one["status"] == "True"
            || one["type"] == "DependenciesReady" && one["reason"] == Reason::BlockedByCycle.as_str()
    })
}

/// A version outside of the range that is needed.
pub(super) fn version_obstacle(what: &str, range: Option<&Range>, version: Option<&str>) -> Option<Obstacle> {
    let range = range?;
    let needs = range.as_str();
    let (reason, message) = match version.map(|version| (version, range.contains(version))) {
        Some((_, Within::Yes)) => return None,
        Some((version, Within::No)) => {
            (Reason::VersionNotMet, format!("{what} is at {version}, needs {needs}"))
        }
        Some((version, Within::Unknown)) => {
            (Reason::VersionUnknown, format!("{what} is at {version}, which cannot be compared with {needs}"))
        }
        None => (Reason::VersionUnknown, format!("{what} says no version, needs {needs}")),
    };
    Some(Obstacle { reason, message })
}

/// Another revision of the same source.
fn revision_obstacle(
    around: &Around<'_>,
    namespace: &str,
    object: &ObjectRef,
    content: &Value,
    applied: Option<&str>,
) -> Option<Obstacle> {
    let (ours, revision) = (around.source?, around.revision?);
    let theirs: SyncSource = serde_json::from_value(content.pointer("/spec/source")?.clone()).ok()?;
    let own = &around.frame.owner.namespace;
    (source_key(ours, own)? == source_key(&theirs, namespace)? && applied != Some(revision)).then(|| {
        let applied = applied.map_or_else(|| "nothing".to_owned(), short);
        let message =
            format!("{object} has applied {applied} of the same source, not {} yet", short(revision));
        Obstacle { reason: Reason::RevisionNotMet, message }
    })
}

/// A revision as people are shown it.
pub(super) fn short(revision: &str) -> String {
    match revision.rsplit_once(':') {
        Some((head, hex)) if hex.len() > 12 && hex.is_ascii() => format!("{head}:{}", &hex[..12]),
        _ => revision.to_owned(),
    }
}

/// What two Syncs of one source have in common; none for objects, which are never shared.
fn source_key(source: &SyncSource, namespace: &str) -> Option<Value> {
    if let Some(map) = &source.config_map_ref {
        return Some(json!(["ConfigMap", namespace, map.name]));
    }
    if let Some(secret) = &source.secret_ref {
        return Some(json!(["Secret", namespace, secret.name]));
    }
    if let Some(flux) = &source.flux_ref {
        let place = flux.namespace.as_deref().unwrap_or(namespace);
        return Some(json!([flux.kind.as_str(), place, flux.name]));
    }
    if let Some(http) = &source.http {
        let secret = http.secret_ref.as_ref().map(|secret| (namespace, &secret.name));
        return Some(json!(["http", http.url, http.digest, secret]));
    }
    let oci = source.oci.as_ref()?;
    let secret = oci.secret_ref.as_ref().map(|secret| (namespace, &secret.name));
    Some(json!(["oci", oci.url, oci.tag, oci.digest, secret]))
}

/// The reference that an entry on one object makes.
fn reference(object: &ObjectWord, field: &str) -> Result<(KindWord, String), SpecError> {
    match (&object.resource, &object.kind, &object.name) {
        (Some(text), None, None) => {
            let parsed = Reference::parse(text).map_err(|error| at(format!("{field}.resource"), error))?;
            let name = parsed.name.ok_or_else(|| at(format!("{field}.resource"), "it names no object"))?;
            Ok((parsed.word, name))
        }
        (None, Some(kind), Some(name)) => {
            Ok((KindWord::from_manifest(object.api_version.as_deref(), kind), name.clone()))
        }
        _ => Err(at(field, "give resource, or kind and name")),
    }
}

/// Whether a kind runs to an end, or may say so itself.
fn ends(kind: &GroupKind) -> bool {
    let runs = [("batch", "Job"), ("", "Pod"), ("linchpin.dev", "Sync")];
    runs.contains(&(kind.group.as_str(), kind.kind.as_str())) || !readiness::in_table(kind)
}

fn on_object(
    around: &Around<'_>,
    entry: &SyncDependency,
    terms: &Terms,
    object: &ObjectWord,
    field: &str,
) -> Result<Found, SpecError> {
    let frame = around.frame;
    let place = format!("{field}.object");
    let (word, name) = reference(object, &place)?;
    let completed = terms.state == Some(Wanted::Completed);
    let spec = |state: Option<Wanted>| RequirementSpec {
        kind_field: place.clone(),
        state,
        about: About::Objects {
            word: word.clone(),
            namespace: object.namespace.clone(),
            which: Which::Name(name.clone()),
        },
        ..RequirementSpec::on_object(
            StepId::new(&entry.name),
            field,
            around.via.clone(),
            &kind("Sync"),
            object.namespace.as_deref(),
            &name,
        )
    };
    let mut draft = RequirementDraft::new(frame, spec(terms.state.clone()))?;
    let resolved =
        draft.object().map(|(gvk, namespace, name)| (gvk.clone(), namespace.cloned(), name.clone()));
    if let Some((gvk, namespace, _)) = &resolved {
        if around.explicit && namespace.is_some() && object.namespace.is_none() {
            return Err(at(
                format!("{place}.namespace"),
                "name the namespace: there is no other to be meant",
            ));
        }
        // What does not run to an end is completed once it was there as it should be.
        if completed && (!ends(&gvk.group_kind()) || entry.ready_expr.is_some() && !runs(&gvk.group_kind())) {
            draft = RequirementDraft::new(frame, spec(None))?;
        }
    }
    let wanted = draft.wanted.clone();
    let target = draft.target().clone();
    let own = around.objects.iter().position(|one| {
        let object = one.object();
        match &resolved {
            Some((gvk, namespace, name)) => one.is(&gvk.group_kind(), namespace.as_deref(), name),
            // A kind that the source itself defines is not served before it is applied.
            None => {
                object.name == name
                    && object.gvk.kind.eq_ignore_ascii_case(&word.word)
                    && word.group.as_ref().is_none_or(|group| *group == object.gvk.group)
                    && object.kind.is_err()
            }
        }
    });
    if let Some(bound) = bound(around, entry, BoundView::Whole, field)? {
        draft.is_bound(bound);
    }
    let mut version = None;
    if let (Some(range), Some((gvk, namespace, name))) = (&terms.range, resolved) {
        let path = version_path(entry, field)?;
        let reads = path
            .as_ref()
            .map_or_else(|| ReadSet::dotted(["metadata.labels"]), |path| ReadSet::from(&path.reads()));
        let want = Want::object(around.via.clone(), gvk, namespace, name, reads);
        if let Some(Seen::Objects(observed)) = frame.kinds.ask(want)
            && let Some(item) = observed.items.first()
        {
            version = version_of(path.as_ref(), &item.content);
            if let Some(obstacle) = version_obstacle(&shown(&target), Some(range), version.as_deref()) {
                draft.is_held(obstacle, None);
            }
        }
    }
    Ok(Found {
        step: draft.finish(Vec::new(), None),
        depends_on: shown(&target),
        state: if completed { "Completed".to_owned() } else { state_word(&wanted) },
        what: if own.is_some() { What::Own } else { What::Object },
        object: Some(target),
        own,
        completed,
        cyclic: false,
        revision: None,
        version,
    })
}

/// Whether a kind certainly runs to an end.
fn runs(kind: &GroupKind) -> bool {
    [("batch", "Job"), ("", "Pod")].contains(&(kind.group.as_str(), kind.kind.as_str()))
}

/// An object as people are shown it: kinds that are neither Kubernetes' own nor ours with their group.
pub(super) fn shown(object: &ObjectRef) -> String {
    let group = object.kind.group.as_str();
    let plain = group.is_empty()
        || linchpin_words::reference::built_in_kind(group, &object.kind.kind).is_some()
        || group == "linchpin.dev";
    if plain {
        return object.to_string();
    }
    match &object.namespace {
        Some(namespace) => format!("{} {namespace}/{}", object.kind, object.name),
        None => format!("{} {}", object.kind, object.name),
    }
}

fn version_path(entry: &SyncDependency, field: &str) -> Result<Option<Path>, SpecError> {
    let place = format!("{field}.versionPath");
    let path = entry.version_path.as_ref().map(|path| Path::compile(&place, path));
    path.transpose().map_err(|error| at(place, error.problem()))
}

/// The version that an object says it has.
fn version_of(path: Option<&Path>, content: &Value) -> Option<String> {
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    match path {
        Some(path) => path.find(content).ok()?.first().copied().and_then(text),
        None => content
            .pointer("/metadata/labels")
            .and_then(|labels| labels.get(keys::APP_VERSION))
            .and_then(text),
    }
}

fn on_objects(
    around: &Around<'_>,
    entry: &SyncDependency,
    terms: &Terms,
    field: &str,
) -> Result<Found, SpecError> {
    let frame = around.frame;
    let Some(objects) = &entry.objects else { return Err(at(field, "it names nothing")) };
    let place = format!("{field}.objects");
    let selector = cluster::selector(&objects.selector, &format!("{place}.selector"))?;
    let word = KindWord::from_manifest(objects.api_version.as_deref(), &objects.kind);
    let spec = RequirementSpec {
        kind_field: place.clone(),
        state: terms.state.clone(),
        expect: expect(objects.expect.as_ref(), true, &place)?,
        about: About::Objects { word, namespace: objects.namespace.clone(), which: Which::Labels(selector) },
        ..RequirementSpec::on_object(
            StepId::new(&entry.name),
            field,
            around.via.clone(),
            &kind("Sync"),
            objects.namespace.as_deref(),
            "",
        )
    };
    let mut draft = RequirementDraft::new(frame, spec)?;
    let wanted = draft.wanted.clone();
    if let Some(bound) = bound(around, entry, BoundView::Whole, field)? {
        draft.is_bound(bound);
    }
    let target = draft.target().clone();
    let mut version = None;
    if let Some(range) = &terms.range {
        let path = version_path(entry, field)?;
        let reads = path
            .as_ref()
            .map_or_else(|| ReadSet::dotted(["metadata.labels"]), |path| ReadSet::from(&path.reads()));
        if let Some((gvk, scope)) = draft.selection() {
            let question = Question::Objects { via: around.via.clone(), kind: gvk, scope, reads };
            if let Some(Seen::Objects(observed)) = frame.kinds.ask(Want::new(question)) {
                // Each of them must be in the range: the first that is not says why.
                let obstacle = observed.items.iter().find_map(|item| {
                    version = version_of(path.as_ref(), &item.content);
                    version_obstacle(&item.object_ref().to_string(), Some(range), version.as_deref())
                });
                if let Some(obstacle) = obstacle {
                    draft.is_held(obstacle, None);
                }
            }
        }
    }
    Ok(Found {
        step: draft.finish(Vec::new(), None),
        depends_on: shown(&target),
        state: state_word(&wanted),
        what: What::Objects,
        object: None,
        own: None,
        completed: terms.state == Some(Wanted::Completed),
        cyclic: false,
        revision: None,
        version,
    })
}

/// Whether an export names this object.
pub(super) fn exports(target: &Target, namespace: &str, one: &SyncObject) -> bool {
    let object = one.object();
    let place = target.namespace.as_deref().unwrap_or(namespace);
    let group = target.api_version.as_deref().map(|text| text.split_once('/').map_or("", |(group, _)| group));
    object.gvk.kind == target.kind
        && object.name == target.name
        && group.is_none_or(|group| group == object.gvk.group)
        && object.namespace.as_deref().is_none_or(|namespace| namespace == place)
}
