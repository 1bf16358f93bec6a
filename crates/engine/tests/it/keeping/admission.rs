//! One transition, admitted as a whole: the laws A1 to A6, S1 and L1, each as a story. All ways of many stories: `seeded`.

use std::{collections::BTreeMap, time::Duration};

use linchpin_engine::{
    contract::{StepId, Verb},
    graph::{Edge, Relation},
    journal::StepState,
    plan::{Admission, Edition, Gates, LatchScope, ManualOverrides, Plan, Step, Terms, definition},
    step::{Persist, Phase},
};
use linchpin_words::{Reason, Shared};
use serde_json::{Value, json};

use super::{gone, keep, ready, shown, watching};
use crate::{
    build::{Steps, plan_with, require},
    play::{OURS, Play, steps_of},
};

/// A plan as one transition, called by a revision and held by gates.
pub(super) fn whole(plan: Plan, revision: &str, gates: &[&str]) -> Plan {
    let acts = plan.steps().iter().filter(|step| step.action().is_some());
    let pairs: Vec<Value> = acts.map(|step| json!([step.id.as_str(), step.definition])).collect();
    let edition =
        Edition { id: definition(&json!(pairs), &Value::Null), revision: revision.to_owned(), version: None };
    let gates = gates.iter().map(|gate| (StepId::new(gate), Gates::Both)).collect();
    plan.with_admission(Admission { edition: Shared::new(edition), gates })
}

/// An action whose text is another one in each version.
pub(super) fn text(id: &str, version: u32) -> Step {
    let mut step = keep(id);
    step.definition = format!("1:{id}-{version}");
    step
}

/// Gates a and b; x, and then y; y has this version.
fn update(version: u32, revision: &str) -> Plan {
    let steps = vec![
        require("a"),
        require("b"),
        text("x", 1).after(&["a", "b"]),
        ready("x"),
        text("y", version).after(&["made-x"]),
        ready("y"),
    ];
    whole(watching(steps, 1), revision, &["a", "b"])
}

fn there(play: &mut Play, name: &str) {
    play.sees(name, shown(name, "theirs", 1));
}

/// A play of `update(1)` that has come to its end.
fn synced() -> Play {
    let mut play = Play::new(update(1, "r1"));
    there(&mut play, "a");
    there(&mut play, "b");
    play.settle();
    assert!(play.decision().report.ready);
    play
}

fn revision(edition: Option<&Shared<Edition>>) -> &str {
    edition.map_or("", |edition| edition.revision.as_str())
}

#[test]
fn a1_it_is_admitted_when_all_gates_hold_together_and_that_is_saved_first() {
    let mut play = Play::new(update(1, "r1"));
    there(&mut play, "a");
    play.sees("b", gone(1));
    assert!(play.step().is_empty());
    assert_eq!(play.decision().report.phase, Phase::Waiting);
    play.sees("a", gone(2));
    there(&mut play, "b");
    assert!(play.step().is_empty(), "each held once, never both together");
    assert_eq!(play.memory.journal.editions.admitted, None);
    there(&mut play, "a");
    assert_eq!(steps_of(&play.step()), ["x"]);
    assert_eq!(play.decision().persist, Persist::BeforeEffects);
    assert_eq!(revision(play.memory.journal.editions.admitted.as_ref()), "r1");
}

#[test]
fn a2_a3_what_is_admitted_stays_admitted_whatever_becomes_of_its_gates() {
    let mut play = Play::new(update(1, "r1"));
    there(&mut play, "a");
    there(&mut play, "b");
    let effects = play.step();
    play.sees("a", gone(5));
    play.succeed(&effects[0]);
    play.shows("made-x", &shown("made-x", OURS, 100));
    assert_eq!(steps_of(&play.step()), ["y"], "a gate that is lost between two layers holds nothing");
    play.crash();
    play.sees("a", gone(6));
    there(&mut play, "b");
    play.shows("made-x", &shown("made-x", OURS, 100));
    play.settle();
    let report = &play.decision().report;
    assert!(report.ready, "{report:?}");
    let gate = report.steps.iter().find(|step| step.id.as_str() == "a").expect("the gate");
    assert_eq!((gate.state, gate.blocking), (StepState::Waiting, false), "it is only shown");
    let editions = &play.memory.journal.editions;
    assert_eq!((revision(editions.applied.as_ref()), revision(editions.ready.as_ref())), ("r1", "r1"));
}

#[test]
fn a3_a_gate_of_what_is_admitted_has_no_time_to_run_out_of() {
    let mut plan = vec![require("a"), keep("x").after(&["a"]), ready("x")];
    plan[0].timeout = Some(Duration::from_secs(60));
    let mut play = Play::new(whole(watching(plan, 1), "r1", &["a"]));
    there(&mut play, "a");
    let effects = play.step();
    play.sees("a", gone(2));
    play.pass(3_600);
    play.succeed(&effects[0]);
    play.shows("made-x", &shown("made-x", OURS, 100));
    play.settle();
    assert_eq!(play.memory.journal.halt, None);
    assert!(play.decision().report.ready);
}

