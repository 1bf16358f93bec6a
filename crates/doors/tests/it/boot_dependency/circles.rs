//! Circles at admission.

use linchpin_api::BootDependency;
use linchpin_doors::boot_dependency::circles;

use super::boot;

fn on(name: &str, entries: &str) -> BootDependency {
    boot(name, &format!("{{dependsOn: [{entries}]}}"))
}

fn refusal(incoming: &BootDependency, stored: &[BootDependency]) -> Option<String> {
    circles(incoming, stored.iter()).through.map(|circle| circle.text("shop"))
}

#[test]
fn a_circle_is_told_in_the_documents_words() {
    let stored = [on("b", "{service: c, port: 1}"), on("c", "{service: a, port: 1}")];
    assert_eq!(
        refusal(&on("a", "{service: b, port: 1}"), &stored).as_deref(),
        Some("circular dependency detected: a → b → c → a")
    );
    assert_eq!(
        refusal(&on("a", "{service: a, port: 1}"), &[]).as_deref(),
        Some("circular dependency detected: a → a")
    );
    assert_eq!(refusal(&on("a", "{host: a, port: 1}"), &[]), None, "a host leads nowhere");
}

#[test]
fn an_update_is_judged_by_what_it_says_now() {
    let stored = [on("a", "{service: b, port: 1}"), on("b", "{service: a, port: 1}")];
    assert_eq!(refusal(&on("a", "{service: c, port: 1}"), &stored), None);
}

#[test]
fn b6_a_target_stands_for_the_workload_and_entries_may_name_workloads() {
    let held = boot(
        "boot-of-web",
        "{targetRef: {apiVersion: apps/v1, kind: StatefulSet, name: web}, dependsOn: [{resource: deployment/db}]}",
    );
    let db = on("db", "{resource: bootdependency.core.bootchain-operator.ruicoelho.dev/boot-of-web}");
    assert_eq!(refusal(&db, &[held]).as_deref(), Some("circular dependency detected: db → web → db"));
    let chosen = boot("x", "{selector: {matchLabels: {a: b}}, dependsOn: [{service: x, port: 1}]}");
    assert_eq!(refusal(&chosen, &[]), None, "a selector is nobody");
}

#[test]
fn b7_circles_run_through_namespaces() {
    let mut other = boot("api", "{dependsOn: [{service: web, namespace: shop, port: 1}]}");
    other.metadata.namespace = Some("backend".into());
    assert_eq!(
        refusal(&on("web", "{service: api, namespace: backend, port: 1}"), &[other]).as_deref(),
        Some("circular dependency detected: web → backend/api → web")
    );
}

#[test]
fn b9_forty_layers_are_walked_once() {
    let layer = |index: usize, side: char| {
        let below = |side: char| format!("{{service: n{}{side}, port: 1}}", index + 1);
        on(&format!("n{index}{side}"), &format!("{}, {}", below('a'), below('b')))
    };
    let stored: Vec<BootDependency> =
        (1..40).flat_map(|index| [layer(index, 'a'), layer(index, 'b')]).collect();
    // Each path once would be 2^40 visits: it would not come back. The best of a few, since others work beside it.
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for _ in 0..20 {
            let begun = std::time::Instant::now();
            let refused = refusal(&layer(0, 'a'), &stored);
            tell.send((refused, begun.elapsed())).ok();
        }
    });
    let walks = (0..20).map(|_| told.recv_timeout(std::time::Duration::from_secs(20)).expect("an end"));
    let best = walks.inspect(|(refused, _)| assert_eq!(*refused, None)).map(|(_, took)| took).min();
    assert!(best <= Some(std::time::Duration::from_millis(5)), "{best:?}");
}

#[test]
fn a_chain_of_a_hundred_thousand_does_not_use_the_stack() {
    let stored: Vec<BootDependency> = (1..100_000)
        .map(|index| on(&format!("n{index}"), &format!("{{service: n{}, port: 1}}", index + 1)))
        .collect();
    assert_eq!(refusal(&on("n0", "{service: n1, port: 1}"), &stored), None);
}

#[test]
fn b10_a_circle_elsewhere_refuses_nothing() {
    let stored = [on("b", "{service: c, port: 1}"), on("c", "{service: b, port: 1}")];
    let found = circles(&on("a", "{service: b, port: 1}"), stored.iter());
    assert_eq!(found.through, None);
    assert_eq!(
        found.elsewhere.map(|circle| circle.text("shop")).as_deref(),
        Some("circular dependency detected: b → c → b")
    );
}
