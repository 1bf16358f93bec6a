//! Judging actions: guards, rights, values, what is awaited, and what would be read now.

use std::{collections::BTreeMap, fmt::Write};

use linchpin_lang::answer::Answer as Told;
use linchpin_words::{Reason, hash::Fnv};
use serde_json::{Value, json};

use super::{
    View,
    reach::judge_reach,
    requirement::{Subject, judge_requirement},
    sight::Sight,
};
use crate::{
    contract::{ReadSet, Seen, Served, StepId, Via, Want},
    journal::{Awaits, Journal, Record, StepState, Trigger},
    plan::{Action, Guard, GuardSubject, Input, Plan, Rerun, Step},
    readiness::Wanted,
    step::{
        data::{dependency_data, values},
        fact::{Answer, Fact, Holds},
    },
};

/// One action of a plan, with what is known of it.
pub(super) struct Place<'a> {
    pub(super) plan: &'a Plan,
    pub(super) position: usize,
    pub(super) step: &'a Step,
    pub(super) action: &'a Action,
    pub(super) record: Option<&'a Record>,
}

impl Place<'_> {
    /// Whether the action is under way or has come to a good end: nothing that would be needed to begin it is asked for.
    pub(super) fn has_begun(&self) -> bool {
        self.record.is_some_and(|record| record.is_successful() || record.state == StepState::Running)
    }
}

pub(super) fn judge_action(place: &Place<'_>, views: &[View], sight: &Sight<'_>) -> (Fact, View) {
    let Place { plan, step, action, record, .. } = *place;
    let mut fact = Fact { live: true, ..Fact::default() };
    let mut found = View { settled: true, ..View::default() };
    if let Some(guard) = &step.when {
        fact.guard = judge_guard(plan, guard, views, sight);
    }
    if !place.has_begun() {
        judge_rights(place, sight, &mut fact, &mut found);
        judge_reach(action, sight, &mut fact, &mut found);
    }
    if action.reads_values
        && let Some(input) = plan.inputs.iter().find(|input| !is_supplied(input, sight))
    {
        fact.supplied = false;
        found.reason = Reason::ValueMissing.as_str().into();
        let name = input.want.object_ref().map_or_else(String::new, |object| object.to_string());
        found.message = format!("valuesFrom: {name} is not there yet").into();
    }
    if let Some(awaits) = record.and_then(|record| record.awaits.as_ref()) {
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

/// Rights are asked for before an action starts: one that is missing holds it, and so does one that was not answered yet.
fn judge_rights(place: &Place<'_>, sight: &Sight<'_>, fact: &mut Fact, found: &mut View) {
    let mut missing: Vec<String> = Vec::new();
    let mut open = false;
    for (want, right) in place.plan.outline(place.position).asks.iter().zip(&place.action.rights) {
        match sight.look(want) {
            Some(Seen::Right(false)) => missing.push(right.to_string()),
            Some(Seen::Unknown(why)) => open |= why.is_passing(),
            None => open = true,
            Some(_) => {}
        }
    }
    if !missing.is_empty() {
        fact.supplied = false;
        found.reason = Reason::MissingRights.as_str().into();
        found.message = format!("the ServiceAccount may not {}", missing.join(", ")).into();
    } else if open {
        fact.supplied = false;
        found.reason = Reason::Unsynced.as_str().into();
        found.message = "it is being asked whether the ServiceAccount may do this".into();
    }
}

fn is_supplied(input: &Input, sight: &Sight<'_>) -> bool {
    match sight.look(&input.want) {
        Some(Seen::Objects(observed)) => input.optional || !observed.items.is_empty(),
        _ => false,
    }
}

fn judge_guard(plan: &Plan, guard: &Guard, views: &[View], sight: &Sight<'_>) -> Answer {
    let answer = match &guard.subject {
        GuardSubject::Dependency { step, state } => plan
            .position(step)
            .and_then(|position| {
                let requirement = plan.steps()[position].requirement()?;
                Some(Subject { requirement, outline: plan.outline(position) })
            })
            .map_or(Answer::Undecided, |subject| decide(&subject, state, sight)),
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
                    let lower: Vec<(String, Value)> =
                        map.iter().map(|(key, value)| (key.to_ascii_lowercase(), value.clone())).collect();
                    map.extend(lower);
                }
                for key in &requirement.keys {
                    dependencies.insert(key.clone(), entry.clone());
                }
            }
            let dependencies = Value::Object(dependencies);
            let values = values(&plan.inputs, &plan.values, sight.world);
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
fn decide(subject: &Subject<'_>, state: &Wanted, sight: &Sight<'_>) -> Answer {
    let (fact, found) = judge_requirement(subject, &subject.requirement.test, Some(state), None, sight);
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
    let want = Want::object(via.clone(), kind.clone(), namespace, &target.name, ReadSet::nothing());
    match sight.ask(want) {
        Some(Seen::Objects(observed)) => match present {
            None => observed.items.iter().any(|item| !item.deleting),
            Some(uid) => observed.items.iter().all(|item| item.uid != *uid),
        },
        _ => false,
    }
}

/// Asks for what actions await: also what they began to await only just now.
pub(in crate::step) fn ask_for_awaited(plan: &Plan, journal: &Journal, sight: &Sight<'_>) {
    for (id, record) in &journal.steps {
        if let Some(awaits) = &record.awaits
            && let Some(action) = plan.position(id).and_then(|position| plan.steps()[position].action())
        {
            judge_awaited(&action.via, awaits, sight);
        }
    }
}

/// What an action would read of a dependency now; none while that is not known.
fn trigger(
    plan: &Plan,
    action: &Action,
    dependency: &StepId,
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
            // Writing to a String cannot fail.
            let _ = write!(text, "{}@{}", item.uid, item.version);
        } else if let Some(reads) = reads {
            text.push_str(&reads.project(&item.content).to_string());
        }
    }
    let uid = match observed.items.as_slice() {
        [] => None,
        [one] => Some(one.uid.clone()),
        many => Some(json!(many.iter().map(|item| &item.uid).collect::<Vec<_>>()).to_string()),
    };
    Some(Trigger { uid, hash: Fnv::of(text.as_bytes()) })
}
