//! A provider that does anything but answer, beside others that do: nothing is done on such an answer, and nobody else is
//! concerned. Three adapters of one process, from a file; one of them begins to answer late.

use std::{fs, net::TcpListener, path::Path};

use linchpin_testkit::{Scenario, condition};
use serde_json::{Value, json};

use super::{
    Provider, Shop, finalizers, pod, ready,
    server::{BAD, Mood, Moody, remote},
};
use crate::{bare, operator::get};

/// A Service that chooses its adapter.
fn chosen(scenario: &Scenario, name: &str, adapter: &str) {
    scenario.apply(&format!(
        "{{apiVersion: v1, kind: Service, metadata: {{name: {name}, labels: {{kusionstack.io/control: 'true', linchpin.dev/adapter: {adapter}}}}}, spec: {{selector: {{app: {name}}}, ports: [{{port: 80}}]}}}}"
    ));
}

fn is_protected(scenario: &Scenario, pod: &str) -> bool {
    scenario.get("Pod", pod).is_some_and(|pod| {
        finalizers(&pod).iter().any(|one| one.starts_with("prot.podopslifecycle.kusionstack.io/"))
    })
}

fn unready(scenario: &Scenario, pod: &str) {
    let path = format!("/api/v1/namespaces/{}/pods/{pod}/status", scenario.namespace);
    let body = json!({"status": {"conditions": [{"type": "Ready", "status": "False"}]}});
    let form = "application/strategic-merge-patch+json";
    scenario.api.request(&http::Method::PATCH, &path, form, Some(&body)).unwrap();
}

fn binding(scenario: &Scenario, employer: &str) -> Value {
    scenario.get("ConsistBinding", &format!("service-{employer}")).unwrap_or_default()
}

#[test]
fn a_provider_that_does_not_answer_well_moves_nothing_and_concerns_nobody_else() {
    let namespace = "faulty";
    let late = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut moody = None;
    let file = |provider: &Provider, directory: &Path| {
        let front = Moody::before(&provider.address);
        let config = format!(
            "apiVersion: linchpin.dev/v1alpha1
kind: ConsistConfig
lifecycle: {{engine: own, drainTimeout: 1m}}
adapters:
- {{name: moody, adapter: demo, provider: 'http://{}', timeout: 1s, resync: 1s, maxConcurrentReconciles: 2}}
- {{name: calm, adapter: http, provider: '{}', resync: 1s}}
- {{name: far, adapter: remote, adapterUrl: 'http://{late}', resync: 1s}}
",
            front.address,
            provider.url()
        );
        moody = Some(front);
        let path = directory.join("config.yaml");
        fs::write(&path, config).unwrap();
        vec!["--config".to_owned(), path.display().to_string()]
    };
    let shop = Shop::open_with(&bare(), &[namespace], &[], file);
    let moody = moody.unwrap();
    let scenario = shop.scenario(namespace);

    // One adapter is not there yet. The others serve all the same, whoever chose them.
    pod(&scenario, "web-1", "web", "10.0.0.1", false);
    pod(&scenario, "quiet-1", "quiet", "10.0.1.1", false);
    pod(&scenario, "open-1", "open", "10.0.2.1", false);
    chosen(&scenario, "web", "moody");
    chosen(&scenario, "quiet", "calm");
    super::service(&scenario, "open");
    shop.until("both are served", || is_protected(&scenario, "web-1") && is_protected(&scenario, "quiet-1"));
    let health = get(shop.listening("health").unwrap(), "/readyz").unwrap().1;
    assert!(health.contains("adapter far: it does not answer yet"), "{health}");
    assert_eq!(binding(&scenario, "web")["spec"]["adapter"], "moody");
    assert!(binding(&scenario, "open").is_null(), "who serves it is not known before all have answered");

    for (number, mood) in BAD.into_iter().enumerate() {
        in_a_bad_mood(&shop, &scenario, &moody, mood, number);
    }
    told(&shop, &scenario);

    // The one that was missing joins them, and then nobody serves what three could.
    let (_, items) = remote(&late.to_string());
    chosen(&scenario, "distant", "far");
    pod(&scenario, "distant-1", "distant", "10.0.3.1", false);
    shop.until("it is served too", || is_protected(&scenario, "distant-1"));
    let kept = items.lock().unwrap().clone();
    assert_eq!(
        kept,
        [json!({"id": "distant-1", "name": "distant-1",
        "statuses": {"ip": "10.0.3.1", "ipv6": "", "lifecycleReady": true}})]
    );
    shop.until("what nobody chose is told of", || {
        let told = scenario.events("open");
        told.iter().any(|(_, note)| note.contains("adapters moody, calm, far fit it"))
    });
    assert!(binding(&scenario, "open").is_null());
    scenario.merge("Service", "open", &json!({"metadata": {"labels": {"linchpin.dev/adapter": "calm"}}}));
    shop.until("it is chosen", || is_protected(&scenario, "open-1"));
    for service in ["web", "quiet", "open", "distant"] {
        scenario.delete("Service", service);
        scenario.gone("Service", service);
    }
    assert!(items.lock().unwrap().is_empty());
    for scope in ["web", "quiet", "open"] {
        assert!(!shop.provider.knows(&scenario, scope), "{scope}");
    }
    shop.judge(&[namespace]);
}

