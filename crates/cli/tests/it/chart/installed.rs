//! The chart on a real node, installed by real Helm: two operator Pods with the chart's rights and no others; all examples.
//!
//! Needs an image (`make image`) and takes minutes: `make test-all` runs it, elsewhere it says that it was skipped.

use std::{
    env, fs,
    io::Write,
    path::{Path, PathBuf},
    process::Output,
};

use linchpin_local::{Cluster, ClusterOptions, Component, check_node_support};
use linchpin_operator::settings::DoorName;
use linchpin_testkit::{
    Api, CHART_OPERATOR,
    audit::{Audit, Event},
    porch::{Porch, RevisionShape, install},
};
use serde_json::Value;

use super::{chart, helm, root, text};
use crate::{
    app_bundle, eventually,
    examples::{self, Stage},
    needed,
    operator::linchpin,
    seconds,
    tenancy::own_requests,
    tree::feed,
};

const TENANT: &str = "create rolebinding linchpin-tenant -n shop --clusterrole=linchpin-tenant \
                      --serviceaccount=linchpin-system:linchpin";

/// How many objects are made while operators are replaced.
const LOAD: usize = 20;

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

/// The image, unless the test is skipped, which is said.
fn image_or_skip(what: &str) -> Option<PathBuf> {
    let image = image();
    if let Err(reason) = &image {
        let _ = writeln!(std::io::stderr(), "SKIPPED: {what}: {reason}");
    }
    image.ok()
}

struct Installed {
    cluster: Cluster,
    /// What Helm is told to install or upgrade.
    release: Vec<String>,
}

impl Installed {
    /// A cluster with these nodes, and the chart in it with these values.
    fn begin(image: &Path, options: &ClusterOptions, values: &[&str]) -> Self {
        let cluster = Cluster::start(options).expect("a local Kubernetes");
        cluster.import_archive(image).unwrap();
        let image = "image.repository=localhost/linchpin,image.tag=dev,image.pullPolicy=Never";
        let folder = chart();
        let mut release =
            vec!["linchpin", folder.to_str().unwrap(), "-n", "linchpin-system", "--wait", "--timeout=5m"];
        release.extend(["--set", image]);
        release.extend(values.iter().flat_map(|value| ["--set", value]));
        let release = release.into_iter().map(str::to_owned).collect();
        let installed = Self { cluster, release };
        installed.must("create namespace linchpin-system");
        installed.must("label namespace linchpin-system pod-security.kubernetes.io/enforce=restricted");
        installed.release("install", &[]);
        installed
    }

    /// Installs or upgrades, with further flags.
    fn release(&self, verb: &str, more: &[&str]) {
        let given = self.release.iter().map(String::as_str);
        let arguments: Vec<&str> = [verb].into_iter().chain(given).chain(more.iter().copied()).collect();
        self.helm(&arguments);
    }

    /// What the operator asked for in its own name and may not.
    fn refused(&self) -> Vec<Event> {
        let audit = Audit::from_the_beginning(&self.cluster.audit_log());
        let mut own = own_requests(&audit, |event| event.user == CHART_OPERATOR);
        // That a namespace which goes takes nothing new is no missing right.
        own.retain(|event| {
            event.acting_as.is_none() && event.code == 403 && !event.message.contains("being terminated")
        });
        own
    }

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

    #[track_caller]
    fn apply_text(&self, manifests: &str) {
        feed(self.cluster.kubectl().args(["apply", "-f", "-"]), manifests.as_bytes());
    }

    fn apply(&self, path: &str) {
        let file = root().join("examples/quickstart").join(path);
        let status = if path.contains(".status.") { "--server-side --subresource=status" } else { "" };
        let line = format!("apply {status} -f {}", file.display());
        eventually(&line, seconds(60), || self.kubectl(&line).status.success());
    }
}

/// Under load the kubelet goes and comes, and both operators are replaced: nothing is lost, and nothing done twice.
fn replaced_under_load(installed: &Installed, audit: &Audit) {
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..LOAD {
                installed.apply_text(&format!(
                    "{{apiVersion: tools.kubestellar.io/v1, kind: ResourceDependency, metadata: {{name: load-{number}, namespace: shop}}, \
                     spec: {{serviceAccountName: bundler, actions: [{{name: make, type: create, resource: {{apiVersion: v1, \
                     kind: ConfigMap, metadata: {{name: load-{number}}}}}}}]}}}}"
                ));
            }
        });
        installed.cluster.restart(Component::Kubelet).unwrap();
        installed.release("upgrade", &["--set", "concurrency=8"]);
    });
    installed.must("wait --for=condition=Ready rd --all -n shop --timeout=300s");
    let requests = audit.events();
    for number in 0..LOAD {
        let name = format!("load-{number}");
        let makes = |event: &&Event| {
            (event.verb.as_str(), event.resource.as_str(), event.code) == ("create", "configmaps", 201)
                && event.name == name
        };
        assert_eq!(requests.iter().filter(makes).count(), 1, "ConfigMap {name} is made once");
    }
}

