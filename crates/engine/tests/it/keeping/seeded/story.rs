//! One story: an engine, perhaps with a bug, in a world in which things happen, and what of it breaks a law.

use std::collections::BTreeSet;

use linchpin_engine::{
    contract::{Effect, StepId, Verb},
    journal::{Journal, Memory, StepState},
    plan::{Edition, ManualOverrides},
    step::{Goal, Persist, StepDecision, step},
};
use linchpin_words::{Reason, Shared};
use serde_json::json;

use super::{Bug, Definitions, Event, PATIENCE, parts, plan};
use crate::{
    build::{observed, projection},
    keeping::{gone, shown},
    play::{OURS, Play},
};

/// The number of an edition.
fn version(edition: &Edition) -> u32 {
    edition.revision.trim_start_matches('r').parse().expect("a number")
}

/// What an effect makes.
fn made(effect: &Effect) -> String {
    let Verb::Apply { body, .. } = &effect.verb else { return String::new() };
    body["metadata"]["name"].as_str().unwrap_or_default().to_owned()
}

pub(super) struct Story {
    pub(super) play: Play,
    bug: Option<Bug>,
    pub(super) version: u32,
    soft: bool,
    gates: (bool, bool, bool),
    /// Whether what is to be met once for each edition is there; it was at first.
    for_now: bool,
    /// The version for which it was seen there last.
    met_for: u32,
    /// Whether the hard gate, where it is not as it should be, has failed.
    fails: bool,
    /// Whether the order to pass it is given now.
    ordered: bool,
    /// Whether such an order was given and has not helped an admission since.
    unused: bool,
    /// What is under way, with its version.
    out: Vec<(u32, Effect)>,
    made: BTreeSet<String>,
    /// The journal as the API server has it.
    saved: Journal,
    /// What was under way when a process died, with its version.
    lost: Vec<(u32, String)>,
    /// The versions that were admitted.
    ever: BTreeSet<u32>,
    /// The newest version of which something arrived.
    arrived: u32,
    /// Since when the edition is known.
    first_seen: u64,
    clock: u64,
    /// Whether `o` was looked at while it was there.
    was_met: bool,
    /// Every write, as step and text.
    pub(super) written: BTreeSet<(String, String)>,
}

impl Story {
    pub(super) fn new(bug: Option<Bug>, soft: bool) -> Self {
        let play = Play::new(plan(1, soft));
        Self {
            saved: play.memory.journal.clone(),
            lost: Vec::new(),
            ever: BTreeSet::new(),
            arrived: 0,
            play,
            bug,
            version: 1,
            soft,
            gates: (false, false, false),
            for_now: true,
            met_for: 0,
            fails: false,
            ordered: false,
            unused: false,
            out: Vec::new(),
            made: BTreeSet::new(),
            first_seen: 0,
            clock: 0,
            was_met: false,
            written: BTreeSet::new(),
        }
    }

