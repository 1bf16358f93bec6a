//! The transport against a server of our own, over TLS as in life.

use super::{connect::Wire, *};
use crate::remote::{Pools, RemoteSettings};
use http_body_util::Full;
use hyper::{body::Frame, server::conn, service::service_fn};
use hyper_util::rt::TokioIo;
use kube::{Error, api::WatchParams};
use linchpin_words::egress::Egress;
use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// A server that counts connections and knows a few paths: `/hang` never answers, `/half` never finishes its answer,
/// `/drip` sends a byte now and then for ever, `/size/N` answers with so many bytes, `/no/N` refuses with them; everything
/// else lists the request's headers (or, for a watch, sends one line and stays open).
struct Server {
    config: Config,
    connections: Arc<AtomicUsize>,
}

impl Server {
    async fn start(protocols: &[&str]) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let rcgen::CertifiedKey { cert, signing_key } =
            rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
        let mut tls = rustls::ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(vec![cert.der().clone()], signing_key.serialize_der().try_into().unwrap())
            .unwrap();
        tls.alpn_protocols = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
        let acceptor = TlsAcceptor::from(Arc::new(tls));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&connections);
        tokio::spawn(async move {
            loop {
                let (tcp, _) = listener.accept().await.unwrap();
                count.fetch_add(1, Ordering::SeqCst);
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    let Ok(stream) = acceptor.accept(tcp).await else {
                        return;
                    };
                    let http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
                    let io = TokioIo::new(stream);
                    if http2 {
                        let mut builder = conn::http2::Builder::new(TokioExecutor::new());
                        builder.max_concurrent_streams(100);
                        let _ = builder.serve_connection(io, service_fn(answer)).await;
                    } else {
                        let _ = conn::http1::Builder::new().serve_connection(io, service_fn(answer)).await;
                    }
                });
            }
        });
        let mut config = Config::new(format!("https://{address}").parse().unwrap());
        config.root_cert = Some(vec![cert.der().to_vec()]);
        Self { config, connections }
    }

    fn transport(&self, options: &TransportOptions) -> Transport {
        Transport::new(&self.config, options).unwrap()
    }

    fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

/// A body of so many bytes, made while it is sent.
fn long(size: usize) -> AnswerBody {
    const CHUNK: &[u8] = &[b'x'; 64 << 10];
    let chunks = futures::stream::unfold(size, |left| async move {
        let chunk = Bytes::from_static(&CHUNK[..left.min(CHUNK.len())]);
        let rest = left - chunk.len();
        (left > 0).then(|| (Ok::<_, BoxError>(Frame::data(chunk)), rest))
    });
    BodyExt::boxed_unsync(http_body_util::StreamBody::new(chunks))
}

async fn answer(request: Request<Incoming>) -> Result<Response<AnswerBody>, Infallible> {
    let endless = |first: &'static [u8]| {
        let first = futures::stream::iter([Ok::<_, BoxError>(Frame::data(Bytes::from_static(first)))]);
        let stream = futures::StreamExt::chain(first, futures::stream::pending());
        BodyExt::boxed_unsync(http_body_util::StreamBody::new(stream))
    };
    let dripping = || {
        let pauses = futures::stream::unfold((), |()| async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            Some((Ok::<_, BoxError>(Frame::data(Bytes::from_static(b" "))), ()))
        });
        BodyExt::boxed_unsync(http_body_util::StreamBody::new(pauses))
    };
    let path = request.uri().path().to_owned();
    let sized = |prefix: &str| path.strip_prefix(prefix).and_then(|size| size.parse().ok());
    if let Some(size) = sized("/size/").or(sized("/no/")) {
        let mut answer = Response::new(long(size));
        if path.starts_with("/no/") {
            *answer.status_mut() = http::StatusCode::FORBIDDEN;
        }
        return Ok(answer);
    }
    let watching = request.uri().query().is_some_and(|query| query.contains("watch=true"));
    Ok(Response::new(match path.as_str() {
        "/hang" => std::future::pending().await,
        "/half" => endless(b"half an ans"),
        "/drip" => dripping(),
        _ if watching => endless(b"{}\n"),
        _ => boxed(Full::new(Bytes::from(format!("{:?}", request.headers())))),
    }))
}

fn get(path: &str) -> Request<Vec<u8>> {
    Request::get(path).body(Vec::new()).unwrap()
}

