//! One turn of one object: observe, decide, act, report.

use std::{collections::BTreeSet, sync::Arc};

use linchpin_cluster::{events::Regarding, hub::SubscriberId};
use linchpin_doors::{CompileInput, Compiled, HistoryInput, StatusInput};
use linchpin_engine::{
    contract::{Actor, ClusterRef, Notice, ReadSet, Seen, StepId, Via, Want, World},
    graph::Node,
    journal::{Journal, Memory},
    plan::{Removal, SpecError},
    step::{Decision, Goal, Persist, Phase, Report, step},
};
use linchpin_words::{Gvk, Reason, Timestamp, keys};

use super::{
    Controller,
    entry::{Entry, FreshLook, PendingStatus},
    now,
    subject::Subject,
    throttle::{self, LastTurn},
};

/// How often compiling may ask for more facts in one turn.
const ROUNDS: usize = 4;

impl Controller {
    /// An object of ours has changed.
    pub(super) fn changed(&mut self, id: SubscriberId, subject: Box<dyn Subject>) {
        let Some(entry) = self.entries.get_mut(&id) else { return };
        if is_late(entry, subject.as_ref()) {
            return;
        }
        let old = std::mem::replace(&mut entry.subject, subject);
        let new = &entry.subject;
        let own_write = new.version() == entry.saving.version;
        entry.saving.arrived(new.as_ref());
        entry.saving.outdated = false;
        // What was drawn went with the old object.
        let wanted = std::mem::take(&mut entry.saving.wanted);
        if own_write {
            if wanted || entry.saving.pending_status.is_some() {
                self.enqueue(id);
            }
            return;
        }
        let other_orders = old.orders() != new.orders();
        let another_spec = old.generation() != new.generation();
        if another_spec || other_orders || old.is_deleting() != new.is_deleting() {
            entry.compiled = None;
            entry.refuse_held(now());
        }
        if entry.saving.under_way.is_none() && is_foreign(entry) {
            // What we remember is what we did: the next status puts it back.
            tracing::warn!(object = %entry.subject.object_ref(), "somebody else wrote the journal: it is put right");
        }
        entry.fresh_look.owed |= other_orders;
        if another_spec {
            entry.history.owe(old);
        }
        self.enqueue(id);
    }

    /// One turn, now or after a rest.
    pub(super) fn turn(&mut self, id: SubscriberId) {
        let began = std::time::Instant::now();
        let effects_wait = self.driver.has_waiting(began);
        let rests = |entry| throttle::until(entry, &self.resting, effects_wait, began);
        if let Some(until) = self.entries.get(&id).and_then(rests) {
            self.resting.set_earlier(id, until);
            return;
        }
        let Some(mut entry) = self.entries.remove(&id) else { return };
        let answered = !entry.outcomes.is_empty();
        self.look_afresh(&mut entry, began);
        self.decide(&mut entry);
        self.schedule(&mut entry);
        let took = began.elapsed();
        self.telemetry.turn(took);
        let did_something = answered || entry.in_flight > 0 || !entry.saving.held.is_empty();
        let mut last_turn = LastTurn::after(entry.last_turn, began, began + took, did_something);
        if std::mem::take(&mut entry.unfinished) {
            last_turn.goes_on = Some(self.unfinished.place(entry.namespace(), took, last_turn.ended));
        }
        entry.last_turn = Some(last_turn);
        self.entries.insert(id, entry);
    }

    /// Reads everything again that an object asks for, where somebody ordered that, at most now and then: each order
    /// costs as many requests as the object has questions.
    fn look_afresh(&mut self, entry: &mut Entry, now: std::time::Instant) {
        match entry.fresh_look.due(now) {
            Some(at) if at <= now => {
                entry.fresh_look = FreshLook { last: Some(now), owed: false };
                self.hub.refresh(&entry.wants);
            }
            Some(later) => self.resting.set_earlier(entry.id, later),
            None => {}
        }
    }

