//! What is ours to take away: where it is, whose it is, and as whom it is removed.

use linchpin_engine::{
    contract::{Actor, Authority, ClusterRef, Done, Failure, RemoteUser, Verb, Via},
    journal::ItemState,
    plan::{Removal, Step},
    step::{Goal, StepDecision, removal_has_begun, step},
};
use linchpin_words::Reason;

use super::{deleted, keep, watching};
use crate::{
    build::{Steps, UID, apply, authority, via},
    play::{Play, steps_of},
};

fn edge(impersonate: Option<&str>) -> ClusterRef {
    ClusterRef::Kubeconfig {
        namespace: "shop".to_owned(),
        name: "edge".to_owned(),
        key: String::new(),
        impersonate: impersonate.map(|user| RemoteUser { user: user.to_owned(), groups: Vec::new() }),
    }
}

/// An action that makes `made-x` in a cluster, and does not look at it again.
fn make(cluster: &ClusterRef) -> Step {
    let mut step = apply("x").tracked().with(|action| {
        action.prune = linchpin_engine::plan::Prune::All;
        action.via = Via { cluster: cluster.clone(), actor: action.via.actor.clone() };
    });
    step.definition = format!("1:{cluster}");
    step
}

/// Answers an effect as its cluster would, with the uid that the object has there.
fn succeed(play: &mut Play, effect: &linchpin_engine::contract::Effect, uid: &str) {
    play.succeed(effect);
    if let Ok(done) = &mut play.outcomes.last_mut().expect("an outcome").result {
        done.place = effect.via.cluster.place();
        done.stamp.as_mut().expect("a stamp").uid = uid.to_owned();
    }
}

fn take_down(play: &mut Play, authority: &Authority) -> StepDecision {
    let outcomes = std::mem::take(&mut play.outcomes);
    let goal = Goal::Teardown { authority, removal: Removal::Delete, hurry: false };
    let decision = step(play.memory.clone(), goal, &play.world, &outcomes, None, play.now);
    play.memory = decision.memory.clone();
    decision
}

#[test]
fn what_goes_on_in_another_cluster_leaves_nothing_behind_in_the_first() {
    let mut play = Play::new(watching(vec![make(&ClusterRef::Here)], 1));
    let effects = play.step();
    succeed(&mut play, &effects[0], "first");
    play.step();
    play.plan = watching(vec![make(&edge(None))], 2);
    play.answer(
        linchpin_engine::contract::Want::new(linchpin_engine::contract::Question::Version {
            via: Via { cluster: edge(None), actor: via().actor },
        }),
        linchpin_engine::contract::Seen::Version(Default::default()),
    );
    let effects = play.step();
    assert_eq!((steps_of(&effects), &effects[0].via.cluster), (vec!["x"], &edge(None)));
    succeed(&mut play, &effects[0], "second");
    let effects = play.step();
    assert_eq!(deleted(&effects), ["made-x"]);
    assert_eq!(effects[0].via, via(), "where it was made");
    assert!(matches!(&effects[0].verb, Verb::Delete { uid: Some(uid), creator: Some(mark), .. }
        if uid == "first" && mark == UID));
    play.come_back(&effects[0].ticket, Ok(Done { gone: true, ..Done::default() }));
    play.step();
    let rows: Vec<_> =
        play.memory.journal.inventory.iter().map(|row| (&row.place, row.uid.as_deref())).collect();
    assert_eq!(rows, [(&edge(None), Some("second"))]);
}

#[test]
fn the_same_cluster_by_another_name_is_no_other_place_for_the_object() {
    let mut play = Play::new(watching(vec![make(&ClusterRef::Here)], 1));
    let effects = play.step();
    succeed(&mut play, &effects[0], "one");
    play.step();
    play.plan = watching(vec![make(&edge(None))], 2);
    play.answer(
        linchpin_engine::contract::Want::new(linchpin_engine::contract::Question::Version {
            via: Via { cluster: edge(None), actor: via().actor },
        }),
        linchpin_engine::contract::Seen::Version(Default::default()),
    );
    let effects = play.step();
    succeed(&mut play, &effects[0], "one");
    assert!(play.step().is_empty(), "it is the same object");
    play.step();
    assert_eq!(play.memory.journal.inventory.len(), 1);
}

