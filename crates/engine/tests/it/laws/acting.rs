//! Laws 6 and 7: how often something is done, and when it is done again.

use linchpin_engine::{
    contract::{Existing, Verb},
    journal::StepState,
    plan::{ActionBody, Delivery, RerunOverride, Terms},
    step::{Persist, Phase},
};
use serde_json::json;

use super::there;
use crate::{
    build::{Steps, apply, apply_value, exec, observed, plan, plan_with, projection, require},
    play::{Play, steps_of},
};

#[test]
fn an_edited_create_that_meets_what_it_made_is_skipped() {
    let create = |generation: i64| {
        let mut step = apply("x").with(|action| {
            if let ActionBody::Apply { documents, .. } = action.body.clone() {
                action.body = ActionBody::Create { documents, existing: Existing::Skip };
            }
        });
        step.definition.push_str(&format!("-{generation}"));
        plan(generation, vec![step])
    };
    let mut play = Play::new(create(1));
    let effects = play.step();
    play.succeed(&effects[0]);
    play.step();
    assert_eq!(play.state("x"), StepState::Done);
    play.plan = create(2);
    let effects = play.step();
    assert_eq!(steps_of(&effects), ["x"], "it may be gone");
    play.succeed(&effects[0]);
    play.step();
    assert_eq!(play.state("x"), StepState::Skipped, "it was there: nothing was written");
    play.plan = create(2);
    play.plan.generation = 3;
    assert!(play.step().is_empty(), "it is done, for all that it was skipped");
}

#[test]
fn law_6_a_command_is_journaled_before_and_unknown_when_its_outcome_is_lost() {
    let mut play = Play::new(plan(1, vec![exec("run", Delivery::AtMostOnce)]));
    let effects = play.step();
    assert_eq!(steps_of(&effects), ["run"]);
    assert_eq!(play.decision().persist, Persist::BeforeEffects);
    let token = play.memory.journal.steps[&"run".into()].token.clone().expect("a token");
    assert!(matches!(&effects[0].verb, Verb::Exec(order) if order.token == token));
    play.crash();
    assert!(play.step().is_empty(), "never a second time");
    assert_eq!(play.state("run"), StepState::Unknown);
    assert_eq!(play.decision().report.phase, Phase::Failed);
}

#[test]
fn law_6_on_request_a_lost_command_is_run_again() {
    let mut play = Play::new(plan(1, vec![exec("run", Delivery::AtLeastOnce)]));
    play.step();
    play.crash();
    assert_eq!(steps_of(&play.step()), ["run"]);
}

#[test]
fn law_6_an_idempotent_effect_is_issued_first_and_reported_after() {
    let mut play = Play::new(plan(1, vec![apply("x")]));
    play.step();
    assert_eq!(play.decision().persist, Persist::Soon);
    play.crash();
    assert_eq!(steps_of(&play.step()), ["x"], "after a crash it is simply issued again");
}

#[test]
fn law_6_the_start_of_a_run_is_saved_before_anybody_reads_it() {
    let value = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"at": "{{ .Now }}"}});
    let reads_now = apply_value("x", value).with(|action| action.reads_now = true);
    let mut play = Play::new(plan(1, vec![reads_now]));
    let effects = play.step();
    assert_eq!(play.decision().persist, Persist::BeforeEffects);
    let Verb::Apply { body, .. } = &effects[0].verb else { panic!("not an apply") };
    assert_eq!(body["data"]["at"], "1970-01-01T00:16:40Z");
}

#[test]
fn law_7_a_new_generation_keeps_what_did_not_change() {
    let steps = |changed: bool| {
        let mut second = apply("y").after(&["run"]);
        if changed {
            second.definition.push_str("-changed");
        }
        vec![exec("run", Delivery::AtMostOnce), second]
    };
    let mut play = Play::new(plan(1, steps(false)));
    for _ in 0..2 {
        let effects = play.step();
        play.succeed(&effects[0]);
    }
    play.step();
    assert_eq!(play.decision().report.phase, Phase::Completed);
    play.plan = plan(2, steps(true));
    assert_eq!(steps_of(&play.step()), ["y"], "the command does not run again");
}

#[test]
fn a_rerun_order_runs_what_it_names_once() {
    let steps = vec![apply("x"), apply("y").after(&["x"])];
    let mut play = Play::new(plan(1, steps.clone()));
    for _ in 0..2 {
        let effects = play.step();
        play.succeed(&effects[0]);
    }
    play.step();
    let mut terms = Terms::default();
    terms.orders.rerun = Some(RerunOverride { value: "y@1".to_owned(), steps: Some(vec!["y".into()]) });
    play.plan = plan_with(1, steps, terms);
    let effects = play.step();
    assert_eq!(steps_of(&effects), ["y"]);
    play.succeed(&effects[0]);
    play.step();
    assert!(play.step().is_empty());
    assert_eq!(play.decision().report.phase, Phase::Completed);
}

#[test]
fn a_value_that_is_not_there_yet_makes_the_action_wait_and_names_the_path() {
    let value = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"},
        "data": {"endpoint": "{{ .Dependencies.a.Object.data.endpoint }}"}});
    let reader = apply_value("x", value).after(&["a"]).with(|action| action.reads = None);
    let mut play = Play::new(plan(1, vec![require("a"), reader]));
    play.sees("a", there("a"));
    assert!(play.step().is_empty());
    assert_eq!(play.state("x"), StepState::Waiting);
    let blocker = &play.decision().report.blocked[0];
    assert_eq!(blocker.reason, "ValueMissing");
    assert!(blocker.message.contains(".Dependencies.a.Object.data"), "{}", blocker.message);
    let content = json!({"metadata": {"name": "a"}, "data": {"endpoint": "10.0.0.1"}});
    play.sees("a", observed(Some(projection("a", "uid-a", 2, content)), 2));
    let effects = play.step();
    let Verb::Apply { body, .. } = &effects[0].verb else { panic!("not an apply") };
    assert_eq!(body["data"]["endpoint"], "10.0.0.1");
}
