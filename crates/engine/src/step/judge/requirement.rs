//! Judging requirements: does what was observed satisfy what is asked?

use std::{
    borrow::Cow,
    cell::{Cell, RefCell},
};

use linchpin_words::{Gvk, Reason, Text, probe::Miss, reference::all_built_in, similar};
use serde_json::Value;

use super::{
    RequirementView,
    clauses::{AppliedProfile, ClauseResult, ClauseSet, Failing},
    fresh_world::FreshWorld,
    many::judge_many,
    related::{Neighbours, need_as_want},
};
use crate::{
    contract::{Actor, ClusterRef, Observed, Projection, Question, ReadSet, Scope, Seen, Served, Via, Want},
    plan::{KindRule, LatchScope, Outline, Requirement, Test},
    readiness::{self, Judgement, ReadinessOptions, State, Wanted},
    step::{
        data::version_object,
        fact::{Fact, Holds},
    },
};

/// A requirement, and what the plan says of it once and for all.
#[derive(Clone, Copy)]
pub(super) struct RequirementContext<'a> {
    pub(super) requirement: &'a Requirement,
    pub(super) outline: &'a Outline,
}

/// What an object is judged with.
pub(super) struct JudgeContext<'a> {
    pub(super) kind: &'a KindRule,
    pub(super) via: &'a Via,
    pub(super) fresh_world: &'a FreshWorld<'a>,
}

pub(super) fn unknown(passing: bool, live: bool) -> Fact {
    Fact { holds: Holds::Unknown { passing }, live, ..Fact::default() }
}

pub(super) fn view(
    state: &'static str,
    reason: impl Into<Text>,
    message: impl Into<Text>,
    settled: bool,
) -> RequirementView {
    RequirementView {
        state,
        reason: reason.into(),
        message: message.into(),
        selected: None,
        settled,
        denied: false,
        doomed: None,
    }
}

/// Judges a requirement as the plan asks for it: what follows waits for its gate, readiness for all of it. `latch` is the
/// incarnation that was seen to meet it, `written` the one that our own action wrote last.
pub(super) fn judge_whole(
    subject: &RequirementContext<'_>,
    latch: Option<&str>,
    written: Option<&str>,
    fresh_world: &FreshWorld<'_>,
) -> (Fact, RequirementView) {
    let requirement = subject.requirement;
    // What was seen of an incarnation says nothing about the one that we have made since.
    let latch = latch.filter(|latch| written.is_none_or(|written| written == *latch));
    let (mut fact, found) = judge_requirement(subject, &requirement.test, None, latch, fresh_world);
    if let Some(gate) = &requirement.gate {
        let (gate, _) = judge_requirement(subject, gate, None, latch, fresh_world);
        fact.strictly = Some(fact.holds);
        fact.holds = gate.holds;
    }
    (fact, found)
}

/// Judges a requirement by a test, against its state or the one that a guard asks about.
pub(super) fn judge_requirement(
    subject: &RequirementContext<'_>,
    test: &Test,
    asked: Option<&Wanted>,
    latch: Option<&str>,
    fresh_world: &FreshWorld<'_>,
) -> (Fact, RequirementView) {
    let wanted = asked.or(test.state.as_ref());
    let requirement = subject.requirement;
    match fresh_world.look(&requirement.want) {
        None => {
            (unknown(true, false), view("Unknown", Reason::Unsynced.as_str(), "not looked at yet", false))
        }
        Some(Seen::Unknown(why)) => {
            let elsewhere =
                elsewhere(requirement.want.question()).filter(|_| why.reason == Reason::Forbidden);
            // Who may not look there does not learn what there is.
            let message = match elsewhere {
                Some(namespace) => format!("{}; does namespace {namespace} exist?", why.message),
                None => why.message.clone(),
            };
            let found = view("Unknown", why.reason.as_str(), message, false);
            (unknown(why.is_passing(), !why.is_passing()), found)
        }
        Some(Seen::Kind(served)) if test.served && matches!(**served, Served::Yes { .. }) => {
            let fact = Fact { holds: Holds::Met, live: true, ..Fact::default() };
            (fact, view("Ready", Reason::Met.as_str(), "the cluster serves it", true))
        }
        Some(Seen::Kind(served)) => kind_in_the_way(served, requirement.want.question()),
        Some(Seen::Version(version)) => judge_version(test, version, fresh_world),
        Some(Seen::Probe(answer)) => judge_probe(answer),
        Some(Seen::Right(_) | Seen::Artifact(_)) => {
            (unknown(false, true), view("Error", Reason::Invalid.as_str(), "not an object", true))
        }
        Some(Seen::Objects(observed)) if !fresh_world.shows_our_writes(&requirement.want, observed) => {
            let why = Reason::OwnWriteNotSeen;
            (unknown(true, false), view("Unknown", why.as_str(), why.in_words(), false))
        }
        Some(Seen::Objects(observed)) => {
            let judged = || judge_objects(subject, test, wanted, latch, observed, fresh_world);
            if let Some(held) = &requirement.held {
                let judged = requirement.fails_first.then(judged);
                if let Some(failed) = judged.filter(|(fact, _)| fact.holds == Holds::Failed) {
                    return failed;
                }
                let fact = Fact { holds: Holds::Unmet, live: observed.live, ..Fact::default() };
                return (fact, view("NotReady", held.reason.as_str(), held.message.clone(), false));
            }
            let (fact, mut found) = judged();
            if fact.holds == Holds::Unmet
                && let Some(message) = without_namespace(requirement.want.question(), observed, fresh_world)
            {
                found.message = message.into();
            }
            (fact, found)
        }
    }
}

