//! The laws of the engine, one test each and more where a law has more sides than one.

use std::{sync::Arc, time::Duration};

use linchpin_engine::{
    contract::{Failure, ReadSet, Right, Seen, Verb, Want, Why, World},
    journal::{Memory, StepState},
    plan::{Delivery, Guard, GuardSubject, Held, Recovery, Removal, RerunOrder, Terms},
    readiness::Wanted,
    step::{Goal, Persist, Phase, step},
};
use linchpin_words::{Gvk, Reason};
use serde_json::json;

use crate::{
    build::{
        Steps, apply, apply_value, exec, kind_answer, observed, pause, plan, plan_with, projection, require,
        via, want, world,
    },
    play::{Play, steps_of},
};

fn there(name: &str) -> Seen {
    observed(Some(projection(name, &format!("uid-{name}"), 1, json!({"metadata": {"name": name}}))), 1)
}

fn absent() -> Seen {
    observed(None, 1)
}

#[test]
fn law_1_the_same_inputs_give_the_same_decision_byte_for_byte() {
    let plan = plan(
        1,
        vec![require("a"), apply("x").after(&["a"]), exec("run", Delivery::AtMostOnce).after(&["x"])],
    );
    let play = Play::new(plan.clone());
    let world = world(&["a"], &[]);
    let decide = || step(play.memory.clone(), Goal::Converge(&plan), &world, &[], None, play.now);
    assert_eq!(format!("{:?}", decide()), format!("{:?}", decide()));
}

#[test]
fn law_2_unknown_is_not_absent() {
    let gone = require("a").asking(|requirement| requirement.test.state = Some(Wanted::Absent));
    let mut play = Play::new(plan(1, vec![gone, apply("x").after(&["a"])]));
    assert!(play.step().is_empty(), "nothing was listed yet");
    for reason in [Reason::Unsynced, Reason::Forbidden, Reason::ClusterUnreachable, Reason::KindNotServed] {
        play.sees("a", Seen::Unknown(Why::new(reason, "cannot look")));
        assert!(play.step().is_empty(), "{reason}");
    }
    play.sees("a", absent());
    assert_eq!(steps_of(&play.step()), ["x"]);
}

#[test]
fn what_the_door_holds_back_does_not_hold_whatever_is_seen() {
    let held = Held { reason: Reason::NotReady, message: "a revision must be published first".to_owned() };
    let a = require("a").asking(|requirement| requirement.held = Some(held.clone()));
    let mut play = Play::new(plan(1, vec![a, apply("x").after(&["a"])]));
    for seen in [absent(), there("a")] {
        play.sees("a", seen);
        assert!(play.step().is_empty());
        let blocker = &play.decision().report.blocked[0];
        assert_eq!(blocker.reason, "NotReady");
        assert!(blocker.message.ends_with("a revision must be published first"), "{}", blocker.message);
    }
    play.sees("a", Seen::Unknown(Why::new(Reason::Forbidden, "may not look")));
    assert!(play.step().is_empty());
    assert_eq!(
        play.decision().report.blocked[0].reason,
        "Forbidden",
        "what keeps us from looking comes first"
    );
    play.plan = plan(1, vec![require("a"), apply("x").after(&["a"])]);
    play.sees("a", there("a"));
    assert_eq!(steps_of(&play.step()), ["x"], "another plan lets it pass");
}

#[test]
fn law_3_a_view_older_than_our_own_write_proves_nothing() {
    let made = require("made-x").asking(|requirement| requirement.floor = Some("x".into()));
    let mut play = Play::new(plan(1, vec![apply("x"), made.after(&["x"]), apply("y").after(&["made-x"])]));
    let old = |version| {
        observed(
            Some(projection("made-x", "uid-made-x", version, json!({"metadata": {"name": "made-x"}}))),
            version,
        )
    };
    play.sees("made-x", old(99));
    let effects = play.step();
    play.succeed(&effects[0]);
    assert!(play.step().is_empty(), "the cache has not seen our write");
    play.sees("made-x", old(100));
    assert_eq!(steps_of(&play.step()), ["y"]);
}

#[test]
fn law_3_an_object_being_deleted_is_not_there() {
    let mut play = Play::new(plan(1, vec![require("a"), apply("x").after(&["a"])]));
    let content = json!({"metadata": {"name": "a", "deletionTimestamp": "2026-01-01T00:00:00Z"}});
    play.sees("a", observed(Some(projection("a", "uid-a", 1, content)), 1));
    assert!(play.step().is_empty());
}

#[test]
fn law_3_all_requirements_must_hold_together_when_an_action_starts() {
    let tiers = vec![require("a"), require("b").after(&["a"]), apply("x").after(&["b"])];
    let mut play = Play::new(plan(1, tiers));
    play.sees("a", there("a"));
    play.sees("b", absent());
    assert!(play.step().is_empty());
    play.sees("a", absent());
    play.sees("b", there("b"));
    assert!(play.step().is_empty(), "the first tier regressed");
    assert_eq!(play.state("b"), StepState::Waiting);
    play.sees("a", there("a"));
    assert_eq!(steps_of(&play.step()), ["x"]);
}

