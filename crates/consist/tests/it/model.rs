//! Employments under everything that can happen: killed after every effect, answers lost, late and twice, pods that come
//! and go, a provider that is down. And mistakes that these checks must find.

use std::{
    collections::{BTreeSet, VecDeque},
    time::Duration,
};

use linchpin_consist::settle::{EmployerPhase, WorkSlot};
use proptest::prelude::*;

use crate::world::{Bug, Emptied, Event, World};

/// Stories that end in every kind of rest.
const STORIES: &[&[Event]] = &[
    &[],
    &[Event::Ready(1, true), Event::Ready(0, false)],
    &[Event::Ready(0, false), Event::Ready(0, true)],
    &[Event::Delete(0), Event::Ready(1, true)],
    &[Event::Unselect(0), Event::Ready(1, true)],
    &[Event::Label(false)],
    &[Event::Label(false), Event::Label(true)],
    &[Event::DeleteEmployer],
    &[Event::Delete(0), Event::DeleteEmployer],
    &[Event::Provider(false), Event::Ready(0, false), Event::Delete(1)],
    &[Event::Delete(0), Event::Stop(0), Event::Label(false)],
    &[Event::Provider(false), Event::DeleteEmployer, Event::Strip, Event::Delete(1)],
];

/// Tells a story; after the `kill`th effect the process is killed, before or after its outcome is known.
fn tell(story: &[Event], kill: Option<usize>, bug: Bug) -> (usize, Result<(), String>) {
    let mut world = World::new(bug);
    let mut killed = false;
    for event in std::iter::once(None).chain(story.iter().copied().map(Some)) {
        if let Some(event) = event {
            world.happen(event);
        }
        for _ in 0..30 {
            world.turn();
            while !world.flight.is_empty() {
                world.carry_out(0, true);
                if !killed && kill == Some(world.effects) {
                    killed = true;
                    world.crash();
                }
            }
            world.deliver_look();
        }
    }
    let rest = world.run_out();
    let wrong = world.wrong.first().cloned().map_or(rest, Err);
    (world.effects, wrong)
}

#[test]
fn every_story_ends_well_killed_after_every_effect() {
    for story in STORIES {
        let (effects, end) = tell(story, None, Bug::None);
        end.unwrap_or_else(|wrong| panic!("{story:?}: {wrong}"));
        assert!(effects >= 5, "{story:?} did nothing");
        for kill in 1..=effects {
            let (_, end) = tell(story, Some(kill), Bug::None);
            end.unwrap_or_else(|wrong| panic!("{story:?} killed after effect {kill}: {wrong}"));
        }
    }
}

/// What the explorer can do next.
#[derive(Clone, Copy, Debug)]
enum Move {
    Turn,
    /// A turn some time later: pauses are over.
    LaterTurn,
    DeliverLook,
    CarryOut(usize, bool),
    /// Its outcome arrives twice.
    Twice(usize),
    Fail(usize),
    Crash,
    Happen(Event),
}

/// What happens in the world while it is explored: every subset, in this order, at any time.
const SCRIPTS: &[&[Event]] = &[
    &[Event::Ready(0, false), Event::SessionsEnd, Event::Ready(0, true)],
    &[Event::Provider(false), Event::Ready(0, false), Event::Provider(true)],
    &[Event::Delete(0), Event::SessionsEnd, Event::Stop(0)],
    &[Event::Label(false), Event::SessionsEnd, Event::Label(true)],
    &[Event::Ready(0, false), Event::DeleteEmployer],
    &[Event::Unselect(0), Event::SessionsEnd],
    &[Event::DeleteEmployer, Event::Strip, Event::SessionsEnd],
];

