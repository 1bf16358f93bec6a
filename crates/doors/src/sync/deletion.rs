//! Who outlives whom: a Sync that is deleted lets those that rely on it go first, and looks whether what has to be there
//! while it goes is there.
//!
//! It waits for dependents that are being deleted too, so that both orders of two deletions take the dependent away first,
//! and for dependencies that gate its deletion; never for longer than five minutes, because deletion does not hang on what
//! others control. Only if it says so itself (`dependents.protect`) it stays as long as dependents are applied at all.

use std::{collections::BTreeSet, time::Duration};

use linchpin_api::{Ours as _, Sync, SyncDependency, common::DeletionPolicy, sync::Strength};
use linchpin_engine::{
    contract::{Question, Right, Seen, StepId, Via, Want, World},
    journal::{Memory, StepState},
    plan::Removal,
    step::{Goal, step},
};
use linchpin_words::{ObjectRef, Reason, Timestamp, keys, limits};

use super::{
    compile::myself,
    dependency::{self, DependencyContext, gates_deletion, strength},
    kind,
    outline::DependencyOutline,
    words,
};
use crate::{
    assemble::Frame,
    cluster,
    door::{self, Claim, Hold, HoldInput},
    entries::{find, is_unseen},
    names::NamedStep,
    shown::ShownObject,
};

/// How long dependents that are being deleted, and dependencies that gate a deletion, are waited for.
const LONGEST: Duration = Duration::from_mins(5);
/// How long it is looked whether dependents are being deleted too: two requests never come at once.
const GRACE: Duration = Duration::from_secs(2);
/// What the gate of those that use a Sync is called in orders.
const IN_USE: &str = "in-use";
/// As URLs name the kind of those that rely on a Sync.
const PLURAL: &str = "syncs";
/// Why something that is being deleted is not ready.
const TERMINATING: &str = "Terminating";

/// The Syncs that one relies on once it has applied something.
pub(super) fn claims(object: &Sync) -> Vec<ObjectRef> {
    let applied = object.status.as_ref().is_some_and(|status| {
        let some = status.progress.as_ref().is_some_and(|progress| progress.applied > 0);
        some || status.last_applied_revision.is_some()
    });
    if !applied {
        return Vec::new();
    }
    let own = object.metadata.namespace.as_deref().unwrap_or_default();
    let hard = object.spec.dependencies.iter().filter(|entry| strength(entry) == Strength::Hard);
    hard.filter_map(|entry| {
        let sync = entry.sync.as_ref()?;
        let namespace = sync.namespace.as_deref().unwrap_or(own);
        Some(ObjectRef::namespaced(kind("Sync").group_kind(), namespace, &sync.name))
    })
    .collect()
}

/// Why a Sync that is being deleted stays for now.
pub(super) fn hold(object: &Sync, input: &HoldInput<'_>) -> Option<Hold> {
    if object.deletion_policy() != DeletionPolicy::Delete {
        return None;
    }
    let deleted =
        object.metadata.deletion_timestamp.as_ref().map(|time| Timestamp::from_second(time.0.as_second()))?;
    let used = if is_passed(object) { None } else { in_use(object, input, deleted) };
    used.or_else(|| gated(object, input, deleted.plus_duration(LONGEST)))
}

/// Those that rely on it.
fn in_use(object: &Sync, input: &HoldInput<'_>, deleted: Timestamp) -> Option<Hold> {
    let now = input.now;
    let own = object.metadata.namespace.as_deref().unwrap_or_default();
    // Those that this one relies on in turn are in a circle with it, and hold nothing.
    let counts = |claim: &&Claim| claim.object.namespace.as_deref() == Some(own) && !claim.circular;
    let counting: Vec<&Claim> = input.claims.iter().filter(counts).take(limits::CLAIMS).collect();
    let going: Vec<&Claim> = counting.iter().copied().filter(|claim| claim.deleting).collect();
    let protect = object.spec.dependents.as_ref().is_some_and(|dependents| dependents.protect);
    let (longest, grace) = (deleted.plus_duration(LONGEST), deleted.plus_duration(GRACE));
    let (by, why, until) = if protect && !counting.is_empty() {
        (counting, "is in use by", None)
    } else if !going.is_empty() && now < longest {
        (going, "waits until those are gone that are deleted too:", Some(longest))
    } else if !counting.is_empty() && now < grace {
        (counting, "is in use by", Some(grace))
    } else {
        return None;
    };
    let mut sight = ClaimantSight::of(object, input);
    let mut shown: Vec<ShownObject> = by
        .iter()
        .take(limits::HELD_BY)
        .map(|claim| ShownObject::new(&claim.object, &claim.object, sight.may_get(&claim.object)))
        .collect();
    shown.sort_by_key(ShownObject::is_hidden);
    let more = if by.len() > 1 { format!(" (and {} more)", by.len() - 1) } else { String::new() };
    let message = format!("{why} {}{more}", shown[0]);
    let unready = sight.unready && now < grace;
    let until = if unready { Some(grace) } else { until };
    let by = shown.iter().map(ToString::to_string).collect();
    Some(Hold { reason: Reason::InUse, message, by, until, wants: sight.wants, unready })
}

