//! Laws 1 to 5: what counts as observed, and what is decided on it.

use std::{sync::Arc, time::Duration};

use linchpin_engine::{
    contract::{ReadSet, Seen, Want, Why, World},
    journal::StepState,
    plan::{ActionGuard, Delivery, GuardSubject, Obstacle, Terms},
    readiness::Wanted,
    step::{Goal, Phase, step},
};
use linchpin_words::{Gvk, Reason};
use serde_json::json;

use super::{absent, there};
use crate::{
    build::{Steps, apply, exec, observed, plan, plan_with, projection, require, via, want, world},
    play::{Play, steps_of},
};

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
    let held =
        Obstacle { reason: Reason::NotReady, message: "a revision must be published first".to_owned() };
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
    create.when = Some(ActionGuard {
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
        Some(ActionGuard { subject: GuardSubject::Dependency { step: "made-x".into(), state }, negate })
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
    create.when = Some(ActionGuard {
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

#[test]
fn the_same_objects_seen_at_another_time_say_the_same() {
    let one = |version| projection("a", "uid-a", version, json!({"data": {"key": "value"}}));
    let world = |seen| World::from_iter([(want("a"), seen)]);
    let before = world(observed(Some(one(1)), 1));
    assert!(
        before.says_the_same(&world(observed(Some(one(1)), 9))),
        "something else happened in the meantime"
    );
    for other in [observed(Some(one(2)), 9), observed(None, 9), Seen::Unknown(Why::new(Reason::Unsynced, ""))]
    {
        assert!(!before.says_the_same(&world(other)));
    }
    assert!(!before.says_the_same(&World::new()) && !World::new().says_the_same(&before));
}
