//! The laws of an admitted transition in every story, and that each of them is really looked at: for each law a bug is seeded
//! that a careless engine could have, and some story tells it.
//!
//! A1: what is ordered was admitted, in one world where all gates held, and a crash does not lose that: it was saved first, or
//! what is written tells of it. A2: only another edition's admission changes what is admitted, whatever crashes. A3: after it, gates make no difference. A4: while held, what is unchanged is repaired
//! and what is changed is not written. A5: nothing is pruned before. A6: clocks count from the first sight of the edition.
//! A7: what halts because a gate has failed halts as long as that is seen, and no longer. O: an order to pass a gate helps one
//! admission, and is a new one when it is given again.
//! S1: a soft gate changes only when. L1: what was met once and for all stays met. L2: what was met for one edition does not
//! count for the next. S2 is the law of [`circles`](super::circles).

mod story;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use linchpin_engine::{
    contract::StepId,
    plan::{Clauses, LatchScope, Plan, Profile, Test},
    readiness::Wanted,
};
use linchpin_lang::cel::Expression;
use proptest::{
    prelude::*,
    test_runner::{RngAlgorithm, TestRng, TestRunner},
};

use self::story::Story;
use super::{
    admission::{text, whole},
    ready, watching,
};
use crate::build::{Steps as _, require};

/// How long the soft gate is waited for.
const PATIENCE: u64 = 300;
/// What each act of a plan is called.
type Definitions = BTreeMap<StepId, String>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bug {
    AdmitsWithoutGates,
    SavesTooLate,
    TrustsWhatIsNotSaved,
    ForgetsThePledge,
    TakesTheNewest,
    ForgetsWhatIsAdmitted,
    GatesHoldLater,
    WritesWhatIsHeld,
    PrunesWhatIsHeld,
    KeepsOldClocks,
    SoftGateNeverGivesWay,
    LatchIsForgotten,
    LatchOutlivesItsEdition,
    HaltsForGood,
    OrdersAreNeverUsedUp,
    OrdersWorkOnce,
}

/// Gates: `a` is hard, `s` soft, `o` met once and for all, `p` once for each edition. x stays as it is, y is another one in each version, z is there in
/// odd ones only.
fn plan(version: u32, soft: bool) -> Plan {
    parts(version, version % 2 == 1, soft)
}

fn parts(version: u32, with_z: bool, soft: bool) -> Plan {
    let mut gates = vec!["a", "o", "p"];
    gates.extend(soft.then_some("s"));
    let mut steps = vec![
        require("a").asking(|gate| gate.test = may_fail()),
        require("o").asking(|gate| gate.lasts = LatchScope::ForGood),
        require("p").asking(|gate| (gate.latch, gate.lasts) = (true, LatchScope::Edition)),
    ];
    if soft {
        let mut gate = require("s");
        gate.patience = Some(Duration::from_secs(PATIENCE));
        steps.push(gate);
    }
    steps.extend([text("x", 1).after(&gates), ready("x"), text("y", version).after(&["made-x"]), ready("y")]);
    if with_z {
        steps.extend([text("z", 1).after(&gates), ready("z")]);
    }
    whole(watching(steps, 1), &format!("r{version}"), &gates)
}

/// Ready if it is there, and failed if it says so.
fn may_fail() -> Test {
    let clauses = |source: &str| Clauses {
        cel: Some(std::sync::Arc::new(Expression::compile("a", source, &["self"]).expect("an expression"))),
        conditions: Vec::new(),
    };
    let profile = Profile {
        ready_when: clauses("!has(self.data)"),
        failed_when: Some(clauses("has(self.data)")),
        ..Profile::default()
    };
    Test { state: Some(Wanted::Ready), profile: Some(std::sync::Arc::new(profile)), ..Test::default() }
}