#[test]
fn a4_while_an_update_is_held_what_it_does_not_change_is_repaired_and_what_it_changes_is_left() {
    let mut play = synced();
    play.sees("a", gone(9));
    play.plan = update(2, "r2");
    assert!(play.step().is_empty());
    let report = &play.decision().report;
    assert_eq!((report.phase, report.ready), (Phase::Waiting, false));
    play.shows("made-x", &shown("made-x", "less", 120));
    play.shows("made-y", &shown("made-y", "less", 120));
    let effects = play.step();
    assert_eq!(steps_of(&effects), ["x"]);
    play.succeed(&effects[0]);
    play.shows("made-x", &shown("made-x", OURS, 130));
    assert!(play.step().is_empty());
    assert_eq!(revision(play.memory.journal.editions.admitted.as_ref()), "r1");
    there(&mut play, "a");
    assert_eq!(steps_of(&play.step()), ["y"], "and only what changed is written");
}

#[test]
fn a4_repairs_go_on_also_when_the_update_has_failed_to_be_admitted() {
    let timed = |version| {
        let mut steps =
            vec![require("a"), keep("x").after(&["a"]), ready("x"), text("y", version).after(&["a"])];
        steps[0].timeout = Some(Duration::from_secs(60));
        whole(watching(steps, 1), "r", &["a"])
    };
    let mut play = Play::new(timed(1));
    there(&mut play, "a");
    play.settle();
    play.sees("a", gone(9));
    play.plan = timed(2);
    play.step();
    play.pass(61);
    play.step();
    assert_eq!(play.decision().report.phase, Phase::Failed);
    play.shows("made-x", &gone(140));
    assert_eq!(steps_of(&play.step()), ["x"]);
}

#[test]
fn a5_nothing_is_pruned_before_the_update_that_drops_it_is_admitted_and_ready() {
    let mut play = synced();
    let fewer = vec![require("a"), require("b"), text("x", 1).after(&["a", "b"]), ready("x")];
    play.plan = whole(watching(fewer, 1), "r2", &["a", "b"]);
    play.sees("a", gone(9));
    assert!(play.step().is_empty());
    assert!(!play.decision().report.ready, "a revision that only removes objects is an update too");
    there(&mut play, "a");
    let mut deleted = Vec::new();
    for _ in 0..5 {
        deleted.extend(play.step().into_iter().filter(|effect| matches!(effect.verb, Verb::Delete { .. })));
    }
    assert_eq!(deleted.len(), 1);
}

#[test]
fn a_revision_that_changes_nothing_needs_no_admission_and_writes_nothing() {
    let mut play = synced();
    play.sees("a", gone(9));
    play.plan = update(1, "r2");
    assert!(play.step().is_empty());
    assert!(play.decision().report.ready);
    let editions = &play.memory.journal.editions;
    for edition in [&editions.seen, &editions.admitted, &editions.applied, &editions.ready] {
        assert_eq!(revision(edition.as_ref()), "r2");
    }
    assert_eq!(play.memory.journal.run.id, synced().memory.journal.run.id, "not even a new run");
}

/// Gate a, waited for with patience; x.
fn patient(version: u32) -> Plan {
    let mut steps = vec![require("a"), text("x", version).after(&["a"]), ready("x")];
    steps[0].patience = Some(Duration::from_secs(300));
    whole(watching(steps, 1), "r", &["a"])
}

#[test]
fn s1_a6_a_soft_gate_only_delays_and_its_patience_begins_anew_with_each_edition() {
    let mut play = Play::new(patient(1));
    play.sees("a", gone(1));
    assert!(play.step().is_empty());
    play.pass(299);
    assert!(play.step().is_empty());
    play.pass(1);
    assert_eq!(steps_of(&play.step()), ["x"]);
    assert_eq!(play.memory.journal.steps[&"a".into()].reason, Some(Reason::SoftBroken));
    play.plan = patient(2);
    play.memory.flight.clear();
    assert!(play.step().is_empty(), "the next edition waits again");
    play.pass(300);
    assert_eq!(steps_of(&play.step()), ["x"]);
    let mut prompt = Play::new(patient(1));
    there(&mut prompt, "a");
    assert_eq!(steps_of(&prompt.step()), ["x"], "what is there is not waited for");
}

#[test]
fn s1_patience_is_not_over_while_nothing_can_be_seen() {
    let mut play = Play::new(patient(1));
    play.step();
    play.pass(10_000);
    assert!(play.step().is_empty(), "an absent API server is nobody's lateness");
}

