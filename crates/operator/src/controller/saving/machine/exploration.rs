//! Every way in which an object of ours can be saved, up to a horizon.
//!
//! One object, one API server, one machine. Decisions order effects that rely on a saved journal and on a finalizer;
//! writes reach the server or do not, their answers arrive or are lost; somebody else changes the object; what the server
//! has arrives sooner or later. The explorer visits every reachable state and checks whenever effects start that the
//! server really has what they rely on, and in every state that held effects do not wait for nothing. To prove that it
//! would notice, it is also given known mistakes and must find each.

use std::{
    collections::HashSet,
    hash::{DefaultHasher, Hash, Hasher},
};

use super::{FirstJournal, FirstJournalMay, NextWrite, SavingMachine, SavingWrite, WriteEnd};

/// So many decisions order effects.
const ORDERS: u64 = 2;
/// So often somebody else changes the object.
const OTHERS: u8 = 2;
/// So many writes reach the server.
const WRITES: u8 = 5;

/// A mistake that the explorer must find.
#[derive(Clone, Copy, PartialEq)]
enum Mistake {
    None,
    /// Effects start without their finalizer.
    FinalizerForgotten,
    /// Asking for the finalizer counts as having it.
    FinalizerWhenAsked,
    /// A journal counts as saved when its write is sent.
    SavedWhenSent,
    /// A write whose answer is lost counts as done.
    SavedWhenLost,
    /// A status counts as what it would be if it were drawn now.
    SavedAsDecided,
    /// A conflict waits for a newer object although it is here.
    DeafAfterConflict,
}

/// What the API server has.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Server {
    version: u8,
    /// Critical changes in the journal of the status.
    journal: Option<u64>,
    first_journal: Option<u64>,
    finalizer: bool,
}

