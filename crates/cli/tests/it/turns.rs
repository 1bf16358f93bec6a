//! Nothing that a user writes decides how long a turn takes, and a turn that takes long all the same costs neither the
//! Lease nor the truth of what health says.

use crate::{bare, eventually, history::History, operator::get, seconds, shared, world::World};
use linchpin_cluster::lease::Timing;
use linchpin_operator::{
    run,
    settings::{BindAddress, Doors, LeaderElection, Namespaces, ProbeSettings, Settings, SourceSettings},
};
use serde_json::{Map, Value, json};
use std::{
    net::{SocketAddr, TcpListener},
    num::NonZeroUsize,
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

/// An address that nobody listens on.
fn free() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

#[test]
fn work_that_computes_without_end_costs_neither_the_lease_nor_the_truth_of_health() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let (health, metrics) = (free(), free());
    let timing = Timing::new(seconds(4), Duration::from_millis(2500), Duration::from_millis(500)).unwrap();
    let settings = Settings {
        kubeconfig: Some(shared().kubeconfig()),
        context: None,
        leader_election: Some(LeaderElection {
            name: "computing".into(),
            namespace: Some("default".into()),
            identity: Some("computing".into()),
            timing,
        }),
        metrics_address: BindAddress::At(metrics),
        health_address: BindAddress::At(health),
        watch_namespaces: Namespaces::All,
        doors: Doors::default(),
        tenant_role: String::new(),
        concurrency: NonZeroUsize::MIN,
        default_service_account: "default".into(),
        allow_system_namespaces: false,
        allow_loopback_clusters: false,
        probes: ProbeSettings::default(),
        sources: SourceSettings::default(),
        boot_namespaces: serde_json::json!({}),
        webhooks: None,
        commit: None,
    };
    let (begun, has_begun) = mpsc::channel();
    let (go_on, wait) = mpsc::channel::<()>();
    let process = thread::spawn(move || {
        run::run(settings, move |context| async move {
            let pulse = context.health.pulse("controller", seconds(2));
            let mut leadership = context.leadership.clone();
            while linchpin_cluster::lease::Fence::current(&leadership).is_none() {
                leadership.changed().await.unwrap();
            }
            // Not only its own thread: every thread that it can get at.
            for _ in 0..8 {
                tokio::spawn(async { thread::sleep(seconds(15)) });
            }
            let fence = linchpin_cluster::lease::Fence::current(&leadership).unwrap();
            begun.send(()).unwrap();
            wait.recv().unwrap();
            pulse.beat();
            begun.send(()).unwrap();
            wait.recv().unwrap();
            fence.check().map_err(|error| error.to_string())
        })
    });
    has_begun.recv().unwrap();
    let history = History::of(&shared().kubeconfig(), "computing");
    eventually("the lease is watched", seconds(10), || !history.entries().is_empty());
    let held = history.entries().pop().unwrap();

    let alive = || get(health, "/livez").expect("health answers");
    eventually("the late pulse is told", seconds(10), || {
        let (status, text) = alive();
        status == 503 && text.contains("[-] controller: stuck")
    });
    // Three times as long as the lease lasts unless it is renewed.
    let renewed = || history.entries().len() > 24;
    eventually("the lease is renewed all the time", seconds(15), || {
        assert!(alive().1.contains("[-] controller: stuck"), "{}", alive().1);
        let (_, metrics) = get(metrics, "/metrics").expect("metrics answer");
        assert!(metrics.contains("linchpin_leader 1"), "{metrics}");
        renewed()
    });
    let all = history.entries();
    assert!(all.iter().all(|entry| entry.holder == held.holder && entry.transitions == held.transitions));

    go_on.send(()).unwrap();
    has_begun.recv().unwrap();
    assert_eq!(alive().0, 200, "it turned again: {}", alive().1);
    go_on.send(()).unwrap();
    process.join().unwrap().expect("the term is still the one it began in");
}