#[test]
fn l1_what_was_met_once_and_for_all_is_met_for_good() {
    let lasting = |version, lasts| {
        let gate = require("a").asking(|requirement| requirement.lasts = lasts);
        whole(watching(vec![gate, text("x", version).after(&["a"]), ready("x")], 1), "r", &["a"])
    };
    for (lasts, passes) in
        [(LatchScope::ForGood, true), (LatchScope::Edition, false), (LatchScope::No, false)]
    {
        let mut play = Play::new(lasting(1, lasts));
        there(&mut play, "a");
        play.settle();
        play.sees("a", gone(9));
        play.plan = lasting(2, lasts);
        assert_eq!(steps_of(&play.step()), if passes { vec!["x"] } else { vec![] }, "{lasts:?}");
    }
}

#[test]
fn l1_a_latch_is_set_before_the_other_gates_hold_and_survives_a_crash() {
    let once = require("a").asking(|requirement| requirement.lasts = LatchScope::ForGood);
    let steps = vec![once, require("b"), keep("x").after(&["a", "b"])];
    let mut play = Play::new(whole(watching(steps, 1), "r", &["a", "b"]));
    there(&mut play, "a");
    play.sees("b", gone(1));
    play.step();
    play.crash();
    play.sees("a", gone(2));
    there(&mut play, "b");
    assert_eq!(steps_of(&play.step()), ["x"]);
}

#[test]
fn a_gate_holds_the_transitions_that_it_gates_and_no_other() {
    for (gates, held) in [(Gates::Create, [true, false]), (Gates::Update, [false, true])] {
        let gated = |version| {
            let steps = vec![require("a"), text("x", version).after(&["a"]), ready("x")];
            let mut plan = whole(watching(steps, 1), "r", &["a"]);
            let admission = plan.admission.take().expect("an admission");
            plan.with_admission(Admission { gates: BTreeMap::from([("a".into(), gates)]), ..admission })
        };
        let mut play = Play::new(gated(1));
        play.sees("a", gone(1));
        assert_eq!(play.step().is_empty(), held[0], "{gates:?}");
        let mut play = Play::new(gated(1));
        there(&mut play, "a");
        play.settle();
        play.sees("a", gone(9));
        play.plan = gated(2);
        assert_eq!(play.step().is_empty(), held[1], "{gates:?}");
    }
}

#[test]
fn an_order_to_pass_a_gate_is_used_up_by_the_admission_that_it_helped() {
    let ordered = |version| {
        let orders = ManualOverrides { proceed: vec!["a".into()], ..ManualOverrides::default() };
        let steps = vec![require("a"), text("x", version).after(&["a"])];
        whole(plan_with(1, steps, Terms { watch: true, orders, ..Terms::default() }), "r", &["a"])
    };
    let mut play = Play::new(ordered(1));
    play.sees("a", gone(1));
    let effects = play.step();
    assert_eq!(steps_of(&effects), ["x"]);
    play.succeed(&effects[0]);
    play.step();
    play.plan = ordered(2);
    assert!(play.step().is_empty(), "one order does not pass all later revisions");
}

#[test]
fn a_gate_that_is_lost_after_the_admission_is_still_relied_on_and_holds_nothing() {
    let mut play = synced();
    play.sees("a", gone(9));
    play.step();
    let report = &play.decision().report;
    let named = |edge: &&Edge| edge.to.object.name == "a";
    let edge = report.edges.iter().find(named).expect("who makes it is asked for all the same");
    let Relation::WaitsFor(wait) = &edge.relation else { panic!("{edge:?}") };
    assert!(wait.was_let_through() && wait.met(), "{wait:?}");
    play.plan = update(2, "r2");
    play.step();
    let report = &play.decision().report;
    let held = report.edges.iter().find(named).map(|edge| &edge.relation);
    assert!(matches!(held, Some(Relation::WaitsFor(wait)) if !wait.met()), "{held:?}");
}

#[test]
fn l1_a_latch_of_one_edition_or_text_does_not_come_back_from_what_it_remembers() {
    let lasting = |version, lasts, text: &str| {
        let mut gate =
            require("a").asking(|requirement| (requirement.latch, requirement.lasts) = (true, lasts));
        gate.definition = format!("1:a-{text}");
        whole(watching(vec![gate, self::text("x", version).after(&["a"]), ready("x")], 1), "r", &["a"])
    };
    for (lasts, text, passes) in [
        (LatchScope::ForGood, "one", true),
        (LatchScope::ForGood, "another", false),
        (LatchScope::Edition, "one", false),
        (LatchScope::Never, "one", false),
        (LatchScope::No, "one", true),
    ] {
        let mut play = Play::new(lasting(1, lasts, "one"));
        there(&mut play, "a");
        play.settle();
        play.sees("a", gone(9));
        play.step();
        play.plan = lasting(2, lasts, text);
        for _ in 0..2 {
            let effects = play.step();
            assert_eq!(steps_of(&effects), if passes { vec!["x"] } else { vec![] }, "{lasts:?} {text}");
            if passes {
                break;
            }
        }
    }
}
