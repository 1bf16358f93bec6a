//! BootDependency with a real kubelet as the judge: pods really start when what they need is there, and not before.
//!
//! One cluster for all of it, since a node takes its time: it runs with `make test-all`. Skipped, with the reason, where a
//! node cannot run.

use std::{
    fs::File,
    io::Write,
    process::{Child, Stdio},
    thread,
    time::{Duration, Instant},
};

use linchpin_local::{Cluster, ClusterOptions, check_node_support, is_node_promised, waiter_image};
use linchpin_testkit::{Api, grant_operator};
use serde_json::{Value, json};

use super::published;
use crate::tree::feed;

fn skipped() -> bool {
    if std::env::var_os("LINCHPIN_LONG").is_none() {
        let _ = writeln!(
            std::io::stderr(),
            "SKIPPED: a test of BootDependency on a real node: see make test-all"
        );
        return true;
    }
    let reason = match check_node_support() {
        Err(reason) => reason.to_string(),
        Ok(()) if waiter_image().is_none() => "there is no static waiter, see `make wait`".to_owned(),
        Ok(()) => return false,
    };
    assert!(!is_node_promised(), "a node is promised here, and there can be none: {reason}");
    let _ = writeln!(std::io::stderr(), "SKIPPED: a test of BootDependency on a real node: {reason}");
    true
}

/// A pod that a namespace lets in which lets in nothing but plain processes.
fn pod_spec(arguments: &[&str], more: &Value) -> Value {
    let mut spec = json!({
        "terminationGracePeriodSeconds": 1,
        "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [{
            "name": "main",
            "image": "localhost/workload:1",
            "imagePullPolicy": "Never",
            "args": arguments,
            "securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}},
        }],
    });
    for (key, value) in more.as_object().into_iter().flatten() {
        spec[key] = value.clone();
    }
    spec
}

fn workload(version: &str, kind: &str, name: &str, spec: &Value) -> Value {
    let labels = json!({"app": name});
    let mut whole =
        json!({"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}}});
    whole["template"]["spec"] = pod_spec(&["stay"], spec);
    if kind == "StatefulSet" {
        whole["serviceName"] = json!(name);
    }
    if kind == "Job" {
        whole =
            json!({"template": {"spec": pod_spec(&["print", "done"], &json!({"restartPolicy": "Never"}))}});
    }
    json!({"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": "shop"}, "spec": whole})
}

fn boot(name: &str, spec: &Value) -> Value {
    let version = "core.bootchain-operator.ruicoelho.dev/v1alpha1";
    json!({"apiVersion": version, "kind": "BootDependency", "metadata": {"name": name, "namespace": "shop"}, "spec": spec})
}

fn apply(cluster: &Cluster, objects: &[Value]) {
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
    feed(cluster.kubectl().args(["apply", "-f", "-"]), list.to_string().as_bytes());
}

fn said(cluster: &Cluster, arguments: &str) -> String {
    let output = cluster.kubectl().args(arguments.split(' ')).output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[track_caller]
fn until(cluster: &Cluster, arguments: &str, what: &str, holds: impl Fn(&str) -> bool) -> String {
    let begun = Instant::now();
    loop {
        let said = said(cluster, arguments);
        if holds(&said) {
            return said;
        }
        assert!(begun.elapsed() < Duration::from_mins(3), "{what}: {said}");
        thread::sleep(Duration::from_millis(200));
    }
}

/// The operator in the cluster's network, ended with the test.
struct InCluster(Child);

impl Drop for InCluster {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn operator(cluster: &Cluster, log: &File) -> InCluster {
    let mut command = cluster.command(env!("CARGO_BIN_EXE_linchpin")).unwrap();
    let address = "10.99.0.1:9443";
    command.args(["operator", "--metrics-bind-address=0", "--health-probe-bind-address=0"]);
    command.args(["--lease-namespace=default", "--wait-image=localhost/linchpin-wait:1"]);
    command.arg(format!("--webhook-bind-address={address}"));
    command.arg(format!("--webhook-url=https://{address}"));
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log.try_clone().unwrap()).spawn();
    InCluster(child.unwrap())
}

#[test]
fn on_a_real_node_pods_start_when_what_they_need_is_there() {
    if skipped() {
        return;
    }
    let cluster = Cluster::start(&ClusterOptions { node: true, ..ClusterOptions::default() }).unwrap();
    let api = Api::connect(&cluster.kubeconfig());
    grant_operator(&api);
    let directory = tempfile::tempdir().unwrap();
    let log = File::create(directory.path().join("log")).unwrap();
    let _operator = operator(&cluster, &log);
    published(&api);
    let labels = json!({"linchpin.dev/boot": "enabled", "pod-security.kubernetes.io/enforce": "restricted"});
    apply(
        &cluster,
        &[json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "labels": labels}})],
    );
    until(&cluster, "-n shop get serviceaccount default -o name", "an account", |said| !said.is_empty());
    let entry = json!({"service": "db", "port": 5432, "timeout": "10m"});
    let http = json!({"service": "db", "port": 5432, "httpPath": "/healthz", "timeout": "10m"});
    let gate = |kind: &str, name: &str| json!({"targetRef": {"kind": kind, "name": name}, "strategy": "SchedulingGate", "dependsOn": [entry]});
    let init =
        |kind: &str, name: &str| json!({"targetRef": {"kind": kind, "name": name}, "dependsOn": [entry]});
    apply(
        &cluster,
        &[
            json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "db", "namespace": "shop"},
            "spec": {"selector": {"app": "db"}, "ports": [{"port": 5432, "targetPort": 8080}]}}),
            boot("web", &json!({"dependsOn": [entry, http]})),
            boot("gated", &gate("Deployment", "gated")),
            boot("store", &init("StatefulSet", "store")),
            boot("agent", &gate("DaemonSet", "agent")),
            boot("migrate", &json!({"targetRef": {"kind": "Job", "name": "migrate"}, "dependsOn": [entry]})),
            boot("hopeless", &json!({"dependsOn": [{"service": "nowhere", "port": 1, "timeout": "2s"}]})),
        ],
    );
    // The webhooks are called only once the API server has read its configurations.
    let web = workload("apps/v1", "Deployment", "web", &json!({}));
    let begun = Instant::now();
    loop {
        apply(&cluster, std::slice::from_ref(&web));
        let names = "-n shop get deployment web -o jsonpath={.spec.template.spec.initContainers[*].name}";
        if said(&cluster, names).starts_with("wait-for-db") {
            break;
        }
        assert!(begun.elapsed() < Duration::from_mins(1), "the webhooks are not called");
        said(&cluster, "-n shop delete deployment web --wait=true");
    }
    apply(
        &cluster,
        &[
            workload("apps/v1", "Deployment", "gated", &json!({})),
            workload("apps/v1", "StatefulSet", "store", &json!({})),
            workload("apps/v1", "DaemonSet", "agent", &json!({})),
            workload("batch/v1", "Job", "migrate", &json!({})),
            workload("apps/v1", "Deployment", "hopeless", &json!({})),
        ],
    );
    // A pod that runs once is held by the gate: a wait that times out would spend the Job's patience.
    let pods = "-n shop get pods --no-headers";
    until(&cluster, pods, "everything waits", |said| {
        let has =
            |name: &str, state: &str| said.lines().any(|line| line.starts_with(name) && line.contains(state));
        has("web", "Init:0/2")
            && has("store", "Init:0/1")
            && ["gated", "agent", "migrate"].iter().all(|name| has(name, "SchedulingGated"))
    });
    let described = until(&cluster, "-n shop describe pods -l app=hopeless", "it gives up", |said| {
        said.contains("Timed out after 2s: nowhere.shop.svc.cluster.local:1: no such host")
    });
    assert!(described.contains("Exit Code:    1"), "{described}");
    let waiting = said(
        &cluster,
        "-n shop get bootdependency gated -o jsonpath={.status.conditions[?(@.type=='Ready')].message}",
    );
    assert_eq!(waiting, "0/1 dependencies are reachable");
    everybody_starts(&cluster);
}

