//! The edges of bundles: what they require on every level, their order, and what they make.

use linchpin_doors::AppBundleDoor;
use linchpin_engine::graph::{Edge, Graph, Node, Relation, WaitState, explain};
use linchpin_words::Gvk;
use serde_json::{Value, json};

use super::{Told, texts};
use crate::{
    app_bundle::{map, porch, stage, workload},
    stage::{Custom, Stage},
    things::{config_map, deployment},
};

/// A bundle that requires something on every level.
fn shop() -> Stage<AppBundleDoor> {
    let mut stage = stage(&format!(
        "{{requires: [{{resource: appbundle/base}}], groups: [
           {{name: data, requires: [{{name: key, resource: secret/key}}], components: [{}, {}]}},
           {{name: app, components: [{}]}}]}}",
        workload("db", ""),
        map("conf", ", requires: [{resource: configmap/other}, {resource: configmap/nice, optional: true}]"),
        map("web", "")
    ));
    let kind = Gvk::new("app.example.com", "v1alpha1", "AppBundle");
    stage.customs.push(Custom { kind, plural: "appbundles", namespaced: true });
    stage
}

/// Another bundle that is ready.
fn base() -> Value {
    json!({"apiVersion": "app.example.com/v1alpha1", "kind": "AppBundle", "metadata": {"name": "base", "namespace": "own"},
        "status": {"observedGeneration": 1, "conditions": [{"type": "Ready", "status": "True"}]}})
}

fn secret(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": "own"}})
}

/// What the status of the bundle says now.
fn seen(stage: &mut Stage<AppBundleDoor>) -> Told {
    stage.settle();
    let status = stage.status();
    Told::new::<AppBundleDoor>(&stage.object, status.common.edges.as_deref())
}

fn graph(all: &[Told]) -> Graph {
    let mut graph = Graph::new();
    for one in all {
        graph.set(&one.node, one.edges.clone());
    }
    graph
}

/// Why the first of these waits, in one line.
fn answer(all: &[Told]) -> String {
    why(all, &all[0].node)
}

fn why(all: &[Told], node: &Node) -> String {
    let graph = graph(all);
    assert_eq!(graph.cycles(), []);
    explain::answer(node, &graph.root_causes(node, &|_| true))
}

/// As [`texts`] gives them.
fn sorted<T: Ord, const N: usize>(mut texts: [T; N]) -> [T; N] {
    texts.sort();
    texts
}

/// An object that the bundle makes.
fn product(told: &Told, name: &str) -> Node {
    let makes = |edge: &&Edge| matches!(edge.relation, Relation::Produces { .. });
    let made = told.edges.iter().filter(makes).find(|edge| edge.to.object.name == name);
    made.expect("a product").to.clone()
}

/// The state of a part, as the bundle waits for it.
fn part(told: &Told, name: &str) -> WaitState {
    let found = told.edges.iter().find_map(|edge| match &edge.relation {
        Relation::WaitsFor(wait) if edge.from == told.node && edge.to.part.as_deref() == Some(name) => {
            Some(wait.state)
        }
        _ => None,
    });
    found.expect("a part")
}

#[test]
fn requirements_of_every_level_are_waits_in_their_turn() {
    let mut stage = shop();
    let found = seen(&mut stage);
    assert_eq!(
        texts(&found),
        sorted([
            "AppBundle own/shop waits for AppBundle own/base: Absent",
            "AppBundle own/shop[data] waits for AppBundle own/base: Absent",
            "AppBundle own/shop waits for AppBundle own/shop[data]: InProgress",
            "AppBundle own/shop[data] waits for Secret own/key: Absent",
            "AppBundle own/shop[data] makes Deployment own/db",
            "AppBundle own/shop[data] waits for Deployment own/db: Absent",
            "AppBundle own/shop[data] waits for ConfigMap own/other: Absent",
            "AppBundle own/shop[data] makes ConfigMap own/conf",
            "AppBundle own/shop[data] waits for ConfigMap own/conf: Absent",
            "AppBundle own/shop waits for AppBundle own/shop[app]: InProgress",
            "AppBundle own/shop[app] waits for AppBundle own/shop[data]: InProgress",
            "AppBundle own/shop[app] makes ConfigMap own/web",
            "AppBundle own/shop[app] waits for ConfigMap own/web: Absent",
        ])
    );
    assert_eq!(
        answer(&[found]),
        "AppBundle own/shop waits for AppBundle own/base: it does not exist, NotFound",
        "what has its turn later is no cause"
    );
    stage.put(base());
    assert_eq!(
        answer(&[seen(&mut stage)]),
        "AppBundle own/shop waits for AppBundle own/shop[data], which waits for Secret own/key: it does not exist, NotFound"
    );
    stage.put(secret("key"));
    let found = seen(&mut stage);
    assert_eq!(part(&found, "data"), WaitState::InProgress);
    assert_eq!(part(&found, "app"), WaitState::InProgress);
    let told = answer(&[found]);
    let words = "AppBundle own/shop waits for AppBundle own/shop[data], which waits for Deployment own/db: ";
    assert!(told.starts_with(words) && !told.contains("(and "), "{told}");
    assert!(!told.contains("Resource not ready"), "no word of it twice: {told}");
    stage.put(deployment("own", "db", 1));
    assert_eq!(
        answer(&[seen(&mut stage)]),
        "AppBundle own/shop waits for AppBundle own/shop[data], which waits for ConfigMap own/other: it does not \
         exist (for component conf), NotFound"
    );
    stage.put(config_map("own", "other", &json!({})));
    let done = seen(&mut stage);
    assert_eq!((part(&done, "data"), part(&done, "app")), (WaitState::Met, WaitState::Met));
    assert_eq!(
        texts(&done),
        sorted([
            "AppBundle own/shop waits for AppBundle own/base: Met",
            "AppBundle own/shop waits for AppBundle own/shop[data]: Met",
            "AppBundle own/shop[data] waits for Secret own/key: Met",
            "AppBundle own/shop[data] made Deployment own/db",
            "AppBundle own/shop[data] waits for Deployment own/db: Met",
            "AppBundle own/shop[data] waits for ConfigMap own/other: Met",
            "AppBundle own/shop[data] made ConfigMap own/conf",
            "AppBundle own/shop[data] waits for ConfigMap own/conf: Met",
            "AppBundle own/shop waits for AppBundle own/shop[app]: Met",
            "AppBundle own/shop[app] waits for AppBundle own/shop[data]: Met",
            "AppBundle own/shop[app] made ConfigMap own/web",
            "AppBundle own/shop[app] waits for ConfigMap own/web: Met",
        ])
    );
}

