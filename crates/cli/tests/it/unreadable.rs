//! One object that cannot be read, or one kind: its own problem and nobody else's, and told where people look.

use crate::{
    bare, eventually,
    operator::{Operator, linchpin},
    seconds, with_definitions,
    world::{self, World},
};
use http::Method;
use linchpin_testkit::{Api, OPERATOR, Scenario};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use std::{
    io::{BufRead, BufReader},
    process::Stdio,
};

/// What must appear in no log.
const CANARY: &str = "hunter2-canary";

/// A ResourceDependency with values that are nested deeper than anybody reads.
fn deep(scenario: &Scenario, name: &str, depth: usize) {
    let values = (0..depth).fold(json!(CANARY), |inner, _| json!({"a": inner}));
    let spec = json!({"serviceAccountName": "actor", "values": {"deep": values}, "actions": [
        {"name": "make", "type": "create", "resource": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "deep"}}}]});
    let object = json!({"apiVersion": "tools.kubestellar.io/v1", "kind": "ResourceDependency",
        "metadata": {"name": name}, "spec": spec});
    let namespace = &scenario.namespace;
    let path = format!("/apis/tools.kubestellar.io/v1/namespaces/{namespace}/resourcedependencies");
    // The answer is as deep as the object, so the client of this test cannot read it either.
    let answer = scenario.api.request(&Method::POST, &path, "application/json", Some(&object));
    assert!(matches!(&answer, Err(refused) if refused.code == 0), "{answer:?}");
}

#[test]
fn an_object_nested_too_deeply_keeps_no_other_from_being_served_and_its_body_out_of_the_log() {
    let World { cluster, api, operator: first } = World::start(&bare(), &["--leader-elect=false"]);
    let audit = || linchpin_testkit::audit::Audit::from_now(&cluster.audit_log());
    let attacker = Scenario::begin(&api, audit(), "deep");
    let victim = Scenario::begin(&api, audit(), "quiet");
    let make = "actions: [{name: make, type: create, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: $}}}]";
    victim.resource_dependency("before", &make.replace('$', "before"));
    victim.completed("before");
    deep(&attacker, "deep", 200);
    let told = |name: &str| attacker.events(name).into_iter().any(|(reason, _)| reason == "Unreadable");
    eventually("it is told on the object", seconds(60), || told("deep"));
    first.signal(Signal::SIGKILL);

    deep(&attacker, "deeper", 2_000);
    let second = world::operator(&cluster, &["--leader-elect=false", "--log-level=debug"]);
    victim.resource_dependency("after", &make.replace('$', "after"));
    victim.completed("after");
    eventually("it is told on both objects", seconds(60), || told("deep") && told("deeper"));
    assert!(!attacker.has("deep"));
    for log in [first.log(), second.log()] {
        assert!(log.contains("cannot be read"), "{log}");
        assert!(!log.contains(CANARY), "{log}");
    }
    let message = attacker.events("deep").into_iter().find(|(reason, _)| reason == "Unreadable").unwrap().1;
    assert!(message.contains("nested") && !message.contains(CANARY), "{message}");
    // Nor does it keep people from looking at the others.
    let tree = linchpin()
        .args(["tree", "--all-namespaces", "--kubeconfig"])
        .arg(cluster.kubeconfig())
        .output()
        .unwrap();
    let (shown, told) = (String::from_utf8_lossy(&tree.stdout), String::from_utf8_lossy(&tree.stderr));
    assert!(tree.status.success() && shown.contains("after"), "{shown}{told}");
    assert!(told.contains("ResourceDependency deep/deep, which cannot be read"), "{told}");
    // Nor while they look on.
    let mut tree = linchpin()
        .args(["tree", "--all-namespaces", "--watch", "--kubeconfig"])
        .arg(cluster.kubeconfig())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(tree.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line.contains("rd quiet/after")));
    let told = BufReader::new(tree.stderr.take().unwrap()).lines().map(Result::unwrap).next().unwrap();
    assert!(told.contains("ResourceDependency deep/deep, which cannot be read"), "{told}");
    victim.resource_dependency("later", &make.replace('$', "later"));
    assert!(lines.any(|line| line.contains("rd quiet/later")));
    tree.kill().unwrap();
    tree.wait().unwrap();
    // Once it can be read, it is served like any other.
    let shallow = json!({"spec": {"values": Value::Null}});
    let _ = attacker.api.merge("ResourceDependency", "deep", "deep", "", &shallow);
    attacker.completed("deep");
}

