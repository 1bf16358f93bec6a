//! Breadth first over all states, each once.

use std::{
    collections::{HashSet, VecDeque},
    hash::{DefaultHasher, Hash, Hasher},
};

use super::{
    bug::Bug,
    rules::{check_decision, check_liveness, check_saved, check_world},
    shape::Shape,
    state::{State, TICK},
};

pub struct Explored {
    pub states: usize,
    /// Whether there is no state beyond.
    pub whole: bool,
    pub violation: Option<String>,
}

pub fn fingerprint(state: &State) -> u64 {
    let mut hasher = DefaultHasher::new();
    state.hash(&mut hasher);
    hasher.finish()
}

pub fn explore(shape: &Shape, bug: Option<Bug>, limit: usize) -> Explored {
    // What is known of one engine says nothing of another.
    shape.good.borrow_mut().clear();
    let mut known: HashSet<u64> = HashSet::new();
    let mut open: VecDeque<State> = VecDeque::from([State::first(shape)]);
    known.insert(fingerprint(&State::first(shape)));
    while let Some(state) = open.pop_front() {
        for next in successors(&state, shape, bug) {
            let next = match next {
                Ok(next) => next,
                Err(violation) => {
                    return Explored { states: known.len(), whole: false, violation: Some(violation) };
                }
            };
            if known.insert(fingerprint(&next)) {
                if let Err(violation) =
                    check_world(&next, shape).and_then(|()| check_liveness(&next, shape, bug))
                {
                    return Explored { states: known.len(), whole: false, violation: Some(violation) };
                }
                open.push_back(next);
            }
        }
        if known.len() >= limit {
            return Explored { states: known.len(), whole: false, violation: None };
        }
    }
    Explored { states: known.len(), whole: true, violation: None }
}

/// Everything that can happen next.
fn successors(state: &State, shape: &Shape, bug: Option<Bug>) -> Vec<Result<State, String>> {
    let mut next: Vec<Result<State, String>> = Vec::new();
    let mut happen = |change: &dyn Fn(&mut State)| {
        let mut after = state.clone();
        change(&mut after);
        next.push(Ok(after));
    };
    // The world moves.
    if state.flips > 0 {
        for name in state.foreign_names(shape) {
            happen(&|after| {
                after.flips -= 1;
                after.flip(&name);
            });
        }
    }
    // Events arrive, late or not at all.
    for name in state.names(shape) {
        if !state.is_current(&name) {
            happen(&|after| after.observe(&name));
        }
    }
    if state.ticks > 0 {
        happen(&|after| {
            after.ticks -= 1;
            after.now = after.now.plus_duration(TICK);
        });
    }
    if state.generation == 1 && shape.second.is_some() && !state.deleting {
        happen(&|after| after.generation = 2);
    }
    if shape.deletion && !state.deleting {
        happen(&|after| after.deleting = true);
    }
    // Requests arrive, or do not; answers come back, or do not.
    for (ticket, (_, stage)) in &state.effects {
        if *stage != super::state::Stage::Sent {
            continue;
        }
        happen(&|after| after.carry_out(ticket, false));
        if state.faults > 0 {
            happen(&|after| {
                after.faults -= 1;
                after.carry_out(ticket, true);
            });
            happen(&|after| {
                after.faults -= 1;
                after.drop_request(ticket);
            });
            happen(&|after| {
                after.faults -= 1;
                after.refuse(ticket);
            });
        }
    }
    if !state.orphans.is_empty() {
        happen(&|after| after.orphan_arrives());
        happen(&|after| {
            after.orphans.remove(0);
        });
    }
    if state.memory.is_none() {
        happen(&State::restart);
        return next;
    }
    if state.faults > 0 {
        happen(&|after| {
            after.faults -= 1;
            after.crash();
        });
        if state.save_first {
            happen(&|after| {
                after.faults -= 1;
                after.fail_to_save();
            });
        }
    }
    // The status is written, now or later.
    let saved = state.status.as_ref() == state.memory.as_ref().map(|memory| &memory.journal);
    if !saved || state.save_first {
        let mut after = state.clone();
        after.save();
        let checked = check_saved(state.status.as_ref(), after.status.as_ref(), shape);
        next.push(checked.map(|()| after));
    }
    // The operator steps, also for no reason at all: a duplicated event.
    if !state.any_held() {
        let mut after = state.clone();
        let before = after.clone();
        if let Some(decision) = after.step(shape, bug) {
            let checked = check_decision(&before, shape, &decision);
            next.push(checked.map(|()| after));
        }
    }
    next
}
