//! `remote`: adapters in another process, honest ones and others.

use linchpin_consist::{Call, Getter};
use serde_json::{Value, json};

use crate::{
    server::{Reply, Server, answer, faults},
    stage::{Stage, adapter, of, opened, pod},
};

const ADAPTER: &str =
    r#"{"contract":"linchpin.dev/consist/v1","controllerName":"test-controller","needRecordEmployees":true}"#;

/// The body of a request.
fn body(request: &str) -> Value {
    serde_json::from_str(request.split_once("\r\n\r\n").unwrap().1).unwrap()
}

/// An adapter that says what it is, and answers methods as a test says.
async fn remote(methods: impl Fn(&str, &str) -> Reply + Send + Sync + 'static) -> Server {
    Server::http(move |request| match request.split(' ').nth(1).unwrap() {
        "/v1/adapter" => answer(200, ADAPTER),
        path => methods(path.strip_prefix("/v1/").unwrap(), request),
    })
    .await
}

#[tokio::test]
async fn the_documents_methods_are_asked_one_to_one_with_what_they_are_about() {
    let server = remote(|method, _| match method {
        "GetExpectedEmployer" | "GetCurrentEmployer" => answer(404, ""),
        "GetExpectedEmployee" => answer(
            200,
            r#"{"items":[{"id":"a","name":"web-1","statuses":{"ip":"10.0.0.7","lifecycleReady":true}}],"recheckSeconds":2}"#,
        ),
        "GetCurrentEmployee" => answer(200, r#"{"items":[{"id":"b","name":"web-2","statuses":{},"inTraffic":false}]}"#),
        "CreateEmployees" => answer(200, r#"{"succeeded":["a"]}"#),
        _ => answer(200, r#"{"succeeded":[],"failed":[{"id":"b","message":"3 sessions left"}]}"#),
    })
    .await;
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    std::fs::write(&token, "hunter2").unwrap();
    let config = json!({"adapter": "remote", "adapterUrl": server.url(), "tokenFile": token});
    let port = adapter(config).await;
    assert_eq!(port.controller_name(), "test-controller");
    assert!(port.options().need_record_employees && port.options().follow_pod_ops_lifecycle);
    let stage = Stage::new(vec![pod("web-1", "10.0.0.7")]);
    let looked = stage.look(&*port).await.unwrap();
    assert_eq!(looked.recheck, Some(std::time::Duration::from_secs(2)));
    assert!(looked.employer.is_empty());
    assert_eq!((of(&looked, "web-1").ready, of(&looked, "web-2").in_traffic), (Some(true), Some(false)));
    let made = stage.act(&*port, &looked).await.unwrap();
    assert_eq!(made[0].0, Call::CreateEmployees);
    assert_eq!(made[0].1.done, ["a"]);
    assert_eq!(made[1].1.pending, [("b".to_owned(), "3 sessions left".to_owned())]);
    let asked = server.asked();
    let asked_for = |method: &str| {
        asked.iter().find(|request| request.starts_with(&format!("POST /v1/{method} "))).unwrap()
    };
    let question = body(asked_for("GetCurrentEmployee"));
    assert_eq!(question["employer"], stage.employer);
    assert_eq!(question["employees"][0]["object"], stage.pods[0]);
    assert_eq!(
        question["employees"][0]["common"],
        json!({"ip": "10.0.0.7", "ipv6": "", "lifecycleReady": true})
    );
    assert_eq!(body(asked_for("DeleteEmployees"))["items"][0]["id"], "b");
    for request in &asked[1..] {
        assert!(request.contains("x-linchpin-employer: Service/shop/web\r\n"), "{request}");
        assert!(request.contains("authorization: Bearer hunter2\r\n"), "{request}");
    }
}

#[tokio::test]
async fn an_adapter_that_does_not_answer_is_unknown_and_never_empty() {
    for (name, reply) in faults() {
        let reply = reply.clone();
        let server = remote(move |method, _| match method {
            "GetCurrentEmployee" => reply.clone(),
            _ => answer(200, r#"{"items":[]}"#),
        })
        .await;
        let config = json!({"adapter": "remote", "adapterUrl": server.url(), "timeout": "500ms"});
        let looked = Stage::new(vec![pod("web-1", "10.0.0.7")]).look(&*adapter(config).await).await;
        let failed = looked.err().unwrap_or_else(|| panic!("an adapter that {name} was believed"));
        assert_eq!(failed.getter, Getter::CurrentEmployees, "{name}");
    }
}

#[tokio::test]
async fn a_call_that_is_not_answered_as_agreed_has_failed() {
    for (name, reply) in faults() {
        let server = remote(move |method, _| match method {
            "CreateEmployees" => reply.clone(),
            _ => answer(200, r#"{"items":[]}"#),
        })
        .await;
        let config = json!({"adapter": "remote", "adapterUrl": server.url(), "timeout": "500ms"});
        let port = adapter(config).await;
        let items = vec![json!({"id": "a", "name": "a", "statuses": {}})];
        let called = port.call(&Stage::new(Vec::new()).about(), Call::CreateEmployees, items).await;
        assert!(
            called.is_err() || !called.unwrap().pending.is_empty(),
            "an adapter that {name} was believed"
        );
    }
}

#[tokio::test]
async fn an_adapter_that_is_not_there_yet_can_be_waited_for_and_one_that_changes_is_another() {
    let config = |url: String| -> linchpin_adapters::AdapterConfig {
        serde_json::from_value(json!({"adapter": "remote", "adapterUrl": url, "resync": "1s"})).unwrap()
    };
    let away = linchpin_adapters::open(&config("http://127.0.0.1:1".to_owned())).await;
    assert!(matches!(away, Err(linchpin_adapters::AdapterConfigError::NotYet(_))));
    let wrong = Server::http(|_| answer(200, r#"{"contract":"other","controllerName":"c"}"#)).await;
    let wrong = linchpin_adapters::open(&config(wrong.url())).await;
    assert!(matches!(wrong, Err(linchpin_adapters::AdapterConfigError::NotYet(_))));
    let asked = std::sync::atomic::AtomicUsize::new(0);
    let server = Server::http(move |_| match asked.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
        0 => answer(200, ADAPTER),
        1 => answer(500, ""),
        _ => answer(
            200,
            r#"{"contract":"linchpin.dev/consist/v1","controllerName":"c","employer":{"apiVersion":"v1","kind":"ConfigMap"}}"#,
        ),
    })
    .await;
    let opened = opened(json!({"adapter": "remote", "adapterUrl": server.url(), "resync": "1s"})).await;
    let told = tokio::time::timeout(std::time::Duration::from_mins(1), opened.until_changed).await.unwrap();
    assert!(told.to_string().contains("changed its kinds"), "{told}");
    assert_eq!(server.asked().len(), 3, "one that does not answer has not changed");
}
