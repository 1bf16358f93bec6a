//! BootDependency on a real API server: webhooks, circles, certificates, and what happens without us.

mod configurations;
mod directory;
mod killed;
mod kubelet;
mod rights;
mod served;
mod standby;
mod workloads;

use std::{net::TcpListener, sync::OnceLock, thread, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use linchpin_local::{Cluster, ClusterOptions};
use linchpin_testkit::{Api, Scenario, audit::Audit, grant_operator, grant_webhooks};
use serde_json::{Value, json};

use crate::{
    eventually,
    operator::Operator,
    seconds,
    world::{self, World},
};

/// The waiter's image: simulated nodes pull nothing.
const IMAGE: &str = "localhost/linchpin-wait:1";

/// An address that nobody listens on.
pub(crate) fn free_address() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

/// An operator with webhooks at this address.
fn with_webhooks(cluster: &Cluster, address: &str) -> Operator {
    with_flags(cluster, address, &[])
}

fn with_flags(cluster: &Cluster, address: &str, more: &[&str]) -> Operator {
    let bind = format!("--webhook-bind-address={address}");
    let url = format!("--webhook-url=https://{address}");
    let image = format!("--wait-image={IMAGE}");
    world::operator(cluster, &[&[bind.as_str(), &url, &image], more].concat())
}

/// The certificate of the webhooks as files, as cert-manager's Secret is mounted.
fn mounted(api: &Api) -> tempfile::TempDir {
    let secret = api.read("/api/v1/namespaces/default/secrets/linchpin-webhook-tls").unwrap();
    let directory = tempfile::tempdir().unwrap();
    for name in ["tls.crt", "tls.key", "ca.crt"] {
        let content = STANDARD.decode(secret["data"][name].as_str().unwrap()).unwrap();
        std::fs::write(directory.path().join(name), content).unwrap();
    }
    directory
}

/// The cluster that these tests share.
fn world() -> &'static World {
    static WORLD: OnceLock<World> = OnceLock::new();
    WORLD.get_or_init(|| {
        let cluster = Cluster::start(&ClusterOptions { kwok: Some(1), ..ClusterOptions::default() }).unwrap();
        let api = Api::connect(&cluster.kubeconfig());
        grant_operator(&api);
        grant_webhooks(&api);
        let operator = with_webhooks(&cluster, &free_address());
        published(&api);
        World { operator, api, cluster }
    })
}

/// Waits until the API server has been told of the webhooks.
fn published(api: &Api) {
    let path = "/apis/admissionregistration.k8s.io/v1/";
    for name in [
        "mutatingwebhookconfigurations/linchpin-mutating",
        "validatingwebhookconfigurations/linchpin-validating",
    ] {
        eventually(name, seconds(30), || {
            let stored = api.read(&format!("{path}{name}")).unwrap_or_default();
            stored["webhooks"][0]["clientConfig"]["caBundle"]
                .as_str()
                .is_some_and(|bundle| !bundle.is_empty())
        });
    }
}

/// A namespace that has opted in.
fn opted_in(name: &str) -> Scenario {
    let scenario = world().scenario(name);
    scenario.merge(
        "Namespace",
        &scenario.namespace,
        &json!({"metadata": {"labels": {"linchpin.dev/boot": "enabled"}}}),
    );
    scenario
}

fn boot(scenario: &Scenario, name: &str, spec: &str) {
    scenario.apply(&format!(
        "{{apiVersion: core.bootchain-operator.ruicoelho.dev/v1alpha1, kind: BootDependency, metadata: {{name: {name}}}, spec: {spec}}}"
    ));
}

fn deployment(scenario: &Scenario, name: &str) {
    scenario.apply(&format!(
        "{{apiVersion: apps/v1, kind: Deployment, metadata: {{name: {name}}}, spec: {{replicas: 1, selector: {{matchLabels: {{app: {name}}}}}, template: {{metadata: {{labels: {{app: {name}}}}}, spec: {{containers: [{{name: app, image: app}}]}}}}}}}}"
    ));
}

fn init_names(pod_spec: &Value) -> Vec<String> {
    let inits = pod_spec["initContainers"].as_array().into_iter().flatten();
    inits.filter_map(|container| container["name"].as_str()).map(str::to_owned).collect()
}

