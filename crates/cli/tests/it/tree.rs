//! `linchpin tree`, on objects that really wait.

use crate::{
    bare, eventually,
    operator::{Operator, linchpin},
    seconds,
};
use linchpin_local::Cluster;
use std::{
    io::{BufRead, BufReader, Write},
    process::{Command, Output, Stdio},
    sync::OnceLock,
};

/// The cluster of the commands that look: it serves our kinds, and each test has a namespace of its own in it.
pub(crate) fn watched() -> &'static Cluster {
    static CLUSTER: OnceLock<Cluster> = OnceLock::new();
    CLUSTER.get_or_init(|| {
        let cluster = Cluster::start(&bare()).expect("a local Kubernetes");
        let crds = linchpin().arg("crds").output().unwrap();
        feed(cluster.kubectl().args(["apply", "--server-side", "-f", "-"]), &crds.stdout);
        let wait = ["wait", "crd", "--all", "--for=condition=Established", "--timeout=30s"];
        assert!(cluster.kubectl().args(wait).output().unwrap().status.success());
        cluster
    })
}

/// Runs a command with something on its standard input; it must succeed.
pub(crate) fn feed(command: &mut Command, input: &[u8]) -> Output {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output
}

/// Applies manifests.
pub(crate) fn apply(manifests: &str) {
    feed(watched().kubectl().args(["apply", "-f", "-"]), manifests.as_bytes());
}

/// A linchpin command on the cluster: exit code, standard output, standard error.
pub(crate) fn looks(arguments: &[&str]) -> (i32, String, String) {
    let output = linchpin().env("KUBECONFIG", watched().kubeconfig()).args(arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// An operator that serves one namespace, which it makes, with a ServiceAccount `web` that may do everything there.
pub(crate) fn serving(namespace: &str) -> Operator {
    apply(&format!(
        "{{apiVersion: v1, kind: Namespace, metadata: {{name: {namespace}}}}}\n---\n\
         {{apiVersion: v1, kind: ServiceAccount, metadata: {{name: web, namespace: {namespace}}}}}\n---\n\
         {{apiVersion: v1, kind: ServiceAccount, metadata: {{name: default, namespace: {namespace}}}}}\n---\n\
         {{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {{name: web, namespace: {namespace}}},\n \
         roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}},\n \
         subjects: [{{kind: ServiceAccount, name: web, namespace: {namespace}}}]}}\n"
    ));
    let lease = format!("--lease-name={namespace}");
    let only = format!("--watch-namespaces={namespace}");
    Operator::start(namespace, &watched().kubeconfig(), &[&lease, &only])
}

/// The word in an object's status at this path, or nothing.
pub(crate) fn phase(namespace: &str, object: &str) -> String {
    let arguments = ["get", object, "-n", namespace, "-o", "jsonpath={.status.phase}"];
    let output = watched().kubectl().args(arguments).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// Three objects of ours: `last` waits for `first`, which waits for a ConfigMap; a group waits for `last`.
pub(crate) fn chain(namespace: &str) -> String {
    format!(
        "{{apiVersion: tools.kubestellar.io/v1, kind: ResourceDependency, metadata: {{name: first, namespace: {namespace}}},
  spec: {{serviceAccountName: web, dependencies: [{{name: go, resource: configmap/go}}],
    actions: [{{name: make, type: create, resource: {{apiVersion: v1, kind: ConfigMap, metadata: {{name: made}}}}}}]}}}}
---
{{apiVersion: tools.kubestellar.io/v1, kind: ResourceDependency, metadata: {{name: last, namespace: {namespace}}},
  spec: {{serviceAccountName: web, dependencies: [{{name: made, resource: configmap/made}}]}}}}
---
{{apiVersion: tools.kubestellar.io/v1, kind: DependencyGroup, metadata: {{name: all, namespace: {namespace}}},
  spec: {{serviceAccountName: web, groups: [{{name: one, dependencies: [
    {{name: last, resource: resourcedependency/last, state: Ready}}]}}]}}}}
"
    )
}

#[test]
fn a_tree_shows_what_waits_for_what_in_every_form() {
    let _operator = serving("tree-forms");
    apply(&chain("tree-forms"));
    eventually("all wait", seconds(20), || {
        ["rd/first", "rd/last", "dg/all"].iter().all(|object| phase("tree-forms", object) == "Waiting")
    });
    let (code, text, error) = looks(&["tree", "-n", "tree-forms"]);
    assert_eq!(code, 0, "{error}");
    let rows: Vec<&str> = text.lines().collect();
    let row = |words: &str| {
        rows.iter().position(|row| row.contains(words)).unwrap_or_else(|| panic!("{words}: {text}"))
    };
    let order = [
        "all",
        "[one]",
        "tree-forms/last",
        "ConfigMap tree-forms/made",
        "tree-forms/first",
        "ConfigMap tree-forms/go",
    ];
    for pair in order.windows(2) {
        assert!(row(pair[0]) < row(pair[1]), "{} comes before {}:\n{text}", pair[0], pair[1]);
    }
    assert!(rows[row("ConfigMap tree-forms/go")].contains("missing"), "{text}");
    for (form, words) in
        [("dot", "digraph linchpin"), ("mermaid", "flowchart LR"), ("svg", "<svg"), ("json", "\"nodes\"")]
    {
        let (code, text, error) = looks(&["tree", "-n", "tree-forms", "-o", form]);
        assert_eq!(code, 0, "{error}");
        assert!(text.contains(words) && text.contains("tree-forms/go"), "{form}: {text}");
    }
    let (_, elsewhere, _) = looks(&["tree", "-n", "default"]);
    assert!(!elsewhere.contains("tree-forms"), "{elsewhere}");
    let (_, everywhere, _) = looks(&["tree", "-A"]);
    assert!(everywhere.contains("tree-forms/first"), "{everywhere}");
    let (code, _, error) = looks(&["tree", "-A", "-n", "default"]);
    assert_eq!((code, error.trim_end().lines().count()), (2, 1), "{error}");
}

#[test]
fn a_watched_tree_is_drawn_again_when_something_changes() {
    let _operator = serving("tree-watch");
    apply(&chain("tree-watch"));
    eventually("it waits", seconds(20), || phase("tree-watch", "dg/all") == "Waiting");
    let mut tree = linchpin()
        .env("KUBECONFIG", watched().kubeconfig())
        .args(["tree", "-n", "tree-watch", "--watch"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(tree.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line.contains("ConfigMap tree-watch/go") && line.contains("missing")));
    apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: go, namespace: tree-watch}}");
    assert!(lines.any(|line| line.contains("DependencyGroup tree-watch/all") && line.contains("ready")));
    tree.kill().unwrap();
    tree.wait().unwrap();
}

#[test]
fn a_user_without_rights_is_told_so_in_one_line() {
    let nobody = watched().kubeconfig_for("tree-nobody", None).unwrap();
    let output = linchpin().args(["tree", "-n", "default", "--kubeconfig"]).arg(nobody).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(error.contains("resourcedependencies.tools.kubestellar.io is forbidden"), "{error}");
    assert_eq!(error.trim_end().lines().count(), 1, "{error}");
}
