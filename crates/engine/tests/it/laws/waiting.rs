//! Laws 8 to 10: waiting says for what, wakes by itself, and is not failing.

use std::time::Duration;

use linchpin_engine::{
    contract::{Seen, Why},
    journal::StepState,
    plan::{Recovery, RerunOverride, Terms},
    step::Phase,
};
use linchpin_words::Reason;
use serde_json::json;

use super::{absent, there};
use crate::{
    build::{Steps, apply, apply_value, observed, pause, plan, plan_with, projection, require, want},
    play::{Play, steps_of},
};

#[test]
fn law_8_every_step_that_is_not_done_names_its_blocker_at_once() {
    let mut play = Play::new(plan(1, vec![require("a"), require("b"), apply("x").after(&["a", "b"])]));
    play.sees("a", absent());
    play.sees("b", Seen::Unknown(Why::new(Reason::Forbidden, "builder may not list configmaps")));
    play.step();
    let report = &play.decision().report;
    assert_eq!(report.phase, Phase::Waiting);
    let blockers: Vec<(&str, &str)> = report
        .blocked
        .iter()
        .map(|blocker| (blocker.step.as_ref().expect("a step").as_str(), blocker.reason.as_str()))
        .collect();
    assert_eq!(blockers, [("a", "NotFound"), ("b", "Forbidden")]);
    assert_eq!(report.message, "waiting for configmap/a: it does not exist (and 1 more)");
    let held = report.steps.iter().find(|step| step.id.as_str() == "x").expect("the action");
    assert_eq!(held.message, "waits for configmap/a, configmap/b");
}

#[test]
fn law_9_nothing_sleeps_delays_are_times_to_wake() {
    let mut slow = apply("x");
    slow.delay_after = Some(Duration::from_secs(5));
    let mut play = Play::new(plan(1, vec![slow, pause("nap", Duration::from_secs(10)).after(&["x"])]));
    let effects = play.step();
    play.succeed(&effects[0]);
    play.step();
    assert_eq!(play.decision().wake_at, Some(play.now.plus_duration(Duration::from_secs(5))));
    play.pass(5);
    play.step();
    assert_eq!(play.state("nap"), StepState::Running);
    assert_eq!(play.decision().wake_at, Some(play.now.plus_duration(Duration::from_secs(10))));
    play.pass(10);
    play.step();
    assert_eq!(play.decision().report.phase, Phase::Completed);
}

#[test]
fn law_10_waiting_is_not_failing() {
    let mut play = Play::new(plan(1, vec![require("a"), apply("x").after(&["a"])]));
    play.sees("a", absent());
    play.step();
    play.pass(10 * 365 * 24 * 3600);
    play.step();
    assert_eq!(play.decision().report.phase, Phase::Waiting);
    assert!(play.decision().wants.contains(&want("a")), "it is still watched");
    play.sees("a", there("a"));
    assert_eq!(steps_of(&play.step()), ["x"]);
}

#[test]
fn law_10_a_timeout_is_declared_on_a_live_view_only_and_recovers_by_itself() {
    let mut late = require("a");
    late.timeout = Some(Duration::from_secs(60));
    let mut play = Play::new(plan(1, vec![late, apply("x").after(&["a"])]));
    play.sees("a", absent());
    play.step();
    play.pass(61);
    play.sees("a", Seen::Unknown(Why::new(Reason::Disconnected, "no connection")));
    play.step();
    assert_eq!(play.decision().report.phase, Phase::Waiting, "an absent API server is nobody's lateness");
    play.sees("a", absent());
    play.step();
    let run = play.memory.journal.run.id;
    assert_eq!(play.decision().report.phase, Phase::Failed);
    assert_eq!(play.decision().report.steps[0].word, "TimedOut");
    play.sees("a", there("a"));
    assert_eq!(steps_of(&play.step()), ["x"]);
    assert_eq!(play.memory.journal.run.id, run + 1, "a recovered run");
}

#[test]
fn law_10_manual_recovery_waits_for_a_person() {
    let terms = Terms { recovery: Recovery::Manual, ..Terms::default() };
    let mut late = require("a");
    late.timeout = Some(Duration::from_secs(60));
    let steps = vec![late, apply("x").after(&["a"])];
    let mut play = Play::new(plan_with(1, steps.clone(), terms.clone()));
    play.sees("a", absent());
    play.step();
    play.pass(61);
    play.step();
    play.sees("a", there("a"));
    assert!(play.step().is_empty());
    let mut orders = terms;
    orders.orders.requested_at = Some("now".to_owned());
    play.plan = plan_with(1, steps, orders);
    assert_eq!(steps_of(&play.step()), ["x"]);
}