/// The webhooks are called only once the API server has read its configurations: until then a probe is tried again.
fn until_called(scenario: &Scenario) {
    boot(scenario, "probe", "{dependsOn: [{service: db, port: 1}]}");
    eventually("the webhooks are called", seconds(30), || {
        deployment(scenario, "probe");
        let called =
            !init_names(&scenario.get("Deployment", "probe").unwrap()["spec"]["template"]["spec"]).is_empty();
        scenario.delete("Deployment", "probe");
        scenario.gone("Deployment", "probe");
        called
    });
}

#[test]
fn deployments_and_their_pods_get_what_they_wait_for() {
    let scenario = opted_in("boot-inject");
    until_called(&scenario);
    boot(
        &scenario,
        "web",
        "{dependsOn: [{service: db, port: 5432, timeout: 30s}, {host: vault.example.com, port: 8200}]}",
    );
    deployment(&scenario, "web");
    let stored = scenario.get("Deployment", "web").unwrap();
    let names = ["wait-for-db", "wait-for-vault-example-com"];
    assert_eq!(init_names(&stored["spec"]["template"]["spec"]), names);
    assert_eq!(stored["spec"]["template"]["spec"]["initContainers"][0]["image"], IMAGE);
    assert_eq!(stored["spec"]["template"]["metadata"]["annotations"]["linchpin.dev/boot"], "web");
    // B13: pods of any kind, here a bare one, by its labels.
    boot(
        &scenario,
        "by-label",
        "{selector: {matchLabels: {kind: bare}}, dependsOn: [{service: cache, port: 6379}]}",
    );
    scenario.apply("{apiVersion: v1, kind: Pod, metadata: {name: bare, labels: {kind: bare}}, spec: {containers: [{name: app, image: app}]}}");
    assert_eq!(init_names(&scenario.get("Pod", "bare").unwrap()["spec"]), ["wait-for-cache"]);
}

#[test]
fn b11_edits_of_metadata_and_scale_start_no_rollout() {
    let scenario = opted_in("boot-quiet");
    until_called(&scenario);
    deployment(&scenario, "web");
    // Creation has the precision of a second.
    thread::sleep(Duration::from_millis(1100));
    boot(&scenario, "web", "{dependsOn: [{service: db, port: 1}]}");
    scenario.merge(
        "Deployment",
        "web",
        &json!({"metadata": {"labels": {"a": "b"}}, "spec": {"replicas": 2}}),
    );
    let quiet = scenario.get("Deployment", "web").unwrap();
    assert!(
        init_names(&quiet["spec"]["template"]["spec"]).is_empty(),
        "a later BootDependency is no surprise"
    );
    let mut attempt = 0;
    eventually("a change of the template is followed", seconds(20), || {
        attempt += 1;
        let note = json!({"restartedAt": attempt.to_string()});
        scenario.merge(
            "Deployment",
            "web",
            &json!({"spec": {"template": {"metadata": {"annotations": note}}}}),
        );
        let changed = scenario.get("Deployment", "web").unwrap();
        init_names(&changed["spec"]["template"]["spec"]) == ["wait-for-db"]
    });
    // An owner that writes its template whole, as it was without our part, starts no rollout: it gets that back as it was,
    // though another set is due by now.
    boot(&scenario, "web", "{dependsOn: [{service: cache, port: 1}]}");
    scenario.until("is out of date", "BootDependency", "web", |object| {
        object["status"]["workloads"][0]["state"] == "Outdated"
    });
    let stored = scenario.get("Deployment", "web").unwrap();
    let mut whole = stored.clone();
    whole["spec"]["template"]["spec"].as_object_mut().unwrap().shift_remove("initContainers");
    for key in ["linchpin.dev/boot", "linchpin.dev/boot-hash"] {
        whole["spec"]["template"]["metadata"]["annotations"].as_object_mut().unwrap().shift_remove(key);
    }
    let path = format!("/apis/apps/v1/namespaces/{}/deployments/web", scenario.namespace);
    eventually("it is written whole", seconds(20), || {
        let now = scenario.get("Deployment", "web").unwrap();
        whole["metadata"]["resourceVersion"] = now["metadata"]["resourceVersion"].clone();
        scenario.api.request(&http::Method::PUT, &path, "application/json", Some(&whole)).is_ok()
    });
    let after = scenario.get("Deployment", "web").unwrap();
    assert_eq!(after["spec"]["template"], stored["spec"]["template"]);
    assert_eq!(after["metadata"]["generation"], stored["metadata"]["generation"]);
}