#[test]
fn removal_acts_as_whom_the_object_says_now_and_impersonates_whom_it_says_for_that_place() {
    let mut play = Play::new(watching(vec![keep("x")], 1));
    play.settle();
    play.memory.journal.inventory[0].place = edge(None);
    let actor = Actor::ServiceAccount { namespace: "shop".to_owned(), name: "another".to_owned() };
    let nobody = Authority { actor: actor.clone(), clusters: Vec::new() };
    let effects = take_down(&mut play, &nobody).effects;
    assert_eq!(effects[0].via, Via { cluster: edge(None), actor: actor.clone() });
    play.fail(&effects[0], Failure::Transient("later".to_owned()));
    take_down(&mut play, &nobody);
    play.pass(600);
    let somebody = Authority { actor: actor.clone(), clusters: vec![edge(Some("robot"))] };
    let effects = take_down(&mut play, &somebody).effects;
    assert_eq!(effects[0].via, Via { cluster: edge(Some("robot")), actor });
}

#[test]
fn taking_down_has_begun_with_the_first_deletion_that_is_no_pruning_and_not_with_what_is_under_way() {
    let mut play = Play::new(watching(vec![keep("x"), keep("y")], 1));
    let effects = play.step();
    assert!(!removal_has_begun(&play.memory), "writes of the plan are under way");
    for effect in &effects {
        play.succeed(effect);
    }
    play.settle();
    play.plan = watching(vec![keep("x")], 2);
    let effects = play.step();
    assert_eq!(deleted(&effects), ["made-y"]);
    assert!(!removal_has_begun(&play.memory), "what left the plan is being pruned");
    play.come_back(&effects[0].ticket, Ok(Done::default()));
    play.step();
    assert_eq!(play.memory.journal.inventory[1].state, ItemState::Deleting, "somebody holds it");
    assert!(!removal_has_begun(&play.memory), "and may hold it for good");
    let effects = take_down(&mut play, &authority()).effects;
    assert_eq!(deleted(&effects), ["made-x"]);
    assert!(removal_has_begun(&play.memory));
    play.come_back(&effects[0].ticket, Ok(Done { gone: true, ..Done::default() }));
    take_down(&mut play, &authority());
    assert!(removal_has_begun(&play.memory), "also when it is gone");
}

#[test]
fn what_does_not_carry_our_mark_is_let_go_and_named() {
    let mut play = Play::new(watching(vec![keep("x")], 1));
    play.settle();
    let effects = take_down(&mut play, &authority()).effects;
    play.fail(&effects[0], Failure::NotOurs("not ours".to_owned()));
    let decision = take_down(&mut play, &authority());
    assert!(decision.release && decision.effects.is_empty());
    assert_eq!(decision.report.left.len(), 1);
    assert!(decision.report.left[0].contains(Reason::TakenBack.as_str()), "{:?}", decision.report.left);
}

#[test]
fn a_cluster_is_given_up_only_after_its_credential_was_absent_for_five_minutes_of_deletion() {
    let mut play = Play::new(watching(vec![keep("x")], 1));
    play.settle();
    let mut waited = 0;
    let decision = loop {
        let effects = take_down(&mut play, &authority()).effects;
        if let Some(effect) = effects.first() {
            play.fail(effect, Failure::CredentialAbsent("Secret shop/edge does not exist".to_owned()));
        }
        let decision = take_down(&mut play, &authority());
        if decision.release {
            break decision;
        }
        assert!(decision.report.blocked[0].message.contains("shop/edge"), "{:?}", decision.report.blocked);
        play.pass(20);
        waited += 20;
    };
    assert!(waited >= 300, "given up after {waited} s");
    assert!(decision.report.left[0].contains("made-x"));
    // What merely does not answer is waited for.
    let mut play = Play::new(watching(vec![keep("x")], 1));
    play.settle();
    for _ in 0..30 {
        let effects = take_down(&mut play, &authority()).effects;
        if let Some(effect) = effects.first() {
            play.fail(effect, Failure::Transient("no answer".to_owned()));
        }
        assert!(!take_down(&mut play, &authority()).release);
        play.pass(60);
    }
    assert_eq!(play.row("made-x"), Some(ItemState::Created));
}

#[test]
fn a_pause_that_nobody_of_us_wrote_holds_no_deletion_up() {
    let mut play = Play::new(watching(vec![keep("x")], 1));
    play.settle();
    let row = &mut play.memory.journal.inventory[0];
    row.retry_at = Some(linchpin_words::Timestamp::from_second(253_000_000_000));
    row.attempt = u32::MAX;
    assert_eq!(take_down(&mut play, &authority()).effects.len(), 1);
}
