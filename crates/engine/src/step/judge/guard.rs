//! Judging guards: true, false, or undecided.
//!
//! Both forms of a guard decide at the same moments. What cannot be seen decides nothing; of what is in progress, its state
//! decides nothing but that it is there (a terminating object is neither there nor gone); its fields are as they are seen.

use std::collections::BTreeMap;

use linchpin_lang::{
    answer::Answer as LangAnswer,
    cel::{EvaluateError, Expression, Unknown},
};
use linchpin_words::{Reason, Text};
use serde_json::Value;

use super::{
    RequirementView,
    action::{mark, mark_values},
    fresh_world::FreshWorld,
    requirement::{RequirementContext, judge_requirement},
};
use crate::{
    contract::{ReadSet, Seen},
    plan::{ActionGuard, GuardSubject, Plan, Requirement},
    readiness::Wanted,
    step::{
        data::{TooMuch, dependency_data, values_counted},
        effort::Key,
        fact::{Fact, GuardAnswer, Holds},
    },
};

/// What a guard says.
pub(super) struct Guarded {
    pub(super) answer: GuardAnswer,
    /// What keeps an expression from answering.
    pub(super) why: Option<Text>,
    /// Whether what it asks about is seen as it is now, so that its time may run out.
    pub(super) live: bool,
}

/// Asks a guard; an error says why it could not be asked.
pub(super) fn judge_guard(
    plan: &Plan,
    guard: &ActionGuard,
    facts: &[Fact],
    views: &[RequirementView],
    fresh_world: &FreshWorld<'_>,
) -> Result<Guarded, Reason> {
    let mut guarded = match &guard.subject {
        GuardSubject::Dependency { step, state } => {
            let position = plan.position(step);
            let subject = position.and_then(|position| {
                let requirement = plan.steps()[position].requirement()?;
                Some(RequirementContext { requirement, outline: plan.outline(position) })
            });
            match subject {
                Some(subject) => decide(&subject, state, fresh_world)?,
                None => Guarded { answer: GuardAnswer::Undecided, why: None, live: true },
            }
        }
        GuardSubject::Expression(expression) => {
            let read = plan.dependencies_of(expression);
            let (answer, why) = ask(plan, expression, &read, views, fresh_world)?;
            Guarded { answer, why, live: read.iter().all(|(position, _)| facts[*position].live) }
        }
    };
    if guard.negate {
        guarded.answer = guarded.answer.negated();
    }
    Ok(guarded)
}

const YES: u64 = 0;
const NO: u64 = 1;
const UNDECIDED: u64 = 2;
const OVER: u64 = u64::MAX;

/// What an expression answers, and what keeps it from answering.
fn ask(
    plan: &Plan,
    expression: &Expression,
    read: &[(usize, &Requirement)],
    views: &[RequirementView],
    fresh_world: &FreshWorld<'_>,
) -> Result<(GuardAnswer, Option<Text>), Reason> {
    let mut why = None;
    let key = || {
        let marks = read.iter().map(|(position, requirement)| {
            let view = &views[*position];
            let mark = mark(fresh_world.effort, *position, &requirement.want, view, fresh_world.world);
            Key::default().number(mark).number(view.settled.into()).get()
        });
        let values = expression.reads().contains_key("values");
        let values = values.then(|| mark_values(plan, fresh_world.effort, fresh_world.world));
        marks.chain(values).fold(Key::default().number(expression.fingerprint()), Key::number).get()
    };
    let evaluated = fresh_world.effort.answer(false, key, |spent| {
        match evaluate(plan, expression, read, views, fresh_world, spent) {
            Ok(Ok(LangAnswer::True)) => YES,
            Ok(Ok(LangAnswer::False)) => NO,
            Ok(Ok(LangAnswer::NotYet(open))) => {
                why = Some(Text::from(open.to_string()));
                UNDECIDED
            }
            Ok(Err(error)) => {
                why = Some(Text::from(error.to_string()));
                UNDECIDED
            }
            Err(TooMuch) => OVER,
        }
    });
    match &why {
        Some(words) => fresh_world.effort.keep_words(key(), words),
        None if evaluated == Some(UNDECIDED) => why = fresh_world.effort.words(key()),
        None => {}
    }
    let answer = match evaluated {
        None => return Err(Reason::Evaluating),
        Some(OVER) => return Err(Reason::OverBudget),
        Some(YES) => GuardAnswer::Yes,
        Some(NO) => GuardAnswer::No,
        Some(_) => GuardAnswer::Undecided,
    };
    Ok((answer, why))
}

