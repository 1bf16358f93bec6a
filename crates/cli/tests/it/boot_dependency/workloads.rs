//! The workloads whose pods are held: how they follow a change, what is repaired, and circles through Services.

use std::{thread, time::Duration};

use linchpin_testkit::Scenario;
use serde_json::{Value, json};

use super::{boot, deployment, init_names, opted_in, served::bare, until_called};
use crate::{eventually, seconds};

fn template(scenario: &Scenario, name: &str) -> Value {
    scenario.get("Deployment", name).unwrap()["spec"]["template"].clone()
}

fn carries(scenario: &Scenario, name: &str, inits: &[&str]) {
    scenario.until(&format!("carries {inits:?}"), "Deployment", name, |object| {
        init_names(&object["spec"]["template"]["spec"]) == inits
    });
}

fn row(scenario: &Scenario, name: &str, state: &str) -> Value {
    let object = scenario.until(&format!("has a row {state}"), "BootDependency", name, |object| {
        object["status"]["workloads"][0]["state"] == state
    });
    object["status"]["workloads"][0].clone()
}

#[test]
fn b11_a_change_reaches_workloads_as_rollout_says_and_leaves_with_the_object() {
    let scenario = opted_in("boot-rollout");
    until_called(&scenario);
    boot(&scenario, "web", "{dependsOn: [{service: db, port: 5432}]}");
    assert_eq!(row(&scenario, "web", "Absent")["name"], "web");
    scenario.delete("BootDependency", "web");
    scenario.gone("BootDependency", "web");
    deployment(&scenario, "web");
    scenario.apply(
        "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: store}, spec: {serviceName: store, selector: {matchLabels: {app: store}}, template: {metadata: {labels: {app: store}}, spec: {containers: [{name: app, image: app}]}}}}",
    );
    // Creation has the precision of a second: what is created later is a change and nothing that was missed.
    thread::sleep(Duration::from_millis(1100));
    boot(&scenario, "web", "{dependsOn: [{service: db, port: 5432}]}");
    row(&scenario, "web", "Outdated");
    assert!(init_names(&template(&scenario, "web")["spec"]).is_empty(), "no surprise rollout");
    boot(&scenario, "web", "{rollout: Immediate, dependsOn: [{service: db, port: 5432}]}");
    carries(&scenario, "web", &["wait-for-db"]);
    row(&scenario, "web", "Current");
    scenario.until("has its finalizer", "BootDependency", "web", |object| {
        object["metadata"]["finalizers"] == json!(["linchpin.dev/teardown"])
    });
    eventually("the change is told", seconds(30), || {
        scenario.events("web").iter().any(|(reason, _)| reason == "BootWaitChanged")
    });
    boot(&scenario, "web", "{rollout: Immediate, dependsOn: [{service: cache, port: 6379}]}");
    carries(&scenario, "web", &["wait-for-cache"]);
    assert_eq!(template(&scenario, "web")["metadata"]["annotations"]["linchpin.dev/boot"], "web");
    scenario.delete("BootDependency", "web");
    scenario.gone("BootDependency", "web");
    let left = template(&scenario, "web");
    assert!(init_names(&left["spec"]).is_empty(), "{left:#}");
    assert!(left["metadata"]["annotations"]["linchpin.dev/boot"].is_null(), "{left:#}");
    // A StatefulSet is rolled by a mark, and nothing else of its template is touched.
    boot(
        &scenario,
        "store",
        "{targetRef: {kind: StatefulSet, name: store}, rollout: Immediate, dependsOn: [{service: db, port: 5432}]}",
    );
    let store = scenario.until("is marked", "StatefulSet", "store", |object| {
        object["spec"]["template"]["metadata"]["annotations"]["linchpin.dev/boot-hash"].is_string()
    });
    assert!(store["spec"]["template"]["spec"]["initContainers"].is_null());
    row(&scenario, "store", "Current");
    scenario.apply(
        "{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: agent}, spec: {selector: {matchLabels: {app: agent}}, template: {metadata: {labels: {app: agent}}, spec: {containers: [{name: app, image: app}]}}}}",
    );
    boot(
        &scenario,
        "agent",
        "{targetRef: {kind: DaemonSet, name: agent}, rollout: Immediate, dependsOn: [{service: db, port: 5432}]}",
    );
    row(&scenario, "agent", "Current");
    // The mark goes with the object, and before it.
    for (kind, name) in [("StatefulSet", "store"), ("DaemonSet.apps", "agent")] {
        let mark = |object: &Value| {
            object["spec"]["template"]["metadata"]["annotations"]["linchpin.dev/boot-hash"].clone()
        };
        scenario.until("is marked", kind, name, |object| mark(object).is_string());
        scenario.until("has its finalizer", "BootDependency", name, |object| {
            object["metadata"]["finalizers"] == json!(["linchpin.dev/teardown"])
        });
        scenario.delete("BootDependency", name);
        scenario.gone("BootDependency", name);
        assert!(mark(&scenario.get(kind, name).unwrap()).is_null(), "{kind}");
    }
    boot(
        &scenario,
        "store",
        "{targetRef: {kind: StatefulSet, name: store}, dependsOn: [{service: db, port: 5432}]}",
    );
    scenario.annotate("BootDependency", "store", "linchpin.dev/skip-boot-wait", "true");
    row(&scenario, "store", "Skipped");
}

