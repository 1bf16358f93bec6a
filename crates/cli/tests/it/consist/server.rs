//! Servers of the tests' own: a provider that does anything but answer, and an adapter in another process.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

/// One request.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) body: String,
    pub(super) at: Instant,
}

impl Asked {
    fn is_of(&self, scope: &str) -> bool {
        self.path.split(scope).nth(1).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

/// What is done with one.
pub(super) enum Reply {
    Bytes(Vec<u8>),
    /// Nothing, for so long; then it is closed.
    Hang(Duration),
}

pub(super) fn answer(status: u16, body: &str) -> Reply {
    let length = body.len();
    Reply::Bytes(
        format!("HTTP/1.1 {status} X\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}")
            .into_bytes(),
    )
}

type Handler = dyn Fn(&Asked) -> Reply + Send + Sync;

/// Answers on an address until the tests end.
pub(super) fn serve(address: &str, handler: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind(address).unwrap();
    let (address, handler): (_, Arc<Handler>) = (listener.local_addr().unwrap(), Arc::new(handler));
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let handler = Arc::clone(&handler);
            thread::spawn(move || talk(stream, &*handler));
        }
    });
    address
}

fn talk(stream: impl std::io::Read + std::io::Write, handler: &Handler) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let (mut head, mut length) = (Vec::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
        let line = line.trim_end().to_owned();
        if line.is_empty() {
            break;
        }
        if let Some(said) = line.to_lowercase().strip_prefix("content-length:") {
            length = said.trim().parse().ok()?;
        }
        head.push(line);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let mut words = head.first()?.split(' ');
    let asked = Asked {
        method: words.next()?.to_owned(),
        path: words.next()?.to_owned(),
        body: String::from_utf8(body).ok()?,
        at: Instant::now(),
    };
    match handler(&asked) {
        Reply::Bytes(bytes) => reader.get_mut().write_all(&bytes).ok()?,
        Reply::Hang(time) => thread::sleep(time),
    }
    Some(())
}

/// The same over TLS, with the certificate that is in a place now.
pub(super) fn serve_tls(
    shown: Arc<Mutex<Arc<rustls::ServerConfig>>>,
    handler: impl Fn(&Asked) -> Reply + Send + Sync + 'static,
) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, handler): (_, Arc<Handler>) = (listener.local_addr().unwrap(), Arc::new(handler));
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (handler, config) = (Arc::clone(&handler), Arc::clone(&shown.lock().unwrap()));
            thread::spawn(move || {
                let connection = rustls::ServerConnection::new(config).ok()?;
                talk(rustls::StreamOwned::new(connection, stream), &*handler)
            });
        }
    });
    address
}

/// A certificate for this machine, as PEM, and what a server shows it with.
pub(super) fn certificate() -> (String, Arc<rustls::ServerConfig>) {
    let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    let key = rustls::pki_types::PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    (made.cert.pem(), Arc::new(config))
}

/// What a provider does instead of answering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mood {
    Answers,
    Slow,
    OutOfOrder,
    NotFound,
    Page,
    CutOff,
    AnotherShape,
    /// Every second request is answered.
    Flaps,
}

/// The moods in which nothing may be done.
pub(super) const BAD: [Mood; 7] =
    [Mood::Slow, Mood::OutOfOrder, Mood::NotFound, Mood::Page, Mood::CutOff, Mood::AnotherShape, Mood::Flaps];

/// A provider with moods in front of one that answers; what it let through is remembered.
#[derive(Clone)]
pub(super) struct Moody {
    pub(super) address: SocketAddr,
    state: Arc<Mutex<(Mood, usize, Vec<Asked>)>>,
}