/// A world without its clocks and counters, so that worlds which differ in nothing else are one.
fn shape(world: &World, next: usize, faults: usize) -> String {
    use std::fmt::Write as _;
    let mut text = format!(
        "{next} {faults} {} {} {:?} {} {:?} {} {} ",
        world.employer,
        world.deleting,
        world.clean,
        world.binding.is_some(),
        world.servers,
        world.vip,
        world.up
    );
    for pod in &world.pods {
        let _ = write!(
            text,
            "{} {} {} {} {:?} {:?}|",
            pod.there,
            pod.ready,
            pod.selected,
            pod.terminating,
            pod.entries.is_some(),
            pod.finalizers
        );
    }
    for order in &world.flight {
        let _ = write!(text, "{:?}", order.slot);
        if order.slot == WorkSlot::Provider {
            let _ = write!(text, "{:?}", order.act);
        }
    }
    let look = |look: &Option<linchpin_consist::settle::ProviderLook>| {
        look.as_ref().map(|look| (look.about, format!("{:?}", look.result)))
    };
    let _ = write!(text, "{:?} {:?} {}", look(&world.look), look(&world.looking), world.outcomes.len());
    let _ = write!(text, "{} {}", world.memory.is_calling(), world.memory.is_busy());
    text
}

fn moves(world: &World, script: &[Event], next: usize, faults: usize) -> Vec<Move> {
    let mut moves = vec![Move::Turn, Move::LaterTurn];
    if world.looking.is_some() {
        moves.push(Move::DeliverLook);
    }
    for place in 0..world.flight.len() {
        moves.push(Move::CarryOut(place, true));
        if faults > 0 {
            moves.extend([Move::CarryOut(place, false), Move::Twice(place), Move::Fail(place)]);
        }
    }
    if faults > 0 {
        moves.push(Move::Crash);
    }
    if let Some(event) = script.get(next) {
        moves.push(Move::Happen(*event));
    }
    moves
}

fn make(world: &mut World, step: Move) {
    match step {
        Move::Turn => drop(world.turn()),
        Move::LaterTurn => {
            world.time += 10_000_000;
            world.turn();
        }
        Move::DeliverLook => world.deliver_look(),
        Move::CarryOut(place, answered) => world.carry_out(place, answered),
        Move::Twice(place) => {
            world.carry_out(place, true);
            world.repeat_outcome();
        }
        Move::Fail(place) => world.fail(place),
        Move::Crash => world.crash(),
        Move::Happen(event) => world.happen(event),
    }
}

/// Explores what a script can come to with one fault; returns how many worlds there are, or the first that is wrong.
fn explore(script: &[Event], bug: Bug, most: usize) -> Result<usize, String> {
    let mut start = World::new(bug);
    // The way to a pod in traffic is the stories' matter: exploring begins there.
    for _ in 0..30 {
        start.turn();
        while !start.flight.is_empty() {
            start.carry_out(0, true);
        }
        start.deliver_look();
    }
    let mut seen = BTreeSet::from([shape(&start, 0, 1)]);
    let mut queue = VecDeque::from([(start, 0, 1)]);
    while let Some((world, next, faults)) = queue.pop_front() {
        for step in moves(&world, script, next, faults) {
            let mut after = world.clone();
            make(&mut after, step);
            if let Some(wrong) = after.wrong.first() {
                return Err(format!("{step:?}: {wrong}"));
            }
            let happened = usize::from(matches!(step, Move::Happen(_)));
            let failed =
                matches!(step, Move::Crash | Move::Fail(_) | Move::Twice(_) | Move::CarryOut(_, false));
            let (next, faults) = (next + happened, faults - usize::from(failed));
            if seen.len() < most && seen.insert(shape(&after, next, faults)) {
                queue.push_back((after, next, faults));
            }
        }
        if next == script.len() && seen.len() % 7 == 0 {
            world.clone().run_out()?;
        }
    }
    Ok(seen.len())
}

#[test]
fn no_interleaving_with_one_fault_releases_a_pod_in_traffic_or_leaves_something_behind() {
    for script in SCRIPTS {
        let worlds = explore(script, Bug::None, 6_000).unwrap_or_else(|wrong| panic!("{script:?}: {wrong}"));
        assert!(worlds > 40, "{script:?}: only {worlds} worlds");
    }
}

