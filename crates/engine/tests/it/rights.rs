//! Rights that are missing are told before anything is waited for, and hold only what needs them.

use std::time::Duration;

use linchpin_engine::{
    contract::{Question, Right, Seen, Want, Why},
    journal::StepState,
    step::Phase,
};
use linchpin_words::Reason;

use crate::{
    build::{NAMESPACE, Steps, apply, observed, plan, projection, require, via},
    play::{Play, steps_of},
};

#[test]
fn a_missing_right_is_told_while_its_action_still_waits() {
    let right = Right {
        verb: "create".to_owned(),
        group: String::new(),
        resource: "secrets".to_owned(),
        subresource: None,
        namespace: Some(NAMESPACE.to_owned()),
        name: None,
    };
    let denied = apply("denied").after(&["gate"]).with(|action| action.rights = vec![right.clone()]);
    let mut play = Play::new(plan(1, vec![require("gate"), apply("allowed").after(&["gate"]), denied]));
    play.sees("gate", observed(None, 1));
    play.answer(Want::new(Question::Right { via: via(), right }), Seen::Right(false));
    assert!(play.step().is_empty());
    let blockers: Vec<_> = play
        .decision()
        .report
        .blocked
        .iter()
        .map(|held| (held.step.as_ref().expect("a step").to_string(), held.reason.as_str()))
        .collect();
    let expected = [("gate".to_owned(), "NotFound"), ("denied".to_owned(), "MissingRights")];
    assert_eq!(blockers, expected);

    let there = projection("gate", "uid-gate", 2, serde_json::json!({"metadata": {"name": "gate"}}));
    play.sees("gate", observed(Some(there), 2));
    assert_eq!(steps_of(&play.step()), ["allowed"], "the other one goes on");
}

#[test]
fn nothing_starts_before_it_is_known_whether_it_is_allowed() {
    let right = Right {
        verb: "create".to_owned(),
        group: String::new(),
        resource: "configmaps".to_owned(),
        subresource: None,
        namespace: Some(NAMESPACE.to_owned()),
        name: None,
    };
    let ask = Want::new(Question::Right { via: via(), right: right.clone() });
    let mut play = Play::new(plan(1, vec![apply("x").with(|action| action.rights = vec![right])]));
    assert!(play.step().is_empty());
    assert!(play.decision().wants.contains(&ask));
    assert_eq!(play.decision().report.blocked[0].reason, "Unsynced");
    play.answer(ask.clone(), Seen::Right(false));
    assert!(play.step().is_empty());
    assert_eq!(play.decision().report.blocked[0].reason, "MissingRights");
    play.answer(ask.clone(), Seen::Right(true));
    let effects = play.step();
    assert_eq!(steps_of(&effects), ["x"]);
    play.succeed(&effects[0]);
    play.step();
    assert!(!play.decision().wants.contains(&ask), "what is done asks for no right any more");
}

#[test]
fn in_a_namespace_that_is_no_tenant_nothing_starts_and_the_object_itself_says_so() {
    let right = Right {
        verb: "create".to_owned(),
        group: String::new(),
        resource: "configmaps".to_owned(),
        subresource: None,
        namespace: Some(NAMESPACE.to_owned()),
        name: None,
    };
    let closed = || Seen::Unknown(Why::new(Reason::NotATenant, "run this line"));
    let ask = Want::new(Question::Right { via: via(), right: right.clone() });
    let act = apply("x").after(&["gate"]).with(|action| action.rights = vec![right]);
    let mut play = Play::new(plan(1, vec![require("gate"), act]));
    play.sees("gate", closed());
    play.answer(ask.clone(), closed());
    assert!(play.step().is_empty());
    let report = &play.decision().report;
    assert_eq!((report.ready, report.reason), (false, Some(Reason::NotATenant)));
    assert_eq!(report.message, "run this line");
    assert!(report.blocked.iter().all(|held| held.reason == "NotATenant"), "{:?}", report.blocked);

    let there = projection("gate", "uid-gate", 2, serde_json::json!({"metadata": {"name": "gate"}}));
    play.sees("gate", observed(Some(there), 2));
    play.answer(ask, Seen::Right(true));
    assert_eq!(steps_of(&play.step()), ["x"], "it goes on as soon as it may");
    assert_ne!(play.decision().report.reason, Some(Reason::NotATenant));
}

#[test]
fn an_action_that_lacks_a_right_fails_when_its_own_time_is_over_and_goes_on_when_it_may() {
    let right = Right {
        verb: "create".to_owned(),
        group: String::new(),
        resource: "configmaps".to_owned(),
        subresource: None,
        namespace: Some(NAMESPACE.to_owned()),
        name: None,
    };
    let ask = Want::new(Question::Right { via: via(), right: right.clone() });
    let mut lacking = apply("x").with(|action| action.rights = vec![right]);
    lacking.timeout = Some(Duration::from_secs(60));
    let mut play = Play::new(plan(1, vec![lacking]));
    play.answer(ask.clone(), Seen::Right(false));
    play.step();
    assert_eq!(play.decision().wake_at, Some(play.now.plus_duration(Duration::from_secs(60))));
    play.pass(60);
    play.answer(ask.clone(), Seen::Unknown(Why::new(Reason::Disconnected, "no connection")));
    play.step();
    assert_eq!(play.state("x"), StepState::Waiting, "nobody was asked");
    play.answer(ask.clone(), Seen::Right(false));
    play.step();
    assert_eq!((play.state("x"), play.decision().report.phase), (StepState::Failed, Phase::Failed));
    assert_eq!(play.decision().report.steps[0].reason, "TimedOut");
    let told = &play.decision().report.message;
    assert!(told.starts_with("x: ServiceAccount shop/builder may not create configmaps"), "{told}");
    play.answer(ask, Seen::Right(true));
    assert_eq!(steps_of(&play.step()), ["x"]);
}
