//! Nothing that a user writes decides how long a step takes: evaluations are counted, and the rest goes on in the next step.

use std::sync::Arc;

use linchpin_engine::{
    contract::{Observed, Projection, Question, ReadSet, Scope, Seen, Selector, StepId, Want, World},
    journal::Memory,
    plan::{
        ActionGuard, Clauses, ExpectedCount, GuardSubject, Plan, Profile, Requirement, Step, StepKind, Test,
    },
    readiness::Wanted,
    step::{Goal, Phase, StepDecision, step},
};
use linchpin_lang::{cel::Expression, compare::FieldCondition};
use linchpin_words::{Timestamp, limits};
use serde_json::{Value, json};

use crate::build::{
    NAMESPACE, Steps, UID, apply, apply_value, config_map, observed, plan, projection, require, via, want,
    world,
};

/// Some thousand steps for each object.
const DEAR: &str =
    "[1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3,4,5,6,7,8,9,10].all(b, a + b > 0 && self.data.key != ''))";

fn selected() -> Want {
    let reads = ReadSet::dotted(["metadata.deletionTimestamp", "metadata.generation", "data"]);
    let selector = Selector::labels(&[("app".to_owned(), "web".to_owned())].into());
    let scope = Scope::Labels { namespace: Some(NAMESPACE.to_owned()), selector };
    Want::new(Question::Objects { via: via(), kind: config_map(), scope, reads })
}

/// A requirement on all ConfigMaps that a selector finds.
fn all(id: &str, cel: &str) -> Step {
    let cel = Expression::compile("cel", cel, &["self"]).unwrap();
    let test = Test {
        state: Some(Wanted::Exists),
        cel: Some(Arc::new(cel)),
        expect: Some(ExpectedCount::All),
        ..Test::default()
    };
    let requirement =
        Requirement { keys: vec![id.to_owned()], ..Requirement::new("configmaps", selected(), test) };
    Step::new(
        StepId::new(id),
        format!("steps[{id}]"),
        format!("1:{id}"),
        StepKind::Require(Box::new(requirement)),
    )
}

fn item(number: usize, version: u64, value: &str) -> Arc<Projection> {
    let content = json!({"metadata": {"name": format!("web-{number:05}")}, "data": {"key": value}});
    projection(&format!("web-{number:05}"), &format!("uid-{number}"), version, content)
}

fn items(count: usize) -> Vec<Arc<Projection>> {
    (0..count).map(|number| item(number, 1, "value")).collect()
}

fn seeing(items: Vec<Arc<Projection>>) -> World {
    let observed = Observed { items, as_of: 1, live: true, looked: None };
    [(selected(), Seen::Objects(Arc::new(observed)))].into_iter().collect()
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_000 + second)
}

fn fresh() -> Memory {
    Memory::fresh(UID, 1, at(0))
}

fn one(plan: &Plan, memory: Memory, world: &World, second: i64) -> StepDecision {
    let decision = step(memory, Goal::Converge(plan), world, &[], None, at(second));
    let most = limits::TURN_STEPS + 2 * limits::TURN_SHARE;
    assert!(decision.evaluated <= most, "one step took {} steps", decision.evaluated);
    decision
}

/// Steps until nothing is left over: the last decision, and what all of them took.
fn finish(plan: &Plan, memory: Memory, world: &World) -> (StepDecision, usize, u64) {
    let (mut memory, mut steps, mut evaluated) = (memory, 0, 0);
    loop {
        let decision = one(plan, memory, world, 1);
        steps += 1;
        evaluated += decision.evaluated;
        if !decision.unfinished {
            return (decision, steps, evaluated);
        }
        assert!(decision.effects.is_empty(), "nothing starts on half a verdict");
        let blocked = &decision.report.blocked[0];
        assert_eq!((decision.report.phase, &*blocked.reason), (Phase::Waiting, "Evaluating"), "{blocked:?}");
        assert!(steps < 1_000, "it comes to an end");
        memory = decision.memory;
    }
}

#[test]
fn ten_thousand_objects_are_judged_in_several_bounded_steps_and_once_each() {
    let plan = plan(1, vec![all("many", DEAR), apply("a").after(&["many"])]);
    let (decision, steps, evaluated) = finish(&plan, fresh(), &seeing(items(limits::SELECTED)));
    assert!(steps > 3, "{steps} steps, {evaluated}");
    assert_eq!(decision.effects.len(), 1, "all are as they should be: {:?}", decision.report);
    assert_eq!(decision.memory.verdicts.len(), limits::SELECTED);

    let again = one(&plan, decision.memory, &seeing(items(limits::SELECTED)), 2);
    assert_eq!(again.evaluated, 0, "nothing has changed");

    // One changes, one goes: one is evaluated, and the other is forgotten.
    let mut changed = items(limits::SELECTED);
    changed[7_000] = item(7_000, 2, "other");
    changed.pop();
    let decision = one(&plan, again.memory, &seeing(changed), 3);
    assert!(!decision.unfinished && decision.evaluated > 0);
    assert!(
        decision.evaluated < 2 * evaluated / limits::SELECTED as u64,
        "{} of {evaluated}",
        decision.evaluated
    );
    assert_eq!(decision.memory.verdicts.len(), limits::SELECTED - 1);
}

