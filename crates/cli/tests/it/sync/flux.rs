//! A source that Flux's source-controller, the real one, has fetched from a real Git server.
//!
//! It is built from its Go module, which takes minutes: `make flux` does, and runs this; elsewhere the test says that it was
//! skipped. The Git server is `git http-backend` behind a port of the test's own.

use crate::{eventually, seconds, world::World};
use linchpin_local::ClusterOptions;
use linchpin_testkit::{audit::assert_finished_before, condition};
use serde_json::{Value, json};
use std::{
    env, fs,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
};

/// A program that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A repository of Git, and the server that shares it.
struct Repository {
    folder: tempfile::TempDir,
    port: u16,
}

impl Repository {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let root = folder.path().to_owned();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let root = root.clone();
                thread::spawn(move || serve(&stream, &root));
            }
        });
        let repository = Self { folder, port };
        repository.git(&["init", "--quiet", "--initial-branch=main", "."]);
        repository
    }

    fn work(&self) -> PathBuf {
        let work = self.folder.path().join("shop");
        fs::create_dir_all(&work).unwrap();
        work
    }

    fn git(&self, arguments: &[&str]) {
        let identity = ["-c", "user.name=t", "-c", "user.email=t@example.com"];
        let done =
            Command::new("git").args(identity).args(arguments).current_dir(self.work()).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }

    /// Commits these files, and moves a tag to them.
    fn commit(&self, tag: &str, files: &[(&str, Value)]) {
        for (name, object) in files {
            let path = self.work().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, object.to_string()).unwrap();
        }
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--message=m"]);
        self.git(&["tag", "--force", tag]);
    }
}

/// Answers one request with what `git http-backend` says.
fn serve(stream: &TcpStream, root: &Path) {
    let mut reader = BufReader::new(stream);
    let mut first = String::new();
    if reader.read_line(&mut first).is_err() {
        return;
    }
    let mut parts = first.split(' ');
    let (method, target) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let (mut length, mut media, mut encoding) = (0, String::new(), String::new());
    let mut line = String::new();
    while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
        let (name, value) = line.split_once(':').unwrap_or_default();
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.trim().parse().unwrap_or_default(),
            "content-type" => value.trim().clone_into(&mut media),
            "content-encoding" => value.trim().clone_into(&mut encoding),
            _ => {}
        }
        line.clear();
    }
    let mut body = vec![0; length];
    if reader.read_exact(&mut body).is_err() {
        return;
    }
    let backend = Command::new("git")
        .arg("http-backend")
        .env("GIT_PROJECT_ROOT", root)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .envs([("REQUEST_METHOD", method), ("PATH_INFO", path), ("QUERY_STRING", query)])
        .envs([("CONTENT_TYPE", media.as_str()), ("HTTP_CONTENT_ENCODING", encoding.as_str())])
        .env("CONTENT_LENGTH", length.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let mut backend = backend.unwrap();
    let _ = backend.stdin.take().unwrap().write_all(&body);
    let answer = backend.wait_with_output().unwrap().stdout;
    let status = answer.strip_prefix(b"Status: ").map_or("200 OK".to_owned(), |rest| {
        String::from_utf8_lossy(rest.split(|byte| *byte == b'\r').next().unwrap_or_default()).into_owned()
    });
    let mut stream = stream;
    let _ = stream.write_all(format!("HTTP/1.1 {status}\r\nConnection: close\r\n").as_bytes());
    let _ = stream.write_all(&answer);
}

fn map(name: &str, value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"value": value}})
}

