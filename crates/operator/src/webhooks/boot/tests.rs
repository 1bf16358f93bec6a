//! The webhooks with an API server that answers as the test says, or not at all.

use std::{
    io::{BufRead, BufReader, Write as _},
    net::{TcpListener, TcpStream},
    thread,
};

use linchpin_cluster::transport::{Transport, TransportOptions};
use serde_json::json;

use super::*;

/// An API server with one BootDependency, which lists it or hangs.
struct Server {
    asked: Arc<Mutex<Vec<String>>>,
    url: String,
}

impl Server {
    fn start(lists: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let recorded = Arc::clone(&asked);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let recorded = Arc::clone(&recorded);
                thread::spawn(move || answer(stream, lists, &recorded));
            }
        });
        Self { asked, url }
    }

    fn webhooks(&self, memory: BootMemory, served: Namespaces) -> BootWebhooks {
        let config = kube::Config::new(self.url.parse().unwrap());
        let transport = Transport::new(&config, &TransportOptions::default()).unwrap();
        let settings = WebhookSettings {
            address: "127.0.0.1:1".parse().unwrap(),
            reached: WebhookAddress::service("linchpin-system/linchpin-webhook").unwrap(),
            config_name: "linchpin".to_owned(),
            cert_dir: None,
            namespaces: label_selector::parse("linchpin.dev/boot=enabled").unwrap(),
            wait_image: "wait:1".to_owned(),
            boot_after: None,
        };
        let (account, domain) = ("default".to_owned(), "cluster.local".to_owned());
        let own_requests = OperatorRequests::new(&transport);
        BootWebhooks::new(
            own_requests,
            memory,
            Arc::new(settings),
            account,
            domain,
            Tallies::default(),
            served,
        )
    }

    fn asked(&self, word: &str) -> usize {
        self.asked.lock().unwrap().iter().filter(|path| path.contains(word)).count()
    }
}

