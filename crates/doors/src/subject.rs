//! What the one controller serves: a [`Subject`] looks at the world and decides what to do about one thing.
//!
//! The controller knows nothing else of it: it reads what the subject wants to see, calls [`Subject::decide`], carries out
//! the effects (after the subject's journal is saved, where they need that), and writes the status where there is one of
//! ours. Everything in here is pure: the same looks make the same decisions.
//!
//! The subject of a door is [`Planned`]: it compiles the object to a plan and calls `engine::step`. A kind that is no door
//! (a set that must equal another set, the pods of a namespace) implements [`Subject`] with a function of its own, and has
//! no [`Own`] part: nothing is written to its object but by effects.

mod body;
mod history;
mod planned;
mod status_hash;

use std::{collections::BTreeSet, time::Duration};

use linchpin_engine::{
    contract::{Effect, Notice, Outcome, Via, Want, World},
    graph::{CyclePath, Edge, Node},
    step::Phase,
};
use linchpin_words::{Gvk, ObjectRef, Timestamp};
use serde_json::Value;

pub use self::{planned::Planned, status_hash::StatusHash};
use crate::{
    door::{Backing, Claim, HistoryRecord, SideWrite, Tally, VisibleCauses},
    registry::Registry,
};

/// Which subject it is: the object that it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubjectKey {
    /// The object's kind.
    pub kind: Gvk,
    /// Its namespace; none for kinds without.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
    /// Its incarnation.
    pub uid: String,
}

impl SubjectKey {
    /// The object by kind and name.
    pub fn object_ref(&self) -> ObjectRef {
        let kind = self.kind.group_kind();
        ObjectRef { kind, namespace: self.namespace.clone(), name: self.name.clone() }
    }

    /// The namespace whose turn it takes; empty for kinds without.
    pub fn lane(&self) -> &str {
        self.namespace.as_deref().unwrap_or_default()
    }
}

/// What a subject decides from.
#[derive(Clone, Copy, Debug)]
pub struct SubjectInput<'a> {
    /// The kinds there are.
    pub registry: &'a Registry,
    /// What was observed of what it wants to see.
    pub world: &'a World,
    /// The effects that came back since its last decision.
    pub outcomes: &'a [Outcome],
    /// What the wait-for graph says of it.
    pub ties: Ties<'a>,
    /// The records of its history; none while they have not been looked at.
    pub kept: Option<&'a [HistoryRecord]>,
    /// Whether nothing of it is under way or waits to be written: there is time for what nobody waits for.
    pub idle: bool,
    /// The time.
    pub now: Timestamp,
}

/// What the wait-for graph says of a subject.
#[derive(Clone, Copy, Debug)]
pub struct Ties<'a> {
    /// The circle that it waits in.
    pub cycle: Option<&'a CyclePath>,
    /// What is behind the objects of ours that it waits for.
    pub causes: &'a VisibleCauses,
    /// What it waits for that gives way, because it would close a circle.
    pub broken: &'a [Node],
    /// The global rules that leave it alone, because what they wait for needs it.
    pub exempt: &'a [String],
    /// The objects of its own kind that made it, and those that made these.
    pub makers: &'a [ObjectRef],
    /// Those that depend on it; looked for only while it is being deleted.
    pub claims: &'a [Claim],
}

/// What has to be looked at before anything can be decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asks(pub BTreeSet<Want>);

/// What to do, and why.
#[derive(Debug, Default)]
pub struct Decision {
    /// What to observe from now on.
    pub wants: BTreeSet<Want>,
    /// What to change.
    pub effects: Vec<Effect>,
    /// What has to be saved before these effects may start.
    pub needs: Needs,
    /// Whether effects that still wait to be saved must not start any more: they come back as not started.
    pub withdraws: bool,
    /// What is to be written beside the object now. Nothing waits for it.
    pub beside: Vec<SideWrite>,
    /// What is to be written to the object itself; none where nothing is, as for kinds that are not ours.
    pub own: Option<Own>,
    /// Who waits for whom; none where that is as it was.
    pub edges: Option<Vec<Edge>>,
    /// When to decide again, if nothing happens before.
    pub wake_at: Option<Timestamp>,
    /// Whether there was more to evaluate than one turn may: the next one goes on.
    pub unfinished: bool,
    /// What is reported.
    pub report: News,
}

/// What has to be saved before effects may start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Needs {
    /// Nothing.
    #[default]
    Nothing,
    /// The journal with this many critical changes in it, and the finalizer where one is asked for.
    Saved(u64),
}

