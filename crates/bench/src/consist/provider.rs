//! A provider of the demo's contract that knows when it was asked what.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    sync::Notify,
};

/// How long a change may take to come here.
const PATIENCE: Duration = Duration::from_secs(30);

/// One request.
#[derive(Clone, Debug)]
pub(super) struct ReceivedRequest {
    pub(super) method: String,
    path: String,
    at: Instant,
}

#[derive(Default)]
struct ProviderState {
    /// Items by the path of their list, and by id.
    items: BTreeMap<String, BTreeMap<String, Value>>,
    asked: Vec<ReceivedRequest>,
}

/// The provider, until the process ends.
pub(super) struct ProviderServer {
    address: SocketAddr,
    shared: Arc<(Mutex<ProviderState>, Notify)>,
}

fn state(shared: &(Mutex<ProviderState>, Notify)) -> MutexGuard<'_, ProviderState> {
    shared.0.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ProviderServer {
    pub(super) async fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let provider = Self { address: listener.local_addr()?, shared: Arc::default() };
        let shared = Arc::clone(&provider.shared);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let shared = Arc::clone(&shared);
                tokio::spawn(async move { answer(stream, &shared).await });
            }
        });
        Ok(provider)
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What was asked is forgotten.
    pub(super) fn forget(&self) {
        state(&self.shared).asked.clear();
    }

    pub(super) fn asked(&self) -> Vec<ReceivedRequest> {
        state(&self.shared).asked.clone()
    }

    /// When a scope was asked for, and when it was changed, first, since all was forgotten.
    pub(super) async fn changed(&self, scope: &str) -> Result<(Instant, Instant)> {
        let begun = Instant::now();
        loop {
            let seen = self.shared.1.notified();
            {
                let state = state(&self.shared);
                let of_scope = |one: &&ReceivedRequest| {
                    let rest = one.path.split(scope).nth(1);
                    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
                };
                let mut these = state.asked.iter().filter(of_scope);
                if let Some(first) = these.next()
                    && let Some(changed) = std::iter::once(first).chain(these).find(|one| one.method != "GET")
                {
                    return Ok((first.at, changed.at));
                }
            }
            ensure!(begun.elapsed() < PATIENCE, "the provider is not called for {scope}");
            let _ = tokio::time::timeout(Duration::from_secs(1), seen).await;
        }
    }
}

async fn answer(stream: TcpStream, shared: &(Mutex<ProviderState>, Notify)) -> Result<()> {
    let mut stream = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        ensure!(stream.read_line(&mut head).await? > 0, "the request ends too early");
    }
    let at = Instant::now();
    let mut words = head.split(' ');
    let (method, path) = words.next().zip(words.next()).context("a request without a path")?;
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    });
    let mut body = vec![0; length.unwrap_or_default()];
    stream.read_exact(&mut body).await?;
    let reply = {
        let mut state = state(shared);
        state.asked.push(ReceivedRequest { method: method.to_owned(), path: path.to_owned(), at });
        let (list, id) = path.rsplit_once('/').unwrap_or_default();
        match method {
            "GET" => {
                let items = state.items.get(path).map(|items| items.values().cloned().collect::<Vec<_>>());
                json!({"items": items.unwrap_or_default()}).to_string()
            }
            "PUT" => {
                let mut item: Value = serde_json::from_slice(&body)?;
                item["id"] = json!(id);
                state.items.entry(list.to_owned()).or_default().insert(id.to_owned(), item);
                "{}".to_owned()
            }
            _ => {
                state.items.get_mut(list).and_then(|items| items.remove(id));
                "{}".to_owned()
            }
        }
    };
    shared.1.notify_waiters();
    let head = format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", reply.len());
    stream.get_mut().write_all([head, reply].concat().as_bytes()).await?;
    Ok(())
}
