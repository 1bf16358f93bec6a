//! A small real provider for `demo` and `http`: it keeps what it is sent in memory and shows it.
//!
//! It serves the provider contract, `GET /` as a table for people and `GET /v1/state` as JSON for programs. Everything
//! is forgotten when it ends. It trusts everybody who reaches it, so it belongs on this machine; sizes, numbers and
//! times are bounded all the same. Called by `linchpin consist demo-provider` and by tests.

mod table;

use std::{
    collections::BTreeMap,
    convert::Infallible,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use http::{Method, Request, Response, StatusCode, header::CONTENT_TYPE};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper_util::rt::{TokioIo, TokioTimer};
use linchpin_words::limits;
use serde_json::{Map, Value, json};
use tokio::{net::TcpListener, sync::Semaphore, time::timeout};

use crate::client::unescaped;

/// How long a request may take to arrive.
const PATIENCE: Duration = Duration::from_secs(10);

/// Connections at a time.
const CONNECTIONS: usize = 256;

/// The most bytes of one request's body.
const BODY: usize = 256 << 10;

/// One item as it was put there: its name and statuses.
#[derive(Clone, Debug, PartialEq)]
struct DemoItem {
    name: Option<String>,
    statuses: Value,
    in_traffic: Option<bool>,
}

/// Items by scope and id.
type Scopes = BTreeMap<String, BTreeMap<String, DemoItem>>;

/// Everything that the provider knows.
#[derive(Debug, Default)]
struct DemoState {
    employers: Scopes,
    employees: Scopes,
}

/// The provider, listening.
#[derive(Debug)]
pub struct DemoProvider {
    listener: TcpListener,
    state: Arc<Mutex<DemoState>>,
}

impl DemoProvider {
    /// Listens on an address; port 0 takes one that is free.
    pub async fn bind(address: SocketAddr) -> std::io::Result<Self> {
        Ok(Self { listener: TcpListener::bind(address).await?, state: Arc::default() })
    }

    /// Where it listens.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until it is dropped.
    pub async fn serve(self) {
        let places = Arc::new(Semaphore::new(CONNECTIONS));
        loop {
            let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
            let Ok((stream, _)) = self.listener.accept().await else {
                // Out of files, for example: the next one may find some.
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            };
            let state = Arc::clone(&self.state);
            tokio::spawn(async move {
                let service = hyper::service::service_fn(move |request| {
                    let state = Arc::clone(&state);
                    async move { Ok::<_, Infallible>(respond(&state, request).await) }
                });
                let served = hyper::server::conn::http1::Builder::new()
                    .timer(TokioTimer::new())
                    .header_read_timeout(PATIENCE)
                    .serve_connection(TokioIo::new(stream), service);
                // A client that leaves in the middle is its own affair.
                let _ = served.await;
                drop(place);
            });
        }
    }
}

/// What is answered.
struct Reply(StatusCode, Value);

fn refuse(status: StatusCode, message: &str) -> Reply {
    Reply(status, json!({"message": message}))
}

async fn respond(state: &Mutex<DemoState>, request: Request<Incoming>) -> Response<Full<Bytes>> {
    let (parts, body) = request.into_parts();
    let path = parts.uri.path();
    if parts.method == Method::GET && path == "/" {
        let text = table::draw(&state.lock().unwrap_or_else(PoisonError::into_inner));
        return answer(StatusCode::OK, "text/plain; charset=utf-8", text.into());
    }
    let read = timeout(PATIENCE, Limited::new(body, BODY).collect()).await;
    let Reply(status, body) = match read {
        Ok(Ok(body)) => {
            let body = body.to_bytes();
            carry_out(&mut state.lock().unwrap_or_else(PoisonError::into_inner), &parts.method, path, &body)
        }
        Ok(Err(_)) => {
            refuse(StatusCode::PAYLOAD_TOO_LARGE, "the request has more than 256 KiB, or broke off")
        }
        Err(_) => refuse(StatusCode::REQUEST_TIMEOUT, "the request did not arrive within ten seconds"),
    };
    answer(status, "application/json", body.to_string().into())
}

fn answer(status: StatusCode, kind: &'static str, body: Bytes) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, http::HeaderValue::from_static(kind));
    response
}

/// What a path means: which list, whose, and which item of it.
struct ProviderPath {
    of_employees: bool,
    scope: String,
    id: Option<String>,
}

fn place(path: &str) -> Option<ProviderPath> {
    let (of_employees, rest) = match path.strip_prefix("/v1/")?.split_once('/')? {
        ("employers", rest) => (false, rest),
        ("employees", rest) => (true, rest),
        _ => return None,
    };
    let parts: Option<Vec<String>> = rest.split('/').map(unescaped).collect();
    let parts = parts?;
    if parts.iter().any(|part| part.is_empty() || part.len() > limits::NAME) {
        return None;
    }
    let (scope, id) = match parts.as_slice() {
        [kind, namespace, name] => ([kind, namespace, name], None),
        [kind, namespace, name, id] => ([kind, namespace, name], Some(id.clone())),
        _ => return None,
    };
    Some(ProviderPath { of_employees, scope: scope.map(String::as_str).join("/"), id })
}

fn carry_out(state: &mut DemoState, method: &Method, path: &str, body: &[u8]) -> Reply {
    if *method == Method::GET && path == "/v1/state" {
        return Reply(
            StatusCode::OK,
            json!({"employers": shown(&state.employers), "employees": shown(&state.employees)}),
        );
    }
    let Some(place) = place(path) else {
        let usage = "try /, /v1/state, /v1/employers/<Kind>/<namespace>/<name>[/<id>] or /v1/employees/…";
        return refuse(StatusCode::NOT_FOUND, usage);
    };
    let held: usize =
        [&state.employers, &state.employees].into_iter().flat_map(BTreeMap::values).map(BTreeMap::len).sum();
    let scopes = if place.of_employees { &mut state.employees } else { &mut state.employers };
    match (method, place.id) {
        (&Method::GET, None) => {
            let items = scopes.get(&place.scope).map(list).unwrap_or_default();
            Reply(StatusCode::OK, json!({"items": items}))
        }
        (&Method::PUT, Some(id)) => {
            if held >= limits::DEMO_ITEMS {
                let message = format!("there are {held} items already, which is all that is kept");
                return refuse(StatusCode::INSUFFICIENT_STORAGE, &message);
            }
            match kept(body, place.of_employees) {
                Ok(kept) => {
                    scopes.entry(place.scope).or_default().insert(id, kept);
                    Reply(StatusCode::OK, json!({}))
                }
                Err(message) => refuse(StatusCode::BAD_REQUEST, message),
            }
        }
        (&Method::DELETE, Some(id)) => {
            let items = scopes.get_mut(&place.scope);
            let gone = items.and_then(|items| items.remove(&id));
            scopes.retain(|_, items| !items.is_empty());
            match gone {
                Some(_) => Reply(StatusCode::OK, json!({})),
                None => refuse(StatusCode::NOT_FOUND, "there is no such item"),
            }
        }
        _ => refuse(StatusCode::METHOD_NOT_ALLOWED, "a list can be read, an item can be put and deleted"),
    }
}

/// What a body says that is to be kept.
fn kept(body: &[u8], of_employees: bool) -> Result<DemoItem, &'static str> {
    let body: Value = serde_json::from_slice(body).map_err(|_| "the body is not JSON")?;
    let statuses = match body.get("statuses") {
        Some(statuses @ Value::Object(_)) => statuses.clone(),
        _ => return Err("the body has no object \"statuses\""),
    };
    let name = body.get("name").and_then(Value::as_str).map(str::to_owned);
    if of_employees && name.is_none() {
        return Err("the body has no text \"name\"");
    }
    Ok(DemoItem { name, statuses, in_traffic: body.get("inTraffic").and_then(Value::as_bool) })
}

