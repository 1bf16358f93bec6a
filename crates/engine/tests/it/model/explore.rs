//! Breadth first over all states, each once.

use std::{
    collections::{HashMap, VecDeque, hash_map::Entry},
    hash::{DefaultHasher, Hash, Hasher},
};

use super::{
    bug::Bug,
    rules::{check_decision, check_liveness, check_saved, check_world},
    shape::Shape,
    state::{State, TICK, doomed_names},
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
    let first = State::first(shape);
    let start = fingerprint(&first);
    // Each state by its fingerprint, with the one before it and what happened in between.
    let mut known: HashMap<u64, (u64, String)> = HashMap::from([(start, (start, String::new()))]);
    let mut open: VecDeque<(u64, State)> = VecDeque::from([(start, first)]);
    while let Some((here, state)) = open.pop_front() {
        for (what, next) in successors(&state, shape, bug) {
            let checked = next.and_then(|next| {
                let there = fingerprint(&next);
                if let Entry::Vacant(unknown) = known.entry(there) {
                    check_world(&next, shape)?;
                    check_liveness(&next, shape, bug)?;
                    unknown.insert((here, what.clone()));
                    open.push_back((there, next));
                }
                Ok(())
            });
            if let Err(violation) = checked {
                let story = story(&known, here, what);
                let violation = Some(format!("{violation}\n  after: {story}"));
                return Explored { states: known.len(), whole: false, violation };
            }
        }
        if known.len() >= limit {
            return Explored { states: known.len(), whole: false, violation: None };
        }
    }
    Explored { states: known.len(), whole: true, violation: None }
}

/// How it came to this.
fn story(known: &HashMap<u64, (u64, String)>, mut here: u64, last: String) -> String {
    let mut story = vec![last];
    while let Some((before, what)) = known.get(&here).filter(|(_, what)| !what.is_empty()) {
        story.push(what.clone());
        here = *before;
    }
    story.reverse();
    story.join(" → ")
}

/// Everything that can happen next.
fn successors(state: &State, shape: &Shape, bug: Option<Bug>) -> Vec<(String, Result<State, String>)> {
    let mut next: Vec<(String, Result<State, String>)> = Vec::new();
    let mut happen = |what: String, change: &dyn Fn(&mut State)| {
        let mut after = state.clone();
        change(&mut after);
        next.push((what, Ok(after)));
    };
    // The world moves.
    if state.flips > 0 {
        for name in state.foreign_names(shape).into_iter().chain(doomed_names(state.plan(shape))) {
            happen(format!("{name} flips"), &|after| {
                after.flips -= 1;
                after.flip(&name);
            });
        }
    }
    if state.flips > 0 {
        for name in state.kept_names(shape).iter().filter(|name| state.objects.contains_key(*name)) {
            happen(format!("{name} is deleted by somebody"), &|after| {
                after.flips -= 1;
                after.flip(name);
            });
            happen(format!("a field of {name} is taken"), &|after| {
                after.flips -= 1;
                after.take(name);
            });
        }
    }
    // Events arrive, late or not at all.
    for name in state.names(shape) {
        if !state.is_current(&name) {
            happen(format!("{name} is observed"), &|after| after.observe(&name));
        }
    }
    if state.ticks > 0 {
        happen("time passes".to_owned(), &|after| {
            after.ticks -= 1;
            after.now = after.now.plus_duration(TICK);
        });
    }
    if state.generation == 1 && shape.second.is_some() && !state.deleting {
        happen("a new generation".to_owned(), &|after| after.generation = 2);
    }
    if state.invalid {
        happen("the spec is valid again".to_owned(), &|after| after.invalid = false);
    } else if state.slips > 0 && !state.deleting {
        happen("the spec becomes invalid".to_owned(), &|after| {
            after.slips -= 1;
            after.slip();
        });
    }
    if shape.deletion && !state.deleting {
        happen("deletion".to_owned(), &|after| after.deleting = true);
    }
    // Requests arrive, or do not; answers come back, or do not.
    for (ticket, (_, stage)) in &state.effects {
        if *stage != super::state::Stage::Sent {
            continue;
        }
        let step = &ticket.step;
        happen(format!("{step} is carried out"), &|after| after.carry_out(ticket, false));
        if state.faults > 0 {
            happen(format!("{step} is carried out, its answer lost"), &|after| {
                after.faults -= 1;
                after.carry_out(ticket, true);
            });
            happen(format!("{step} is lost"), &|after| {
                after.faults -= 1;
                after.drop_request(ticket);
            });
            happen(format!("{step} is refused"), &|after| {
                after.faults -= 1;
                after.refuse(ticket);
            });
        }
    }
    if !state.orphans.is_empty() {
        happen("a late request arrives".to_owned(), &|after| after.orphan_arrives());
        happen("a late request is lost".to_owned(), &|after| {
            after.orphans.remove(0);
        });
    }
    if state.memory.is_none() {
        happen("restart".to_owned(), &State::restart);
        return next;
    }
    if state.faults > 0 {
        happen("crash".to_owned(), &|after| {
            after.faults -= 1;
            after.crash();
        });
        if state.save_first {
            happen("saving fails".to_owned(), &|after| {
                after.faults -= 1;
                after.refuse_held();
            });
        }
    }
    // The status is written, now or later.
    let saved = state.status.as_ref() == state.memory.as_ref().map(|memory| &memory.journal);
    if !saved || state.save_first {
        let mut after = state.clone();
        after.save();
        let checked = check_saved(state.status.as_ref(), after.status.as_ref(), shape);
        next.push(("save".to_owned(), checked.map(|()| after)));
    }
    // The operator steps, also for no reason at all: a duplicated event.
    if !state.any_held() {
        let mut after = state.clone();
        let before = after.clone();
        if let Some(decision) = after.step(shape, bug) {
            let checked = check_decision(&before, shape, &decision);
            next.push(("step".to_owned(), checked.map(|()| after)));
        }
    }
    next
}
