//! Requirements on what the plan itself made: what lets the next step pass, and what stops it.

use linchpin_engine::{journal::StepState, plan::Test, readiness::Wanted, step::Phase};
use linchpin_words::Reason;

use super::{gone, keep, ready, shown, watching};
use crate::{
    build::{Steps, observed, require},
    play::{OURS, Play, steps_of},
};

#[test]
fn a_gate_lets_pass_what_is_not_ready_and_readiness_still_asks_for_all() {
    let strict = require("made-x").after(&["x"]).asking(|requirement| {
        requirement.floor = Some("x".into());
        requirement.gate = Some(Test { state: Some(Wanted::Exists), ..Test::default() });
        requirement.test = Test { state: Some(Wanted::Absent), ..Test::default() };
    });
    let mut play = Play::new(watching(vec![keep("x"), strict, keep("y").after(&["made-x"]), ready("y")], 1));
    play.settle();
    let report = &play.decision().report;
    assert_eq!(
        (report.phase, report.ready, report.reason),
        (Phase::Completed, false, Some(Reason::NotReady))
    );
    assert_eq!(play.state("made-x"), StepState::Met);
    let entry = report.steps.iter().find(|entry| entry.id.as_str() == "made-x").expect("an entry");
    assert!(!entry.ready && entry.blocking);
}

#[test]
fn the_failure_of_what_an_action_made_stops_only_what_comes_after_it() {
    let mut late = ready("x");
    late.timeout = Some(std::time::Duration::from_secs(60));
    let steps = vec![keep("x"), late, keep("y").after(&["made-x"]), require("a"), keep("z").after(&["a"])];
    let mut play = Play::new(watching(steps, 1));
    play.sees("a", gone(1));
    let effects = play.step();
    assert_eq!(steps_of(&effects), ["x"]);
    play.succeed(&effects[0]);
    play.shows("made-x", &gone(90));
    play.sees("made-x", observed(None, 100));
    play.step();
    play.pass(61);
    play.step();
    let report = &play.decision().report;
    assert_eq!((report.phase, report.reason), (Phase::Failed, Some(Reason::TimedOut)), "{}", report.message);
    play.sees("a", shown("a", "", 1));
    assert_eq!(steps_of(&play.step()), ["z"], "another branch goes on");
    play.sees("made-x", shown("made-x", OURS, 120));
    assert_eq!(steps_of(&play.step()), ["y"], "and so does this one, once it is well");
}
