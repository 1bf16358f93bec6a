//! `demo` and `http`: against the demo provider, and against servers that do anything but answer.

use std::{fs, sync::atomic::AtomicUsize, sync::atomic::Ordering, time::Duration};

use linchpin_adapters::demo_provider::DemoProvider;
use linchpin_consist::{Call, Getter};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::{
    server::{Server, answer, faults},
    stage::{Stage, adapter, of, pod, unready},
};

async fn demo_provider() -> String {
    let provider = DemoProvider::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let url = format!("http://{}", provider.address().unwrap());
    tokio::spawn(provider.serve());
    url
}

/// A page of a provider, as a browser gets it.
async fn page(url: &str, path: &str) -> String {
    let host = url.strip_prefix("http://").unwrap();
    let mut stream = tokio::net::TcpStream::connect(host).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    text.split_once("\r\n\r\n").unwrap().1.to_owned()
}

async fn state(url: &str) -> Value {
    serde_json::from_str(&page(url, "/v1/state").await).unwrap()
}

#[tokio::test]
async fn demo_service_status_and_demo_pod_status_are_seen_at_the_provider() {
    let url = demo_provider().await;
    let demo = adapter(json!({"adapter": "demo", "provider": url})).await;
    let mut stage = Stage::new(vec![pod("web-1", "10.0.0.7"), unready(pod("web-2", "10.0.0.8"))]);
    let settled = stage.settle(&*demo).await;
    assert!(settled.employees.iter().all(|pair| pair.same) && settled.employer[0].same);
    let on = json!({"id": "web-1", "name": "web-1", "statuses":
        {"ip": "10.0.0.7", "lifecycleReady": true, "extraStatus": {"trafficOn": true, "trafficWeight": 100}}});
    let off = json!({"id": "web-2", "name": "web-2", "statuses":
        {"ip": "10.0.0.8", "extraStatus": {"trafficOn": false, "trafficWeight": 0}}});
    let vip = json!({"id": "web", "statuses": {"remoteVIP": "demo-remote-VIP", "remoteVIPQPS": 100}});
    let there =
        json!({"employers": {"Service/shop/web": [vip]}, "employees": {"Service/shop/web": [on, off]}});
    assert_eq!(state(&url).await, there);
    let table = page(&url, "/").await;
    assert!(table.contains("demo-remote-VIP") && table.contains("10.0.0.7   on"), "{table}");

    // A pod that terminates is not expected any more, one that is not ready is switched off.
    stage.pods[0] = unready(stage.pods[0].clone());
    stage.pods[1]["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let answer = stage.look(&*demo).await.unwrap();
    let made = stage.act(&*demo, &answer).await.unwrap();
    assert_eq!(
        made.iter().map(|(call, _)| *call).collect::<Vec<_>>(),
        [Call::UpdateEmployees, Call::DeleteEmployees]
    );
    stage.settle(&*demo).await;
    let left = &state(&url).await["employees"]["Service/shop/web"];
    assert_eq!(left.as_array().unwrap().len(), 1);
    assert_eq!(left[0]["statuses"]["extraStatus"]["trafficOn"], false);

    // Nothing of an employer that goes is expected.
    stage.leaving = true;
    stage.settle(&*demo).await;
    assert_eq!(state(&url).await, json!({"employers": {}, "employees": {}}));
}

#[tokio::test]
async fn drift_is_seen_at_the_next_look_and_what_a_provider_keeps_beside_is_not() {
    let url = demo_provider().await;
    let demo = adapter(json!({"adapter": "demo", "provider": url})).await;
    let stage = Stage::new(vec![pod("web-1", "10.0.0.7")]);
    stage.settle(&*demo).await;
    let host = url.strip_prefix("http://").unwrap().to_owned();
    let put = |id: &'static str, statuses: Value| {
        let (host, body) = (host.clone(), json!({"name": id, "statuses": statuses}).to_string());
        async move {
            let mut stream = tokio::net::TcpStream::connect(&host).await.unwrap();
            let path = format!("/v1/employees/Service/shop/web/{id}");
            let length = body.len();
            let text = format!(
                "PUT {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
            );
            stream.write_all(text.as_bytes()).await.unwrap();
            stream.read_to_end(&mut Vec::new()).await.unwrap();
        }
    };
    let good = json!({"ip": "10.0.0.7", "ipv6": null, "lifecycleReady": true, "region": "eu",
        "extraStatus": {"trafficOn": true, "trafficWeight": 100, "since": 7}});
    put("web-1", good).await;
    assert!(of(&stage.look(&*demo).await.unwrap(), "web-1").same);
    put("web-1", json!({"ip": "10.0.0.7", "lifecycleReady": true, "extraStatus": {"trafficOn": true}})).await;
    put("stray", json!({})).await;
    let drifted = stage.look(&*demo).await.unwrap();
    assert!(!of(&drifted, "web-1").same && of(&drifted, "stray").expected.is_none());
    assert_eq!(stage.settle(&*demo).await.employees.len(), 1);
}

