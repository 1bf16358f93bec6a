//! Conditions on actions.

use linchpin_doors::ResourceDependencyDoor;
use linchpin_engine::{journal::StepState, step::Phase};
use serde_json::{Value, json};

use crate::{
    stage::Stage,
    things::{config_map, deployment},
};

fn stage(condition: &str) -> Stage<ResourceDependencyDoor> {
    Stage::new(&format!(
        "{{apiVersion: tools.kubestellar.io/v1, kind: ResourceDependency, metadata: {{name: x}}, spec: {{\
         values: {{on: true}}, dependencies: [{{name: my-db, resource: deployment/db, optional: true, timeout: 1m}}], \
         actions: [{{name: a, type: create, condition: {condition}, \
         resource: {{apiVersion: v1, kind: ConfigMap, metadata: {{name: c}}}}}}]}}}}"
    ))
}

fn outcome(condition: &str, available: Option<i64>) -> StepState {
    let mut stage = stage(condition);
    if let Some(available) = available {
        stage.put(deployment("own", "db", available));
    }
    stage.settle();
    stage.memory.journal.steps[&"a".into()].state
}

#[test]
fn a_state_decides_when_it_has_settled() {
    use StepState::{Done, Skipped, Waiting};
    for (condition, absent, starting, ready) in [
        ("{type: dependency, dependency: my-db, state: NotFound}", Done, Skipped, Skipped),
        ("{dependency: my-db, state: Exists}", Skipped, Done, Done),
        ("{dependency: my-db, state: Ready}", Skipped, Waiting, Done),
        ("{dependency: my-db, state: Ready, negate: true}", Done, Waiting, Skipped),
        ("{dependency: my-db}", Skipped, Waiting, Done),
        ("{dependency: deployment/db, state: Failed}", Skipped, Waiting, Skipped),
        ("{type: cel, expression: \"dependencies['my-db'].state == 'Ready'\"}", Skipped, Waiting, Done),
        ("{expression: \"dependencies.my_db.state == 'NotFound' && values.on\"}", Done, Skipped, Skipped),
        ("{expression: \"dependencies.my_db.state != 'Ready'\"}", Done, Waiting, Skipped),
        ("{expression: \"dependencies.my_db.message == ''\"}", Skipped, Waiting, Skipped),
        ("{expression: \"dependencies.my_db.spec.replicas == 2\"}", Waiting, Skipped, Skipped),
        ("{expression: \"dependencies.deployment_db.spec.replicas == 1\"}", Waiting, Done, Done),
    ] {
        assert_eq!(outcome(condition, None), absent, "{condition}, absent");
        assert_eq!(outcome(condition, Some(0)), starting, "{condition}, starting");
        assert_eq!(outcome(condition, Some(1)), ready, "{condition}, ready");
    }
}

#[test]
fn a_guard_waits_no_longer_than_its_dependency_may_take() {
    let mut stage = stage("{dependency: my-db, state: Ready}");
    stage.put(deployment("own", "db", 0)).settle().pass(59).settle();
    assert_eq!(stage.report().phase, Phase::Running);
    stage.pass(2).settle();
    assert_eq!(stage.report().phase, Phase::Failed);
    assert_eq!(stage.report().steps[1].reason, "GuardTimedOut");
    stage.put(deployment("own", "db", 1)).settle();
    assert_eq!(stage.done(), ["create ConfigMap own/c"], "it recovers like any failure");
}

/// Everything that can be found of a Deployment, by name.
fn worlds() -> Vec<(&'static str, Option<Value>)> {
    let with = |change: &dyn Fn(&mut Value)| {
        let mut one = deployment("own", "db", 0);
        one["metadata"]["labels"] = json!({"app": "db"});
        change(&mut one);
        Some(one)
    };
    let ready = with(&|one| one["status"] = deployment("own", "db", 1)["status"].clone());
    vec![
        ("absent", None),
        ("ready", ready.clone()),
        ("starting", with(&|_| {})),
        ("stale", with(&|one| one["metadata"]["generation"] = json!(2))),
        (
            "failed",
            with(&|one| {
                one["status"]["conditions"] =
                    json!([{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}]);
            }),
        ),
        ("terminating", with(&|one| one["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z"))),
        ("hidden", ready.clone()),
        ("unsynced", ready),
    ]
}

#[test]
fn both_forms_of_a_guard_decide_at_the_same_moments() {
    let named = "resource: deployment/db";
    let selected = "resource: deployment, selector: {matchLabels: {app: db}}, expect: {all: true}";
    for (dependency, words) in
        [(named, &["Ready", "Completed", "Failed", "NotFound"][..]), (selected, &["Ready", "NotFound"][..])]
    {
        for (word, negate) in words.iter().flat_map(|word| [(word, false), (word, true)]) {
            let operator = if negate { "!=" } else { "==" };
            let forms = [
                format!("{{dependency: db, state: {word}, negate: {negate}}}"),
                format!("{{expression: \"dependencies.db.state == '{word}'\", negate: {negate}}}"),
                format!("{{expression: \"'{word}' {operator} dependencies['db'].state\"}}"),
                format!("{{expression: \"dependencies.?db.?state.orValue('') {operator} '{word}'\"}}"),
            ];
            for (world, object) in worlds() {
                let outcomes = forms.each_ref().map(|form| {
                    let mut stage = Stage::<ResourceDependencyDoor>::new(&format!(
                        "{{apiVersion: tools.kubestellar.io/v1, kind: ResourceDependency, metadata: {{name: x}}, \
                         spec: {{dependencies: [{{name: db, {dependency}, optional: true}}], \
                         actions: [{{name: a, type: create, condition: {form}, \
                         resource: {{apiVersion: v1, kind: ConfigMap, metadata: {{name: c}}}}}}]}}}}"
                    ));
                    match world {
                        "hidden" => stage.hidden.push("db".to_owned()),
                        "unsynced" => stage.unsynced.push("db".to_owned()),
                        _ => {}
                    }
                    stage.put(object.clone().unwrap_or_else(|| config_map("own", "other", &json!({}))));
                    stage.settle();
                    stage.memory.journal.steps[&"a".into()].state
                });
                let [state, by_negation, by_comparison, by_option] = outcomes;
                let place = format!("{dependency}, {}, {world}", forms[0]);
                assert_eq!(by_negation, state, "{place}");
                assert_eq!(by_comparison, state, "{place}");
                // What a function makes of a state that is not known is not known either, whatever it is compared to.
                assert!(by_option == state || by_option == StepState::Waiting, "{place}");
            }
        }
    }
}

