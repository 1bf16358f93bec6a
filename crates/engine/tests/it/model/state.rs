//! The state of everything: the world, the API server's copy of the status, the operator and its driver.

use std::collections::{BTreeMap, BTreeSet};

use linchpin_engine::{
    contract::{
        Done, Effect, EffectTarget, Failure, Force, Outcome, Seen, Stamp, StepId, Ticket, Verb, Want, World,
    },
    journal::{Journal, Memory},
    plan::{ActionBody, Plan, Removal},
    step::{Goal, Persist, StepDecision, step},
};
use linchpin_words::{Timestamp, keys, reference::KindWord};
use serde_json::json;

use super::{bug::Bug, shape::Shape};
use crate::{
    build::{MANAGER, NAMESPACE, UID, kind_answer, name_of, observed, projection},
    play::OURS,
};

/// One object in the world.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Object {
    pub uid: u64,
    pub version: u64,
    /// Whether it carries our creator mark.
    pub ours: bool,
    /// Whether somebody has taken a field of it from us.
    pub taken: bool,
}

/// What the operator has seen of one name: nothing, or the object at some point in time.
pub type Glimpse = Option<(Option<Object>, u64)>;

/// Where an ordered effect is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// Held back until the journal is saved.
    Held,
    /// On its way: it may still happen even if we crash.
    Sent,
}

/// How often a command ran, and how that ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Ran {
    /// Runs by token.
    pub by_token: BTreeMap<String, u8>,
    /// Runs by the text they were ordered from.
    pub by_definition: BTreeMap<String, u8>,
    /// The text that each token was ordered from.
    pub ordered_from: BTreeMap<String, String>,
    /// The texts whose good end was answered, then taken in by the operator, then saved in the status.
    pub answered: BTreeSet<String>,
    pub taken_in: BTreeSet<String>,
    pub saved: BTreeSet<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    pub generation: i64,
    pub now: Timestamp,
    /// The world: objects by name.
    pub objects: BTreeMap<String, Object>,
    /// The world's clock of changes.
    pub version: u64,
    /// Commands that ran.
    pub ran: Ran,
    /// What the operator's cache shows.
    pub seen: BTreeMap<String, Glimpse>,
    /// The journal in the status, as the API server has it.
    pub status: Option<Journal>,
    /// The operator's memory; none while it is down.
    pub memory: Option<Memory>,
    /// Effects that were ordered and not carried out.
    pub effects: BTreeMap<Ticket, (Effect, Stage)>,
    /// Requests of a process that died: each may still arrive, once.
    pub orphans: Vec<Effect>,
    /// The versions of our own writes that we were told of, by name.
    pub told: BTreeMap<String, u64>,
    /// The incarnations that deletions of the plan have deleted, by step.
    pub deleted: BTreeMap<StepId, BTreeSet<u64>>,
    /// What we have ever made, by name.
    pub made: BTreeSet<String>,
    /// Answers that were not taken in yet.
    pub outcomes: Vec<Outcome>,
    /// Whether the decision asked for the journal to be saved before its effects.
    pub save_first: bool,
    /// The count of critical changes that the last decision's journal holds.
    pub critical: u64,
    /// Whether the spec is invalid.
    pub invalid: bool,
    pub deleting: bool,
    pub released: bool,
    /// A request of a dead process arrived after the object was asked to go: nobody can call such a request back.
    pub haunted: bool,
    /// What may still go wrong.
    pub faults: u8,
    /// How often the world may still change by itself.
    pub flips: u8,
    pub ticks: u8,
    pub slips: u8,
}

/// Longer than every delay of the engine: after one tick everything is due.
pub const TICK: std::time::Duration = std::time::Duration::from_secs(3600);

impl State {
    pub fn first(shape: &Shape) -> Self {
        let old = Object { uid: 1, version: 1, ours: false, taken: false };
        Self {
            generation: 1,
            now: Timestamp::from_second(0),
            objects: doomed_names(&shape.first).into_iter().map(|name| (name, old.clone())).collect(),
            version: 1,
            ran: Ran::default(),
            seen: BTreeMap::new(),
            status: None,
            memory: None,
            effects: BTreeMap::new(),
            orphans: Vec::new(),
            outcomes: Vec::new(),
            told: BTreeMap::new(),
            deleted: BTreeMap::new(),
            made: BTreeSet::new(),
            save_first: false,
            critical: 0,
            invalid: false,
            deleting: false,
            released: false,
            haunted: false,
            faults: shape.faults,
            flips: 2,
            ticks: shape.ticks,
            slips: shape.slips,
        }
    }