#[test]
fn the_verdict_of_several_steps_is_that_of_one() {
    for (wrong, expect, message) in [
        (
            Some(9_999),
            ExpectedCount::All,
            "configmaps: 9999 of 10000 matching objects are Exists, all wanted; web-09999: ",
        ),
        (Some(9_999), ExpectedCount::AtLeast(9_999), "configmaps: 9999 of 10000"),
        (None, ExpectedCount::Exactly(10_000), "configmaps: 10000 of 10000"),
    ] {
        let plan = plan(1, vec![all("many", DEAR).asking(|asked| asked.test.expect = Some(expect))]);
        let mut objects = items(10_000);
        if let Some(wrong) = wrong {
            objects[wrong] = item(wrong, 1, "");
        }
        let (decision, ..) = finish(&plan, fresh(), &seeing(objects));
        let found = &decision.report.steps[0];
        assert!(found.message.starts_with(message), "{}", found.message);
        assert_eq!(
            decision.report.phase == Phase::Completed,
            wrong.is_none() || expect != ExpectedCount::All
        );
    }
}

#[test]
fn a_count_that_cannot_be_reached_or_missed_any_more_is_decided_without_the_rest() {
    let steps = vec![
        all("some", DEAR).asking(|asked| asked.test.expect = Some(ExpectedCount::AtLeast(3))),
        apply("a").after(&["some"]),
    ];
    let enough = plan(1, steps);
    let decision = one(&enough, fresh(), &seeing(items(10_000)), 1);
    assert!(decision.unfinished, "there is more to evaluate, for what is shown");
    assert_eq!(decision.effects.len(), 1, "and it does not matter");

    let everyone = plan(1, vec![all("all", DEAR)]);
    let mut objects = items(10_000);
    objects[5] = item(5, 1, "");
    let decision = one(&everyone, fresh(), &seeing(objects), 1);
    assert_eq!(&*decision.report.blocked[0].reason, "CountNotMet");
}

#[test]
fn no_timeout_is_declared_on_what_was_not_evaluated() {
    let mut many = all("many", DEAR);
    many.timeout = Some(std::time::Duration::from_secs(5));
    let plan = plan(1, vec![many, apply("a").after(&["many"])]);
    let first = one(&plan, fresh(), &seeing(items(10_000)), 0);
    let late = one(&plan, first.memory, &seeing(items(10_000)), 60);
    assert!(late.unfinished);
    assert_eq!(late.report.phase, Phase::Waiting, "{:?}", late.report);
}

#[test]
fn conditions_and_profiles_have_the_same_budget() {
    let value = json!((0..200).collect::<Vec<u32>>());
    let condition =
        FieldCondition::compile("conditions[0]", ".data.list[*]", Some("in"), Some(&value)).unwrap();
    let content = json!({"metadata": {"name": "x"}, "data": {"list": vec![1; 200]}});
    let objects: Vec<Arc<Projection>> = (0..2_000)
        .map(|number| projection(&format!("web-{number:05}"), &format!("uid-{number}"), 1, content.clone()))
        .collect();
    let conditions = vec![Arc::new(condition)];
    let test = Test { conditions: conditions.clone(), expect: Some(ExpectedCount::All), ..Test::default() };
    let profile = Profile { ready_when: Clauses { cel: None, conditions }, ..Profile::default() };
    let taught = Test {
        state: Some(Wanted::Ready),
        profile: Some(Arc::new(profile)),
        expect: Some(ExpectedCount::All),
        ..Test::default()
    };
    for test in [test, taught] {
        let plan = plan(1, vec![all("many", "true").asking(|asked| asked.test = test)]);
        let (decision, steps, _) = finish(&plan, fresh(), &seeing(objects.clone()));
        assert!(steps > 3, "{steps}: {:?}", decision.report);
        let again = one(&plan, decision.memory, &seeing(objects.clone()), 2);
        assert_eq!((again.evaluated, again.unfinished), (0, false));
    }
}

