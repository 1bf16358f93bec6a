//! The chart on a real node, installed by real Helm: two operator Pods with the chart's rights and no others; all examples.
//!
//! Needs an image (`make image`) and takes minutes: `make test-all` runs it, elsewhere it says that it was skipped.

mod stages;

use std::{
    collections::BTreeSet,
    env, fs,
    io::Write,
    path::{Path, PathBuf},
    process::Output,
};

use linchpin_local::{Cluster, ClusterOptions, check_node_support};
use linchpin_operator::settings::DoorName;
use linchpin_testkit::{
    Api, CHART_OPERATOR,
    audit::{Audit, Event},
    porch::{Porch, RevisionShape, install},
};

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

/// The image to install, with that of the waiter beside it, or why the test is skipped.
fn image() -> Result<PathBuf, String> {
    if env::var_os("LINCHPIN_LONG").is_none() {
        return Err("it takes minutes: make test-all".to_owned());
    }
    let image = env::var_os("LINCHPIN_IMAGE").map(PathBuf::from);
    let image = image.filter(|image| image.exists() && waiter(image).exists());
    let image = image.ok_or("LINCHPIN_IMAGE names no image: make image")?;
    check_node_support().map_err(|error| error.to_string())?;
    Ok(image)
}

/// The waiter's image, which `make image` puts beside the operator's.
fn waiter(image: &Path) -> PathBuf {
    image.with_file_name("linchpin-wait.tar")
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
    /// A cluster with these nodes, where the chart can be installed with these values.
    fn prepared(image: &Path, options: &ClusterOptions, values: &[&str]) -> Self {
        let cluster = Cluster::start(options).expect("a local Kubernetes");
        for image in [image, &waiter(image)] {
            cluster.import_archive(image).unwrap();
        }
        let images = [
            "image.repository=localhost/linchpin,image.tag=dev,image.pullPolicy=Never",
            "waitImage.repository=localhost/linchpin-wait,waitImage.tag=dev",
        ];
        let folder = chart();
        let mut release =
            vec!["linchpin", folder.to_str().unwrap(), "-n", "linchpin-system", "--wait", "--timeout=5m"];
        release.extend(images.iter().chain(values).flat_map(|value| ["--set", value]));
        let release = release.into_iter().map(str::to_owned).collect();
        let installed = Self { cluster, release };
        installed.must("create namespace linchpin-system");
        installed.must("label namespace linchpin-system pod-security.kubernetes.io/enforce=restricted");
        installed.must("wait --for=create serviceaccount/default -n linchpin-system --timeout=60s");
        installed
    }

    /// The same with the chart in it.
    fn begin(image: &Path, options: &ClusterOptions, values: &[&str]) -> Self {
        let installed = Self::prepared(image, options, values);
        installed.release("install", &[]);
        installed
    }

    /// Every object that there is but for events, which are forgotten by themselves: kind, namespace and name.
    fn objects(&self) -> BTreeSet<String> {
        let names = "custom-columns=KIND:.kind,NAMESPACE:.metadata.namespace,NAME:.metadata.name";
        let kinds = self.must("api-resources --verbs=list -o name");
        let kinds = kinds.lines().filter(|kind| !kind.starts_with("events"));
        let found = kinds.map(|kind| self.must(&format!("get {kind} -A --no-headers -o {names}")));
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        found.flat_map(|lines| lines.lines().map(words).collect::<Vec<_>>()).collect()
    }

    /// Installs or upgrades, with further flags.
    fn release(&self, verb: &str, more: &[&str]) {
        let given = self.release.iter().map(String::as_str);
        let arguments: Vec<&str> = [verb].into_iter().chain(given).chain(more.iter().copied()).collect();
        self.helm(&arguments);
    }

    /// What the operator asked for in its own name and may not. A namespace that goes may lose the binding before it loses
    /// the rest: what is refused there from then on tells of no missing right.
    fn refused(&self) -> Vec<Event> {
        let audit = Audit::from_the_beginning(&self.cluster.audit_log());
        let requests = audit.events();
        let goes = |event: &&Event| {
            (event.verb.as_str(), event.resource.as_str(), event.code) == ("delete", "namespaces", 200)
        };
        let going: Vec<&Event> = requests.iter().filter(goes).collect();
        let is_going = |event: &Event| {
            going.iter().any(|gone| {
                // Everybody may ask about oneself: refused was to do so as an account of that namespace.
                let is_there = event.namespace == gone.name || event.resource == "selfsubjectaccessreviews";
                is_there && event.received >= gone.received
            })
        };
        let mut own = own_requests(&audit, |event| event.user == CHART_OPERATOR);
        own.retain(|event| event.acting_as.is_none() && event.code == 403 && !is_going(event));
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

/// Uninstalls the chart: the definitions stay, with what the server serves them by, and nothing else.
fn uninstalled(installed: &Installed, before: &BTreeSet<String>) {
    installed.helm(&["uninstall", "linchpin", "-n", "linchpin-system", "--wait"]);
    // The node's own Lease comes when the kubelet first renews it.
    let kinds = ["CustomResourceDefinition ", "APIService ", "Lease kube-node-lease "];
    let stays = |object: &str| kinds.iter().any(|kind| object.starts_with(kind));
    eventually("what the operator made for itself goes with its ServiceAccount", seconds(60), || {
        let now = installed.objects();
        let left: Vec<&String> = now.difference(before).filter(|object| !stays(object)).collect();
        println!("left behind: {left:?}");
        left.is_empty()
    });
    let definitions = installed.must("get crd -o name -l app.kubernetes.io/part-of=linchpin");
    assert_eq!(definitions.lines().count(), linchpin_doors::registry().definitions().len());
}

#[test]
fn helm_installs_two_operators_that_serve_with_the_charts_rights_and_leaves_only_definitions() {
    let Some(image) = image_or_skip("the chart on a real node") else { return };
    let options = ClusterOptions { node: true, ..ClusterOptions::default() };
    let installed = Installed::prepared(&image, &options, &[]);
    let before = installed.objects();
    installed.release("install", &[]);
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

    // What uses every right.
    stages::account(&installed);
    stages::bundles(&installed);
    stages::take_with_them(&installed);
    stages::syncs(&installed);
    stages::boots(&installed);
    stages::templates(&installed);
    stages::replaced_under_load(&installed, &audit);
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
    assert_eq!(needed::removable(&own, |_| true), [] as [String; 0], "rules that could go");

    // What belongs to users and to no namespace.
    installed
        .must("delete readinessprofile/things globaldependency/bundled-first capability/bundles.example.com");
    uninstalled(&installed, &before);
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