/// The pod that should leave traffic stays as it is, and the other provider works on; then it is made good.
fn in_a_bad_mood(shop: &Shop, scenario: &Scenario, moody: &Moody, mood: Mood, number: usize) {
    moody.changes();
    moody.set(mood);
    unready(scenario, "web-1");
    let before = moody.asked();
    if mood != Mood::Flaps {
        shop.until(&format!("{mood:?} is told"), || {
            let binding = binding(scenario, "web");
            condition(&binding, "Ready")["reason"] == "ProviderUnreachable"
                && binding["status"]["phase"] == "Degraded"
                && binding["status"]["provider"]["reachable"] == false
        });
    }
    // Meanwhile the other goes on.
    let name = format!("quiet-{}", number + 2);
    pod(scenario, &name, "quiet", &format!("10.0.1.{}", number + 2), false);
    shop.until(&format!("{mood:?} concerns nobody else"), || is_protected(scenario, &name));
    if mood == Mood::Flaps {
        // An answer in four parts of which one is missing is none; a whole one may come through.
        assert!(is_protected(scenario, "web-1") || !shop.provider.serves(scenario, "web", "web-1"));
    } else {
        shop.until("it is asked again", || moody.asked() > before + 1);
        let changes = moody.changes();
        assert!(changes.is_empty(), "{mood:?}: {changes:?}");
        assert!(is_protected(scenario, "web-1"), "{mood:?} released a pod in traffic");
        assert!(shop.provider.serves(scenario, "web", "web-1"), "{mood:?} detached a pod");
    }
    moody.set(Mood::Answers);
    shop.until(&format!("after {mood:?} the pod leaves"), || {
        !shop.provider.serves(scenario, "web", "web-1") && !is_protected(scenario, "web-1")
    });
    ready(scenario, "web-1", "10.0.0.1");
    shop.until(&format!("after {mood:?} the pod is back"), || is_protected(scenario, "web-1"));
}

/// People read what happened: events with the document's reasons, once per change, and numbers.
fn told(shop: &Shop, scenario: &Scenario) {
    let events = scenario.events("web");
    let failed: Vec<_> = events.iter().filter(|(reason, _)| reason.ends_with("Failed")).collect();
    assert!(
        failed
            .iter()
            .any(|(reason, note)| reason.starts_with("GetCurrentEmploye") && note.contains("out of order"))
    );
    assert!(failed.len() < 40, "events are on transitions only: {failed:?}");
    let metrics = shop.metrics();
    for line in [
        "linchpin_consist_calls_total{adapter=\"moody\",call=\"Look\",result=\"failed\"}",
        "linchpin_consist_employers{adapter=\"calm\",ready=\"true\"} 1",
    ] {
        assert!(metrics.contains(line), "{line} is missing:\n{metrics}");
    }
}
