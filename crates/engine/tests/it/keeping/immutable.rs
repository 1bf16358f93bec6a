//! What cannot be changed in place: left as it is, failed, or made anew.

use linchpin_engine::{
    contract::{Done, Effect, EffectTarget, Failure, Question, Verb, Want},
    journal::StepState,
    plan::{Immutable, Plan},
};
use linchpin_words::{Reason, reference::KindWord};

use super::{gone, keep, watching};
use crate::{
    build::{NAMESPACE, Steps},
    play::Play,
};

fn immutable(effect: &Effect) -> Failure {
    let Verb::Apply { body, .. } = &effect.verb else { panic!("not an apply") };
    let target = EffectTarget {
        kind: KindWord::from_manifest(Some("v1"), "ConfigMap"),
        namespace: Some(NAMESPACE.to_owned()),
        name: body["metadata"]["name"].as_str().expect("a name").to_owned(),
    };
    Failure::Immutable { target, message: "spec.template cannot be changed".to_owned() }
}

fn with_immutable(policy: Immutable, generation: i64) -> Plan {
    let mut step = keep("x").with(|action| action.immutable = policy);
    step.definition = format!("1:x{generation}");
    watching(vec![step], generation)
}

#[test]
fn a_field_that_cannot_be_changed_fails_or_is_ignored_as_the_policy_says() {
    for (policy, state) in [(Immutable::Fail, StepState::Failed), (Immutable::Ignore, StepState::Done)] {
        let mut play = Play::new(with_immutable(policy, 1));
        play.settle();
        play.plan = with_immutable(policy, 2);
        let effects = play.step();
        let failure = immutable(&effects[0]);
        play.fail(&effects[0], failure);
        assert!(play.step().is_empty());
        assert_eq!(play.state("x"), state);
        assert_eq!(play.memory.journal.steps[&"x".into()].reason, Some(Reason::ImmutableField));
    }
}

#[test]
fn what_cannot_be_changed_is_deleted_waited_for_and_made_anew_if_it_is_ours() {
    let mut play = Play::new(with_immutable(Immutable::Recreate, 1));
    play.settle();
    play.plan = with_immutable(Immutable::Recreate, 2);
    let effects = play.step();
    let failure = immutable(&effects[0]);
    play.fail(&effects[0], failure);
    let effects = play.step();
    let Verb::Delete { target, uid, .. } = &effects[0].verb else { panic!("not a deletion: {effects:?}") };
    assert_eq!((target.name.as_str(), uid.as_deref()), ("made-x", Some("uid-made-x")));
    let stamp = linchpin_engine::contract::Stamp {
        uid: "uid-made-x".to_owned(),
        generation: 1,
        version: 110,
        fingerprint: String::new(),
    };
    play.come_back(
        &effects[0].ticket,
        Ok(Done { target: Some(target.clone()), stamp: Some(stamp), ..Done::default() }),
    );
    assert!(play.step().is_empty(), "it is still there, waiting for its finalizers");
    play.crash();
    assert!(play.step().is_empty(), "nothing was seen since the start");
    let awaited: Vec<Want> = play.decision().wants.iter().cloned().collect();
    for want in awaited {
        let answer = match want.question() {
            Question::Kind { .. } => crate::build::kind_answer(&want),
            _ => Some(gone(120)),
        };
        play.answer(want, answer.expect("an answer"));
    }
    play.step();
    let awaited: Vec<Want> = play.decision().wants.iter().cloned().collect();
    for want in awaited.into_iter().filter(|want| matches!(want.question(), Question::Objects { .. })) {
        play.answer(want, gone(120));
    }
    let effects = play.step();
    assert!(matches!(&effects[0].verb, Verb::Apply { .. }), "{effects:?}");
    play.succeed(&effects[0]);
    play.step();
    assert_eq!(play.state("x"), StepState::Done);
}

#[test]
fn what_is_not_ours_is_not_deleted_to_be_made_anew() {
    let mut play = Play::new(with_immutable(Immutable::Recreate, 1));
    let effects = play.step();
    play.find(&effects[0]);
    play.step();
    play.plan = with_immutable(Immutable::Recreate, 2);
    let effects = play.step();
    let failure = immutable(&effects[0]);
    play.fail(&effects[0], failure);
    assert!(play.step().is_empty());
    assert_eq!(play.state("x"), StepState::Failed);
}