    fn decide(&mut self, entry: &mut Entry) {
        let time = now();
        let memory = match entry.memory.take() {
            Some(memory) => memory,
            None => match entry.subject.journal() {
                Ok(known) => {
                    entry.unread = false;
                    let fresh = || Memory::fresh(entry.subject.uid(), entry.subject.generation(), time);
                    known.map_or_else(fresh, Memory::recovered)
                }
                Err(_) if entry.subject.is_deleting() => {
                    // It goes all the same: what can be read of its journal is taken away.
                    entry.unread = true;
                    let mut memory = Memory::fresh(entry.subject.uid(), entry.subject.generation(), time);
                    memory.journal.inventory.extend(entry.subject.salvage().0);
                    memory
                }
                Err(error) => {
                    entry.unread = true;
                    let memory = Memory::fresh(entry.subject.uid(), entry.subject.generation(), time);
                    let decision = step(memory, Goal::Invalid(&error), &World::new(), &[], None, time);
                    self.report(entry, None, &decision, time);
                    // What cannot be read is not remembered, so there is nothing to draw from later.
                    draw(entry, None, &decision, time);
                    return;
                }
            },
        };
        if entry.subject.is_deleting() {
            return self.take_down(entry, memory, time);
        }
        entry.history.keep_if(entry.may_keep_history());
        self.compile(entry, &memory.journal);
        if matches!(&entry.compiled, Some((Err(error), _)) if error.unready) {
            // A first look is under way; it calls again.
            entry.memory = Some(memory);
            return;
        }
        let Some((compiled, facts)) = entry.compiled.take() else {
            entry.memory = Some(memory);
            return;
        };
        if compiled.is_err() {
            // Nothing is touched while the spec cannot be carried out, also where a fact made it so.
            entry.refuse_held(time);
        }
        let outcomes = std::mem::take(&mut entry.outcomes);
        let node = Node::here(entry.subject.object_ref());
        let cycle = self.graph.cycle_of_owner(&node);
        let mut records = Vec::new();
        let decision = match &compiled {
            Ok(Compiled { plan, .. }) => {
                let world = self.hub.read(&entry.wants);
                let decision = step(memory, Goal::Converge(plan), &world, &outcomes, cycle.as_ref(), time);
                let (journal, report) = (&decision.memory.journal, &decision.report);
                let status_input =
                    StatusInput { plan: Some(plan), journal, report, causes: &entry.causes, now: time };
                records = entry.subject.records(&status_input);
                entry.history.stands(HistoryInput::of(&status_input));
                records.extend(entry.history.due(entry.subject.as_ref(), &world));
                decision
            }
            Err(error) => step(memory, Goal::Invalid(error), &World::new(), &outcomes, None, time),
        };
        entry.unfinished = decision.unfinished;
        let mut wants = decision.wants.clone().into_inner();
        match &compiled {
            Ok(compiled) => wants.extend(compiled.wants.iter().cloned()),
            Err(error) => wants.extend(behind(error, &facts)),
        }
        wants.extend(entry.curious.iter().cloned());
        wants.extend(entry.history.wants(entry.subject.as_ref()));
        self.ask(entry, wants);
        let affected = self.graph.set(&node, &decision.report.edges);
        self.reporter.note_change();
        self.act(entry, compiled.as_ref().ok().map(|compiled| &compiled.plan), decision, time);
        entry.compiled = Some((compiled, facts));
        self.keep(entry, records, time);
        for neighbour in affected {
            if neighbour.whole() != node {
                self.enqueue_node(&neighbour);
            }
        }
        if entry.unfinished || self.graph.cycle_of_owner(&node) != cycle {
            self.queue.push(&entry.namespace(), entry.subject.priority(), entry.id);
        }
    }

    /// Compiles the object if it, or a fact it was compiled with, has changed.
    fn compile(&mut self, entry: &mut Entry, journal: &Journal) {
        for _ in 0..ROUNDS {
            let facts = match &entry.compiled {
                Some((Ok(compiled), known)) => {
                    let facts = self.hub.read(&compiled.wants);
                    if facts == *known {
                        return;
                    }
                    facts
                }
                Some((Err(error), known)) => {
                    let facts = self.hub.read(&behind(error, known));
                    if facts == *known {
                        return;
                    }
                    facts
                }
                None => self.hub.read(&BTreeSet::new()),
            };
            let compile_input = CompileInput {
                facts: &facts,
                kinds: &journal.kinds,
                default_service_account: &self.default_service_account,
            };
            let compiled: Result<Compiled, SpecError> = entry.subject.compile(&compile_input);
            let asks = compiled.as_ref().map_or_else(|error| &error.asks, |compiled| &compiled.wants);
            let mut wants = entry.wants.clone();
            wants.extend(asks.iter().cloned());
            self.ask(entry, wants);
            entry.compiled = Some((compiled, facts));
        }
        // More may be known already, of what nobody will call for again.
        self.queue.push(&entry.namespace(), entry.subject.priority(), entry.id);
    }

    fn ask(&mut self, entry: &mut Entry, wants: BTreeSet<Want>) {
        if wants != entry.wants {
            self.hub.subscribe(entry.id, wants.clone());
            // What is known already, through somebody else's question, comes without a word.
            let added = self.hub.read(wants.difference(&entry.wants));
            let known = |(_, seen): (&Want, &Seen)| !matches!(seen, Seen::Unknown(why) if why.is_passing());
            if added.iter().any(known) {
                self.queue.push(&entry.namespace(), entry.subject.priority(), entry.id);
            }
            entry.wants = wants;
        }
    }