fn list(items: &BTreeMap<String, DemoItem>) -> Vec<Value> {
    let item = |(id, kept): (&String, &DemoItem)| {
        let mut item = Map::new();
        item.insert("id".to_owned(), json!(id));
        if let Some(name) = &kept.name {
            item.insert("name".to_owned(), json!(name));
        }
        item.insert("statuses".to_owned(), kept.statuses.clone());
        if let Some(in_traffic) = kept.in_traffic {
            item.insert("inTraffic".to_owned(), json!(in_traffic));
        }
        Value::Object(item)
    };
    items.iter().map(item).collect()
}

fn shown(scopes: &Scopes) -> Value {
    scopes
        .iter()
        .map(|(scope, items)| (scope.clone(), Value::Array(list(items))))
        .collect::<Map<_, _>>()
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(state: &mut DemoState, method: &Method, path: &str, body: &str) -> (u16, Value) {
        let Reply(status, body) = carry_out(state, method, path, body.as_bytes());
        (status.as_u16(), body)
    }

    #[test]
    fn what_is_put_is_there_until_it_is_deleted() {
        let mut state = DemoState::default();
        let list = "/v1/employees/Service/shop/web";
        assert_eq!(
            ask(&mut state, &Method::GET, list, ""),
            (200, json!({"items": []})),
            "an empty scope is not missing"
        );
        let item = format!("{list}/web-1");
        let body = json!({"name": "web-1", "statuses": {"ip": "10.0.0.7"}}).to_string();
        assert_eq!(ask(&mut state, &Method::PUT, &item, &body).0, 200);
        let there = json!([{"id": "web-1", "name": "web-1", "statuses": {"ip": "10.0.0.7"}}]);
        assert_eq!(ask(&mut state, &Method::GET, list, "").1, json!({"items": there}));
        let all = json!({"employers": {}, "employees": {"Service/shop/web": there}});
        assert_eq!(ask(&mut state, &Method::GET, "/v1/state", ""), (200, all));
        assert_eq!(ask(&mut state, &Method::DELETE, &item, "").0, 200);
        assert_eq!(ask(&mut state, &Method::DELETE, &item, "").0, 404);
        assert_eq!(
            ask(&mut state, &Method::GET, "/v1/state", "").1,
            json!({"employers": {}, "employees": {}})
        );
    }

    #[test]
    fn what_is_not_agreed_is_refused_with_a_message() {
        let mut state = DemoState::default();
        let item = "/v1/employees/Service/shop/web/web-1";
        let long = format!("/v1/employees/Service/shop/{}", "n".repeat(254));
        for (method, path, body, status) in [
            (Method::GET, "/v1/other/Service/shop/web", "", 404),
            (Method::GET, "/v1/employees/Service/shop", "", 404),
            (Method::GET, "/v1/employees/Service//web", "", 404),
            (Method::GET, "/v1/employees/Service/shop/%zz", "", 404),
            (Method::GET, long.as_str(), "", 404),
            (Method::GET, item, "", 405),
            (Method::POST, item, "", 405),
            (Method::PUT, item, "x", 400),
            (Method::PUT, item, "{}", 400),
            (Method::PUT, item, r#"{"statuses": {}}"#, 400),
        ] {
            let (answered, body) = ask(&mut state, &method, path, body);
            assert_eq!(answered, status, "{path}");
            assert!(body["message"].is_string(), "{path}");
        }
        assert!(state.employees.is_empty());
    }

    #[test]
    fn it_keeps_so_many_items_and_no_more() {
        let mut state = DemoState::default();
        let put = |state: &mut DemoState, number: usize| {
            ask(
                state,
                &Method::PUT,
                &format!("/v1/employers/Service/shop/web/{number}"),
                r#"{"statuses":{}}"#,
            )
            .0
        };
        for number in 0..limits::DEMO_ITEMS {
            assert_eq!(put(&mut state, number), 200);
        }
        for number in [limits::DEMO_ITEMS, limits::DEMO_ITEMS * 100] {
            assert_eq!(put(&mut state, number), 507);
        }
    }
}
