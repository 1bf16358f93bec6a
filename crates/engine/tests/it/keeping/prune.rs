//! What left the plan goes, in reverse and only when all else is well.

use linchpin_engine::{
    contract::{Done, EffectTarget, Existing, Failure, StepId, Verb},
    journal::ItemState,
    plan::{ActionBody, Prune},
    step::Phase,
};
use linchpin_words::reference::KindWord;
use serde_json::json;

use super::{deleted, gone, keep, ready, shown, watching};
use crate::{
    build::{Steps, apply_value},
    play::{OURS, Play, steps_of},
};

#[test]
fn what_left_the_plan_goes_in_reverse_and_only_when_all_else_is_ready() {
    let chain = |generation| {
        let mut steps = vec![keep("x"), ready("x")];
        if generation == 1 {
            steps.extend([keep("y").after(&["made-x"]), ready("y"), keep("z").after(&["made-y"])]);
        } else {
            steps.extend([keep("new").after(&["made-x"]), ready("new")]);
        }
        watching(steps, generation)
    };
    let mut play = Play::new(chain(1));
    play.settle();
    play.plan = chain(2);
    let effects = play.step();
    assert_eq!(steps_of(&effects), ["new"]);
    play.succeed(&effects[0]);
    play.shows("made-new", &gone(1));
    assert!(play.step().is_empty(), "what is new is not ready yet");
    play.shows("made-new", &shown("made-new", OURS, 100));
    let effects = play.step();
    assert_eq!(deleted(&effects), ["made-z"]);
    assert!(play.step().is_empty(), "made-y waits until made-z is gone");
    let done = Done { gone: true, ..Done::default() };
    play.come_back(&effects[0].ticket, Ok(done));
    assert_eq!(deleted(&play.step()), ["made-y"]);
    play.settle();
}

#[test]
fn what_lands_after_its_step_left_the_plan_is_pruned_too() {
    let mut play = Play::new(watching(vec![keep("y")], 1));
    let late = play.step();
    play.plan = watching(vec![keep("x")], 2);
    let effects = play.step();
    assert_eq!(steps_of(&effects), ["x"]);
    play.succeed(&effects[0]);
    play.shows("made-x", &shown("made-x", OURS, 100));
    assert!(play.step().is_empty(), "nothing is deleted while its making is under way");
    play.succeed(&late[0]);
    let effects = play.step();
    assert_eq!(deleted(&effects), ["made-y"]);
    assert!(matches!(&effects[0].verb, Verb::Delete { uid: Some(_), .. }));
}

#[test]
fn nothing_is_pruned_while_something_has_failed() {
    let two = |generation| {
        let mut steps = vec![keep("x"), ready("x")];
        if generation == 1 {
            steps.push(keep("y"));
        } else {
            steps[0].definition.push_str("-changed");
        }
        watching(steps, generation)
    };
    let mut play = Play::new(two(1));
    play.settle();
    play.plan = two(2);
    let effects = play.step();
    assert_eq!(steps_of(&effects), ["x"]);
    play.fail(&effects[0], Failure::Invalid("no".to_owned()));
    assert!(play.step().is_empty());
    assert_eq!(play.decision().report.phase, Phase::Failed);
    assert_eq!(play.row("made-y"), Some(ItemState::Created));
}

#[test]
fn an_object_that_only_moved_to_another_step_is_kept() {
    let of = |id: &str, generation| {
        let value = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "made-it"}});
        let step = apply_value(id, value).with(|action| {
            action.tracked = true;
            action.prune = Prune::All;
        });
        watching(vec![step], generation)
    };
    let mut play = Play::new(of("old", 1));
    play.settle();
    play.plan = of("new", 2);
    let effects = play.step();
    assert_eq!(steps_of(&effects), ["new"]);
    play.succeed(&effects[0]);
    assert!(play.step().is_empty());
    assert!(play.step().is_empty());
    assert_eq!(play.memory.journal.inventory.len(), 1);
    assert_eq!(play.memory.journal.inventory[0].step, StepId::new("new"));
}