#[test]
fn law_4_a_guard_waits_while_undecided_and_decides_on_what_has_settled() {
    let mut optional = require("a");
    optional.optional = true;
    optional.timeout = Some(Duration::from_secs(60));
    let mut create = apply("x").after(&["a"]);
    create.when = Some(Guard {
        subject: GuardSubject::Dependency { step: "a".into(), state: Wanted::Absent },
        negate: false,
    });
    let mut play = Play::new(plan(1, vec![optional, create]));
    assert!(play.step().is_empty(), "not listed yet: undecided");
    let going = json!({"metadata": {"name": "a", "deletionTimestamp": "2026-01-01T00:00:00Z"}});
    play.sees("a", observed(Some(projection("a", "uid-a", 1, going)), 1));
    assert!(play.step().is_empty(), "terminating is neither there nor gone");
    assert_eq!(play.state("x"), StepState::Waiting);
    play.sees("a", there("a"));
    assert!(play.step().is_empty());
    assert_eq!(play.state("x"), StepState::Skipped);
    assert_eq!(play.decision().report.phase, Phase::Completed);
}

#[test]
fn law_4_a_guard_sees_our_own_earlier_writes() {
    // Create it if it is not there; then, if it is there, go on: as in the document's PostgreSQL example.
    let mut probe = require("made-x");
    probe.optional = true;
    let guard = |state, negate| {
        Some(Guard { subject: GuardSubject::Dependency { step: "made-x".into(), state }, negate })
    };
    let mut create = apply("x").after(&["made-x"]);
    create.when = guard(Wanted::Absent, false);
    let mut follow = apply("y").after(&["made-x"]).after_end(&["x"]);
    follow.when = guard(Wanted::Absent, true);
    let mut play = Play::new(plan(1, vec![probe, create, follow]));
    play.sees("made-x", observed(None, 50));
    let effects = play.step();
    assert_eq!(steps_of(&effects), ["x"]);
    play.succeed(&effects[0]);
    assert!(play.step().is_empty(), "the watch still shows it absent, from before our write");
    assert_eq!(play.state("y"), StepState::Waiting);
    let seen = projection("made-x", "uid-made-x", 100, json!({"metadata": {"name": "made-x"}}));
    play.sees("made-x", observed(Some(seen), 100));
    assert_eq!(steps_of(&play.step()), ["y"]);
}

#[test]
fn law_4_a_guard_that_stays_undecided_times_out_and_recovers_when_it_is_decided() {
    let mut optional = require("a");
    optional.optional = true;
    optional.timeout = Some(Duration::from_secs(60));
    let mut create = apply("x").after(&["a"]);
    create.when = Some(Guard {
        subject: GuardSubject::Dependency { step: "a".into(), state: Wanted::Ready },
        negate: false,
    });
    let mut play = Play::new(plan(1, vec![optional, create]));
    let going = json!({"metadata": {"name": "a", "deletionTimestamp": "2026-01-01T00:00:00Z"}});
    play.sees("a", observed(Some(projection("a", "uid-a", 1, going)), 1));
    play.step();
    play.pass(61);
    play.step();
    assert_eq!(play.state("x"), StepState::Failed);
    assert_eq!(play.decision().report.phase, Phase::Failed);
    play.sees("a", there("a"));
    assert_eq!(steps_of(&play.step()), ["x"]);
}