#[test]
fn b12_what_is_applied_in_one_command_is_not_missed() {
    let scenario = opted_in("boot-together");
    until_called(&scenario);
    // The one right behind the other, as often as it takes for the second to come first to us.
    let create = |path: &str, object: &Value| {
        let path = format!("/apis/{path}");
        scenario.api.request(&http::Method::POST, &path, "application/json", Some(object)).unwrap()
    };
    let namespace = &scenario.namespace;
    let group = "core.bootchain-operator.ruicoelho.dev/v1alpha1";
    let mut missed = Vec::new();
    for number in 0..50 {
        let name = format!("web-{number}");
        let labels = json!({"app": name});
        let template = json!({"metadata": {"labels": labels}, "spec": {"containers": [{"name": "app", "image": "app"}]}});
        let boot = json!({"apiVersion": group, "kind": "BootDependency", "metadata": {"name": name},
            "spec": {"dependsOn": [{"service": "db", "port": 5432}]}});
        let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
            "spec": {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}});
        create(&format!("{group}/namespaces/{namespace}/bootdependencies"), &boot);
        let stored = create(&format!("apps/v1/namespaces/{namespace}/deployments"), &deployment);
        if init_names(&stored["spec"]["template"]["spec"]) != ["wait-for-db"] {
            missed.push(name);
        }
    }
    assert_eq!(missed, [] as [String; 0]);
}

#[test]
fn a_circle_is_refused_in_the_documents_words() {
    let scenario = opted_in("boot-circle");
    until_called(&scenario);
    boot(&scenario, "left", "{dependsOn: [{service: right, port: 80}]}");
    let right = json!({
        "apiVersion": "core.bootchain-operator.ruicoelho.dev/v1alpha1", "kind": "BootDependency",
        "metadata": {"name": "right", "namespace": scenario.namespace},
        "spec": {"dependsOn": [{"service": "left", "port": 80}]},
    });
    let mut said = String::new();
    eventually("the other one is known", seconds(20), || match scenario.api.apply(&right) {
        Ok(_) => {
            scenario.delete("BootDependency", "right");
            false
        }
        Err(refused) => {
            said = refused.message;
            true
        }
    });
    let words = "admission webhook \"vbootdependency-v1alpha1.kb.io\" denied the request: spec.dependsOn: Forbidden: circular dependency detected: right → left → right";
    assert!(said.contains(words), "{said}");
}

#[test]
fn a_namespace_has_so_much_room_and_more_is_refused_with_words_while_others_have_their_own() {
    let (flood, calm) = (opted_in("boot-flood"), opted_in("boot-calm"));
    until_called(&flood);
    let long = format!("/{}", "x".repeat(2047));
    let entries: Vec<Value> =
        (1..=64).map(|port| json!({"service": "db", "port": port, "httpPath": long})).collect();
    let large = |scenario: &Scenario, name: &str| {
        scenario.api.apply(&json!({
            "apiVersion": "core.bootchain-operator.ruicoelho.dev/v1alpha1", "kind": "BootDependency",
            "metadata": {"name": name, "namespace": scenario.namespace},
            "spec": {"serviceAccountName": "actor", "suspend": true, "dependsOn": entries},
        }))
    };
    // What is written is known a moment later: a few more than there is room for may get in.
    let refused = (0..130).find_map(|number| large(&flood, &format!("large-{number}")).err());
    let said = refused.expect("a flood has an end").message;
    let words = "admission webhook \"vbootdependency-v1alpha1.kb.io\" denied the request: spec.dependsOn: Forbidden: the BootDependencies of namespace boot-flood take more than 16 MiB together; delete some, or say less in this one";
    assert!(said.contains(words), "{said}");
    large(&calm, "large").expect("others have their own room");
    let small = json!({"spec": {"dependsOn": [{"service": "db", "port": 1}]}});
    flood.merge("BootDependency", "large-0", &small);
    for number in 1..20 {
        flood.delete("BootDependency", &format!("large-{number}"));
    }
    eventually("there is room again", seconds(30), || large(&flood, "newcomer").is_ok());
}

