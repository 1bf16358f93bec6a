//! Every way a small sweep can go.
//!
//! Two objects that need one write each, one place for orders. Orders arrive or fail, answers are lost, views lag
//! behind, the process starts over, somebody makes an object due again, and the set is unknown at times. The explorer
//! visits every reachable state and checks the promises of `sweep` in each; and it must notice a caller that breaks
//! them, in four known ways.

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
};

use linchpin_engine::{
    contract::{Done, Effect, EffectTarget, Failure, Outcome, PatchKind, Stamp, StepId, Verb, Via},
    sweep::{ItemKey, SweepItem, SweepMemory, SweepNeed, SweepOrder, sweep},
};
use linchpin_words::{KindWord, Timestamp};
use serde_json::json;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Bug {
    None,
    /// Every turn begins with an empty memory.
    Forgets,
    /// Old observations count as new ones.
    BelievesOldViews,
    /// What was known before the set became unknown is ordered.
    OrdersUnknown,
    /// There is no limit.
    IgnoresLimit,
}

const OBJECTS: usize = 2;
const LIMIT: usize = 1;

#[derive(Clone, Copy, Debug, PartialEq)]
struct Object {
    version: u64,
    due: bool,
}

#[derive(Clone, Debug)]
struct State {
    objects: [Object; OBJECTS],
    views: [Object; OBJECTS],
    known: bool,
    memory: SweepMemory,
    /// Sent and not yet arrived; the flag says whether anybody still waits for the answer.
    sent: Vec<(Effect, bool)>,
    answers: Vec<Outcome>,
    /// Writes that took place beyond the first one that each object needed.
    repeated: usize,
    /// How often that was to be expected: starts, lost answers, new needs.
    excused: usize,
    crashes: usize,
    failures: usize,
    renewals: usize,
    blackouts: usize,
    now: i64,
}

fn via() -> Via {
    Via::service_account("shop", "default")
}

fn verb(index: usize) -> Verb {
    Verb::Patch {
        target: EffectTarget {
            kind: KindWord::new("pod"),
            namespace: Some("shop".into()),
            name: index.to_string(),
        },
        kind: PatchKind::Strategic,
        body: Arc::new(json!({})),
        manager: "m".into(),
        once: false,
    }
}

fn key(index: usize) -> ItemKey {
    ItemKey { rule: StepId::new("release"), uid: index.to_string() }
}

fn index_of(effect: &Effect) -> usize {
    let Verb::Patch { target, .. } = &effect.verb else { panic!("a patch") };
    target.name.parse().unwrap()
}

impl State {
    fn new() -> Self {
        let object = Object { version: 1, due: true };
        Self {
            objects: [object; OBJECTS],
            views: [object; OBJECTS],
            known: true,
            memory: SweepMemory::default(),
            sent: Vec::new(),
            answers: Vec::new(),
            repeated: 0,
            excused: 0,
            crashes: 0,
            failures: 0,
            renewals: 0,
            blackouts: 0,
            now: 0,
        }
    }

    fn items(&self, bug: Bug) -> Option<BTreeMap<ItemKey, SweepItem>> {
        if !self.known && bug != Bug::OrdersUnknown {
            return None;
        }
        let items = self.views.iter().enumerate().map(|(index, view)| {
            let need = if view.due {
                SweepNeed::Due(Box::new(SweepOrder { via: via(), verb: verb(index) }))
            } else {
                SweepNeed::Settled
            };
            let seen = if bug == Bug::BelievesOldViews { u64::MAX } else { view.version };
            (key(index), SweepItem { seen, need })
        });
        Some(items.collect())
    }

    /// One turn; what it breaks.
    fn turn(&mut self, outcomes: &[Outcome], bug: Bug) -> Result<(), String> {
        let memory = if bug == Bug::Forgets { SweepMemory::default() } else { self.memory.clone() };
        let limit = if bug == Bug::IgnoresLimit { usize::MAX } else { LIMIT };
        let items = self.items(bug);
        let now = Timestamp::from_second(self.now);
        let swept = sweep(&memory, items.as_ref(), outcomes, limit, now);
        if !self.known && !swept.effects.is_empty() {
            return Err("ordered while the set is unknown".into());
        }
        for effect in &swept.effects {
            let index = index_of(effect);
            if self.sent.iter().any(|(other, waits)| *waits && index_of(other) == index) {
                return Err(format!("two orders at a time for object {index}"));
            }
            self.sent.push((effect.clone(), true));
        }
        if self.sent.iter().filter(|(_, waits)| *waits).count() > LIMIT {
            return Err("more orders at a time than allowed".into());
        }
        self.memory = swept.memory;
        Ok(())
    }

    /// An order arrives.
    fn arrive(&mut self, at: usize, works: bool, answered: bool) {
        let (effect, waits) = self.sent.remove(at);
        let index = index_of(&effect);
        let object = &mut self.objects[index];
        if works {
            if !object.due {
                self.repeated += 1;
            }
            *object = Object { version: object.version + 1, due: false };
        }
        if !waits {
            return;
        }
        let stamp = Stamp {
            uid: index.to_string(),
            generation: 1,
            version: object.version,
            fingerprint: String::new(),
        };
        let result = match (works, answered) {
            (true, true) => Ok(Done { stamp: Some(stamp), ..Done::default() }),
            (false, _) => Err(Failure::Transient("down".into())),
            (true, false) => {
                self.excused += 1;
                Err(Failure::Unknowable("no answer".into()))
            }
        };
        self.answers.push(Outcome { ticket: effect.ticket, at: Timestamp::from_second(self.now), result });
    }

