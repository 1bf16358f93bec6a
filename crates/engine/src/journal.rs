//! What has been done: the durable memory of one object, kept in its status.
//!
//! The journal holds reason codes, times, uids and fingerprints; no texts and no values, so no secret can leak
//! through it. Every kind of ours has the same journal; the document's own status entries are views of it. While we
//! lead, the copy in memory is the authority; after a crash, the one in status is.
//!
//! A journal is compared and passed on with every look at an object, and seldom changed: its parts are [`Shared`].

mod memory;

use std::collections::{BTreeMap, BTreeSet};

use linchpin_words::{Gvk, Reason, Shared, Timestamp, reference::KindWord};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::json;

pub use memory::{Attempt, Memory};

use crate::{
    contract::{ClusterRef, EffectTarget, Stamp, StepId},
    plan::{Editions, Plan, Removal},
};

/// The durable memory of one object.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Journal {
    /// The object this is the journal of: a copied status is not believed.
    pub uid: String,
    /// The generation that the plan was made from.
    pub generation: i64,
    /// The current run.
    pub run: Run,
    /// When everything was done, in this generation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed: Option<Timestamp>,
    /// Set while nothing may start, because a requirement failed or time ran out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub halt: Option<Halt>,
    /// Set while the object is suspended: clocks are stopped from here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspended: Option<Timestamp>,
    /// The last orders given by annotation that have been carried out.
    #[serde(default, skip_serializing_if = "AppliedOverrides::is_empty")]
    pub orders: AppliedOverrides,
    /// What became of the editions of an object that is applied as one transition.
    #[serde(default, skip_serializing_if = "Editions::is_empty")]
    pub editions: Editions,
    /// What bare kind words were resolved to; a later CRD of the same name does not change it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub kinds: Shared<BTreeMap<String, Gvk>>,
    /// What is known of each step.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub steps: Shared<BTreeMap<StepId, Shared<StepRecord>>>,
    /// The objects we made or mean to make, in case we must take them away again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inventory: Shared<Vec<InventoryItem>>,
}

impl Journal {
    /// The journal of an object that nothing is known of.
    pub fn new(uid: impl Into<String>, generation: i64, now: Timestamp) -> Self {
        Self {
            uid: uid.into(),
            generation,
            run: Run { id: 1, now, clock: now },
            completed: None,
            halt: None,
            suspended: None,
            orders: AppliedOverrides::default(),
            editions: Editions::default(),
            kinds: Shared::default(),
            steps: Shared::default(),
            inventory: Shared::default(),
        }
    }
}

impl Journal {
    /// The objects that a step made or means to make.
    pub fn made_by<'a>(&'a self, step: &'a StepId) -> impl Iterator<Item = &'a InventoryItem> {
        self.inventory.iter().filter(move |item| item.step == *step && !item.stale)
    }

    /// Whether anything must be taken away, or let go of, before the object may go.
    pub fn has_belongings(&self, removal: Removal) -> bool {
        use ItemState::{Created, Deleting, Intended};
        let there = |item: &&InventoryItem| matches!(item.state, Intended | Created | Deleting);
        self.inventory.iter().filter(there).any(|item| removal == Removal::Delete || item.owned)
    }

    /// The records in the order of a plan's steps. Both are sorted by name, so it is one walk along them.
    pub(crate) fn in_order_of(&self, plan: &Plan) -> Vec<Option<&Shared<StepRecord>>> {
        let mut ordered = vec![None; plan.steps().len()];
        let mut records = self.steps.iter().peekable();
        for position in plan.by_name() {
            let id = &plan.steps()[*position].id;
            // Mostly the very same name comes next, which is seen at once.
            ordered[*position] = loop {
                match records.peek() {
                    Some((known, _)) if *known == id => break records.next().map(|(_, record)| record),
                    Some((known, _)) if *known < id => records.next(),
                    _ => break None,
                };
            };
        }
        ordered
    }
}

/// One pass through the plan. A new generation, a recovery, or a rerun begins a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Run {
    /// Counts up, never down.
    pub id: u64,
    /// When it began: what templates see as `.Now`.
    pub now: Timestamp,
    /// Where the global timeout counts from: the beginning, moved on by the time spent suspended.
    pub clock: Timestamp,
}