#[tokio::test]
async fn drift_of_the_employer_is_mended_too() {
    let items = r#"{"items":[{"id":"web","statuses":{"remoteVIP":"demo-remote-VIP","remoteVIPQPS":7}},{"id":"old","statuses":{}}]}"#;
    let server = Server::http(move |request| match request.split(' ').next().unwrap() {
        "GET" if request.starts_with("GET /v1/employers/") => answer(200, items),
        "GET" => answer(200, r#"{"items":[]}"#),
        _ => answer(200, "{}"),
    });
    let server = server.await;
    let demo = adapter(json!({"adapter": "demo", "provider": server.url()})).await;
    let stage = Stage::new(Vec::new());
    let drifted = stage.look(&*demo).await.unwrap();
    let made = stage.act(&*demo, &drifted).await.unwrap();
    let calls: Vec<_> = made.iter().map(|(call, batch)| (*call, batch.done.join(","))).collect();
    assert_eq!(calls, [(Call::UpdateEmployer, "web".to_owned()), (Call::DeleteEmployer, "old".to_owned())]);
    let asked = server.asked();
    let put =
        asked.iter().find(|request| request.starts_with("PUT /v1/employers/Service/shop/web/web ")).unwrap();
    assert!(put.ends_with(r#"{"statuses":{"remoteVIP":"demo-remote-VIP","remoteVIPQPS":100}}"#), "{put}");
    assert!(asked.iter().any(|request| request.starts_with("DELETE /v1/employers/Service/shop/web/old ")));
}

#[tokio::test]
async fn a_provider_that_does_not_answer_is_unknown_and_never_empty() {
    for (name, reply) in faults() {
        let server = Server::http(move |_| reply.clone()).await;
        let config = json!({"adapter": "demo", "provider": server.url(), "timeout": "500ms"});
        let stage = Stage::new(vec![pod("web-1", "10.0.0.7")]);
        let looked = stage.look(&*adapter(config).await).await;
        let failed = looked.err().unwrap_or_else(|| panic!("a provider that {name} was believed"));
        let unanswered: Vec<Getter> = failed.all().map(|(getter, _)| getter).collect();
        // Lists are matched one after the other, and all else is asked of both at the same time.
        let both = [Getter::CurrentEmployer, Getter::CurrentEmployees];
        assert_eq!(
            unanswered,
            both[..if matches!(name, "has an id twice" | "has a long id") { 1 } else { 2 }],
            "{name}"
        );
        let told = failed.to_string();
        assert!(!told.is_empty() && told.len() <= 1100, "{name}: {told}");
        if name == "500" {
            assert!(told.contains("answers 500: out of order"), "{told}");
        }
    }
    let config = json!({"adapter": "demo", "provider": "http://127.0.0.1:1", "timeout": "1s"});
    assert!(Stage::new(Vec::new()).look(&*adapter(config).await).await.is_err(), "nobody listens there");
}

#[tokio::test]
async fn a_provider_of_which_only_one_side_answers_is_unknown() {
    let server = Server::http(|request| {
        if request.starts_with("GET /v1/employers/") {
            answer(200, r#"{"items":[]}"#)
        } else {
            answer(500, "")
        }
    });
    let server = server.await;
    let config = json!({"adapter": "demo", "provider": server.url()});
    let failed = Stage::new(Vec::new()).look(&*adapter(config).await).await.unwrap_err();
    assert_eq!(failed.getter, Getter::CurrentEmployees);
}

#[tokio::test]
async fn answers_up_to_the_limit_are_read_and_none_beyond() {
    let limit = linchpin_words::limits::PROVIDER_ANSWER;
    for (size, fits) in [(limit, true), (limit + 1, false), (limit * 3, false)] {
        let server = Server::http(move |_| {
            let body = r#"{"items":[]}"#;
            answer(200, &format!("{body}{}", " ".repeat(size - body.len())))
        });
        let server = server.await;
        let config = json!({"adapter": "demo", "provider": server.url(), "timeout": "20s"});
        let looked = Stage::new(Vec::new()).look(&*adapter(config).await).await;
        assert_eq!(looked.is_ok(), fits, "{size}");
    }
}

#[tokio::test]
async fn a_provider_that_flaps_is_believed_only_when_it_answers() {
    let asked = AtomicUsize::new(0);
    let server = Server::http(move |_| match asked.fetch_add(1, Ordering::SeqCst) % 4 {
        0 | 1 => answer(200, r#"{"items":[]}"#),
        _ => answer(503, ""),
    });
    let server = server.await;
    let demo = adapter(json!({"adapter": "demo", "provider": server.url()})).await;
    let stage = Stage::new(vec![pod("web-1", "10.0.0.7")]);
    assert!(stage.look(&*demo).await.is_ok());
    assert!(stage.look(&*demo).await.is_err());
}

#[tokio::test]
async fn an_item_that_is_refused_or_only_accepted_keeps_no_other_from_being_sent() {
    let server = Server::http(|request| match request {
        get if get.starts_with("GET") => answer(200, r#"{"items":[]}"#),
        put if put.starts_with("PUT /v1/employees/Service/shop/web/web-1 ") => answer(202, ""),
        put if put.starts_with("PUT /v1/employees/Service/shop/web/web-2 ") => {
            answer(422, r#"{"message":"no\u0007room"}"#)
        }
        _ => answer(201, ""),
    })
    .await;
    let demo = adapter(json!({"adapter": "demo", "provider": server.url()})).await;
    let mut stage = Stage::new(["web-1", "web-3"].map(|name| pod(name, "10.0.0.7")).into());
    let items = |stage: &Stage| {
        let look = stage.clone();
        let demo = demo.clone();
        async move {
            let answer = look.look(&*demo).await.unwrap();
            answer
                .employees
                .iter()
                .map(|pair| (**pair.expected.as_ref().unwrap()).clone())
                .collect::<Vec<_>>()
        }
    };
    let batch = demo.call(&stage.about(), Call::CreateEmployees, items(&stage).await).await.unwrap();
    assert_eq!(batch.done, ["web-3"]);
    assert_eq!(batch.pending.len(), 1);
    stage.pods.insert(1, pod("web-2", "10.0.0.7"));
    let told =
        demo.call(&stage.about(), Call::CreateEmployees, items(&stage).await).await.unwrap_err().to_string();
    assert!(told.contains("web/web-2: answers 422: no\\u{7}room"), "{told}");
    let sent = server.asked().iter().filter(|request| request.contains("/web/web-3 ")).count();
    assert_eq!(sent, 2, "the one behind it was sent all the same");
}

#[tokio::test]
async fn ids_mean_nothing_but_themselves() {
    let server = Server::http(|request| {
        if request.starts_with("GET") {
            answer(200, r#"{"items":[{"id":"../../x?y#z"},{"id":".."}]}"#)
        } else {
            answer(404, "")
        }
    })
    .await;
    let demo = adapter(json!({"adapter": "demo", "provider": format!("{}/base/", server.url())})).await;
    let stage = Stage { leaving: true, ..Stage::new(Vec::new()) };
    let looked = stage.look(&*demo).await.unwrap();
    let made = stage.act(&*demo, &looked).await.unwrap();
    assert!(made.iter().all(|(_, batch)| batch.pending.is_empty()), "404 is gone");
    let asked = server.asked();
    let mut deleted: Vec<&str> =
        asked.iter().filter_map(|request| request.strip_prefix("DELETE ")?.split(' ').next()).collect();
    deleted.sort_unstable();
    let scope = "/base/v1/employees/Service/shop/web";
    assert_eq!(deleted[..2], [format!("{scope}/%2E%2E"), format!("{scope}/..%2F..%2Fx%3Fy%23z")]);
}

#[tokio::test]
async fn the_token_is_read_anew_and_is_in_no_message() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    fs::write(&file, "hunter2\n").unwrap();
    let server = Server::http(|_| answer(500, "")).await;
    let config = json!({"adapter": "demo", "provider": server.url(), "tokenFile": file});
    let demo = adapter(config).await;
    let stage = Stage::new(Vec::new());
    let mut told = stage.look(&*demo).await.unwrap_err().to_string();
    fs::write(&file, "hunter3").unwrap();
    told += &stage.look(&*demo).await.unwrap_err().to_string();
    let asked = server.asked();
    // Each look asks two questions.
    let bears = |asked: &[String], token: &str| {
        asked.iter().all(|one| one.contains(&format!("authorization: Bearer {token}\r\n")))
    };
    assert!(asked.len() == 4 && bears(&asked[..2], "hunter2") && bears(&asked[2..], "hunter3"), "{asked:?}");
    for wrong in ["", "hunter4\r\nX-Evil: 1", &"n".repeat(9999)] {
        fs::write(&file, wrong).unwrap();
        told += &stage.look(&*demo).await.unwrap_err().to_string();
    }
    fs::remove_file(&file).unwrap();
    told += &stage.look(&*demo).await.unwrap_err().to_string();
    assert_eq!(server.asked().len(), 4, "without a token nothing is sent");
    assert!(!told.contains("hunter") && told.contains("holds no token"), "{told}");
}

#[tokio::test]
async fn http_describes_other_kinds_by_their_spec() {
    let url = demo_provider().await;
    let http = adapter(json!({"adapter": "http", "provider": url, "employer": "example.com/v1/Gateway",
        "employee": "example.com/v1/Backend"}));
    let http = http.await;
    let backend = json!({"kind": "Backend", "metadata": {"name": "b1", "namespace": "shop"}, "spec": {"host": "a", "port": 1}});
    let mut stage = Stage::new(vec![backend]);
    stage.employer =
        json!({"kind": "Gateway", "metadata": {"name": "edge", "namespace": "shop"}, "spec": {"class": "x"}});
    stage.settle(&*http).await;
    let there = state(&url).await;
    assert_eq!(there["employers"]["Gateway/shop/edge"][0]["statuses"], json!({"spec": {"class": "x"}}));
    assert_eq!(
        there["employees"]["Gateway/shop/edge"][0]["statuses"],
        json!({"spec": {"host": "a", "port": 1}})
    );
    stage.pods[0]["spec"]["port"] = json!(2);
    assert!(!stage.look(&*http).await.unwrap().employees[0].same);
    stage.settle(&*http).await;
    assert_eq!(state(&url).await["employees"]["Gateway/shop/edge"][0]["statuses"]["spec"]["port"], 2);
}

#[tokio::test]
async fn the_demo_provider_outlives_clients_that_misbehave() {
    let url = demo_provider().await;
    let host = url.strip_prefix("http://").unwrap();
    let mut open = Vec::new();
    for text in [
        "",
        "GET",
        "PUT / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n",
        "\0\0\0\0",
        "GET / HTTP/9.9\r\n\r\n",
    ] {
        let mut stream = tokio::net::TcpStream::connect(host).await.unwrap();
        stream.write_all(text.as_bytes()).await.unwrap();
        open.push(stream);
    }
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(state(&url).await, json!({"employers": {}, "employees": {}}));
}