/// Which of those that rely on a Sync its own identity may get: one question for all, and one for each where that is denied.
struct ClaimantSight<'a> {
    via: Via,
    facts: &'a World,
    wants: BTreeSet<Want>,
    /// Whether something has not been answered yet.
    unready: bool,
}

impl<'a> ClaimantSight<'a> {
    fn of(object: &Sync, input: &HoldInput<'a>) -> Self {
        let via = door::via(object, input.compile.default_service_account);
        Self { via, facts: input.compile.facts, wants: BTreeSet::new(), unready: false }
    }

    fn may_get(&mut self, claimant: &ObjectRef) -> bool {
        let all = self.answer(claimant, None);
        all.is_some_and(|all| all || self.answer(claimant, Some(&claimant.name)) == Some(true))
    }

    fn answer(&mut self, claimant: &ObjectRef, name: Option<&String>) -> Option<bool> {
        let right = Right {
            verb: "get".to_owned(),
            group: claimant.kind.group.clone(),
            resource: PLURAL.to_owned(),
            subresource: None,
            namespace: claimant.namespace.clone(),
            name: name.cloned(),
        };
        let want = Want::new(Question::Right { via: self.via.clone(), right });
        let answer = match self.facts.get(&want) {
            Some(Seen::Right(allowed)) => Some(*allowed),
            Some(Seen::Unknown(why)) if !why.is_passing() => Some(false),
            _ => None,
        };
        self.unready |= answer.is_none();
        self.wants.insert(want);
        answer
    }
}

/// Whether somebody lets it go although it is in use.
fn is_passed(object: &Sync) -> bool {
    let order = object.metadata.annotations.as_ref().and_then(|all| all.get(keys::PROCEED));
    let generation = object.metadata.generation.unwrap_or_default();
    order.is_some_and(|text| text.split(',').any(|one| one.trim() == format!("{IN_USE}@{generation}")))
}

/// A dependency that has to be in its state before anything is deleted, and is not.
fn gated(object: &Sync, input: &HoldInput<'_>, longest: Timestamp) -> Option<Hold> {
    let gates: Vec<(usize, &SyncDependency)> =
        object.spec.dependencies.iter().enumerate().filter(|(_, entry)| gates_deletion(entry)).collect();
    if gates.is_empty() || input.now >= longest {
        return None;
    }
    let common = &object.spec.common;
    let frame = Frame::new(object, common, &input.compile, Removal::Retain).ok()?;
    let via = cluster::via(&frame.via, &frame.owner.namespace, None, common.cluster.as_ref(), "spec").ok()?;
    let applied = object.status.as_ref().and_then(|status| status.last_applied_revision.as_deref());
    let around = DependencyContext {
        frame: &frame,
        via: &via,
        revision: None,
        source: None,
        objects: &[],
        myself: myself(object, applied.unwrap_or_default()),
        explicit: false,
    };
    let (mut steps, mut named) = (Vec::new(), Vec::new());
    let mut outlines: Vec<DependencyOutline> = Vec::new();
    for (index, entry) in gates {
        // What cannot be read holds nothing: a deletion does not hang on a spec that is wrong.
        let Ok(read) = dependency::read(&around, entry, &format!("spec.dependencies[{index}]")) else {
            continue;
        };
        if read.outline.latches && is_latched(input, &read.outline.step) {
            continue;
        }
        let mut step = read.steps().swap_remove(0);
        (step.timeout, step.optional) = (None, false);
        named.push(NamedStep { id: step.id.clone(), words: vec![read.outline.name.clone()] });
        steps.push(step);
        outlines.push(read.outline);
    }
    let mut compiled = frame.plan(steps, &named, &[], true).ok()?;
    compiled.plan.terms.suspended = false;
    let fresh = Memory::fresh(&input.journal.uid, object.metadata.generation.unwrap_or_default(), input.now);
    let goal = Goal::Converge(&compiled.plan);
    let judged = step(fresh, goal, input.compile.facts, &[], None, input.now);
    let mut unmet = outlines.iter().filter_map(|outline| {
        let found = find(&judged.report, &outline.step)?;
        let open = is_unseen(&found.reason);
        // What is absent, not served, not visible or going itself is not waited for.
        let there = found.word == "NotReady" || found.word == "Failed";
        let waits = open || there && found.reason != TERMINATING;
        (found.state != StepState::Met && waits).then(|| (outline, words::sentence(outline, found, None)))
    });
    let (first, message) = unmet.next()?;
    let by = std::iter::once(first).chain(unmet.map(|(outline, _)| outline));
    let by: Vec<String> = by.map(|outline| outline.depends_on.clone()).collect();
    let mut wants = compiled.wants;
    wants.extend(judged.wants.iter().cloned());
    Some(Hold {
        reason: Reason::DependencyNotReady,
        message,
        by,
        until: Some(longest),
        wants,
        unready: false,
    })
}

/// Whether a dependency was met once and for all.
fn is_latched(input: &HoldInput<'_>, step: &StepId) -> bool {
    input.journal.steps.get(step).is_some_and(|record| record.latch.is_some())
}
