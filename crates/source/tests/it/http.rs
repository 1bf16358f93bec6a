use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use linchpin_source::{
    archive::ManifestSelection,
    digest::Digest,
    fetch::{Fetch, FetchLocator},
    http::Reach,
};
use linchpin_words::{Reason, egress::Egress};

use crate::server::{Reply, Server, answer, credentials, fetch_with, http, reach, tarball};

/// A reach of everything, as plain text too.
fn all() -> Reach {
    reach("http://*")
}

async fn refusal(server: &Server) -> (Reason, String) {
    let problem = fetch_with(&all(), &http(server.url("/a.tar.gz")), None, None).await.unwrap_err();
    (problem.reason, problem.message)
}

#[tokio::test]
async fn an_archive_is_fetched_and_asked_for_again_only_if_it_changed() {
    let body = tarball(&[("b.yaml", "b: 1"), ("a.yaml", "a: 1")]);
    let digest = Digest::of(&body);
    let server = Server::plain(move |head| {
        if head.to_lowercase().contains("if-none-match: \"v1\"") {
            answer(304, &[], b"")
        } else {
            answer(200, &[("ETag", "\"v1\"")], &body)
        }
    })
    .await;
    let locator = http(server.url("/a.tar.gz"));
    let fetched = fetch_with(&all(), &locator, None, None).await.unwrap().unwrap();
    assert_eq!(fetched.revision(), digest.as_str());
    assert_eq!(
        fetched.manifests.iter().map(|file| file.path.as_str()).collect::<Vec<_>>(),
        ["a.yaml", "b.yaml"]
    );
    assert_eq!(fetch_with(&all(), &locator, None, Some(&fetched.known)).await.unwrap(), None);
    let head = server.asked()[0].to_lowercase();
    assert!(head.contains(&format!("user-agent: linchpin/{}", env!("CARGO_PKG_VERSION"))), "{head}");
    assert!(!head.contains("authorization") && !head.contains("cookie"), "{head}");
}

#[tokio::test]
async fn another_digest_than_the_one_asked_for_applies_nothing() {
    let server = Server::plain(|_| answer(200, &[], b"a: 1")).await;
    let url = server.url("/a.yaml");
    let right = FetchLocator::Http { url: url.clone(), digest: Some(Digest::of(b"a: 1")) };
    assert!(fetch_with(&all(), &right, None, None).await.is_ok());
    let wrong = FetchLocator::Http { url, digest: Some(Digest::of(b"a: 2")) };
    assert_eq!(fetch_with(&all(), &wrong, None, None).await.unwrap_err().reason, Reason::DigestMismatch);
}

#[tokio::test]
async fn every_bad_answer_has_its_reason_and_none_is_repeated() {
    let cases = [
        (401, Reason::Unauthorized),
        (403, Reason::Unauthorized),
        (404, Reason::SourceNotFound),
        (410, Reason::SourceNotFound),
        (429, Reason::FetchFailed),
        (500, Reason::FetchFailed),
        (304, Reason::FetchFailed),
    ];
    for (status, reason) in cases {
        let server = Server::plain(move |_| answer(status, &[("Retry-After", "7")], b"hunter2")).await;
        let (found, message) = refusal(&server).await;
        assert_eq!(found, reason, "{status}");
        assert!(message.contains(&status.to_string()) && !message.contains("hunter2"), "{message}");
    }
    let server = Server::plain(|_| answer(503, &[("Retry-After", "7")], b"")).await;
    let problem = fetch_with(&all(), &http(server.url("/")), None, None).await.unwrap_err();
    assert_eq!(problem.retry_after, Some(7));
    let server = Server::plain(|_| answer(503, &[("Retry-After", "18446744073709551615")], b"")).await;
    let problem = fetch_with(&all(), &http(server.url("/a.tar.gz")), None, None).await.unwrap_err();
    assert_eq!(problem.retry_after, Some(86_400), "nobody is asked to wait for ever");
    let garbage = Server::plain(|_| Reply::Bytes(b"hunter2 hunter2\r\n\r\n".to_vec())).await;
    let (reason, message) = refusal(&garbage).await;
    assert_eq!(reason, Reason::FetchFailed);
    assert!(!message.contains("hunter2"), "{message}");
}

