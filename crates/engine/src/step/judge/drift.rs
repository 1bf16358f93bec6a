//! Judging what was written: is it still there, and does our field manager still hold what it wrote?
//!
//! The server takes a field away from its manager when somebody else changes or removes it, so a difference in what our
//! manager holds is drift on a field that we declared, and nothing else is. Who took it, and whether it is to be taken
//! back, is decided when the object is applied again: the server names the holder of each field that is in conflict.

use linchpin_words::Shared;

use super::{action::ActionContext, fresh_world::FreshWorld};
use crate::{
    contract::{Question, Scope, Seen, Want, kept_fingerprint},
    journal::{StepRecord, WrittenObject},
    plan::Drift,
};

/// Whether an object that a finished action wrote is no longer as it was written, as far as that can be seen.
pub(super) fn has_drifted(
    place: &ActionContext<'_>,
    drift: &Drift,
    records: &[Option<&Shared<StepRecord>>],
    fresh_world: &FreshWorld<'_>,
) -> bool {
    let Some(record) = place.record else {
        return false;
    };
    // What runs once and was seen to have come to its end may go.
    let is_over = |wrote: &WrittenObject| {
        let mut witnesses =
            place.plan.witnesses(place.position).iter().filter_map(|position| records[*position]);
        drift.run_once && witnesses.any(|witness| witness.latch.as_deref() == Some(&wrote.stamp.uid))
    };
    drift.objects.iter().any(|want| {
        let wrote = record.wrote.iter().find(|wrote| is_of(wrote, want));
        differs(want, wrote, &place.action.manager, fresh_world) && !wrote.is_some_and(is_over)
    })
}

/// Whether our manager holds anything of the objects of an action; none where one of them cannot be seen.
pub(super) fn is_written(
    place: &ActionContext<'_>,
    drift: &Drift,
    fresh_world: &FreshWorld<'_>,
) -> Option<bool> {
    let manager = &place.action.manager;
    let mut all_seen = drift.objects.len() == place.plan.outline(place.position).makes.len();
    for want in &drift.objects {
        match fresh_world.look(want) {
            Some(Seen::Objects(observed)) => {
                if observed.items.iter().any(|item| kept_fingerprint(&item.content, manager).is_some()) {
                    return Some(true);
                }
            }
            _ => all_seen = false,
        }
    }
    all_seen.then_some(false)
}

fn is_of(wrote: &WrittenObject, want: &Want) -> bool {
    let Question::Objects { kind, scope: Scope::Name { namespace, name }, .. } = want.question() else {
        return false;
    };
    let target = &wrote.target;
    target.name == *name
        && target.namespace == *namespace
        && target.kind.word.eq_ignore_ascii_case(&kind.kind)
        && target.kind.group.as_deref().unwrap_or_default() == kind.group
}

fn differs(want: &Want, wrote: Option<&WrittenObject>, manager: &str, fresh_world: &FreshWorld<'_>) -> bool {
    let Some(Seen::Objects(observed)) = fresh_world.look(want) else {
        return false;
    };
    if !fresh_world.shows_our_writes(want, observed) {
        return false;
    }
    match (observed.items.first(), wrote) {
        (None, _) => true,
        // What is going is waited for; its successor is made when it is gone.
        (Some(item), _) if item.deleting => false,
        (Some(_), None) => false,
        (Some(item), Some(wrote)) => {
            item.uid != wrote.stamp.uid
                || !wrote.stamp.fingerprint.is_empty()
                    && kept_fingerprint(&item.content, manager) != Some(&wrote.stamp.fingerprint)
        }
    }
}