#[test]
fn many_dear_expressions_on_single_objects_are_evaluated_once_each_and_cheap_ones_leave_nothing_behind() {
    let names: Vec<String> = (0..256).map(|number| format!("r{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let asking = |cel: &str| {
        let cel = Arc::new(Expression::compile("cel", cel, &["self"]).unwrap());
        let step = |name: &&str| require(name).asking(|asked| asked.test.cel = Some(Arc::clone(&cel)));
        plan(1, names.iter().map(step).collect())
    };
    let dear = DEAR.replace("10]", "10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25]");
    let plan = asking(&dear);
    let (decision, steps, _) = finish(&plan, fresh(), &world(&names, &[]));
    assert!(steps > 1, "{steps}");
    assert_eq!(decision.report.phase, Phase::Completed);
    assert_eq!(one(&plan, decision.memory, &world(&names, &[]), 2).evaluated, 0);

    let few: Vec<&str> = names.iter().copied().take(16).collect();
    let cel = Arc::new(Expression::compile("cel", "self.data.key == 'value'", &["self"]).unwrap());
    let cheap = crate::build::plan(
        1,
        few.iter()
            .map(|name| require(name).asking(|asked| asked.test.cel = Some(Arc::clone(&cel))))
            .collect(),
    );
    let decision = one(&cheap, fresh(), &world(&few, &[]), 1);
    assert!(decision.memory.verdicts.is_empty());
}

#[test]
fn a_single_evaluation_beyond_the_whole_budget_is_told_as_such() {
    let fields = (0..200).map(|number| (format!("k{number}"), json!("x")));
    let data = Value::Object(fields.collect());
    let cel = format!("self.data.all(a, self.data.all(b, {}true))", "a + b != '' && ".repeat(60));
    let cel = Arc::new(Expression::compile("cel", &cel, &["self"]).unwrap());
    let plan = plan(1, vec![require("r").asking(|asked| asked.test.cel = Some(cel))]);
    let mut world = World::new();
    world.insert(want("r"), observed(Some(projection("r", "uid", 1, json!({"data": data}))), 1));
    let decision = one(&plan, fresh(), &world, 1);
    let blocked = &decision.report.blocked[0];
    assert_eq!(&*blocked.reason, "OverBudget", "{blocked:?}");
    assert!(blocked.message.contains("more than 200000 steps"), "{}", blocked.message);
    assert!(!decision.unfinished, "waiting does not help");
}

#[test]
fn guards_over_many_objects_are_decided_once_and_within_the_budget() {
    let guard = |index: usize| {
        let text = format!("dependencies.many.items.all(item, item.Object.data.key != '' && {index} >= 0)");
        let expression = Expression::compile("when", &text, &["dependencies", "values"]).unwrap();
        ActionGuard { subject: GuardSubject::Expression(Arc::new(expression)), negate: false }
    };
    let mut steps = vec![all("many", "true")];
    for index in 0..50 {
        let mut action = apply(&format!("a{index}")).after(&["many"]);
        action.when = Some(guard(index));
        steps.push(action);
    }
    let plan = plan(1, steps);
    let objects = items(1_000);
    let (mut memory, mut started, mut rounds) = (fresh(), 0, 0);
    loop {
        let decision = one(&plan, memory, &seeing(objects.clone()), 1);
        started += decision.effects.len();
        rounds += 1;
        memory = decision.memory;
        if !decision.unfinished {
            break;
        }
        assert!(rounds < 1_000);
    }
    assert!(rounds > 3, "{rounds}");
    assert_eq!(started, 50);
}

#[test]
fn templates_over_many_objects_are_rendered_within_the_budget_and_those_that_miss_something_only_once() {
    let text = "{{ range .Dependencies.many.Items }}{{ .Object.data.key }}{{ end }}";
    let missing = "{{ range .Dependencies.many.Items }}{{ .Object.data.nothing }}{{ end }}";
    let mut steps = vec![all("many", "true")];
    for index in 0..60 {
        let text = if index % 2 == 0 { text } else { missing };
        let value = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("a{index}")}, "data": {"all": text}});
        let action = apply_value(&format!("a{index}"), value).after(&["many"]);
        steps.push(action.with(|action| action.reads = None));
    }
    let plan = plan(1, steps);
    let objects = items(1_000);
    let (mut memory, mut started, mut rounds) = (fresh(), 0, 0);
    loop {
        let decision = one(&plan, memory, &seeing(objects.clone()), 1);
        started += decision.effects.len();
        rounds += 1;
        memory = decision.memory;
        if !decision.unfinished {
            break;
        }
        assert!(rounds < 1_000);
    }
    assert!(rounds > 2, "{rounds}");
    assert_eq!(started, 30, "the others wait for what they read");
    let again = one(&plan, memory, &seeing(objects), 2);
    assert_eq!((again.evaluated, again.effects.len()), (0, 0));
}

#[test]
fn what_the_selectors_of_one_object_find_is_bounded_in_all() {
    let steps = (0..6).map(|number| all(&format!("many{number}"), "true")).collect();
    let plan = plan(1, steps);
    let decision = one(&plan, fresh(), &seeing(items(10_000)), 1);
    let reasons: Vec<&str> = decision.report.steps.iter().map(|step| &*step.reason).collect();
    assert_eq!(reasons.iter().filter(|reason| **reason == "OverBudget").count(), 1, "{reasons:?}");
    assert!(
        decision.report.blocked[0].message.contains("may find 50000 in all"),
        "{:?}",
        decision.report.blocked
    );
}
