//! The chart: what real Helm makes of it, and what a real API server says to that.
//!
//! Helm is built once from its Go module, like Kubernetes is. What needs a node and an image takes long and runs with
//! `make test-all`; elsewhere those tests say that they were skipped.

mod choices;
mod installed;
mod policies;
mod release;
mod takeover;

use std::{
    collections::BTreeSet,
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use linchpin_local::{Cluster, ClusterOptions};
use linchpin_testkit::{Api, values};
use serde_json::{Value, json};

use crate::{bare, operator::linchpin, tree::feed};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_owned()
}

fn chart() -> PathBuf {
    root().join("charts/linchpin")
}

/// Helm with a home of its own, on a cluster.
pub(crate) struct Helm {
    home: tempfile::TempDir,
    kubeconfig: PathBuf,
}

impl Helm {
    pub(crate) fn new(kubeconfig: &Path) -> Self {
        Self { home: tempfile::tempdir().unwrap(), kubeconfig: kubeconfig.to_owned() }
    }

    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(linchpin_local::helm().expect("Helm"));
        for variable in ["HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"] {
            command.env(variable, self.home.path());
        }
        command.env("KUBECONFIG", &self.kubeconfig);
        command
    }
}

/// What Helm says, on a cluster if one is given.
fn helm(kubeconfig: Option<&Path>, arguments: &[&str]) -> Output {
    let helm = Helm::new(kubeconfig.unwrap_or(Path::new("/nonexistent")));
    helm.command().args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[track_caller]
pub(crate) fn rendered(arguments: &[&str]) -> String {
    rendered_as("linchpin", "linchpin-system", arguments)
}

/// What Helm renders for a release of this name in this namespace.
#[track_caller]
fn rendered_as(release: &str, namespace: &str, arguments: &[&str]) -> String {
    let chart = chart();
    let all = [&["template", release, chart.to_str().unwrap(), "-n", namespace], arguments].concat();
    let output = helm(None, &all);
    assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

pub(crate) fn documents(yaml: &str) -> Vec<Value> {
    let all: Vec<Value> = serde_saphyr::from_multiple(yaml).unwrap();
    all.into_iter().filter(|document| !document.is_null()).collect()
}

/// The value files that the chart is tried with.
fn value_files() -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> =
        fs::read_dir(chart().join("ci")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert_eq!(files.len(), 13);
    files
}

/// Compares a generated file with what is committed, or writes it.
#[track_caller]
fn compare(path: &Path, generated: &str) {
    if env::var_os("LINCHPIN_UPDATE").is_some() {
        fs::write(path, generated).unwrap();
    }
    assert!(
        fs::read_to_string(path).unwrap_or_default() == generated,
        "{} is out of date: make docs writes it",
        path.display()
    );
}

#[test]
fn every_value_is_documented_and_no_other_is_accepted() {
    let fields = values::fields(&fs::read_to_string(chart().join("values.yaml")).unwrap());
    let undescribed: Vec<_> = fields
        .iter()
        .filter(|field| field.about.is_empty() && !field.default.is_object())
        .map(|field| &field.path)
        .collect();
    assert!(undescribed.is_empty(), "values.yaml: no comment above {undescribed:?}");
    let schema = serde_json::to_string_pretty(&values::schema(&fields)).unwrap() + "\n";
    compare(&chart().join("values.schema.json"), &schema);
    compare(&root().join("docs/values.md"), &values::page(&fields));
}

#[test]
fn helm_finds_nothing_to_complain_about_and_refuses_a_misspelt_value() {
    let chart = chart();
    let lint = helm(None, &["lint", "--strict", chart.to_str().unwrap()]);
    assert!(lint.status.success(), "{}", text(&lint.stdout));
    for wrong in [
        "replica=3",
        "tenancy.mode=Everyone",
        "metrics.serviceMonitor.enable=true",
        "replicas=two",
        "resources.limts.memory=1Gi",
        "affinity.nodeAfinity.a=b",
        "webhooks.certManager.issuerRef.nam=x",
        "tolerations[0].operater=Exists",
        "extraEnv[0].name=A,extraEnv[0].vale=b",
        "networkPolicy.metricsFrom[0].podSelectr.a=b",
        "networkPolicy.metricsFrom[0].podSelector.matchLabel.a=b",
        "networkPolicy.metricsFrom[0].ipBlock.cdir=10.0.0.0/8",
        "affinity.nodeAffinity.requiredDuringScheduling.a=b",
        "extraEnv[0].name=A,extraEnv[0].valueFrom.secretRef.name=b",
        "consist.volumeMounts[0].name=a,consist.volumeMounts[0].path=/b",
        "doors.appBundles=true",
        "probes.method={GET}",
    ] {
        let output = helm(None, &["template", "x", chart.to_str().unwrap(), "--set", wrong]);
        assert!(!output.status.success(), "{wrong} was accepted");
    }
    let none = helm(
        None,
        &[
            "template",
            "x",
            chart.to_str().unwrap(),
            "--set",
            "doors.appBundle=false,doors.resourceDependency=false,doors.sync=false,doors.bootDependency=false",
        ],
    );
    assert!(
        text(&none.stderr).contains("an operator that serves nothing is a mistake"),
        "{}",
        text(&none.stderr)
    );
}

#[test]
fn what_helm_rendered_at_the_last_release_is_what_it_renders_now() {
    let install = rendered(&["--set", "crds.install=false", "--no-hooks", "--skip-tests"]);
    compare(&root().join("packaging/install.yaml"), &install);
    let printed = linchpin().args(["manifests"]).output().unwrap();
    assert!(printed.status.success());
    let name = |document: &Value| format!("{} {}", document["kind"], document["metadata"]["name"]);
    let ours: BTreeSet<String> = documents(&text(&printed.stdout)).iter().map(name).collect();
    let mut charts: BTreeSet<String> =
        documents(&rendered(&["--no-hooks", "--skip-tests"])).iter().map(name).collect();
    charts.insert(r#""Namespace" "linchpin-system""#.to_owned());
    assert_eq!(ours, charts, "linchpin manifests prints the objects of the chart");
}

#[test]
fn the_roles_of_the_chart_are_those_of_the_table_for_every_choice() {
    let shown = |arguments: &[&str]| {
        documents(&rendered(&[&["--show-only", "templates/rbac.yaml"], arguments].concat()))
    };
    let bare = |documents: Vec<Value>| -> BTreeSet<String> {
        let roles = documents.into_iter().filter(|one| one["kind"] != "ServiceAccount").map(|mut one| {
            one["metadata"].as_object_mut().unwrap().remove("labels");
            one.to_string()
        });
        roles.collect()
    };
    let printed = |arguments: &[&str]| {
        let output = linchpin().args(["rbac", "--operator"]).args(arguments).output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        documents(&text(&output.stdout))
    };
    let cases: [(&[&str], &[&str]); 4] = [
        (&[], &[]),
        (&["--set", "tenancy.mode=Cluster"], &["--all-tenants"]),
        (
            &[
                "--set",
                "tenancy.namespaces={a,b}",
                "--set",
                "doors.appBundle=false,doors.bootDependency=false",
            ],
            &["--tenant=a", "--tenant=b", "--doors=resourceDependency,sync"],
        ),
        (&["--set", "watchNamespaces={a,b}"], &["--watch-namespaces=a,b"]),
    ];
    for (values, flags) in cases {
        assert_eq!(bare(shown(values)), bare(printed(flags)), "{values:?}");
    }
    // What is not needed is not given.
    let text = |values: &str| format!("{:?}", shown(&["--set", values]));
    let given = text("webhooks.certManager.enabled=true");
    assert!(!given.contains("secrets") && given.contains("linchpin-mutating"), "{given}");
    let unserved = text("webhooks.enabled=false");
    assert!(!unserved.contains("secrets") && !unserved.contains("webhookconfigurations"), "{unserved}");
}

#[test]
fn who_asks_in_helm_test_may_list_every_kind_of_ours() {
    let all = documents(&rendered(&["--show-only", "templates/tests/check.yaml"]));
    let role = all.iter().find(|one| one["kind"] == "ClusterRole").unwrap();
    let rules = role["rules"].as_array().unwrap();
    for definition in
        linchpin_doors::registry().definitions().iter().filter(|one| one.spec.names.kind != "BundleRevision")
    {
        let lists = |rule: &&Value| {
            let has = |field: &str, word: &str| rule[field].as_array().unwrap().iter().any(|one| one == word);
            has("apiGroups", &definition.spec.group)
                && has("resources", &definition.spec.names.plural)
                && has("verbs", "list")
        };
        assert!(rules.iter().any(|rule| lists(&rule)), "{}", definition.spec.names.plural);
    }
    let reads = ["get", "list"];
    let verbs = rules.iter().flat_map(|rule| rule["verbs"].as_array().unwrap());
    assert!(
        verbs.into_iter().all(|verb| reads.contains(&verb.as_str().unwrap())),
        "it reads, and nothing else"
    );
}

/// A cluster that serves the kinds of the Prometheus operator and of cert-manager, as far as a dry run needs them.
fn with_monitoring(version: Option<&str>) -> Cluster {
    let options = ClusterOptions { emulated_version: version.map(str::to_owned), ..bare() };
    let cluster = Cluster::start(&options).expect("a local Kubernetes");
    let api = Api::connect(&cluster.kubeconfig());
    for (kind, plural, group) in [
        ("ServiceMonitor", "servicemonitors", "monitoring.coreos.com"),
        ("PrometheusRule", "prometheusrules", "monitoring.coreos.com"),
        ("Issuer", "issuers", "cert-manager.io"),
        ("Certificate", "certificates", "cert-manager.io"),
    ] {
        let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        api.apply(&json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.{group}")},
            "spec": {"group": group, "scope": "Namespaced",
                "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase(), "listKind": format!("{kind}List")},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]}}))
            .unwrap();
    }
    let wait = ["wait", "crd", "--all", "--for=condition=Established", "--timeout=60s"];
    assert!(cluster.kubectl().args(wait).output().unwrap().status.success());
    // What the server looks for when a Pod is created.
    for line in [
        "namespace linchpin-system",
        "serviceaccount linchpin-test -n linchpin-system",
        "serviceaccount custom-test -n linchpin-system",
    ] {
        assert!(
            cluster.kubectl().arg("create").args(line.split(' ')).output().unwrap().status.success(),
            "{line}"
        );
    }
    cluster
}

#[test]
fn an_api_server_accepts_what_helm_renders_from_every_value_file() {
    let all = value_files().into_iter().map(|file| rendered(&["-f", file.to_str().unwrap()]));
    let all: Vec<String> = all.collect();
    for version in [None, Some("1.33")] {
        let cluster = with_monitoring(version);
        for yaml in &all {
            // A dry run makes no namespace and no definition, so what is in them is tried as if they were there.
            let arguments = ["apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", "-"];
            feed(cluster.kubectl().args(arguments), yaml.as_bytes());
        }
    }
}

#[test]
fn every_query_of_the_dashboard_and_of_the_alerts_is_about_a_metric_that_there_is() {
    // The page of metrics lists what an operator serves, and a test of its own says so.
    let page = fs::read_to_string(root().join("docs/metrics.md")).unwrap();
    let known: BTreeSet<&str> =
        page.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect();
    let dashboard: Value =
        serde_json::from_str(&fs::read_to_string(chart().join("files/dashboard.json")).unwrap()).unwrap();
    let alerts: Value =
        serde_saphyr::from_str(&fs::read_to_string(chart().join("files/alerts.yaml")).unwrap()).unwrap();
    let panels =
        dashboard["panels"].as_array().unwrap().iter().flat_map(|panel| panel["targets"].as_array().unwrap());
    let rules = alerts["groups"][0]["rules"].as_array().unwrap();
    let queries: Vec<&str> = panels.chain(rules).map(|one| one["expr"].as_str().unwrap()).collect();
    assert!(queries.len() > 15);
    for query in queries {
        let named: Vec<&str> = query
            .split(|one: char| !one.is_ascii_alphanumeric() && one != '_')
            .filter(|word| word.starts_with("linchpin_") || word.starts_with("process_"))
            .collect();
        assert!(!named.is_empty(), "{query}");
        assert!(!query.contains("job="), "{query}: the job is called as the release is");
        assert!(
            named.iter().any(|name| name.starts_with("linchpin_")),
            "{query}: every process has these, not only ours"
        );
        for name in named {
            let name = name.strip_suffix("_bucket").unwrap_or(name);
            assert!(known.contains(name), "{query}: there is no {name}; there are {known:?}");
        }
    }
}
