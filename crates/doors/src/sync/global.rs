//! The rules that are imposed on a Sync from outside: each `GlobalDependency` that it is a subject of is one more gate.
//!
//! The rules are objects of ours and are read as the operator, so a tenant needs no right where the dependency lives.

use linchpin_api::{
    GlobalDependencySpec, Sync,
    global_dependency::{Contains, GlobalGate},
    sync::{NeededFor, Strength},
};
use linchpin_engine::{
    contract::{Projection, Question, ReadSet, Scope, Seen, Selector, StepId, Want},
    plan::{SpecError, Step, StepKind},
    readiness::Wanted,
};
use linchpin_words::{Gvk, ObjectRef, Reason, limits};
use serde_json::Value;

use super::{
    capability::ourselves,
    dependency::{GateSet, PATIENCE, gate_set},
    kind,
    object::SyncObject,
    outline::{DependencyOutline, Relation, What},
    pods,
};
use crate::{
    assemble::Frame,
    door::CompileInput,
    errors::{at, duration, not_yet},
    requirement::{RequirementDraft, RequirementSpec},
};

/// A rule that holds a Sync.
pub(super) struct ImposedRule {
    pub outline: DependencyOutline,
    pub gates: GateSet,
    pub step: Step,
}

/// The rules that are imposed on anybody: the first by name, since each is one more gate for all. None in a cluster that
/// does not know them.
fn all<'f>(frame: &'f Frame<'_>) -> Result<Option<Vec<&'f Projection>>, SpecError> {
    let want = Want::new(Question::Objects {
        via: ourselves(),
        kind: kind("GlobalDependency"),
        scope: Scope::Labels { namespace: None, selector: Selector::default() },
        reads: ReadSet::dotted(["spec"]),
    });
    match frame.kinds.ask(want) {
        None => Err(not_yet("spec")),
        Some(Seen::Unknown(why)) if why.is_passing() => Err(not_yet("spec")),
        Some(Seen::Objects(observed)) => {
            let mut rules: Vec<&Projection> = observed.items.iter().map(|item| &**item).collect();
            rules.sort_unstable_by(|one, other| one.name.cmp(&other.name));
            rules.truncate(limits::GLOBAL_RULES);
            Ok(Some(rules))
        }
        Some(_) => Ok(None),
    }
}

/// Why a rule is imposed on nobody: there are too many before it.
pub(crate) fn is_imposed(frame: &Frame<'_>, name: &str) -> Result<(), SpecError> {
    let rules = all(frame)?.unwrap_or_default();
    let last = rules.last().filter(|_| rules.len() == limits::GLOBAL_RULES);
    match last {
        Some(last) if last.name.as_str() < name => {
            let most = limits::GLOBAL_RULES;
            let problem = format!(
                "{most} global rules are imposed, the first by name: this one comes after them and holds nobody"
            );
            Err(at("metadata.name", problem).because(Reason::TooLarge))
        }
        _ => Ok(()),
    }
}

/// The rules that a Sync is a subject of.
pub(super) fn read(
    frame: &Frame<'_>,
    object: &Sync,
    objects: &[SyncObject],
    input: &CompileInput<'_>,
) -> Result<Vec<ImposedRule>, SpecError> {
    let Some(rules) = all(frame)? else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    for rule in rules {
        let spec = rule.content.get("spec").cloned().unwrap_or_default();
        let Ok(spec) = serde_json::from_value::<GlobalDependencySpec>(spec) else { continue };
        let left_alone = spec.suspend || input.exempt.contains(&rule.name);
        if left_alone || !is_subject(frame, object, objects, input.makers, &spec)? {
            continue;
        }
        found.push(imposed(frame, &rule.name, &spec)?);
    }
    Ok(found)
}