    pub(super) fn happens(&mut self, event: Event) {
        match event {
            Event::Shows { a, s, o } => (self.gates, self.fails) = ((a, s, o), false),
            Event::ShowsForNow(there) => self.for_now = there,
            Event::Fails => (self.gates.0, self.fails) = (false, true),
            Event::Orders(given) => {
                self.unused |= given && !self.ordered;
                self.ordered = given;
                self.give_orders();
            }
            Event::Succeeds => {
                for (version, effect) in std::mem::take(&mut self.out) {
                    self.play.succeed(&effect);
                    match &effect.verb {
                        Verb::Apply { .. } => self.arrives(version, &made(&effect)),
                        Verb::Delete { target, .. } => drop(self.made.remove(&target.name)),
                        _ => {}
                    }
                }
            }
            Event::Drifts => drop(self.made.pop_last()),
            Event::Saves => self.save(),
            Event::Crash { arrives, lost, updated } => {
                let out = std::mem::take(&mut self.out).into_iter();
                let applied = out.filter(|(_, effect)| matches!(effect.verb, Verb::Apply { .. }));
                self.lost.extend(applied.map(|(version, effect)| (version, made(&effect))));
                self.play.memory.journal = self.saved.clone();
                self.play.crash();
                let latched =
                    |id: &str| self.saved.steps.get(&id.into()).is_some_and(|record| record.latch.is_some());
                self.was_met = latched("o");
                let seen = self.saved.editions.seen.as_ref().filter(|_| latched("p"));
                self.met_for = seen.map_or(0, |seen| version(seen));
                // What was not saved was not used up: nothing was written on it either.
                let passed = self.saved.steps.get(&"a".into()).is_some_and(|record| record.proceeded);
                let used = self.saved.orders.used.contains(&"a".into());
                self.unused = !used && (self.ordered || passed);
                if arrives {
                    self.happens(Event::ArrivesLate);
                }
                if lost {
                    self.gates = (false, false, false);
                }
                if updated {
                    self.happens(Event::Update);
                }
            }
            Event::ArrivesLate => {
                for (version, name) in std::mem::take(&mut self.lost) {
                    self.arrives(version, &name);
                }
            }
            Event::Slips => {
                self.play.step_while_invalid();
                self.save();
            }
            Event::Update => {
                self.version += 1;
                self.play.plan = plan(self.version, self.soft);
                self.give_orders();
                // An order that was taken away counts for what it was given for.
                self.unused &= self.ordered;
                self.first_seen = self.clock;
            }
            Event::TimePasses(seconds) => {
                self.clock += seconds;
                self.play.pass(seconds);
            }
        }
    }

    /// Something of a version is there now.
    fn arrives(&mut self, version: u32, name: &str) {
        self.made.insert(name.to_owned());
        self.arrived = self.arrived.max(version);
    }

    fn give_orders(&mut self) {
        let proceed = if self.ordered { vec!["a".into()] } else { Vec::new() };
        self.play.plan.terms.orders = ManualOverrides { proceed, ..ManualOverrides::default() };
    }

    fn save(&mut self) {
        let critical = self.play.memory.critical;
        self.play.memory.mark_saved(critical);
        self.saved = self.play.memory.journal.clone();
    }

    /// What each act of an edition was called.
    fn texts(&self, edition: Option<&Shared<Edition>>) -> Definitions {
        let Some(version) = edition.map(|edition| version(edition)) else { return Definitions::new() };
        let plan = plan(version, self.soft);
        let acts = plan.steps().iter().filter(|step| step.action().is_some());
        acts.map(|step| (step.id.clone(), step.definition.clone())).collect()
    }

    fn look(&mut self, (a, s, o): (bool, bool, bool)) {
        for (name, there) in [("a", a), ("s", s), ("o", o), ("p", self.for_now)] {
            self.play.sees(name, if there { shown(name, "theirs", 1) } else { gone(1) });
        }
        if self.fails && !a {
            let content = json!({"metadata": {"name": "a"}, "data": {"failed": "yes"}});
            self.play.sees("a", observed(Some(projection("a", "uid-a", 1, content)), 1));
        }
        for name in ["made-x", "made-y", "made-z"] {
            let seen = if self.made.contains(name) { shown(name, OURS, 200) } else { gone(200) };
            self.play.shows(name, &seen);
        }
    }

