//! AdmissionReviews of pods, sent to the webhooks at a steady rate over connections that stay open, as API servers do.

use anyhow::{Context as _, Result, bail};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use kube::Api;
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned,
    pki_types::{CertificateDer, ServerName, pem::PemObject},
};
use serde_json::json;
use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    sync::Arc,
    time::{Duration, Instant},
};

use super::{apply, boot, namespace};
use crate::{
    arena::Arena,
    operator::OperatorProcess,
    say,
    table::{Table, percentile, time},
};

const NAMESPACE: &str = "boot-reviews";
/// Reviews a second, over all connections.
const RATE: u32 = 500;
const CONNECTIONS: u32 = 4;

pub(super) async fn measure(
    arena: &Arena,
    operator: &OperatorProcess,
    address: SocketAddr,
    count: usize,
    table: &mut Table,
) -> Result<()> {
    say(&format!("{count} AdmissionReviews, {RATE} a second …"));
    namespace(arena, NAMESPACE).await?;
    let entries = json!([{"service": "db", "port": 5432}, {"host": "vault.example.com", "port": 8200}]);
    let spec = json!({"selector": {"matchLabels": {"app": "web"}}, "dependsOn": entries});
    apply(arena, &[boot(NAMESPACE, "web", &spec)]).await?;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let config = client(arena).await?;
    let (before, slow_before) = (seconds(operator, "+Inf").await?, seconds(operator, "0.005").await?);
    let used = operator.processor_time()?;
    let each = count / usize::try_from(CONNECTIONS)?;
    let senders = (0..CONNECTIONS).map(|number| {
        let config = Arc::clone(&config);
        tokio::task::spawn_blocking(move || send(address, config, number, each))
    });
    let mut times = Vec::new();
    for sent in futures::future::join_all(senders).await {
        times.extend(sent??);
    }
    let used = operator.processor_time()?.saturating_sub(used);
    let (all, fast) =
        (seconds(operator, "+Inf").await? - before, seconds(operator, "0.005").await? - slow_before);
    let within = format!("{:.2} % within 5 ms", 100.0 * fast / all.max(1.0));
    table.plain(&format!("webhook, server-side, {RATE} reviews/s"), &within, "≥ 99 %");
    for (name, hundredths) in [("p50", 50), ("p99", 99)] {
        let figure = format!("webhook, as its caller sees it, {RATE} reviews/s, {name}");
        table.plain(&figure, &time(percentile(&mut times, hundredths)), "≤ 5 ms");
    }
    table.processor_time("per review", used, count);
    Ok(())
}

/// How many answers took no longer than one of the histogram's bounds.
async fn seconds(operator: &OperatorProcess, bound: &str) -> Result<f64> {
    operator.metric(&format!("linchpin_webhook_seconds_bucket{{le=\"{bound}\"}}")).await
}

/// Trusts what the API server is configured to trust.
async fn client(arena: &Arena) -> Result<Arc<ClientConfig>> {
    let api: Api<MutatingWebhookConfiguration> = Api::all(arena.client.clone());
    let stored = api.get("linchpin-mutating").await.context("reading the configuration of the webhooks")?;
    let webhooks = stored.webhooks.unwrap_or_default();
    let bundle = webhooks.first().and_then(|webhook| webhook.client_config.ca_bundle.clone());
    let bundle = bundle.context("the webhooks have no caBundle")?.0;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&bundle) {
        roots.add(certificate?)?;
    }
    Ok(Arc::new(ClientConfig::builder().with_root_certificates(roots).with_no_client_auth()))
}

/// Sends so many over one connection, each at its own moment; how long each took.
fn send(address: SocketAddr, config: Arc<ClientConfig>, number: u32, count: usize) -> Result<Vec<Duration>> {
    let tcp = TcpStream::connect(address)?;
    tcp.set_nodelay(true)?;
    let name = ServerName::from(address.ip());
    let mut stream = StreamOwned::new(ClientConnection::new(config, name)?, tcp);
    let pause = Duration::from_secs(1) * CONNECTIONS / RATE;
    let begun = Instant::now() + pause / CONNECTIONS * number;
    let mut times = Vec::with_capacity(count);
    for (turn, at) in (0..count).zip(0_u32..) {
        std::thread::sleep((begun + pause * at).saturating_duration_since(Instant::now()));
        let request = request(&format!("{number}-{turn}"));
        let sent = Instant::now();
        stream.write_all(&request)?;
        stream.flush()?;
        let answer = answer(&mut stream)?;
        times.push(sent.elapsed());
        let patched = answer.pointer("/response/patch").is_some();
        anyhow::ensure!(patched, "a pod gets nothing to wait for: {answer}");
    }
    Ok(times)
}

fn request(uid: &str) -> Vec<u8> {
    let pod = json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "web", "namespace": NAMESPACE, "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "app", "image": "app", "resources": {"requests": {"cpu": "100m"}}}]}});
    let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": uid, "kind": {"group": "", "version": "v1", "kind": "Pod"}, "operation": "CREATE",
        "namespace": NAMESPACE, "object": pod}});
    let body = review.to_string();
    let head = format!(
        "POST /mutate-v1-pod HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    [head, body].concat().into_bytes()
}

/// The body of an answer, with the patch as text.
fn answer(stream: &mut impl Read) -> Result<serde_json::Value> {
    let (mut read, mut part) = (Vec::new(), [0; 16 << 10]);
    loop {
        let text = String::from_utf8_lossy(&read).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
            });
            if body.len() >= length.context("an answer without a length")? {
                let mut answer: serde_json::Value = serde_json::from_str(body)?;
                if let Some(patch) = answer["response"]["patch"].as_str() {
                    answer["response"]["patch"] = json!(String::from_utf8(STANDARD.decode(patch)?)?);
                }
                return Ok(answer);
            }
        }
        match stream.read(&mut part)? {
            0 => bail!("the connection ended"),
            count => read.extend_from_slice(&part[..count]),
        }
    }
}
