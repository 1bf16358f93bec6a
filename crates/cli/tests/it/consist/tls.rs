//! A provider behind TLS: only certificates of `--ca-file` are believed, and the file is read again when it changes.

use std::{
    fs,
    sync::{Arc, Mutex},
};

use linchpin_testkit::condition;
use serde_json::json;

use super::{
    Shop, finalizers, pod,
    server::{Reply, certificate, forward, serve_tls},
    service,
};
use crate::bare;

#[test]
fn a_provider_is_believed_by_its_ca_file_which_is_read_again_when_it_changes() {
    let ((first, config), (second, other)) = (certificate(), certificate());
    let shown = Arc::new(Mutex::new(config));
    let (server, mut file) = (Arc::clone(&shown), None);
    let shop = Shop::open_with(&bare(), &["sealed"], &["--resync=1s"], |provider, directory| {
        let behind = provider.address.clone();
        let answers = move |asked: &_| Reply::Bytes(forward(&behind, asked).unwrap_or_default());
        let path = directory.join("ca.pem");
        fs::write(&path, &first).unwrap();
        let url = format!("https://{}", serve_tls(server, answers));
        let words = ["demo", "--provider", &url, "--ca-file", path.to_str().unwrap()].map(str::to_owned);
        file = Some(path);
        words.to_vec()
    });
    let (scenario, file) = (shop.scenario("sealed"), file.unwrap());
    pod(&scenario, "web-1", "web", "10.0.0.1", false);
    service(&scenario, "web");
    let protected = || scenario.get("Pod", "web-1").is_some_and(|pod| !finalizers(&pod).is_empty());
    shop.until("web-1 is protected", protected);

    // Somebody else answers there: what it says is no answer.
    *shown.lock().unwrap() = other;
    let path = "/api/v1/namespaces/sealed/pods/web-1/status";
    let unready = json!({"status": {"conditions": [{"type": "Ready", "status": "False"}]}});
    let form = "application/strategic-merge-patch+json";
    scenario.api.request(&http::Method::PATCH, path, form, Some(&unready)).unwrap();
    shop.until("it is not believed", || {
        let binding = scenario.get("ConsistBinding", "service-web").unwrap();
        condition(&binding, "Ready")["reason"] == "ProviderUnreachable"
    });
    assert!(protected() && shop.provider.serves(&scenario, "web", "web-1"), "nothing moves on it");

    // The file says that it is the one.
    fs::write(&file, second).unwrap();
    shop.until("it is believed", || !protected() && !shop.provider.serves(&scenario, "web", "web-1"));

    // A file that is none holds everything, and says so.
    fs::write(&file, "no certificate").unwrap();
    shop.until("a file without certificates is told", || {
        let binding = scenario.get("ConsistBinding", "service-web").unwrap();
        binding["status"]["message"].as_str().is_some_and(|told| told.contains("--ca-file"))
    });
    shop.judge(&["sealed"]);
}
