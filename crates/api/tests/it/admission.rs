//! What a real API server of the oldest version we serve says to our objects.

mod boot_dependency;
mod refused;

use std::{
    collections::BTreeMap,
    io::Write,
    process::{Output, Stdio},
    sync::OnceLock,
};

use linchpin_local::{Cluster, ClusterOptions, Component};
use linchpin_words::limits;
use serde_json::{Value, json};

use self::{boot_dependency::REFUSED as BOOT_REFUSED, refused::REFUSED};
use super::documents::{DOCUMENT, EVERY_FIELD};

/// One API server with our definitions, for all tests here; it ends with this process.
fn server() -> &'static Cluster {
    static SERVER: OnceLock<Cluster> = OnceLock::new();
    SERVER.get_or_init(|| {
        let options =
            ClusterOptions { emulated_version: Some("1.33".to_owned()), ..ClusterOptions::default() }
                .without(Component::ControllerManager)
                .without(Component::Scheduler);
        let cluster = Cluster::start(&options).unwrap();
        let definitions: Vec<String> = linchpin_doors::registry()
            .definitions()
            .iter()
            .map(|crd| linchpin_api::to_yaml(crd).unwrap())
            .collect();
        succeed(&cluster, &["apply", "-f", "-"], &definitions.join("---\n"));
        succeed(&cluster, &["wait", "--for=condition=Established", "crd", "--all"], "");
        for namespace in ["kubestellar-system", "kubeflex-system"] {
            succeed(&cluster, &["create", "namespace", namespace], "");
        }
        cluster
    })
}

fn kubectl(cluster: &Cluster, arguments: &[&str], input: &str) -> Output {
    let mut process = cluster
        .kubectl()
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    process.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    process.wait_with_output().unwrap()
}

fn succeed(cluster: &Cluster, arguments: &[&str], input: &str) -> String {
    let output = kubectl(cluster, arguments, input);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "kubectl {arguments:?}: {said}");
    assert!(!said.contains("Warning"), "{said}");
    String::from_utf8(output.stdout).unwrap()
}

/// What the server says to each of these objects, by name; nothing for those it takes.
fn answers(objects: &[Value]) -> BTreeMap<String, String> {
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string();
    let output = kubectl(server(), &["create", "--dry-run=server", "--validate=false", "-f", "-"], &list);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let mut answers = BTreeMap::new();
    for object in objects {
        let name = object["metadata"]["name"].as_str().unwrap();
        // kubectl begins each refusal with the object's kind and name in quotes.
        let about = format!("\"{name}\" is invalid:");
        let start = said.find(&about).map(|at| at + about.len());
        let text = start.map(|at| said[at..].lines().next().unwrap_or_default());
        answers.insert(name.to_owned(), text.unwrap_or_default().trim().to_owned());
    }
    let taken = String::from_utf8_lossy(&output.stdout).lines().count();
    let refused = answers.values().filter(|text| !text.is_empty()).count();
    assert_eq!(taken + refused, objects.len(), "every object is answered:\n{said}");
    answers
}

