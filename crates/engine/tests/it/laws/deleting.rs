//! An action that deletes: only what was there when it was ordered.

use linchpin_engine::{
    contract::{Done, Effect, Failure, Question, ReadSet, Seen, Verb, Want},
    journal::StepState,
    step::Persist,
};
use serde_json::json;

use crate::{
    build::{NAMESPACE, config_map, delete, kind_answer, observed, plan, projection, via},
    play::Play,
};

fn shows(play: &mut Play, uid: Option<&str>) {
    let want = Want::object(via(), config_map(), Some(NAMESPACE.to_owned()), "old", ReadSet::nothing());
    let item = uid.map(|uid| projection("old", uid, 1, json!({"metadata": {"name": "old"}})));
    play.answer(want, observed(item, 1));
}

/// A play in which kinds are known.
fn begin() -> Play {
    let mut play = Play::new(plan(1, vec![delete("drop", "old")]));
    play.step();
    know_kinds(&mut play);
    play
}

fn know_kinds(play: &mut Play) {
    let asked: Vec<Want> = play.decision().wants.iter().cloned().collect();
    for want in asked.into_iter().filter(|want| matches!(want.question(), Question::Kind { .. })) {
        let answer: Option<Seen> = kind_answer(&want);
        play.answer(want, answer.expect("a kind"));
    }
}

fn uid(effects: &[Effect]) -> &str {
    match effects {
        [Effect { verb: Verb::Delete { uid: Some(uid), creator: None, .. }, .. }] => uid,
        other => panic!("not one deletion: {other:?}"),
    }
}

#[test]
fn a_deletion_waits_until_what_it_deletes_is_seen_and_saves_that_first() {
    let mut play = begin();
    assert!(play.step().is_empty(), "nothing was seen yet");
    shows(&mut play, Some("one"));
    let effects = play.step();
    assert_eq!(uid(&effects), "one");
    assert_eq!(play.decision().persist, Persist::BeforeEffects);
}

#[test]
fn after_a_lost_answer_or_a_crash_the_successor_is_not_deleted() {
    for crash in [false, true] {
        let mut play = begin();
        shows(&mut play, Some("one"));
        let effects = play.step();
        if crash {
            play.crash();
        } else {
            play.fail(&effects[0], Failure::Transient("no answer".to_owned()));
            play.step();
            play.pass(60);
        }
        shows(&mut play, Some("two"));
        let effects = play.step();
        assert_eq!(uid(&effects), "one");
        play.fail(&effects[0], Failure::StalePrecondition("another one".to_owned()));
        play.step();
        assert_eq!(play.state("drop"), StepState::Done);
    }
}

#[test]
fn what_is_not_there_is_deleted_and_what_comes_after_stays() {
    let mut play = begin();
    shows(&mut play, None);
    let effects = play.step();
    assert_eq!(uid(&effects), "", "no object has such a uid");
    play.come_back(&effects[0].ticket, Ok(Done { gone: true, ..Done::default() }));
    play.step();
    assert_eq!(play.state("drop"), StepState::Done);
}