    fn check(&self) -> Result<(), String> {
        (self.repeated <= self.excused)
            .then_some(())
            .ok_or_else(|| format!("{} writes too many, {} excused", self.repeated, self.excused))
    }

    /// Everything that can happen next.
    fn next(&self, bug: Bug) -> Vec<Result<State, String>> {
        let mut all = Vec::new();
        let mut add = |change: &dyn Fn(&mut State) -> Result<(), String>| {
            let mut next = self.clone();
            let result = change(&mut next).and_then(|()| next.check());
            all.push(result.map(|()| next));
        };
        add(&|state| state.turn(&[], bug));
        for at in 0..self.sent.len() {
            add(&|state| {
                state.arrive(at, true, true);
                Ok(())
            });
            if self.failures < 2 {
                add(&|state| {
                    state.failures += 1;
                    state.arrive(at, false, true);
                    Ok(())
                });
                add(&|state| {
                    state.failures += 1;
                    state.arrive(at, true, false);
                    Ok(())
                });
            }
        }
        if !self.answers.is_empty() {
            add(&|state| {
                let outcome = state.answers.remove(0);
                state.turn(&[outcome], bug)
            });
        }
        for index in 0..OBJECTS {
            if self.views[index] != self.objects[index] {
                add(&|state| {
                    state.views[index] = state.objects[index];
                    Ok(())
                });
            }
        }
        if self.crashes < 1 {
            add(&|state| {
                state.crashes += 1;
                // What was sent may still arrive, and what is due on an old view is ordered once more.
                state.excused += state.sent.len() + state.answers.len();
                state.excused += (0..OBJECTS).filter(|at| state.views[*at] != state.objects[*at]).count();
                state.memory = SweepMemory::default();
                state.answers.clear();
                state.sent.iter_mut().for_each(|(_, waits)| *waits = false);
                Ok(())
            });
        }
        if self.renewals < 1 && !self.objects[0].due {
            add(&|state| {
                state.renewals += 1;
                state.objects[0] = Object { version: state.objects[0].version + 1, due: true };
                Ok(())
            });
        }
        if self.blackouts < 1 && self.known {
            add(&|state| {
                state.blackouts += 1;
                state.known = false;
                Ok(())
            });
        }
        if !self.known {
            add(&|state| {
                state.known = true;
                Ok(())
            });
        }
        all
    }

    /// From here, if nothing more goes wrong, everything gets settled.
    fn settles(mut self, bug: Bug) -> Result<(), String> {
        self.known = true;
        for _ in 0..12 {
            while !self.sent.is_empty() {
                self.arrive(0, true, true);
            }
            self.views = self.objects;
            let answers = std::mem::take(&mut self.answers);
            self.now += 60;
            self.turn(&answers, bug)?;
        }
        let settled = self.objects.iter().all(|object| !object.due) && self.memory.in_flight() == 0;
        settled.then_some(()).ok_or_else(|| format!("never settles: {self:?}"))
    }
}

/// How many states there are, or what is broken in one of them.
fn explore(bug: Bug) -> Result<usize, String> {
    let mut seen = HashSet::new();
    let mut open = vec![State::new()];
    while let Some(state) = open.pop() {
        if !seen.insert(format!("{state:?}")) {
            continue;
        }
        state.clone().settles(bug)?;
        for next in state.next(bug) {
            open.push(next?);
        }
        assert!(seen.len() < 2_000_000, "the model is too large");
    }
    Ok(seen.len())
}

#[test]
fn every_way_a_sweep_can_go_keeps_its_promises() {
    let states = explore(Bug::None).unwrap();
    assert!(states > 1_000, "the explorer must get somewhere: {states}");
}

#[test]
fn the_explorer_notices_known_mistakes() {
    for bug in [Bug::Forgets, Bug::BelievesOldViews, Bug::OrdersUnknown, Bug::IgnoresLimit] {
        assert!(explore(bug).is_err(), "{bug:?} must be noticed");
    }
}

#[test]
fn an_item_that_fails_rests_and_touches_no_other() {
    let items: BTreeMap<ItemKey, SweepItem> = (0..3)
        .map(|index| {
            (
                key(index),
                SweepItem {
                    seen: 1,
                    need: SweepNeed::Due(Box::new(SweepOrder { via: via(), verb: verb(index) })),
                },
            )
        })
        .collect();
    let now = Timestamp::from_second(0);
    let first = sweep(&SweepMemory::default(), Some(&items), &[], 3, now);
    assert_eq!(first.effects.len(), 3);
    let outcomes: Vec<Outcome> = first
        .effects
        .iter()
        .map(|effect| {
            let result = match index_of(effect) {
                0 => Err(Failure::Invalid("no".into())),
                1 => Err(Failure::Gone("it is another one".into())),
                _ => Ok(Done {
                    stamp: Some(Stamp {
                        uid: "2".into(),
                        generation: 1,
                        version: 2,
                        fingerprint: String::new(),
                    }),
                    ..Done::default()
                }),
            };
            Outcome { ticket: effect.ticket.clone(), at: now, result }
        })
        .collect();
    let second = sweep(&first.memory, Some(&items), &outcomes, 3, now);
    assert!(second.effects.is_empty(), "{:?}", second.effects);
    assert_eq!(second.failed.keys().collect::<Vec<_>>(), [&key(0)]);
    let wake = second.wake_at.unwrap();
    assert!(wake > now);
    let third = sweep(&second.memory, Some(&items), &[], 3, wake);
    assert_eq!(third.effects.iter().map(index_of).collect::<Vec<_>>(), [0]);
    assert_eq!(third.effects[0].ticket.attempt, 2);
}
