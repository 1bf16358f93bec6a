//! A drain at a real HAProxy, as people see it: `linchpin explain` says how many sessions are left, and in which backend.

use std::{
    fs,
    io::Write as _,
    net::TcpListener,
    os::unix::net::UnixStream,
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use serde_json::json;

use super::{
    AVAILABLE, CONTROL, Process, Shop, label, ready,
    server::{Reply, answer, serve},
    webhooks::{called, delete_as_controller, is_terminating, plain},
};
use crate::{bare, operator::linchpin};

#[test]
fn explain_says_how_many_sessions_a_deletion_waits_for() {
    if !Path::new("/usr/sbin/haproxy").exists() {
        // Not through the print macros: a skipped test must be seen also when it passes.
        let _ = writeln!(std::io::stderr(), "SKIPPED: a drain at HAProxy: there is no HAProxy");
        return;
    }
    let slow = |asked: &super::server::Asked| {
        if asked.path == "/slow" { Reply::Hang(Duration::from_mins(2)) } else { answer(200, "ok") }
    };
    let served = serve("127.0.0.1:0", slow);
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (bind, url) =
        (format!("--webhook-bind-address={address}"), format!("--webhook-url=https://{address}"));
    let mut started = None;
    let shop = Shop::open_with(&bare(), &["shop"], &[&bind, &url], |_, directory| {
        let path = |name: &str| directory.join(name).display().to_string();
        let configuration = format!(
            "global\n stats socket {} mode 600 level admin\ndefaults\n mode http\n timeout connect 2s\n timeout client 180s\n \
             timeout server 180s\n option abortonclose\nfrontend web\n bind unix@{} mode 600\n default_backend shop_web\n\
             backend shop_web\n balance roundrobin\n",
            path("admin.sock"),
            path("front.sock"),
        );
        fs::write(directory.join("haproxy.cfg"), configuration).unwrap();
        let mut haproxy = Command::new("/usr/sbin/haproxy");
        haproxy.args(["-db", "-f", &path("haproxy.cfg")]).stdout(Stdio::null()).stderr(Stdio::null());
        started = Some((Process::start(&mut haproxy), directory.join("front.sock")));
        vec!["haproxy".to_owned(), "--haproxy".to_owned(), format!("unix:{}", path("admin.sock"))]
    });
    let (_haproxy, front) = started.unwrap();
    let scenario = shop.scenario("shop");
    scenario.apply(&format!(
        "{{apiVersion: v1, kind: Service, metadata: {{name: web, labels: {{{CONTROL}: 'true'}}}}, spec: {{selector: {{app: web}}, ports: [{{port: 80, targetPort: {}}}]}}}}",
        served.port()
    ));
    called(&shop, &scenario);
    // One whose own grace period is 0 looks to the API server as if it were deleted by force.
    plain(&scenario, "web-1");
    ready(&scenario, "web-1", "127.0.0.1");
    shop.until("web-1 is available", || label(&scenario.get("Pod", "web-1").unwrap(), AVAILABLE).is_some());
    let ask = |path: &str| {
        let mut stream = UnixStream::connect(&front).unwrap();
        stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: web\r\n\r\n").as_bytes()).unwrap();
        stream
    };
    let sessions = [ask("/slow"), ask("/slow"), ask("/slow")];

    // A controller deletes it.
    let asked = || delete_as_controller(&shop, &scenario, "web-1");
    let told = asked();
    assert!(told.contains("pod deletion process is underway"), "{told}");
    let explained = |what: &str| {
        let mut explain = linchpin();
        explain.args(["explain", what, "-n", "shop", "--kubeconfig"]).arg(shop.cluster.kubeconfig());
        String::from_utf8_lossy(&explain.output().unwrap().stdout).into_owned()
    };
    let waits = "Pod shop/web-1 (delete, asked by replicaset-controller) waits for Service shop/web: \
                 haproxy shop_web/web-1 still has 3 sessions, since ";
    let mut told = String::new();
    shop.until("explain says what it waits for", || {
        told = explained("pod/web-1");
        told.contains(waits)
    });
    let binding = scenario.get("ConsistBinding", "service-web").unwrap();
    let row = &binding["status"]["employees"][0];
    assert_eq!((&row["state"], &row["protected"]), (&json!("Draining"), &json!(true)), "{binding}");
    let of_service = explained("service/web");
    assert!(of_service.contains("haproxy shop_web/web-1 still has 3 sessions"), "{of_service}");
    assert!(scenario.get("Pod", "web-1").unwrap()["metadata"]["deletionTimestamp"].is_null());

    // One by one they end.
    let [first, second, third] = sessions;
    drop(first);
    shop.until("it waits for two", || explained("pod/web-1").contains("still has 2 sessions"));
    drop((second, third));
    shop.until("it goes", || asked().is_empty() && is_terminating(&scenario, "web-1"));
    shop.judge(&["shop"]);
}
