//! What must never be, and what must be reached.

use linchpin_engine::{
    contract::Verb,
    journal::{Journal, StepState},
    plan::{Delivery, Plan, PlanLane, Recovery, StepKind},
    step::StepDecision,
};

use super::{explore::fingerprint, shape::Shape, state::State};
use crate::build::name_of;

/// Looks at one decision: nothing may start before all that it comes after was observed or done.
pub fn check_decision(state: &State, shape: &Shape, decision: &StepDecision) -> Result<(), String> {
    if state.deleting {
        return check_deletions(state, decision);
    }
    if state.invalid {
        return match decision.effects.first() {
            Some(effect) => Err(format!("{} was ordered while the spec was invalid", effect.ticket.step)),
            None => Ok(()),
        };
    }
    let plan = state.plan(shape);
    check_prune(plan, decision)?;
    for effect in &decision.effects {
        let Some(position) = plan.position(&effect.ticket.step) else { continue };
        let mut open = plan.before(position).to_vec();
        let mut looked = vec![false; plan.steps().len()];
        while let Some(earlier) = open.pop() {
            if std::mem::replace(&mut looked[earlier], true) {
                continue;
            }
            open.extend(plan.before(earlier));
            let step = &plan.steps()[earlier];
            if let StepKind::Require(requirement) = &step.kind {
                let name = name_of(&requirement.want).unwrap_or_default();
                let glimpse = state.seen.get(name).and_then(Option::as_ref);
                let there = glimpse.is_some_and(|(object, _)| object.is_some());
                if !there {
                    return Err(format!("{} was ordered while {name} was not observed", effect.ticket.step));
                }
                let seen = glimpse.and_then(|(object, _)| object.as_ref()).map_or(0, |object| object.version);
                if state.told.get(name).is_some_and(|version| seen < *version) {
                    return Err(format!(
                        "{} was ordered on a view older than our own write",
                        effect.ticket.step
                    ));
                }
            } else if plan.before(position).contains(&earlier) {
                let needs_success = plan.steps()[position]
                    .after
                    .iter()
                    .any(|after| after.step == step.id && !after.settled_is_enough);
                let done = match &step.action().map(|action| &action.body) {
                    Some(linchpin_engine::plan::ActionBody::Exec { .. }) => {
                        state.ran.by_definition.get(&step.definition).is_some_and(|count| *count > 0)
                    }
                    Some(linchpin_engine::plan::ActionBody::Delete { .. }) => true,
                    _ => state.made.contains(&format!("made-{}", step.id)),
                };
                if needs_success && !done {
                    return Err(format!("{} was ordered before {} was done", effect.ticket.step, step.id));
                }
            }
        }
    }
    for step in plan.steps().iter().filter(|step| state.ran.saved.contains(&step.definition)) {
        let record = decision.memory.journal.steps.get(&step.id);
        if record.is_some_and(|record| record.state == StepState::Unknown) {
            return Err(format!("{} ended well and this was saved, but it is unknown now", step.id));
        }
    }
    let completed = decision.memory.journal.completed.is_some();
    if completed && let Some(undone) = undone(state, plan) {
        return Err(format!("completed, but {undone} was not done"));
    }
    Ok(())
}

fn undone(state: &State, plan: &Plan) -> Option<String> {
    plan.steps().iter().filter(|step| step.lane == PlanLane::Main).find_map(|step| {
        let done = match &step.action()?.body {
            linchpin_engine::plan::ActionBody::Exec { .. } => {
                state.ran.by_definition.get(&step.definition).is_some_and(|count| *count > 0)
            }
            linchpin_engine::plan::ActionBody::Delete { .. } => true,
            _ => state.made.contains(&format!("made-{}", step.id)),
        };
        (!done).then(|| step.id.to_string())
    })
}

/// Only what left the plan goes, and only when everything that is in it is done.
fn check_prune(plan: &Plan, decision: &StepDecision) -> Result<(), String> {
    for effect in &decision.effects {
        let Verb::Delete { target, .. } = &effect.verb else { continue };
        if effect.ticket.run != 0 {
            continue;
        }
        if plan.steps().iter().any(|step| format!("made-{}", step.id) == target.name) {
            return Err(format!("{} is to be deleted, but the plan has it", target.name));
        }
        let records = &decision.memory.journal.steps;
        let undone = plan.steps().iter().find(|step| {
            step.action().is_some() && !records.get(&step.id).is_some_and(|record| record.is_successful())
        });
        if let Some(undone) = undone {
            return Err(format!("{} is to be deleted before {} is done", target.name, undone.id));
        }
    }
    Ok(())
}

/// What was made later goes first, and only what is ours goes at all.
fn check_deletions(state: &State, decision: &StepDecision) -> Result<(), String> {
    for effect in &decision.effects {
        let Verb::Delete { target, uid, creator, .. } = &effect.verb else { continue };
        if uid.is_none() && creator.is_none() {
            return Err(format!("{} is to be deleted whoever made it", target.name));
        }
        if target.name == "made-x" && state.objects.contains_key("made-y") {
            return Err("made-x is to be deleted before made-y is gone".to_owned());
        }
    }
    Ok(())
}

