//! Waiting costs nothing: no request but the watches that are open already.

use crate::{
    bare,
    operator::Operator,
    seconds,
    world::{self, World, scenario},
};
use linchpin_testkit::audit::Audit;
use serde_json::json;
use std::thread;

#[test]
fn twenty_that_wait_make_no_request() {
    let scenario = scenario("still");
    for number in 0..20 {
        let dependency = if number % 2 == 0 {
            format!("configmap/shared-{}", number % 3)
        } else {
            format!("secret/own-{number}")
        };
        scenario.resource_dependency(
            &format!("rd-{number}"),
            &format!(
                "{{dependencies: [{{resource: {dependency}}}, {{resource: nothing.not-served.example.com/x, optional: true}}], \
                 actions: [{{type: create, resource: {{apiVersion: v1, kind: ConfigMap, metadata: {{name: made-{number}}}}}}}]}}"
            ),
        );
    }
    for number in 0..20 {
        scenario.blocked(&format!("rd-{number}"), "NotFound");
    }
    // Statuses and events that were under way may still be written, and a right that the API server did not know of when it
    // was asked for first is asked for once more. Whoever asks now and then asks in the last of these times too.
    let listen = || {
        thread::sleep(seconds(3));
        let audit = Audit::from_now(&crate::world::world().cluster.audit_log());
        thread::sleep(seconds(10));
        audit
    };
    let mut quiet = listen();
    for _ in 0..2 {
        if !quiet.requests_for("still").is_empty() {
            quiet = listen();
        }
    }
    assert_eq!(quiet.requests_for("still"), []);
    let watches = quiet.events().into_iter().filter(|event| {
        event.is_by_operator()
            && event.verb == "watch"
            && event.stage == "ResponseStarted"
            && event.acting_as.as_deref() == Some(scenario.actor().as_str())
    });
    assert_eq!(watches.collect::<Vec<_>>(), [], "watches are not begun again");
    // And they are awake.
    scenario.config_map("shared-0", "");
    for number in [0, 6, 12, 18] {
        scenario.completed(&format!("rd-{number}"));
    }
}

/// How often an operator has decided anything.
fn turns(operator: &Operator) -> u64 {
    let metrics = operator.metrics();
    let count = metrics.lines().find_map(|line| line.strip_prefix("linchpin_turn_seconds_count "));
    count.expect("a count of turns").parse().unwrap()
}

#[test]
fn bundles_that_wait_or_cannot_go_are_not_looked_at_again_and_again() {
    const FLAGS: &[&str] = &["--leader-elect=false"];
    let world = World::start(&bare(), FLAGS);
    let scenario = world.scenario("turns");
    let bundle = |name: &str, more: &str| {
        let map = format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}-map}}}}");
        let spec = format!("{{{more} groups: [{{name: g, components: [{{name: c, template: {map}}}]}}]}}");
        scenario.app_bundle(name, &spec);
    };
    bundle("waits", "requires: [{name: gate, resource: configmap/gate}],");
    bundle("goes", "");
    bundle("stays", "");
    scenario.deployed("goes");
    scenario.deployed("stays");
    scenario.merge("ConfigMap", "goes-map", &json!({"metadata": {"finalizers": ["example.com/hold"]}}));
    scenario.delete("AppBundle", "goes");
    scenario.phase("AppBundle", "goes", "Deleting");
    // One that has just begun knows nothing of what was written down.
    let World { cluster, operator: before, .. } = world;
    drop(before);
    let operator = world::operator(&cluster, FLAGS);
    thread::sleep(seconds(4));
    let before = turns(&operator);
    thread::sleep(seconds(5));
    let taken = turns(&operator) - before;
    assert!(taken < 50, "{taken} turns in five seconds in which nothing happened");
    scenario.merge("ConfigMap", "goes-map", &json!({"metadata": {"finalizers": null}}));
    scenario.gone("AppBundle", "goes");
    // Judged from the cluster's audit log, so before the cluster goes.
    drop(scenario);
}