/// Syncs, what is imposed on them, what the cluster is able to do: so that every right of theirs is used.
fn syncs(installed: &Installed) {
    installed.apply_text(
        "
{apiVersion: linchpin.dev/v1alpha1, kind: GlobalDependency, metadata: {name: bundled-first}, spec: {serviceAccount: {namespace: shop, name: bundler}, dependency: {object: {resource: configmap/bundled, namespace: shop}}}}
---
{apiVersion: linchpin.dev/v1alpha1, kind: Capability, metadata: {name: bundles.example.com}, spec: {version: 1.0.0, serviceAccount: {namespace: shop, name: bundler}, dependencies: [{name: bundled, object: {resource: configmap/bundled, namespace: shop}}]}}
---
{apiVersion: linchpin.dev/v1alpha1, kind: Sync, metadata: {name: synced, namespace: shop}, spec: {serviceAccountName: bundler, source: {objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: synced}}]}}}
",
    );
    for object in ["globaldependency/bundled-first", "capability/bundles.example.com", "sync/synced"] {
        installed.must(&format!("wait --for=condition=Ready {object} -n shop --timeout=180s"));
    }
}

/// Pods of a Deployment and of a Job that are held by the webhook and let go by the controller.
fn boots(installed: &Installed) {
    installed.must("label namespace shop linchpin.dev/boot=enabled");
    let boot = |kind: &str, name: &str| {
        format!(
            "{{apiVersion: core.bootchain-operator.ruicoelho.dev/v1alpha1, kind: BootDependency, metadata: {{name: {name}, namespace: shop}}, \
             spec: {{serviceAccountName: bundler, strategy: SchedulingGate, targetRef: {{kind: {kind}, name: {name}}}, \
             dependsOn: [{{resource: configmap/boot-go}}]}}}}"
        )
    };
    installed.apply_text(&[boot("Deployment", "held"), boot("Job", "once")].join("\n---\n"));
    let pod =
        "containers: [{name: app, image: 'localhost/linchpin:dev', imagePullPolicy: Never, args: [version]}]";
    let workloads = format!(
        "
{{apiVersion: apps/v1, kind: Deployment, metadata: {{name: held, namespace: shop}}, spec: {{replicas: 1, selector: {{matchLabels: {{app: held}}}}, template: {{metadata: {{labels: {{app: held}}}}, spec: {{{pod}}}}}}}}}
---
{{apiVersion: batch/v1, kind: Job, metadata: {{name: once, namespace: shop}}, spec: {{template: {{metadata: {{labels: {{app: once}}}}, spec: {{restartPolicy: Never, {pod}}}}}}}}}
"
    );
    installed.apply_text(&workloads);
    let gated = || installed.must("get pods -n shop -l linchpin.dev/boot-gate=held -o name").lines().count();
    eventually("both pods are held", seconds(60), || gated() == 2);
    let held = linchpin()
        .args(["check", "--pre-uninstall", "--kubeconfig"])
        .arg(installed.cluster.kubeconfig())
        .output()
        .unwrap();
    assert!(
        text(&held.stdout).contains("✗ no-held-pods: 2 Pods are held by our scheduling gate"),
        "{}",
        text(&held.stdout)
    );
    installed.must("create configmap boot-go -n shop");
    eventually("both are let go", seconds(60), || gated() == 0);
    installed.must("wait --for=condition=Complete job/once -n shop --timeout=180s");
}

/// What is left of an installation, by kind.
fn left_behind(installed: &Installed) -> Vec<Value> {
    let mut left = Vec::new();
    for kind in installed.must("api-resources --verbs=list -o name").lines() {
        let found = installed.must(&format!("get {kind} -A -o json -l app.kubernetes.io/part-of=linchpin"));
        let found: Value = serde_json::from_str(&found).unwrap();
        left.extend(found["items"].as_array().unwrap().iter().map(|one| one["kind"].clone()));
    }
    left
}

