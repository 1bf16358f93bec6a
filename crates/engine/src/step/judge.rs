//! Judging: from what was observed to facts.
//!
//! Every judgement is of the object's own latest generation and of no view older than our own writes. What is not
//! known stays unknown: it satisfies nothing and disproves nothing. Related objects that a verdict asks for become
//! wants like any other.

use std::{
    borrow::Cow,
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
};

use linchpin_lang::answer::Answer as Told;
use linchpin_words::{GroupKind, ObjectRef, Reason, reference::KindWord};
use serde_json::{Value, json};

use super::{
    data::dependency_data,
    fact::{Answer, Fact, Holds},
};
use crate::{
    contract::{
        Observed, Outcome, Projection, Question, ReadSet, Scope, Seen, Selector, Served, Stamp, Target, Via,
        Want, World,
    },
    journal::{Awaits, Journal, Trigger},
    plan::{
        Action, Clauses, Expect, Guard, GuardSubject, Plan, Profile, Requirement, Rerun, Step, StepKind, Test,
    },
    readiness::{self, Judgement, Need, Options, Related, Select, State, Tri, Wanted},
};

/// What was found of one requirement, for status, messages and templates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct View {
    /// The word that status shows: `NotFound`, `NotReady`, `Ready`, `Completed`, `Failed`, `Unknown`, `Error`.
    pub state: &'static str,
    /// Why, as one word.
    pub reason: String,
    /// Why, in words for a person.
    pub message: String,
    /// The objects it is about.
    pub objects: Vec<ObjectRef>,
    /// Whether all parts of the state have settled, so that a guard may decide on it.
    pub settled: bool,
}

/// Facts, views and further wants.
pub(super) struct Judged {
    pub facts: Vec<Fact>,
    pub views: Vec<View>,
    pub wants: BTreeSet<Want>,
}

/// The world as one object may see it: nothing older than its own writes.
pub(super) struct Sight<'a> {
    pub world: &'a World,
    floors: BTreeMap<PlaceKey, Stamp>,
    asked: RefCell<BTreeSet<Want>>,
}

/// Group, lower-case kind, namespace, name.
type PlaceKey = (String, String, Option<String>, String);

fn place(target: &Target) -> PlaceKey {
    let group = target.kind.group.clone().unwrap_or_default();
    (
        group,
        target.kind.word.to_ascii_lowercase(),
        target.namespace.clone(),
        target.name.clone(),
    )
}

impl<'a> Sight<'a> {
    /// The world above the writes that the journal knows of and those that have just come back.
    pub(super) fn new(world: &'a World, journal: &Journal, outcomes: &[Outcome]) -> Self {
        let known = journal
            .steps
            .values()
            .flat_map(|record| &record.wrote)
            .map(|wrote| (&wrote.target, &wrote.stamp));
        let fresh = outcomes.iter().filter_map(|outcome| {
            let done = outcome.result.as_ref().ok()?;
            Some((done.target.as_ref()?, done.stamp.as_ref()?))
        });
        let mut floors: BTreeMap<PlaceKey, Stamp> = BTreeMap::new();
        for (target, stamp) in known.chain(fresh) {
            let floor = floors.entry(place(target)).or_insert_with(|| stamp.clone());
            if stamp.version > floor.version {
                *floor = stamp.clone();
            }
        }
        Self {
            world,
            floors,
            asked: RefCell::new(BTreeSet::new()),
        }
    }

    /// Everything that was asked for so far.
    pub(super) fn asked(&self) -> BTreeSet<Want> {
        self.asked.borrow().clone()
    }