#[test]
fn a_controller_that_hangs_for_a_minute_loses_neither_the_lease_nor_the_truth_of_health() {
    let world = World::start(&bare(), &["--lease-duration=6s", "--renew-deadline=4s", "--retry-period=1s"]);
    let shop = world.scenario("shop");
    shop.config_map("before", "");
    let term = world.operator.term().expect("it leads");
    let frozen = world.operator.freeze("controller");
    let begun = Instant::now();
    shop.resource_dependency(
        "later",
        "{actions: [{name: make, type: create, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: made}}}]}",
    );
    // Health calls it stuck after 30 s; the whole minute is for `make test-all`.
    let hangs = seconds(if std::env::var_os("LINCHPIN_LONG").is_some() { 60 } else { 35 });
    while begun.elapsed() < hangs {
        assert_eq!(world.operator.term(), Some(term), "metrics answer, and the lease is kept");
        let (status, text) = world.operator.page("/livez");
        let stuck = text.contains("[-] controller: stuck");
        assert_eq!(status == 503, stuck, "health tells how it is: {text}");
        thread::sleep(Duration::from_millis(200));
    }
    let (status, text) = world.operator.page("/livez");
    assert!(status == 503 && text.contains("[-] controller: stuck"), "{text}");
    assert!(!shop.has("made"), "nobody else acted");
    frozen.go_on();
    shop.completed("later");
    assert!(world.operator.is_live(), "{:?}", world.operator.page("/livez"));
    assert_eq!(world.operator.term(), Some(term), "the lease is kept");
}

/// How many objects the dear expression is evaluated for.
const OBJECTS: usize = 1_000;

#[test]
fn a_dear_expression_over_a_thousand_objects_keeps_nobody_else_waiting() {
    let world = World::start(&bare(), &["--lease-duration=6s", "--renew-deadline=4s", "--retry-period=1s"]);
    let (noisy, quiet) = (world.scenario("noisy"), world.scenario("quiet"));
    let keys: Map<String, Value> = (0..50).map(|number| (format!("key-{number}"), json!("value"))).collect();
    thread::scope(|scope| {
        for hand in 0..4 {
            let (noisy, keys) = (&noisy, &keys);
            scope.spawn(move || {
                for number in (hand..OBJECTS).step_by(4) {
                    let metadata = json!({"name": format!("many-{number}"), "namespace": "noisy", "labels": {"many": "yes"}});
                    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": keys});
                    noisy.api.apply(&object).unwrap();
                }
            });
        }
    });
    let term = world.operator.term().expect("it leads");
    let cel = "self.data.all(a, self.data.all(b, a != '' && b != '' && self.data[a] == self.data[b]))";
    noisy.resource_dependency(
        "dear",
        &format!(
            "{{dependencies: [{{name: many, ref: {{apiVersion: v1, kind: ConfigMap}}, selector: {{matchLabels: {{many: 'yes'}}}}, \
             expect: {{all: true}}, cel: \"{cel}\"}}], actions: [{{name: make, type: create, \
             resource: {{apiVersion: v1, kind: ConfigMap, metadata: {{name: done}}}}}}]}}"
        ),
    );
    for hop in 0..5 {
        quiet.resource_dependency(
            &format!("hop-{hop}"),
            &format!(
                "{{dependencies: [{{resource: configmap/gate-{hop}}}], actions: [{{name: make, type: create, \
                 resource: {{apiVersion: v1, kind: ConfigMap, metadata: {{name: made-{hop}}}}}}}]}}"
            ),
        );
        quiet.blocked(&format!("hop-{hop}"), "NotFound");
        quiet.config_map(&format!("gate-{hop}"), "");
        quiet.completed(&format!("hop-{hop}"));
        assert!(world.operator.is_live(), "{:?}", world.operator.page("/livez"));
        assert_eq!(world.operator.term(), Some(term), "the lease is kept");
    }
    let waiting = noisy.blocked("dear", "Evaluating");
    assert!(!noisy.has("done"), "{:#}", waiting["status"]);
    noisy.completed("dear");
    let done = noisy.audit.first_write("configmaps", "noisy", "done");
    for hop in 0..5 {
        let made = quiet.audit.first_write("configmaps", "quiet", &format!("made-{hop}"));
        linchpin_testkit::audit::assert_finished_before(&made, &done);
    }
    assert_eq!(world.operator.term(), Some(term), "the lease is kept");
}
