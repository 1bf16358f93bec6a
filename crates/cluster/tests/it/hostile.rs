//! Servers that a user names and that mean harm: answers without an end, pages without a last one, lines that never end.
//! They harm nobody but who names them.

use crate::stage::{Stage, config_map};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use linchpin_engine::contract::{Actor, ClusterRef, Question, ReadSet, Scope, Seen, Selector, Via, Want};
use linchpin_words::Reason;
use serde_json::json;
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

/// What has no end.
#[derive(Clone, Copy, Debug)]
enum Evil {
    /// What it serves is told for ever.
    Discovery,
    /// A page of a list never ends.
    Page,
    /// There is always one more page, each full of objects.
    Pages,
    /// A line of a watch never ends.
    Line,
    /// A refusal never ends.
    Refusal,
}

/// What became of the answers without an end.
#[derive(Default)]
struct Taken {
    /// The most bytes that anybody took of one.
    most: AtomicUsize,
    /// How many nobody wanted any more of.
    ended: AtomicUsize,
}

/// Starts such a server and returns a kubeconfig for it.
async fn serve(evil: Evil, taken: Arc<Taken>) -> String {
    let rcgen::CertifiedKey { cert, signing_key } =
        rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    let mut tls = rustls::ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], signing_key.serialize_der().try_into().unwrap())
        .unwrap();
    tls.alpn_protocols = vec![b"http/1.1".to_vec()];
    let acceptor = TlsAcceptor::from(Arc::new(tls));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((tcp, _)) = listener.accept().await {
            let (acceptor, taken) = (acceptor.clone(), Arc::clone(&taken));
            tokio::spawn(async move {
                if let Ok(mut stream) = acceptor.accept(tcp).await {
                    let _ = converse(&mut stream, evil, &taken).await;
                }
            });
        }
    });
    let authority = STANDARD.encode(cert.pem());
    format!(
        "{{apiVersion: v1, kind: Config, current-context: c, contexts: [{{name: c, context: {{cluster: c, user: u}}}}],
          clusters: [{{name: c, cluster: {{server: 'https://{address}', certificate-authority-data: {authority}}}}}],
          users: [{{name: u, user: {{token: t}}}}]}}"
    )
}

