//! What comes back while the spec is invalid counts with the next plan: nothing is lost, nothing is guessed.

use linchpin_engine::{
    contract::{Done, Failure},
    journal::{ItemState, StepState},
    plan::{Delivery, Removal, Terms},
};

use crate::{
    build::{Steps, apply, exec, plan, plan_with},
    play::{Play, steps_of},
};

/// A command, then an object: the command is under way.
fn migrating() -> (Play, linchpin_engine::contract::Effect) {
    let mut play =
        Play::new(plan(1, vec![exec("migrate", Delivery::AtMostOnce), apply("x").after(&["migrate"])]));
    let effects = play.step();
    assert_eq!(steps_of(&effects), ["migrate"]);
    (play, effects[0].clone())
}

#[test]
fn a_command_that_fails_while_the_spec_is_invalid_has_failed() {
    let (mut play, command) = migrating();
    play.fail(&command, Failure::Exit(3));
    play.step_while_invalid();
    assert!(play.step().is_empty(), "x needs the command's good end");
    assert_eq!(play.state("migrate"), StepState::Failed);
    assert_eq!(play.decision().report.steps[0].message.to_string(), "command exited with code 3");
}

#[test]
fn a_command_that_was_held_back_when_the_spec_became_invalid_runs_with_the_next_plan() {
    let (mut play, command) = migrating();
    play.fail(&command, Failure::NotStarted);
    play.step_while_invalid();
    assert!(play.step().is_empty(), "x needs the command, which never ran");
    assert_eq!(play.state("migrate"), StepState::Waiting);
    play.pass(60);
    assert_eq!(steps_of(&play.step()), ["migrate"]);
}

#[test]
fn a_command_that_ends_well_while_the_spec_is_invalid_is_done() {
    let (mut play, command) = migrating();
    play.succeed(&command);
    play.step_while_invalid();
    play.step_while_invalid();
    assert_eq!(steps_of(&play.step()), ["x"]);
    assert_eq!(play.state("migrate"), StepState::Done);
}

#[test]
fn a_crash_while_the_spec_is_invalid_loses_no_end_of_a_command() {
    let ends: [(Result<Done, Failure>, StepState); 4] = [
        (Ok(Done { exit: Some(0), ..Done::default() }), StepState::Done),
        (Err(Failure::Exit(3)), StepState::Failed),
        (Err(Failure::NotStarted), StepState::Waiting),
        (Err(Failure::Unknowable("no answer".to_owned())), StepState::Unknown),
    ];
    for (end, state) in ends {
        let (mut play, command) = migrating();
        play.come_back(&command.ticket, end.clone());
        play.step_while_invalid();
        play.crash();
        play.step_while_invalid();
        play.step();
        assert_eq!(play.state("migrate"), state, "{end:?}");
    }
}

#[test]
fn an_object_that_is_made_while_the_spec_is_invalid_is_ours_to_delete() {
    let terms = Terms { removal: Removal::Delete, ..Terms::default() };
    let mut play = Play::new(plan_with(1, vec![apply("x").tracked()], terms));
    let effects = play.step();
    play.succeed(&effects[0]);
    play.step_while_invalid();
    let row = &play.memory.journal.inventory[0];
    assert_eq!((row.state, row.uid.as_deref()), (ItemState::Created, Some("uid-made-x")));
    assert_eq!(steps_of(&play.take_down()), ["x"], "nothing of the plan is in flight any more");
}

#[test]
fn a_step_that_left_the_plan_while_the_spec_was_invalid_leaves_its_object_in_the_inventory() {
    let terms = Terms { removal: Removal::Delete, ..Terms::default() };
    let mut play = Play::new(plan_with(1, vec![apply("x").tracked()], terms.clone()));
    let effects = play.step();
    play.succeed(&effects[0]);
    play.step_while_invalid();
    play.plan = plan_with(2, vec![apply("y").tracked()], terms);
    assert_eq!(steps_of(&play.step()), ["y"]);
    assert!(play.memory.flight.iter().all(|ticket| ticket.step.as_str() == "y"));
    let row = play.memory.journal.inventory.iter().find(|row| row.step.as_str() == "x");
    assert_eq!(row.map(|row| row.state), Some(ItemState::Created));
}
