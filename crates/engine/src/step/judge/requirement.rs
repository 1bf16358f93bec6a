//! Judging requirements: does what was observed satisfy what is asked?

use std::{borrow::Cow, collections::BTreeMap};

use linchpin_lang::answer::Answer as Told;
use linchpin_words::{Reason, Text};
use serde_json::Value;

use super::{
    View,
    related::{Neighbours, need_as_want},
    sight::Sight,
};
use crate::{
    contract::{Observed, Projection, Question, Scope, Seen, Served, Via},
    plan::{Clauses, Expect, Judged, Outline, Profile, Requirement, Test, share},
    readiness::{self, Judgement, Options, State, Tri, Wanted},
    step::{
        data::version_object,
        fact::{Fact, Holds},
    },
};

/// A requirement, and what the plan says of it once and for all.
#[derive(Clone, Copy)]
pub(super) struct Subject<'a> {
    pub(super) requirement: &'a Requirement,
    pub(super) outline: &'a Outline,
}

fn unknown(passing: bool, live: bool) -> Fact {
    Fact { holds: Holds::Unknown { passing }, live, ..Fact::default() }
}

fn view(state: &'static str, reason: impl Into<Text>, message: impl Into<Text>, settled: bool) -> View {
    View { state, reason: reason.into(), message: message.into(), selected: None, settled }
}

/// Judges a requirement as the plan asks for it: what follows waits for its gate, readiness for all of it. `latch` is the
/// incarnation that was seen to meet it, `written` the one that our own action wrote last.
pub(super) fn judge_whole(
    subject: &Subject<'_>,
    latch: Option<&str>,
    written: Option<&str>,
    sight: &Sight<'_>,
) -> (Fact, View) {
    let requirement = subject.requirement;
    // What was seen of an incarnation says nothing about the one that we have made since.
    let latch = latch.filter(|latch| written.is_none_or(|written| written == *latch));
    let (mut fact, found) = judge_requirement(subject, &requirement.test, None, latch, sight);
    if let Some(gate) = &requirement.gate {
        let (gate, _) = judge_requirement(subject, gate, None, latch, sight);
        fact.strictly = Some(fact.holds);
        fact.holds = gate.holds;
    }
    (fact, found)
}

/// Judges a requirement by a test, against its state or the one that a guard asks about.
pub(super) fn judge_requirement(
    subject: &Subject<'_>,
    test: &Test,
    asked: Option<&Wanted>,
    latch: Option<&str>,
    sight: &Sight<'_>,
) -> (Fact, View) {
    let wanted = asked.or(test.state.as_ref());
    let requirement = subject.requirement;
    match sight.look(&requirement.want) {
        None => {
            (unknown(true, false), view("Unknown", Reason::Unsynced.as_str(), "not looked at yet", false))
        }
        Some(Seen::Unknown(why)) => {
            let found = view("Unknown", why.reason.as_str(), why.message.clone(), false);
            (unknown(why.is_passing(), !why.is_passing()), found)
        }
        Some(Seen::Kind(served)) => kind_in_the_way(served),
        Some(Seen::Version(version)) => judge_version(test, version),
        Some(Seen::Right(_)) => {
            (unknown(false, true), view("Error", Reason::Invalid.as_str(), "not an object", true))
        }
        Some(Seen::Objects(observed)) if !sight.shows_our_writes(&requirement.want, observed) => {
            let why = Reason::OwnWriteNotSeen;
            (unknown(true, false), view("Unknown", why.as_str(), why.in_words(), false))
        }
        Some(Seen::Objects(observed)) => match &requirement.held {
            Some(held) => {
                let fact = Fact { holds: Holds::Unmet, live: observed.live, ..Fact::default() };
                (fact, view("NotReady", held.reason.as_str(), held.message.clone(), false))
            }
            None => judge_objects(subject, test, wanted, latch, observed, sight),
        },
    }
}

/// A requirement whose question is still the kind itself.
fn kind_in_the_way(served: &Served) -> (Fact, View) {
    match served {
        // Known now: the door compiles again with it, and asks for the object.
        Served::Yes { .. } => {
            (unknown(true, false), view("Unknown", Reason::Unsynced.as_str(), "not looked at yet", false))
        }
        Served::No => {
            let why = Reason::KindNotServed;
            (unknown(false, true), view("Unknown", why.as_str(), why.in_words(), false))
        }
        Served::Several(kinds) => {
            let names: Vec<String> = kinds.iter().map(|kind| kind.group_kind().to_string()).collect();
            let message = format!("the word names several kinds: {}", names.join(", "));
            (unknown(false, true), view("Error", Reason::AmbiguousKind.as_str(), message, false))
        }
    }
}

