//! Servers that a tenant may name in a kubeconfig: one that hangs, and one whose answers never end.

use anyhow::Result;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use rcgen::{CertificateParams, KeyPair, SanType};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::{Value, json};
use std::{
    fs,
    io::{Read, Write},
    net::{IpAddr, Ipv4Addr, Shutdown, TcpListener, TcpStream},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

/// A way to a real API server that can be frozen: bytes go in and nothing comes out.
pub(crate) struct FreezableProxy {
    pub(crate) kubeconfig: String,
    is_frozen: Arc<AtomicBool>,
}

impl FreezableProxy {
    pub(crate) fn open(kubeconfig: &Path, server: &str) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let here = format!("https://{}", listener.local_addr()?);
        let kubeconfig = fs::read_to_string(kubeconfig)?.replace(server, &here);
        let is_frozen = Arc::new(AtomicBool::new(false));
        let (frozen, server) = (Arc::clone(&is_frozen), server.trim_start_matches("https://").to_owned());
        thread::spawn(move || {
            for near in listener.incoming().flatten() {
                let Ok(far) = TcpStream::connect(&server) else { continue };
                for (from, to) in [(&near, &far), (&far, &near)] {
                    if let (Ok(from), Ok(to)) = (from.try_clone(), to.try_clone()) {
                        let frozen = Arc::clone(&frozen);
                        thread::spawn(move || carry(from, to, &frozen));
                    }
                }
            }
        });
        Ok(Self { kubeconfig, is_frozen })
    }

    pub(crate) fn freeze(&self) {
        self.is_frozen.store(true, Ordering::SeqCst);
    }
}

impl Drop for FreezableProxy {
    fn drop(&mut self) {
        self.is_frozen.store(false, Ordering::SeqCst);
    }
}

fn carry(mut from: TcpStream, mut to: TcpStream, frozen: &AtomicBool) {
    let mut bytes = [0; 16 << 10];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        while frozen.load(Ordering::SeqCst) {
            thread::sleep(Duration::from_millis(20));
        }
        if to.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}

/// Starts a server that answers every request with a list that has no end; its kubeconfig.
pub(crate) fn endless() -> Result<String> {
    let key = KeyPair::generate()?;
    let mut parameters = CertificateParams::new(Vec::new())?;
    parameters.subject_alt_names.push(SanType::IpAddress(IpAddr::V4(Ipv4Addr::LOCALHOST)));
    let certificate = parameters.self_signed(&key)?;
    let private = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let config = rustls::ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], private)?;
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let server = format!("https://{}", listener.local_addr()?);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let config = Arc::clone(&config);
            thread::spawn(move || answer_without_end(stream, config));
        }
    });
    let authority = STANDARD.encode(certificate.pem());
    Ok(kubeconfig(&server, &authority).to_string())
}

/// Half a megabyte every 20 ms, until the other side has had enough: the point is that it does not end, not that it is
/// fast.
fn answer_without_end(stream: TcpStream, config: Arc<rustls::ServerConfig>) {
    let Ok(connection) = rustls::ServerConnection::new(config) else { return };
    let mut stream = rustls::StreamOwned::new(connection, stream);
    let mut request = [0; 4096];
    if !matches!(stream.read(&mut request), Ok(1..)) {
        return;
    }
    let begin = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n\
        {\"kind\": \"APIGroupList\", \"apiVersion\": \"v1\", \"groups\": [";
    let more = "{\"name\": \"a.example.com\", \"versions\": []},".repeat(12_000);
    let mut sent = stream.write_all(begin.as_bytes());
    while sent.is_ok() {
        sent = stream.write_all(more.as_bytes());
        thread::sleep(Duration::from_millis(20));
    }
}

fn kubeconfig(server: &str, authority: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "it",
        "clusters": [{"name": "it", "cluster": {"server": server, "certificate-authority-data": authority}}],
        "users": [{"name": "it", "user": {"token": "none"}}],
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
    })
}