/// The namespace of what is asked for in this cluster, where it is another one than the subject's own.
fn elsewhere(question: &Question) -> Option<&str> {
    let Question::Objects { via, scope, .. } = question else { return None };
    let (Scope::Name { namespace, .. } | Scope::Labels { namespace, .. }) = scope;
    let Actor::ServiceAccount { namespace: own, .. } = &via.actor else { return None };
    namespace.as_deref().filter(|namespace| namespace != own && via.cluster == ClusterRef::Here)
}

/// That there is nothing because there is no such namespace: reported only to who may look into it.
fn without_namespace(
    question: &Question,
    observed: &Observed,
    fresh_world: &FreshWorld<'_>,
) -> Option<String> {
    let namespace = elsewhere(question).filter(|_| observed.items.is_empty())?;
    let operator = Via { cluster: ClusterRef::Here, actor: Actor::Operator };
    let kind = Gvk::new("", "v1", "Namespace");
    match fresh_world.ask(Want::object(operator, kind, None, namespace, ReadSet::nothing())) {
        Some(Seen::Objects(found)) if found.items.is_empty() => {
            Some(format!("namespace {namespace} does not exist"))
        }
        _ => None,
    }
}

/// A requirement whose question is still the kind itself.
fn kind_in_the_way(served: &Served, question: &Question) -> (Fact, RequirementView) {
    match served {
        // Known now: the door compiles again with it, and asks for the object.
        Served::Yes { .. } => {
            (unknown(true, false), view("Unknown", Reason::Unsynced.as_str(), "not looked at yet", false))
        }
        Served::No => {
            let why = Reason::KindNotServed;
            let message = format!("{}{}", why.in_words(), kind_meant(question));
            (unknown(false, true), view("Unknown", why.as_str(), message, false))
        }
        Served::Several(kinds) => {
            let names: Vec<String> = kinds.iter().map(|kind| kind.group_kind().to_string()).collect();
            let message = format!("the word names several kinds: {}", names.join(", "));
            (unknown(false, true), view("Error", Reason::AmbiguousKind.as_str(), message, false))
        }
    }
}

/// A probe holds while it is met.
fn judge_probe(answer: &Result<(), Miss>) -> (Fact, RequirementView) {
    let holds = if answer.is_ok() { Holds::Met } else { Holds::Unmet };
    let fact = Fact { holds, live: true, ..Fact::default() };
    let found = match answer {
        Ok(()) => view("Ready", Reason::Met.as_str(), "it answers", true),
        Err(miss) => view("NotReady", miss.reason().as_str(), miss.to_string(), false),
    };
    (fact, found)
}

/// The kind of Kubernetes' own that was probably meant by a word that no kind is called by.
fn kind_meant(question: &Question) -> String {
    let Question::Kind { word, .. } = question else { return String::new() };
    let kinds: Vec<String> = all_built_in().iter().map(|kind| kind.kind.to_ascii_lowercase()).collect();
    similar::did_you_mean(&word.word, kinds.iter().map(String::as_str))
}