    /// The answer to a want, which is thereby asked for.
    pub(super) fn ask(&self, want: Want) -> Option<&'a Seen> {
        let seen = self.world.get(&want);
        self.asked.borrow_mut().insert(want);
        seen
    }

    /// The answer to a want that the plan holds.
    fn look(&self, want: &Want) -> Option<&'a Seen> {
        self.world.get(want)
    }

    /// Whether a view is recent enough to show our own last write to what it is about.
    fn shows_our_writes(&self, want: &Want, observed: &Observed) -> bool {
        if self.floors.is_empty() {
            return true;
        }
        let Question::Objects { kind, scope, .. } = want.question() else {
            return true;
        };
        let lower = kind.kind.to_ascii_lowercase();
        match scope {
            Scope::Name { namespace, name } => {
                let key = (kind.group.clone(), lower, namespace.clone(), name.clone());
                let Some(floor) = self.floors.get(&key) else {
                    return true;
                };
                match observed.items.first() {
                    Some(item) if item.uid == floor.uid => item.version >= floor.version,
                    _ => observed.as_of >= floor.version,
                }
            }
            Scope::Labels { namespace, .. } => self.floors.iter().all(|((group, word, place, _), floor)| {
                *group != kind.group
                    || *word != lower
                    || place != namespace
                    || observed.as_of >= floor.version
            }),
        }
    }

    /// What a kind word is, asking for it.
    pub(super) fn resolve(&self, via: &Via, word: &KindWord) -> Option<&'a Served> {
        match self.ask(Want::new(Question::Kind {
            via: via.clone(),
            word: word.clone(),
        })) {
            Some(Seen::Kind(served)) => Some(served),
            _ => None,
        }
    }
}

/// Judges every step of a plan.
pub(super) fn judge(plan: &Plan, journal: &Journal, sight: &Sight<'_>) -> Judged {
    let mut facts = Vec::with_capacity(plan.steps().len());
    let mut views = Vec::with_capacity(plan.steps().len());
    let mut wants: BTreeSet<Want> = BTreeSet::new();
    for step in plan.steps() {
        let (fact, view) = match &step.kind {
            StepKind::Require(requirement) => {
                wants.insert(requirement.want.clone());
                let latch = journal
                    .steps
                    .get(&step.id)
                    .and_then(|record| record.latch.as_deref());
                judge_requirement(requirement, requirement.test.state.as_ref(), latch, sight)
            }
            StepKind::Act(_) => (Fact::default(), View::default()),
        };
        facts.push(fact);
        views.push(view);
    }
    for (position, step) in plan.steps().iter().enumerate() {
        if let Some(action) = step.action() {
            let (fact, view) = judge_action(plan, journal, step, action, &views, sight);
            facts[position] = fact;
            views[position] = view;
        }
    }
    wants.extend(plan.inputs.iter().map(|input| input.want.clone()));
    wants.extend(sight.asked());
    Judged { facts, views, wants }
}

fn unknown(passing: bool, live: bool) -> Fact {
    Fact {
        holds: Holds::Unknown { passing },
        live,
        ..Fact::default()
    }
}

fn view(state: &'static str, reason: impl Into<String>, message: impl Into<String>, settled: bool) -> View {
    View {
        state,
        reason: reason.into(),
        message: message.into(),
        objects: Vec::new(),
        settled,
    }
}

/// Judges a requirement against a state: its own, or the one that a guard asks about.
fn judge_requirement(
    requirement: &Requirement,
    wanted: Option<&Wanted>,
    latch: Option<&str>,
    sight: &Sight<'_>,
) -> (Fact, View) {
    let objects: Vec<ObjectRef> = requirement.want.object_ref().into_iter().collect();
    let (fact, found) = match sight.look(&requirement.want) {
        None => (
            unknown(true, false),
            view("Unknown", Reason::Unsynced.as_str(), "not looked at yet", false),
        ),
        Some(Seen::Unknown(why)) => {
            let found = view("Unknown", why.reason.as_str(), why.message.clone(), false);
            (unknown(why.is_passing(), !why.is_passing()), found)
        }
        Some(Seen::Kind(served)) => kind_in_the_way(served),
        Some(Seen::Version(version)) => judge_version(&requirement.test, version),
        Some(Seen::Right(_)) => (
            unknown(false, true),
            view("Error", Reason::Invalid.as_str(), "not an object", true),
        ),
        Some(Seen::Objects(observed)) if !sight.shows_our_writes(&requirement.want, observed) => {
            let why = Reason::OwnWriteNotSeen;
            (
                unknown(true, false),
                view("Unknown", why.as_str(), why.meaning(), false),
            )
        }
        Some(Seen::Objects(observed)) => judge_objects(requirement, wanted, latch, observed, sight),
    };
    (
        fact,
        View {
            objects: if found.objects.is_empty() {
                objects
            } else {
                found.objects
            },
            ..found
        },
    )
}