/// Looks at the world: a command that must not run twice did not.
pub fn check_world(state: &State, shape: &Shape) -> Result<(), String> {
    let at_most_once = |definition: &str| {
        [Some(&shape.first), shape.second.as_ref()].into_iter().flatten().any(|plan| {
            plan.steps().iter().any(|step| {
                step.definition == definition
                    && step.action().and_then(linchpin_engine::plan::PlannedAction::delivery)
                        == Some(Delivery::AtMostOnce)
            })
        })
    };
    for (definition, count) in &state.ran.by_definition {
        if *count > 1 && at_most_once(definition) {
            return Err(format!("the command {definition} ran {count} times"));
        }
    }
    for (token, count) in &state.ran.by_token {
        if token.is_empty() {
            return Err("a command ran without a token".to_owned());
        }
        if *count > 1 && state.ran.by_definition.keys().all(|definition| at_most_once(definition)) {
            return Err(format!("the token {token} was used {count} times"));
        }
    }
    if let Some((step, uids)) = state.deleted.iter().find(|(_, uids)| uids.len() > 1) {
        return Err(format!("{step} deleted {uids:?}: only the first was there when it was ordered"));
    }
    let left: Vec<&String> = state.objects.keys().filter(|name| name.starts_with("made-")).collect();
    if state.released && !left.is_empty() && !state.haunted {
        return Err(format!("released, but {left:?} is left behind"));
    }
    Ok(())
}

/// The journal in the status never goes back.
pub fn check_saved(before: Option<&Journal>, after: Option<&Journal>, shape: &Shape) -> Result<(), String> {
    let (Some(before), Some(after)) = (before, after) else { return Ok(()) };
    if after.run.id < before.run.id || after.generation < before.generation {
        return Err("the journal went back".to_owned());
    }
    let plan = |generation| {
        if generation == 2 { shape.second.as_ref().unwrap_or(&shape.first) } else { &shape.first }
    };
    for (id, record) in &before.steps {
        let same = plan(before.generation).position(id).zip(plan(after.generation).position(id)).is_some_and(
            |(one, other)| {
                plan(before.generation).steps()[one].definition
                    == plan(after.generation).steps()[other].definition
            },
        );
        let now = after.steps.get(id).map(|record| record.state);
        let repaired = after.steps.get(id).is_some_and(|record| record.repairing);
        if same && record.state == StepState::Done && now != Some(StepState::Done) && !repaired {
            return Err(format!("{id} was done and is now {now:?}"));
        }
    }
    Ok(())
}

/// From any state, if the world becomes and stays good, the plan completes; or says that it cannot know.
pub fn check_liveness(state: &State, shape: &Shape, bug: Option<super::bug::Bug>) -> Result<(), String> {
    let mut good = state.clone();
    good.orphans.clear();
    good.invalid = false;
    let mut walked = Vec::new();
    for _ in 0..40 {
        let here = fingerprint(&good);
        if shape.good.borrow().contains(&here) {
            shape.good.borrow_mut().extend(walked);
            return Ok(());
        }
        walked.push(here);
        for name in good.foreign_names(shape) {
            if !good.objects.contains_key(&name) {
                good.flip(&name);
            }
        }
        if good.memory.is_none() {
            good.restart();
        }
        let tickets: Vec<_> = good.effects.keys().cloned().collect();
        if good.save_first {
            good.save();
        }
        for ticket in &tickets {
            good.carry_out(ticket, false);
        }
        for name in good.names(shape) {
            good.observe(&name);
        }
        let decision = good.step(shape, bug);
        good.save();
        check_world(&good, shape)?;
        if good.deleting {
            if good.released {
                shape.good.borrow_mut().extend(walked);
                return check_world(&good, shape);
            }
        } else if is_settled(&good, shape) {
            shape.good.borrow_mut().extend(walked);
            return Ok(());
        }
        if good.effects.is_empty() {
            // Time passes only if the operator asked to be woken: nothing else would.
            let Some(wake) = decision.and_then(|decision| decision.wake_at) else { continue };
            good.now = good.now.max(wake);
        }
    }
    Err(format!(
        "the plan does not complete in a good world: {:#?}",
        good.memory.map(|memory| memory.journal.steps)
    ))
}

/// Completed; or held by what only a person can settle.
fn is_settled(state: &State, shape: &Shape) -> bool {
    let Some(memory) = &state.memory else { return false };
    let journal = &memory.journal;
    let by_hand = state.plan(shape).terms.recovery == Recovery::Manual
        && (journal.halt.is_some() || journal.steps.values().any(|record| record.state == StepState::Failed));
    let unknowable = journal.steps.values().any(|record| record.state == StepState::Unknown);
    let as_written = state
        .kept_names(shape)
        .iter()
        .all(|name| state.objects.get(name).is_some_and(|object| !object.taken));
    let pruned =
        !shape.prunes
            || state.haunted
            || state.objects.keys().filter(|name| name.starts_with("made-")).all(|name| {
                state.plan(shape).steps().iter().any(|step| format!("made-{}", step.id) == *name)
            });
    journal.generation == state.generation
        && (journal.completed.is_some() && as_written && pruned || by_hand || unknowable)
}
