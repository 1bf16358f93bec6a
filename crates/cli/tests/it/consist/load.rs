//! No request is lost: a real HAProxy in front of real pods, under load, while everything happens to the pods that happens
//! to pods. Beside it the same without us: HAProxy in front of the Service's address.
//!
//! It takes minutes: `make load` (100,000 requests) and `make test-all` run it, elsewhere it says that it was skipped. What it
//! prints is in docs/benchmarks.md.

use std::{
    env, fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    process::Stdio,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use linchpin_local::{Cluster, ClusterOptions, check_node_support};
use linchpin_testkit::Api;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::Process;
use crate::{eventually, seconds};

/// Connections that are open at a time, each with one request after another.
const CLIENTS: usize = 4;

/// The pause of a client between two requests: the machine also runs Kubernetes.
const PAUSE: Duration = Duration::from_millis(2);

/// How long the load may last.
const LONGEST: Duration = Duration::from_mins(20);

/// How many requests at least, or none where this is not the time.
fn requests() -> Option<u64> {
    let wanted = match env::var("LINCHPIN_LOAD") {
        Ok(text) => Some(text.parse().expect("LINCHPIN_LOAD is a number")),
        Err(_) => env::var("LINCHPIN_LONG").is_ok().then_some(10_000),
    };
    let missing = match wanted {
        None => Some("make load and make test-all run it".to_owned()),
        Some(_) if !Path::new("/usr/sbin/haproxy").exists() => Some("there is no HAProxy".to_owned()),
        Some(_) => check_node_support().err().map(|reason| reason.to_string()),
    };
    if let Some(reason) = missing {
        // Not through the print macros: a skipped test must be seen also when it passes.
        let _ = writeln!(std::io::stderr(), "SKIPPED: requests under load: {reason}");
        return None;
    }
    wanted
}

#[derive(Default)]
struct Counts {
    done: AtomicU64,
    failed: AtomicU64,
    stop: AtomicBool,
    told: Mutex<Vec<String>>,
}

/// Clients that ask until they are stopped, bounded in number and time.
struct Load {
    counts: Arc<Counts>,
    clients: Vec<JoinHandle<()>>,
}

impl Drop for Load {
    fn drop(&mut self) {
        self.counts.stop.store(true, Ordering::SeqCst);
        for client in self.clients.drain(..) {
            let _ = client.join();
        }
    }
}

impl Load {
    fn start(socket: &Path, most: u64) -> Self {
        let counts = Arc::new(Counts::default());
        let client = |_| {
            let (counts, socket) = (counts.clone(), socket.to_owned());
            thread::spawn(move || {
                let (mut connection, begun) = (None, Instant::now());
                while !counts.stop.load(Ordering::SeqCst) && begun.elapsed() < LONGEST {
                    if counts.done.fetch_add(1, Ordering::SeqCst) >= most {
                        return;
                    }
                    if let Err(why) = ask(&mut connection, &socket) {
                        counts.failed.fetch_add(1, Ordering::SeqCst);
                        connection = None;
                        let mut told = counts.told.lock().unwrap();
                        if told.len() < 20 {
                            told.push(why);
                        }
                    }
                    thread::sleep(PAUSE);
                }
            })
        };
        let clients = (0..CLIENTS).map(client).collect();
        Self { counts, clients }
    }

    fn so_far(&self) -> (u64, u64) {
        (self.counts.done.load(Ordering::SeqCst), self.counts.failed.load(Ordering::SeqCst))
    }
}

/// One request on a connection that is kept: anything but a whole 200 is a failure.
fn ask(connection: &mut Option<BufReader<UnixStream>>, socket: &Path) -> Result<(), String> {
    let failed = |what: &'static str| move |error: std::io::Error| format!("{what}: {error}");
    if connection.is_none() {
        let stream = UnixStream::connect(socket).map_err(failed("connecting"))?;
        stream.set_read_timeout(Some(seconds(30))).map_err(failed("preparing"))?;
        *connection = Some(BufReader::new(stream));
    }
    let Some(reader) = connection.as_mut() else { return Err("no connection".to_owned()) };
    reader.get_mut().write_all(b"GET / HTTP/1.1\r\nHost: web\r\n\r\n").map_err(failed("asking"))?;
    let (mut status, mut length, mut close) = (String::new(), 0, false);
    reader.read_line(&mut status).map_err(failed("reading the status"))?;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).map_err(failed("reading the head"))?;
        let line = line.trim_end().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(text) = line.strip_prefix("content-length: ") {
            length = text.parse().map_err(|_| "an odd length".to_owned())?;
        }
        close |= line == "connection: close";
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).map_err(failed("reading the body"))?;
    if close {
        *connection = None;
    }
    if status.starts_with("HTTP/1.1 200 ") && body == b"ok\n" { Ok(()) } else { Err(format!("{status:?}")) }
}