impl Server {
    /// The critical changes that a restart would find.
    fn remembers(&self) -> u64 {
        self.journal.or(self.first_journal).unwrap_or(0)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Flight {
    Sent(SavingWrite, u8),
    /// The answer: done with this version, or refused because the object is newer.
    Answered(SavingWrite, u8, Option<u8>),
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
struct World {
    server: Server,
    machine: SavingMachine,
    /// The version that the next write relies on.
    version: u8,
    /// Whether the subject knows its finalizer to be there.
    has_finalizer: bool,
    /// Critical changes of the journal in memory.
    critical: u64,
    /// What the held effects really need.
    needed: u64,
    flight: Option<Flight>,
    /// Whether a turn is due.
    called: bool,
    others: u8,
    writes: u8,
    /// Whether effects started that relied on what is not there.
    broken: bool,
    started: bool,
}

struct Explorer {
    mistake: Mistake,
    visited: HashSet<u64>,
    started: usize,
}

impl Explorer {
    fn new(mistake: Mistake) -> Self {
        Self { mistake, visited: HashSet::new(), started: 0 }
    }

    /// Explores everything; returns what is wrong with a state, if there is one.
    fn run(&mut self) -> Option<&'static str> {
        let mut open = vec![World { called: true, ..World::default() }];
        while let Some(world) = open.pop() {
            if world.broken {
                return Some("effects started before what they rely on was saved");
            }
            if hangs(&world) {
                return Some("held effects wait for nothing");
            }
            self.started += usize::from(world.started);
            for next in self.successors(&world) {
                let mut hasher = DefaultHasher::new();
                next.hash(&mut hasher);
                if self.visited.insert(hasher.finish()) {
                    open.push(next);
                }
            }
        }
        None
    }

    fn successors(&self, world: &World) -> Vec<World> {
        let mut all = Vec::new();
        if world.called {
            all.push(turn(*world, false));
            if world.critical < ORDERS {
                all.push(turn(*world, true));
            }
        }
        if world.machine.needs.is_some() {
            let mut withdrawn = *world;
            withdrawn.machine.withdraw();
            all.push(World { called: true, ..withdrawn });
        }
        if world.flight.is_none() {
            all.extend([false, true].into_iter().filter_map(|crowded| self.save(*world, crowded)));
        }
        if let Some(flight) = world.flight {
            all.extend(self.fly(world, flight));
        }
        if world.version < world.server.version {
            all.push(arrived(*world));
        }
        if world.others < OTHERS {
            let server = Server { version: world.server.version + 1, ..world.server };
            all.push(World { server, others: world.others + 1, ..*world });
        }
        all
    }

    /// Begins a write, where there is one.
    fn save(&self, mut world: World, crowded: bool) -> Option<World> {
        if world.writes == WRITES {
            return None;
        }
        let status = SavingWrite::Status { critical: world.critical, journaled: true };
        let write = match world.machine.next() {
            NextWrite::Nothing => return None,
            NextWrite::Draw => {
                let new = world.server.journal != Some(world.critical);
                if !world.machine.drawn(new) {
                    return Some(world);
                }
                status
            }
            NextWrite::Metadata { finalizer, first_journal } => {
                let unsaved = world.critical > world.machine.saved;
                let first_journal = match first_journal {
                    FirstJournalMay::Go => Some(FirstJournal::Shed),
                    FirstJournalMay::Be if crowded && unsaved => Some(FirstJournal::Put(world.critical)),
                    FirstJournalMay::Be | FirstJournalMay::Stay => None,
                };
                SavingWrite::Metadata { finalizer, first_journal }
            }
        };
        world.machine.begin(write);
        match self.mistake {
            Mistake::SavedWhenSent => world.machine.saved = world.critical,
            Mistake::FinalizerWhenAsked => world.machine.finalizer = None,
            _ => {}
        }
        world.flight = Some(Flight::Sent(write, world.version));
        world.writes += 1;
        Some(world)
    }

    /// What becomes of a write under way.
    fn fly(&self, world: &World, flight: Flight) -> Vec<World> {
        let mut all = Vec::new();
        match flight {
            Flight::Sent(write, relied_on) => {
                let mut stored = *world;
                let answer = (relied_on == world.server.version).then(|| store(&mut stored.server, write));
                stored.flight = Some(Flight::Answered(write, relied_on, answer));
                all.push(stored);
                // It never reaches the server.
                all.push(self.ended(World { flight: None, ..*world }, WriteEnd::Failed, write));
            }
            Flight::Answered(write, relied_on, answer) => {
                let mut next = World { flight: None, ..*world };
                let ended = if let Some(version) = answer {
                    let newest = version > next.version;
                    next.version = next.version.max(version);
                    WriteEnd::Done { newest }
                } else {
                    let deaf = self.mistake == Mistake::DeafAfterConflict;
                    WriteEnd::Conflict { known: world.version != relied_on && !deaf }
                };
                all.push(self.ended(next, ended, write));
                // The answer is lost.
                all.push(self.ended(World { flight: None, ..*world }, WriteEnd::Failed, write));
            }
        }
        all
    }

    fn ended(&self, mut world: World, ended: WriteEnd, write: SavingWrite) -> World {
        let lost_counts = self.mistake == Mistake::SavedWhenLost && ended == WriteEnd::Failed;
        world.machine.ended(if lost_counts { WriteEnd::Done { newest: true } } else { ended });
        if self.mistake == Mistake::SavedAsDecided && matches!(ended, WriteEnd::Done { .. }) {
            world.machine.saved = world.critical;
        }
        if let (WriteEnd::Done { newest: true }, SavingWrite::Metadata { finalizer: Some(present), .. }) =
            (ended, write)
        {
            world.has_finalizer = present;
        }
        if self.mistake == Mistake::FinalizerForgotten {
            world.machine.finalizer = None;
        }
        if world.machine.release_held() {
            world.started = true;
            world.broken = world.server.remembers() < world.needed || !world.server.finalizer;
        }
        World { called: true, ..world }
    }
}

/// Whether effects are held and nothing will happen any more.
fn hangs(world: &World) -> bool {
    let arrives = world.version < world.server.version;
    let moves = world.flight.is_some() || world.called || arrives || world.machine.is_due();
    world.machine.needs.is_some() && !moves
}

/// One turn: a decision, with or without an order that relies on what is saved.
fn turn(mut world: World, orders: bool) -> World {
    world.called = false;
    if orders {
        world.critical += 1;
        world.needed = world.critical;
        world.machine.hold(world.critical);
    }
    let wanted = world.critical > 0;
    world.machine.decided((wanted && !world.has_finalizer).then_some(true), false);
    world
}

/// What the server has arrives.
fn arrived(mut world: World) -> World {
    world.version = world.server.version;
    world.has_finalizer = world.server.finalizer;
    world.machine.arrived(world.server.journal.is_some(), world.server.first_journal.is_some());
    World { called: true, ..world }
}

/// The server takes a write. Returns the new version.
fn store(server: &mut Server, write: SavingWrite) -> u8 {
    match write {
        SavingWrite::Status { critical, .. } => server.journal = Some(critical),
        SavingWrite::Metadata { finalizer, first_journal } => {
            server.finalizer = finalizer.unwrap_or(server.finalizer);
            match first_journal {
                Some(FirstJournal::Put(critical)) => server.first_journal = Some(critical),
                Some(FirstJournal::Shed) => server.first_journal = None,
                None => {}
            }
        }
    }
    server.version += 1;
    server.version
}

#[test]
fn no_effect_starts_before_what_it_relies_on_is_saved_and_none_waits_for_nothing() {
    let mut explorer = Explorer::new(Mistake::None);
    assert_eq!(explorer.run(), None);
    assert!(explorer.visited.len() > 10_000, "only {} states: this explores nothing", explorer.visited.len());
    assert!(explorer.started > 100, "effects start {} times only", explorer.started);
}

#[test]
fn the_explorer_notices_what_would_break_the_law() {
    for mistake in [
        Mistake::FinalizerForgotten,
        Mistake::FinalizerWhenAsked,
        Mistake::SavedWhenSent,
        Mistake::SavedWhenLost,
        Mistake::SavedAsDecided,
    ] {
        let found = Explorer::new(mistake).run();
        assert_eq!(found, Some("effects started before what they rely on was saved"));
    }
}

#[test]
fn the_explorer_notices_effects_that_wait_for_nothing() {
    assert_eq!(Explorer::new(Mistake::DeafAfterConflict).run(), Some("held effects wait for nothing"));
}
