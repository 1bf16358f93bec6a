//! Flux's kustomize-controller, the real one, waits for our objects and lets one Kustomization depend on another by them.
//!
//! It is built from its Go module, which takes minutes: `make flux` does, and runs this; elsewhere the test says that it was
//! skipped. What stands for the source-controller is a file on a port of the test's own, and the status that names it.

use std::{
    env, fs,
    io::{Read, Write},
    net::TcpListener,
    path::Path,
    process::{Child, Command, Stdio},
    thread,
};

use linchpin_testkit::Api;
use linchpin_words::hash::sha256_hex;
use serde_json::{Value, json};

use crate::{eventually, seconds, world, world::scenario};

/// Ends the controller with the test.
struct Controller(Child);

impl Drop for Controller {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A gzipped tar of these files.
fn archive(files: &[(&str, String)]) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let output = Command::new("tar").args(["-cz", "-C"]).arg(folder.path()).arg(".").output().unwrap();
    assert!(output.status.success());
    output.stdout
}

/// Serves one file to everybody; its address.
fn serve(file: Vec<u8>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/artifact.tar.gz", listener.local_addr().unwrap());
    thread::spawn(move || {
        for connection in listener.incoming() {
            let Ok(mut connection) = connection else { continue };
            let _ = connection.read(&mut [0; 4096]);
            let head =
                format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", file.len());
            let _ = connection.write_all(head.as_bytes()).and_then(|()| connection.write_all(&file));
        }
    });
    address
}

/// The kinds of the source-controller, as far as the other one looks at them.
fn define_sources(api: &Api) {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    for (kind, plural) in [
        ("GitRepository", "gitrepositories"),
        ("OCIRepository", "ocirepositories"),
        ("Bucket", "buckets"),
        ("ExternalArtifact", "externalartifacts"),
    ] {
        api.apply(&json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.source.toolkit.fluxcd.io")},
            "spec": {"group": "source.toolkit.fluxcd.io", "scope": "Namespaced",
                "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase(), "listKind": format!("{kind}List")},
                "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": schema}}]}}))
        .unwrap();
    }
}

fn condition(object: &Value) -> (String, String) {
    let ready = linchpin_testkit::condition(object, "Ready");
    let text = |field: &str| ready[field].as_str().unwrap_or_default().to_owned();
    (text("status"), text("message"))
}

#[test]
fn flux_waits_for_our_objects_and_one_kustomization_depends_on_another_by_them() {
    let Some(program) = env::var_os("LINCHPIN_FLUX") else {
        let _ = writeln!(
            std::io::stderr(),
            "SKIPPED: Flux's kustomize-controller: make flux builds and tries it"
        );
        return;
    };
    let definition = env::var_os("LINCHPIN_FLUX_CRD").expect("the definition of Kustomization");
    let scenario = scenario("flux");
    let (api, cluster) = (&world::world().api, &world::world().cluster);
    define_sources(api);
    let apply = |file: &Path| {
        let output = cluster.kubectl().args(["apply", "--server-side", "-f"]).arg(file).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    apply(Path::new(&definition));
    let established = ["wait", "crd", "--all", "--for=condition=Established", "--timeout=60s"];
    assert!(cluster.kubectl().args(established).output().unwrap().status.success());

    let map = |name: &str| {
        format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}, namespace: flux}}}}\n")
    };
    let gate = "{apiVersion: tools.kubestellar.io/v1, kind: ResourceDependency, metadata: {name: gate, namespace: flux}, \
                spec: {serviceAccountName: actor, dependencies: [{resource: configmap/go}]}}\n";
    let bundle = "{apiVersion: app.example.com/v1alpha1, kind: AppBundle, metadata: {name: app, namespace: flux}, \
                  spec: {serviceAccountName: actor, requires: [{resource: configmap/go}], groups: [{name: a, components: \
                  [{name: b, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: bundled}}}]}]}}\n";
    let file = archive(&[
        ("first/gate.yaml", gate.to_owned()),
        ("first/app.yaml", bundle.to_owned()),
        ("second/after.yaml", map("after")),
    ]);
    let (digest, size) = (sha256_hex(&file), file.len());
    let url = serve(file);
    let mut controller = Command::new(program);
    controller.args([
        "--metrics-addr=127.0.0.1:0",
        "--health-addr=127.0.0.1:0",
        "--watch-all-namespaces=true",
        "--requeue-dependency=2s",
    ]);
    controller.env("KUBECONFIG", cluster.kubeconfig()).env("RUNTIME_NAMESPACE", "flux");
    let controller = controller.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let _controller = Controller(controller);

    scenario.apply("{apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, metadata: {name: repo}, spec: {interval: 1h, url: 'https://git.example.com/repo'}}");
    let now = "2026-01-01T00:00:00Z";
    let status = json!({"status": {"observedGeneration": 1,
        "artifact": {"path": "artifact.tar.gz", "url": url, "revision": "main@sha1:0000000000000000000000000000000000000000",
            "digest": format!("sha256:{digest}"), "lastUpdateTime": now, "size": size},
        "conditions": [{"type": "Ready", "status": "True", "reason": "Succeeded", "message": "stored", "lastTransitionTime": now}]}});
    let patched = cluster
        .kubectl()
        .args(["patch", "gitrepository", "repo", "-n", "flux", "--subresource=status", "--type=merge", "-p"])
        .arg(status.to_string())
        .output()
        .unwrap();
    assert!(patched.status.success(), "{}", String::from_utf8_lossy(&patched.stderr));
    let kustomization = |name: &str, more: &str| {
        scenario.apply(&format!(
            "{{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {{name: {name}}}, spec: {{interval: 10m, \
             retryInterval: 2s, timeout: 5m, prune: true, path: ./{name}, sourceRef: {{kind: GitRepository, name: repo}}{more}}}}}"
        ));
    };
    kustomization("first", ", wait: true");
    kustomization("second", ", dependsOn: [{name: first}]");
    scenario.until("is applied by Flux", "ResourceDependency", "gate", |object| {
        object["status"]["message"] == "waiting for configmap/go: it does not exist"
    });
    let get = |name: &str| scenario.get("Kustomization.kustomize.toolkit.fluxcd.io", name).unwrap();
    eventually("the second one waits for the first", seconds(60), || {
        condition(&get("second")).1.contains("dependency 'flux/first' is not ready")
    });
    assert_ne!(condition(&get("first")).0, "True", "what waits is not healthy");
    assert!(scenario.get("ConfigMap", "after").is_none());

    scenario.config_map("go", "");
    eventually("Flux goes on", seconds(120), || condition(&get("first")).0 == "True");
    eventually("and with it what depends on it", seconds(120), || {
        condition(&get("second")).0 == "True" && scenario.get("ConfigMap", "after").is_some()
    });
}
