//! A replica that does not lead answers webhooks as well: it looks for itself.

use linchpin_local::{Cluster, ClusterOptions};
use linchpin_testkit::{Api, Scenario, audit::Audit, grant_operator, grant_webhooks};
use nix::sys::signal::Signal;
use serde_json::json;

use super::{
    boot, free_address, published,
    served::{bare, database, is_held, released},
    until_called, with_webhooks,
};
use crate::{eventually, seconds, world};

#[test]
fn a_replica_that_does_not_lead_lets_pass_what_it_sees_and_holds_what_it_does_not() {
    let cluster = Cluster::start(&ClusterOptions { kwok: Some(1), ..ClusterOptions::default() }).unwrap();
    let api = Api::connect(&cluster.kubeconfig());
    grant_operator(&api);
    grant_webhooks(&api);
    let address = free_address();
    // It leads first, so that the API server is told where it is; then it stands by.
    let mut first = with_webhooks(&cluster, &address);
    published(&api);
    first.signal(Signal::SIGTERM);
    first.ended_within(seconds(20));
    let leader = world::operator(&cluster, &[]);
    eventually("another one leads", seconds(30), || leader.leads());
    let standby = with_webhooks(&cluster, &address);
    let scenario = Scenario::begin(&api, Audit::from_now(&cluster.audit_log()), "boot-standby");
    let label = json!({"metadata": {"labels": {"linchpin.dev/boot": "enabled"}}});
    scenario.merge("Namespace", &scenario.namespace, &label);
    until_called(&scenario);
    boot(
        &scenario,
        "rule",
        "{serviceAccountName: actor, selector: {matchLabels: {kind: bare}}, strategy: SchedulingGate, dependsOn: [{service: db, port: 5432}, {resource: configmap/flags}]}",
    );
    let holds = |name: &str| {
        bare(&scenario, name, "");
        is_held(&scenario.get("Pod", name).unwrap())
    };
    let mut attempt = 0;
    let mut next = || {
        attempt += 1;
        holds(&format!("next-{attempt}"))
    };
    assert!(holds("early"), "nothing is there");
    database(&scenario, "db");
    scenario.config_map("flags", "on");
    released(&scenario, "early");
    eventually("what is there holds nobody", seconds(20), || !next());
    assert!(!holds("later") && !standby.leads());
    scenario.delete("ConfigMap", "flags");
    eventually("what is lost holds the next one", seconds(20), &mut next);
    // Nobody leads: who was let pass is not touched, what is there holds nobody, and what is not known holds.
    leader.signal(Signal::SIGKILL);
    assert!(holds("alone"));
    scenario.config_map("flags", "on");
    eventually("what is there holds nobody without a leader", seconds(8), || !next() || standby.leads());
    assert!(!standby.leads(), "it had no time to lead");
    let mut writes = scenario.audit.events();
    writes.retain(|event| {
        event.is_by_operator()
            && event.is_write()
            && event.resource == "pods"
            && event.namespace == scenario.namespace
            && event.name == "later"
    });
    assert!(writes.is_empty(), "no patch for who was not held: {writes:#?}");
}
