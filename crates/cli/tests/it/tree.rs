//! `linchpin tree`, on objects that really wait.

use crate::{
    bare, eventually,
    operator::{Operator, linchpin},
    seconds,
};
use linchpin_local::Cluster;
use linchpin_testkit::{Api, OPERATOR, grant_operator};
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
        grant_operator(&Api::connect(&cluster.kubeconfig()));
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
    serving_with(namespace, &[])
}

/// The same with further flags.
pub(crate) fn serving_with(namespace: &str, flags: &[&str]) -> Operator {
    apply(&format!(
        "{{apiVersion: v1, kind: Namespace, metadata: {{name: {namespace}}}}}\n---\n\
         {{apiVersion: v1, kind: ServiceAccount, metadata: {{name: web, namespace: {namespace}}}}}\n---\n\
         {{apiVersion: v1, kind: ServiceAccount, metadata: {{name: default, namespace: {namespace}}}}}\n---\n\
         {{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {{name: web, namespace: {namespace}}},\n \
         roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}},\n \
         subjects: [{{kind: ServiceAccount, name: web, namespace: {namespace}}}]}}\n"
    ));
    let only = format!("--watch-namespaces={namespace}");
    let kubeconfig = watched().kubeconfig_for(OPERATOR, None).unwrap();
    Operator::start(namespace, &kubeconfig, &[&["--leader-elect=false", only.as_str()], flags].concat())
}

/// The phase of an object of ours, such as `rd/web`; empty where it has none. Asked again and again, so not by a process each.
pub(crate) fn phase(namespace: &str, object: &str) -> String {
    static API: OnceLock<Api> = OnceLock::new();
    let (kind, name) = object.split_once('/').unwrap();
    let kind = match kind {
        "rd" => "ResourceDependency",
        "dg" => "DependencyGroup",
        "ab" => "AppBundle",
        other => panic!("no kind {other}"),
    };
    let found = API.get_or_init(|| Api::connect(&watched().kubeconfig())).get(kind, namespace, name);
    found.unwrap_or_default()["status"]["phase"].as_str().unwrap_or_default().to_owned()
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

/// Two bundles and an object that waits for the second: `shop` requires `base`, a component of which requires a Secret.
pub(crate) fn bundles(namespace: &str) -> String {
    let map = |name: &str| {
        format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}}}, data: {{value: one}}}}")
    };
    let bundle = |name: &str, spec: &str| {
        format!(
            "{{apiVersion: app.example.com/v1alpha1, kind: AppBundle, metadata: {{name: {name}, namespace: {namespace}}},
  spec: {{serviceAccountName: web, {spec}}}}}
---
"
        )
    };
    let base = format!(
        "groups: [{{name: data, components: [{{name: conf, requires: [{{resource: secret/key}}], template: {}}}]}},
    {{name: app, components: [{{name: web, template: {}}}]}}]",
        map("conf"),
        map("web")
    );
    let shop = format!(
        "requires: [{{resource: appbundle/base}}], groups: [{{name: front, components: [{{name: page, template: {}}}]}}]",
        map("page")
    );
    let last = format!(
        "{{apiVersion: tools.kubestellar.io/v1, kind: ResourceDependency, metadata: {{name: last, namespace: {namespace}}},
  spec: {{serviceAccountName: web, dependencies: [{{name: shop, resource: ab/shop}}]}}}}
"
    );
    bundle("base", &base) + &bundle("shop", &shop) + &last
}

/// The Secret that all of them wait for.
pub(crate) fn key(namespace: &str) -> String {
    format!("{{apiVersion: v1, kind: Secret, metadata: {{name: key, namespace: {namespace}}}}}")
}

/// Waits until the bundles, and what waits for them, are as far as they get without the Secret.
pub(crate) fn all_wait(namespace: &str) {
    eventually("all wait", seconds(20), || {
        ["ab/base", "ab/shop"].iter().all(|object| phase(namespace, object) == "Pending")
            && phase(namespace, "rd/last") == "Waiting"
    });
}

/// What a row is about, without its state and why: that may name others, down to the root cause.
fn subject(row: &str) -> &str {
    let drawn = |letter: char| " │├└─◌○●✓✗◐?".contains(letter);
    row.trim_start_matches(drawn).split("  ").next().unwrap_or_default()
}

/// Where the row is that is about an object, and the row. Words that end with a blank are the end of its name.
fn row<'t>(text: &'t str, words: &str) -> (usize, &'t str) {
    let mut rows = text.lines().enumerate();
    rows.find(|(_, row)| format!("{} ", subject(row)).contains(words))
        .unwrap_or_else(|| panic!("{words}:\n{text}"))
}

