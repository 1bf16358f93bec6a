//! What a failed action stops, and what it does not.

use std::time::Duration;

use linchpin_engine::{
    contract::Failure,
    journal::StepState,
    plan::{Plan, Terms},
    step::Phase,
};

use crate::{
    build::{Steps, apply, plan, plan_with},
    play::{Play, steps_of},
};

#[test]
fn a_failed_action_with_fail_fast_keeps_everything_else_from_starting() {
    let mut first = apply("x");
    first.fail_fast = true;
    let mut play = Play::new(plan(1, vec![first, apply("y").after_end(&["x"])]));
    let effects = play.step();
    play.fail(&effects[0], Failure::Invalid("spec.replicas: Invalid value".to_owned()));
    assert!(play.step().is_empty());
    assert_eq!(play.decision().report.phase, Phase::Failed);
    play.pass(400);
    assert_eq!(steps_of(&play.step()), ["x"], "it is tried again itself");
}

#[test]
fn what_failed_and_is_tried_again_counts_as_failed_until_that_has_ended() {
    let mut first = apply("x");
    first.fail_fast = true;
    let mut play = Play::new(plan(1, vec![first, apply("y").after_end(&["x"])]));
    let effects = play.step();
    play.fail(&effects[0], Failure::Invalid("refused".to_owned()));
    play.step();
    for _ in 0..3 {
        assert_eq!(play.decision().report.phase, Phase::Failed);
        play.pass(400);
        let effects = play.step();
        assert_eq!(steps_of(&effects), ["x"]);
        let report = &play.decision().report;
        assert_eq!((report.phase, report.steps[0].state), (Phase::Failed, StepState::Failed));
        play.fail(&effects[0], Failure::Invalid("refused".to_owned()));
        play.step();
    }
    play.pass(400);
    let effects = play.step();
    play.succeed(&effects[0]);
    let effects = play.step();
    assert_eq!((steps_of(&effects), play.decision().report.phase), (vec!["y"], Phase::Running));
    play.succeed(&effects[0]);
    play.step();
    assert_eq!(play.decision().report.phase, Phase::Completed);
}

#[test]
fn while_a_step_with_fail_fast_is_tried_again_nothing_else_starts() {
    let mut first = apply("x");
    first.fail_fast = true;
    let mut play = Play::new(plan(1, vec![first, apply("y").after(&["z"]), apply("z")]));
    let effects = play.step();
    assert_eq!(steps_of(&effects), ["x", "z"]);
    play.fail(&effects[0], Failure::Invalid("refused".to_owned()));
    play.step();
    play.pass(400);
    assert_eq!(steps_of(&play.step()), ["x"]);
    play.succeed(&effects[1]);
    assert!(play.step().is_empty(), "y would be new");
}

#[test]
fn without_fail_fast_later_priorities_run_and_the_object_ends_failed() {
    let named = apply("z").after(&["x"]);
    let mut play = Play::new(plan(1, vec![apply("x"), apply("y").after_end(&["x"]), named]));
    let effects = play.step();
    play.fail(&effects[0], Failure::Invalid("refused".to_owned()));
    let effects = play.step();
    assert_eq!(steps_of(&effects), ["y"], "z names x, so it does not run");
    play.succeed(&effects[0]);
    play.step();
    assert_eq!(play.decision().report.phase, Phase::Failed);
}

#[test]
fn a_step_that_will_not_run_does_not_hold_up_later_priorities() {
    let named = apply("named").after(&["x"]);
    let mut play = Play::new(plan(1, vec![apply("x"), named, apply("y").after_end(&["x", "named"])]));
    let effects = play.step();
    play.fail(&effects[0], Failure::Invalid("refused".to_owned()));
    assert_eq!(steps_of(&play.step()), ["y"], "named waits for x in vain");
}

/// One action with this definition, which has a minute.
fn a_minute_for(definition: &str) -> Plan {
    let mut step = apply("x");
    step.definition = definition.into();
    let terms = Terms { global_timeout: Some(Duration::from_mins(1)), watch: true, ..Terms::default() };
    plan_with(1, vec![step], terms)
}

#[test]
fn what_changes_without_a_new_generation_after_all_was_done_has_the_whole_time_again() {
    let mut play = Play::new(a_minute_for("1:first"));
    let effects = play.step();
    play.succeed(&effects[0]);
    play.step();
    assert_eq!(play.decision().report.phase, Phase::Completed);
    let run = play.memory.journal.run.id;
    play.pass(86_400);
    play.step();
    assert_eq!(play.memory.journal.run.id, run, "nothing is new");
    play.plan = a_minute_for("1:second");
    let effects = play.step();
    assert_eq!(steps_of(&effects), ["x"], "{:?}", play.decision().report);
    assert_eq!(play.memory.journal.run.id, run + 1);
    play.fail(&effects[0], Failure::Transient("no connection".to_owned()));
    play.pass(59);
    play.step();
    assert_ne!(play.decision().report.phase, Phase::Failed, "the minute is not over");
    play.pass(2);
    play.step();
    assert!(play.memory.journal.halt.is_some(), "it is over now");
}
