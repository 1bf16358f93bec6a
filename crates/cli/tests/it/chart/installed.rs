//! The chart on a real node, installed by real Helm: two operator Pods with the chart's rights and no others.
//!
//! Needs an image (`make image`) and takes minutes: `make test-all` runs it, elsewhere it says that it was skipped.

use std::{env, io::Write, path::PathBuf, process::Output};

use linchpin_local::{Cluster, Options, check_node_support};
use linchpin_testkit::audit::{Audit, Event};
use serde_json::Value;

use super::{chart, helm, root, text};
use crate::{
    eventually,
    operator::linchpin,
    seconds,
    tenancy::{own_requests, unused},
};

const ACCOUNT: &str = "system:serviceaccount:linchpin-system:linchpin";
const TENANT: &str = "create rolebinding linchpin-tenant -n shop --clusterrole=linchpin-tenant \
                      --serviceaccount=linchpin-system:linchpin";

/// The image to install, or why the test is skipped.
fn image() -> Result<PathBuf, String> {
    if env::var_os("LINCHPIN_LONG").is_none() {
        return Err("it takes minutes: make test-all".to_owned());
    }
    let image = env::var_os("LINCHPIN_IMAGE").map(PathBuf::from).filter(|image| image.exists());
    let image = image.ok_or("LINCHPIN_IMAGE names no image: make image")?;
    check_node_support().map_err(|error| error.to_string())?;
    Ok(image)
}

struct Installed {
    cluster: Cluster,
}

impl Installed {
    fn kubectl(&self, line: &str) -> Output {
        self.cluster.kubectl().args(line.split_whitespace()).output().unwrap()
    }

    #[track_caller]
    fn must(&self, line: &str) -> String {
        let output = self.kubectl(line);
        assert!(output.status.success(), "kubectl {line}: {}{}", text(&output.stderr), self.story());
        text(&output.stdout)
    }

    #[track_caller]
    fn helm(&self, arguments: &[&str]) -> String {
        let output = helm(Some(&self.cluster.kubeconfig()), arguments);
        assert!(
            output.status.success(),
            "helm {arguments:?}: {}{}{}",
            text(&output.stdout),
            text(&output.stderr),
            self.story()
        );
        text(&output.stdout)
    }

    /// What there is to see where something went wrong.
    fn story(&self) -> String {
        let looks = [
            "get pods,events -n linchpin-system",
            "logs -n linchpin-system -l app.kubernetes.io/part-of=linchpin --tail=30 --prefix",
            "get rd,dg,ab -A -o wide",
        ];
        looks.map(|line| text(&self.kubectl(line).stdout)).join("\n")
    }

    fn leader(&self) -> String {
        let holder = self.must("get lease linchpin -n linchpin-system -o jsonpath={.spec.holderIdentity}");
        holder.rsplit_once('_').map(|(pod, _)| pod.to_owned()).unwrap_or_default()
    }

    fn apply(&self, path: &str) {
        let file = root().join("examples/quickstart").join(path);
        let status = if path.contains(".status.") { "--server-side --subresource=status" } else { "" };
        let line = format!("apply {status} -f {}", file.display());
        eventually(&line, seconds(60), || self.kubectl(&line).status.success());
    }
}