#[test]
fn an_object_that_cannot_be_read_goes_with_what_it_made_when_it_is_deleted() {
    let scenario = world::scenario("deep-goes");
    scenario.resource_dependency(
        "rd",
        "
        deletionPolicy: Delete
        actions: [{name: make, type: create, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: made}}}]
        ",
    );
    scenario.completed("rd");
    let values = (0..200).fold(json!(CANARY), |inner, _| json!({"a": inner}));
    let deeper = json!({"spec": {"values": {"deep": values}}});
    // The answer is as deep as the object, so the client of this test cannot read it either.
    let _ = scenario.api.merge("ResourceDependency", "deep-goes", "rd", "", &deeper);
    eventually("it is told on the object", seconds(60), || {
        scenario.events("rd").into_iter().any(|(reason, _)| reason == "Unreadable")
    });
    let path = "/apis/tools.kubestellar.io/v1/namespaces/deep-goes/resourcedependencies/rd";
    let _ = scenario.api.request(&Method::DELETE, path, "application/json", None);
    eventually("it is gone", seconds(60), || {
        let answer = scenario.api.request(&Method::GET, path, "application/json", None);
        matches!(answer, Err(refused) if refused.code == 404)
    });
    assert!(!scenario.has("made"));
    let deleted = scenario.audit.user_writes("deep-goes").into_iter().filter(|event| event.verb == "delete");
    let by: Vec<Option<String>> = deleted.map(|event| event.acting_as).collect();
    assert_eq!(by, [Some(scenario.actor())]);
}

#[test]
fn a_kind_that_cannot_be_listed_is_named_by_readiness_and_served_once_it_can_be() {
    let cluster = with_definitions();
    let api = Api::connect(&cluster.kubeconfig());
    let rules = api.get("ClusterRole", "", OPERATOR).unwrap()["rules"].clone();
    let mut fewer = rules.clone();
    fewer.as_array_mut().unwrap().retain(|rule| rule["resources"] != json!(["appbundles"]));
    assert_ne!(fewer, rules);
    let give =
        |rules: &Value| drop(api.merge("ClusterRole", "", OPERATOR, "", &json!({"rules": rules})).unwrap());
    give(&fewer);
    let kubeconfig = cluster.kubeconfig_for(OPERATOR, None).unwrap();
    let operator = Operator::start("operator", &kubeconfig, &["--leader-elect=false"]);
    eventually("readiness names the kind", seconds(60), || {
        let (ready, text) = operator.readiness();
        !ready && text.contains("[-] kinds: AppBundle cannot be listed") && text.contains("403")
    });
    assert!(operator.is_live());
    give(&rules);
    eventually("the operator is ready", seconds(60), || operator.is_ready());
}

#[test]
fn every_request_of_ours_names_its_program_in_the_audit_log() {
    let scenario = world::scenario("agents");
    scenario.resource_dependency(
        "rd",
        "actions: [{name: make, type: create, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: made}}}]",
    );
    scenario.completed("rd");
    let log = std::fs::read_to_string(world::world().cluster.audit_log()).unwrap();
    let events = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let ours: Vec<Value> = events.filter(|event| event["user"]["username"] == OPERATOR).collect();
    assert!(
        ours.iter().any(|event| event["impersonatedUser"].is_object()) && ours.len() > 20,
        "{}",
        ours.len()
    );
    let expected = format!("linchpin/{}", env!("CARGO_PKG_VERSION"));
    let nameless: Vec<&Value> = ours.iter().filter(|event| event["userAgent"] != expected.as_str()).collect();
    assert!(nameless.is_empty(), "{:#?}", nameless.first());
}
