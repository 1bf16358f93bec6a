//! `linchpin explain`, on objects that really wait.

use crate::operator::linchpin;
use crate::{
    eventually, seconds,
    tree::{all_wait, apply, bundles, chain, feed, key, looks, phase, serving, watched},
};

#[test]
fn the_first_line_names_the_root_cause_and_the_chain_follows() {
    let _operator = serving("explain-chain");
    apply(&chain("explain-chain"));
    eventually("all wait", seconds(20), || {
        ["rd/first", "rd/last", "dg/all"].iter().all(|object| phase("explain-chain", object) == "Waiting")
    });
    let (code, text, error) = looks(&["explain", "dg/all", "-n", "explain-chain"]);
    assert_eq!(code, 0, "{error}");
    let lines: Vec<&str> = text.lines().collect();
    assert!(
        lines[0].starts_with(
            "DependencyGroup explain-chain/all waits for DependencyGroup explain-chain/all[one], which waits for \
             ResourceDependency explain-chain/last, which waits for ConfigMap explain-chain/made, to be made by \
             ResourceDependency explain-chain/first, which waits for ConfigMap explain-chain/go: "
        ),
        "{text}"
    );
    assert!(lines.last().unwrap().contains("└─ waits for ConfigMap explain-chain/go: "), "{text}");
    assert!(lines.last().unwrap().contains(", for "), "{text}");

    let (code, text, error) = looks(&["explain", "cm/go", "-n", "explain-chain"]);
    assert_eq!(code, 0, "{error}");
    assert!(text.starts_with("4 objects wait for ConfigMap explain-chain/go\n"), "{text}");
    assert!(text.contains("  ResourceDependency explain-chain/first\n"), "{text}");

    apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: go, namespace: explain-chain}}");
    eventually("it is done", seconds(20), || phase("explain-chain", "dg/all") == "Completed");
    let (code, text, _) =
        looks(&["explain", "dependencygroups.tools.kubestellar.io/all", "-n", "explain-chain"]);
    assert_eq!(code, 0);
    assert!(text.starts_with("DependencyGroup explain-chain/all is ready: "), "{text}");
}

#[test]
fn bundles_are_explained_and_chains_go_through_them() {
    let _operator = serving("explain-bundles");
    apply(&bundles("explain-bundles"));
    all_wait("explain-bundles");
    let base = "AppBundle explain-bundles/base waits for AppBundle explain-bundles/base[data], which waits for Secret \
                explain-bundles/key: it does not exist (for component conf), NotFound\n";
    for word in [
        "ab",
        "appbundle",
        "appbundles",
        "AppBundle",
        "appbundle.app.example.com",
        "appbundles.app.example.com",
    ] {
        let (code, text, error) = looks(&["explain", &format!("{word}/base"), "-n", "explain-bundles"]);
        assert_eq!((code, error.as_str()), (0, ""), "{word}");
        assert!(text.starts_with(base), "{word}: {text}");
    }
    let (_, text, _) = looks(&["explain", "ab/shop", "-n", "explain-bundles"]);
    let shop = format!(
        "AppBundle explain-bundles/shop waits for {}",
        base.replacen(" waits for", ", which waits for", 1)
    );
    assert!(text.starts_with(&shop), "{text}");
    assert!(!text.contains("more cause"), "{text}");
    let (_, text, _) = looks(&["explain", "rd/last", "-n", "explain-bundles"]);
    let lines: Vec<&str> = text.lines().collect();
    let last = format!(
        "ResourceDependency explain-bundles/last waits for {}",
        shop.replacen(" waits for", ", which waits for", 1)
    );
    assert_eq!(format!("{}\n", lines[0]), last, "{text}");
    assert!(lines.last().unwrap().contains("└─ waits for Secret explain-bundles/key: "), "{text}");
    // An object that a bundle is to make leads to what the bundle waits for.
    let (_, text, _) = looks(&["explain", "cm/page", "-n", "explain-bundles"]);
    assert!(
        text.starts_with(
            "ConfigMap explain-bundles/page is to be made by AppBundle explain-bundles/shop[front], which waits for \
             AppBundle explain-bundles/base, which waits for "
        ),
        "{text}"
    );
    let (_, text, _) = looks(&["explain", "secret/key", "-n", "explain-bundles"]);
    assert!(text.contains("  AppBundle explain-bundles/shop (through others)\n"), "{text}");
    apply(&key("explain-bundles"));
    eventually("all is ready", seconds(20), || phase("explain-bundles", "rd/last") == "Completed");
    let (_, text, _) = looks(&["explain", "ab/shop", "-n", "explain-bundles"]);
    assert!(
        text.starts_with("AppBundle explain-bundles/shop is ready: All groups deployed successfully"),
        "{text}"
    );
}