/// A requirement whose question is still the kind itself.
fn kind_in_the_way(served: &Served) -> (Fact, View) {
    match served {
        // Known now: the door compiles again with it, and asks for the object.
        Served::Yes { .. } => (
            unknown(true, false),
            view("Unknown", Reason::Unsynced.as_str(), "not looked at yet", false),
        ),
        Served::No => {
            let why = Reason::KindNotServed;
            (
                unknown(false, true),
                view("Unknown", why.as_str(), why.meaning(), false),
            )
        }
        Served::Several(kinds) => {
            let names: Vec<String> = kinds.iter().map(|kind| kind.group_kind().to_string()).collect();
            let message = format!("the word names several kinds: {}", names.join(", "));
            (
                unknown(false, true),
                view("Error", Reason::AmbiguousKind.as_str(), message, false),
            )
        }
    }
}

fn judge_version(test: &Test, version: &Value) -> (Fact, View) {
    let met = Fact {
        holds: Holds::Met,
        live: true,
        ..Fact::default()
    };
    match clauses_hold(&test.conditions, test.cel.as_deref(), version) {
        None => (
            met,
            view("Ready", Reason::Met.as_str(), "the server has this version", true),
        ),
        Some(why) => {
            let fact = Fact {
                holds: Holds::Unmet,
                ..met
            };
            (
                fact,
                view("NotReady", Reason::ConditionNotMet.as_str(), why, true),
            )
        }
    }
}

fn judge_objects(
    requirement: &Requirement,
    wanted: Option<&Wanted>,
    latch: Option<&str>,
    observed: &Observed,
    sight: &Sight<'_>,
) -> (Fact, View) {
    let Question::Objects { via, kind, scope, .. } = requirement.want.question() else {
        return (unknown(false, true), View::default());
    };
    let kind = kind.group_kind();
    let test = &requirement.test;
    let has_clauses = test.cel.is_some() || !test.conditions.is_empty();
    let default = if has_clauses && test.min_replicas.is_none() {
        Wanted::Exists
    } else {
        Wanted::omitted(&kind)
    };
    let wanted = wanted.unwrap_or(&default);
    match scope {
        Scope::Name { .. } => {
            let item = observed.items.first().map(AsRef::as_ref);
            let one = judge_one(test, wanted, &kind, item, via, sight);
            let mut fact = Fact {
                holds: one.holds(),
                live: observed.live,
                progress: one.verdict.progress,
                ..Fact::default()
            };
            if *wanted == Wanted::Completed {
                match (item, latch) {
                    (Some(item), _) if one.met => fact.latch = Some(item.uid.clone()),
                    (None, Some(latch)) => {
                        fact.holds = Holds::Met;
                        fact.latch = Some(latch.to_owned());
                    }
                    _ => {}
                }
            }
            let met = one.met || fact.holds == Holds::Met;
            let reason = if met {
                Cow::Borrowed("Met")
            } else {
                one.verdict.reason.clone()
            };
            (
                fact,
                view(one.verdict.state.word(), reason, one.verdict.message, one.settled),
            )
        }
        Scope::Labels { .. } => judge_many(test, wanted, &kind, observed, via, sight),
    }
}

/// The judgement of one object, conditions included.
fn judge_one(
    test: &Test,
    wanted: &Wanted,
    kind: &GroupKind,
    item: Option<&Projection>,
    via: &Via,
    sight: &Sight<'_>,
) -> Judgement {
    let taught = test.profile.as_deref().map(Taught);
    let options = Options {
        min_replicas: test.min_replicas,
        status_declared: test.reports_status,
        profile: taught.as_ref().map(|taught| taught as &dyn readiness::Profile),
    };
    let neighbours = Neighbours { via, sight };
    if let Some(item) = item.filter(|_| !wanted.is_presence()) {
        for need in readiness::needs(kind, &item.content) {
            sight.ask(need_as_want(via, &need));
        }
    }
    let mut judgement = readiness::judge(
        wanted,
        kind,
        item.map(|item| &item.content),
        &options,
        &neighbours,
    );
    let Some(item) = item else { return judgement };
    if judgement.met
        && *wanted != Wanted::Absent
        && let Some(why) = clauses_hold(&test.conditions, test.cel.as_deref(), &item.content)
    {
        judgement.met = false;
        judgement.verdict.message = why;
        judgement.verdict.reason = Cow::Borrowed("ConditionNotMet");
        if judgement.verdict.state.is_ready() {
            judgement.verdict.state = State::InProgress;
        }
    }
    judgement
}

