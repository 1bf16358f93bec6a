//! Employers and their pods at a provider: attached, marked, detached, released.

use linchpin_testkit::{Scenario, condition};
use serde_json::json;

use super::{ENTRIES, Provider, Shop, annotation, finalizers, pod, ready, service};
use crate::{bare, operator::linchpin};

const PROT: &str = "prot.podopslifecycle.kusionstack.io/9705eb7ac2c98403";
const CLEAN: &str = "resource-consist.kusionstack.io/clean-web";
const ENTRY: &str =
    r#"{"expectedFinalizers":{"Service/SPACE/web":"prot.podopslifecycle.kusionstack.io/9705eb7ac2c98403"}}"#;

#[test]
fn a_service_and_its_pods_are_kept_at_the_provider_with_the_documents_marks_until_nothing_remains() {
    let namespaces = ["consist-a", "consist-b", "consist-c", "consist-d"];
    let mut shop = Shop::open(&bare(), &namespaces, &["--resync=1s"]);

    // Attached, with the document's shapes and marks.
    let scenario = shop.scenario("consist-a");
    pod(&scenario, "web-1", "web", "10.0.0.1", false);
    pod(&scenario, "other", "other", "10.0.0.9", false);
    service(&scenario, "web");
    shop.until("web-1 is in traffic", || shop.provider.serves(&scenario, "web", "web-1"));
    shop.until("web-1 is protected", || {
        scenario.get("Pod", "web-1").is_some_and(|pod| finalizers(&pod) == [PROT])
    });
    let item = shop.provider.employee(&scenario, "web", "web-1").unwrap();
    assert_eq!(
        item,
        json!({"id": "web-1", "name": "web-1", "statuses": {"ip": "10.0.0.1", "lifecycleReady": true,
            "extraStatus": {"trafficOn": true, "trafficWeight": 100}}})
    );
    let vip = &shop.provider.state()["employers"]["Service/consist-a/web"][0];
    assert_eq!(vip["statuses"], json!({"remoteVIP": "demo-remote-VIP", "remoteVIPQPS": 100}));
    let stored = scenario.get("Pod", "web-1").unwrap();
    assert_eq!(annotation(&stored, ENTRIES), Some(ENTRY.replace("SPACE", "consist-a").as_str()));
    assert_eq!(finalizers(&scenario.get("Service", "web").unwrap()), [CLEAN]);
    let other = scenario.get("Pod", "other").unwrap();
    assert!(finalizers(&other).is_empty() && annotation(&other, ENTRIES).is_none(), "{other}");
    shop.until("the binding says so", || {
        let Some(binding) = scenario.get("ConsistBinding", "service-web") else { return false };
        condition(&binding, "Ready")["status"] == "True"
            && binding["status"]["phase"] == "Synced"
            && binding["status"]["attached"] == "1/1"
            && binding["status"]["employees"][0]["protected"] == true
    });
    let binding = scenario.get("ConsistBinding", "service-web").unwrap();
    assert_eq!(binding["spec"]["adapter"], "demo");
    assert_eq!(binding["spec"]["key"], "Service/consist-a/web");
    assert_eq!(binding["spec"]["finalizer"], PROT);
    assert_eq!(binding["spec"]["selector"], json!({"app": "web"}));
    assert!(
        scenario.events("web").iter().any(|(reason, _)| reason == "EnsureEmployerCleanFinalizerSucceed"),
        "{:?}",
        scenario.events("web")
    );

    // The order of what was written, as the API server saw it.
    let writes: Vec<_> = Shop::writes(&scenario);
    let first = |resource: &str| writes.iter().position(|(_, of, _)| of == resource).unwrap();
    assert!(
        first("consistbindings/") < first("services/") && first("services/") < first("pods/"),
        "{writes:?}"
    );

    let metrics = shop.metrics();
    for line in [
        "linchpin_consist_employers{adapter=\"demo\",ready=\"true\"} 1",
        "linchpin_consist_employees{adapter=\"demo\",state=\"Attached\"} 1",
        "linchpin_consist_calls_total{adapter=\"demo\",call=\"CreateEmployees\",result=\"done\"} 1",
    ] {
        assert!(metrics.contains(line), "{line} is missing:\n{metrics}");
    }

    // A spec that somebody changes is put back.
    scenario.merge("ConsistBinding", "service-web", &json!({"spec": {"key": "mine"}}));
    shop.until("the binding is put back", || {
        scenario.get("ConsistBinding", "service-web").unwrap()["spec"]["key"] == "Service/consist-a/web"
    });

    comes_and_goes(&shop, &scenario);
    drop(scenario);
    faults(&mut shop);
    stripped(&mut shop);
    killed_again_and_again(&mut shop);
    disabled(&mut shop);
    shop.judge(&namespaces);
}

