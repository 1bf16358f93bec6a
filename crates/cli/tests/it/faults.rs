//! The operator and the API server die at bad moments: the end is the same as if they had not.

use crate::{
    operator::Operator,
    world::{self, World},
};
use linchpin_local::{Cluster, Component, Options};
use linchpin_testkit::{Dice, Scenario, audit::Audit, entry};
use nix::sys::signal::Signal;
use std::{thread, time::Duration};

const ALONE: &[&str] = &["--leader-elect=false"];

const FIVE: &str = "
    deletionPolicy: Delete
    dependencies: [{name: gate, resource: configmap/gate}]
    actions:
    - {name: a, priority: 1, type: create, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {value: a}}}
    - {name: b, priority: 2, type: apply, apply: {apiVersion: v1, kind: ConfigMap, metadata: {name: b}, data: {now: '{{ .Now }}'}}}
    - {name: pause, priority: 3, type: wait, wait: 100ms}
    - {name: c, priority: 4, type: patch, patch: {target: {kind: ConfigMap, name: a}, patchType: merge, patch: '{\"data\": {\"patched\": \"yes\"}}'}}
    - {name: d, priority: 5, type: delete, delete: {target: {kind: ConfigMap, name: old}}}
    - {name: e, priority: 6, type: create, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: e}}}
";

/// Everything was done, and created once.
fn judge(scenario: &Scenario) {
    let done = scenario.completed("rd");
    for action in ["a", "b", "c", "d", "e"] {
        assert_eq!(entry(&done, "actions", action)["state"], "Completed", "{:#}", done["status"]);
    }
    assert_eq!(scenario.data("a", "value").unwrap(), "a");
    assert_eq!(scenario.data("a", "patched").unwrap(), "yes");
    assert!(scenario.data("b", "now").is_some() && scenario.has("e") && !scenario.has("old"));
    let writes = scenario.audit.user_writes(&scenario.namespace);
    for name in ["a", "e"] {
        let created = writes.iter().filter(|event| event.verb == "create" && event.name == name).count();
        assert_eq!(created, 1, "{writes:#?}");
    }
    let deleted = writes.iter().filter(|event| event.verb == "delete").count();
    assert_eq!(deleted, 1, "{writes:#?}");
}

const ORDER: &[&str] = &["gate", "a", "b", "e"];

fn replace(operator: &mut Operator, cluster: &Cluster) {
    operator.signal(Signal::SIGKILL);
    *operator = world::operator(cluster, ALONE);
}

#[test]
fn killed_at_random_points_and_with_the_api_server_gone_it_comes_to_the_same_end() {
    let options = Options::default().without(Component::Scheduler);
    let World { cluster, api, operator: mut current } = World::start(&options, ALONE);
    let begin = |name: &str| {
        let audit = Audit::from_now(&cluster.audit_log());
        let scenario = Scenario::begin(&api, audit, name);
        scenario.config_map("old", "");
        scenario.resource_dependency("rd", FIVE);
        scenario
    };

    for seed in 0..8_usize {
        let mut dice = Dice::new(u64::try_from(seed).unwrap());
        let scenario = begin(&format!("killed-{seed}"));
        thread::sleep(Duration::from_millis(u64::try_from(dice.below(100)).unwrap()));
        scenario.config_map("gate", "");
        thread::sleep(Duration::from_millis(u64::try_from(dice.below(250)).unwrap()));
        replace(&mut current, &cluster);
        judge(&scenario);
        scenario.in_order(ORDER);
        if seed % 2 == 0 {
            scenario.delete("ResourceDependency", "rd");
            thread::sleep(Duration::from_millis(u64::try_from(dice.below(40)).unwrap()));
            replace(&mut current, &cluster);
            scenario.gone("ResourceDependency", "rd");
            assert!(!scenario.has("a") && !scenario.has("b") && !scenario.has("e"));
        }
    }

    for (round, lost) in [Component::ApiServer, Component::Etcd].into_iter().enumerate() {
        let waiting = begin(&format!("outage-waiting-{round}"));
        waiting.blocked("rd", "NotFound");
        let midway = begin(&format!("outage-midway-{round}"));
        midway.config_map("gate", "");
        midway.appears("a");
        cluster.kill(lost).unwrap();
        thread::sleep(Duration::from_secs(1));
        cluster.start_component(lost).unwrap();
        // A server that has just begun refuses what it does not know to be allowed, and a refusal is tried again later.
        midway.annotate("ResourceDependency", "rd", "linchpin.dev/requested-at", "now");
        judge(&midway);
        let still = waiting.blocked("rd", "NotFound");
        assert_eq!(still["status"]["phase"], "Waiting");
        waiting.config_map("gate", "");
        judge(&waiting);
        waiting.in_order(ORDER);
    }
}
