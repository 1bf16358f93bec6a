//! `alibabacloudslb` against a recorded load balancer that checks signatures.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use linchpin_adapters::{Access, AlibabaCloudSlb};
use linchpin_consist::{Port, port};
use linchpin_words::hash::sha256_hex;
use ring::hmac;
use serde_json::{Value, json};

use crate::{
    server::{Reply, Server, answer, faults},
    stage::{Stage, of, pod, unready},
};

const SECRET: &str = "hunter2";

/// What the cloud answers to `DescribeHealthStatus`, as recorded.
fn health(addresses: &[&str]) -> String {
    let server = |address: &&str| {
        json!({"ListenerPort": 80, "Port": 8080, "Protocol": "tcp", "ServerHealthStatus": "normal",
            "ServerId": "eni-1", "ServerIp": address, "Type": "eni"})
    };
    let servers: Vec<Value> = addresses.iter().map(server).collect();
    json!({"RequestId": "365F4154-92F6-4AE4-92F8-7FF34B540710", "BackendServers": {"BackendServer": servers}})
        .to_string()
}

fn headers(request: &str) -> BTreeMap<String, String> {
    let lines = request.split("\r\n").skip(1);
    lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
        .collect()
}

/// The cloud's own check: the signature is computed from what arrived, and nothing else.
fn is_signed(request: &str) -> bool {
    let (target, headers) = (request.split(' ').nth(1).unwrap(), headers(request));
    let (path, query) = target.split_once('?').unwrap();
    let authorization = &headers["authorization"];
    let part = |name: &str| {
        let parts = authorization.strip_prefix("ACS3-HMAC-SHA256 ").unwrap().split(',');
        parts.filter_map(|part| part.split_once('=')).find(|(key, _)| *key == name).unwrap().1.to_owned()
    };
    let names = part("SignedHeaders");
    let signed: Vec<String> = names.split(';').map(|name| format!("{name}:{}\n", headers[name])).collect();
    let signed = signed.concat();
    let body = sha256_hex(request.split_once("\r\n\r\n").unwrap().1.as_bytes());
    let canonical = format!("POST\n{path}\n{query}\n{signed}\n{names}\n{body}");
    let text = format!("ACS3-HMAC-SHA256\n{}", sha256_hex(canonical.as_bytes()));
    let key = hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes());
    let signature = hmac::sign(&key, text.as_bytes());
    let digits: Vec<String> = signature.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    digits.concat() == part("Signature")
        && part("Credential") == "key"
        && headers["x-acs-content-sha256"] == body
}

async fn slb(respond: impl Fn(&str) -> Reply + Send + Sync + 'static) -> (Server, Arc<dyn Port>) {
    let server = Server::http(respond).await;
    let adapter = adapter(&server.url(), Some(SECRET), "500ms");
    (server, adapter)
}

fn adapter(url: &str, secret: Option<&str>, timeout: &str) -> Arc<dyn Port> {
    let timeout = if timeout == "500ms" { Duration::from_millis(500) } else { Duration::from_secs(5) };
    let (url, secret) = (url.to_owned(), secret.map(str::to_owned));
    let environment = move |name: &str| match name {
        "ALIYUN_SLB_AK_KEY" => Some("key".to_owned()),
        "ALIYUN_SLB_AK_SECRET" => secret.clone(),
        "ALIYUN_SLB_ENDPOINT" => Some(url.clone()),
        "ALIYUN_SLB_REGION" => Some("cn-hangzhou".to_owned()),
        _ => None,
    };
    let access =
        Access { url: String::new(), token_file: None, ca_file: None, timeout, allow_insecure: false };
    let adapter = AlibabaCloudSlb::new(environment, access, AlibabaCloudSlb::usual_options()).unwrap();
    port::<_, Value, Value>(adapter)
}

