//! Pods that are created get their gate and entries at once; deletions and evictions are refused until they are drained.

use std::net::TcpListener;

use linchpin_testkit::{ApiRefusal, Scenario};
use serde_json::{Value, json};

use super::{AVAILABLE, CONTROL, ENTRIES, Shop, annotation, finalizers, label, ready, service};
use crate::bare;

/// A pod without anything of ours but the label.
pub(super) fn plain(scenario: &Scenario, name: &str) {
    scenario.apply(&format!(
        "{{apiVersion: v1, kind: Pod, metadata: {{name: {name}, labels: {{app: web, {CONTROL}: 'true'}}}}, spec: {{nodeName: node-1, containers: [{{name: app, image: app}}]}}}}"
    ));
}

fn path(scenario: &Scenario, pod: &str) -> String {
    format!("/api/v1/namespaces/{}/pods/{pod}", scenario.namespace)
}

/// Asks for a deletion, with options.
fn delete(scenario: &Scenario, pod: &str, options: &Value) -> Result<Value, ApiRefusal> {
    scenario.api.request(&http::Method::DELETE, &path(scenario, pod), "application/json", Some(options))
}

fn evict(scenario: &Scenario, pod: &str) -> Result<Value, ApiRefusal> {
    let body = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": scenario.namespace}});
    let path = format!("{}/eviction", path(scenario, pod));
    scenario.api.request(&http::Method::POST, &path, "application/json", Some(&body))
}

/// What a request about a pod was refused with, with 429, as the API server's own log says.
fn refusal(shop: &Shop, scenario: &Scenario, verb: &str, pod: &str) -> String {
    let mut told = String::new();
    shop.until(&format!("{verb} of {pod} is refused with 429"), || {
        let events = scenario.audit.events();
        let refused =
            events.iter().find(|event| event.verb == verb && event.name == pod && event.code == 429);
        told = refused.map(|event| event.message.clone()).unwrap_or_default();
        refused.is_some()
    });
    told
}