#[test]
fn helm_installs_two_operators_that_serve_with_the_charts_rights_and_leaves_only_definitions() {
    let image = match image() {
        Ok(image) => image,
        Err(reason) => {
            let _ = writeln!(std::io::stderr(), "SKIPPED: the chart on a real node: {reason}");
            return;
        }
    };
    let cluster = Cluster::start(&Options { node: true, ..Options::default() }).expect("a local Kubernetes");
    cluster.import_archive(&image).unwrap();
    let audit = Audit::from_the_beginning(&cluster.audit_log());
    let installed = Installed { cluster };
    let chart = chart();
    installed.must("create namespace linchpin-system");
    installed.must("label namespace linchpin-system pod-security.kubernetes.io/enforce=restricted");
    let image = "image.repository=localhost/linchpin,image.tag=dev,image.pullPolicy=Never";
    let release = [
        "linchpin",
        chart.to_str().unwrap(),
        "-n",
        "linchpin-system",
        "--set",
        image,
        "--wait",
        "--timeout=5m",
    ];
    installed.helm(&[&["install"], &release[..]].concat());
    let ready =
        installed.must("get deployment linchpin -n linchpin-system -o jsonpath={.status.readyReplicas}");
    assert_eq!(ready, "2");

    // A namespace that is no tenant waits, with the line; the line makes it one.
    installed.must("create namespace shop");
    installed.apply("rbac.yaml");
    installed.apply("shop.yaml");
    eventually("the objects say that shop is no tenant", seconds(60), || {
        let found = installed.must("get rd database -n shop -o jsonpath={.status.message}");
        found.ends_with(&format!("kubectl {}", TENANT.split_whitespace().collect::<Vec<_>>().join(" ")))
    });
    installed.must(TENANT);
    installed.apply("release/1-credentials.yaml");
    eventually("the first one is served", seconds(60), || {
        installed.must("get rd database -n shop -o jsonpath={.status.phase}") == "Completed"
    });

    // The leader goes; the other one goes on.
    let leader = installed.leader();
    installed.must(&format!("delete pod {leader} -n linchpin-system --wait=false"));
    for release in
        ["2-migrated.status.yaml", "3-payment-kind.yaml", "4-payment.yaml", "5-payment.status.yaml"]
    {
        installed.apply(&format!("release/{release}"));
    }
    installed.must("wait --for=condition=Ready dg/shop -n shop --timeout=180s");
    assert_ne!(installed.leader(), leader);

    // A bundle, so that every right is used; and one that is deleted with its namespace.
    let bundle = "{apiVersion: app.example.com/v1alpha1, kind: AppBundle, metadata: {name: web, namespace: shop}, spec: {serviceAccountName: shop, \
                  groups: [{name: a, components: [{name: b, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: schema-2}}}]}]}}\n---\n\
                  {apiVersion: linchpin.dev/v1alpha1, kind: ReadinessProfile, metadata: {name: payments}, spec: {kinds: []}}\n";
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), bundle).unwrap();
    let _ = installed.kubectl(&format!("apply -f {}", file.path().display()));
    eventually("the bundle is looked at", seconds(60), || {
        installed.must("get ab web -n shop -o jsonpath={.status.observedGeneration}") == "1"
    });

    installed.helm(&[&["upgrade"], &release[..], &["--set", "concurrency=8"]].concat());
    installed.helm(&["test", "linchpin", "-n", "linchpin-system", "--timeout=5m"]);
    let check =
        linchpin().args(["check", "--kubeconfig"]).arg(installed.cluster.kubeconfig()).output().unwrap();
    assert!(check.status.success(), "{}", text(&check.stdout));

    let own = own_requests(&audit, |event| event.user == ACCOUNT);
    let refused: Vec<&Event> =
        own.iter().filter(|event| event.acting_as.is_none() && event.code == 403).collect();
    assert!(refused.is_empty(), "the operator asked for what it may not: {refused:#?}");
    let unused = unused(&own);
    assert!(unused.is_empty(), "rights that nothing needed: {unused:#?}");

    installed.must("delete namespace shop --timeout=120s");
    installed.helm(&["uninstall", "linchpin", "-n", "linchpin-system", "--wait"]);
    let mut left = Vec::new();
    for kind in installed.must("api-resources --verbs=list -o name").lines() {
        let found = installed.must(&format!("get {kind} -A -o json -l app.kubernetes.io/part-of=linchpin"));
        let found: Value = serde_json::from_str(&found).unwrap();
        left.extend(found["items"].as_array().unwrap().iter().map(|one| one["kind"].clone()));
    }
    assert!(left.iter().all(|kind| kind == "CustomResourceDefinition"), "left behind: {left:?}");
    assert_eq!(left.len(), linchpin_api::all_crds().len());
}