fn judge_version(test: &Test, version: &Value, fresh_world: &FreshWorld<'_>) -> (Fact, RequirementView) {
    let met = Fact { holds: Holds::Met, live: true, ..Fact::default() };
    let ruling = ClauseSet::by_test(test).rule_on_named(
        &version_object(version),
        &version.to_string(),
        fresh_world.effort,
    );
    match ruling {
        ClauseResult::Holds => {
            (met, view("Ready", Reason::Met.as_str(), "the server has this version", true))
        }
        ClauseResult::Fails { why, how } => {
            let fact = Fact { holds: Holds::Unmet, ..met };
            let settled = how != Failing::Over;
            (fact, view("NotReady", failing(how).as_str(), why.unwrap_or_default(), settled))
        }
        ClauseResult::Postponed => postponed(),
    }
}

/// Why clauses that do not hold keep something waiting.
fn failing(how: Failing) -> Reason {
    if how == Failing::Over { Reason::OverBudget } else { Reason::ConditionNotMet }
}

/// What is not evaluated yet.
fn postponed() -> (Fact, RequirementView) {
    let why = Reason::Evaluating;
    (unknown(true, false), view("Unknown", why.as_str(), why.in_words(), false))
}

fn judge_objects(
    subject: &RequirementContext<'_>,
    test: &Test,
    wanted: Option<&Wanted>,
    latch: Option<&str>,
    observed: &Observed,
    fresh_world: &FreshWorld<'_>,
) -> (Fact, RequirementView) {
    let RequirementContext { requirement, outline } = *subject;
    let (Question::Objects { via, scope, .. }, Some(kind)) = (requirement.want.question(), &outline.kind)
    else {
        return (unknown(false, true), RequirementView::default());
    };
    let omitted;
    let wanted = if let Some(wanted) = wanted {
        wanted
    } else {
        let has_clauses = test.cel.is_some() || !test.conditions.is_empty();
        let presence = has_clauses && test.min_replicas.is_none() || kind.row.is_generic();
        omitted = if presence { Wanted::Exists } else { Wanted::Ready };
        &omitted
    };
    let around = JudgeContext { kind, via, fresh_world };
    match scope {
        Scope::Name { .. } => {
            let item = observed.items.first().map(AsRef::as_ref);
            let Some(one) = judge_one(test, wanted, item, false, &around) else { return postponed() };
            let mut fact = Fact {
                holds: one.holds(),
                live: observed.live,
                progress: one.verdict.progress,
                ..Fact::default()
            };
            let remembers = *wanted == Wanted::Completed || requirement.latch;
            if remembers && requirement.lasts != LatchScope::Never {
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
            let reason = if met { Cow::Borrowed("Met") } else { one.verdict.reason };
            (fact, view(one.verdict.state.word(), reason, one.verdict.message, one.settled))
        }
        Scope::Labels { .. } => judge_many(test, wanted, observed, &around),
    }
}

/// The judgement of one object, conditions included; none if it is postponed. Of one of `many` the message may be empty.
pub(super) fn judge_one(
    test: &Test,
    wanted: &Wanted,
    item: Option<&Projection>,
    many: bool,
    around: &JudgeContext<'_>,
) -> Option<Judgement> {
    let JudgeContext { kind, via, fresh_world } = *around;
    let taught = test.profile.as_deref().map(|profile| AppliedProfile {
        profile,
        item,
        many,
        effort: fresh_world.effort,
        postponed: Cell::new(false),
        why: RefCell::default(),
    });
    let options = ReadinessOptions {
        min_replicas: test.min_replicas,
        status_declared: test.reports_status,
        profile: taught.as_ref().map(|taught| taught as &dyn readiness::TaughtRule),
    };
    let neighbours = Neighbours { via, fresh_world };
    if let Some(item) = item.filter(|_| !wanted.is_presence()) {
        for need in kind.row.needs(&item.content) {
            fresh_world.ask(need_as_want(via, &need));
        }
    }
    let content = item.map(|item| &item.content);
    let mut judgement = kind.row.judge(wanted, &kind.name, content, &options, &neighbours);
    if taught.is_some_and(|taught| taught.postponed.get()) {
        return None;
    }
    let Some(item) = item else { return Some(judgement) };
    if judgement.met && *wanted != Wanted::Absent {
        match ClauseSet::by_test(test).rule(item, many, fresh_world.effort) {
            ClauseResult::Holds => {}
            ClauseResult::Postponed => return None,
            ClauseResult::Fails { why, how } => {
                judgement.met = false;
                judgement.verdict.message = why.unwrap_or_default();
                judgement.verdict.reason = Cow::Borrowed(failing(how).as_str());
                judgement.settled &= how != Failing::Over;
                if judgement.verdict.state.is_ready() {
                    judgement.verdict.state = State::InProgress;
                }
            }
        }
    }
    Some(judgement)
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