/// The words that the state of what is there and in progress may become.
const STATES: &[&str] = &["NotReady", "Ready", "Completed", "Failed"];
/// The same of what is on its way out.
const LAST_STATES: &[&str] = &["NotReady", "Ready", "Completed", "Failed", "NotFound"];

/// What an expression may not rely on in what was found of a dependency.
fn unknown(
    requirement: &Requirement,
    view: &RequirementView,
    fresh_world: &FreshWorld<'_>,
) -> Option<Unknown> {
    if matches!(view.state, "Unknown" | "Error") {
        let why = format!("{}: {}", requirement.label, view.message);
        return Some(Unknown { why, fields: BTreeMap::new() });
    }
    if view.settled || !matches!(view.state, "NotReady" | "NotFound") {
        return None;
    }
    let going = match fresh_world.look(&requirement.want) {
        Some(Seen::Objects(observed)) => observed.items.iter().any(|item| item.deleting),
        _ => false,
    };
    let states = if going { LAST_STATES } else { STATES };
    let anything: &[&str] = &[];
    let fields = [("state", states), ("State", states), ("message", anything), ("Message", anything)];
    let why = format!("{} is in progress: {}", requirement.label, view.message);
    Some(Unknown { why, fields: fields.into() })
}

fn evaluate(
    plan: &Plan,
    expression: &Expression,
    read: &[(usize, &Requirement)],
    views: &[RequirementView],
    fresh_world: &FreshWorld<'_>,
    spent: &mut u64,
) -> Result<Result<LangAnswer, EvaluateError>, TooMuch> {
    let mut dependencies = serde_json::Map::new();
    let mut unknowns = BTreeMap::new();
    for (position, requirement) in read {
        let view = &views[*position];
        if let Some(unknown) = unknown(requirement, view, fresh_world) {
            let nothing = unknown.fields.is_empty();
            unknowns.extend(requirement.keys.iter().map(|key| (key.clone(), unknown.clone())));
            if nothing {
                continue;
            }
        }
        let mut entry = dependency_data(requirement, view, fresh_world.world, &ReadSet::whole(), spent)?;
        if let Some(map) = entry.as_object_mut() {
            let lower: Vec<(String, Value)> =
                map.iter().map(|(key, value)| (key.to_ascii_lowercase(), value.clone())).collect();
            map.extend(lower);
        }
        for key in &requirement.keys {
            dependencies.insert(key.clone(), entry.clone());
        }
    }
    let dependencies = Value::Object(dependencies);
    let values = if expression.reads().contains_key("values") {
        values_counted(&plan.terms.inputs, &plan.terms.values, fresh_world.world, spent)?
    } else {
        Value::Null
    };
    let bindings = BTreeMap::from([("dependencies", &dependencies), ("values", &values)]);
    Ok(expression.evaluate_among(&bindings, &BTreeMap::from([("dependencies", &unknowns)]), spent))
}

/// Whether a dependency has a state, as far as that has settled.
fn decide(
    subject: &RequirementContext<'_>,
    state: &Wanted,
    fresh_world: &FreshWorld<'_>,
) -> Result<Guarded, Reason> {
    let (fact, found) = judge_requirement(subject, &subject.requirement.test, Some(state), None, fresh_world);
    let held_up =
        [Reason::Evaluating, Reason::OverBudget].into_iter().find(|why| found.reason == why.as_str());
    let answer = match (fact.holds, held_up) {
        (Holds::Unknown { .. }, Some(why)) => return Err(why),
        (Holds::Met, _) => GuardAnswer::Yes,
        (Holds::Failed, _) => GuardAnswer::No,
        (Holds::Unmet, _) if found.settled => GuardAnswer::No,
        (Holds::Unmet | Holds::Unknown { .. }, _) => GuardAnswer::Undecided,
    };
    Ok(Guarded { answer, why: None, live: fact.live })
}