/// Answers the requests of one connection.
fn answer(stream: TcpStream, lists: bool, recorded: &Mutex<Vec<String>>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut stream = stream;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or_default() == 0 {
            return;
        }
        let path = line.split_whitespace().nth(1).unwrap_or_default().to_owned();
        while reader.read_line(&mut line).unwrap_or_default() > 2 {}
        recorded.lock().unwrap().push(path.clone());
        let body = match path.split('?').next().unwrap_or_default() {
            "/api/v1/namespaces/shop" => {
                json!({"metadata": {"name": "shop", "labels": {"linchpin.dev/boot": "enabled"}}})
            }
            "/api/v1/namespaces/plain" => json!({"metadata": {"name": "plain"}}),
            path if path.ends_with("/bootdependencies") && lists => {
                // So that another one comes meanwhile.
                thread::sleep(Duration::from_millis(100));
                json!({"items": [{"metadata": {"name": "web"}, "spec": {"dependsOn": [{"service": "db", "port": 5432}]}}]})
            }
            path if path.ends_with("/bootdependencies") => return thread::sleep(Duration::from_secs(5)),
            "/apis/apps/v1/namespaces/shop/deployments/web" => {
                json!({"metadata": {"name": "web", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z"}})
            }
            _ => json!({}),
        };
        let body = body.to_string();
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        if stream.write_all(format!("{head}{body}").as_bytes()).is_err() {
            return;
        }
    }
}

fn review(namespace: &str, object: Value) -> Review {
    Review {
        uid: "u".to_owned(),
        is_creation: true,
        namespace: namespace.to_owned(),
        object,
        old_object: Value::Null,
        name: "web".to_owned(),
        user: String::new(),
        groups: Vec::new(),
        dry_run: false,
        options: Value::Null,
    }
}

fn deployment() -> Value {
    json!({"metadata": {"name": "web"}, "spec": {"template": {"spec": {"containers": [{"name": "app"}]}}}})
}

fn pod(owner: &str) -> Value {
    let controller =
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": owner, "uid": "u", "controller": true});
    json!({"metadata": {"name": "web-0", "ownerReferences": [controller]}, "spec": {"containers": [{"name": "app"}]}})
}

fn text(verdict: &ReviewVerdict) -> String {
    serde_json::to_string(&verdict.patch).unwrap()
}

#[tokio::test]
async fn b12_what_memory_does_not_know_yet_is_asked_for_after_the_review_came_and_once_for_a_crowd() {
    let server = Server::start(true);
    let webhooks = server.webhooks(BootMemory::of_nothing(), Namespaces::All);
    let crowd = (0..10).map(|_| webhooks.deployment(review("shop", deployment())));
    let verdicts = futures::future::join_all(crowd).await;
    assert!(verdicts.iter().all(|verdict| text(verdict).contains("wait-for-db")), "{verdicts:?}");
    // The first list may be older than the other reviews: they share one of their own.
    assert_eq!(server.asked("bootdependencies"), 2, "{:?}", server.asked);
    // A pod of something older than a few seconds is answered from memory.
    assert_eq!(webhooks.pod(review("shop", pod("web"))).await, ReviewVerdict::default());
    assert_eq!(server.asked("bootdependencies"), 2, "{:?}", server.asked);
}

#[tokio::test]
async fn what_a_crowd_of_pods_would_be_held_for_is_looked_up_twice_at_most() {
    let server = Server::start(true);
    let webhooks = server.webhooks(BootMemory::of_nothing(), Namespaces::All);
    let object: BootDependency = serde_json::from_value(json!({
        "metadata": {"name": "web", "namespace": "shop", "uid": "u", "generation": 1},
        "spec": {"strategy": "SchedulingGate", "dependsOn": [{"service": "db", "port": 5432}]},
    }))
    .unwrap();
    let met = futures::future::join_all((0..50).map(|_| webhooks.reads.met(&object))).await;
    assert_eq!(met.len(), 50);
    for kind in ["/services", "/endpointslices"] {
        assert!((1..=2).contains(&server.asked(kind)), "{:?}", server.asked);
    }
}

#[tokio::test]
async fn what_cannot_be_answered_in_time_is_allowed_unchanged() {
    let server = Server::start(false);
    for memory in [BootMemory::of_nothing(), BootMemory::default()] {
        let webhooks = server.webhooks(memory, Namespaces::All);
        let begun = Instant::now();
        assert_eq!(webhooks.deployment(review("shop", deployment())).await, ReviewVerdict::default());
        assert_eq!(webhooks.pod(review("shop", pod("young"))).await, ReviewVerdict::default());
        assert!(begun.elapsed() < 2 * IN_ALL, "{:?}", begun.elapsed());
    }
    assert!(server.asked("bootdependencies") >= 2);
}

#[tokio::test]
async fn a_forged_review_of_a_namespace_out_of_scope_learns_nothing_and_nothing_is_asked_for_it() {
    let server = Server::start(true);
    let webhooks = server.webhooks(BootMemory::of_nothing(), Namespaces::All);
    let left_out = ["kube-system", "kube-public", "kube-node-lease", "linchpin-system"];
    for namespace in left_out.into_iter().chain(["plain", "kube-other", ""]) {
        assert_eq!(webhooks.deployment(review(namespace, deployment())).await, ReviewVerdict::default());
        assert_eq!(
            webhooks.pod(review(namespace, pod("web"))).await,
            ReviewVerdict::default(),
            "{namespace}"
        );
    }
    assert_eq!(server.asked("bootdependencies") + server.asked("deployments"), 0, "{:?}", server.asked);
    assert_eq!(left_out.iter().map(|name| server.asked(name)).sum::<usize>(), 0, "{:?}", server.asked);
    // Nobody would release what is held where nobody serves.
    let elsewhere = server.webhooks(BootMemory::of_nothing(), "other".parse().unwrap());
    assert_eq!(elsewhere.deployment(review("shop", deployment())).await, ReviewVerdict::default());
    let here = server.webhooks(BootMemory::of_nothing(), "shop".parse().unwrap());
    assert_ne!(here.deployment(review("shop", deployment())).await, ReviewVerdict::default());
}

#[test]
fn whoever_writes_a_secret_into_an_object_is_told_where_it_belongs() {
    let warning = |name: &str| {
        let header = json!({"name": name, "value": "x"});
        let entry = json!({"host": "h", "port": 1, "httpPath": "/", "httpHeaders": [header]});
        let object = json!({"metadata": {"name": "web"}, "spec": {"dependsOn": [entry]}});
        secret_headers(&serde_json::from_value(object).unwrap()).pop()
    };
    for name in ["Authorization", "cookie", "X-Proxy-Authorization", "X-Forwarded-Proxy", "X-API-Key"] {
        assert!(warning(name).is_some_and(|warning| warning.contains("valueFrom")), "{name}");
    }
    assert_eq!(warning("X-Tenant"), None);
}
