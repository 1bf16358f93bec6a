//! How requests reach one API server.
//!
//! One [`Transport`] per cluster, shared by every identity that acts there. It has two lanes that never mix, so
//! that a thousand open watches cannot delay a write:
//!
//! * **watches** share HTTP/2 connections, at most [`TransportOptions::streams_per_connection`] at a time on each, because
//!   a server that allows 100 streams lets the 101st hang for ever. A ping every 15 s notices a dead peer in 25 s.
//! * **writes** use an HTTP/1.1 pool of their own, which answers sooner one after another than HTTP/2 does.
//!
//! Both turn Nagle's algorithm off (it costs 45 ms per write), say who we are (`User-Agent`) and put a limit of time and
//! size on every answer: all of it, except that a watch must only begin in time. Nothing is ever sent twice: kube's own
//! retry, which repeats POST, is not part of these clients. A request that certainly did not leave can be distinguished
//! from one whose fate is unknown by [`TransportError::certainly_not_sent`].
//!
//! A server that speaks no HTTP/2 (a plain-text proxy, say) gets its watches over HTTP/1.1, a connection each.

mod connect;
mod deadline;
mod discreet;
mod impersonate;
mod layer;
mod reach;
mod streams;

#[cfg(test)]
mod tests;

use crate::transport::{
    connect::{Connector, Protocol},
    deadline::AnswerLimits,
    discreet::Secret,
    layer::Layered,
    streams::Streams,
};
use http::{HeaderValue, Request, Response, header};
use http_body_util::{BodyExt, combinators::UnsyncBoxBody};
use hyper::body::{Bytes, Incoming};
use hyper_util::{
    client::legacy,
    rt::{TokioExecutor, TokioTimer},
};
use kube::{
    Client, Config,
    client::{Body, ConfigExt},
};
use linchpin_words::{egress::Egress, limits};
use std::{sync::Arc, time::Duration};
use tower::{
    BoxError, Layer, ServiceExt,
    util::{BoxCloneSyncService, option_layer},
};

pub use self::{
    impersonate::Impersonation,
    reach::{Reachability, ReachabilityMonitor},
};

/// How we call ourselves, so that everybody finds us in an audit log.
pub const USER_AGENT: &str = concat!("linchpin/", env!("CARGO_PKG_VERSION"));

/// The body of an answer, whichever lane it came through.
type AnswerBody = UnsyncBoxBody<Bytes, BoxError>;
/// A lane with everything but the identity layered on.
type Lane = BoxCloneSyncService<Request<Body>, Response<AnswerBody>, BoxError>;
/// Plain HTTP/1.1 connections, reused when idle.
type Plain = legacy::Client<Connector, Body>;

/// What may be tuned about a transport; the defaults are measured values and right for every cluster we know.
#[derive(Debug, Clone)]
pub struct TransportOptions {
    /// Live requests per HTTP/2 connection. Kubernetes allows 100; the rest is room for streams being closed.
    pub streams_per_connection: usize,
    /// Limit for one TCP connection and TLS handshake.
    pub connect_timeout: Duration,
    /// Limit for a list until its answer is complete, and for a watch until the server begins to answer.
    pub watch_deadline: Duration,
    /// Limit for a write until its answer is complete.
    pub write_deadline: Duration,
    /// Limit for the size of one answer.
    pub answer_limit: usize,
    /// Pause between pings on HTTP/2 connections.
    pub keep_alive_interval: Duration,
    /// How long a ping may stay unanswered before its connection is given up.
    pub keep_alive_timeout: Duration,
    /// Which addresses may be connected to, after names were resolved; none means all. A server with such a rule is one
    /// that a user names: how exactly it cannot be reached is said to the log alone.
    pub egress: Option<Egress>,
}

impl Default for TransportOptions {
    fn default() -> Self {
        Self {
            streams_per_connection: 90,
            connect_timeout: Duration::from_secs(5),
            watch_deadline: Duration::from_secs(30),
            write_deadline: Duration::from_secs(30),
            answer_limit: limits::ANSWER,
            keep_alive_interval: Duration::from_secs(15),
            keep_alive_timeout: Duration::from_secs(10),
            egress: None,
        }
    }
}

