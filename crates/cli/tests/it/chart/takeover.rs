//! An installation changes hands: from kubectl to Helm and back, without force and without a gap.

use linchpin_local::Cluster;

use super::{chart, helm, text};
use crate::{bare, operator::linchpin, tree::feed};

#[test]
fn what_kubectl_installed_helm_takes_over_and_kubectl_may_apply_again() {
    let cluster = Cluster::start(&bare()).expect("a local Kubernetes");
    let manifests = linchpin().arg("manifests").output().unwrap();
    let apply = || feed(cluster.kubectl().args(["apply", "--server-side", "-f", "-"]), &manifests.stdout);
    apply();
    let chart = chart();
    let install = ["install", "linchpin", chart.to_str().unwrap(), "-n", "linchpin-system"];
    let said = |more: &[&str]| {
        let output = helm(Some(&cluster.kubeconfig()), &[&install[..], more].concat());
        (!output.status.success()).then(|| text(&output.stderr))
    };
    let refused = said(&[]).expect("Helm takes nothing over by itself");
    assert!(refused.contains("cannot be imported into the current release"), "{refused}");
    assert_eq!(said(&["--take-ownership"]), None);
    // What both write is the same down to the server's defaults, so neither is in conflict with the other.
    apply();
}