#[test]
fn no_guard_runs_out_of_time_before_it_is_seen_what_it_asks_about() {
    for condition in
        ["{dependency: my-db, state: Ready}", "{expression: \"dependencies['my-db'].state == 'Ready'\"}"]
    {
        let mut stage = stage(condition);
        stage.put(deployment("own", "db", 0)).settle();
        stage.unsynced.push("db".to_owned());
        stage.pass(120).settle();
        assert_ne!(stage.report().steps[1].reason, "GuardTimedOut", "{condition}, not looked at");
        (stage.cut_off, stage.unsynced) = (true, Vec::new());
        stage.settle().pass(120).settle();
        assert_eq!(stage.report().steps[1].reason, "GuardUndecided", "{condition}, cut off");
        stage.cut_off = false;
        stage.settle();
        assert_eq!(stage.report().steps[1].reason, "GuardTimedOut", "{condition}");
        stage.put(deployment("own", "db", 1)).settle();
        assert_eq!(stage.done(), ["create ConfigMap own/c"], "{condition}, it recovers");
    }
}

#[test]
fn what_is_forbidden_uses_up_the_time_of_a_guard() {
    for condition in
        ["{dependency: my-db, state: Ready}", "{expression: \"dependencies['my-db'].state == 'Ready'\"}"]
    {
        let mut stage = stage(condition);
        stage.hidden.push("db".to_owned());
        stage.settle().pass(61).settle();
        assert_eq!(stage.report().steps[1].reason, "GuardTimedOut", "{condition}");
    }
}

#[test]
fn a_guard_sees_what_was_written_before_its_turn() {
    let mut stage = Stage::<ResourceDependencyDoor>::new(
        "{apiVersion: tools.kubestellar.io/v1, kind: ResourceDependency, metadata: {name: x}, spec: {\
         dependencies: [{name: flag, resource: configmap/flag, optional: true}], actions: [\
         {name: make, type: create, condition: {dependency: flag, state: NotFound}, \
         resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: flag}}}, \
         {name: then, priority: 1, type: create, condition: {dependency: flag, state: Exists}, \
         resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: then}}}]}}",
    );
    stage.settle();
    assert_eq!(stage.done(), ["create ConfigMap own/flag", "create ConfigMap own/then"]);
    let mut again =
        Stage::<ResourceDependencyDoor>::new(&serde_json::to_string(&stage.object).expect("JSON"));
    again.put(config_map("own", "flag", &json!({}))).settle();
    assert_eq!(again.done(), ["create ConfigMap own/then"]);
}

#[test]
fn what_cannot_be_seen_leaves_an_expression_undecided_as_it_does_a_state() {
    use StepState::{Done, Skipped, Waiting};
    for (condition, state) in [
        ("{dependency: my-db, state: Ready, negate: true}", Waiting),
        ("{expression: \"dependencies['my-db'].state != 'Ready'\"}", Waiting),
        ("{expression: \"dependencies['my-db'].state == 'Ready'\", negate: true}", Waiting),
        ("{expression: \"!has(dependencies.my_db.spec)\"}", Waiting),
        ("{expression: \"!values.on && dependencies.my_db.state == 'Ready'\"}", Skipped),
        ("{expression: \"dependencies.my_db.state == 'Ready' || values.on\"}", Done),
    ] {
        let mut stage = stage(condition);
        stage.put(deployment("own", "db", 1));
        stage.hidden.push("db".to_owned());
        stage.settle();
        assert_eq!(stage.memory.journal.steps[&"a".into()].state, state, "{condition}");
        if state == Waiting && condition.contains("expression") {
            let message = &stage.report().steps[1].message;
            assert!(message.contains("deployment/db: not allowed to get it"), "{message}");
        }
        stage.hidden.clear();
        stage.settle();
        assert_ne!(stage.memory.journal.steps[&"a".into()].state, Waiting, "{condition}, once it is seen");
    }
}

#[test]
fn an_expression_that_does_not_fit_what_it_reads_says_so() {
    let mut stage = stage(
        "{expression: \"dependencies.my_db.spec.replicas == 1 && dependencies.my_db.spec.replicas.x\"}",
    );
    stage.put(deployment("own", "db", 1)).settle();
    assert!(stage.done().is_empty());
    let told = &stage.report().steps[1];
    assert_eq!(told.reason.to_string(), "GuardUndecided");
    assert!(told.message.contains("spec.actions[0].condition.expression: at 1:"), "{}", told.message);
    assert!(told.message.contains("selecting a field does not apply to int"), "{}", told.message);
}
