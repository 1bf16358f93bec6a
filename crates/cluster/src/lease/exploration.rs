//! Every way a small election can go.
//!
//! Two electors and one Lease; each elector reads, decides, writes and learns the result in separate steps. Between
//! any two of them time may pass, the process may stop for a while, an answer may be lost or a process may start over.
//! The explorer visits every reachable state up to a horizon and checks in each that at most one of them believes it
//! may write. To prove that it would notice, it is also given two known mistakes and must find both.

use super::{
    BootInstant, Epoch, Leadership, Timing,
    elector::{Elector, LeaseRecord, Move},
};
use std::{
    collections::HashSet,
    hash::{DefaultHasher, Hash, Hasher},
    time::Duration,
};

/// Time stops here; the longest story of interest (lead, stop, be replaced, wake up, take back) takes less.
const HORIZON: u64 = 5;
/// So many writes are stored; without an end to them an instant could last for ever.
const WRITES: u64 = 3;

/// When a leader's term begins to run.
#[derive(Clone, Copy, PartialEq)]
enum TermFrom {
    Sending,
    Answer,
}

#[derive(Clone, PartialEq, Eq, Hash)]
enum Step {
    Idle,
    ReadAnswered(Option<LeaseRecord>),
    WriteAsked(Move, u64),
    WriteAnswered(LeaseRecord, u64),
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Candidate {
    elector: Elector,
    step: Step,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct World {
    now: u64,
    lease: Option<LeaseRecord>,
    writes: u64,
    candidates: Vec<Candidate>,
}

struct Explorer {
    timing: Timing,
    term_from: TermFrom,
    visited: HashSet<u64>,
    led: HashSet<(usize, Epoch)>,
}

fn at(tick: u64) -> BootInstant {
    BootInstant::from_boot(Duration::from_secs(tick))
}

fn newcomer(index: usize, timing: Timing) -> Candidate {
    Candidate { elector: Elector::new(format!("candidate-{index}"), timing), step: Step::Idle }
}

impl World {
    fn leaders(&self) -> Vec<(usize, Epoch)> {
        let term = |candidate: &Candidate| candidate.elector.leadership(at(self.now)).term(at(self.now));
        self.candidates
            .iter()
            .enumerate()
            .filter_map(|(index, candidate)| Some((index, term(candidate)?)))
            .collect()
    }

    /// What the server does with a write: compare the version, store, count.
    fn store(&mut self, decision: &Move, holder: &str, duration: Duration) -> Option<LeaseRecord> {
        let (version, epoch) = match decision {
            Move::Wait => return None,
            Move::Create { epoch } => (None, epoch),
            Move::Take { version, epoch } | Move::Renew { version, epoch } => (Some(version), epoch),
        };
        if self.writes == WRITES || self.lease.as_ref().map(|lease| &lease.version) != version {
            return None;
        }
        self.writes += 1;
        let stored = LeaseRecord {
            holder: Some(holder.to_owned()),
            duration: Some(duration),
            transitions: epoch.0,
            version: self.writes.to_string(),
        };
        self.lease = Some(stored.clone());
        Some(stored)
    }
}

impl Explorer {
    fn new(timing: Timing, term_from: TermFrom) -> Self {
        Self { timing, term_from, visited: HashSet::new(), led: HashSet::new() }
    }

    /// Explores everything; returns a state with two leaders if there is one.
    fn run(&mut self) -> Option<World> {
        let candidates = (0..2).map(|index| newcomer(index, self.timing)).collect();
        let mut open = vec![World { now: 0, lease: None, writes: 0, candidates }];
        while let Some(world) = open.pop() {
            let leaders = world.leaders();
            if leaders.len() > 1 {
                return Some(world);
            }
            self.led.extend(leaders);
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
        if world.now < HORIZON {
            all.push(World { now: world.now + 1, ..world.clone() });
        }
        for index in 0..world.candidates.len() {
            all.push(self.advance(world, index));
            if matches!(world.candidates[index].step, Step::WriteAsked(..) | Step::WriteAnswered(..)) {
                // The request or its answer is lost, or nobody waits for it any more.
                let mut lost = world.clone();
                lost.candidates[index].step = Step::Idle;
                all.push(lost);
            }
        }
        // One of them may crash and come back as somebody new.
        if world.candidates[1].elector.identity() == "candidate-1" {
            let mut crashed = world.clone();
            crashed.candidates[1] = newcomer(2, self.timing);
            all.push(crashed);
        }
        all
    }

    fn advance(&self, world: &World, index: usize) -> World {
        let mut next = world.clone();
        let elector = &mut next.candidates[index].elector;
        let step = match world.candidates[index].step.clone() {
            Step::Idle => match elector.renewal() {
                Some(renewal) => Step::WriteAsked(renewal, world.now),
                None => Step::ReadAnswered(world.lease.clone()),
            },
            Step::ReadAnswered(found) => match elector.read(at(world.now), found) {
                Move::Wait => Step::Idle,
                decision => Step::WriteAsked(decision, world.now),
            },
            Step::WriteAsked(decision, sent) => {
                let identity = elector.identity().to_owned();
                match next.store(&decision, &identity, self.timing.lease_duration()) {
                    Some(stored) => Step::WriteAnswered(stored, sent),
                    None => Step::ReadAnswered(next.lease.clone()),
                }
            }
            Step::WriteAnswered(stored, sent) => {
                let from = if self.term_from == TermFrom::Sending { sent } else { world.now };
                elector.wrote(at(from), stored);
                Step::Idle
            }
        };
        next.candidates[index].step = step;
        next
    }
}

fn timing(lease_duration: u64, renew_deadline: u64) -> Timing {
    let seconds = Duration::from_secs;
    Timing::unchecked(seconds(lease_duration), seconds(renew_deadline), seconds(1))
}

#[test]
fn never_do_two_believe_they_may_write() {
    let mut explorer = Explorer::new(timing(3, 2), TermFrom::Sending);
    let found = explorer.run();
    assert!(found.is_none(), "two leaders: {:?}", found.map(|world| world.leaders()));
    assert!(explorer.visited.len() > 10_000, "only {} states: this explores nothing", explorer.visited.len());
    for index in 0..2 {
        assert!(
            explorer.led.iter().any(|(leader, epoch)| *leader == index && epoch.0 > 0),
            "{index} never took over"
        );
    }
}

#[test]
fn the_explorer_notices_a_holder_that_outstays_its_lease() {
    assert!(Explorer::new(timing(2, 4), TermFrom::Sending).run().is_some());
}

#[test]
fn the_explorer_notices_a_term_that_counts_from_the_answer() {
    assert!(Explorer::new(timing(3, 2), TermFrom::Answer).run().is_some());
}

#[test]
fn a_candidate_that_saw_nothing_knows_of_no_leader() {
    let elector = Elector::new("me".into(), Timing::default());
    assert_eq!(elector.leadership(at(0)), Leadership::Standby { leader: None });
}
