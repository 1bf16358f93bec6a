//! The pull client against a real registry: `make registry-test` builds one and runs this.

use std::{
    env,
    process::{Child, Command, Stdio},
    time::Duration,
};

use linchpin_source::{
    digest::Digest,
    fetch::FetchLocator,
    registry::{ManifestReference, Repository},
};
use linchpin_words::Reason;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use crate::server::{fetch_with, reach, tarball};

/// A registry of our own, which ends with the test.
struct Registry {
    process: Child,
    address: String,
    _storage: tempfile::TempDir,
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Registry {
    async fn start() -> Self {
        let program = env::var("LINCHPIN_REGISTRY")
            .expect("LINCHPIN_REGISTRY names a registry: see make registry-test");
        let storage = tempfile::tempdir().unwrap();
        let port = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
        let address = format!("127.0.0.1:{port}");
        let configuration = storage.path().join("config.yml");
        let text = format!(
            "version: 0.1\nstorage: {{filesystem: {{rootdirectory: {}}}}}\nhttp: {{addr: '{address}'}}\n",
            storage.path().join("data").display()
        );
        std::fs::write(&configuration, text).unwrap();
        let process = Command::new(program)
            .arg("serve")
            .arg(&configuration)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        for _ in 0..600 {
            if TcpStream::connect(&address).await.is_ok() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Self { process, address, _storage: storage }
    }

    /// Sends a request; its status and where it leads.
    async fn send(&self, method: &str, path: &str, media: &str, body: &[u8]) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.address).await.unwrap();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nContent-Type: {media}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            self.address,
            body.len()
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(body).await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
        let location = answer.lines().find_map(|line| line.strip_prefix("Location: "));
        let path = location.map(|location| location.trim().replace(&format!("http://{}", self.address), ""));
        (status, path.unwrap_or_default())
    }

    async fn push_blob(&self, bytes: &[u8]) -> Digest {
        let (status, upload) = self.send("POST", "/v2/team/app/blobs/uploads/", "text/plain", b"").await;
        assert_eq!(status, 202);
        let digest = Digest::of(bytes);
        let separator = if upload.contains('?') { '&' } else { '?' };
        let path = format!("{upload}{separator}digest={digest}");
        assert_eq!(self.send("PUT", &path, "application/octet-stream", bytes).await.0, 201);
        digest
    }

    async fn push(&self, tag: &str, layer: &[u8]) -> Digest {
        const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
        let digest = self.push_blob(layer).await;
        let configuration = self.push_blob(b"{}").await;
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": {"mediaType": "application/vnd.cncf.flux.config.v1+json", "digest": configuration.as_str(), "size": 2},
            "layers": [{
                "mediaType": "application/vnd.cncf.flux.content.v1.tar+gzip",
                "digest": digest.as_str(),
                "size": layer.len()
            }]
        });
        let manifest = serde_json::to_vec(&manifest).unwrap();
        let path = format!("/v2/team/app/manifests/{tag}");
        assert_eq!(self.send("PUT", &path, MANIFEST, &manifest).await.0, 201);
        Digest::of(&manifest)
    }

    fn locator(&self, reference: ManifestReference) -> FetchLocator {
        let repository = Repository::parse(&format!("oci://{}/team/app", self.address), true).unwrap();
        FetchLocator::Oci { repository, reference, media_type: None }
    }
}

#[tokio::test]
#[ignore = "needs a registry: make registry-test"]
async fn an_artifact_of_a_real_registry_is_pulled_followed_and_missed() {
    let registry = Registry::start().await;
    let reach = reach("http://127.0.0.1");
    let first = registry.push("1.0.0", &tarball(&[("a.yaml", "a: 1")])).await;
    let by_tag = registry.locator(ManifestReference::tag("1.0.0").unwrap());
    let fetched = fetch_with(&reach, &by_tag, None, None).await.unwrap().unwrap();
    assert_eq!(fetched.revision(), format!("1.0.0@{first}"));
    assert_eq!(fetched.manifests[0].text, "a: 1");
    assert_eq!(fetch_with(&reach, &by_tag, None, Some(&fetched.known)).await.unwrap(), None);
    let second = registry.push("1.0.0", &tarball(&[("a.yaml", "a: 2")])).await;
    let moved = fetch_with(&reach, &by_tag, None, Some(&fetched.known)).await.unwrap().unwrap();
    assert_eq!((moved.revision(), moved.manifests[0].text.as_str()), (&*format!("1.0.0@{second}"), "a: 2"));
    let pinned = registry.locator(ManifestReference::Digest(first.clone()));
    let fetched = fetch_with(&reach, &pinned, None, None).await.unwrap().unwrap();
    assert_eq!((fetched.revision(), fetched.manifests[0].text.as_str()), (first.as_str(), "a: 1"));
    let missing = registry.locator(ManifestReference::tag("2.0.0").unwrap());
    assert_eq!(fetch_with(&reach, &missing, None, None).await.unwrap_err().reason, Reason::SourceNotFound);
}
