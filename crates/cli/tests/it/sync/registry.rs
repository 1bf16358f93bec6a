//! A source that a real OCI registry serves.
//!
//! It is built from its Go module, which takes minutes: `make registry-test` does, and runs this; elsewhere the test says that it
//! was skipped.

use crate::{eventually, seconds, world::World};
use linchpin_local::ClusterOptions;
use linchpin_testkit::condition;
use linchpin_words::hash::sha256_hex;
use serde_json::{Value, json};
use std::{
    env, fs,
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    process::{Child, Command, Stdio},
};

/// A program that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What an environment variable names; none, and said so, where nobody has set it.
fn program(variable: &str, target: &str) -> Option<String> {
    let found = env::var(variable).ok();
    if found.is_none() {
        let _ =
            writeln!(std::io::stderr(), "SKIPPED: {variable} is not set: {target} builds it and runs this");
    }
    found
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", sha256_hex(bytes))
}

/// A registry of the test's own.
struct Registry {
    _process: Running,
    _storage: tempfile::TempDir,
    port: u16,
}

impl Registry {
    fn start(program: &str) -> Self {
        let storage = tempfile::tempdir().unwrap();
        let port = free_port();
        let file = storage.path().join("config.yml");
        let data = storage.path().join("data");
        let text = format!(
            "version: 0.1\nstorage: {{filesystem: {{rootdirectory: {}}}, delete: {{enabled: true}}}}\nhttp: {{addr: '127.0.0.1:{port}'}}\n",
            data.display()
        );
        fs::write(&file, text).unwrap();
        let mut command = Command::new(program);
        let command = command.arg("serve").arg(&file).stdout(Stdio::null()).stderr(Stdio::null());
        let process = Running(command.spawn().unwrap());
        eventually("the registry answers", seconds(60), || TcpStream::connect(("127.0.0.1", port)).is_ok());
        Self { _process: process, _storage: storage, port }
    }

    /// Sends a request; its status and where it leads.
    fn send(&self, method: &str, path: &str, media: &str, body: &[u8]) -> (u16, String) {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let host = format!("127.0.0.1:{}", self.port);
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: {media}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(body).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
        let location = answer.lines().find_map(|line| line.strip_prefix("Location: "));
        let path = location.map(|location| location.trim().replace(&format!("http://{host}"), ""));
        (status, path.unwrap_or_default())
    }

    fn push_blob(&self, bytes: &[u8]) -> String {
        let (status, upload) = self.send("POST", "/v2/team/app/blobs/uploads/", "text/plain", b"");
        assert_eq!(status, 202);
        let separator = if upload.contains('?') { '&' } else { '?' };
        let path = format!("{upload}{separator}digest={}", digest(bytes));
        assert_eq!(self.send("PUT", &path, "application/octet-stream", bytes).0, 201);
        digest(bytes)
    }

    /// Pushes an artifact with these files, as `flux push artifact` does; the digest of its manifest.
    fn push(&self, tag: &str, files: &[(&str, Value)]) -> String {
        const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
        let folder = tempfile::tempdir().unwrap();
        for (name, object) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, object.to_string()).unwrap();
        }
        let packed = Command::new("tar").args(["-cz", "-C"]).arg(folder.path()).arg(".").output().unwrap();
        assert!(packed.status.success());
        let layer = packed.stdout;
        let (blob, config) = (self.push_blob(&layer), self.push_blob(b"{}"));
        let manifest = json!({"schemaVersion": 2, "mediaType": MANIFEST,
            "config": {"mediaType": "application/vnd.cncf.flux.config.v1+json", "digest": config, "size": 2},
            "layers": [{"mediaType": "application/vnd.cncf.flux.content.v1.tar+gzip", "digest": blob,
                "size": layer.len()}]});
        let manifest = manifest.to_string().into_bytes();
        let path = format!("/v2/team/app/manifests/{tag}");
        assert_eq!(self.send("PUT", &path, MANIFEST, &manifest).0, 201);
        digest(&manifest)
    }
}

fn map(name: &str, value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"value": value}})
}

#[test]
fn an_artifact_of_a_real_registry_is_applied_followed_by_tag_and_kept_by_digest() {
    let Some(program) = program("LINCHPIN_REGISTRY", "make registry-test") else { return };
    let registry = Registry::start(&program);
    let port = registry.port;
    let hosts = format!("--source-hosts=http://127.0.0.1:{port}");
    let world = World::start(&ClusterOptions::default(), &[&hosts, "--probe-allow=127.0.0.0/8"]);
    let scenario = world.scenario("sync-oci");
    let url = format!("oci://127.0.0.1:{port}/team/app");
    let oci = |reference: Value| {
        let mut source = json!({"oci": {"url": url}, "paths": ["deploy"]});
        source["oci"].as_object_mut().unwrap().extend(reference.as_object().unwrap().clone());
        json!({"source": source}).to_string()
    };
    scenario.sync("app", &oci(json!({"tag": "1.4.2"})));
    scenario.until("is not there yet", "Sync", "app", |object| {
        condition(object, "SourceReady")["reason"] == "SourceNotFound"
            && object["status"]["phase"] == "Waiting"
    });
    let first =
        registry.push("1.4.2", &[("deploy/a.yaml", map("app", "1")), ("else/b.yaml", map("other", "1"))]);
    scenario.annotate("Sync", "app", "linchpin.dev/requested-at", "1");
    let done = scenario.synced("app");
    assert_eq!(done["status"]["observedRevision"], format!("1.4.2@{first}"));
    assert_eq!(done["status"]["version"], "1.4.2", "the tag is its version");
    assert!(!scenario.has("other"), "what is not in its paths is nothing");
    scenario.sync("pinned", &oci(json!({"digest": first})).replace("deploy", "else"));
    let pinned = scenario.synced("pinned");
    assert_eq!(pinned["status"]["observedRevision"], json!(first));
    assert_eq!(pinned["status"].get("version"), None, "a digest is no version");
    let second = registry.push("1.4.2", &[("deploy/a.yaml", map("app", "2"))]);
    scenario.annotate("Sync", "app", "linchpin.dev/requested-at", "2");
    scenario.until("follows the tag", "ConfigMap", "app", |object| object["data"]["value"] == "2");
    let moved = scenario.synced("app");
    assert_eq!(moved["status"]["lastReadyRevision"], format!("1.4.2@{second}"));
    assert_eq!(scenario.data("other", "value").as_deref(), Some("1"), "what is pinned stays");
    drop(registry);
    scenario.annotate("Sync", "app", "linchpin.dev/requested-at", "3");
    let cut = scenario.until("tells that nobody answers", "Sync", "app", |object| {
        condition(object, "SourceReady")["reason"] == "FetchFailed"
    });
    assert_eq!(condition(&cut, "Ready")["status"], "True", "what was read stays the desired state");
    scenario.delete("ConfigMap", "app");
    eventually("drift is repaired without the registry", seconds(60), || {
        scenario.data("app", "value").as_deref() == Some("2")
    });
}