#[test]
fn what_is_lost_later_is_told_though_the_group_stays_deployed() {
    let mut stage = shop();
    stage.put(base()).put(secret("key")).put(config_map("own", "other", &json!({}))).settle();
    stage.put(deployment("own", "db", 1)).settle();
    assert_eq!(stage.status().common.phase.as_deref(), Some("Deployed"));
    stage.put(deployment("own", "db", 0));
    let told = answer(&[seen(&mut stage)]);
    let words = "AppBundle own/shop waits for AppBundle own/shop[data], which waits for Deployment own/db: ";
    assert!(told.starts_with(words), "{told}");
    stage.put(deployment("own", "db", 1)).take(&secret("key"));
    let found = seen(&mut stage);
    assert_eq!(part(&found, "data"), WaitState::InProgress);
    assert_eq!(
        answer(&[found]),
        "AppBundle own/shop waits for AppBundle own/shop[data], which waits for Secret own/key: it does not exist, NotFound"
    );
}

#[test]
fn a_chain_goes_through_bundles_and_from_what_they_are_to_make_to_their_causes() {
    let mut other: Stage<AppBundleDoor> = Stage::new(&format!(
        "{{apiVersion: app.example.com/v1alpha1, kind: AppBundle, metadata: {{name: base}}, spec: \
         {{requires: [{{resource: secret/key}}], groups: [{{name: a, components: [{}]}}, {{name: b, components: [{}]}}]}}}}",
        map("first", ""),
        map("other", "")
    ));
    let other = seen(&mut other);
    let shop = seen(&mut shop());
    assert_eq!(
        answer(&[shop.clone(), other.clone()]),
        "AppBundle own/shop waits for AppBundle own/base, which waits for Secret own/key: it does not exist, NotFound"
    );
    // Whoever waits for an object of the last group waits for what the bundle itself requires.
    let made = product(&other, "other");
    assert_eq!(made.to_string(), "ConfigMap own/other");
    assert_eq!(
        why(&[other, shop], &made),
        "ConfigMap own/other is to be made by AppBundle own/base[b], which waits for ConfigMap own/first, to be made by \
         AppBundle own/base[a], which waits for Secret own/key: it does not exist, NotFound"
    );
}

#[test]
fn bundles_that_require_each_other_are_a_cycle() {
    let one = |name: &str, other: &str| {
        let mut stage: Stage<AppBundleDoor> = Stage::new(&format!(
            "{{apiVersion: app.example.com/v1alpha1, kind: AppBundle, metadata: {{name: {name}}}, spec: \
             {{requires: [{{resource: ab/{other}}}], groups: [{{name: a, components: [{}]}}]}}}}",
            map(name, "")
        ));
        seen(&mut stage)
    };
    let cycles = graph(&[one("left", "right"), one("right", "left")]).cycles();
    let paths: Vec<String> = cycles.iter().map(|cycle| cycle.path.to_string()).collect();
    assert_eq!(paths, ["AppBundle own/left → AppBundle own/right → AppBundle own/left"]);
}