impl Judgement {
    fn holds(&self) -> Holds {
        match (self.met, self.failed) {
            (true, _) => Holds::Met,
            (false, true) => Holds::Failed,
            (false, false) => Holds::Unmet,
        }
    }
}

fn judge_many(
    test: &Test,
    wanted: &Wanted,
    kind: &GroupKind,
    observed: &Observed,
    via: &Via,
    sight: &Sight<'_>,
) -> (Fact, View) {
    let items: Vec<&Projection> = observed
        .items
        .iter()
        .map(AsRef::as_ref)
        .filter(|item| !item.deleting)
        .collect();
    let judged: Vec<Judgement> = items
        .iter()
        .map(|item| judge_one(test, wanted, kind, Some(item), via, sight))
        .collect();
    let met = judged.iter().filter(|one| one.met).count() as u64;
    let matching = items.len() as u64;
    let expect = test.expect.unwrap_or(Expect::AtLeast(1));
    let holds = match (expect, wanted) {
        (_, Wanted::Absent) => observed.items.is_empty(),
        (Expect::AtLeast(count), _) => met >= count,
        (Expect::Exactly(count), _) => met == count && matching == count,
        (Expect::All, _) => matching > 0 && met == matching,
    };
    let failed = judged.iter().find(|one| one.failed);
    let hopeless = failed.is_some() && matches!(expect, Expect::All);
    let fact = Fact {
        holds: if holds {
            Holds::Met
        } else if hopeless {
            Holds::Failed
        } else {
            Holds::Unmet
        },
        live: observed.live,
        progress: judged
            .iter()
            .fold(matching, |mark, one| mark.rotate_left(7) ^ one.verdict.progress),
        ..Fact::default()
    };
    let expected = match expect {
        Expect::AtLeast(count) => format!("at least {count}"),
        Expect::Exactly(count) => format!("exactly {count}"),
        Expect::All => "all".to_owned(),
    };
    let worst = judged.iter().zip(&items).find(|(one, _)| !one.met);
    let detail = worst.map_or(String::new(), |(one, item)| {
        format!("; {}: {}", item.name, one.verdict.message)
    });
    let message = format!("{met} of {matching} matching objects are {wanted}, {expected} wanted{detail}");
    let state = match fact.holds {
        Holds::Met => "Ready",
        Holds::Failed => "Failed",
        _ if matching == 0 => "NotFound",
        _ => "NotReady",
    };
    let reason = if holds { Reason::Met } else { Reason::CountNotMet };
    let settled = judged.iter().all(|one| one.settled);
    let mut found = view(state, reason.as_str(), message, settled);
    found.objects = items.iter().map(|item| item.object_ref()).collect();
    (fact, found)
}

/// What does not hold, if anything.
fn clauses_hold(
    conditions: &[std::sync::Arc<linchpin_lang::compare::Condition>],
    cel: Option<&linchpin_lang::cel::Expression>,
    object: &Value,
) -> Option<String> {
    for condition in conditions {
        match condition.evaluate(object) {
            Ok(Told::True) => {}
            Ok(Told::False) => {
                return Some(format!(
                    "{} {} does not hold",
                    condition.path().source(),
                    condition.operator().name()
                ));
            }
            Ok(Told::NotYet(why)) => return Some(why.to_string()),
            Err(error) => return Some(error.to_string()),
        }
    }
    match cel?.evaluate(&BTreeMap::from([("self", object)])) {
        Ok(Told::True) => None,
        Ok(Told::False) => Some(format!("{} is false", cel?.source())),
        Ok(Told::NotYet(why)) => Some(why.to_string()),
        Err(error) => Some(error.to_string()),
    }
}

/// A profile of the cluster's, as the readiness table asks it.
struct Taught<'a>(&'a Profile);

impl Taught<'_> {
    fn tell(clauses: &Clauses, object: &Value) -> Tri {
        match clauses_hold(&clauses.conditions, clauses.cel.as_deref(), object) {
            None => Tri::True,
            Some(_) => Tri::False,
        }
    }
}

impl readiness::Profile for Taught<'_> {
    fn ready(&self, object: &Value) -> Tri {
        Self::tell(&self.0.ready_when, object)
    }

    fn failed(&self, object: &Value) -> Tri {
        self.0
            .failed_when
            .as_ref()
            .map_or(Tri::False, |clauses| Self::tell(clauses, object))
    }
}

/// Related objects, read as the same identity as the object itself.
struct Neighbours<'a> {
    via: &'a Via,
    sight: &'a Sight<'a>,
}

