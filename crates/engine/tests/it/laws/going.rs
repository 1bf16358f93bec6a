//! Law 11: deletion never hangs on what a user controls.

use linchpin_engine::{
    contract::{Failure, Right, Verb},
    plan::{Removal, Terms},
};

use crate::{
    build::{Steps, apply, kind_answer, observed, plan_with},
    play::{Play, steps_of},
};

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
