//! What a cluster is good for: an API server like any other, users, tokens, the audit log.

use std::{fs, net::TcpListener};

use linchpin_local::{Cluster, ClusterOptions, Component, Error};
use serde_json::Value;

use crate::support::{SHARED, fresh_path, kubectl, kubectl_with, text};

#[test]
fn kubectl_works_and_controllers_run() {
    let deployment = ["create", "deployment", "web", "--image=none", "--replicas=2"];
    kubectl(&SHARED, &deployment);
    kubectl(&SHARED, &["wait", "--for=jsonpath={.status.replicas}=2", "deployment/web", "--timeout=20s"]);
    kubectl(&SHARED, &["delete", "deployment", "web", "--wait=false"]);
    assert!(SHARED.is_ready());
    assert!(kubectl(&SHARED, &["version"]).contains("Server Version: v1.36.4"));
}

#[test]
fn a_user_is_who_the_certificate_says_and_may_do_nothing() {
    let kubeconfig = SHARED.kubeconfig_for("alice", Some("tenants")).unwrap();
    let alice = |arguments: &[&str]| {
        SHARED.kubectl().env("KUBECONFIG", &kubeconfig).args(arguments).output().unwrap()
    };
    let who: Value = serde_json::from_slice(&alice(&["auth", "whoami", "-o", "json"]).stdout).unwrap();
    assert_eq!(who["status"]["userInfo"]["username"], "alice");
    assert_eq!(who["status"]["userInfo"]["groups"][0], "tenants");
    let refused = alice(&["get", "secrets"]);
    assert!(!refused.status.success());
    assert!(text(&refused.stderr).contains("Forbidden"), "{}", text(&refused.stderr));
}

#[test]
fn a_service_account_token_is_signed_and_believed() {
    let token = kubectl(&SHARED, &["create", "token", "default"]);
    let review = format!(
        r#"{{"apiVersion":"authentication.k8s.io/v1","kind":"TokenReview","metadata":{{"name":"x"}},"spec":{{"token":"{}"}}}}"#,
        token.trim()
    );
    let answer =
        kubectl_with(&SHARED, &["create", "-f", "-", "-o", "jsonpath={.status.user.username}"], &review);
    assert_eq!(answer, "system:serviceaccount:default:default");
}

#[test]
fn the_audit_log_names_what_was_written_and_keeps_secrets() {
    kubectl(&SHARED, &["create", "configmap", "witness", "--from-literal=a=b"]);
    kubectl(&SHARED, &["create", "secret", "generic", "hidden", "--from-literal=a=unspeakable"]);
    let log = fs::read_to_string(SHARED.audit_log()).unwrap();
    let events: Vec<Value> = log.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let created = |resource: &str, name: &str| {
        let is_it = |event: &&Value| {
            event["verb"] == "create"
                && event["objectRef"]["resource"] == resource
                && event["objectRef"]["name"] == name
        };
        let found: Vec<&Value> = events.iter().filter(is_it).collect();
        assert_eq!(found.len(), 1, "{resource} {name}");
        found[0]["responseStatus"]["code"].clone()
    };
    assert_eq!(created("configmaps", "witness"), 201);
    assert_eq!(created("secrets", "hidden"), 201);
    assert!(!log.contains("unspeakable") && !log.contains("dW5zcGVha2FibGU"));
    assert!(events.iter().all(|event| event["stage"] != "RequestReceived"));
}

#[test]
fn of_our_own_kinds_the_audit_log_has_every_word() {
    let kind = r#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
        "metadata":{"name":"probes.linchpin.dev"},
        "spec":{"group":"linchpin.dev","scope":"Cluster","names":{"plural":"probes","singular":"probe","kind":"Probe"},
        "versions":[{"name":"v1alpha1","served":true,"storage":true,
        "schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}}"#;
    kubectl_with(&SHARED, &["create", "-f", "-"], kind);
    kubectl(&SHARED, &["wait", "--for=condition=Established", "crd/probes.linchpin.dev", "--timeout=20s"]);
    let object =
        r#"{"apiVersion":"linchpin.dev/v1alpha1","kind":"Probe","metadata":{"name":"p"},"word":"spoken"}"#;
    kubectl_with(&SHARED, &["create", "-f", "-"], object);
    let log = fs::read_to_string(SHARED.audit_log()).unwrap();
    let events = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let bodies = events.filter(|event| event["requestObject"]["word"] == "spoken").count();
    assert_eq!(bodies, 1);
}

#[test]
fn a_second_start_in_the_same_directory_says_so() {
    let options = ClusterOptions { dir: Some(SHARED.dir().to_owned()), ..ClusterOptions::default() };
    assert!(matches!(Cluster::start(&options), Err(Error::AlreadyRunning { .. })));
    assert!(SHARED.is_ready());
}

#[test]
fn another_process_can_open_it_and_dropping_that_ends_nothing() {
    let opened = Cluster::open(SHARED.dir()).unwrap();
    assert_eq!(opened.server(), SHARED.server());
    assert_eq!(opened.pid(Component::ApiServer), SHARED.pid(Component::ApiServer));
    assert!(opened.is_ready());
    drop(opened);
    assert!(SHARED.is_ready());
}

#[test]
fn a_component_that_dies_at_start_shows_the_end_of_its_log() {
    let error =
        Cluster::start(&ClusterOptions::default().flag(Component::ApiServer, "--no-such-flag")).unwrap_err();
    assert!(matches!(error, Error::Died { component: Component::ApiServer, .. }), "{error}");
    assert!(error.to_string().contains("unknown flag: --no-such-flag"), "{error}");
}

#[test]
fn a_taken_port_and_a_foreign_directory_are_refused() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let error =
        Cluster::start(&ClusterOptions { port: Some(port), ..ClusterOptions::default() }).unwrap_err();
    assert!(matches!(error, Error::PortTaken { .. }), "{error}");

    let (_parent, dir) = fresh_path();
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join("thesis.txt"), "years of work").unwrap();
    let error =
        Cluster::start(&ClusterOptions { dir: Some(dir.clone()), ..ClusterOptions::default() }).unwrap_err();
    assert!(matches!(error, Error::NotOurs { .. }), "{error}");
    assert!(!linchpin_local::down(&dir).unwrap());
    assert!(dir.join("thesis.txt").exists());
}

#[test]
fn an_older_version_with_simulated_nodes_runs_pods() {
    let options = ClusterOptions {
        kwok: Some(2),
        emulated_version: Some("1.33".to_owned()),
        ..ClusterOptions::default()
    };
    let cluster = Cluster::start(&options).unwrap();
    let version: Value = serde_json::from_str(&kubectl(&cluster, &["get", "--raw", "/version"])).unwrap();
    assert_eq!(version["emulationMinor"], "33");
    kubectl(&cluster, &["create", "deployment", "web", "--image=none", "--replicas=5"]);
    kubectl(&cluster, &["rollout", "status", "deployment/web", "--timeout=60s"]);
    cluster.stop().unwrap();
}