/// Asks for a deletion as a controller does, once; what it is told where it is refused.
pub(super) fn delete_as_controller(shop: &Shop, scenario: &Scenario, pod: &str) -> String {
    let mut kubectl = shop.cluster.kubectl();
    kubectl.args(["delete", "pod", pod, "-n", &scenario.namespace, "--wait=false"]);
    kubectl.args(["--as", "system:serviceaccount:kube-system:replicaset-controller"]);
    let output = kubectl.args(["--as-group", "system:masters"]).output().unwrap();
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Waits until the API server calls the webhooks for pods of Service `web`, when they come and when they go.
pub(super) fn called(shop: &Shop, scenario: &Scenario) {
    shop.until("webhooks are called", || {
        plain(scenario, "probe");
        let called = annotation(&scenario.get("Pod", "probe").unwrap(), ENTRIES).is_some()
            && delete_as_controller(shop, scenario, "probe").contains("underway");
        let _ = delete(scenario, "probe", &json!({"gracePeriodSeconds": 0}));
        scenario.gone("Pod", "probe");
        called
    });
}

pub(super) fn is_terminating(scenario: &Scenario, pod: &str) -> bool {
    scenario.get("Pod", pod).is_none_or(|pod| !pod["metadata"]["deletionTimestamp"].is_null())
}

#[test]
fn pods_are_drained_before_a_deletion_or_an_eviction_is_let_through() {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let bind = format!("--webhook-bind-address={address}");
    let url = format!("--webhook-url=https://{address}");
    let mut shop = Shop::open(&bare(), &["guarded"], &[&bind, &url, "--drain-timeout=8s", "--resync=2s"]);
    let scenario = shop.scenario("guarded");
    service(&scenario, "web");
    called(&shop, &scenario);

    // At creation: the gate and the entry, before anybody could call the pod available.
    for (number, name) in ["web-1", "web-2", "web-3", "web-4", "web-6"].into_iter().enumerate() {
        plain(&scenario, name);
        let made = scenario.get("Pod", name).unwrap();
        assert_eq!(made["spec"]["readinessGates"][0]["conditionType"], "pod.kusionstack.io/service-ready");
        assert!(annotation(&made, ENTRIES).unwrap().contains("Service/guarded/web"), "{made}");
        ready(&scenario, name, &format!("10.0.0.{}", number + 1));
        shop.until("it is available", || label(&scenario.get("Pod", name).unwrap(), AVAILABLE).is_some());
    }

    // A person deletes: refused with 429 until it is drained, then let through.
    let dry = delete(&scenario, "web-1", &json!({"dryRun": ["All"]}));
    assert!(
        dry.is_ok()
            && label(&scenario.get("Pod", "web-1").unwrap(), "collaset.kusionstack.io/to-delete").is_none()
    );
    // Clients repeat by themselves what is refused so, and so does the one of this test.
    shop.until("it is let through", || delete(&scenario, "web-1", &json!({})).is_ok());
    let told = refusal(&shop, &scenario, "delete", "web-1");
    assert!(
        told.contains("pod deletion process is underway: it is in traffic of Service/guarded/web"),
        "{told}"
    );
    assert!(!shop.provider.serves(&scenario, "web", "web-1"), "it left traffic before");
    assert!(is_terminating(&scenario, "web-1"));

    // A controller gets 403, and nobody is held by a deletion by force.
    let told = delete_as_controller(&shop, &scenario, "web-2");
    assert!(told.contains("Forbidden") && told.contains("pod deletion process is underway"), "{told}");
    delete(&scenario, "web-2", &json!({"gracePeriodSeconds": 0})).unwrap();

    // An eviction: 429 until drained; then we evict it ourselves.
    let _ = evict(&scenario, "web-3");
    refusal(&shop, &scenario, "create", "web-3");
    shop.until("it is evicted", || is_terminating(&scenario, "web-3"));
    assert!(!shop.provider.serves(&scenario, "web", "web-3"));

    // An eviction for which its budget has no room: refused as the API server itself would, and nothing is marked.
    over_budget(&shop, &scenario);

    // The label by hand asks for the drain; the permission comes, and a deletion passes.
    asked_by_hand(&shop, &scenario);

    // Whoever else calls the webhooks learns nothing and moves nothing.
    forged_reviews(&shop, &scenario, address);
    hostile_reviews(&scenario, address);

    // A provider that does not answer holds a deletion for as long as drains may take.
    shop.provider.process.kill();
    shop.until("the drain is given up", || delete(&scenario, "web-4", &json!({})).is_ok());
    refusal(&shop, &scenario, "delete", "web-4");
    shop.until("and that is said", || {
        scenario
            .events("web-4")
            .iter()
            .any(|(reason, note)| reason == "PodDeletion" && note.starts_with("drain given up after 8s: "))
    });
    // A pod that is being deleted never hangs on us.
    shop.until("its finalizer goes", || {
        scenario.get("Pod", "web-4").is_none_or(|pod| finalizers(&pod).is_empty())
    });

    another_engine(&shop, &scenario);

    // Without us pods come and go as ever.
    shop.process = None;
    plain(&scenario, "web-5");
    delete(&scenario, "web-5", &json!({})).unwrap();
    shop.judge(&["guarded"]);
}

const TO_DELETE: &str = "collaset.kusionstack.io/to-delete";
const EVICT: &str = "linchpin.dev/evict-requested";

fn over_budget(shop: &Shop, scenario: &Scenario) {
    scenario.apply("{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: all}, spec: {minAvailable: 9, selector: {matchLabels: {app: web}}}}");
    // Nobody runs controllers here: what the disruption controller would say.
    let path = "/apis/policy/v1/namespaces/guarded/poddisruptionbudgets/all/status";
    let status = json!({"status": {"observedGeneration": 1, "disruptionsAllowed": 0, "currentHealthy": 2, "desiredHealthy": 9, "expectedPods": 2}});
    scenario.api.request(&http::Method::PATCH, path, "application/merge-patch+json", Some(&status)).unwrap();
    // The process learns of the budget a moment later.
    std::thread::sleep(std::time::Duration::from_secs(1));
    // By kubectl: the client of this test would repeat it for minutes.
    let body = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "web-4", "namespace": "guarded"}});
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), body.to_string()).unwrap();
    let path = "/api/v1/namespaces/guarded/pods/web-4/eviction";
    let asked =
        shop.cluster.kubectl().args(["create", "--raw", path, "-f"]).arg(file.path()).output().unwrap();
    assert!(!asked.status.success(), "{asked:?}");
    let told = refusal(shop, scenario, "create", "web-4");
    assert!(told.contains("disruption budget"), "{told}");
    let pod = scenario.get("Pod", "web-4").unwrap();
    assert!(
        annotation(&pod, EVICT).is_none() && label(&pod, AVAILABLE).is_some(),
        "nothing is marked: {pod}"
    );
    scenario.delete("PodDisruptionBudget", "all");
    scenario.gone("PodDisruptionBudget", "all");
}