    /// One step of an engine that has the bug.
    fn decided(&self, a_is_there: bool) -> StepDecision {
        let play = &self.play;
        let mut memory: Memory = play.memory.clone();
        let edition = play.plan.admission.as_ref().map(|admission| admission.edition.clone());
        let known =
            |memory: &mut Memory, id: &str, change: &dyn Fn(&mut linchpin_engine::journal::StepRecord)| {
                if let Some(record) = memory.journal.steps.get_mut(&StepId::new(id)) {
                    change(record);
                }
            };
        match self.bug {
            Some(Bug::TrustsWhatIsNotSaved) => {
                let critical = memory.critical;
                memory.mark_saved(critical);
            }
            Some(Bug::ForgetsThePledge) if !self.made.is_empty() => memory.journal.editions.pledged = None,
            Some(Bug::TakesTheNewest) if memory.journal.editions.pledged.is_some() => {
                memory.journal.editions.pledged = edition.clone();
            }
            Some(Bug::ForgetsWhatIsAdmitted) if memory.journal.completed.is_some() => {
                memory.journal.editions.admitted = None;
            }
            Some(Bug::WritesWhatIsHeld) => {
                let text = play.plan.position(&"y".into()).map(|at| play.plan.steps()[at].definition.clone());
                known(&mut memory, "y", &|record| record.definition.clone_from(text.as_ref().expect("y")));
            }
            Some(Bug::KeepsOldClocks) => {
                known(&mut memory, "s", &|record| {
                    record.clock = Some(linchpin_words::Timestamp::from_second(1))
                });
            }
            Some(Bug::SoftGateNeverGivesWay) => known(&mut memory, "s", &|record| {
                record.clock = Some(play.now);
                if record.reason == Some(Reason::SoftBroken) {
                    (record.proceeded, record.reason, record.state) = (false, None, StepState::Waiting);
                }
            }),
            Some(Bug::LatchIsForgotten) => known(&mut memory, "o", &|record| {
                (record.latch, record.state) = (None, StepState::Waiting);
            }),
            Some(Bug::LatchOutlivesItsEdition) if memory.journal.editions.seen.is_some() => {
                memory.journal.editions.seen.clone_from(&edition);
            }
            Some(Bug::OrdersAreNeverUsedUp) => memory.journal.orders.used.clear(),
            Some(Bug::OrdersWorkOnce) if !self.ever.is_empty() => {
                memory.journal.orders.used.insert("a".into());
            }
            _ => {}
        }
        let goal = Goal::Converge(&play.plan);
        let mut decision = step(memory, goal, &play.world, &play.outcomes, None, play.now);
        match self.bug {
            Some(Bug::AdmitsWithoutGates) => decision.memory.journal.editions.admitted = edition,
            Some(Bug::SavesTooLate) if decision.persist == Persist::BeforeEffects => {
                decision.persist = Persist::Soon;
            }
            Some(Bug::HaltsForGood)
                if play.memory.journal.halt.is_some() && self.gates != (true, true, true) =>
            {
                decision.memory.journal.halt.clone_from(&play.memory.journal.halt);
            }
            Some(Bug::GatesHoldLater) if !a_is_there => decision.effects.clear(),
            Some(Bug::PrunesWhatIsHeld) => decision.effects.extend(self.dropped()),
            _ => {}
        }
        decision
    }

    /// What an engine would delete that looks only at what has left the source: z, beside all that was admitted.
    fn dropped(&self) -> Vec<Effect> {
        let Some(admitted) = &self.play.memory.journal.editions.admitted else { return Vec::new() };
        let without = parts(version(admitted), self.version % 2 == 1, self.soft);
        let edition = without.admission.as_ref().map(|admission| admission.edition.clone());
        let mut memory = self.play.memory.clone();
        (memory.journal.editions.seen, memory.journal.editions.admitted) = (edition.clone(), edition);
        let decision = step(memory, Goal::Converge(&without), &self.play.world, &[], None, self.play.now);
        decision.effects.into_iter().filter(|effect| matches!(effect.verb, Verb::Delete { .. })).collect()
    }

