//! How much a Sync would write about itself: journal and status have to fit into one object of the store, also when the
//! last of a thousand objects is done. What would not fit is refused before anything of it is applied.
//!
//! The journal is made as it will be at the end, with random-looking marks where the API server would give some, and written
//! as it would be written. That takes milliseconds, so it is done only where it may come to a lot.

use linchpin_engine::{
    contract::{EffectTarget, Stamp, StepId},
    journal::{InventoryItem, Journal, StepRecord, StepState, WrittenObject},
    plan::{Plan, SpecError},
};
use linchpin_words::{KindWord, ObjectRef, Reason, Shared, Timestamp, hash::sha256_hex, limits};
use serde_json::json;

use super::{object::SyncObject, source::refused};
use crate::journal;

/// What a step, a name in an order and a row of the status take at most, roughly, before anything is packed.
const STEP: usize = 400;
/// A row of the status, beside the names in it: its words, and why it is as it is.
const ROW: usize = 400;
/// What is not looked at more closely: as long as this a journal is not even packed.
const LIGHT: usize = 64 << 10;

/// Refuses a plan whose journal and status would not fit.
pub(super) fn check(plan: &Plan, objects: &[SyncObject]) -> Result<(), SpecError> {
    let orders: Vec<Vec<StepId>> = (0..plan.steps().len())
        .map(|position| match plan.steps()[position].action() {
            Some(action) if action.tracked => plan.earlier_tracked(position),
            _ => Vec::new(),
        })
        .collect();
    let named = |all: &[StepId]| all.iter().map(|id| id.as_str().len() + 3).sum::<usize>();
    let rough: usize = plan.steps().iter().map(|step| STEP + 3 * step.id.as_str().len()).sum::<usize>()
        + orders.iter().map(|order| named(order)).sum::<usize>();
    if rough < LIGHT {
        return Ok(());
    }
    let edges: usize = orders.iter().map(Vec::len).sum();
    // Every step has a record; one whose object is tracked also what it wrote and a row.
    let tracked =
        plan.steps().iter().filter(|step| step.action().is_some_and(|action| action.tracked)).count();
    let room = limits::JOURNAL_ENTRIES.saturating_sub(plan.steps().len() + 2 * tracked);
    if edges > room {
        let problem = format!(
            "its order has {edges} edges; {room} can be remembered: split it into several Syncs, or make its waves smaller"
        );
        return Err(refused(Reason::TooLarge, "spec.source", problem));
    }
    let status = rows(plan, objects);
    let journal = finished(plan, orders);
    let uid = journal.uid.clone();
    let written = journal::write(&journal);
    let size = written.as_ref().map_or(usize::MAX, |written| written.to_string().len());
    let size = size.saturating_add(status);
    if size > limits::SYNC_STATUS || journal::read(written.as_ref(), &uid).is_err() {
        let (count, size, most) = (objects.len(), size >> 10, limits::SYNC_STATUS >> 10);
        let problem = format!(
            "what has to be remembered of its {count} objects and the {edges} edges of their order would take {size} KiB; \
             {most} KiB are allowed: split it into several Syncs"
        );
        return Err(refused(Reason::TooLarge, "spec.source", problem));
    }
    Ok(())
}

/// The part of a status that grows with what it is about.
fn rows(plan: &Plan, objects: &[SyncObject]) -> usize {
    let mut sizes: Vec<usize> = objects
        .iter()
        .map(|one| {
            let object = one.object();
            let place = object.namespace.as_deref().unwrap_or_default();
            ROW + object.gvk.api_version().len() + object.gvk.kind.len() + place.len() + object.name.len()
        })
        .collect();
    sizes.sort_unstable_by(|one, other| other.cmp(one));
    let listed: usize = sizes.iter().take(limits::SYNC_RESOURCES).sum();
    let edges: usize = plan.steps().iter().map(|step| STEP + step.id.as_str().len()).sum();
    listed + edges.min(limits::EDGE_BYTES)
}

/// The journal of a plan that has come to its end.
fn finished(plan: &Plan, orders: Vec<Vec<StepId>>) -> Journal {
    let now = Timestamp::from_second(2_000_000_000);
    let mut journal = Journal::new(sha256_hex(b"uid").split_at(36).0, 1, now);
    for (step, after) in plan.steps().iter().zip(orders) {
        let mut record = StepRecord::new(step.definition.clone(), now);
        record.clock = Some(now);
        let mark = sha256_hex(step.id.as_str().as_bytes());
        let made = step.action().filter(|action| action.tracked).and_then(|action| action.makes().pop());
        if let Some(target) = made.map(target) {
            let uid = mark.split_at(36).0.to_owned();
            record.state = StepState::Done;
            let stamp = Stamp { uid: uid.clone(), generation: 1, version: 1_000_000, fingerprint: mark };
            record.wrote.push(WrittenObject { target: target.clone(), stamp });
            // What a row holds besides is as good as always the same.
            let row =
                json!({"step": step.id, "target": target, "uid": uid, "state": "Created", "prune": true});
            if let Ok(item) = serde_json::from_value::<InventoryItem>(row) {
                journal.inventory.push(InventoryItem { after, ..item });
            }
        }
        journal.steps.insert(step.id.clone(), Shared::new(record));
    }
    journal
}

/// An object as the journal names it, in the version that most have.
fn target(ObjectRef { kind, namespace, name }: ObjectRef) -> EffectTarget {
    let word =
        KindWord { group: Some(kind.group), version: Some("v1".to_owned()), ..KindWord::new(&kind.kind) };
    EffectTarget { kind: word, namespace, name }
}
