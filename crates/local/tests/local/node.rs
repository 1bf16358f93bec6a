//! Real nodes with real containers. Skipped, with the reason, where they cannot run.

use std::{
    fs,
    io::Write,
    thread,
    time::{Duration, Instant},
};

use linchpin_local::{Cluster, ClusterOptions, Component, check_node_support, is_node_promised};

use crate::support::{assert_gone, kubectl, kubectl_with, traces};

const POD: &str = r#"
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  dnsPolicy: Default
  terminationGracePeriodSeconds: 5
  securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}
  volumes: [{name: shared, emptyDir: {}}]
  initContainers:
  - name: first
    image: localhost/workload:1
    imagePullPolicy: Never
    args: [write, /shared/file, written before]
    volumeMounts: [{name: shared, mountPath: /shared}]
  containers:
  - name: main
    image: localhost/workload:1
    imagePullPolicy: Never
    args: [serve, "8080"]
    readinessProbe: {httpGet: {path: /healthz, port: 8080}, periodSeconds: 1}
    volumeMounts: [{name: shared, mountPath: /shared}]
"#;

/// Paths that a kubelet or containerd would use on the machine itself.
const FIXED: [&str; 4] = ["/var/lib/kubelet", "/var/lib/cni", "/run/containerd", "/var/log/containers"];

pub(crate) fn skipped() -> bool {
    let Err(reason) = check_node_support() else { return false };
    assert!(!is_node_promised(), "a node is promised here, and there can be none: {reason}");
    // Not through the print macros: a skipped test must be seen also when it passes.
    let _ = writeln!(std::io::stderr(), "SKIPPED: a test of the real node: {reason}");
    true
}

fn with_node() -> Cluster {
    Cluster::start(&ClusterOptions { node: true, ..ClusterOptions::default() }).unwrap()
}

fn run_pod(cluster: &Cluster) -> Duration {
    let begun = Instant::now();
    kubectl_with(cluster, &["apply", "-f", "-"], POD);
    kubectl(cluster, &["wait", "--for=condition=Ready", "pod/web", "--timeout=60s"]);
    begun.elapsed()
}

#[test]
fn two_real_nodes_run_pods_side_by_side_and_leave_nothing() {
    if skipped() {
        return;
    }
    let existed = FIXED.map(|path| fs::exists(path).unwrap());
    let (one, other) = thread::scope(|scope| {
        let other = scope.spawn(with_node);
        (with_node(), other.join().unwrap())
    });
    for cluster in [&one, &other] {
        let took = run_pod(cluster);
        assert!(took < Duration::from_secs(15), "{took:?}");
        assert_eq!(kubectl(cluster, &["logs", "web", "-c", "main"]), "serving on port 8080\n");
        let exec = |arguments: &[&str]| {
            kubectl(cluster, &[&["exec", "web", "-c", "main", "--", "/workload"], arguments].concat())
        };
        assert_eq!(exec(&["cat", "/shared/file"]), "written before\n");
        exec(&["append", "/shared/file", "and once more"]);
        assert_eq!(exec(&["cat", "/shared/file"]), "written before\nand once more\n");
    }
    // Nothing of a node is to be seen in the mounts and fixed paths of the machine.
    let mounts = fs::read_to_string("/proc/mounts").unwrap();
    assert!(!mounts.contains(&one.dir().display().to_string()), "{mounts}");

    let gone = one.dir().to_owned();
    one.stop().unwrap();
    assert_eq!(traces(&gone), Vec::<String>::new());
    kubectl(
        &other,
        &["exec", "web", "-c", "main", "--", "/workload", "get", "http://127.0.0.1:8080/healthz"],
    );
    let gone = other.dir().to_owned();
    other.stop().unwrap();
    assert_eq!(traces(&gone), Vec::<String>::new());
    assert_eq!(FIXED.map(|path| fs::exists(path).unwrap()), existed);
}

#[test]
fn a_node_survives_the_death_of_its_parts_and_goes_with_the_death_of_any() {
    if skipped() {
        return;
    }
    let cluster = with_node();
    run_pod(&cluster);
    for component in [Component::Kubelet, Component::Containerd, Component::Forwarder] {
        cluster.restart(component).unwrap();
    }
    cluster.wait_ready().unwrap();
    kubectl(&cluster, &["exec", "web", "-c", "main", "--", "/workload", "cat", "/shared/file"]);
    // With the node's first process go its containers, whatever else lives on.
    cluster.kill(Component::Node).unwrap();
    let begun = Instant::now();
    while cluster.pid(Component::Kubelet).is_some() || cluster.pid(Component::Containerd).is_some() {
        assert!(begun.elapsed() < Duration::from_secs(10), "kubelet or containerd outlived the node");
    }
    let dir = cluster.dir().to_owned();
    cluster.kill(Component::ApiServer).unwrap();
    drop(cluster);
    assert_gone(&dir, Duration::ZERO);
}