#[test]
fn b21_what_needs_a_secret_that_is_not_there_is_held_by_the_gate_and_put_into_no_pod() {
    let scenario = opted_in("boot-secret");
    until_called(&scenario);
    scenario.apply("{apiVersion: v1, kind: Secret, metadata: {name: keyless}, stringData: {other: x}}");
    for secret in ["absent", "keyless"] {
        boot(
            &scenario,
            secret,
            &format!(
                "{{serviceAccountName: actor, selector: {{matchLabels: {{needs: {secret}}}}}, dependsOn: [{{host: vault.example.com, port: 8200, httpPath: /, httpHeaders: [{{name: A, valueFrom: {{secretKeyRef: {{name: {secret}, key: value}}}}}}]}}, {{service: db, port: 5432}}]}}"
            ),
        );
    }
    let pod = |name: &str, needs: &str| {
        scenario.apply(&format!("{{apiVersion: v1, kind: Pod, metadata: {{name: {name}, labels: {{needs: {needs}}}}}, spec: {{containers: [{{name: app, image: app}}]}}}}"));
        let pod = scenario.get("Pod", name).unwrap();
        (init_names(&pod["spec"]), !pod["spec"]["schedulingGates"].is_null())
    };
    let held = (vec!["wait-for-db".to_owned()], true);
    assert_eq!(pod("first", "absent"), held, "there is no such Secret");
    assert_eq!(pod("second", "keyless"), held, "it has no such key");
    scenario.apply("{apiVersion: v1, kind: Secret, metadata: {name: absent}, stringData: {value: x}}");
    // The right to get this one Secret is enough, for the operator's own request too.
    scenario.apply(
        "
        {apiVersion: v1, kind: ServiceAccount, metadata: {name: reader}}
---
        {apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: reader}, rules: [
          {apiGroups: [''], resources: [secrets], resourceNames: [absent], verbs: [get]}]}
---
        {apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: reader},
         roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader},
         subjects: [{kind: ServiceAccount, name: reader, namespace: $NS}]}
        ",
    );
    boot(
        &scenario,
        "narrow",
        "{serviceAccountName: reader, dependsOn: [{host: nobody.invalid, port: 80, httpPath: /, httpHeaders: [{name: A, valueFrom: {secretKeyRef: {name: absent, key: value}}}]}]}",
    );
    scenario.until("has asked with the Secret", "BootDependency", "narrow", |object| {
        let row = &object["status"]["entries"][0];
        row["observedFrom"] == "Operator" && row["state"] == "NotReady"
    });
    // Also of many, which nobody may list or watch together.
    let secrets: Vec<String> = (0..20).map(|number| format!("one-of-many-{number}")).collect();
    for secret in &secrets {
        scenario.apply(&format!(
            "{{apiVersion: v1, kind: Secret, metadata: {{name: {secret}}}, stringData: {{value: x}}}}"
        ));
    }
    let all = secrets.join(", ");
    scenario.apply(&format!("{{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {{name: reader}}, rules: [{{apiGroups: [''], resources: [secrets], resourceNames: [absent, {all}], verbs: [get]}}]}}"));
    let entry = |secret: &String| {
        format!(
            "{{host: {secret}.invalid, port: 80, httpPath: /, httpHeaders: [{{name: A, valueFrom: {{secretKeyRef: {{name: {secret}, key: value}}}}}}]}}"
        )
    };
    let entries: Vec<String> = secrets.iter().map(entry).collect();
    boot(&scenario, "many", &format!("{{serviceAccountName: reader, dependsOn: [{}]}}", entries.join(", ")));
    scenario.until("has asked with every Secret", "BootDependency", "many", |object| {
        let rows = object["status"]["entries"].as_array().cloned().unwrap_or_default();
        let asked = |row: &Value| row["observedFrom"] == "Operator" && row["state"] == "NotReady";
        rows.len() == secrets.len() && rows.iter().all(asked)
    });
    let mut attempt = 0;
    eventually("what can be used is put into the pod", seconds(20), || {
        attempt += 1;
        let (names, is_held) = pod(&format!("usable-{attempt}"), "absent");
        names == ["wait-for-vault-example-com", "wait-for-db"] && !is_held
    });
}