/// Why a request got no answer, or why no request can be made at all.
#[derive(Debug, thiserror::Error)]
pub enum TransportError {
    /// The address of the server cannot be used.
    #[error("cannot use the server address {address}: {reason}")]
    Address {
        /// The address as configured.
        address: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Credentials or trust anchors cannot be used.
    #[error("cannot use the credentials for {address}: {source}")]
    Credentials {
        /// The server they are meant for.
        address: String,
        /// What kube says about them.
        source: Box<kube::Error>,
    },
    /// No connection could be made; the request was not sent.
    #[error("cannot connect to {address}: {reason}")]
    Connect {
        /// The server.
        address: String,
        /// What went wrong.
        reason: String,
    },
    /// Every connection closed before it took the request; it was not sent.
    #[error("connections to the server close before taking a request")]
    Refused,
    /// The connection broke while the request was under way.
    #[error("connection lost while waiting for an answer: {0}")]
    Broken(String),
    /// No (complete) answer in time.
    #[error("no answer within {0:?}")]
    Deadline(Duration),
    /// An answer that does not end.
    #[error("the answer is larger than {0} bytes")]
    TooLarge(usize),
    /// Any of these about a server that a user names.
    #[error(
        "the server cannot be reached, or does not answer as an API server does (the operator's log says more)"
    )]
    Unreachable {
        /// Whether it may have got the request.
        maybe_sent: bool,
    },
}

impl TransportError {
    /// The transport error behind an error of kube's client, if there is one.
    pub fn behind(error: &kube::Error) -> Option<&Self> {
        let mut source: Option<&(dyn std::error::Error + 'static)> = Some(error);
        while let Some(error) = source {
            if let Some(found) = error.downcast_ref::<Self>() {
                return Some(found);
            }
            source = match error.downcast_ref::<kube::Error>() {
                Some(kube::Error::Service(inner)) => Some(inner.as_ref()),
                _ => error.source(),
            };
        }
        None
    }

    /// True if the request cannot have reached the server, so that doing it again can do no harm.
    pub fn certainly_not_sent(&self) -> bool {
        match self {
            Self::Address { .. } | Self::Credentials { .. } | Self::Connect { .. } | Self::Refused => true,
            Self::Unreachable { maybe_sent } => !maybe_sent,
            Self::Broken(_) | Self::Deadline(_) | Self::TooLarge(_) => false,
        }
    }
}

/// How much of the watch lane is in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Statistics {
    /// Open HTTP/2 connections.
    pub connections: usize,
    /// Requests living on them.
    pub streams: usize,
}

/// The two lanes to one API server. Cheap to clone; clones share connections.
#[derive(Clone)]
pub struct Transport {
    watches: Lane,
    writes: Lane,
    streams: Streams,
    namespace: String,
    reach: ReachabilityMonitor,
    /// Whom the configuration itself says to act as, where nobody else is named.
    configured: Option<Impersonation>,
}

impl Transport {
    /// Prepares both lanes. Connects to nothing yet.
    pub fn new(config: &Config, options: &TransportOptions) -> Result<Self, TransportError> {
        if config.proxy_url.is_some() {
            return Err(TransportError::Address {
                address: config.cluster_url.to_string(),
                reason: "it is behind a proxy, and proxies are not supported: add the server to NO_PROXY"
                    .into(),
            });
        }
        let mut config = config.clone();
        config.headers.push((header::USER_AGENT, HeaderValue::from_static(USER_AGENT)));
        // The configuration's own impersonation must not override that of a single client: it becomes the default.
        let groups = config.auth_info.impersonate_groups.take().unwrap_or_default();
        let configured = match config.auth_info.impersonate.take() {
            None => None,
            Some(user) => Some(Impersonation::user(&user, &groups).map_err(|error| {
                TransportError::Address { address: config.cluster_url.to_string(), reason: error.to_string() }
            })?),
        };
        let config = &config;
        let plain = |connector| -> Plain {
            legacy::Client::builder(TokioExecutor::new())
                .pool_timer(TokioTimer::new())
                .pool_idle_timeout(Duration::from_secs(90))
                .pool_max_idle_per_host(32)
                .build(connector)
        };
        let http1 = Connector::new(config, Protocol::Http1, options)?;
        let http2 = Connector::new(config, Protocol::Http2, options)?;
        let streams = Streams::new(http2, plain(http1.clone()), options);
        let reach = ReachabilityMonitor::default();

        let watches = streams.clone();
        let writes = plain(http1)
            .map_err(|error: legacy::Error| -> BoxError { sending_failed(&error).into() })
            .map_response(|answer: Response<Incoming>| answer.map(boxed));
        Ok(Self {
            watches: lane(config, watches, options, options.watch_deadline, &reach)?,
            writes: lane(config, writes, options, options.write_deadline, &reach)?,
            streams,
            namespace: config.default_namespace.clone(),
            reach,
            configured,
        })
    }