/// A node with pods behind a HAProxy, with or without us.
struct Arena {
    consist: Option<Process>,
    _haproxy: Process,
    cluster: Cluster,
    api: Api,
    directory: TempDir,
    rows: Vec<String>,
}

const PROGRAM: &str = env!("CARGO_BIN_EXE_linchpin");

fn deployment(name: &str, app: &str, replicas: u32, served: bool) -> Value {
    let mut labels = json!({"app": app});
    if served {
        labels["kusionstack.io/control"] = json!("true");
    }
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "shop"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": app}},
            "strategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            "template": {"metadata": {"labels": labels}, "spec": {"terminationGracePeriodSeconds": 2,
                "automountServiceAccountToken": false, "dnsPolicy": "Default",
                "containers": [{"name": "main", "image": "localhost/workload:1", "imagePullPolicy": "Never",
                    "args": ["serve", "8080"],
                    "readinessProbe": {"httpGet": {"path": "/healthz", "port": 8080}, "periodSeconds": 1}}]}}}})
}

impl Arena {
    fn open(served: bool) -> Self {
        let cluster = Cluster::start(&ClusterOptions { node: true, ..ClusterOptions::default() })
            .expect("a local Kubernetes");
        let api = Api::connect(&cluster.kubeconfig());
        for definition in linchpin_doors::registry().definitions() {
            api.apply(&json!(definition)).unwrap();
        }
        api.apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let labels = if served { json!({"kusionstack.io/control": "true"}) } else { json!({}) };
        let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "shop",
            "labels": labels}, "spec": {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}]}});
        let service = api.apply(&service).unwrap();
        let address = service["spec"]["clusterIP"].as_str().unwrap().to_owned();
        let line = if served { String::new() } else { format!(" server service {address}:80\n") };
        let path = |name: &str| directory.path().join(name).display().to_string();
        let configuration = format!(
            "global\n stats socket {} mode 600 level admin\ndefaults\n mode http\n timeout connect 2s\n timeout client 60s\n \
             timeout server 30s\n timeout queue 5s\nfrontend web\n bind unix@{} mode 600\n default_backend shop_web\n\
             backend shop_web\n balance roundrobin\n{line}",
            path("admin.sock"),
            path("front.sock"),
        );
        fs::write(directory.path().join("haproxy.cfg"), configuration).unwrap();
        let mut haproxy = cluster.command("/usr/sbin/haproxy").unwrap();
        haproxy.args(["-db", "-f", &path("haproxy.cfg")]).stdout(Stdio::null()).stderr(Stdio::null());
        let haproxy = Process::start(&mut haproxy);
        let mut arena = Self { consist: None, _haproxy: haproxy, cluster, api, directory, rows: Vec::new() };
        eventually("HAProxy listens", seconds(10), || UnixStream::connect(arena.front()).is_ok());
        if served {
            arena.start_consist();
            eventually("webhooks are called", seconds(60), || arena.webhooks_are_there());
            // The API server takes a moment to know of them.
            thread::sleep(seconds(2));
        }
        arena.api.apply(&deployment("web", "web", 3, served)).unwrap();
        arena.api.apply(&deployment("other", "other", 3, served)).unwrap();
        arena.settled("web", 3);
        arena.settled("other", 3);
        arena
    }

    fn front(&self) -> PathBuf {
        self.directory.path().join("front.sock")
    }

    fn log(&self) -> PathBuf {
        self.directory.path().join("consist.log")
    }

    fn start_consist(&mut self) {
        self.consist = None;
        let log = fs::File::options().create(true).append(true).open(self.log()).unwrap();
        let mut command = self.cluster.command(PROGRAM).unwrap();
        command
            .args(["consist", "enable", "haproxy", "--haproxy"])
            .arg(format!("unix:{}", self.directory.path().join("admin.sock").display()))
            .args(["--watch-namespaces=shop", "--lease-namespace=default", "--metrics-bind-address=0"])
            .args(["--lease-duration=3s", "--renew-deadline=2s", "--retry-period=200ms"])
            .args(["--health-probe-bind-address=0", "--webhook-bind-address=:9443"])
            .arg("--webhook-url=https://10.99.0.1:9443")
            .stdout(Stdio::null())
            .stderr(log);
        self.consist = Some(Process::start(&mut command));
    }

    /// Whether a pod that is created gets its gate.
    fn webhooks_are_there(&self) -> bool {
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "probe", "namespace": "shop",
            "labels": {"kusionstack.io/control": "true"}}, "spec": {"nodeName": "nowhere",
            "containers": [{"name": "main", "image": "none"}]}});
        let made = self.api.apply(&pod).unwrap_or_default();
        let path = "/api/v1/namespaces/shop/pods/probe";
        let _ = self.api.request(
            &http::Method::DELETE,
            path,
            "application/json",
            Some(&json!({"gracePeriodSeconds": 0})),
        );
        let configuration = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/linchpin-consist-validating";
        let guards = self.api.request(&http::Method::GET, configuration, "application/json", None);
        made["spec"]["readinessGates"].is_array() && guards.is_ok()
    }

    fn kubectl(&self, args: &[&str]) -> Result<String, String> {
        let output = self.cluster.kubectl().args(["-n", "shop"]).args(args).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
    }

    /// Waits until a Deployment is as it says, with so many pods that are Ready and none that goes.
    fn settled(&self, name: &str, replicas: usize) {
        let told = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            eventually(&format!("{name} has {replicas} pods"), seconds(120), || {
                let status = format!("deployment/{name}");
                let path = "{.metadata.generation} {.status.observedGeneration} {.status.updatedReplicas} {.status.availableReplicas}";
                let told =
                    self.kubectl(&["get", &status, &format!("-o=jsonpath={path}")]).unwrap_or_default();
                let fields: Vec<&str> = told.split(' ').collect();
                let count = replicas.to_string();
                fields.len() == 4
                    && fields[0] == fields[1]
                    && fields[2..] == [count.as_str(), count.as_str()]
                    && self.pods(name).len() == replicas
            });
        }));
        if told.is_err() {
            let log = fs::read_to_string(self.log()).unwrap_or_default();
            let pods = self.kubectl(&["get", "pods,consistbindings", "-oyaml"]).unwrap_or_default();
            panic!("{name} never has {replicas} pods:\n{pods}\n{log}");
        }
    }

    fn pods(&self, app: &str) -> Vec<String> {
        let names = self.kubectl(&["get", "pods", "-l", &format!("app={app}"), "-oname"]).unwrap_or_default();
        names.lines().map(|name| name.trim_start_matches("pod/").to_owned()).collect()
    }

    /// Does something under load and writes down what it cost.
    fn phase(&mut self, load: &Load, what: &str, work: impl FnOnce(&mut Self)) -> u64 {
        let ((done, failed), begun) = (load.so_far(), Instant::now());
        work(self);
        // What was in the middle of something comes to its end within the phase.
        thread::sleep(Duration::from_millis(500));
        let (now_done, now_failed) = load.so_far();
        let lost = now_failed - failed;
        self.rows.push(format!(
            "| {what} | {} | {lost} | {:.0} s |",
            now_done - done,
            begun.elapsed().as_secs_f64()
        ));
        lost
    }

    fn rolling_update(&mut self, round: &str) {
        self.kubectl(&["set", "env", "deployment/web", &format!("ROUND={round}")]).unwrap();
        thread::sleep(seconds(1));
        self.settled("web", 3);
    }

    /// Asks for something until it is done, as people and controllers do.
    fn insist(&self, pod: &str, again: impl Fn() -> Result<String, String>) {
        eventually(&format!("{pod} goes"), seconds(60), || {
            let _ = again();
            thread::sleep(Duration::from_millis(200));
            !self.pods("web").contains(&pod.to_owned())
        });
        self.settled("web", 3);
    }

    fn evict(&self, pod: &str) -> Result<String, String> {
        let body = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": "shop"}});
        let path = format!("/api/v1/namespaces/shop/pods/{pod}/eviction");
        let told = self.api.request(&http::Method::POST, &path, "application/json", Some(&body));
        told.map(|_| String::new()).map_err(|refused| format!("{refused:?}"))
    }

    fn select(&self, app: &str) {
        let patch = json!({"spec": {"selector": {"app": app}}}).to_string();
        self.kubectl(&["patch", "service", "web", "--type=merge", "-p", &patch]).unwrap();
    }

    /// The servers of the backend that are in traffic, as HAProxy says.
    fn in_traffic(&self) -> Vec<String> {
        let Ok(mut stream) = UnixStream::connect(self.directory.path().join("admin.sock")) else {
            return Vec::new();
        };
        let mut text = String::new();
        if stream.write_all(b"show stat shop_web 4 -1\n").is_err()
            || stream.read_to_string(&mut text).is_err()
        {
            return Vec::new();
        }
        let rows = text.lines().skip(1).map(|line| line.split(',').collect::<Vec<_>>());
        let ready = rows.filter(|cells| cells.get(17).is_some_and(|status| *status == "no check"));
        ready.map(|cells| cells[1].to_owned()).collect()
    }

    /// Everything that happens to pods, under load; how many requests were lost.
    fn play(&mut self, wanted: u64, served: bool) -> u64 {
        let load = Load::start(&self.front(), wanted.max(20_000) * 5);
        eventually("requests are answered", seconds(30), || {
            let (done, failed) = load.so_far();
            done > failed + 100
        });
        let mut lost = 0;
        lost += self.phase(&load, "nothing happens", |_| thread::sleep(seconds(3)));
        lost += self.phase(&load, "rolling update of 3 pods", |arena| arena.rolling_update("1"));
        lost += self.phase(&load, "scale-in from 3 to 1, and out again", |arena| {
            arena.kubectl(&["scale", "deployment/web", "--replicas=1"]).unwrap();
            arena.settled("web", 1);
            arena.kubectl(&["scale", "deployment/web", "--replicas=3"]).unwrap();
            arena.settled("web", 3);
        });
        lost += self.phase(&load, "`kubectl delete pod`, each of 3", |arena| {
            for pod in arena.pods("web") {
                arena.insist(&pod, || arena.kubectl(&["delete", "pod", &pod, "--wait=false"]));
            }
        });
        lost += self.phase(&load, "eviction, each of 3", |arena| {
            for pod in arena.pods("web") {
                arena.insist(&pod, || arena.evict(&pod));
            }
        });
        lost += self.phase(&load, "the Service selects other pods, and back", |arena| {
            for app in ["other", "web"] {
                arena.select(app);
                if served {
                    eventually("the others are in traffic", seconds(60), || {
                        let mut names = arena.in_traffic();
                        names.sort();
                        let mut pods = arena.pods(app);
                        pods.sort();
                        names == pods
                    });
                }
                thread::sleep(seconds(2));
            }
        });
        let mut round = 1;
        while load.so_far().0 < wanted {
            round += 1;
            let name = format!("further rolling update {}", round - 1);
            lost += self.phase(&load, &name, |arena| arena.rolling_update(&round.to_string()));
        }
        if served {
            let apart =
                self.phase(&load, "our process killed while nothing happens, and started again", |arena| {
                    arena.consist = None;
                    thread::sleep(seconds(2));
                    arena.start_consist();
                    thread::sleep(seconds(5));
                    arena.rolling_update("restarted");
                });
            lost += apart;
            // Without us nobody refuses a deletion: Kubernetes' own order, and what is lost is said.
            self.phase(
                &load,
                "our process killed in the middle of a rolling update (not counted)",
                |arena| {
                    arena.kubectl(&["set", "env", "deployment/web", "ROUND=killed"]).unwrap();
                    thread::sleep(seconds(3));
                    arena.consist = None;
                    thread::sleep(seconds(2));
                    arena.start_consist();
                    arena.settled("web", 3);
                },
            );
        }
        let (done, failed) = load.so_far();
        self.rows.push(format!("| all | {done} | {failed} | |"));
        let told = load.counts.told.lock().unwrap().clone();
        if !told.is_empty() {
            println!("the first failures: {told:#?}");
        }
        lost
    }
}

fn table(title: &str, rows: &[String]) {
    println!(
        "\n{title}\n\n| what happens | requests | failed | took |\n|---|---|---|---|\n{}\n",
        rows.join("\n")
    );
}

#[test]
fn no_request_is_lost_whatever_happens_to_the_pods() {
    let Some(wanted) = requests() else { return };
    if env::var("LINCHPIN_LOAD_WITHOUT").is_ok() {
        let mut without = Arena::open(false);
        let lost = without.play(wanted, false);
        table(&format!("without us: {lost} requests lost"), &without.rows);
    }
    let mut arena = Arena::open(true);
    let lost = arena.play(wanted, true);
    table("with us", &arena.rows);
    assert_eq!(lost, 0, "{:#?}", arena.rows);
    // What is left when the Service leaves: nothing.
    arena.kubectl(&["label", "service", "web", "kusionstack.io/control-"]).unwrap();
    eventually("nothing is left in HAProxy", seconds(60), || arena.in_traffic().is_empty());
}
