//! The TLS server: POST of JSON on a few paths, within limits.
//!
//! A request has so long for its head and body, so many are answered at a time, a body has a largest size and JSON a
//! largest depth. A handler that panics costs one answer 500. A client that does not keep to it loses the connection
//! and nothing else happens.
//!
//! The API server does not say who it is unless its administrator makes it: anybody who reaches the port can send a
//! review. A handler that acts on a review is therefore [guarded](Handler::guarded): it answers behind its path and a
//! word that only the configurations say.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    fmt,
    sync::{Arc, PoisonError, RwLock},
    time::{Duration, Instant},
};

use futures::future::BoxFuture;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::{
    body::{Bytes, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use linchpin_words::{Timestamp, hash::sha256_hex};
use prometheus_client::{metrics::gauge::Gauge, registry::Registry};
use rustls::{
    ServerConfig,
    crypto::ring::sign::any_supported_type,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
};
use tokio_rustls::TlsAcceptor;

use super::{
    counts::WebhookCounts,
    review::{self, Review, ReviewVerdict},
};
use crate::{certificates::expiry, server::accept};

/// How long the handshake, a head or a body may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// The largest body: two objects of the largest size that the API server stores, quoted, and what is around them.
const BODY: usize = 6 << 20;
/// Requests that are answered at a time.
const REQUESTS: usize = 64;
/// Connections that are open at a time. API servers keep a few for each webhook.
const CONNECTIONS: usize = 256;
/// What the word of guarded webhooks is made of, besides the key.
const WORD: &str = "linchpin.dev/webhook-path";

/// A webhook at its path.
pub(crate) struct Handler {
    /// Its name in metrics.
    pub(crate) name: &'static str,
    /// The group and kind of the objects that it is asked about.
    pub(crate) kind: (&'static str, &'static str),
    /// Whether it answers only who knows the [word](Certificate::word), as the last segment of the path: it believes a
    /// review enough to act on it.
    pub(crate) guarded: bool,
    /// What it answers.
    pub(crate) answer: Box<dyn Fn(Review) -> BoxFuture<'static, ReviewVerdict> + Send + Sync>,
}

/// Handlers by their path.
pub(crate) type Handlers = BTreeMap<&'static str, Handler>;

/// The certificate that is shown now, and the word that is made of its key. Clones share both.
#[derive(Clone, Default)]
pub(super) struct Certificate(Arc<RwLock<Shown>>);

#[derive(Default)]
struct Shown {
    key: Option<Arc<CertifiedKey>>,
    /// The newest first, and the one before: configurations name that until they are written anew.
    words: Vec<String>,
    /// When the certificate expires, in seconds since 1970; 0 while there is none.
    expires: Gauge,
}

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificate").finish_non_exhaustive()
    }
}

/// A certificate that cannot be shown. Says nothing of the key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the {0} cannot be used")]
pub(super) struct Unusable(&'static str);

impl Certificate {
    /// Lets the time at which it expires be seen.
    pub(super) fn register(&self, registry: &mut Registry) {
        let expires = self.0.read().unwrap_or_else(PoisonError::into_inner).expires.clone();
        let help = "When the certificate of the webhooks expires, in seconds since 1970";
        registry.register("linchpin_webhook_certificate_expiry_seconds", help, expires);
    }

    /// Shows another certificate from now on; both as PEM.
    pub(super) fn show(&self, certificate: &str, key: &str) -> Result<(), Unusable> {
        let shown = certified(certificate, key)?;
        let mut word = sha256_hex(format!("{WORD}\n{key}").as_bytes());
        word.truncate(32);
        let expires = expiry(&shown.cert).map_or(0, Timestamp::as_second);
        let mut now = self.0.write().unwrap_or_else(PoisonError::into_inner);
        now.key = Some(Arc::new(shown));
        now.expires.set(expires);
        if now.words.first() != Some(&word) {
            now.words.insert(0, word);
            now.words.truncate(2);
        }
        Ok(())
    }

    /// The last segment of the paths of guarded webhooks; empty before there is a certificate. Every replica makes the same
    /// of the same key, and nobody can who does not have it.
    pub(super) fn word(&self) -> String {
        self.0.read().unwrap_or_else(PoisonError::into_inner).words.first().cloned().unwrap_or_default()
    }

    /// Whether somebody says the word, or the one before it.
    fn is_known_word(&self, word: &str) -> bool {
        let shown = self.0.read().unwrap_or_else(PoisonError::into_inner);
        shown.words.iter().fold(false, |same, known| same | is_same(known, word))
    }
}

/// A certificate with its key, both as PEM, as a server can show them.
pub(super) fn certified(certificate: &str, key: &str) -> Result<CertifiedKey, Unusable> {
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(certificate.as_bytes())
        .collect::<Result<_, _>>()
        .map_err(|_| Unusable("certificate"))?;
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(|_| Unusable("key"))?;
    let key = any_supported_type(&key).map_err(|_| Unusable("key"))?;
    if chain.is_empty() {
        return Err(Unusable("certificate"));
    }
    let shown = CertifiedKey::new(chain, key);
    if shown.keys_match().is_err() {
        return Err(Unusable("key: it is not the certificate's"));
    }
    Ok(shown)
}

/// Whether two texts are the same, in a time that does not say where they differ.
fn is_same(one: &str, other: &str) -> bool {
    let differences = one.bytes().zip(other.bytes()).fold(0, |all, (one, other)| all | (one ^ other));
    one.len() == other.len() && std::hint::black_box(differences) == 0
}

impl ResolvesServerCert for Certificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).key.clone()
    }
}