/// Why nothing may start.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Halt {
    /// What happened.
    pub reason: Reason,
    /// The step it happened to; none for the global timeout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<StepId>,
    /// When.
    pub since: Timestamp,
    /// Not before this, even if all requirements hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

/// Orders given by annotation, as last carried out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AppliedOverrides {
    /// `linchpin.dev/requested-at`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested_at: Option<String>,
    /// `linchpin.dev/rerun`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rerun: Option<String>,
    /// Gates that `linchpin.dev/proceed` has helped through, in this generation.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub used: BTreeSet<StepId>,
}

impl AppliedOverrides {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Where a step is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum StepState {
    /// Not met, or not started.
    #[default]
    Waiting,
    /// A requirement that holds.
    Met,
    /// An action that is under way.
    Running,
    /// An action that took place.
    Done,
    /// An action whose guard said no, or whose object was there already.
    Skipped,
    /// A requirement or action that failed.
    Failed,
    /// An action of which it cannot be known whether it took place.
    Unknown,
}

/// What is known of one step. Most plans have many steps that little has happened to: what is rare is kept apart.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StepRecord {
    /// Hash of the user's text for this step: a new generation keeps the record of an unchanged step.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub definition: String,
    /// Where it is.
    pub state: StepState,
    /// Why, where that is not plain from the state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// Since when it has this state.
    pub since: Timestamp,
    /// When its timeout began to count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<Timestamp>,
    /// The last progress marker and when it moved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
    /// The run of its last attempt.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub run: u64,
    /// Attempts in that run.
    #[serde(default, skip_serializing_if = "is_zero_attempt")]
    pub attempt: u32,
    /// Not tried again before this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<Timestamp>,
    /// What must be seen before it goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub awaits: Option<Box<Awaits>>,
    /// The token of an effect that must not happen twice: written before the effect is ordered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// How such an effect ended, where that came back while there was no plan to judge it by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<EffectEnd>,
    /// Of a deletion, the incarnation that was there when it was ordered; empty where nothing was. It is written before
    /// the deletion is ordered, and no other incarnation is ever deleted for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletes: Option<String>,
    /// What the effects of the last attempt left behind: the floor under later observations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wrote: Vec<WrittenObject>,
    /// The incarnation whose completion was seen: it counts even after the object is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latch: Option<String>,
    /// What the action read when it last ran, by dependency.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub triggers: BTreeMap<StepId, Trigger>,
    /// Whether a change that asks for another run was seen.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rerun_pending: bool,
    /// Whether a person let this gate pass by hand, in this generation.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub proceeded: bool,
    /// Whether this requirement was met before and is not now: what it admitted stays admitted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lost: bool,
    /// How often in a row what it wrote had to be put right again.
    #[serde(default, skip_serializing_if = "is_zero_attempt")]
    pub repairs: u32,
    /// Whether it is being put right: it was done before, and counts as done for what is complete.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub repairing: bool,
    /// The incarnation that is deleted first, so that it can be made anew with what cannot be changed in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recreate: Option<Box<Recreate>>,
}

impl StepRecord {
    /// The record of a step that nothing has happened to.
    pub fn new(definition: impl Into<String>, now: Timestamp) -> Self {
        Self {
            definition: definition.into(),
            state: StepState::Waiting,
            reason: None,
            since: now,
            clock: None,
            progress: None,
            run: 0,
            attempt: 0,
            retry_at: None,
            awaits: None,
            token: None,
            ended: None,
            deletes: None,
            wrote: Vec::new(),
            latch: None,
            triggers: BTreeMap::new(),
            rerun_pending: false,
            proceeded: false,
            lost: false,
            repairs: 0,
            repairing: false,
            recreate: None,
        }
    }

    /// Moves to a state; `since` changes only when state or reason do.
    pub(crate) fn become_state(&mut self, state: StepState, reason: Option<Reason>, now: Timestamp) {
        if self.state != state || self.reason != reason {
            self.since = now;
        }
        self.lost = state != StepState::Met && (self.lost || self.state == StepState::Met);
        self.state = state;
        self.reason = reason;
    }

    /// Whether the action has come to an end, good or bad.
    pub fn is_settled(&self) -> bool {
        matches!(self.state, StepState::Done | StepState::Skipped | StepState::Failed | StepState::Unknown)
    }