#[tokio::test]
async fn a_server_that_answers_without_end_or_never_is_left() {
    let endless =
        Server::plain(|_| Reply::Endless(b"HTTP/1.1 200 OK\r\n\r\n".to_vec(), vec![b'a'; 1 << 16])).await;
    assert_eq!(refusal(&endless).await.0, Reason::TooLarge);
    let head = Server::plain(|_| Reply::Endless(b"HTTP/1.1 200 OK\r\n".to_vec(), b"X: y\r\n".to_vec())).await;
    assert_eq!(refusal(&head).await.0, Reason::FetchFailed);
    let slow =
        Server::plain(|_| Reply::Hang(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\na".to_vec())).await;
    let silent = Server::plain(|_| Reply::Hang(Vec::new())).await;
    for server in [&slow, &silent] {
        let (reach, locator, selection) = (all(), http(server.url("/")), ManifestSelection::default());
        let timeout = Duration::from_millis(300);
        let fetch =
            Fetch { reach: &reach, locator: &locator, selection: &selection, credentials: None, timeout };
        let started = Instant::now();
        assert_eq!(fetch.run(None).await.unwrap_err().reason, Reason::FetchFailed);
        assert!(started.elapsed() < Duration::from_secs(15), "the limit in time is kept");
    }
    let truncated =
        Server::plain(|_| Reply::Bytes(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\na: 1".to_vec())).await;
    assert_eq!(refusal(&truncated).await.0, Reason::FetchFailed, "an answer that breaks off is no source");
}

#[tokio::test]
async fn an_address_that_is_denied_is_never_connected_to() {
    let server = Server::plain(|_| answer(200, &[], b"a: 1")).await;
    let denied = Reach { egress: Arc::new(Egress::default()), ..all() };
    let problem = fetch_with(&denied, &http(server.url("/")), None, None).await.unwrap_err();
    assert_eq!(problem.reason, Reason::AddressDenied);
    let problem = fetch_with(&reach("other"), &http(server.url("/")), None, None).await.unwrap_err();
    assert_eq!(problem.reason, Reason::HostNotAllowed);
    assert!(server.asked().is_empty(), "nothing was sent");
}

#[tokio::test]
async fn a_redirect_goes_through_both_lists_and_drops_credentials() {
    let target = Server::plain(|_| answer(200, &[], b"a: 1")).await;
    let to = target.url("/there").to_string();
    let first = Server::plain(move |_| answer(302, &[("Location", &to)], b"")).await;
    let url = first.url("/here");
    let secret = credentials(&url, &[("username", "u"), ("password", "hunter2")]);
    let found = fetch_with(&all(), &http(url.clone()), Some(&secret), None).await.unwrap().unwrap();
    assert_eq!(found.manifests[0].text, "a: 1");
    assert!(first.asked()[0].to_lowercase().contains("authorization: basic"));
    assert!(!target.asked()[0].to_lowercase().contains("authorization"), "another port is another server");

    let only_first = reach(&format!("http://{}", first.address));
    let problem = fetch_with(&only_first, &http(url.clone()), None, None).await.unwrap_err();
    assert_eq!(problem.reason, Reason::HostNotAllowed);
    assert_eq!(target.asked().len(), 1);

    let same = Server::plain(|head| {
        if head.starts_with("GET /a ") {
            answer(301, &[("Location", "b")], b"")
        } else {
            answer(200, &[], b"a: 1")
        }
    })
    .await;
    let secret = credentials(&same.url("/a"), &[("bearerToken", "t")]);
    fetch_with(&all(), &http(same.url("/a")), Some(&secret), None).await.unwrap();
    assert!(
        same.asked()[1].to_lowercase().contains("authorization: bearer t"),
        "the same server gets them again"
    );
}

#[tokio::test]
async fn redirects_end() {
    let count = AtomicUsize::new(0);
    let server = Server::plain(move |_| {
        let next = format!("/{}", count.fetch_add(1, Ordering::Relaxed));
        answer(307, &[("Location", &next)], b"")
    })
    .await;
    assert_eq!(refusal(&server).await.0, Reason::FetchFailed);
    assert_eq!(server.asked().len(), 4, "the first request and three redirects");
    for location in ["ftp://x/", "https://u:hunter2@x/", ""] {
        let server = Server::plain(move |_| answer(302, &[("Location", location)], b"")).await;
        let (reason, message) = refusal(&server).await;
        assert_eq!(reason, Reason::FetchFailed, "{location}");
        assert!(!message.contains("hunter2"), "{message}");
    }
}

#[tokio::test]
async fn tls_is_believed_by_the_given_authority_alone_and_never_left() {
    let plain = Server::plain(|_| answer(200, &[], b"a: 1")).await;
    let to = plain.url("/").to_string();
    let server = Server::tls(move |head| {
        if head.starts_with("GET /down") {
            answer(302, &[("Location", &to)], b"")
        } else {
            answer(200, &[], b"a: 1")
        }
    })
    .await;
    let strict = reach("127.0.0.1");
    let problem = fetch_with(&strict, &http(server.url("/")), None, None).await.unwrap_err();
    assert_eq!(problem.reason, Reason::FetchFailed, "nobody we know signed it");
    let authority = server.authority.clone().unwrap();
    let known = credentials(&server.url("/"), &[("ca.crt", &authority)]);
    assert!(fetch_with(&strict, &http(server.url("/")), Some(&known), None).await.is_ok());
    let down = fetch_with(&all(), &http(server.url("/down")), Some(&known), None).await.unwrap_err();
    assert_eq!(down.reason, Reason::FetchFailed);
    assert!(plain.asked().is_empty(), "not from https to http");
    let garbage = credentials(&server.url("/"), &[("ca.crt", "hunter2")]);
    let problem = fetch_with(&strict, &http(server.url("/")), Some(&garbage), None).await.unwrap_err();
    assert!(problem.message.contains("ca.crt") && !problem.message.contains("hunter2"), "{problem}");
}
