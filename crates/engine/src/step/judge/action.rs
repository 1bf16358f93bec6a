//! Judging actions: rights, values, what is awaited, and what would be read now.

use std::fmt::Write;

use linchpin_words::{Reason, hash::Fnv, limits};

use super::{RequirementView, fresh_world::FreshWorld, guard::judge_guard, reach::judge_reach};
use crate::{
    contract::{Actor, EffectTarget, Question, ReadSet, Seen, Served, StepId, Via, Want, Why, World},
    journal::{Awaits, Journal, StepRecord, StepState, Trigger},
    plan::{ActionBody, Input, Plan, PlannedAction, Rerun, Step},
    step::{
        data::TooMuch,
        effort::{Effort, Key},
        fact::{Fact, GuardAnswer},
    },
};

/// How long after a right was found missing it is asked for again, in seconds: nothing reports when it is given.
const RIGHT_AGAIN: u64 = 30;

/// One action of a plan, with what is known of it.
pub(super) struct ActionContext<'a> {
    pub(super) plan: &'a Plan,
    pub(super) position: usize,
    pub(super) step: &'a Step,
    pub(super) action: &'a PlannedAction,
    pub(super) record: Option<&'a StepRecord>,
}

impl ActionContext<'_> {
    /// Whether the action is under way or has come to a good end: nothing that would be needed to begin it is asked for.
    pub(super) fn has_begun(&self) -> bool {
        self.record.is_some_and(|record| record.is_successful() || record.state == StepState::Running)
    }
}

pub(super) fn judge_action(
    place: &ActionContext<'_>,
    facts: &[Fact],
    views: &[RequirementView],
    fresh_world: &FreshWorld<'_>,
) -> (Fact, RequirementView) {
    let ActionContext { plan, step, action, record, .. } = *place;
    let mut fact = Fact { live: true, ..Fact::default() };
    let mut found = RequirementView { settled: true, ..RequirementView::default() };
    if let Some(guard) = &step.when {
        match judge_guard(plan, guard, facts, views, fresh_world) {
            Ok(answer) => {
                (fact.guard, fact.live) = (answer.answer, answer.live);
                found.message = answer.why.unwrap_or_default();
            }
            Err(reason) => {
                // Nothing may be concluded from what was not evaluated, nor from when.
                (fact.guard, fact.live) = (GuardAnswer::Undecided, false);
                found.reason = reason.as_str().into();
                found.message = in_words(reason, &TooMuch).into();
            }
        }
    }
    if !place.has_begun() {
        judge_rights(place, fresh_world, &mut fact, &mut found);
        judge_reach(action, fresh_world, &mut fact, &mut found);
    }
    if action.reads_values
        && let Some(input) = plan.terms.inputs.iter().find(|input| !is_supplied(input, fresh_world))
    {
        fact.supplied = false;
        found.reason = Reason::ValueMissing.as_str().into();
        let name = input.want.object_ref().map_or_else(String::new, |object| object.to_string());
        found.message = format!("valuesFrom: {name} is not there yet").into();
    }
    if let ActionBody::Delete { target, .. } = &action.body
        && !place.has_begun()
        && record.is_none_or(|record| record.deletes.is_none())
    {
        judge_doomed(action, target, fresh_world, &mut fact, &mut found);
    }
    if let Some(awaits) = record.and_then(|record| record.awaits.as_ref()) {
        fact.awaited = judge_awaited(&action.via, awaits, fresh_world);
    }
    if let Rerun::OnReads(events) = &action.rerun {
        for dependency in events.keys() {
            match trigger(place, dependency, views, fresh_world) {
                Ok(Some(trigger)) => drop(fact.triggers.insert(dependency.clone(), trigger)),
                Ok(None) => {}
                // It must not start without knowing what it reads: it would run again when that is known.
                Err(reason) => {
                    fact.supplied = false;
                    found.reason = reason.as_str().into();
                    found.message = in_words(reason, &TooMuch).into();
                }
            }
        }
    }
    if !fact.supplied {
        // That something is lacking counts only where it was looked at.
        let passing = |reason: Reason| Why::new(reason, "").is_passing() || reason == Reason::Evaluating;
        fact.live &= !Reason::from_word(&found.reason).is_some_and(passing);
    }
    (fact, found)
}