/// A Service for pods of another name than its own.
fn leads_to(scenario: &Scenario, name: &str) {
    scenario.apply(&format!(
        "{{apiVersion: v1, kind: Service, metadata: {{name: to-{name}}}, spec: {{selector: {{app: {name}}}, ports: [{{port: 80}}]}}}}"
    ));
}

fn is_stalled(scenario: &Scenario, name: &str, text: &str) {
    let object = scenario.until("is stalled", "BootDependency", name, |object| {
        let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.iter().any(|one| {
            one["type"] == "Stalled"
                && one["status"] == "True"
                && one["reason"] == "Cycle"
                && one["message"] == text
        })
    });
    assert_eq!(object["status"]["phase"], "Failed");
    eventually("it is told", seconds(30), || {
        scenario.events(name).contains(&("CircularDependency".to_owned(), text.to_owned()))
    });
}

#[test]
fn b6_b8_a_circle_through_services_of_other_names_is_found_at_run_time() {
    let scenario = opted_in("boot-knot");
    until_called(&scenario);
    for (name, other) in [("left", "right"), ("right", "left")] {
        leads_to(&scenario, name);
        let entry = format!("dependsOn: [{{service: to-{other}, port: 80}}]");
        boot(&scenario, name, &format!("{{serviceAccountName: actor, strategy: SchedulingGate, {entry}}}"));
        // Without a pod only the templates tell who stands behind a Service.
        scenario.apply(&format!(
            "{{apiVersion: apps/v1, kind: Deployment, metadata: {{name: {name}}}, spec: {{replicas: 0, selector: {{matchLabels: {{app: {name}}}}}, template: {{metadata: {{labels: {{app: {name}}}}}, spec: {{containers: [{{name: app, image: app}}]}}}}}}}}"
        ));
    }
    is_stalled(&scenario, "left", "circular dependency detected: left → right → left");
    scenario.phase("BootDependency", "right", "Failed");
    // Who takes one of the waits out lets everybody go.
    scenario.delete("BootDependency", "right");
    scenario.gone("BootDependency", "right");
    scenario.merge("Deployment", "right", &json!({"spec": {"replicas": 1}}));
    scenario.phase("BootDependency", "left", "Ready");
    // Pods by their labels: only those that are held tell it.
    for (name, other) in [("one", "two"), ("two", "one")] {
        leads_to(&scenario, name);
        boot(
            &scenario,
            name,
            &format!(
                "{{serviceAccountName: actor, strategy: SchedulingGate, selector: {{matchLabels: {{app: {name}}}}}, dependsOn: [{{service: to-{other}, port: 80}}]}}"
            ),
        );
        bare(&scenario, name, "");
    }
    is_stalled(&scenario, "one", "circular dependency detected: one → two → one");
    scenario.phase("BootDependency", "two", "Failed");
}

