//! One turn of one subject: observe, decide, act, report.

use std::{collections::BTreeSet, sync::Arc, time::Instant};

use linchpin_cluster::{events::Regarding, hub::SubscriberId, own::OwnObject};
use linchpin_doors::{
    Insight,
    subject::{Asks, Decision, FinalizerChange, Needs, News, Own, SubjectInput, SubjectKey, Ties},
};
use linchpin_engine::{
    contract::{Effect, Seen, Want},
    graph::Node,
};
use linchpin_words::{Gvk, Timestamp};

use super::{
    Controller,
    driver::EffectOrigin,
    entry::{Entry, FreshLook},
    now,
    pace::COOL_AFTER,
    throttle::{self, LastTurn},
};

/// How often a subject may ask for more in one turn.
const ROUNDS: usize = 4;

impl Controller {
    /// The object of a subject has changed.
    pub(super) fn changed(&mut self, id: SubscriberId, kind: usize, object: &OwnObject) {
        let Some(entry) = self.entries.get_mut(&id) else { return };
        if entry.saving.is_late(object.version()) {
            return;
        }
        let echo = object.version() == entry.saving.version;
        let arrival = match entry.subject.arrived(object.text(), echo) {
            Ok(arrival) => arrival,
            Err(error) => return self.unreadable(kind, object, &error.into()),
        };
        entry.saving.arrived(object, entry.subject.as_ref());
        if echo {
            if entry.saving.is_undrawn() {
                self.enqueue(id);
            }
            self.note_claims(id);
            return;
        }
        if arrival.asks_anew {
            entry.refuse_held(now());
        }
        if !entry.saving.is_writing() && arrival.foreign_journal {
            // What we remember is what we did: the next status puts it back.
            let object = entry.subject.key().object_ref();
            tracing::warn!(%object, "somebody else wrote the journal: it is put right");
        }
        entry.fresh_look.owed |= arrival.ordered;
        self.note_claims(id);
        self.enqueue(id);
    }