fn brisk() -> TransportOptions {
    TransportOptions {
        watch_deadline: Duration::from_millis(300),
        write_deadline: Duration::from_millis(300),
        ..TransportOptions::default()
    }
}

async fn open_watch(client: &Client) -> Response<Body> {
    let request = kube::core::Request::new("/api/v1/pods").watch(&WatchParams::default(), "0").unwrap();
    client.send(request.map(Body::from)).await.unwrap()
}

#[tokio::test]
async fn the_ninety_first_watch_opens_a_second_connection() {
    let server = Server::start(&["h2", "http/1.1"]).await;
    let transport = server.transport(&TransportOptions::default());
    let client = transport.watches(None);
    let mut open = Vec::new();
    for _ in 0..90 {
        open.push(open_watch(&client).await);
    }
    assert_eq!(
        (server.connections(), transport.statistics()),
        (1, Statistics { connections: 1, streams: 90 })
    );

    open.push(open_watch(&client).await);
    assert_eq!(
        (server.connections(), transport.statistics()),
        (2, Statistics { connections: 2, streams: 91 })
    );

    open.pop();
    assert_eq!(
        transport.statistics(),
        Statistics { connections: 1, streams: 90 },
        "an empty connection closes"
    );
    open.clear();
    assert_eq!(transport.statistics(), Statistics { connections: 1, streams: 0 }, "the last one stays");
}

#[tokio::test]
async fn watches_that_start_together_share_the_connections_they_need() {
    let server = Server::start(&["h2", "http/1.1"]).await;
    let transport = server.transport(&TransportOptions::default());
    let client = transport.watches(None);
    let open = futures::future::join_all((0..200).map(|_| open_watch(&client))).await;
    assert_eq!((server.connections(), transport.statistics().streams), (3, 200));
    drop(open);
}

#[tokio::test]
async fn a_server_without_http2_is_watched_over_http1() {
    let server = Server::start(&["http/1.1"]).await;
    let transport = server.transport(&TransportOptions::default());
    let client = transport.watches(None);
    let first = open_watch(&client).await;
    let second = open_watch(&client).await;
    assert_eq!(first.version(), http::Version::HTTP_11);
    assert_eq!(transport.statistics(), Statistics { connections: 0, streams: 0 });
    drop((first, second));
}

