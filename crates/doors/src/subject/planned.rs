//! The subject of a door: an object of ours, its plan and what the engine remembers of it.
//!
//! The object is compiled to a plan when it, or a fact that it was compiled with, has changed; `engine::step` decides; the
//! status is drawn from the last decision when it may be written, or before its plan is let go. What the engine remembers
//! is recovered from the journal in the object's status at the first look, and is the authority from then on.

mod decide;

use std::{collections::BTreeSet, sync::Arc};

use kube_core::object::HasStatus as _;
use linchpin_api::{OurStatus, Ours};
use linchpin_engine::{
    contract::{ClusterRef, EffectTarget, StepId, Via, Want, World},
    journal::{InventoryItem, Journal, Memory},
    plan::{Plan, SpecError},
    step::{Phase, Report},
};
use linchpin_words::{ObjectRef, Reason, Timestamp};
use serde_json::Value;

use super::{
    Arrival, Asks, Decision, Drawn, StatusHash, Stored, Subject, SubjectInput, SubjectKey,
    body::{ArrivedObject, PackedObject},
    history::History,
};
use crate::{
    door::{Backing, CLUSTER_DOMAIN, Compiled, Door, StatusInput, StatusOf, VisibleCauses},
    journal,
};

/// An object of ours that is carried out by a plan.
pub struct Planned<D: Door> {
    body: PackedObject<D::Object>,
    /// The ServiceAccount of objects that name none.
    default_service_account: Arc<str>,
    /// The domain of the cluster's Services.
    cluster_domain: Arc<str>,
    stored: Stored,
    /// The phase that its status showed when it was first seen.
    shown: Option<String>,
    /// The journal that it arrived with, until it is remembered; one that cannot be read stays, because nothing else says
    /// what was done.
    journal: Option<Value>,
    /// Whether that cannot be read.
    unread: bool,
    /// What the engine remembers; none before the first decision.
    memory: Option<Memory>,
    /// The plan, and the facts it was made with; none before it was compiled from this version of the object.
    compiled: Option<Box<(Result<Compiled, SpecError>, World)>>,
    /// Whether the plan is let go as soon as nobody needs it.
    rests: bool,
    /// What a plan that was let go had looked at.
    looked_at: BTreeSet<Want>,
    /// The status that is still to be handed out.
    owed: OwedStatus,
    /// What was last reported; none before the first report.
    reported: Option<ReportedPhase>,
    /// The gates passed by hand that were reported.
    passed: BTreeSet<StepId>,
    /// The soft dependencies passed by that were reported.
    broken: BTreeSet<StepId>,
    /// What must outlive it: known also while the object lies there packed.
    claims: Vec<ObjectRef>,
    /// The global rules that left it alone when it was compiled.
    exempt: Vec<String>,
    /// The objects that had made it when it was compiled.
    makers: Vec<ObjectRef>,
    history: History<D::Object>,
}

/// The phase as it was reported.
struct ReportedPhase {
    phase: Phase,
    /// The word that the status has for it.
    word: &'static str,
    /// Whether it was reported that what is done is ready too, since it is done.
    ready: bool,
}

/// The status that is still to be handed out. It is drawn when it may be written, or before its plan is let go: decisions
/// are more frequent.
enum OwedStatus {
    /// None: the last one was handed out.
    Nothing,
    /// What the last decision had to say.
    Undrawn(Box<PendingStatus>),
    /// A status that was drawn before its time, to let go what it was drawn from.
    Drawn(Box<DrawnEarly>),
}

/// A status that waits to be written, as text: that takes a quarter of the memory.
struct DrawnEarly {
    status: Box<str>,
    critical: u64,
    journaled: bool,
}

/// What a decision had to say.
struct PendingStatus {
    report: Report,
    /// Whether there was a plan.
    planned: bool,
    time: Timestamp,
}