#[test]
fn what_the_real_source_controller_of_flux_has_fetched_is_applied_and_followed_by_its_events() {
    let Ok(controller) = env::var("LINCHPIN_FLUX_SOURCE") else {
        let _ =
            writeln!(std::io::stderr(), "SKIPPED: Flux's source-controller: make flux builds and tries it");
        return;
    };
    let definitions = env::var("LINCHPIN_FLUX_SOURCE_CRDS").expect("the folder of its definitions");
    let repository = Repository::start();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let hosts = format!("--flux-hosts=http://127.0.0.1:{port}");
    let world = World::start(&ClusterOptions::default(), &[&hosts, "--probe-allow=127.0.0.0/8"]);
    let scenario = world.scenario("sync-flux");
    let kubectl = |arguments: &[&str]| {
        let done = world.cluster.kubectl().args(arguments).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    };
    kubectl(&["apply", "--server-side", "-f", &definitions]);
    kubectl(&["wait", "crd", "--all", "--for=condition=Established", "--timeout=60s"]);
    let storage = tempfile::tempdir().unwrap();
    let address = format!("127.0.0.1:{port}");
    let started = Command::new(controller)
        .arg(format!("--storage-path={}", storage.path().display()))
        .arg(format!("--storage-addr={address}"))
        .arg(format!("--storage-adv-addr={address}"))
        .args(["--enable-leader-election=false", "--metrics-addr=127.0.0.1:0", "--health-addr=127.0.0.1:0"])
        .arg("--events-addr=")
        .env("KUBECONFIG", world.cluster.kubeconfig())
        .env("RUNTIME_NAMESPACE", "sync-flux")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let running = Running(started.unwrap());
    scenario.allow(
        "flux",
        "[{apiGroups: [source.toolkit.fluxcd.io], resources: [gitrepositories], verbs: [get, list, watch]}]",
    );
    repository.commit("v2.0.0", &[("web/a.yaml", map("web", "1")), ("db/b.yaml", map("db", "1"))]);
    scenario.apply(&format!(
        "{{apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, metadata: {{name: shop, namespace: $NS}}, \
          spec: {{url: 'http://127.0.0.1:{}/shop/.git', ref: {{tag: v2.0.0}}, interval: 1h}}}}",
        repository.port
    ));
    let from = |path: &str, needs: Value| {
        let source = json!({"fluxRef": {"kind": "GitRepository", "name": "shop"}, "paths": [path]});
        json!({"source": source, "dependencies": needs}).to_string()
    };
    // One source for both: "I need to update the database for my app before I can update the web service".
    scenario.sync("web", &from("web", json!([{"name": "db", "sync": {"name": "db"}, "version": ">=2"}])));
    scenario.sync("db", &from("db", json!([])));
    let db = scenario.synced("db");
    let revision = db["status"]["observedRevision"].as_str().unwrap().to_owned();
    assert!(revision.starts_with("v2.0.0@sha1:"), "Flux's own word: {revision}");
    assert_eq!(db["status"]["version"], "v2.0.0", "the part before @");
    scenario.synced("web");
    repository.commit("v2.0.0", &[("web/a.yaml", map("web", "2")), ("db/b.yaml", map("db", "2"))]);
    let now = "reconcile.fluxcd.io/requestedAt=now";
    kubectl(&["-n", "sync-flux", "annotate", "gitrepository", "shop", now]);
    scenario.until("follows what Flux fetched", "ConfigMap", "web", |object| object["data"]["value"] == "2");
    let web = scenario.until("is ready with it", "Sync", "web", |object| {
        object["status"]["lastReadyRevision"] != revision && condition(object, "Ready")["status"] == "True"
    });
    assert_eq!(web["status"]["lastReadyRevision"], scenario.synced("db")["status"]["lastReadyRevision"]);
    let writes = scenario.audit.user_writes("sync-flux");
    let last = |name: &str| {
        let mut found =
            writes.iter().rev().filter(|event| event.name == name && event.resource == "configmaps");
        found.next().expect("a write")
    };
    assert_finished_before(last("db"), last("web"));
    drop(running);
    scenario.delete("ConfigMap", "web");
    eventually("drift is repaired without Flux", seconds(60), || {
        scenario.data("web", "value").as_deref() == Some("2")
    });
}
