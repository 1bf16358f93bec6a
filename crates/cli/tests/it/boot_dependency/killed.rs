//! Killed at any moment, again and again, with pods that are held: none stays held for good, none starts early.
//!
//! The API server's audit log is the witness. It runs with `make test-all`.

use std::{io::Write, thread, time::Duration};

use linchpin_local::{Cluster, ClusterOptions};
use linchpin_testkit::{Api, Scenario, audit::Audit, grant_operator, grant_webhooks};
use serde_json::json;

use super::{boot, free_address, published, until_called, with_webhooks};
use crate::{eventually, seconds};

const KILLS: usize = 12;
const PODS: usize = 4;

#[test]
fn killed_at_random_no_pod_is_left_held_and_none_is_released_early() {
    if std::env::var_os("LINCHPIN_LONG").is_none() {
        let _ = writeln!(std::io::stderr(), "SKIPPED: kills at random moments: see make test-all");
        return;
    }
    let mut random: u64 = u64::from(std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().subsec_nanos());
    let _ = writeln!(std::io::stderr(), "seed {random}");
    let cluster = Cluster::start(&ClusterOptions::default()).unwrap();
    let api = Api::connect(&cluster.kubeconfig());
    grant_operator(&api);
    grant_webhooks(&api);
    let address = free_address();
    let mut operator = Some(with_webhooks(&cluster, &address));
    published(&api);
    let scenario = Scenario::begin(&api, Audit::from_now(&cluster.audit_log()), "boot-killed");
    let label = json!({"metadata": {"labels": {"linchpin.dev/boot": "enabled"}}});
    scenario.merge("Namespace", &scenario.namespace, &label);
    until_called(&scenario);
    let mut held = Vec::new();
    for round in 0..KILLS {
        boot(
            &scenario,
            &format!("rule-{round}"),
            &format!(
                "{{serviceAccountName: actor, selector: {{matchLabels: {{round: \"{round}\"}}}}, strategy: SchedulingGate, dependsOn: [{{resource: configmap/go-{round}}}, {{resource: configmap/all}}]}}"
            ),
        );
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let moment = Duration::from_millis((random >> 33) % 1500);
        thread::scope(|scope| {
            let work = scope.spawn(|| {
                for number in 0..PODS {
                    scenario.apply(&format!("{{apiVersion: v1, kind: Pod, metadata: {{name: pod-{round}-{number}, labels: {{round: \"{round}\"}}}}, spec: {{containers: [{{name: app, image: app}}]}}}}"));
                }
                // The last ones never get what they wait for.
                if round + 1 < KILLS {
                    scenario.config_map(&format!("go-{round}"), "now");
                }
                if round == 0 {
                    scenario.config_map("all", "now");
                }
            });
            thread::sleep(moment);
            drop(operator.take());
            operator = Some(with_webhooks(&cluster, &address));
            work.join().unwrap();
        });
        held.extend((0..PODS).map(|number| (round, format!("pod-{round}-{number}"))));
    }
    let is_held = |name: &str| !scenario.get("Pod", name).unwrap()["spec"]["schedulingGates"].is_null();
    eventually("nobody is left behind", seconds(60), || {
        !held.iter().any(|(round, name)| round + 1 < KILLS && is_held(name))
    });
    let events = scenario.audit.events();
    let mut released = 0;
    for (round, name) in &held {
        let patches = events.iter().filter(|event| {
            event.is_by_operator() && event.is_write() && event.resource == "pods" && event.name == *name
        });
        for patch in patches {
            assert!(round + 1 < KILLS, "nobody said that {name} may start: {patch:?}");
            for cause in [format!("go-{round}"), "all".to_owned()] {
                let go = scenario.audit.first_write("configmaps", &scenario.namespace, &cause);
                assert!(patch.received > go.received, "{name} started before {cause}: {patch:?}");
            }
            released += 1;
        }
    }
    assert!(released >= KILLS, "too few were held at all: {released}");
}
