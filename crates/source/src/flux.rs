//! Artifacts of Flux's source-controller: which file of its server belongs to which object.
//!
//! The status of a source of Flux names a URL, a revision and a digest. A user who may write that status could name
//! another tenant's file; the server does not ask who fetches. So the file must lie where the server keeps those of
//! this very object, and must have a digest. An `ExternalArtifact` is published by others, wherever they like.

use linchpin_words::{Reason, source::FluxSourceKind, text::quote};

use crate::{Problem, digest::Digest, fetch::FetchLocator, url::Url};

/// A source of Flux, and where its status says that its artifact is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FluxArtifact<'o> {
    /// The kind of the object.
    pub kind: FluxSourceKind,
    /// Its namespace.
    pub namespace: &'o str,
    /// Its name.
    pub name: &'o str,
    /// Where the artifact is.
    pub url: &'o str,
    /// What it must hash to.
    pub digest: &'o str,
}

/// The directory of the server that holds the artifacts of a kind; none where anybody may publish anywhere.
fn directory(kind: FluxSourceKind) -> Option<&'static str> {
    match kind {
        FluxSourceKind::GitRepository => Some("gitrepository"),
        FluxSourceKind::OciRepository => Some("ocirepository"),
        FluxSourceKind::Bucket => Some("bucket"),
        FluxSourceKind::ExternalArtifact => None,
    }
}

/// The file to fetch.
pub fn locate(artifact: &FluxArtifact<'_>) -> Result<FetchLocator, Problem> {
    let garbled =
        |what: &str| Problem::new(Reason::SourceNotFound, format!("the artifact of the source {what}"));
    let url = Url::parse(artifact.url).map_err(|error| garbled(&format!("cannot be fetched: {error}")))?;
    let digest = Digest::parse(artifact.digest).ok_or_else(|| garbled("has no SHA-256 digest"))?;
    if let Some(directory) = directory(artifact.kind) {
        let home = format!("/{directory}/{}/{}/", artifact.namespace, artifact.name);
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
    Ok(FetchLocator::Http { url, digest: Some(digest) })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: &str = "http://source-controller.flux-system.svc.cluster.local.";

    fn found(kind: FluxSourceKind, url: &str, digest: &str) -> Result<FetchLocator, Problem> {
        locate(&FluxArtifact { kind, namespace: "shop", name: "web", url, digest })
    }

    fn at(kind: FluxSourceKind, path: &str) -> Result<FetchLocator, Problem> {
        found(kind, &format!("{HOST}{path}"), Digest::of(b"").as_str())
    }

    #[test]
    fn the_file_of_the_very_object_is_fetched_with_its_digest() {
        let locator = at(FluxSourceKind::GitRepository, "/gitrepository/shop/web/1234.tar.gz").unwrap();
        let FetchLocator::Http { url, digest: Some(digest) } = locator else {
            panic!("a file with a digest")
        };
        assert_eq!(
            url.host, "source-controller.flux-system.svc.cluster.local",
            "the dot at its end means nothing"
        );
        assert_eq!(digest, Digest::of(b""));
        assert!(at(FluxSourceKind::ExternalArtifact, "/anywhere/else.tar.gz").is_ok());
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
                at(FluxSourceKind::GitRepository, path).unwrap_err().reason,
                Reason::HostNotAllowed,
                "{path}"
            );
        }
    }

    #[test]
    fn what_has_no_address_or_no_digest_is_not_fetched() {
        let file = "http://h/bucket/shop/web/a";
        for (url, digest) in [("ftp://x/", ""), (file, ""), (file, "sha512:00")] {
            let problem = found(FluxSourceKind::Bucket, url, digest).unwrap_err();
            assert_eq!(problem.reason, Reason::SourceNotFound, "{url} {digest}");
        }
    }
}