    /// The object is being deleted.
    fn take_down(&mut self, entry: &mut Entry, memory: Memory, time: Timestamp) {
        let ours = self.kinds[entry.kind].finalizer();
        if !entry.subject.finalizers().iter().any(|finalizer| finalizer == ours) {
            entry.memory = Some(memory);
            (entry.saving.wanted, entry.saving.pending_status) = (false, None);
            entry.saving.first_journal = false;
            return;
        }
        let outcomes = std::mem::take(&mut entry.outcomes);
        let namespace = entry.namespace();
        let via = Via { cluster: ClusterRef::Here, actor: Actor::Operator };
        let own_namespace =
            Want::object(via, Gvk::new("", "v1", "Namespace"), None, &namespace, ReadSet::nothing());
        let mut wants = entry.wants.clone();
        wants.insert(own_namespace.clone());
        let world = self.hub.read(&wants);
        let hurry = match world.get(&own_namespace) {
            Some(Seen::Objects(observed)) => observed.items.iter().all(|namespace| namespace.deleting),
            _ => false,
        };
        let authority = entry.subject.authority(&self.default_service_account);
        let goal = Goal::Teardown { authority: &authority, removal: entry.subject.removal(), hurry };
        let decision = step(memory, goal, &world, &outcomes, None, time);
        let mut wants = decision.wants.clone().into_inner();
        wants.insert(own_namespace);
        self.ask(entry, wants);
        if decision.release {
            entry.saving.released = true;
            let others = entry.subject.finalizers().iter().filter(|finalizer| *finalizer != ours);
            entry.saving.finalizers = Some(others.cloned().collect());
            entry.saving.urgent = true;
            if entry.unread && entry.subject.removal() == Removal::Delete && entry.subject.salvage().1 {
                let object = entry.subject.object_ref();
                let message = format!(
                    "{object} is gone, and what it made is not fully known: its journal could not be read; look for objects \
                     with the annotation {}: {}",
                    keys::CREATED_BY,
                    entry.subject.uid()
                );
                tracing::warn!(%object, "{message}");
                let notice =
                    Notice { reason: Reason::LeftBehind.as_str().to_owned(), message, warning: true };
                self.emit_event_for(&namespace, self.ourselves(), notice);
            }
            for left in &decision.report.left {
                tracing::warn!(object = %entry.subject.object_ref(), "left behind: {left}");
                self.telemetry.left_behind();
                let message = format!("{} is gone and left behind: {left}", entry.subject.object_ref());
                let notice =
                    Notice { reason: Reason::LeftBehind.as_str().to_owned(), message, warning: true };
                self.emit_event_for(&namespace, self.ourselves(), notice);
            }
        }
        self.act(entry, None, decision, time);
    }

    /// Acts on a decision: effects now, or after the journal is saved.
    fn act(
        &mut self,
        entry: &mut Entry,
        plan: Option<&linchpin_engine::plan::Plan>,
        mut decision: Decision,
        time: Timestamp,
    ) {
        let effects = std::mem::take(&mut decision.effects);
        self.telemetry.effects(&effects);
        if decision.persist == Persist::BeforeEffects {
            entry.saving.held.extend(effects);
            entry.saving.urgent = true;
        } else if !effects.is_empty() {
            let about = Arc::new(regarding(self, entry));
            entry.in_flight += effects.len();
            for effect in effects {
                let priority = entry.subject.priority();
                self.driver.submit(&entry.namespace(), priority, entry.id, effect, Arc::clone(&about));
            }
        }
        entry.wake_at = decision.wake_at;
        self.timers.set(entry.id, decision.wake_at);
        self.report(entry, plan, &decision, time);
        entry.saving.pending_status =
            Some(PendingStatus { report: decision.report, planned: plan.is_some(), time });
        entry.memory = Some(decision.memory);
    }

    /// What events are about that outlive their object, whose namespace may take none: the Lease we lead by.
    fn ourselves(&self) -> Regarding {
        let election = self.context.settings.leader_election.as_ref();
        Regarding {
            kind: Gvk::new("coordination.k8s.io", "v1", "Lease"),
            namespace: Some(self.context.namespace.clone()),
            name: election.map_or_else(|| "linchpin".to_owned(), |election| election.name.clone()),
            uid: String::new(),
        }
    }

    /// Says once which gates somebody let pass by hand.
    fn report_manual_passes(&mut self, entry: &mut Entry, journal: &Journal) {
        let passed = passed_by_hand(journal);
        let before = entry.passed.take().unwrap_or_else(|| {
            let saved = entry.subject.journal().ok().flatten();
            saved.as_ref().map(passed_by_hand).unwrap_or_default()
        });
        for step in passed.difference(&before) {
            let message = format!("{step} was passed by hand");
            self.emit_event(regarding(self, entry), Reason::Proceeded.as_str(), &message, false);
        }
        entry.passed = Some(passed);
    }

