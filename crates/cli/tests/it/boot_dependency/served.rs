//! What a BootDependency tells, and the pods that it holds: on simulated nodes, with the operator as a process.

use linchpin_testkit::Scenario;
use serde_json::{Value, json};

use super::{boot, deployment, opted_in, until_called, world};
use crate::{eventually, seconds};

/// A database that the API server calls ready: pods of a simulated node behind a Service.
pub(super) fn database(scenario: &Scenario, name: &str) {
    scenario.apply(&format!(
        "{{apiVersion: v1, kind: Service, metadata: {{name: {name}}}, spec: {{selector: {{app: {name}}}, ports: [{{port: 5432}}]}}}}"
    ));
    deployment(scenario, name);
}

fn ready(object: &Value) -> (String, String, String) {
    let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    let found = conditions.into_iter().find(|one| one["type"] == "Ready").cloned().unwrap_or_default();
    let text = |key: &str| found[key].as_str().unwrap_or_default().to_owned();
    (text("status"), text("reason"), text("message"))
}

fn triple(one: &str, two: &str, three: &str) -> (String, String, String) {
    (one.to_owned(), two.to_owned(), three.to_owned())
}

/// The pods of a Deployment, with whether our gate holds them.
fn pods(scenario: &Scenario, app: &str) -> Vec<(Value, bool)> {
    let path = format!("/api/v1/namespaces/{}/pods?labelSelector=app%3D{app}", scenario.namespace);
    let list = scenario.api.read(&path).unwrap_or_default();
    let items = list["items"].as_array().cloned().unwrap_or_default();
    let alive = items.into_iter().filter(|pod| pod["metadata"]["deletionTimestamp"].is_null());
    alive
        .map(|pod| {
            let held = is_held(&pod);
            (pod, held)
        })
        .collect()
}

pub(super) fn is_held(pod: &Value) -> bool {
    let all = pod["spec"]["schedulingGates"].as_array();
    let gated = all.is_some_and(|all| all.iter().any(|gate| gate["name"] == "linchpin.dev/boot"));
    let labelled = pod["metadata"]["labels"]["linchpin.dev/boot-gate"] == "held";
    assert_eq!(gated, labelled, "gate and label come and go together: {pod:#}");
    gated
}

pub(super) fn bare(scenario: &Scenario, name: &str, more: &str) {
    scenario.apply(&format!(
        "{{apiVersion: v1, kind: Pod, metadata: {{name: {name}, labels: {{kind: bare, app: {name}}}}}, spec: {{containers: [{{name: app, image: app}}]{more}}}}}"
    ));
}

pub(super) fn released(scenario: &Scenario, name: &str) -> Value {
    scenario.until("is released", "Pod", name, |pod| pod.is_object() && !is_held(pod))
}

#[test]
fn a_status_tells_what_is_there_in_the_documents_words() {
    let scenario = opted_in("boot-status");
    boot(
        &scenario,
        "web",
        "{serviceAccountName: actor, dependsOn: [{service: db, port: 5432}, {resource: configmap/flags}]}",
    );
    let waiting = scenario.until("waits", "BootDependency", "web", |object| {
        ready(object) == triple("False", "DependenciesNotReady", "0/2 dependencies are reachable")
            && object["status"]["entries"][0]["state"] == "NotFound"
    });
    let status = &waiting["status"];
    assert_eq!(status["phase"], "Waiting");
    assert_eq!(status["resolvedDependencies"], "0/2");
    assert_eq!(status["observedGeneration"], waiting["metadata"]["generation"]);
    assert_eq!(status["entries"][0]["name"], "db:5432");
    assert_eq!(status["entries"][0]["observedFrom"], "API");
    assert_eq!(status["entries"][1]["name"], "configmap/flags");
    assert!(status["message"].as_str().unwrap().starts_with("waits for db:5432: "), "{status:#}");
    database(&scenario, "db");
    scenario.config_map("flags", "on");
    let whole = scenario.until("is ready", "BootDependency", "web", |object| {
        ready(object) == triple("True", "AllDependenciesReady", "All 2 dependencies are reachable")
    });
    assert_eq!(whole["status"]["phase"], "Ready");
    assert_eq!(whole["status"]["resolvedDependencies"], "2/2");
    let events = || scenario.events("web");
    let told = |reason: &str, message: &str| {
        eventually(&format!("{reason}: {message}"), seconds(30), || {
            events().iter().any(|(is, says)| is == reason && says.starts_with(message))
        });
    };
    told("DependencyNotReady", "Dependency db:5432 is not reachable: ");
    told("DependencyNotReady", "Dependency configmap/flags is not ready: ");
    told("DependencyReady", "Dependency db:5432 is reachable");
    told("AllDependenciesReady", "All 2 dependencies are reachable");
    let metrics = world().operator.metrics();
    for line in [
        "bootchain_dependencies_total{namespace=\"boot-status\",name=\"web\"} 2",
        "bootchain_dependencies_ready{namespace=\"boot-status\",name=\"web\"} 2",
        "bootchain_reconcile_total{result=\"success\"}",
        "bootchain_reconcile_duration_seconds_count{result=\"success\"}",
    ] {
        assert!(metrics.contains(line), "{line}");
    }
    // What is lost is told, and the phase follows.
    scenario.delete("ConfigMap", "flags");
    scenario.until("has lost one", "BootDependency", "web", |object| {
        object["status"]["phase"] == "Waiting" && object["status"]["resolvedDependencies"] == "1/2"
    });
    scenario.delete("BootDependency", "web");
    scenario.gone("BootDependency", "web");
    eventually("b25: its series are gone", seconds(20), || {
        !world().operator.metrics().contains("namespace=\"boot-status\"")
    });
}

