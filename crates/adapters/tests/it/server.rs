//! A server that answers as a test says, byte for byte, and remembers what it was asked.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::{TcpListener, UnixListener},
    task::JoinHandle,
};

/// What a server does with one request.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    /// Sends this and closes.
    Bytes(Vec<u8>),
    /// Sends this and then nothing more, without closing.
    Hang(Vec<u8>),
    /// Sends this and then the same bytes for ever.
    Endless(Vec<u8>, Vec<u8>),
}

/// An answer with a status and a body.
pub(crate) fn answer(status: u16, body: &str) -> Reply {
    let length = body.len();
    Reply::Bytes(format!("HTTP/1.1 {status} X\r\nContent-Length: {length}\r\n\r\n{body}").into_bytes())
}

/// Everything that a server can do instead of answering, each with its name.
pub(crate) fn faults() -> Vec<(&'static str, Reply)> {
    let deep = format!(r#"{{"items":{}{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
    let many = format!(r#"{{"items":[{}]}}"#, [r#"{"id":"a"}"#; 3].join(","));
    let ok = b"HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    vec![
        ("closes", Reply::Bytes(Vec::new())),
        ("says nothing", Reply::Hang(Vec::new())),
        (
            "stops in the middle",
            Reply::Hang(b"HTTP/1.1 200 X\r\nContent-Length: 12\r\n\r\n{\"items\"".to_vec()),
        ),
        ("is cut off", Reply::Bytes(b"HTTP/1.1 200 X\r\nContent-Length: 99\r\n\r\n{\"items\":[]}".to_vec())),
        ("never ends", Reply::Endless(ok.clone(), b"4\r\n[[[[\r\n".to_vec())),
        ("has an endless head", Reply::Endless(b"HTTP/1.1 200 X\r\n".to_vec(), b"X-A: b\r\n".to_vec())),
        ("is no HTTP", Reply::Bytes(b"SSH-2.0-OpenSSH_9.2\r\n".to_vec())),
        ("500", answer(500, r#"{"message":"out of order"}"#)),
        ("503 without a text", answer(503, "")),
        ("404", answer(404, r#"{"items":[]}"#)),
        ("401", answer(401, "")),
        ("204", answer(204, "")),
        ("202", answer(202, r#"{"items":[]}"#)),
        (
            "redirects",
            Reply::Bytes(
                b"HTTP/1.1 302 X\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n".to_vec(),
            ),
        ),
        ("is empty", answer(200, "")),
        ("is a page", answer(200, "<html></html>")),
        ("is null", answer(200, "null")),
        ("is a list", answer(200, "[]")),
        ("has no items", answer(200, "{}")),
        ("has items of another type", answer(200, r#"{"items":{"a":1}}"#)),
        ("has an item without id", answer(200, r#"{"items":[{"name":"a"}]}"#)),
        ("has an id twice", answer(200, &many)),
        ("has a long id", answer(200, &format!(r#"{{"items":[{{"id":"{}"}}]}}"#, "n".repeat(254)))),
        ("is deep", answer(200, &deep)),
    ]
}

type Handler = Arc<dyn Fn(&str) -> Reply + Send + Sync>;

pub(crate) struct Server {
    pub(crate) address: Option<SocketAddr>,
    asked: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    /// Speaks HTTP: a request is its head and its body.
    pub(crate) async fn http(handler: impl Fn(&str) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (seen, handler): (_, Handler) = (asked.clone(), Arc::new(handler));
        let task = tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let (handler, seen) = (handler.clone(), seen.clone());
                tokio::spawn(async move {
                    if let Some(request) = request(&mut stream).await {
                        seen.lock().unwrap().push(request.clone());
                        reply(&mut stream, handler(&request)).await;
                    }
                });
            }
        });
        Self { address: Some(address), asked, task }
    }

    /// Listens on a socket in the file system: a request is a line.
    pub(crate) fn lines(
        path: &std::path::Path,
        handler: impl Fn(&str) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = UnixListener::bind(path).unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (seen, handler): (_, Handler) = (asked.clone(), Arc::new(handler));
        let task = tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let (handler, seen) = (handler.clone(), seen.clone());
                tokio::spawn(async move {
                    let mut line = Vec::new();
                    while let Ok(byte) = stream.read_u8().await {
                        if byte == b'\n' {
                            let line = String::from_utf8(line).unwrap();
                            seen.lock().unwrap().push(line.clone());
                            return reply(&mut stream, handler(&line)).await;
                        }
                        line.push(byte);
                    }
                });
            }
        });
        Self { address: None, asked, task }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address.unwrap())
    }

    /// All requests so far.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

/// Head and body of a request.
async fn request(stream: &mut (impl AsyncRead + Unpin)) -> Option<String> {
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"\r\n\r\n") {
        bytes.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8(bytes.clone()).unwrap();
    let length =
        head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body).await.ok()?;
    bytes.extend(body);
    String::from_utf8(bytes).ok()
}

async fn reply(stream: &mut (impl AsyncWrite + Unpin), reply: Reply) {
    // A client may leave at any time: what cannot be sent is not sent.
    match reply {
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
