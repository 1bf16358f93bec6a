//! Noisy neighbours: what one namespace does, or what a cluster does that it names, keeps no other namespace waiting.

use crate::{
    bare, eventually, seconds, shared,
    world::{World, scenario},
};
use linchpin_testkit::{Api, Scenario, audit::Event};
use serde_json::{Value, json};
use std::{
    fs, io,
    net::{Shutdown, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

/// How many effects hang: more than may be under way.
const HANGING: usize = 20;

/// A way to the API server of the other cluster that can be frozen: bytes are taken and nothing comes out any more.
struct Frozen {
    port: u16,
    is_frozen: Arc<AtomicBool>,
}

impl Frozen {
    fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let is_frozen = Arc::new(AtomicBool::new(false));
        let server = shared().server().trim_start_matches("https://").to_owned();
        let frozen = Arc::clone(&is_frozen);
        thread::spawn(move || {
            for near in listener.incoming().flatten() {
                let Ok(far) = TcpStream::connect(&server) else { continue };
                for (from, to) in [(&near, &far), (&far, &near)] {
                    let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    let frozen = Arc::clone(&frozen);
                    thread::spawn(move || carry(from, to, &frozen));
                }
            }
        });
        Self { port, is_frozen }
    }

    fn kubeconfig(&self) -> String {
        let here = format!("https://127.0.0.1:{}", self.port);
        fs::read_to_string(shared().kubeconfig()).unwrap().replace(&shared().server(), &here)
    }

    fn set(&self, frozen: bool) {
        self.is_frozen.store(frozen, Ordering::SeqCst);
    }
}

/// Carries bytes one way, and keeps them while the way is frozen.
fn carry(mut from: TcpStream, mut to: TcpStream, frozen: &AtomicBool) {
    let mut bytes = [0; 16 << 10];
    while let Ok(count @ 1..) = io::Read::read(&mut from, &mut bytes) {
        while frozen.load(Ordering::SeqCst) {
            thread::sleep(Duration::from_millis(20));
        }
        if io::Write::write_all(&mut to, &bytes[..count]).is_err() {
            break;
        }
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}

fn state(object: &Value) -> &str {
    object["status"]["actions"][0]["state"].as_str().unwrap_or_default()
}

#[test]
fn effects_that_hang_in_another_cluster_keep_no_other_namespace_waiting() {
    let slow = scenario("neighbour-slow");
    let quick = scenario("neighbour-quick");
    let other = Api::connect(&shared().kubeconfig());
    other
        .apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "neighbour-slow"}}))
        .unwrap();
    let way = Frozen::open();
    let metadata = json!({"name": "edge", "namespace": "neighbour-slow"});
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"value": way.kubeconfig()}});
    slow.apply(&secret.to_string());
    let waits = |target: &str, action: &str| {
        format!(
            "{{dependencies: [{{name: gate, resource: configmap/gate}}], actions: [{{name: {target}, {action}}}]}}"
        )
    };
    let beyond = "cluster: {kubeconfigSecretRef: {name: edge, key: value}}";
    for number in 0..HANGING {
        let create = format!(
            "type: create, {beyond}, resource: {{apiVersion: v1, kind: ConfigMap, metadata: {{name: a-{number}}}}}"
        );
        slow.resource_dependency(&format!("create-{number}"), &waits("create", &create));
        let exec = format!(
            "type: exec, {beyond}, exec: {{target: {{kind: Pod, name: none}}, command: [a], timeout: 1h}}"
        );
        slow.resource_dependency(&format!("exec-{number}"), &waits("exec", &exec));
    }
    let first = "type: create, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: first}}";
    quick.resource_dependency("first", &waits("first", first));
    let second = "type: create, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: second}}";
    quick
        .resource_dependency("second", &waits("second", second).replace("configmap/gate", "configmap/first"));
    for number in 0..HANGING {
        slow.blocked(&format!("create-{number}"), "NotFound");
        slow.blocked(&format!("exec-{number}"), "NotFound");
    }
    quick.blocked("first", "NotFound");
    way.set(true);
    slow.config_map("gate", "");
    for number in 0..HANGING {
        // Those that have a place show it; what must not happen twice is written down before it is tried.
        let name = format!("exec-{number}");
        slow.until("is tried", "ResourceDependency", &name, |object| object["status"]["phase"] == "Running");
    }
    quick.config_map("gate", "");
    quick.completed("second");
    for number in 0..HANGING {
        let name = format!("create-{number}");
        slow.until("hangs, so it had its place", "ResourceDependency", &name, |seen| {
            state(seen) == "Running"
        });
    }
    way.set(false);
    slow.completed("create-0");
}