#[test]
fn pods_are_held_until_everything_is_there_and_released_for_good() {
    let scenario = opted_in("boot-gate");
    until_called(&scenario);
    boot(
        &scenario,
        "web",
        "{serviceAccountName: actor, strategy: SchedulingGate, dependsOn: [{service: db, port: 5432}]}",
    );
    deployment(&scenario, "web");
    eventually("a pod is held", seconds(60), || matches!(pods(&scenario, "web").as_slice(), [(_, true)]));
    let stored = scenario.get("Deployment", "web").unwrap();
    assert!(stored["spec"]["template"]["spec"]["initContainers"].is_null(), "its template is untouched");
    let (pod, _) = pods(&scenario, "web").remove(0);
    assert_eq!(pod["metadata"]["annotations"]["linchpin.dev/boot"], "web");
    let name = pod["metadata"]["name"].as_str().unwrap();
    eventually("it is told on the pod", seconds(30), || {
        let told = scenario.events(name);
        told.contains(&("BootWait".to_owned(), "held until db:5432; BootDependency web".to_owned()))
    });
    database(&scenario, "db");
    released(&scenario, name);
    eventually("so is the release", seconds(30), || {
        scenario.events(name).iter().any(|(reason, _)| reason == "BootReleased")
    });
    scenario.until("runs", "Pod", name, |pod| pod["status"]["phase"] == "Running");
    // Released is released; and what is there holds nobody up.
    scenario.merge("Deployment", "web", &json!({"spec": {"replicas": 2}}));
    eventually("the second one starts", seconds(60), || {
        let pods = pods(&scenario, "web");
        pods.len() == 2 && pods.iter().all(|(pod, held)| !held && pod["status"]["phase"] == "Running")
    });
    assert!(world().operator.metrics().contains("linchpin_boot_release_seconds_count"));
    // What entries are answered from is read as the account that the object names; pods are the operator's own business.
    let events = scenario.audit.events();
    let ours =
        || events.iter().filter(|event| event.is_by_operator() && event.namespace == scenario.namespace);
    let account = format!("system:serviceaccount:{}:actor", scenario.namespace);
    for resource in ["services", "endpointslices", "secrets", "configmaps"] {
        let alone: Vec<_> =
            ours().filter(|event| event.resource == resource && event.acting_as.is_none()).collect();
        assert!(alone.is_empty(), "{alone:?}");
    }
    for resource in ["services", "endpointslices"] {
        assert!(
            ours().any(|event| event.resource == resource && event.acting_as.as_ref() == Some(&account)),
            "{resource}"
        );
    }
    let is_workload = |resource: &str| ["pods", "deployments", "replicasets"].contains(&resource);
    let directed: Vec<_> =
        ours().filter(|event| is_workload(&event.resource) && event.acting_as.is_some()).collect();
    assert!(directed.is_empty(), "{directed:?}");
}

