//! Every rule of the operator's that is there for BootDependencies is needed: any of them taken away, a request that was made
//! here would be refused. Told from the audit log of the whole cluster, from its first request on.

use linchpin_operator::settings::DoorName;
use linchpin_testkit::audit::{Audit, Event};
use serde_json::Value;

use super::{boot, deployment, init_names, opted_in, until_called, world};
use crate::{eventually, needed, seconds, tenancy::own_requests};

fn is_held(pod: &Value) -> bool {
    !pod["spec"]["schedulingGates"].is_null()
}

#[test]
fn any_rule_for_boot_dependencies_that_is_taken_away_makes_a_request_fail() {
    let scenario = opted_in("boot-rights");
    until_called(&scenario);
    let gate = |target: &str| {
        format!(
            "{{serviceAccountName: actor, strategy: SchedulingGate{target}, dependsOn: [{{resource: configmap/go}}]}}"
        )
    };
    boot(&scenario, "held", &gate(""));
    boot(&scenario, "once", &gate(", targetRef: {kind: Job, name: once}"));
    deployment(&scenario, "held");
    scenario.apply("{apiVersion: batch/v1, kind: Job, metadata: {name: once}, spec: {template: {metadata: {labels: {app: once}}, spec: {restartPolicy: Never, containers: [{name: app, image: app}]}}}}");
    let held = || {
        let pods = world().api.list("Pod", &scenario.namespace);
        pods.iter().filter(|pod| is_held(pod)).count()
    };
    eventually("both pods are held", seconds(60), || held() == 2);
    scenario.config_map("go", "");
    eventually("both are let go", seconds(60), || held() == 0);
    // A template that is repaired at once.
    deployment(&scenario, "web");
    boot(&scenario, "web", "{rollout: Immediate, dependsOn: [{service: db, port: 5432}]}");
    scenario.until("waits", "Deployment", "web", |object| {
        init_names(&object["spec"]["template"]["spec"]) == ["wait-for-db"]
    });
    let audit = Audit::from_the_beginning(&world().cluster.audit_log());
    let own = own_requests(&audit, Event::is_by_operator);
    let removable = needed::removable(&own, |row| row.door == Some(DoorName::BootDependency));
    assert_eq!(removable, [] as [String; 0]);
}