    /// A client for lists and watches, as the configured user or as somebody else.
    pub fn watches(&self, identity: Option<&Impersonation>) -> Client {
        self.client(self.watches.clone(), identity)
    }

    /// A client for everything short: reads of one object, writes, and exec (which needs HTTP/1.1).
    pub fn writes(&self, identity: Option<&Impersonation>) -> Client {
        self.client(self.writes.clone(), identity)
    }

    /// Whether the server has been answering lately.
    pub fn reach(&self) -> &ReachabilityMonitor {
        &self.reach
    }

    /// How much of the watch lane is in use.
    pub fn statistics(&self) -> Statistics {
        self.streams.statistics()
    }

    fn client(&self, lane: Lane, identity: Option<&Impersonation>) -> Client {
        match identity.or(self.configured.as_ref()) {
            None => Client::new(lane, self.namespace.clone()),
            Some(identity) => Client::new(identity.layer(lane), self.namespace.clone()),
        }
    }
}

/// Layers, from the outside in: where to, who we are, did it work, what may be shown of that, how long and how much.
fn lane<S>(
    config: &Config,
    service: S,
    options: &TransportOptions,
    time: Duration,
    reach: &ReachabilityMonitor,
) -> Result<Lane, TransportError>
where
    S: tower::Service<Request<Body>, Response = Response<AnswerBody>, Error = BoxError>
        + Clone
        + Send
        + Sync
        + 'static,
    S::Future: Send + 'static,
{
    let credentials = |source: kube::Error| TransportError::Credentials {
        address: config.cluster_url.to_string(),
        source: Box::new(source),
    };
    let bound = AnswerLimits { time, size: options.answer_limit };
    let secret = options.egress.as_ref().map(|_| Arc::new(Secret::new(config.cluster_url.to_string())));
    let service = Layered { inner: service, layer: bound };
    let service = Layered { inner: service, layer: secret };
    let service = Layered { inner: service, layer: reach.clone() };
    let service = config.extra_headers_layer().map_err(credentials)?.layer(service);
    let service = option_layer(config.auth_layer().map_err(credentials)?).layer(service);
    Ok(BoxCloneSyncService::new(config.base_uri_layer().layer(service)))
}

/// Gives both lanes' bodies one type.
fn boxed<B>(body: B) -> AnswerBody
where
    B: hyper::body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    body.map_err(Into::into).boxed_unsync()
}

/// Translates an error of hyper's pool, keeping the one difference that matters: was anything sent?
fn sending_failed(error: &legacy::Error) -> TransportError {
    let mut source = std::error::Error::source(error);
    while let Some(inner) = source {
        if let Some(TransportError::Connect { address, reason }) = inner.downcast_ref() {
            return TransportError::Connect { address: address.clone(), reason: reason.clone() };
        }
        source = inner.source();
    }
    TransportError::Broken(chain(error))
}

/// An error and all its causes in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        let inner_text = inner.to_string();
        if !text.ends_with(&inner_text) {
            text.push_str(": ");
            text.push_str(&inner_text);
        }
        source = inner.source();
    }
    text
}