fn judge_version(test: &Test, version: &Value) -> (Fact, View) {
    let met = Fact { holds: Holds::Met, live: true, ..Fact::default() };
    match clauses_hold(&test.conditions, test.cel.as_deref(), &version_object(version)) {
        None => (met, view("Ready", Reason::Met.as_str(), "the server has this version", true)),
        Some(why) => {
            let fact = Fact { holds: Holds::Unmet, ..met };
            (fact, view("NotReady", Reason::ConditionNotMet.as_str(), why, true))
        }
    }
}

fn judge_objects(
    subject: &Subject<'_>,
    test: &Test,
    wanted: Option<&Wanted>,
    latch: Option<&str>,
    observed: &Observed,
    sight: &Sight<'_>,
) -> (Fact, View) {
    let Subject { requirement, outline } = *subject;
    let (Question::Objects { via, scope, .. }, Some(kind)) = (requirement.want.question(), &outline.kind)
    else {
        return (unknown(false, true), View::default());
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
    match scope {
        Scope::Name { .. } => {
            let item = observed.items.first().map(AsRef::as_ref);
            let one = judge_one(test, wanted, kind, item, via, sight);
            let mut fact = Fact {
                holds: one.holds(),
                live: observed.live,
                progress: one.verdict.progress,
                ..Fact::default()
            };
            if *wanted == Wanted::Completed || requirement.latch {
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
        Scope::Labels { .. } => judge_many(test, wanted, kind, observed, via, sight),
    }
}

/// The judgement of one object, conditions included.
fn judge_one(
    test: &Test,
    wanted: &Wanted,
    kind: &Judged,
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
        for need in kind.row.needs(&item.content) {
            sight.ask(need_as_want(via, &need));
        }
    }
    let content = item.map(|item| &item.content);
    let mut judgement = kind.row.judge(wanted, &kind.name, content, &options, &neighbours);
    let Some(item) = item else { return judgement };
    if judgement.met
        && *wanted != Wanted::Absent
        && let Some(why) = clauses_hold(&test.conditions, test.cel.as_deref(), &item.content)
    {
        judgement.met = false;
        judgement.verdict.message = why.into();
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
    kind: &Judged,
    observed: &Observed,
    via: &Via,
    sight: &Sight<'_>,
) -> (Fact, View) {
    let items: Vec<&Projection> =
        observed.items.iter().map(AsRef::as_ref).filter(|item| !item.deleting).collect();
    let judged: Vec<Judgement> =
        items.iter().map(|item| judge_one(test, wanted, kind, Some(item), via, sight)).collect();
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
        progress: judged.iter().fold(matching, |mark, one| mark.rotate_left(7) ^ one.verdict.progress),
        ..Fact::default()
    };
    let expected = match expect {
        Expect::AtLeast(count) => format!("at least {count}"),
        Expect::Exactly(count) => format!("exactly {count}"),
        Expect::All => "all".to_owned(),
    };
    let worst = judged.iter().zip(&items).find(|(one, _)| !one.met);
    let detail =
        worst.map_or(String::new(), |(one, item)| format!("; {}: {}", item.name, one.verdict.message));
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
    found.selected = Some(share(items.iter().map(|item| item.object_ref())));
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
    fn knows_ready(&self) -> bool {
        self.0.ready_when.cel.is_some() || !self.0.ready_when.conditions.is_empty()
    }

    fn ready(&self, object: &Value) -> Tri {
        Self::tell(&self.0.ready_when, object)
    }

    fn failed(&self, object: &Value) -> Tri {
        self.0.failed_when.as_ref().map_or(Tri::False, |clauses| Self::tell(clauses, object))
    }

    fn says(&self, object: &Value) -> Option<String> {
        let found = self.0.says.as_ref()?.find(object).ok()?;
        found.first().and_then(|words| words.as_str()).filter(|words| !words.is_empty()).map(str::to_owned)
    }
}
