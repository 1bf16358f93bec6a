//! Hostile requests, over real TLS.

use std::net::SocketAddr;

use futures::FutureExt;
use linchpin_words::Timestamp;
use rustls::{ClientConfig, RootCertStore, pki_types::ServerName};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::{TlsConnector, client::TlsStream};

use super::*;
use crate::certificates;

const PATH: &str = "/mutate";
const GUARDED: &str = "/guarded";

struct Stage {
    certificate: Certificate,
    address: SocketAddr,
    connector: TlsConnector,
}

/// A server that allows everything but what is called `panic`.
async fn stage() -> Stage {
    let now = Timestamp::from(jiff::Timestamp::now());
    let ca = certificates::authority(now).unwrap();
    let leaf = certificates::leaf(&ca.key, &["127.0.0.1".to_owned()], now).unwrap();
    let certificate = Certificate::default();
    certificate.show(&leaf.certificate, &leaf.key).unwrap();
    let answer = |review: Review| {
        async move {
            assert_ne!(review.uid, "panic", "a handler that fails");
            ReviewVerdict::default()
        }
        .boxed()
    };
    let handler = |guarded| Handler { name: "test", kind: ("", "Pod"), guarded, answer: Box::new(answer) };
    let handlers = BTreeMap::from([(PATH, handler(false)), (GUARDED, handler(true))]);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(serve(listener, certificate.clone(), handlers, WebhookCounts::default()));
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(ca.certificate.as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    Stage { certificate, address, connector: TlsConnector::from(Arc::new(config)) }
}

impl Stage {
    async fn connect(&self) -> TlsStream<TcpStream> {
        let stream = TcpStream::connect(self.address).await.unwrap();
        let name = ServerName::try_from("127.0.0.1").unwrap();
        self.connector.connect(name, stream).await.unwrap()
    }

    /// The status of the answer to these bytes; none where the connection ends without one.
    async fn status(&self, head: &str, body: &[u8]) -> Option<u16> {
        let mut stream = self.connect().await;
        // The server may stop reading and answer: then writing fails, and the answer is what counts.
        let _ = stream.write_all(head.as_bytes()).await;
        let _ = stream.write_all(body).await;
        let mut answer = [0; 32];
        let read = stream.read(&mut answer).await.ok()?;
        let text = String::from_utf8_lossy(&answer[..read]).into_owned();
        text.split(' ').nth(1)?.parse().ok()
    }

    async fn post(&self, body: &[u8]) -> Option<u16> {
        self.post_to(PATH, body).await
    }

    async fn post_to(&self, path: &str, body: &[u8]) -> Option<u16> {
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        self.status(&head, body).await
    }
}

fn review(uid: &str) -> Vec<u8> {
    format!(r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{{"uid":"{uid}","kind":{{"group":"","version":"v1","kind":"Pod"}},"operation":"CREATE","object":{{}}}}}}"#)
        .into_bytes()
}

#[tokio::test]
async fn hostile_requests_get_their_status_and_cost_nobody_else_anything() {
    let stage = stage().await;
    assert_eq!(stage.post(&review("u")).await, Some(200));
    let json = "Host: x\r\nContent-Type: application/json\r\nContent-Length: 0\r\n\r\n";
    for (head, expected) in [
        (format!("GET {PATH} HTTP/1.1\r\n{json}"), 405),
        (format!("POST /other HTTP/1.1\r\n{json}"), 404),
        (format!("POST {PATH} HTTP/1.1\r\n{json}"), 400),
        (
            format!(
                "POST {PATH} HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nContent-Length: 0\r\n\r\n"
            ),
            415,
        ),
        ("\u{0}\u{1} garbage\r\n\r\n".to_owned(), 400),
    ] {
        assert_eq!(stage.status(&head, b"").await, Some(expected), "{head:?}");
    }
    for (body, expected) in [
        (b"garbage".to_vec(), 400),
        ("[".repeat(10_000).into_bytes(), 400),
        (review(""), 400),
        (review("panic"), 500),
    ] {
        assert_eq!(stage.post(&body).await, Some(expected), "{:.60}", String::from_utf8_lossy(&body));
    }
    // What is too much is not kept, and its sender gets an answer.
    let large = vec![b' '; 20 << 20];
    for _ in 0..4 {
        assert_eq!(stage.post(&large).await, Some(413));
        assert_eq!(stage.post_to("/other", &large).await, Some(404));
    }
    // A client that speaks no TLS is left alone.
    let mut plain = TcpStream::connect(stage.address).await.unwrap();
    plain.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    assert_eq!(stage.post(&review("u")).await, Some(200), "the server is as it was");
}

