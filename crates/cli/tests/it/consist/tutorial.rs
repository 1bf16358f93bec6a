//! The tutorial's controllers as processes on a real API server: the one in Rust, and the one in Python through `remote`.

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use linchpin_local::Cluster;
use linchpin_testkit::{Api, Scenario, audit::Audit};
use serde_json::json;

use super::{CONTROL, Process, finalizers, pod, service};
use crate::{
    bare, eventually,
    operator::{linchpin, without_settings},
    seconds,
};

/// The controller in Rust. `cargo test --workspace` builds it beside the tests; where only these were built, it is now.
fn rust() -> Command {
    let built = Path::new(env!("CARGO_BIN_EXE_linchpin")).parent().unwrap();
    let path = built.join("examples/directory");
    if !path.exists() {
        let words = ["build", "--workspace", "--example", "directory"];
        assert!(Command::new(env!("CARGO")).args(words).status().unwrap().success());
    }
    without_settings(Command::new(path))
}

/// The controller in Python, and `linchpin` that asks it; none where there is no Python.
fn python(directory: &Path) -> Option<(Process, Command)> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/consist/directory.py");
    if Command::new("python3").arg("--version").output().is_err() {
        // Not through the print macros: a skipped test must be seen also when it passes.
        let _ = writeln!(std::io::stderr(), "SKIPPED: the tutorial in Python: there is no python3");
        return None;
    }
    let mut command = Command::new("python3");
    let mut adapter = Process::start(command.arg(file).arg(directory).arg("0").stdout(Stdio::piped()));
    let mut line = String::new();
    BufReader::new(adapter.child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let mut asks = linchpin();
    asks.args(["consist", "enable", "remote", "--adapter-url", line.trim().rsplit(' ').next().unwrap()]);
    Some((adapter, asks))
}

/// Serves one namespace.
fn serve(mut command: Command, cluster: &Cluster, namespace: &str, log: &Path) -> Process {
    command
        .arg(format!("--watch-namespaces={namespace}"))
        .arg(format!("--lease-name={namespace}"))
        .args(["--lease-namespace=default", "--metrics-bind-address=0", "--health-probe-bind-address=0"])
        .args(["--resync=1s", "--kubeconfig"])
        .arg(cluster.kubeconfig())
        .stderr(fs::File::create(log).unwrap());
    Process::start(&mut command)
}

/// What a controller does for a Service, from the first file to the last.
fn play(scenario: &Scenario, directory: &Path, log: &Path) {
    let file = |name: &str| directory.join(&scenario.namespace).join("web").join(name);
    let until = |what: &str, holds: &mut dyn FnMut() -> bool| {
        let told =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| eventually(what, seconds(20), holds)));
        assert!(
            told.is_ok(),
            "{what}; the controller says:\n{}",
            fs::read_to_string(log).unwrap_or_default()
        );
    };
    let content = |path: PathBuf| fs::read_to_string(path).unwrap_or_default();
    pod(scenario, "web-1", "web", "10.0.0.1", false);
    service(scenario, "web");
    until("web-1 is in traffic", &mut || content(file("web-1")) == "10.0.0.1");
    until("web-1 is protected", &mut || {
        scenario.get("Pod", "web-1").is_some_and(|pod| finalizers(&pod).len() == 1)
    });
    // Drift is put right.
    fs::write(file("stray"), "10.9.9.9").unwrap();
    fs::write(file("web-1"), "10.9.9.9").unwrap();
    until("the drift is gone", &mut || !file("stray").exists() && content(file("web-1")) == "10.0.0.1");
    // The way out: nothing remains.
    scenario.merge("Service", "web", &json!({"metadata": {"labels": {CONTROL: null}}}));
    until("nothing remains", &mut || {
        !directory.join(&scenario.namespace).join("web").exists()
            && finalizers(&scenario.get("Pod", "web-1").unwrap()).is_empty()
            && finalizers(&scenario.get("Service", "web").unwrap()).is_empty()
            && scenario.get("ConsistBinding", "service-web").is_none()
    });
}

#[test]
fn the_tutorials_controllers_keep_a_directory_as_the_pods_are() {
    let cluster = Cluster::start(&bare()).expect("a local Kubernetes");
    let api = Api::connect(&cluster.kubeconfig());
    for definition in linchpin_doors::registry().definitions() {
        api.apply(&json!(definition)).unwrap();
    }
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("log");
    let traffic = directory.path().join("traffic");
    let begin = |namespace: &str| {
        let scenario = Scenario::begin(&api, Audit::from_now(&cluster.audit_log()), namespace);
        scenario.apply("{apiVersion: v1, kind: ServiceAccount, metadata: {name: default}}");
        scenario
    };
    {
        let scenario = begin("tutorial-rust");
        let mut command = rust();
        command.env("DIRECTORY", &traffic);
        let _controller = serve(command, &cluster, "tutorial-rust", &log);
        play(&scenario, &traffic, &log);
    }
    if let Some((_adapter, command)) = python(&traffic) {
        let scenario = begin("tutorial-python");
        let _controller = serve(command, &cluster, "tutorial-python", &log);
        play(&scenario, &traffic, &log);
    }
}