fn stage(pods: Vec<Value>) -> Stage {
    let mut stage = Stage::new(pods);
    stage.employer["metadata"]["labels"]["service.k8s.alibaba/loadbalancer-id"] = json!("lb-2ze&x=y");
    stage
}

#[tokio::test]
async fn pods_are_held_by_what_the_load_balancer_says_and_nothing_is_written() {
    let (server, port) = slb(|request| {
        if is_signed(request) {
            answer(200, &health(&["10.0.0.7", "10.0.0.8"]))
        } else {
            answer(400, r#"{"Code":"SignatureDoesNotMatch"}"#)
        }
    })
    .await;
    let mut host = pod("web-4", "10.0.0.9");
    host["spec"]["hostNetwork"] = json!(true);
    let stage = stage(vec![
        pod("web-1", "10.0.0.7"),
        unready(pod("web-2", "10.0.0.8")),
        pod("web-3", "10.0.0.5"),
        host,
        pod("web-5", ""),
    ]);
    let looked = stage.look(&*port).await.unwrap();
    assert!(looked.employer.is_empty());
    let seen: Vec<_> =
        looked.employees.iter().map(|pair| (pair.id.as_str(), pair.same, pair.in_traffic)).collect();
    assert_eq!(
        seen,
        [("web-1", true, Some(true)), ("web-2", false, Some(true)), ("web-3", false, Some(false))]
    );
    let made = stage.act(&*port, &looked).await.unwrap();
    assert!(made.iter().all(|(_, batch)| batch.done.is_empty()), "everything is pending: {made:?}");
    let asked = server.asked();
    assert_eq!(asked.len(), 1, "it only looks");
    assert!(
        asked[0].starts_with("POST /?LoadBalancerId=lb-2ze%26x%3Dy&RegionId=cn-hangzhou "),
        "{}",
        asked[0]
    );
    let headers = headers(&asked[0]);
    assert_eq!(
        (headers["x-acs-action"].as_str(), headers["x-acs-version"].as_str()),
        ("DescribeHealthStatus", "2014-05-15")
    );
    assert_eq!(headers["x-acs-date"], "2023-11-14T22:13:20Z");
    assert!(port.options().need_record_employees && port.options().poll == Duration::from_secs(1));
}

#[tokio::test]
async fn without_a_load_balancer_nobody_has_traffic_and_a_service_that_goes_hangs_on_nothing() {
    let (server, port) = slb(|_| answer(500, "")).await;
    let mut stage = Stage::new(vec![unready(pod("web-1", "10.0.0.7"))]);
    let looked = stage.look(&*port).await.unwrap();
    assert!(of(&looked, "web-1").same && of(&looked, "web-1").in_traffic == Some(false));
    stage.leaving = true;
    assert!(stage.look(&*port).await.unwrap().employees.is_empty());
    assert!(server.asked().is_empty());
}

#[tokio::test]
async fn a_cloud_that_does_not_answer_is_unknown_and_the_secret_is_in_no_message() {
    let mut faults = faults();
    faults.push(("says forbidden", answer(403, r#"{"Code":"Forbidden.RAM","Message":"hunter2"}"#)));
    faults.push((
        "has a server without address",
        answer(200, r#"{"BackendServers":{"BackendServer":[{"Port":1}]}}"#),
    ));
    faults.push(("has no list", answer(200, r#"{"BackendServers":{}}"#)));
    for (name, reply) in faults {
        let (_server, port) = slb(move |_| reply.clone()).await;
        let looked = stage(vec![pod("web-1", "10.0.0.7")]).look(&*port).await;
        let told = looked.err().unwrap_or_else(|| panic!("a cloud that {name} was believed")).to_string();
        assert!(!told.contains(SECRET), "{told}");
    }
    let port = adapter("http://127.0.0.1:1", None, "5s");
    let told = stage(vec![pod("web-1", "10.0.0.7")]).look(&*port).await.unwrap_err().to_string();
    assert!(told.contains("ALIYUN_SLB_AK_SECRET"), "{told}");
}
