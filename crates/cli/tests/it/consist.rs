//! `linchpin consist` on a real API server: adapters as a process of their own, with their own few rights, a provider that
//! can be looked at, and the audit log as the witness. Pods are what the API server has of them: nobody runs them.

mod adapters;
mod document;
mod faults;
mod haproxy;
mod hook;
mod hostile;
mod killed;
mod kinds;
mod lifecycle;
mod load;
mod rights;
mod scale;
mod server;
mod tls;
mod tutorial;
mod webhooks;

use std::{
    fs::{self, File},
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use linchpin_local::{Cluster, ClusterOptions};
use linchpin_operator::{rights::consist::ConsistInstallation, settings::Namespaces};
use linchpin_testkit::{Api, Scenario, audit::Audit};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    eventually,
    operator::{get, linchpin},
    seconds,
};

/// The user that consist processes under test are.
const USER: &str = "linchpin-consist";

/// A process of the test's own, ended with it; also when the test process ends without a word.
struct Process {
    child: Child,
    keeper: Child,
}

impl Process {
    fn start(command: &mut Command) -> Self {
        let child = command.stdin(Stdio::null()).spawn().unwrap();
        let keeper = Command::new("sh")
            .args(["-c", &format!("read -r _; kill -9 {} 2>/dev/null", child.id())])
            .stdin(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self { child, keeper }
    }

    /// Ends it at once, in the middle of whatever it does.
    fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}

/// The demo provider.
struct Provider {
    process: Process,
    address: String,
}

impl Provider {
    fn start(address: &str) -> Self {
        let mut process = Process::start(
            linchpin().args(["consist", "demo-provider", "--bind-address", address]).stdout(Stdio::piped()),
        );
        let mut line = String::new();
        BufReader::new(process.child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().trim_end_matches('/').rsplit('/').next().unwrap().to_owned();
        Self { process, address }
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Everything that it has.
    fn state(&self) -> Value {
        let (_, text) = get(self.address.parse().unwrap(), "/v1/state").expect("the provider answers");
        serde_json::from_str(&text).unwrap()
    }

    /// What it has of a pod of a Service.
    fn employee(&self, scenario: &Scenario, service: &str, pod: &str) -> Option<Value> {
        let state = self.state();
        let items =
            state["employees"][format!("Service/{}/{service}", scenario.namespace)].as_array()?.clone();
        items.into_iter().find(|item| item["id"] == pod)
    }

    /// Whether it sends traffic to a pod.
    fn serves(&self, scenario: &Scenario, service: &str, pod: &str) -> bool {
        self.employee(scenario, service, pod)
            .is_some_and(|item| item["statuses"]["extraStatus"]["trafficOn"] == true)
    }

    /// Whether it has anything of a Service.
    fn knows(&self, scenario: &Scenario, service: &str) -> bool {
        let state = self.state();
        let scope = format!("Service/{}/{service}", scenario.namespace);
        [&state["employers"][&scope], &state["employees"][&scope]]
            .iter()
            .any(|items| items.as_array().is_some_and(|items| !items.is_empty()))
    }
}

/// A cluster, a provider, and a process that serves one with the other.
struct Shop {
    process: Option<Process>,
    provider: Provider,
    api: Api,
    cluster: Cluster,
    log: PathBuf,
    kubeconfig: PathBuf,
    /// What is enabled, and how its provider is found.
    adapters: Vec<String>,
    flags: Vec<String>,
    _directory: TempDir,
}

impl Shop {
    /// Serves these namespaces with the demo provider, with further flags.
    fn open(options: &ClusterOptions, served: &[&str], flags: &[&str]) -> Self {
        let demo =
            |provider: &Provider, _: &Path| vec!["demo".to_owned(), "--provider".to_owned(), provider.url()];
        Self::open_with(options, served, flags, demo)
    }

    /// The same, with what is enabled as words of the command line; files may be put into a directory.
    fn open_with(
        options: &ClusterOptions,
        served: &[&str],
        flags: &[&str],
        adapters: impl FnOnce(&Provider, &Path) -> Vec<String>,
    ) -> Self {
        let cluster = Cluster::start(options).expect("a local Kubernetes");
        let api = Api::connect(&cluster.kubeconfig());
        for definition in linchpin_doors::registry().definitions() {
            api.apply(&json!(definition)).unwrap();
        }
        for namespace in served {
            api.apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}))
                .unwrap();
        }
        let names: std::collections::BTreeSet<String> =
            served.iter().map(|name| (*name).to_owned()).collect();
        let installation = ConsistInstallation {
            namespace: "default".to_owned(),
            served: Namespaces::Only(names),
            subject: Some(json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": USER})),
            ..ConsistInstallation::default()
        };
        for manifest in installation.manifests() {
            api.apply(&manifest).unwrap();
        }
        let kubeconfig = cluster.kubeconfig_for(USER, None).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("log");
        let provider = Provider::start("127.0.0.1:0");
        let mut flags: Vec<String> = flags.iter().map(|flag| (*flag).to_owned()).collect();
        flags.push(format!("--watch-namespaces={}", served.join(",")));
        let adapters = adapters(&provider, directory.path());
        let process = None;
        let mut shop =
            Self { process, provider, api, cluster, log, kubeconfig, adapters, flags, _directory: directory };
        shop.start();
        shop
    }