fn need_as_want(via: &Via, need: &Need) -> Want {
    match need {
        Need::Served { gvk } => {
            let word = KindWord::from_manifest(Some(&gvk.api_version()), &gvk.kind);
            Want::new(Question::Kind {
                via: via.clone(),
                word,
            })
        }
        Need::Objects {
            gvk,
            namespace,
            select,
        } => {
            let scope = match select {
                Select::Name(name) => Scope::Name {
                    namespace: namespace.clone(),
                    name: name.clone(),
                },
                Select::Labels(labels) => Scope::Labels {
                    namespace: namespace.clone(),
                    selector: Selector::labels(labels),
                },
            };
            let reads = ReadSet::dotted(need.reads().iter().copied());
            Want::new(Question::Objects {
                via: via.clone(),
                kind: gvk.clone(),
                scope,
                reads,
            })
        }
    }
}

impl Related for Neighbours<'_> {
    fn get(&self, need: &Need) -> readiness::Answer<'_> {
        match self.sight.ask(need_as_want(self.via, need)) {
            Some(Seen::Objects(observed)) if observed.items.is_empty() => readiness::Answer::Absent,
            Some(Seen::Objects(observed)) => {
                readiness::Answer::Objects(observed.items.iter().map(|item| &item.content).collect())
            }
            Some(Seen::Kind(served)) => readiness::Answer::Served(matches!(**served, Served::Yes { .. })),
            _ => readiness::Answer::Unknown,
        }
    }
}

fn judge_action(
    plan: &Plan,
    journal: &Journal,
    step: &Step,
    action: &Action,
    views: &[View],
    sight: &Sight<'_>,
) -> (Fact, View) {
    let mut fact = Fact {
        live: true,
        ..Fact::default()
    };
    let mut found = View {
        settled: true,
        ..View::default()
    };
    if let Some(guard) = &step.when {
        fact.guard = judge_guard(plan, guard, views, sight);
    }
    let missing: Vec<String> = action
        .rights
        .iter()
        .filter(|right| {
            let want = Want::new(Question::Right {
                via: action.via.clone(),
                right: (*right).clone(),
            });
            matches!(sight.ask(want), Some(Seen::Right(false)))
        })
        .map(ToString::to_string)
        .collect();
    if !missing.is_empty() {
        fact.supplied = false;
        found.reason = Reason::MissingRights.as_str().to_owned();
        found.message = format!("the ServiceAccount may not {}", missing.join(", "));
    }
    if action.reads_values
        && let Some(input) = plan.inputs.iter().find(|input| !is_supplied(input, sight))
    {
        fact.supplied = false;
        found.reason = Reason::ValueMissing.as_str().to_owned();
        let name = input
            .want
            .object_ref()
            .map_or_else(String::new, |object| object.to_string());
        found.message = format!("valuesFrom: {name} is not there yet");
    }
    if let Some(awaits) = journal
        .steps
        .get(&step.id)
        .and_then(|record| record.awaits.as_ref())
    {
        fact.awaited = judge_awaited(&action.via, awaits, sight);
    }
    if let Rerun::OnReads(events) = &action.rerun {
        for dependency in events.keys() {
            if let Some(trigger) = trigger(plan, action, dependency, views, sight) {
                fact.triggers.insert(dependency.clone(), trigger);
            }
        }
    }
    (fact, found)
}

fn is_supplied(input: &crate::plan::Input, sight: &Sight<'_>) -> bool {
    match sight.look(&input.want) {
        Some(Seen::Objects(observed)) => input.optional || !observed.items.is_empty(),
        _ => false,
    }
}