fn asked_by_hand(shop: &Shop, scenario: &Scenario) {
    scenario.merge("Pod", "web-6", &json!({"metadata": {"labels": {TO_DELETE: "1900000000000000000"}}}));
    shop.until("the permission comes", || {
        label(&scenario.get("Pod", "web-6").unwrap(), "operate.podopslifecycle.kusionstack.io/pod-delete")
            .is_some()
    });
    assert!(!shop.provider.serves(scenario, "web", "web-6"));
    delete(scenario, "web-6", &json!({"gracePeriodSeconds": 1})).unwrap();
}

/// Sends something to the port of the webhooks, as anybody can who reaches it; the status of the answer.
fn post(address: std::net::SocketAddr, path: &str, body: &[u8]) -> String {
    let mut curl = std::process::Command::new("curl");
    let url = format!("https://{address}{path}");
    curl.args(["-sk", "--max-time", "5", "-o", "/dev/null", "-w", "%{http_code}", "-X", "POST"]);
    curl.args(["-H", "Content-Type: application/json", "--data-binary", "@-", &url]);
    let mut child =
        curl.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped()).spawn().unwrap();
    // The server may answer before it has read everything.
    let _ = std::io::Write::write_all(&mut child.stdin.take().unwrap(), body);
    String::from_utf8_lossy(&child.wait_with_output().unwrap().stdout).into_owned()
}

/// The paths that the API server was told: of creations, deletions and evictions.
fn told_paths(scenario: &Scenario) -> [String; 3] {
    let of = |which: &str| {
        let path = format!(
            "/apis/admissionregistration.k8s.io/v1/{which}webhookconfigurations/linchpin-consist-{which}"
        );
        let found = scenario.api.read(&path).unwrap();
        let urls = found["webhooks"].as_array().unwrap().iter();
        let urls = urls.map(|one| one["clientConfig"]["url"].as_str().unwrap().to_owned());
        urls.map(|url| format!("/{}", url.splitn(4, '/').nth(3).unwrap())).collect::<Vec<_>>()
    };
    let mut all = of("mutating");
    all.extend(of("validating"));
    all.try_into().unwrap()
}

/// A review with a pod's real name and uid, as whoever may read pods could write it: without the word that only the API
/// server was told nobody hears it.
fn forged_reviews(shop: &Shop, scenario: &Scenario, address: std::net::SocketAddr) {
    let [created, deleted, evicted] = told_paths(scenario);
    // The process runs outside of the cluster: no namespace is its own.
    let path =
        "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/linchpin-consist-validating";
    let never = &scenario.api.read(path).unwrap()["webhooks"][0]["namespaceSelector"]["matchExpressions"][0];
    assert_eq!(never["values"], json!(["kube-system", "kube-public", "kube-node-lease"]));
    plain(scenario, "web-8");
    ready(scenario, "web-8", "10.0.0.8");
    shop.until("web-8 is available", || label(&scenario.get("Pod", "web-8").unwrap(), AVAILABLE).is_some());
    let pod = scenario.get("Pod", "web-8").unwrap();
    let review = |group: &str, kind: &str, operation: &str| {
        json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "u",
            "kind": {"group": group, "version": "v1", "kind": kind}, "operation": operation,
            "namespace": scenario.namespace, "name": "web-8", "oldObject": pod,
            "object": {"metadata": {"name": "web-8"}}, "userInfo": {"username": "system:kube-controller-manager"}}})
        .to_string()
        .into_bytes()
    };
    let (delete, evict) = (review("", "Pod", "DELETE"), review("policy", "Eviction", "CREATE"));
    let is_marked = || {
        let pod = scenario.get("Pod", "web-8").unwrap();
        label(&pod, TO_DELETE).is_some() || annotation(&pod, EVICT).is_some()
    };
    let guess = "0".repeat(32);
    for (told, body) in [(&created, &review("", "Pod", "CREATE")), (&deleted, &delete), (&evicted, &evict)] {
        let (path, word) = told.rsplit_once('/').unwrap();
        assert_eq!(word.len(), 32, "{told}");
        for forged in
            [path.to_owned(), format!("{path}/"), format!("{path}/{guess}"), format!("{path}/{}", &word[1..])]
        {
            assert_eq!(post(address, &forged, body), "404", "{forged}");
        }
    }
    std::thread::sleep(std::time::Duration::from_secs(1));
    assert!(!is_marked(), "a pod is marked by somebody's word");
    assert!(shop.provider.serves(scenario, "web", "web-8"), "a pod is drained by somebody's word");
    // The very same review is heard where the word is said.
    assert_eq!(post(address, &deleted, &delete), "200");
    shop.until("it is marked", is_marked);
    delete_by_force(scenario, "web-8");
}