#[test]
fn a_namespace_whose_clusters_all_hang_leaves_places_for_another_namespaces_cluster() {
    // So many effects of one namespace at a time, and twice as many in all: fewer than hang.
    let flags = ["--leader-elect=false", "--allow-loopback-clusters", "--concurrency=4"];
    let world = World::start(&bare(), &flags);
    let slow = world.scenario("neighbour-stuck");
    let quick = world.scenario("neighbour-free");
    let other = Api::connect(&shared().kubeconfig());
    for name in ["neighbour-stuck", "neighbour-free"] {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        other.apply(&namespace).unwrap();
    }
    let way = Frozen::open();
    let secret = |scenario: &Scenario, name: &str, kubeconfig: &str| {
        let metadata = json!({"name": name, "namespace": scenario.namespace});
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"value": kubeconfig}});
        scenario.apply(&secret.to_string());
    };
    let creates = |scenario: &Scenario, name: &str, edge: &str| {
        let action = format!(
            "type: create, cluster: {{kubeconfigSecretRef: {{name: {edge}, key: value}}}}, \
             resource: {{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}}}}}"
        );
        let gate = "dependencies: [{name: gate, resource: configmap/gate}]";
        scenario.resource_dependency(name, &format!("{{{gate}, actions: [{{name: make, {action}}}]}}"));
        scenario.blocked(name, "NotFound");
    };
    // Each is a cluster of its own, so that none has more than its share as a cluster.
    for number in 0..10 {
        secret(&slow, &format!("edge-{number}"), &way.kubeconfig());
        creates(&slow, &format!("stuck-{number}"), &format!("edge-{number}"));
    }
    secret(&quick, "edge", &fs::read_to_string(shared().kubeconfig()).unwrap());
    creates(&quick, "free", "edge");
    way.set(true);
    slow.config_map("gate", "");
    for number in 0..10 {
        let name = format!("stuck-{number}");
        slow.until("is tried", "ResourceDependency", &name, |seen| state(seen) == "Running");
    }
    quick.config_map("gate", "");
    quick.completed("free");
    for number in 0..10 {
        let object = slow.get("ResourceDependency", &format!("stuck-{number}")).unwrap();
        let hangs = state(&object) == "Running" && object["status"]["actions"][0]["attempts"] == 1;
        assert!(hangs, "a place became free by time, not by share: {:#}", object["status"]);
    }
    way.set(false);
    slow.completed("stuck-0");
}

/// How often a ConfigMap was looked for afresh as the namespace's account.
fn looks(scenario: &Scenario, name: &str) -> usize {
    let is_one = |event: &Event| {
        event.acting_as == Some(scenario.actor())
            && event.resource == "configmaps"
            && event.verb == "watch"
            && event.stage == "ResponseStarted"
            && event.uri.contains(&format!("metadata.name%3D{name}&"))
    };
    scenario.audit.events().iter().filter(|event| is_one(event)).count()
}

#[test]
fn annotations_that_are_no_orders_read_nothing_again_and_orders_do_so_now_and_then() {
    let scenario = scenario("neighbour-annotations");
    scenario.resource_dependency("rd", "dependencies: [{name: a, resource: configmap/never-there}]");
    scenario.blocked("rd", "NotFound");
    scenario.resource_dependency("other", "dependencies: [{name: a, resource: configmap/not-there-either}]");
    scenario.blocked("other", "NotFound");
    let before = looks(&scenario, "never-there");
    assert!(before > 0, "{:#?}", scenario.audit.events());
    for number in 0..20 {
        scenario.annotate("ResourceDependency", "rd", "linchpin.dev/nothing", &number.to_string());
    }
    // What comes after them is seen after them: another object's order is followed, and nothing was looked at for this one.
    let others = looks(&scenario, "not-there-either");
    scenario.annotate("ResourceDependency", "other", "linchpin.dev/requested-at", "first");
    eventually("the other's order is followed", seconds(20), || {
        looks(&scenario, "not-there-either") > others
    });
    assert_eq!(looks(&scenario, "never-there"), before, "an annotation that is no order");
    scenario.annotate("ResourceDependency", "rd", "linchpin.dev/requested-at", "first");
    eventually("the order is followed", seconds(5), || looks(&scenario, "never-there") > before);
    assert_eq!(looks(&scenario, "never-there"), before + 1);
    for number in 0..20 {
        scenario.annotate("ResourceDependency", "rd", "linchpin.dev/requested-at", &number.to_string());
    }
    eventually("the last order is followed too", seconds(10), || {
        looks(&scenario, "never-there") > before + 1
    });
    assert!(looks(&scenario, "never-there") < before + 20, "not one look for each");
}