    /// Starts the process, or starts it again.
    fn start(&mut self) {
        self.process = None;
        let log = File::options().create(true).append(true).open(&self.log).unwrap();
        let mut command = linchpin();
        command
            .args(["consist", "enable"])
            .args(&self.adapters)
            .args(["--metrics-bind-address=127.0.0.1:0", "--health-probe-bind-address=127.0.0.1:0"])
            .args([
                "--lease-namespace=default",
                "--lease-duration=3s",
                "--renew-deadline=2s",
                "--retry-period=200ms",
            ])
            .arg("--kubeconfig")
            .arg(&self.kubeconfig)
            .args(&self.flags)
            .stderr(log);
        self.process = Some(Process::start(&mut command));
    }

    fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    fn listening(&self, purpose: &str) -> Option<std::net::SocketAddr> {
        let line = self.log();
        let line = line.lines().rev().find(|line| {
            line.contains("\"listening\"") && line.contains(&format!("\"purpose\":\"{purpose}\""))
        })?;
        let line: Value = serde_json::from_str(line).ok()?;
        let found = line.pointer("/fields/address").or_else(|| line.get("address"))?.as_str()?.to_owned();
        found.parse().ok()
    }

    /// The metrics. A busy machine may be slow to answer, which says nothing of them.
    fn metrics(&self) -> String {
        let address = self.listening("metrics").expect("metrics are served");
        (0..40).find_map(|_| get(address, "/metrics")).expect("metrics are answered").1
    }

    fn scenario(&self, name: &str) -> Scenario {
        let scenario = Scenario::begin(&self.api, Audit::from_now(&self.cluster.audit_log()), name);
        scenario.apply("{apiVersion: v1, kind: ServiceAccount, metadata: {name: default}}");
        scenario
    }

    fn until(&self, what: &str, holds: impl FnMut() -> bool) {
        let told =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| eventually(what, seconds(60), holds)));
        assert!(told.is_ok(), "{what}; the process says:\n{}", self.log());
    }

    /// Requests of the process that changed something, as its audit log says: verb, resource, name.
    fn writes(scenario: &Scenario) -> Vec<(String, String, String)> {
        let events = scenario.audit.events().into_iter().filter(|event| {
            event.user == USER && event.is_write() && event.resource != "leases" && event.resource != "events"
        });
        events
            .map(|event| (event.verb, format!("{}/{}", event.resource, event.subresource), event.name))
            .collect()
    }

    /// The process never writes anything under `spec` of an object that is not ours, nor outside the namespaces it serves.
    fn judge(&self, served: &[&str]) {
        let text = fs::read_to_string(self.cluster.audit_log()).unwrap();
        let mut judged = 0;
        for line in text.lines() {
            let Ok(event) = serde_json::from_str::<Value>(line) else { continue };
            let verb = event["verb"].as_str().unwrap_or_default();
            let changes = ["create", "update", "patch", "delete"].contains(&verb);
            if event["user"]["username"] != USER || !changes {
                continue;
            }
            let resource = event["objectRef"]["resource"].as_str().unwrap_or_default();
            let namespace = event["objectRef"]["namespace"].as_str().unwrap_or_default();
            if ["pods", "services", "consistbindings"].contains(&resource) {
                judged += 1;
                assert!(served.contains(&namespace), "{line}");
            }
            if ["pods", "services"].contains(&resource) && event["objectRef"]["subresource"] != "eviction" {
                assert!(event["requestObject"].get("spec").is_none(), "{line}");
                assert!(event["impersonatedUser"].is_null(), "{line}");
            }
        }
        assert!(judged > 0, "the log is not read any more");
    }
}

const CONTROL: &str = "kusionstack.io/control";
const ENTRIES: &str = "pod.kusionstack.io/available-conditions";
const AVAILABLE: &str = "podopslifecycle.kusionstack.io/service-available";

/// A Service that is served.
fn service(scenario: &Scenario, name: &str) {
    scenario.apply(&format!(
        "{{apiVersion: v1, kind: Service, metadata: {{name: {name}, labels: {{{CONTROL}: 'true'}}}}, spec: {{selector: {{app: {name}}}, ports: [{{port: 80}}]}}}}"
    ));
}

/// A pod on a node, that is Ready.
fn pod(scenario: &Scenario, name: &str, app: &str, ip: &str, gated: bool) {
    let spec =
        if gated { "readinessGates: [{conditionType: pod.kusionstack.io/service-ready}], " } else { "" };
    let control = if gated { format!(", {CONTROL}: 'true'") } else { String::new() };
    scenario.apply(&format!(
        "{{apiVersion: v1, kind: Pod, metadata: {{name: {name}, labels: {{app: {app}{control}}}}}, spec: {{{spec}nodeName: node-1, terminationGracePeriodSeconds: 0, containers: [{{name: app, image: app}}]}}}}"
    ));
    ready(scenario, name, ip);
}

/// What a kubelet would say.
fn ready(scenario: &Scenario, name: &str, ip: &str) {
    let path = format!("/api/v1/namespaces/{}/pods/{name}/status", scenario.namespace);
    let body = json!({"status": {"phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}],
        "containerStatuses": [{"name": "app", "image": "app", "imageID": "", "restartCount": 0, "ready": true, "state": {"running": {}}}],
        "conditions": [{"type": "Ready", "status": "True"}]}});
    let form = "application/strategic-merge-patch+json";
    scenario.api.request(&http::Method::PATCH, &path, form, Some(&body)).unwrap();
}

fn finalizers(object: &Value) -> Vec<String> {
    let list = object["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
    list.iter().filter_map(|one| one.as_str().map(str::to_owned)).collect()
}

fn annotation<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object["metadata"]["annotations"].get(key)?.as_str()
}

fn label<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object["metadata"]["labels"].get(key)?.as_str()
}