/// What must outlive an object; none while it is not at hand.
fn claims_of<D: Door>(body: &PackedObject<D::Object>) -> Option<Vec<ObjectRef>> {
    let object = body.whole()?;
    Some(D::ties().map(|ties| ties.claims(object)).unwrap_or_default())
}

/// What of a plan serves webhooks.
fn backing_of<D: Door>(compiled: &Compiled) -> Option<&Backing> {
    D::ties()?.backing(&compiled.plan)
}

impl<D: Door> Planned<D> {
    /// The subject of an object that has arrived for the first time.
    ///
    /// # Errors
    /// The object cannot be read, and is not being deleted.
    pub fn new(text: &str, default_service_account: Arc<str>) -> Result<Self, serde_json::Error> {
        let ArrivedObject { body, journal, status, phase } =
            ArrivedObject::<D::Object>::from_text(text, &default_service_account)?;
        Ok(Self {
            stored: stored(&body, status, journal.as_ref()),
            default_service_account,
            cluster_domain: Arc::from(CLUSTER_DOMAIN),
            shown: phase,
            journal,
            unread: false,
            memory: None,
            compiled: None,
            rests: false,
            looked_at: BTreeSet::new(),
            owed: OwedStatus::Nothing,
            reported: None,
            passed: BTreeSet::new(),
            broken: BTreeSet::new(),
            claims: claims_of::<D>(&body).unwrap_or_default(),
            body,
            exempt: Vec::new(),
            makers: Vec::new(),
            history: History::default(),
        })
    }

    /// The same, in a cluster whose Services have another domain than the usual one.
    pub(crate) fn in_domain(self, cluster_domain: Arc<str>) -> Self {
        Self { cluster_domain, ..self }
    }

    /// The object, where it is understood.
    pub(crate) fn object(&self) -> Option<&D::Object> {
        self.body.whole()
    }

    /// Whether our finalizer is on it.
    pub(crate) fn has_finalizer(&self) -> bool {
        self.body.has_finalizer()
    }

    /// The journal that the object arrived with: that of its status, or the first one where there is none yet.
    fn arrived_journal(&self, journal: Option<&Value>) -> Result<Option<Journal>, SpecError> {
        match (journal::read(journal, self.body.uid())?, self.body.first_journal()) {
            (None, Some(first)) => journal::read_first(first, self.body.uid()),
            (journal, _) => Ok(journal),
        }
    }

    /// What the object made, as far as that can be read of a journal that as a whole cannot; and whether that may not be all.
    fn salvage(&self) -> (Vec<InventoryItem>, bool) {
        journal::salvage(self.journal.as_ref(), self.body.first_journal(), self.body.uid())
    }

    /// Whether the journal that arrived cannot be one that we wrote.
    fn is_foreign(&self, journal: Option<&Value>) -> bool {
        let Some(ours) = self.memory.as_ref().map(|memory| &memory.journal) else { return false };
        match self.arrived_journal(journal) {
            Ok(Some(theirs)) => theirs.run.id > ours.run.id || theirs.generation > ours.generation,
            Ok(None) => false,
            Err(_) => !self.unread,
        }
    }

    /// The status for a report, and that as it is written.
    fn draw(&self, object: &D::Object, input: &StatusInput<'_>) -> (StatusOf<D>, Value) {
        let mut status = D::status(object, input);
        let mut value = serde_json::to_value(&status).unwrap_or_default();
        if self.unread
            && let Some(fields) = value.as_object_mut()
        {
            // What was done is not known, so nothing new may take the place of what says it, nor of when it began.
            match &self.journal {
                Some(journal) => drop(fields.insert("journal".to_owned(), journal.clone())),
                None => drop(fields.remove("journal")),
            }
            let old = object.status().and_then(|status| serde_json::to_value(status).ok());
            let begun = old.as_ref().and_then(|status| status.get("startTime"));
            fields.extend(begun.map(|time| ("startTime".to_owned(), time.clone())));
            if let Ok(kept) = serde_json::from_value(value.clone()) {
                status = kept;
            }
        }
        status.common_mut().journal = None;
        (status, value)
    }