/// What is to be written to an object of ours.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Own {
    /// What becomes of our finalizer.
    pub finalizer: FinalizerChange,
    /// Whether there is a new phase: the status is written at once, unless the phase flaps.
    pub hurries: bool,
    /// Whether others may wait for that phase: it is done, or it has failed.
    pub awaited: bool,
    /// The event that reports it.
    pub phase_event: Option<Notice>,
}

/// What becomes of our finalizer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FinalizerChange {
    /// It stays as it is.
    #[default]
    None,
    /// It is put on.
    Add,
    /// It is taken off.
    Remove,
    /// It is taken off, and the object goes with it.
    Release,
}

/// What a decision reports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct News {
    /// Where the subject is; none while nothing was looked at.
    pub phase: Option<Phase>,
    /// Events about the object.
    pub notices: Vec<Notice>,
    /// What is said of an object that goes: it can hold no event any more.
    pub last_notices: Vec<Notice>,
    /// How many objects stay that should have been deleted with it.
    pub left_behind: usize,
    /// Events about other objects than the subject's.
    pub about_others: Vec<(SubjectKey, Notice)>,
    /// How much of what it waits for is there, where that is counted.
    pub tally: Option<Tally>,
    /// How many pods it holds, where it holds some by scheduling gates.
    pub held_pods: Option<usize>,
    /// How long each pod that was released since had been due.
    pub releases: Vec<Duration>,
}

/// A status to be written.
#[derive(Clone, Debug)]
pub struct Drawn {
    /// The status.
    pub status: Value,
    /// How many critical changes of the journal it holds.
    pub critical: u64,
    /// Whether it holds a journal at all: one that cannot be read is kept as it is.
    pub journaled: bool,
}

/// What the API server has of an object of ours, as it arrived last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stored {
    /// The hash of the status.
    pub status: Option<StatusHash>,
    /// Whether that holds a journal.
    pub journaled: bool,
    /// Whether there is a first journal beside it.
    pub first_journal: bool,
}

/// What is new about an object that arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arrival {
    /// It asks for something else: what was ordered for what it was must not start any more.
    pub asks_anew: bool,
    /// Somebody gave an order by hand: everything is read again.
    pub ordered: bool,
    /// Somebody else wrote its journal.
    pub foreign_journal: bool,
}

/// Something that the controller looks after.
pub trait Subject: Send {
    /// Which one.
    fn key(&self) -> &SubjectKey;

    /// Lower is looked after first, within one namespace.
    fn priority(&self) -> i32 {
        0
    }

    /// Whose rights it uses; none for what no user directs.
    fn via(&self) -> Option<Via> {
        None
    }

    /// Whether its object is being deleted.
    fn is_deleting(&self) -> bool;

    /// Its object has changed. `echo`: it is as we have just written it ourselves.
    ///
    /// # Errors
    /// The object cannot be read: nobody knows what it asks for now.
    fn arrived(&mut self, text: &str, echo: bool) -> Result<Arrival, serde_json::Error>;

    /// Decides what to do, or says what has to be looked at first. Outcomes are taken in by a decision only.
    fn decide(&mut self, look: &SubjectInput<'_>) -> Result<Decision, Asks>;

    /// The journal is saved with this many critical changes in it.
    fn saved(&mut self, _critical: u64) {}

    /// The status that the last decision makes, to be drawn when it may be written; none where there is nothing new to say,
    /// or no status of ours.
    fn status(&mut self, _causes: &VisibleCauses) -> Option<Drawn> {
        None
    }

    /// The journal as an annotation, with how many critical changes are in it; none where none has to be saved.
    fn first_journal(&self) -> Option<(String, u64)> {
        None
    }

    /// What the API server has of it.
    fn stored(&self) -> Stored {
        Stored::default()
    }

    /// Our finalizer was put on, or taken off.
    fn finalizer_written(&mut self, _present: bool) {}

    /// The objects of ours that must outlive its own.
    fn claims(&self) -> &[ObjectRef] {
        &[]
    }

    /// Who made its object: the uid of another object of ours.
    fn created_by(&self) -> Option<&str> {
        None
    }

    /// Whether its journal says that it made this object, or is about to. What an object says of its maker anybody may
    /// have written.
    fn has_made(&self, _object: &SubjectKey) -> bool {
        false
    }

    /// What of its objects serves webhooks, as far as that is known.
    fn backing(&self) -> Option<&Backing> {
        None
    }

    /// Whether its history will be kept, but is not yet: it waits for an idle moment.
    fn puts_off_history(&self) -> bool {
        false
    }

    /// Nothing has happened to it for a while, or there are many others: what can be made again from the rest may be let
    /// go. A status that has not been written yet is drawn first, with these causes.
    fn rest(&mut self, _causes: &VisibleCauses) {}
}
