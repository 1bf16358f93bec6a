//! The chart's hook before an uninstallation: what its Job runs, as the chart's ServiceAccount with the chart's rights.

use std::{net::TcpListener, process::Stdio};

use linchpin_local::Cluster;
use linchpin_testkit::{Api, Scenario, audit::Audit};
use serde_json::{Value, json};

use super::{AVAILABLE, ENTRIES, Process, Provider, annotation, finalizers, label, pod, service};
use crate::{
    bare,
    chart::{documents, rendered},
    eventually,
    operator::linchpin,
    seconds,
};

const SYSTEM: &str = "linchpin-system";
const ACCOUNT: &str = "system:serviceaccount:linchpin-system:linchpin-consist";

/// The arguments of a workload of the chart, without those that only make sense in a pod.
fn arguments(all: &[Value], kind: &str, name: &str) -> Vec<String> {
    let found = all.iter().find(|one| one["kind"] == kind && one["metadata"]["name"] == name);
    let found = found.unwrap_or_else(|| panic!("the chart has no {kind} {name}"));
    let list = found["spec"]["template"]["spec"]["containers"][0]["args"].as_array().unwrap();
    let in_pods = ["--webhook-bind-address", "--webhook-service", "--health-probe", "--metrics-bind"];
    let list = list.iter().map(|word| word.as_str().unwrap().to_owned());
    list.filter(|word| !in_pods.iter().any(|flag| word.starts_with(flag))).collect()
}

#[test]
fn what_runs_before_an_uninstallation_leaves_nothing_of_consist() {
    let provider = Provider::start("127.0.0.1:0");
    let set = format!(
        "consist.enabled=true,consist.webhooks=true,consist.adapters={{demo}},consist.namespaces={{shop}},consist.args={{--provider={}}}",
        provider.url()
    );
    let all = documents(&rendered(&["--set", &set]));
    let cluster = Cluster::start(&bare()).expect("a local Kubernetes");
    let api = Api::connect(&cluster.kubeconfig());
    for definition in linchpin_doors::registry().definitions() {
        api.apply(&json!(definition)).unwrap();
    }
    for name in [SYSTEM, "shop"] {
        api.apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})).unwrap();
    }
    let is_ours = |one: &&Value| {
        let name = one["metadata"]["name"].as_str().unwrap_or_default();
        name.starts_with("linchpin-consist") && one["kind"] != "Job" && one["kind"] != "Service"
    };
    for object in all.iter().filter(is_ours) {
        api.apply(object).unwrap();
    }
    let kubeconfig = cluster.kubeconfig_for(ACCOUNT, None).unwrap();
    let run = |kind: &str, name: &str| {
        let mut command = linchpin();
        command.args(arguments(&all, kind, name)).arg("--kubeconfig").arg(&kubeconfig);
        command.args(["--lease-namespace", SYSTEM, "--lease-duration=3s", "--renew-deadline=2s"]);
        command.args(["--retry-period=200ms"]).stderr(Stdio::null()).stdout(Stdio::null());
        command
    };
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut serving = Process::start(run("Deployment", "linchpin-consist").args([
        &format!("--webhook-bind-address={address}"),
        &format!("--webhook-url=https://{address}"),
        "--health-probe-bind-address=127.0.0.1:0",
        "--metrics-bind-address=127.0.0.1:0",
    ]));
    let scenario = Scenario::begin(&api, Audit::from_now(&cluster.audit_log()), "shop");
    scenario.apply("{apiVersion: v1, kind: ServiceAccount, metadata: {name: default}}");
    service(&scenario, "web");
    pod(&scenario, "web-1", "web", "10.0.0.1", true);
    eventually("web-1 is available", seconds(30), || {
        let pod = scenario.get("Pod", "web-1").unwrap();
        label(&pod, AVAILABLE).is_some() && !finalizers(&pod).is_empty()
    });
    let configured = || {
        ["mutating", "validating"].iter().any(|which| {
            let place = "/apis/admissionregistration.k8s.io/v1";
            api.read(&format!("{place}/{which}webhookconfigurations/linchpin-consist-{which}")).is_some()
        })
    };
    eventually("its webhooks are configured", seconds(20), configured);

    let mut hook = run("Job", "linchpin-consist-disable").spawn().unwrap();
    eventually("the processes are ended first", seconds(20), || {
        let found = api.get("Deployment", SYSTEM, "linchpin-consist").unwrap();
        found["spec"]["replicas"] == 0
    });
    serving.kill();
    assert!(hook.wait().unwrap().success(), "the Job succeeds");
    let pod = scenario.get("Pod", "web-1").unwrap();
    assert!(finalizers(&pod).is_empty() && annotation(&pod, ENTRIES).is_none(), "{pod}");
    assert!(label(&pod, AVAILABLE).is_none(), "{pod}");
    let gate = pod["status"]["conditions"].as_array().unwrap().iter();
    let mut gate = gate.filter(|one| one["type"] == "pod.kusionstack.io/service-ready");
    assert_eq!(gate.next().unwrap()["status"], "True", "the gate stays open for good: {pod}");
    assert!(finalizers(&scenario.get("Service", "web").unwrap()).is_empty());
    assert!(scenario.get("ConsistBinding", "service-web").is_none() && !configured());
    assert!(!provider.knows(&scenario, "web"));
}