fn object(kind: &str, name: &str, spec: &Value) -> Value {
    let version = match kind {
        "ReadinessProfile" => "linchpin.dev/v1alpha1",
        "AppBundle" => "app.example.com/v1alpha1",
        "BootDependency" => "core.bootchain-operator.ruicoelho.dev/v1alpha1",
        _ => "tools.kubestellar.io/v1",
    };
    let mut object = json!({"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec});
    if kind != "ReadinessProfile" {
        object["metadata"]["namespace"] = json!("default");
    }
    object
}

#[test]
fn the_documents_manifests_apply_unchanged() {
    for (name, manifest) in DOCUMENT {
        eprintln!("{name}");
        succeed(server(), &["apply", "--dry-run=server", "-f", "-"], manifest);
    }
}

#[test]
fn every_field_is_taken() {
    succeed(server(), &["apply", "--dry-run=server", "-f", "-"], EVERY_FIELD);
}

#[test]
fn what_is_wrong_is_refused_and_told() {
    let refused: Vec<_> = REFUSED.iter().chain(BOOT_REFUSED).collect();
    let objects: Vec<Value> = refused
        .iter()
        .enumerate()
        .map(|(index, (kind, spec, _))| {
            let spec: Value = serde_saphyr::from_str(spec).unwrap();
            object(kind, &format!("refused-{index:03}"), &spec)
        })
        .collect();
    let answers = answers(&objects);
    let mut wrong = Vec::new();
    for (answer, (kind, spec, expected)) in answers.values().zip(refused) {
        if !answer.contains(expected) {
            wrong.push(format!("{kind} {spec}\n  expected: {expected}\n  answered: {answer}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn lists_are_bounded() {
    let dependencies = |count: usize| json!({"dependencies": (0..count).map(|i| json!({"name": format!("d{i}"), "resource": "pod/x"})).collect::<Vec<_>>()});
    let actions = |count: usize| json!({"actions": (0..count).map(|i| json!({"name": format!("a{i}"), "type": "wait", "wait": "1s"})).collect::<Vec<_>>()});
    let groups = |count: usize, each: usize| {
        let list =
            (0..each).map(|i| json!({"name": format!("d{i}"), "resource": "pod/x"})).collect::<Vec<_>>();
        json!({"groups": (0..count).map(|i| json!({"name": format!("g{i}"), "dependencies": list})).collect::<Vec<_>>()})
    };
    let single = |dependency: Value| json!({"dependencies": [dependency]});
    let named = |length: usize| single(json!({"name": "n".repeat(length), "resource": "pod/x"}));
    let cel = |length: usize| single(json!({"resource": "pod/x", "cel": "c".repeat(length)}));
    let mut objects = Vec::new();
    let mut add = |kind: &str, name: &str, at: Value, over: Value, far_over: Value| {
        for (suffix, spec) in [("at", at), ("over", over), ("way-over", far_over)] {
            objects.push(object(kind, &format!("{name}-{suffix}"), &spec));
        }
    };
    let many = |limit: usize| limit * 100;
    let bundles = |groups: usize, each: usize| {
        let list: Vec<Value> = (0..each).map(|i| json!({"name": format!("c{i}"), "template": {}})).collect();
        json!({"groups": (0..groups).map(|i| json!({"name": format!("g{i}"), "components": list})).collect::<Vec<_>>()})
    };
    let limit = limits::COMPONENTS;
    add("AppBundle", "components", bundles(1, limit), bundles(1, limit + 1), bundles(1, many(limit)));
    let limit = limits::GROUPS;
    add("AppBundle", "bundled", bundles(limit, 1), bundles(limit + 1, 1), bundles(many(limit), 1));
    let limit = limits::DEPENDENCIES;
    add(
        "ResourceDependency",
        "dependencies",
        dependencies(limit),
        dependencies(limit + 1),
        dependencies(many(limit)),
    );
    let limit = limits::ACTIONS;
    add("ResourceDependency", "actions", actions(limit), actions(limit + 1), actions(many(limit)));
    let limit = limits::GROUPS;
    add("DependencyGroup", "groups", groups(limit, 1), groups(limit + 1, 1), groups(many(limit), 1));
    let limit = limits::GROUP_DEPENDENCIES;
    add("DependencyGroup", "members", groups(1, limit), groups(1, limit + 1), groups(1, many(limit)));
    add(
        "ResourceDependency",
        "names",
        named(limits::LABEL),
        named(limits::LABEL + 1),
        named(many(limits::LABEL)),
    );
    add("ResourceDependency", "cel", cel(limits::CEL), cel(limits::CEL + 1), cel(many(limits::CEL)));
    for (name, answer) in answers(&objects) {
        assert_eq!(answer.is_empty(), name.ends_with("-at"), "{name}: {answer:.300}");
        assert!(
            answer.is_empty() || answer.contains("Too"),
            "{name} is told that it is too much: {answer:.300}"
        );
    }
}

#[test]
fn a_fresh_object_says_that_nobody_has_looked_at_it() {
    let fresh = object("ResourceDependency", "fresh", &json!({"dependencies": [{"resource": "pod/x"}]}));
    succeed(server(), &["create", "-f", "-"], &fresh.to_string());
    let stored: Value =
        serde_json::from_str(&succeed(server(), &["get", "rd", "fresh", "-o", "json"], "")).unwrap();
    assert_eq!(stored["status"], json!({"observedGeneration": -1}));
    assert_eq!(stored["spec"], fresh["spec"], "no default is added to what the user wrote");
}

#[test]
fn p18_the_name_of_a_bundle_is_the_value_of_a_label() {
    let spec = json!({"groups": [{"name": "a", "components": [{"name": "b", "template": {}}]}]});
    let (good, long) = ("a".repeat(limits::LABEL), "b".repeat(limits::LABEL + 1));
    let answers = answers(&[object("AppBundle", &good, &spec), object("AppBundle", &long, &spec)]);
    assert_eq!(answers[&good], "");
    assert!(answers[&long].contains("may have 63 characters"), "{}", answers[&long]);
}

#[test]
fn a_bundle_is_shown_as_its_document_shows_it() {
    let spec = json!({"groups": [{"name": "a", "components": [{"name": "b", "template": {"free": 1}}]}]});
    succeed(server(), &["create", "-f", "-"], &object("AppBundle", "shown", &spec).to_string());
    let stored: Value =
        serde_json::from_str(&succeed(server(), &["get", "ab", "shown", "-o", "json"], "")).unwrap();
    assert_eq!((&stored["spec"], &stored["status"]), (&spec, &json!({"observedGeneration": -1})));
    let shown = succeed(server(), &["get", "appbundle", "shown"], "");
    let words: Vec<&str> = shown.split_whitespace().collect();
    assert_eq!(words[..5], ["NAME", "READY", "PHASE", "AGE", "MESSAGE"], "{shown}");
}

#[test]
fn a_bundle_may_have_many_writers_but_a_component_has_one() {
    let apply = |manager: &str, components: Value| {
        let spec = json!({"groups": [{"name": "a", "components": components}]});
        let body = object("AppBundle", "shared", &spec).to_string();
        let manager = format!("--field-manager={manager}");
        kubectl(server(), &["apply", "--server-side", &manager, "-f", "-"], &body)
    };
    assert!(apply("one", json!([{"name": "b", "template": {"free": 1}}])).status.success());
    assert!(apply("two", json!([{"name": "c", "template": {"free": 2}}])).status.success());
    let stored: Value =
        serde_json::from_str(&succeed(server(), &["get", "ab", "shared", "-o", "json"], "")).unwrap();
    assert_eq!(stored["spec"]["groups"][0]["components"].as_array().map(Vec::len), Some(2), "{stored}");
    let refused = apply("two", json!([{"name": "b", "order": 1, "template": {"free": 1}}]));
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(said.contains("conflict with \"one\""), "{said}");
}

#[test]
fn a_null_means_not_given() {
    let spec =
        json!({"globalTimeout": null, "dependencies": [{"resource": "pod/x", "timeout": null, "ref": null}]});
    succeed(server(), &["create", "-f", "-"], &object("ResourceDependency", "nulls", &spec).to_string());
    let stored: Value =
        serde_json::from_str(&succeed(server(), &["get", "rd", "nulls", "-o", "json"], "")).unwrap();
    assert_eq!(stored["spec"], json!({"dependencies": [{"resource": "pod/x"}]}));
}

#[test]
fn a_status_of_a_newer_version_keeps_its_journal() {
    let spec = json!({"groups": [{"name": "a"}]});
    succeed(server(), &["create", "-f", "-"], &object("DependencyGroup", "newer", &spec).to_string());
    let patch = r#"{"status": {"phase": "Waiting", "message": "waits for Pod default/x", "blockedBy": [
        {"reason": "NotFound", "message": "m", "step": "db", "since": "2026-01-31T12:00:00.000001Z"},
        {"reason": "NotFound", "message": "m", "step": "cache", "since": "2026-01-31T12:00:00Z"}],
        "journal": {"steps": {"a": {"invented": [1, {"later": true}]}}}}}"#;
    succeed(server(), &["patch", "dg", "newer", "--subresource=status", "--type=merge", "-p", patch], "");
    let stored: Value =
        serde_json::from_str(&succeed(server(), &["get", "dg", "newer", "-o", "json"], "")).unwrap();
    assert_eq!(stored["status"]["journal"]["steps"]["a"]["invented"][1]["later"], json!(true));
    let shown = succeed(server(), &["get", "depgroup", "newer", "-o", "wide"], "");
    let words: Vec<&str> = shown.split_whitespace().collect();
    assert_eq!(words[..6], ["NAME", "READY", "PHASE", "AGE", "MESSAGE", "WAITING-FOR"], "{shown}");
    assert!(shown.contains("waits for Pod default/x"), "{shown}");
    assert!(shown.contains("db"), "{shown}");
}