    /// Reports what is worth an event, and notes which finalizers there should be.
    fn report(
        &mut self,
        entry: &mut Entry,
        plan: Option<&linchpin_engine::plan::Plan>,
        decision: &Decision,
        time: Timestamp,
    ) {
        let journal = &decision.memory.journal;
        let report = &decision.report;
        self.report_manual_passes(entry, journal);
        if plan.is_some() {
            for left in &report.left {
                let message = format!("it is no longer looked after, and not deleted: {left}");
                self.emit_event(regarding(self, entry), Reason::LeftBehind.as_str(), &message, true);
            }
        }
        let ours = self.kinds[entry.kind].finalizer();
        let has = entry.subject.finalizers().iter().any(|finalizer| finalizer == ours);
        let needed = entry.subject.needs_finalizer(journal);
        // It comes off again where nothing must be deleted any more, but never because of a plan that is not there.
        if !entry.subject.is_deleting() {
            let others = entry.subject.finalizers().iter().filter(|finalizer| *finalizer != ours);
            let finalizers = others.cloned().chain(needed.then(|| ours.to_owned())).collect();
            entry.saving.finalizers = (needed != has && (needed || plan.is_some())).then_some(finalizers);
        }
        if entry.reported_phase != Some(report.phase) && !is_premature(report) {
            let shown = entry.shown.as_deref() == Some(self.kinds[entry.kind].phase_word(report.phase));
            let first_seen =
                entry.reported_phase.is_none() && (shown || is_what_it_says(entry, plan, decision, time));
            if !first_seen && entry.saving.hurry(std::time::Instant::now()) {
                let warning = report.phase == Phase::Failed;
                let reason = report.reason.map_or(report.phase.as_str(), linchpin_words::Reason::as_str);
                self.emit_event(regarding(self, entry), reason, &report.message, warning);
            }
            self.telemetry.phase(entry.reported_phase, report.phase);
            entry.reported_phase = Some(report.phase);
        }
    }
}

/// Whether a status drawn now is the one that the object has.
fn is_what_it_says(
    entry: &mut Entry,
    plan: Option<&linchpin_engine::plan::Plan>,
    decision: &Decision,
    time: Timestamp,
) -> bool {
    draw(entry, plan, decision, time);
    !entry.saving.wanted
}

/// Draws the status of a decision at once.
fn draw(entry: &mut Entry, plan: Option<&linchpin_engine::plan::Plan>, decision: &Decision, time: Timestamp) {
    let Decision { memory, report, .. } = decision;
    let status_input =
        StatusInput { plan, journal: &memory.journal, report, causes: &entry.causes, now: time };
    let status = entry.subject.status(&status_input, entry.unread);
    entry.saving.drawn(&status, memory.critical);
}

/// Whether there is nothing to report yet, because the world has not been looked at: that takes milliseconds.
fn is_premature(report: &Report) -> bool {
    let first = report.blocked.first();
    report.phase == Phase::Pending
        || report.phase == Phase::Waiting
            && first.is_some_and(|blocker| blocker.reason == Reason::Unsynced.as_str())
}

/// What an error rests on, which may change: a second kind of the same name may go away.
fn behind(error: &SpecError, facts: &World) -> BTreeSet<Want> {
    error.asks.iter().cloned().chain(facts.iter().map(|(want, _)| want.clone())).collect()
}

/// The gates that somebody let pass by hand.
fn passed_by_hand(journal: &Journal) -> BTreeSet<StepId> {
    let passed = journal.steps.iter().filter(|(_, record)| record.reason == Some(Reason::Proceeded));
    passed.map(|(step, _)| step.clone()).collect()
}

/// A resourceVersion as the number it is.
pub(super) fn number(version: &str) -> u64 {
    version.parse().unwrap_or_default()
}

/// Whether what arrived is older than what we have just written ourselves. A store that went back in time also shows
/// older versions, but goes on doing so.
fn is_late(entry: &Entry, subject: &dyn Subject) -> bool {
    let recent = entry.saving.last.is_some_and(|last| last.elapsed() < std::time::Duration::from_secs(10));
    recent && number(subject.version()) < number(&entry.saving.version)
}

/// Whether the journal that arrived cannot be one that we wrote.
fn is_foreign(entry: &Entry) -> bool {
    let ours = entry.memory.as_ref().map(|memory| &memory.journal);
    match (entry.subject.journal(), ours) {
        (Ok(Some(theirs)), Some(ours)) => theirs.run.id > ours.run.id || theirs.generation > ours.generation,
        (Err(_), Some(_)) => !entry.unread,
        _ => false,
    }
}

/// The object that events are about.
pub(super) fn regarding(controller: &Controller, entry: &Entry) -> Regarding {
    let (namespace, name) = entry.subject.place();
    let kind = controller.kinds[entry.kind].gvk();
    Regarding { kind, namespace, name, uid: entry.subject.uid().to_owned() }
}