    /// One turn, now or after a rest.
    pub(super) fn turn(&mut self, id: SubscriberId) {
        let began = Instant::now();
        let effects_wait = self.driver.has_waiting(began);
        let rests = |entry: &Entry| throttle::until(entry, &self.resting, effects_wait, began);
        if let Some(until) = self.entries.get(&id).and_then(|entry| rests(entry)) {
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
        if self.served[entry.kind].counted {
            self.boot_counts.turn(true, took);
        }
        let did_something = answered || entry.in_flight > 0 || entry.saving.holds();
        let mut last_turn = LastTurn::after(entry.last_turn, began, began + took, did_something);
        if std::mem::take(&mut entry.unfinished) {
            let lane = entry.subject.key().lane().to_owned();
            last_turn.goes_on = Some(self.unfinished.place(lane, took, last_turn.ended));
        }
        entry.last_turn = Some(last_turn);
        self.cooling.set_earlier(id, last_turn.ended + COOL_AFTER);
        let rule = self.served[entry.kind].insight == Insight::Subjects;
        self.entries.insert(id, entry);
        // What it is about may lead elsewhere now. Other subjects see what this one has only from here on.
        if rule {
            self.exempt_of = None;
        }
        self.find_exempt();
    }

    /// Reads everything again that an object asks for, where somebody ordered that, at most now and then: each order
    /// costs as many requests as the object has questions.
    fn look_afresh(&mut self, entry: &mut Entry, now: Instant) {
        match entry.fresh_look.due(now) {
            Some(at) if at <= now => {
                entry.fresh_look = FreshLook { last: Some(now), owed: false };
                self.answers.refresh(entry.wants.iter());
            }
            Some(later) => self.resting.set_earlier(entry.id, later),
            None => {}
        }
    }

    fn decide(&mut self, entry: &mut Entry) {
        let node = Node::here(entry.subject.key().object_ref());
        for _ in 0..ROUNDS {
            let cycle = self.graph.cycle_of_owner(&node);
            let circle = cycle.as_ref().map(|cycle| self.circle_seen(entry, cycle));
            let (circle, asks) = circle.unwrap_or_default();
            entry.circle_asks = asks.into_iter().collect();
            let broken = self.graph.broken_of_owner(&node);
            let exempt = self.exempt_from(&node);
            let claims = self.claims_on(entry);
            let makers = self.makers_of(entry);
            let world = self.answers.read(entry.wants.iter());
            let key = entry.subject.key().clone();
            let look = SubjectInput {
                registry: &self.registry,
                world: &world,
                outcomes: &entry.outcomes,
                ties: Ties {
                    cycle: circle.as_ref(),
                    causes: &entry.causes,
                    broken: &broken,
                    exempt: &exempt,
                    makers: &makers,
                    claims: &claims,
                },
                kept: self.kept.get(&entry.kind).and_then(|kept| kept.of(key.namespace.as_deref(), &key.uid)),
                idle: entry.is_idle(),
                now: now(),
            };
            let time = look.now;
            match entry.subject.decide(&look) {
                Ok(decision) => {
                    entry.outcomes.clear();
                    self.act(entry, &node, decision, time);
                    let moved = self.graph.cycle_of_owner(&node) != cycle
                        || self.graph.broken_of_owner(&node) != broken
                        || self.exempt_from(&node) != exempt;
                    if moved {
                        self.push(entry);
                    }
                    return;
                }
                // A first look is under way; its answer calls again.
                Err(Asks(asks)) if asks.iter().all(|want| entry.wants.contains(want)) => return,
                Err(Asks(asks)) => {
                    let wants = entry.wants.iter().cloned().chain(asks).collect();
                    self.ask(entry, wants);
                }
            }
        }
        // More may be known already, of what nobody will call for again.
        self.push(entry);
    }

    /// Queues the subject of an entry that is being served.
    fn push(&mut self, entry: &Entry) {
        self.queue.push(entry.subject.key().lane(), entry.subject.priority(), entry.id);
    }

    fn ask(&mut self, entry: &mut Entry, wants: BTreeSet<Want>) {
        if !wants.iter().eq(&entry.wants) {
            self.answers.subscribe(entry.id, wants.clone());
            // What is known already, through somebody else's question, comes without a word.
            let added = self.answers.read(wants.iter().filter(|want| !entry.wants.contains(want)));
            let known = |(_, seen): (&Want, &Seen)| !matches!(seen, Seen::Unknown(why) if why.is_passing());
            if added.iter().any(known) {
                self.push(entry);
            }
            entry.wants = wants.into_iter().collect();
        }
    }

    /// Acts on a decision: effects now, or after the journal is saved.
    fn act(&mut self, entry: &mut Entry, node: &Node, decision: Decision, time: Timestamp) {
        let Decision {
            mut wants,
            effects,
            needs,
            withdraws,
            beside,
            own,
            edges,
            wake_at,
            unfinished,
            report,
        } = decision;
        wants.extend(entry.curious.iter().chain(&entry.circle_asks).cloned());
        self.ask(entry, wants);
        if withdraws && entry.refuse_held(time) {
            self.push(entry);
        }
        self.telemetry.effects(&effects);
        match needs {
            Needs::Saved(critical) => entry.saving.hold(effects, critical),
            Needs::Nothing => self.submit(entry, effects),
        }
        entry.wake_at = wake_at;
        self.timers.set(entry.id, wake_at);
        match own {
            Some(own) => self.write_to_object(entry, own),
            None => entry.saving.drop_all(),
        }
        self.report(entry, report);
        let affected = edges.map(|edges| {
            self.reporter.note_change();
            self.graph.set(node, &edges)
        });
        self.keep(entry, beside, time);
        for neighbour in affected.into_iter().flatten() {
            if neighbour.whole() != *node {
                self.enqueue_node(&neighbour);
            }
        }
        entry.unfinished = unfinished;
        if unfinished {
            self.push(entry);
        }
    }

    /// Starts effects that nothing has to be saved for, or for which all is saved.
    pub(super) fn submit(&mut self, entry: &mut Entry, effects: Vec<Effect>) {
        if effects.is_empty() {
            return;
        }
        entry.in_flight += effects.len();
        let (about, priority) = (Arc::new(regarding(entry)), entry.subject.priority());
        for effect in effects {
            let (lane, origin) = (entry.subject.key().lane(), EffectOrigin::Decision);
            self.driver.submit(lane, priority, entry.id, origin, effect, Arc::clone(&about));
        }
    }

    /// Notes what is to be written to the object itself.
    fn write_to_object(&mut self, entry: &mut Entry, own: Own) {
        let released = own.finalizer == FinalizerChange::Release;
        let finalizer = match own.finalizer {
            FinalizerChange::None => None,
            FinalizerChange::Add => Some(true),
            FinalizerChange::Remove | FinalizerChange::Release => Some(false),
        };
        entry.saving.decided(finalizer, released);
        if own.hurries
            && entry.saving.hurry(Instant::now(), own.awaited)
            && let Some(notice) = own.phase_event
        {
            self.emit_event(regarding(entry), notice);
        }
    }

    /// Reports what is worth an event, and counts.
    fn report(&mut self, entry: &mut Entry, report: News) {
        for notice in report.notices {
            self.emit_event(regarding(entry), notice);
        }
        for notice in report.last_notices {
            let object = entry.subject.key().object_ref();
            tracing::warn!(%object, "{}", notice.message);
            self.emit_event_for(entry.subject.key().lane(), self.ourselves(), notice);
        }
        for (about, notice) in report.about_others {
            let SubjectKey { kind, namespace, name, uid } = about;
            self.emit_event(Regarding { kind, namespace, name, uid }, notice);
        }
        let key = entry.subject.key();
        if let Some(tally) = report.tally {
            self.tallies.0.set(key.lane(), &key.name, tally);
        }
        if let Some(pods) = report.held_pods {
            self.tallies.0.hold(&key.name, pods);
            entry.holds_pods = true;
        }
        for after in report.releases {
            self.boot_counts.released(after);
        }
        for _ in 0..report.left_behind {
            self.telemetry.left_behind();
        }
        if let Some(phase) = report.phase.filter(|phase| entry.phase != Some(*phase)) {
            self.telemetry.phase(&self.served[entry.kind].group_kind.kind, entry.phase, phase);
            entry.phase = Some(phase);
        }
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
}

/// A resourceVersion as the number it is.
pub(super) fn number(version: &str) -> u64 {
    version.parse().unwrap_or_default()
}

/// The object that events are about.
pub(super) fn regarding(entry: &Entry) -> Regarding {
    let key = entry.subject.key().clone();
    Regarding { kind: key.kind, namespace: key.namespace, name: key.name, uid: key.uid }
}
