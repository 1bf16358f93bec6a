//! Artifacts of Flux's source-controller: which file of its server belongs to which object.
//!
//! The status of a source of Flux names a URL, a revision and a digest. Whoever may write that status could name another
//! tenant's file; the server does not ask who fetches. So the file must lie where the server keeps those of this very
//! object, and must have a digest. An `ExternalArtifact` is published by others, wherever they like.

use linchpin_words::{Reason, text::quote};
use serde::Deserialize;

use crate::{Problem, digest::Digest, fetch::Locator, url::Url};

/// The kinds that have an artifact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FluxKind {
    /// A repository of Git.
    GitRepository,
    /// An OCI artifact.
    OciRepository,
    /// A bucket of an object store.
    Bucket,
    /// What somebody else publishes.
    ExternalArtifact,
}

impl FluxKind {
    /// The directory of the server that holds its artifacts; none where anybody may publish anywhere.
    fn directory(self) -> Option<&'static str> {
        match self {
            Self::GitRepository => Some("gitrepository"),
            Self::OciRepository => Some("ocirepository"),
            Self::Bucket => Some("bucket"),
            Self::ExternalArtifact => None,
        }
    }
}

/// A source of Flux.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FluxObject<'o> {
    /// Its kind.
    pub kind: FluxKind,
    /// Its namespace.
    pub namespace: &'o str,
    /// Its name.
    pub name: &'o str,
}

/// What its status says of its artifact.
#[derive(Deserialize)]
struct Artifact {
    url: String,
    revision: String,
    #[serde(default)]
    digest: String,
}

/// Where the artifact of an object is, and its revision. `artifact` is `status.artifact` of the object.
pub fn locate(object: &FluxObject<'_>, artifact: &serde_json::Value) -> Result<(Locator, String), Problem> {
    let garbled =
        |what: &str| Problem::new(Reason::SourceNotFound, format!("the artifact of the source {what}"));
    let artifact = Artifact::deserialize(artifact).map_err(|_| garbled("has no url and revision yet"))?;
    let url = Url::parse(&artifact.url).map_err(|error| garbled(&format!("cannot be fetched: {error}")))?;
    let digest = Digest::parse(&artifact.digest).ok_or_else(|| garbled("has no SHA-256 digest"))?;
    if let Some(directory) = object.kind.directory() {
        let home = format!("/{directory}/{}/{}/", object.namespace, object.name);
        let file = url.path.strip_prefix(&home);
        let plain = |file: &str| {
            !file.is_empty() && !file.contains(['/', '%', '?', '\\']) && file != ".." && file != "."
        };
        if !file.is_some_and(plain) {
            let message =
                format!("the artifact of the source is not one file below {} of its server", quote(&home));
            return Err(Problem::new(Reason::HostNotAllowed, message));
        }
    }
    Ok((Locator::Http { url, digest: Some(digest) }, artifact.revision))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const HOST: &str = "http://source-controller.flux-system.svc.cluster.local.";

    fn found(kind: FluxKind, path: &str) -> Result<(Locator, String), Problem> {
        let object = FluxObject { kind, namespace: "shop", name: "web" };
        let digest = Digest::of(b"");
        locate(
            &object,
            &json!({"url": format!("{HOST}{path}"), "revision": "main@sha1:1", "digest": digest.as_str()}),
        )
    }

    #[test]
    fn the_file_of_the_very_object_is_fetched_with_its_digest() {
        let (locator, revision) =
            found(FluxKind::GitRepository, "/gitrepository/shop/web/1234.tar.gz").unwrap();
        assert_eq!(revision, "main@sha1:1");
        let Locator::Http { url, digest: Some(digest) } = locator else { panic!("a file with a digest") };
        assert_eq!(
            url.host, "source-controller.flux-system.svc.cluster.local",
            "the dot at its end means nothing"
        );
        assert_eq!(digest, Digest::of(b""));
        assert!(found(FluxKind::ExternalArtifact, "/anywhere/else.tar.gz").is_ok());
    }

    #[test]
    fn nobody_gets_the_file_of_another() {
        for path in [
            "/gitrepository/other/web/1.tar.gz",
            "/gitrepository/shop/other/1.tar.gz",
            "/gitrepository/shop/web2/1.tar.gz",
            "/bucket/shop/web/1.tar.gz",
            "/gitrepository/shop/web/",
            "/gitrepository/shop/web",
            "/gitrepository/shop/web/../../other/web/1.tar.gz",
            "/gitrepository/shop/web/..",
            "/gitrepository/shop/web/%2e%2e/%2e%2e/other/1.tar.gz",
            "/gitrepository/shop/web/a/b",
            "/gitrepository/shop/web/1.tar.gz?x=/",
        ] {
            assert_eq!(
                found(FluxKind::GitRepository, path).unwrap_err().reason,
                Reason::HostNotAllowed,
                "{path}"
            );
        }
    }

    #[test]
    fn what_is_not_there_yet_or_has_no_digest_is_not_fetched() {
        let object = FluxObject { kind: FluxKind::Bucket, namespace: "shop", name: "web" };
        for artifact in [
            json!(null),
            json!({}),
            json!({"url": "ftp://x/", "revision": "r"}),
            json!({"url": "http://h/bucket/shop/web/a", "revision": "r"}),
            json!({"url": "http://h/bucket/shop/web/a", "revision": "r", "digest": "sha512:00"}),
        ] {
            assert_eq!(locate(&object, &artifact).unwrap_err().reason, Reason::SourceNotFound, "{artifact}");
        }
    }
}