/// Answers one request after another.
async fn converse(stream: &mut TlsStream<TcpStream>, evil: Evil, taken: &Taken) -> std::io::Result<()> {
    loop {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await?);
        }
        let head = String::from_utf8_lossy(&head).into_owned();
        let target = head.split(' ').nth(1).unwrap_or_default().to_owned();
        let path = target.split('?').next().unwrap_or_default();
        match (path, evil) {
            ("/api", Evil::Discovery) => return endless(stream, "200 OK", "", taken).await,
            ("/api", _) => answer(stream, r#"{"kind": "APIVersions", "versions": ["v1"]}"#).await?,
            ("/apis", _) => answer(stream, r#"{"kind": "APIGroupList", "groups": []}"#).await?,
            ("/api/v1", _) => {
                let resource = r#"{"name": "configmaps", "namespaced": true, "kind": "ConfigMap", "verbs": ["get", "list", "watch"]}"#;
                answer(stream, &format!(r#"{{"resources": [{resource}]}}"#)).await?;
            }
            (path, Evil::Line) if path.ends_with("configmaps") && target.contains("watch=true") => {
                return endless(stream, "200 OK", r#"{"type": "ADDED", "object": {"x": ""#, taken).await;
            }
            (path, Evil::Page) if path.ends_with("configmaps") => {
                return endless(stream, "200 OK", r#"{"items": ["#, taken).await;
            }
            (path, Evil::Refusal) if path.ends_with("configmaps") => {
                return endless(stream, "403 Forbidden", "", taken).await;
            }
            (path, Evil::Pages) if path.ends_with("configmaps") => {
                let objects =
                    vec![r#"{"metadata": {"name": "a", "resourceVersion": "1"}, "data": {"x": "y"}}"#; 5_000];
                let objects = objects.join(",");
                let page = format!(
                    r#"{{"metadata": {{"resourceVersion": "1", "continue": "more"}}, "items": [{objects}]}}"#
                );
                answer(stream, &page).await?;
            }
            (path, _) if path.ends_with("configmaps") => {
                answer(stream, r#"{"metadata": {"resourceVersion": "1"}, "items": []}"#).await?;
            }
            _ => {
                let no = "HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\n{}";
                stream.write_all(no.as_bytes()).await?;
            }
        }
    }
}

async fn answer(stream: &mut TlsStream<TcpStream>, body: &str) -> std::io::Result<()> {
    let length = body.len();
    let head =
        format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n");
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await
}

async fn endless(
    stream: &mut TlsStream<TcpStream>,
    status: &str,
    begin: &str,
    taken: &Taken,
) -> std::io::Result<()> {
    let head = format!("HTTP/1.1 {status}\r\nTransfer-Encoding: chunked\r\n\r\n");
    stream.write_all(head.as_bytes()).await?;
    if !begin.is_empty() {
        stream.write_all(format!("{:x}\r\n{begin}\r\n", begin.len()).as_bytes()).await?;
    }
    let chunk = format!("10000\r\n{}\r\n", " ".repeat(0x10000));
    for sent in (0..).step_by(chunk.len()) {
        taken.most.fetch_max(sent, Ordering::Relaxed);
        if stream.write_all(chunk.as_bytes()).await.is_err() {
            break;
        }
    }
    taken.ended.fetch_add(1, Ordering::Relaxed);
    Ok(())
}

/// How such a server ends: not reached, refused, or beyond what one namespace may have.
const ENDS: [Reason; 3] = [Reason::ClusterUnreachable, Reason::Forbidden, Reason::OverBudget];

/// What may be on its way when the other side stops to read: the buffers of two sockets and of TLS. Until an answer must
/// be complete, a hundred times as much could be read of it.
const ON_THE_WAY: usize = 16 << 20;

/// The most memory that this process ever had, in MiB.
fn peak() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().split(' ').next().unwrap().parse::<usize>().unwrap() / 1024
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_server_that_answers_without_end_harms_nobody_but_who_names_it() {
    let stage = Stage::new().await;
    stage.allow_all("builder", "configmaps").await;
    stage.put(stage.map("here", json!({"x": "1"}))).await;
    let evils = [Evil::Discovery, Evil::Page, Evil::Pages, Evil::Line, Evil::Refusal];
    let before = peak();
    let mut wants = Vec::new();
    for (number, evil) in evils.into_iter().enumerate() {
        let name = format!("evil-{number}");
        let taken = Arc::new(Taken::default());
        let kubeconfig = STANDARD.encode(serve(evil, Arc::clone(&taken)).await);
        stage
            .put(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": stage.namespace},
                "data": {"value": kubeconfig}}))
            .await;
        stage
            .allow(
                "builder",
                &["list", "watch"],
                "secrets",
                &["evil-0", "evil-1", "evil-2", "evil-3", "evil-4"],
            )
            .await;
        let cluster = ClusterRef::Kubeconfig {
            namespace: stage.namespace.clone(),
            name,
            key: "value".to_owned(),
            impersonate: None,
        };
        let actor = Actor::ServiceAccount { namespace: stage.namespace.clone(), name: "builder".into() };
        let via = Via { cluster, actor };
        let selector = Selector::requirements(vec!["a=b".to_owned()]);
        let scope = Scope::Labels { namespace: Some("x".to_owned()), selector };
        let reads = ReadSet::dotted(["data"]);
        wants.push((evil, Want::new(Question::Objects { via, kind: config_map(), scope, reads }), taken));
    }
    let mut audience = stage.audience().await;
    let here = stage.want("builder", "here");
    audience.ask(wants.iter().map(|(_, want, _)| want.clone()).chain([here.clone()]));
    audience.until_data(&here, json!({"x": "1"})).await;
    for (evil, want, taken) in &wants {
        let seen = audience
            .until(want, &format!("the end of {evil:?}"), |seen| {
                matches!(seen, Seen::Unknown(why) if ENDS.contains(&why.reason))
                    || matches!(evil, Evil::Line) && matches!(seen, Seen::Objects(_))
            })
            .await;
        if let Seen::Unknown(why) = seen {
            assert!(why.message.len() < 500, "{}", why.message);
        }
        let limit = match evil {
            Evil::Discovery | Evil::Page | Evil::Pages | Evil::Line => 8 << 20,
            Evil::Refusal => 1 << 20,
        };
        loop {
            let most = taken.most.load(Ordering::Relaxed);
            assert!(most <= limit + ON_THE_WAY, "{evil:?}: {most} bytes of one answer were read");
            if matches!(evil, Evil::Pages) || taken.ended.load(Ordering::Relaxed) > 0 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    stage.put(stage.map("here", json!({"x": "2"}))).await;
    audience.until_data(&here, json!({"x": "2"})).await;
    let grown = peak() - before;
    assert!(grown < 400, "five servers without an end took {grown} MiB");
}
