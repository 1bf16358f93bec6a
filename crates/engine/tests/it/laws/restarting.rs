//! What was seen before a start: neither proved nor disproved by it.

use std::time::Duration;

use linchpin_engine::{contract::World, journal::Memory, step::Phase};

use super::{absent, there};
use crate::{
    build::{Steps, apply, plan, require},
    play::{Play, steps_of},
};

#[test]
fn a_start_neither_proves_nor_disproves_what_was_seen_before() {
    let mut late = require("b").after(&["a"]);
    late.timeout = Some(Duration::from_secs(60));
    let mut play = Play::new(plan(1, vec![require("a"), late, apply("x").after(&["a", "b"])]));
    play.sees("a", there("a"));
    play.sees("b", absent());
    play.step();
    play.pass(50);
    play.memory = Memory::recovered(play.memory.journal.clone());
    play.world = World::new();
    play.step();
    play.pass(11);
    play.sees("b", absent());
    play.step();
    assert_eq!(play.decision().report.phase, Phase::Failed, "the clock of b went on");
}

#[test]
fn nothing_starts_on_what_was_seen_before_the_start() {
    let steps = vec![require("a"), require("b").after(&["a"]), apply("x").after(&["b"])];
    let mut play = Play::new(plan(1, steps));
    play.sees("a", there("a"));
    play.sees("b", absent());
    play.step();
    play.memory = Memory::recovered(play.memory.journal.clone());
    play.world = World::new();
    play.sees("b", there("b"));
    assert!(play.step().is_empty(), "a was not looked at since");
    play.sees("a", there("a"));
    assert_eq!(steps_of(&play.step()), ["x"]);
}

#[test]
fn what_is_done_is_still_done_after_a_start() {
    let mut play = Play::new(plan(1, vec![require("a"), apply("x").after(&["a"])]));
    play.sees("a", there("a"));
    let effects = play.step();
    play.succeed(&effects[0]);
    play.step();
    assert!(play.decision().report.ready);
    play.memory = Memory::recovered(play.memory.journal.clone());
    play.world = World::new();
    assert!(play.step().is_empty());
    assert!(play.decision().report.ready, "{}", play.decision().report.message);
}