#[test]
fn what_has_failed_is_told_from_what_is_on_its_way() {
    let mut stage = stage(&format!(
        "{{groups: [{{name: a, components: [{{name: both, templates: [
           {{apiVersion: batch/v1, kind: Job, metadata: {{name: j}}}}, {{apiVersion: apps/v1, kind: Deployment,
           metadata: {{name: d}}}}]}}]}}, {{name: b, components: [{}]}}]}}",
        map("x", "")
    ));
    stage.settle();
    stage.put(json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j", "namespace": "own"},
        "status": {"conditions": [{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}]}}));
    stage.put(deployment("own", "d", 0));
    let found = seen(&mut stage);
    let texts = texts(&found);
    assert!(texts.contains(&"AppBundle own/shop[a] waits for Job own/j: Failed".to_owned()), "{texts:#?}");
    assert!(
        texts.contains(&"AppBundle own/shop[a] waits for Deployment own/d: InProgress".to_owned()),
        "{texts:#?}"
    );
    assert_eq!((part(&found, "a"), part(&found, "b")), (WaitState::Failed, WaitState::InProgress));
    let told = answer(&[found]);
    assert!(told.contains("which waits for Job own/j: ") && told.contains("BackoffLimitExceeded"), "{told}");
}

#[test]
fn what_may_be_passed_holds_nothing_up_though_it_is_not_ready() {
    let mut stage = stage(&format!(
        "{{groups: [{{name: a, components: [{{name: entry, template: {{apiVersion: v1, kind: Service,
           metadata: {{name: s}}, spec: {{selector: {{app: web}}}}}}}}]}},
           {{name: b, requires: [{{resource: secret/key}}], components: [{}]}}]}}",
        map("x", "")
    ));
    stage.settle();
    stage.put(json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s", "namespace": "own"},
        "spec": {"selector": {"app": "web"}}}));
    let texts = texts(&seen(&mut stage));
    for words in [
        "AppBundle own/shop[a] waits for Service own/s: InProgress",
        "AppBundle own/shop[b] waits for AppBundle own/shop[a]: Met",
        "AppBundle own/shop[b] waits for Secret own/key: Absent",
    ] {
        assert!(texts.contains(&words.to_owned()), "{words}: {texts:#?}");
    }
}

#[test]
fn whoever_waits_for_a_bundle_that_stands_still_is_told_why_it_does() {
    let spec = |more: &str| format!("{{{more}groups: [{{name: a, components: [{}]}}]}}", map("x", ""));
    let mut suspended = stage(&spec("suspend: true, "));
    let found = seen(&mut suspended);
    let product = product(&found, "x");
    let whole = found.node.clone();
    let still = [found];
    assert_eq!(why(&still, &whole), "AppBundle own/shop waits for nothing");
    let told = why(&still, &product);
    let words =
        "ConfigMap own/x is to be made by AppBundle own/shop[a], which waits for AppBundle own/shop: ";
    assert!(told.starts_with(words) && told.contains("Suspended"), "{told}");

    let mut wrong = stage(&spec("requires: [{resource: secret/key, timeout: soon}], "));
    let found = seen(&mut wrong);
    assert!(wrong.wrong.is_some());
    let whole = found.node.clone();
    assert_eq!(why(&[found], &whole), "AppBundle own/shop waits for nothing", "it is the spec that is wrong");
}

#[test]
fn a_source_that_is_not_there_is_waited_for() {
    let mut stage =
        stage("{groups: [{name: a, components: [{name: x, source: {configMapRef: {name: kept}}}]}]}");
    assert_eq!(
        answer(&[seen(&mut stage)]),
        "AppBundle own/shop waits for AppBundle own/shop[a], which waits for ConfigMap own/kept: it does not exist \
         (for component x), NotFound"
    );
}

#[test]
fn a_package_is_made_and_what_is_in_it_is_waited_for() {
    let mut stage = porch::with(", revision: v1");
    porch::install(&mut stage, "integer");
    stage.put(porch::revision("catalog", "web", 1, "Published", "")).settle();
    let name = porch::variant(&stage)["metadata"]["name"].as_str().expect("a name").to_owned();
    let told = answer(&[seen(&mut stage)]);
    let words = format!("which waits for PackageVariant default/{name}: ");
    assert!(told.contains(&words) && told.contains("Porch has made no revision"), "{told}");
    porch::ready(&mut stage);
    stage.put(porch::revision("mgmt", &name, 1, "Published", "web/v1"));
    stage.put(porch::resources("mgmt", &name, 1, porch::CONTENTS));
    let found = seen(&mut stage);
    assert_eq!(
        texts(&found),
        sorted([
            "AppBundle own/shop waits for AppBundle own/shop[g]: InProgress".to_owned(),
            format!("AppBundle own/shop[g] made PackageVariant default/{name}"),
            format!("AppBundle own/shop[g] waits for PackageVariant default/{name}: Met"),
            "AppBundle own/shop[g] waits for ConfigMap shop/web: Absent".to_owned(),
            "AppBundle own/shop[g] waits for Deployment shop/web: Absent".to_owned(),
            "AppBundle own/shop[g] makes ConfigMap own/after".to_owned(),
            "AppBundle own/shop[g] waits for ConfigMap own/after: Absent".to_owned(),
        ])
    );
}