    pub fn plan<'a>(&self, shape: &'a Shape) -> &'a Plan {
        match (&shape.second, self.generation) {
            (Some(second), 2) => second,
            _ => &shape.first,
        }
    }

    /// The world as the cache shows it, for these wants.
    pub fn view(&self, wants: &BTreeSet<Want>) -> World {
        wants
            .iter()
            .filter_map(|want| {
                if let Some(kind) = kind_answer(want) {
                    return Some((want.clone(), kind));
                }
                let name = name_of(want)?;
                let (object, as_of) = self.seen.get(name)?.as_ref()?;
                Some((want.clone(), show(name, object.as_ref(), *as_of)))
            })
            .collect()
    }

    pub fn goal<'a>(&self, shape: &'a Shape) -> Goal<'a> {
        if self.deleting {
            Goal::Teardown { authority: &shape.first.terms.authority, removal: Removal::Delete, hurry: false }
        } else if self.invalid {
            Goal::Invalid(&shape.invalid)
        } else {
            Goal::Converge(self.plan(shape))
        }
    }

    /// One step of the operator. Returns the decision for the rules to look at.
    pub fn step(&mut self, shape: &Shape, bug: Option<Bug>) -> Option<StepDecision> {
        let memory = self.memory.take()?;
        let outcomes = std::mem::take(&mut self.outcomes);
        self.ran.taken_in.append(&mut self.ran.answered);
        // What is asked for the first time is answered at once: discovery is not what is explored here.
        let decision = loop {
            let mut world = self.view(&shape.asked.borrow());
            let (mut memory, mut outcomes) = (memory.clone(), outcomes.clone());
            if let Some(bug) = bug {
                bug.before(&mut memory, &mut world, &mut outcomes, self);
            }
            let mut decision = step(memory, self.goal(shape), &world, &outcomes, None, self.now);
            let before = shape.asked.borrow().len();
            shape.asked.borrow_mut().extend(decision.wants.iter().cloned());
            if shape.asked.borrow().len() == before {
                if let Some(bug) = bug {
                    bug.after(&mut decision);
                }
                break decision;
            }
        };
        for effect in &decision.effects {
            if let Verb::Exec(order) = &effect.verb {
                let definition = shape_definition(self.plan(shape), &effect.ticket.step);
                self.ran.ordered_from.insert(order.token.clone(), definition);
            }
            let stage = if decision.persist == Persist::BeforeEffects { Stage::Held } else { Stage::Sent };
            self.effects.insert(effect.ticket.clone(), (effect.clone(), stage));
        }
        self.save_first = decision.persist == Persist::BeforeEffects || self.save_first && self.any_held();
        self.critical = decision.memory.critical;
        self.released |= self.deleting && decision.release;
        self.memory = Some(decision.memory.clone());
        Some(decision)
    }

    pub fn any_held(&self) -> bool {
        self.effects.values().any(|(_, stage)| *stage == Stage::Held)
    }

    /// The driver saves the journal.
    pub fn save(&mut self) {
        if let Some(memory) = &mut self.memory {
            self.status = Some(memory.journal.clone());
            self.ran.saved.append(&mut self.ran.taken_in);
            memory.mark_saved(self.critical);
            for (_, stage) in self.effects.values_mut() {
                *stage = Stage::Sent;
            }
            self.save_first = false;
        }
    }

    /// The spec becomes invalid: what has not been started is not.
    pub fn slip(&mut self) {
        self.invalid = true;
        self.refuse_held();
    }

    /// The journal could not be saved, or the plan is gone: what relied on it is not started.
    pub fn refuse_held(&mut self) {
        let held: Vec<Ticket> = self
            .effects
            .iter()
            .filter(|(_, (_, stage))| *stage == Stage::Held)
            .map(|(ticket, _)| ticket.clone())
            .collect();
        for ticket in held {
            self.effects.remove(&ticket);
            self.answer(ticket, Err(Failure::NotStarted));
        }
        self.save_first = false;
    }

    fn answer(&mut self, ticket: Ticket, result: Result<Done, Failure>) {
        self.outcomes.push(Outcome { ticket, at: self.now, result });
        self.outcomes.sort_by(|one, other| one.ticket.cmp(&other.ticket));
    }

    /// A request arrives: the world changes.
    fn arrive(&mut self, effect: &Effect) -> Result<Done, Failure> {
        match &effect.verb {
            Verb::Exec(order) => {
                *self.ran.by_token.entry(order.token.clone()).or_default() += 1;
                let definition = self.ran.ordered_from.get(&order.token).cloned().unwrap_or_default();
                *self.ran.by_definition.entry(definition).or_default() += 1;
                Ok(Done { exit: Some(0), ..Done::default() })
            }
            Verb::Apply { body, creator, force, .. } => {
                let name = body["metadata"]["name"].as_str().unwrap_or_default().to_owned();
                let known = self.objects.get(&name).cloned();
                if known.as_ref().is_some_and(|object| object.taken && *force == Force::Never) {
                    return Err(Failure::FieldConflict("somebody holds a field".to_owned()));
                }
                self.version += 1;
                let version = self.version;
                self.made.insert(name.clone());
                let object = self.objects.entry(name.clone()).or_insert(Object {
                    uid: version,
                    version,
                    ours: creator == UID,
                    taken: false,
                });
                object.version = version;
                object.taken = false;
                let fingerprint = OURS.to_owned();
                let stamp = Stamp { uid: object.uid.to_string(), generation: 1, version, fingerprint };
                let created = known.is_none() || object.ours;
                Ok(Done { target: Some(target(&name)), created, stamp: Some(stamp), ..Done::default() })
            }
            Verb::Delete { target, creator: Some(_), .. }
                if self.objects.get(&target.name).is_some_and(|object| !object.ours) =>
            {
                Err(Failure::NotOurs("not ours".to_owned()))
            }
            Verb::Delete { target, uid, .. } => match self.objects.get(&target.name) {
                Some(object) if uid.as_ref().is_none_or(|uid| *uid == object.uid.to_string()) => {
                    if effect.ticket.run != 0 {
                        self.deleted.entry(effect.ticket.step.clone()).or_default().insert(object.uid);
                    }
                    self.version += 1;
                    self.objects.remove(&target.name);
                    Ok(Done { gone: true, ..Done::default() })
                }
                Some(_) => Err(Failure::Gone("another uid".to_owned())),
                None => Err(Failure::Gone("not found".to_owned())),
            },
            _ => Ok(Done::default()),
        }
    }

    /// A sent request is carried out; its answer may be lost on the way back.
    pub fn carry_out(&mut self, ticket: &Ticket, answer_lost: bool) {
        let Some((effect, _)) = self.effects.remove(ticket) else { return };
        let result = self.arrive(&effect);
        if let (Ok(Done { target: Some(target), stamp: Some(stamp), .. }), false) = (&result, answer_lost) {
            self.told.insert(target.name.clone(), stamp.version);
        }
        if let (Verb::Exec(order), false) = (&effect.verb, answer_lost) {
            self.ran.answered.extend(self.ran.ordered_from.get(&order.token).cloned());
        }
        let result = if answer_lost { Err(Failure::Unknowable("no answer".to_owned())) } else { result };
        self.answer(ticket.clone(), result);
    }

    /// A sent request never arrives. For a command the driver cannot tell.
    pub fn drop_request(&mut self, ticket: &Ticket) {
        let Some((effect, _)) = self.effects.remove(ticket) else { return };
        let failure = match effect.verb {
            Verb::Exec(_) => Failure::Unknowable("no answer".to_owned()),
            _ => Failure::Transient("connection lost".to_owned()),
        };
        self.answer(ticket.clone(), Err(failure));
    }

    /// The server refuses a request.
    pub fn refuse(&mut self, ticket: &Ticket) {
        if self.effects.remove(ticket).is_some() {
            self.answer(ticket.clone(), Err(Failure::Invalid("refused".to_owned())));
        }
    }

    pub fn crash(&mut self) {
        if self.status.as_ref() == self.memory.as_ref().map(|memory| &memory.journal) {
            // There was nothing left to save.
            self.ran.saved.append(&mut self.ran.taken_in);
        }
        self.memory = None;
        self.outcomes.clear();
        self.told.clear();
        self.ran.answered.clear();
        self.ran.taken_in.clear();
        self.save_first = false;
        self.seen.clear();
        let effects = std::mem::take(&mut self.effects);
        self.orphans.extend(
            effects.into_values().filter(|(_, stage)| *stage == Stage::Sent).map(|(effect, _)| effect),
        );
    }

    pub fn restart(&mut self) {
        self.memory = Some(match &self.status {
            Some(journal) => Memory::recovered(journal.clone()),
            None => Memory::fresh(UID, self.generation, self.now),
        });
        self.critical = self.memory.as_ref().map_or(0, |memory| memory.critical);
    }

    /// A request of a dead process arrives after all.
    pub fn orphan_arrives(&mut self) {
        if !self.orphans.is_empty() {
            let effect = self.orphans.remove(0);
            self.haunted |= self.deleting || self.generation == 2;
            let _ = self.arrive(&effect);
        }
    }

    /// The cache catches up with one name.
    pub fn observe(&mut self, name: &str) {
        let now = self.objects.get(name).cloned();
        self.seen.insert(name.to_owned(), Some((now, self.version)));
    }

    /// Whether the cache shows a name as it is.
    pub fn is_current(&self, name: &str) -> bool {
        match self.seen.get(name) {
            Some(Some((object, as_of))) => {
                object.as_ref() == self.objects.get(name)
                    && (object.is_some() || *as_of == self.version || !self.objects.contains_key(name))
            }
            _ => false,
        }
    }

    /// Somebody else makes or removes an object.
    pub fn flip(&mut self, name: &str) {
        self.version += 1;
        if self.objects.remove(name).is_none() {
            let version = self.version;
            self.objects.insert(name.to_owned(), Object { uid: version, version, ours: false, taken: false });
        }
    }

    /// Somebody takes a field of an object from us.
    pub fn take(&mut self, name: &str) {
        self.version += 1;
        let version = self.version;
        if let Some(object) = self.objects.get_mut(name) {
            object.version = version;
            object.taken = true;
        }
    }

    /// Names of what the plan keeps as it was written.
    pub fn kept_names(&self, shape: &Shape) -> Vec<String> {
        let acts = self.plan(shape).steps().iter().filter_map(|step| step.action()?.drift());
        acts.flat_map(|drift| &drift.objects).filter_map(name_of).map(str::to_owned).collect()
    }

    /// Names that the plan waits for and nobody but the world makes.
    pub fn foreign_names(&self, shape: &Shape) -> Vec<String> {
        self.plan(shape)
            .steps()
            .iter()
            .filter_map(|step| step.requirement())
            .filter_map(|requirement| name_of(&requirement.want))
            .filter(|name| !name.starts_with("made-"))
            .map(str::to_owned)
            .collect()
    }

    /// All names that the cache may show.
    pub fn names(&self, shape: &Shape) -> BTreeSet<String> {
        let mut names: BTreeSet<String> = self.foreign_names(shape).into_iter().collect();
        names.extend(
            self.plan(shape)
                .steps()
                .iter()
                .filter_map(|step| name_of(&step.requirement()?.want).map(str::to_owned)),
        );
        names.extend(self.kept_names(shape));
        names.extend(doomed_names(self.plan(shape)));
        if self.deleting {
            names.extend(["made-x".to_owned(), "made-y".to_owned()]);
        }
        names
    }
}