    /// Makes a step and says which law it breaks.
    pub(super) fn step(&mut self) -> Result<(), String> {
        let (a, s, o) = self.gates;
        let passes = a || self.unused;
        self.look(self.gates);
        let before = self.play.memory.journal.editions.admitted.clone();
        let edition = self.play.plan.admission.as_ref().map(|admission| admission.edition.clone());
        let same = |one: &Option<Shared<Edition>>| {
            one.as_ref().map(|one| &one.id) == edition.as_ref().map(|edition| &edition.id)
        };
        let decision = self.decided(a);
        let steps = |decision: &StepDecision| -> Vec<(String, bool)> {
            let name = |effect: &Effect| {
                (effect.ticket.step.to_string(), matches!(effect.verb, Verb::Delete { .. }))
            };
            decision.effects.iter().map(name).collect()
        };
        if same(&before) {
            for gates in [(true, true, true), (false, false, false)] {
                self.look(gates);
                if steps(&self.decided(gates.0)) != steps(&decision) {
                    return Err("A3: a gate makes a difference after the admission".to_owned());
                }
            }
            self.look(self.gates);
        }
        let journal = &decision.memory.journal;
        let admitted = journal.editions.admitted.clone();
        let number = admitted.as_ref().map_or(0, |admitted| version(admitted));
        if !self.made.is_empty() && number < self.arrived {
            return Err("A2: what was admitted and has arrived is not admitted after a crash".to_owned());
        }
        // Nothing but what is written tells of an admission that was not saved; without it, it is admitted once more.
        let recalled = before.is_none() && !self.made.is_empty() && self.ever.contains(&number);
        if admitted != before && !recalled {
            if !same(&admitted) {
                return Err("A2: what is admitted was taken back".to_owned());
            }
            let changes = !same(&before);
            if changes && !(passes && (o || self.was_met)) {
                return Err("A1: admitted while a gate did not hold".to_owned());
            }
            if changes && !(self.for_now || self.met_for == self.version) {
                return Err("L2: admitted on what was met for another edition".to_owned());
            }
            if changes && self.soft && !s && self.clock - self.first_seen < PATIENCE {
                return Err("A6: a clock was older than the edition".to_owned());
            }
        }
        if admitted != before && !recalled && self.ordered {
            self.unused = false;
        }
        self.ever.extend((number > 0).then_some(number));
        let halts = journal.halt.is_some();
        let is_passed = journal.steps.get(&"a".into()).is_some_and(|record| record.proceeded);
        if halts != (self.fails && !a && !same(&admitted) && !is_passed) {
            return Err(format!(
                "A7: a gate {} and it {}",
                if self.fails { "has failed" } else { "has not failed" },
                if halts { "halts" } else { "does not halt" }
            ));
        }
        // What a process finds that comes after this one, once something of this has arrived.
        let left = match decision.persist {
            Persist::BeforeEffects => &journal.editions,
            _ => &self.saved.editions,
        };
        let lasts = same(&left.admitted) || left.admitted.is_none() && same(&left.pledged);
        let texts = self.texts(before.as_ref());
        for effect in &decision.effects {
            let id = &effect.ticket.step;
            if matches!(effect.verb, Verb::Delete { .. }) {
                if !same(&admitted) {
                    return Err("A5: something is pruned that is still admitted".to_owned());
                }
                continue;
            }
            let position = self.play.plan.position(id).expect("a step of the plan");
            let text = &self.play.plan.steps()[position].definition;
            if !same(&admitted) && texts.get(id) != Some(text) {
                let law = if texts.contains_key(id) { "A4: a changed object" } else { "A1: something new" };
                return Err(format!("{law} is written while it is held"));
            }
            if same(&admitted) && !lasts {
                return Err("A1: it is not saved before the first effect".to_owned());
            }
            self.written.insert((id.to_string(), text.clone()));
        }
        self.was_met |= o;
        if self.for_now {
            self.met_for = self.version;
        }
        let met = self.was_met && self.met_for == self.version;
        if a && (s || !self.soft) && met && journal.halt.is_none() && !same(&admitted) {
            return Err("L1: what was met once and for all holds again".to_owned());
        }
        if self.ordered && self.unused && (s || !self.soft) && met && !same(&admitted) {
            return Err("O: an order that was given passes nothing".to_owned());
        }
        self.play.outcomes.clear();
        self.play.memory = decision.memory.clone();
        if decision.persist == Persist::BeforeEffects {
            self.save();
        }
        let newest = if same(&admitted) { self.version } else { number };
        self.out.extend(decision.effects.iter().cloned().map(|effect| (newest, effect)));
        self.play.last = Some(decision);
        Ok(())
    }

    /// The world turns good, but for the soft gate, and stays so.
    pub(super) fn ends_well(&mut self) -> Result<(), String> {
        (self.gates, self.for_now) = ((true, false, true), true);
        for _ in 0..12 {
            self.step()?;
            self.happens(Event::Saves);
            self.happens(Event::Succeeds);
            self.happens(Event::TimePasses(PATIENCE));
        }
        Ok(())
    }
}