    /// Remembers what must outlive it.
    fn note_claims(&mut self) {
        if let Some(claims) = claims_of::<D>(&self.body) {
            self.claims = claims;
        }
    }

    /// Puts the object away, unless its status is going to be drawn soon; its plan too, if it rests.
    fn put_away(&mut self) {
        if !matches!(self.owed, OwedStatus::Undrawn(_)) {
            self.body.pack();
            if self.rests {
                self.let_plan_go();
            }
        }
    }

    /// Lets the plan go, unless something of it is under way or other subjects read it.
    fn let_plan_go(&mut self) {
        if self.memory.as_ref().is_none_or(|memory| !memory.flight.is_empty()) {
            return;
        }
        let is_spare = |compiled: &Compiled| backing_of::<D>(compiled).is_none();
        let spare = self.compiled.take_if(|made| made.0.as_ref().is_ok_and(is_spare));
        if let Some((Ok(compiled), _)) = spare.map(|made| *made) {
            self.looked_at = compiled.wants;
        }
    }

    /// Whether the status already shows what is reported now.
    fn is_shown(&self, input: &StatusInput<'_>) -> bool {
        let Some(object) = self.body.whole() else { return true };
        let (status, value) = self.draw(object, input);
        match (&status.common().phase, &self.shown) {
            (Some(phase), Some(shown)) => phase == shown,
            (Some(_), None) => false,
            (None, _) => self.stored.status == Some(StatusHash::of(&value)),
        }
    }
}

/// What the API server has of an object.
fn stored<O: Ours>(body: &PackedObject<O>, status: Option<StatusHash>, journal: Option<&Value>) -> Stored {
    Stored { status, journaled: journal.is_some(), first_journal: body.first_journal().is_some() }
}

/// The gates that somebody let pass by hand.
fn passed_by_hand(journal: &Journal) -> BTreeSet<StepId> {
    steps_with(journal, Reason::Proceeded)
}

/// The steps that are as they are for this reason.
fn steps_with(journal: &Journal, reason: Reason) -> BTreeSet<StepId> {
    let found = journal.steps.iter().filter(|(_, record)| record.reason == Some(reason));
    found.map(|(step, _)| step.clone()).collect()
}

impl<D: Door> Subject for Planned<D> {
    fn key(&self) -> &SubjectKey {
        self.body.key()
    }

    fn priority(&self) -> i32 {
        self.body.priority()
    }

    fn via(&self) -> Option<Via> {
        Some(self.body.via())
    }

    fn is_deleting(&self) -> bool {
        self.body.is_deleting()
    }

    fn arrived(&mut self, text: &str, echo: bool) -> Result<Arrival, serde_json::Error> {
        let ArrivedObject { body, journal, status, .. } =
            ArrivedObject::<D::Object>::from_text(text, &self.default_service_account)?;
        self.stored = stored(&body, status, journal.as_ref());
        // It was drawn of what the object was before.
        if matches!(self.owed, OwedStatus::Drawn(_)) {
            self.owed = OwedStatus::Nothing;
        }
        let old = std::mem::replace(&mut self.body, body);
        self.note_claims();
        let foreign_journal = !echo && self.is_foreign(journal.as_ref());
        if self.memory.is_none() || self.unread {
            self.journal = journal;
        }
        if echo {
            self.put_away();
            return Ok(Arrival::default());
        }
        let ordered = old.orders() != self.body.orders();
        let another_spec = old.generation() != self.body.generation();
        let asks_anew = another_spec || ordered || old.is_deleting() != self.body.is_deleting();
        if asks_anew {
            self.compiled = None;
        }
        if another_spec
            && D::beside().is_some()
            && let Some(old) = old.into_whole()
        {
            self.history.owe(old);
        }
        Ok(Arrival { asks_anew, ordered, foreign_journal })
    }

    fn decide(&mut self, look: &SubjectInput<'_>) -> Result<Decision, Asks> {
        self.rests = false;
        let decided = self.take_turn(look);
        self.put_away();
        decided
    }

