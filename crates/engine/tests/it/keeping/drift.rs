//! What is no longer as it was written is written again; what cannot be told yet is left alone.

use std::sync::Arc;

use linchpin_engine::{
    contract::{Force, Seen, Verb},
    journal::StepState,
    plan::Rerun,
    step::Phase,
};
use linchpin_words::Timestamp;
use serde_json::json;

use super::{gone, keep, ready, shown, watching};
use crate::{
    build::{Steps, observed, projection},
    play::{OURS, Play, steps_of},
};

#[test]
fn an_object_that_is_gone_is_made_again_and_what_was_complete_stays_so() {
    let mut play = Play::new(watching(vec![keep("x"), ready("x")], 1));
    play.settle();
    assert!(play.decision().report.ready);
    let completed = play.memory.journal.completed;
    play.shows("made-x", &gone(120));
    let effects = play.step();
    assert_eq!(steps_of(&effects), ["x"]);
    assert_eq!(play.memory.journal.completed, completed);
    let report = &play.decision().report;
    assert_eq!((report.phase, report.ready), (Phase::Completed, false));
    play.succeed(&effects[0]);
    play.shows("made-x", &shown("made-x", OURS, 130));
    play.settle();
    assert!(play.decision().report.ready);
}

#[test]
fn a_field_that_somebody_took_is_taken_back_but_never_on_first_contact() {
    let mut play = Play::new(watching(vec![keep("x"), ready("x")], 1));
    play.shows("made-x", &gone(1));
    let first = play.step();
    assert!(matches!(&first[0].verb, Verb::Apply { force: Force::IfCreated, .. }));
    play.succeed(&first[0]);
    play.shows("made-x", &shown("made-x", OURS, 100));
    assert!(play.step().is_empty(), "it is as we wrote it");
    play.shows("made-x", &shown("made-x", "less", 101));
    let again = play.step();
    assert!(matches!(&again[0].verb, Verb::Apply { force: Force::Always, .. }));
    assert_ne!(first[0].ticket, again[0].ticket);
}

#[test]
fn a_view_from_before_our_write_shows_no_drift() {
    let mut play = Play::new(watching(vec![keep("x")], 1));
    play.shows("made-x", &gone(99));
    let effects = play.step();
    play.succeed(&effects[0]);
    assert!(play.step().is_empty(), "absent, but in a view that is older than our write");
    assert!(play.step().is_empty());
    play.shows("made-x", &gone(101));
    assert_eq!(steps_of(&play.step()), ["x"]);
}

#[test]
fn what_is_being_deleted_is_waited_for_and_its_successor_is_not_ours() {
    let mut play = Play::new(watching(vec![keep("x")], 1));
    play.settle();
    let mut going = (*projection("made-x", "uid-made-x", 110, json!({"metadata": {}}))).clone();
    going.deleting = true;
    play.shows("made-x", &observed(Some(Arc::new(going)), 110));
    assert!(play.step().is_empty());
    let other = projection("made-x", "another", 120, json!({"metadata": {"name": "made-x"}}));
    play.shows("made-x", &observed(Some(other), 120));
    assert_eq!(steps_of(&play.step()), ["x"], "the adopt rule decides about it");
}

#[test]
fn what_runs_once_may_go_after_its_end_was_seen_and_not_before() {
    let once = |id: &str| {
        keep(id).with(|action| {
            if let Rerun::OnDrift(drift) = &mut action.rerun {
                drift.run_once = true;
            }
        })
    };
    let witness = ready("x").asking(|requirement| requirement.latch = true);
    let mut play = Play::new(watching(vec![once("x"), witness], 1));
    let effects = play.step();
    play.succeed(&effects[0]);
    play.shows("made-x", &gone(110));
    assert!(play.step().is_empty());
    assert_eq!(
        play.decision().wake_at,
        Some(play.now),
        "what came at the same moment is looked at again at once"
    );
    let again = play.step();
    assert_eq!(steps_of(&again), ["x"], "its end was never seen");
    play.succeed(&again[0]);
    play.shows("made-x", &shown("made-x", OURS, 120));
    play.step();
    play.shows("made-x", &gone(130));
    assert!(play.step().is_empty());
    assert!(play.decision().report.ready, "{}", play.decision().report.message);
}

#[test]
fn repairs_that_do_not_last_slow_down() {
    let mut play = Play::new(watching(vec![keep("x")], 1));
    play.settle();
    let mut version = 100;
    let mut quick = 0;
    loop {
        version += 1;
        play.shows("made-x", &shown("made-x", "less", version));
        let effects = play.step();
        if effects.is_empty() {
            break;
        }
        quick += 1;
        assert!(quick < 10, "it fights at full speed");
        play.succeed(&effects[0]);
        play.step();
    }
    let wake = play.decision().wake_at.expect("a time to try again");
    assert!(wake > play.now);
    play.now = wake;
    assert_eq!(steps_of(&play.step()), ["x"]);
}

#[test]
fn a_write_that_the_store_has_forgotten_is_not_waited_for() {
    let mut play = Play::new(watching(vec![keep("x"), ready("x")], 1));
    let effects = play.step();
    play.succeed(&effects[0]);
    let set_back = |looked: Option<Timestamp>| {
        let mut seen = linchpin_engine::contract::Observed { as_of: 7, live: true, ..Default::default() };
        seen.looked = looked;
        Seen::Objects(Arc::new(seen))
    };
    play.shows("made-x", &set_back(Some(play.now)));
    assert!(play.step().is_empty(), "the look may have begun before our write");
    assert_eq!(play.state("made-x"), StepState::Waiting);
    play.pass(60);
    play.shows("made-x", &set_back(Some(play.now)));
    assert_eq!(steps_of(&play.step()), ["x"], "a look from after our write does not show it: it was undone");
}