#[test]
fn an_answer_that_is_suddenly_empty_releases_nobody() {
    for events in [
        &[Event::Ready(0, false)][..],
        &[Event::Unselect(0)],
        &[Event::Label(false)],
        &[Event::DeleteEmployer],
        &[],
    ] {
        // The empty answer comes at every point of the way.
        let sides = [Emptied::Both, Emptied::Employer, Emptied::Employees];
        for (at, emptied) in (0..12).flat_map(|at| sides.map(|side| (at, side))) {
            let mut world = World::new(Bug::None);
            let round = |world: &mut World| {
                world.turn();
                while !world.flight.is_empty() {
                    world.carry_out(0, true);
                }
                world.deliver_look();
            };
            for _ in 0..30 {
                round(&mut world);
            }
            assert!(world.servers.get(&0).is_some_and(|server| server.on), "it is in traffic");
            for event in events {
                world.happen(*event);
            }
            for number in 0..12 {
                if number == at {
                    world.empty_once = Some(emptied);
                }
                round(&mut world);
            }
            assert!(world.wrong.is_empty(), "{events:?}, {emptied:?} empty at {at}: {:?}", world.wrong);
            world.empty_once = None;
            world.run_out().unwrap_or_else(|wrong| panic!("{events:?}, {emptied:?} empty at {at}: {wrong}"));
        }
    }
}

#[test]
fn an_answer_older_than_two_times_resync_proves_nothing() {
    let mut world = World::new(Bug::None);
    world.happen(Event::Ready(1, true));
    for _ in 0..30 {
        world.turn();
        while !world.flight.is_empty() {
            world.carry_out(0, true);
        }
        world.deliver_look();
    }
    let settled = world.turn().expect("a decision");
    assert_eq!(settled.report.phase, EmployerPhase::Synced, "{}", settled.report.message);
    // The next look never comes back.
    let old = settled.report.last_answer.expect("an answer").plus_duration(Duration::from_mins(2));
    world.time = old.as_microsecond() - 2;
    let before = world.turn().expect("a decision");
    assert_eq!(before.report.phase, EmployerPhase::Synced, "{}", before.report.message);
    assert!(before.wake_at.is_some_and(|at| at <= old), "somebody looks when it is too old");
    world.time = old.as_microsecond();
    let report = world.turn().expect("a decision").report;
    assert_eq!((report.phase, report.message.contains("too old")), (EmployerPhase::Syncing, true));
}

#[test]
fn seeded_bugs_are_caught() {
    for bug in [
        Bug::UnknownIsAbsent,
        Bug::OldLooksCount,
        Bug::OtherPodsCount,
        Bug::EntriesAreAssumed,
        Bug::ClaimsAreBelieved,
    ] {
        let by_story = STORIES.iter().any(|story| tell(story, None, bug).1.is_err());
        let caught = by_story || SCRIPTS.iter().any(|script| explore(script, bug, 6_000).is_err());
        assert!(caught, "{bug:?} is not noticed");
    }
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        (0..2_usize, any::<bool>()).prop_map(|(pod, ready)| Event::Ready(pod, ready)),
        (0..2_usize).prop_map(Event::Delete),
        (0..2_usize).prop_map(Event::Unselect),
        Just(Event::SessionsEnd),
        any::<bool>().prop_map(Event::Label),
        any::<bool>().prop_map(Event::Provider),
        Just(Event::DeleteEmployer),
        Just(Event::Strip),
    ]
}

proptest! {
    #[test]
    fn any_walk_keeps_the_rules_and_ends_well(
        steps in prop::collection::vec((0..12_u8, any::<prop::sample::Index>(), event()), 0..120),
    ) {
        let mut world = World::new(Bug::None);
        for (kind, place, event) in steps {
            let place = if world.flight.is_empty() { None } else { Some(place.index(world.flight.len())) };
            match (kind, place) {
                (0..=3, _) => drop(world.turn()),
                (4 | 5, _) => world.deliver_look(),
                (6 | 7, Some(place)) => world.carry_out(place, true),
                (8, Some(place)) => world.carry_out(place, false),
                (9, Some(place)) => world.fail(place),
                (10, _) => world.crash(),
                (11, _) => world.happen(event),
                _ => {}
            }
            prop_assert!(world.wrong.is_empty(), "{:?}", world.wrong);
        }
        let end = world.run_out();
        prop_assert!(end.is_ok() && world.wrong.is_empty(), "{:?} {:?}", end, world.wrong);
    }
}