/// Serves until dropped.
pub(super) async fn serve(
    listener: TcpListener,
    certificate: Certificate,
    handlers: Handlers,
    counts: WebhookCounts,
) {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = match ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions() {
        Ok(builder) => builder.with_no_client_auth().with_cert_resolver(Arc::new(certificate.clone())),
        Err(error) => {
            tracing::error!(%error, "webhooks cannot be served");
            return;
        }
    };
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let desk = Arc::new(Responder { handlers, certificate, counts, requests: Semaphore::new(REQUESTS) });
    accept(listener, CONNECTIONS, move |stream| {
        let (acceptor, desk) = (acceptor.clone(), Arc::clone(&desk));
        async move { connection(stream, &acceptor, desk).await }
    })
    .await;
}

async fn connection(stream: TcpStream, acceptor: &TlsAcceptor, desk: Arc<Responder>) {
    let _ = stream.set_nodelay(true);
    let Ok(Ok(stream)) = tokio::time::timeout(PATIENCE, acceptor.accept(stream)).await else {
        return;
    };
    let service = service_fn(move |request| {
        let desk = Arc::clone(&desk);
        async move { Ok::<_, Infallible>(desk.respond(request).await) }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE)
        .serve_connection(TokioIo::new(stream), service)
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, "connection of a webhook ended");
    }
}

/// Where requests are answered.
struct Responder {
    handlers: Handlers,
    certificate: Certificate,
    counts: WebhookCounts,
    requests: Semaphore,
}

impl Responder {
    /// Who answers at a path. A guarded webhook that is asked for without its word is not there.
    fn handler(&self, path: &str) -> Option<&Handler> {
        if let Some(open) = self.handlers.get(path).filter(|handler| !handler.guarded) {
            return Some(open);
        }
        let (path, word) = path.rsplit_once('/')?;
        self.handlers.get(path).filter(|handler| handler.guarded && self.certificate.is_known_word(word))
    }

    async fn respond(self: Arc<Self>, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let begun = Instant::now();
        let Some(handler) = self.handler(request.uri().path()) else {
            self.counts.answered("unknown", "error", begun.elapsed());
            let _ = body(request, 0).await;
            return text(StatusCode::NOT_FOUND, "no such webhook\n");
        };
        let name = handler.name;
        // The semaphore is never closed.
        let _turn = self.requests.acquire().await.ok();
        let (status, body, outcome) = match self.judge(handler, request).await {
            Ok((answer, outcome)) => (StatusCode::OK, answer, outcome),
            Err((status, problem)) => {
                self.counts.answered(name, "error", begun.elapsed());
                return text(status, format!("{problem}\n"));
            }
        };
        self.counts.answered(name, outcome, begun.elapsed());
        let mut response = Response::new(Full::from(body));
        *response.status_mut() = status;
        let json = header::HeaderValue::from_static("application/json");
        response.headers_mut().insert(header::CONTENT_TYPE, json);
        response
    }

    async fn judge(
        &self,
        handler: &Handler,
        request: Request<Incoming>,
    ) -> Result<(String, &'static str), (StatusCode, String)> {
        let is_post = request.method() == Method::POST;
        let is_json = request
            .headers()
            .get(header::CONTENT_TYPE)
            .and_then(|value| value.to_str().ok())
            .is_some_and(|value| value.split(';').next().map(str::trim) == Some("application/json"));
        let body = body(request, if is_post && is_json { BODY } else { 0 }).await;
        if !is_post {
            return Err((StatusCode::METHOD_NOT_ALLOWED, "only POST".to_owned()));
        }
        if !is_json {
            return Err((StatusCode::UNSUPPORTED_MEDIA_TYPE, "only application/json".to_owned()));
        }
        let body = body?;
        let (group, kind) = handler.kind;
        let review = review::read(&body, group, kind)
            .map_err(|unreadable| (StatusCode::BAD_REQUEST, unreadable.to_string()))?;
        drop(body);
        let uid = review.uid.clone();
        // In a task of its own: if it panics, this connection goes on.
        let verdict = tokio::spawn((handler.answer)(review)).await.map_err(|error| {
            tracing::error!(webhook = handler.name, %error, "a webhook failed");
            (StatusCode::INTERNAL_SERVER_ERROR, "the webhook failed".to_owned())
        })?;
        Ok((verdict.answer(&uid).to_string(), verdict.outcome()))
    }
}

/// The body, within its limits. What is too much is read and dropped: a client that is still writing when the connection ends
/// would not get the answer.
async fn body(request: Request<Incoming>, most: usize) -> Result<Vec<u8>, (StatusCode, String)> {
    let mut body = request.into_body();
    let (mut kept, mut is_large) = (Vec::new(), false);
    let whole = async {
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame?.into_data() else { continue };
            is_large |= kept.len() + data.len() > most;
            if is_large {
                kept = Vec::new();
            } else {
                kept.extend_from_slice(&data);
            }
        }
        Ok::<_, hyper::Error>(())
    };
    match tokio::time::timeout(PATIENCE, whole).await {
        _ if is_large => Err((StatusCode::PAYLOAD_TOO_LARGE, format!("more than {most} bytes"))),
        Ok(Ok(())) => Ok(kept),
        Ok(Err(_)) => Err((StatusCode::BAD_REQUEST, "the body ends too early".to_owned())),
        Err(_) => Err((StatusCode::REQUEST_TIMEOUT, "the body takes too long".to_owned())),
    }
}

fn text(status: StatusCode, text: impl Into<String>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(text.into()));
    *response.status_mut() = status;
    // What is left of a body is not read.
    response.headers_mut().insert(header::CONNECTION, header::HeaderValue::from_static("close"));
    response
}

#[cfg(test)]
mod tests;