#[test]
fn what_holds_a_pod_can_be_bypassed_paused_given_up_and_taken_away() {
    let scenario = opted_in("boot-hand");
    until_called(&scenario);
    let spec = |more: &str| {
        format!(
            "{{serviceAccountName: actor, selector: {{matchLabels: {{kind: bare}}}}, strategy: SchedulingGate, dependsOn: [{{service: db, port: 5432, name: db{more}}}]}}"
        )
    };
    boot(&scenario, "rule", &spec(""));
    // A gate of somebody else's stays, whatever becomes of ours.
    bare(&scenario, "foreign", ", schedulingGates: [{name: example.com/theirs}]");
    bare(&scenario, "skips", "");
    bare(&scenario, "later", "");
    for name in ["foreign", "skips", "later"] {
        assert!(is_held(&scenario.get("Pod", name).unwrap()), "{name}");
    }
    // Any other value than true says nothing.
    scenario.annotate("Pod", "skips", "linchpin.dev/skip-boot-wait", "yes");
    scenario.annotate("Pod", "skips", "linchpin.dev/skip-boot-wait", "true");
    released(&scenario, "skips");
    assert!(is_held(&scenario.get("Pod", "later").unwrap()));
    // An entry that is passed by hand.
    let generation = scenario.get("BootDependency", "rule").unwrap()["metadata"]["generation"].clone();
    scenario.annotate("BootDependency", "rule", "linchpin.dev/proceed", &format!("db@{generation}"));
    released(&scenario, "later");
    let foreign = released(&scenario, "foreign");
    assert_eq!(foreign["spec"]["schedulingGates"], json!([{"name": "example.com/theirs"}]));
    // A pause releases nobody, even when everything is there.
    boot(&scenario, "rule", &spec("").replace("strategy:", "suspend: true, strategy:"));
    scenario.phase("BootDependency", "rule", "Suspended");
    bare(&scenario, "paused", "");
    database(&scenario, "db");
    scenario.until("has an endpoint", "Deployment", "db", |object| object["status"]["readyReplicas"] == 1);
    scenario.passes("meanwhile");
    assert!(is_held(&scenario.get("Pod", "paused").unwrap()), "a pause opens no door");
    boot(&scenario, "rule", &spec(""));
    released(&scenario, "paused");
    // Given up after its timeout.
    let missing = spec(", timeout: 2s, onTimeout: Proceed").replace("service: db", "service: missing");
    boot(&scenario, "rule", &missing);
    bare(&scenario, "patient", "");
    assert!(is_held(&scenario.get("Pod", "patient").unwrap()));
    released(&scenario, "patient");
    let fails = spec(", timeout: 1s").replace("service: db", "service: missing");
    boot(&scenario, "rule", &fails);
    bare(&scenario, "stays", "");
    eventually("that it waits too long is told", seconds(30), || {
        scenario.events("rule").iter().any(|(reason, message)| {
            reason == "WaitTimedOut" && message == "Pod stays has waited 1s for db and stays held"
        })
    });
    assert!(is_held(&scenario.get("Pod", "stays").unwrap()), "a gate cannot fail");
    // A namespace that has opted out holds nobody; one that opts in again holds only newer pods.
    scenario.merge(
        "Namespace",
        &scenario.namespace,
        &json!({"metadata": {"labels": {"linchpin.dev/boot": null}}}),
    );
    released(&scenario, "stays");
    scenario.merge(
        "Namespace",
        &scenario.namespace,
        &json!({"metadata": {"labels": {"linchpin.dev/boot": "enabled"}}}),
    );
    eventually("a newer pod is held again", seconds(30), || {
        scenario.delete("Pod", "last");
        scenario.gone("Pod", "last");
        bare(&scenario, "last", "");
        is_held(&scenario.get("Pod", "last").unwrap())
    });
    // With the BootDependency goes what it holds.
    scenario.delete("BootDependency", "rule");
    released(&scenario, "last");
    scenario.gone("BootDependency", "rule");
}

#[test]
fn nothing_is_touched_where_nobody_opted_in() {
    let scenario = world().scenario("boot-out");
    boot(
        &scenario,
        "web",
        "{serviceAccountName: actor, strategy: SchedulingGate, dependsOn: [{service: db, port: 1}]}",
    );
    deployment(&scenario, "web");
    // Everything is observed and reported all the same.
    let object = scenario.until("waits", "BootDependency", "web", |object| {
        object["status"]["phase"] == "Waiting" && object["status"]["workloads"][0]["state"] == "NotOptedIn"
    });
    assert_eq!(object["status"]["resolvedDependencies"], "0/1");
    let row = &object["status"]["workloads"][0];
    let remedy = "kubectl label namespace boot-out linchpin.dev/boot=enabled";
    assert!(row["message"].as_str().unwrap().ends_with(remedy), "{row:#}");
    eventually("its pods run", seconds(60), || {
        let pods = pods(&scenario, "web");
        pods.iter().any(|(pod, held)| !held && pod["status"]["phase"] == "Running")
    });
    let touched: Vec<_> = scenario
        .audit
        .events()
        .into_iter()
        .filter(|event| event.is_by_operator() && event.namespace == scenario.namespace)
        .filter(|event| {
            matches!(
                event.resource.as_str(),
                "pods" | "deployments" | "replicasets" | "statefulsets" | "daemonsets" | "jobs" | "cronjobs"
            )
        })
        .collect();
    assert!(touched.is_empty(), "{touched:?}");
}