#[test]
fn b14_without_us_everything_is_created_as_if_we_did_not_exist() {
    let cluster = Cluster::start(&ClusterOptions::default()).unwrap();
    let api = Api::connect(&cluster.kubeconfig());
    grant_operator(&api);
    grant_webhooks(&api);
    let address = free_address();
    let operator = with_webhooks(&cluster, &address);
    published(&api);
    let scenario = Scenario::begin(&api, Audit::from_now(&cluster.audit_log()), "boot-alone");
    scenario.merge(
        "Namespace",
        &scenario.namespace,
        &json!({"metadata": {"labels": {"linchpin.dev/boot": "enabled"}}}),
    );
    until_called(&scenario);
    boot(
        &scenario,
        "gates",
        "{serviceAccountName: actor, selector: {matchLabels: {kind: bare}}, strategy: SchedulingGate, dependsOn: [{resource: configmap/go}]}",
    );
    let held = ["one", "two", "three"];
    for name in held {
        scenario.apply(&format!("{{apiVersion: v1, kind: Pod, metadata: {{name: {name}, labels: {{kind: bare}}}}, spec: {{containers: [{{name: app, image: app}}]}}}}"));
    }
    let certificate = mounted(&api);
    // It is killed, whatever it does at that moment.
    drop(operator);
    // The port is closed; then somebody listens who never answers; then one who answers garbage.
    deployment(&scenario, "closed");
    let hanging = TcpListener::bind(&address).unwrap();
    deployment(&scenario, "hanging");
    let garbage = thread::spawn(move || {
        let (mut caller, _) = hanging.accept().unwrap();
        let _ = std::io::Write::write_all(&mut caller, b"\x16\x03garbage\r\n\r\n");
    });
    deployment(&scenario, "garbage");
    garbage.join().unwrap();
    scenario.config_map("go", "now");
    let is_held = |name: &str| !scenario.get("Pod", name).unwrap()["spec"]["schedulingGates"].is_null();
    assert!(held.iter().all(|name| is_held(name)), "nobody is there to release them");
    for name in ["closed", "hanging", "garbage"] {
        let stored = scenario.get("Deployment", name).unwrap();
        assert!(init_names(&stored["spec"]["template"]["spec"]).is_empty(), "{name}");
    }
    // Both are created while we are away: nobody puts into the template what it needs.
    boot(&scenario, "missed", "{dependsOn: [{service: db, port: 5432}]}");
    deployment(&scenario, "missed");
    boot(
        &scenario,
        "strays",
        "{selector: {matchLabels: {kind: stray}}, strategy: SchedulingGate, dependsOn: [{service: db, port: 5432}]}",
    );
    scenario.apply("{apiVersion: v1, kind: Pod, metadata: {name: stray, labels: {kind: stray}}, spec: {containers: [{name: app, image: app}]}}");
    // What somebody spoiled meanwhile is mended when we are back.
    let path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/linchpin-mutating";
    let spoil = json!([{"op": "remove", "path": "/webhooks/0/clientConfig/caBundle"}]);
    api.request(&http::Method::PATCH, path, "application/json-patch+json", Some(&spoil)).unwrap();
    // Somebody else makes the certificate from now on.
    api.request(
        &http::Method::DELETE,
        "/api/v1/namespaces/default/secrets/linchpin-webhook-tls",
        "application/json",
        None,
    )
    .unwrap();
    let directory = format!("--webhook-cert-dir={}", certificate.path().display());
    let _operator = with_flags(&cluster, &address, &[&directory]);
    published(&api);
    eventually("whoever was held is released", seconds(60), || !held.iter().any(|name| is_held(name)));
    let events = scenario.audit.events();
    let is_release = |event: &&linchpin_testkit::audit::Event| {
        event.is_by_operator() && event.is_write() && event.resource == "pods"
    };
    let go = scenario.audit.first_write("configmaps", &scenario.namespace, "go");
    let releases: Vec<_> = events.iter().filter(is_release).collect();
    assert_eq!(releases.len(), held.len(), "each once: {releases:?}");
    assert!(releases.iter().all(|event| event.received > go.received), "none before its time: {releases:?}");
    scenario.until("is repaired", "Deployment", "missed", |object| {
        init_names(&object["spec"]["template"]["spec"]) == ["wait-for-db"]
    });
    // Pods cannot be repaired: they are told.
    let strays = scenario.until("tells what it missed", "BootDependency", "strays", |object| {
        object["status"]["workloads"][0]["state"] == "Missed"
    });
    let row = &strays["status"]["workloads"][0];
    assert_eq!((row["kind"].as_str(), row["name"].as_str()), (Some("Pod"), Some("stray")));
    assert_eq!(
        row["message"],
        "1 pod was created before admission knew of this object, or while it was away, and did not wait"
    );
    until_called(&scenario);
    let own = api.read("/api/v1/namespaces/default/secrets/linchpin-webhook-tls");
    assert!(own.is_none(), "where somebody else makes the certificate, there is no Secret of ours");
    scenario.until("is current", "BootDependency", "missed", |object| {
        object["status"]["workloads"][0]["state"] == "Current"
    });
}