#[test]
fn law_5_what_is_done_stays_done_when_a_requirement_is_lost() {
    let terms = Terms { watch: true, ..Terms::default() };
    let mut play = Play::new(plan_with(1, vec![require("a"), apply("x").after(&["a"])], terms));
    play.sees("a", there("a"));
    let effects = play.step();
    play.succeed(&effects[0]);
    play.step();
    assert!(play.decision().report.ready);
    play.sees("a", absent());
    assert!(play.step().is_empty());
    let report = &play.decision().report;
    assert_eq!((report.phase, report.ready), (Phase::Completed, false));
    assert_eq!(report.reason, Some(Reason::DependencyLost));
    play.sees("a", there("a"));
    assert!(play.step().is_empty());
    assert!(play.decision().report.ready);
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
fn law_8_every_step_that_is_not_done_names_its_blocker_at_once() {
    let mut play = Play::new(plan(1, vec![require("a"), require("b"), apply("x").after(&["a", "b"])]));
    play.sees("a", absent());
    play.sees("b", Seen::Unknown(Why::new(Reason::Forbidden, "builder may not list configmaps")));
    play.step();
    let report = &play.decision().report;
    assert_eq!(report.phase, Phase::Waiting);
    let blockers: Vec<(&str, &str)> =
        report.blocked.iter().map(|blocker| (blocker.step.as_str(), blocker.reason.as_str())).collect();
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
fn law_11_deletion_goes_in_reverse_by_uid_and_waits_for_absence() {
    let terms = Terms { removal: Removal::Delete, ..Terms::default() };
    let steps = vec![apply("x").tracked(), apply("y").tracked().after(&["x"])];
    let mut play = Play::new(plan_with(1, steps, terms));
    for _ in 0..2 {
        let effects = play.step();
        play.succeed(&effects[0]);
    }
    play.step();
    let effects = play.take_down();
    assert_eq!(steps_of(&effects), ["y"]);
    let Verb::Delete { uid, .. } = &effects[0].verb else { panic!("not a deletion") };
    assert_eq!(uid.as_deref(), Some("uid-made-y"));
    play.come_back(&effects[0].ticket, Ok(linchpin_engine::contract::Done::default()));
    assert!(play.take_down().is_empty(), "it is asked for, but not gone");
    for want in play.decision().wants.clone().into_inner() {
        if let Some(kind) = kind_answer(&want) {
            play.answer(want, kind);
        }
    }
    play.take_down();
    for want in play.decision().wants.clone().into_inner() {
        let gone = kind_answer(&want).unwrap_or_else(|| observed(None, 200));
        play.answer(want, gone);
    }
    let effects = play.take_down();
    assert_eq!(steps_of(&effects), ["x"]);
    assert!(!play.decision().release);
}

#[test]
fn law_11_what_was_not_ours_in_between_does_not_loosen_the_order() {
    let terms = Terms { removal: Removal::Delete, ..Terms::default() };
    let steps =
        vec![apply("x").tracked(), apply("y").tracked().after(&["x"]), apply("z").tracked().after(&["y"])];
    let mut play = Play::new(plan_with(1, steps, terms));
    let effects = play.step();
    play.succeed(&effects[0]);
    let effects = play.step();
    play.find(&effects[0]);
    let effects = play.step();
    play.succeed(&effects[0]);
    play.step();
    assert_eq!(steps_of(&play.take_down()), ["z"], "x waits for z although there is nothing of y");
}

#[test]
fn law_11_a_gone_identity_never_holds_an_object() {
    let terms = Terms { removal: Removal::Delete, ..Terms::default() };
    let mut play = Play::new(plan_with(1, vec![apply("x").tracked()], terms));
    let effects = play.step();
    play.succeed(&effects[0]);
    play.step();
    let effects = play.take_down();
    play.fail(&effects[0], Failure::IdentityGone("ServiceAccount shop/builder does not exist".to_owned()));
    play.take_down();
    assert!(play.decision().release);
    assert_eq!(play.decision().report.left, ["configmap shop/made-x (IdentityGone)"]);
}

#[test]
fn law_11_a_missing_right_keeps_the_object_and_says_which() {
    let terms = Terms { removal: Removal::Delete, ..Terms::default() };
    let mut play = Play::new(plan_with(1, vec![apply("x").tracked()], terms));
    let effects = play.step();
    play.succeed(&effects[0]);
    play.step();
    let effects = play.take_down();
    let right = Right {
        verb: "delete".to_owned(),
        group: String::new(),
        resource: "configmaps".to_owned(),
        subresource: None,
        namespace: Some("shop".to_owned()),
        name: Some("made-x".to_owned()),
    };
    play.fail(&effects[0], Failure::Forbidden(right));
    play.take_down();
    assert!(!play.decision().release);
    assert_eq!(play.decision().report.message, "not allowed to delete configmaps made-x in shop");
}

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
fn a_rerun_order_runs_what_it_names_once() {
    let steps = vec![apply("x"), apply("y").after(&["x"])];
    let mut play = Play::new(plan(1, steps.clone()));
    for _ in 0..2 {
        let effects = play.step();
        play.succeed(&effects[0]);
    }
    play.step();
    let mut terms = Terms::default();
    terms.orders.rerun = Some(RerunOrder { value: "y@1".to_owned(), steps: Some(vec!["y".into()]) });
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

#[test]
fn completion_is_latched_by_uid_even_after_the_object_is_gone() {
    let job = Gvk::new("batch", "v1", "Job");
    let migrate = Want::object(via(), job.clone(), Some("shop".to_owned()), "migrate", ReadSet::whole());
    let seen = |uid: &str, status: serde_json::Value| {
        let mut item =
            (*projection("migrate", uid, 1, json!({"metadata": {"name": "migrate"}, "status": status})))
                .clone();
        item.kind = job.clone();
        observed(Some(Arc::new(item)), 1)
    };
    let done = require("migrate").asking(|requirement| {
        requirement.test.state = Some(Wanted::Completed);
        requirement.want = migrate.clone();
    });
    let mut play = Play::new(plan(1, vec![done, require("b"), apply("x").after(&["migrate", "b"])]));
    play.answer(
        migrate.clone(),
        seen("one", json!({"conditions": [{"type": "Complete", "status": "True"}]})),
    );
    play.sees("b", absent());
    play.step();
    assert_eq!(play.state("migrate"), StepState::Met);
    play.answer(migrate.clone(), seen("two", json!({})));
    play.step();
    assert_eq!(play.state("migrate"), StepState::Waiting, "another incarnation has not completed");
    play.answer(migrate, absent());
    play.sees("b", there("b"));
    assert_eq!(steps_of(&play.step()), ["x"]);
}
