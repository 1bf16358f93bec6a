//! One request, to a server that was checked: its host by the administrator's list, its address by the deny-list.
//!
//! A request has one connection, which is closed behind it. Redirects of a [`Get`] are followed here, each through both
//! lists, never from TLS to plain text; credentials go to the first server alone; those of an [`HttpRequest`] are not followed. A
//! body is counted while it is read. What a server answers is never repeated in an error.

use std::{net::SocketAddr, sync::Arc};

use http::{
    HeaderMap, HeaderValue, Method, Request, Response, StatusCode,
    header::{ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONNECTION, HOST, LOCATION, RETRY_AFTER, USER_AGENT},
};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper_util::rt::TokioIo;
use linchpin_words::{Reason, egress::Egress, limits, text::quote};
use rustls::{ClientConfig, pki_types::ServerName};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpStream, lookup_host},
    task::JoinHandle,
};
use tokio_rustls::TlsConnector;

use crate::{
    Problem,
    hosts::HostList,
    url::{Scheme, Url},
};

/// How we introduce ourselves to every server.
const AGENT: &str = concat!("linchpin/", env!("CARGO_PKG_VERSION"));

/// The longest pause that a server may ask for, in seconds: as long as the longest interval.
const LONGEST_PAUSE: u64 = 24 * 60 * 60;

/// Where requests may go.
#[derive(Clone)]
pub struct Reach {
    /// The hosts.
    pub hosts: Arc<HostList>,
    /// The addresses.
    pub egress: Arc<Egress>,
}

/// One GET.
pub struct Get<'g> {
    /// Where to.
    pub url: &'g Url,
    /// Headers beside the usual ones.
    pub headers: HeaderMap,
    /// The Authorization header, for the server of `url` alone.
    pub authorization: Option<&'g str>,
    /// Whom to believe.
    pub tls: &'g Arc<ClientConfig>,
    /// How large the answer may be.
    pub limit: usize,
}

/// One request of any method, with a body: to a server that the administrator names. Redirects are not followed.
pub struct HttpRequest<'a> {
    /// What is asked for.
    pub method: Method,
    /// Where to.
    pub url: &'a Url,
    /// Headers beside the usual ones.
    pub headers: HeaderMap,
    /// The Authorization header.
    pub authorization: Option<&'a str>,
    /// Whom to believe.
    pub tls: &'a Arc<ClientConfig>,
    /// What is sent.
    pub body: Bytes,
    /// How large the answer may be.
    pub limit: usize,
}

/// What is sent to one server.
struct Message<'m> {
    method: &'m Method,
    headers: &'m HeaderMap,
    authorization: Option<&'m str>,
    tls: &'m Arc<ClientConfig>,
    body: Bytes,
}

/// An answer, whatever its status.
#[derive(Debug)]
pub struct HttpAnswer {
    /// Its status.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body; to a [`Get`] empty unless the status is a success.
    pub body: Vec<u8>,
    /// The server that gave it, after redirects.
    pub from: Url,
}

impl Reach {
    /// Sends a GET and follows redirects. The caller bounds the time.
    pub async fn get(&self, get: &Get<'_>) -> Result<HttpAnswer, Problem> {
        let mut url = get.url.clone();
        for _ in 0..=limits::SOURCE_REDIRECTS {
            self.hosts.check(&url)?;
            let authorization = get.authorization.filter(|_| url.same_server(get.url));
            let Get { headers, tls, .. } = get;
            let message = Message { method: &Method::GET, headers, authorization, tls, body: Bytes::new() };
            let Exchange { response, running } = self.send(&url, message).await?;
            if !response.status().is_redirection() || response.status() == StatusCode::NOT_MODIFIED {
                let wanted = response.status().is_success();
                let answer = answer(response, url, wanted, get.limit).await;
                drop(running);
                return answer;
            }
            let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
            let next = location.and_then(|location| url.join(location).ok());
            let next = next.ok_or_else(|| failed(&url, "redirects to nowhere"))?;
            if url.scheme == Scheme::Https && next.scheme == Scheme::Http {
                return Err(failed(&url, "redirects from https to http, which is not followed"));
            }
            url = next;
        }
        Err(failed(&url, &format!("redirects more than {} times", limits::SOURCE_REDIRECTS)))
    }

    /// Sends a request of any method, and reads the answer whatever its status. The caller bounds the time.
    pub async fn ask(&self, ask: HttpRequest<'_>) -> Result<HttpAnswer, Problem> {
        self.hosts.check(ask.url)?;
        let HttpRequest { method, url, headers, authorization, tls, body, limit } = ask;
        let message = Message { method: &method, headers: &headers, authorization, tls, body };
        let Exchange { response, running } = self.send(url, message).await?;
        let answer = answer(response, url.clone(), true, limit).await;
        drop(running);
        answer
    }