#[test]
fn a_tree_shows_bundles_with_what_they_wait_for_and_who_waits_for_them() {
    let _operator = serving("tree-bundles");
    apply(&bundles("tree-bundles"));
    all_wait("tree-bundles");
    // What it is to make was not looked at yet in the first status.
    let mut text = String::new();
    eventually("what is to be made is missing", seconds(20), || {
        let (code, shown, error) = looks(&["tree", "-n", "tree-bundles"]);
        assert_eq!((code, error.as_str()), (0, ""));
        text = shown;
        row(&text, "its own cm tree-bundles/page").1.contains("missing")
    });
    let order = [
        "rd tree-bundles/last",
        "ab tree-bundles/shop ",
        "ab tree-bundles/base ",
        "ab tree-bundles/base[data]",
        "secret tree-bundles/key",
        "ab tree-bundles/base[app]",
    ];
    for pair in order.windows(2) {
        assert!(
            row(&text, pair[0]).0 < row(&text, pair[1]).0,
            "{} comes before {}:\n{text}",
            pair[0],
            pair[1]
        );
    }
    let secret = row(&text, "secret tree-bundles/key").1;
    assert!(secret.contains("missing") && secret.contains("for component conf"), "{text}");
    let page = row(&text, "its own cm tree-bundles/page").1;
    assert!(page.contains("waits for appbundle/base"), "{text}");
    for (form, words) in
        [("dot", "digraph linchpin"), ("mermaid", "flowchart LR"), ("svg", "<svg"), ("json", "\"nodes\"")]
    {
        let (code, text, error) = looks(&["tree", "-n", "tree-bundles", "-o", form]);
        assert_eq!((code, error.as_str()), (0, ""), "{form}");
        let whole = ["tree-bundles/shop", "tree-bundles/key"].iter().all(|name| text.contains(name));
        assert!(text.contains(words) && whole, "{form}: {text}");
    }
    let (_, everywhere, _) = looks(&["tree", "-A"]);
    assert!(everywhere.contains("ab tree-bundles/shop"), "{everywhere}");
    apply(&key("tree-bundles"));
    eventually("all is ready", seconds(20), || phase("tree-bundles", "rd/last") == "Completed");
    let (_, text, _) = looks(&["tree", "-n", "tree-bundles"]);
    assert!(row(&text, "its own cm tree-bundles/page").1.contains("ready"), "{text}");
    let (_, unmet, _) = looks(&["tree", "-n", "tree-bundles", "--unmet"]);
    assert!(!unmet.contains("tree-bundles/key") && unmet.lines().count() < text.lines().count(), "{unmet}");
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
    let order =
        ["all", "[one]", "tree-forms/last", "cm tree-forms/made", "tree-forms/first", "cm tree-forms/go"];
    for pair in order.windows(2) {
        assert!(
            row(&text, pair[0]).0 < row(&text, pair[1]).0,
            "{} comes before {}:\n{text}",
            pair[0],
            pair[1]
        );
    }
    assert!(row(&text, "cm tree-forms/go").1.contains("missing"), "{text}");
    for (form, words) in
        [("dot", "digraph linchpin"), ("mermaid", "flowchart LR"), ("svg", "<svg"), ("json", "\"nodes\"")]
    {
        let (code, text, error) = looks(&["tree", "-n", "tree-forms", "-o", form]);
        assert_eq!(code, 0, "{error}");
        assert!(text.contains(words) && text.contains("tree-forms/go"), "{form}: {text}");
    }
    for (form, words) in
        [("dot", "digraph linchpin"), ("mermaid", "flowchart LR"), ("svg", "<svg"), ("json", "\"nodes\"")]
    {
        let (code, text, error) = looks(&["graph", "rd/first", "-n", "tree-forms", "-o", form]);
        assert_eq!(code, 0, "{error}");
        assert!(text.contains(words) && !text.contains("tree-forms/last"), "{form}: {text}");
    }
    chosen_by_labels();
    let (_, elsewhere, _) = looks(&["tree", "-n", "default"]);
    assert!(!elsewhere.contains("tree-forms"), "{elsewhere}");
    let (_, everywhere, _) = looks(&["tree", "-A"]);
    assert!(everywhere.contains("tree-forms/first"), "{everywhere}");
    let (code, _, error) = looks(&["tree", "-A", "-n", "default"]);
    assert_eq!((code, error.trim_end().lines().count()), (2, 1), "{error}");
}

