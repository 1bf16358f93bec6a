//! Who outlives whom: a Sync that is deleted lets those that rely on it go first.
//!
//! It waits for dependents that are being deleted too, so that both orders of two deletions take the dependent away first;
//! never for longer than five minutes, because deletion does not hang on what others control. Only if it says so itself
//! (`dependents.protect`) it stays as long as dependents are applied at all.

use std::time::Duration;

use linchpin_api::{Ours as _, Sync, common::DeletionPolicy, sync::Strength};
use linchpin_words::{ObjectRef, Timestamp, keys};

use super::{dependency::strength, kind};
use crate::door::{Claim, Hold};

/// How long dependents that are being deleted are waited for.
const LONGEST: Duration = Duration::from_mins(5);
/// How long it is looked whether dependents are being deleted too: two requests never come at once.
const GRACE: Duration = Duration::from_secs(2);
/// What the gate of those that use a Sync is called in orders.
const IN_USE: &str = "in-use";

/// The Syncs that one relies on once it has applied something.
pub(super) fn claims(object: &Sync) -> Vec<ObjectRef> {
    let applied = object.status.as_ref().is_some_and(|status| status.last_applied_revision.is_some());
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
pub(super) fn hold(object: &Sync, claims: &[Claim], now: Timestamp) -> Option<Hold> {
    if object.deletion_policy() != DeletionPolicy::Delete || is_passed(object) {
        return None;
    }
    let deleted =
        object.metadata.deletion_timestamp.as_ref().map(|time| Timestamp::from_second(time.0.as_second()))?;
    let own = object.metadata.namespace.as_deref().unwrap_or_default();
    // Those that this one relies on in turn are in a circle with it, and hold nothing.
    let needed = self::claims(object);
    let counting: Vec<&Claim> = claims
        .iter()
        .filter(|claim| claim.object.namespace.as_deref() == Some(own) && !needed.contains(&claim.object))
        .collect();
    let going: Vec<&Claim> = counting.iter().copied().filter(|claim| claim.deleting).collect();
    let protect = object.spec.dependents.as_ref().is_some_and(|dependents| dependents.protect);
    if protect && !counting.is_empty() {
        return Some(held(&counting, "is in use by", None));
    }
    let (longest, grace) = (deleted.plus_duration(LONGEST), deleted.plus_duration(GRACE));
    if !going.is_empty() && now < longest {
        return Some(held(&going, "waits until those are gone that are deleted too:", Some(longest)));
    }
    (!counting.is_empty() && now < grace).then(|| held(&counting, "is in use by", Some(grace)))
}

/// Whether somebody lets it go although it is in use.
fn is_passed(object: &Sync) -> bool {
    let order = object.metadata.annotations.as_ref().and_then(|all| all.get(keys::PROCEED));
    let generation = object.metadata.generation.unwrap_or_default();
    order.is_some_and(|text| text.split(',').any(|one| one.trim() == format!("{IN_USE}@{generation}")))
}

fn held(by: &[&Claim], why: &str, until: Option<Timestamp>) -> Hold {
    let by: Vec<String> = by.iter().map(|claim| claim.object.to_string()).collect();
    let more = if by.len() > 1 { format!(" (and {} more)", by.len() - 1) } else { String::new() };
    Hold { message: format!("{why} {}{more}", by[0]), by, until }
}