#[test]
fn a_run_that_is_asked_for_has_its_whole_time_again() {
    let mut late = require("a");
    late.timeout = Some(Duration::from_secs(60));
    let steps = vec![late, apply("x").after(&["a"])];
    let mut play = Play::new(plan(1, steps.clone()));
    play.sees("a", absent());
    play.step();
    play.pass(61);
    play.step();
    assert_eq!(play.decision().report.phase, Phase::Failed);
    let mut terms = Terms::default();
    terms.orders.rerun = Some(RerunOverride { value: "all@1".to_owned(), steps: None });
    play.plan = plan_with(1, steps, terms);
    play.step();
    assert_eq!(play.decision().report.phase, Phase::Waiting);
    play.pass(59);
    play.step();
    assert_eq!(play.decision().report.phase, Phase::Waiting);
    play.pass(1);
    play.step();
    assert_eq!(play.decision().report.phase, Phase::Failed);
}

#[test]
fn suspension_stops_every_clock() {
    let mut late = require("a");
    late.timeout = Some(Duration::from_secs(60));
    let steps = vec![late, apply("x").after(&["a"])];
    let mut play = Play::new(plan(1, steps.clone()));
    play.sees("a", absent());
    play.step();
    play.pass(30);
    play.plan = plan_with(1, steps.clone(), Terms { suspended: true, ..Terms::default() });
    play.step();
    assert_eq!(play.decision().report.phase, Phase::Suspended);
    play.pass(10_000);
    play.plan = plan(1, steps);
    play.step();
    assert_eq!(play.decision().report.phase, Phase::Waiting);
    play.pass(31);
    play.step();
    assert_eq!(play.decision().report.phase, Phase::Failed);
}

#[test]
fn after_a_suspension_the_global_timeout_is_as_long_as_it_says() {
    let terms = Terms { global_timeout: Some(Duration::from_secs(60)), ..Terms::default() };
    let suspended = Terms { suspended: true, ..terms.clone() };
    let steps = vec![require("a"), apply("x").after(&["a"])];
    let mut play = Play::new(plan_with(1, steps.clone(), terms.clone()));
    play.sees("a", absent());
    play.step();
    play.pass(30);
    play.plan = plan_with(2, steps.clone(), suspended);
    play.step();
    play.pass(10_000);
    play.plan = plan_with(3, steps, terms);
    play.step();
    play.pass(59);
    play.step();
    assert_eq!(play.decision().report.phase, Phase::Waiting);
    play.pass(1);
    play.step();
    assert_eq!(
        play.decision().report.phase,
        Phase::Failed,
        "the time of the suspension does not count twice"
    );
}

#[test]
fn a_delay_does_not_pass_while_suspended() {
    let mut slow = apply("x");
    slow.delay_after = Some(Duration::from_secs(60));
    let steps = vec![slow, apply("y").after(&["x"])];
    let mut play = Play::new(plan(1, steps.clone()));
    let effects = play.step();
    play.succeed(&effects[0]);
    play.step();
    play.pass(30);
    play.plan = plan_with(2, steps.clone(), Terms { suspended: true, ..Terms::default() });
    play.step();
    play.pass(10_000);
    play.plan = plan(3, steps);
    assert!(play.step().is_empty());
    play.pass(29);
    assert!(play.step().is_empty());
    play.pass(1);
    assert_eq!(steps_of(&play.step()), ["y"]);
}

#[test]
fn an_action_whose_value_is_missing_fails_when_its_own_time_is_over() {
    let value = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "y"},
        "data": {"a": "{{ .Dependencies.a.Object.data.later }}"}});
    let mut late = apply_value("y", value).after(&["a"]).with(|action| action.reads = None);
    late.timeout = Some(Duration::from_secs(60));
    let mut play = Play::new(plan(1, vec![require("a"), late]));
    play.sees("a", there("a"));
    for (passed, state) in
        [(0, StepState::Waiting), (59, StepState::Waiting), (1, StepState::Failed), (5, StepState::Failed)]
    {
        play.pass(passed);
        assert!(play.step().is_empty());
        assert_eq!(play.state("y"), state, "after {passed} more");
    }
    assert_eq!(play.decision().report.phase, Phase::Failed);
    let content = json!({"metadata": {"name": "a"}, "data": {"later": "now"}});
    play.sees("a", observed(Some(projection("a", "uid-a", 2, content)), 2));
    assert_eq!(steps_of(&play.step()), ["y"]);
}