/// Pods that come and go, a steady state, and an employer that is deleted.
fn comes_and_goes(shop: &Shop, scenario: &Scenario) {
    // Not Ready: switched off, then unprotected. Ready again: back.
    let path = "/api/v1/namespaces/consist-a/pods/web-1/status";
    let body = json!({"status": {"conditions": [{"type": "Ready", "status": "False"}]}});
    scenario
        .api
        .request(&http::Method::PATCH, path, "application/strategic-merge-patch+json", Some(&body))
        .unwrap();
    shop.until("web-1 is out of traffic and free", || {
        !shop.provider.serves(scenario, "web", "web-1")
            && scenario.get("Pod", "web-1").is_some_and(|pod| finalizers(&pod).is_empty())
    });
    ready(scenario, "web-1", "10.0.0.1");
    shop.until("web-1 is back", || {
        shop.provider.serves(scenario, "web", "web-1")
            && scenario.get("Pod", "web-1").is_some_and(|pod| finalizers(&pod) == [PROT])
    });

    // Steady: nothing is written.
    shop.until("it is settled", || {
        scenario.get("ConsistBinding", "service-web").unwrap()["status"]["phase"] == "Synced"
    });
    std::thread::sleep(std::time::Duration::from_secs(2));
    let before = Shop::writes(scenario).len();
    std::thread::sleep(std::time::Duration::from_secs(4));
    assert_eq!(Shop::writes(scenario)[before..], [], "steady state makes no write");

    // A pod that leaves by its label is released whole; one that is deleted goes.
    pod(scenario, "web-2", "web", "10.0.0.2", false);
    shop.until("web-2 is protected", || {
        scenario.get("Pod", "web-2").is_some_and(|pod| finalizers(&pod) == [PROT])
    });
    scenario.merge("Pod", "web-2", &json!({"metadata": {"labels": {"app": "none"}}}));
    shop.until("web-2 is free of marks", || {
        let pod = scenario.get("Pod", "web-2").unwrap();
        finalizers(&pod).is_empty() && annotation(&pod, ENTRIES) == Some("{}")
    });
    assert!(shop.provider.employee(scenario, "web", "web-2").is_none());
    scenario.delete("Pod", "web-1");
    scenario.gone("Pod", "web-1");
    shop.until("web-1 is gone from the provider", || {
        shop.provider.employee(scenario, "web", "web-1").is_none()
    });

    // The employer is deleted: nothing remains.
    pod(scenario, "web-3", "web", "10.0.0.3", false);
    shop.until("web-3 is protected", || {
        scenario.get("Pod", "web-3").is_some_and(|pod| finalizers(&pod) == [PROT])
    });
    scenario.delete("Service", "web");
    scenario.gone("Service", "web");
    let pod_3 = scenario.get("Pod", "web-3").unwrap();
    assert!(finalizers(&pod_3).is_empty() && annotation(&pod_3, ENTRIES) == Some("{}"), "{pod_3}");
    assert!(!shop.provider.knows(scenario, "web") && scenario.get("ConsistBinding", "service-web").is_none());
}

/// A provider that is down, or comes back empty: nothing is detached or released on that, and it is repaired after.
fn faults(shop: &mut Shop) {
    let scenario = shop.scenario("consist-b");
    pod(&scenario, "web-1", "web", "10.0.1.1", false);
    service(&scenario, "web");
    let protected = || scenario.get("Pod", "web-1").is_some_and(|pod| finalizers(&pod) == [PROT]);
    shop.until("web-1 is protected", protected);
    shop.provider.process.kill();
    shop.until("the binding says that the provider is away", || {
        let binding = scenario.get("ConsistBinding", "service-web").unwrap();
        condition(&binding, "Ready")["reason"] == "ProviderUnreachable"
            && binding["status"]["phase"] == "Degraded"
            && binding["status"]["provider"]["reachable"] == false
    });
    for reason in ["GetCurrentEmployerFailed", "GetCurrentEmployeesFailed"] {
        shop.until(reason, || scenario.events("web").iter().any(|(told, _)| told == reason));
    }
    scenario.delete("Service", "web");
    std::thread::sleep(std::time::Duration::from_secs(3));
    assert!(protected(), "nothing is released while nobody knows");
    assert_eq!(finalizers(&scenario.get("Service", "web").unwrap()), [CLEAN]);
    // Released by hand.
    scenario.annotate("Service", "web", "linchpin.dev/proceed", "clean");
    scenario.gone("Service", "web");
    assert!(finalizers(&scenario.get("Pod", "web-1").unwrap()).is_empty());
    // What may be left is told where it outlives the Service: log, number, and an Event in our own namespace.
    let left = "Service/consist-b/web was released by hand: provider demo may still have web, web-1";
    shop.until("what may be left is told", || is_told(&scenario, left));
    assert!(shop.log().contains(left));
    assert!(shop.metrics().contains("linchpin_left_behind_total 1"), "{}", shop.metrics());
    // It comes back empty, and is filled again.
    service(&scenario, "web");
    let address = shop.provider.address.clone();
    shop.provider = Provider::start(&address);
    shop.until("web-1 is in traffic again", || {
        shop.provider.serves(&scenario, "web", "web-1") && protected()
    });
    shop.provider.process.kill();
    shop.provider = Provider::start(&address);
    shop.until("drift is repaired", || shop.provider.serves(&scenario, "web", "web-1"));
    assert!(protected(), "an empty answer releases nothing");
    // Label off is the way out while the Service lives.
    scenario.merge("Service", "web", &json!({"metadata": {"labels": {"kusionstack.io/control": null}}}));
    shop.until("it is released", || {
        finalizers(&scenario.get("Service", "web").unwrap()).is_empty()
            && finalizers(&scenario.get("Pod", "web-1").unwrap()).is_empty()
            && !shop.provider.knows(&scenario, "web")
            && scenario.get("ConsistBinding", "service-web").is_none()
    });
}

