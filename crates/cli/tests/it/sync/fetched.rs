//! Sources that are fetched, through a real operator: what is good is applied and followed; what is hostile is told, applies
//! nothing, keeps what runs, and recovers.

use crate::world::World;
use linchpin_local::Options;
use linchpin_testkit::{Scenario, condition};
use serde_json::{Value, json};
use std::{
    io::{BufRead, BufReader, Write},
    net::TcpListener,
    sync::{Arc, Mutex},
    thread,
};

/// What the server answers with now: status and body.
type Answer = Arc<Mutex<(u16, Vec<u8>)>>;

/// A web server on loopback that answers everything alike, as long as the test lives.
fn serve() -> (u16, Answer) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let answer: Answer = Arc::new(Mutex::new((404, Vec::new())));
    let shared = Arc::clone(&answer);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let (status, body) = shared.lock().unwrap().clone();
            thread::spawn(move || {
                let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
                while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
                let head = format!(
                    "HTTP/1.1 {status} X\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                    body.len()
                );
                let _ = stream.write_all(head.as_bytes());
                let _ = stream.write_all(&body);
            });
        }
    });
    (port, answer)
}

fn map(value: &str) -> Vec<u8> {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "fetched"}, "data": {"value": value}})
        .to_string()
        .into_bytes()
}

/// Asks for a look, and waits until the Sync says so of its source.
fn told(scenario: &Scenario, order: &str, reason: &str) -> Value {
    scenario.annotate("Sync", "app", "linchpin.dev/requested-at", order);
    scenario.until(&format!("tells {reason}"), "Sync", "app", |object| {
        condition(object, "SourceReady")["reason"] == reason
    })
}

#[test]
fn what_is_hostile_is_told_applies_nothing_keeps_what_runs_and_recovers() {
    let (port, answer) = serve();
    let hosts = format!("--source-hosts=http://127.0.0.1:{port}");
    let world = World::start(&Options::default(), &[&hosts, "--probe-allow=127.0.0.0/8"]);
    let scenario = world.scenario("sync-fetched");
    let url = format!("http://127.0.0.1:{port}/app.yaml");
    scenario.sync("app", &json!({"source": {"http": {"url": url}, "interval": "10s"}}).to_string());
    let missing = scenario.until("is not found", "Sync", "app", |object| {
        condition(object, "SourceReady")["reason"] == "SourceNotFound"
    });
    assert_eq!(missing["status"]["phase"], "Waiting");
    *answer.lock().unwrap() = (200, map("1"));
    scenario.annotate("Sync", "app", "linchpin.dev/requested-at", "1");
    let done = scenario.synced("app");
    assert!(done["status"]["observedRevision"].as_str().unwrap().starts_with("sha256:"));
    assert!(done["status"]["source"]["size"].is_i64() && done["status"]["source"]["fetchedAt"].is_string());
    *answer.lock().unwrap() = (401, b"hunter2".to_vec());
    let kept = told(&scenario, "2", "Unauthorized");
    assert_eq!(condition(&kept, "Ready")["status"], "True", "what was read stays the desired state");
    assert!(!kept["status"].to_string().contains("hunter2"));
    *answer.lock().unwrap() = (200, b"a: [".to_vec());
    let refused = told(&scenario, "3", "ManifestInvalid");
    assert_eq!(condition(&refused, "Stalled")["status"], "True");
    *answer.lock().unwrap() = (200, vec![0x1f, 0x8b, 8, 0, 1, 2, 3]);
    told(&scenario, "4", "ArchiveInvalid");
    *answer.lock().unwrap() = (200, Vec::new());
    told(&scenario, "5", "SourceEmpty");
    assert_eq!(scenario.data("fetched", "value").as_deref(), Some("1"), "nothing was pruned or changed");
    *answer.lock().unwrap() = (200, map("2"));
    scenario.annotate("Sync", "app", "linchpin.dev/requested-at", "6");
    scenario.until("recovers", "ConfigMap", "fetched", |object| object["data"]["value"] == "2");
    scenario.synced("app");
    scenario.sync("other", r#"{"source": {"http": {"url": "https://elsewhere.example/x"}}}"#);
    let other = scenario.until("is not allowed", "Sync", "other", |object| {
        condition(object, "SourceReady")["reason"] == "HostNotAllowed"
    });
    assert!(other["status"]["message"].as_str().unwrap().contains("--source-hosts"));
}