impl Moody {
    pub(super) fn before(provider: &str) -> Self {
        let state = Arc::new(Mutex::new((Mood::Answers, 0, Vec::new())));
        let (seen, provider) = (Arc::clone(&state), provider.to_owned());
        let address = serve("127.0.0.1:0", move |asked| {
            let (mood, even) = {
                let mut state = seen.lock().unwrap();
                state.1 += 1;
                (state.0, state.1 % 2 == 0)
            };
            match mood {
                Mood::Answers => {}
                Mood::Flaps if even => {}
                Mood::Slow => return Reply::Hang(Duration::from_secs(3)),
                Mood::OutOfOrder | Mood::Flaps => return answer(500, r#"{"message":"out of order"}"#),
                Mood::NotFound => return answer(404, r#"{"items":[]}"#),
                Mood::Page => return answer(200, "<html>"),
                Mood::CutOff => {
                    let cut = b"HTTP/1.1 200 X\r\nContent-Length: 99\r\n\r\n{\"items\":[]}".to_vec();
                    return Reply::Bytes(cut);
                }
                Mood::AnotherShape => return answer(200, r#"{"items":[{"name":"web-1"}]}"#),
            }
            seen.lock().unwrap().2.push(asked.clone());
            Reply::Bytes(forward(&provider, asked).unwrap_or_default())
        });
        Self { address, state }
    }

    pub(super) fn set(&self, mood: Mood) {
        self.state.lock().unwrap().0 = mood;
    }

    /// How many requests came, answered or not.
    pub(super) fn asked(&self) -> usize {
        self.state.lock().unwrap().1
    }

    /// Whether a change of a scope came through.
    pub(super) fn has_changed(&self, scope: &str) -> bool {
        self.state.lock().unwrap().2.iter().any(|asked| asked.method != "GET" && asked.is_of(scope))
    }

    /// How long after a moment the first request about a scope came, and the first change of it.
    pub(super) fn times(&self, scope: &str, from: Instant) -> (Option<Duration>, Option<Duration>) {
        let state = self.state.lock().unwrap();
        let of = |changes: bool| {
            let mut these = state.2.iter().filter(|asked| asked.is_of(scope) && asked.at >= from);
            these.find(|asked| !changes || asked.method != "GET").map(|asked| asked.at - from)
        };
        (of(false), of(true))
    }

    /// The changes that came through since the last call.
    pub(super) fn changes(&self) -> Vec<Asked> {
        let passed = std::mem::take(&mut self.state.lock().unwrap().2);
        passed.into_iter().filter(|asked| asked.method != "GET").collect()
    }
}

pub(super) fn forward(provider: &str, asked: &Asked) -> std::io::Result<Vec<u8>> {
    let Asked { method, path, body, .. } = asked;
    let mut stream = TcpStream::connect(provider)?;
    let length = body.len();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: {provider}\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\n\r\n{body}"
    )?;
    let mut reply = Vec::new();
    stream.read_to_end(&mut reply)?;
    Ok(reply)
}

/// An adapter in another process that keeps what it is told in memory: the contract of `remote`, whole.
pub(super) fn remote(address: &str) -> (SocketAddr, Arc<Mutex<Vec<Value>>>) {
    let items: Arc<Mutex<Vec<Value>>> = Arc::default();
    let kept = Arc::clone(&items);
    let address = serve(address, move |asked| {
        let body: Value = serde_json::from_str(&asked.body).unwrap_or_default();
        let id = |item: &Value| item["id"].clone();
        let mut kept = kept.lock().unwrap();
        let reply = match asked.path.as_str() {
            "/v1/adapter" => {
                json!({"contract": "linchpin.dev/consist/v1", "controllerName": "far-controller"})
            }
            "/v1/GetExpectedEmployee" => {
                let employees = body["employees"].as_array().cloned().unwrap_or_default();
                let expected = employees.iter().map(|one| {
                    let name = &one["object"]["metadata"]["name"];
                    json!({"id": name, "name": name, "statuses": one["common"]})
                });
                json!({"items": expected.collect::<Vec<_>>()})
            }
            "/v1/GetCurrentEmployee" => json!({"items": *kept}),
            "/v1/CreateEmployees" | "/v1/UpdateEmployees" | "/v1/DeleteEmployees" => {
                let given = body["items"].as_array().cloned().unwrap_or_default();
                kept.retain(|item| !given.iter().any(|other| id(other) == id(item)));
                if !asked.path.contains("Delete") {
                    kept.extend(given.iter().cloned());
                }
                json!({"succeeded": given.iter().map(id).collect::<Vec<_>>(), "failed": []})
            }
            // There is no employer's side.
            _ => return answer(404, ""),
        };
        answer(200, &reply.to_string())
    });
    (address, items)
}