fn delete_by_force(scenario: &Scenario, pod: &str) {
    delete(scenario, pod, &json!({"gracePeriodSeconds": 0})).unwrap();
}

/// Reviews that say nonsense, where they are heard: what one may learn is what one sent, and no pod is marked by a lie.
fn hostile_reviews(scenario: &Scenario, address: std::net::SocketAddr) {
    let [created, deleted, evicted] = told_paths(scenario);
    let review = |object: &Value| {
        json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "u",
            "kind": {"group": "", "version": "v1", "kind": "Pod"}, "resource": {"group": "", "version": "v1", "resource": "pods"},
            "operation": "DELETE", "namespace": scenario.namespace, "name": "web-4",
            "userInfo": {"username": "system:kube-controller-manager"}, "oldObject": object}})
        .to_string()
        .into_bytes()
    };
    let before = scenario.get("Pod", "web-4").unwrap();
    let forged = json!({"metadata": {"name": "web-4", "namespace": scenario.namespace, "uid": "somebody-else",
        "labels": {CONTROL: "true"}}, "spec": {"nodeName": "n", "readinessGates": [{"conditionType": "pod.kusionstack.io/service-ready"}]}});
    let delete = deleted.as_str();
    let table: [(&str, Vec<u8>); 9] = [
        (delete, Vec::new()),
        (delete, b"garbage".to_vec()),
        (delete, b"[".repeat(100_000)),
        (delete, b"{}".to_vec()),
        (delete, review(&json!(null))),
        (delete, review(&json!({"metadata": "x", "spec": [], "status": 7}))),
        (delete, review(&forged)),
        (&evicted, review(&forged)),
        (&created, review(&json!({"metadata": {"labels": vec!["x"; 1000]}}))),
    ];
    for (path, body) in table {
        post(address, path, &body);
    }
    assert_eq!(scenario.get("Pod", "web-4").unwrap()["metadata"]["labels"], before["metadata"]["labels"]);
    assert!(label(&before, TO_DELETE).is_none());
}

/// Where another engine of PodOpsLifecycle is installed, `auto` leaves the pods and their deletion to it.
fn another_engine(shop: &Shop, scenario: &Scenario) {
    let guards = || {
        let path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/linchpin-consist-validating";
        scenario.api.request(&http::Method::GET, path, "application/json", None).is_ok()
    };
    assert!(guards());
    let other = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "kusionstack-controller-manager-mutating"}, "webhooks": []});
    scenario.api.apply(&other).unwrap();
    shop.until("deletions are not looked at any more", || !guards());
    plain(scenario, "web-7");
    let made = scenario.get("Pod", "web-7").unwrap();
    assert!(
        annotation(&made, ENTRIES).is_some() && made["spec"]["readinessGates"].is_null(),
        "entries alone: {made}"
    );
    ready(scenario, "web-7", "10.0.0.7");
    std::thread::sleep(std::time::Duration::from_secs(1));
    let left = scenario.get("Pod", "web-7").unwrap();
    assert!(label(&left, AVAILABLE).is_none(), "no label of the lifecycle: {left}");
    delete(scenario, "web-7", &json!({"gracePeriodSeconds": 0})).unwrap();
    let path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/kusionstack-controller-manager-mutating";
    scenario.api.request(&http::Method::DELETE, path, "application/json", None).unwrap();
    shop.until("they are again", guards);
}