/// What a deletion will delete is known before it starts: one that cannot be seen holds it.
fn judge_doomed(
    action: &PlannedAction,
    target: &EffectTarget,
    fresh_world: &FreshWorld<'_>,
    fact: &mut Fact,
    found: &mut RequirementView,
) {
    let mut held = |reason: Reason, message: String| {
        if fact.supplied {
            fact.supplied = false;
            found.reason = reason.as_str().into();
            found.message = message.into();
        }
    };
    let question = Want::new(Question::Kind { via: action.via.clone(), word: target.kind.clone() });
    let served = match fresh_world.ask(question) {
        Some(Seen::Kind(served)) => served,
        Some(Seen::Unknown(why)) => return held(why.reason, why.message.clone()),
        _ => return held(Reason::Unsynced, format!("{target} is being looked for")),
    };
    let Served::Yes { kind, namespaced, .. } = served.as_ref() else {
        return held(Reason::KindNotServed, format!("{target}: the API server does not serve this kind now"));
    };
    let namespace = target.namespace.clone().filter(|_| *namespaced);
    let want = Want::object(action.via.clone(), kind.clone(), namespace, &target.name, ReadSet::nothing());
    match fresh_world.ask(want.clone()) {
        Some(Seen::Objects(observed)) if fresh_world.shows_our_writes(&want, observed) => {
            let uid = observed.items.first().map(|item| item.uid.clone());
            found.doomed = Some(uid.unwrap_or_default());
        }
        Some(Seen::Objects(_)) => {
            held(Reason::OwnWriteNotSeen, format!("{target} was written and has not been seen since"));
        }
        Some(Seen::Unknown(why)) => held(why.reason, why.message.clone()),
        _ => held(Reason::Unsynced, format!("{target} is being looked for")),
    }
}

/// Why an action that may not be carried out as the account it names waits: a right is missing, the operator may not act
/// for the namespace, or there is no such account.
pub(in crate::step) const LACKING: [Reason; 3] =
    [Reason::MissingRights, Reason::NotATenant, Reason::IdentityGone];

/// Rights are asked for before an action starts: one that is missing holds it, and so does one that was not answered yet.
fn judge_rights(
    place: &ActionContext<'_>,
    fresh_world: &FreshWorld<'_>,
    fact: &mut Fact,
    found: &mut RequirementView,
) {
    let mut missing: Vec<String> = Vec::new();
    let mut open = false;
    let mut closed = None;
    for (want, right) in place.plan.outline(place.position).asks.iter().zip(&place.action.rights) {
        match fresh_world.look(want) {
            Some(Seen::Right(false)) => missing.push(right.to_string()),
            Some(Seen::Unknown(why)) if LACKING.contains(&why.reason) => closed = Some(why),
            Some(Seen::Unknown(why)) => open |= why.is_passing(),
            None => open = true,
            Some(_) => {}
        }
    }
    found.denied = closed.is_some() || !missing.is_empty() || open;
    if let Some(why) = closed {
        fact.supplied = false;
        found.reason = why.reason.as_str().into();
        found.message = why.message.clone().into();
    } else if !missing.is_empty() {
        fact.supplied = false;
        found.reason = Reason::MissingRights.as_str().into();
        let account = match &place.action.via.actor {
            Actor::ServiceAccount { namespace, name } => format!("ServiceAccount {namespace}/{name}"),
            Actor::Operator => "the operator".to_owned(),
        };
        let missing = missing.join(", ");
        found.message = format!("{account} may not {missing}; asked again in {RIGHT_AGAIN} s at most").into();
    } else if open {
        fact.supplied = false;
        found.reason = Reason::Unsynced.as_str().into();
        found.message = "it is being asked whether the ServiceAccount may do this".into();
    }
}

fn is_supplied(input: &Input, fresh_world: &FreshWorld<'_>) -> bool {
    match fresh_world.look(&input.want) {
        Some(Seen::Objects(observed)) => input.optional || !observed.items.is_empty(),
        _ => false,
    }
}

/// What is said of an action that waits because of the budget.
fn in_words(reason: Reason, too_much: &TooMuch) -> String {
    if reason == Reason::OverBudget { too_much.to_string() } else { reason.in_words() }
}