/// The database comes: everybody starts, and again after a rolling update, a scale and a replacement.
fn everybody_starts(cluster: &Cluster) {
    let mut db = pod_spec(&["serve", "8080"], &json!({}));
    db["containers"][0]["readinessProbe"] =
        json!({"httpGet": {"path": "/healthz", "port": 8080}, "periodSeconds": 1});
    apply(
        cluster,
        &[
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "db", "namespace": "shop", "labels": {"app": "db"}}, "spec": db}),
        ],
    );
    let ready = |arguments: &str| {
        until(cluster, arguments, "everybody starts", |said| said.trim() == "1");
    };
    ready("-n shop get deployment web -o jsonpath={.status.readyReplicas}");
    ready("-n shop get deployment gated -o jsonpath={.status.readyReplicas}");
    ready("-n shop get statefulset store -o jsonpath={.status.readyReplicas}");
    ready("-n shop get daemonset agent -o jsonpath={.status.numberReady}");
    ready("-n shop get job migrate -o jsonpath={.status.succeeded}");
    // Nobody's own container was there before the database.
    let there = said(
        cluster,
        "-n shop get pod db -o jsonpath={.status.conditions[?(@.type=='Ready')].lastTransitionTime}",
    );
    for app in ["web", "gated", "store", "agent"] {
        let begun = said(
            cluster,
            &format!(
                "-n shop get pods -l app={app} -o jsonpath={{.items[*].status.containerStatuses[0].state.running.startedAt}}"
            ),
        );
        assert!(
            !begun.is_empty() && begun.split(' ').all(|begun| begun >= there.as_str()),
            "{app}: {begun}, {there}"
        );
    }
    let failed = said(cluster, "-n shop get job migrate -o jsonpath={.status.failed}");
    assert!(failed.is_empty() || failed == "0", "the wait cost no attempt: {failed}");
    // A rolling update, more pods, and a pod that is replaced: each waits again, and what is there is there.
    said(cluster, "-n shop rollout restart deployment/web deployment/gated");
    said(cluster, "-n shop scale deployment/web deployment/gated --replicas=2");
    for name in ["web", "gated"] {
        until(cluster, &format!("-n shop rollout status deployment/{name} --timeout=5s"), name, |said| {
            said.contains("successfully rolled out")
        });
    }
    said(cluster, "-n shop delete pod -l app=gated --wait=false");
    until(
        cluster,
        "-n shop get deployment gated -o jsonpath={.status.readyReplicas}",
        "they are back",
        |said| said == "2",
    );
}