#[tokio::test]
async fn whoever_sends_slowly_loses_the_connection() {
    let stage = stage().await;
    let mut streams = Vec::new();
    for part in [
        "POST /mutate HTTP/1.1\r\nHost",
        "POST /mutate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{",
    ] {
        let mut stream = stage.connect().await;
        stream.write_all(part.as_bytes()).await.unwrap();
        streams.push(stream);
    }
    for mut stream in streams {
        let mut rest = Vec::new();
        // Ends, whether with an answer or without.
        let _ = stream.read_to_end(&mut rest).await;
        let text = String::from_utf8_lossy(&rest).into_owned();
        assert!(text.is_empty() || text.starts_with("HTTP/1.1 408"), "{text}");
    }
}

#[test]
fn a_certificate_that_cannot_be_used_changes_nothing() {
    let now = Timestamp::from_second(1_800_000_000);
    let ca = certificates::authority(now).unwrap();
    let names = ["a".to_owned()];
    let (one, other) = (
        certificates::leaf(&ca.key, &names, now).unwrap(),
        certificates::leaf(&ca.key, &names, now).unwrap(),
    );
    let certificate = Certificate::default();
    for (shown, key) in [
        ("", one.key.as_str()),
        (&one.certificate, ""),
        (&one.certificate, &other.key),
        ("garbage", "garbage"),
    ] {
        assert!(certificate.show(shown, key).is_err());
    }
    let mut registry = Registry::default();
    certificate.register(&mut registry);
    let expires = || {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        let line = text.lines().find(|line| line.starts_with("linchpin_webhook_certificate_expiry_seconds "));
        line.and_then(|line| line.rsplit(' ').next()).unwrap().to_owned()
    };
    assert_eq!(expires(), "0");
    certificate.show(&one.certificate, &one.key).unwrap();
    // The first midnight after thirty days.
    assert_eq!(expires(), "1802649600");
}

#[tokio::test]
async fn a_guarded_webhook_is_there_for_whom_its_word_was_told_alone() {
    let stage = stage().await;
    let word = stage.certificate.word();
    assert_eq!(word.len(), 32);
    let said = |word: &str| format!("{GUARDED}/{word}");
    assert_eq!(stage.post_to(&said(&word), &review("u")).await, Some(200));
    let flipped = word.replace(&word[31..], if word.ends_with('0') { "1" } else { "0" });
    let (shorter, longer) = (&word[..31], format!("{word}0"));
    let doubled = format!("{word}/{word}");
    for wrong in ["", "/", shorter, &longer, &flipped, &doubled, &word.to_uppercase(), "%00"] {
        assert_eq!(stage.post_to(&said(wrong), &review("u")).await, Some(404), "{wrong}");
    }
    for path in [GUARDED.to_owned(), format!("{PATH}/{word}"), format!("/{word}")] {
        assert_eq!(stage.post_to(&path, &review("u")).await, Some(404), "{path}");
    }
    // With another key there is another word; the one before counts until configurations say the new one.
    let now = Timestamp::from(jiff::Timestamp::now());
    for (round, counts) in [(1, true), (2, false)] {
        let ca = certificates::authority(now).unwrap();
        let leaf = certificates::leaf(&ca.key, &["127.0.0.1".to_owned()], now).unwrap();
        let before = stage.certificate.word();
        stage.certificate.show(&leaf.certificate, &leaf.key).unwrap();
        assert_ne!(stage.certificate.word(), before);
        assert!(
            stage.certificate.is_known_word(&before)
                && stage.certificate.is_known_word(&stage.certificate.word())
        );
        assert_eq!(stage.certificate.is_known_word(&word), counts, "{round}");
    }
}
