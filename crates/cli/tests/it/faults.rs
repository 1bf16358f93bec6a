//! The operator and the API server die at bad moments: the end is the same as if they had not.

use crate::{
    bare, eventually,
    operator::Operator,
    seconds,
    world::{self, World},
};
use linchpin_local::{Cluster, ClusterOptions, Component};
use linchpin_testkit::{Api, Dice, OPERATOR, Scenario, audit::Audit, entry, grant_operator};
use nix::sys::signal::Signal;
use std::{env, thread, time::Duration};

const ALONE: &[&str] = &["--leader-elect=false"];

/// More writes than are under way at a time.
const CROWD: usize = 250;

/// As many actions, all at the same time.
fn crowd() -> String {
    let action = |number: usize| {
        format!(
            "{{type: create, resource: {{apiVersion: v1, kind: ConfigMap, metadata: {{name: crowd-{number}}}}}}}"
        )
    };
    let actions: Vec<String> = (0..CROWD).map(action).collect();
    format!("{{dependencies: [{{name: gate, resource: configmap/gate}}], actions: [{}]}}", actions.join(", "))
}

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

/// Everything was done, created once, and in order.
fn judge(scenario: &Scenario) {
    let done = scenario.completed("rd");
    for action in ["a", "b", "c", "d", "e"] {
        assert_eq!(entry(&done, "actions", action)["state"], "Completed", "{:#}", done["status"]);
    }
    assert_eq!(scenario.data("a", "value").unwrap(), "a");
    assert_eq!(scenario.data("a", "patched").unwrap(), "yes");
    assert!(scenario.data("b", "now").is_some() && scenario.has("e") && !scenario.has("old"));
    let writes = scenario.audit.user_writes(&scenario.namespace);
    let created = |name: &str| writes.iter().filter(|event| event.code == 201 && event.name == name).count();
    for name in ["a", "b", "e"] {
        assert!(created(name) <= 1, "{writes:#?}");
    }
    let deleted = writes.iter().filter(|event| event.verb == "delete").count();
    assert_eq!(deleted, 1, "{writes:#?}");
    // The log does not name what was asked for by somebody who was gone before the answer.
    let named: Vec<&str> = ["a", "b", "e"].into_iter().filter(|name| created(name) == 1).collect();
    scenario.in_order(&[&["gate"], named.as_slice()].concat());
}

/// Somebody makes again what an action deleted: nobody ever ordered to delete that one.
fn is_left_alone(scenario: &Scenario, again: impl FnOnce()) {
    scenario.config_map("old", "again");
    again();
    scenario.passes("meanwhile");
    assert_eq!(scenario.data("old", "value").as_deref(), Some("again"));
    let writes = scenario.audit.user_writes(&scenario.namespace);
    let deleted = writes.iter().filter(|event| event.verb == "delete" && event.name == "old").count();
    assert_eq!(deleted, 1, "{writes:#?}");
}

/// A number of the environment: `make faults` sets them.
fn setting(name: &str, usual: u64) -> u64 {
    env::var(name).map_or(usual, |given| given.parse().unwrap())
}

fn replace(operator: &mut Operator, cluster: &Cluster) {
    operator.signal(Signal::SIGKILL);
    *operator = world::operator(cluster, ALONE);
}

#[test]
fn killed_at_random_points_and_with_the_api_server_gone_it_comes_to_the_same_end() {
    let options = ClusterOptions::default().without(Component::Scheduler);
    let World { cluster, api, operator: mut current } = World::start(&options, ALONE);
    let begin = |name: &str| {
        let audit = Audit::from_now(&cluster.audit_log());
        let scenario = Scenario::begin(&api, audit, name);
        scenario.config_map("old", "");
        scenario.resource_dependency("rd", FIVE);
        scenario
    };

    let (seed, rounds) = (setting("LINCHPIN_SEED", 0), setting("LINCHPIN_FAULTS", 8));
    for round in 0..rounds {
        let mut dice = Dice::new(seed.wrapping_add(round));
        let scenario = begin(&format!("killed-{round}"));
        thread::sleep(Duration::from_millis(u64::try_from(dice.below(100)).unwrap()));
        scenario.config_map("gate", "");
        thread::sleep(Duration::from_millis(u64::try_from(dice.below(250)).unwrap()));
        replace(&mut current, &cluster);
        judge(&scenario);
        if round % 2 == 0 {
            scenario.delete("ResourceDependency", "rd");
            thread::sleep(Duration::from_millis(u64::try_from(dice.below(40)).unwrap()));
            replace(&mut current, &cluster);
            scenario.gone("ResourceDependency", "rd");
            assert!(!scenario.has("a") && !scenario.has("b") && !scenario.has("e"));
        } else {
            is_left_alone(&scenario, || replace(&mut current, &cluster));
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
        judge(&midway);
        let still = waiting.blocked("rd", "NotFound");
        assert_eq!(still["status"]["phase"], "Waiting");
        waiting.config_map("gate", "");
        judge(&waiting);
    }
}

#[test]
fn a_leader_that_was_stopped_and_wakes_up_does_nothing_twice() {
    let cluster = Cluster::start(&bare()).expect("a local Kubernetes");
    let api = Api::connect(&cluster.kubeconfig());
    grant_operator(&api);
    let kubeconfig = cluster.kubeconfig_for(OPERATOR, None).unwrap();
    let timing = ["--lease-duration=4s", "--renew-deadline=2500ms", "--retry-period=500ms"];
    let first = Operator::start("first", &kubeconfig, &timing);
    eventually("the first leads", seconds(30), || first.leads() && first.is_ready());
    let second = Operator::start("second", &kubeconfig, &timing);
    eventually("the second stands by", seconds(30), || second.is_ready());
    for (round, (leader, standby)) in [(&first, &second), (&second, &first)].into_iter().enumerate() {
        eventually("it leads", seconds(30), || leader.leads() && !standby.leads());
        let audit = Audit::from_now(&cluster.audit_log());
        let scenario = Scenario::begin(&api, audit, &format!("stopped-{round}"));
        scenario.config_map("old", "");
        scenario.resource_dependency("rd", FIVE);
        scenario.resource_dependency("crowd", &crowd());
        scenario.blocked("rd", "NotFound");
        scenario.blocked("crowd", "NotFound");
        scenario.config_map("gate", "");
        // Stopped amid a crowd of writes: some are under way, the others wait for their turn in the process.
        let made = || scenario.audit.writes_for("ResourceDependency", &scenario.namespace, "crowd").len();
        eventually("some were made", seconds(30), || made() > 0);
        leader.signal(Signal::SIGSTOP);
        let before = made();
        assert!(before < CROWD, "all were made before it was stopped");
        scenario.completed("crowd");
        judge(&scenario);
        assert!(standby.leads());
        let written = scenario.audit.writes_for("ResourceDependency", &scenario.namespace, "rd").len();
        is_left_alone(&scenario, || {
            leader.signal(Signal::SIGCONT);
            eventually("it knows that it does not lead", seconds(30), || {
                leader.is_ready() && !leader.leads()
            });
        });
        assert_eq!(made(), CROWD, "{before} of them were made by the first leader");
        let again = scenario.audit.writes_for("ResourceDependency", &scenario.namespace, "rd");
        assert_eq!(again.len(), written, "what woke up wrote: {again:#?}");
    }
}
