//! Makes one connection: TCP with Nagle off and keep-alive on, then TLS if the address asks for it.
//!
//! Both lanes connect here, so no socket of ours lacks a time limit or has the 45 ms that Nagle's algorithm and
//! delayed acknowledgements cost together. A peer that silently vanished is noticed by the kernel within 25 s.

use super::{TransportError, TransportOptions, chain};
use futures::future::BoxFuture;
use http::Uri;
use hyper_util::{
    client::legacy::connect::{Connected, Connection},
    rt::TokioIo,
};
use kube::{Config, client::ConfigExt};
use linchpin_words::egress::Egress;
use nix::sys::socket::{setsockopt, sockopt};
use rustls::pki_types::ServerName;
use std::{
    io,
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};
use tokio_rustls::{TlsConnector, client::TlsStream};
use tower::Service;

/// The protocol offered to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Protocol {
    /// One request at a time per connection.
    Http1,
    /// Many; the server may still decline, see [`Wire::speaks_http2`].
    Http2,
}

/// Connects to the one server it was made for.
#[derive(Clone)]
pub(super) struct Connector {
    target: Arc<Target>,
}

struct Target {
    address: String,
    host: String,
    port: u16,
    tls: Option<(TlsConnector, ServerName<'static>)>,
    timeout: Duration,
    egress: Option<Egress>,
}

impl Connector {
    pub(super) fn new(
        config: &Config,
        protocol: Protocol,
        options: &TransportOptions,
    ) -> Result<Self, TransportError> {
        let url = &config.cluster_url;
        let unusable = |reason: String| TransportError::Address { address: url.to_string(), reason };
        let host = url.host().ok_or_else(|| unusable("it has no host".into()))?;
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let secure = match url.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(unusable("it is neither http nor https".into())),
        };
        let tls = if secure {
            let mut client = config.rustls_client_config().map_err(|source| TransportError::Credentials {
                address: url.to_string(),
                source: Box::new(source),
            })?;
            client.alpn_protocols = match protocol {
                Protocol::Http1 => vec![b"http/1.1".to_vec()],
                Protocol::Http2 => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
            };
            let name = config.tls_server_name.clone().unwrap_or_else(|| host.clone());
            let name = ServerName::try_from(name).map_err(|error| unusable(error.to_string()))?;
            Some((TlsConnector::from(Arc::new(client)), name))
        } else {
            None
        };
        let port = url.port_u16().unwrap_or(if secure { 443 } else { 80 });
        let (timeout, egress) = (options.connect_timeout, options.egress.clone());
        let target = Target { address: url.to_string(), host, port, tls, timeout, egress };
        Ok(Self { target: Arc::new(target) })
    }

    /// True if HTTP/2 is at all possible: without TLS there is nobody to agree on it with.
    pub(super) fn may_speak_http2(&self) -> bool {
        self.target.tls.is_some()
    }

    /// Connects, or says why not.
    pub(super) async fn connect(&self) -> Result<Wire, String> {
        match tokio::time::timeout(self.target.timeout, self.target.open()).await {
            Ok(Ok(wire)) => Ok(wire),
            Ok(Err(error)) => Err(chain(&error)),
            Err(_) => Err(format!("not connected within {:?}", self.target.timeout)),
        }
    }

    /// The error for a connection that could not be made.
    pub(super) fn failure(&self, reason: String) -> TransportError {
        TransportError::Connect { address: self.target.address.clone(), reason }
    }
}

impl Target {
    /// Connects to an address that was checked, so that a name cannot lead elsewhere after the check.
    async fn dial(&self) -> io::Result<TcpStream> {
        let Some(egress) = &self.egress else {
            return TcpStream::connect((self.host.as_str(), self.port)).await;
        };
        let found = tokio::net::lookup_host((self.host.as_str(), self.port)).await?;
        let checked: Vec<SocketAddr> = found.filter(|address| egress.check(address.ip()).is_ok()).collect();
        if checked.is_empty() {
            let refusal = "no address of the server may be connected to";
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, refusal));
        }
        TcpStream::connect(checked.as_slice()).await
    }

    async fn open(&self) -> io::Result<Wire> {
        let tcp = self.dial().await?;
        tcp.set_nodelay(true)?;
        setsockopt(&tcp, sockopt::KeepAlive, &true)?;
        #[cfg(target_os = "linux")]
        setsockopt(&tcp, sockopt::TcpKeepIdle, &15)?;
        #[cfg(target_os = "macos")]
        setsockopt(&tcp, sockopt::TcpKeepAlive, &15)?;
        setsockopt(&tcp, sockopt::TcpKeepInterval, &5)?;
        // Elsewhere what is sent and not acknowledged is noticed by the deadlines of requests alone.
        #[cfg(target_os = "linux")]
        setsockopt(&tcp, sockopt::TcpUserTimeout, &25_000)?;
        Ok(match &self.tls {
            None => Wire::Plain(tcp),
            Some((connector, name)) => Wire::Tls(Box::new(connector.connect(name.clone(), tcp).await?)),
        })
    }
}

impl Service<Uri> for Connector {
    type Response = TokioIo<Wire>;
    type Error = TransportError;
    type Future = BoxFuture<'static, Result<TokioIo<Wire>, TransportError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let connector = self.clone();
        Box::pin(async move {
            let wire = connector.connect().await.map_err(|reason| connector.failure(reason))?;
            Ok(TokioIo::new(wire))
        })
    }
}

/// An open connection.
pub(super) enum Wire {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Wire {
    /// True if the server agreed to HTTP/2.
    pub(super) fn speaks_http2(&self) -> bool {
        match self {
            Self::Plain(_) => false,
            Self::Tls(stream) => stream.get_ref().1.alpn_protocol() == Some(b"h2"),
        }
    }

    #[cfg(test)]
    pub(super) fn tcp(&self) -> &TcpStream {
        match self {
            Self::Plain(tcp) => tcp,
            Self::Tls(stream) => stream.get_ref().0,
        }
    }
}

impl Connection for Wire {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(cx, buffer),
            Self::Tls(stream) => Pin::new(stream).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for Wire {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Tls(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Self::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write_vectored(cx, slices),
            Self::Tls(stream) => Pin::new(stream).poll_write_vectored(cx, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Plain(stream) => stream.is_write_vectored(),
            Self::Tls(stream) => stream.is_write_vectored(),
        }
    }
}