fn imposed(frame: &Frame<'_>, name: &str, spec: &GlobalDependencySpec) -> Result<ImposedRule, SpecError> {
    let gvk = kind("GlobalDependency");
    let id = StepId::new(format!("global:{name}"));
    let requirement = RequirementSpec {
        state: Some(Wanted::Ready),
        ..RequirementSpec::on_object(id.clone(), "spec", ourselves(), &gvk, None, name)
    };
    let mut step = RequirementDraft::new(frame, requirement)?.finish(Vec::new(), None);
    let strength = spec.strength.unwrap_or(Strength::Hard);
    if strength == Strength::Soft {
        step.patience = Some(duration(spec.patience.as_ref(), "spec.patience")?.unwrap_or(PATIENCE));
    }
    if let StepKind::Require(requirement) = &mut step.kind {
        // No right of the user's is needed for it.
        requirement.rights.clear();
    }
    let gates = spec.gates.as_deref().unwrap_or(&[GlobalGate::Create, GlobalGate::Update]);
    let gates = gate_set(gates.contains(&GlobalGate::Create), gates.contains(&GlobalGate::Update), false);
    let target = ObjectRef::cluster_scoped(gvk.group_kind(), name);
    let outline = DependencyOutline {
        name: format!("global:{name}"),
        step: id,
        depends_on: target.to_string(),
        relation: Relation { state: Wanted::Ready, needed_for: NeededFor::Defined },
        strength,
        what: What::Global,
        object: Some(target),
        latches: false,
        gates: true,
        cyclic: false,
        shown_state: None,
        observed_revision: None,
        observed_version: None,
    };
    Ok(ImposedRule { outline, gates, step })
}

/// Whether a rule is about this Sync: because of what it is, or because a Sync that it is about has made it.
fn is_subject(
    frame: &Frame<'_>,
    object: &Sync,
    objects: &[SyncObject],
    makers: &[ObjectRef],
    spec: &GlobalDependencySpec,
) -> Result<bool, SpecError> {
    let contains = spec.subjects.as_ref().and_then(|subjects| subjects.contains).unwrap_or_default();
    let has_pods = |one: &SyncObject| pods::template(&one.object().body).is_some();
    if contains == Contains::Pods && !objects.iter().any(has_pods) {
        return Ok(false);
    }
    let labels = object.metadata.labels.clone().unwrap_or_default();
    let own = |key: &str| labels.get(key).cloned();
    let owner = &frame.owner;
    if is_exempt(spec, &owner.namespace, &owner.name, &own) {
        return Ok(false);
    }
    if is_selected(frame, spec, &owner.namespace, &own)? {
        return Ok(true);
    }
    for maker in makers {
        let Some(namespace) = &maker.namespace else { continue };
        let labels = labels_of(frame, kind("Sync"), Some(namespace), &maker.name)?;
        let label = |key: &str| text_at(labels.as_ref(), key);
        if !is_exempt(spec, namespace, &maker.name, &label) && is_selected(frame, spec, namespace, &label)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether a rule says itself that it leaves a Sync alone.
fn is_exempt(
    spec: &GlobalDependencySpec,
    namespace: &str,
    name: &str,
    label: &dyn Fn(&str) -> Option<String>,
) -> bool {
    let exemptions = spec.exemptions.clone().unwrap_or_default();
    exemptions.syncs.iter().any(|sync| sync.namespace == namespace && sync.name == name)
        || exemptions.namespaces.iter().any(|one| one == namespace)
        || exemptions.selector.as_ref().is_some_and(|selector| selector.matches(label))
}

/// Whether a rule is about Syncs with these labels in this namespace.
fn is_selected(
    frame: &Frame<'_>,
    spec: &GlobalDependencySpec,
    namespace: &str,
    label: &dyn Fn(&str) -> Option<String>,
) -> Result<bool, SpecError> {
    let subjects = spec.subjects.clone().unwrap_or_default();
    if !subjects.selector.as_ref().is_none_or(|selector| selector.matches(label)) {
        return Ok(false);
    }
    let Some(selector) = &subjects.namespace_selector else { return Ok(true) };
    let labels = labels_of(frame, Gvk::new("", "v1", "Namespace"), None, namespace)?;
    Ok(selector.matches(&|key: &str| text_at(labels.as_ref(), key)))
}

/// The labels of an object, read as the operator.
fn labels_of(
    frame: &Frame<'_>,
    gvk: Gvk,
    namespace: Option<&str>,
    name: &str,
) -> Result<Option<Value>, SpecError> {
    let reads = ReadSet::dotted(["metadata.labels"]);
    let want = Want::object(ourselves(), gvk, namespace.map(str::to_owned), name, reads);
    match frame.kinds.ask(want) {
        None => Err(not_yet("spec")),
        Some(Seen::Unknown(why)) if why.is_passing() => Err(not_yet("spec")),
        Some(Seen::Objects(observed)) => {
            Ok(observed.items.first().and_then(|item| item.content.pointer("/metadata/labels").cloned()))
        }
        Some(_) => Ok(None),
    }
}

fn text_at(labels: Option<&Value>, key: &str) -> Option<String> {
    labels?.get(key).and_then(Value::as_str).map(str::to_owned)
}
