//! The waiter in init containers of a real node, as a BootDependency puts it there, without an operator.

use std::{
    io::Write,
    thread,
    time::{Duration, Instant},
};

use linchpin_local::{Cluster, ClusterOptions, is_node_promised, waiter_image};
use serde_json::{Value, json};

use crate::{
    node::skipped,
    support::{kubectl, kubectl_with, text, traces},
};

/// What a namespace asks for that lets in nothing but plain processes.
fn restricted() -> Value {
    json!({
        "allowPrivilegeEscalation": false,
        "capabilities": {"drop": ["ALL"]},
        "privileged": false,
        "readOnlyRootFilesystem": true,
        "runAsNonRoot": true,
        "seccompProfile": {"type": "RuntimeDefault"},
    })
}

/// An init container of a BootDependency.
fn waits(name: &str, arguments: &[&str]) -> Value {
    json!({
        "name": name,
        "image": "localhost/linchpin-wait:1",
        "imagePullPolicy": "IfNotPresent",
        "command": ["/linchpin-wait"],
        "args": arguments,
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": restricted(),
    })
}

fn pod(name: &str, init: &[Value], arguments: &[&str]) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "shop", "labels": {"app": name}},
        "spec": {
            "restartPolicy": if init.len() == 1 { "Never" } else { "Always" },
            "terminationGracePeriodSeconds": 1,
            "initContainers": init,
            "containers": [{
                "name": "main",
                "image": "localhost/workload:1",
                "imagePullPolicy": "Never",
                "args": arguments,
                "securityContext": restricted(),
            }],
        },
    })
}

fn apply(cluster: &Cluster, objects: &[Value]) {
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
    kubectl_with(cluster, &["apply", "-f", "-"], &list.to_string());
}

fn until(cluster: &Cluster, arguments: &[&str], what: &str, holds: impl Fn(&str) -> bool) -> String {
    let begun = Instant::now();
    loop {
        // There may be nothing to tell yet.
        let output = cluster.kubectl().args(arguments).output().unwrap();
        let said = text(&output.stdout);
        if output.status.success() && holds(&said) {
            return said;
        }
        assert!(begun.elapsed() < Duration::from_secs(90), "{what}: {said}{}", text(&output.stderr));
        thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn pods_wait_for_services_and_say_what_they_wait_for() {
    if skipped() {
        return;
    }
    if waiter_image().is_none() {
        assert!(!is_node_promised(), "`make wait` makes the waiter that this test runs, and has not");
        let _ = writeln!(
            std::io::stderr(),
            "SKIPPED: a test of the waiter: there is no static one, see `make wait`"
        );
        return;
    }
    let cluster = Cluster::start(&ClusterOptions { node: true, ..ClusterOptions::default() }).unwrap();
    let labels = json!({"pod-security.kubernetes.io/enforce": "restricted"});
    let namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "labels": labels}});
    let service = json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "db", "namespace": "shop"},
        "spec": {"selector": {"app": "db"}, "ports": [{"port": 5432, "targetPort": 8080}]},
    });
    let connects = waits("wait-for-db", &["tcp", "db.shop.svc.cluster.local:5432", "--timeout", "5m"]);
    // The kubelet makes one $ of two.
    let url = "http://db:5432/healthz?a='b'&c=$$d";
    let asks = waits("wait-for-db-5432", &["http", url, "--expect", "200,204", "--timeout", "5m"]);
    let in_vain = waits("wait-for-nowhere", &["tcp", "nowhere.shop.svc.cluster.local:1", "--timeout", "2s"]);
    apply(&cluster, &[namespace, service]);
    apply(&cluster, &[pod("web", &[connects, asks], &["stay"]), pod("hopeless", &[in_vain], &["stay"])]);
    let pods = ["-n", "shop", "get", "pods", "--no-headers"];
    until(&cluster, &pods, "the pod waits", |said| {
        said.lines().any(|line| line.starts_with("web") && line.contains("Init:0/2"))
    });
    let logs = ["-n", "shop", "logs", "web", "-c", "wait-for-db"];
    let said = until(&cluster, &logs, "it says why", |said| said.lines().count() >= 2);
    let expected = "Waiting for db.shop.svc.cluster.local:5432 (5m)\ndb.shop.svc.cluster.local:5432: connection refused\n";
    assert_eq!(said, expected, "no endpoint is a refusal");
    let hopeless = ["-n", "shop", "describe", "pod", "hopeless"];
    let described = until(&cluster, &hopeless, "it gives up", |said| said.contains("Exit Code:"));
    assert!(described.contains("Exit Code:    1"), "{described}");
    let last = "Timed out after 2s: nowhere.shop.svc.cluster.local:1: no such host";
    assert!(described.contains(last), "the message is to be read in kubectl describe: {described}");

    apply(&cluster, &[pod("db", &[], &["serve", "8080"])]);
    kubectl(&cluster, &["-n", "shop", "wait", "--for=condition=Ready", "pod/web", "--timeout=90s"]);
    let said = kubectl(&cluster, &["-n", "shop", "logs", "web", "-c", "wait-for-db-5432"]);
    assert!(said.contains("http://db:5432/healthz?a='b'&c=$d is ready after "), "{said}");
    // The same from the outside, as `linchpin local run` runs it: names and addresses of the cluster.
    let waiter = waiter_image().unwrap().programs.remove(0).1;
    let mut inside = cluster.command(waiter).unwrap();
    let inside = inside
        .args(["tcp", "kubernetes.default:443", "http", "http://db.shop:5432/healthz"])
        .output()
        .unwrap();
    let said = text(&inside.stdout);
    assert!(inside.status.success() && said.matches(" is ready after ").count() == 2, "{said}");
    let dir = cluster.dir().to_owned();
    cluster.stop().unwrap();
    assert_eq!(traces(&dir), Vec::<String>::new());
}
