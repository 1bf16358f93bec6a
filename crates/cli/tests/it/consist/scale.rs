//! Many employers: at rest nothing is written and the provider is looked at each `resync` alone; one pod's change costs a
//! bounded number of writes; how soon a change reaches the provider, and how long the API server waits for our webhooks.
//!
//! It takes minutes: `make test-all` runs it, elsewhere it says that it was skipped. What it prints is in docs/benchmarks.md.

use std::{
    env,
    io::Write as _,
    net::TcpListener,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use linchpin_testkit::Scenario;
use serde_json::{Value, json};

use super::{CONTROL, Provider, Shop, server::Moody};
use crate::{bare, eventually, seconds};

const PODS: usize = 10;
/// Threads that make objects at a time.
const HANDS: usize = 8;
/// Changes whose way to the provider is measured.
const CHANGES: usize = 100;

fn employers() -> Option<usize> {
    if env::var("LINCHPIN_LONG").is_err() {
        // Not through the print macros: a skipped test must be seen also when it passes.
        let _ = writeln!(std::io::stderr(), "SKIPPED: many employers: make test-all runs it");
        return None;
    }
    Some(env::var("LINCHPIN_EMPLOYERS").map_or(500, |text| text.parse().expect("a number")))
}

fn status(scenario: &Scenario, pod: &str, ip: &str, ready: bool) {
    let path = format!("/api/v1/namespaces/{}/pods/{pod}/status", scenario.namespace);
    let body = json!({"status": {"phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}],
        "conditions": [{"type": "Ready", "status": if ready { "True" } else { "False" }}]}});
    let form = "application/strategic-merge-patch+json";
    scenario.api.request(&http::Method::PATCH, &path, form, Some(&body)).unwrap();
}

fn make(scenario: &Scenario, number: usize) {
    let app = format!("s{number}");
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": app, "labels": {CONTROL: "true"},
        "namespace": scenario.namespace}, "spec": {"selector": {"app": app}, "clusterIP": "None", "ports": [{"port": 80}]}});
    scenario.api.apply(&service).unwrap();
    for pod in 0..PODS {
        let name = format!("{app}-{pod}");
        let body = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": scenario.namespace,
            "labels": {"app": app, CONTROL: "true"}}, "spec": {"nodeName": "node-1", "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "app", "image": "app"}]}});
        scenario.api.apply(&body).unwrap();
        status(scenario, &name, &format!("10.{}.{}.{}", number / 250, number % 250, pod + 1), true);
    }
}

/// The smallest bound of a histogram under which 99 of 100 are.
fn p99(metrics: &str, name: &str, label: &str) -> Option<f64> {
    let lines = metrics.lines().filter(|line| line.starts_with(name) && line.contains(label));
    let mut buckets: Vec<(f64, f64)> = lines
        .filter_map(|line| {
            let bound = line.split("le=\"").nth(1)?.split('"').next()?;
            let bound = if bound == "+Inf" { f64::INFINITY } else { bound.parse().ok()? };
            Some((bound, line.rsplit(' ').next()?.parse().ok()?))
        })
        .collect();
    buckets.sort_by(|one, other| one.0.total_cmp(&other.0));
    let all = buckets.last()?.1;
    buckets.into_iter().find(|(_, below)| *below >= all * 0.99).map(|(bound, _)| bound)
}

fn at(sorted: &[Duration], percent: usize) -> Duration {
    sorted[(sorted.len() * percent / 100).min(sorted.len() - 1)]
}

#[test]
fn many_employers_at_rest_cost_nothing_and_one_pods_change_little() {
    let Some(employers) = employers() else { return };
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (bind, url) =
        (format!("--webhook-bind-address={address}"), format!("--webhook-url=https://{address}"));
    let mut front = None;
    let demo = |provider: &Provider, _: &Path| {
        let moody = Moody::before(&provider.address);
        let url = format!("http://{}", moody.address);
        front = Some(moody);
        vec!["demo".to_owned(), "--provider".to_owned(), url]
    };
    let shop = Shop::open_with(&bare(), &["crowd"], &[&bind, &url], demo);
    let front = front.unwrap();
    let scenario = shop.scenario("crowd");
    let begun = Instant::now();
    thread::scope(|scope| {
        for hand in 0..HANDS {
            let scenario = &scenario;
            scope.spawn(move || (hand..employers).step_by(HANDS).for_each(|number| make(scenario, number)));
        }
    });
    let all = format!("linchpin_consist_employers{{adapter=\"demo\",ready=\"true\"}} {employers}\n");
    eventually("all are served", seconds(300), || shop.metrics().contains(&all));
    println!(
        "{employers} employers with {PODS} pods each: made and served after {:.0} s",
        begun.elapsed().as_secs_f64()
    );

    // At rest.
    thread::sleep(seconds(10));
    let (writes, asked, rest) = (Shop::writes(&scenario).len(), front.asked(), seconds(60));
    front.changes();
    thread::sleep(rest);
    let (wrote, looks, changes) =
        (Shop::writes(&scenario).len() - writes, front.asked() - asked, front.changes().len());
    println!(
        "at rest, {} s: {wrote} writes, {changes} changes, {looks} requests to the provider",
        rest.as_secs()
    );
    assert_eq!((wrote, changes), (0, 0), "{:?}", &Shop::writes(&scenario)[writes..]);
    // Two lists for each employer and `resync`, which is a minute; some fall into both ends of the time.
    assert!(looks <= employers * 5, "{looks} requests");

    // One pod after another changes.
    let writes = Shop::writes(&scenario).len();
    let (mut first, mut call) = (Vec::new(), Vec::new());
    for number in 0..CHANGES {
        let (app, ready) = (number * 7 % employers, number % 2 == 1);
        let app = if ready { (number - 1) * 7 % employers } else { app };
        let ip = format!("10.{}.{}.1", app / 250, app % 250);
        front.changes();
        let from = Instant::now();
        status(&scenario, &format!("s{app}-0"), &ip, ready);
        let scope = format!("/Service/crowd/s{app}");
        eventually("the provider is told", seconds(20), || front.has_changed(&scope));
        let (looked, called) = front.times(&scope, from);
        first.extend(looked);
        call.extend(called);
        thread::sleep(Duration::from_millis(50));
    }
    thread::sleep(seconds(5));
    let made = Shop::writes(&scenario).split_off(writes);
    first.sort();
    call.sort();
    println!(
        "{CHANGES} changes of one pod each: {} writes; first request to the provider after p50 {:?}, p99 {:?}; call after p50 {:?}, p99 {:?}",
        made.len(),
        at(&first, 50),
        at(&first, 99),
        at(&call, 50),
        at(&call, 99)
    );
    assert!(made.len() <= 8 * CHANGES, "{made:?}");
    let metrics = shop.cluster.kubectl().args(["get", "--raw", "/metrics"]).output().unwrap();
    let metrics = String::from_utf8(metrics.stdout).unwrap();
    let name = "apiserver_admission_webhook_admission_duration_seconds_bucket";
    let waited = p99(&metrics, name, "mpod-v1.consist.linchpin.dev");
    println!(
        "webhook at creation, as the API server measured {} of them: p99 ≤ {waited:?} s",
        employers * PODS
    );
    let _: Value = shop.provider.state();
}