#[test]
fn helm_installs_two_operators_that_serve_with_the_charts_rights_and_leaves_only_definitions() {
    let Some(image) = image_or_skip("the chart on a real node") else { return };
    let installed =
        Installed::begin(&image, &ClusterOptions { node: true, ..ClusterOptions::default() }, &[]);
    let audit = Audit::from_the_beginning(&installed.cluster.audit_log());
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

    // A bundle and a profile, so that every right is used.
    installed.apply_text(
        "
{apiVersion: v1, kind: ServiceAccount, metadata: {name: bundler, namespace: shop}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: bundler, namespace: shop}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit}
subjects: [{kind: ServiceAccount, name: bundler, namespace: shop}]
---
apiVersion: app.example.com/v1alpha1
kind: AppBundle
metadata: {name: web, namespace: shop}
spec:
  serviceAccountName: bundler
  groups: [{name: a, components: [{name: b, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: bundled}}}]}]
---
apiVersion: linchpin.dev/v1alpha1
kind: ReadinessProfile
metadata: {name: things}
spec: {group: test.example.com, kind: Thing, readyWhen: {cel: self.status.ok}}
",
    );
    installed.must("wait --for=condition=Ready ab/web -n shop --timeout=180s");

    syncs(&installed);
    boots(&installed);
    replaced_under_load(&installed, &audit);
    installed.helm(&["test", "linchpin", "-n", "linchpin-system", "--timeout=5m"]);
    let check =
        linchpin().args(["check", "--kubeconfig"]).arg(installed.cluster.kubeconfig()).output().unwrap();
    let check_text = text(&check.stdout);
    assert!(check.status.success(), "{check_text}");
    assert!(check_text.ends_with("14 ok, 0 warnings, 0 failed, 0 skipped\n"), "{check_text}");

    installed.must("delete namespace shop --timeout=180s");
    let refused = installed.refused();
    assert!(refused.is_empty(), "the operator asked for what it may not: {refused:#?}");
    let own = own_requests(&audit, |event| event.user == CHART_OPERATOR);
    let unused = needed::unused(&own, needed::rules(&DoorName::ALL));
    assert!(unused.is_empty(), "rights that nothing needed: {unused:#?}");

    installed.helm(&["uninstall", "linchpin", "-n", "linchpin-system", "--wait"]);
    let left = left_behind(&installed);
    assert!(left.iter().all(|kind| kind == "CustomResourceDefinition"), "left behind: {left:?}");
    assert_eq!(left.len(), linchpin_doors::registry().definitions().len());
    eventually("what the operator made for itself goes with its ServiceAccount", seconds(60), || {
        !installed.must("get lease,secret,configmap -n linchpin-system -o name").contains("/linchpin")
    });
}

/// A kubeconfig with which the operator's pods reach the API server.
fn kubeconfig_for_pods(cluster: &Cluster) -> PathBuf {
    let config = fs::read_to_string(cluster.kubeconfig()).unwrap();
    let within = config.replace(&cluster.server(), "https://kubernetes.default.svc");
    assert_ne!(config, within);
    let file = cluster.kubeconfig().with_file_name("for-pods");
    fs::write(&file, within).unwrap();
    file
}

/// The chart's operator on a real node, with tenants everywhere; whatever is started now runs on a simulated node, where
/// images need not be there.
fn for_examples(image: &Path) -> Installed {
    let options = ClusterOptions { node: true, kwok: Some(1), ..ClusterOptions::default() };
    let installed = Installed::begin(image, &options, &["tenancy.mode=Cluster"]);
    installed.must("cordon -l type!=kwok");
    installed.must("taint nodes -l type=kwok kwok.x-k8s.io/node-");
    installed
}

#[test]
fn all_examples_pass_with_the_operator_of_the_chart() {
    let Some(image) = image_or_skip("the examples with the operator of the chart") else { return };
    for set in examples::sets() {
        println!("examples of kubestellar/{}", set.name);
        let installed = for_examples(&image);
        let cluster = &installed.cluster;
        let api = Api::connect(&cluster.kubeconfig());
        examples::play(&Stage { cluster, api: &api, planes: kubeconfig_for_pods(cluster) }, &set);
        assert_eq!(installed.refused(), []);
    }
    println!("examples of quickstart and appbundle");
    let installed = for_examples(&image);
    let cluster = &installed.cluster;
    let api = Api::connect(&cluster.kubeconfig());
    examples::open_the_shop(&Stage { cluster, api: &api, planes: kubeconfig_for_pods(cluster) });
    let hello = root().join("examples/quickstart/hello.yaml");
    examples::apply(cluster, &hello);
    installed.must("create deployment web --image=nginx --namespace=shop");
    examples::all_are_done(&api, &[hello]);
    install(&api, RevisionShape::Number);
    app_bundle::examples::come_and_go(&api, || Porch::begin(&api, app_bundle::examples::PORCH));
    assert_eq!(installed.refused(), []);
}