    async fn send(&self, url: &Url, message: Message<'_>) -> Result<Exchange, Problem> {
        let stream = self.dial(url).await?;
        match url.scheme {
            Scheme::Http => exchange(stream, url, message).await,
            Scheme::Https => {
                let name = ServerName::try_from(url.host.clone())
                    .map_err(|_| failed(url, "has a host that no certificate can name"))?;
                let stream = TlsConnector::from(message.tls.clone())
                    .connect(name, stream)
                    .await
                    .map_err(|_| failed(url, "offers no TLS that can be believed (see ca.crt)"))?;
                exchange(stream, url, message).await
            }
        }
    }

    /// Connects to an address that was checked, so that a name cannot lead elsewhere after the check.
    async fn dial(&self, url: &Url) -> Result<TcpStream, Problem> {
        let found = lookup_host((url.host.as_str(), url.port)).await;
        let found: Vec<SocketAddr> = found.map_err(|_| failed(url, "has no address"))?.collect();
        let mut checked = Vec::with_capacity(found.len());
        let mut denied = None;
        for address in found {
            match self.egress.check(address.ip()) {
                Ok(()) => checked.push(address),
                Err(range) => denied = denied.or(Some(range)),
            }
        }
        if let Some(range) = denied.filter(|_| checked.is_empty()) {
            let message =
                format!("the host {} leads to {range}, which is never connected to", quote(&url.authority()));
            return Err(Problem::new(Reason::AddressDenied, message));
        }
        let stream = TcpStream::connect(checked.as_slice()).await;
        let stream = stream.map_err(|_| failed(url, "does not accept connections"))?;
        stream.set_nodelay(true).map_err(|_| failed(url, "closed the connection"))?;
        Ok(stream)
    }
}

/// An answer that has begun, and the connection it comes over.
struct Exchange {
    response: Response<Incoming>,
    running: Running,
}

/// A connection in a task of its own: it ends when nobody reads its answer any more.
struct Running(JoinHandle<hyper::Result<()>>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn exchange<S: AsyncRead + AsyncWrite + Send + Unpin + 'static>(
    stream: S,
    url: &Url,
    message: Message<'_>,
) -> Result<Exchange, Problem> {
    let broken = |_| failed(url, "does not speak HTTP");
    let mut request = Request::builder()
        .method(message.method)
        .uri(&url.path)
        .body(Full::new(message.body))
        .map_err(|_| failed(url, "has an unusable path"))?;
    let headers = request.headers_mut();
    headers.extend(message.headers.clone());
    let host = HeaderValue::from_str(&url.authority()).map_err(|_| failed(url, "has an unusable host"))?;
    headers.insert(HOST, host);
    headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    headers.entry(ACCEPT).or_insert(HeaderValue::from_static("*/*"));
    if let Some(authorization) = message.authorization {
        let mut value = HeaderValue::from_str(authorization)
            .map_err(|_| failed(url, "cannot be sent these credentials"))?;
        value.set_sensitive(true);
        headers.insert(AUTHORIZATION, value);
    }
    let handshake = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = handshake.map_err(broken)?;
    let running = Running(tokio::spawn(connection));
    let response = sender.send_request(request).await.map_err(broken)?;
    Ok(Exchange { response, running })
}

/// Reads the body of an answer where it is wanted, within its bound.
async fn answer(
    response: Response<Incoming>,
    from: Url,
    wanted: bool,
    limit: usize,
) -> Result<HttpAnswer, Problem> {
    let (parts, mut incoming) = response.into_parts();
    let mut body = Vec::new();
    if wanted {
        while let Some(frame) = incoming.frame().await {
            let frame = frame.map_err(|_| failed(&from, "broke off in the middle of its answer"))?;
            let Some(data) = frame.data_ref() else { continue };
            if body.len() + data.len() > limit {
                let message =
                    format!("the answer of {} is larger than {limit} bytes", quote(&from.authority()));
                return Err(Problem::too_large(message));
            }
            body.extend_from_slice(data);
        }
    }
    Ok(HttpAnswer { status: parts.status, headers: parts.headers, body, from })
}

impl HttpAnswer {
    /// The answer if it is a good one; else what its status means.
    pub fn success(self) -> Result<Self, Problem> {
        if self.status.is_success() {
            return Ok(self);
        }
        let host = quote(&self.from.authority());
        let code = self.status.as_u16();
        Err(match code {
            401 | 403 => Problem::new(
                Reason::Unauthorized,
                format!("{host} answers {code}: it wants other credentials"),
            ),
            404 | 410 => Problem::new(
                Reason::SourceNotFound,
                format!("{host} answers {code}: there is no such source"),
            ),
            _ => {
                let pause = self.headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
                let pause = pause.map(|pause: u64| pause.min(LONGEST_PAUSE));
                Problem { retry_after: pause, ..Problem::failed(format!("{host} answers {code}")) }
            }
        })
    }
}

pub(crate) fn failed(url: &Url, why: &str) -> Problem {
    Problem::failed(format!("the host {} {why}", quote(&url.authority())))
}
