//! `linchpin demo`, from its first line to its last, without a terminal.

use crate::{bare, eventually, operator::linchpin, seconds};
use linchpin_local::Cluster;
use std::process::Stdio;

#[test]
fn the_demonstration_tells_its_story_and_leaves_nothing_behind() {
    // In the place where the demonstration looks for a cluster that runs already.
    let home = tempfile::tempdir().unwrap();
    let dir = Some(home.path().join("linchpin/local"));
    let cluster = Cluster::start(&linchpin_local::ClusterOptions { dir, ..bare() }).unwrap();
    let output = linchpin()
        .arg("demo")
        .env("XDG_STATE_HOME", home.path())
        // A terminal would be so narrow.
        .env("COLUMNS", "50")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let (text, error) =
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert!(output.status.success(), "{text}\n{error}");
    let mut rest = text.as_str();
    for line in [
        "the operator leads",
        "four objects that wait",
        "dg shop/shop",
        "1. Somebody gives the shop its password",
        "→ database has written ConfigMap db-config",
        "2. The migration finishes",
        "→ migrate has noted the schema",
        "3. The payment operator is installed",
        "4. A Payment is asked for",
        "5. … and is ready",
        "the last action has run",
        "The shop is open: ConfigMap shop-open",
        "6. Pods wait too",
        "→ Pod till is held until ConfigMap till-counted is there",
        "7. Somebody counts the till",
        "→ Pod till is released after",
        "Try, in another terminal",
        "taking away what the demonstration made",
        "operator stopped, lease released",
    ] {
        let Some((_, after)) = rest.split_once(line) else { panic!("{line:?} is not said next:\n{text}") };
        rest = after;
    }
    // Without a terminal no row of a tree is cut, however wide it is.
    let cut = text.lines().find(|line| line.contains("shop/") && line.contains('…'));
    assert_eq!(cut, None, "{text}");
    let kubectl = |arguments: &[&str]| {
        let output = cluster.kubectl().args(arguments).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let namespace = kubectl(&["get", "namespace", "shop", "-o", "jsonpath={.metadata.deletionTimestamp}"]);
    assert!(namespace.starts_with("20"), "the namespace is not on its way out: {namespace}");
    let webhooks = "mutatingwebhookconfigurations,validatingwebhookconfigurations";
    assert_eq!(kubectl(&["get", webhooks, "--ignore-not-found", "-o", "name"]), "");
    assert_eq!(kubectl(&["get", "secrets", "-n", "default", "-o", "name"]), "", "nor their certificate");
    assert_eq!(kubectl(&["get", "crd", "payments.shop.example.com", "--ignore-not-found", "-o", "name"]), "");
}

#[test]
fn in_a_cluster_of_somebody_elses_the_demonstration_has_a_namespace_of_its_own_and_takes_all_of_it_away() {
    // With the controllers that empty a namespace.
    let cluster = Cluster::start(&linchpin_local::ClusterOptions::default()).unwrap();
    let kubectl = |arguments: &[&str]| {
        let output = cluster.kubectl().args(arguments).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let there = || {
        let kinds = "crd,namespaces,mutatingwebhookconfigurations,validatingwebhookconfigurations";
        let names =
            kubectl(&["get", kinds, "-o", "name"]) + &kubectl(&["get", "secrets", "-A", "-o", "name"]);
        names.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let before = there();
    let demo = |kubeconfig: &std::path::Path| {
        let output = linchpin()
            .arg("demo")
            .env("LOCAL", "0")
            .env("KUBECONFIG", kubeconfig)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.success(), text(output.stdout), text(output.stderr))
    };
    let (good, text, error) = demo(&cluster.kubeconfig());
    assert!(good, "{text}\n{error}");
    for line in [
        "using the cluster of ",
        "dg linchpin-demo/shop",
        "The shop is open: ConfigMap shop-open",
        "kubectl get resourcedependencies,dependencygroups -n linchpin-demo",
        "taking away what the demonstration made",
    ] {
        assert!(text.contains(line), "{line:?} is not said:\n{text}");
    }
    eventually("all of it is gone", seconds(60), || there() == before);
    let (good, text, error) = demo(std::path::Path::new(""));
    assert!(
        !good && error.contains("LOCAL=0 asks for a cluster of yours: set KUBECONFIG"),
        "{text}\n{error}"
    );
}