fn judge_guard(plan: &Plan, guard: &Guard, views: &[View], sight: &Sight<'_>) -> Answer {
    let answer = match &guard.subject {
        GuardSubject::Dependency { step, state } => plan
            .position(step)
            .and_then(|position| plan.steps()[position].requirement())
            .map_or(Answer::Undecided, |requirement| decide(requirement, state, sight)),
        GuardSubject::Expression(expression) => {
            let reads = expression.reads().get("dependencies");
            let mut settled = true;
            let mut dependencies = serde_json::Map::new();
            for (position, step) in plan.steps().iter().enumerate() {
                let Some(requirement) = step.requirement() else {
                    continue;
                };
                let read = reads.is_some_and(|reads| {
                    reads.whole
                        || reads
                            .paths
                            .iter()
                            .any(|path| path.first().is_some_and(|key| requirement.keys.contains(key)))
                });
                if !read {
                    continue;
                }
                settled &= views[position].settled;
                let mut entry =
                    dependency_data(requirement, &views[position], sight.world, &ReadSet::whole());
                if let Some(map) = entry.as_object_mut() {
                    let lower: Vec<(String, Value)> = map
                        .iter()
                        .map(|(key, value)| (key.to_ascii_lowercase(), value.clone()))
                        .collect();
                    map.extend(lower);
                }
                for key in &requirement.keys {
                    dependencies.insert(key.clone(), entry.clone());
                }
            }
            let dependencies = Value::Object(dependencies);
            let values = super::data::values(plan, sight.world);
            let bindings = BTreeMap::from([("dependencies", &dependencies), ("values", &values)]);
            match expression.evaluate(&bindings) {
                Ok(Told::True) => Answer::Yes,
                Ok(Told::False) if settled => Answer::No,
                _ => Answer::Undecided,
            }
        }
    };
    if guard.negate { answer.negated() } else { answer }
}

/// Whether a dependency has a state, as far as that has settled.
fn decide(requirement: &Requirement, state: &Wanted, sight: &Sight<'_>) -> Answer {
    let (fact, found) = judge_requirement(requirement, Some(state), None, sight);
    match fact.holds {
        Holds::Met => Answer::Yes,
        Holds::Failed => Answer::No,
        Holds::Unmet if found.settled => Answer::No,
        Holds::Unmet | Holds::Unknown { .. } => Answer::Undecided,
    }
}

fn judge_awaited(via: &Via, awaits: &Awaits, sight: &Sight<'_>) -> bool {
    let (target, present) = match awaits {
        Awaits::Served(word) => return matches!(sight.resolve(via, word), Some(Served::Yes { .. })),
        Awaits::Present(target) => (target, None),
        Awaits::Absent { target, uid } => (target, Some(uid)),
    };
    let Some(Served::Yes { kind, namespaced, .. }) = sight.resolve(via, &target.kind) else {
        return false;
    };
    let namespace = target.namespace.clone().filter(|_| *namespaced);
    let want = Want::object(
        via.clone(),
        kind.clone(),
        namespace,
        &target.name,
        ReadSet::nothing(),
    );
    match sight.ask(want) {
        Some(Seen::Objects(observed)) => match present {
            None => observed.items.iter().any(|item| !item.deleting),
            Some(uid) => observed.items.iter().all(|item| item.uid != *uid),
        },
        _ => false,
    }
}

/// What actions await, as wants: also what they began to await only just now.
pub(super) fn awaited_wants(plan: &Plan, journal: &Journal, sight: &Sight<'_>) -> BTreeSet<Want> {
    for step in plan.steps() {
        if let Some(action) = step.action()
            && let Some(awaits) = journal
                .steps
                .get(&step.id)
                .and_then(|record| record.awaits.as_ref())
        {
            judge_awaited(&action.via, awaits, sight);
        }
    }
    sight.asked()
}

/// What an action would read of a dependency now; none while that is not known.
fn trigger(
    plan: &Plan,
    action: &Action,
    dependency: &crate::contract::StepId,
    views: &[View],
    sight: &Sight<'_>,
) -> Option<Trigger> {
    let position = plan.position(dependency)?;
    let requirement = plan.steps()[position].requirement()?;
    let Some(Seen::Objects(observed)) = sight.look(&requirement.want) else {
        return None;
    };
    let everything = ReadSet::whole();
    let reads = match &action.reads {
        Some(reads) => reads.get(dependency),
        None => Some(&everything),
    };
    let mut text = views[position].state.to_owned();
    for item in &observed.items {
        if item.kind.group.is_empty() && item.kind.kind == "Secret" {
            text.push_str(&format!("{}@{}", item.uid, item.version));
        } else if let Some(reads) = reads {
            text.push_str(&reads.project(&item.content).to_string());
        }
    }
    let uid = match observed.items.as_slice() {
        [] => None,
        [one] => Some(one.uid.clone()),
        many => Some(json!(many.iter().map(|item| &item.uid).collect::<Vec<_>>()).to_string()),
    };
    Some(Trigger {
        uid,
        hash: fnv(text.as_bytes()),
    })
}

fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
