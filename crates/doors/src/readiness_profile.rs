//! `ReadinessProfile`: what the cluster's administrators teach us about foreign kinds.
//!
//! A profile has nothing to do. Doors look here for the profile of a kind they wait for; its own door reports the
//! profile's author whether it is understood. Profiles never change what Kubernetes' own kinds and ours mean. Of two
//! profiles for one kind, the one whose name comes first counts.

mod door;

use std::sync::Arc;

use linchpin_api::{ReadinessProfileSpec, dependency::Comparison, readiness_profile::ObjectTest};
use linchpin_engine::{
    contract::{Actor, ClusterRef, Question, ReadSet, Scope, Seen, Selector, Via, Want},
    plan::{Clauses, Profile, SpecError},
};
use linchpin_lang::{cel::Expression, compare::FieldCondition};
use linchpin_words::{CompareOperator, GroupKind, Gvk, limits, reference::built_in_kind};

pub use door::ReadinessProfileDoor;

use crate::{
    errors::{bounded, comparison, expression},
    kinds::KindLookup,
};

/// The groups whose kinds are ours.
const OURS: [&str; 4] =
    ["tools.kubestellar.io", "linchpin.dev", "app.example.com", "core.bootchain-operator.ruicoelho.dev"];

/// The question for all profiles of the cluster. They are our own kind, so the operator itself reads them.
pub fn want() -> Want {
    Want::new(Question::Objects {
        via: Via { cluster: ClusterRef::Here, actor: Actor::Operator },
        kind: kind(),
        scope: Scope::Labels { namespace: None, selector: Selector::default() },
        reads: ReadSet::dotted(["spec"]),
    })
}

/// The kind of profiles.
pub(crate) fn kind() -> Gvk {
    Gvk::new("linchpin.dev", "v1alpha1", "ReadinessProfile")
}

/// A profile as the engine asks it, or which field is wrong.
pub fn compile(spec: &ReadinessProfileSpec) -> Result<Profile, SpecError> {
    let test = |test: Option<&ObjectTest>, field: &str| {
        test.map(|test| clauses(test.cel.as_deref(), &test.conditions, field)).transpose()
    };
    Ok(Profile {
        ready_when: test(spec.ready_when.as_ref(), "spec.readyWhen")?.unwrap_or_default(),
        failed_when: test(spec.failed_when.as_ref(), "spec.failedWhen")?,
        ..Profile::default()
    })
}

/// What is known about the profile of a kind.
pub(crate) enum ProfileLookup {
    /// The profiles have not been looked at yet: this is the question.
    NotYet(Want),
    /// This one, or none.
    Known(Option<Arc<Profile>>),
}

/// The profile of a kind.
pub(crate) fn find(kinds: &KindLookup<'_>, kind: &GroupKind) -> ProfileLookup {
    if built_in_kind(&kind.group, &kind.kind).is_some() || OURS.contains(&kind.group.as_str()) {
        return ProfileLookup::Known(None);
    }
    let want = want();
    match kinds.ask(want.clone()) {
        // Many dependencies are of few kinds, and there may be many profiles: each kind is looked up once.
        Some(Seen::Objects(observed)) => ProfileLookup::Known(kinds.taught(kind, || {
            let mut matching = observed.items.iter().filter_map(|item| {
                let spec = item.content.get("spec").filter(|spec| spec["kind"] == kind.kind.as_str())?;
                let spec: ReadinessProfileSpec = serde_json::from_value(spec.clone()).ok()?;
                (spec.api_group() == kind.group).then_some(spec)
            });
            // A profile with a mistake teaches nothing; its own status says what is wrong.
            matching.find_map(|spec| compile(&spec).ok()).map(Arc::new)
        })),
        Some(Seen::Unknown(why)) if !why.is_passing() => ProfileLookup::Known(None),
        _ => ProfileLookup::NotYet(want),
    }
}

/// Expressions and comparisons on an object, checked.
pub(crate) fn clauses(
    cel: Option<&str>,
    conditions: &[Comparison],
    field: &str,
) -> Result<Clauses, SpecError> {
    let list = format!("{field}.conditions");
    bounded(conditions.len(), limits::CONDITIONS, &list, "conditions")?;
    let conditions: Result<Vec<Arc<FieldCondition>>, SpecError> = conditions
        .iter()
        .enumerate()
        .map(|(index, one)| {
            let place = format!("{list}[{index}]");
            let operator = one.operator.map(CompareOperator::as_str);
            FieldCondition::compile(&place, &one.json_path, operator, one.value.as_ref())
                .map(Arc::new)
                .map_err(|error| comparison(&error))
        })
        .collect();
    let cel = cel
        .map(|source| Expression::compile(&format!("{field}.cel"), source, &["self"]).map(Arc::new))
        .transpose()
        .map_err(|error| expression(&error))?;
    Ok(Clauses { cel, conditions: conditions? })
}

/// Takes what compiling clauses took.
pub(crate) fn pay(kinds: &KindLookup<'_>, clauses: &Clauses, field: &str) -> Result<(), SpecError> {
    let conditions = clauses.conditions.iter().map(|condition| condition.patterns());
    let size: usize = conditions.chain(clauses.cel.as_ref().map(|cel| cel.patterns())).sum();
    pay_for(kinds, size, field)
}

/// Takes what compiling patterns of so many KiB took.
pub(crate) fn pay_for(kinds: &KindLookup<'_>, size: usize, field: &str) -> Result<(), SpecError> {
    kinds.pay(size as u64 * PATTERN_PRICE, field, "there are patterns to compile")
}

/// What compiling a KiB of a pattern takes.
const PATTERN_PRICE: u64 = 100;

/// What clauses look at.
pub(crate) fn reads(clauses: &Clauses) -> ReadSet {
    let mut reads = ReadSet::nothing();
    for condition in &clauses.conditions {
        reads.merge(&ReadSet::from(&condition.reads()));
    }
    if let Some(read) = clauses.cel.as_ref().and_then(|cel| cel.reads().get("self")) {
        reads.merge(&ReadSet::from(read));
    }
    reads
}