#[tokio::test]
async fn writes_go_over_http1_and_reuse_their_connection() {
    let server = Server::start(&["h2", "http/1.1"]).await;
    let client = server.transport(&TransportOptions::default()).writes(None);
    for _ in 0..3 {
        let answer = client.send(get("/x").map(Body::from)).await.unwrap();
        assert_eq!(answer.version(), http::Version::HTTP_11);
        answer.into_body().collect_bytes().await.unwrap();
    }
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn a_write_that_is_never_answered_ends_at_its_deadline() {
    let server = Server::start(&["h2", "http/1.1"]).await;
    let transport = server.transport(&brisk());
    for path in ["/hang", "/half"] {
        let error = transport.writes(None).request_text(get(path)).await.unwrap_err();
        let cause = TransportError::behind(&error);
        assert!(matches!(cause, Some(TransportError::Deadline(_))), "{path}: {error:?}");
        assert!(!cause.unwrap().certainly_not_sent());
    }
}

#[tokio::test]
async fn a_watch_must_begin_by_its_deadline_and_may_last_beyond_it() {
    let server = Server::start(&["h2", "http/1.1"]).await;
    let transport = server.transport(&brisk());
    let client = transport.watches(None);
    let error = client.request_text(get("/hang")).await.unwrap_err();
    assert!(matches!(TransportError::behind(&error), Some(TransportError::Deadline(_))), "{error:?}");
    assert_eq!(transport.statistics().streams, 0, "a request given up frees its slot");

    let mut body = open_watch(&client).await.into_body();
    body.frame().await.unwrap().unwrap();
    let next = tokio::time::timeout(Duration::from_millis(600), body.frame()).await;
    assert!(next.is_err(), "the watch should still be open, not {next:?}");
}

#[tokio::test]
async fn an_answer_that_is_no_watch_must_be_complete_by_its_deadline_on_every_lane() {
    let server = Server::start(&["h2", "http/1.1"]).await;
    let transport = server.transport(&brisk());
    for client in [transport.watches(None), transport.writes(None)] {
        for path in ["/half", "/drip", "/drip?limit=500&watch=false"] {
            let error = client.request_text(get(path)).await.unwrap_err();
            let cause = TransportError::behind(&error);
            assert!(matches!(cause, Some(TransportError::Deadline(_))), "{path}: {error:?}");
        }
    }
    assert_eq!(transport.statistics().streams, 0);
}

#[tokio::test]
async fn an_answer_has_a_largest_size_and_a_refusal_a_smaller_one() {
    let server = Server::start(&["h2", "http/1.1"]).await;
    let limit = 2 * limits::REFUSAL;
    let transport =
        server.transport(&TransportOptions { answer_limit: limit, ..TransportOptions::default() });
    for client in [transport.watches(None), transport.writes(None)] {
        let size = |size: usize| {
            let client = client.clone();
            async move { client.request_text(get(&format!("/size/{size}"))).await }
        };
        assert_eq!(size(limit).await.unwrap().len(), limit);
        for over in [limit + 1, limit * 100] {
            let error = size(over).await.unwrap_err();
            assert!(matches!(TransportError::behind(&error), Some(TransportError::TooLarge(_))), "{error:?}");
        }
        let refused = |size: usize| {
            let client = client.clone();
            async move {
                let answer = client.send(get(&format!("/no/{size}")).map(Body::from)).await.unwrap();
                answer.into_body().collect_bytes().await
            }
        };
        assert!(refused(limits::REFUSAL).await.is_ok());
        assert!(refused(limits::REFUSAL + 1).await.is_err());
        assert!(refused(limits::REFUSAL * 100).await.is_err());
    }
}

#[tokio::test]
async fn an_answer_of_a_server_that_a_user_names_has_a_smaller_limit() {
    let server = Server::start(&["h2", "http/1.1"]).await;
    let settings = RemoteSettings { egress: Egress::default().with_loopback(), ..RemoteSettings::default() };
    let pool = Pools::default().get(&("uid".to_owned(), [0; 32]), &server.config, &settings).unwrap();
    let limit = limits::REMOTE_ANSWER;
    for client in [pool.transport.watches(None), pool.transport.writes(None)] {
        assert_eq!(client.request_text(get(&format!("/size/{limit}"))).await.unwrap().len(), limit);
        for over in [limit + 1, limit * 100] {
            let error = client.request_text(get(&format!("/size/{over}"))).await.unwrap_err();
            assert!(matches!(TransportError::behind(&error), Some(TransportError::TooLarge(_))), "{error:?}");
        }
    }
}

#[tokio::test]
async fn every_request_says_that_it_is_ours() {
    let server = Server::start(&["h2", "http/1.1"]).await;
    let transport = server.transport(&TransportOptions::default());
    for client in [transport.writes(None), transport.watches(None)] {
        let headers = client.request_text(get("/x")).await.unwrap();
        assert!(headers.contains(&format!(r#""user-agent": "{USER_AGENT}""#)), "{headers}");
    }
    assert!(USER_AGENT.starts_with("linchpin/") && USER_AGENT.len() > "linchpin/".len());
}

#[tokio::test]
async fn how_a_server_that_a_user_names_cannot_be_reached_is_not_told() {
    let server = Server::start(&["h2", "http/1.1"]).await;
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut stranger = server.config.clone();
    stranger.root_cert = Some(Vec::new());
    let at = |port: u16| {
        let mut config = server.config.clone();
        config.cluster_url = format!("https://127.0.0.1:{port}").parse().unwrap();
        config
    };
    let yes = || Egress::default().with_loopback();
    let no = Egress::default;
    let cases = [
        (at(closed), yes(), "/x"),
        (at(silent.local_addr().unwrap().port()), yes(), "/x"),
        (stranger, yes(), "/x"),
        (server.config.clone(), no(), "/x"),
        (server.config.clone(), yes(), "/hang"),
        (server.config.clone(), yes(), "/half"),
    ];
    let mut messages = std::collections::BTreeSet::new();
    for (config, egress, path) in cases {
        let connect_timeout = Duration::from_millis(300);
        let options = TransportOptions { egress: Some(egress), connect_timeout, ..brisk() };
        let transport = Transport::new(&config, &options).unwrap();
        for client in [transport.writes(None), transport.watches(None)] {
            let error = client.request_text(get(path)).await.unwrap_err();
            messages.insert(TransportError::behind(&error).unwrap().to_string());
        }
    }
    assert_eq!(messages.len(), 1, "{messages:?}");
}

#[tokio::test]
async fn every_socket_sends_at_once() {
    let server = Server::start(&["h2", "http/1.1"]).await;
    for protocol in [Protocol::Http1, Protocol::Http2] {
        let connector = Connector::new(&server.config, protocol, &TransportOptions::default()).unwrap();
        let wire: Wire = connector.connect().await.unwrap();
        assert!(wire.tcp().nodelay().unwrap());
        assert_eq!(wire.speaks_http2(), protocol == Protocol::Http2);
    }
}

#[tokio::test]
async fn an_unreachable_server_is_known_not_to_have_got_the_request() {
    let port = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    let config = Config::new(format!("http://127.0.0.1:{port}").parse().unwrap());
    let transport = Transport::new(&config, &TransportOptions::default()).unwrap();
    assert_eq!(transport.reach().now(), Reachability::Unknown);
    for client in [transport.writes(None), transport.watches(None)] {
        let error = client.request_text(get("/x")).await.unwrap_err();
        assert!(matches!(error, Error::Service(_)), "{error:?}");
        assert!(TransportError::behind(&error).unwrap().certainly_not_sent(), "{error:?}");
    }
    let Reachability::Failing { reason, .. } = transport.reach().now() else { panic!("still reachable") };
    assert!(reason.contains("refused"), "{reason}");
}

#[tokio::test]
async fn what_is_forbidden_is_counted_where_it_was_asked_for_as_ourselves() {
    let server = Server::start(&["h2", "http/1.1"]).await;
    let transport = server.transport(&TransportOptions::default());
    let somebody = Impersonation::service_account("shop", "builder").unwrap();
    for client in [transport.writes(Some(&somebody)), transport.watches(Some(&somebody))] {
        assert!(client.request_text(get("/no/9")).await.is_err());
    }
    assert!(transport.writes(None).request_text(get("/x")).await.is_ok());
    assert_eq!(transport.reach().forbidden(), 0);
    for client in [transport.writes(None), transport.watches(None)] {
        assert!(client.request_text(get("/no/9")).await.is_err());
    }
    assert_eq!(transport.reach().forbidden(), 2);
}

#[tokio::test]
async fn a_client_acts_as_the_identity_it_was_made_for() {
    let server = Server::start(&["h2", "http/1.1"]).await;
    let transport = server.transport(&TransportOptions::default());
    let somebody = Impersonation::service_account("shop", "builder").unwrap();
    for client in [transport.writes(Some(&somebody)), transport.watches(Some(&somebody))] {
        let headers = client.request_text(get("/x")).await.unwrap();
        assert!(headers.contains(r#""impersonate-user": "system:serviceaccount:shop:builder""#), "{headers}");
        assert!(!headers.contains("impersonate-group"), "{headers}");
    }
    let plain = transport.writes(None).request_text(get("/x")).await.unwrap();
    assert!(!plain.contains("impersonate"), "{plain}");
    for unusable in ["line\nbreak", "", " "] {
        assert!(Impersonation::user(unusable, &[]).is_err(), "{unusable:?}");
    }
}

#[tokio::test]
async fn the_configurations_own_impersonation_never_replaces_that_of_a_client() {
    let mut server = Server::start(&["h2", "http/1.1"]).await;
    server.config.auth_info.impersonate = Some("boss".into());
    let transport = server.transport(&TransportOptions::default());
    let somebody = Impersonation::service_account("shop", "builder").unwrap();
    let headers = transport.writes(Some(&somebody)).request_text(get("/x")).await.unwrap();
    assert!(headers.contains("shop:builder") && !headers.contains("boss"), "{headers}");
    let headers = transport.writes(None).request_text(get("/x")).await.unwrap();
    assert!(headers.contains(r#""impersonate-user": "boss""#), "{headers}");
}

#[tokio::test]
async fn the_bearer_token_is_read_from_its_file() {
    let server = Server::start(&["h2", "http/1.1"]).await;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("token");
    std::fs::write(&path, "first").unwrap();
    let mut config = server.config.clone();
    config.auth_info.token_file = Some(path.to_string_lossy().into_owned());
    let transport = Transport::new(&config, &TransportOptions::default()).unwrap();
    let headers = transport.watches(None).request_text(get("/x")).await.unwrap();
    assert!(headers.contains(r#""authorization": "Bearer first""#), "{headers}");
}
