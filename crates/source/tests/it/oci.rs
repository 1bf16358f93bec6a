use linchpin_source::{
    Problem,
    digest::Digest,
    fetch::{FetchLocator, Fetched},
    registry::{ManifestReference, Repository},
};
use linchpin_words::Reason;
use serde_json::json;

use crate::server::{Reply, Server, answer, credentials, fetch_with, reach, tarball};

const LAYER: &str = "application/vnd.cncf.flux.content.v1.tar+gzip";

/// A manifest with one layer.
fn manifest(layer: &[u8]) -> Vec<u8> {
    let layers = json!([{"mediaType": LAYER, "digest": Digest::of(layer).as_str(), "size": layer.len()}]);
    serde_json::to_vec(&json!({"schemaVersion": 2, "layers": layers})).unwrap()
}

fn locator(server: &Server, reference: ManifestReference) -> FetchLocator {
    let url = format!("oci://{}/team/app", server.address);
    let repository = Repository::parse(&url, server.authority.is_none()).unwrap();
    FetchLocator::Oci { repository, reference, media_type: None }
}

fn tag() -> ManifestReference {
    ManifestReference::tag("1.4.0").unwrap()
}

async fn pull(server: &Server, reference: ManifestReference) -> Result<Option<Fetched>, Problem> {
    fetch_with(&reach("http://127.0.0.1"), &locator(server, reference), None, None).await
}

/// A registry that holds one artifact.
fn registry(head: &str, layer: &[u8]) -> Reply {
    let manifest = manifest(layer);
    if head.contains("/manifests/1.4.0 ") || head.contains(&format!("/manifests/{} ", Digest::of(&manifest)))
    {
        answer(200, &[], &manifest)
    } else if head.contains(&format!("/blobs/{} ", Digest::of(layer))) {
        answer(200, &[], layer)
    } else {
        answer(404, &[], b"")
    }
}

#[tokio::test]
async fn an_artifact_is_pulled_by_tag_and_by_digest_and_not_twice() {
    let layer = tarball(&[("a.yaml", "a: 1")]);
    let digest = Digest::of(&manifest(&layer));
    let server = Server::plain(move |head| registry(head, &layer)).await;
    let fetched = pull(&server, tag()).await.unwrap().unwrap();
    assert_eq!(fetched.revision(), format!("1.4.0@{digest}"));
    assert_eq!(fetched.manifests[0].path, "a.yaml");
    let reach = reach("http://127.0.0.1");
    let again = fetch_with(&reach, &locator(&server, tag()), None, Some(&fetched.known)).await.unwrap();
    assert_eq!(again, None);
    assert_eq!(server.asked().len(), 3, "the layer is not downloaded again");
    let fetched = pull(&server, ManifestReference::Digest(digest.clone())).await.unwrap().unwrap();
    assert_eq!(fetched.revision(), digest.as_str());
}