/// Names of what the plan deletes.
pub fn doomed_names(plan: &Plan) -> Vec<String> {
    let actions = plan.steps().iter().filter_map(|step| step.action());
    let bodies = actions.map(|action| &action.body);
    bodies
        .filter_map(|body| {
            if let ActionBody::Delete { target, .. } = body { Some(target.name.clone()) } else { None }
        })
        .collect()
}

fn target(name: &str) -> EffectTarget {
    EffectTarget {
        kind: KindWord::from_manifest(Some("v1"), "ConfigMap"),
        namespace: Some(NAMESPACE.to_owned()),
        name: name.to_owned(),
    }
}

fn show(name: &str, object: Option<&Object>, as_of: u64) -> Seen {
    let item = object.map(|object| {
        let creator = if object.ours { UID } else { "somebody" };
        let held = if object.taken { "less" } else { OURS };
        let content = json!({"metadata": {"name": name, "annotations": {keys::CREATED_BY: creator},
            "managedFields": {MANAGER: held}}});
        projection(name, &object.uid.to_string(), object.version, content)
    });
    observed(item, as_of)
}

pub fn shape_definition(plan: &Plan, step: &StepId) -> String {
    plan.position(step).map_or_else(|| step.to_string(), |position| plan.steps()[position].definition.clone())
}
