//! One dependency of a Sync: from the user's entry to a gate.
//!
//! State and readiness are judged by the engine, on the object itself. What lies between two Syncs, that is versions,
//! revisions of one source and exports, is looked at here, in the same world: it is an obstacle of the requirement, with
//! words of its own.

mod on_objects;
mod on_sync;
mod revision;
mod version;

use std::time::Duration;

use linchpin_api::{
    SyncDependency,
    common::Target,
    sync::{Gate, Latch, NeededFor, Strength, SyncSource, dependency::RequiredStatus},
};
use linchpin_engine::{
    contract::{StepId, Via},
    plan::{After, BoundExpression, BoundView, Gates, LatchScope, SpecError, Step, StepKind, definition},
    readiness::Wanted,
};
use linchpin_lang::cel::Expression;
use linchpin_words::{Gvk, ObjectRef};
use serde_json::{Value, json};

pub use self::on_objects::kind_that_is_defined;
pub(super) use self::{on_objects::shown, revision::short, version::version_obstacle};
use super::{
    capability,
    object::SyncObject,
    outline::{DependencyOutline, Relation, What},
    range::Range,
};
use crate::{
    assemble::Frame,
    errors::{at, duration, expression},
};

/// How long a soft dependency is waited for, where nothing is said.
pub(super) const PATIENCE: Duration = Duration::from_mins(5);

/// What a dependency is read with, beside the entry itself.
pub(super) struct DependencyContext<'a> {
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
pub(super) struct DraftedDependency {
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

/// Whether an entry holds the deletion of the Sync. What is soft never does.
pub(super) fn gates_deletion(entry: &SyncDependency) -> bool {
    let gates = entry.gates.as_deref().unwrap_or_default();
    gates.contains(&Gate::Delete) && strength(entry) == Strength::Hard
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
    around: &DependencyContext<'_>,
    entry: &SyncDependency,
    field: &str,
) -> Result<DraftedDependency, SpecError> {
    let given =
        [entry.sync.is_some(), entry.object.is_some(), entry.objects.is_some(), entry.capability.is_some()];
    if given.iter().filter(|given| **given).count() != 1 {
        return Err(at(field, "give exactly one of sync, object, objects and capability"));
    }
    let terms = Terms::read(entry, field)?;
    if entry.export.is_some() && entry.sync.as_ref().is_none_or(|sync| sync.export.is_some()) {
        return Err(at(format!("{field}.export"), "it goes with sync, and is named once"));
    }
    let found = if let Some(sync) = entry.on_sync() {
        on_sync::on_sync(around, entry, &terms, &sync, field)?
    } else if let Some(object) = &entry.object {
        on_objects::on_object(around, entry, &terms, object, field)?
    } else if let Some(capability) = &entry.capability {
        capability::read(around, entry, terms.range.as_ref(), capability, field)?
    } else {
        on_objects::on_objects(around, entry, &terms, field)?
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
        Some(Latch::Once) => LatchScope::ForGood,
        Some(Latch::PerRevision) => LatchScope::Edition,
        None if found.completed => LatchScope::ForGood,
        Some(Latch::None) | None => LatchScope::Never,
    };
    if let StepKind::Require(requirement) = &mut step.kind {
        requirement.lasts = lasts;
        // An object that is called by another version is another one: its failure is not that of what is waited for.
        requirement.fails_first = matches!(found.what, What::Sync | What::Export | What::Capability)
            || entry.version_path.is_some();
        requirement.label.clone_from(&found.depends_on);
        requirement.asked = Some(found.state.clone());
    }
    // What holds no transition is only looked at.
    step.optional = gate_set.admission.is_none() && found.own.is_none();
    let outline = DependencyOutline {
        name: entry.name.clone(),
        step: step.id.clone(),
        depends_on: found.depends_on,
        relation: Relation { state: found.state, needed_for },
        strength: terms.strength,
        what: found.what,
        object: found.object,
        latches: lasts.lasts(),
        gates: gate_set.admission.is_some() || gate_set.reapply,
        cyclic: found.cyclic,
        shown_state: found.shown_state,
        observed_revision: found.revision,
        observed_version: found.version,
    };
    Ok(DraftedDependency { outline, own: found.own, gates: gate_set, step })
}

impl DraftedDependency {
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
        entry.on_sync(),
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
pub(super) struct ResolvedEntry {
    pub step: Step,
    pub depends_on: String,
    /// The state that is relied on.
    pub state: Wanted,
    pub what: What,
    pub object: Option<ObjectRef>,
    pub own: Option<usize>,
    pub completed: bool,
    pub cyclic: bool,
    pub shown_state: Option<&'static str>,
    pub revision: Option<String>,
    pub version: Option<String>,
}

/// An expression over `dep` and `self`.
pub(super) fn bound(
    around: &DependencyContext<'_>,
    entry: &SyncDependency,
    view: BoundView,
    field: &str,
) -> Result<Option<BoundExpression>, SpecError> {
    let Some(source) = &entry.ready_expr else { return Ok(None) };
    let compiled = Expression::compile(&format!("{field}.readyExpr"), source, &["self", "dep"]);
    let compiled = compiled.map_err(|error| expression(&error))?;
    Ok(Some(BoundExpression::new(compiled, around.myself.clone(), view)))
}

/// Whether an export names this object.
pub(super) fn exports(target: &Target, namespace: &str, one: &SyncObject) -> bool {
    let object = one.object();
    let place = target.namespace.as_deref().unwrap_or(namespace);
    let group = target.api_version.as_deref().map(Gvk::group_of);
    object.gvk.kind == target.kind
        && object.name == target.name
        && group.is_none_or(|group| group == object.gvk.group)
        && object.namespace.as_deref().is_none_or(|namespace| namespace == place)
}
