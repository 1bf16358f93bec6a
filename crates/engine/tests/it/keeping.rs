//! Keeping what was written as it was written, and taking away what is no longer wanted.

use std::sync::Arc;

use linchpin_engine::{
    contract::{
        Done, Effect, Existing, Failure, Force, Owner, Question, Right, Seen, StepId, Target, Verb, Want,
    },
    journal::{ItemState, StepState},
    plan::{Body, Drift, Immutable, Plan, Prune, Removal, Rerun, Step, Terms, Test},
    readiness::Wanted,
    step::{Goal, Phase, step},
};
use linchpin_words::{Reason, Timestamp, reference::KindWord};
use serde_json::json;

use crate::{
    build::{
        MANAGER, NAMESPACE, Steps, UID, apply, apply_value, config_map, observed, plan, plan_with,
        projection, require, via,
    },
    play::{OURS, Play, steps_of},
};

/// The want that looks at what we wrote.
fn kept(name: &str) -> Want {
    Drift::object(via(), config_map(), Some(NAMESPACE.to_owned()), name, MANAGER)
}

/// An action that keeps the ConfigMap `made-<id>` as it wrote it.
fn keep(id: &str) -> Step {
    apply(id).with(|action| {
        let objects = vec![kept(&format!("made-{id}"))];
        action.rerun = Rerun::OnDrift(Drift { objects, ..Drift::default() });
        action.tracked = true;
        action.prune = Prune::All;
    })
}

fn watching(steps: Vec<Step>, generation: i64) -> Plan {
    plan_with(generation, steps, Terms { watch: true, removal: Removal::Delete, ..Terms::default() })
}

/// A requirement that what the action wrote is there.
fn ready(id: &str) -> Step {
    let floor = StepId::new(id);
    require(&format!("made-{id}")).after(&[id]).asking(|requirement| requirement.floor = Some(floor))
}

fn shown(name: &str, fingerprint: &str, version: u64) -> Seen {
    let content = json!({"metadata": {"name": name, "managedFields": {MANAGER: fingerprint}}});
    observed(Some(projection(name, &format!("uid-{name}"), version, content)), version)
}

fn gone(version: u64) -> Seen {
    observed(None, version)
}

impl Play {
    /// Everything that is ordered succeeds, and the watches show it, until nothing happens any more.
    fn settle(&mut self) {
        for _ in 0..20 {
            let effects = self.step();
            if effects.is_empty() && self.outcomes.is_empty() {
                return;
            }
            for effect in &effects {
                if let Verb::Delete { target, .. } = &effect.verb {
                    let done = Done { target: Some(target.clone()), gone: true, ..Done::default() };
                    self.come_back(&effect.ticket, Ok(done));
                } else {
                    self.succeed(effect);
                    let Verb::Apply { body, .. } = &effect.verb else { continue };
                    let name = body["metadata"]["name"].as_str().expect("a name").to_owned();
                    self.shows(&name, &shown(&name, OURS, 100));
                }
            }
        }
        panic!("it does not come to rest");
    }

    /// What both watches of an object show.
    fn shows(&mut self, name: &str, seen: &Seen) {
        self.sees(name, seen.clone());
        self.answer(kept(name), seen.clone());
    }

    fn row(&self, name: &str) -> Option<ItemState> {
        self.memory.journal.inventory.iter().find(|item| item.target.name == name).map(|item| item.state)
    }
}

fn deleted(effects: &[Effect]) -> Vec<String> {
    let name = |effect: &'_ Effect| match &effect.verb {
        Verb::Delete { target, .. } => target.name.clone(),
        other => panic!("not a deletion: {other:?}"),
    };
    effects.iter().map(name).collect()
}

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
    let target = Target {
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
        if let Body::Apply { existing, .. } = &mut action.body {
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

fn immutable(effect: &Effect) -> Failure {
    let Verb::Apply { body, .. } = &effect.verb else { panic!("not an apply") };
    let target = Target {
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

#[test]
fn a_gate_lets_pass_what_is_not_ready_and_readiness_still_asks_for_all() {
    let strict = require("made-x").after(&["x"]).asking(|requirement| {
        requirement.floor = Some("x".into());
        requirement.gate = Some(Test { state: Some(Wanted::Exists), ..Test::default() });
        requirement.test = Test { state: Some(Wanted::Absent), ..Test::default() };
    });
    let mut play = Play::new(watching(vec![keep("x"), strict, keep("y").after(&["made-x"]), ready("y")], 1));
    play.settle();
    let report = &play.decision().report;
    assert_eq!(
        (report.phase, report.ready, report.reason),
        (Phase::Completed, false, Some(Reason::NotReady))
    );
    assert_eq!(play.state("made-x"), StepState::Met);
    let entry = report.steps.iter().find(|entry| entry.id.as_str() == "made-x").expect("an entry");
    assert!(!entry.ready && entry.blocking);
}

#[test]
fn the_failure_of_what_an_action_made_stops_only_what_comes_after_it() {
    let mut late = ready("x");
    late.timeout = Some(std::time::Duration::from_secs(60));
    let steps = vec![keep("x"), late, keep("y").after(&["made-x"]), require("a"), keep("z").after(&["a"])];
    let mut play = Play::new(watching(steps, 1));
    play.sees("a", gone(1));
    let effects = play.step();
    assert_eq!(steps_of(&effects), ["x"]);
    play.succeed(&effects[0]);
    play.shows("made-x", &gone(90));
    play.sees("made-x", observed(None, 100));
    play.step();
    play.pass(61);
    play.step();
    let report = &play.decision().report;
    assert_eq!((report.phase, report.reason), (Phase::Failed, Some(Reason::TimedOut)), "{}", report.message);
    play.sees("a", shown("a", "", 1));
    assert_eq!(steps_of(&play.step()), ["z"], "another branch goes on");
    play.sees("made-x", shown("made-x", OURS, 120));
    assert_eq!(steps_of(&play.step()), ["y"], "and so does this one, once it is well");
}

fn owner() -> Arc<Owner> {
    Arc::new(Owner {
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
    let goal = Goal::Teardown { removal: Removal::Retain, hurry: false };
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

#[test]
fn nothing_starts_before_it_is_known_whether_it_is_allowed() {
    let right = Right {
        verb: "create".to_owned(),
        group: String::new(),
        resource: "configmaps".to_owned(),
        subresource: None,
        namespace: Some(NAMESPACE.to_owned()),
        name: None,
    };
    let ask = Want::new(Question::Right { via: via(), right: right.clone() });
    let mut play = Play::new(plan(1, vec![apply("x").with(|action| action.rights = vec![right])]));
    assert!(play.step().is_empty());
    assert!(play.decision().wants.contains(&ask));
    assert_eq!(play.decision().report.blocked[0].reason, "Unsynced");
    play.answer(ask.clone(), Seen::Right(false));
    assert!(play.step().is_empty());
    assert_eq!(play.decision().report.blocked[0].reason, "MissingRights");
    play.answer(ask.clone(), Seen::Right(true));
    let effects = play.step();
    assert_eq!(steps_of(&effects), ["x"]);
    play.succeed(&effects[0]);
    play.step();
    assert!(!play.decision().wants.contains(&ask), "what is done asks for no right any more");
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