#[tokio::test]
async fn what_a_registry_hands_out_under_another_name_is_refused() {
    let layer = tarball(&[("a.yaml", "a: 1")]);
    let lying = Server::plain(move |head| {
        if head.contains("/manifests/") {
            answer(200, &[], &manifest(&layer))
        } else {
            answer(200, &[], b"a: evil")
        }
    })
    .await;
    assert_eq!(pull(&lying, tag()).await.unwrap_err().reason, Reason::DigestMismatch);
    let other = ManifestReference::Digest(Digest::of(b"another manifest"));
    assert_eq!(pull(&lying, other).await.unwrap_err().reason, Reason::DigestMismatch);
    for (body, reason) in [
        (b"<html>hunter2".to_vec(), Reason::ArchiveInvalid),
        (br#"{"manifests":[{"digest":"x"}]}"#.to_vec(), Reason::SourceUnsupported),
        (vec![b' '; 2 << 20], Reason::TooLarge),
    ] {
        let server = Server::plain(move |_| answer(200, &[], &body)).await;
        let problem = pull(&server, tag()).await.unwrap_err();
        assert_eq!(problem.reason, reason);
        assert!(!problem.message.contains("hunter2"), "{problem}");
    }
    let missing = Server::plain(|_| answer(404, &[], b"")).await;
    assert_eq!(pull(&missing, tag()).await.unwrap_err().reason, Reason::SourceNotFound);
}

#[tokio::test]
async fn a_token_is_asked_for_with_the_scope_that_is_needed_and_no_other() {
    let layer = tarball(&[("a.yaml", "a: 1")]);
    let server = Server::tls(move |head| {
        let low = head.to_lowercase();
        if head.starts_with("GET /token?") {
            let asked = head.contains("service=reg&scope=repository:team/app:pull ");
            return if asked && low.contains("authorization: basic dtpw") {
                answer(200, &[], br#"{"token":"t0ken"}"#)
            } else {
                answer(403, &[], b"")
            };
        }
        if low.contains("authorization: bearer t0ken") {
            return registry(head, &layer);
        }
        let host = low.split("host: ").nth(1).unwrap().split("\r\n").next().unwrap();
        let challenge =
            format!("Bearer realm=\"https://{host}/token\",service=\"reg\",scope=\"repository:other:push\"");
        answer(401, &[("WWW-Authenticate", &challenge)], b"")
    })
    .await;
    let authority = server.authority.clone().unwrap();
    let pairs = [("username", "u"), ("password", "p"), ("ca.crt", authority.as_str())];
    let secret = credentials(&server.url("/"), &pairs);
    let locator = locator(&server, tag());
    let fetched = fetch_with(&reach("127.0.0.1"), &locator, Some(&secret), None).await.unwrap().unwrap();
    assert_eq!(fetched.manifests.len(), 1);
    let anonymous = credentials(&server.url("/"), &[("ca.crt", authority.as_str())]);
    let problem = fetch_with(&reach("127.0.0.1"), &locator, Some(&anonymous), None).await.unwrap_err();
    assert_eq!(problem.reason, Reason::Unauthorized);
}

#[tokio::test]
async fn a_token_service_elsewhere_gets_no_password_and_must_be_listed() {
    let service = Server::plain(|_| answer(200, &[], br#"{"access_token":"t0ken"}"#)).await;
    let realm = service.url("/token").to_string();
    let layer = tarball(&[("a.yaml", "a: 1")]);
    let server = Server::plain(move |head| {
        if head.to_lowercase().contains("authorization: bearer t0ken") {
            return registry(head, &layer);
        }
        answer(401, &[("WWW-Authenticate", &format!("Bearer realm=\"{realm}\""))], b"")
    })
    .await;
    let secret = credentials(&server.url("/"), &[("username", "u"), ("password", "hunter2")]);
    let locator = locator(&server, tag());
    fetch_with(&reach("http://127.0.0.1"), &locator, Some(&secret), None).await.unwrap();
    assert!(service.asked().iter().all(|head| !head.to_lowercase().contains("authorization")));
    let asked = service.asked().len();
    let only_registry = reach(&format!("http://{}", server.address));
    let problem = fetch_with(&only_registry, &locator, Some(&secret), None).await.unwrap_err();
    assert_eq!(problem.reason, Reason::HostNotAllowed);
    assert_eq!(service.asked().len(), asked);
    for garbage in ["hunter2", "{}", r#"{"token":"a\r\nX-Evil: 1"}"#, "[]"] {
        let service = Server::plain(move |_| answer(200, &[], garbage.as_bytes())).await;
        let realm = service.url("/token").to_string();
        let challenge = format!("Bearer realm=\"{realm}\"");
        let server = Server::plain(move |_| answer(401, &[("WWW-Authenticate", &challenge)], b"")).await;
        let problem = pull(&server, tag()).await.unwrap_err();
        assert_eq!(problem.reason, Reason::FetchFailed, "{garbage}");
        assert!(!problem.message.contains("hunter2"), "{problem}");
    }
}