/// What may happen between two steps.
#[derive(Clone, Copy, Debug)]
enum Event {
    Shows {
        a: bool,
        s: bool,
        o: bool,
    },
    /// What is to be met once for each edition is there, or gone.
    ShowsForNow(bool),
    /// The hard gate is seen to have failed.
    Fails,
    /// The order to pass the hard gate is given, or taken away.
    Orders(bool),
    Succeeds,
    Drifts,
    /// What changed since, and nothing waits for, is saved.
    Saves,
    /// What is under way arrives, or never does; gates and the source may change before somebody looks again.
    Crash {
        arrives: bool,
        lost: bool,
        updated: bool,
    },
    /// What was under way at an earlier crash arrives after all.
    ArrivesLate,
    /// The spec makes no sense for a moment.
    Slips,
    Update,
    TimePasses(u64),
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        4 => any::<(bool, bool, bool)>().prop_map(|(a, s, o)| Event::Shows { a, s, o }),
        2 => Just(Event::Shows { a: true, s: true, o: true }),
        2 => any::<bool>().prop_map(Event::ShowsForNow),
        2 => Just(Event::Fails),
        2 => any::<bool>().prop_map(Event::Orders),
        6 => Just(Event::Succeeds),
        2 => Just(Event::Drifts),
        4 => Just(Event::Saves),
        2 => any::<(bool, bool, bool)>()
            .prop_map(|(arrives, lost, updated)| Event::Crash { arrives, lost, updated }),
        1 => Just(Event::ArrivesLate),
        1 => Just(Event::Slips),
        2 => Just(Event::Update),
        2 => prop_oneof![Just(1), Just(PATIENCE / 2), Just(PATIENCE)].prop_map(Event::TimePasses),
    ];
    prop::collection::vec(event, 0..50)
}

/// Tells a story; the law that it breaks.
fn tell(events: &[Event], bug: Option<Bug>) -> Result<(), String> {
    let mut ends = Vec::new();
    for soft in [true, false] {
        let mut story = Story::new(bug, soft);
        for event in events {
            story.happens(*event);
            story.step()?;
        }
        story.ends_well()?;
        let journal = &story.play.memory.journal;
        let last: BTreeSet<(String, String)> = story
            .written
            .into_iter()
            .filter(|(id, text)| id != "y" || text.ends_with(&format!("-{}", story.version)))
            .collect();
        let revision = journal.editions.ready.as_ref().map(|edition| edition.revision.clone());
        ends.push((last, revision));
    }
    // z is written only while there is time for it: what is there at the end counts.
    for (written, _) in &mut ends {
        written.retain(|(id, _)| id != "z");
    }
    if ends[0] != ends[1] {
        return Err(format!("S1: a soft gate changes what is done: {:?} and {:?}", ends[0], ends[1]));
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn a1_to_a6_s1_and_l1_hold_in_every_story(events in events()) {
        tell(&events, None).map_err(TestCaseError::fail)?;
    }
}

/// Tells the same stories each time, and many: few are about a process that dies at the one wrong moment.
pub(super) fn runner() -> TestRunner {
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    TestRunner::new_with_rng(ProptestConfig::with_cases(4096), rng)
}

#[test]
fn for_each_law_a_seeded_bug_is_caught_by_it() {
    for (bug, law) in [
        (Bug::AdmitsWithoutGates, "A1"),
        (Bug::SavesTooLate, "A1"),
        (Bug::TrustsWhatIsNotSaved, "A1"),
        (Bug::TakesTheNewest, "A1"),
        (Bug::ForgetsThePledge, "A2"),
        (Bug::ForgetsWhatIsAdmitted, "A2"),
        (Bug::GatesHoldLater, "A3"),
        (Bug::WritesWhatIsHeld, "A4"),
        (Bug::PrunesWhatIsHeld, "A5"),
        (Bug::KeepsOldClocks, "A6"),
        (Bug::SoftGateNeverGivesWay, "S1"),
        (Bug::LatchIsForgotten, "L1"),
        (Bug::LatchOutlivesItsEdition, "L2"),
        (Bug::HaltsForGood, "A7"),
        (Bug::OrdersAreNeverUsedUp, "A1"),
        (Bug::OrdersWorkOnce, "O"),
    ] {
        // A bug may break several laws: whether the one that is named is broken, too, is what counts.
        let broken = |events: Vec<Event>| match tell(&events, Some(bug)) {
            Err(told) if told.starts_with(&format!("{law}: ")) => Err(TestCaseError::fail(told)),
            _ => Ok(()),
        };
        let caught = runner().run(&events(), broken);
        assert!(caught.is_err(), "{bug:?} is not caught by {law}");
    }
}