/// What a dependency, or another question of the plan, shows in this step, as one number.
pub(in crate::step) fn mark(
    effort: &Effort,
    position: usize,
    want: &Want,
    found: &RequirementView,
    world: &World,
) -> u64 {
    effort.mark(position, || {
        let key = Key::default().text(found.state).text(&found.message);
        match world.get(want) {
            Some(Seen::Objects(observed)) => observed
                .items
                .iter()
                .fold(key, |key, item| key.text(&item.uid).number(item.version).number(item.deleting.into())),
            Some(Seen::Version(version)) => key.text(&version.to_string()),
            _ => key,
        }
        .get()
    })
}

/// What `.Values` are in this step, as one number.
pub(in crate::step) fn mark_values(plan: &Plan, effort: &Effort, world: &World) -> u64 {
    let steps = plan.steps().len();
    effort.mark(steps, || {
        let nothing = RequirementView::default();
        let inputs = plan.terms.inputs.iter().enumerate();
        inputs
            .map(|(index, input)| mark(effort, steps + 1 + index, &input.want, &nothing, world))
            .fold(Key::default().text(&plan.terms.values.to_string()), Key::number)
            .get()
    })
}

/// How much of a text is made and hashed in one step.
const BYTES_PER_STEP: u64 = 8;
const OVER: u64 = u64::MAX;

fn judge_awaited(via: &Via, awaits: &Awaits, fresh_world: &FreshWorld<'_>) -> bool {
    let (target, present) = match awaits {
        Awaits::Served(word) => return matches!(fresh_world.resolve(via, word), Some(Served::Yes { .. })),
        Awaits::Present(target) => (target, None),
        Awaits::Absent { target, uid } => (target, Some(uid)),
    };
    let Some(Served::Yes { kind, namespaced, .. }) = fresh_world.resolve(via, &target.kind) else {
        return false;
    };
    let namespace = target.namespace.clone().filter(|_| *namespaced);
    let want = Want::object(via.clone(), kind.clone(), namespace, &target.name, ReadSet::nothing());
    match fresh_world.ask(want) {
        Some(Seen::Objects(observed)) => match present {
            None => observed.items.iter().any(|item| !item.deleting),
            Some(uid) => observed.items.iter().all(|item| item.uid != *uid),
        },
        _ => false,
    }
}

/// Asks for what actions await: also what they began to await only just now.
pub(in crate::step) fn ask_for_awaited(plan: &Plan, journal: &Journal, fresh_world: &FreshWorld<'_>) {
    for (id, record) in &journal.steps {
        if let Some(awaits) = &record.awaits
            && let Some(action) = plan.position(id).and_then(|position| plan.steps()[position].action())
        {
            judge_awaited(&action.via, awaits, fresh_world);
        }
    }
}

/// What an action would read of a dependency now; none while that is not known. An error says why it was not read.
fn trigger(
    place: &ActionContext<'_>,
    dependency: &StepId,
    views: &[RequirementView],
    fresh_world: &FreshWorld<'_>,
) -> Result<Option<Trigger>, Reason> {
    let ActionContext { plan, step, action, .. } = *place;
    let required = plan.position(dependency);
    let required = required.and_then(|position| Some((position, plan.steps()[position].requirement()?)));
    let Some((position, requirement)) = required else { return Ok(None) };
    let Some(Seen::Objects(observed)) = fresh_world.look(&requirement.want) else {
        return Ok(None);
    };
    let everything = ReadSet::whole();
    let reads = match &action.reads {
        Some(reads) => reads.get(dependency),
        None => Some(&everything),
    };
    let key = || {
        let mark = mark(fresh_world.effort, position, &requirement.want, &views[position], fresh_world.world);
        Key::default().text(&step.definition).text(dependency.as_str()).number(mark).get()
    };
    let hash = fresh_world.effort.answer(observed.items.len() > 1, key, |spent| {
        let mut text = views[position].state.to_owned();
        for item in &observed.items {
            if item.is_secret() {
                // Writing to a String cannot fail.
                let _ = write!(text, "{}@{}", item.uid, item.version);
            } else if let Some(reads) = reads {
                text.push_str(&reads.project(&item.content).to_string());
            }
            *spent = text.len() as u64 / BYTES_PER_STEP;
            if *spent > limits::TURN_STEPS {
                return OVER;
            }
        }
        Fnv::of(text.as_bytes())
    });
    let hash = match hash {
        None => return Err(Reason::Evaluating),
        Some(OVER) => return Err(Reason::OverBudget),
        Some(hash) => hash,
    };
    let incarnations: Vec<&String> = observed.items.iter().map(|item| &item.uid).collect();
    Ok(Some(Trigger::new(&incarnations, hash)))
}