#[test]
fn an_object_that_its_step_no_longer_renders_goes() {
    let named = |name: &str, generation: i64| {
        let value = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
        let mut step = apply_value("x", value).with(|action| {
            action.tracked = true;
            action.prune = Prune::All;
        });
        step.definition = format!("1:{name}");
        watching(vec![step], generation)
    };
    let mut play = Play::new(named("one", 1));
    play.settle();
    play.plan = named("two", 2);
    let effects = play.step();
    assert_eq!(steps_of(&effects), ["x"]);
    assert_eq!(play.row("one"), Some(ItemState::Created), "not before its successor is there");
    play.succeed(&effects[0]);
    let effects = play.step();
    assert_eq!(deleted(&effects), ["one"]);
    play.come_back(&effects[0].ticket, Ok(Done { gone: true, ..Done::default() }));
    play.step();
    assert_eq!(play.row("one"), None);
    assert_eq!(play.row("two"), Some(ItemState::Created));
}

#[test]
fn what_is_not_to_be_pruned_stays_until_the_object_itself_goes() {
    let plan = |generation| {
        let kept = keep("y").with(|action| action.prune = Prune::Never);
        let steps = if generation == 1 { vec![keep("x"), kept] } else { vec![keep("x")] };
        watching(steps, generation)
    };
    let mut play = Play::new(plan(1));
    play.settle();
    play.plan = plan(2);
    play.settle();
    assert_eq!(play.row("made-y"), Some(ItemState::Created));
    let effects = play.take_down();
    assert_eq!(effects.len(), 2, "both go now");
}

#[test]
fn long_lived_objects_go_last_whatever_the_order() {
    let namespace =
        apply_value("ns", json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "data"}}));
    let namespace = namespace.after(&["x"]).with(|action| {
        action.tracked = true;
        action.prune = Prune::Usual;
        action.long_lived_last = true;
    });
    let mut play = Play::new(watching(vec![keep("x"), namespace], 1));
    let effects = play.step();
    play.succeed(&effects[0]);
    let effects = play.step();
    assert_eq!(steps_of(&effects), ["ns"]);
    let target = EffectTarget {
        kind: KindWord::from_manifest(Some("v1"), "Namespace"),
        namespace: None,
        name: "data".to_owned(),
    };
    let stamp = linchpin_engine::contract::Stamp {
        uid: "uid-data".to_owned(),
        generation: 1,
        version: 100,
        fingerprint: String::new(),
    };
    let done = Done { target: Some(target), created: true, stamp: Some(stamp), ..Done::default() };
    play.come_back(&effects[0].ticket, Ok(done));
    play.step();
    assert!(!play.memory.journal.inventory.iter().any(|item| item.target.name == "data" && item.prune));
    let effects = play.take_down();
    assert_eq!(deleted(&effects), ["made-x"], "the namespace was made later, and goes later");
    play.come_back(&effects[0].ticket, Ok(Done { gone: true, ..Done::default() }));
    assert_eq!(deleted(&play.take_down()), ["data"]);
}

#[test]
fn what_was_there_before_us_is_let_go_and_never_deleted() {
    let adopting = keep("y").with(|action| {
        if let ActionBody::Apply { existing, .. } = &mut action.body {
            *existing = Existing::Adopt;
        }
    });
    let mut play = Play::new(watching(vec![adopting], 1));
    let effects = play.step();
    assert!(matches!(&effects[0].verb, Verb::Apply { existing: Existing::Adopt, .. }));
    play.find(&effects[0]);
    play.step();
    assert_eq!(play.row("made-y"), Some(ItemState::Adopted));
    play.plan = watching(vec![keep("x")], 2);
    play.settle();
    assert_eq!(play.row("made-y"), None, "it is let go");
    assert_eq!(deleted(&play.take_down()), ["made-x"]);
}
