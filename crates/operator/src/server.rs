//! The small HTTP server behind health and metrics: GET on a few paths, text back. Pages are made beside the frame's
//! thread: they take locks of others. The loop that accepts connections is the webhooks' too.

use crate::settings::BindAddress;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::{
    body::{Bytes, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::{
    convert::Infallible,
    io,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
};

/// Connections served at a time; more have to wait. Probes and scrapes need a handful.
const CONNECTIONS: usize = 64;

/// What a path answers.
pub(crate) struct HttpPage {
    pub(crate) status: StatusCode,
    pub(crate) content_type: &'static str,
    pub(crate) text: String,
}

impl HttpPage {
    pub(crate) fn text(status: StatusCode, text: impl Into<String>) -> Self {
        Self { status, content_type: "text/plain; charset=utf-8", text: text.into() }
    }
}

/// Opens the socket, so that a taken port is known before anything else starts.
pub(crate) async fn bind(address: BindAddress) -> io::Result<Option<TcpListener>> {
    match address {
        BindAddress::Off => Ok(None),
        BindAddress::At(address) => TcpListener::bind(address).await.map(Some),
        BindAddress::Everywhere(port) => {
            let both = TcpListener::bind(SocketAddr::from((Ipv6Addr::UNSPECIFIED, port))).await;
            match both {
                Err(error) if error.kind() != io::ErrorKind::AddrInUse => {
                    TcpListener::bind(SocketAddr::from((Ipv4Addr::UNSPECIFIED, port))).await.map(Some)
                }
                other => other.map(Some),
            }
        }
    }
}

/// Serves until dropped. `answer` knows the paths.
pub(crate) async fn serve(
    listener: TcpListener,
    answer: impl Fn(&str) -> Option<HttpPage> + Send + Sync + 'static,
) {
    let answer = Arc::new(answer);
    accept(listener, CONNECTIONS, move |stream| {
        let answer = Arc::clone(&answer);
        async move {
            let service = service_fn(move |request| {
                let answer = Arc::clone(&answer);
                async move { Ok::<_, Infallible>(respond(&request, answer).await) }
            });
            let served = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(Duration::from_secs(10))
                .serve_connection(TokioIo::new(stream), service)
                .await;
            if let Err(error) = served {
                tracing::debug!(%error, "connection ended");
            }
        }
    })
    .await;
}

/// Accepts connections until dropped, `most` of them at a time, and serves each in a task of its own.
pub(crate) async fn accept<S>(listener: TcpListener, most: usize, serve: impl Fn(TcpStream) -> S)
where
    S: Future<Output = ()> + Send + 'static,
{
    let slots = Arc::new(Semaphore::new(most));
    loop {
        let Ok(slot) = Arc::clone(&slots).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let served = serve(stream);
                tokio::spawn(async move {
                    served.await;
                    drop(slot);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn respond(
    request: &Request<Incoming>,
    answer: Arc<impl Fn(&str) -> Option<HttpPage> + Send + Sync + 'static>,
) -> Response<Full<Bytes>> {
    let page = if matches!(*request.method(), Method::GET | Method::HEAD) {
        let path = request.uri().path().to_owned();
        match tokio::task::spawn_blocking(move || answer(&path)).await {
            Ok(page) => page.unwrap_or_else(|| HttpPage::text(StatusCode::NOT_FOUND, "no such page\n")),
            Err(error) => HttpPage::text(StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")),
        }
    } else {
        HttpPage::text(StatusCode::METHOD_NOT_ALLOWED, "only GET\n")
    };
    let mut response = Response::new(Full::from(page.text));
    *response.status_mut() = page.status;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(page.content_type));
    response
}
