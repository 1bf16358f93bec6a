//! Other people's tools wait for our objects as for anybody's: `kubectl wait`, Helm 4 `install --wait`. The real programs,
//! on a real API server; the charts are those of `examples/helm`.

mod flux;

use std::{
    path::Path,
    process::{Command, Stdio},
};

use linchpin_testkit::audit::assert_before;

use crate::{chart::Helm, eventually, operator::linchpin, seconds, world, world::scenario};

fn example(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/helm").join(name);
    path.to_str().unwrap().to_owned()
}

/// Whether `kubectl wait` sees it become so.
fn kubectl_wait(namespace: &str, arguments: &[&str]) -> bool {
    let mut kubectl = world::world().cluster.kubectl();
    kubectl.args(["wait", "-n", namespace]).args(arguments);
    kubectl.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap().success()
}

#[test]
fn helm_waits_for_our_objects_and_one_chart_waits_for_the_other() {
    let scenario = scenario("citizens");
    let namespace = "citizens";
    let kubeconfig = world::world().cluster.kubeconfig();
    let helm = Helm::new(&kubeconfig);
    let install = |chart: &str| -> Command {
        let mut command = helm.command();
        command.args(["install", chart, &example(chart), "-n", namespace, "--wait", "--timeout=5m"]);
        command
    };
    let mut shop = install("shop").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    scenario.until("waits for the other chart", "AppBundle", "shop", |object| {
        object["status"]["message"].as_str().is_some_and(|told| told.contains("rd/database-ready"))
    });
    assert!(!kubectl_wait(namespace, &["ab/shop", "--for=condition=Ready", "--timeout=1s"]));
    assert!(shop.try_wait().unwrap().is_none(), "helm does not wait for an AppBundle that is not ready");
    let output = linchpin()
        .env("KUBECONFIG", &kubeconfig)
        .args(["explain", "ab/shop", "-n", namespace])
        .output()
        .unwrap();
    let told = String::from_utf8(output.stdout).unwrap();
    let first = "AppBundle citizens/shop waits for ResourceDependency citizens/database-ready, which waits for Deployment \
                 citizens/database: it does not exist";
    assert!(told.starts_with(first), "{told}");

    let output = install("database").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let output = shop.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(kubectl_wait(
        namespace,
        &["ab/shop", "rd/database-ready", "--for=condition=Ready", "--timeout=60s"]
    ));
    assert!(kubectl_wait(
        namespace,
        &["ab/shop", "--for=jsonpath={.status.phase}=Deployed", "--timeout=60s"]
    ));
    assert!(kubectl_wait(namespace, &["rd/database-check", "--for=condition=Ready", "--timeout=60s"]));
    // The check came before the database, and the database before the shop: as the API server saw it.
    let first = |resource: &str, name: &str| scenario.audit.first_write(resource, namespace, name);
    assert_before(&first("resourcedependencies", "database-check"), &first("deployments", "database"));
    assert_before(&first("deployments", "database"), &first("deployments", "shop"));

    for chart in ["shop", "database"] {
        let output = helm.command().args(["uninstall", chart, "-n", namespace, "--wait"]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    eventually("what the bundle made is gone with it", seconds(30), || {
        scenario.get("Deployment", "shop").is_none() && scenario.get("ConfigMap", "shop").is_none()
    });
}