#[test]
fn a_bundle_that_lacks_rights_is_told_what_to_run_and_that_helps() {
    let _operator = serving("explain-bundle-rights");
    apply(
        "{apiVersion: app.example.com/v1alpha1, kind: AppBundle, metadata: {name: poor, namespace: explain-bundle-rights},
  spec: {groups: [{name: app, components: [{name: web, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: made}}}]}]}}",
    );
    let command = "kubectl get appbundle poor -n explain-bundle-rights -o yaml | linchpin rbac -f - | kubectl apply -f -";
    let mut told = String::new();
    eventually("it is told what to run", seconds(20), || {
        told = looks(&["explain", "ab/poor", "-n", "explain-bundle-rights"]).1;
        told.contains(command)
    });
    assert!(
        told.contains(
            "AppBundle explain-bundle-rights/poor waits for AppBundle explain-bundle-rights/poor[app]: "
        ),
        "{told}"
    );
    assert!(told.contains("\ncomponent app/web: Failed, MissingRights: "), "{told}");
    let get = ["get", "appbundle", "poor", "-n", "explain-bundle-rights", "-o", "yaml"];
    let object = watched().kubectl().args(get).output().unwrap();
    let roles = feed(linchpin().args(["rbac", "-f", "-"]), &object.stdout);
    feed(watched().kubectl().args(["apply", "-f", "-"]), &roles.stdout);
    eventually("it is done", seconds(60), || phase("explain-bundle-rights", "ab/poor") == "Deployed");
}

#[test]
fn what_is_not_there_is_exit_code_1_and_what_is_no_reference_2() {
    for (object, code, words) in [
        ("rd/nowhere", 1, "there is no ResourceDependency nowhere in namespace default"),
        ("ab/nowhere", 1, "there is no AppBundle nowhere in namespace default"),
        ("secret/nowhere", 1, "no object of ours waits for secret/nowhere"),
        ("nowhere", 2, "has no name"),
    ] {
        let (found, _, error) = looks(&["explain", object, "-n", "default"]);
        assert_eq!(found, code, "{error}");
        assert!(error.contains(words), "{error}");
        assert_eq!(error.trim_end().lines().count(), 1, "{error}");
    }
}

#[test]
fn whoever_lacks_rights_is_told_what_to_run_and_that_helps() {
    let _operator = serving("explain-rights");
    apply(
        "{apiVersion: tools.kubestellar.io/v1, kind: ResourceDependency, metadata: {name: poor, namespace: explain-rights},
  spec: {dependencies: [{name: go, resource: configmap/go}],
    actions: [{name: make, type: create, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: made}}}]}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: go, namespace: explain-rights}}",
    );
    let command = "kubectl get resourcedependency poor -n explain-rights -o yaml | linchpin rbac -f - | kubectl apply -f -";
    eventually("it is told what to run", seconds(20), || {
        let (_, text, _) = looks(&["explain", "rd/poor", "-n", "explain-rights"]);
        text.contains("ServiceAccount explain-rights/default lacks rights") && text.contains(command)
    });
    // Exactly that, step by step.
    let get = ["get", "resourcedependency", "poor", "-n", "explain-rights", "-o", "yaml"];
    let object = watched().kubectl().args(get).output().unwrap();
    let roles = feed(linchpin().args(["rbac", "-f", "-"]), &object.stdout);
    feed(watched().kubectl().args(["apply", "-f", "-"]), &roles.stdout);
    // A watch that was forbidden is tried again within half a minute.
    eventually("it is done", seconds(60), || phase("explain-rights", "rd/poor") == "Completed");
}