/// Objects of ours with some labels, with what they need; as names; and as somebody else sees them.
fn chosen_by_labels() {
    let label = ["label", "rd", "first", "-n", "tree-forms", "team=db"];
    assert!(watched().kubectl().args(label).output().unwrap().status.success());
    let (code, names, error) = looks(&["tree", "-n", "tree-forms", "-l", "team=db", "-o", "name"]);
    let first = "configmap/go\nconfigmap/made\nresourcedependency.tools.kubestellar.io/first\n";
    assert_eq!((code, names.as_str()), (0, first), "{error}");
    let (_, elsewhere, _) = looks(&["tree", "-A", "-l", "team in (db,web),!gone", "-o", "name"]);
    assert!(elsewhere.contains("resourcedependency.tools.kubestellar.io/tree-forms/first"), "{elsewhere}");
    let (_, text, _) = looks(&["tree", "-n", "tree-forms", "-l", "team!=db", "--color", "always"]);
    assert!(text.contains("tree-forms/last") && text.contains("\u{1b}["), "{text}");
    let (code, _, error) = looks(&["tree", "-l", "team in (db"]);
    assert_eq!(code, 2);
    assert!(error.contains("\"team in (db\" is no label selector: write a=b,"), "{error}");
    let (code, _, error) = looks(&["tree", "-n", "tree-forms", "--as", "somebody"]);
    assert!(code == 1 && error.contains("\"somebody\" cannot list"), "{error}");
    let (code, _, error) = looks(&["tree", "--as-group", "somebody"]);
    assert!(code == 2 && error.contains("--as <USER>"), "{error}");
}

#[test]
fn a_tree_of_one_object_shows_what_is_under_it_and_what_of_it_is_gone() {
    let _operator = serving("tree-one");
    let namespace = ["-n", "tree-one"];
    let tree = |object: &str| looks(&[&["tree", object][..], &namespace[..]].concat());
    apply(&chain("tree-one"));
    apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: go, namespace: tree-one}}");
    eventually("it is made", seconds(20), || phase("tree-one", "rd/last") == "Completed");
    let (code, text, error) = tree("rd/first");
    assert_eq!((code, error.as_str()), (0, ""));
    assert!(row(&text, "makes cm tree-one/made").1.contains("ready"), "{text}");
    assert!(row(&text, "cm tree-one/go").1.contains("ready") && !text.contains("tree-one/last"), "{text}");
    let (_, wide, _) = looks(&["tree", "rd/tree-one/first", "-o", "wide"]);
    assert!(wide.contains("✓ makes ConfigMap tree-one/made"), "{wide}");
    let (_, needed, _) = looks(&["tree", "cm/go", "-n", "tree-one", "--needed-by"]);
    assert!(needed.contains("dg tree-one/all") && needed.contains("rd tree-one/last"), "{needed}");
    watched().kubectl().args(["delete", "configmap", "made", "-n", "tree-one"]).output().unwrap();
    let (_, text, _) = tree("rd/first");
    let gone = row(&text, "makes cm tree-one/made").1;
    assert!(
        gone.contains("○") && gone.contains("missing") && gone.contains("it was made, and is gone"),
        "{text}"
    );
    for (object, told) in [
        ("rd/frist", "there is no ResourceDependency frist in namespace tree-one; did you mean first?"),
        ("cm/other", "no object of ours waits for ConfigMap tree-one/other or makes it"),
        ("deploymnet/x", "the cluster serves no kind deploymnet; did you mean deployment?"),
    ] {
        let (code, _, error) = tree(object);
        assert_eq!((code, error.as_str()), (1, format!("linchpin: tree: {told}\n").as_str()));
    }
    let (code, _, error) = looks(&["tree", "rd/first", "-n", "othr"]);
    assert_eq!((code, error.as_str()), (1, "linchpin: tree: namespace othr does not exist\n"));
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
    assert!(lines.any(|line| line.contains("cm tree-watch/go") && line.contains("missing")));
    apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: go, namespace: tree-watch}}");
    assert!(lines.any(|line| line.contains("dg tree-watch/all") && line.contains("ready")));
    apply(&bundles("tree-watch").replace("name: last", "name: follower"));
    assert!(lines.any(|line| line.contains("secret tree-watch/key") && line.contains("missing")));
    apply(&key("tree-watch"));
    assert!(lines.any(|line| line.contains("ab tree-watch/shop ") && line.contains("ready")));
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

