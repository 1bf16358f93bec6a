//! The held pods of a namespace: who holds them, and who is released.

use std::sync::Arc;

use linchpin_doors::{
    DoorKind, VisibleCauses,
    boot_dependency::HeldPods,
    subject::{SubjectInput, Ties},
};
use linchpin_engine::contract::{Verb, Want, World};
use linchpin_words::Timestamp;
use serde_json::{Value, json};

use super::workloads::{NOW, Things, answer, settings};

/// The pods that are released, as soon as nothing more is asked.
fn released(things: &Things) -> Vec<String> {
    let namespace =
        json!({"metadata": {"name": "shop", "uid": "n", "labels": {"linchpin.dev/boot": "enabled"}}});
    let account: Arc<str> = Arc::from("default");
    let held = HeldPods(Arc::new(settings()));
    let mut subject = held.subject(&namespace.to_string(), &account).expect("a subject");
    let causes = VisibleCauses::new();
    let mut world = World::new();
    let mut released = Vec::new();
    for _ in 0..12 {
        let registry = linchpin_doors::registry();
        let look = SubjectInput {
            registry: &registry,
            world: &world,
            outcomes: &[],
            ties: Ties { cycle: None, causes: &causes, broken: &[], exempt: &[], makers: &[], claims: &[] },
            kept: None,
            idle: true,
            now: Timestamp::from_second(NOW),
        };
        let decision = subject.decide(&look).expect("a decision");
        for effect in &decision.effects {
            if let Verb::Patch { target, .. } = &effect.verb {
                released.push(target.name.clone());
            }
        }
        let new: Vec<Want> = decision.wants.into_iter().filter(|want| world.get(want).is_none()).collect();
        if new.is_empty() {
            return released;
        }
        for want in new {
            let seen = answer(things, "", &want);
            world.insert(want, seen);
        }
    }
    panic!("it goes on asking");
}

fn rule(app: &str, service: &str) -> Value {
    json!({"metadata": {}, "spec": {
        "selector": {"matchLabels": {"app": app}}, "strategy": "SchedulingGate",
        "dependsOn": [{"service": service, "port": 5432}],
    }})
}

/// A pod that was held for `there` when it was created, whose database is there.
fn things() -> Things {
    let pod = json!({
        "metadata": {
            "creationTimestamp": "2027-01-15T07:59:59Z", "labels": {"app": "web", "linchpin.dev/boot-gate": "held"},
            "annotations": {"linchpin.dev/boot": "there"},
        },
        "spec": {"schedulingGates": [{"name": "linchpin.dev/boot"}]},
    });
    let endpoint = json!({"addresses": ["10.0.0.1"], "conditions": {"ready": true}});
    vec![
        ("Pod", "web-0", pod),
        ("BootDependency", "there", rule("web", "db")),
        ("Service", "db", json!({"spec": {"selector": {"app": "db"}, "ports": [{"port": 5432}]}})),
        ("EndpointSlice", "db", json!({"ports": [{"name": "", "port": 5432}], "endpoints": [endpoint]})),
    ]
}

#[test]
fn a_pod_that_waits_for_an_object_of_ours_is_held_until_that_is_ready() {
    let mut things = things();
    things[1].2["spec"]["dependsOn"] = json!([{"resource": "appbundle.app.example.com/shop"}]);
    let bundle = |ready: &str| {
        let conditions = json!([{"type": "Ready", "status": ready, "reason": "Any"}]);
        ("AppBundle", "shop", json!({"status": {"observedGeneration": 1, "conditions": conditions}}))
    };
    things.push(bundle("False"));
    assert_eq!(released(&things), Vec::<String>::new(), "it exists and is not ready");
    things.pop();
    things.push(bundle("True"));
    assert_eq!(released(&things), ["web-0"]);
}

#[test]
fn a_pod_is_released_when_all_that_select_it_hold_whoever_was_there_first() {
    let mut things = things();
    assert_eq!(released(&things), ["web-0"]);
    things.push(("BootDependency", "later", rule("web", "missing")));
    assert_eq!(released(&things), Vec::<String>::new(), "the later one selects it too");
    things.pop();
    things.push(("BootDependency", "other", rule("api", "missing")));
    assert_eq!(released(&things), ["web-0"], "one that does not select it holds nobody");
    // What was changed to select others, and what is gone, holds nobody.
    things[1].2["spec"]["dependsOn"][0]["service"] = json!("missing");
    assert_eq!(released(&things), Vec::<String>::new());
    things[1].2["spec"]["selector"]["matchLabels"]["app"] = json!("api");
    assert_eq!(released(&things), ["web-0"]);
    things.remove(1);
    assert_eq!(released(&things), ["web-0"]);
}