/// Whether an Event in our own namespace says what may be left.
fn is_told(scenario: &Scenario, left: &str) -> bool {
    let list = scenario.api.read("/apis/events.k8s.io/v1/namespaces/default/events").unwrap();
    let mut events = list["items"].as_array().unwrap().iter();
    events.any(|event| event["reason"] == "LeftBehind" && event["note"] == left)
}

/// Somebody takes the clean finalizer off a Service that goes while its provider is away: it is told, and what is left is
/// taken away when the provider answers.
fn stripped(shop: &mut Shop) {
    let scenario = shop.scenario("consist-b");
    service(&scenario, "web");
    shop.until("web-1 is protected again", || {
        scenario.get("Pod", "web-1").is_some_and(|pod| finalizers(&pod) == [PROT])
    });
    shop.provider.process.kill();
    scenario.delete("Service", "web");
    scenario.merge("Service", "web", &json!({"metadata": {"finalizers": null}}));
    scenario.gone("Service", "web");
    let left =
        "Service/consist-b/web is gone without its clean finalizer: provider demo may still have web, web-1";
    shop.until("it is told", || is_told(&scenario, left));
    assert!(shop.log().contains(left) && shop.metrics().contains("linchpin_left_behind_total 2"));
    shop.provider = Provider::start(&shop.provider.address.clone());
    shop.until("nothing is left", || {
        finalizers(&scenario.get("Pod", "web-1").unwrap()).is_empty()
            && scenario.get("ConsistBinding", "service-web").is_none()
    });
    assert!(!shop.provider.knows(&scenario, "web"));
}

/// Killed at random points of attaching and of leaving: it always ends where it should.
fn killed_again_and_again(shop: &mut Shop) {
    let scenario = shop.scenario("consist-c");
    for round in 0..5_u64 {
        pod(&scenario, "web-1", "web", "10.0.2.1", false);
        service(&scenario, "web");
        std::thread::sleep(std::time::Duration::from_millis(60 * round * round));
        shop.start();
        shop.until("web-1 is protected", || {
            scenario.get("Pod", "web-1").is_some_and(|pod| finalizers(&pod) == [PROT])
        });
        scenario.delete("Service", "web");
        scenario.delete("Pod", "web-1");
        std::thread::sleep(std::time::Duration::from_millis(40 * round * round));
        shop.start();
        shop.until("nothing is left", || {
            scenario.get("Service", "web").is_none()
                && scenario.get("Pod", "web-1").is_none()
                && scenario.get("ConsistBinding", "service-web").is_none()
                && !shop.provider.knows(&scenario, "web")
        });
    }
}

/// `consist disable` leaves nothing in the provider, on pods and on employers that live on.
fn disabled(shop: &mut Shop) {
    let scenario = shop.scenario("consist-d");
    pod(&scenario, "web-1", "web", "10.0.3.1", true);
    service(&scenario, "web");
    shop.until("web-1 is available", || {
        let pod = scenario.get("Pod", "web-1").unwrap();
        finalizers(&pod) == [PROT] && super::label(&pod, super::AVAILABLE).is_some()
    });
    let listed =
        linchpin().args(["consist", "list", "--kubeconfig"]).arg(shop.cluster.kubeconfig()).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    assert!(listed.contains("Service/consist-d/web  demo     1/1"), "{listed}");
    shop.process = None;
    let done = linchpin()
        .args(["consist", "disable", "demo", "--provider", &shop.provider.url(), "-n", "consist-d"])
        .args([
            "--lease-namespace=default",
            "--lease-duration=3s",
            "--renew-deadline=2s",
            "--retry-period=200ms",
        ])
        .arg("--kubeconfig")
        .arg(&shop.kubeconfig)
        .output()
        .unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let pod = scenario.get("Pod", "web-1").unwrap();
    assert!(finalizers(&pod).is_empty() && annotation(&pod, ENTRIES).is_none(), "{pod}");
    assert!(super::label(&pod, super::AVAILABLE).is_none(), "{pod}");
    assert!(finalizers(&scenario.get("Service", "web").unwrap()).is_empty());
    assert!(scenario.get("ConsistBinding", "service-web").is_none());
    assert!(!shop.provider.knows(&scenario, "web"));
    shop.start();
}
