//! Rights on the Lease: missing from the start, and taken away later.

use crate::{
    eventually,
    operator::{Operator, linchpin},
    seconds, shared,
};
use std::path::Path;

fn kubectl(arguments: &[&str]) {
    let output = shared().kubectl().args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// What an operator of this user says when it ends, on a Lease of this name.
fn ends(kubeconfig: &Path, lease: &str, namespace: &str) -> String {
    let output = linchpin()
        .args(["operator", "--log-level=off", "--metrics-bind-address=0", "--health-probe-bind-address=0"])
        .args(["--lease-name", lease, "--lease-namespace", namespace, "--kubeconfig"])
        .arg(kubeconfig)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert_eq!(text.trim_end().lines().count(), 1, "{text}");
    text
}

#[test]
fn a_right_missing_at_the_start_ends_the_operator_with_one_line_naming_it() {
    let nobody = shared().kubeconfig_for("nobody-in-particular", None).unwrap();
    let text = ends(&nobody, "denied", "default");
    assert!(text.contains("may not get the lease default/denied"), "{text}");

    let reader = shared().kubeconfig_for("lease-reader", None).unwrap();
    kubectl(&["create", "role", "lease-reader", "--verb=get,create", "--resource=leases"]);
    kubectl(&["create", "rolebinding", "lease-reader", "--role=lease-reader", "--user=lease-reader"]);
    let text = ends(&reader, "denied", "default");
    assert!(text.contains("may not update the lease default/denied"), "{text}");

    let text = ends(&shared().kubeconfig(), "denied", "no-such-namespace");
    assert!(text.contains("the namespace does not exist"), "{text}");
}

#[test]
fn a_right_taken_away_later_is_waited_for() {
    let user = shared().kubeconfig_for("lease-holder", None).unwrap();
    let bind =
        || kubectl(&["create", "rolebinding", "lease-holder", "--role=lease-holder", "--user=lease-holder"]);
    kubectl(&["create", "role", "lease-holder", "--verb=get,create,update,watch", "--resource=leases"]);
    bind();
    let mut operator = Operator::start("revoked", &user, &["--lease-name=revoked"]);
    eventually("it leads", seconds(20), || operator.leads());

    kubectl(&["delete", "rolebinding", "lease-holder"]);
    eventually("it says what it lacks", seconds(10), || {
        operator.readiness().1.contains("may not update the lease")
    });
    assert!(!operator.is_ready() && operator.is_running());

    bind();
    eventually("it leads again", seconds(5), || operator.leads());
}
