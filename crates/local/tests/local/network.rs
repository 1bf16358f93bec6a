//! The network of a cluster with a real node: Services by address and by name, and programs in it.

use std::{
    io::{Read, Write},
    os::unix::process::ExitStatusExt,
    process::{Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

use linchpin_local::{Cluster, ClusterOptions, Component, kubernetes};

use crate::{
    node::skipped,
    support::{SHARED, kubectl, kubectl_with, text, traces},
};

const CLIENT: &str = r"
apiVersion: v1
kind: Service
metadata: {name: db}
spec:
  selector: {app: db}
  ports: [{name: web, port: 80, targetPort: 8080}, {name: other, port: 81, targetPort: 8081}]
---
apiVersion: v1
kind: Service
metadata: {name: headless}
spec: {clusterIP: None, selector: {app: db}}
---
apiVersion: v1
kind: Service
metadata: {name: alias}
spec: {type: ExternalName, externalName: db.default.svc.cluster.local}
---
apiVersion: v1
kind: Pod
metadata: {name: client}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: main, image: localhost/workload:1, imagePullPolicy: Never, args: [stay]}]
";

const DATABASE: &str = r#"
apiVersion: v1
kind: Pod
metadata: {name: db, labels: {app: db}}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: localhost/workload:1
    imagePullPolicy: Never
    args: [serve, "8080"]
    readinessProbe: {httpGet: {path: /healthz, port: 8080}, periodSeconds: 1}
"#;

/// What the pod `client` gets from an address.
fn get(cluster: &Cluster, url: &str) -> Output {
    cluster.kubectl().args(["exec", "client", "--", "/workload", "get", url]).output().unwrap()
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_mins(1), "{what}");
        thread::sleep(Duration::from_millis(100));
    }
}

fn said(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

#[test]
fn services_have_addresses_and_names_in_pods_and_for_programs_in_the_network() {
    if skipped() {
        return;
    }
    let cluster = Cluster::start(&ClusterOptions { node: true, ..ClusterOptions::default() }).unwrap();
    kubectl_with(&cluster, &["apply", "-f", "-"], CLIENT);
    kubectl(&cluster, &["wait", "--for=condition=Ready", "pod/client", "--timeout=60s"]);
    let early = get(&cluster, "http://db/healthz");
    assert!(text(&early.stderr).contains("connection refused"), "{}", text(&early.stderr));
    let unknown = get(&cluster, "http://nowhere/");
    assert!(text(&unknown.stderr).contains("no such host"), "{}", text(&unknown.stderr));
    kubectl_with(&cluster, &["apply", "-f", "-"], DATABASE);
    kubectl(&cluster, &["wait", "--for=condition=Ready", "pod/db", "--timeout=60s"]);
    for url in [
        "http://db/healthz",
        "http://db.default/",
        "http://db.default.svc.cluster.local:80/",
        "http://headless:8080/",
        "http://alias/",
    ] {
        until(url, || get(&cluster, url).status.success());
    }
    let other = get(&cluster, "http://db:81/");
    assert!(!other.status.success(), "nobody listens behind that port");

    let names = said(cluster.command("cat").unwrap().arg("/etc/resolv.conf"));
    assert!(names.contains("nameserver 10.96.0.10"), "{names}");
    let links = said(cluster.command("ip").unwrap().args(["-4", "addr"]));
    assert!(links.contains("10.99.0.1/24"), "{links}");
    let kubectl_inside = kubernetes().unwrap().join("kubectl");
    let pods = said(cluster.command(kubectl_inside).unwrap().args(["get", "pods", "--output=name"]));
    assert_eq!(pods, "pod/client\npod/db\n");

    cluster.restart(Component::Services).unwrap();
    until("the Service after a restart", || get(&cluster, "http://db/").status.success());
    kubectl(&cluster, &["delete", "pod", "db"]);
    until("a refusal when the endpoint is gone", || {
        text(&get(&cluster, "http://db/").stderr).contains("connection refused")
    });
    let mut echo =
        cluster.command("cat").unwrap().stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    echo.stdin.as_mut().unwrap().write_all(b"!").unwrap();
    echo.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
    let dir = cluster.dir().to_owned();
    cluster.stop().unwrap();
    assert!(echo.wait().unwrap().signal().is_some(), "what runs in the network ends with the cluster");
    assert_eq!(traces(&dir), Vec::<String>::new());
}

#[test]
fn without_a_node_a_program_gets_the_kubeconfig() {
    let kubeconfig = said(SHARED.command("sh").unwrap().args(["-c", "echo $KUBECONFIG"]));
    assert_eq!(kubeconfig.trim(), SHARED.kubeconfig().display().to_string());
}