    /// Whether the action is tried again after it failed: it counts as failed until that has ended.
    pub fn is_retried(&self) -> bool {
        self.state == StepState::Running && !matches!(self.reason, None | Some(Reason::AwaitingAbsence))
    }

    /// Whether the action has come to a good end.
    pub fn is_successful(&self) -> bool {
        matches!(self.state, StepState::Done | StepState::Skipped)
    }
}

/// How an effect ended that must not happen twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum EffectEnd {
    /// It took place.
    Well,
    /// The command ran and failed with this code.
    Exit(i32),
    /// It did not take place.
    NotDone,
}

/// An object that is deleted to be made anew.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Recreate {
    /// The object.
    pub target: EffectTarget,
    /// The incarnation that goes.
    pub uid: String,
}

/// A progress marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Progress {
    /// The marker.
    pub marker: u64,
    /// When it last moved.
    pub moved: Timestamp,
}

/// Something that must be seen before an action goes on.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Awaits {
    /// The object is there.
    Present(EffectTarget),
    /// The kind is served.
    Served(KindWord),
    /// This incarnation is gone.
    Absent {
        /// The object.
        target: EffectTarget,
        /// Its uid.
        uid: String,
    },
}

/// One object that an attempt wrote.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WrittenObject {
    /// The object, as discovery resolved it.
    pub target: EffectTarget,
    /// What the server returned.
    pub stamp: Stamp,
}

/// What an action read of one dependency.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Trigger {
    /// The incarnation; none where there was no object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// Hash of the verdict and of the values read; of a Secret, of its uid and version only.
    pub hash: u64,
}

impl Trigger {
    /// What was read of these incarnations.
    pub(crate) fn new(incarnations: &[&String], hash: u64) -> Self {
        let uid = match incarnations {
            [] => None,
            [one] => Some((*one).clone()),
            many => Some(json!(many).to_string()),
        };
        Self { uid, hash }
    }

    /// The incarnations that were there.
    pub(crate) fn incarnations(&self) -> BTreeSet<String> {
        let Some(uid) = &self.uid else { return BTreeSet::new() };
        serde_json::from_str(uid).unwrap_or_else(|_| BTreeSet::from([uid.clone()]))
    }
}

/// One object in the inventory.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InventoryItem {
    /// The step that makes it.
    pub step: StepId,
    /// The cluster it is in. As whom it was made is not remembered: it is removed as whom the object says then.
    #[serde(default, alias = "via", skip_serializing_if = "ClusterRef::is_here", deserialize_with = "place")]
    pub place: ClusterRef,
    /// The object.
    pub target: EffectTarget,
    /// Its uid, once it is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// What we know of it.
    pub state: ItemState,
    /// Why it is left behind or kept waiting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// Steps whose objects are taken away only after this one: the plan's edges, kept for when the plan is gone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<StepId>,
    /// Whether it is deleted when its step leaves the plan.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub prune: bool,
    /// Whether its step no longer renders it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stale: bool,
    /// Whether it is deleted after everything that is not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub last: bool,
    /// Whether it has our object as its owner.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub owned: bool,
    /// Whether it was written with our object as its owner and came back without: it is not tried again and again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unownable: bool,
    /// Attempts to delete it.
    #[serde(default, skip_serializing_if = "is_zero_attempt")]
    pub attempt: u32,
    /// Not tried again before this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<Timestamp>,
    /// Since when nothing leads to its cluster any more, as observed while it was to be removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut_off: Option<Timestamp>,
}

/// Reads a place. Journals of earlier versions also said as whom an object was made: that is dropped.
fn place<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ClusterRef, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Written {
        Via {
            #[serde(default)]
            cluster: ClusterRef,
            #[serde(rename = "actor")]
            _actor: serde::de::IgnoredAny,
        },
        Place(ClusterRef),
    }
    Ok(match Written::deserialize(deserializer)? {
        Written::Via { cluster, .. } | Written::Place(cluster) => cluster.place(),
    })
}

/// What we know of an object in the inventory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ItemState {
    /// We mean to make it; it may or may not be there.
    Intended,
    /// We made it.
    Created,
    /// It was there; we only write to it, and never delete it.
    Adopted,
    /// We asked for its deletion.
    Deleting,
    /// It is gone.
    Gone,
    /// It stays, and we said so.
    Left,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature
fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature
fn is_zero_attempt(number: &u32) -> bool {
    *number == 0
}
