//! Whose the objects are: owner references that come and go with the policy.

use std::sync::Arc;

use linchpin_engine::{
    contract::{Done, OwnerReference, Verb},
    plan::Removal,
    step::{Goal, step},
};

use super::{keep, shown, watching};
use crate::{
    build::{NAMESPACE, Steps, UID, authority},
    play::{OURS, Play, steps_of},
};

fn owner() -> Arc<OwnerReference> {
    Arc::new(OwnerReference {
        api_version: "app.example.com/v1alpha1".to_owned(),
        kind: "AppBundle".to_owned(),
        namespace: NAMESPACE.to_owned(),
        name: "web".to_owned(),
        uid: UID.to_owned(),
    })
}

#[test]
fn an_owner_is_taken_off_again_when_what_was_made_is_to_stay() {
    let owned = |owned: bool, generation| {
        let step = keep("x").with(|action| action.owner = owned.then(owner));
        watching(vec![step], generation)
    };
    let mut play = Play::new(owned(true, 1));
    let effects = play.step();
    assert!(matches!(&effects[0].verb, Verb::Apply { owner: Some(_), .. }));
    play.succeed(&effects[0]);
    if let Ok(done) = &mut play.outcomes[0].result {
        done.owned = true;
    }
    play.shows("made-x", &shown("made-x", OURS, 100));
    play.step();
    assert!(play.memory.journal.inventory[0].owned);
    // The object goes at once, and what it made is to stay.
    let authority = authority();
    let goal = Goal::Teardown { authority: &authority, removal: Removal::Retain, hurry: false };
    let leaving = step(play.memory.clone(), goal, &play.world, &[], None, play.now);
    assert!(!leaving.release, "the API server would delete what it owns");
    assert!(matches!(&leaving.effects[0].verb, Verb::Disown { owner, .. } if owner == UID));
    let outcome = linchpin_engine::contract::Outcome {
        ticket: leaving.effects[0].ticket.clone(),
        at: play.now,
        result: Ok(Done { disowned: true, ..Done::default() }),
    };
    assert!(step(leaving.memory, goal, &play.world, &[outcome], None, play.now).release);
    // Or only its policy changes.
    play.plan = owned(false, 2);
    let effects = play.step();
    assert!(matches!(&effects[0].verb, Verb::Apply { owner: None, .. }));
    play.succeed(&effects[0]);
    assert!(play.step().is_empty());
    assert!(!play.memory.journal.inventory[0].owned);
}

#[test]
fn an_owner_is_put_on_when_what_was_made_is_to_go_after_all() {
    let owned = |owned: bool, generation| {
        let step = keep("x").with(|action| action.owner = owned.then(owner));
        watching(vec![step], generation)
    };
    let mut play = Play::new(owned(false, 1));
    let effects = play.step();
    play.succeed(&effects[0]);
    play.shows("made-x", &shown("made-x", OURS, 100));
    assert!(play.step().is_empty());
    play.plan = owned(true, 2);
    let effects = play.step();
    assert!(matches!(&effects[0].verb, Verb::Apply { owner: Some(_), .. }));
    play.succeed(&effects[0]);
    if let Ok(done) = &mut play.outcomes[0].result {
        done.owned = true;
    }
    assert!(play.step().is_empty(), "once is enough");
    assert!(play.memory.journal.inventory[0].owned);
    // Somebody who takes every owner off wins.
    let mut play = Play::new(owned(true, 1));
    let effects = play.step();
    play.succeed(&effects[0]);
    play.shows("made-x", &shown("made-x", OURS, 100));
    assert!(play.step().is_empty());
}

#[test]
fn what_is_left_to_itself_is_not_deleted_and_is_ours_again_when_it_is_taken_back() {
    let tracked = |tracked: bool, generation| {
        let step = keep("x").with(|action| {
            action.tracked = tracked;
            action.owner = tracked.then(owner);
        });
        watching(vec![step], generation)
    };
    let mut play = Play::new(tracked(true, 1));
    let done = |play: &mut Play, owned: bool| {
        let effects = play.step();
        assert_eq!(steps_of(&effects), ["x"]);
        play.succeed(&effects[0]);
        if let Ok(done) = &mut play.outcomes[0].result {
            done.owned = owned;
        }
        play.shows("made-x", &shown("made-x", OURS, 100));
        assert!(play.step().is_empty(), "it is written once");
    };
    done(&mut play, true);
    play.plan = tracked(false, 2);
    done(&mut play, false);
    let mut leaving =
        Play { plan: play.plan.clone(), memory: play.memory.clone(), ..Play::new(tracked(false, 2)) };
    assert!(leaving.take_down().is_empty(), "it stays");
    play.plan = tracked(true, 3);
    done(&mut play, true);
    assert!(matches!(&play.take_down()[0].verb, Verb::Delete { uid: Some(_), .. }));
}
