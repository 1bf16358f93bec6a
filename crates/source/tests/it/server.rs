//! A server that answers as a test says, byte for byte, and remembers what it was asked.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use flate2::{Compression, write::GzEncoder};
use linchpin_source::{
    Problem,
    archive::ManifestSelection,
    credentials::Credentials,
    fetch::{EarlierFetch, Fetch, FetchLocator, Fetched},
    hosts::HostList,
    http::Reach,
    url::Url,
};
use linchpin_words::egress::Egress;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::TcpListener,
    task::JoinHandle,
};
use tokio_rustls::{TlsAcceptor, rustls};

/// What a server does with one request.
pub enum Reply {
    /// Sends this and closes.
    Bytes(Vec<u8>),
    /// Sends this and then nothing more, without closing.
    Hang(Vec<u8>),
    /// Sends this and then the same bytes for ever.
    Endless(Vec<u8>, Vec<u8>),
}

/// An answer with a status, headers and a body.
pub fn answer(status: u16, headers: &[(&str, &str)], body: &[u8]) -> Reply {
    let mut bytes = format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\n", body.len()).into_bytes();
    for (name, value) in headers {
        bytes.extend(format!("{name}: {value}\r\n").into_bytes());
    }
    bytes.extend(b"\r\n");
    bytes.extend(body);
    Reply::Bytes(bytes)
}

type Handler = Arc<dyn Fn(&str) -> Reply + Send + Sync>;

pub struct Server {
    pub address: std::net::SocketAddr,
    /// The certificate that signed it, where it speaks TLS.
    pub authority: Option<String>,
    asked: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    pub async fn plain(handler: impl Fn(&str) -> Reply + Send + Sync + 'static) -> Self {
        Self::start(None, None, Arc::new(handler)).await
    }

    pub async fn tls(handler: impl Fn(&str) -> Reply + Send + Sync + 'static) -> Self {
        let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
        let key = rustls::pki_types::PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        Self::start(Some(acceptor), Some(made.cert.pem()), Arc::new(handler)).await
    }

    async fn start(tls: Option<TlsAcceptor>, authority: Option<String>, handler: Handler) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let seen = asked.clone();
        let task = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (handler, seen, tls) = (handler.clone(), seen.clone(), tls.clone());
                tokio::spawn(async move {
                    match tls {
                        None => serve(stream, &handler, &seen).await,
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(stream).await {
                                serve(stream, &handler, &seen).await;
                            }
                        }
                    }
                });
            }
        });
        Self { address, authority, asked, task }
    }

    /// The address of a path.
    pub fn url(&self, path: &str) -> Url {
        let scheme = if self.authority.is_some() { "https" } else { "http" };
        Url::parse(&format!("{scheme}://{}{path}", self.address)).unwrap()
    }

    /// The heads of all requests so far.
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

async fn serve(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    handler: &Handler,
    seen: &Mutex<Vec<String>>,
) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => return,
        }
    }
    let head = String::from_utf8(head).unwrap();
    seen.lock().unwrap().push(head.clone());
    // A client may leave at any time: what cannot be sent is not sent.
    match handler(&head) {
        Reply::Bytes(bytes) => {
            let _ = stream.write_all(&bytes).await;
            let _ = stream.shutdown().await;
        }
        Reply::Hang(bytes) => {
            let _ = stream.write_all(&bytes).await;
            let _ = stream.flush().await;
            std::future::pending::<()>().await;
        }
        Reply::Endless(bytes, again) => {
            let _ = stream.write_all(&bytes).await;
            while stream.write_all(&again).await.is_ok() {}
        }
    }
}

/// A gzipped tar of manifests.
pub fn tarball(files: &[(&str, &str)]) -> Vec<u8> {
    let mut builder = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for (name, text) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        builder.append_data(&mut header, name, text.as_bytes()).unwrap();
    }
    builder.into_inner().unwrap().finish().unwrap()
}

/// A reach of these hosts, on loopback, where tests live.
pub fn reach(hosts: &str) -> Reach {
    let hosts = HostList::parse("--source-hosts", hosts).unwrap();
    Reach { hosts: Arc::new(hosts), egress: Arc::new(Egress::default().with_loopback()) }
}

/// Credentials with these keys, for a server.
pub fn credentials(url: &Url, pairs: &[(&str, &str)]) -> Credentials {
    let data: BTreeMap<String, Vec<u8>> =
        pairs.iter().map(|(key, value)| ((*key).to_owned(), value.as_bytes().to_vec())).collect();
    Credentials::from_secret(&data, url).unwrap()
}

pub async fn fetch_with(
    reach: &Reach,
    locator: &FetchLocator,
    credentials: Option<&Credentials>,
    known: Option<&EarlierFetch>,
) -> Result<Option<Fetched>, Problem> {
    let selection = ManifestSelection::default();
    let timeout = Duration::from_secs(20);
    Fetch { reach, locator, selection: &selection, credentials, timeout }.run(known).await
}

pub fn http(url: Url) -> FetchLocator {
    FetchLocator::Http { url, digest: None }
}