    fn saved(&mut self, critical: u64) {
        if let Some(memory) = &mut self.memory {
            memory.mark_saved(critical);
        }
    }

    fn status(&mut self, causes: &VisibleCauses) -> Option<Drawn> {
        let PendingStatus { report, planned, time } =
            match std::mem::replace(&mut self.owed, OwedStatus::Nothing) {
                OwedStatus::Nothing => return None,
                OwedStatus::Undrawn(pending) => *pending,
                OwedStatus::Drawn(early) => {
                    // We wrote it: it can be read.
                    let status = serde_json::from_str(&early.status).ok()?;
                    return Some(Drawn { status, critical: early.critical, journaled: early.journaled });
                }
            };
        let plan: Option<&Plan> = match self.compiled.as_deref() {
            Some((Ok(compiled), _)) if planned => Some(&compiled.plan),
            // The object has changed since: its next turn has something newer to say.
            _ if planned => return None,
            _ => None,
        };
        let object = self.body.whole()?;
        // What cannot be read is not remembered.
        let nothing;
        let (journal, critical) = if let Some(memory) = &self.memory {
            (&memory.journal, memory.critical)
        } else {
            nothing = Journal::new(self.body.uid(), self.body.generation(), time);
            (&nothing, 0)
        };
        let input = StatusInput { plan, journal, report: &report, causes, now: time };
        let (kept, status) = self.draw(object, &input);
        let journaled = status.get("journal").is_some();
        // Kept, written or not: the next one is drawn from it, and takes the times of what has not changed since.
        self.body.change(|object| *object.status_mut() = Some(kept));
        self.note_claims();
        self.put_away();
        Some(Drawn { status, critical, journaled })
    }

    fn first_journal(&self) -> Option<(String, u64)> {
        let memory = self.memory.as_ref().filter(|memory| memory.critical > memory.saved)?;
        Some((journal::write_first(&memory.journal)?, memory.critical))
    }

    fn stored(&self) -> Stored {
        self.stored.clone()
    }

    fn claims(&self) -> &[ObjectRef] {
        &self.claims
    }

    fn created_by(&self) -> Option<&str> {
        self.body.created_by()
    }

    fn has_made(&self, object: &SubjectKey) -> bool {
        let is = |item: &InventoryItem| {
            let EffectTarget { kind, namespace, name } = &item.target;
            let namespace = namespace.as_ref().or(self.body.key().namespace.as_ref());
            item.place == ClusterRef::Here
                && kind.group.as_ref() == Some(&object.kind.group)
                && kind.word.eq_ignore_ascii_case(&object.kind.kind)
                && (namespace, name) == (object.namespace.as_ref(), &object.name)
                && item.uid.as_ref().is_none_or(|uid| *uid == object.uid)
        };
        match &self.memory {
            Some(memory) => memory.journal.inventory.iter().any(is),
            None => match self.arrived_journal(self.journal.as_ref()) {
                Ok(Some(journal)) => journal.inventory.iter().any(is),
                _ => false,
            },
        }
    }

    fn backing(&self) -> Option<&Backing> {
        match self.compiled.as_deref() {
            Some((Ok(compiled), _)) => backing_of::<D>(compiled),
            _ => None,
        }
    }

    fn finalizer_written(&mut self, present: bool) {
        self.body.set_finalizer(present);
    }

    fn puts_off_history(&self) -> bool {
        let lives = self.reported.is_some() && !self.body.is_deleting();
        D::beside().is_some() && lives && !self.history.is_kept()
    }

    fn rest(&mut self, causes: &VisibleCauses) {
        self.rests = true;
        if matches!(self.owed, OwedStatus::Undrawn(_))
            && let Some(Drawn { status, critical, journaled }) = self.status(causes)
        {
            let early = DrawnEarly { status: status.to_string().into(), critical, journaled };
            self.owed = OwedStatus::Drawn(Box::new(early));
        }
        self.put_away();
    }
}