/// What one user may list of our kinds in one namespace.
fn allow(user: &str, namespace: &str, plurals: &str) {
    apply(&format!(
        "{{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {{name: {user}, namespace: {namespace}}},
 rules: [{{apiGroups: [tools.kubestellar.io, app.example.com, core.bootchain-operator.ruicoelho.dev, linchpin.dev],
  resources: [{plurals}], verbs: [list, watch]}}]}}
---
{{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {{name: {user}, namespace: {namespace}}},
 roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: Role, name: {user}}}, subjects: [{{kind: User, name: {user}}}]}}
"
    ));
}

#[test]
fn a_kind_that_may_not_be_listed_is_told_in_one_line_and_the_others_are_shown() {
    const ALL: &str =
        "resourcedependencies, dependencygroups, appbundles, bootdependencies, syncs, consistbindings";
    apply("{apiVersion: v1, kind: Namespace, metadata: {name: tree-partial}}");
    apply(&chain("tree-partial"));
    allow("tree-partial", "tree-partial", "resourcedependencies, dependencygroups");
    let kubeconfig = watched().kubeconfig_for("tree-partial", None).unwrap();
    let looks = |arguments: &[&str]| {
        let output = linchpin().args(arguments).arg("--kubeconfig").arg(&kubeconfig).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
    };
    let (code, text, error) = looks(&["tree", "-n", "tree-partial"]);
    assert_eq!(code, 0, "{error}");
    assert!(text.contains("rd tree-partial/first"), "{text}");
    assert!(
        error.contains("not shown: ") && error.contains("appbundles.app.example.com is forbidden"),
        "{error}"
    );
    assert_eq!(error.trim_end().lines().count(), 1, "{error}");
    let (code, _, error) = looks(&["explain", "rd/first", "-n", "tree-partial"]);
    assert_eq!((code, error.trim_end().lines().count()), (0, 1), "{error}");
    let (code, _, error) = looks(&["explain", "ab/shop", "-n", "tree-partial"]);
    assert_eq!((code, error.trim_end().lines().count()), (1, 1), "{error}");
    assert!(error.contains("appbundles.app.example.com is forbidden"), "{error}");
    allow("tree-partial", "tree-partial", ALL);
    apply(
        "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: tree-partial},
 rules: [{apiGroups: [linchpin.dev], resources: [capabilities, globaldependencies], verbs: [list, watch]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: tree-partial},
 roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: tree-partial}, subjects: [{kind: User, name: tree-partial}]}
",
    );
    let (code, text, error) = looks(&["tree", "-n", "tree-partial"]);
    assert_eq!((code, error.as_str()), (0, ""), "{text}");
    allow("tree-partial", "default", ALL);
    let (code, _, error) = looks(&["tree", "-A"]);
    assert_eq!((code, error.trim_end().lines().count()), (0, 1), "{error}");
    assert!(error.contains("objects of kind AppBundle outside namespace default"), "{error}");
}

#[test]
fn a_kind_that_is_not_served_is_told_in_one_line_and_shown_once_it_is() {
    let cluster = Cluster::start(&bare()).expect("a local Kubernetes");
    let apply =
        |manifests: &[u8]| feed(cluster.kubectl().args(["apply", "--server-side", "-f", "-"]), manifests);
    let crds = String::from_utf8(linchpin().arg("crds").output().unwrap().stdout).unwrap();
    let (late, early): (Vec<&str>, Vec<&str>) =
        crds.split("\n---\n").partition(|one| one.contains("name: appbundles.app.example.com"));
    assert_eq!(late.len(), 1);
    apply(early.join("\n---\n").as_bytes());
    let tree = || {
        let mut command = linchpin();
        command.env("KUBECONFIG", cluster.kubeconfig()).args(["tree", "-n", "default"]);
        command
    };
    let mut told = String::new();
    eventually("the others are served", seconds(30), || {
        let output = tree().output().unwrap();
        told = String::from_utf8(output.stderr).unwrap();
        output.status.success() && !told.contains("kubestellar")
    });
    assert!(told.contains("the cluster does not serve appbundles.app.example.com"), "{told}");
    assert_eq!(told.trim_end().lines().count(), 1, "{told}");
    let mut watch = tree().arg("--watch").stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line.contains("nothing to show")));
    apply(late[0].as_bytes());
    eventually("it can be applied", seconds(30), || {
        let bundle = bundles("default");
        let mut apply = cluster.kubectl();
        let mut child =
            apply.args(["apply", "-f", "-"]).stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(bundle.as_bytes()).unwrap();
        child.wait().unwrap().success()
    });
    // It is asked for again at a growing distance, half a minute at most.
    assert!(lines.any(|line| line.contains("ab default/shop")));
    watch.kill().unwrap();
    watch.wait().unwrap();
}