#[test]
fn b6_a_circle_of_pods_that_wait_by_themselves_is_found_by_these_pods() {
    let scenario = opted_in("boot-pods");
    until_called(&scenario);
    for (name, other) in [("one", "two"), ("two", "one")] {
        leads_to(&scenario, name);
        let spec = format!(
            "{{serviceAccountName: actor, selector: {{matchLabels: {{app: {name}}}}}, dependsOn: [{{service: to-{other}, port: 80}}]}}"
        );
        boot(&scenario, name, &spec);
        // No node takes it: on a simulated one it would start without its init containers.
        bare(&scenario, name, ", nodeSelector: {none: none}");
        assert_eq!(init_names(&scenario.get("Pod", name).unwrap()["spec"]), [format!("wait-for-to-{other}")]);
    }
    is_stalled(&scenario, "one", "circular dependency detected: one → two → one");
    scenario.phase("BootDependency", "two", "Failed");
}

#[test]
fn a_circle_through_a_service_that_selects_nobody_is_found_by_what_its_slices_name() {
    let scenario = opted_in("boot-claims");
    until_called(&scenario);
    leads_to(&scenario, "one");
    scenario.apply("{apiVersion: v1, kind: Service, metadata: {name: to-two}, spec: {ports: [{port: 80}]}}");
    scenario.apply("{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: to-two-1, labels: {kubernetes.io/service-name: to-two}}, addressType: IPv4, ports: [{port: 80}], endpoints: [{addresses: [192.0.2.1], conditions: {ready: false}, targetRef: {kind: Pod, name: two}}]}");
    for (name, other) in [("one", "two"), ("two", "one")] {
        boot(
            &scenario,
            name,
            &format!(
                "{{serviceAccountName: actor, strategy: SchedulingGate, selector: {{matchLabels: {{app: {name}}}}}, dependsOn: [{{service: to-{other}, port: 80}}]}}"
            ),
        );
        bare(&scenario, name, "");
    }
    is_stalled(&scenario, "one", "circular dependency detected: one → two → one");
    scenario.phase("BootDependency", "two", "Failed");
}

#[test]
fn every_example_is_applied_as_it_is() {
    let world = super::world();
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/bootdependency");
    let apply = |file: &std::path::Path| {
        let output = world.cluster.kubectl().args(["apply", "-f"]).arg(file).output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (good, said) = apply(&folder.join("namespace.yaml"));
    assert!(good, "{said}");
    let audit = linchpin_testkit::audit::Audit::from_now(&world.cluster.audit_log());
    let scenario = Scenario { api: world.api.clone(), audit, namespace: "shop".to_owned() };
    until_called(&scenario);
    let mut files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let mut tried = 0;
    for file in files.iter().filter(|file| !file.ends_with("namespace.yaml")) {
        if file.ends_with("rejected-cycle.yaml") {
            let text = "circular dependency detected: right → left → right";
            eventually("the circle is refused", seconds(30), || {
                let (good, said) = apply(file);
                scenario.delete("BootDependency", "right");
                !good && said.contains(text)
            });
            continue;
        }
        let (good, said) = apply(file);
        assert!(good, "{}: {said}", file.display());
        let documents: Vec<Value> =
            serde_saphyr::from_multiple(&std::fs::read_to_string(file).unwrap()).unwrap();
        for document in documents.iter().filter(|document| document["kind"] == "BootDependency") {
            let name = document["metadata"]["name"].as_str().unwrap();
            let all = document["spec"]["dependsOn"].as_array().unwrap().len();
            scenario.until("tells how it is", "BootDependency", name, |object| {
                object["status"]["entries"].as_array().is_some_and(|rows| rows.len() == all)
                    && ["Waiting", "Ready"].iter().any(|phase| object["status"]["phase"] == *phase)
            });
            // What refers to a Secret that may not be read is held by the gate instead.
            let plain =
                !document.to_string().contains("secretKeyRef") && !document.to_string().contains("caBundle");
            if plain && scenario.get("Deployment", name).is_some() {
                scenario.until("carries what it waits for", "Deployment", name, |object| {
                    object["spec"]["template"]["metadata"]["annotations"]["linchpin.dev/boot"] == name
                });
            }
            tried += 1;
        }
    }
    assert!(tried >= 10, "the examples are not read any more: {tried}");
}
